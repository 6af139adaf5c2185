"""Column lineage: which stream columns each column of a plan comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from windrow.plan.nodes import Aggregate, Node, Project, Scan, SetOperation, walk

__all__ = ["Lineage", "lineage"]

Origin = tuple[str, str]
"""A stream, and one of its columns."""


@dataclass(frozen=True)
class Lineage:
    """For each column id, the stream column that it is.

    Attributes
    ----------
    same
        The lineage of columns that are passed on unchanged.
    differing
        The lineage of columns that are computed from one column, and differ whenever that does.
    """

    same: Mapping[str, Origin] = field(default_factory=dict)
    differing: Mapping[str, Origin] = field(default_factory=dict)

    def of(self, column: str) -> Origin | None:
        """The stream column that a column depends on: when that is closed, so is this."""
        return self.same.get(column) or self.differing.get(column)


def lineage(plan: Node) -> Lineage:
    """The lineage of all columns in a plan.

    The lineage of a set operator is that of its left side.
    """
    same: dict[str, Origin] = {}
    differing: dict[str, Origin] = {}

    def passes(made: str, source: str) -> None:
        if source in same:
            same[made] = same[source]
        if source in differing:
            differing[made] = differing[source]

    for node in walk(plan):
        match node:
            case Scan(table=None):
                for column, source in zip(node.columns, node.sources, strict=True):
                    same[column.id] = (node.name, source)
            case Project():
                for column, one in node.outputs:
                    if one.column is not None:
                        passes(column.id, one.column)
                    elif one.widens is not None:
                        passes(column.id, one.widens)
                    elif one.follows is not None and one.follows.differs:
                        known = same.get(one.follows.column) or differing.get(one.follows.column)
                        if known is not None:
                            differing[column.id] = known
            case Aggregate():
                for column, source in node.keys:
                    passes(column.id, source)
            case SetOperation():
                for column, other in zip(node.columns, node.left.columns, strict=True):
                    passes(column.id, other.id)
    return Lineage(same, differing)

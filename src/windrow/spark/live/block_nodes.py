"""What the blocks of a query over whole streams become: the nodes of a flow, and the columns between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from windrow.algebra.continuous import Reader, WindowedStream
from windrow.errors import NotSupportedError, Span
from windrow.kernels.punctuated import Project
from windrow.kernels.punctuated.flow import Node, Operator, Place
from windrow.spark.arrow import arrow_type, contains, is_orderable, travelling_type
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.group_keys import GroupKeys
from windrow.spark.live.row_maps import Followed, Going, Moved, RowMap
from windrow.spark.scope import Part, Unplanned
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText

__all__ = ["BlockNodes", "Found", "Joined", "Rows", "is_bare", "renamed"]


@dataclass(frozen=True)
class Rows:
    """What a node gives: its place, the names of its columns to the query, their names of ours and types."""

    place: Place
    names: tuple[str, ...]
    kinds: StructType

    @property
    def columns(self) -> tuple[str, ...]:
        """Their names of ours."""
        return tuple(self.kinds.names)


@dataclass(frozen=True)
class Joined:
    """The rows of FROM so far, and the relations in them."""

    rows: Rows
    parts: tuple[Part, ...]


@dataclass
class Found:
    """What is found while a query is read."""

    nodes: list[Node] = field(default_factory=list)
    tables: dict[str, SqlText] = field(default_factory=dict)
    origins: dict[str, tuple[str, str]] = field(default_factory=dict)
    followed: dict[str, tuple[str, str]] = field(default_factory=dict)
    blocks: int = 0


class BlockNodes(GroupKeys):
    """Makes the nodes of one query.

    Parameters
    ----------
    gateway, reader, catalog
        The session, the statement and the streams.
    """

    def __init__(self, gateway: Gateway, reader: Reader, catalog: Catalog) -> None:
        super().__init__(gateway, reader)
        self.catalog = catalog
        self._found = Found()
        self._named_queries: dict[Range, Rows] = {}
        self._computed: dict[Range, str] = {}  # the columns of what is computed before SELECT

    # -- nodes ---------------------------------------------------------------------------------------

    def _add(self, name: str, operator: Operator, *inputs: Place) -> int:
        self._found.nodes.append(Node(name, operator, inputs))
        return len(self._found.nodes) - 1

    def _project(
        self, rows: Rows, columns: Sequence[str], made: Sequence[str], names: Sequence[str], name: str
    ) -> Rows:
        """Some columns under other names of ours."""
        pairs = tuple(zip(made, columns, strict=True))
        kinds = renamed(rows.kinds, pairs)
        self._pass_on(pairs)
        return Rows(self._add(name, Project(pairs), rows.place), tuple(names), kinds)

    def _map(
        self,
        rows: Rows,
        text: SqlText,
        key: str,
        result: StructType,
        plain: Sequence[tuple[str, str]],
        names: Sequence[str],
        name: str,
        going: Sequence[Going] = (),
        widened: Sequence[tuple[str, str]] = (),
    ) -> Rows:
        """What Spark computes of rows."""
        moved = tuple(one for one in going if isinstance(one, Moved))
        followed = tuple(one for one in going if isinstance(one, Followed))
        self._refuse_types(result)
        self._pass_on([*plain, *widened])
        known = self._found.followed | self._found.origins
        differing = [one.follower for one in followed if one.follower.differs]
        self._found.followed |= {one.name: known[one.column] for one in differing if one.column in known}
        operator = RowMap(
            self.gateway, text, key, rows.kinds, result, tuple(plain), moved, followed, tuple(widened)
        )
        return Rows(self._add(name, operator, rows.place), tuple(names), result)

    def _pass_on(self, pairs: Sequence[tuple[str, str]]) -> None:
        origins = self._found.origins
        origins |= {made: origins[column] for made, column in pairs if column in origins}
        followed = self._found.followed
        followed |= {made: followed[column] for made, column in pairs if column in followed}

    def _fresh(self, count: int) -> list[str]:
        """Names for the columns of a block that no other has."""
        self._found.blocks += 1
        return [f"b{self._found.blocks}_{at}" for at in range(count)]

    def _refuse_types(self, kinds: StructType) -> None:
        for one in kinds:
            kind = one.dataType
            if travelling_type(kind) != kind or arrow_type(kind) is None or contains(kind, "collated"):
                raise Unplanned(f"a column of type {kind.simpleString().upper()}")

    def _frame(self, rows: Rows) -> DataFrame:
        """No rows of these columns."""
        return self.gateway.spark.createDataFrame([], rows.kinds)

    def _told(self, stretch: Range) -> str:
        return " ".join(self.tokens.text(*stretch).split())

    def _refuse_unordered(self, kinds: StructType, what: str) -> None:
        for one in kinds:
            if not is_orderable(one.dataType):
                raise Unplanned(f"{what} of {one.dataType.simpleString().upper()}")

    def _refused(self, stretch: Range, what: str, hint: str, *, is_place: bool = False) -> NotSupportedError:
        span = Span(*stretch) if is_place else self.tokens.span(*stretch)
        return NotSupportedError(
            f"{what} over live streams without windows is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=self.tokens.sql,
            span=span,
            hint=hint,
        )


def is_bare(item: object) -> bool:
    """Whether it is a stream without a window."""
    is_stream = isinstance(item, WindowedStream) and isinstance(item.source, str)
    return is_stream and item.window.tokens[0] == item.window.tokens[1]  # type: ignore[attr-defined]


def renamed(kinds: StructType, pairs: Sequence[tuple[str, str]]) -> StructType:
    """The types of columns under other names: pairs of the name and the column."""
    made = StructType()
    for name, column in pairs:
        made = made.add(name, kinds[column].dataType)
    return made

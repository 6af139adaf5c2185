"""SELECTs with WINDOW BY that are correlated by a key alone: ``WHERE r.k = t.k``.

All rows of a window have the same PARTITION BY keys, and partitions are independent. So a condition on keys
can filter windows instead of rows: it is moved after the clause, over a row of the window, and Spark joins
the windows with the outer query. Other correlations are :mod:`windrow.algebra.rewriting.outer_values`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from windrow.algebra.names import OUTER, QUALIFIED, of_relation
from windrow.algebra.qualified import relations_of, written
from windrow.algebra.rewriting.outer_references import OuterReferences
from windrow.algebra.rewriting.outer_values import boundary_row
from windrow.algebra.window_node import Uses, WindowBoundary, WindowFragment
from windrow.syntax.expression_nodes import Expression, OperationNode, names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range, Variable
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["Correlated", "find_correlated"]


@dataclass(frozen=True)
class Correlated:
    """The conditions of a SELECT that compare keys with columns of the outer query.

    Attributes
    ----------
    rows
        FROM without WHERE, and the other conditions.
    keys
        The conditions: the key, its place in PARTITION BY and the whole comparison.
    row
        The variable of the row at which keys are read.
    """

    rows: tuple[Range, tuple[Range, ...]]
    keys: tuple[tuple[Range, int, Range], ...]
    row: Variable

    def source(self, text: Callable[[int, int], SqlText]) -> SqlText:
        """FROM and the other conditions."""
        source, others = self.rows
        where = [SqlText.of("(", text(*part), ")") for part in others]
        return SqlText.of(text(*source), " WHERE " if where else "", SqlText.join(" AND ", where))

    def columns(self, keys: tuple[WindowFragment, ...]) -> list[SqlText]:
        """The keys as fields of the rows."""
        return [
            SqlText.of("(", keys[at].text, ") AS ", quoted(_field(at)))
            for at in sorted({at for _, at, _ in self.keys})
        ]

    def with_uses(self, uses: tuple[Uses, ...]) -> tuple[Uses, ...]:
        """The fields that are read of the variables, including the keys."""
        name = QUALIFIED + self.row.name
        fields = frozenset(_field(at) for _, at, _ in self.keys)
        known = next((use.fields for use in uses if use.name == name), None)
        return (*(use for use in uses if use.name != name), Uses(name, fields | (known or frozenset())))

    def with_row(self, boundary: WindowBoundary) -> WindowBoundary:
        """The boundary of the row, with its variable."""
        if self.row in boundary.variables or self.row.side is not boundary.side:
            return boundary
        return replace(boundary, variables=(*boundary.variables, self.row))

    def conditions(self, text: Callable[[Range, Mapping[Range, str]], SqlText]) -> list[SqlText]:
        """The comparisons, over the windows."""
        row = quoted(QUALIFIED + self.row.name)
        return [text(comparison, {key: f"{row}.{quoted(_field(at))}"}) for key, at, comparison in self.keys]


def _field(number: int) -> str:
    """The field of the rows with a key of PARTITION BY."""
    return of_relation(OUTER, str(number))


def find_correlated(tokens: TokenList, query: BlockText, references: OuterReferences) -> Correlated | None:
    """The conditions of a SELECT that compare its keys with columns of the outer query.

    None if something else reads these columns too.
    """
    start, stop = query.source
    where = next((at for at in tokens.level(start, stop) if tokens.word(at) == "WHERE"), None)
    if where is None or query.group_by is not None or references.whens or references.over:
        return None
    own = set(relations_of(tokens, query.source))
    around = {one.range[0] for one in references.rows}
    keys = [written(tokens, key, own) for key in query.clause.partition_by]
    condition = parse_expression(tokens, where + 1, stop)
    is_and = isinstance(condition, OperationNode) and condition.operator == "AND"
    parts = condition.operands if is_and and isinstance(condition, OperationNode) else (condition,)
    found: list[tuple[Range, int, Range]] = []
    for part in parts:
        if not isinstance(part, OperationNode) or part.operator not in ("=", "<=>"):
            continue
        for key, other in (part.operands, part.operands[::-1]):
            said = written(tokens, key.range, own)
            if said in keys and _is_of(other, around):
                found.append((key.range, keys.index(said), part.range))
                break
    moved = {at for _, _, at in found}
    if not all(any(first <= at < last for first, last in moved) for at in around):
        return None
    others = tuple(part.range for part in parts if part.range not in moved)
    return Correlated(((start, where), others), tuple(found), _row(query))


def _row(query: BlockText) -> Variable:
    """A row that every window has: the label row, or the first."""
    return boundary_row(query.clause.label or query.clause.start)


def _is_of(expression: Expression, around: set[int]) -> bool:
    """Whether an expression reads only columns of the outer query."""
    names = list(names_in(expression))
    return bool(names) and all(name.range[0] in around for name in names)

"""Blocks with WINDOW BY that read columns of the outer query: ``WHERE r.k = t.k`` by a partition key.

All rows of a window have the same keys of PARTITION BY, and partitions are independent. So a condition on
keys can filter windows instead of rows: it is moved behind the clause, over a row of the window, and Spark
joins the windows with the outer query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from windrow.algebra.names import QUALIFIED, of_relation
from windrow.algebra.qualified import relations_of, written
from windrow.algebra.window_node import Uses, WindowBoundary, WindowFragment
from windrow.syntax.blocks import is_set_operator, level_around
from windrow.syntax.expression_nodes import Expression, OperationNode, names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range, Role, Side, Variable
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["Correlated", "find_correlated"]

_ROW = "__outer"


@dataclass(frozen=True)
class Correlated:
    """The conditions of a block that compare keys with columns of the outer query.

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
        """What is read of the variables, with the keys."""
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
    return of_relation("outer", str(number))


def find_correlated(tokens: TokenList, block: BlockText) -> Correlated | None:
    """The conditions of a block that compare its keys with columns of the outer query; None without any."""
    start, stop = block.source
    where = next((at for at in tokens.level(start, stop) if tokens.word(at) == "WHERE"), None)
    around = _relations_around(tokens, block)
    if where is None or not around or block.group_by is not None:
        return None
    own = set(relations_of(tokens, block.source))
    keys = [written(tokens, key, own) for key in block.clause.partition_by]
    condition = parse_expression(tokens, where + 1, stop)
    is_and = isinstance(condition, OperationNode) and condition.operator == "AND"
    parts = condition.operands if is_and and isinstance(condition, OperationNode) else (condition,)
    found: list[tuple[Range, int, Range]] = []
    for part in parts:
        if not isinstance(part, OperationNode) or part.operator not in ("=", "<=>"):
            continue
        for key, other in (part.operands, part.operands[::-1]):
            said = written(tokens, key.range, own)
            if said in keys and _is_of(other, around - own):
                found.append((key.range, keys.index(said), part.range))
                break
    if not found:
        return None
    moved = {at for _, _, at in found}
    others = tuple(part.range for part in parts if part.range not in moved)
    return Correlated(((start, where), others), tuple(found), _row(block))


def _row(block: BlockText) -> Variable:
    """A row that every window has: the label row, or the first."""
    clause = block.clause
    side, boundary = (Side.START, clause.start) if clause.label is None else (Side.LABEL, clause.label)
    declared = [variable for variable in boundary.variables if variable.role is Role.ROW]
    return declared[0] if declared else Variable(_ROW, side, Role.ROW, clause.span)


def _is_of(expression: Expression, relations: set[str]) -> bool:
    """Whether an expression reads columns of these relations, and nothing else."""
    names = list(names_in(expression))
    return bool(names) and all(len(name.parts) > 1 and name.parts[0].lower() in relations for name in names)


def _relations_around(tokens: TokenList, block: BlockText) -> set[str]:
    """The names of the relations of the queries in which a block stands."""
    found: set[str] = set()
    inside = tokens.parent[block.range[0]]
    while inside >= 0:
        first, last = level_around(tokens, inside)
        own = [at for at in tokens.level(first, last) if tokens.parent[at] == tokens.parent[inside]]
        sets = [at for at in own if is_set_operator(tokens, at)]
        first = max((at for at in sets if at < inside), default=first)
        last = min((at for at in sets if at > inside), default=last)
        for at in own:
            if first <= at < last and tokens.word(at) == "FROM" and not tokens.is_symbol(at - 1, "."):
                found |= set(relations_of(tokens, (at, last)))
        inside = tokens.parent[inside]
    return found

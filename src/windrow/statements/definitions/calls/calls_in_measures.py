"""Calls of SQL functions over windows in MEASURES that read several rows: the measures are computed above.

    t MATCH_RECOGNIZE (… MEASURES f(LAST(A.v) - FIRST(A.v)) AS m, COUNT(*) AS c …)
      →  (FROM t MATCH_RECOGNIZE (
              … MEASURES LAST(A.v) AS __measured0, FIRST(A.v) AS __measured1, 0 AS m, COUNT(*) AS c …)
          |> SET m = f(__measured0 - __measured1) |> DROP __measured0, __measured1)

SET keeps the order of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.names import piece_of
from windrow.algebra.navigations import find_leaves
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import column_of, put_instead
from windrow.algebra.scopes import first_of
from windrow.statements.definitions.function_calls import end_of_column, operands_in
from windrow.syntax.nodes import Range, is_within
from windrow.syntax.patterns.match_nodes import MatchClause, MatchRelation, Named
from windrow.syntax.patterns.row_patterns import variables_of
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["measures_above"]

_MEASURED = "__measured"


def measures_above(
    tokens: TokenList, match: MatchRelation, measures: Sequence[Named], own: frozenset[str]
) -> SqlText:
    """The text with these measures above the relation of the matches.

    `own` are the names, in lower case, of the user's aggregates.
    """
    numbers: dict[tuple[str, ...], int] = {}
    columns: list[SqlText] = []
    values: list[SqlText] = []
    for measure in measures:
        above = Edits(tokens)
        for part in _parts(tokens, match.clause, measure.expression, own):
            number = numbers.setdefault(column_of(tokens, part), len(columns))
            if number == len(columns):
                columns.append(SqlText.of(piece_of(tokens, *part), f" AS {_MEASURED}{number}"))
            put_instead(above, part, f"{_MEASURED}{number}")
        values.append(SqlText.of(quoted(measure.name), " = ", above.text(*measure.expression)))
    edits = Edits(tokens)
    edits.put(first_of(tokens, match), "(FROM ")
    edits.put(match.clause.measures[0].expression[0], SqlText.join(", ", columns), ",")
    for measure in measures:
        put_instead(edits, measure.expression, "0")
    dropped = ", ".join(f"{_MEASURED}{number}" for number in range(len(columns)))
    edits.put(match.range[1], "|> SET ", SqlText.join(", ", values), f"|> DROP {dropped})")
    return edits.text(0, len(tokens))


def _parts(tokens: TokenList, clause: MatchClause, measure: Range, own: frozenset[str]) -> list[Range]:
    """What a measure reads of its match: navigations, aggregates and columns."""
    variables = frozenset([*variables_of(clause.pattern), *(one.name for one in clause.subsets)])
    leaves = [leaf.range for leaf in find_leaves(tokens, measure, variables, in_define=False, own=own)]
    bare = ((at, end_of_column(tokens, at)) for at in operands_in(tokens, measure))
    return [*leaves, *(one for one in bare if not any(is_within(one, leaf) for leaf in leaves))]

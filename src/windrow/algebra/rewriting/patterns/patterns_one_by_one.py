"""Several windows of OVER with patterns in one SELECT, as SELECTs of one each.

SELECT k, m OVER p, n OVER q FROM t WINDOW p AS (… PATTERN …), q AS (… PATTERN …)
→  SELECT k, __before2_0 AS m, n OVER q
   FROM (SELECT *, m OVER p AS __before2_0 FROM t WINDOW p AS (… PATTERN …)) WINDOW q AS (… PATTERN …)
"""

from __future__ import annotations

from windrow.algebra.names import piece_of
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.pattern_windows import PatternBlock, PatternWindowCall
from windrow.syntax.select_list import excepted, without_alias
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["patterns_one_by_one"]

_COLUMN = "__before"


def patterns_one_by_one(tokens: TokenList, query: PatternBlock) -> SqlText:
    """The SELECT over a query with the first of its windows."""
    first, *others = query.windows
    calls = [call for call in query.calls if call.window is first]
    # of SELECTs inside of each other, each has another number of windows
    column = f"{_COLUMN}{len(query.windows)}_"
    names = {call.range: f"{column}{number}" for number, call in enumerate(calls)}
    bases = [piece_of(tokens, *window) for window in query.other_windows]
    inside = [piece_of(tokens, *first.range)] if first.name else []
    outside = [piece_of(tokens, *window.range) for window in others if window.name]
    columns = [SqlText.of(piece_of(tokens, *at), f" AS {quoted(name)}") for at, name in names.items()]
    # as it is written: quoted or not, it is a variable in the conditions
    alias = f" AS {tokens.text(*query.alias)}" if query.alias else ""
    start = query.select[0] + (tokens.word(query.select[0]) in ("DISTINCT", "ALL"))
    hidden = ", ".join(map(quoted, names.values())) or f"{column}0"
    items = [_item(tokens, item, names, calls, hidden) for item in tokens.split(start, query.select[1])]
    distinct = tokens.word(query.select[0]) + " " if start > query.select[0] else ""
    rest = [query.qualify] if query.qualify is not None else []
    rest += [query.tail] if query.tail[0] < query.tail[1] else []
    return SqlText.of(
        f"SELECT {distinct}",
        SqlText.join(", ", items),
        " FROM (SELECT *, ",
        SqlText.join(", ", columns or [SqlText.of(f"1 AS {column}0")]),
        " ",
        piece_of(tokens, *query.source),
        _windows([*bases, *inside]),
        f"){alias}",
        _windows([*bases, *outside]),
        *(SqlText.of(" ", _written(tokens, part, names)) for part in rest),
    )


def _windows(windows: list[SqlText]) -> SqlText:
    """The list of windows."""
    return SqlText.of(" WINDOW ", SqlText.join(", ", windows)) if windows else SqlText()


def _item(
    tokens: TokenList, item: Range, names: dict[Range, str], calls: list[PatternWindowCall], hidden: str
) -> SqlText:
    """An item of SELECT, with its original name; stars leave out `hidden` columns."""
    if tokens.is_symbol(item[1] - 1, "*"):
        return SqlText.of(piece_of(tokens, *item), f" EXCEPT ({hidden})")
    if (bracket := excepted(tokens, item)) is not None:
        before, rest = piece_of(tokens, item[0], bracket + 1), piece_of(tokens, bracket + 1, item[1])
        return SqlText.of(before, f"{hidden}, ", rest)
    text = _written(tokens, item, names)
    has_alias = without_alias(tokens, item) != item and tokens.word(item[1] - 2) != "OVER"
    if has_alias or not any(item[0] <= at[0] and at[1] <= item[1] for at in names):
        return text
    call = next((call for call in calls if call.range == item), None)
    name = call.measure if call is not None and call.measure is not None else tokens.text(*item)
    return SqlText.of(text, " AS ", quoted(name))


def _written(tokens: TokenList, part: Range, names: dict[Range, str]) -> SqlText:
    """A part with columns in place of calls."""
    parts: list[SqlText | str] = []
    at, stop = part
    for place in sorted(one for one in names if part[0] <= one[0] and one[1] <= stop):
        span = tokens.span(*place)
        column = Piece(quoted(names[place]), tokens.sql, span.start, span.stop - span.start)
        parts += [piece_of(tokens, at, place[0]), " ", SqlText.of(column), " "]
        at = place[1]
    return SqlText.of(*parts, piece_of(tokens, at, stop))

"""Calls of SQL functions over windows within an aggregate of windows: the windows become a relation in FROM.

    SELECT s.k, MAX(f(COUNT(w))) FROM t WINDOW BY w AS (…) GROUP BY s.k
      →  SELECT __window0 AS k, MAX(f(__window1))
         FROM (SELECT s.k AS __window0, COUNT(w) AS __window1 FROM t WINDOW BY w AS (…)) AS __windows
         GROUP BY __window0

There the functions are called beside groups of ordinary columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from windrow.algebra.aggregate_calls import places_of_calls
from windrow.algebra.names import piece_of
from windrow.algebra.row_comparison import comparisons_of_rows
from windrow.statements.definitions.function_calls import every_call, outermost_calls, select_around
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import BlockText, Range, is_within
from windrow.syntax.operands import may_be_operand
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.select_list import aliased, excepted, without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["calls_in_aggregates"]

_COLUMN, _WINDOWS = "__window", "__windows"


def calls_in_aggregates(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with the windows of the first such SELECT as a relation; None if there is none, or if not all
    that is above them can be.
    """
    windows = {one.range[0]: one for one in find_window_queries(tokens)}
    for at in outermost_calls(tokens, functions):
        select = select_around(tokens, at)
        first = None if select is None else select.items[0] - 1
        window = None if first is None else windows.get(first - (tokens.word(first) == "DISTINCT"))
        if select is None or window is None:
            continue
        groups = window.groups_after or (window.tail[0], window.tail[0])
        read = [select.items, groups, window.tail]
        if any(is_within((at, at + 1), one) for one in places_of_calls(tokens, read)):
            found = _OverWindows(
                tokens, select.items, groups, window, [*every_call(tokens, functions)]
            ).text()
            if found is not None:
                return found
    return None


@dataclass
class _OverWindows:
    """A SELECT that groups windows, and the columns of the windows that it reads.

    Attributes
    ----------
    items, groups
        What it selects; GROUP BY and HAVING, with these words.
    window
        The SELECT.
    calls
        All calls of such functions.
    columns, numbers
        The columns, and their numbers by their text.
    """

    tokens: TokenList
    items: Range
    groups: Range
    window: BlockText
    calls: Sequence[int]
    columns: list[SqlText] = field(default_factory=list)
    numbers: dict[tuple[str, ...], int] = field(default_factory=dict)

    def text(self) -> SqlText | None:
        """The whole text; None for windows of OVER, stars, subqueries, and calls of the rows of a window."""
        tokens, window = self.tokens, self.window
        items = [self._item(item) for item in tokens.split(*self.items)]
        groups, tail = self._above(self.groups), self._above(window.tail)
        if groups is None or tail is None or not all(items):
            return None
        below = piece_of(tokens, self.items[1], self.groups[0], " ")
        return SqlText.of(
            piece_of(tokens, 0, self.items[0], " "),
            SqlText.join(", ", [item for item in items if item is not None]),
            " FROM (SELECT ", SqlText.join(", ", self.columns), " ", below, f") AS {_WINDOWS} ",
            groups, " ", tail,
            piece_of(tokens, window.range[1], len(tokens)),
        )  # fmt: skip

    def _item(self, item: Range) -> SqlText | None:
        """An item of SELECT over the columns, with the name that it has without them."""
        tokens = self.tokens
        expression, named = without_alias(tokens, item), aliased(tokens, item)
        text = self._above(expression)
        is_star = tokens.is_symbol(item[1] - 1, "*") or excepted(tokens, item) is not None
        if text is None or is_star:
            return None
        is_path = all(tokens[at].is_name or tokens.is_symbol(at, ".") for at in range(*expression))
        own = tokens[expression[1] - 1].name if is_path else tokens.text(*expression)
        return SqlText.of(text, " AS ", quoted(named[0] if named else own))

    def _above(self, part: Range) -> SqlText | None:
        """A part over the columns; None if not all that it reads can be one."""
        tokens, (at, stop) = self.tokens, part
        rows = dict(comparisons_of_rows(tokens, [part], self.window.clause))
        names = {self._rows, *(one.name.lower() for one in self.window.clause.variables())}
        parts: list[SqlText] = []
        done = at
        while at < stop:
            end = rows.get(at) or self._aggregate(at, stop)
            if end is None and (opens_query(tokens, at) or tokens.word(at) in ("OVER", "QUALIFY")):
                return None
            if end is None and may_be_operand(tokens, at) and not tokens.is_symbol(at - 1, "."):
                if tokens[at].name.lower() == self._rows and any(
                    call < at < tokens.partner[call + 1] for call in self.calls
                ):
                    return None
                if tokens[at].name.lower() in names:
                    end = at + 1
                    while tokens.is_symbol(end, ".") and end + 1 < stop:
                        end += 2
            if end is None:
                at += 1
                continue
            parts += [piece_of(tokens, done, at, " "), SqlText.of(self._column((at, end)), " ")]
            done = at = end
        return SqlText.of(*parts, piece_of(tokens, done, stop))

    @property
    def _rows(self) -> str:
        """The name of the window's rows."""
        return self.window.clause.name.lower()

    def _aggregate(self, at: int, stop: int) -> int | None:
        """The end of an aggregate over the rows of each window that begins at a token."""
        tokens = self.tokens
        end = next((one[1] for one in places_of_calls(tokens, [(at, stop)]) if one[0] == at), None)
        if end is None:
            return None
        inside = at + 2, end
        is_of_groups = bool(places_of_calls(tokens, [inside])) or any(at < call < end for call in self.calls)
        reads = any(
            may_be_operand(tokens, one) and tokens[one].name.lower() == self._rows for one in range(*inside)
        )
        return end if reads and not is_of_groups else None

    def _column(self, place: Range) -> str:
        """The column that has what stands at a place."""
        marks = (str(at) for at in range(*place) if self.tokens.is_symbol(at, "?"))
        said = (*self.tokens.folded(*place), *marks)
        if said not in self.numbers:
            self.numbers[said] = len(self.columns)
            name = f"{_COLUMN}{len(self.columns)}"
            self.columns.append(SqlText.of(piece_of(self.tokens, *place), f" AS {name}"))
        return f"{_COLUMN}{self.numbers[said]}"

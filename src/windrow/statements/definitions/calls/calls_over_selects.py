"""Calls of SQL functions over windows with what their SELECT computes: groups, windows, aliases, subqueries.

    SELECT k, f(MAX(v)) + COUNT(*) AS n FROM t GROUP BY k HAVING f(MIN(v)) > 1 ORDER BY n
      →  SELECT __before0 AS k, f(__before1) + __before2 AS n
         FROM (SELECT k, MAX(v) AS __before1, COUNT(*) AS __before2, MIN(v) AS __before3 FROM t GROUP BY k)
           AS __before(__before0, __before1, __before2, __before3)
         WHERE f(__before3) > 1 ORDER BY n

So the arguments are columns of a relation in FROM, for which windows are found once for each of their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from windrow.algebra.aggregate_calls import AGGREGATES, calls_aggregate, places_of_calls
from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.groups_of_windows import column_of
from windrow.algebra.row_comparison import comparisons_of_rows, rows_of_case
from windrow.errors import WindrowError
from windrow.statements.definitions.function_calls import (
    SelectText,
    every_call,
    first_of_call,
    names_beyond,
    outermost_calls,
    select_around,
    windows_of,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import BlockText, Range, is_within
from windrow.syntax.operands import may_be_operand
from windrow.syntax.query_parts import grouping_keys
from windrow.syntax.select_list import alias_of, aliased, excepted, is_path, without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["ColumnsOf", "calls_over_select"]

ColumnsOf = Callable[[SqlText], list[str]]
"""The names of the columns that a query returns."""
_BEFORE = "__before"
_WORDS_OF_OVER = frozenset({
    "PARTITION", "ORDER", "DISTRIBUTE", "SORT", "CLUSTER", "ROWS", "RANGE", "CURRENT", "ROW", "UNBOUNDED",
    "PRECEDING", "FOLLOWING",
})  # fmt: skip


def calls_over_select(tokens: TokenList, functions: KnownFunctions, columns_of: ColumnsOf) -> SqlText | None:
    """The text with the first such SELECT below its calls; None if there is none.

    Calls stay where they are, and are reported, if nothing can be computed before them: in aggregates of
    groups.
    """
    calls = list(every_call(tokens, functions))
    for at in outermost_calls(tokens, functions):
        select = select_around(tokens, at)
        if select is None:
            continue
        made = _Lifted(tokens, select, windows_of(tokens, select), calls, columns_of)
        for case in made.cases:
            return _searched(tokens, case)
        if any(made.is_late(call) for call in made.calls) or made.keys_with_calls():
            found = made.text()
            if found is not None:
                return found
    return None


def _searched(tokens: TokenList, case: Range) -> SqlText:
    """The text with a CASE of rows as one of conditions: ``CASE s WHEN e`` → ``CASE WHEN s = e``."""
    operand, *rows = rows_of_case(tokens, case)
    parts, done = [piece_of(tokens, 0, operand[0], " ")], operand[1]
    for row in rows:
        is_null = tokens.word(row[0]) == "NULL"
        equals = "FALSE" if is_null else SqlText.of(piece_of(tokens, *operand), " = ", piece_of(tokens, *row))
        parts += [piece_of(tokens, done, row[0], " "), SqlText.of(equals, " ")]
        done = row[1]
    return SqlText.of(*parts, piece_of(tokens, done, len(tokens)))


def _keys(select: SelectText) -> list[Range]:
    """The expressions in GROUP BY, also those in ROLLUP and its like."""
    tokens, part = select.tokens, select.part("GROUP")
    items = [] if part is None else tokens.split(*part)
    return [key for item in items for key in grouping_keys(tokens, *item)]


@dataclass
class _Lifted:
    """A SELECT with calls, and the columns that are computed below them."""

    tokens: TokenList
    select: SelectText
    window: BlockText | None
    known: Sequence[int]
    columns_of: ColumnsOf
    columns: list[SqlText] = field(default_factory=list)

    def __post_init__(self) -> None:
        tokens, select = self.tokens, self.select
        self.items = tokens.split(*select.items)
        words = ("HAVING", "QUALIFY") if self.window is None else ("HAVING", "QUALIFY", "WHERE")
        self.conditions = [part for word in words if (part := select.part(word)) is not None]
        self.sorted = self._sorted()
        read = [*self.items, *self.conditions, *self.sorted]
        own = (at for at in self.known if any(start <= at < stop for start, stop in read))
        self.calls = [at for at in own if select_around(tokens, at) == select]
        aggregates = places_of_calls(tokens, read)
        self.is_grouped = select.part("GROUP") is not None or bool(aggregates)
        self.inside = {at for at in self.calls if any(is_within((at, at + 1), one) for one in aggregates)}
        compared = [] if self.window is None else comparisons_of_rows(tokens, read, self.window.clause)
        self.whole = dict(compared)
        self.names = {alias for item in self.items if (alias := alias_of(tokens, item)) is not None}
        self.numbers: dict[tuple[str, ...], int] = {}
        self.places: dict[Range, int] = {}
        self.keys = dict(key for part in read for key in self._keys_in(part))
        self.cases = [
            one
            for one in compared
            if tokens.word(one[0]) == "CASE" and any(one[0] <= at < one[1] for at in self.calls)
        ]
        having = select.part("HAVING") or (0, 0)
        self.lifts_over = any(having[0] <= at < having[1] and self.is_late(at) for at in self.calls)
        """Whether windows of OVER are above, as they are of what HAVING leaves, and that has calls."""
        self.beyond = names_beyond(tokens, select)
        source = select.part("FROM") if self.beyond and self.window is None else None
        self.own = None if source is None else self._columns_of(source)

    def _columns_of(self, source: Range) -> set[str] | None:
        """The columns of relations, in lower case; None of those that cannot be read alone."""
        try:
            found = self.columns_of(SqlText.of("SELECT * FROM ", piece_of(self.tokens, *source)))
        except WindrowError:
            return None
        return set(map(str.lower, found))

    def has_over(self, part: Range) -> bool:
        """Whether a window of OVER that is above stands in a part."""
        return self.lifts_over and any(self.tokens.word(at) == "OVER" for at in range(*part))

    def _sorted(self) -> list[Range]:
        """What ORDER BY and its like sort by, without how."""
        tokens, (start, stop) = self.tokens, self.select.tail
        limits = (at for at in self.select.parts if tokens.word(at) in ("LIMIT", "OFFSET"))
        if start >= stop or tokens.word(start) in ("LIMIT", "OFFSET"):
            return []
        found = []
        for first, last in tokens.split(start + 2, next(limits, stop)):
            while tokens.word(last - 1) in ("ASC", "DESC", "NULLS", "FIRST", "LAST"):
                last -= 1
            found.append((first, last))
        return found

    def _keys_in(self, part: Range) -> Iterator[Range]:
        """Where keys of GROUP BY stand in a part, as operands: `k + 1` is none in `2 * k + 1`."""
        tokens, keys = self.tokens, _keys(self.select)
        said = {tokens.folded(*key) for key in keys if key[1] - key[0] > 1}
        for start in range(*part):
            for stop in {start + len(one) for one in said}:
                ends = tokens.is_symbol(stop - 1, ")") and tokens.partner[stop - 1] == start + 1
                is_whole = (ends and tokens[start].is_name and not tokens.is_symbol(start - 1, ".")) or (
                    (start == part[0] or self._bounds(start - 1)) and (stop >= part[1] or self._bounds(stop))
                )
                if stop <= part[1] and is_whole and tokens.folded(start, stop) in said:
                    yield start, stop

    def _bounds(self, at: int) -> bool:
        """Whether an operand of any kind ends before a token, and begins behind it."""
        is_symbol = any(self.tokens.is_symbol(at, symbol) for symbol in "(),")
        return is_symbol or self.tokens.word(at) in ("CASE", "WHEN", "THEN", "ELSE", "END", "AS", "=>")

    # -- which -------------------------------------------------------------------------------------

    def is_late(self, call: int) -> bool:
        """Whether a call reads what the SELECT computes."""
        tokens = self.tokens
        if call in self.inside or self._is_key(call) or self._is_in_keys((call, call + 1)):
            return False
        arguments = (call + 1, tokens.partner[call + 1])
        names = {tokens[at].name.lower() for at in range(*arguments) if may_be_operand(tokens, at)}
        return (
            self.is_grouped
            or self.window is not None
            or calls_aggregate(tokens, arguments)
            or any(tokens.word(at) == "OVER" or opens_query(tokens, at) for at in range(*arguments))
            or not self.names.isdisjoint(names)
        )

    def _is_key(self, call: int) -> bool:
        """Whether a call stands in what GROUP BY names."""
        named = [one for key in _keys(self.select) if (one := self._named(key)) is not None]
        return any(start <= call < stop for start, stop in named)

    def _is_in_keys(self, part: Range) -> bool:
        return any(is_within(part, key) for key in self.keys.items())

    def _named(self, key: Range) -> Range | None:
        """What is selected that a key of GROUP BY names, by alias or number."""
        tokens = self.tokens
        if key[1] - key[0] != 1:
            return None
        text = tokens[key[0]].text
        if text.isdigit() and 0 < int(text) <= len(self.items):
            return without_alias(tokens, self.items[int(text) - 1])
        found = (item for item in self.items if alias_of(tokens, item) == tokens[key[0]].name.lower())
        return next((without_alias(tokens, item) for item in found), None)

    def keys_with_calls(self) -> list[Range]:
        """The keys of GROUP BY that are expressions with calls."""
        return [key for key in _keys(self.select) if any(key[0] <= at < key[1] for at in self.known)]

    # -- the columns -------------------------------------------------------------------------------

    def column(self, place: Range) -> str:
        """The column that has what stands at a place."""
        said = column_of(self.tokens, place)
        if said not in self.numbers:
            self.numbers[said] = len(self.columns)
            self.columns.append(
                SqlText.of(piece_of(self.tokens, *place), f" AS {self.name(len(self.columns))}")
            )
        return self.name(self.numbers[said])

    @staticmethod
    def name(number: int) -> str:
        return f"{_BEFORE}{number}"

    def above(self, part: Range) -> SqlText | None:
        """A stretch over the columns; None if not all that it reads can be one."""
        tokens, (at, stop) = self.tokens, part
        parts: list[SqlText] = []
        done = at
        arguments: dict[int, int] = {}
        calls = {first_of_call(tokens, call): call for call in self.calls}
        while at < stop:
            if self.lifts_over and self._is_of_over(at):
                at += 1
                continue
            unit = self._argument(at, arguments) or self._unit(at, stop)
            if unit is None and at in calls and calls[at] not in self.inside:
                for argument in tokens.split(calls[at] + 2, tokens.partner[calls[at] + 1]):
                    first = argument[0] + 2 * tokens.is_symbol(argument[0] + 1, "=>")
                    arguments[first] = argument[1]
                at = calls[at] + 1
            elif unit is None and tokens.is_symbol(at, "(") and opens_query(tokens, at):
                return None
            elif unit is not None:
                if any(unit[0] <= call < unit[1] and self.is_late(call) for call in self.calls):
                    return None
                parts += [
                    piece_of(tokens, done, unit[0], " "),
                    SqlText.of(self.column(self._aliased(unit)), " "),
                ]
                done = at = unit[1]
            else:
                at += 1
        return SqlText.of(*parts, piece_of(tokens, done, stop))

    def _is_of_over(self, at: int) -> bool:
        """Whether a word is one of a window of OVER, or of the clause WINDOW, and not of an expression."""
        tokens, opened = self.tokens, self.tokens.parent[at]
        windows = self.select.part("WINDOW") or (0, 0)
        is_named = windows[0] <= opened < windows[1] and tokens.word(opened - 1) == "AS"
        if not is_named and tokens.word(opened - 1) != "OVER":
            return windows[0] <= at < windows[1] and opened < windows[0]
        is_name = at == opened + 1 and tokens[at].is_name and tokens.word(at + 1) != "BY"
        return is_name or tokens.word(at) in _WORDS_OF_OVER

    def _argument(self, at: int, ends: Mapping[int, int]) -> Range | None:
        """An argument of a call, if it begins here and all of it is computed below."""
        tokens, found = self.tokens, (at, ends.get(at, at))
        read = {tokens[one].name.lower() for one in range(*found) if may_be_operand(tokens, one)}
        is_above = any(one in range(*found) for one in self.calls) or bool(read & self._late_names())
        has_alias = any(self._aliased((one, one + 1)) != (one, one + 1) for one in range(*found))
        is_above = is_above or any(self._is_beyond(one) for one in range(*found))
        return None if is_above or has_alias or not read else found

    def _is_beyond(self, at: int) -> bool:
        """Whether a column of a relation of a query around is read."""
        tokens, name = self.tokens, self.tokens[at].name.lower()
        if not self.beyond or not may_be_operand(tokens, at):
            return False
        if tokens.is_symbol(at + 1, "."):
            return name in self.beyond
        return self.own is not None and name not in self.own | self.names

    def _aliased(self, unit: Range) -> Range:
        """What a name in HAVING stands for: Spark reads a key of GROUP BY there, or else an alias."""
        tokens, having = self.tokens, self.select.part("HAVING") or (0, 0)
        is_name = unit[1] - unit[0] == 1 and not tokens.is_symbol(unit[0] - 1, ".")
        if not is_name or not is_within(unit, having) or tokens.is_symbol(unit[1], "."):
            return unit
        word = tokens[unit[0]].name.lower()
        keys = [key for key in _keys(self.select) if is_path(tokens, key)]
        if any(tokens[key[1] - 1].name.lower() == word for key in keys):
            return unit
        found = (item for item in self.items if alias_of(tokens, item) == word and tokens[unit[0]].is_name)
        return next((without_alias(tokens, item) for item in found), unit)

    def _unit(self, at: int, stop: int) -> Range | None:
        """What begins at a token and is computed below: keys, aggregates, OVER, subqueries, columns."""
        tokens = self.tokens
        if at in self.whole or at in self.keys:
            return at, self.whole.get(at) or self.keys[at]
        if tokens.is_symbol(at - 1, "."):
            return None
        if opens_query(tokens, at):
            return None if tokens.word(at - 1) == "IN" else (at, tokens.partner[at] + 1)
        if tokens.word(at) == "EXISTS" and opens_query(tokens, at + 1):
            return at, tokens.partner[at + 1] + 1
        if tokens[at].is_name and tokens.is_symbol(at + 1, "("):
            return self._call_of_spark(at, stop)
        is_here = tokens[at].name.lower() not in self._late_names() and not self._is_beyond(at)
        if not is_here or not may_be_operand(tokens, at):
            return None
        last = at + 1
        while tokens.is_symbol(last, ".") and last + 1 < stop and tokens[last + 1].is_name:
            last += 2
        return (at, last) if not tokens.is_symbol(last, "(") else None

    def _call_of_spark(self, at: int, stop: int) -> Range | None:
        """A call of an aggregate or with OVER, with all that belongs to it."""
        tokens, last = self.tokens, self.tokens.partner[at + 1] + 1
        is_one = tokens[at].name.lower() in AGGREGATES
        while last < stop:
            if tokens.word(last) == "OVER" and self.lifts_over:
                return None
            if tokens.word(last) in ("FILTER", "OVER") and tokens.is_symbol(last + 1, "("):
                is_one, last = True, tokens.partner[last + 1] + 1
            elif tokens.word(last) == "WITHIN" and tokens.is_symbol(last + 2, "("):
                is_one, last = True, tokens.partner[last + 2] + 1
            elif tokens.word(last) in ("IGNORE", "RESPECT") or tokens.word(last) == "OVER":
                is_one, last = True, last + 2
            else:
                break
        return (at, last) if is_one else None

    def _late_names(self) -> set[str]:
        """The aliases of what has calls, or windows of OVER, that are above."""
        return {
            alias
            for item in self.items
            if (alias := alias_of(self.tokens, item)) is not None
            and (
                self.has_over(item) or any(item[0] <= at < item[1] and self.is_late(at) for at in self.calls)
            )
        }

    # -- the text ----------------------------------------------------------------------------------

    def text(self) -> SqlText | None:
        """The whole text with the SELECT over its columns; None if not all that calls read can be one."""
        tokens, select = self.tokens, self.select
        above = self._conditions_above()
        windows = None if above is None else self._windows_above()
        listed = None if windows is None else self._listed()
        tail = None if listed is None else self._tail()
        if above is None or windows is None or listed is None or tail is None:
            return None
        is_distinct = tokens.word(select.items[0] - 1) == "DISTINCT"
        without = [part for part, _ in (*above, *windows)]
        rest = self._below((select.items[1], select.tail[0]), without)
        below = [one for one in self.columns if one.parts] or [SqlText.of("1 AS one")]
        inner = SqlText.of(self._head(), SqlText.join(", ", below), " ", rest)
        names = [] if all(name for _, name in listed) else self.columns_of(inner)
        items = [SqlText.of(text, " AS ", quoted(name or names[at])) for (text, at), name in listed]
        own_names = ", ".join(map(self.name, range(len(self.columns) or 1)))
        where = SqlText.join(" AND ", [text for _, text in above])
        return SqlText.of(
            piece_of(tokens, 0, select.range[0], " "),
            "SELECT DISTINCT " if is_distinct else "SELECT ",
            SqlText.join(", ", items),
            " FROM (", inner, f") AS {_BEFORE}({own_names})",
            SqlText.of(" WHERE ", where) if above else SqlText(),
            *(SqlText.of(f" {tokens.word(part[0] - 1)} ", text) for part, text in windows),
            " ", tail,
            piece_of(tokens, select.range[1], len(tokens)),
        )  # fmt: skip

    def _head(self) -> SqlText:
        """What stands before what is selected, without DISTINCT."""
        tokens, select = self.tokens, self.select
        first = select.items[0] - (tokens.word(select.items[0] - 1) in ("DISTINCT", "ALL"))
        return piece_of(tokens, select.range[0], first, " ")

    def _below(self, part: Range, without: Sequence[Range]) -> SqlText:
        """What follows the list of SELECT, with names for keys that have calls, and no such conditions."""
        tokens, (at, stop) = self.tokens, part
        instead = {start - 1: (SqlText(), end) for start, end in without}
        for key in self.keys_with_calls():
            instead[key[0]] = SqlText.of(self.column(key), " "), key[1]
        for item, place in self.places.items():  # the numbers of columns in GROUP BY
            for key in _keys(self.select):
                if tokens.text(*key) == str(self.items.index(item) + 1):
                    instead[key[0]] = SqlText.of(f"{place + 1} "), key[1]
        parts: list[SqlText] = []
        for start, (text, end) in sorted(instead.items(), key=lambda one: one[0]):
            parts += [piece_of(tokens, at, start, " "), text]
            at = end
        return SqlText.of(*parts, piece_of(tokens, at, stop, " "))

    def _conditions_above(self) -> list[tuple[Range, SqlText]] | None:
        """The conditions with such calls, for WHERE; None if one cannot be above."""
        found = []
        for condition in self.conditions:
            is_window = self.lifts_over and self.tokens.word(condition[0] - 1) == "QUALIFY"
            if is_window or not any(
                condition[0] <= at < condition[1] and self.is_late(at) for at in self.calls
            ):
                continue
            text = self.above(condition)
            if text is None:
                return None
            found.append((condition, SqlText.of("(", text, ")")))
        return found

    def _windows_above(self) -> list[tuple[Range, SqlText]] | None:
        """WINDOW and QUALIFY, if windows of OVER are above; None if one cannot be."""
        tokens, parts = self.tokens, self.select.parts if self.lifts_over else ()
        words = [tokens.word(at) for at in parts if tokens.word(at) in ("WINDOW", "QUALIFY")]
        texts = [(part, self.above(part)) for word in words if (part := self.select.part(word)) is not None]
        found = [(part, text) for part, text in texts if text is not None]
        return found if len(found) == len(texts) else None

    def _listed(self) -> list[tuple[tuple[SqlText, int], str]] | None:
        """What is selected, over the columns, with its names: empty ones are those of columns by numbers."""
        tokens = self.tokens
        found: list[tuple[tuple[SqlText, int], str]] = []
        with_calls = [key for key in self.keys.items() if any(key[0] <= at < key[1] for at in self.calls)]
        for item in self.items:
            expression, named, number = without_alias(tokens, item), aliased(tokens, item), len(self.columns)
            has_calls = any(item[0] <= at < item[1] and self.is_late(at) for at in self.calls)
            reads = {tokens[at].name.lower() for at in range(*expression) if may_be_operand(tokens, at)}
            is_above = has_calls or self.has_over(expression) or not reads.isdisjoint(self._late_names())
            if is_above or any(is_within(key, expression) for key in with_calls):
                text = self.above(expression)
                if text is None:
                    return None
                found.append(((text, -1), named[0] if named else tokens.text(*item)))
            elif tokens.is_symbol(item[1] - 1, "*") or excepted(tokens, item) is not None:
                names = self._columns_of_star(item)
                found += [((SqlText.of(self.name(number + at)), -1), name) for at, name in enumerate(names)]
                self.columns += [piece_of(tokens, *item), *([SqlText()] * (len(names) - 1))]
            else:  # with its alias, which others may read
                has_own = any(item[0] <= at < item[1] for at in self.calls)
                name = named[0] if named else tokens[item[1] - 1].name if is_path(tokens, item) else ""
                name = name or (tokens.text(*item) if has_own else "")
                found.append(((SqlText.of(self.name(number)), number), name))
                self.columns.append(piece_of(tokens, *item))
                self.places[item] = number
        return found

    def _columns_of_star(self, item: Range) -> list[str]:
        """The names of the columns that a star is."""
        select = self.select
        without = [one for one in self.conditions if any(one[0] <= at < one[1] for at in self.known)]
        rest = self._below((select.items[1], select.tail[0]), without)
        return self.columns_of(SqlText.of(self._head(), piece_of(self.tokens, *item, " "), rest))

    def _tail(self) -> SqlText | None:
        """What sorts and limits, over the columns and what is selected."""
        tokens, (at, stop) = self.tokens, self.select.tail
        parts: list[SqlText] = []
        for key in self.sorted:
            read = {tokens[one].name.lower() for one in range(*key) if may_be_operand(tokens, one)}
            has_calls = any(key[0] <= one < key[1] for one in self.calls)
            is_of_output = read <= self.names | self._selected() and not calls_aggregate(tokens, key)
            if self.has_over(key):
                text = self.above(key)
                if text is None:
                    return None
                parts += [piece_of(tokens, at, key[0], " "), SqlText.of(text, " ")]
                at = key[1]
            elif not has_calls and not is_of_output:
                parts += [piece_of(tokens, at, key[0], " "), SqlText.of(self.column(key), " ")]
                at = key[1]
        return SqlText.of(*parts, piece_of(tokens, at, stop, " "))

    def _selected(self) -> set[str]:
        """The names that are selected as they are, but with their relations."""
        return {self.tokens[item[1] - 1].name.lower() for item in self.items if item[1] - item[0] == 1}

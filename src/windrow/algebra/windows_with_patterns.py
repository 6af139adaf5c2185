"""Calls over windows with patterns: measures, and functions over the rows of a match."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from windrow.algebra.aggregate_calls import kernel_function
from windrow.algebra.names import PATTERN_CALL, QUALIFIED
from windrow.errors import AnalysisError, NotSupportedError, did_you_mean
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_nodes import Named, variable_name
from windrow.syntax.patterns.pattern_windows import PatternBlock, PatternWindow, PatternWindowCall
from windrow.syntax.select_list import alias_of, excepted, stars_in_calls, without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["WindowCalls"]

_OF_THE_PARTITION = frozenset(
    {"ROW_NUMBER", "RANK", "DENSE_RANK", "PERCENT_RANK", "CUME_DIST", "NTILE", "LAG", "LEAD"}
)
"""Functions that read no frame."""


class WindowCalls:
    """The calls of a SELECT, each with the column for its value.

    Attributes
    ----------
    functions
        The columns of functions over frames.
    around
        The columns with outer values.
    """

    def __init__(self, tokens: TokenList, query: PatternBlock, own: frozenset[str] = frozenset()) -> None:
        self.tokens, self.query, self.own = tokens, query, own
        self.columns = {call.range: f"{PATTERN_CALL}{number}" for number, call in enumerate(self.in_kernel())}
        self.functions = frozenset(column for call, column in self.by_column() if call.measure is None)
        self.around: tuple[str, ...] = ()

    @property
    def mentioned(self) -> frozenset[str] | None:
        """The columns that the SELECT may read, in lower case; None if a star may stand for any."""
        tokens = self.tokens
        read = (at for at in range(*self.query.range) if tokens[at].is_name and tokens.word(at - 1) != "AS")
        names = {tokens[at].name.lower() for at in read}
        names |= {*self.columns.values(), *(name.lower() for name in self.around)}
        return None if self.stars() else frozenset(names)

    def in_kernel(self) -> list[PatternWindowCall]:
        """The calls that read matches."""
        return [call for call in self.query.calls if not self.is_of_partition(call)]

    def by_column(self) -> list[tuple[PatternWindowCall, str]]:
        """The calls that read matches, and their columns."""
        return [(call, self.columns[call.range]) for call in self.in_kernel()]

    def is_of_partition(self, call: PatternWindowCall) -> bool:
        """Whether a function reads the whole partition, whatever the frame is."""
        return call.measure is None and self.tokens.word(call.function[0]) in _OF_THE_PARTITION

    def stars(self) -> bool:
        """Whether a star stands for columns of any names."""
        tokens = self.tokens
        starts = {start for start, _ in tokens.split(*self.query.select)}
        if stars_in_calls(tokens, [self.query.select]):
            return True
        for at in range(*self.query.select):
            if not tokens.is_symbol(at, "*"):
                continue
            is_path = tokens.is_symbol(at - 1, ".") and not self.is_of_column(at - 2)
            first = self.query.select[0]
            after_distinct = at == first + 1 and tokens.word(first) in ("DISTINCT", "ALL")
            if at in starts or is_path or after_distinct:
                return True
        return False

    def is_of_column(self, at: int) -> bool:
        """Whether the name at a token is that of a relation's row, a column of the join's rows."""
        return self.tokens[at].is_name and self.tokens[at].name.startswith(QUALIFIED)

    def measures(self, window: PatternWindow) -> tuple[Named, ...]:
        """The calls over a window, as measures under the names of their columns.

        Raises
        ------
        AnalysisError
            ``UNKNOWN_MEASURE``.
        NotSupportedError
            ``UNSUPPORTED_MEASURE`` for functions that are no aggregates.
        """
        return tuple(self.measure(call, column) for call, column in self.by_column() if call.window is window)

    def measure(self, call: PatternWindowCall, column: str) -> Named:
        """One call as a measure."""
        span = self.tokens.span(*call.function)
        if call.measure is None:
            word = self.tokens.word(call.function[0])
            is_known = kernel_function(word.lower()) is not None or word.lower() in self.own
            if word not in ("FIRST", "LAST", "NTH_VALUE") and not is_known:
                raise NotSupportedError(
                    f"{self.tokens[call.function[0]].text} over a window with a pattern is not supported",
                    condition="UNSUPPORTED_MEASURE",
                    sql=self.tokens.sql,
                    span=span,
                    hint="use an aggregate, first_value, last_value, nth_value, lag, lead, a rank or a"
                    " measure",
                )
            return Named(column, span, call.function)
        known = {item.name.lower(): item for item in call.window.clause.measures}
        found = known.get(call.measure.lower())
        if found is None:
            raise AnalysisError(
                f"window has no measure {call.measure}",
                condition="UNKNOWN_MEASURE",
                sqlstate="42703",
                sql=self.tokens.sql,
                span=span,
                hint=did_you_mean(call.measure, list(known)) or "add it to MEASURES of the window",
            )
        return Named(column, found.span, found.expression)

    def relation(self) -> str | None:
        """The name of the relation, which stands for all rows of a match; None without one."""
        alias = self.query.alias
        return None if alias is None else variable_name(self.tokens[alias[0]])

    def outer(
        self,
        source: SqlText,
        text: Callable[[Range, Mapping[Range, str]], SqlText],
        stars: list[int],
        where: SqlText | None = None,
    ) -> SqlText:
        """The SELECT over rows of the result, filtered by `where`, with columns in place of the calls."""
        tokens, query = self.tokens, self.query
        replaced: dict[Range, str] = {at: quoted(column) for at, column in self.columns.items()}
        for call in query.calls:
            if self.is_of_partition(call):
                replaced[call.function[1], call.range[1]] = self.order_of(call, text)
        hidden = ", ".join(map(quoted, (*self.columns.values(), *self.around)))
        select, items = query.select, []
        for star in stars_in_calls(tokens, [select]) if hidden else ():
            is_less = tokens.word(star + 1) == "EXCEPT"
            place = (star + 2, star + 3) if is_less else (star, star + 1)
            replaced[place] = f"({hidden}, " if is_less else f"* EXCEPT ({hidden})"
        distinct = tokens.word(select[0]) in ("DISTINCT", "ALL")
        for start, stop in tokens.split(select[0] + distinct, select[1]):
            bracket = excepted(tokens, (start, stop))
            own = stop if bracket is None else bracket - 1
            qualified = own - start == 3 and tokens.is_symbol(start + 1, ".") and not self.is_of_column(start)
            if hidden and (start in stars or qualified) and tokens.is_symbol(stop - 1, "*"):
                replaced[stop - 1, stop] = f"* EXCEPT ({hidden})"
            elif hidden and (start in stars or qualified) and bracket is not None:
                replaced[bracket, bracket + 1] = f"({hidden}, "
            item = text((start, stop), replaced)
            whole = self.call_at((start, stop))
            named = whole.measure if whole is not None else None
            touched = any(start <= at[0] and at[1] <= stop for at in self.columns)
            has_alias = (
                stop - start > 1
                and tokens[stop - 1].is_name
                and (tokens.word(stop - 2) == "AS" or not any(at[1] == stop for at in replaced))
            )
            if touched and not has_alias:
                item = SqlText.of(item, " AS ", quoted(named or tokens.text(start, stop)))
            items.append(item)
        parts: list[str | SqlText] = [
            f"SELECT {tokens.word(select[0]) + ' ' if distinct else ''}",
            SqlText.join(", ", items),
            " ",
            source,
        ]
        if query.other_windows:
            parts += [" WINDOW ", SqlText.join(", ", [text(item, replaced) for item in query.other_windows])]
        if query.qualify is not None:
            parts.insert(4, self.chosen(query.qualify, text, replaced, where))
        elif where is not None:
            parts.insert(4, SqlText.of(" WHERE ", where))
        if query.tail[0] < query.tail[1]:
            parts += [" ", text(query.tail, replaced)]
        return SqlText.of(*parts)

    def chosen(
        self,
        qualify: Range,
        text: Callable[[Range, Mapping[Range, str]], SqlText],
        replaced: Mapping[Range, str],
        where: SqlText | None,
    ) -> SqlText:
        """QUALIFY, and `where`; WHERE if no window of OVER is left for Spark.

        Names of SELECT are replaced by their expressions.
        """
        tokens, condition = self.tokens, (qualify[0] + 1, qualify[1])
        select = self.query.select
        if any(self.is_over_of_spark(at) for part in (select, condition) for at in range(*part)):
            before = SqlText() if where is None else SqlText.of(" WHERE ", where)
            return SqlText.of(before, " QUALIFY ", text(condition, replaced))
        first = select[0] + (tokens.word(select[0]) in ("DISTINCT", "ALL"))
        values = {}
        for item in tokens.split(first, select[1]):
            name = alias_of(tokens, item)
            if name is not None and item not in self.columns:
                values[name] = f"({text(without_alias(tokens, item), replaced).render()})"
            elif (call := self.call_at(item)) is not None and call.measure is not None:
                values[call.measure.lower()] = replaced[item]
        named = {
            (at, at + 1): values[tokens[at].name.lower()]
            for at in range(*condition)
            if tokens[at].is_name and tokens[at].name.lower() in values and self.is_alone(at)
        }
        chosen = text(condition, named | dict(replaced))
        before = SqlText() if where is None else SqlText.of(where, " AND ")
        return SqlText.of(" WHERE ", before, "(", chosen, ")")

    def call_at(self, item: Range) -> PatternWindowCall | None:
        """The call that an item of SELECT consists of."""
        return next((call for call in self.in_kernel() if call.range == item), None)

    def is_over_of_spark(self, at: int) -> bool:
        """Whether OVER is here, and the call before it is Spark's."""
        return (
            self.tokens.word(at) == "OVER"
            and not self.tokens.is_symbol(at - 1, ".")
            and not any(start <= at < stop for start, stop in self.columns)
        )

    def is_alone(self, at: int) -> bool:
        """Whether a name is outside of calls over windows, unqualified, and not a function."""
        in_call = any(start <= at < stop for start, stop in self.columns)
        beside = self.tokens.is_symbol(at - 1, ".") or self.tokens.is_symbol(at + 1, ".")
        return not (in_call or beside or self.tokens.is_symbol(at + 1, "("))

    def order_of(self, call: PatternWindowCall, text: Callable[[Range, Mapping[Range, str]], SqlText]) -> str:
        """OVER with the keys of the call's window."""
        clause = call.window.clause
        keys = ", ".join(text(item, {}).render() for item in clause.partition_by)
        order = ", ".join(
            f"{text(item.expression, {}).render()} {'DESC' if item.descending else 'ASC'} "
            f"NULLS {'FIRST' if item.nulls_first else 'LAST'}"
            for item in clause.order_by
        )
        parts = [f"PARTITION BY {keys}" if keys else "", f"ORDER BY {order}" if order else ""]
        return f" OVER ({' '.join(filter(None, parts))})"

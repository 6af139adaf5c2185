"""Table functions in FROM: a statement with their results in place of their calls.

Windowing functions become queries over their input. A user's functions, and in the reference all functions,
are evaluated when the statement is planned, and replaced by tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DayTimeIntervalType, LongType, StructType

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.time_windows_as_sql import TICKS, TimeWindow, windowed
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, NotSupportedError, UsageError, no_column
from windrow.kernels.reference.time_windows import windows_of
from windrow.kernels.sorting import comparable
from windrow.spark.analysis.collations import ranked
from windrow.spark.analysis.evaluated_lengths import ticks_of
from windrow.spark.gateway import Gateway
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.streams.table_functions import (
    WINDOWS,
    Argument,
    FunctionCall,
    TableFunctionCall,
    call_at,
    window_call,
)
from windrow.syntax.tokens import TokenList

__all__ = ["Functions", "TableFunctions", "calls_table_functions", "time_window", "windows_by_definition"]

Functions = Mapping[str, Callable[..., DataFrame]]
"""The user's table functions, by their names in lower case."""

_CALL = re.compile(r"\b(\w+)`?\s*\(")


def calls_table_functions(text: str, functions: Functions) -> bool:
    """Whether a text may have table functions: by the words before its brackets."""
    names = {*functions, *(name.lower() for name in WINDOWS)}
    return any(word in names for word in _CALL.findall(text.lower()))


class TableFunctions:
    """Replaces the table functions of one text by queries and tables.

    Parameters
    ----------
    gateway
        The session.
    tokens
        The text.
    execution
        ``"batch"`` or ``"reference"``.
    functions
        The user's functions.
    schema_of
        Returns the columns of a query of the dialect.
    temporal
        The names of time-varying relations, in lower case.

    Attributes
    ----------
    frames
        The tables in the resulting text, by their keys.
    found
        Whether there was a table function.
    """

    def __init__(
        self,
        gateway: Gateway,
        tokens: TokenList,
        execution: str,
        functions: Functions,
        schema_of: Callable[[SqlText], StructType],
        temporal: Collection[str] = (),
    ) -> None:
        self.gateway, self.tokens, self.execution = gateway, tokens, execution
        self.functions, self.schema_of, self.temporal = functions, schema_of, temporal
        self.frames: dict[str, DataFrame] = {}
        self.found = False
        self._made: dict[Range, SqlText] = {}
        self._determined: dict[int, str] = {}  # what GROUP BY ends with, by the token after it
        self._names = frozenset({*functions, *(name.lower() for name in WINDOWS)})

    def text(self, start: int, stop: int) -> SqlText:
        """A part of the text; for tables, it contains their keys in `frames`."""
        parts: list[SqlText] = []
        at = index = start
        while index < stop:
            if index in self._determined:
                parts += [self._piece(at, index), SqlText.of(self._determined[index])]
                at = index
            call = None if self.tokens.is_symbol(index - 1, ".") else call_at(self.tokens, index, self._names)
            if call is None:
                index += 1
                continue
            if call.tokens not in self._made:
                self._made[call.tokens] = self._relation(call)
            parts += [self._piece(at, index), self._made[call.tokens]]
            at = index = call.tokens[1]
        parts.append(self._piece(at, stop))
        return SqlText.of(*parts, self._determined.get(stop, ""))

    def _piece(self, start: int, stop: int) -> SqlText:
        return piece_of(self.tokens, start, stop, " ")

    def _relation(self, call: FunctionCall) -> SqlText:
        """The text that replaces a call, with a generated alias if it has none."""
        self.found = True
        if call.name in self.functions:
            frame = self._called(call)
            return self._table(call, frame)
        window = window_call(self.tokens, call)
        made = self._windowed(window)
        tokens, (after, (data, data_stop)) = self.tokens, (call.tokens[1], window.data)
        alias = alias_after(tokens, after, len(tokens))
        if alias is not None and tokens.word(alias) not in ("EMIT", "MATCH_RECOGNIZE"):
            self._complete_groups(window, tokens[alias].name)
            return made
        name = tokens[data].name if data_stop - data == 1 and tokens[data].is_name else ""
        self._complete_groups(window, name)
        return SqlText.of(made, f"AS {quoted(name)} ") if name else made

    def _complete_groups(self, window: TableFunctionCall, alias: str) -> None:
        """Complete GROUP BY to all columns of a window if it names one that determines the others.

        So the others may be selected, as in ``SELECT wstart, wend … GROUP BY wend``.
        """
        tokens = self.tokens
        keys = _group_by(tokens, window.call.tokens[1])
        if keys is None or window.kind == "SESSION":
            return
        identifying = window.names[1:] if window.kind == "CUMULATE" else window.names
        found: dict[str, str] = {}
        for start, stop in tokens.split(*keys):
            qualified = stop - start == 3 and tokens.is_symbol(start + 1, ".") and tokens[start].is_name
            if qualified and tokens[start].name.lower() != alias.lower():
                continue
            if (qualified or stop - start == 1) and tokens[stop - 1].is_name:
                found[tokens[stop - 1].name.lower()] = f"{quoted(alias)}." if qualified else ""
        prefix = next((found[name] for name in identifying if name in found), None)
        parent = tokens.parent[window.call.tokens[0]]
        inside = range(parent + 1, tokens.partner[parent] if parent >= 0 else len(tokens))
        read = {tokens[at].name.lower() for at in inside if tokens[at].is_name}
        missing = [name for name in window.names if name not in found and name in read]
        if prefix is not None and missing:
            self._determined[keys[1]] = "".join(f", {prefix}{name}" for name in missing) + " "

    def _table(self, call: FunctionCall, frame: DataFrame) -> SqlText:
        key = f"__table{call.word}"
        self.frames[key] = frame
        return SqlText.of("(SELECT * FROM ", RelationText(key), ") ")

    # -- windows of time ------------------------------------------------------------------------------

    def _windowed(self, call: TableFunctionCall) -> SqlText:
        rows = self._data(call.data)
        fields = self.columns(call.data)
        window = time_window(self.gateway, self.tokens, call, fields)
        if self.execution == "reference":
            source = self.gateway.sql(
                SqlText.of(self._prefix(call.data), "SELECT * FROM ", rows), self.frames
            )
            return self._table(call.call, windows_by_definition(self.gateway, window, source))
        return SqlText.of("(", windowed(window, rows), ") ")

    def columns(self, data: Range) -> StructType:
        """The columns of the function's input relation."""
        query = SqlText.of(self._prefix(data), "SELECT * FROM ", self._data(data))
        return self.gateway.sql(query, self.frames).schema if query.relations() else self.schema_of(query)

    def _data(self, data: Range) -> SqlText:
        """The function's input relation, as in FROM."""
        start, stop = data
        is_query = self.tokens.word(start) in ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
        text = self.text(start, stop)
        return SqlText.of("(", text, ")") if is_query and not self._is_call(data) else text

    def _is_call(self, data: Range) -> bool:
        found = call_at(self.tokens, data[0], self._names)
        return found is not None and found.tokens[1] == data[1]

    def _prefix(self, data: Range) -> SqlText:
        """The named queries that a relation sees."""
        seen = {cte.name.lower(): cte for cte in visible_ctes(self.tokens, data[0])}
        if not seen:
            return SqlText()
        word = "WITH RECURSIVE " if any(cte.recursive for cte in seen.values()) else "WITH "
        return SqlText.of(word, SqlText.join(", ", [self.text(*cte.item) for cte in seen.values()]), " ")

    # -- functions of the user's own -------------------------------------------------------------------

    def _called(self, call: FunctionCall) -> DataFrame:
        positional, named = [], {}
        for argument in call.arguments:
            value = self._value(argument)
            if argument.name is None:
                positional.append(value)
            else:
                named[argument.name] = value
        frame = self.functions[call.name](*positional, **named)
        if not hasattr(frame, "createOrReplaceTempView"):
            raise UsageError(
                f"table function {call.name} returned {type(frame).__name__}, which is not a DataFrame",
                condition="NOT_A_TABLE",
                sql=self.tokens.sql,
                span=self.tokens[call.word].span,
                hint="return a DataFrame from the function",
            )
        return frame

    def _value(self, argument: Argument) -> Any:
        if argument.columns is not None:
            return [self.tokens[at].name for at in argument.columns]
        if argument.table is not None:
            self._refuse_temporal(argument.table)
            prefix, rows = self._prefix(argument.table), self._data(argument.table)
            return self.gateway.sql(SqlText.of(prefix, "SELECT * FROM ", rows), self.frames)
        return _constant(self.gateway, self.tokens, argument.tokens)

    def _refuse_temporal(self, table: Range) -> None:
        for at in range(*table):
            token = self.tokens[at]
            named = token.is_name and token.name.lower() in self.temporal and begins_relation(self.tokens, at)
            named = named or (at == table[0] and token.name.lower() in self.temporal)
            window = self.tokens.is_symbol(at, "[") and self.tokens.word(at + 1) in _WINDOWS_OF_STREAMS
            if named or window:
                raise NotSupportedError(
                    "a user's table function over a time-varying relation is not supported",
                    condition="UNSUPPORTED_STREAM",
                    sql=self.tokens.sql,
                    span=self.tokens.span(*table),
                    hint="call it over a table, or over a stream without a window, which is read as a table",
                )


_WINDOWS_OF_STREAMS = ("NOW", "RANGE", "ROWS", "PARTITION")
_AFTER_GROUP_BY = {
    "HAVING", "WINDOW", "QUALIFY", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "UNION",
    "EXCEPT", "INTERSECT", "MINUS", "EMIT", "LET",
}  # fmt: skip


def _group_by(tokens: TokenList, after: int) -> Range | None:
    """The keys of GROUP BY in the SELECT whose FROM has a relation before a token."""
    parent = tokens.parent[after] if after < len(tokens) else -1
    stop = tokens.partner[parent] if parent >= 0 else len(tokens)
    level = [at for at in tokens.level(after, stop) if not tokens.is_symbol(at - 1, ".")]
    for at in level:
        if tokens.word(at) in ("UNION", "EXCEPT", "INTERSECT", "MINUS", "SELECT"):
            return None
        if tokens.word(at) == "GROUP" and tokens.word(at + 1) == "BY":
            end = next((each for each in level if each > at and tokens.word(each) in _AFTER_GROUP_BY), stop)
            words = {tokens.word(each) for each in range(at + 2, end)}
            return None if words & {"ROLLUP", "CUBE", "GROUPING"} else (at + 2, end)
    return None


def time_window(
    gateway: Gateway, tokens: TokenList, call: TableFunctionCall, fields: StructType
) -> TimeWindow:
    """A windowing function over a relation of these columns.

    Raises
    ------
    AnalysisError
        ``UNRESOLVED_COLUMN``, ``INVALID_ROWTIME`` for a column of another type than rowtimes have,
        ``INVALID_WINDOW_SIZE``.
    """
    known = {name.lower(): name for name in fields.names}
    for at in (call.time, *call.keys):
        if tokens[at].name.lower() not in known:
            raise no_column(
                "the table has", tokens[at].name, fields.names, sql=tokens.sql, span=tokens[at].span
            )
    time = known[tokens[call.time].name.lower()]
    kind = fields[time].dataType.simpleString()
    scale = TimeScale.of(kind, "NANOSECOND")
    if scale is None:
        raise AnalysisError(
            f"a rowtime cannot be of type {kind.upper()}",
            condition="INVALID_ROWTIME",
            sql=tokens.sql,
            span=tokens[call.time].span,
            hint="use a column of type TIMESTAMP, DATE or BIGINT",
        )
    lengths = {name: ticks_of(gateway, tokens, scale, name, length) for name, length in call.lengths.items()}
    step = lengths.get("step")
    if step is not None and lengths["dur"] % step:
        raise _invalid(
            tokens,
            call.lengths["dur"].tokens,
            "the size of CUMULATE is not a multiple of its step",
            "write a size that is a multiple of the step",
        )
    keys = tuple(known[tokens[at].name.lower()] for at in call.keys)
    return TimeWindow(
        call.kind, time, scale.kind if kind == "int" else kind, scale, lengths, call.names, keys
    )


def _constant(gateway: Gateway, tokens: TokenList, at: Range) -> Any:
    """The value of an expression without columns."""
    found = gateway.sql(SqlText.of("SELECT ", piece_of(tokens, *at), " AS value"))
    kind = found.schema[0].dataType
    if "interval" in kind.simpleString() and not isinstance(kind, DayTimeIntervalType):
        raise _invalid(tokens, at, "months have no fixed length", "write days, hours, minutes or seconds")
    with gateway.translated():
        return found.collect()[0][0]


def _invalid(tokens: TokenList, at: Range, message: str, hint: str) -> AnalysisError:
    return AnalysisError(
        message, condition="INVALID_WINDOW_SIZE", sql=tokens.sql, span=tokens.span(*at), hint=hint
    )


def windows_by_definition(gateway: Gateway, window: TimeWindow, rows: DataFrame) -> DataFrame:
    """The rows with the windows that the reference finds; it names columns of the rows."""
    names = [f"c{number}" for number in range(len(rows.columns))]
    inner = rows.toDF(*names)
    inside = dict(zip(rows.columns, names, strict=True))
    ticks = window.scale.of_column(inside[window.time], window.time_type, window.scale.unit)
    timed = inner.selectExpr("*", f"{ticks} AS {TICKS}")
    with gateway.translated():
        table = timed.toArrow()
    times = table.column(TICKS).to_pylist()
    kinds = StructType([inner.schema[inside[key]] for key in window.keys])
    compared = ranked(gateway.spark, table.select(kinds.names), kinds)
    columns = [map(comparable, column.to_pylist()) for column in compared.columns]
    keys = list(zip(*columns, strict=True)) if columns else [()] * len(times)
    found = windows_of(window.kind, times, keys, window.lengths)
    places = [row for row, windows in enumerate(found) for _ in windows]
    dealt = table.drop_columns([TICKS]).take(places) if places else None
    schema = StructType([*inner.schema.fields]).add("__start", LongType()).add("__end", LongType())
    if dealt is None:
        frame = gateway.spark.createDataFrame([], schema)
    else:
        bounds = [window for windows in found for window in windows]
        for place, name in enumerate(("__start", "__end")):
            dealt = dealt.append_column(name, [[bound[place] for bound in bounds]])
        frame = gateway.spark.createDataFrame(dealt, schema)
    listed = window.columns("__start", "__end")
    return frame.selectExpr(*names, *listed).toDF(*rows.columns, *window.names)

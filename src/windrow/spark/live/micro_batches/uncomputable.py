"""Malformed rows of a second kind: those for which an expression over the row alone fails.

This depends only on the row and the query, and so not on micro-batch boundaries. A value that fails only over
several rows, such as a sum that overflows, makes no row malformed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import CalendarIntervalType, LongType

from windrow.algebra.rewriting.expand import Expander
from windrow.errors import ExecutionError, WindrowError
from windrow.spark.collected import collected, frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.input.malformed import WHY
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.plans.live_plan import LivePlan, ReaderPlan
from windrow.spark.live.reading.row_expressions import ROWS, ComputedOfRow, OfRows, of_each_row
from windrow.spark.live.reports.failures import of_a_worker
from windrow.spark.logs.live_source import PLACE
from windrow.spark.logs.session_streams import Stream
from windrow.spark.runtime.settings import setting
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import tokenize

__all__ = ["Uncomputable", "is_of_a_value"]

_STATES = ("22", "38", "39", "P0")
"""Classes of SQLSTATE: of data, of the user's functions, and of raised errors."""
_OURS = "22000"
"""The SQLSTATE of errors that Windrow's operators raise."""
_OF_A_FUNCTION = "PYTHON_EXCEPTION"
_LOADING = "in read_udfs"
"""A line in the trace of a function that a worker could not load, whatever the row."""
_SHARED = "spark.sql.subexpressionElimination.enabled"
_WHICH = "__which"
_LONGEST = 100


def is_of_a_value(error: WindrowError) -> bool:
    """Whether an error is about a value, and not about a failure of Spark."""
    if not isinstance(error, ExecutionError) or error.sqlstate == _OURS:
        return False
    is_of_data = error.sqlstate.startswith(_STATES)
    return is_of_data and of_a_worker(error) is None and _LOADING not in error.message


class Uncomputable:
    """Finds such rows.

    Parameters
    ----------
    plan
        The query.
    """

    def __init__(self, plan: LivePlan) -> None:
        self._plan = plan
        self._gateway = Gateway(plan.gateway.spark, plan.gateway.parameters)
        streams = plan.catalog.streams
        self._streams = {
            name: streams[name]
            for name in plan.streams
            # whoever reads a named stream judges its entries by all that was logged
            if (live := streams[name].live) is not None and not live.identity
        }

    @cached_property
    def parts(self) -> Sequence[OfRows]:
        """The expressions that the query computes from each row, those of inner queries first."""
        catalog = self._plan.catalog
        columns = {name: stream.columns for name, stream in catalog.streams.items()}
        live = {name: name for name in self._streams}
        for name, key in _declared(self._plan).items():
            columns[name], live[name] = columns[key], key
        found: list[OfRows] = []
        for text in _texts(self._plan):
            tokens = spelled(tokenize(text), 0, len(tokenize(text))).tokens
            expander = Expander(tokens, catalog.streams, {**catalog.expanded, **catalog.texts})
            whole = tokenize(expander.text(0, len(tokens)).render())
            found += of_each_row(whole, columns, live, self, PLACE)
        return list(dict.fromkeys(found))

    # -- what Spark says of texts ------------------------------------------------------------------------

    def takes(self, stream: str, rows: SqlText, expression: str) -> bool:
        """Whether an expression can be computed from each row of a relation derived from a stream's rows."""
        # where neither aggregates nor generators are allowed
        text = SqlText.of("SELECT 1 FROM ", rows, f" WHERE ({expression}) IS NULL")
        return self._analysed(stream, text) is not None

    def columns(self, stream: str | None, relation: SqlText) -> Sequence[str] | None:
        """The columns of a relation, which may be derived from a stream's rows; None if Spark does not know
        it.
        """
        found = self._analysed(stream, SqlText.of("SELECT * FROM ", relation))
        return None if found is None else found.columns

    def _analysed(self, stream: str | None, text: SqlText) -> DataFrame | None:
        rows = {} if stream is None else {ROWS: self._empty(self._streams[stream])}
        try:
            return self._gateway.sql(text, rows)
        except WindrowError:
            return None

    def _empty(self, stream: Stream) -> DataFrame:
        return stream.frame.select(*map(quoted, stream.columns), F.lit(0).cast(LongType()).alias(PLACE))

    # -- which rows --------------------------------------------------------------------------------------

    def fails(self, rows: Mapping[str, DataFrame]) -> bool:
        """Whether some of these rows of each stream, with `PLACE`, are malformed."""
        return bool(self.parts) and self._failure(self.parts, rows) is not None

    def among(self, rows: Mapping[str, DataFrame]) -> pa.Table | None:
        """The places and `WHY` of malformed rows among these of each stream; None if there are none.

        Raises
        ------
        WindrowError
            An error that no row causes.
        """
        if not self.fails(rows):
            return None
        found: dict[int, str] = {}
        for part in self.parts:
            found |= self._found_by_spark(part, _without(rows[part.stream], found))
            rest = _without(rows[part.stream], found)
            error = self._failure([part], rest)
            if error is not None:
                found |= self._halved(part, rest, error)
        return pa.table({PLACE: pa.array(found.keys(), pa.int64()), WHY: pa.array(found.values())})

    def _failure(
        self, parts: Sequence[OfRows], rows: Mapping[str, DataFrame] | DataFrame
    ) -> WindrowError | None:
        """The error of computing parts of the query, in one job."""
        frames = [
            self._made(number, part, rows if isinstance(rows, DataFrame) else rows[part.stream])
            for number, part in enumerate(parts)
        ]
        whole = reduce(partial(DataFrame.unionByName, allowMissingColumns=True), frames)
        try:
            with self._gateway.translated():
                whole.write.format("noop").mode("overwrite").save()
        except WindrowError as error:
            if not is_of_a_value(error):
                raise
            return error
        return None

    def _made(self, number: int, part: OfRows, rows: DataFrame) -> DataFrame:
        listed = ", ".join(f"{_guarded(one)} AS c{number}_{at}" for at, one in enumerate(part.computed))
        made = self._gateway.sql(SqlText.of(f"SELECT {listed} FROM ", part.rows), {ROWS: rows})
        # which no sink takes
        lengths = [field.name for field in made.schema if isinstance(field.dataType, CalendarIntervalType)]
        return made.withColumns({name: F.col(name).cast("string") for name in lengths})

    def _found_by_spark(self, part: OfRows, rows: DataFrame) -> dict[int, str]:
        """The rows for which Spark returns NULL in place of an error, in one query; none if that fails.

        Spark does so for sums of dates, but not for the user's Python functions.
        """
        tests = " ".join(
            f"WHEN try_add(DATE '1970-01-01', hash(CAST({_guarded(one)} AS STRING)) % 2) IS NULL THEN {at}"
            for at, one in enumerate(part.computed)
        )
        inner = SqlText.of(f"SELECT {quoted(PLACE)}, CASE {tests} END AS {_WHICH} FROM ", part.rows)
        text = SqlText.of("SELECT * FROM (", inner, f") WHERE {_WHICH} IS NOT NULL")
        try:
            # what several have in common would be computed before, where a failure is one
            with setting(self._gateway.spark, _SHARED, "false"), self._gateway.translated():
                found = self._gateway.sql(text, {ROWS: rows}).toArrow()
        except WindrowError as error:
            if not is_of_a_value(error):
                raise
            return {}
        pairs = zip(found.column(PLACE).to_pylist(), found.column(_WHICH).to_pylist(), strict=True)
        return {place: _reason(part.computed[which]) for place, which in pairs}

    def _halved(self, part: OfRows, rows: DataFrame, error: WindrowError) -> dict[int, str]:
        """The rows that fail alone, found by bisecting rows that fail together."""
        retained = collected(rows)
        if retained is not None:
            rows = frame_of_collected(self._gateway.spark, retained, rows.schema)
        places = np.sort(rows.select(PLACE).toArrow().column(PLACE).to_numpy())

        def between(low: int, stop: int) -> DataFrame:
            return rows.where(F.col(PLACE).between(int(places[low]), int(places[stop - 1])))

        def failing(low: int, stop: int) -> Iterator[int]:
            if stop - low == 1:
                yield low
                return
            middle = (low + stop) // 2
            is_first = self._failure([part], between(low, middle)) is not None
            if is_first:
                yield from failing(low, middle)
            if not is_first or self._failure([part], between(middle, stop)) is not None:
                yield from failing(middle, stop)

        return {
            int(places[at]): self._reason_of(part, between(at, at + 1), error)
            for at in failing(0, len(places))
        }

    def _reason_of(self, part: OfRows, row: DataFrame, error: WindrowError) -> str:
        """The expression for which one row is malformed."""
        for one in part.computed:
            failed = self._failure([OfRows(part.stream, part.rows, (one,))], row)
            if failed is not None:
                return _reason(one, failed)
        raise error


def _texts(plan: LivePlan) -> list[str]:
    """The texts of a query, those of its views first."""
    if isinstance(plan, EmittedPlan):  # whose views are expanded in its text
        return [plan.text]
    return [*plan.views().values(), plan.text]


def _declared(plan: LivePlan) -> dict[str, str]:
    """The streams that the text declares itself, by the names of their tables."""
    if not isinstance(plan, ReaderPlan):
        return {}
    found: dict[str, set[str]] = {}
    for token in plan.reader.tokens.tokens:
        if token.is_name and token.start in plan.reader.declared:
            found.setdefault(token.name.lower(), set()).add(plan.reader.declared[token.start])
    # of a table that is declared in two ways it is not known which is meant
    return {name: keys.pop() for name, keys in found.items() if len(keys) == 1 and keys <= {*plan.streams}}


def _guarded(one: ComputedOfRow) -> str:
    if not one.conditions:
        return f"({one.text})"
    return f"CASE WHEN {' AND '.join(f'({each})' for each in one.conditions)} THEN ({one.text}) END"


def _reason(one: ComputedOfRow, error: WindrowError | None = None) -> str:
    """Why a row is malformed; for the user's functions, with their exception."""
    reason = f"{_short(one.text)} cannot be computed"
    if error is None or error.condition != _OF_A_FUNCTION:
        return reason
    return f"{reason}: {_short(error.message.strip().splitlines()[-1])}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _without(rows: DataFrame, found: Mapping[int, str]) -> DataFrame:
    if not found:
        return rows
    places = rows.sparkSession.createDataFrame(pa.table({PLACE: pa.array(found.keys(), pa.int64())}))
    return rows.join(F.broadcast(places), PLACE, "left_anti")

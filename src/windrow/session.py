"""The session: where queries are run and tables named."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.algebra.clock import Clock
from windrow.algebra.names import POSITIONAL
from windrow.errors import ParseError, Span, UsageError, did_you_mean
from windrow.naming import remember_named, remember_stream
from windrow.relation import NamedStreamRelation, Relation
from windrow.spark.gateway import Gateway, check_dialect
from windrow.spark.live import live_stream
from windrow.spark.local import local_session
from windrow.spark.sources import of_table, read_table
from windrow.spark.streams import Catalog, Log, is_text_log, of_frame, of_text_log, unit_named
from windrow.spark.text_log import read_text_log
from windrow.statements import check, run
from windrow.streams import NamedStream
from windrow.syntax.blocks import split_statements
from windrow.syntax.streams import TIME_UNITS
from windrow.syntax.tokens import tokenize

__all__ = ["Session"]

Execution = Literal["batch", "reference"]
Dialect = Literal["spark", "cql"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Session:
    """Runs Windrow's SQL on a SparkSession.

    Parameters
    ----------
    spark
        The SparkSession to use, classic or Spark Connect. Without one, a local session is made, which
        finds Java or brings it.
    execution
        ``"batch"``, or ``"reference"`` to let the reference interpreter compute the windows: slow, on the
        driver, and right by definition.
    dialect
        ``"spark"``, or ``"cql"`` for expressions as in CQL: `||` passes over NULL, `sysdate`, strings in
        double quotes, times with the month first. By default what ``spark.windrow.dialect`` says.

    Attributes
    ----------
    spark
        The SparkSession.
    """

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        execution: Execution = "batch",
        dialect: Dialect | None = None,
    ) -> None:
        if execution not in ("batch", "reference"):
            raise UsageError(
                f"execution mode {execution!r} is unknown",
                condition="UNKNOWN_EXECUTION",
                hint=did_you_mean(str(execution), ["batch", "reference"]) or "use 'batch' or 'reference'",
            )
        self.spark = spark if spark is not None else local_session()
        self.execution: Execution = execution
        self.dialect = None if dialect is None else check_dialect(dialect)
        self._catalog = Catalog()

    def __repr__(self) -> str:
        return f"Session[Spark {self.spark.version}, execution={self.execution}]"

    def sql(self, text: str, /, *args: Any, **params: Any) -> Relation:
        """Run one statement of the dialect: Spark SQL, with WINDOW BY and MATCH_RECOGNIZE.

        Parameters
        ----------
        text
            One statement; a semicolon at its end is allowed. Plain Spark SQL reaches Spark as it is.
        *args
            Values for the positional parameters ``?``, in order.
        **params
            Values for the named parameters ``:name``. Positional and named ones cannot be mixed.

        Returns
        -------
        Relation
            Queries are computed when the relation is asked for its rows; commands at once.

        Raises
        ------
        WindrowError
            With the position in `text`.
        TypeError
            Where `text` is no text.
        """
        _refuse_no_text(text)
        if not text.strip():
            raise ParseError(
                "statement is empty",
                condition="PARSE_EMPTY_STATEMENT",
                sqlstate="42617",
                sql=text,
                span=Span(0, 0),
                hint="write a statement, such as SELECT 1",
            )
        if args and params:
            raise UsageError(
                "positional and named parameters are mixed",
                condition="MIXED_PARAMETERS",
                hint="use ? for all or :name for all",
            )
        return run(self._gateway(args, params), text, list(args), self.execution, self._catalog)

    def check(self, text: str, /, *args: Any, **params: Any) -> None:
        """Say whether a query is understood: its syntax, names and types, without running it.

        Parameters
        ----------
        text, *args, **params
            As :meth:`sql` takes them.

        Raises
        ------
        WindrowError
            As :meth:`sql` would before it starts to compute.
        """
        _refuse_no_text(text)
        check(self._gateway(args, params), text, self._catalog)

    def script(self, text: str) -> list[Relation]:
        """Run the statements of a script, separated by semicolons, in order."""
        _refuse_no_text(text)
        tokens = tokenize(text)
        relations = []
        for start, stop in split_statements(tokens):
            span = tokens.span(start, stop)
            # spaces in place of what comes before keep the positions of errors those of the script
            padded = re.sub(r"[^\n]", " ", text[: span.start]) + text[span.start : span.stop]
            relations.append(self.sql(padded))
        return relations

    def table(self, name: str) -> Relation:
        """A table or view by name."""
        return self.sql(f"TABLE {name}")

    def register(
        self,
        name: str,
        source: DataFrame | Relation | pa.Table | pd.DataFrame | str | Path | Sequence[str | Path],
        *,
        format: str | None = None,  # noqa: A002 - as spark.read has it
    ) -> Relation:
        """Give a DataFrame, a relation or files a name in this session's queries (a temporary view).

        Parameters
        ----------
        name
            A plain identifier.
        source
            A DataFrame of Spark or pandas, an Arrow table, a relation, or paths: Parquet, CSV, JSON, ORC,
            NOAA's GHCN-Daily files, a directory or a glob.
        format
            The format of the files where their names do not say it.
        """
        _check_name(name)
        frame = self._frame(name, source, format)
        self._catalog.forget(name)
        with Gateway(self.spark).translated():
            frame.createOrReplaceTempView(name)
        return self.table(name)

    def _frame(self, name: str, source: Any, format: str | None = None) -> DataFrame:  # noqa: A002 - as above
        """The rows of a source."""
        gateway = Gateway(self.spark)
        if isinstance(source, Relation):
            frame = source.df
        elif isinstance(source, str | Path | Sequence):
            with gateway.translated(), of_table(name):
                frame = read_table(self.spark, source, format=format)
        elif isinstance(source, pa.Table | pd.DataFrame):
            with gateway.translated():
                frame = self.spark.createDataFrame(source)
        elif hasattr(source, "createOrReplaceTempView"):  # classic and Connect have no class in common
            frame = source
        else:
            raise UsageError(
                f"{type(source).__name__} cannot be registered as a table",
                condition="NOT_A_TABLE",
                hint="give a DataFrame of Spark or pandas, an Arrow table, a relation, or paths",
            )
        return frame

    def stream(
        self,
        name: str,
        source: DataFrame
        | Relation
        | pa.Table
        | pd.DataFrame
        | str
        | Path
        | Sequence[str | Path]
        | NamedStream
        | None = None,
        *,
        rowtime: str | None = None,
        unit: str | None = None,
        ptime: str | None = None,
        producer: str | None = None,
        bound: int | str | None = None,
        on_late: Literal["keep", "fail"] = "keep",
        lag: datetime.timedelta | int | None = None,
        idle: datetime.timedelta | None = None,
        columns: Mapping[str, str] | None = None,
        malformed: Literal["fail", "keep"] = "fail",
    ) -> Relation:
        """Give a recorded, a live or a named stream a name in this session's queries.

        Parameters
        ----------
        name
            A plain identifier. Spark knows the rows by it too, as a temporary view.
        source
            Rows as :meth:`register` takes them; a streaming DataFrame, over which queries are live; a path
            of a recorded text (``.cql``): a line a row, as its instant and its values, and ``h`` with an
            instant: no row of an earlier one follows; or a named stream or its folder, over which queries are
            both: they read what has been recorded so far, and can be started. Without, the named stream that
            has the name already.
        rowtime
            The column of the rowtimes: TIMESTAMP, DATE, or BIGINT with a `unit`. A NULL fails the query. A
            recorded text needs none; with a name, queries see its instants.
        unit
            Of integer rowtimes, from days to nanoseconds; milliseconds by default.
        ptime, producer
            Columns that say when an entry of the log came, or which it is in number, and from whom. Rows of
            one rowtime are in their order.
        bound
            The column of bounds, of the rowtime's type: each promises that no entry of a later `ptime` and of
            the same producer is a row with a rowtime below it. An entry with a bound and a rowtime of NULL is
            no row. Or an int: a rowtime, in its unit or ticks, before which no more rows will come.
        on_late
            What becomes of rows below what their producer promised: ``"keep"`` them apart, as the temporary
            view `name` + ``_late``, or ``"fail"`` the query.
        lag
            Of a streaming DataFrame: rows are estimated to come at most so much below the greatest rowtime of
            their producer; integers count ticks of the rowtime. Without a lag and a column of bounds, rows
            of a producer come in the order of their rowtimes, and one that does not is late.
        idle
            Of a streaming DataFrame: a producer that has been silent for so long holds the others no longer
            back.
        columns
            The names and types of the values of a recorded text; by default c1, c2, and so on, with types
            told from the values.
        malformed
            What becomes of lines of a recorded text that cannot be read: ``"fail"``, or ``"keep"`` them as
            the temporary view `name` + ``_malformed`` (line, text, problem), and lines out of order as late
            rows.

        Returns
        -------
        Relation
            The rows, as a table; of a named stream with ``producer(name)``, which attaches one.

        Raises
        ------
        WindrowError
            ``INVALID_NAME``, ``UNKNOWN_ROWTIME``, ``INVALID_ROWTIME``, ``INVALID_BOUND``, ``MISSING_PTIME``,
            ``MALFORMED_LINE``, ``UNKNOWN_UNIT``, ``UNKNOWN_OPTION``, ``UNKNOWN_STREAM``.
        """
        _check_name(name)
        gateway = Gateway(self.spark)
        if source is None or isinstance(source, NamedStream) or _is_named_stream(source):
            given = (rowtime, unit, ptime, producer, bound, lag, idle, columns)
            if any(value is not None for value in given):
                raise UsageError(
                    f"stream {name} is a named stream: its folder says what it is",
                    condition="UNKNOWN_OPTION",
                    hint=f"write session.stream({name!r}, folder)",
                )
            return self._named(gateway, name, source)
        known = unit_named(unit)
        if is_text_log(source):
            log = read_text_log(str(source), malformed=malformed)
            clock = Clock("bigint", known or "MILLISECOND")
            typed = tuple(columns.items()) if columns is not None else None
            stream = of_text_log(gateway, log, typed, clock, rowtime)
            if malformed == "keep":
                kept = self.spark.createDataFrame(
                    list(log.malformed), "line INT, text STRING, problem STRING"
                )
                kept.createOrReplaceTempView(f"{name}_malformed")
        else:
            if rowtime is None:
                raise UsageError(
                    f"stream {name} has no rowtime",
                    condition="UNKNOWN_ROWTIME",
                    hint="name the column that holds it: rowtime='ts', on the command line --rowtime ts",
                )
            log_columns = Log(rowtime, known, ptime, producer, bound, on_late)
            frame = self._frame(name, source)
            if frame.isStreaming:
                waits = {"lag": _ticks_of(lag, known), "idle": _micros_of(idle)}
                stream = live_stream(self.spark, frame, log_columns, **waits)
            elif lag is not None or idle is not None:
                raise UsageError(
                    f"stream {name} is recorded, and so has no lag",
                    condition="UNKNOWN_OPTION",
                    hint="lag and idle are of streaming DataFrames",
                )
            else:
                stream = of_frame(frame, log_columns)
        remember_stream(gateway, self._catalog, name, stream)
        return self.table(name)

    def _named(
        self, gateway: Gateway, name: str, source: NamedStream | str | Path | None
    ) -> NamedStreamRelation:
        if source is not None:
            stream = source if isinstance(source, NamedStream) else NamedStream.open(source)
            remember_named(gateway, self._catalog, name, stream)
        named = self._catalog.named.get(name.lower())
        if named is None:
            raise UsageError(
                f"there is no named stream {name}",
                condition="UNKNOWN_STREAM",
                sqlstate="42P01",
                hint=f"open its folder: session.stream({name!r}, 'folder')",
            )
        return NamedStreamRelation(self.table(name), named.stream)

    def count_late(self) -> dict[str, int]:
        """How many rows of each stream came late, where any did."""
        found = {
            name: stream.late.count()
            for name, stream in self._catalog.streams.items()
            if stream.late is not None
        }
        return {name: count for name, count in found.items() if count}

    def _gateway(self, args: Sequence[Any], params: Mapping[str, Any]) -> Gateway:
        named = {f"{POSITIONAL}{number}": value for number, value in enumerate(args)}
        return Gateway(self.spark, {**named, **params}, self.dialect)


def _is_named_stream(source: object) -> TypeGuard[str | Path]:
    """Whether this is the folder of a named stream."""
    return isinstance(source, str | Path) and (Path(source) / "stream.json").is_file()


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"table name {name!r} is not an identifier",
            condition="INVALID_NAME",
            hint="use letters, digits and _",
        )


def _refuse_no_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"SQL is a text, not {type(text).__name__}")


def _ticks_of(lag: datetime.timedelta | int | None, unit: str | None) -> int | None:
    """A lag in ticks of a rowtime: microseconds for times, whole days for dates."""
    if lag is None or isinstance(lag, int):
        return lag
    nanoseconds = (lag // datetime.timedelta(microseconds=1)) * 1000
    return nanoseconds // (TIME_UNITS[unit] if unit is not None else 1000)


def _micros_of(length: datetime.timedelta | None) -> int | None:
    return None if length is None else length // datetime.timedelta(microseconds=1)

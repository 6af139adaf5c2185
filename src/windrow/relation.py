"""The result of a query, and its operations: show, collect, at, changelog, start, plot, explain."""

from __future__ import annotations

import functools
import html
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from windrow.errors import NoAttributeError, NoItemError, UsageError, did_you_mean
from windrow.rendering import html_table
from windrow.spark.clauses.batch import Bound
from windrow.spark.gateway import Gateway
from windrow.spark.live import LivePlan, LiveQuery, Mode, Target
from windrow.spark.live.session_queries import queries_of
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.time_varying_relation import TimeVarying
from windrow.spark.runtime.settings import zone_named
from windrow.streams import NamedStream, Producer
from windrow.streams.producer import LEASE_SECONDS, LateRows
from windrow.tracebacks import briefly

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Row

__all__ = ["Changes", "NamedStreamRelation", "Relation", "as_plan", "no_rows"]

_HTML_ROWS = 20

if TYPE_CHECKING:  # so editors know what a relation has
    _Frame = DataFrame
else:
    _Frame = object


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a time-varying relation, by the columns of its key."""

    relation: TimeVarying
    key: tuple[str, ...] = ()


_IN_PLACE_OF = {
    "insert": "write to a named stream by INSERT INTO s, or session.stream('s').producer('p').insert(rows)",
}
"""The alternatives to attributes of other libraries."""
_OF_DATAFRAMES = [name for name in dir(DataFrame) if not name.startswith("_")]


def _frame_of(value: object) -> object:
    return value.df if isinstance(value, Relation) else value


@briefly
class Relation(_Frame):
    """A query's result, evaluated lazily.

    It has all methods of a DataFrame, such as ``relation.select(…)`` and ``relation.write``, with the same
    results.

    Attributes
    ----------
    df
        The result as a Spark DataFrame.
    made_of
        What a plot of it draws: its windows and matches, each after those that it reads; a time-varying
        relation, or its changes; a stream. None for results of Spark alone.
    named
        Of a table or stream with a name: a function that runs statements which use the name, and the name.
    written_from
        Of a statement that writes what a query returns: the query.
    """

    _lives: LivePlan | Callable[[], LivePlan] | None = None
    _html_rows = _HTML_ROWS
    _started: LiveQuery | None = None
    made_of: tuple[Bound, ...] | TimeVarying | Changes | Stream | None = None
    named: tuple[Callable[[str], Relation], str] | None = None
    written_from: Relation | None = None

    def __init__(
        self,
        df: DataFrame,
        plan: str | Callable[[], str],
        gateway: Gateway,
        *,
        is_plan: bool = False,
        ordered: DataFrame | None = None,
        live: LivePlan | Callable[[], LivePlan] | None = None,
        made_of: tuple[Bound, ...] | TimeVarying | Changes | Stream | None = None,
    ) -> None:
        self.df = df
        self._lives = live
        self.made_of = made_of
        self._ordered = ordered
        self._is_plan = is_plan
        self._explained = plan
        self._gateway = gateway

    @cached_property
    def _plan(self) -> str:
        explained = self._explained if isinstance(self._explained, str) else self._explained()
        return self._gateway.plan_as_written(explained)

    @property
    def _live(self) -> LivePlan | None:
        if callable(self._lives):
            self._lives = self._lives()
        return self._lives

    @_live.setter
    def _live(self, live: LivePlan | None) -> None:
        self._lives = live

    @property
    def live(self) -> LivePlan | None:
        """The live query that :meth:`start` starts; None for a relation over recorded data only."""
        return self._live

    @property
    def schema(self) -> T.StructType:
        """The columns with their types."""
        return self.df.schema

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    @property
    def is_plan(self) -> bool:
        """Whether its rows are the text of a plan, and not those of a query."""
        return self._is_plan

    @property
    def ordered(self) -> DataFrame:
        """The same rows, ordered by time if they have one, as `show` and `collect` return them."""
        return self.df if self._ordered is None else self._ordered

    @overload
    def first(self) -> Row | None: ...

    @overload
    def first(self, n: int) -> Relation: ...

    def first(self, n: int | None = None) -> Relation | Row | None:
        """The first `n` rows as a relation, which a notebook displays wholly; without `n`, the first row."""
        if n is None:
            with self._gateway.translated():
                return self.ordered.first()
        ordered = self.ordered.limit(n)
        found = Relation(ordered, self._plan, self._gateway, is_plan=self._is_plan, made_of=self.made_of)
        found._html_rows = n
        return found

    def at(self, instant: Any = None, *, ptime: Any = None) -> Relation:  # noqa: ARG002 - time-varying only
        """The relation as of an instant of rowtime, or of processing time.

        Parameters
        ----------
        instant
            A value of the rowtime's type: an int of its unit, a date, a datetime, or a text of one.
        ptime
            A processing time, of a query with EMIT over recorded logs: the rows as of then.

        Raises
        ------
        UsageError
            ``NOT_VARYING`` for a table, which is the same at all instants, ``INVALID_INSTANT``.
        """
        raise self._not_temporal()

    def changelog(
        self,
        envelope: str = "delta",  # noqa: ARG002 - time-varying only
        key: str | Sequence[str] = (),  # noqa: ARG002
    ) -> Relation:
        """The inserts and deletes of the relation over time.

        Parameters
        ----------
        envelope
            ``"delta"``: the columns, ``_change_type``, ``_commit_version``, ``_commit_timestamp``; ``"op"``:
            ``_op``, ``_at``, the columns; ``"diff"``: the columns, ``_diff``, ``_at``; ``"cql"``:
            ``timestamp``, ``kind``, ``tuple``.
        key
            The columns of a key. A delete and an insert of one key at one instant are an update:
            ``update_preimage`` and ``update_postimage`` in ``"delta"``, -U and +U in ``"op"``.

        Raises
        ------
        UsageError
            ``NOT_VARYING``, ``UNKNOWN_ENVELOPE``, ``INVALID_ARGUMENT`` for a key in another envelope.
        AnalysisError
            ``UNRESOLVED_COLUMN``, ``AMBIGUOUS_REFERENCE``, ``UNORDERABLE_TYPE`` of the key.
        """
        raise self._not_temporal()

    @property
    def late(self) -> Relation:
        """The late rows of the recorded streams that the query reads, without duplicates.

        The result of the query does not include them. They violate a bound or a punctuation, or, in a query
        with EMIT, are late for a group. Their columns are ``stream``, ``row`` (as JSON), ``rowtime``,
        ``bound``, ``producer`` and ``reason``. The bound is the one that the row violates, or the
        watermark before the row less the allowed lateness. The reason is ``watermark``, ``bound`` or
        ``punctuation`` for rows below an estimate, below a bound, or that match a punctuation; ``future`` or
        ``future bound`` for rows and bounds too far ahead of their processing time.

        Raises
        ------
        UsageError
            ``NOT_VARYING`` for a query that reads no stream.
        """
        raise self._not_temporal()

    def start(
        self,
        sink: Target | NamedStreamRelation,
        *,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, Any] | None = None,
        envelope: str | None = None,
        mode: Mode = "changelog",
        key: str | Sequence[str] | None = None,
        on_late: Literal["keep", "fail"] = "keep",
        on_malformed: Literal["keep", "fail"] = "fail",
        on_unbounded: Literal["warn", "error", "ignore"] = "warn",
        name: str | None = None,
    ) -> LiveQuery:
        """Start a query over live or named streams: it emits rows as new entries arrive.

        Parameters
        ----------
        sink
            Where its rows go: a folder, into which each micro-batch with rows writes one Parquet file, or a
            :class:`windrow.Files`; a named stream, or its folder; a :class:`windrow.Table`; a
            :class:`windrow.Kafka`; ``"console"``; a :class:`windrow.Memory`; or a function of a DataFrame and
            the number of the micro-batch, which may be called twice with the same number.
        checkpoint
            A folder for this query alone, from which it resumes when it is started again. Without one, it
            starts from the beginning each time.
        trigger
            As ``DataStreamWriter.trigger`` takes it: ``{"processingTime": "1 second"}``,
            ``{"availableNow": True}``.
        envelope
            The form of the changelog of a relation, as for :meth:`changelog`; by default that of ``EMIT
            STREAM``, or ``"delta"``. Streams emit their rows as they are.
        mode
            What the sink receives of a relation: its ``"changelog"``; the new row, or the deletion, of each
            key that a micro-batch has changed (``"upsert"``); or the full ``"table"`` after each change.
        key
            The key columns of ``"upsert"``; by default those of GROUP BY.
        on_late
            What happens to late rows: ``"keep"`` puts them into ``query.late``, ``"fail"`` fails the query.
        on_malformed
            What happens to records that a reader of JSON, CSV or the like could not read, and to rows for
            which an expression over their own columns fails: ``"keep"`` puts them into ``query.malformed``,
            ``"fail"`` fails the query.
        on_unbounded
            What happens to a query with unbounded state: ``"warn"``, ``"error"``, or ``"ignore"``.
        name
            The name of the query in ``session.queries``.

        Raises
        ------
        WindrowError
            ``NOT_LIVE`` for a query over none, ``CHECKPOINT_OF_ANOTHER_QUERY``, ``CHECKPOINT_VERSION``,
            ``CHECKPOINT_IN_USE``, ``UNKNOWN_SINK``, ``UNSUPPORTED_SINK``, ``SINK_IN_USE``,
            ``UNKNOWN_ENVELOPE``, ``QUERY_EXISTS``, ``UNBOUNDED_STATE``, ``UNSUPPORTED_STREAM``,
            ``INVALID_ARGUMENT``, ``MISSING_KEY``, ``STREAM_WHERE_RELATION_IS_NEEDED``.
        """
        if self._live is None:
            raise self._is_not_live()
        target = sink.stream if isinstance(sink, NamedStreamRelation) else sink
        self._started = queries_of(self._live.catalog).start(
            self._live,
            target,
            name=name,
            on_unbounded=on_unbounded,
            checkpoint=checkpoint,
            trigger=trigger,
            envelope=envelope,
            on_late=on_late,
            on_malformed=on_malformed,
            mode=mode,
            key=key,
        )
        return self._started

    def _is_not_live(self) -> UsageError:
        if self.df.isStreaming:
            return UsageError(
                "the query reads a live stream as if it were a table",
                condition="NOT_LIVE",
                hint="write SELECT STREAM … FROM s, or EMIT STREAM at the end, or add a window to the stream:"
                " FROM s [RANGE 10 MINUTES]; for groups by window(ts, …), write FROM TUMBLE(TABLE s,"
                " DESCRIPTOR(ts), INTERVAL 5 MINUTES) … GROUP BY wstart, wend EMIT STREAM AFTER WATERMARK",
            )
        return UsageError(
            "the relation reads no live or named stream",
            condition="NOT_LIVE",
            hint="read its rows directly: relation.show(), relation.df",
        )

    def state(self) -> DataFrame:
        """The state of the query that was last started from this relation: see :meth:`LiveQuery.state`.

        Raises
        ------
        UsageError
            ``NOT_STARTED``.
        """
        if self._started is None:
            raise UsageError(
                "no query was started from this relation",
                condition="NOT_STARTED",
                hint="start a live query: relation.start(sink)",
            )
        return self._started.state()

    def _not_temporal(self) -> UsageError:
        return UsageError(
            "the relation is not time-varying",
            condition="NOT_VARYING",
            hint="write a window over a stream: SELECT … FROM s [RANGE 10 MINUTES]",
        )

    def show(self, n: int = 20, truncate: bool | int = True, vertical: bool = False) -> None:
        """Print the first `n` rows as a table; long values are cut unless `truncate` is False.

        With `vertical`, a line for each value.
        """
        if self._is_plan:
            print(self._plan)  # noqa: T201 - a table would break its lines
            return
        with self._gateway.translated():
            self.ordered.show(n, truncate, vertical)

    def collect(self) -> list[Row]:
        """All rows, as a list on the driver."""
        with self._gateway.translated():
            return self.ordered.collect()

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table, on the driver."""
        with self._gateway.translated():
            return self.ordered.toArrow()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame, on the driver."""
        with self._gateway.translated():
            return self.ordered.toPandas()

    def plot(  # type: ignore[override]
        self,
        *file: object,
        value: str | None = None,
        key: Any = None,
        partitions: int = 3,
        rows: int = 200,
        width: int | None = None,
    ) -> Any:
        """A picture of how the query finds its rows, as an Altair chart (the extra `plot`).

        Windows are spans over their sequence with the values beneath, matches show the variable of each row,
        a time-varying relation shows the validity of each row, its changelog is a staircase, and a stream
        shows its arrivals and bounds.

        Parameters
        ----------
        file
            Not accepted: :func:`windrow.plot.save` writes a picture.
        value
            The column of numbers or texts that is drawn; by default the first that the conditions read.
        key
            Of windows and matches: draw only the partition with these values of PARTITION BY. Of a
            time-varying relation: its key columns; by default those that are not numbers.
        partitions, rows
            The greatest number of partitions, and of rows of each.
        width
            The width of the plot, in pixels.

        Raises
        ------
        WindrowError
            ``NOTHING_TO_DRAW`` for a query without windows, ``MISSING_PACKAGE``, ``UNRESOLVED_COLUMN``,
            ``INVALID_ARGUMENT``.
        """
        if file:
            name = file[0] if isinstance(file[0], str | Path) else "picture.svg"
            raise UsageError(
                "plot() takes no positional arguments",
                condition="INVALID_ARGUMENT",
                hint=f"write windrow.plot.save(relation.plot(), {str(name)!r}) for a file, and options by"
                " name: rows=9",
            )
        # imported here: plots are a layer above relations, and their packages are an extra
        plot = importlib.import_module("windrow.plot")
        return plot.draw(self, value=value, key=key, partitions=partitions, rows=rows, width=width)

    def explain(self, spark: bool = False) -> None:  # type: ignore[override]
        """Print the plan of the query; with `spark`, followed by Spark's own plan."""
        print(self.plan(spark))  # noqa: T201 - its purpose

    def plan(self, spark: bool = False) -> str:
        """The text that :meth:`explain` prints."""
        if not spark:
            return self._plan
        return f"{self._plan}\n\n{self._gateway.spark_plan(self.df, 'formatted')}"

    def _repr_html_(self) -> str:
        if self._is_plan:
            return f'<pre style="text-align:left;line-height:1.35">{html.escape(self._plan)}</pre>'
        most = self._html_rows
        with self._gateway.translated():
            rows = self.ordered.limit(most + 1).collect()
        number = min(len(rows), most)
        count = f"{number:,} row{'' if number == 1 else 's'}"
        caption = f"first {count}; there are more" if len(rows) > most else count
        return html_table(self.df.schema, rows[:most], caption)

    if not TYPE_CHECKING:  # a type checker knows what a DataFrame has

        def __getattr__(self, name: str) -> Any:
            if name.startswith("_") or hasattr(type(self), name):
                # a property failed with an AttributeError: read it again, which raises that error
                return object.__getattribute__(self, name)
            if hasattr(DataFrame, name):
                return self._of_df(name)
            if name in self.columns:
                return self.df[name]
            own = [known for known in dir(type(self)) if not known.startswith("_")]
            hint = _IN_PLACE_OF.get(name) or did_you_mean(name, [*own, *self.columns, *_OF_DATAFRAMES])
            raise NoAttributeError(
                f"a relation has no attribute {name}",
                condition="NO_ATTRIBUTE",
                hint=hint or f"use a method of a DataFrame, or one of the columns {', '.join(self.columns)}",
            )

        def __getitem__(self, item: Any) -> Any:
            with self._gateway.translated():
                return self.df[item]

        def __iter__(self) -> Any:
            raise NoItemError(
                "a relation has no rows before it is computed",
                condition="NO_ATTRIBUTE",
                hint="write relation.collect(), or relation.toLocalIterator() for one row at a time",
            )

        def __len__(self) -> int:
            raise NoItemError(
                "a relation has no length before it is computed",
                condition="NO_ATTRIBUTE",
                hint="write relation.count()",
            )

        def __bool__(self) -> bool:
            return True

    def _of_df(self, name: str) -> Any:
        """An attribute of the DataFrame; its methods accept relations too, and raise Windrow's errors."""
        with self._gateway.translated():
            found = getattr(self.df, name)
        if not inspect.ismethod(found):
            return found

        @functools.wraps(found)
        def called(*args: Any, **kwargs: Any) -> Any:
            positional = [_frame_of(value) for value in args]
            named = {key: _frame_of(value) for key, value in kwargs.items()}
            with self._gateway.translated():
                return found(*positional, **named)

        return called

    def __repr__(self) -> str:
        columns = ", ".join(
            f"{field.name}: {field.dataType.simpleString()}" for field in self.df.schema.fields
        )
        return f"Relation[{columns}]"


def as_plan(gateway: Gateway, text: str) -> Relation:
    """A plan as a relation: its text in one row."""
    text = gateway.plan_as_written(text)
    return Relation(gateway.spark.createDataFrame([(text,)], "plan string"), text, gateway, is_plan=True)


def no_rows(gateway: Gateway) -> Relation:
    """The result of a statement that is not a query: no rows, and no columns."""
    return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), "done when it was run", gateway)


@briefly
class NamedStreamRelation(Relation):
    """The rows of a named stream recorded so far.

    Attributes
    ----------
    stream
        The named stream.
    """

    def __init__(self, rows: Relation, stream: NamedStream) -> None:
        super().__init__(rows.df, rows.plan(), rows._gateway)
        self.named = rows.named
        self.stream = stream

    def producer(
        self, name: str, *, late: LateRows = "keep", lease: float = LEASE_SECONDS, wait: float = 0.0
    ) -> Producer:
        """Attach a producer: see :meth:`windrow.streams.NamedStream.producer`.

        Bounds and watermarks without a zone are in the session's time zone, as in ``PUNCTUATE``.
        """
        zone = zone_named(str(self._gateway.spark.conf.get("spark.sql.session.timeZone") or ""))
        return self.stream.producer(name, late=late, lease=lease, wait=wait, zone=zone)

"""The result of a query, and everything one can ask of it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame

from windrow.algebra.clock import Clock
from windrow.errors import UsageError
from windrow.spark.changelog import changelog
from windrow.spark.gateway import Gateway
from windrow.spark.live import LivePlan, LiveQuery, Memory
from windrow.spark.streams import LATE, Stream
from windrow.spark.varying import Varying, tick_of
from windrow.streams import NamedStream, Producer
from windrow.streams.producer import LEASE_SECONDS, LateRows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Row

__all__ = ["LiveRelation", "NamedStreamRelation", "Relation", "StreamRelation", "VaryingRelation"]

_HTML_ROWS = 20


class Relation:
    """A query's result, computed when it is asked for.

    Attributes
    ----------
    df
        The result as a Spark DataFrame; everything that Spark can do with one is open.
    """

    _live: LivePlan | None = None

    def __init__(
        self,
        df: DataFrame,
        plan: str,
        gateway: Gateway,
        *,
        is_plan: bool = False,
        ordered: DataFrame | None = None,
    ) -> None:
        self.df = df
        self._ordered = ordered
        self._is_plan = is_plan
        self._plan = plan
        self._gateway = gateway

    @property
    def is_plan(self) -> bool:
        """Whether its rows are the text of a plan, and not those of a query."""
        return self._is_plan

    @property
    def ordered(self) -> DataFrame:
        """The same rows, in order of time if they have one: what is shown and collected."""
        return self.df if self._ordered is None else self._ordered

    def at(self, instant: Any) -> Relation:  # noqa: ARG002 - of relations that vary
        """The relation at an instant of rowtime.

        Parameters
        ----------
        instant
            What the rowtime's type holds: an int of its unit, a date, a datetime, or a text of one.

        Raises
        ------
        UsageError
            ``NOT_VARYING`` for a table, which is the same at all instants, ``INVALID_INSTANT``.
        """
        raise self._does_not_vary()

    def changelog(
        self,
        envelope: str = "delta",  # noqa: ARG002 - of relations that vary
        key: str | Sequence[str] = (),  # noqa: ARG002
    ) -> Relation:
        """What enters and leaves the relation, and when.

        Parameters
        ----------
        envelope
            ``"delta"``: the columns, ``_change_type``, ``_commit_version``, ``_commit_timestamp``; ``"op"``:
            ``_op``, ``_at``, the columns; ``"diff"``: the columns, ``_diff``, ``_at``; ``"cql"``:
            ``timestamp``, ``kind``, ``tuple``.
        key
            Columns that tell which row is which. Where a row of a key leaves as one of the same key enters,
            that is an update: ``update_preimage`` and ``update_postimage`` in ``"delta"``, -U and +U in
            ``"op"``.

        Raises
        ------
        UsageError
            ``NOT_VARYING``, ``UNKNOWN_ENVELOPE``, ``INVALID_ARGUMENT`` for a key in another envelope.
        AnalysisError
            ``UNRESOLVED_COLUMN``, ``AMBIGUOUS_REFERENCE``, ``UNORDERABLE_TYPE`` of the key.
        """
        raise self._does_not_vary()

    @property
    def late(self) -> Relation:
        """The rows that came late to the recorded streams that this is made of, which are not in it.

        Their columns are ``stream``, ``row`` (as JSON), ``rowtime``, ``bound``: what was promised before and
        is violated, and ``producer``.

        Raises
        ------
        UsageError
            ``NOT_VARYING`` for what is made of no stream.
        """
        raise self._does_not_vary()

    def start(
        self,
        sink: str | Path | Memory | Callable[[DataFrame, int], object],
        *,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, Any] | None = None,
        envelope: str = "delta",
        on_late: Literal["keep", "fail"] = "keep",
    ) -> LiveQuery:
        """Start a query over live or named streams: its rows are given as they come.

        Parameters
        ----------
        sink
            Where its rows go: a folder, in which every micro-batch with rows is one Parquet file;
            ``"console"``; a :class:`windrow.Memory`; or a function of a DataFrame and the number of the
            micro-batch, which may be called twice with the same number.
        checkpoint
            A folder of its own, with which it goes on where it was when it is started again. Without, it
            starts anew each time.
        trigger
            As ``DataStreamWriter.trigger`` takes it: ``{"processingTime": "1 second"}``,
            ``{"availableNow": True}``.
        envelope
            The form of the changelog of a relation, as :meth:`changelog` has it. Streams give their rows.
        on_late
            What becomes of late rows: ``"keep"`` them apart, in ``query.late``, or ``"fail"``.

        Raises
        ------
        WindrowError
            ``NOT_LIVE`` for a query over none, ``CHECKPOINT_OF_ANOTHER_QUERY``, ``CHECKPOINT_VERSION``,
            ``CHECKPOINT_IN_USE``, ``UNKNOWN_SINK``, ``UNKNOWN_ENVELOPE``.
        """
        if self._live is None:
            raise UsageError(
                "this relation is made of no live or named stream",
                condition="NOT_LIVE",
                hint="what is recorded is computed at once: relation.show(), relation.df",
            )
        return LiveQuery(
            self._live, sink, checkpoint=checkpoint, trigger=trigger, envelope=envelope, on_late=on_late
        )

    def _does_not_vary(self) -> UsageError:
        return UsageError(
            "this relation does not vary in time",
            condition="NOT_VARYING",
            hint="windows of streams do: SELECT … FROM s [RANGE 10 MINUTES]",
        )

    def show(self, n: int = 20, truncate: bool | int = True) -> None:
        """Print the first `n` rows as a table; long values are cut unless `truncate` is False."""
        if self._is_plan:
            print(self._plan)  # noqa: T201 - a table would break its lines
            return
        with self._gateway.translated():
            self.ordered.show(n, truncate)

    def collect(self) -> list[Row]:
        """All rows, on the driver."""
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

    def explain(self, spark: bool = False) -> None:
        """Print how the query is run; with `spark`, Spark's own plan after it."""
        print(self.plan(spark))  # noqa: T201 - it is what one calls it for

    def plan(self, spark: bool = False) -> str:
        """The text that :meth:`explain` prints."""
        if not spark:
            return self._plan
        return f"{self._plan}\n\n{self._gateway.spark_plan(self.df, 'formatted')}"

    def _repr_html_(self) -> str:
        if self._is_plan:
            return f"<pre>{html.escape(self._plan)}</pre>"
        with self._gateway.translated():
            rows = self.ordered.limit(_HTML_ROWS + 1).collect()
        names = self.df.columns
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows[:_HTML_ROWS])
        more = f"<p>first {_HTML_ROWS} rows</p>" if len(rows) > _HTML_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        columns = ", ".join(
            f"{field.name}: {field.dataType.simpleString()}" for field in self.df.schema.fields
        )
        return f"Relation[{columns}]"


class VaryingRelation(Relation):
    """A relation that varies in time. Its rows are those at the last instant of the logs."""

    def __init__(
        self, varying: Varying, plan: str, gateway: Gateway, *, live: LivePlan | None = None
    ) -> None:
        self._varying, self._live = varying, live
        self._plan, self._gateway, self._is_plan, self._ordered = plan, gateway, False, None

    @cached_property
    def df(self) -> DataFrame:  # type: ignore[override]
        """The rows at the last instant of the logs."""
        with self._gateway.translated():
            return self._varying.now()

    def at(self, instant: Any) -> Relation:
        """The relation at an instant of rowtime: see :meth:`Relation.at`."""
        tick = tick_of(self._gateway, self._varying.clock, instant)
        return Relation(self._varying.at(tick), f"{self._plan}\n\nat {instant}", self._gateway)

    @property
    def late(self) -> Relation:
        """The late rows: see :attr:`Relation.late`."""
        return _late(self._gateway, self._varying.streams, self._varying.clock)

    def changelog(self, envelope: str = "delta", key: str | Sequence[str] = ()) -> Relation:
        """What enters and leaves, and when: see :meth:`Relation.changelog`."""
        keys = [(name, None) for name in ([key] if isinstance(key, str) else key)]
        with self._gateway.translated():
            frame, ordered = (
                changelog(self._varying, envelope, key=keys, ordered=order) for order in (False, True)
            )
        return Relation(frame, f"{self._plan}\n\nits changelog", self._gateway, ordered=ordered)

    def __repr__(self) -> str:
        columns = zip(self._varying.names, self._varying.frame.schema, strict=False)
        shown = ", ".join(f"{name}: {field.dataType.simpleString()}" for name, field in columns)
        return f"VaryingRelation[{shown}]"


class StreamRelation(Relation):
    """A stream. Its rows have their rowtime as the first column, and are shown in order of it."""

    def __init__(self, stream: Stream, plan: str, gateway: Gateway, *, live: LivePlan | None = None) -> None:
        super().__init__(stream.df(), plan, gateway, ordered=stream.df(ordered=True))
        self._stream, self._live = stream, live

    @property
    def late(self) -> Relation:
        """The late rows: see :attr:`Relation.late`."""
        return _late(self._gateway, (self._stream,), self._stream.clock)


class NamedStreamRelation(Relation):
    """The rows of a named stream that have been recorded so far.

    Attributes
    ----------
    stream
        The stream in its folder.
    """

    def __init__(self, rows: Relation, stream: NamedStream) -> None:
        super().__init__(rows.df, rows.plan(), rows._gateway)
        self.stream = stream

    def producer(
        self, name: str, *, late: LateRows = "keep", lease: float = LEASE_SECONDS, wait: float = 0.0
    ) -> Producer:
        """Attach a producer: see :meth:`windrow.streams.NamedStream.producer`."""
        return self.stream.producer(name, late=late, lease=lease, wait=wait)


def _late(gateway: Gateway, streams: Sequence[Stream], clock: Clock) -> Relation:
    """The late rows of all streams, each once."""
    frame = gateway.spark.createDataFrame([], LATE.format(kind=clock.kind))
    found = {name: rows for stream in streams for name, rows in stream.on(clock).all_late()}
    for name in sorted(found):
        frame = frame.unionByName(found[name])
    return Relation(frame, "late rows", gateway)


class LiveRelation(Relation):
    """A query over live streams: its rows come as long as it runs."""

    def __init__(self, live: LivePlan, result: Varying | Stream | DataFrame, plan: str) -> None:
        self._live, self._plan, self._gateway = live, plan, live.gateway
        self._is_plan, self._ordered = False, None
        self._names = list(result.columns if isinstance(result, DataFrame) else result.shown)

    @property
    def df(self) -> DataFrame:  # type: ignore[override]
        """Refused: there is no end of its rows.

        Raises
        ------
        UsageError
            ``LIVE_RELATION``.
        """
        raise UsageError(
            "this relation is live: its rows come as long as it runs",
            condition="LIVE_RELATION",
            hint="relation.start('folder', checkpoint='folder of its own') starts it",
        )

    def __repr__(self) -> str:
        return f"LiveRelation[{', '.join(self._names)}]"


def _cell(value: Any) -> str:
    return f"<td>{'NULL' if value is None else html.escape(str(value))}</td>"

"""SELECT STREAM over whole live streams, ready to be started: it waits for punctuation and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from windrow.algebra.continuous import Query
from windrow.algebra.time_scale import TimeScale, common_scale
from windrow.errors import AnalysisError, WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.punctuated.expected_punctuation import bounded
from windrow.spark.live.plans.live_plan import ReaderPlan, texts_of
from windrow.spark.live.plans.read_names import views_of
from windrow.spark.live.reading.unbounded_state import unbounded
from windrow.spark.live.reading.whole_stream_queries import Blocking, blocking, in_order_of
from windrow.spark.logs.clause_view import Unbounded
from windrow.spark.logs.columns_taken import TextPlace, columns_taken
from windrow.spark.logs.storable import in_spark
from windrow.streams import NamedStream

__all__ = ["NOT_CLOSED", "WholeStreamsPlan"]

NOT_CLOSED = "rows that are not closed yet"
"""The description of state that bounds and punctuations drop."""


@dataclass(frozen=True)
class WholeStreamsPlan(ReaderPlan):
    """A query of live streams without windows.

    Attributes
    ----------
    names
        The columns that it returns.
    within
        How far rows of the stream that is ordered may be out of order, in ticks of its time scale.
    written
        The text with the words that reading removes, for errors; None if there are none.
    in_order
        Which of its columns is the rowtime of the stream that its rows go into, if that is in order.
    """

    query: Query
    names: tuple[str, ...]
    within: Mapping[str, int] = field(default_factory=dict)
    written: str | None = None
    in_order: int | None = None

    @property
    def scale(self) -> TimeScale:
        """The unit of instants."""
        return common_scale(self.catalog.streams[name].scale for name in self.streams)

    @property
    def columns(self) -> list[str]:
        """The columns of its output."""
        return list(self.names)

    @cached_property
    def blocking(self) -> Blocking:
        """Its operators.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_STREAM``.
        """
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        try:
            found = blocking(gateway, self.catalog, self.reader, self.query, self.names)
        except WindrowError as error:
            if error.sql == self.text:
                error.sql = self.written or self.text
            raise self.gateway.as_written(error) from error.__cause__
        return found if self.in_order is None else in_order_of(found, self.in_order)

    def into(self, stream: NamedStream, columns: Sequence[str] | None) -> WholeStreamsPlan:
        """The query with its rows in the order of a stream, if that is ordered."""
        targets = columns_taken(stream, self.names, columns, TextPlace(self.written or self.text, self.span))
        rowtime = stream.definition.rowtime.column
        if stream.definition.ordering.lag is None or rowtime not in targets:
            return self
        return replace(self, in_order=targets.index(rowtime))

    def fingerprint(self) -> dict[str, Any]:
        """The identity of the query."""
        by = {} if self.in_order is None else {"order": self.names[self.in_order]}
        return {**super().fingerprint(), **by, "state": "plan, of rows that are there"}

    def refuse_no_stream(self) -> None:
        """Accept any query: the target stream defines the rowtime column."""

    def refuse_into(self, stream: NamedStream, columns: tuple[str, ...]) -> None:
        """Refuse a stream if no column of the query goes into its rowtime.

        Raises
        ------
        AnalysisError
            ``RELATION_WHERE_STREAM_IS_NEEDED``, ``MIXED_ROWTIMES``.
        """
        rowtime = stream.definition.rowtime.column
        if rowtime not in columns:
            raise AnalysisError(
                f"the query selects no column for {rowtime}, the rowtime of the stream",
                condition="RELATION_WHERE_STREAM_IS_NEEDED",
                sql=self.written or self.text,
                span=self.span,
                hint="select one, such as a GROUP BY key, MAX(ts) or window_end; or start the query into a"
                " table",
            )
        selected = self.blocking.result[columns.index(rowtime)].dataType.simpleString()
        wanted = in_spark(stream)[rowtime].dataType.simpleString()
        if selected != wanted:
            raise AnalysisError(
                f"the column for {rowtime} is of type {selected.upper()}, but the rowtime is of type"
                f" {wanted.upper()}",
                condition="MIXED_ROWTIMES",
                sql=self.written or self.text,
                span=self.span,
                hint="cast it to the type of the rowtime",
            )

    def views(self) -> dict[str, str]:
        """The texts of the views that it reads."""
        return texts_of(self.catalog, views_of(self.catalog, self.query))

    def unbounded(self) -> Sequence[Unbounded]:
        """The operators with unbounded state."""
        return unbounded(self.blocking, {name: bounded(self.catalog, name) for name in self.streams})

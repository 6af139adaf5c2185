"""A query over whole streams that live: what it waits for are punctuations and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from windrow.algebra.clock import Clock, common_clock
from windrow.algebra.continuous import Query
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.live.blocking import Blocking, blocking
from windrow.spark.live.bounding import unbounded
from windrow.spark.live.expected import bounded
from windrow.spark.live.plan import ReaderPlan, Unbounded, texts_of
from windrow.spark.live.runner import views_of
from windrow.spark.stored import in_spark
from windrow.streams import NamedStream

__all__ = ["BlockingPlan"]


@dataclass(frozen=True)
class BlockingPlan(ReaderPlan):
    """A query of live streams without windows.

    Attributes
    ----------
    names
        The columns that it gives.
    within
        By how many ticks of its clock rows may come out of order, of the stream that is put in order.
    written
        The text with the words that reading leaves out, for errors; None where it has none.
    """

    query: Query
    names: tuple[str, ...]
    within: Mapping[str, int] = field(default_factory=dict)
    written: str | None = None

    @property
    def clock(self) -> Clock:
        """What instants are counted in."""
        return common_clock(self.catalog.streams[name].clock for name in self.streams)

    @property
    def columns(self) -> list[str]:
        """Those that it gives."""
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
            return blocking(gateway, self.catalog, self.reader, self.query, self.names)
        except WindrowError as error:
            if error.sql == self.text:
                error.sql = self.written or self.text
            raise self.gateway.as_written(error) from error.__cause__

    def refuse_no_stream(self) -> None:
        """Refuse nothing: which column holds rowtimes, the stream says into which the rows go."""

    def refuse_into(self, stream: NamedStream, columns: tuple[str, ...]) -> None:
        """Refuse a stream that is in order, or whose rowtime no column of the query is for.

        Raises
        ------
        AnalysisError
            ``RELATION_WHERE_STREAM_IS_NEEDED``, ``MIXED_ROWTIMES``.
        NotSupportedError
            ``UNSUPPORTED_STREAM``.
        """
        rowtime = stream.definition.rowtime.column
        if rowtime not in columns:
            raise AnalysisError(
                f"no column of this query is for {rowtime}, the rowtime of the stream",
                condition="RELATION_WHERE_STREAM_IS_NEEDED",
                sql=self.written or self.text,
                span=self.span,
                hint="select it: a key of groups, MAX(ts), window_end; or start the query into a table",
            )
        given = self.blocking.result[columns.index(rowtime)].dataType.simpleString()
        wanted = in_spark(stream)[rowtime].dataType.simpleString()
        if given != wanted:
            raise AnalysisError(
                f"the column for {rowtime} is of type {given.upper()}, and the rowtime {wanted.upper()}",
                condition="MIXED_ROWTIMES",
                sql=self.written or self.text,
                span=self.span,
                hint="cast it to the type of the rowtime",
            )
        if stream.definition.ordering.lag is not None:
            raise NotSupportedError(
                "rows that are given when they are final, in no order of time, into a stream that is in order"
                " are not supported",
                condition="UNSUPPORTED_STREAM",
                sql=self.written or self.text,
                span=self.span,
                hint="make the stream UNORDERED",
            )

    def views(self) -> dict[str, str]:
        """The texts of the views that it reads."""
        return texts_of(self.catalog, views_of(self.catalog, self.query))

    def unbounded(self) -> Sequence[Unbounded]:
        """The operators whose state grows as long as the query runs."""
        return unbounded(self.blocking, {name: bounded(self.catalog, name) for name in self.streams})

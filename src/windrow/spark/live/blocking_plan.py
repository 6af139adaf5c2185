"""A query over whole streams that live: what it waits for are punctuations and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from windrow.algebra.clock import Clock, common_clock
from windrow.algebra.continuous import Query
from windrow.errors import WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.live.blocking import Blocking, blocking
from windrow.spark.live.bounding import unbounded
from windrow.spark.live.expected import bounded
from windrow.spark.live.plan import ReaderPlan, Unbounded

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
            raise

    def views(self) -> dict[str, str]:
        """The texts of the views that it reads: none, as views of streams are not read."""
        return {}

    def unbounded(self) -> Sequence[Unbounded]:
        """The operators whose state grows as long as the query runs."""
        return unbounded(self.blocking, {name: bounded(self.catalog, name) for name in self.streams})

"""A query over live streams, ready to be started."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from windrow.algebra.clock import Clock
from windrow.algebra.continuous import Continuous, Reader
from windrow.spark.gateway import Gateway
from windrow.spark.live.runner import LiveRunner, Span, views_of
from windrow.spark.streams import Catalog

__all__ = ["LivePlan"]


@dataclass(frozen=True)
class LivePlan:
    """A query over live streams, and all that is needed to run it."""

    gateway: Gateway
    catalog: Catalog
    reader: Reader
    query: Continuous
    execution: str
    streams: frozenset[str]

    @cached_property
    def clock(self) -> Clock:
        """What instants are counted in."""
        nothing = Span(None, 0, 0, {}, lambda _: None)
        runner = LiveRunner(self.gateway, self.catalog, self.reader, self.execution, nothing)
        return runner.clock_of(self.query)

    def fingerprint(self) -> dict[str, Any]:
        """What tells it from other queries."""
        streams = {
            name: [
                *self.catalog.streams[name].frame.schema.simpleString().split(","),
                str(live.ordering),
                live.identity,
            ]
            for name in sorted(self.streams)
            if (live := self.catalog.streams[name].live) is not None
        }
        views = {
            name: hashlib.sha256(definition.reader.tokens.sql.encode()).hexdigest()
            for name, definition in sorted(self.catalog.definitions.items())
            if name in views_of(self.catalog, self.query)
        }
        return {
            "text": self.reader.tokens.sql, "clock": str(self.clock), "streams": streams, "views": views,
        }  # fmt: skip

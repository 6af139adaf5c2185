"""The watermark of a stream with several producers, as each bucket of a live query has it."""

from __future__ import annotations

from dataclasses import dataclass, field

from windrow.streams.admission.watermark import Ordering, WatermarkState

__all__ = ["SharedWatermark"]


@dataclass(frozen=True, slots=True)
class SharedWatermark:
    """The state of the watermark after all entries so far, of whatever bucket."""

    state: WatermarkState = field(default_factory=WatermarkState)

    @staticmethod
    def of(data: str) -> SharedWatermark:
        """The watermark of its :attr:`data`."""
        return SharedWatermark(WatermarkState.from_json(data))

    @property
    def data(self) -> str:
        """The watermark for JSON."""
        return self.state.to_json()

    def watermark(self, ordering: Ordering) -> int | None:  # noqa: ARG002 - it is in the state
        """The watermark; None while there is none."""
        return self.state.value

    def now(self, ordering: Ordering) -> WatermarkState:  # noqa: ARG002 - it is in the state
        """The state of the watermark."""
        return self.state

    def due(self, idle: int | None) -> int | None:
        """When the first producer becomes idle that is silent from now on; None for never."""
        if idle is None:
            return None
        heard = [known.heard for known in self.state.producers.values() if known.is_open]
        return min(heard) + idle if heard else None

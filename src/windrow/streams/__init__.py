"""Named streams: a durable log in a folder, its many producers, and its clock.

It imports numpy, pandas, pyarrow, ``windrow.errors`` and ``windrow.tracebacks`` only.
"""

from windrow.streams.admission.clock import ClockState, Ordering
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, EntryKind
from windrow.streams.log_position import Batch, Position
from windrow.streams.producer import Producer, Receipt
from windrow.streams.stream import NamedStream

__all__ = [
    "FOREVER",
    "NO_BOUND",
    "Batch",
    "ClockState",
    "Decision",
    "EntryKind",
    "NamedStream",
    "Ordering",
    "Position",
    "Producer",
    "Receipt",
]

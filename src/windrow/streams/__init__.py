"""Named streams: a durable log in a folder, its producers, and its watermark.

It imports numpy, pandas, pyarrow, ``windrow.errors`` and ``windrow.tracebacks`` only.
"""

from windrow.streams.admission.watermark import Ordering, WatermarkState
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, EntryKind
from windrow.streams.log_position import Batch, Position
from windrow.streams.producer import Producer, Receipt
from windrow.streams.stream import NamedStream

__all__ = [
    "FOREVER",
    "NO_BOUND",
    "Batch",
    "Decision",
    "EntryKind",
    "NamedStream",
    "Ordering",
    "Position",
    "Producer",
    "Receipt",
    "WatermarkState",
]

"""The account of a bucket after a micro-batch: counts of rows, and the size of its state."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["BucketAccount"]


@dataclass
class BucketAccount:
    """The account of a bucket.

    Attributes
    ----------
    now
        The time of the micro-batch, in microseconds.
    arrived, used, late, rejected, quarantined
        How many rows arrived in it, how many were used, and how many of the rows so far are below an
        estimate, below a punctuation, and too far ahead of their processing time, by the number of their
        stream.
    quarantined_bounds
        How many bounds of each stream so far are too far ahead, in all parts; it is the same in all buckets.
    for_groups
        Of the rows so far, those that are late for a group.
    apart
        How many rows of each stream it emits as late ones.
    waiting, oldest_waiting
        The buffered rows of each stream, and the first rowtime among them.
    retained, oldest, size
        The retained rows of each side, the first rowtime among them, and the stored bytes.
    groups, stored
        The state of operators in place of rows, and its stored bytes.
    due
        When the query needs a tick, in microseconds, if no entry arrives before; None for never.
    marks
        The watermark information of each stream, which :func:`.judging.mark_of` reads.
    """

    now: int = 0
    arrived: dict[int, int] = field(default_factory=dict)
    used: int = 0
    late: dict[int, int] = field(default_factory=dict)
    rejected: dict[int, int] = field(default_factory=dict)
    quarantined: dict[int, int] = field(default_factory=dict)
    quarantined_bounds: dict[int, int] = field(default_factory=dict)
    for_groups: int = 0
    apart: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    oldest_waiting: dict[int, int | None] = field(default_factory=dict)
    retained: dict[int, int] = field(default_factory=dict)
    oldest: dict[int, int | None] = field(default_factory=dict)
    size: dict[int, int] = field(default_factory=dict)
    groups: int = 0
    stored: int = 0
    due: int | None = None
    marks: dict[int, Any] = field(default_factory=dict)

    @property
    def note(self) -> str:
        """The account as the note of a packet."""
        return json.dumps({"kind": "account", **asdict(self)})

    @staticmethod
    def read(note: str) -> BucketAccount | None:
        """The account in a note; None if the note is something else."""
        stored = json.loads(note)
        if stored.pop("kind") != "account":
            return None
        return BucketAccount(**{name: _by_number(values) for name, values in stored.items()})


def _by_number(values: Any) -> Any:
    """Without JSON's texts for numbers."""
    return {int(at): value for at, value in values.items()} if isinstance(values, dict) else values

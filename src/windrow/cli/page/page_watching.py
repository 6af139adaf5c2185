"""The data of the page about live queries: their progress, their state, their latest rows."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from windrow.spark.live import LiveQuery

__all__ = ["Watching"]

_BATCHES = 120
_LATEST = 12


@dataclass
class _Watched:
    """The progress of a query's last micro-batches, its state after one of them, and its latest rows."""

    batches: deque[Mapping[str, Any]] = field(default_factory=lambda: deque(maxlen=_BATCHES))
    state: tuple[int, list[dict[str, Any]]] = (-1, [])
    latest: list[dict[str, str | None]] = field(default_factory=list)


class Watching:
    """Collects the progress of queries, and returns it as the object that the page reads as JSON.

    Parameters
    ----------
    queries
        The running queries; the data of one remains when it has ended.
    now
        The time, in seconds.
    """

    def __init__(
        self, queries: Callable[[], Iterable[LiveQuery]], now: Callable[[], float] = time.time
    ) -> None:
        self._queries, self._now = queries, now
        self._seen: dict[str, LiveQuery] = {}
        self._watched: dict[str, _Watched] = {}
        self._latest: deque[Mapping[str, str | None]] = deque(maxlen=_LATEST)
        self._lock = threading.Lock()

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Add the progress of a micro-batch."""
        with self._lock:
            watched = self._watched.setdefault(progress["query"], _Watched())
            watched.batches.append({**progress, "at": self._now()})

    def rows(self, columns: Sequence[str], rows: Iterable[Sequence[str | None]]) -> None:
        """Add emitted rows."""
        with self._lock:
            self._latest.extend(dict(zip(columns, row, strict=True)) for row in rows)

    def __call__(self) -> dict[str, Any]:
        """The current data of the page."""
        for query in self._queries():
            self._seen[query.name] = query
        found = [self._of(query) for query in list(self._seen.values())]
        with self._lock:
            return {"now": self._now(), "queries": found, "latest": list(self._latest)}

    def _of(self, query: LiveQuery) -> dict[str, Any]:
        failure = query.failure
        with self._lock:
            watched = self._watched.setdefault(query.name, _Watched())
            batches, (number, state), latest = list(watched.batches), watched.state, watched.latest
        last = batches[-1] if batches else {}
        if batches and number != last["batch"]:
            state = [asdict(row) for row in query.state_rows()]
            latest = _as_texts(query.latest(_LATEST))
            with self._lock:
                watched.state, watched.latest = (last["batch"], state), latest
        return {
            "name": query.name,
            "text": query.text.strip(),
            "active": query.is_active,
            "failure": None if failure is None else str(failure),
            "progress": last,
            "steps": [{name: batch[name] for name in _OF_BATCHES} for batch in batches],
            "state": state,
            "latest": latest,
        }


def _as_texts(rows: pa.Table | None) -> list[dict[str, str | None]]:
    """Rows of a table with every value as a text."""
    found = [] if rows is None else rows.to_pylist()
    return [{name: None if value is None else str(value) for name, value in row.items()} for row in found]


_OF_BATCHES = (
    "at",
    "batch",
    "batch_rows_in",
    "batch_rows_emitted",
    "seconds",
    "rows_per_second",
    "rows_late",
    "state_bytes",
)

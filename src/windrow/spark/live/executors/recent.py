"""The buckets that a process has used last."""

from __future__ import annotations

import threading
from typing import Generic, Protocol, TypeVar

from windrow.spark.live.executors.bucket_task import BucketTask

__all__ = ["Recent"]

_MOST = 1 << 28
"""The most bytes of cached buckets: another process may own them by now."""


class Cached(Protocol):
    """The state of a bucket."""

    @property
    def size(self) -> int:
        """The bytes of the stored state."""


Of = TypeVar("Of", bound=Cached)


class Recent(Generic[Of]):
    """Buckets by a generated name; the least recently used ones are evicted. Threads may share it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[str, BucketTask, Of]] = {}
        self._one_at_a_time = threading.Lock()

    def task_of(self, name: str, version: str) -> BucketTask | None:
        """The task of the bucket of a name; None if the bucket is not here in this version."""
        with self._one_at_a_time:
            found = self._known.get(name)
        return found[1] if found is not None and found[0] == version else None

    def take(self, name: str, version: str) -> Of | None:
        """The bucket of a name, which is no longer here then; None if it is not here in this version."""
        with self._one_at_a_time:
            found = self._known.get(name)
            if found is None or found[0] != version:
                return None
            del self._known[name]
            return found[2]

    def add(self, name: str, version: str, task: BucketTask, bucket: Of) -> None:
        """Add a bucket in a version."""
        with self._one_at_a_time:
            self._known.pop(name, None)
            self._known[name] = version, task, bucket
            size = sum(one.size for _, _, one in self._known.values())
            for other in list(self._known):
                if size <= _MOST or other == name:
                    break
                size -= self._known.pop(other)[2].size

    def drop(self, name: str) -> None:
        """Drop a bucket, which is here no longer in its last version."""
        with self._one_at_a_time:
            self._known.pop(name, None)

    def clear(self) -> None:
        """Drop all, as a new process has none."""
        with self._one_at_a_time:
            self._known.clear()

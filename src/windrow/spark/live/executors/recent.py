"""The buckets that a process has used last."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

__all__ = ["Recent"]

_MOST = 1 << 28
"""The most bytes of cached buckets: another process may own them by now."""


class Cached(Protocol):
    """The state of a bucket."""

    @property
    def token(self) -> str:
        """A text that distinguishes it from that after any other micro-batch."""

    @property
    def size(self) -> int:
        """The bytes of the stored state."""


Of = TypeVar("Of", bound=Cached)


class Recent(Generic[Of]):
    """Buckets by a generated name; the least recently used ones are evicted."""

    def __init__(self) -> None:
        self._known: dict[str, Of] = {}

    def of(self, name: str, token: str) -> Of | None:
        """The bucket of a name with this token; None if another process has changed it."""
        found = self._known.get(name)
        return found if found is not None and found.token == token else None

    def drop(self, name: str) -> None:
        """Drop a bucket."""
        self._known.pop(name, None)

    def add(self, name: str, bucket: Of) -> None:
        """Add a bucket."""
        self._known[name] = bucket
        size = sum(one.size for one in self._known.values())
        for other in list(self._known):
            if size <= _MOST or other == name:
                break
            size -= self._known.pop(other).size

    def clear(self) -> None:
        """Drop all, as a new process has none."""
        self._known.clear()

"""The function that Spark calls for the packets of a bucket, and its view of the state store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache, cached_property
from itertools import chain
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from windrow.errors import WindrowError
from windrow.spark.live.executors import bucket, onward
from windrow.spark.live.executors.bucket_state import Packet, Store
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.input.packing import BUCKET, DATA, NOTE
from windrow.spark.live.executors.onward import bucket_of
from windrow.spark.live.executors.owners import QueryPart, Workers, workers
from windrow.spark.tasks.exchange import as_runtime_error

__all__ = ["BucketProcessor"]

_PIECE = 16 << 20
"""Bytes of a value in the state store."""


class BucketProcessor(StatefulProcessor):
    """Advances buckets by micro-batches.

    Parameters
    ----------
    task, sql
        The query, and its text.
    is_onward
        Whether the buckets are those of its second part.
    """

    def __init__(self, task: BucketTask, sql: str, *, is_onward: bool = False) -> None:
        self._task, self._sql, self._is_onward = task, sql, is_onward

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Name the state."""
        self._text = handle.getValueState("bucket", "text string")
        self._bytes = handle.getMapState("chunks", "name string, number bigint, piece int", "data binary")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Any],
        timerValues: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        """The output of the bucket for the packets of a micro-batch."""
        task, store = self._task, _StateStore(self._text, self._bytes)
        pairs = (zip(frame[NOTE], frame[DATA], strict=True) for frame in rows)
        packets = [*chain.from_iterable(pairs)]
        part, is_first = "second" if self._is_onward else "first", int(key[0]) == task.buckets[0]
        try:
            for note, data in _workers().advanced(part, task, store, packets, is_first=is_first):
                if self._is_onward or task.onward is None:
                    yield pd.DataFrame({NOTE: [note], DATA: [data]})
                else:
                    to = bucket_of(task.onward, note)
                    yield pd.DataFrame({BUCKET: [to], NOTE: [note], DATA: [data]})
        except WindrowError as error:
            raise as_runtime_error(error, self._sql) from error

    def close(self) -> None:
        """Nothing to release."""


@cache
def _workers() -> Workers:
    """The workers of this executor."""
    return workers(
        {"first": QueryPart(bucket.advanced, bucket.RECENT), "second": QueryPart(_second, onward.RECENT)}
    )


def _second(
    task: BucketTask,
    store: Store,
    packets: Iterable[Packet],
    *,
    is_first: bool,  # noqa: ARG001 - all buckets do the same
) -> Iterator[Packet]:
    return onward.advanced_onward(task, store, packets)


class _StateStore:
    """The state of a bucket: its text, and bytes in pieces."""

    def __init__(self, text: Any, pieces: Any) -> None:
        self._text, self._pieces = text, pieces

    @cached_property
    def _known(self) -> str | None:
        found = self._text.get()
        return None if found is None else found[0]

    def text(self) -> str | None:
        return self._known

    def save(self, text: str) -> None:
        self._text.update((text,))
        self._known = text

    def read(self, name: str, number: int) -> bytes:
        parts, piece = [], 0
        while (found := self._pieces.getValue((name, number, piece))) is not None:
            parts.append(bytes(found[0]))
            piece += 1
        return b"".join(parts)

    def write(self, name: str, number: int, data: bytes) -> None:
        for piece, start in enumerate(range(0, len(data), _PIECE)):
            self._pieces.updateValue((name, number, piece), (data[start : start + _PIECE],))

    def drop(self, name: str, number: int) -> None:
        piece = 0
        while self._pieces.containsKey((name, number, piece)):
            self._pieces.removeKey((name, number, piece))
            piece += 1

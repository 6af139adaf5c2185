"""The function that Spark calls for the packets of a bucket, and its view of the state store."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import pandas as pd
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from windrow.errors import WindrowError
from windrow.spark.live.executors.bucket import advanced
from windrow.spark.live.executors.bucket_task import BucketTask
from windrow.spark.live.executors.onward import advanced_onward, bucket_of
from windrow.spark.live.executors.packing import BUCKET, DATA, NOTE
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
        task, store, own = self._task, _StateStore(self._text, self._bytes), int(key[0])
        pairs = (zip(frame[NOTE], frame[DATA], strict=True) for frame in rows)
        packets = chain.from_iterable(pairs)
        try:
            if self._is_onward or task.onward is None:
                advance = advanced_onward if self._is_onward else advanced
                for note, data in advance(task, store, packets):
                    yield pd.DataFrame({NOTE: [note], DATA: [data]})
                return
            for note, data in advanced(task, store, packets, is_first=own == task.buckets[0]):
                to = bucket_of(task.onward, note)
                yield pd.DataFrame({BUCKET: [to], NOTE: [note], DATA: [data]})
        except WindrowError as error:
            raise as_runtime_error(error, self._sql) from error

    def close(self) -> None:
        """Nothing to release."""


class _StateStore:
    """The state of a bucket: its text, and bytes in pieces."""

    def __init__(self, text: Any, pieces: Any) -> None:
        self._text, self._pieces = text, pieces

    def text(self) -> str | None:
        found = self._text.get()
        return None if found is None else found[0]

    def save(self, text: str) -> None:
        self._text.update((text,))

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

"""The log of a named stream as a Spark data source, whose offsets are positions in the log.

An offset has the number of a file and its checksum; offsets of earlier versions have the number alone.

Workers import this module, so it imports little.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from windrow.errors import MARK, WindrowError
from windrow.streams import NamedStream
from windrow.streams.chain import START, Place

__all__ = ["FORMAT", "NUMBER", "LogReader", "LogSource", "log_schema", "marked", "offset_of", "place_of"]

FORMAT = "windrow"
"""The name of the source."""

NUMBER = "__number"
"""The column with the number of an entry's file."""

_FOLDER = "folder"
_LIMITS = "pyspark.sql.streaming.datasource"
"""PySpark's module from 4.2 on with read limits of sources."""
_FILES_OF_A_TASK = 500
_BETWEEN_LOOKS = 1.0  # seconds
_DISCONNECTED = (EOFError, BrokenPipeError, ConnectionResetError)
"""The errors of a process whose connection is closed."""


class LogSource(DataSource):
    """The source ``windrow``: the named stream in a ``folder``."""

    def __init__(self, options: dict[str, str]) -> None:
        super().__init__(options)
        _go_quietly()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        _go_quietly()

    @classmethod
    def name(cls) -> str:
        """The name of the source."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the log and `NUMBER`."""
        return log_schema(NamedStream.open(self.options[_FOLDER]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        """The reader of the log."""
        stream = NamedStream.open(self.options[_FOLDER])
        if importlib.util.find_spec(_LIMITS) is None:
            return _WholeLog(stream)
        limited: DataSourceStreamReader = importlib.import_module(
            "windrow.spark.logs.limited_log"
        ).LimitedLog(stream)
        return limited


@contextmanager
def marked() -> Iterator[None]:
    """Mark Windrow's errors, so that they can be found in Spark's error messages."""
    try:
        yield
    except WindrowError as error:
        data = {key: getattr(error, key) for key in ("message", "condition", "sqlstate", "hint")}
        raise RuntimeError(MARK + json.dumps(data | {"sql": None, "span": None})) from error


def _is_own(error: BaseException) -> bool:
    """Whether an error was raised within a function of Windrow."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(frame.f_globals.get("__name__")).startswith("windrow.") for frame in frames)


def log_schema(stream: NamedStream) -> StructType:
    """The columns of a stream's log with Spark's types, and `NUMBER`."""
    return from_arrow_schema(_stored(stream), prefer_timestamp_ntz=True)


def _stored(stream: NamedStream) -> pa.Schema:
    return stream.definition.stored.append(pa.field(NUMBER, pa.int64(), nullable=False))


@dataclass
class _Files(InputPartition):
    """The files after one place, up to another."""

    after: Place
    until: Place


def offset_of(place: Place) -> dict[str, Any]:
    """A position in the log as Spark's offset."""
    return {"number": place.number, "checksum": place.checksum}


def place_of(offset: dict[str, Any]) -> Place:
    """The position in the log of Spark's offset."""
    number = int(offset["number"])
    return Place(number, offset.get("checksum")) if number else START


class LogReader(DataSourceStreamReader):
    """Reads the log from one file to another.

    Attributes
    ----------
    stream
        The stream.
    """

    def __init__(self, stream: NamedStream) -> None:
        self.stream = stream
        self._looked = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as below
        """The position before the first file that is left."""
        with marked():
            return offset_of(self.stream.start.place)

    def last(self, after: Place) -> Place:
        """The last position of the log, which is not before `after`."""
        with marked():
            self.stream.log.verify(after)
            self._expire()
            return self._place(self.stream.log.last(after.number), after)

    def _place(self, number: int, known: Place) -> Place:
        """The position after a file; a known one is returned unchanged, so that its offset stays the same."""
        return known if number == known.number else self.stream.log.place(number)

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Divide the files among tasks."""
        first, last = place_of(start), place_of(end)
        with marked():
            self.stream.log.verify(first)
            self.stream.log.verify(last)
            between = range(first.number + _FILES_OF_A_TASK, last.number, _FILES_OF_A_TASK)
            edges = [first, *map(self.stream.log.place, between), last]
        return [_Files(*files) for files in pairwise(edges) if files[0].number < files[1].number]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the files of a task."""
        assert isinstance(partition, _Files)
        schema = _stored(self.stream)
        log, until = self.stream.log, partition.until
        with marked():
            for entries, place in log.after(partition.after, until.number):
                if place.number == until.number:
                    log.same(until, place)
                numbered = [
                    *entries.columns,
                    pa.repeat(pa.array([place.number])[0], entries.num_rows),
                ]
                yield from pa.table(numbered, schema=schema).to_batches()

    def stop(self) -> None:
        """End the process silently if Spark has disconnected; PySpark would print a traceback."""
        error = sys.exc_info()[1]  # the error that ends PySpark's loop, from which it calls this
        if isinstance(error, _DISCONNECTED) and not _is_own(error):
            os._exit(0)

    def _expire(self) -> None:
        """Expire producers that have died, so that they do not delay the watermark."""
        if time.monotonic() - self._looked >= _BETWEEN_LOOKS:
            self.stream.expire()
            self._looked = time.monotonic()


class _Traces:
    """PySpark's module ``traceback``, without tracebacks of closed connections."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        """Print a traceback, unless it is of a closed connection."""
        if not isinstance(sys.exc_info()[1], _DISCONNECTED):
            traceback.print_exc()


def _go_quietly() -> None:
    """Prevent tracebacks of processes that plan the source, which Spark disconnects when a query stops.

    These processes always belong to PySpark's own daemon, and do nothing else.
    """
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) == "pyspark.daemon":
        main.traceback = _Traces  # type: ignore[attr-defined]


class _WholeLog(LogReader):
    """The reader for PySpark before 4.2: a micro-batch reads all present entries."""

    def __init__(self, stream: NamedStream) -> None:
        super().__init__(stream)
        self._after = START

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override] # noqa: N802
        self._after = self.last(self._after)
        return offset_of(self._after)

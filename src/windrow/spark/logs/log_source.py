"""The log of a named stream as a source of Spark's: its entries, of which the offsets are places in the log.

An offset has the number of a file and its checksum; those of earlier versions have the number alone.

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
"""What the source is called."""

NUMBER = "__number"
"""The column of the number of an entry's file."""

_FOLDER = "folder"
_LIMITS = "pyspark.sql.streaming.datasource"
"""What PySpark has from 4.2 on: sources that are told how much to read at once."""
_FILES_OF_A_TASK = 500
_BETWEEN_LOOKS = 1.0  # seconds
_LET_GO = (EOFError, BrokenPipeError, ConnectionResetError)
"""What a process reads and writes with whose connection is cut."""


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
        """What the source is called."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns of the log and `NUMBER`."""
        return log_schema(NamedStream.open(self.options[_FOLDER]))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's
        """Reads the log as it grows."""
        stream = NamedStream.open(self.options[_FOLDER])
        if importlib.util.find_spec(_LIMITS) is None:
            return _WholeLog(stream)
        limited: DataSourceStreamReader = importlib.import_module(
            "windrow.spark.logs.limited_log"
        ).LimitedLog(stream)
        return limited


@contextmanager
def marked() -> Iterator[None]:
    """Have errors of ours found again in what Spark makes of them."""
    try:
        yield
    except WindrowError as error:
        data = {key: getattr(error, key) for key in ("message", "condition", "sqlstate", "hint")}
        raise RuntimeError(MARK + json.dumps(data | {"sql": None, "span": None})) from error


def _is_own(error: BaseException) -> bool:
    """Whether an error comes from a function of ours."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(str(frame.f_globals.get("__name__")).startswith("windrow.") for frame in frames)


def log_schema(stream: NamedStream) -> StructType:
    """The columns of a stream's log, as Spark has them, and `NUMBER`."""
    return from_arrow_schema(_stored(stream), prefer_timestamp_ntz=True)


def _stored(stream: NamedStream) -> pa.Schema:
    return stream.definition.stored.append(pa.field(NUMBER, pa.int64(), nullable=False))


@dataclass
class _Files(InputPartition):
    """The files after one place, up to another."""

    after: Place
    until: Place


def offset_of(place: Place) -> dict[str, Any]:
    """A place in the log as an offset of Spark's."""
    return {"number": place.number, "checksum": place.checksum}


def place_of(offset: dict[str, Any]) -> Place:
    """The place in the log that an offset of Spark's says."""
    number = int(offset["number"])
    return Place(number, offset.get("checksum")) if number else START


class LogReader(DataSourceStreamReader):
    """Reads the log from one number of a file to another.

    Attributes
    ----------
    stream
        The stream.
    """

    def __init__(self, stream: NamedStream) -> None:
        self.stream = stream
        self._looked = 0.0

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name, as below
        """Begin before the first file."""
        return offset_of(START)

    def last(self, after: Place) -> Place:
        """The last place of the log, which is not before `after`."""
        with marked():
            self.stream.log.verify(after)
            self._expire()
            return self._place(self.stream.log.last(after.number), after)

    def _place(self, number: int, known: Place) -> Place:
        """The place after a file; one that is known as it is, so that an offset stays the same."""
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
        """End the process without a word if Spark has let go of it; PySpark would write a trace to stderr."""
        error = sys.exc_info()[1]  # by which PySpark ends its loop, from which it calls this
        if isinstance(error, _LET_GO) and not _is_own(error):
            os._exit(0)

    def _expire(self) -> None:
        """Let producers that have died hold nothing back: where all have, nobody else would."""
        if time.monotonic() - self._looked >= _BETWEEN_LOOKS:
            self.stream.expire()
            self._looked = time.monotonic()


class _Traces:
    """PySpark's module ``traceback``, but for what Spark itself has brought about."""

    format_exc = staticmethod(traceback.format_exc)

    @staticmethod
    def print_exc() -> None:
        """Print a trace, unless it is of a connection that was cut."""
        if not isinstance(sys.exc_info()[1], _LET_GO):
            traceback.print_exc()


def _go_quietly() -> None:
    """Have no trace printed where Spark lets go of a process that plans the source: a query was stopped.

    Those processes are of PySpark's own daemon, whatever is set for others, and do nothing but that.
    """
    main = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) == "pyspark.daemon":
        main.traceback = _Traces  # type: ignore[attr-defined]


class _WholeLog(LogReader):
    """For PySpark before 4.2: a micro-batch has all that there is."""

    def __init__(self, stream: NamedStream) -> None:
        super().__init__(stream)
        self._after = START

    def latestOffset(self) -> dict[str, Any]:  # type: ignore[override] # noqa: N802
        self._after = self.last(self._after)
        return offset_of(self._after)

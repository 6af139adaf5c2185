"""What tests of named streams share: their columns, what is in them, and producers that die."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest

from windrow.errors import WindrowError
from windrow.streams import NamedStream

ORDERS = pa.schema([("ts", pa.timestamp("us")), ("ticker", pa.string()), ("amount", pa.int32())])
NUMBERS = pa.schema([("at", pa.int64()), ("value", pa.int64())])


def everything(stream: NamedStream):
    return stream.read(stream.start)


def values(stream: NamedStream) -> list[int]:
    return everything(stream)[0].rows.column("value").to_pylist()


def refused(condition: str):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def dead(stream: NamedStream, name: str, **arguments):
    """A producer of a process that has died: nobody renews its lease, and its time has passed."""
    producer = stream.producer(name, lease=1000, **arguments)
    die(producer)
    return producer


def die(producer):
    producer._heart.stop()
    os.utime(producer._lease.path, (1, 1))

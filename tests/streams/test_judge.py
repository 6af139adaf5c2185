"""Entries are judged alike wherever a log is cut, and only where reading stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from windrow.errors import InputError
from windrow.streams import Decision, NamedStream
from windrow.streams.entries import CONTROL, PTIME
from windrow.streams.log_position import judge

SCHEMA = pa.schema([("at", pa.int64())])


@pytest.fixture
def stream(tmp_path):
    stream = NamedStream.create(tmp_path / "s", SCHEMA, "at")
    with stream.producer("a") as producer:
        producer.insert([{"at": 3}, {"at": 2}])
        stream.log.append(stream.log.read(stream.log.last()))
        producer.insert([{"at": 4}])
    return stream


def told(stream, after, last):
    tables = [stream.log.read(number) for number in range(after + 1, last + 1)]
    number = np.repeat(np.arange(after + 1, last + 1), [table.num_rows for table in tables])
    empty = stream.definition.stored.empty_table()
    return pa.concat_tables([empty, *tables]).select(CONTROL.names), number


@pytest.mark.parametrize("cut", range(6))
def test_cuts_change_nothing(stream, cut):
    whole, position = stream.read(stream.start)
    first = judge(stream.start, stream.definition.ordering, *told(stream, 0, cut), timed=True)
    second = judge(first.position, stream.definition.ordering, *told(stream, cut, stream.log.last()))
    assert second.position == replace(position, checksum=None), "who reads the files knows their checksums"
    for name in ("decision", "violated"):
        both = np.concatenate([getattr(first, name), getattr(second, name)])
        assert both.tolist() == getattr(whole, name).tolist()
    ptimes = np.concatenate([first.ptime, second.ptime])
    assert ptimes.tolist() == whole.entries.column(PTIME).to_pylist()
    assert whole.decision.tolist().count(Decision.DUPLICATE) == 2


@pytest.mark.parametrize(("after", "last"), [(0, 2), (2, 4)])
def test_files_that_do_not_follow_are_refused(stream, after, last):
    position = stream.position(1)
    with pytest.raises(InputError, match="MISSING_FILE"):
        judge(position, stream.definition.ordering, *told(stream, after, last))

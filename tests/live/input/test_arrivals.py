"""Micro-batches of a log are judged as all its readers judge, with patterns too; without Spark."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from windrow import WindrowError
from windrow.algebra.time_scale import TimeScale
from windrow.spark.live.input.arrivals import VIOLATED, arrivals
from windrow.spark.logs.live_source import BOUND, LOGGED, NUMBER, PLACE, PRODUCER, PTIME, LiveSource
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.streams import EntryKind, NamedStream, Ordering, Position
from windrow.streams.entries import AT, KIND, PATTERN

COLUMNS = pa.schema([("at", pa.int64()), ("auction", pa.int64()), ("tags", pa.list_(pa.string()))])


def told(stream, after, last):
    """Entries as the source gives them, of some files."""
    tables = [stream.log.read(number) for number in range(after + 1, last + 1)]
    numbers = np.repeat(np.arange(after + 1, last + 1), [table.num_rows for table in tables])
    whole = pa.concat_tables([stream.definition.stored.empty_table(), *tables])
    kinds, at = whole.column(KIND).to_numpy(), whole.column(AT)
    made = {name: whole.column(name) for name in COLUMNS.names}
    made[ROWTIME] = pa.array(at.to_pandas(), pa.int64(), mask=kinds != EntryKind.ROW)
    made[BOUND] = pa.array(at.to_pandas(), pa.int64(), mask=kinds != EntryKind.BOUND)
    made |= {name: whole.column(name) for name in (PRODUCER, PTIME, *LOGGED) if name != NUMBER}
    return pa.table({**made, NUMBER: numbers, PLACE: np.arange(len(whole))})


@pytest.mark.parametrize("cut", range(8))
def test_micro_batches_of_a_log_are_judged_as_its_readers_judge(tmp_path, cut):
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at")
    with stream.producer("p") as p, stream.producer("q") as q:
        p.insert([{"at": 1, "auction": 1}, {"at": 2, "auction": 2}])
        p.punctuate(auction=1)
        p.insert([{"at": 3, "auction": 1}, {"at": 1, "auction": 2}, {"at": 4, "auction": 3}])
        q.insert({"at": 5, "auction": 1})
    last = stream.log.last()
    assert last == 8
    live = LiveSource(None, (), stream.definition.ordering, named=stream)
    scale = TimeScale("bigint", "MILLISECOND")
    known = Stream(None, tuple(COLUMNS.names), scale, ("t0", "t1", "t2"), live=live)
    rows, late, position = [], [], None
    for after, until in ((0, cut), (cut, last)):
        found = arrivals("s", known, told(stream, after, until), position, 0)
        position = Position.from_json(found.position.to_json())
        rows += found.rows.column("auction").to_pylist()
        late += [] if found.late is None else found.late.select(["auction", "at", VIOLATED]).to_pylist()
    whole, end = stream.read(stream.start)
    assert rows == whole.rows.column("auction").to_pylist() == [1, 2, 3, 1]
    assert late == [
        {"auction": 1, "at": 3, VIOLATED: None},
        {"auction": 2, "at": 1, VIOLATED: 2},
    ]
    assert position == replace(end, checksum=None), "Spark's offsets have the checksums"


SAID = [  # producer, rowtime, auction, bound, pattern
    ("p", 1, 1, None, None),
    ("q", 2, 2, None, '{"auction": [1]}'),
    ("p", 3, 1, None, None),
    ("q", 4, 1, None, None),
    ("p", None, None, 3, '{"auction": [1, null], "at": [{"in": {">=": 5}}]}'),
    ("p", 5, 1, None, None),
    ("p", 2, 2, None, None),
    ("r", 4, 1, None, None),
    ("p", 4, None, None, None),
    ("r", 6, 1, None, None),
    ("q", 7, 2, None, '{"auction": [2]}'),
]
#: r opens when p and q have both promised that no row of auction 1 from 5 on follows.
OUT = [(1, 4, None), (1, 5, None), (2, 2, 3), (1, 6, None)]


@pytest.mark.parametrize("cuts", [(), (1,), (2, 5), (4,), (5, 6, 9), range(1, 11)])
def test_patterns_in_a_column_hold_for_the_later_rows_of_their_producer(cuts):
    live = LiveSource(None, (), Ordering.unordered(), declared=frozenset({PRODUCER, BOUND, PATTERN}))
    scale = TimeScale("bigint", "MILLISECOND")
    known = Stream(None, ("at", "auction", "tags"), scale, ("t0", "t1"), live=live)
    names = [PRODUCER, ROWTIME, "auction", BOUND, PATTERN]
    rows, late, position = [], [], None
    for first, stop in pairwise([0, *cuts, len(SAID)]):
        table = pa.Table.from_pylist([dict(zip(names, one, strict=True)) for one in SAID[first:stop]], KINDS)
        table = table.append_column("at", table.column(ROWTIME))
        table = table.append_column("tags", pa.nulls(len(table), pa.list_(pa.string())))
        table = table.append_column(PTIME, pa.repeat(pa.scalar(0, pa.int64()), len(table)))
        found = arrivals("s", known, table.append_column(PLACE, pa.array(np.arange(len(table)))), position, 0)
        position = Position.from_json(found.position.to_json())
        rows += zip(
            found.rows.column("auction").to_pylist(), found.rows.column("at").to_pylist(), strict=True
        )
        if found.late is not None:
            late += [
                tuple(row.values()) for row in found.late.select(["auction", "at", VIOLATED]).to_pylist()
            ]
    assert rows == [(1, 1), (2, 2), (1, 3), (1, 4), (None, 4), (2, 7)]
    assert late == OUT
    wrong = table.set_column(4, PATTERN, pa.array(['{"price": [1]}'] * len(table)))
    with pytest.raises(WindrowError, match="INVALID_VALUE"):
        arrivals("s", known, wrong.append_column(PLACE, pa.array(np.arange(len(table)))), position, 0)


KINDS = pa.schema(
    [
        (PRODUCER, pa.string()),
        (ROWTIME, pa.int64()),
        ("auction", pa.int64()),
        (BOUND, pa.int64()),
        (PATTERN, pa.string()),
    ]
)

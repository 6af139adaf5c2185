"""What operators keep is stored as data, from which nothing but data is made again."""

from __future__ import annotations

import importlib
import json

import numpy as np
import pyarrow as pa
import pytest

from windrow.kernels import stored as stored_module
from windrow.kernels.incremental import Completing
from windrow.kernels.punctuated.delta import Announced
from windrow.kernels.punctuated.filters import FilterCarry
from windrow.kernels.punctuated.sort import SortCarry
from windrow.kernels.punctuated.watch import Watched
from windrow.kernels.sorting import SortKey
from windrow.kernels.stored import _MOVED, Fixed, StoredError, from_stored, stored
from windrow.kernels.trace import Trace
from windrow.punctuations import Closing, Cover
from windrow.punctuations.pattern import lines_of
from windrow.spark.live.operators.punctuated.row_maps import RowMapCarry

ROWS = pa.table({"k": pa.array([1, None, 2], pa.int64()), "v": ["a", "b", None]})


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        1 << 80,
        -0.0,
        float("inf"),
        "a\x00b",
        b"\xff",
        [1, (2, "x"), {3}, frozenset([4])],
        {("a", 1): [b"", None], 2: {}},
        SortKey("k", descending=True),
    ],
)
def test_values_are_what_they_were(value):
    made = from_stored(stored(value))
    assert made == value
    assert type(made) is type(value)
    assert repr(made) == repr(value)


def test_nan_is_stored():
    assert np.isnan(from_stored(stored(float("nan"))))


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1, 2], [3, 4]], np.int64),
        np.array([True, False]),
        np.array([], np.uint64),
        np.array([b"a", None, 3], object),
    ],
)
def test_arrays_are_what_they_were_and_may_be_changed(value):
    made = from_stored(stored(value))
    assert made.dtype == value.dtype
    assert np.array_equal(made, value)
    made[...] = 0


@pytest.mark.parametrize("value", [ROWS, ROWS.schema, ROWS.schema.field("v").type, ROWS.column("k")])
def test_arrow_is_what_it_was(value):
    assert from_stored(stored(value)).equals(value)


def test_one_thing_is_one_thing_again():
    shared = [1]
    circle: list[object] = [shared, shared]
    one, other = from_stored(stored(circle))
    assert one is other


def test_a_trace_goes_on():
    trace = Trace(ROWS.schema, ("k",), notes=["at"])
    trace.add(ROWS, at=np.arange(3))
    trace.remove(trace.having(np.zeros(0, np.uint64)))
    made = from_stored(stored(trace))
    made.add(ROWS, at=np.arange(3, 6))
    assert len(made) == 6
    found = made.find(ROWS.slice(0, 1))
    assert sorted(made.note("at", found.places).tolist()) == [0, 3]


class Files:
    """Files of tables that never change, in memory."""

    def __init__(self):
        self.tables, self.numbers = {}, {}

    def number_of(self, fixed):
        if fixed not in self.numbers:
            self.numbers[fixed] = len(self.tables)
            self.tables[len(self.tables)] = pa.concat_tables([fixed.table])
        return self.numbers[fixed]

    def fixed(self, number):
        found = Fixed(self.tables[number])
        self.numbers[found] = number
        return found


def contents(trace):
    """The rows of a trace with the numbers beside them."""
    places = np.sort(trace.everything())
    return [*zip(trace.rows(places).to_pylist(), trace.note("at", places).tolist(), strict=True)]


@pytest.mark.parametrize("alone", [0, 1 << 20])
def test_a_trace_with_files_goes_on(monkeypatch, alone):
    """Rows that are added and removed, and numbers that change, before and after it is stored twice."""
    monkeypatch.setattr(stored_module, "_ALONE", alone)
    random, files = np.random.default_rng(7), Files()
    trace = Trace(ROWS.schema, ("k",), notes=["at"])
    for step in range(30):
        count = int(random.integers(1, 40))
        rows = pa.table({"k": random.integers(0, 9, count), "v": [f"{step} {one}" for one in range(count)]})
        trace.add(rows, at=np.arange(count))
        places = trace.everything()
        trace.remove(random.choice(places, len(places) // 4, replace=False))
        places = trace.everything()
        trace.set_note("at", places[: step % 3], np.full(len(places[: step % 3]), step))
        made = from_stored(stored(trace, files), files)
        assert contents(made) == contents(trace)
        if step % 4 == 0:
            trace = made
    assert bool(files.tables) == (alone == 0)


def test_rows_that_stay_are_written_once():
    """What a micro-batch writes is as much as its rows, and not as what is retained."""
    files, count = Files(), 300_000
    trace = Trace(pa.schema([("k", pa.int64())]), ("k",), notes=["at"])
    trace.add(pa.table({"k": np.arange(count)}), at=np.arange(count))
    first = stored(trace, files)
    assert sum(table.nbytes for table in files.tables.values()) == 2 * 8 * count
    assert first.nbytes < 10_000
    trace.add(pa.table({"k": np.arange(1_000)}), at=np.arange(1_000))
    trace.remove(trace.find(pa.table({"k": [5, 6]})).places)
    second = stored(trace, files)
    assert len(files.tables) == 2
    assert second.nbytes < count // 8 + 30_000  # a bit for each row, and the new rows
    made = from_stored(second, files)
    assert (len(made), contents(made)[:6]) == (count + 996, contents(trace)[:6])
    trace.set_note("at", trace.everything()[:1], np.array([9]))
    stored(trace, files)
    assert len(files.tables) == 3  # the numbers, and not the rows
    assert stored(made, files).nbytes < count // 8 + 30_000
    assert len(files.tables) == 3  # what was read is not written again


def test_without_its_files_a_structure_is_refused(monkeypatch):
    monkeypatch.setattr(stored_module, "_ALONE", 0)
    table = stored(Fixed(ROWS), Files())
    with pytest.raises(StoredError):
        from_stored(table)
    assert from_stored(stored(Fixed(ROWS))).table.equals(ROWS)


def test_a_trace_of_an_earlier_version_is_read():
    """It had its rows and numbers as a table and arrays, without removed rows."""
    trace = Trace(ROWS.schema, ("k",), notes=["at"])
    attributes = {**vars(trace), "_stored": [(ROWS, {"at": np.array([4, 5, 6])})]}
    del attributes["_runs"]
    former = object.__new__(Trace)
    vars(former).update(attributes)
    former.remake()
    assert contents(former) == [*zip(ROWS.to_pylist(), [4, 5, 6], strict=True)]


@pytest.mark.parametrize("value", [print, test_nan_is_stored, object(), json])
def test_what_could_be_run_is_no_data(value):
    with pytest.raises(TypeError, match="cannot be stored"):
        stored([value])


@pytest.mark.parametrize(
    "name",
    [
        ("os", "system"),
        ("builtins", "eval"),
        ("windrow.kernels.trace", "hashes"),
        ("windrow.kernels.trace", "Unknown"),
        ("windrow.kernels.trace", "pa"),
    ],
)
def test_no_other_class_is_made(name):
    table = pa.table(
        {
            "part": pa.array(["[0]", json.dumps({"object": [*name, {}]})], pa.large_string()),
            "data": pa.array([None, None], pa.large_binary()),
        }
    )
    with pytest.raises(StoredError):
        from_stored(table)


def before(value, **former):
    """A value as an earlier version stored it, with these names in place of those of now."""
    table = stored(value)
    parts = table.column("part").to_pylist()
    for now, name in {**former, **MODULES}.items():
        assert now in MODULES or any(f'"{now}"' in part for part in parts)
        parts = [part.replace(f'"{now}"', f'"{name}"') for part in parts]
    return table.set_column(0, "part", pa.array(parts, pa.large_string()))


MODULES = {
    "windrow.kernels.incremental.completing": "windrow.kernels.stages.completing",
    "windrow.kernels.punctuated.delta": "windrow.kernels.punctuated.step",
    "windrow.kernels.punctuated.filters": "windrow.kernels.punctuated.elementary",
}


def test_modules_classes_and_attributes_of_earlier_versions_are_read():
    completing = from_stored(before(Completing(pa.schema([("k", pa.int64())])), retained="held"))
    assert isinstance(completing, Completing)
    assert (completing.looked_at, hasattr(completing, "held")) == (0, False)
    lines = lines_of(pa.schema([("k", pa.int64())]))
    carry = FilterCarry(Announced(lines))
    assert carry.announced.news([{}])
    former = from_stored(before(carry, Announced="Promises", announced="promises", _covered="_told"))
    assert isinstance(former, FilterCarry)
    assert former.announced.news([{}]) == ()


def test_counts_of_rows_of_earlier_versions_are_read():
    schema = pa.schema([("k", pa.int64())])
    lines = lines_of(schema)
    watched = Watched(schema, ["k"], lines)
    watched.add(schema.empty_table())
    sort = SortCarry(Trace(schema, ("k",), lines), Cover(lines), Closing(lines, ["k"]), Announced(lines), 3)
    former = from_stored(before([watched, sort], _row_count="_came", row_count="came"))
    assert isinstance(former[0], Watched)
    assert (former[0]._row_count, former[1].row_count) == (0, 3)


@pytest.mark.parametrize(("former", "now"), _MOVED.items())
def test_a_module_that_had_another_name_is_there_by_its_name_of_now(former, now):
    if now not in _MOVED:
        importlib.import_module(now.removesuffix("."))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(former.removesuffix("."))


def test_what_earlier_versions_stored_is_read():
    now = "windrow.spark.live.operators.punctuated.row_maps"
    stored_parts = stored(RowMapCarry(None, {}, Announced({})))
    for before_it in ("windrow.spark.live.operators.row_maps", "windrow.spark.live.row_maps"):
        parts = [part.replace(now, before_it) for part in stored_parts.column("part").to_pylist()]
        assert parts != stored_parts.column("part").to_pylist()
        former = stored_parts.set_column(0, "part", pa.array(parts, pa.large_string()))
        assert isinstance(from_stored(former), RowMapCarry)


def test_another_table_is_refused():
    with pytest.raises(StoredError):
        from_stored(pa.table({"kept": [b"cos\nsystem\n"]}))


def test_long_parts_are_stored_as_they_are_and_in_their_order():
    """Parts of more than a megabyte share their memory with the table; short ones are between them."""
    long = np.arange(200_000)
    rows = pa.table({"n": long, "text": pa.array([f"row {each}" for each in long])})
    value = [b"first", long, "text", rows, np.arange(3), {"again": long}, rows.column("text"), None]
    table = stored(value)
    assert table.column("data").num_chunks > 3
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as file:  # as a checkpoint does
        file.write_table(table)
    found = from_stored(pa.ipc.open_file(sink.getvalue()).read_all())
    assert (found[0], found[2], found[7]) == (b"first", "text", None)
    assert found[1].tolist() == long.tolist()
    assert found[3].equals(rows)
    assert found[4].tolist() == [0, 1, 2]
    assert found[5]["again"] is found[1]
    assert found[6].equals(rows.column("text"))

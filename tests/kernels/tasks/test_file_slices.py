"""Tasks that read slices of one partition from files give the windows of one task that reads all rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kernels.in_stages import run_of_files
from tests.kernels.tasks.test_stage import ENDS, near, plan, within
from windrow.kernels.computed.computed_operations import Computed, RowFilter
from windrow.kernels.packing import parquet_files
from windrow.kernels.packing.file_slices import rows_of_slices
from windrow.kernels.packing.parquet_files import FilePart, FileScan, RowGroup
from windrow.kernels.packing.shards import Layout, SlicedPartition
from windrow.kernels.slices import halo
from windrow.kernels.sorting import SortKey
from windrow.kernels.tasks.fragment import Fragment, halo_for
from windrow.kernels.tasks.task_phases import phases
from windrow.kernels.window_plan import WindowPlan

COLUMNS = ("o", "x", "y", "name")
OF_COMPUTED = dict(enumerate(COLUMNS))
orders = st.lists(st.integers(0, 20), min_size=1, max_size=60)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("slices")


@pytest.fixture(scope="module", params=[3, halo.ROWS_AT_ONCE], autouse=True)
def _rows_at_once(request: pytest.FixtureRequest) -> Iterator[None]:
    """Windows of slices are found in pieces of few rows, and at once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(halo, "ROWS_AT_ONCE", request.param)
        yield


def scan_of(file: Path, keys: Sequence[int], of_group: int, *, descending: bool, filtered: bool) -> FileScan:
    """A file with rows with these keys, in row groups of so many."""
    table = pa.table(
        {
            "o": pa.array(keys, pa.int64()),
            "x": pa.array([(at * 31) % 7 for at in range(len(keys))], pa.int64()),
            "y": pa.array([at % 4 for at in range(len(keys))], pa.int64()),
            "name": [f"row {at}" for at in range(len(keys))],
        }
    )
    pq.write_table(table, file, row_group_size=of_group)
    part, groups = FilePart.of(str(file)), []
    for number in range(-(-len(keys) // of_group)):
        own = keys[number * of_group : (number + 1) * of_group]
        codes = [~key if descending else key for key in own]
        groups.append(RowGroup(replace(part, row_groups=(number,)), len(own), min(codes), max(codes)))
    filters = [RowFilter(lambda rows: pc.less(rows.columns[1], 3))] if filtered else []
    made = Computed(OF_COMPUTED, filters, [*OF_COMPUTED], table.schema)
    count = len(keys)
    return FileScan((), count, count, table.schema, pa.schema([]), made, long=(tuple(groups),))


def both(made: WindowPlan, scan: FileScan, key: SortKey, cuts: Sequence[int]) -> Layout:
    """Compares the windows of slices with those of the whole."""
    layout = Layout(0, (SlicedPartition(0, tuple(sorted(set(cuts)))),))
    around = halo_for(made, layout, key, pa.field("o", pa.int64(), nullable=False))
    whole = replace(scan, whole=(tuple(group.part for group in scan.long[0]),), long=())
    alone = Fragment(made, (), (key,), COLUMNS, frozenset(), Layout(1), whole)
    sliced = Fragment(made, (), (key,), COLUMNS, frozenset(), layout, scan, around)
    assert phases(alone) == ["read_shards"]
    assert phases(sliced)[0] == "read_shards"
    assert (len(phases(sliced)) == 1) == (around is not None)
    assert sorted(map(str, run_of_files(sliced, layout.shards))) == sorted(map(str, run_of_files(alone, 1)))
    return layout


@settings(deadline=None, max_examples=150)
@given(
    orders,
    st.sampled_from([1, 3, 7]),
    st.none() | st.integers(0, 5),
    st.none() | st.integers(0, 5),
    st.lists(st.integers(0, 20), max_size=4),
    st.tuples(*[st.booleans()] * 4),
)
def test_slices_have_the_rows_around_them(folder, keys, of_group, start, end, cuts, flags):
    """Whatever the order of the rows, and however many of the nearest row groups a filter empties."""
    descending, filtered, neighbours, is_sorted = flags
    keys = sorted(keys, reverse=descending) if is_sorted else keys
    scan = scan_of(folder / "a.parquet", keys, of_group, descending=descending, filtered=filtered)
    made = near(start, end, None, neighbours=neighbours)
    codes = [~cut if descending else cut for cut in cuts]
    layout = both(made, scan, SortKey("o", descending), codes)
    assert rows_of_slices(scan.long[0], layout.sequences[0]) >= len(keys)


@settings(deadline=None, max_examples=150)
@given(
    orders,
    st.sampled_from([1, 3, 7]),
    st.integers(-6, 4),
    st.sampled_from([">", ">="]),
    st.sampled_from([-1, 0, 1]),
    st.none() | st.integers(0, 3),
    st.lists(st.integers(0, 20), max_size=3),
    st.tuples(*[st.booleans()] * 3),
)
def test_slices_have_the_rows_in_reach(folder, keys, of_group, span, comparison, shift, start, cuts, flags):
    filtered, neighbours, is_sorted = flags
    keys = sorted(keys) if is_sorted else keys
    scan = scan_of(folder / "b.parquet", keys, of_group, descending=False, filtered=filtered)
    made = within(span, comparison, shift=shift, start=start, neighbours=neighbours)
    both(made, scan, SortKey("o"), cuts)


@settings(deadline=None, max_examples=60)
@given(
    orders.map(sorted),
    st.sampled_from(sorted(ENDS)),
    st.booleans(),
    st.lists(st.integers(0, 20), max_size=3),
    st.booleans(),
)
def test_slices_that_exchange_rows_begin_with_their_own(folder, keys, end, tumbling, cuts, filtered):
    scan = scan_of(folder / "c.parquet", list(dict.fromkeys(keys)), 3, descending=False, filtered=filtered)
    both(plan(ENDS[end], tumbling=tumbling), scan, SortKey("o"), cuts)


def test_a_slice_reads_the_row_groups_that_it_needs_alone(folder, monkeypatch):
    scan = scan_of(folder / "d.parquet", list(range(100)), 10, descending=False, filtered=False)
    layout = Layout(0, (SlicedPartition(0, (30, 65)),))
    made = near(2, 12, None, neighbours=False)
    around = halo_for(made, layout, SortKey("o"), pa.field("o", pa.int64(), nullable=False))
    stage = Fragment(made, (), (SortKey("o"),), COLUMNS, frozenset(), layout, scan, around)
    read: list[list[int]] = [[], [], []]
    parquet_files._footer_of.cache_clear()
    original = FileScan.rows_of
    for number in range(3):
        monkeypatch.setattr(
            FileScan, "rows_of",
            lambda self, parts, found=read[number]: [found.append(*part.row_groups) for part in parts]
            and original(self, parts),
        )  # fmt: skip
        list(run_of_files(stage, 1, first=number))
    assert read == [[0, 1, 2, 3, 4], [3, 4, 5, 6, 2, 7], [6, 7, 8, 9]]
    assert parquet_files._footer_of.cache_info().misses == 1  # not once for each row group
    assert rows_of_slices(scan.long[0], layout.sequences[0]) == 30 + 40 + 40

"""The files of rows that a live query sets aside: merged, and each row once for whoever reads them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow import WindrowError
from windrow.spark.live.checkpoints.side_outputs import Listing, SideOutput


def put(side, number):
    """Write a micro-batch's rows, as Spark does."""
    pq.write_table(pa.table({"batch": [number, number]}), side.folder / f"part-{number:09}.parquet")


def read(side, listing):
    return sorted(batch for path in side.paths(listing) for batch in pq.read_table(path)["batch"].to_pylist())


def committed(side, listing, number):
    listing = Listing.from_json(side.after(listing, number).to_json())
    side.tidy(listing)
    return listing


def test_files_grow_with_the_logarithm_of_the_micro_batches(tmp_path):
    side, listing = SideOutput(tmp_path), Listing()
    for number in range(200):
        put(side, number)
        listing = committed(side, listing, number)
        side.check(listing)
        assert len(listing.files) <= 7 * 3
        assert len(list(tmp_path.iterdir())) <= 15 * 3
    assert read(side, listing) == sorted([*range(200), *range(200)])


def test_who_has_begun_to_read_comes_to_the_end(tmp_path):
    side, listing = SideOutput(tmp_path), Listing()
    begun = []
    for number in range(70):
        put(side, number)
        listing = committed(side, listing, number)
        begun.append((number, listing))
        for until, before in begun[-8:]:
            assert read(side, before) == sorted([*range(until + 1), *range(until + 1)])


def test_what_an_interrupted_step_has_written_is_not_read_and_written_again(tmp_path):
    side, listing = SideOutput(tmp_path), Listing()
    for number in range(20):
        put(side, number)
        side.after(listing, number)  # merged, and the process ends before the step is committed
        assert read(side, listing) == sorted([*range(number), *range(number)])
        side.undo(number)
        put(side, number)
        listing = committed(side, listing, number)
        assert read(side, listing) == sorted([*range(number + 1), *range(number + 1)])


def test_a_full_disk_while_files_are_merged_leaves_them_as_they_were(tmp_path, monkeypatch):
    side, listing = SideOutput(tmp_path), Listing()
    for number in range(7):
        put(side, number)
        listing = committed(side, listing, number)
    put(side, 7)

    def full(path):
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr("windrow.spark.live.checkpoints.side_outputs.flush", full)
        with pytest.raises(OSError, match="No space"):
            side.after(listing, 7)
    assert not list(tmp_path.glob(".*"))
    listing = committed(side, listing, 7)
    assert read(side, listing) == sorted([*range(8), *range(8)])


def test_files_with_fewer_columns_are_merged_with_others(tmp_path):
    side, listing = SideOutput(tmp_path), Listing()
    for number in range(8):
        columns = {"batch": [number]} if number < 4 else {"batch": [number], "reason": ["late"]}
        pq.write_table(pa.table(columns), side.folder / f"part-{number:09}.parquet")
        listing = committed(side, listing, number)
    (path,) = side.paths(listing)
    assert pq.read_table(path)["reason"].to_pylist() == [None] * 4 + ["late"] * 4


def test_what_is_gone_or_cut_short_is_named(tmp_path):
    side, listing = SideOutput(tmp_path), Listing()
    for number in range(2):
        put(side, number)
        listing = committed(side, listing, number)
    first, second = side.paths(listing)
    second.write_bytes(second.read_bytes()[:-1])
    with pytest.raises(WindrowError, match="TORN_FILE"):
        side.check(listing)
    first.unlink()
    with pytest.raises(WindrowError, match="MISSING_FILE"):
        side.check(listing)

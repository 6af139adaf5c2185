"""Rows beside those of a small table, and programs that take their tables with them."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from windrow.kernels.computed.computed_operations import Computed
from windrow.kernels.computed.computed_values import ComputedRows
from windrow.kernels.computed.lookups import CollectedTable, LookUp
from windrow.kernels.incremental import Program, ProgramFragment
from windrow.kernels.zset.relation import ENTER
from windrow.spark.analysis.small_tables import SmallTable
from windrow.spark.live.executors.graphs.programs import keys_of, with_tables
from windrow.spark.live.operators.incremental_plan import computed_elsewhere

ROWS, NAMES = 1, 5
NAMED = pa.schema([("name", pa.string())])
SHOWN = pa.schema([("v", pa.int64()), ("name", pa.string())])


def names(*found):
    return pa.table({"name": pa.array(found, pa.string())})


def every(table, wanted=(ROWS, NAMES)):
    """Each row with all of a table."""
    return LookUp(None, table, False, wanted)


def program(step):
    made = Computed({ROWS: "v"}, [step], [ROWS, NAMES], SHOWN)
    return Program((), (ProgramFragment(0, (0,), SHOWN, {0: frozenset("v")}, None, made),))


@pytest.mark.parametrize(
    ("rows", "table", "pairs"),
    [
        ([1, 2], ["a", "b"], [(1, "a"), (1, "b"), (2, "a"), (2, "b")]),
        ([1, 2], ["a"], [(1, "a"), (2, "a")]),
        ([1, 2], [], []),
        ([], ["a"], []),
    ],
)
def test_each_row_goes_with_all_of_a_table(rows, table, pairs):
    step = every(CollectedTable([NAMES], NAMED, names(*table)))
    found = step.of(ComputedRows({ROWS: pa.array(rows, pa.int64())}, len(rows)))
    told = zip(found.columns[ROWS].to_pylist(), found.columns[NAMES].to_pylist(), strict=True)
    assert [*told] == pairs
    assert found.count == len(pairs)


def test_what_nothing_reads_of_a_table_is_left_out():
    step = every(CollectedTable([NAMES], NAMED, names("a", "b")), [ROWS])
    found = step.of(ComputedRows({ROWS: pa.array([1])}, 1))
    assert {number: column.to_pylist() for number, column in found.columns.items()} == {ROWS: [1, 1]}


class Changing(SmallTable):
    """A table that has other rows each time that it is read."""

    seen = 0

    def _collected(self):
        Changing.seen += 1
        return names(f"read {Changing.seen}")


def test_a_program_takes_a_table_with_it_as_it_was_when_it_was_read():
    table = Changing(None, None, [NAMES], NAMED, frozenset({"LogicalRDD"}), True)
    rows = {0: pa.table({"v": [7]})}
    whole = program(every(table))
    (output,) = whole.outputs
    sent = with_tables(replace(whole, outputs=(replace(output, computed=None, parts=(output,)),)))
    Changing.seen = 0
    (fragment,) = with_tables(whole).outputs
    for _ in range(2):
        assert fragment.rows(rows, None).to_pylist() == [{"v": 7, "name": "read 1"}]
    assert Changing.seen == 1
    assert [one["name"] for _ in range(2) for one in output.rows(rows, None).to_pylist()] == [
        "read 2",
        "read 3",
    ]
    assert sent.outputs[0].rows(rows, None).to_pylist() == [{"v": 7, "name": "read 1"}]


def test_what_neither_memory_nor_a_small_table_computes_is_said():
    whole = program(every(CollectedTable([NAMES], NAMED, names())))
    assert computed_elsewhere(whole, takes_tables=True) is None
    (output,) = whole.outputs
    elsewhere = replace(whole, outputs=(replace(output, computed=None),))
    assert "a table above spark.sql.autoBroadcastJoinThreshold" in computed_elsewhere(
        elsewhere, takes_tables=True
    )


def test_rows_that_are_there_from_the_beginning_are_in_one_bucket():
    schema = pa.schema([("v", pa.int64())])
    of_stream = ProgramFragment(0, (0,), schema, {0: frozenset("v")}, ("v",))
    of_table = ProgramFragment(
        0, (1,), schema, {1: frozenset([ENTER])}, None, Computed({}, [], [], pa.schema([]))
    )
    both = ProgramFragment(0, (0, 1), schema, {}, parts=(of_stream, of_table))
    assert keys_of(Program((), (of_stream,)), {0: schema}, ["v"], {}) == (("v",),)
    assert keys_of(Program((), (both,), beginning=1), {0: schema}, ["v"], {}) == ((),)

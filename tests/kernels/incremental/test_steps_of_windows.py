"""Windows of time and groups, a step at a time: what is there at any instant is what the definition says."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.kernels.incremental.test_operated import END, TIMES, cuts, in_step, keyed, steps
from windrow.errors import ExecutionError
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental import Operated, Times, UnmatchedError, stepwise
from windrow.kernels.reference.time_windows import windows_of
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.kernels.zset.time_windows import WindowingFunction

LENGTHS = {
    "SESSION": {"gap": 2},
    "TUMBLE": {"dur": 3, "offset": -1},
    "HOP": {"hopsize": 2, "dur": 5, "offset": 1},
    "CUMULATE": {"step": 2, "dur": 6, "offset": 0},
}
TIMED = pa.schema([("k", pa.float64()), ("t", pa.int64()), ("i", pa.int64())])
ADDED = [pa.field("begin", pa.int64()), pa.field("end", pa.int64())]

instants = st.tuples(st.integers(0, END - 2), st.integers(1, 6), st.booleans()).map(
    lambda drawn: (drawn[0], NEVER if drawn[2] else drawn[0] + drawn[1])
)
timed = st.lists(
    st.tuples(st.sampled_from([None, 0.0, -0.0, float("nan")]), st.none() | st.integers(-6, 6), instants),
    max_size=10,
).map(lambda drawn: [(k, t, i, *times) for i, (k, t, times) in enumerate(drawn)])


def table(schema, rows):
    names = [*schema.names, ENTER, LEAVE]
    columns = {name: [row[at] for row in rows] for at, name in enumerate(names)}
    return pa.table(columns, pa.schema([*schema, *TIMES]))


def told_at_instants(operated, schema, rows, cuts, shown):
    """What is there at each instant by what the steps tell, of which nothing leaves that is not there."""
    there, found = Counter(), {}
    for times in steps(cuts):
        told = operated.advance([table(schema, in_step(rows, times))], times).to_pylist()
        changes = []
        for row in told:
            if times.since is None or row[ENTER] >= times.since:
                changes.append((row[ENTER], 1, shown(row)))
            else:
                assert there[shown(row)] > 0
            if row[LEAVE] != NEVER:
                changes.append((row[LEAVE], -1, shown(row)))
        for instant in range(times.since or 0, times.until):
            for at, by, row in changes:
                there[row] += by * (at == instant)
            assert min(there.values(), default=0) >= 0
            found[instant] = +there
    return found


@pytest.mark.parametrize("kind", LENGTHS)
@given(rows=timed, cuts=cuts)
@example(  # sessions that one row joins, late, until it is taken back
    rows=[(None, 0, 0, 0, NEVER), (None, 4, 1, 1, NEVER), (None, 2, 2, 3, 6), (0.0, 2, 3, 3, NEVER)],
    cuts=[2, 5, 8],
)
def test_rows_are_in_the_windows_that_the_definition_says(kind, rows, cuts):
    keys = ("k",) if kind == "SESSION" else ()
    windows = WindowingFunction(kind, "t", LENGTHS[kind], ("begin", "end"), 1)
    operator = keyed("windows", keys, windows=windows)
    operated = stepwise(operator, (TIMED,), pa.schema([*TIMED, *ADDED, *TIMES]))
    found = told_at_instants(operated, TIMED, rows, cuts, lambda row: (row["i"], row["begin"], row["end"]))
    for instant, told in found.items():
        there = [row for row in rows if row[3] <= instant < row[4]]
        of = [str(abs(k)) if k is not None else None for k, *_ in there]
        wanted = windows_of(kind, [t for _, t, *_ in there], of, LENGTHS[kind])
        assert told == Counter(
            (i, *each) for (_, _, i, *_), found in zip(there, wanted, strict=True) for each in found
        )


@pytest.mark.parametrize("kind", LENGTHS)
def test_times_may_be_as_far_apart_as_their_windows_allow(kind):
    windows = WindowingFunction(kind, "t", LENGTHS[kind], ("begin", "end"), 1)
    operator = keyed("windows", (), windows=windows)
    far = 2**63 - 1 - 20
    rows = [(0.0, time, i, 0, NEVER) for i, time in enumerate((-far, 0, far))]
    told = [row for batch in operator.rows(table(TIMED, rows)) for row in batch.to_pylist()]
    wanted = windows_of(kind, [-far, 0, far], [0, 0, 0], LENGTHS[kind])
    found = sorted((row["i"], row["begin"], row["end"]) for row in told)
    assert found == sorted((i, *each) for i, of in enumerate(wanted) for each in of)
    with pytest.raises(ExecutionError, match="ARITHMETIC_OVERFLOW"):
        list(operator.rows(table(TIMED, [(0.0, 2**63 - 1, 0, 0, NEVER)])))


LONG = pa.int64()
VALUES = pa.schema(
    [("k", pa.string()), ("f", pa.float64()), ("x", LONG), ("d", pa.decimal128(10, 3)), ("b", pa.bool_())]
)
AGGREGATES = {
    "rows": AggregateSpec("count_star", None, LONG),
    "n": AggregateSpec("count", "x", LONG),
    "sum": AggregateSpec("sum", "x", LONG),
    "mean": AggregateSpec("avg", "x", pa.float64()),
    "exact": AggregateSpec("sum", "d", pa.decimal128(20, 3)),
    "rounded": AggregateSpec("avg", "d", pa.decimal128(14, 7)),
    "distinct": AggregateSpec("count_distinct", "f", LONG),
    "most": AggregateSpec("max", "x", LONG),
    "least": AggregateSpec("min", "x", LONG),
    "so": AggregateSpec("count_if", "b", LONG),
    "every": AggregateSpec("bool_and", "b", pa.bool_()),
}
valued = st.lists(
    st.tuples(
        st.sampled_from([None, "a", "b"]),
        st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
        st.none() | st.integers(-3, 3),
        st.sampled_from([None, Decimal("-0.125"), Decimal("0.5"), Decimal("1234567.875")]),
        st.none() | st.booleans(),
        instants,
    ).map(lambda drawn: (*drawn[:-1], *drawn[-1])),
    max_size=14,
)


def grouped(*names, keys=("k",)):
    operator = keyed("group", keys, aggregates=tuple((name, AGGREGATES[name]) for name in names))
    given = [pa.field(name, AGGREGATES[name].result_type) for name in names]
    return operator, pa.schema([*(VALUES.field(key) for key in keys), *given, *TIMES])


@given(
    rows=valued,
    cuts=cuts,
    stays=st.booleans(),
    keys=st.sampled_from([("k",), ("k", "f")]),
    names=st.sets(st.sampled_from(sorted(AGGREGATES))).map(sorted),
)
@example(  # the greatest leaves, which has come in another step, and comes again
    rows=[
        ("a", None, 1, None, True, 0, NEVER),
        ("a", 0.0, 3, None, None, 1, 4),
        ("a", 1.5, 3, None, None, 6, 8),
    ],
    cuts=[3, 5, 7],
    stays=False,
    keys=("k",),
    names=["distinct", "least", "most"],
)
def test_groups_go_on_as_if_all_their_rows_were_looked_at_again(rows, cuts, stays, keys, names):
    rows = [(*row[:-1], NEVER) if stays else row for row in rows]
    operator, result = grouped(*names, keys=keys)
    operated = stepwise(operator, (VALUES,), result)
    assert type(operated) is not Operated

    def shown(row):
        values = tuple(repr(row[name]) for name in result.names[:-2])
        assert "-0.0" not in values  # groups of zeros are one, and show 0.0
        return values

    found = told_at_instants(operated, VALUES, rows, cuts, shown)
    whole = [row for batch in operator.rows(table(VALUES, rows)) for row in batch.to_pylist()] if rows else []
    for instant, told in found.items():
        assert told == Counter(shown(row) for row in whole if row[ENTER] <= instant < row[LEAVE])


@pytest.mark.parametrize("other", [("b", None, 1, None, None), ("a", None, 2, None, None)])
def test_groups_notice_what_leaves_without_having_come(other):
    operator, result = grouped("rows", "sum")
    operated = stepwise(operator, (VALUES,), result)
    operated.advance([table(VALUES, [("a", None, 1, None, None, 0, NEVER)])], Times(None, 3))
    with pytest.raises(UnmatchedError):
        operated.advance([table(VALUES, [(*other, 2, 4)])], Times(3, 6))


@pytest.mark.parametrize("kind", [pa.int8(), pa.int16(), pa.int32(), pa.date32(), pa.timestamp("us")])
def test_extremes_are_of_the_type_of_the_values(kind):
    schema = pa.schema([("k", LONG), ("x", kind)])
    aggregates = tuple((name, AggregateSpec(name, "x", kind)) for name in ("min", "max"))
    given = [schema.field("k"), *(pa.field(name, kind) for name, _ in aggregates), *TIMES]
    operated = stepwise(keyed("group", ("k",), aggregates=aggregates), (schema,), pa.schema(given))
    assert type(operated) is not Operated
    number = pa.int32() if pa.types.is_date(kind) else LONG
    low, high = pa.array([-3, 5], number).cast(kind).to_pylist()
    rows = [(1, high, 0, NEVER), (1, low, 2, 5), (2, None, 3, NEVER)]
    found = told_at_instants(operated, schema, rows, [3, 4], lambda row: (row["k"], row["min"], row["max"]))
    assert found[3] == Counter([(1, low, high), (2, None, None)])
    assert found[5] == Counter([(1, high, high), (2, None, None)])


@pytest.mark.parametrize("at", [-(2**63), 2**63 - 1])
@pytest.mark.parametrize("kind", LENGTHS)
def test_times_at_either_end_of_all_are_in_no_windows_that_wrap_round(kind, at):
    windows = WindowingFunction(kind, "t", LENGTHS[kind], ("begin", "end"), 1)
    operator = keyed("windows", (), windows=windows)
    operated = stepwise(operator, (TIMED,), pa.schema([*TIMED, *ADDED, *TIMES]))
    given = [(None, t, i, 0, NEVER) for i, t in enumerate([at, 0, -(at // 4) * 3])]
    if kind == "SESSION" and at < 0:
        found = operated.advance([table(TIMED, given)], Times(None, 3))
        assert found.column("begin").to_pylist() == [t for _, t, *_ in given]
    else:
        with pytest.raises(ExecutionError if kind == "SESSION" else UnmatchedError):
            operated.advance([table(TIMED, given)], Times(None, 3))

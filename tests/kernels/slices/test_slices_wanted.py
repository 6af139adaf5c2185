"""What slices ask each other for: next to nothing where the windows say where they end."""

from __future__ import annotations

import datetime
import math
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.kernels.in_memory import Table, cut, planned
from windrow.kernels import slices
from windrow.kernels.slices.summary import zone_of
from windrow.kernels.window_plan import WindowPlan

TYPES = {"o": "int", "m": "int", "a": "int", "x": "double", "s": "string"}
SUM = {"SUM(w.a)": pa.int64()}
MEDIAN = {"MEDIAN(w.a)": pa.float64()}
LISTS = {"COLLECT_LIST(w.a)": pa.list_(pa.int32())}


def table(count: int) -> Table:
    """`m` goes up by two, `a` is noise from 0 to 9, `s` names stretches of 20 rows."""
    noise = np.random.default_rng(3).integers(0, 10, count).tolist()
    return Table(
        TYPES,
        [
            {"o": at, "m": 2 * at, "a": noise[at], "x": noise[at] / 4, "s": chr(97 + at // 20 % 26)}
            for at in range(count)
        ],
    )


def plan_of(
    clause: str, aggregates: dict[str, pa.DataType] = SUM, count: int = 200
) -> tuple[WindowPlan, pa.Table]:
    sql = f"SELECT {', '.join(aggregates)} FROM t WINDOW BY w AS ({clause})"
    return planned(sql, table(count), {f"__aggregate{n}": kind for n, kind in enumerate(aggregates.values())})


def wanted(clause: str, aggregates: dict[str, pa.DataType] = SUM, chunk_rows: int = 10) -> list[list[int]]:
    """For five slices of 40 rows, by default in chunks of 10: slice n has the chunks 4 n to 4 n + 3."""
    plan, rows = plan_of(clause, aggregates)
    parts = cut(rows, range(40, 200, 40))
    summaries = [slices.summarise(plan, part, chunk_rows=chunk_rows) for part in parts]
    return [sorted(numbers) for numbers in slices.wanted(plan, summaries)]


NEXT = [[4], [8], [12], [16], []]
NOTHING: list[list[int]] = [[], [], [], [], []]
EVERYTHING = [[n for n in range(20) if n // 4 != number] for number in range(5)]
ALL_LATER = [[n for n in range(20) if n // 4 > number] for number in range(5)]
ALL_EARLIER = [[n for n in range(20) if n // 4 < number] for number in range(5)]


@pytest.mark.parametrize("aggregates", [SUM, MEDIAN], ids=["sum", "median"])
@pytest.mark.parametrize(
    "end",
    [
        "END AT ep WHEN ep - sp = 3",
        "ONLY END AT ep WHEN ep = sp + 10",
        "END AT ep WHEN ep > sp + 5",
        "END AS e NEXT AS n WHEN n.m - s.m > 6",
        "ONLY END AS e WHEN e.m - s.m BETWEEN 5 AND 8",
        "ONLY END AS e WHEN e.m = s.m + 6",
        "ONLY END AS e WHEN e.m = s.m + 6 AND e.a <> s.a",
    ],
)
def test_windows_of_a_few_rows_want_the_next_chunk(end: str, aggregates: dict[str, pa.DataType]) -> None:
    assert wanted(f"TYPE SLIDING ORDER BY o START AS s AT sp {end}", aggregates) == NEXT


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        ("TYPE SLIDING ORDER BY o START AS s END UNBOUNDED", NOTHING),
        ("TYPE SLIDING ORDER BY o START AS s END AS e WHEN e.a > 100", NOTHING),
        ("TYPE SLIDING ORDER BY o START AS s END AS e WHEN e.o = 57", [[5], [], [], [], []]),
        ("TYPE SLIDING ORDER BY o START AS s END AT ep WHEN ep = 58", [[5], [], [], [], []]),
        (
            "TYPE SLIDING ORDER BY o START AS s WHEN s.o = 57 END NEXT AS n WHEN n.o = 120",
            [[], [11], [], [], []],
        ),
        (
            "TYPE SLIDING ORDER BY o START AS s END AS e NEXT AS n WHEN n IS NULL",
            [[19], [19], [19], [19], []],
        ),
        ("TYPE TUMBLING ORDER BY o START AS s WHEN s.o % 50 = 49", [[], [9], [14], [19], []]),
        ("TYPE SLIDING ORDER BY o START UNBOUNDED END AT ep WHEN ep = 100", [[9], [], [], [], []]),
        ("TYPE TUMBLING ORDER BY o START UNBOUNDED", NOTHING),
        ("TYPE SLIDING ORDER BY o LABEL AS l AT lp START UNBOUNDED END AT ep WHEN ep = lp", NOTHING),
        ("TYPE SLIDING ORDER BY o LABEL AS l START AS s WHEN s = l END UNBOUNDED", NOTHING),
    ],
)
def test_what_is_summed_whole_is_not_wanted(clause: str, expected: list[list[int]]) -> None:
    assert wanted(clause) == expected


def test_windows_around_a_label_want_the_chunks_around() -> None:
    near = [[4], [3, 8], [7, 12], [11, 16], [15]]
    for start, end in [
        ("AT sp WHEN sp >= lp - 5", "AT ep WHEN ep = lp + 5"),
        ("AT sp WHEN sp = lp - 5", "AT ep WHEN ep = lp + 5"),
        ("AS s WHEN l.m - s.m <= 10", "AS e WHEN e.m - l.m >= 10"),
        ("AS s WHEN s.m = l.m - 10", "AS e WHEN e.m = l.m + 10"),
    ]:
        clause = f"TYPE SLIDING ORDER BY o LABEL AS l AT lp START {start} END {end}"
        assert wanted(clause) == near, clause
        bounded = clause.replace("START", "ONLY START").replace("END", "ONLY END")
        assert wanted(bounded, MEDIAN) == near, clause


def test_stretches_of_equal_values_end_in_the_next() -> None:
    found = wanted("TYPE SLIDING ORDER BY o START AS s END NEXT AS n WHEN n.s <> s.s", chunk_rows=5)
    assert all(len(numbers) <= 5 for numbers in found)


def test_all_rows_of_a_window_are_wanted_where_only_they_will_do() -> None:
    assert wanted("TYPE SLIDING ORDER BY o START AS s END UNBOUNDED", MEDIAN) == ALL_LATER
    assert wanted("TYPE SLIDING ORDER BY o START AS s END UNBOUNDED", LISTS) == ALL_LATER
    upward = "TYPE SLIDING ORDER BY o LABEL AS l START UNBOUNDED END AS e WHEN e = l"
    assert wanted(upward, MEDIAN) == ALL_EARLIER
    # an open window has all rows to the end, unless ONLY leaves it out
    assert wanted("TYPE SLIDING ORDER BY o START AS s END AS e WHEN e.a > 100", MEDIAN) == ALL_LATER
    assert wanted("TYPE SLIDING ORDER BY o START AS s ONLY END AS e WHEN e.a > 100", MEDIAN) == NOTHING


def test_noise_without_bounds_is_wanted_wholesale() -> None:
    assert wanted("TYPE SLIDING ORDER BY o START AS s END AS e WHEN e.a * s.a % 7 = 6") == ALL_LATER
    label = "TYPE SLIDING ORDER BY o LABEL AS l START AS s WHEN s.a * l.a % 7 = 6 END"
    assert wanted(label) == EVERYTHING


def test_a_slice_without_windows_wants_nothing() -> None:
    found = wanted("TYPE SLIDING ORDER BY o START AS s AT sp WHEN s.o < 40 END AT ep WHEN ep = sp + 50")
    assert found == [[5, 6, 7, 8], [], [], [], []]


def test_a_chain_tells_of_the_rows_at_which_it_may_be_entered() -> None:
    plan, rows = plan_of("TYPE TUMBLING ORDER BY o START AS s AT sp END AT ep WHEN ep = sp + 2")
    parts = cut(rows, [100])
    summaries = [slices.summarise(plan, part, chunk_rows=5) for part in parts]
    chunks = [chunk for part in parts for chunk in slices.chunks_of(part, 5)]
    wanted = slices.wanted(plan, summaries)
    links = [
        slices.chain(plan, number, summaries, part, {chunk: chunks[chunk] for chunk in wanted[number]})
        for number, part in enumerate(parts)
    ]
    assert links[1].starts.tolist() == [100, 101, 102, 103, 104, 105]
    assert slices.compose(links) == [0, 102]


def test_a_summary_is_small() -> None:
    plan, rows = plan_of(
        "TYPE SLIDING ORDER BY o START AS s END NEXT AS n WHEN n.m - s.m > 6",
        {**SUM, "MAX(w.s)": pa.string()},
        50_000,
    )
    coded = rows.append_column("coded", pa.array([f"value {at}" for at in range(50_000)]).dictionary_encode())
    whole = len(pickle.dumps(coded))
    assert len(pickle.dumps(slices.summarise(plan, coded, chunk_rows=5000))) < whole / 100


@pytest.mark.parametrize(
    ("clause", "reason"),
    [
        ("TYPE TUMBLING ORDER BY o LABEL AS l START AS s END AS e", "tumbling windows with LABEL"),
        ("TYPE TUMBLING ORDER BY o LABEL AS l START AS s WHEN s = l", "tumbling windows with LABEL"),
    ],
)
def test_what_needs_whole_partitions_says_why(clause: str, reason: str) -> None:
    plan, _ = plan_of(clause)
    assert reason in (slices.unsliceable(plan) or "")


def test_what_slices_ask_for_in_words() -> None:
    plan, _ = plan_of("TYPE TUMBLING ORDER BY o START AS s AT sp END AT ep WHEN ep = sp + 2", MEDIAN)
    assert slices.describe(plan) == [
        "end: the rows at that distance",
        "tumbling: chains of windows are joined from slice to slice",
        "all rows of the windows: for median",
    ]


def test_dictionaries_of_slices_may_differ() -> None:
    plan, rows = plan_of("TYPE SLIDING ORDER BY o START AS s END UNBOUNDED")
    parts = [
        part.append_column(
            "coded", pa.array([f"{number} {at}" for at in range(part.num_rows)]).dictionary_encode()
        )
        for number, part in enumerate(cut(rows, [50, 120]))
    ]
    summaries: list[Any] = [slices.summarise(plan, part, chunk_rows=7) for part in parts]
    found = [batch for n, part in enumerate(parts) for batch in slices.finish(plan, n, summaries, part, {})]
    assert sum(batch.num_rows for batch in found) == 200


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int8(), [3, None, -2]),
        (pa.float32(), [1.5, 0.25, None]),
        (pa.bool_(), [True, False]),
        (pa.string(), ["b", "ä", "a", None]),
        (pa.date32(), [datetime.date(2024, 1, 2), datetime.date(1960, 1, 1)]),
        (pa.timestamp("us", "UTC"), [datetime.datetime(2024, 1, 2, tzinfo=datetime.UTC)]),
        (pa.duration("us"), [datetime.timedelta(days=2), None, datetime.timedelta(days=-1)]),
        (pa.decimal128(10, 2), [Decimal("1.25"), Decimal("-3.00")]),
        (pa.null(), [None, None]),
        (pa.int64(), [None]),
    ],
    ids=str,
)
def test_where_values_of_each_type_lie(kind: pa.DataType, values: list[Any]) -> None:
    known = sorted(value for value in values if value is not None)
    zone = zone_of(pa.chunked_array([pa.array(values, kind)]), 0, np.array([0, len(values)]))
    assert zone.low.type == zone.high.type == kind
    assert [zone.low[0].as_py(), zone.high[0].as_py()] == ([known[0], known[-1]] if known else [None, None])
    assert zone.null.tolist() == [None in values]
    assert zone.wild.tolist() == [False]


def test_what_has_no_order_has_no_bounds() -> None:
    values = pa.chunked_array([pa.array([1.0, None, math.nan, 2.0, math.inf, 3.0])])
    assert zone_of(values, 0, np.array([0, 2, 4, 6])).wild.tolist() == [False, True, True]
    # the rows before those of each chunk; the first has none
    assert zone_of(values, -1, np.array([0, 2, 4, 6])).wild.tolist() == [False, True, True]
    assert zone_of(values, -1, np.array([0, 2, 4, 6])).null.tolist() == [False, True, False]

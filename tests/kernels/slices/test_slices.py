"""Sliced = unsliced = reference: sequences cut anywhere, chunks of any size, every strategy and aggregate."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, reject, settings
from hypothesis import strategies as st

from tests.kernels.in_memory import Table, by_reference, planned, sliced, unsliced
from tests.kernels.windows.test_window_by_property import DAY, NOON, SETTINGS, TYPES, clauses, comparable
from windrow.errors import ExecutionError
from windrow.kernels.slices import unsliceable

#: Aggregates that are put together of parts, and those that take all rows, with their types.
PARTIAL = {
    "COUNT(w)": pa.int64(),
    "COUNT(w.a)": pa.int64(),
    "COUNT_IF(w.f)": pa.int64(),
    "BOOL_AND(w.f)": pa.bool_(),
    "BOOL_OR(w.f)": pa.bool_(),
    "SUM(w.a)": pa.int64(),
    "SUM(w.x)": pa.float64(),
    "AVG(w.a)": pa.float64(),
    "AVG(w.x)": pa.float64(),
    "MIN(w.s)": pa.string(),
    "MAX(w.x)": pa.float64(),
    "MIN(w.d)": pa.date32(),
    "STDDEV(w.a)": pa.float64(),
    "STDDEV_POP(w.a)": pa.float64(),
    "VAR_SAMP(w.a)": pa.float64(),
    "VAR_POP(w.a)": pa.float64(),
    "FIRST(w.a)": pa.int32(),
    "FIRST(w.s) IGNORE NULLS": pa.string(),
    "LAST(w.d)": pa.date32(),
    "LAST(w.a) IGNORE NULLS": pa.int32(),
    "ANY_VALUE(w.a)": pa.int32(),
}
HOLISTIC = {
    "COUNT(DISTINCT w.s)": pa.int64(),
    "MEDIAN(w.a)": pa.float64(),
    "PERCENTILE(w.a, 0.3)": pa.float64(),
    "MODE(w.a)": pa.int32(),
    "COLLECT_LIST(w.a)": pa.list_(pa.int32()),
}


def rows_of(seed: int, count: int) -> Table:
    """Rows of which some columns rise, some go in stretches and some are noise; as random as the seed."""
    noise = random.Random(seed)
    values: dict[str, list[Any]] = {
        "a": list(range(-3, 4)),
        "x": [
            -1.5,
            -0.0,
            0.0,
            1.0,
            2.5,
            *([float("nan"), float("inf"), -float("inf")] * noise.randint(0, 1)),
        ],
        "s": ["", "a", "b", "ä", "aa"],
        "d": [DAY.replace(day=day) for day in range(1, 7)],
        "t": [NOON.replace(hour=hour) for hour in range(0, 20, 4)],
        "f": [True, False],
    }
    nulls = noise.choice([0.0, 0.1, 0.5])
    styles = {name: noise.choice(["noise", "stretches", "rises"]) for name in values}
    rows, last = [], {name: noise.choice(known) for name, known in values.items()}
    rises = noise.randint(0, 3) > 0
    for number in range(count):
        row: dict[str, Any] = {"k": noise.choice(["p", "p", None]), "o": number}
        row["m"] = number // 2 if rises else noise.choice([None, 0, 1, 2, 3])
        for name, known in values.items():
            if styles[name] == "noise" or (styles[name] == "stretches" and noise.random() < 0.15):
                last[name] = noise.choice(known)
            elif styles[name] == "rises":
                last[name] = known[number * len(known) // count]
            row[name] = None if noise.random() < nulls else last[name]
        rows.append(row)
    return Table(TYPES, rows)


def slices_agree(
    clause: str,
    table: Table,
    cuts: list[int],
    chunk_rows: int,
    aggregates: dict[str, pa.DataType],
    *,
    judge: bool = False,
) -> None:
    holistic = not aggregates.keys() <= PARTIAL.keys()
    variables = dict.fromkeys(re.findall(r"(?:AS|AT) (\w+)", clause))
    chosen = [name if name.endswith("a") else f"{name}.m, {name}.x" for name in variables]
    output = "*" if holistic else ", ".join(chosen)
    sql = f"SELECT {', '.join(filter(None, [output, *aggregates]))} FROM t WINDOW BY w AS {clause}"
    types = {f"__aggregate{number}": kind for number, kind in enumerate(aggregates.values())}
    plan, rows = planned(sql, table, types)
    if unsliceable(plan) is not None:
        return
    found = sliced(plan, rows, cuts, chunk_rows)
    whole = unsliced(plan, rows)
    assert comparable(found) == comparable(whole), sql
    if judge:
        expected = by_reference(sql, table)
        assert sorted(map(repr, comparable(found))) == sorted(map(repr, comparable(expected))), sql


#: Predicates whose boundary `x` often lies some slices away from the row `b` that they look from.
FAR = [
    "xa - ba = {n}",
    "xa >= ba + {n}",
    "x.m - b.m >= {n}",
    "xn.m - b.m > {n}",
    "x.m - b.m BETWEEN {n} AND {n} + 1",
    "b.m - xp.m < {n}",
    "x.m = {n} AND xn.a <> x.a",
    "xa = {n}",
    "xn.a > 2 AND xp.a < 0",
    "x.a > b.a + 1",
    "x.a - b.a = {n} - 9",
    "x.s > b.s AND x.d < b.d",
    "x.s <> b.s",
    "x.d > b.d OR xa - ba > {n}",
    "x.x > b.x + 1.5 AND NOT x.f",
    "x.t - bp.t > INTERVAL '1' DAY",
    "xn IS NULL",
    "COALESCE(xn.a, 3) - b.a > 2",
]


@st.composite
def far_clauses(draw: st.DrawFn) -> str:
    """A clause whose windows are long."""

    def when(side: str, bases: list[str]) -> str:
        declared = f"AS {side} AT {side}a PREV AS {side}p NEXT AS {side}n"
        if not draw(st.integers(0, 6)):
            return draw(st.sampled_from([declared, "UNBOUNDED"]))
        text = draw(st.sampled_from(FAR)).format(n=draw(st.integers(-12, 18)))
        base = draw(st.sampled_from(bases))
        names = {"x": side, "b": base}
        return f"{declared} WHEN " + re.sub(
            r"(?<!\.)\b([xb])(?=[apn]?\b)", lambda found: names[found[1]], text
        )

    own = draw(st.sampled_from(["", " WHEN {}.f", " WHEN {}.a > 1 AND NOT {}.f"]))
    first = draw(st.sampled_from("sl"))
    parts = [f"AS {first} AT {first}a PREV AS {first}p NEXT AS {first}n{own.format(first, first)}"]
    only = st.sampled_from(["", "ONLY "])
    if first == "l":
        parts = [f"LABEL {parts[0]}", f"{draw(only)}START {when('s', ['l'])}"]
        declared = ["l"] + ["s"] * ("AS s" in parts[1])
    else:
        parts, declared = [f"{draw(only)}START {parts[0]}"], ["s"]
    kind = draw(st.sampled_from(["SLIDING", "TUMBLING"])) if first == "s" else "SLIDING"
    return f"(TYPE {kind} ORDER BY o {' '.join(parts)} {draw(only)}END {when('e', declared)})"


@st.composite
def cases(draw: st.DrawFn, longest: int) -> dict[str, Any]:
    """A clause over random rows, how they are cut, and some of the aggregates."""
    known = PARTIAL if draw(st.integers(0, 2)) else PARTIAL | HOLISTIC
    names = draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=4, unique=True))
    return {
        "clause": draw(clauses() | far_clauses()),
        "table": rows_of(draw(st.integers(0, 1 << 30)), draw(st.integers(0, longest))),
        "cuts": draw(st.lists(st.integers(0, longest), max_size=5)),
        "chunk_rows": draw(st.integers(1, 5)),
        "aggregates": {name: known[name] for name in names},
    }


@settings(SETTINGS, max_examples=60)
@given(case=cases(40))
@example(
    # one gap has no rows between it and the next
    case={
        "clause": "(TYPE SLIDING ORDER BY o START UNBOUNDED END UNBOUNDED)",
        "table": rows_of(62288247, 21),
        "cuts": [15, 3],
        "chunk_rows": 2,
        "aggregates": {"STDDEV(w.a)": pa.float64(), "MAX(w.x)": pa.float64()},
    },
)
@example(
    # a chain of one window
    case={
        "clause": "(TYPE TUMBLING PARTITION BY k ORDER BY o ONLY START AS s AT sa END UNBOUNDED)",
        "table": rows_of(162270315, 10),
        "cuts": [1, 3],
        "chunk_rows": 5,
        "aggregates": {"BOOL_OR(w.f)": pa.bool_()},
    },
)
def test_sliced_equals_unsliced(case: dict[str, Any]) -> None:
    slices_agree(**case)


@settings(SETTINGS, max_examples=25)
@example(
    # between -3 and 2 the percentile is 0, not what rounding leaves of it
    case={
        "clause": "(TYPE SLIDING ORDER BY o START AS s END UNBOUNDED)",
        "table": Table({"o": "int", "a": "int"}, [{"o": o, "a": a} for o, a in enumerate([-3, 2, 2])]),
        "cuts": [],
        "chunk_rows": 1,
        "aggregates": {"PERCENTILE(w.a, 0.3)": pa.float64()},
    },
)
@given(case=cases(10))
def test_sliced_equals_the_reference(case: dict[str, Any]) -> None:
    slices_agree(**case, judge=True)


@pytest.mark.slow
@settings(SETTINGS, max_examples=250)
@given(case=cases(60))
def test_sliced_equals_unsliced_at_length(case: dict[str, Any]) -> None:
    slices_agree(**case)


@pytest.mark.slow
@settings(SETTINGS, max_examples=100)
@given(case=cases(14))
def test_sliced_equals_the_reference_at_length(case: dict[str, Any]) -> None:
    slices_agree(**case, judge=True)


FAILING = [
    "10 / (e.a - s.a + {n}) > {m}",
    "e.a <> s.a AND 10 / (e.a - s.a) > {m}",
    "10 % (e.a + s.a + {n}) = {m}",
    "e.a = {m} OR 3 / (e.a - {n}) + s.a > 1",
    "(e.a + {n}) * s.a * 700000000 < en.a",
    "e.m - s.m > {n} AND 1 / (e.a - 3) > s.a",
    "NOT (e.a / s.a < 1) AND e.m > s.m",
]


@settings(SETTINGS, max_examples=60)
@given(
    predicate=st.builds(str.format, st.sampled_from(FAILING), n=st.integers(-3, 7), m=st.integers(-3, 5)),
    labelled=st.booleans(),
    seed=st.integers(0, 1 << 30),
    count=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    chunk_rows=st.integers(1, 5),
)
def test_slices_fail_where_the_whole_does(
    predicate: str, labelled: bool, seed: int, count: int, cuts: list[int], chunk_rows: int
) -> None:
    clause = f"START AS s WHEN s.f END AS e NEXT AS en WHEN {predicate}"
    if labelled:
        swapped = re.sub(
            r"\b(s|en|e)\.", lambda found: {"s": "l.", "en": "sn.", "e": "s."}[found[1]], predicate
        )
        clause = f"LABEL AS l AT la START AS s NEXT AS sn WHEN {swapped} END AT ea WHEN ea >= la"
    sql = f"SELECT COUNT(w) FROM t WINDOW BY w AS (TYPE SLIDING ORDER BY o {clause})"
    try:
        plan, rows = planned(sql, rows_of(seed, count), {"__aggregate0": pa.int64()})
    except ExecutionError:
        reject()  # a part that reads one row fails before the kernel
    whole = outcome(lambda: unsliced(plan, rows))
    assert outcome(lambda: sliced(plan, rows, cuts, chunk_rows)) == whole


def outcome(run: Callable[[], list[dict[str, Any]]]) -> Any:
    """The rows, or the condition of the error."""
    try:
        return run()
    except ExecutionError as error:
        return error.condition

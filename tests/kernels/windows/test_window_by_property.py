"""Kernel = reference, for random rows, clauses and predicates: every strategy but the join plan."""

from __future__ import annotations

import datetime
import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.kernels.in_memory import Table, by_kernel, by_reference, draft_of

TYPES = {
    "m": "int",
    "k": "string",
    "o": "int",
    "a": "int",
    "x": "double",
    "s": "string",
    "d": "date",
    "t": "timestamp_ntz",
    "f": "boolean",
}
DAY = datetime.date(2024, 1, 1)
NOON = datetime.datetime(2024, 1, 1, 12)

FIELDS = {
    "a": st.integers(-3, 3),
    "x": st.sampled_from([-1.5, -0.0, 0.0, 1.0, 2.5, math.nan, math.inf, -math.inf]),
    "s": st.sampled_from(["", "a", "b", "ä", "aa"]),
    "d": st.integers(0, 5).map(lambda days: DAY + datetime.timedelta(days=days)),
    "t": st.integers(0, 4).map(lambda hours: NOON + datetime.timedelta(hours=13 * hours)),
    "f": st.booleans(),
}


@st.composite
def tables(draw: st.DrawFn) -> Table:
    count = draw(st.integers(0, 12))
    rows = []
    rises = draw(st.integers(0, 3)) > 0
    for number in range(count):
        # unique order keys: with ties either order is right
        row: dict[str, Any] = {"k": draw(st.sampled_from(["p", "q", None])), "o": number}
        # a column that follows the order, with repeats, in most tables
        row["m"] = number // 2 if rises else draw(st.none() | st.integers(0, 3))
        for name, values in FIELDS.items():
            row[name] = draw(st.none() | values)
        rows.append(row)
    if rows:
        rows[draw(st.integers(0, count - 1))]["o"] = None
    return Table(TYPES, draw(st.permutations(rows)))


FUNCTIONS = [
    "abs({r}.a - {q}.a) > 1",
    "CASE WHEN {r}.a > {q}.a THEN {r}.x ELSE {q}.x END < 1.5",
    "CASE {r}.s WHEN {q}.s THEN 1 WHEN 'a' THEN {q}.a END >= 1",
    "GREATEST({r}.a, {q}.a, 0) = {r}.a",
    "LEAST({r}.s, {q}.s) = 'a'",
    "COALESCE({r}.s, {q}.s) > 'a'",
    "CAST({r}.a + {q}.a AS DOUBLE) / 2 > 0.5",
    "{r}.s || {q}.s IN ('ab', 'aa', 'a')",
    "concat({r}.s, {q}.s) LIKE 'a%'",
    "length({r}.s || {q}.s) = 2",
    "IF({r}.f, {r}.a, {q}.a) > 0",
    "NULLIF({r}.a, {q}.a) IS NULL",
]
"""Functions of two rows that the kernel has."""


def comparisons(rows: list[str], positions: list[str]) -> st.SearchStrategy[str]:
    """Predicates over these row variables and position variables."""
    row = st.sampled_from(rows)
    operator = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
    number = st.integers(-2, 3)
    options = [
        st.builds(lambda r, op, n: f"{r}.a {op} {n}", row, operator, number),
        st.builds(lambda r, op, q, n: f"{r}.m - {q}.m {op} {n}", row, operator, row, number),
        st.builds(lambda r, q, n: f"{r}.m - {q}.m BETWEEN {n} AND {n + 2}", row, row, number),
        st.builds(lambda r, op, q: f"{r}.m {op} {q}.m", row, operator, row),
        st.builds(lambda r, c, op, q: f"{r}.{c} {op} {q}.{c}", row, st.sampled_from("axsdtf"), operator, row),
        st.builds(lambda r, op, q, n: f"{r}.a - {q}.a {op} {n}", row, operator, row, number),
        st.builds(
            lambda r, op, q, n: f"{r}.d - {q}.d {op} INTERVAL '{abs(n)}' DAY", row, operator, row, number
        ),
        st.builds(
            lambda r, op, q, n: f"{r}.t - {q}.t {op} INTERVAL '{abs(n)}' DAY", row, operator, row, number
        ),
        st.builds(lambda r, op, q, n: f"datediff({r}.d, {q}.d) {op} {n}", row, operator, row, number),
        st.builds(lambda r, q, n: f"COALESCE({r}.a, {n}) > COALESCE({q}.a, 1)", row, row, number),
        st.builds(lambda r, n: f"COALESCE({r}.a, {n}) >= 1", row, number),
        st.builds(lambda r: f"{r} IS NULL", row),
        st.builds(lambda r, c: f"{r}.{c} IS NOT NULL", row, st.sampled_from("axs")),
        st.builds(lambda r, q: f"{r}.a IN ({q}.a, 2)", row, row),
        st.builds(lambda r, q, n: f"{r}.a BETWEEN {q}.a AND {n}", row, row, number),
        st.builds(lambda r, op, q: f"{r} {op} {q}", row, st.sampled_from(["=", "<>", "<=>"]), row),
        st.builds(lambda r, q: f"{r}.x + {q}.x > 0.5", row, row),
        st.builds(lambda r, q: f"{q}.a <> 0 AND {r}.a / {q}.a >= 1", row, row),
        st.sampled_from(["TRUE", "FALSE", "NULL", "1 = 1"]),
        st.builds(lambda r, q, text: text.format(r=r, q=q), row, row, st.sampled_from(FUNCTIONS)),
    ]
    if positions:
        position = st.sampled_from(positions)
        options.append(st.builds(lambda p, op, n: f"{p} {op} {abs(n)}", position, operator, number))
        options.append(
            st.builds(lambda p, q, op, n: f"{p} - {q} {op} {n}", position, position, operator, number)
        )
        options.append(
            st.builds(lambda p, q, op, n: f"{p} {op} {q} + {n}", position, position, operator, number)
        )
    return st.one_of(options)


def predicates(rows: list[str], positions: list[str]) -> st.SearchStrategy[str]:
    return st.recursive(
        comparisons(rows, positions),
        lambda inner: st.one_of(
            st.builds(lambda left, right: f"({left} AND {right})", inner, inner),
            st.builds(lambda left, right: f"({left} OR {right})", inner, inner),
            st.builds(lambda part: f"NOT ({part})", inner),
        ),
        max_leaves=3,
    )


@st.composite
def clauses(draw: st.DrawFn) -> str:
    """A WINDOW BY clause in which every side has all four variables."""
    labelled = draw(st.booleans())
    tumbling = draw(st.booleans())
    rows: list[str] = []
    positions: list[str] = []
    parts = [f"TYPE {'TUMBLING' if tumbling else 'SLIDING'}"]
    if draw(st.booleans()):
        parts.append("PARTITION BY k")
    parts.append("ORDER BY o" + draw(st.sampled_from(["", " DESC", " NULLS LAST", " DESC NULLS FIRST"])))
    for side in ("l", "s", "e"):
        if side == "l" and not labelled:
            continue
        if side == "e" and tumbling and draw(st.integers(0, 3)) == 0:
            continue
        only = "ONLY " if side != "l" and draw(st.integers(0, 3)) == 0 else ""
        word = {"l": "LABEL", "s": "START", "e": "END"}[side]
        if side != "l" and draw(st.integers(0, 7)) == 0:
            parts.append(f"{only}{word} UNBOUNDED")
            continue
        rows += [side, f"{side}p", f"{side}n"]
        positions.append(f"{side}a")
        declared = f"AS {side} AT {side}a PREV AS {side}p NEXT AS {side}n"
        when = f" WHEN {draw(predicates(rows, positions))}" if draw(st.integers(0, 5)) else ""
        parts.append(f"{only}{word} {declared}{when}")
    return "(" + " ".join(parts) + ")"


AGGREGATES = "COUNT(w.a), SUM(w.a), AVG(w.x), MIN(w.s), MAX(w.x), COUNT(DISTINCT w.s), FIRST(w.a), LAST(w.d)"
RESULTS = [
    pa.int64(),
    pa.int64(),
    pa.float64(),
    pa.string(),
    pa.float64(),
    pa.int64(),
    pa.int32(),
    pa.date32(),
]


def windows_agree(clause: str, table: Table) -> None:
    sql = f"SELECT *, {AGGREGATES} FROM t WINDOW BY w AS {clause}"
    types = {f"__aggregate{number}": kind for number, kind in enumerate(RESULTS)}
    found = by_kernel(sql, table, types)
    expected = by_reference(sql, table)
    assert sorted(map(_key, found)) == sorted(map(_key, expected)), sql


def _key(row: dict[str, Any]) -> str:
    return repr({name: comparable(value) for name, value in sorted(row.items())})


def comparable(value: Any) -> Any:
    """The value with floats rounded to 12 digits, so that the order of summation does not show."""
    if isinstance(value, float):
        # sums of the same few values in another order: the last bits and the sign of zero may differ
        return "NaN" if math.isnan(value) else float(f"{value:.12g}") + 0.0
    if isinstance(value, dict):
        return {name: comparable(part) for name, part in sorted(value.items())}
    if isinstance(value, list):
        return [comparable(part) for part in value]
    return value


SETTINGS = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
NULLS: dict[str, Any] = dict.fromkeys(TYPES)


@settings(SETTINGS, max_examples=70)
@given(clause=clauses(), table=tables())
@example(
    # NULL in a guard is not FALSE: what it guards is needed
    clause="(TYPE SLIDING ORDER BY o START AS s PREV AS sp"
    " WHEN NOT (s.a = 0 AND COALESCE(s.a, 0) > COALESCE(sp.a, 1)) END UNBOUNDED)",
    table=Table(TYPES, [NULLS | {"o": 0}, NULLS | {"o": 1}]),
)
@example(
    # a condition that is NULL for most rows is still a condition
    clause="(TYPE SLIDING ORDER BY o START AS s WHEN (NULL OR s.a = -1) END UNBOUNDED)",
    table=Table(TYPES, [NULLS | {"o": 0}, NULLS | {"o": 1, "a": -1}]),
)
@example(
    # a function that is NULL where two rows are equal has the type that it has elsewhere
    clause="(TYPE SLIDING ORDER BY o ONLY START AS s AT sa PREV AS sp NEXT AS sn"
    " WHEN NULLIF(s.a, sp.a) IS NULL AND NULLIF(s.a, sn.a) IS NULL ONLY END UNBOUNDED)",
    table=Table(TYPES, []),
)
@example(
    # a row variable compared with itself is no column of Spark's
    clause="(TYPE SLIDING ORDER BY o LABEL AS l START AS s WHEN l = l END UNBOUNDED)",
    table=Table(TYPES, [NULLS | {"o": 0}]),
)
def test_kernel_equals_reference(clause: str, table: Table) -> None:
    windows_agree(clause, table)


@pytest.mark.slow
@settings(SETTINGS, max_examples=250)
@given(clause=clauses(), table=tables())
def test_kernel_equals_reference_at_length(clause: str, table: Table) -> None:
    windows_agree(clause, table)


@pytest.mark.parametrize(
    ("end", "strategy"),
    [
        ("END AS e", "always"),
        ("END UNBOUNDED", "unbounded"),
        ("END NEXT AS n WHEN n.a > 2 OR n IS NULL", "first true"),
        ("END AS e AT ep WHEN ep = sp + 2", "position"),
        ("END AS e WHEN e = s", "position"),
        ("END NEXT AS n WHEN n.d - s.d > INTERVAL '7' DAY", "monotone"),
        ("END AS e WHEN e.m - s.m BETWEEN 1 AND 3", "monotone"),
        ("END AS e WHEN e.a <> s.a", "scan"),
        ("END AS e WHEN e.s = s.s AND e.x > s.x + e.a", "scan"),
        ("END AS e WHEN upper(concat(e.s, s.s)) = 'AB'", "given"),
    ],
)
def test_the_strategy_chosen(end: str, strategy: str) -> None:
    sql = f"SELECT s.a FROM t WINDOW BY w AS (TYPE SLIDING ORDER BY o START AS s AT sp {end})"
    draft, _ = draft_of(sql, Table(TYPES, []))
    (found,) = draft.found
    assert found.search.strategy == strategy

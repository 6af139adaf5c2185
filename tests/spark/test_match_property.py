"""Batch on Spark = reference, for random patterns, conditions and measures of all kinds over random rows.

The reference tries all ways to match one after the other; the fast twin in tests/kernels leaves Spark out.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from windrow import Session, WindrowError
from windrow.spark.clauses import match_requests

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.usefixtures("interpreted")]

PATTERNS = [
    "A B+",
    "(A | B)+ C?",
    "B* A C",
    "A {- B {- C* -} -} B?",
    "(B | A | C){2,3}?",
    "^ A* B",
    "PERMUTE(A, B?)",
    "(A | B)*? C",
]
CONDITIONS = [
    "v >= 3",
    "{0}.v > (SELECT avg(top) FROM lim)",
    "c IN (SELECT c FROM lim)",
    "c NOT IN (SELECT c FROM lim WHERE c IS NOT NULL)",
    "{0}.v >= (SELECT max(l.top) FROM lim AS l WHERE l.k = {0}.k)",
    "NOT EXISTS (SELECT 1 FROM lim AS l WHERE l.top = A.v)",
    "A.c IN (SELECT c FROM lim WHERE top < 5) OR {0}.v > A.v",
    "SUM(v) > (SELECT min(top) FROM lim)",
    "COUNT(CASE WHEN CLASSIFIER() = 'A' THEN 1 END) <= 1",
    "SUM({0}.v) FILTER (WHERE CLASSIFIER({0}) <> 'B') < 7",
    "MAX(CLASSIFIER()) <> 'C'",
    "LAST(CLASSIFIER() || c, 1) <> 'Ax'",
    "FIRST(CLASSIFIER() || c) = 'Ax'",
    "PREV(coalesce(CLASSIFIER(), 'B') || c) >= 'Ay'",
    "first_value(v) IGNORE NULLS <= v",
    "last_value(v) IGNORE NULLS FILTER (WHERE c = 'x') > 1",
    "LAST(MATCH_NUMBER() + v, 1) > 3",
    "PREV(v) < v",
    "upper(A.c || {0}.c) IN ('XX', 'XY')",
    "A.v + {0}.v NOT IN (SELECT top FROM lim)",
    "CAST(concat(A.v, {0}.v) AS INT) > 20 OR upper(concat(FIRST(c), c)) IS NULL",
    "upper(concat(NEXT(FIRST(c)), PREV(c))) = 'XY'",
    "PREV(CLASSIFIER(A)) = 'B'",
    "coalesce(PREV(LAST(CLASSIFIER({0}), 1), 2), 'none') <> 'A'",
    "NEXT(CLASSIFIER(A)) = 'B' OR PREV(FIRST(CLASSIFIER({0}))) IS NULL",
    "upper(concat(A.c, {0}.c, PREV(c))) LIKE 'X%'",
    "upper(concat(coalesce(A.c, CLASSIFIER()), COUNT(*))) <> 'X2'",
    "upper(concat(FIRST(c), MATCH_NUMBER())) <> 'X1'",
    "A.v + FIRST(v) + {0}.v NOT IN (SELECT top FROM lim)",
    "any_value(v) FILTER (WHERE c = 'x') < 5",
    "MAX_BY(c, v * MATCH_NUMBER() + i) = 'x'",
]
MEASURES = [
    "CLASSIFIER()",
    "PREV(CLASSIFIER() || c)",
    "NEXT(MATCH_NUMBER() + i)",
    "array_agg(coalesce(CLASSIFIER() || i, 'none'))",
    "SUM(v * MATCH_NUMBER())",
    "MAX_BY(CLASSIFIER(), i)",
    "COUNT(*) FILTER (WHERE CLASSIFIER() = 'B' AND i > MATCH_NUMBER())",
    "first_value(v) FILTER (WHERE c = 'y')",
    "last_value(v) IGNORE NULLS",
    "FINAL LAST(concat(CLASSIFIER(), i), 1)",
    "FINAL percentile(v, 0.5)",
    "approx_count_distinct(A.c)",
    "A.v IN (SELECT top FROM lim)",
    "(SELECT max(l.top) FROM lim AS l WHERE l.top <= A.v) + SUM(v * (SELECT min(top) FROM lim))",
    "COUNT(DISTINCT A.*)",
    "MAX(MATCH_NUMBER())",
]
ALL_ROWS = "ALL ROWS PER MATCH"
ROWS = ["", ALL_ROWS, f"{ALL_ROWS} OMIT EMPTY MATCHES", f"{ALL_ROWS} WITH UNMATCHED ROWS"]
LENGTHS = ["", "", "WITHIN 3", "WITHIN INCLUSIVE v", "WITHIN COALESCE(v, 1) + i % 2"]
SKIPS = ["", "AFTER MATCH SKIP TO NEXT ROW", "ALL MATCHES"]

values = st.tuples(st.sampled_from(["x", "y", None]), st.one_of(st.none(), st.integers(0, 6)))
some = st.lists(st.sampled_from(CONDITIONS), min_size=1, max_size=2, unique=True)


@settings(
    max_examples=60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    rows=st.lists(values, min_size=1, max_size=6),
    pattern=st.sampled_from(PATTERNS),
    conditions=st.dictionaries(st.sampled_from("AB"), some, min_size=1),
    measures=st.lists(st.sampled_from(MEASURES), min_size=1, max_size=4, unique=True),
    shown=st.sampled_from(ROWS),
    skip=st.sampled_from(SKIPS),
    length=st.sampled_from(LENGTHS),
    most=st.sampled_from([2, 20_000]),
)
def test_batch_equals_reference(
    spark: SparkSession,
    rows: list[tuple[str | None, int | None]],
    pattern: str,
    conditions: dict[str, list[str]],
    measures: list[str],
    shown: str,
    skip: str,
    length: str,
    most: int,
) -> None:
    table = [("ab"[at % 2], at, *row) for at, row in enumerate(rows)]
    spark.createDataFrame(table, "k string, i int, c string, v int").createOrReplaceTempView("seq")
    lim = [("a", 2, "x"), ("b", 4, "y"), ("c", 6, None)]
    spark.createDataFrame(lim, "k string, top int, c string").createOrReplaceTempView("lim")
    if "{-" in pattern and "UNMATCHED" in shown:
        shown = ALL_ROWS
    named = ", ".join(f"{text} AS m{number}" for number, text in enumerate(measures))
    defines = []
    for name, parts in conditions.items():
        # with ALL MATCHES numbers are those of matches that are complete
        known = [part for part in parts if skip != "ALL MATCHES" or "MATCH_NUMBER" not in part]
        defines.append(f"{name} AS {' AND '.join(f'({part})' for part in known).format(name) or 'TRUE'}")
    sql = (
        f"SELECT * FROM seq MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES {named} {shown} {skip}"
        f" PATTERN ({pattern}) {length} DEFINE {', '.join(defines)})"
    )
    with patch.object(match_requests, "_AT_FIRST", most):  # how much Spark is asked for in the first round
        found = answer(Session(spark, execution="batch"), sql)
    expected = answer(Session(spark, execution="reference"), sql)
    assert found == expected, sql


def answer(session: Session, sql: str) -> list[str]:
    """The rows in any order, or the error's condition."""
    try:
        return sorted(repr(row.asDict(recursive=True)) for row in session.sql(sql).collect())
    except WindrowError as error:
        return [error.condition]

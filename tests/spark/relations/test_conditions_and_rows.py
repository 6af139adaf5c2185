"""Conditions with subqueries, values of rows that do not exist, and inline tables, over streams."""

from __future__ import annotations

import pytest

import windrow
from windrow.errors import ExecutionError


@pytest.fixture(params=["batch", "reference"])
def session(spark, request):
    spark.sql("SELECT * FROM VALUES (1, CAST(NULL AS INT)), (1, 1) AS t(ts, k)").createOrReplaceTempView("l1")
    session = windrow.Session(spark, execution=request.param)
    session.sql("CREATE OR REPLACE STREAM m (ROWTIME ts INT UNIT SECONDS, k INT) FROM l1")
    yield session
    session.sql("DROP STREAM m")
    spark.catalog.dropTempView("l1")


def rows(session, query):
    return sorted(map(tuple, session.sql(query).at(1).collect()), key=repr)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("NOT NOT k IN (Q)", [(1,)]),
        ("NOT NOT (k IN (Q))", [(1,)]),
        ("NOT NOT NOT k IN (Q)", []),
        ("NOT NOT k NOT IN (Q)", []),
        ("NOT (NOT NOT k IN (Q))", []),
        ("k > 100 OR NOT NOT k IN (Q)", [(1,)]),
        ("k IN ((SELECT MAX(k) FROM m [NOW]))", [(1,)]),
        ("k NOT IN ((SELECT MAX(k) + 1 FROM m [NOW]))", [(1,)]),
    ],
)
def test_unknown_is_not_true_however_often_it_is_negated(session, condition, expected):
    condition = condition.replace("Q", "SELECT k FROM m [NOW]")
    assert rows(session, f"SELECT k FROM m [NOW] WHERE {condition}") == expected


def test_negated_twice_and_selected(session):
    query = "SELECT k, NOT NOT k IN (SELECT k FROM m [NOW]) AS b FROM m [NOW]"
    assert rows(session, query) == [(1, True), (None, False)]


def test_a_list_of_one_subquery_has_one_value(session):
    with pytest.raises(ExecutionError) as caught:
        rows(session, "SELECT k FROM m [NOW] WHERE k IN ((SELECT k FROM m [NOW]))")
    assert caught.value.condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT 100 / (SELECT COUNT(*) FROM m [NOW] AS x WHERE x.ts = m.ts) AS d FROM m [NOW]",
            [(50.0,), (50.0,)],
        ),
        (
            "SELECT m.k, 1 / COALESCE(x.k, 0) AS d FROM m [NOW] LEFT JOIN m [NOW] AS x ON m.ts = x.ts"
            " WHERE x.k = 1",
            [(1, 1.0), (None, 1.0)],
        ),
        (
            "SELECT x.k FROM m [NOW] FULL JOIN m [NOW] AS x ON m.ts = x.ts WHERE 1 / COALESCE(x.ts, 0) > 0",
            [(1,), (1,), (None,), (None,)],
        ),
        (
            "SELECT element_at(array(10, 20), COALESCE(x.k, 0)) AS e FROM m [NOW]"
            " LEFT JOIN m [NOW] AS x ON m.ts = x.ts WHERE x.k = 1",
            [(10,), (10,)],
        ),
    ],
)
def test_values_of_rows_that_do_not_exist_are_not_computed(session, query, expected):
    assert rows(session, query) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("VALUES (1), (2) AS q(k) JOIN m [NOW] ON m.k = q.k", [(1,)]),
        ("VALUES 1, 2 AS q(k) JOIN m [NOW] ON m.k = q.k", [(1,)]),
        ("m [NOW], VALUES (1), (2) q(k) WHERE m.k = q.k", [(1,)]),
        ("VALUES (1) AS q(k), m [NOW] WHERE m.k = q.k", [(1,)]),
        ("VALUES (1), (7) q(k), m [NOW], m [NOW] AS z WHERE m.k = q.k", [(1,), (1,)]),
        ("m [NOW] JOIN VALUES (1), (2) AS q(k) ON q.k = m.k, VALUES (5), (6) AS z", [(1,), (1,)]),
        ("VALUES (1), (2) AS q(k) WHERE k IN (SELECT k FROM m [NOW])", [(1,)]),
    ],
)
def test_inline_tables_have_several_rows(session, source, expected):
    assert rows(session, f"SELECT q.k FROM {source}") == expected

"""ORDER BY of relations over windows in brackets."""

from __future__ import annotations

import pytest

from tests.spark.ticks import refused, ticks_of
from windrow import Session

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def ticks(spark):
    return ticks_of(Session(spark))


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("total DESC", [(1, 9), (0, 6)]),
        ("k", [(0, 6), (1, 9)]),
        ("1 DESC", [(1, 9), (0, 6)]),
        ("SUM(v) DESC, t.k", [(1, 9), (0, 6)]),
        ("ALL", [(0, 6), (1, 9)]),
        ("k DESC LIMIT 2", [(1, 9), (0, 6)]),
    ],
)
def test_order_by_sorts_the_rows_at_an_instant(ticks, order, expected):
    found = ticks.sql(
        f"SELECT t.k, SUM(v) AS total FROM ticks [RANGE 100] AS t GROUP BY t.k ORDER BY {order}"
    )
    assert [tuple(row) for row in found.collect()] == expected
    assert [tuple(row) for row in found.at(5).collect()] == expected
    assert found.to_pandas().values.tolist() == [list(row) for row in expected]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v FROM ticks {} ORDER BY k DESC, v DESC",
        "SELECT v * 2 AS w FROM ticks {} ORDER BY k, w % 4, v DESC",
        "SELECT * FROM ticks {} AS t ORDER BY -t.v LIMIT 2",
        "SELECT k, COUNT(*) FROM ticks {} GROUP BY k ORDER BY MAX(v) DESC NULLS LAST",
        "SELECT DISTINCT k FROM ticks {} ORDER BY -k",
        "SELECT v, v FROM (SELECT k + ? AS k, v FROM ticks {}) ORDER BY k % ?, v",
        "WITH q AS (SELECT k, v FROM ticks {}) SELECT MAX(v) AS m FROM q GROUP BY k ORDER BY k + 1 DESC",
        "FROM ticks {} AS t SELECT v * 2 AS w ORDER BY t.k, w % 4, v DESC LIMIT 3",
        "FROM ticks {} SELECT k, MAX(v) AS m WHERE v IS DISTINCT FROM 3 GROUP BY k ORDER BY SUM(v) % 5, -k",
        "(SELECT v FROM ticks {0}) UNION ALL (SELECT -k FROM ticks {0}) ORDER BY v % 3, -v",
        "WITH q AS (FROM ticks {} SELECT k, v) FROM q SELECT DISTINCT v ORDER BY v % 3, v",
    ],
)
def test_order_by_of_what_is_not_selected_sorts_as_in_spark(ticks, query):
    values = [3, 2] if "?" in query else []
    found = ticks.sql(query.format("[RANGE 100]"), *values)
    expected = ticks.spark.sql(query.format(""), args=values or None)
    assert found.columns == found.df.columns == expected.columns
    assert found.collect() == found.at(5).collect() == expected.collect()
    assert found.changelog().df.columns[: len(expected.columns)] == expected.columns


def test_order_by_of_a_set_operator_sees_only_its_columns(ticks):
    wrong = "(SELECT v FROM ticks [RANGE 100]) UNION ALL (SELECT v FROM ticks [ROWS 1]) ORDER BY k, v"
    assert refused(ticks, wrong) == ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "k")


@pytest.mark.parametrize("execution", ["batch", "reference"])
@pytest.mark.parametrize(
    ("query", "order"),
    [
        ("SELECT k, COUNT(*) AS n FROM ticks [PARTITION BY k ROWS 1] GROUP BY k", "SUM(v)"),
        ("SELECT k FROM ticks [ROWS 2]", "-ts"),
    ],
)
def test_a_key_that_is_not_selected_changes_no_row(spark, execution, query, order):
    """The rows stay as they are while the key changes, so nothing leaves and enters."""
    session = ticks_of(Session(spark, execution=execution))
    changes, sorted_changes = (
        sorted(map(tuple, session.sql(text).changelog("diff").df.collect()))
        for text in (query, f"{query} ORDER BY {order}")
    )
    assert changes == sorted_changes

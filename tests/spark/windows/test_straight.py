"""Statements that only choose and rename what the kernel gives are its rows, without a copy by Spark."""

from __future__ import annotations

import pytest

from windrow import Session

WINDOW = (
    "FROM rows WINDOW BY w AS ("
    "TYPE SLIDING PARTITION BY k ORDER BY o START AS s AT a END AT b WHEN b - a = 1)"
)


@pytest.fixture
def session(spark):
    spark.range(12).selectExpr("id % 3 AS k", "id AS o", "id * 0.5D AS x").createOrReplaceTempView("rows")
    return Session(spark)


def projects(frame, capsys) -> bool:
    """Whether Spark copies the rows of the kernel."""
    capsys.readouterr()
    frame.explain("simple")
    plan = capsys.readouterr().out
    assert "MapInArrow" in plan
    return "Project" in plan.partition("MapInArrow")[0]


@pytest.mark.parametrize(
    ("select", "copied"),
    [
        ("SELECT s.k, s.o AS first, SUM(w.x), a", False),
        ("SELECT SUM(w.x) AS `a, b.c#1`, s.o", False),
        ("SELECT a AS b, s.o AS a, SUM(w.x) AS k", False),
        ("SELECT s.o, SUM(w.x) + 1 AS x", True),
        ("SELECT s, SUM(w.x) AS x", True),
        ("SELECT s.k, s.o, s.o", True),
        ("SELECT S.k, /* as written */ s.`o` AS `AS`, b", True),
        ("SELECT /* first */ s.k, s.`o` AS `AS`, b", False),
    ],
)
def test_the_same_rows_with_and_without_a_copy(session, capsys, select, copied):
    query = f"{select} {WINDOW}"
    frame = session.sql(query).df
    assert projects(frame, capsys) == copied
    plain = session.sql(f"{query} HAVING true").df
    assert projects(plain, capsys)
    assert plain.schema == frame.schema
    assert sorted(map(str, plain.collect())) == sorted(map(str, frame.collect()))


def test_the_rows_of_another_window_are_not_taken_for_it(session):
    session.sql(f"CREATE OR REPLACE TEMP VIEW earlier AS SELECT s.o, SUM(w.x) AS x {WINDOW}")
    unused = f"unused AS (SELECT s.o, SUM(w.x) AS x {WINDOW.replace('rows', 'rows WHERE k = 0')})"
    view = session.sql(f"WITH {unused} SELECT o, x FROM earlier").df
    assert view.count() == 12
    both = f"WITH one AS (SELECT s.o, SUM(w.x) AS x {WINDOW}), {unused} SELECT o, x FROM one"
    assert session.sql(both).df.count() == 12


def test_what_is_done_with_the_windows_afterwards_is_not_lost(session):
    assert session.sql(f"SELECT s.o {WINDOW} LIMIT 3").df.count() == 3
    assert session.sql(f"SELECT s.o {WINDOW} HAVING s.o > 5").df.count() == 6
    assert [row.o for row in session.sql(f"SELECT s.o {WINDOW} ORDER BY o DESC").df.take(2)] == [11, 10]
    assert session.sql(f"SELECT DISTINCT s.k {WINDOW}").df.count() == 3

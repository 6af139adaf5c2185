"""Files that FROM names by their paths."""

from __future__ import annotations

import pytest

import windrow
from windrow.errors import InputError, WindrowError


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Readings of three sensors as CSV and JSON, in the working directory."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sensor.csv").write_text("k,i,v\na,1,10\na,2,30\nb,1,5\n")
    (tmp_path / "names.json").write_text('{"k": "a", "name": "attic"}\n{"k": "b", "name": "barn"}\n')
    (tmp_path / "days").mkdir()
    for day in (1, 2):
        (tmp_path / "days" / f"{day}.csv").write_text(f"day\n{day}\n")


@pytest.fixture
def session(spark, files):
    return windrow.Session(spark)


def rows(relation):
    return sorted(tuple(row) for row in relation.collect())


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("SELECT i, v FROM 'sensor.csv' WHERE k = 'a'", [(1, 10), (2, 30)]),
        ("SELECT sensor.v FROM 'sensor.csv' WHERE sensor.i = 2", [(30,)]),
        (
            "select s.v, n.name from 'sensor.csv' s join \"names.json\" AS n using (k) where i = 1",
            [(5, "barn"), (10, "attic")],
        ),
        ("SELECT COUNT(*) FROM 'sensor.csv', 'names.json'", [(6,)]),
        ("SELECT SUM(day) FROM 'days/*.csv'", [(3,)]),
        ("SELECT SUM(days.day) FROM 'days'", [(3,)]),
        ("WITH t AS (FROM 'sensor.csv') SELECT MAX(v) FROM (SELECT * FROM t)", [(30,)]),
        ("SELECT k FROM 'names.json' WHERE k IS DISTINCT FROM 'a'", [("b",)]),
        ("SELECT EXTRACT(YEAR FROM '2024-05-01') AS y, k FROM 'names.json' WHERE k = 'a'", [(2024, "a")]),
        (
            "SELECT s.k, COUNT(w) AS n FROM 'sensor.csv' WINDOW BY w AS"
            " (TYPE SLIDING PARTITION BY k ORDER BY i START AS s END UNBOUNDED)",
            [("a", 1), ("a", 2), ("b", 1)],
        ),
        (
            "SELECT k, n FROM 'sensor.csv' MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(*) AS n"
            " PATTERN (A+) DEFINE A AS A.v > 7)",
            [("a", 2)],
        ),
    ],
)  # fmt: skip
def test_a_path_in_quotes_is_a_table(session, query, wanted):
    assert rows(session.sql(query)) == wanted


def test_parameters_stay_in_their_places(session):
    assert rows(session.sql("SELECT ? + v FROM 'sensor.csv' WHERE i = ?", 100, 2)) == [(130,)]


def test_a_view_reads_the_file_that_it_names_and_each_statement_looks_again(session, tmp_path):
    session.sql("CREATE OR REPLACE TEMP VIEW readings AS SELECT k, v FROM 'sensor.csv'")
    before = session.sql("SELECT v FROM 'sensor.csv'")
    assert len(rows(session.sql("SELECT * FROM readings"))) == len(rows(before)) == 3
    (tmp_path / "sensor.csv").write_text("k,i,w\na,1,x\n")
    assert rows(session.sql("SELECT w FROM 'sensor.csv'")) == [("x",)]


def test_a_view_goes_on_reading_its_file_when_the_working_directory_is_another(
    session, tmp_path, monkeypatch
):
    session.sql("CREATE OR REPLACE TEMP VIEW readings AS SELECT v FROM 'sensor.csv'")
    other = tmp_path / "other"
    other.mkdir()
    (other / "sensor.csv").write_text("v\n7\n")
    monkeypatch.chdir(other)
    assert rows(session.sql("SELECT v FROM 'sensor.csv'")) == [(7,)]
    assert rows(session.sql("SELECT v FROM readings")) == [(5,), (10,), (30,)]


def test_what_cannot_be_read_is_an_error_at_the_path(session):
    query = "SELECT *\nFROM 'sensors.csv'"
    with pytest.raises(InputError, match="PATH_NOT_FOUND") as raised:
        session.sql(query)
    assert raised.value.span is not None
    assert query[raised.value.span.start : raised.value.span.stop] == "'sensors.csv'"


def test_plans_have_the_path_as_it_is_written(session):
    query = "SELECT s.k FROM 'sensor.csv' WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s)"
    for plan in (session.sql(query).plan(), session.sql(f"EXPLAIN {query}").collect()[0][0]):
        assert "FROM 'sensor.csv' AS `sensor`" in plan
        assert "__file_" not in plan


def test_an_error_in_the_query_has_its_place(session):
    query = "SELECT v, vv FROM 'sensor.csv'"
    with pytest.raises(windrow.AnalysisError) as raised:
        session.sql(query)
    assert raised.value.span is not None
    assert query[raised.value.span.start : raised.value.span.stop] == "vv"


def test_check_reads_the_columns_of_a_file_and_makes_nothing(session, spark, tmp_path):
    path = tmp_path / "checked.csv"
    path.write_text("k,v\na,1\n", encoding="utf-8")
    clause = "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY v START AS s)"
    session.check(f"SELECT k FROM '{path}'")
    session.check(f"CREATE TEMPORARY VIEW of_a_check AS SELECT s.k FROM '{path}' {clause}")
    assert not spark.catalog.tableExists("of_a_check")
    with pytest.raises(WindrowError, match="UNKNOWN_FIELD"):
        session.check(f"SELECT s.kk FROM '{path}' {clause}")


def test_the_view_of_a_file_is_no_name_of_the_session(session):
    session.sql("SELECT * FROM 'sensor.csv'").collect()
    assert not [name for name in session.names() if "sensor" in name]

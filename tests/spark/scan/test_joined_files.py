"""Tasks that read files join their rows with small tables, and give the rows that Spark's joins give."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PythonException

from windrow import Session
from windrow.spark.scan.file_scan import READ_SETTING

TOLD = "the Parquet files, in the tasks themselves"
COUNT = 60
READINGS = pa.table(
    {
        "k": pa.array(["a", "b", None, "ä", "", "z"] * 10),
        "n": pa.array([at % 4 if at % 5 else None for at in range(COUNT)], pa.int32()),
        "o": pa.array(range(COUNT), pa.int64()),
        "x": pa.array([None if at % 7 == 0 else at / 4 for at in range(COUNT)]),
    }
)
TABLES = """
    CREATE OR REPLACE TEMPORARY VIEW ones AS SELECT * FROM
        VALUES ('a', 'north', 1), ('b', 'south', 2), ('ä', NULL, 3), ('', 'east', 4), (NULL, 'none', 5)
        AS (k, region, size);
    CREATE OR REPLACE TEMPORARY VIEW several AS SELECT * FROM
        VALUES ('a', 'p'), ('a', 'q'), ('b', 'r'), (NULL, 's'), ('unused', 't') AS (k, tag);
    CREATE OR REPLACE TEMPORARY VIEW unused AS SELECT * FROM VALUES ('never', 1) AS (k, y);
    CREATE OR REPLACE TEMPORARY VIEW crowd AS SELECT 'a' AS k, id FROM range(17)
    """
JOINS = {
    "one row each": "SELECT r.k, o, x, region AS p FROM readings r JOIN ones t ON r.k = t.k",
    "the table first": "SELECT r.k, o, x, region AS p FROM ones t JOIN readings r ON r.k = t.k",
    "several rows each": "SELECT r.k, o, x, tag AS p FROM readings r JOIN several t ON r.k = t.k",
    "rows without a partner": "SELECT r.k, o, x, tag AS p FROM readings r LEFT JOIN several t ON r.k = t.k",
    "right": "SELECT r.k, o, x, region AS p FROM ones t RIGHT JOIN readings r ON r.k = t.k",
    "no row": "SELECT r.k, o, x, y AS p FROM readings r LEFT JOIN unused t ON r.k = t.k",
    "all pairs": "SELECT r.k, o, x, region AS p FROM readings r CROSS JOIN ones t",
    "two tables": "SELECT r.k, o, x, CONCAT(region, tag) AS p FROM readings r JOIN ones t ON r.k = t.k "
    "JOIN several s ON s.k = t.k",
    "conditions": "SELECT r.k, o, x + size AS x, region AS p FROM readings r JOIN ones t ON r.k = t.k "
    "WHERE size > 1 AND region <> 'east' AND o > 5",
    "a condition of both": "SELECT r.k, o, x, region AS p FROM readings r JOIN ones t ON r.k = t.k "
    "WHERE o > 9 * size",
    "two keys": "SELECT r.k, o, x, region AS p FROM readings r JOIN ones t ON r.k = t.k AND n + 2 = size",
    "a computed key": "SELECT r.k, o, x, region AS p FROM readings r JOIN ones t ON n + 1 = t.size",
    "using": "SELECT k, o, x, region AS p FROM readings JOIN ones USING (k)",
    "a struct": "SELECT k, o, x, both.region AS p FROM (SELECT r.k, o, x, struct(region, o) AS both "
    "FROM readings r JOIN ones t ON r.k = t.k)",
}


def query(join):
    return f"""
        SELECT s.k, s.o, s.p, SUM(w.x) AS total, COUNT(w) AS n FROM ({join})
        WINDOW BY w AS (TYPE SLIDING PARTITION BY p, k ORDER BY o START AS s AT sp END AT ep WHEN ep - sp = 3)
        """


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark)
    pq.write_table(READINGS, tmp_path / "readings.parquet", row_group_size=13)
    session.register("readings", tmp_path / "readings.parquet")
    for statement in TABLES.split(";"):
        session.sql(statement)
    return session


@pytest.mark.parametrize("name", JOINS)
def test_tasks_join_as_spark_does(session, conf, name):
    conf(READ_SETTING, "true")
    asked = session.sql(query(JOINS[name]))
    assert TOLD in asked.plan()
    assert "joined there with " in asked.plan()
    found = sorted(map(str, asked.df.collect()))
    conf(READ_SETTING, "false")
    other = session.sql(query(JOINS[name]))
    assert TOLD not in other.plan()
    assert found == sorted(map(str, other.df.collect()))


@pytest.mark.parametrize(
    ("join", "reason"),
    [
        (
            "SELECT r.k, o, x, id AS p FROM readings r JOIN crowd t ON r.k = t.k",
            "one of them is joined with 17 rows, and the most is 16",
        ),
        (
            "SELECT r.k, o, x, t.r AS p FROM readings r "
            "JOIN (SELECT id, rand() AS r FROM range(3)) t ON n = id",
            "they are joined with a table that may change before the query runs",
        ),
        (
            "SELECT r.k, o, x, p FROM readings r CROSS JOIN (SELECT 'c' AS p)",
            "join is between them and the files",
        ),
    ],
)
def test_other_joins_are_of_spark_and_explain_says_why(session, join, reason):
    assert reason in session.sql(query(join)).plan()


def test_a_row_of_constants_joins_with_every_row(session, conf):
    asked = query("SELECT r.k, o, x, p FROM readings r CROSS JOIN (SELECT 'c' AS p)")
    found = sorted(map(str, session.sql(asked).collect()))
    conf(READ_SETTING, "false")
    assert len(found) == COUNT
    assert found == sorted(map(str, session.sql(asked).collect()))


def test_a_join_by_more_than_an_equality_is_of_spark(session):
    for join in ("JOIN ones t ON r.n < t.size", "LEFT JOIN ones t ON r.k = t.k AND r.n < t.size"):
        plan = session.sql(query(f"SELECT r.k, o, x, region AS p FROM readings r {join}")).plan()
        assert TOLD not in plan
        assert "no files: the rows come from Spark, as the" in plan
        assert "join has" in plan


def test_files_of_the_table_count_as_they_were_planned(session, tmp_path):
    named = pa.table({"k": ["a", "b"], "region": ["north", "south"]})
    pq.write_table(named, tmp_path / "named.parquet")
    session.register("named", tmp_path / "named.parquet")
    text = query("SELECT r.k, o, x, region AS p FROM readings r JOIN named t ON r.k = t.k")
    asked = session.sql(text)
    assert TOLD in asked.plan()
    planned = asked.df
    pq.write_table(pa.table({"k": ["a"], "region": ["elsewhere"]}), tmp_path / "named.parquet")
    with pytest.raises(PythonException, match=r"named\.parquet: it has changed"):
        planned.collect()
    assert {row.p for row in session.sql(text).collect()} == {"elsewhere"}

"""Permanent views of queries with clauses of ours."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import windrow
from tests.spark.windows.stored_database import database, rows
from windrow.errors import AnalysisError, NotSupportedError, ParseError, WindrowError

CLAUSE = (
    "WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START AS s AT sp END AS e AT ep WHEN ep - sp = 1)"
)
AVERAGES = [("a", 1, 15.0), ("a", 2, 12.5), ("a", 3, 5.0), ("b", 1, 7.5), ("b", 2, 8.0)]
LONGEST = (
    "SELECT * FROM rows_of_views MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(*) AS n,"
    " array(struct(LAST(v) AS `x y`)) AS l PATTERN (A+) DEFINE A AS v > 6)"
)


@pytest.fixture(scope="module")
def stored(spark, tmp_path_factory) -> Iterator[None]:
    values = "('a', 1, 10D), ('a', 2, 20D), ('a', 3, 5D), ('b', 1, 7D), ('b', 2, 8D)"
    with database(spark, tmp_path_factory.mktemp("stored"), "stored", "rows_of_views", values):
        yield


@pytest.fixture
def session(spark, stored) -> Iterator[windrow.Session]:
    spark.sql("USE stored")
    yield windrow.Session(spark)
    for view in spark.sql("SHOW VIEWS IN stored").collect():
        if not view.isTemporary:
            spark.sql(f"DROP VIEW stored.{view.viewName}")


def test_a_permanent_view_is_read_by_every_session_of_ours(session):
    session.sql(f"CREATE VIEW averages AS SELECT s.k, s.i, AVG(w.v) AS a FROM rows_of_views {CLAUSE}")
    another = windrow.Session(session.spark.newSession())
    assert rows(another, "SELECT * FROM stored.averages") == AVERAGES
    session.spark.sql("USE default")  # its tables are those of the database in which it was made
    assert rows(session, "SELECT * FROM stored.averages") == AVERAGES
    assert rows(session, "TABLE spark_catalog.stored.averages") == AVERAGES
    assert rows(session, "SELECT averages.k, COUNT(*) FROM stored.averages GROUP BY 1") == [
        ("a", 3),
        ("b", 2),
    ]
    joined = "SELECT COUNT(*) FROM stored.averages x JOIN stored.averages USING (k, i)"
    assert rows(session, joined) == [(5,)]
    assert session.table("stored.averages").count() == 5


def test_its_columns_are_in_the_catalog_and_spark_alone_says_who_reads_it(session):
    session.sql(f"CREATE VIEW longest (k COMMENT 'key', n, l) TBLPROPERTIES ('a' = 'b') AS {LONGEST}")
    described = session.spark.sql("DESCRIBE longest").collect()
    assert [tuple(row) for row in described] == [
        ("k", "string", "key"), ("n", "bigint", None), ("l", "array<struct<x y:double>>", None),
    ]  # fmt: skip
    with pytest.raises(Exception, match=r"stored.*is a view of Windrow.*windrow\.Session\(spark\)\.sql"):
        session.spark.sql("SELECT COUNT(*) FROM longest").collect()
    assert rows(session, "SELECT k, n, l[0].`x y` FROM longest") == [("a", 2, 20.0), ("b", 2, 8.0)]
    properties = dict(map(tuple, session.spark.sql("SHOW TBLPROPERTIES longest").collect()))
    assert properties["a"] == "b"


def test_a_long_query_takes_several_properties(session):
    text = "\\\\it''s" * 1_000
    session.sql(
        f"CREATE VIEW averages AS SELECT s.k, s.i, AVG(w.v) AS a, '{text}' AS q FROM rows_of_views {CLAUSE}"
    )
    found = "SELECT k, i, a FROM averages WHERE q = repeat('\\\\it''s', 1000)"
    assert rows(session, found) == AVERAGES
    assert len(session.spark.sql("SHOW TBLPROPERTIES averages").collect()) > 3


def test_views_of_views_and_other_statements_read_it(session):
    session.sql(f"CREATE VIEW averages AS SELECT s.k, s.i, AVG(w.v) AS a FROM rows_of_views {CLAUSE}")
    session.sql("CREATE VIEW high (kk, aa) AS SELECT k, a FROM averages WHERE a > 12")
    high = [("a", 12.5), ("a", 15.0)]
    assert rows(session, "SELECT * FROM high") == high
    session.sql("CREATE TABLE copied AS SELECT * FROM high")
    session.sql("INSERT INTO copied SELECT * FROM high")
    assert rows(session, "SELECT COUNT(*) FROM copied") == [(4,)]
    session.sql("CREATE TEMPORARY VIEW of_this_session AS SELECT * FROM high")
    assert rows(session, "SELECT * FROM of_this_session") == high
    session.spark.catalog.dropTempView("of_this_session")
    assert rows(session, "WITH high AS (SELECT 1 AS one) SELECT * FROM high") == [(1,)]
    assert "sliding" in session.sql("EXPLAIN SELECT * FROM high").collect()[0][0].lower()


def test_a_query_of_table_alone_stands_wherever_a_query_does(session):
    session.sql(f"CREATE VIEW averages AS SELECT AVG(w.v) AS a FROM rows_of_views {CLAUSE}")
    session.sql("CREATE VIEW highest AS SELECT MAX(a) AS a FROM averages")
    assert rows(session, "SELECT (TABLE highest) + 1 AS a") == [(16.0,)]
    assert rows(session, "SELECT 8.0D IN (TABLE averages) AS has, EXISTS (TABLE averages) AS any") == [
        (True, True)
    ]
    assert rows(session, "SELECT t.a FROM VALUES (1) AS v (x), LATERAL (TABLE highest) AS t") == [(15.0,)]
    for sql, at in (
        ("SELECT 1 + TABLE (averages) AS x", "TABLE (averages)"),
        ("SELECT abs(TABLE averages) AS x", "TABLE averages"),
    ):
        with pytest.raises(ParseError, match="PARSE_SYNTAX_ERROR") as caught:
            session.sql(sql)
        assert sql[caught.value.span.start : caught.value.span.stop] == at


def test_it_is_replaced_kept_altered_and_dropped(session):
    create = f"VIEW averages AS SELECT s.k, s.i, AVG(w.v) AS a FROM rows_of_views {CLAUSE}"
    session.sql(f"CREATE {create}")
    session.sql(f"CREATE VIEW IF NOT EXISTS averages AS SELECT s.k FROM rows_of_views {CLAUSE}")
    assert rows(session, "SELECT * FROM averages") == AVERAGES
    with pytest.raises(WindrowError, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        session.sql(f"CREATE {create}")
    session.sql(f"CREATE OR REPLACE VIEW averages AS SELECT s.k FROM rows_of_views {CLAUSE}")
    assert rows(session, "SELECT DISTINCT * FROM averages") == [("a",), ("b",)]
    session.sql("ALTER VIEW averages AS SELECT 7 AS seven")
    assert rows(session, "SELECT * FROM averages") == [(7,)]
    query = f"SELECT s.k, s.i, AVG(w.v) AS a FROM rows_of_views {CLAUSE}"
    session.sql(f"ALTER VIEW averages AS {query}")
    assert rows(session, "SELECT * FROM averages") == AVERAGES
    session.sql(f"ALTER VIEW averages SELECT s.k FROM rows_of_views {CLAUSE}")
    assert rows(session, "SELECT DISTINCT * FROM averages") == [("a",), ("b",)]
    assert [row[0] for row in session.sql("DESCRIBE averages").collect()] == ["k"]
    session.sql("DROP VIEW averages")
    with pytest.raises(WindrowError, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT * FROM averages")
    with pytest.raises(WindrowError, match="NOT_FOUND"):
        session.sql(f"ALTER VIEW averages AS {query}")


def test_its_own_query_is_shown(session):
    session.sql(
        f"CREATE VIEW averages (k COMMENT 'a key', a) COMMENT 'all' TBLPROPERTIES ('x' = '1') AS"
        f" SELECT s.k, AVG(w.v) FROM rows_of_views {CLAUSE}"
    )
    before = rows(session, "SELECT * FROM averages")
    (shown,) = session.sql("SHOW CREATE TABLE averages").first()
    assert "raise_error" not in shown
    assert "windrow.query" not in shown
    assert CLAUSE in shown
    assert "'x' = '1'" in shown
    session.sql("DROP VIEW averages")
    session.sql(shown)
    assert rows(session, "SELECT * FROM averages") == before
    assert ("k", "string", "a key") in rows(session, "DESCRIBE averages")


def test_views_that_change_over_time_are_shown_and_altered(session):
    session.sql("CREATE OR REPLACE STREAM seen (ROWTIME i INT UNIT SECONDS, v DOUBLE) FROM rows_of_views")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW now_seen AS SELECT MAX(v) AS m FROM seen [RANGE 5]")
    assert rows(session, "DESCRIBE now_seen") == [("m", "double", None)]
    assert rows(session, "SHOW COLUMNS IN now_seen") == [("m",)]
    assert rows(session, "SHOW VIEWS LIKE 'now*'") == [("", "now_seen", True)]
    assert ("", "now_seen", True) in rows(session, "SHOW TABLES")
    session.sql("ALTER VIEW now_seen AS SELECT COUNT(*) AS n FROM seen [RANGE UNBOUNDED]")
    assert rows(session, "SELECT n > 0 FROM now_seen") == [(True,)]
    session.sql("ALTER VIEW now_seen AS SELECT 3 AS three")
    assert rows(session, "SELECT * FROM now_seen") == [(3,)]
    session.sql("DROP VIEW now_seen")
    session.sql("DROP STREAM seen")


def test_columns_that_a_table_gets_later_are_not_in_it(session):
    session.sql("CREATE TABLE grows AS SELECT 1 AS k, 1 AS i")
    clause = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY i ALL ROWS PER MATCH PATTERN (A+) DEFINE A AS TRUE)"
    session.sql(f"CREATE VIEW grown AS SELECT * FROM grows {clause}")
    session.sql(f"CREATE VIEW named (a, b) AS SELECT * FROM grows {clause}")
    session.spark.sql("ALTER TABLE grows ADD COLUMNS (z INT)")
    assert session.sql("SELECT * FROM grown").df.columns == ["k", "i"]
    assert session.sql("SELECT * FROM named").df.columns == ["a", "b"]


def test_check_plans_and_makes_nothing(session):
    session.check(f"CREATE VIEW averages AS SELECT s.k FROM rows_of_views {CLAUSE}")
    assert not session.spark.catalog.tableExists("averages")
    with pytest.raises(WindrowError, match="UNKNOWN_VARIABLE"):
        session.check(f"CREATE VIEW averages AS SELECT t.k FROM rows_of_views {CLAUSE}")


@pytest.mark.parametrize(
    ("sql", "at", "condition"),
    [
        ("CREATE VIEW x AS SELECT s.k FROM of_this ⊞", "of_this", "INVALID_TEMP_OBJ_REFERENCE"),
        ("CREATE VIEW x AS SELECT s.k FROM 'a.csv' ⊞", "'a.csv'", "INVALID_TEMP_OBJ_REFERENCE"),
        ("CREATE VIEW x AS SELECT k FROM 'a.csv'", "'a.csv'", "INVALID_TEMP_OBJ_REFERENCE"),
        ("CREATE VIEW x AS SELECT s.k FROM rows_of_views WHERE v > :n ⊞", ":", "UNSUPPORTED_STATEMENT"),
        ("CREATE VIEW other.stored.x AS SELECT s.k FROM rows_of_views ⊞", "CREATE", "UNSUPPORTED_STATEMENT"),
        ("CREATE OR REPLACE VIEW y AS SELECT * FROM z", "y", "RECURSIVE_VIEW"),
        ("CREATE VIEW x AS SELECT s.nothing FROM rows_of_views ⊞", "s.nothing", "UNKNOWN_FIELD"),
    ],
)
def test_what_cannot_be_stored_is_refused_with_its_place(session, sql, at, condition):
    session.spark.range(3).selectExpr("'a' AS k", "id AS i", "0 AS v").createOrReplaceTempView("of_this")
    session.sql(f"CREATE VIEW y AS SELECT s.k FROM rows_of_views {CLAUSE}")
    session.sql("CREATE VIEW z AS SELECT * FROM y")
    text = sql.replace("⊞", CLAUSE)
    with pytest.raises((AnalysisError, NotSupportedError)) as caught:
        session.sql(text, n=3) if ":n" in sql else session.sql(text)
    session.spark.catalog.dropTempView("of_this")
    assert caught.value.condition == condition
    span = caught.value.span
    assert text[span.start : span.stop] == at
    assert not session.spark.catalog.tableExists("x")

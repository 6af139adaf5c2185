"""The dialect of CQL on Spark: what its expressions give wherever they stand, and where errors are."""

from __future__ import annotations

import datetime

import pytest

from windrow import Session, window_by
from windrow.errors import WindrowError
from windrow.spark.gateway import DIALECT_SETTING

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.fixture
def cql(spark):
    spark.sql(
        "SELECT * FROM VALUES (1L, 'a', 'b'), (2L, NULL, 'b'), (3L, '', NULL), (4L, NULL, NULL) AS t(i, x, y)"
    ).createOrReplaceTempView("pairs")
    return Session(spark, dialect="cql")


def rows(relation):
    return [tuple(row) for row in relation.collect()]


def refused(session, query, **options):
    with pytest.raises(WindrowError) as caught:
        session.sql(query, **options).collect()
    error = caught.value
    assert error.sql == query
    return error.condition, None if error.span is None else query[error.span.start : error.span.stop]


def test_concatenation_is_null_only_where_all_is(cql):
    relation = cql.sql("SELECT x || y, i + 1 || x || i AS n FROM pairs WHERE i < 3 ORDER BY i")
    assert relation.df.columns == ["x || y", "n"]
    assert rows(relation) == [("ab", "2a1"), ("b", "32")]
    assert rows(cql.sql("SELECT x || y FROM pairs ORDER BY i")) == [("ab",), ("b",), (None,), (None,)]
    query = "SELECT i + 1 || i - 1 AS n, i + (1 || i) - 1 AS m, 2 * 3 || 4 AS p FROM pairs WHERE i = 1"
    assert rows(cql.sql(query)) == [(20, 11, "64")]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT upper(x || y) AS r FROM pairs ORDER BY i",
        "SELECT CASE WHEN x || y IS NULL THEN NULL ELSE upper(x || y) END AS r FROM pairs ORDER BY i",
        "WITH c AS (SELECT i, x || y FROM pairs) SELECT upper(`x || y`) AS r FROM c ORDER BY i",
        "SELECT (SELECT upper(max(q.x || q.y)) FROM pairs q WHERE q.i = p.i) AS r FROM pairs p ORDER BY i",
        "SELECT upper(x || y) AS r FROM pairs GROUP BY x || y, i ORDER BY i",
        "SELECT upper(min(x || y)) AS r FROM pairs GROUP BY i ORDER BY i",
    ],
)
def test_it_is_the_same_wherever_it_stands(cql, query):
    assert rows(cql.sql(query)) == [("AB",), ("B",), (None,), (None,)]


def test_windows_by_predicates(cql, spark):
    query = (
        "SELECT s.x || '-' || e.y AS r, COUNT(w) AS n FROM pairs WINDOW BY w AS (TYPE TUMBLING ORDER BY i "
        "START AS s WHEN s.x || s.y IS NOT NULL END AS e WHEN s.y || e.y = 'b' || 'b' AND e.i > s.i)"
    )
    assert rows(cql.sql(query)) == [("a-b", 2)]
    spark.conf.set(DIALECT_SETTING, "cql")
    try:
        frame = window_by(
            spark.table("pairs"), order_by="i", start='AS s WHEN s.x || s.y = "b"', end="AS e", select="s.i"
        )
        assert rows(frame) == [(2,)]
    finally:
        spark.conf.unset(DIALECT_SETTING)


def test_streams(cql):
    cql.sql("CREATE OR REPLACE STREAM s (ROWTIME i BIGINT UNIT SECONDS, x STRING, y STRING) FROM pairs")
    query = "SELECT ISTREAM(x || y) FROM s [PARTITION BY x || y ROWS 1] WHERE x || y = 'b'"
    relation = cql.sql(query)
    assert (relation.df.columns, rows(relation)) == (["rowtime", "x || y"], [(2, "b")])
    changes = cql.sql("SELECT x || y AS r, COUNT(*) AS n FROM s [RANGE 9] GROUP BY x || y").changelog("op")
    assert [tuple(row)[:4] for row in changes.collect()][:2] == [("+I", 1, "ab", 1), ("+I", 2, "b", 1)]


def test_strings_and_times(cql, conf):
    conf("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    query = 'SELECT "it\'s", TIMESTAMP "08/07/2004 11:13:48" AS t FROM pairs WHERE x = "a"'
    assert rows(cql.sql(query)) == [("it's", datetime.datetime(2004, 8, 7, 11, 13, 48))]


def test_sysdate(cql):
    query = "SELECT sysdate, sysdate - INTERVAL 1 DAY < current_timestamp() AS past"
    relation = cql.sql(query)
    assert relation.df.columns == ["sysdate", "past"]
    assert relation.collect()[0].past


def test_minus_signs_are_a_comment(cql):
    assert rows(cql.sql("SELECT 1 --2\n + 3")) == [(4,)]
    assert rows(cql.sql("SELECT 1 - -2")) == [(3,)]


def test_parameters_keep_their_order(cql):
    query = "SELECT i || ? || x FROM pairs WHERE x || y = ? AND i = ?"
    assert rows(cql.sql(query, "-", "ab", 1)) == [("1-a",)]
    assert rows(cql.sql("SELECT i || :s AS r FROM pairs WHERE i = :n", s="!", n=4)) == [("4!",)]


def test_the_setting_is_the_session_s_or_spark_s(spark, cql, conf):
    plain = Session(spark)
    query = "SELECT x || y AS r FROM pairs WHERE i = 2"
    assert rows(plain.sql(query)) == [(None,)]
    conf(DIALECT_SETTING, "spark")  # to be put back what it was
    assert rows(plain.script(f"SET {DIALECT_SETTING} = CQL; {query}")[1]) == [("b",)]
    conf(DIALECT_SETTING, "cql")
    assert rows(plain.sql(query)) == [("b",)]
    assert rows(Session(spark, dialect="spark").sql(query)) == [(None,)]
    conf(DIALECT_SETTING, "sqlx")
    for ask in (lambda: plain.sql(query), lambda: Session(spark, dialect="cqll")):
        with pytest.raises(WindrowError) as caught:
            ask()
        assert caught.value.condition == "UNKNOWN_DIALECT"


@pytest.mark.parametrize(
    ("query", "condition", "marked"),
    [
        ("SELECT x || nosuch FROM pairs", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nosuch"),
        ('SELECT "a" || x FROM pairs WHERE i || x = 1 AND third', "UNRESOLVED_COLUMN.WITH_SUGGESTION",
         "third"),
        ("SELECT x || y FROM nowhere", "TABLE_OR_VIEW_NOT_FOUND", "nowhere"),
        ("SELECT x || 1 / (i - 1) FROM pairs", "DIVIDE_BY_ZERO", "1 / (i - 1)"),
        ('SELECT "a" || x FRM pairs ORDER', "PARSE_SYNTAX_ERROR", None),
        ('SELECT "a" || s.x FROM pairs WINDOW BY w AS (TYPE TUMBLING ORDER BY nosuch START AS s)',
         "UNRESOLVED_COLUMN.WITH_SUGGESTION", "nosuch"),
        ('SELECT "a" || x FROM pairs WINDOW BY w AS (TYPE TUMBLING ORDER BY i START AS s)',
         "UNKNOWN_VARIABLE", "x"),
        ('SELECT "a" || x FROM nostream [NOW]', "UNKNOWN_STREAM", "nostream"),
        ('SELECT "a" || x || (i FROM pairs', "PARSE_SYNTAX_ERROR", "("),
    ],
)  # fmt: skip
def test_errors_are_told_of_the_text_as_written(cql, query, condition, marked):
    found = refused(cql, query)
    assert found[0] == condition
    if marked is not None:
        assert found[1] == marked


@pytest.mark.parametrize(
    ("query", "condition", "marked"),
    [
        ("SELECT x FROM s [NOW] WHERE sysdate > TIMESTAMP '2024-01-01'", "SYSTEM_CLOCK", "sysdate"),
        ("SELECT x, current_date AS d FROM s [NOW]", "SYSTEM_CLOCK", "current_date"),
        ("ISTREAM(SELECT x, now() AS d FROM s [NOW])", "SYSTEM_CLOCK", "now()"),
        ("SELECT x, rand(1) AS r FROM s [NOW]", "NONDETERMINISTIC_QUERY", "rand(1)"),
    ],
)
def test_recorded_streams_have_no_system_clock_and_no_chance(cql, query, condition, marked):
    cql.sql("CREATE OR REPLACE STREAM s (ROWTIME i BIGINT UNIT SECONDS, x STRING, y STRING) FROM pairs")
    assert refused(cql, query) == (condition, marked)

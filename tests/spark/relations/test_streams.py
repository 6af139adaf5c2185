"""Streams on Spark: how they are made, what is asked of them, and what is wrong with them."""

from __future__ import annotations

import datetime
import re

import numpy as np
import pytest

from tests.spark.ticks import refused, rows, ticks_of
from windrow import Session
from windrow.errors import WindrowError
from windrow.relation_kinds import StreamRelation, VaryingRelation

pytestmark = pytest.mark.usefixtures("interpreted")

LOG = """Timestamp   Tuple
  1000:   10,"a, b"

  2000    20,
h 2500
  3000    30,c
"""


@pytest.fixture
def session(spark):
    return Session(spark)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "s.cql"
    path.write_text(LOG)
    return path


@pytest.fixture
def ticks(session):
    return ticks_of(session)


def test_streams_are_shown(ticks):
    ticks.sql("CREATE OR REPLACE TEMPORARY VIEW slow AS SELECT STREAM ts, v FROM ticks WHERE v > 3")
    shown = {row["name"]: tuple(row)[1:] for row in ticks.sql("SHOW STREAMS").collect()}
    assert shown["ticks"] == ("recorded", "ts", "ts bigint, k int, v int")
    assert shown["slow"] == ("view", None, "ts bigint, v int")
    ticks.sql("DROP VIEW slow")


def test_late_rows_that_are_no_view_are_said_to_be_elsewhere(ticks):
    with pytest.raises(WindrowError, match="TABLE_OR_VIEW_NOT_FOUND") as caught:
        ticks.sql("SELECT * FROM ticks_late")
    assert "query.late" in caught.value.hint
    assert "relation.late" in caught.value.hint


# -- streams -----------------------------------------------------------------------------------------


def test_a_recorded_text(session, log):
    session.stream("s", log)
    changes = session.sql("SELECT * FROM s [RANGE 1]").changelog("diff").collect()
    assert [tuple(row) for row in changes] == [
        (10, "a, b", 1, 1000),
        (10, "a, b", -1, 2000),
        (20, None, 1, 2000),
        (20, None, -1, 3000),
        (30, "c", 1, 3000),
        (30, "c", -1, 4000),
    ]


def test_a_recorded_text_with_a_rowtime_that_queries_see(session, log):
    session.stream("s", log, rowtime="ts", unit="milliseconds")
    assert rows(session.sql("SELECT ts, c1 FROM s [ROWS 1]")) == [(3000, 30)]
    session.sql(f"CREATE OR REPLACE STREAM r (c INT, ROWTIME t BIGINT, d STRING) FROM '{log}'")
    assert session.sql("SELECT * FROM r [ROWS 1]").df.dtypes == [
        ("c", "int"),
        ("t", "bigint"),
        ("d", "string"),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("2000", "neither an instant with values nor h with an instant"),
        ("abc 1,2", "neither an instant with values nor h with an instant"),
        ("h 2000 1,2", "neither an instant with values nor h with an instant"),
        ("500 1,x", "below the earlier instant 3000"),
        ("h 500", "below the earlier instant 3000"),
        ("4000 1,2,3", "3 values, not 2"),
        ('4000 1,"x', "unclosed quote"),
        ("99999999999999999999 1,x", "too large"),
    ],
)
def test_lines_that_cannot_be_read(spark, session, log, line, problem):
    log.write_text(LOG + line + "\n4000 40,d\n")
    with pytest.raises(WindrowError, match="line 7 of") as caught:
        session.stream("s", log)
    assert caught.value.condition == "MALFORMED_LINE"
    assert problem in caught.value.message
    session.stream("s", log, malformed="keep")
    assert rows(session.sql("SELECT c1 FROM s [ROWS 1]")) == [(40,)]
    kept = [(row.line, row.text) for row in spark.table("s_malformed").collect()]
    assert kept == ([] if line == "500 1,x" else [(7, line)])  # a row out of order is late


@pytest.mark.parametrize(
    ("kind", "window", "left"),
    [
        ("TIMESTAMP", "[RANGE 1 HOUR]", datetime.datetime(2024, 1, 1, 13, tzinfo=datetime.UTC)),
        ("TIMESTAMP_NTZ", "[RANGE 1 HOUR]", datetime.datetime(2024, 1, 1, 13)),
        ("TIMESTAMP_NTZ", "[NOW]", datetime.datetime(2024, 1, 1, 12, 0, 0, 1)),
        ("DATE", "[RANGE 2 DAYS]", datetime.date(2024, 1, 3)),
        ("DATE", "[NOW]", datetime.date(2024, 1, 2)),
        ("DATE", "[RANGE 36 HOURS]", datetime.datetime(2024, 1, 2, 12)),
    ],
)
def test_types_of_rowtimes(spark, session, kind, window, left):
    spark.sql(f"SELECT CAST(TIMESTAMP '2024-01-01 12:00:00' AS {kind}) AS t, 1 AS a").createOrReplaceTempView(
        "o"
    )
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME t, a INT) FROM o")
    last = session.sql(f"SELECT a FROM s {window}").changelog("diff").collect()[-1]
    expected = left.astimezone().replace(tzinfo=None) if getattr(left, "tzinfo", None) else left
    assert (last._diff, last._at) == (-1, expected)


def test_rowtimes_that_are_null_fail_the_query(spark, session):
    spark.sql("SELECT IF(id = 1, NULL, id) AS t FROM range(3)").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME t BIGINT) FROM o")
    assert refused(session, "SELECT * FROM s [RANGE 1]")[0] == "NULL_ROWTIME"


def test_rowtimes_too_large_for_the_clock(spark, session):
    spark.sql("SELECT 9000000000000000 AS t").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM s (ROWTIME t BIGINT UNIT DAYS) FROM o")
    assert refused(session, "SELECT * FROM s [RANGE 1 SECOND]")[0] == "ROWTIME_OVERFLOW"


def test_a_stream_of_a_path_that_is_not_there_says_so(session, tmp_path):
    with pytest.raises(WindrowError, match="PATH_NOT_FOUND"):
        session.stream("nowhere", tmp_path / "nowhere")


def test_mistakes_in_making_a_stream(spark, session):
    spark.catalog.dropTempView("s")  # of other tests
    spark.sql("SELECT 1 AS a, 'x' AS b").createOrReplaceTempView("o")
    assert refused(session, "CREATE STREAM s (ROWTIME b STRING) FROM o")[0] == "INVALID_ROWTIME"
    assert refused(session, "CREATE STREAM s (ROWTIME c INT) FROM o")[0].startswith("UNRESOLVED_COLUMN")
    assert refused(session, "CREATE STREAM s (ROWTIME a INT) FROM nowhere") == (
        "TABLE_OR_VIEW_NOT_FOUND",
        "nowhere",
    )
    session.sql("CREATE STREAM s (ROWTIME a INT) FROM o")
    assert refused(session, "CREATE STREAM s (ROWTIME a INT) FROM o")[0] == "STREAM_ALREADY_EXISTS"
    session.sql("DROP STREAM s")
    session.sql("DROP STREAM IF EXISTS s")
    assert refused(session, "DROP STREAM s") == ("UNKNOWN_STREAM", "s")
    with pytest.raises(WindrowError, match="no rowtime"):
        session.stream("s", spark.table("o"))
    with pytest.raises(WindrowError, match="no column"):
        session.stream("s", spark.table("o"), rowtime="z")
    with pytest.raises(WindrowError, match="unit"):
        session.stream("s", spark.table("o"), rowtime="a", unit="fortnights")
    spark.catalog.dropTempView("o")


# -- what is asked -----------------------------------------------------------------------------------


def test_a_relation_is_that_of_the_last_instant(ticks):
    relation = ticks.sql("SELECT v FROM ticks [RANGE 2]")
    assert rows(relation) == [(4,), (5,)]
    assert rows(relation.at(3)) == [(2,), (3,)]
    assert rows(relation.at("0")) == [(0,)]
    assert rows(relation.at(-1)) == []
    assert relation.df.columns == ["v"]
    assert "v: int" in repr(relation)


def test_a_view_of_one_is_read_by_its_name(ticks):
    ticks.sql("CREATE OR REPLACE TEMPORARY VIEW last_ticks AS SELECT v FROM ticks [RANGE 2]")
    assert rows(ticks.table("last_ticks")) == rows(ticks.sql("TABLE last_ticks")) == [(4,), (5,)]


def test_a_named_query_is_read_by_table(ticks):
    last = "WITH last AS (SELECT v FROM ticks [RANGE 2])"
    assert rows(ticks.sql(f"{last} SELECT * FROM (TABLE last)")) == [(4,), (5,)]
    assert rows(ticks.sql(f"{last} TABLE last UNION ALL (TABLE last)")) == [(4,), (4,), (5,), (5,)]
    assert rows(ticks.sql(f"{last} SELECT 4 IN (TABLE last) AS has, EXISTS (TABLE last) AS any")) == [
        (True, True)
    ]


@pytest.mark.parametrize("instant", ["noon", "3\\", 1.5, None, True, datetime.date(2024, 1, 1)])
def test_instants_that_are_none(ticks, instant):
    with pytest.raises(WindrowError, match="BIGINT of seconds"):
        ticks.sql("SELECT v FROM ticks [RANGE 2]").at(instant)


def test_instants_of_numpy_and_of_zones(spark, ticks):
    assert rows(ticks.sql("SELECT v FROM ticks [RANGE 2]").at(np.int64(3))) == [(2,), (3,)]
    spark.sql(
        "SELECT timestamp_ntz'2024-01-01 00:00:00' + make_dt_interval(0, id) AS ts, id AS v FROM range(4)"
    ).createOrReplaceTempView("hour_rows")
    ticks.sql("CREATE OR REPLACE STREAM hours (ROWTIME ts TIMESTAMP_NTZ, v BIGINT) FROM hour_rows")
    relation, hour = ticks.sql("SELECT v FROM hours [NOW]"), datetime.datetime(2024, 1, 1, 2)
    assert rows(relation.at(hour)) == [(2,)]
    with pytest.raises(WindrowError, match=r"INVALID_INSTANT.* TIMESTAMP_NTZ"):
        relation.at(hour.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=1))))
    ticks.sql("DROP STREAM hours")


@pytest.mark.parametrize("window", ["[PARTITION BY k ROWS 1]", "[PARTITION BY k ROWS 1 RANGE 100]"])
def test_rows_are_pushed_out_by_rows_whose_keys_equal_theirs(spark, session, window):
    """As for Spark's groups: zeros whatever their signs, NaN and NaN, NULL and NULL."""
    spark.sql(
        "SELECT * FROM VALUES (1L, 0D, 1), (2L, -0D, 2), (3L, double('NaN'), 3), (4L, NULL, 4),"
        " (5L, double('NaN'), 5), (6L, NULL, 6), (7L, 1D, 7) AS t(ts, k, v)"
    ).createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM u (ROWTIME ts BIGINT, k DOUBLE, v INT) FROM o")
    assert rows(session.sql(f"SELECT v FROM u {window}")) == [(2,), (5,), (6,), (7,)]


def test_a_table_does_not_vary(ticks):
    for ask in (lambda relation: relation.at(1), lambda relation: relation.changelog()):
        with pytest.raises(WindrowError) as caught:
            ask(ticks.sql("SELECT 1"))
        assert caught.value.condition == "NOT_VARYING"


def test_views_vary(ticks):
    ticks.sql("CREATE OR REPLACE TEMPORARY VIEW recent (x) AS SELECT v FROM ticks [RANGE 2]")
    assert rows(ticks.sql("SELECT * FROM recent").at(1)) == [(0,), (1,)]
    assert rows(ticks.sql("SELECT COUNT(*) AS n FROM recent AS r WHERE r.x > 0").at(1)) == [(1,)]
    ticks.sql("CREATE OR REPLACE TEMPORARY VIEW left_again AS DSTREAM(recent)")
    assert rows(ticks.sql("SELECT * FROM left_again [NOW]").at(3)) == [(1,)]
    assert refused(ticks, "CREATE TEMPORARY VIEW recent AS SELECT v FROM ticks [NOW]") == (
        "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS",
        "recent",
    )


def test_a_stream_has_its_rowtime_first(ticks):
    relation = ticks.sql("ISTREAM(SELECT v, k AS rowtime FROM ticks [ROWS 2] WHERE k = 1)")
    assert relation.df.columns == ["_rowtime", "v", "rowtime"]
    assert [tuple(row) for row in relation.collect()] == [(1, 1, 1), (3, 3, 1), (5, 5, 1)]


def test_rstream_is_at_every_change_of_a_window(ticks):
    """Also where its rows stay as they are; not before a row has entered."""
    query = "RSTREAM(SELECT 'x' AS x FROM ticks [RANGE 2 SLIDE 4] WHERE v = 1)"
    assert [tuple(row) for row in ticks.sql(query).collect()] == [(4, "x")]
    query = "RSTREAM(SELECT COUNT(*) AS n FROM ticks [RANGE 2 SLIDE 4])"
    assert [tuple(row) for row in ticks.sql(query).collect()] == [
        (0, 1),
        (2, 0),
        (4, 4),
        (6, 0),
        (8, 1),
        (10, 0),
    ]


# -- what is wrong -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "condition", "marked"),
    [
        ("SELECT * FROM tick_rows [NOW]", "UNKNOWN_STREAM", "tick_rows"),
        ("SELECT * FROM tick [NOW]", "UNKNOWN_STREAM", "tick"),
        ("SELECT * FROM (SELECT 1) [NOW]", "RELATION_WHERE_STREAM_IS_NEEDED", "(SELECT 1)"),
        ("WITH r AS (SELECT 1) SELECT * FROM r [NOW]", "RELATION_WHERE_STREAM_IS_NEEDED", "r"),
        ("ISTREAM(ticks)", "STREAM_WHERE_RELATION_IS_NEEDED", "ticks"),
        ("ISTREAM(ISTREAM(SELECT 1))", "STREAM_WHERE_RELATION_IS_NEEDED", "ISTREAM(SELECT 1)"),
        ("SELECT * FROM ticks, ticks [NOW] AS t", "STREAM_WHERE_RELATION_IS_NEEDED", "ticks"),
        ("SELECT * FROM ticks [RANGE 0]", "INVALID_WINDOW_SIZE", "0"),
        ("SELECT * FROM ticks [RANGE INTERVAL '0' DAY]", "INVALID_WINDOW_SIZE", "INTERVAL '0' DAY"),
        ("SELECT * FROM ticks [RANGE INTERVAL '-1' DAY]", "INVALID_WINDOW_SIZE", "INTERVAL '-1' DAY"),
        ("SELECT * FROM ticks [RANGE INTERVAL '1' MONTH]", "INVALID_WINDOW_SIZE", "INTERVAL '1' MONTH"),
        ("SELECT z FROM ticks [NOW]", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "z"),
        ("SELECT k, COUNT(*) FROM ticks [NOW]", "MISSING_GROUP_BY", None),
        ("SELECT v FROM ticks [NOW] GROUP BY k", "MISSING_AGGREGATION", None),
        ("SELECT * FROM ticks [RANGE 0 ON v]", "INVALID_WINDOW_SIZE", "0"),
        ("SELECT * FROM ticks [RANGE 2 ON -v]", "FALLING_VALUE", "-v"),
        ("SELECT * FROM ticks [PARTITION BY k, map(k, v) ROWS 2]", "UNORDERABLE_TYPE", "map(k, v)"),
        ("SELECT * FROM ticks [RANGE 2 FORTNIGHTS]", "UNKNOWN_UNIT", "FORTNIGHTS"),
        ("SELECT k, ISTREAM(v) FROM ticks [NOW]", "PARSE_SYNTAX_ERROR", "ISTREAM(v)"),
        ("SELECT DISTINCT RSTREAM(v) FROM ticks [NOW]", "PARSE_SYNTAX_ERROR", "RSTREAM(v)"),
        ("SELECT * FROM ticks [NOW] WHERE DSTREAM(v) > 1", "PARSE_SYNTAX_ERROR", "DSTREAM(v)"),
        ("SELECT v FROM ticks [NOW] WHERE v IN (ISTREAM(SELECT v FROM ticks [NOW]))", "PARSE_SYNTAX_ERROR",
         "ISTREAM(SELECT v FROM ticks [NOW])"),
        ("ISTREAM(SELECT v FROM ticks [NOW]) UNION ALL SELECT 1", "PARSE_SYNTAX_ERROR",
         "ISTREAM(SELECT v FROM ticks [NOW])"),
        ("ISTREAM(SELECT parse_json('1') AS j FROM ticks [NOW])", "UNORDERABLE_TYPE", None),
        ("SELECT * FROM ticks [PARTITION BY z ROWS 2]", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "z"),
        ("INSERT INTO x SELECT v FROM ticks [NOW]", "TABLE_OR_VIEW_NOT_FOUND", "x"),
        ("CACHE TABLE x AS SELECT v FROM ticks [NOW]", "UNSUPPORTED_STATEMENT", "CACHE"),
    ],
)  # fmt: skip
def test_mistakes(ticks, query, condition, marked):
    found = refused(ticks, query)
    assert found[0] == condition
    if marked is not None:
        assert found[1] == marked


def test_hints_name_no_columns_of_ours(spark, session):
    spark.sql("SELECT 1L AS at, 2 AS v").createOrReplaceTempView("o")
    session.stream("one", spark.table("o"), rowtime="at", ptime="v")
    for window in ("[RANGE 2 ON nosuch]", "[PARTITION BY nosuch ROWS 2]"):
        with pytest.raises(WindrowError) as caught:
            session.sql(f"SELECT * FROM one {window}")
        assert sorted(caught.value.hint.removeprefix("use one of ").split(", ")) == ["at", "v"]


def test_hints_say_what_to_write(ticks):
    for query, hint in (
        ("SELECT * FROM ticks [RANGE 2 WEAKS]", "did you mean WEEKS?"),
        ("SELECT * FROM ticks [RANGE 5 MINUTE SLIDE 1 MONTH]", "write days"),
        ("SELECT k, ISTREAM(v) FROM ticks [NOW]", r"SELECT ISTREAM\(v, …\) FROM"),
        ("SELECT DISTINCT ISTREAM(v) FROM ticks [NOW]", r"ISTREAM\(SELECT DISTINCT v FROM"),
        ("SELECT 1 IN (ISTREAM(SELECT v FROM ticks [NOW]))", r"ISTREAM\(…\) \[NOW\]"),
    ):
        with pytest.raises(WindrowError) as caught:
            ticks.sql(query)
        assert re.search(hint, caught.value.hint)


def test_parameters(ticks):
    assert rows(ticks.sql("SELECT v FROM ticks [RANGE 9] WHERE v > :low", low=3)) == [(4,), (5,)]
    assert rows(ticks.sql("SELECT v + ? AS v FROM ticks [RANGE 9] WHERE v > ?", 10, 4)) == [(15,)]


def test_plain_sql_reads_the_recorded_rows(ticks):
    assert rows(ticks.sql("SELECT COUNT(*) FROM ticks")) == [(6,)]


def test_explain(ticks):
    text = ticks.sql("EXPLAIN SELECT k, COUNT(*) FROM ticks [RANGE 2] GROUP BY k").collect()[0][0]
    assert "ticks [RANGE 2]" in text
    assert text.endswith("evaluated for whole logs")
    changes = ticks.sql("SELECT k FROM CHANGELOG OF (SELECT k FROM ticks [NOW])").plan()
    assert changes.endswith("evaluated by Spark: a table of changes")


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("SELECT k, percentile_approx(v, 0.5) AS p FROM ticks [RANGE 2] GROUP BY k", "an aggregate that"),
        (
            "SELECT k + 1 + 1 AS j, COUNT(*) AS n FROM ticks [RANGE 2] GROUP BY k + 1",
            "an expression over groups that only Spark evaluates",
        ),
    ],
)
def test_what_spark_evaluates_over_pieces_of_time_is_explained(ticks, query, why):
    assert f"evaluated for whole logs; a part by Spark, over pieces of time: {why}" in ticks.sql(query).plan()


# -- one answer --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def answers(spark):
    """What a batch and a reference session answer to a query over two streams and a table: their changes."""
    spark.sql(
        "SELECT * FROM VALUES (0L, 1, 1, 'A'), (1L, 2, 1, 'a'), (1L, NULL, 2, 'A'), (3L, 1, 3, 'b'), "
        "(6L, 2, NULL, 'A'), (6L, 1, 1, NULL) AS t(ts, k, v, item)"
    ).createOrReplaceTempView("s_rows")
    spark.sql(
        "SELECT * FROM VALUES (2L, 1, 2), (3L, 2, 2), (5L, 1, 1) AS t(ts, k, v)"
    ).createOrReplaceTempView("t_rows")
    spark.sql(
        "SELECT * FROM VALUES (1, 'one'), (2, 'two'), (2, 'zwei') AS t(k, name)"
    ).createOrReplaceTempView("names")
    sessions = [Session(spark, execution=execution) for execution in ("batch", "reference")]
    for session in sessions:
        session.sql(
            "CREATE OR REPLACE STREAM s (ROWTIME ts BIGINT UNIT SECONDS, k INT, v INT, item STRING) "
            "FROM s_rows"
        )
        session.sql("CREATE OR REPLACE STREAM t (ROWTIME ts BIGINT UNIT SECONDS, k INT, v INT) FROM t_rows")
        session.sql("CREATE OR REPLACE TEMPORARY VIEW best AS SELECT MAX(v) AS best FROM s [RANGE 4]")

    def ask(query):
        found = []
        for session in sessions:
            relation = session.sql(query)
            assert isinstance(relation, VaryingRelation | StreamRelation)
            if isinstance(relation, VaryingRelation):
                relation = relation.changelog("diff")
            found.append(sorted(map(str, relation.collect())))
        return found

    return ask


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT to_json(struct(*)) AS j FROM s [RANGE 2]",
        "SELECT COUNT(DISTINCT *) AS c FROM s [RANGE 2]",
        "SELECT COUNT(*) AS c, MAX(hash(s.*)) AS h FROM s [RANGE 2]",
        "SELECT ISTREAM(k) FROM s [RANGE 5] WHERE k > 0 LIMIT 1",
        "SELECT RSTREAM(k) FROM s [RANGE 5] WHERE k > 0 EXCEPT SELECT 2",
        "SELECT item = 'A' AS x, item = 'a' AS y, COUNT(*) AS c FROM s [RANGE 3] GROUP BY 1, 2",
        "SELECT k IS DISTINCT FROM v, COUNT(*) AS c FROM s [RANGE 2] GROUP BY 1",
        "SELECT item REGEXP item, COUNT(*) AS c FROM s [RANGE 2] GROUP BY 1",
        "SELECT k kk, COUNT(*) AS c FROM s [RANGE 2] GROUP BY 1",
        "SELECT k kk, COUNT(*) AS c FROM s [RANGE 2] GROUP BY kk",
        "SELECT a.k FROM s [RANGE 2] a JOIN t [RANGE 3] b ON a.k = b.k, s [NOW] c",
        "SELECT a.k FROM s [RANGE 2] a JOIN t [RANGE 3] b ON a.k = b.k, best",
        "SELECT best.k FROM s [RANGE 4] AS best",
        "SELECT * FROM best WHERE 3 IS DISTINCT FROM best",
        "SELECT `count`(*) AS c FROM s [RANGE 2]",
        "SELECT a.k FROM s [RANGE 9] a, t [RANGE 9] b WHERE b.v <> 2 AND a.k = 1 DIV (2 - b.v)",
        "WITH b AS (SELECT k FROM s [RANGE 5]) SELECT COUNT(*) AS c FROM t [RANGE 2]",
        "WITH a AS (SELECT k FROM s [RANGE 2]), b AS (SELECT k FROM t [RANGE 5]) "
        "SELECT a.k FROM RSTREAM(SELECT k FROM a) [NOW] AS a",
        "SELECT array(k) AS a, named_struct('v', v) AS b FROM s [RANGE 2] ORDER BY k LIMIT 1",
        "SELECT x.k, x.n FROM (SELECT k, COUNT(*) AS n FROM s [ROWS 4] GROUP BY k) x, names n "
        "WHERE x.k = n.k",
        "(SELECT k FROM s [RANGE 2] UNION SELECT k FROM t [ROWS 1]) INTERSECT SELECT k FROM names",
        "SELECT k FROM s [RANGE 2] UNION ALL SELECT k FROM t [ROWS 1] EXCEPT ALL SELECT k FROM names",
        "SELECT item, AVG(v) FILTER (WHERE k = 1) AS a, COUNT(DISTINCT k) AS d "
        "FROM s [RANGE 9] GROUP BY item",
        "SELECT * FROM (DSTREAM(SELECT k, v FROM s [ROWS 2])) [RANGE 3] AS d JOIN names USING (k)",
    ],
)
def test_batch_is_the_reference(answers, query):
    batch, reference = answers(query)
    assert batch == reference
    assert batch


def test_named_queries_that_are_not_used_change_nothing(answers):
    query = "SELECT COUNT(*) AS c FROM t [RANGE 2]"
    assert answers(f"WITH b AS (SELECT k FROM s [RANGE 5]) {query}") == answers(query)


def test_an_instant_within_a_tick(spark, session):
    spark.sql(
        "SELECT DATE '2024-03-09' AS d, 1 AS k UNION SELECT DATE '2024-03-10', 2"
    ).createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM ds (ROWTIME d, k INT) FROM o")
    relation = session.sql("SELECT k FROM ds [RANGE 36 HOURS]")
    for instant in ("2024-03-10 06:30:00", datetime.datetime(2024, 3, 10, 6), datetime.date(2024, 3, 10)):
        assert rows(relation.at(instant)) == [(1,), (2,)]
    assert rows(relation.at("2024-03-10 12:00:00")) == [(2,)]


def test_the_hour_that_clocks_show_twice(spark, session, conf):
    conf("spark.sql.session.timeZone", "America/New_York")
    spark.sql(
        "SELECT timestamp_seconds(id) AS ts FROM VALUES (1699162200L), (1699165800L) AS t(id)"
    ).createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM xs (ROWTIME ts TIMESTAMP) FROM o")
    changes = session.sql("SELECT unix_seconds(ts) AS s, ts FROM xs [ROWS 1]").changelog("op").df
    assert [
        tuple(row) for row in changes.selectExpr("_op", "s", "unix_seconds(ts)").orderBy("s", "_op").collect()
    ] == [
        ("+I", 1699162200, 1699162200),
        ("-D", 1699162200, 1699162200),
        ("+I", 1699165800, 1699165800),
    ]


def test_values_that_fall_across_a_null(spark, session):
    spark.sql("SELECT * FROM VALUES (1L, 3), (2L, NULL), (3L, 1) AS t(ts, v)").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM f (ROWTIME ts BIGINT, v INT) FROM o")
    assert refused(session, "SELECT * FROM f [RANGE 2 ON v]")[0] == "FALLING_VALUE"


def test_names_of_others_are_kept(spark, session):
    spark.sql("SELECT 1 AS x").createOrReplaceTempView("plain")
    session.sql("DROP STREAM IF EXISTS plain")
    assert spark.table("plain").columns == ["x"]
    assert refused(session, "CREATE STREAM plain (ROWTIME x INT) FROM plain")[0] == "STREAM_ALREADY_EXISTS"
    session.sql("CREATE OR REPLACE STREAM p (ROWTIME x INT) FROM plain")
    for query, condition in (
        ("CREATE TEMPORARY VIEW plain AS SELECT * FROM p [NOW]", "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"),
        ("CREATE VIEW stored AS SELECT * FROM p [NOW]", "UNSUPPORTED_STATEMENT"),
        ("ISTREAM(SELECT a.x, b.x FROM p [NOW] a, p [NOW] b)", "DUPLICATE_COLUMN"),
        ("ISTREAM(SELECT * FROM plain)", "NOT_VARYING"),
        ("SELECT STREAM COUNT(*) AS n FROM CHANGELOG OF (SELECT * FROM p [RANGE 2])", "NOT_VARYING"),
        ("ISTREAM(SELECT * FROM p)", "STREAM_WHERE_RELATION_IS_NEEDED"),
        ("SELECT * FROM ISTREAM(SELECT * FROM p [NOW])", "STREAM_WHERE_RELATION_IS_NEEDED"),
        ("SELECT x FROM p [NOW] ORDER BY nosuch", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
    ):
        assert refused(session, query)[0] == condition
    session.sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT * FROM p [NOW]")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 7 AS y")
    assert rows(session.sql("SELECT * FROM v")) == [(7,)]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT col FROM VALUES (array(1, 2), 0) AS t(a, range) "
        "LATERAL VIEW explode(array(a[range + 1])) x AS col",
        "SELECT extract(day FROM a[range - 1]) FROM VALUES (array(DATE '2024-01-02'), 1) AS t(a, range)",
        "SELECT 1 IS DISTINCT FROM a[range - 1] FROM VALUES (array(2), 1) AS t(a, range)",
        "SELECT trim(BOTH 'x' FROM a[rows - 1]) FROM VALUES (array('x2'), 1) AS t(a, rows)",
    ],
)
def test_plain_spark_is_left_alone(session, query):
    assert len(session.sql(query).collect()) == 1


@pytest.mark.parametrize("window", ["[RANGE 5 MINUTES]", "[ROWS 9]", "[NOW]"])
def test_rows_without_a_rowtime_can_be_left_out_before_the_stream(spark, session, tmp_path, window):
    path = tmp_path / "readings.csv"
    path.write_text("k,ts\na,2026-01-01 10:00:00\na,\nb,noon\nb,2026-01-01 10:01:00\n")
    session.register("readings", path)
    session.sql("""
        CREATE OR REPLACE TEMPORARY VIEW timed AS
        SELECT k, try_cast(ts AS TIMESTAMP) AS ts FROM readings WHERE try_cast(ts AS TIMESTAMP) IS NOT NULL
    """)
    session.stream("timed_stream", session.table("timed"), rowtime="ts")
    session.stream(
        "untimed", session.sql("SELECT k, CAST(NULL AS TIMESTAMP) AS ts FROM readings"), rowtime="ts"
    )
    assert len(session.sql("SELECT k FROM untimed WHERE ts IS NULL").collect()) == 4  # to find them
    assert refused(session, f"SELECT k FROM untimed {window}")[0] == "NULL_ROWTIME"
    session.sql("DROP STREAM untimed")
    expected = {"[NOW]": 1}.get(window, 2)
    assert rows(session.sql(f"SELECT COUNT(*) FROM timed_stream {window}")) == [(expected,)]
    session.sql("DROP STREAM timed_stream")


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("WITH w AS (SELECT * FROM ticks [RANGE 2]) SELECT 1", [(1,)]),
        ("WITH w AS (SELECT * FROM ticks [RANGE 2]), x AS (SELECT 2 AS b) SELECT * FROM x", [(2,)]),
        ("SELECT 3 FROM (WITH w AS (SELECT * FROM ticks [NOW]) SELECT 1)", [(3,)]),
        ("EXPLAIN WITH w AS (SELECT * FROM ticks [RANGE 2]) SELECT 1", None),
    ],
)
def test_a_named_query_over_a_window_may_stand_there_unused(ticks, query, expected):
    found = rows(ticks.sql(query))
    assert found == expected if expected is not None else "OneRowRelation" in found[0][0]


def test_a_view_of_a_query_that_names_a_window_and_reads_none_is_a_table(ticks):
    ticks.sql("CREATE OR REPLACE TEMPORARY VIEW one AS WITH w AS (SELECT * FROM ticks [NOW]) SELECT 1 AS a")
    assert rows(ticks.sql("SELECT a FROM one")) == [(1,)]
    wrong = "WITH w AS (SELECT * FROM ticks [RANGE 2 BY 3]) SELECT 1"
    assert refused(ticks, wrong) == ("UNKNOWN_UNIT", "BY")

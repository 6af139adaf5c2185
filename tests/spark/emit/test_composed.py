"""Queries with EMIT inside of other statements stand there as the tables, or streams, that they give."""

from __future__ import annotations

from collections import Counter

import pytest

from windrow import AnalysisError, NotSupportedError, ParseError, Session, WindrowError

BEST = "SELECT t, item, MAX(price) AS best FROM offers GROUP BY t, item EMIT STREAM AFTER WATERMARK"

ROWS = [(1, 3, "pen", 10, None), (2, 4, "ink", 5, 2), (3, 6, "pen", 12, 5), (4, None, None, None, 30)]
COLUMNS = "at int, t bigint, item string, price int, upto bigint"


@pytest.fixture(scope="module")
def session(spark):
    session = Session(spark.newSession())
    log = session.spark.createDataFrame(ROWS, COLUMNS)
    session.stream("offers", log, rowtime="t", ptime="at", watermark="upto")
    return session


@pytest.fixture
def table(session, tmp_path):
    yield f"kept USING parquet LOCATION '{tmp_path / 'kept'}'"
    session.sql("DROP TABLE IF EXISTS kept")


def listed(relation) -> list[tuple[object, ...]]:
    return sorted(map(tuple, relation.collect()))


ALL = [(3, "pen", 10, False, 3, 0), (4, "ink", 5, False, 3, 0), (6, "pen", 12, False, 4, 0)]


def test_what_is_told_is_a_table_in_brackets(session):
    assert listed(session.sql(BEST)) == ALL
    query = f"SELECT item, COUNT(*) AS n FROM ({BEST}) AS b WHERE NOT undo GROUP BY item"
    assert listed(session.sql(query)) == [("ink", 1), ("pen", 2)]
    assert listed(session.sql(f"WITH b AS ({BEST}) SELECT MAX(best) FROM b")) == [(12,)]
    several = f"SELECT a.t FROM ({BEST}) a JOIN (SELECT t FROM offers AS OF SYSTEM TIME 2) b ON a.t = b.t"
    assert listed(session.sql(several)) == [(3,), (4,)]
    nested = f"SELECT * FROM (SELECT t FROM (SELECT t FROM ({BEST})) WHERE t > 3)"
    assert listed(session.sql(nested)) == [(4,), (6,)]
    bound = "SELECT n FROM (SELECT COUNT(*) AS n FROM offers WHERE price > :least EMIT STREAM) WHERE NOT undo"
    assert listed(session.sql(bound, least=9)) == [(1,), (2,)]


def test_what_is_told_stands_beside_streams_as_of_now(session):
    query = f"SELECT o.price, b.best FROM ({BEST}) b JOIN offers o ON o.t = b.t AND o.price < 12"
    relation = session.sql(query)
    assert listed(relation) == [(5, 5), (10, 10)]
    # what was told then is not known any more
    with pytest.raises(WindrowError, match="NOT_VARYING"):
        relation.at(ptime=2)
    counted = f"SELECT t, COUNT(*) FROM offers GROUP BY t HAVING COUNT(*) < (SELECT COUNT(*) FROM ({BEST}))"
    assert listed(session.sql(counted)) == [(3, 1), (4, 1), (6, 1)]


def test_marks_of_parameters_are_counted_through_the_statement(session):
    query = "SELECT ?, t FROM (SELECT t FROM offers WHERE price > ? EMIT STREAM) WHERE t < ?"
    assert listed(session.sql(query, "x", 9, 6)) == [("x", 3)]
    with pytest.raises(AnalysisError) as error:
        session.sql("SELECT ?, nope FROM (SELECT t FROM offers WHERE price > ? EMIT STREAM)", "x", 9)
    assert error.value.getQueryContext()[0].fragment() == "nope"


def test_a_view_holds_what_is_told(session):
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW best (a, b, c, d, e, f) AS {BEST}")
    assert listed(session.sql("SELECT * FROM best")) == ALL
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW best AS SELECT t FROM ({BEST}) WHERE best > 9")
    assert listed(session.sql("SELECT * FROM best")) == [(3,), (6,)]
    session.sql("DROP VIEW best")


def test_a_table_takes_what_is_told(session, table):
    session.sql(f"CREATE TABLE {table} AS {BEST}")
    assert listed(session.sql("TABLE kept")) == ALL
    session.sql(f"INSERT INTO kept {BEST}")
    assert listed(session.sql("SELECT COUNT(*) FROM kept")) == [(6,)]
    session.sql(f"INSERT OVERWRITE kept SELECT * FROM ({BEST}) WHERE best > 9")
    assert listed(session.sql("TABLE kept")) == [row for row in ALL if row[2] > 9]


GROUPS = "SELECT ends, COUNT(*) AS n FROM {} GROUP BY ends EMIT STREAM"
INNER = (
    "SELECT wend AS ends, item, MAX(price) / 2 AS half FROM TUMBLE(TABLE offers, DESCRIPTOR(t), 2)"
    " WHERE price > {} GROUP BY wend, item EMIT STREAM"
)


@pytest.mark.sampled
@pytest.mark.parametrize("execution", ["batch", "reference"])
@pytest.mark.parametrize(
    ("outer", "inner", "rowtime"),
    [
        (f"{GROUPS} AFTER WATERMARK", f"{INNER} AFTER WATERMARK", "ends"),
        ("SELECT half, COUNT(*) AS n FROM {} AS q WHERE NOT undo GROUP BY half EMIT STREAM", INNER, "ptime"),
        ("SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE {}, DESCRIPTOR(ends), 4) GROUP BY wend EMIT STREAM",
         f"{INNER} AFTER WATERMARK", "ends"),
        ("SELECT item, COUNT(*) AS n FROM {} GROUP BY item EMIT STREAM",
         "SELECT t, item FROM offers WHERE price > {} EMIT STREAM AFTER WATERMARK", "ptime"),
    ],
)  # fmt: skip
def test_changes_are_a_stream_of_a_query_with_emit(spark, execution, outer, inner, rowtime):
    session = Session(spark.newSession(), execution=execution)
    how = {"ptime": "at", "rowtime": "t", "unit": "seconds"}
    session.stream("offers", session.spark.createDataFrame(ROWS, COLUMNS), watermark="upto", **how)
    found = session.sql(outer.format(f"({inner.format('?')})"), 4)
    assert set(session.names()) == {"offers"}
    assert listed(found) == listed(session.sql(outer.format(f"({inner.format(4)})")))
    told = session.sql(inner.format(4)).df.selectExpr("*", f"{rowtime} AS b")
    session.stream("told", told, bound="b", **{**how, "rowtime": rowtime, "ptime": "ptime"})
    assert listed(found) == listed(session.sql(outer.format("told")))
    assert listed(found)


TABLES = [
    "SELECT wend AS ends, item, MAX(price) / 2 AS half FROM TUMBLE(TABLE offers, DESCRIPTOR(t), 2)"
    " GROUP BY wend, item EMIT AFTER WATERMARK",
    "SELECT item, COUNT(*) AS half FROM offers GROUP BY item EMIT AFTER DELAY 2",
    "SELECT t AS ends, item, COUNT(*) AS half FROM offers GROUP BY t, item"
    " EMIT AFTER WATERMARK ALLOWED LATENESS 30",
    "SELECT item, price / 2 AS half FROM offers ALLOWED LATENESS 3",
]
AROUND = [
    "SELECT item, SUM(half) AS n FROM {} GROUP BY item",
    "SELECT price FROM offers WHERE price / 2 IN (SELECT half FROM {}) OR (SELECT COUNT(*) FROM {}) > 2",
    "SELECT o.t FROM offers AS o WHERE NOT EXISTS (SELECT * FROM {} AS q WHERE q.item = o.item)",
]
LATER = [*ROWS, (5, 4, "ink", 8, None), (6, 31, "pen", 12, 40), (7, 3, "pen", 1, 60)]


@pytest.fixture(scope="module", params=["batch", "reference"])
def longer(request, spark):
    session = Session(spark.newSession(), execution=request.param)
    log = session.spark.createDataFrame(LATER, COLUMNS)
    session.stream("offers", log, rowtime="t", ptime="at", watermark="upto", unit="seconds")
    return session


@pytest.mark.sampled
@pytest.mark.parametrize("inner", TABLES)
@pytest.mark.parametrize("outer", AROUND)
def test_tables_change_in_a_query_with_emit(longer, outer, inner):
    changes = longer.sql(outer.replace("{}", f"({inner})") + " EMIT STREAM").collect()
    table = longer.sql(inner)
    for at in range(1, 8):
        there = Counter[tuple[object, ...]]()
        for *row, undo, ptime, _ in changes:
            there[tuple(row)] += (-1 if undo else 1) * (ptime <= at)
        table.at(ptime=at).df.createOrReplaceTempView("told")
        longer.spark.createDataFrame(LATER, COLUMNS).where(
            f"at <= {at} AND t IS NOT NULL"
        ).createOrReplaceTempView("came")
        expected = longer.spark.sql(outer.replace("FROM offers", "FROM came").replace("{}", "told"))
        assert +there == Counter(map(tuple, expected.collect()))


def test_complete_rows_have_event_time_in_a_query_with_emit(longer):
    inner = INNER.format(4)
    query = f"{GROUPS} AFTER WATERMARK"
    found = listed(longer.sql(query.format(f"({inner.removesuffix('STREAM')} AFTER WATERMARK)")))
    told = longer.sql(f"{inner} AFTER WATERMARK").df.selectExpr("*", "ends AS b")
    longer.stream("told", told, watermark="b", rowtime="ends", ptime="ptime", unit="seconds")
    assert found == listed(longer.sql(query.format("told")))
    assert found


@pytest.mark.parametrize("envelope", ["delta", "op", "diff"])
def test_changes_have_any_envelope_in_a_query_with_emit(longer, envelope):
    inner = f"SELECT item, COUNT(*) AS n FROM offers GROUP BY item EMIT STREAM AS {envelope}"
    time = "_commit_timestamp" if envelope == "delta" else "_at"
    query = f"SELECT {time} AS at, SUM(n) AS n FROM {{}} GROUP BY {time} EMIT STREAM AFTER WATERMARK"
    found = listed(longer.sql(query.format(f"({inner})")))
    told = longer.sql(inner).df.selectExpr("*", f"{time} AS b")
    longer.stream("told", told, bound="b", rowtime=time, ptime=time, unit="seconds")
    assert found == listed(longer.sql(query.format("told")))
    assert found


def test_a_view_is_its_query_in_a_query_with_emit(session):
    query = "SELECT item, COUNT(*) AS n FROM {} AS b JOIN offers AS o USING (item) GROUP BY item EMIT STREAM"
    expected = listed(session.sql(query.format(f"({BEST})")))
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW best AS {BEST}")
    assert listed(session.sql(query.format("best"))) == expected
    session.sql("CREATE OR REPLACE TEMPORARY VIEW better (item, price) AS SELECT item, best FROM best")
    assert listed(session.sql(query.format("better"))) == expected
    assert listed(session.sql("SELECT * FROM better")) == [("ink", 5), ("pen", 10), ("pen", 12)]
    named = f"WITH w AS ({BEST}) {query.format('w')}"
    assert listed(session.sql(named)) == expected
    session.sql(
        "CREATE OR REPLACE TEMPORARY VIEW best AS SELECT t FROM offers WHERE price > ? EMIT STREAM", 9
    )
    assert listed(session.sql("SELECT t FROM best")) == [(3,), (6,)]
    with pytest.raises(NotSupportedError, match="parameters") as error:
        session.sql("SELECT t FROM best EMIT STREAM")
    assert error.value.getQueryContext()[0].fragment() == "best"
    session.sql("CREATE OR REPLACE TEMPORARY VIEW best AS SELECT 1 AS t")
    with pytest.raises(AnalysisError, match="NOT_VARYING"):
        session.sql("SELECT t FROM best EMIT STREAM")
    for name in ("best", "better"):
        session.sql(f"DROP VIEW {name}")


@pytest.mark.parametrize(
    ("query", "kind", "condition", "fragment"),
    [
        ("SELECT t FROM offers o WHERE EXISTS (SELECT t FROM offers WHERE t = o.t EMIT STREAM) EMIT STREAM",
         AnalysisError, "UNRESOLVED_COLUMN", "o.t"),
        ("WITH w AS (SELECT * FROM offers) SELECT * FROM (SELECT t FROM w EMIT STREAM)", NotSupportedError,
         "UNSUPPORTED_CLAUSE", "EMIT"),
        ("SELECT * FROM (SELECT t, undo FROM (SELECT t FROM offers EMIT STREAM) EMIT STREAM) EMIT STREAM",
         AnalysisError, "DUPLICATE_COLUMN", "EMIT"),
        ("SELECT t FROM (SELECT t FROM offers EMIT AFTER DELAY 2) GROUP BY t EMIT AFTER WATERMARK",
         AnalysisError, "GROUP_WITHOUT_EVENT_TIME", "t"),
        ("SELECT * FROM (SELECT nope FROM offers EMIT STREAM)", AnalysisError, "UNRESOLVED_COLUMN", "nope"),
        ("SELECT * FROM (SELECT t FROM offers EMIT STRAM)", ParseError, "PARSE_SYNTAX_ERROR", "STRAM"),
        ("SELECT nope FROM (SELECT t FROM offers EMIT STREAM)", AnalysisError, "UNRESOLVED_COLUMN", "nope"),
        ("CREATE VIEW v AS SELECT t FROM offers EMIT STREAM", AnalysisError, "INVALID_TEMP_OBJ_REFERENCE",
         "offers"),
    ],
)  # fmt: skip
def test_errors_are_at_their_place_in_the_statement(session, query, kind, condition, fragment):
    with pytest.raises(kind) as error:
        session.sql(query)
    assert error.value.condition.startswith(condition)
    (context,) = error.value.getQueryContext()
    assert context.fragment() == fragment
    assert query[context.startIndex() : context.stopIndex() + 1] == fragment
    assert error.value.hint


def test_what_stands_inside_is_checked(session):
    session.check(f"INSERT INTO kept {BEST}")
    with pytest.raises(AnalysisError) as error:
        session.check("SELECT * FROM (SELECT nope FROM offers EMIT STREAM)")
    assert error.value.getQueryContext()[0].fragment() == "nope"


def test_what_goes_on_is_started_into_a_table(spark, tmp_path):
    session = Session(spark.newSession())
    session.sql(f"CREATE STREAM came (ROWTIME t BIGINT, price INT) LOCATION '{tmp_path / 'came'}'")
    session.sql("INSERT INTO came VALUES (1, 5), (2, 3), (30, 1)")
    columns = "t BIGINT, n BIGINT, undo BOOLEAN, ptime TIMESTAMP, ver BIGINT"
    session.sql(f"CREATE TABLE told ({columns}) USING parquet LOCATION '{tmp_path / 'told'}'")
    session.sql(f"SET spark.windrow.checkpoint = {tmp_path / 'checkpoint'}")
    query = "SELECT t, COUNT(*) AS n FROM came GROUP BY t"
    try:
        session.sql(f"INSERT INTO told {query} EMIT STREAM")
        (name,) = session.queries
        live = session.queries[name]
        live.process_all_available()
        live.stop()
        assert [(row[0], row[1]) for row in listed(session.sql("TABLE told"))] == [(1, 1), (2, 1), (30, 1)]
        # without STREAM it is a table: what there is now
        session.sql(
            f"CREATE TABLE now USING parquet LOCATION '{tmp_path / 'now'}' AS {query} ALLOWED LATENESS 1"
        )
        assert listed(session.sql("TABLE now")) == [(1, 1), (2, 1), (30, 1)]
    finally:
        for name in ("told", "now"):
            session.sql(f"DROP TABLE IF EXISTS {name}")

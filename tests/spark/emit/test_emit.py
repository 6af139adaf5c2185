"""Queries over recorded logs, told by processing time: the changes add up to the table at every instant."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

import windrow
from windrow.errors import WindrowError

pytestmark = pytest.mark.usefixtures("interpreted")

WINDOWS = "FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10)"
SHAPES = {
    "groups": f"SELECT k, wstart, SUM(v) AS n {WINDOWS} GROUP BY k, wend",
    "a view of groups, joined with itself": (
        "SELECT a.wend, a.k, b.k AS other, a.m + b.m AS both "
        "FROM best AS a JOIN best AS b ON a.wend = b.wend AND a.k < b.k"
    ),
    "groups of groups": (
        f"SELECT n, COUNT(*) AS c FROM (SELECT k, COUNT(*) AS n {WINDOWS} GROUP BY wend, k) GROUP BY n"
    ),
    "an outer join with a table": "SELECT names.name, s.v FROM s LEFT JOIN names ON s.k = names.k",
    "a subquery": "SELECT k, v FROM s WHERE v = (SELECT MAX(v) FROM s)",
    "one group": "SELECT COUNT(DISTINCT k) AS n FROM s HAVING COUNT(*) <> 3",
    "a set operator": "SELECT k FROM s EXCEPT SELECT k FROM s WHERE v > 4",
}


@pytest.fixture
def session(spark) -> Iterator[windrow.Session]:
    chance = random.Random(7)
    entries, watermark = [], 0
    for at in range(1, 13):
        if at % 4 == 0:
            watermark += chance.randrange(6, 16)
            entries.append((at, None, None, None, watermark))
        else:
            entries.append(
                (
                    at,
                    chance.randrange(watermark // 2, watermark + 15),
                    chance.choice("abc"),
                    chance.randrange(6),
                    None,
                )
            )
    session = windrow.Session(spark)
    log = spark.createDataFrame(entries, "at int, t int, k string, v int, upto int")
    names = spark.createDataFrame([("a", "Ada"), ("a", "Anna"), ("b", "Bea")], "k string, name string")
    session.register("names", names)
    session.stream("s", log, rowtime="t", unit="seconds", ptime="at", watermark="upto")
    session.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW best AS SELECT wend, k, MAX(v) AS m {WINDOWS} GROUP BY wend, k"
    )
    yield session
    for name in ("s", "names", "best"):
        spark.catalog.dropTempView(name)


@pytest.mark.parametrize("shape", SHAPES)
def test_the_changes_add_up_to_the_table_at_every_instant(session, shape):
    changes = session.sql(f"{SHAPES[shape]} EMIT STREAM").collect()
    relation = session.sql(SHAPES[shape])
    tables = [relation.at(ptime=at).df.selectExpr("*", f"{at} AS __at") for at in range(1, 13, 2)]
    whole = tables[0]
    for table in tables[1:]:
        whole = whole.unionAll(table)
    found = Counter((row[-1], tuple(row[:-1])) for row in whole.collect())
    expected: Counter = Counter()
    for at in range(1, 13, 2):
        for row in changes:
            if row["ptime"] <= at:
                expected[at, tuple(row[:-3])] += -1 if row["undo"] else 1
    assert {key: count for key, count in expected.items() if count} == dict(found)
    assert found


def test_a_relation_of_another_clock_is_told_apart(session):
    relation = session.sql("SELECT k FROM s")
    assert repr(relation) == "TimeVaryingRelation[k: string]"
    assert "stream s, in order of arrival" in relation.plan()
    with pytest.raises(WindrowError, match="processing time"):
        relation.at(5)
    by_rowtime = session.sql("SELECT k FROM s [RANGE 10]")
    with pytest.raises(WindrowError, match="rowtime"):
        by_rowtime.at(ptime=5)
    told = relation.changelog("op").collect()
    assert [(row["_op"], row["_at"]) for row in told[:2]] == [("+I", 1), ("+I", 2)]
    with pytest.raises(WindrowError, match="no key"):
        relation.changelog("one-sql", key="k")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT n FROM (SELECT map(k, v) AS m, COUNT(*) AS n FROM s GROUP BY map(k, v)) EMIT STREAM",
        "SELECT COUNT(*) AS n FROM s GROUP BY v, map(k, v), k EMIT STREAM",
        "SELECT map(k, v) AS m, COUNT(*) AS n FROM s GROUP BY k, m EMIT STREAM",
    ],
)
def test_changes_of_groups_without_an_order_are_not_numbered(session, query):
    for refused in (
        lambda: session.check(query),
        lambda: session.sql(query),
        lambda: session.sql(f"{query} AS delta").changelog("one-sql"),
    ):
        with pytest.raises(WindrowError) as caught:
            refused()
        assert caught.value.condition == "UNORDERABLE_TYPE"
        assert [context.fragment() for context in caught.value.getQueryContext()] == ["map(k, v)"]
    kinds = Counter(row["_op"] for row in session.sql(f"{query} AS op").collect())
    assert kinds["+I"] - kinds["-D"] == session.sql("SELECT DISTINCT k, v FROM s").count()


def test_a_view_that_is_dropped_or_replaced_is_forgotten(session):
    query = "SELECT * FROM best EMIT STREAM"
    assert session.sql(query).df.columns[:3] == ["wend", "k", "m"]
    session.sql("CREATE OR REPLACE TEMPORARY VIEW best AS SELECT 1 AS one")
    with pytest.raises(WindrowError, match="no recorded stream"):
        session.sql(query)
    session.check("SELECT k FROM s EMIT STREAM AFTER DELAY 5")
    with pytest.raises(WindrowError, match="cannot be resolved"):
        session.check("SELECT kk FROM s EMIT STREAM")
    session.sql("CREATE TEMPORARY VIEW w AS SELECT k FROM s EMIT STREAM")
    assert session.sql("SELECT * FROM w").df.columns == ["k", "undo", "ptime", "ver"]
    session.sql("DROP VIEW w")


def test_many_steps_of_a_watermark_are_looked_up(spark):
    """As few steps are, by an expression, so are many, by a function."""
    entries = [(at, at, at - 3) for at in range(1, 700)]
    session = windrow.Session(spark)
    log = spark.createDataFrame(entries, "at int, t int, upto int")
    session.stream("long", log, rowtime="t", unit="seconds", ptime="at", watermark="upto")
    query = "SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE long, DESCRIPTOR(t), 10) GROUP BY wend"
    told = session.sql(f"{query} EMIT STREAM AFTER WATERMARK").collect()
    found = {row["wend"]: (row["n"], row["ptime"]) for row in told}
    # the watermark reaches the end with the entry three after it
    assert found == {end: (9 if end == 10 else 10, end + 3) for end in range(10, 700, 10) if end + 3 < 700}
    spark.catalog.dropTempView("long")


BY_ROWTIME = [
    "SELECT k, COUNT(*) AS n FROM s [RANGE 10] GROUP BY k",
    "SELECT ISTREAM(k, v) FROM s [ROWS 2]",
    "SELECT a.t, SUM(w.v) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY t, v START AS a "
    "END AS e WHEN e.t - a.t >= 5)",
    "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY t, v MEASURES COUNT(*) AS n PATTERN (a b+) "
    "DEFINE b AS b.v >= PREV(b.v))",
]
"""Queries that vary by rowtime: live, rows wait for the watermark; recorded, all rows are read."""


@pytest.mark.parametrize("query", BY_ROWTIME)
def test_what_varies_by_rowtime_is_complete_where_it_is_live(spark, tmp_path, query):
    rows = [(1, "a", 1), (4, "a", 2), (4, "b", 2), (9, "a", 3), (12, "b", 1), (30, "a", 0), (50, "b", 0)]
    kinds = "t bigint, k string, v int"
    spark.createDataFrame(rows, kinds).coalesce(1).write.parquet(str(tmp_path / "in"))
    session = windrow.Session(spark)
    frame = spark.readStream.schema(kinds).parquet(str(tmp_path / "in"))
    session.stream("s", frame, rowtime="t", unit="seconds", lag="1 second")
    found = []
    for text in (f"{query} EMIT AFTER WATERMARK", query):
        target = windrow.Memory()
        session.sql(text).start(target, trigger={"availableNow": True}).await_termination()
        told = [tuple(row.values()) for table in target.batches.values() for row in table.to_pylist()]
        found.append(Counter(told))
    assert found[0] == found[1]
    assert found[0]
    assert session.sql(f"EXPLAIN {query} EMIT AFTER WATERMARK").collect()[0][0]


@pytest.mark.parametrize("query", BY_ROWTIME)
@pytest.mark.parametrize(
    "how",
    ["EMIT AFTER WATERMARK", "EMIT STREAM", "EMIT STREAM AFTER WATERMARK", "EMIT AFTER DELAY 3 SECONDS"],
)
def test_what_varies_by_rowtime_is_refused_where_it_reads_all_that_is_recorded(session, query, how):
    with pytest.raises(WindrowError, match="MIXED_CLOCKS") as caught:
        session.sql(f"{query} {how}")
    assert caught.value.hint


def test_words_of_windows_in_a_text_are_no_windows(session):
    query = "SELECT t, '[NOW] WINDOW BY MATCH_RECOGNIZE' AS x FROM s EMIT AFTER WATERMARK"
    plain = session.sql("SELECT t FROM s EMIT AFTER WATERMARK").collect()
    assert sorted(row.t for row in session.sql(query).collect()) == sorted(row.t for row in plain)


def test_a_pipe_before_emit_gives_what_its_select_gives(spark):
    session = windrow.Session(spark.newSession())
    entries = [(1, 1, None), (2, 2, None), (5, 3, None), (None, 4, 5), (12, 5, None), (None, 6, 13)]
    made = session.spark.createDataFrame(entries, "t INT, at INT, mark INT")
    made.createOrReplaceTempView("entries")
    session.sql(
        "CREATE STREAM hits (ROWTIME t INT UNIT SECONDS, PTIME at INT, WATERMARK mark INT) FROM entries"
    )
    windows = "FROM TUMBLE(TABLE hits, DESCRIPTOR(t), 10)"
    emit = "EMIT STREAM AFTER WATERMARK"
    pipe = session.sql(f"{windows} |> WHERE t > 1 |> AGGREGATE COUNT(*) AS n GROUP BY wend {emit}").collect()
    select = f"SELECT wend, COUNT(*) AS n {windows} WHERE t > 1 GROUP BY wend {emit}"
    assert pipe == session.sql(select).collect()
    assert [(row.wend, row.n) for row in pipe] == [(10, 2)]


@pytest.mark.parametrize("execution", ["batch", "reference"])
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT item FROM bids ORDER BY item", ["A", "B", "C"]),
        ("SELECT item, item AS ITEM FROM bids ORDER BY 2 DESC", ["C", "B", "A"]),
        ("SELECT item, MAX(price) AS best FROM bids GROUP BY item ORDER BY best DESC", ["A", "B", "C"]),
        (
            "WITH b AS (SELECT * FROM bids) SELECT lower(b.item) FROM b ORDER BY lower(b.item)",
            ["a", "b", "c"],
        ),
        ("(SELECT item FROM bids ORDER BY item)", ["A", "B", "C"]),
        ("SELECT lower(item) AS i, b.price AS p FROM bids AS b ORDER BY price DESC", ["a", "b", "c"]),
        ("SELECT item, price FROM bids ORDER BY bids.price DESC NULLS FIRST, item", ["A", "B", "C"]),
        ("SELECT item FROM bids UNION SELECT 'D' FROM bids ORDER BY item DESC", ["D", "C", "B", "A"]),
        ("SELECT item FROM bids ORDER BY item LIMIT 2", ["A", "B"]),
        ("SELECT item FROM bids ORDER BY item AS OF SYSTEM TIME 2", ["A", "C"]),
    ],
)
def test_the_table_is_sorted_as_its_query_says(spark, query, expected, execution):
    log = spark.createDataFrame(
        [(1, 1, "C", 5), (2, 2, "A", 7), (3, 3, "B", 6)], "at int, t int, item string, price int"
    )
    session = windrow.Session(spark, execution=execution)
    session.stream("bids", log, rowtime="t", unit="seconds", ptime="at")
    relation = session.sql(query)
    assert [row[0] for row in relation.collect()] == [row[0] for row in relation.df.collect()] == expected
    if "AS OF" not in query and "LIMIT" not in query and "UNION" not in query:
        earlier = [row[0] for row in relation.at(ptime=2).collect()]
        assert earlier == [one for one in expected if one.upper() != "B"]

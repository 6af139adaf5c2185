"""Blocks with WINDOW BY that read the query around them give what windows for each of its values give."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow

CLAUSE = "TYPE SLIDING PARTITION BY k{} ORDER BY i START AS s WHEN s.v > {} END NEXT AS n WHEN n.v < s.v"
INNER = f"FROM r WHERE r.v > t.x AND r.k = t.k WINDOW BY w AS ({CLAUSE.format('', 't.x + 1')})"
FORMS = {
    "a count, also of no windows": ("(SELECT COUNT(*) {})", "(SELECT COUNT(*) {})"),
    "NOT EXISTS": ("NOT EXISTS (SELECT * {})", "NOT EXISTS (SELECT * {})"),
    "IN": ("t.x IN (SELECT s.v - 3 {})", "t.x IN (SELECT v - 3 {})"),
    "NOT IN": ("t.x NOT IN (SELECT s.v - 3 {})", "t.x NOT IN (SELECT v - 3 {})"),
}
JOINS = ("FROM t, LATERAL ({}) AS q", "FROM t LEFT JOIN LATERAL ({}) AS q")


@pytest.fixture(scope="module")
def sessions(spark) -> tuple[windrow.Session, ...]:
    """Sessions of both modes, and views: rows, values around with duplicates and NULLs, windows of each."""
    sessions = tuple(windrow.Session(spark, execution=mode) for mode in ("batch", "reference"))
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW r AS SELECT * FROM VALUES ('a', 1, 5), ('a', 2, 7), ('a', 3, 4),"
        " ('a', 4, 9), ('b', 1, 9), ('b', 2, 3), ('b', 3, NULL), (NULL, 1, 8) AS r(k, i, v)"
    )
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM VALUES ('a', 4), ('a', 4), ('a', 6), ('a', NULL),"
        " ('b', 0), ('c', 0), (NULL, 2), (NULL, NULL) AS t(k, x)"
    )
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW by_hand AS SELECT s.k, s.x, s.i, s.v, COUNT(w) AS n"
        " FROM r, (SELECT DISTINCT k AS of, x FROM t) AS d WHERE r.v > d.x AND r.k = d.of"
        f" WINDOW BY w AS ({CLAUSE.format(', x', 's.x + 1')})"
    )
    return sessions


def same(sessions: tuple[windrow.Session, ...], query: str, by_hand: str) -> None:
    wanted = sorted(map(str, sessions[0].sql(by_hand).df.collect()))
    for session in sessions:
        assert sorted(map(str, session.sql(query).df.collect())) == wanted


def test_subqueries_are_those_over_the_windows_of_each_value(sessions):
    hand = "FROM by_hand AS h WHERE h.k = t.k AND h.x <=> t.x"
    values = ", ".join(windows.format(INNER) for windows, _ in FORMS.values())
    by_hand = ", ".join(rows.format(hand) for _, rows in FORMS.values())
    names = ", ".join(f"q{number}" for number in range(len(FORMS)))
    same(
        sessions,
        f"SELECT * FROM (SELECT t.k, t.x, {values} FROM t) AS q(k, x, {names})",
        f"SELECT * FROM (SELECT t.k, t.x, {by_hand} FROM t) AS q(k, x, {names})",
    )


def test_columns_with_the_schema_of_their_table(sessions, spark):
    rows = "VALUES ('a', 1, 5), ('a', 2, 7), ('a', 3, 4), ('b', 1, 9), ('b', 2, 3) AS r(k, i, v)"
    inner = INNER.replace("FROM r", f"FROM {rows}")
    of_one_name = inner.replace("r.", "around.").replace("AS r(", "AS around(")
    spark.sql(
        "CREATE TABLE default.around AS SELECT * FROM"
        " VALUES ('a', 4), ('a', 6), ('b', 0), (NULL, 1) AS t(k, x)"
    )
    try:
        query = "SELECT q.k, q.x FROM (SELECT {0}.k, {0}.x FROM {1} WHERE EXISTS (SELECT s.i {2})) AS q"
        for source, read in (("default.around", inner), ("around", of_one_name)):
            same(
                sessions,
                query.format("around", source, read.replace("t.", "default.around.")),
                query.format("t", "default.around AS t", inner),
            )
    finally:
        spark.sql("DROP TABLE default.around")


def test_lateral_joins_are_those_with_the_windows_of_each_value(sessions):
    queries = [
        " UNION ALL ".join(f"SELECT t.k, t.x, q.* {join.format(inner)}" for join in JOINS)
        for inner in (
            f"SELECT s.i, SUM(w.v + t.x) AS total {INNER}",
            "SELECT h.i, h.total FROM (SELECT k, x, i, total FROM totals) AS h"
            " WHERE h.k = t.k AND h.x <=> t.x",
        )
    ]
    sessions[0].sql(
        "CREATE OR REPLACE TEMP VIEW totals AS SELECT s.k, s.x, s.i, SUM(w.v + w.x) AS total"
        " FROM r, (SELECT DISTINCT k AS of, x FROM t) AS d WHERE r.v > d.x AND r.k = d.of"
        f" WINDOW BY w AS ({CLAUSE.format(', x', 's.x + 1')})"
    )
    same(sessions, *queries)


@pytest.mark.parametrize(
    "inner",
    [
        "FROM (SELECT * FROM r AS z WHERE z.v > t.x) AS r",
        "FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY v, i) AS n FROM r WHERE v > t.x) AS r WHERE n > t.x - 3",
        "FROM r JOIN r AS z ON z.v > t.x AND z.k = r.k AND z.i = r.i",
        "FROM (SELECT s.k, s.i, s.v FROM r WHERE r.v > t.x"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s END UNBOUNDED)) AS r",
    ],
    ids=["a subquery", "one over several rows", "a join", "windows of windows"],
)
def test_values_are_read_inside_of_from(sessions, inner):
    clause = "WINDOW BY w AS (TYPE SLIDING ORDER BY r.i, r.k START AS s END UNBOUNDED)"
    plain = inner.partition(" WINDOW BY")[0] + ") AS r" * ("WINDOW BY" in inner)
    same(
        sessions,
        f"SELECT (SELECT COUNT(*) {inner} {clause}) AS c FROM t",
        f"SELECT (SELECT COUNT(*) {plain.replace('s.k, s.i, s.v', 'k, i, v')}) AS c FROM t",
    )


def test_a_view_whose_values_change_is_refused(sessions):
    sessions[0].spark.sql("CREATE OR REPLACE TEMP VIEW changing AS SELECT k, x + rand() AS x FROM t")
    with pytest.raises(windrow.WindrowError) as raised:
        sessions[0].sql(
            "SELECT c.k, (SELECT COUNT(*) FROM r WHERE r.v > c.x"
            " WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s END UNBOUNDED)) FROM changing AS c"
        )
    assert raised.value.condition == "NONDETERMINISTIC_QUERY"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT t.x FROM t WHERE t.x <> 0 AND EXISTS ({})",
        "SELECT * FROM (SELECT t.x FROM t WHERE t.x <> 0 AND EXISTS ({})) AS q",
        "SELECT t.x FROM t, LATERAL ({}) AS q WHERE t.x <> 0",
    ],
    ids=["outermost", "in a subquery", "LATERAL"],
)
def test_no_condition_is_tried_for_values_of_rows_that_where_leaves_out(sessions, query):
    inner = (
        "SELECT s.i FROM r WHERE r.k = t.k WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        " START AS s ONLY END AS e WHEN e.v / t.x > 2)"
    )
    found = sessions[0].sql(query.format(inner)).collect()
    assert {row.x for row in found} == {4}


def test_where_leaves_out_no_windows_on_which_an_outer_join_depends(sessions):
    clause = "WINDOW BY w AS (TYPE SLIDING ORDER BY i, k START AS s END UNBOUNDED)"
    inner = f"SELECT s.i FROM r WHERE r.v > t.x {clause}"
    joined = "FROM t JOIN LATERAL ({}) AS q FULL JOIN VALUES (3), (99) AS u(i) ON q.i = u.i"
    where = "WHERE t.x > 5 OR t.x IS NULL"
    same(
        sessions,
        f"SELECT t.k, t.x, q.i, u.i {joined.format(inner)} {where}",
        f"SELECT t.k, t.x, q.i, u.i {joined.format('SELECT r.i FROM r WHERE r.v > t.x')} {where}",
    )


WHERES = (
    "", "WHERE r.v > {x}", "WHERE r.k = {k} AND r.v >= {x}", "WHERE r.k <=> {k}", "WHERE r.k = {k}",
    "WHERE coalesce({x}, 3) = r.v OR r.k = {k}",
)  # fmt: skip
PARTITIONS = ("", "PARTITION BY r.k", "PARTITION BY r.k + {x}")
WINDOWS = (
    "SLIDING {by} ORDER BY r.i START AS s END AS e WHEN e.v > {x}",
    "SLIDING {by} ORDER BY r.i START AS s WHEN s.k = {k} END AS e WHEN e.v IS NULL OR e.v <= s.v",
    "SLIDING {by} ORDER BY r.i LABEL AS l WHEN l.v <> {x} START AS s WHEN s.v <= l.v"
    " ONLY END AS e WHEN e = l",
    "TUMBLING {by} ORDER BY r.i START AS s WHEN s.v >= {x} ONLY END AS e NEXT AS n WHEN n.v < e.v",
    "TUMBLING {by} ORDER BY r.i START AS s",
)
AGGREGATES = ("SUM(w.v * {x})", "COUNT(w.v)", "MAX(w.v) + {x}")
numbers = st.none() | st.integers(0, 3)


def view(spark, name, columns, rows):
    """A view of rows of integers."""
    frame = spark.createDataFrame(list(rows), ", ".join(f"{column} INT" for column in columns))
    frame.createOrReplaceTempView(name)


@settings(max_examples=40)
@given(
    st.lists(st.tuples(numbers, numbers), max_size=4),
    st.lists(st.tuples(numbers, numbers), max_size=6),
    st.tuples(*map(st.sampled_from, (WHERES, PARTITIONS, WINDOWS, AGGREGATES))),
)
@pytest.mark.usefixtures("interpreted")
def test_each_row_around_has_the_windows_of_its_values(spark, around, rows, parts):
    session = windrow.Session(spark)
    view(spark, "o", ("k", "x"), around)
    view(spark, "r", ("k", "i", "v"), [(k, at, v) for at, (k, v) in enumerate(rows)])
    where, by, window, aggregate = parts
    block = f"SELECT s.i, {aggregate} AS a FROM r {where} WINDOW BY w AS (TYPE {window.replace('{by}', by)})"
    inner = block.format(k="o.k", x="o.x")
    joined = session.sql(f"SELECT o.k, o.x, q.i, q.a FROM o, LATERAL ({inner}) AS q").collect()
    counted = session.sql(f"SELECT o.k, o.x, (SELECT COUNT(*) FROM ({inner})) AS n FROM o").collect()
    wanted, counts = [], []
    for k, x in around:
        values = {name: "CAST(NULL AS INT)" if one is None else one for name, one in (("k", k), ("x", x))}
        found = [tuple(row) for row in session.sql(block.format(**values)).collect()]
        wanted += [(k, x, *row) for row in found]
        counts.append((k, x, len(found)))
    assert sorted(map(tuple, joined), key=repr) == sorted(wanted, key=repr)
    assert sorted(map(tuple, counted), key=repr) == sorted(counts, key=repr)

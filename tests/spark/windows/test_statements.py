"""WINDOW BY wherever a query may stand, and Spark's own SQL left as it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import Row

import windrow
from windrow.errors import NotSupportedError, ParseError, WindrowError

CLAUSE = (
    "WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START AS s AT sp END AS e AT ep WHEN ep - sp = 1)"
)
ROWS = "('a', 1, 10D), ('a', 2, 20D), ('a', 3, 5D), ('b', 1, 7D), ('b', 2, 8D)"
AVERAGES = [("a", 1, 15.0), ("a", 2, 12.5), ("a", 3, 5.0), ("b", 1, 7.5), ("b", 2, 8.0)]
COLUMN_OVER_BOTH_ROWS = "upper(concat(e.{0}, s.{0})) > '1'"
"""A predicate that only the join plan can evaluate."""


@pytest.fixture
def session(spark) -> Iterator[windrow.Session]:
    before = views(spark)
    spark.sql(f"CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM VALUES {ROWS} AS t (k, i, v)")
    yield windrow.Session(spark)
    for name in views(spark) - before:
        spark.catalog.dropTempView(name)


def views(spark) -> set[str]:
    return {row["viewName"] for row in spark.sql("SHOW VIEWS").collect() if row["isTemporary"]}


def rows(session: windrow.Session, sql: str, *args: Any, **params: Any) -> list[tuple[Any, ...]]:
    """The result in an order of its own; ⊞ stands for the clause."""
    collected = session.sql(sql.replace("⊞", CLAUSE), *args, **params).collect()
    return sorted((tuple(row) for row in collected), key=repr)


def in_both_modes(session: windrow.Session, sql: str) -> list[tuple[Any, ...]]:
    """The result, which the reference interpreter must give too."""
    found = rows(session, sql)
    assert rows(windrow.Session(session.spark, execution="reference"), sql) == found
    return found


# -- queries ----------------------------------------------------------------------------------------


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT s.k, s.i, AVG(w.v) FROM t ⊞",
        "SELECT s.k, s.i, AVG(w.v) FROM t ⊞;",
        "SELECT * FROM (SELECT s.k, s.i, AVG(w.v) FROM t ⊞)",
        "WITH q AS (SELECT s.k, s.i, AVG(w.v) FROM t ⊞) SELECT * FROM q",
        "WITH q AS (SELECT s.k, s.i, AVG(w.v) AS a FROM t ⊞)"
        " SELECT k, i, y.a FROM q JOIN q AS y USING (k, i)",
        "WITH t2 AS (SELECT * FROM t), t3 AS (SELECT * FROM t2) SELECT s.k, s.i, AVG(w.v) FROM t3 ⊞",
        "SELECT k, i, (SELECT a FROM (SELECT s.k AS k2, s.i AS i2, AVG(w.v) AS a FROM t ⊞)"
        " WHERE k2 = k AND i2 = i) FROM t",
        "(SELECT s.k, s.i, AVG(w.v) FROM t WHERE k = 'a' ⊞)"
        " UNION ALL (SELECT s.k, s.i, AVG(w.v) FROM t WHERE k = 'b' ⊞)",
        "SELECT s.k, s.i, AVG(w.v) FROM t ⊞ EXCEPT SELECT 'none', 0, 0D",
        "BEGIN SELECT s.k, s.i, AVG(w.v) FROM t ⊞; END",
    ],
)
def test_the_clause_works_wherever_a_query_does(session, sql):
    assert rows(session, sql) == AVERAGES


def test_a_named_query_hides_the_table_of_its_name_inside_its_own_query_only(session):
    shadowed = "WITH t AS (SELECT * FROM t WHERE k = 'b') SELECT s.k, s.i, AVG(w.v) FROM t ⊞"
    assert rows(session, shadowed) == AVERAGES[3:]
    nested = (
        f"WITH t AS (SELECT 'z' AS k, 1 AS i, 0D AS v) SELECT * FROM ({shadowed}) UNION ALL SELECT * FROM t"
    )
    # the inner named query reads the outer one, as in Spark
    assert rows(session, nested) == [("z", 1, 0.0)]


def test_the_inner_of_two_named_queries_of_one_name_counts(session):
    sql = (
        "WITH q AS (SELECT 'z' AS k, 1 AS i, 0D AS v)"
        " SELECT * FROM (WITH q AS (SELECT * FROM t) SELECT s.k, s.i, AVG(w.v) FROM q ⊞)"
    )
    assert rows(session, sql) == AVERAGES


def test_windows_over_windows_over_groups(session):
    sql = (
        "SELECT b.k, b.n, COUNT(x.n) AS windows FROM ("
        "  SELECT s.k, s.n, SUM(w.total) AS total FROM t GROUP BY k, i LET n = i, total = SUM(v) HAVING i < 3"
        "  WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY n START AS s END UNBOUNDED))"
        " WINDOW BY x AS (TYPE TUMBLING ORDER BY k, n START AS b WHEN b.total > 14)"
    )
    assert in_both_modes(session, sql) == [("a", 1, 1), ("a", 2, 1), ("b", 1, 2)]


def test_a_scalar_subquery_may_stand_in_a_predicate(session):
    sql = (
        "WITH q AS (SELECT 6 AS low) SELECT s.k, s.i FROM t"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        " START AS s WHEN s.v > (SELECT AVG(v) FROM t) ONLY END AS e WHEN s.v - e.v > (SELECT low FROM q))"
    )
    assert rows(session, sql) == [("a", 2)]


def test_an_outer_select_may_use_sparks_own_named_window_called_by(session):
    sql = (
        "SELECT k, SUM(v) OVER by AS total, (SELECT MIN(s.i) FROM t ⊞) AS least"
        " FROM t WINDOW by AS (PARTITION BY k)"
    )
    assert rows(session, sql) == [("a", 35.0, 1)] * 3 + [("b", 15.0, 1)] * 2


# -- views, tables ----------------------------------------------------------------------------------


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("create", "columns"),
    [
        ("CREATE TEMP VIEW made AS", ["k", "i", "a"]),
        ("CREATE TEMPORARY VIEW made (x, y, z) AS", ["x", "y", "z"]),
        (
            "create or replace temp view `made` (x COMMENT 'first', y, z) COMMENT 'windows' as",
            ["x", "y", "z"],
        ),
        ("CREATE TEMP VIEW IF NOT EXISTS made AS", ["k", "i", "a"]),
    ],
)
def test_a_temporary_view_holds_the_windows(session, create, columns):
    done = session.sql(f"{create} SELECT s.k, s.i, AVG(w.v) AS a FROM t {CLAUSE}")
    assert (done.df.columns, done.collect()) == ([], [])
    assert session.table("made").df.columns == columns
    assert rows(session, "SELECT * FROM made") == AVERAGES


@pytest.mark.parametrize("words", ["TABLE made AS", "LAZY TABLE `made` OPTIONS ('storageLevel' 'DISK_ONLY')"])
def test_windows_are_cached_under_a_name(session, words):
    query = f"SELECT s.k, s.i, AVG(w.v) AS a FROM t {CLAUSE}"
    done = session.sql(f"CACHE {words} {query}")
    assert (done.columns, done.collect()) == ([], [])
    try:
        assert session.spark.catalog.isCached("made")
        assert rows(session, "SELECT * FROM made") == AVERAGES
        with pytest.raises(windrow.AnalysisError) as caught:
            session.sql(f"CACHE {words} {query}")
        assert caught.value.condition == "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"
    finally:
        session.sql("UNCACHE TABLE made")
    assert not session.spark.catalog.isCached("made")


def test_a_view_that_exists_is_kept_replaced_or_refused_as_the_words_say(session):
    query = f"SELECT s.i FROM t {CLAUSE}"
    session.sql(f"CREATE TEMP VIEW made AS SELECT s.k FROM t {CLAUSE}")
    with pytest.raises(windrow.AnalysisError) as caught:
        session.sql(f"CREATE TEMP VIEW made AS {query}")
    assert caught.value.condition == "TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"
    session.sql(f"CREATE TEMP VIEW IF NOT EXISTS made AS {query}")
    assert session.table("made").df.columns == ["k"]
    session.sql(f"CREATE OR REPLACE TEMP VIEW made AS {query}")
    assert session.table("made").df.columns == ["i"]


def test_a_global_view_is_seen_under_its_database(session):
    query = f"SELECT s.k, s.i, AVG(w.v) AS a FROM t {CLAUSE}"
    try:
        session.sql(f"CREATE GLOBAL TEMPORARY VIEW made AS {query}")
        assert rows(session, "SELECT * FROM global_temp.made") == AVERAGES
        session.sql("CREATE GLOBAL TEMP VIEW IF NOT EXISTS made AS SELECT 1 AS one FROM t " + CLAUSE)
        session.sql(f"CREATE OR REPLACE GLOBAL TEMP VIEW made AS {query} HAVING s.k = 'b'")
        assert rows(session, "SELECT * FROM global_temp.made") == AVERAGES[3:]
    finally:
        session.spark.catalog.dropGlobalTempView("made")


def test_a_view_with_too_few_names_is_refused_at_the_names(session):
    with pytest.raises(ParseError) as caught:
        session.sql(f"CREATE TEMP VIEW made (x) AS SELECT s.k, s.i FROM t {CLAUSE}")
    error = caught.value
    (context,) = error.getQueryContext()
    assert (error.condition, context.fragment()) == ("CREATE_VIEW_COLUMN_ARITY_MISMATCH", "(x)")


def test_materialized_views_are_refused(session):
    with pytest.raises(NotSupportedError) as caught:
        session.sql(f"CREATE MATERIALIZED VIEW made AS SELECT s.k FROM t {CLAUSE}")
    (context,) = caught.value.getQueryContext()
    assert (caught.value.condition, context.fragment()) == ("UNSUPPORTED_STATEMENT", "CREATE")
    assert caught.value.hint


def test_windows_read_what_the_script_around_makes(session):
    script = f"""
        BEGIN
            DECLARE chosen STRING DEFAULT 'a';
            CREATE TEMPORARY VIEW made_here AS SELECT * FROM t WHERE k = 'b';
            SET chosen = 'b';
            SELECT s.k, s.i, AVG(w.v) AS a FROM made_here WHERE k = chosen {CLAUSE};
            DROP VIEW made_here;
        END"""
    assert rows(session, script) == AVERAGES[3:]
    assert rows(session, f"-- of one\n/* and **all** */{script}") == AVERAGES[3:]
    session.check(script)
    with pytest.raises(WindrowError):
        session.sql("SELECT chosen")  # ends with the script
    with pytest.raises(WindrowError) as caught:
        session.sql(f"BEGIN SELECT 1;\n SELECT s.wrong FROM t {CLAUSE}; END")
    assert caught.value.getQueryContext()[0].fragment() == "s.wrong"


def test_statements_of_a_script_one_by_one_have_windows_over_what_they_make(session):
    found = session.script(
        "CREATE TEMPORARY VIEW made_here AS SELECT * FROM t WHERE k = 'b';"
        f"SELECT s.k, s.i FROM made_here {CLAUSE}"
    )
    assert [tuple(row) for row in found[-1].collect()] == [row[:2] for row in AVERAGES[3:]]


def test_windows_are_stored_in_tables_and_added_to_them(session, tmp_path):
    query = f"SELECT s.k, s.i, AVG(w.v) AS a FROM t {CLAUSE}"
    with_names = f"WITH q AS (SELECT * FROM t WHERE k = 'b') {query.replace('FROM t', 'FROM q')}"
    try:
        session.sql(f"CREATE TABLE made USING parquet LOCATION '{tmp_path / 'made'}' AS {query}")
        assert rows(session, "SELECT * FROM made") == AVERAGES
        session.sql(f"INSERT INTO made {query} HAVING s.i = 1")
        session.sql(f"INSERT INTO made (k, i, a) {with_names}")
        assert rows(session, "SELECT COUNT(*) FROM made") == [(9,)]
        session.sql(f"INSERT OVERWRITE made {query} HAVING s.k = 'b'")
        assert rows(session, "SELECT * FROM made") == AVERAGES[3:]
    finally:
        session.spark.sql("DROP TABLE IF EXISTS made")


# -- parameters -------------------------------------------------------------------------------------

WITH_PARAMETERS = (
    "SELECT s.k, {0} AS x, COUNT(w.v) AS n FROM t WHERE v > {1} WINDOW BY w AS (TYPE SLIDING PARTITION BY k"
    " ORDER BY i START AS s WHEN s.v > {2} END AS e WHEN e.v - s.v > {3}) HAVING COUNT(w.v) > {4} LIMIT {5}"
)


def test_named_parameters_stand_in_every_part(session):
    sql = WITH_PARAMETERS.format(":x", ":low", ":low", ":step", ":n", ":most")
    assert rows(session, sql, x="?", low=6.0, step=0.5, n=1, most=9) == [("a", "?", 2), ("b", "?", 2)]


def test_positional_parameters_are_taken_in_the_order_of_the_text(session):
    sql = WITH_PARAMETERS.format(*"??????")
    assert rows(session, sql, "x", 6.0, 6.0, 0.5, 1, 9) == [("a", "x", 2), ("b", "x", 2)]


def test_a_question_mark_in_a_string_is_no_parameter(session):
    assert rows(session, "SELECT DISTINCT '?' AS q, ? AS p FROM t ⊞", 1) == [("?", 1)]


def test_plain_sql_takes_both_kinds(session):
    assert rows(session, "SELECT ? + ?", 1, 2) == [(3,)]
    assert rows(session, "SELECT :a + :b", a=1, b=2) == [(3,)]


# -- scripts and EXPLAIN ----------------------------------------------------------------------------


def test_a_script_runs_its_statements_in_order(session):
    script = f"""
        CREATE TEMP VIEW made AS SELECT s.k FROM t {CLAUSE}; -- ; in a comment
        SELECT COUNT(*) AS n FROM made;
        SELECT ';' AS semicolon
    """
    done = session.script(script)
    assert [relation.df.columns for relation in done] == [[], ["n"], ["semicolon"]]
    assert done[1].collect() == [Row(n=5)]


def test_an_error_in_a_script_is_placed_in_the_script(session):
    script = f"SELECT 1;\nSELECT s.k FROM missing {CLAUSE};"
    with pytest.raises(windrow.AnalysisError) as caught:
        session.script(script)
    assert caught.value.span is not None
    assert script[caught.value.span.start : caught.value.span.stop] == "missing"


def test_sql_runs_one_statement_only(session):
    with pytest.raises(ParseError) as caught:
        session.sql(f"SELECT 1; SELECT s.k FROM t {CLAUSE}; ")
    assert caught.value.message == "the text has more than one statement"
    assert caught.value.getQueryContext()[0].fragment() == f"SELECT s.k FROM t {CLAUSE}"


@pytest.mark.parametrize("end", ["", ";", " ;", "\n", " -- end"])
def test_explain_gives_the_plan_as_one_row(session, end):
    query = f"SELECT s.k FROM t {CLAUSE}"
    (row,) = session.sql(f"EXPLAIN {query}{end}").collect()
    assert row.plan == session.sql(query).plan()
    assert "strategy: position" in row.plan


@pytest.mark.parametrize("word", ["EXTENDED", "FORMATTED"])
def test_explain_with_sparks_plan(session, word):
    query = f"SELECT s.k FROM t {CLAUSE}"
    (row,) = session.sql(f"EXPLAIN {word} {query}").collect()
    assert row.plan.startswith(session.sql(query).plan())
    assert "== Physical Plan ==" in row.plan
    assert "MapInArrow" in row.plan


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "head", ["CREATE TEMP VIEW made AS", "CREATE TABLE made AS", "INSERT INTO made", "INSERT INTO made (k)"]
)
def test_explain_of_a_statement_is_that_of_its_query_and_does_nothing(session, head):
    query = f"SELECT s.k FROM t {CLAUSE}"
    assert session.sql(f"EXPLAIN {head} {query}").collect()[0].plan == session.sql(query).plan()
    assert not session.spark.catalog.tableExists("made")


# -- Spark's own ------------------------------------------------------------------------------------


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    ("sql", "wanted"),
    [
        ("SELECT '{}' AS `{}`, '{x}' AS `{{`", [("{}", "{x}")]),
        ("SELECT 'WINDOW BY w AS (TYPE' AS x -- WINDOW BY w AS (", [("WINDOW BY w AS (TYPE",)]),
        ("FROM t |> WHERE k = 'b' |> SELECT i", [(1,), (2,)]),
        ("SELECT SUM(v) OVER by AS x FROM t WINDOW by AS (PARTITION BY k)", [(15.0,)] * 2 + [(35.0,)] * 3),
        ("SELECT /*+ BROADCAST(t) */ MAX(i) FROM t /* window by */", [(3,)]),
        ("SELECT map('a', 1)['a'], transform(array(1), x -> x + 1)[0], 1 <=> NULL", [(1, 2, False)]),
        ("BEGIN DECLARE x INT DEFAULT 2; SELECT x + 1; END", [(3,)]),
        ("SELECT parse_json('{\"a\": 1}'):a::int", [(1,)]),
        ("VALUES (1), (2)", [(1,), (2,)]),
        ("TABLE t", None),
        ("SHOW TABLES", None),
        ("DESCRIBE QUERY SELECT 1 AS one", [("one", "int", None)]),
    ],
)
def test_plain_spark_sql_reaches_spark_as_it_is(session, sql, wanted):
    found = rows(session, sql)
    assert found == (
        sorted((tuple(row) for row in session.spark.sql(sql).collect()), key=repr)
        if wanted is None
        else wanted
    )


def test_sparks_own_explain_is_sparks(session):
    (row,) = session.sql("EXPLAIN SELECT 1 AS one -- window by").collect()
    assert row.plan.startswith("== Physical Plan ==")


def test_braces_are_no_placeholders_beside_windows_either(session):
    assert rows(session, "SELECT DISTINCT '{}' AS `{x}`, '{t}' FROM t ⊞") == [("{}", "{t}")]


def test_the_views_that_carry_windows_do_not_stay(session):
    before = views(session.spark)
    rows(session, "SELECT s.k, corr(w.i, w.v) FROM t ⊞")
    assert views(session.spark) == before


# -- names ------------------------------------------------------------------------------------------


def test_odd_names_of_columns_and_variables(session):
    session.sql(
        "CREATE TEMP VIEW odd AS SELECT * FROM VALUES ('x', 1, 5), ('x', 2, 6), ('y', 1, 7)"
        " AS q (`die größe`, `a.b`, `c``d`)"
    )
    sql = (
        "SELECT `s s`.`DIE GRÖSSE` AS `x y`, `s s`.`a.b`, `N`.`c``d` AS `n.c`, SUM(`W`.`c``d`) FROM odd"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY `die größe` ORDER BY `a.b`"
        " START AS `s s` END NEXT AS n WHEN n.`c``d` - `s s`.`c``d` > 0)"
    ).replace("GRÖSSE", "GRÖßE")
    relation = session.sql(sql)
    assert relation.df.columns == ["x y", "a.b", "n.c", "SUM(`W`.`c``d`)"]
    assert sorted(map(tuple, relation.collect())) == [("x", 1, 6, 5), ("x", 2, None, 6), ("y", 1, None, 7)]


OURS = ["r", "p0", "o0", "h0", "c0", "w", "__position", "__row", "__rows", "__number", "__window_itself",
        "__aggregate0", "__is_label", "__start_position", "__end_position", "__previous", "__next", "l_n",
        "s_n", "x0", "scope", "pairs", "s", "e"]  # fmt: skip


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "predicate",
    ["e.h0 > s.h0", COLUMN_OVER_BOTH_ROWS.format("r"), "ep - sp = 1"],
    ids=["scan", "join", "position"],
)
def test_columns_called_as_our_own_collide_with_nothing(session, predicate):
    columns = ", ".join(f"id * 100 + {number} AS `{name}`" for number, name in enumerate(OURS))
    session.sql(f"CREATE TEMP VIEW ours AS SELECT {columns} FROM range(4)")
    sql = (
        "SELECT s.r, e.p0, SUM(w.w) AS a, max_by(w.`__rows`, w.`__number`) AS b, sp, w.`__position` AS c"
        " FROM ours WINDOW BY w AS (TYPE SLIDING PARTITION BY p0 % 200, o0 % 2 ORDER BY r, w"
        f" START AS s AT sp END AS e AT ep WHEN {predicate})"
    )
    found = in_both_modes(session, sql)
    assert len(found) == 4
    if "concat" not in predicate:
        assert found[0] == (0, 201, 5 + 205, 208, 1, [6, 206])


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("predicate", ["h0.i > r.i", "upper(concat(h0.i, r.i)) > '1'"], ids=["scan", "join"])
@pytest.mark.parametrize("aggregate", ["SUM(w.v)", "max_by(w.v, w.i)"])
def test_variables_called_as_our_own_collide_with_nothing(session, predicate, aggregate):
    plain = (
        f"SELECT s.i, p, e.i, n.i, {aggregate} FROM t WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        f" START AS s AT p NEXT AS n END AS e WHEN {predicate.replace('h0.', 'e.').replace('r.i', 's.i')})"
    )
    renamed = (
        f"SELECT r.i, p0, h0.i, l_n.i, {aggregate.replace('w.', 's_n.')} FROM t"
        " WINDOW BY s_n AS (TYPE SLIDING PARTITION BY k ORDER BY i"
        f" START AS r AT p0 NEXT AS l_n END AS h0 WHEN {predicate})"
    )
    assert rows(session, renamed) == rows(session, plain)


@pytest.mark.timeout(120)
def test_the_join_plan_of_a_wide_table_is_planned_in_time(session):
    # an expression for every column in one plan node would let Spark's constraints double with each
    columns = ", ".join(f"id * 100 + {number} AS c{number}" for number in range(24))
    session.sql(f"CREATE TEMP VIEW wide AS SELECT {columns} FROM range(3)")
    sql = (
        "SELECT s.c0, e.c23 FROM wide WINDOW BY w AS (TYPE SLIDING ORDER BY c1"
        " START AS s ONLY END NEXT AS e WHEN upper(concat(e.c2, s.c3)) > '1')"
    )
    assert rows(session, sql) == [(0, 123), (100, 223)]


def test_a_table_a_window_and_a_variable_may_be_called_window_and_by(session):
    session.sql("CREATE TEMP VIEW window AS SELECT * FROM t")
    clause = (
        "(TYPE SLIDING PARTITION BY window.k ORDER BY window.i"
        " START AS window AT a END AS by AT b WHEN b - a = 1)"
    )
    sql = f"SELECT window.k, window.i, AVG(label.v) FROM window WINDOW BY label AS {clause}"
    assert rows(session, sql) == AVERAGES


# -- FROM -------------------------------------------------------------------------------------------


def test_keys_may_name_the_sides_of_a_join(session):
    sql = (
        "SELECT s.j, COUNT(w.v) FROM t AS a"
        " JOIN (SELECT k AS k2, i AS j FROM t) AS b ON a.k = k2 AND a.i = b.j"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY a.k ORDER BY b.j START AS s END UNBOUNDED)"
    )
    assert in_both_modes(session, sql) == [(1, 2), (1, 3), (2, 1), (2, 2), (3, 1)]


def test_columns_of_one_name_from_two_sides_may_be_there_as_long_as_none_is_read(session):
    sql = (
        "SELECT p, COUNT(w) FROM t AS a JOIN t AS b ON a.k = b.k AND a.i = b.i"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY a.k ORDER BY a.i START AT p END UNBOUNDED)"
    )
    assert rows(session, sql) == [(1, 2), (1, 3), (2, 1), (2, 2), (3, 1)]


def test_rows_of_a_lateral_view(session):
    sql = (
        "SELECT s.i, s.x, COUNT(w.x) FROM t LATERAL VIEW explode(array(1, 2)) z AS x WHERE k = 'b'"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i, x START AS s END AS e WHEN e.x > s.x)"
    )
    assert in_both_modes(session, sql) == [(1, 1, 2), (1, 2, 3), (2, 1, 2), (2, 2, 1)]


# -- few rows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "predicate",
    ["e.v > s.v", COLUMN_OVER_BOTH_ROWS.format("v"), "e.v > 100", "ep - sp = 1"],
    ids=["scan", "join", "first true", "position"],
)
@pytest.mark.parametrize(
    ("source", "windows"),
    [
        ("t WHERE FALSE", 0),
        ("t WHERE k = 'b' AND i = 1", 1),
        ("(SELECT CAST(NULL AS STRING) AS k, CAST(NULL AS INT) AS i, v FROM t)", 5),
        ("(SELECT CAST(NULL AS STRING) AS k, CAST(NULL AS INT) AS i, CAST(NULL AS DOUBLE) AS v FROM t)", 5),
    ],
    ids=["no rows", "one row", "NULL keys", "NULLs only"],
)
def test_no_rows_one_row_and_rows_of_nulls(session, source, windows, predicate):
    sql = (
        f"SELECT s.v, e.v AS ev, COUNT(w.v) AS n, SUM(w.v) AS total, max_by(w.v, w.v) AS m FROM {source}"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i, v"
        f" START AS s AT sp END AS e AT ep WHEN {predicate})"
    )
    assert len(in_both_modes(session, sql)) == windows

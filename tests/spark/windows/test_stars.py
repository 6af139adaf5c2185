"""Columns that are read without their names: by stars in functions, IDENTIFIER, pipes, PIVOT, FROM alone."""

from __future__ import annotations

import pytest

import windrow
from windrow.errors import ParseError

MATCH = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(*) AS n PATTERN (A B) DEFINE A AS v > 1)"
ALL_ROWS = MATCH.replace("PATTERN", "ALL ROWS PER MATCH PATTERN")
TUMBLING = "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s AT sp END AS e)"


@pytest.fixture(params=["batch", "reference"])
def session(spark, request):
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM"
        " VALUES ('a', 1, 10), ('a', 2, 20), ('a', 3, 5), ('b', 1, 7), ('b', 2, 18) AS t (k, i, v)"
    )
    yield windrow.Session(spark, execution=request.param)
    spark.catalog.dropTempView("t")


def rows(frame):
    return sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.sampled
@pytest.mark.parametrize("match", [MATCH, ALL_ROWS])
@pytest.mark.parametrize(
    "query",
    [
        "FROM t M",
        "FROM t M LIMIT 3",
        "FROM t M |> WHERE n > 1",
        "FROM t M |> EXTEND n + 1 AS m |> LIMIT 9",
        "FROM t M AS q |> AS p",
        "SELECT COUNT(*) FROM (FROM t M)",
        "WITH q AS (FROM t M) FROM q |> WHERE n > 1",
        "SELECT x FROM t M AS q PIVOT (SUM(n) FOR n IN (2 AS x))",
        "FROM t M |> PIVOT (SUM(n) FOR n IN (2 AS x))",
        "SELECT name, value FROM t M AS q UNPIVOT (value FOR name IN (n))",
        "SELECT hash(*) FROM t M",
        "SELECT COUNT(DISTINCT *) FROM t M",
        "SELECT n FROM t M UNION ALL SELECT n FROM (SELECT DISTINCT * FROM t M)",
    ],
)
def test_matches_have_all_their_columns(session, query, match):
    found = session.sql(query.replace("t M", f"t {match}"))
    session.sql(f"SELECT * FROM t {match}").df.createOrReplaceTempView("matched")
    expected = session.spark.sql(query.replace("t M", "matched"))
    assert (found.df.columns, rows(found)) == (expected.columns, rows(expected))


def test_a_table_of_matches_has_all_their_columns(session, spark):
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW m AS FROM t {MATCH} |> WHERE n > 1")
    assert session.sql("SELECT * FROM m").df.columns == ["k", "n"]
    spark.catalog.dropTempView("m")


@pytest.mark.sampled
@pytest.mark.parametrize(
    "select",
    [
        "struct(*)",
        "to_json(struct(*)), COUNT(w)",
        "hash(*), AVG(w.v)",
        "hash(1, *)",
        "struct(* EXCEPT (w)), MAX(w.v)",
        "COUNT(DISTINCT *)",
        "(SELECT COUNT(DISTINCT *) FROM t), COUNT(w)",
    ],
)
def test_stars_in_functions_are_all_variables_whole(session, select):
    found = session.sql(f"SELECT {select} FROM t {TUMBLING}")
    columns = (
        "struct(k, i, v) AS s, CAST(i AS BIGINT) AS sp, struct(k, i, v) AS e, array(struct(k, i, v)) AS w"
    )
    session.spark.sql(f"SELECT {columns} FROM t").createOrReplaceTempView("windows")
    plain = {"COUNT(w)": "size(w)", "AVG(w.v)": "w.v[0] * 1.0D", "MAX(w.v)": "w.v[0]"}
    for call, instead in plain.items():
        select = select.replace(call, instead)
    assert rows(found) == rows(session.spark.sql(f"SELECT {select} FROM windows"))


def test_names_that_identifier_computes(session):
    query = f"""SELECT IDENTIFIER('s').i, IDENTIFIER('s.v') AS a, size(IDENTIFIER('w')) AS n, IDENTIFIER('e')
        FROM t {TUMBLING} ORDER BY IDENTIFIER('sp'), a LIMIT 1"""
    assert rows(session.sql(query)) == [(1, 7, 1, ("b", 1, 7))]


@pytest.mark.parametrize(
    ("measure", "condition", "expected"),
    [
        ("transform(array(named_struct('v', 1)), A -> A.v)[0]", "v > 15", [1, 1]),
        ("aggregate(array(1), A.v, (a, b) -> a + b)", "v > 15", [19, 21]),
        ("SUM(transform(array(named_struct('x', A.v)), A -> A.x)[0])", "v > 15", [18, 20]),
        ("A.v", "exists(array(named_struct('v', 1)), A -> A.v > 5)", []),
        ("A.v", "exists(array(named_struct('v', A.v)), A -> A.v > 18)", [20]),
    ],
)
def test_parameters_of_lambda_functions_hide_variables(spark, session, measure, condition, expected):
    """In batch alone: the reference refuses such functions in conditions."""
    match = f"MATCH_RECOGNIZE (ORDER BY k, i MEASURES {measure} AS m PATTERN (A) DEFINE A AS {condition})"
    query = f"SELECT m FROM t {match}"
    assert [row[0] for row in rows(windrow.Session(spark).sql(query))] == expected


def test_a_relation_in_brackets_is_matched(session):
    assert rows(session.sql(f"SELECT * FROM (t {MATCH}) AS m")) == [("a", 2), ("b", 2)]
    found = rows(session.sql(f"SELECT n, v FROM (t {MATCH} AS m JOIN t USING (k)) WHERE i = 1"))
    assert found == [(2, 10), (2, 7)]


def test_a_clause_behind_the_condition_of_a_join_is_refused(session):
    for condition in ("USING (k)", "ON t.k = n.k"):
        with pytest.raises(ParseError, match="condition of a join"):
            session.sql(f"SELECT * FROM t JOIN t AS n {condition} {MATCH}")
    assert rows(session.sql(f"SELECT n FROM (SELECT * FROM t JOIN t AS n USING (k, i, v)) {MATCH}")) == [
        (2,),
        (2,),
    ]


def test_a_parameter_before_an_alias(session):
    found = session.sql(f"SELECT COUNT(w) + ? d FROM t {TUMBLING}", 1)
    assert (found.df.columns, rows(found)) == (["d"], [(2,)] * 5)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT to_json(struct(s.i, COUNT(w), AVG(w.v))) FROM t {TUMBLING} LIMIT 1", '"col2":1,"col3"'),
        (f"SELECT to_json(struct(COUNT(w))) AS j FROM t {TUMBLING} GROUP BY struct(COUNT(w))", '{"col1":1}'),
        (f"SELECT to_json(arrays_zip(array_agg(w.i), w.v)) AS j FROM t {TUMBLING} LIMIT 1", '"0":1,"v":'),
        ("SELECT to_json(struct(q.*)) FROM (SELECT m AS q FROM t R) LIMIT 1", '{"i":1,"v":'),
        ("SELECT q.i || '' FROM (SELECT m AS q FROM t R) LIMIT 1", "1"),
    ],
)
def test_fields_of_structs_have_sparks_names(session, query, expected):
    runs = "ORDER BY i MEASURES struct(A.i, A.v) AS m PATTERN (A) DEFINE A AS i = 1"
    query = query.replace("R)", f"MATCH_RECOGNIZE (PARTITION BY k {runs}))")
    assert expected in str(session.sql(query).df.collect()[0][0])


def test_aggregates_with_nulls_are_named_by_their_text(session):
    found = session.sql(f"SELECT first(w.v) IGNORE NULLS, 1 + last(w.v) RESPECT NULLS FROM t {TUMBLING}")
    assert found.df.columns == ["first(w.v) IGNORE NULLS", "1 + last(w.v) RESPECT NULLS"]


def test_case_ends_before_end(session):
    case = "WHEN CASE WHEN s.v < 19 THEN true END END NEXT AS e WHEN e.v > 9"
    windows = TUMBLING.replace("AT sp END AS e", case)
    found = rows(session.sql(f"SELECT s.i, e.i FROM t {windows}"))
    assert found == [(1, 2), (1, 2), (2, None), (3, None)]

"""What names and stars stand for: columns without names, and names of a subquery that hide others."""

from __future__ import annotations

import pytest

import windrow
from windrow.errors import NotSupportedError, ParseError

MATCH = "MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(*) AS n PATTERN (A B) DEFINE A AS v > 1)"
ALL_ROWS = MATCH.replace("PATTERN", "ALL ROWS PER MATCH PATTERN")
TUMBLING = "WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY i START AS s AT sp END AS e)"
WINDOWS = (
    "WINDOW BY {w} AS (TYPE SLIDING PARTITION BY k ORDER BY i"
    " START AS {s} WHEN true END AS {e} WHEN {e}.v < 7)"
)
AROUND = WINDOWS.format(w="w", s="s", e="e")
MATCHES = "t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT({A}.v) AS c PATTERN ({A}+ {B}?)"


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


# -- names of subqueries ------------------------------------------------------------------------------


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        f"SELECT COUNT(w), (SELECT MAX(c) FROM (SELECT COUNT({{w}}) AS c FROM t {WINDOWS})) AS m"
        f" FROM t {AROUND}",
        "SELECT s.v, MAX((SELECT ANY_VALUE(q.c) FROM"
        f" (SELECT COUNT({{w}}) AS c, {{w}}.i[0] AS i FROM t {WINDOWS})"
        f" AS q WHERE q.i <=> w.i - s.i)) AS m FROM t {AROUND}",
        "SELECT s.v, COUNT(w), (SELECT MAX(m) FROM (SELECT y, (SELECT MAX(c) FROM"
        f" (SELECT COUNT({{w}}) AS c FROM t WHERE t.v > y {WINDOWS})) AS m FROM VALUES (1), (8) AS q (y))"
        f" WHERE y > s.v) AS m FROM t {AROUND}",
        f"SELECT s.i, e.v, COUNT(w) FROM t {AROUND} HAVING COUNT(w) ="
        f" (SELECT MAX(c) FROM (SELECT COUNT({{w}}) AS c FROM t {WINDOWS} HAVING {{e}} <> {{s}}))",
        f"SELECT s.v, MAX(w.v), (SELECT MAX({{w}}.v) FROM t AS {{w}}) AS m FROM t {AROUND}",
        "SELECT s.v, AVG(w.v), (SELECT MIN({s}.v) FROM t {s} WHERE {s}.v > w.v[0]) AS m"
        f" FROM t {AROUND}",
        "SELECT s.v, (SELECT COUNT(*) FROM t AS {s} JOIN t AS {e} ON {s}.i = {e}.i) AS m"
        f" FROM t {AROUND}",
        f"SELECT s.v, (SELECT MAX(c) FROM {MATCHES} DEFINE {{A}} AS {{A}}.v > 6) AS q) AS m FROM t"
        " WINDOW BY a AS (TYPE SLIDING ORDER BY k, i START AS s WHEN true END AS b WHEN b.v < 9)",
        "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(A.v) AS n,"
        f" (SELECT MAX(c) FROM (SELECT * FROM {MATCHES} DEFINE {{A}} AS {{A}}.v > 6))) AS m PATTERN (A+)"
        " DEFINE A AS A.v > (SELECT MIN({A}.v) FROM t AS {A}))",
        "SELECT * FROM t MATCH_RECOGNIZE (ORDER BY k, i MEASURES CLASSIFIER() AS n, (SELECT MAX(c) FROM"
        " t MATCH_RECOGNIZE (ORDER BY k, i MEASURES MAX(CLASSIFIER()) || MATCH_NUMBER() AS c"
        " PATTERN ({A}+ {B}) DEFINE {A} AS {A}.v > 6) AS q) AS m PATTERN (A B?) DEFINE A AS A.v > 6)",
    ],
)
def test_names_of_a_subquery_hide_those_around_it(session, query):
    same = {"w": "w", "s": "s", "e": "e", "A": "A", "B": "B"}
    other = {"w": "u", "s": "first", "e": "final", "A": "Y", "B": "Z"}
    found, expected = session.sql(query.format(**same)), session.sql(query.format(**other))
    found, expected = rows(found), rows(expected)
    if "CLASSIFIER" in query:
        expected = [tuple(str(value).replace("Z", "B") for value in row) for row in expected]
        found = [tuple(map(str, row)) for row in found]
    assert found == expected
    assert found


def test_names_of_a_subquery_in_a_condition(spark, session):
    """In batch alone: the reference leaves subqueries of conditions to Spark, which knows no clause."""
    query = (
        "SELECT s.i, COUNT(w) FROM t WINDOW BY w AS (TYPE TUMBLING ORDER BY k, i START AS s"
        f" WHEN s.v > (SELECT MAX(c) FROM (SELECT COUNT({{w}}) + 4 AS c FROM t {WINDOWS}))"
        " END AS e WHEN e.v < 9)"
    )
    found = windrow.Session(spark).sql(query.format(w="w", s="s", e="e"))
    assert rows(found) == rows(windrow.Session(spark).sql(query.format(w="u", s="a", e="b")))
    assert rows(found) == [(1, 3), (2, 1)]


def test_an_aggregate_of_a_table_is_not_one_of_the_window_with_its_name(session):
    query = f"SELECT s.i, MAX(w.v) AS m, (SELECT MAX(w.v) FROM t AS w WHERE w.k = 'b') AS n FROM t {AROUND}"
    assert {row[2] for row in rows(session.sql(query))} == {18}


def test_a_clause_within_an_aggregate_cannot_read_variables_around(session):
    inner = WINDOWS.format(w="u", s="a", e="b").replace("WHEN true", "WHEN a.v > s.v")
    query = f"SELECT s.k, MAX((SELECT COUNT(u) FROM t {inner} LIMIT 1)) AS m FROM t {AROUND} GROUP BY s.k"
    with pytest.raises(NotSupportedError, match="within an aggregate") as caught:
        session.sql(query)
    (context,) = caught.value.getQueryContext()
    assert context.fragment() == "s.v"
    query = (
        f"SELECT k, MAX(c) FROM (SELECT s.k, (SELECT MAX(n) FROM (SELECT COUNT(u) AS n FROM t {inner})) AS c"
        f" FROM t {AROUND}) GROUP BY k"
    )
    assert rows(session.sql(query)) == [("a", 3), ("b", 3)]


def test_stars_in_functions_beside_patterns_are_the_columns_of_the_table(session):
    query = (
        "SELECT i, m OVER w AS m, to_json(struct(*)) AS a, to_json(struct(* EXCEPT (v))) AS b,"
        " hash(1, *) = hash(1, k, i, v) AS c FROM t WINDOW w AS (PARTITION BY k ORDER BY i"
        " MEASURES LAST(A.v) AS m ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (A+)"
        " DEFINE A AS v > 6) ORDER BY k DESC, i"
    )
    found = [tuple(row) for row in session.sql(query).df.collect()]
    assert found[0] == (1, 18, '{"k":"b","i":1,"v":7}', '{"k":"b","i":1}', True)
    assert [row[-1] for row in found] == [True] * 5


def test_a_table_called_values(session, spark):
    spark.sql("CREATE OR REPLACE TEMP VIEW values AS SELECT * FROM t WHERE k = 'a'")
    for alias in ("", " AS q", " q"):
        found = session.sql(f"SELECT s.i, COUNT(w) AS n FROM values{alias} {TUMBLING}")
        assert rows(found) == [(1, 1), (2, 1), (3, 1)]
    assert rows(session.sql(f"FROM values {MATCH}")) == [("a", 2)]
    spark.catalog.dropTempView("values")


@pytest.mark.parametrize("session", ["batch"], indirect=True)
def test_structs_that_are_null_are_so_in_parquet(session, spark, tmp_path):
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW nulls AS SELECT k, i, v,"
        " IF(i = 2, NULL, named_struct('x', v, 'y', IF(i = 1, NULL, named_struct('z', i)))) AS p FROM t"
    )
    found = session.sql(
        "SELECT s.p, w.p AS all, e FROM nulls"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START AS s END AS e WHEN e.v < s.v)"
    )
    found.df.write.parquet(str(tmp_path / "nulls"))
    written = rows(spark.read.parquet(str(tmp_path / "nulls")))
    assert written == rows(found)
    assert sum(one[0] is None for one in written) == 2
    spark.catalog.dropTempView("nulls")

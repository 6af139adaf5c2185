"""Wrong answers that a review found: each is a query whose rows differ from the semantics."""

from __future__ import annotations

from typing import Any

import pytest

import windrow

CLAUSE = "WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY o "


@pytest.fixture(scope="module")
def session(spark) -> windrow.Session:
    session = windrow.Session(spark)
    session.sql(
        "CREATE OR REPLACE TEMP VIEW found AS SELECT * FROM VALUES "
        "(1, 1, 10, 'a'), (1, 2, 20, 'A'), (1, 3, 0, 'b'), (1, 4, 20, 'a') AS t(k, o, x, n)"
    )
    session.sql("CREATE OR REPLACE TEMP VIEW alike AS SELECT 1 AS k, 1 AS o FROM range(3)")
    return session


def rows(session: windrow.Session, query: str, *args: Any) -> list[tuple[Any, ...]]:
    found = [tuple(row) for row in session.sql(query, *args).df.collect()]
    return sorted(found, key=repr)


def test_aggregates_that_differ_in_the_case_of_a_string_are_two(session):
    query = (
        "SELECT s.o, COUNT_IF(w.n = 'a') AS a, COUNT_IF(w.n = 'A') AS b "
        f"FROM found {CLAUSE} START AS s END UNBOUNDED)"
    )
    assert rows(session, query) == [(1, 2, 1), (2, 1, 1), (3, 1, 0), (4, 1, 0)]


def test_aggregates_of_map_keys_that_differ_in_case(session):
    query = (
        "SELECT s.o, SUM(w.m['a']) AS a, SUM(w.m['A']) AS b FROM (SELECT k, o, map('a', x, 'A', -x) AS m "
        f"FROM found WHERE o = 1) {CLAUSE} START AS s END UNBOUNDED)"
    )
    assert rows(session, query) == [(1, 10, -10)]


def test_end_that_compares_label_and_start_does_not_read_the_end_row(session):
    query = (
        f"SELECT l.o AS l, s.o AS s, e.o AS e FROM found {CLAUSE} "
        "LABEL AS l START AS s WHEN s.x >= 10 END AS e WHEN s = l)"
    )
    assert rows(session, query) == [(1, 1, 1), (2, 1, None), (3, 1, None), (4, 1, None)]


def test_having_with_a_column_of_a_subquery_named_as_an_alias(session):
    session.sql("CREATE OR REPLACE TEMP VIEW good AS SELECT 10 AS v")
    query = (
        f"SELECT s.o AS o, s.x AS v FROM found {CLAUSE} START AS s END UNBOUNDED) "
        "HAVING s.x IN (SELECT v FROM good)"
    )
    assert rows(session, query) == [(1, 10)]


@pytest.mark.parametrize(
    ("alias", "condition"),
    [
        ("date", "CAST('2020-01-01' AS DATE) IS NOT NULL"),
        ("date", "DATE '2020-01-02' > DATE '2020-01-01'"),
        ("day", "INTERVAL 1 DAY > INTERVAL 0 DAY"),
        ("v", "EXISTS(array(1, 2), v -> v = 1)"),
    ],
)
def test_having_with_a_word_that_is_also_an_alias(session, alias, condition):
    query = f"SELECT s.o AS {alias} FROM found {CLAUSE} START AS s END UNBOUNDED) HAVING {condition}"
    assert rows(session, query) == [(1,), (2,), (3,), (4,)]


def test_not_between_with_a_missing_neighbour_as_bound(session):
    # 5 BETWEEN NULL AND 3 is FALSE, not NULL
    query = (
        f"SELECT s.o AS s, e.o AS e FROM found {CLAUSE} START AS s WHEN s.o = 3 "
        "END AS e NEXT AS n WHEN NOT (5 BETWEEN n.x AND 3) AND e.o > s.o)"
    )
    assert rows(session, query) == [(3, 4)]


def test_columns_that_differ_in_case_where_case_counts(session, conf):
    conf("spark.sql.caseSensitive", "true")
    query = (
        "SELECT s.o, s.a, s.A AS b, e.o AS e, SUM(w.a) AS c, SUM(w.A) AS d "
        f"FROM (SELECT 1 AS k, id AS o, id AS a, 10 - id AS A FROM range(2)) {CLAUSE} "
        "START AS s END AS e WHEN e.a > s.a)"
    )
    assert rows(session, query) == [(0, 0, 10, 1, 1, 19), (1, 1, 9, None, 1, 9)]


@pytest.mark.parametrize(
    "same",
    [
        "CASE WHEN e = l THEN TRUE ELSE FALSE END",
        "(e = l) IS TRUE",
    ],
)
def test_rows_are_compared_as_rows_wherever_the_comparison_stands(session, same):
    query = f"SELECT pl, pe FROM alike {CLAUSE} LABEL AS l AT pl START UNBOUNDED END AS e AT pe WHEN {same})"
    assert rows(session, query) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    "same",
    ["(e) = (l)", "e IN (l)", "e IS NOT DISTINCT FROM l"],
)
def test_rows_are_compared_as_rows_in_select_in_every_spelling(session, same):
    query = (
        f"SELECT pl, {same} AS same FROM alike {CLAUSE} "
        "LABEL AS l AT pl START UNBOUNDED END AS e AT pe WHEN pe = 2)"
    )
    assert rows(session, query) == [(1, False), (2, True), (3, False)]


def test_bisection_where_arithmetic_wraps_round(session, conf):
    conf("spark.sql.ansi.enabled", "false")
    query = (
        "SELECT s.o AS s, e.o AS e FROM (SELECT 1 AS k, * FROM VALUES (1, -5L), (2, 0L), "
        f"(3, 9223372036854775807L) AS t(o, a)) {CLAUSE} START AS s END AS e WHEN e.a - s.a < 0)"
    )
    assert rows(session, query) == [(1, 3), (2, None), (3, None)]


def test_integers_and_floats_are_compared_as_spark_does_without_ansi(session, conf):
    conf("spark.sql.ansi.enabled", "false")  # then the common type of INT and FLOAT is FLOAT
    query = (
        "SELECT s.o AS s, e.o AS e FROM (SELECT 1 AS k, 1 AS o, 16777217 AS i, CAST(16777216 AS FLOAT) AS f) "
        f"{CLAUSE} START AS s END AS e NEXT AS n WHEN e.i = s.f)"
    )
    assert rows(session, query) == [(1, 1)]


def test_in_compares_all_its_values_in_one_type_without_ansi(session, conf):
    conf("spark.sql.ansi.enabled", "false")  # with a DOUBLE in the list that is DOUBLE, not FLOAT
    query = (
        "SELECT s.o AS s, e.o AS e FROM (SELECT 1 AS k, 1 AS o, 16777217 AS i, CAST(16777216 AS FLOAT) AS f,"
        f" 0.5D AS d) {CLAUSE} START AS s END AS e NEXT AS n WHEN e.i IN (s.f, s.d))"
    )
    assert rows(session, query) == [(1, None)]


def test_in_with_a_string_of_another_row_and_null(session):
    query = (
        f"SELECT s.o AS s, e.o AS e FROM found {CLAUSE} "
        "START AS s END AS e WHEN s.n IN (e.n, NULL) AND e.o > s.o)"
    )
    assert rows(session, query) == [(1, 4), (2, None), (3, None), (4, None)]


def test_positional_parameters_inside_aggregates(session):
    query = f"SELECT s.o, SUM(w.x * ?) AS a, SUM(w.x * ?) AS b FROM found {CLAUSE} START AS s END UNBOUNDED)"
    assert rows(session, query, 1, 100) == [(1, 50, 5000), (2, 40, 4000), (3, 20, 2000), (4, 20, 2000)]


def test_count_star_with_filter(session):
    query = f"SELECT s.o, COUNT(*) FILTER (WHERE w.x > 6) AS c FROM found {CLAUSE} START AS s END UNBOUNDED)"
    assert rows(session, query) == [(1, 3), (2, 2), (3, 1), (4, 1)]


@pytest.mark.parametrize(
    "predicate",
    [
        "e.x = 0 OR 100 / e.x < s.x - 100",  # OR guards the division
    ],
)
def test_a_part_that_fails_is_not_computed_where_it_is_not_reached(session, predicate):
    query = f"SELECT s.o AS s, e.o AS e FROM found {CLAUSE} START AS s END AS e WHEN {predicate})"
    assert rows(session, query) == [(1, 3), (2, 3), (3, 3), (4, None)]


def test_scalar_functions_over_arrays_made_of_the_window(session):
    query = (
        f"SELECT s.o, ARRAY_MAX(TRANSFORM(w, q -> q.x)) AS m FROM found {CLAUSE} START AS s END UNBOUNDED)"
    )
    assert rows(session, query) == [(1, 20), (2, 20), (3, 20), (4, 20)]


def test_explain_names_the_join_for_the_boundaries_that_need_it(session):
    query = (
        f"SELECT s.k FROM found {CLAUSE} LABEL AS l START AS s WHEN s.x > 5 "
        "END AS e WHEN concat_ws('', e.n, s.n) = 'ab')"
    )
    plan = session.sql(f"EXPLAIN {query}").df.collect()[0][0]
    found = [line.split("strategy: ")[1].split(" (")[0] for line in plan.splitlines() if "strategy: " in line]
    assert found == ["first true", "given"]


def test_windows_over_a_named_query_of_windows(session):
    query = (
        f"WITH u AS (SELECT s.k AS k, s.o AS o FROM found {CLAUSE} START AS s END UNBOUNDED)) "
        f"SELECT s.o, COUNT(w) FROM u {CLAUSE} START AS s END UNBOUNDED)"
    )
    assert rows(session, query) == [(1, 4), (2, 3), (3, 2), (4, 1)]


def test_a_time_minus_a_date_whose_midnight_the_clock_leaves_out(session, conf):
    conf("spark.sql.session.timeZone", "America/Sao_Paulo")  # 2018-11-04 begins at 01:00
    query = (
        "SELECT s.o AS s, e.o AS e FROM (SELECT 1 AS k, 1 AS o, DATE '2018-11-04' AS d, "
        f"TIMESTAMP '2018-11-04 12:00:00' AS t) {CLAUSE} "
        "START AS s END AS e AT p NEXT AS n WHEN e.t - s.d = INTERVAL '11' HOUR)"
    )
    assert rows(
        session, "SELECT TIMESTAMP '2018-11-04 12:00:00' - DATE '2018-11-04' = INTERVAL '11' HOUR"
    ) == [(True,)]
    assert rows(session, query) == [(1, 1)]

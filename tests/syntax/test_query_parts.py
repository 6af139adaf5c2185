"""Query blocks: where WINDOW BY stands, what belongs to its block, and which named queries it sees."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError, WindrowError
from windrow.syntax.nodes import BlockText
from windrow.syntax.query_parts import find_window_queries, grouping_keys, split_statements
from windrow.syntax.tokens import TokenList, tokenize

CLAUSE = "WINDOW BY w AS (TYPE SLIDING ORDER BY t START AS s END AS e)"


def blocks(sql: str) -> list[dict[str, str]]:
    """The parts of every block as text, those that are empty left out; ⊞ stands for a clause."""
    tokens = tokenize(sql.replace("⊞", CLAUSE))
    return [_shown(tokens, block) for block in find_window_queries(tokens)]


def block(sql: str) -> dict[str, str]:
    (only,) = blocks(sql)
    return only


def ctes(sql: str) -> list[list[str]]:
    """For each block, the named queries that it sees: name: body."""
    tokens = tokenize(sql.replace("⊞", CLAUSE))
    return [
        [f"{cte.name}: {tokens.text(*cte.body).replace(CLAUSE, '⊞')}" for cte in found.ctes]
        for found in find_window_queries(tokens)
    ]


def statements(sql: str) -> list[str]:
    tokens = tokenize(sql)
    return [tokens.text(*part) for part in split_statements(tokens)]


def mistake(sql: str) -> tuple[WindrowError, str]:
    with pytest.raises(WindrowError) as caught:
        blocks(sql)
    error = caught.value
    assert error.sql is not None
    assert error.span is not None
    return error, error.sql[error.span.start : error.span.stop]


def _shown(tokens: TokenList, found: BlockText) -> dict[str, str]:
    names = ("range", "select", "source", "group_by", "let", "group_having", "group_over", "having", "tail")
    texts = {name: getattr(found, name) for name in names}
    return {
        name: tokens.text(*part).replace(CLAUSE, "⊞")
        for name, part in texts.items()
        if part is not None and part[0] < part[1]
    }


# -- the parts of a block ---------------------------------------------------------------------------


def test_a_block_with_every_part():
    sql = (
        "SELECT DISTINCT s.a, b FROM t JOIN u USING (x) WHERE c GROUP BY a, b LET n = COUNT(*), m = MAX(x)"
        " HAVING n > 1 ⊞ HAVING COUNT(w.a) > 2 ORDER BY 1 LIMIT 3 OFFSET 1"
    )
    assert block(sql) == {
        "range": sql,
        "select": "DISTINCT s.a, b",
        "source": "FROM t JOIN u USING (x) WHERE c",
        "group_by": "a, b",
        "let": "n = COUNT(*), m = MAX(x)",
        "group_having": "n > 1",
        "having": "COUNT(w.a) > 2",
        "tail": "ORDER BY 1 LIMIT 3 OFFSET 1",
    }


@pytest.mark.parametrize(
    "select",
    [
        "*",
        "* EXCEPT (a)",
        "s.*, w",
        "a IS DISTINCT FROM b",
        "a IS NOT DISTINCT FROM b, c",
        "EXTRACT(YEAR FROM d), TRIM(BOTH FROM x)",
        "(SELECT MAX(x) FROM u WHERE y GROUP BY z HAVING v)",
        "COUNT(*) FILTER (WHERE x)",
        "s.from, s.where, s.group",
        "CASE WHEN a THEN b END",
        "'FROM u', `FROM` -- FROM v\n",
    ],
)
def test_the_select_list_ends_at_the_from_of_its_own_block(select):
    found = block(f"SELECT {select} FROM t ⊞")
    assert found["select"] == select.removesuffix(" -- FROM v\n")
    assert found["source"] == "FROM t"


@pytest.mark.parametrize(
    "source",
    [
        "FROM t WHERE x IN (SELECT y FROM u GROUP BY y HAVING z)",
        "FROM t AS a, u AS b, LATERAL (SELECT 1)",
        "FROM t LATERAL VIEW explode(a) x AS y TABLESAMPLE (5 ROWS)",
        "FROM t PIVOT (sum(x) FOR y IN (1, 2))",
        "FROM VALUES (1), (2) AS t (a)",
        "FROM range(10)",
        "FROM t VERSION AS OF 1",
        "FROM t WHERE t.having = t.group AND t.window = 1",
        "FROM window WHERE window.by = 1",
    ],
)
def test_from_and_where_are_kept_as_written(source):
    assert block(f"SELECT s.x {source} ⊞")["source"] == source


@pytest.mark.parametrize(
    "tail",
    [
        "ORDER BY s.x DESC",
        "SORT BY s.x",
        "DISTRIBUTE BY s.x SORT BY s.x",
        "CLUSTER BY s.x",
        "LIMIT 3",
        "LIMIT ALL",
        "OFFSET 2",
        "ORDER BY CASE WHEN a THEN b END LIMIT 1",
        "QUALIFY row_number() OVER (ORDER BY s.x) = 1",
    ],
)
@pytest.mark.parametrize("having", ["", "s.order > 1 AND CASE WHEN a THEN TRUE END"])
def test_what_follows_the_clause_is_having_and_the_tail(tail, having):
    found = block(f"SELECT s.x FROM t ⊞ {'HAVING ' if having else ''}{having} {tail}")
    assert found["tail"] == tail
    assert found.get("having", "") == having


# -- several blocks ---------------------------------------------------------------------------------


def test_blocks_come_in_the_order_of_their_clauses():
    sql = "SELECT 1 FROM (SELECT 2 FROM (SELECT 3 FROM t ⊞) ⊞) ⊞"
    assert [found["select"] for found in blocks(sql)] == ["3", "2", "1"]


def test_a_block_holds_the_clauses_of_its_subqueries_as_text():
    inner, outer = blocks("SELECT 1 FROM (SELECT 2 FROM t ⊞ LIMIT 1) ⊞ LIMIT 2")
    assert outer["source"] == "FROM (SELECT 2 FROM t ⊞ LIMIT 1)"
    assert (inner["tail"], outer["tail"]) == ("LIMIT 1", "LIMIT 2")


@pytest.mark.parametrize("operator", ["UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "MINUS"])
def test_order_by_after_a_set_operation_is_not_the_last_blocks(operator):
    last = block(f"SELECT a FROM t {operator} SELECT b FROM u ⊞ ORDER BY 1 LIMIT 2")
    assert last == {"range": "SELECT b FROM u ⊞", "select": "b", "source": "FROM u"}
    first = block(f"SELECT a FROM t ⊞ HAVING x {operator} SELECT b FROM u ORDER BY 1")
    assert first["range"] == "SELECT a FROM t ⊞ HAVING x"


def test_a_block_in_parentheses_keeps_its_own_order_by():
    first, second = blocks("(SELECT a FROM t ⊞ ORDER BY 1) UNION (SELECT b FROM t ⊞ LIMIT 2) ORDER BY 3")
    assert (first["tail"], second["tail"]) == ("ORDER BY 1", "LIMIT 2")


@pytest.mark.parametrize("star", ["* EXCEPT (a)", "s.* EXCEPT (a, b)"])
def test_the_except_of_a_star_is_no_set_operation(star):
    found = block(f"SELECT {star} FROM t ⊞ ORDER BY 1")
    assert (found["select"], found["tail"]) == (star, "ORDER BY 1")


@pytest.mark.parametrize(
    ("statement", "query"),
    [
        ("INSERT INTO x SELECT a FROM t ⊞", "SELECT a FROM t ⊞"),
        ("CREATE TABLE x USING parquet AS SELECT a FROM t ⊞", "SELECT a FROM t ⊞"),
        ("EXPLAIN SELECT a FROM t ⊞", "SELECT a FROM t ⊞"),
        ("SELECT 0; SELECT a FROM t ⊞; SELECT 1", "SELECT a FROM t ⊞"),
        ("SELECT * FROM u WHERE x = (SELECT a FROM t ⊞)", "SELECT a FROM t ⊞"),
    ],
)
def test_the_block_is_found_inside_other_statements(statement, query):
    assert block(statement)["range"] == query


# -- named queries ----------------------------------------------------------------------------------


def test_a_block_sees_the_queries_named_before_it():
    assert ctes("WITH a AS (SELECT 1), b (x, y) AS (SELECT 2) SELECT * FROM b ⊞") == [
        ["a: SELECT 1", "b: SELECT 2"]
    ]


def test_a_named_query_sees_those_before_it_and_not_itself():
    assert ctes("WITH a AS (SELECT 0 FROM t ⊞), b AS (SELECT 1 FROM a ⊞) SELECT 2 FROM b ⊞") == [
        [],
        ["a: SELECT 0 FROM t ⊞"],
        ["a: SELECT 0 FROM t ⊞", "b: SELECT 1 FROM a ⊞"],
    ]


def test_named_queries_of_a_subquery_are_seen_inside_it_only():
    assert ctes("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a ⊞), (SELECT * FROM a ⊞)") == [
        ["a: SELECT 1"],
        [],
    ]


def test_the_outer_named_queries_come_before_the_inner_ones():
    sql = "WITH a AS (SELECT 1) SELECT * FROM (WITH a AS (SELECT 2), b AS (SELECT 3) SELECT * FROM a ⊞)"
    assert ctes(sql) == [["a: SELECT 1", "a: SELECT 2", "b: SELECT 3"]]


def test_a_recursive_list_says_so_and_its_depth_is_not_its_body():
    tokens = tokenize(
        f"WITH RECURSIVE a (n) MAX RECURSION LEVEL 10 AS (SELECT 1 UNION ALL SELECT n + 1 FROM a)"
        f" SELECT * FROM a {CLAUSE}"
    )
    (cte,) = find_window_queries(tokens)[0].ctes
    assert cte.recursive
    assert tokens.text(*cte.body) == "SELECT 1 UNION ALL SELECT n + 1 FROM a"
    assert tokens.text(*cte.item).startswith("a (n) MAX RECURSION LEVEL 10 AS (")


def test_with_of_another_kind_names_no_queries():
    assert ctes("SELECT a FROM t GROUP BY a WITH ROLLUP ⊞") == [[]]


# -- what is not our clause -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(x) OVER by FROM t WINDOW by AS (PARTITION BY a ORDER BY b)",
        "SELECT sum(x) OVER by FROM t WINDOW by AS (ORDER BY b)",
        "SELECT window by FROM t",
        "SELECT t.window by FROM t",
        "SELECT `window` by FROM t",
        "SELECT * FROM window by JOIN u",
        "SELECT * FROM window by",
        "SELECT * FROM t AS window, by",
        "SELECT 'WINDOW BY w AS (TYPE SLIDING)' -- WINDOW BY w AS (TYPE SLIDING)",
    ],
)
def test_sparks_own_use_of_the_words_is_left_alone(sql):
    assert blocks(sql) == []


# -- mistakes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "marked", "message", "hint"),
    [
        (
            "SELECT * FROM t WINDOW BY (TYPE SLIDING)",
            "(",
            "expected the window's name after WINDOW BY, found (",
            "write WINDOW BY w AS (TYPE …)",
        ),
        (
            "SELECT * FROM t WINDOW BY AS (TYPE SLIDING)",
            "AS",
            "expected the window's name after WINDOW BY, found AS",
            "write WINDOW BY w AS (TYPE …)",
        ),
        (
            "SELECT * FROM t WINDOW BY w (TYPE SLIDING)",
            "(",
            "expected AS after WINDOW BY, found (",
            "write WINDOW BY w AS (TYPE …)",
        ),
        ("⊞", "WINDOW BY", "WINDOW BY is outside a SELECT", "write SELECT … FROM … WINDOW BY …"),
        ("SELCT a FROM t ⊞", "WINDOW BY", "WINDOW BY is outside a SELECT", "did you mean SELECT?"),
        ("FROM t ⊞", "WINDOW BY", "WINDOW BY is outside a SELECT", "write SELECT … FROM … WINDOW BY …"),
        ("SELECT a FORM t ⊞", "FORM", "query block has WINDOW BY but no FROM", "did you mean FROM?"),
        (
            "SELECT 1 UNION VALUES (1) ⊞",
            "WINDOW BY",
            "WINDOW BY is outside a SELECT",
            "write SELECT … FROM … WINDOW BY …",
        ),
        (
            "SELECT 1 ⊞",
            "WINDOW BY",
            "query block has WINDOW BY but no FROM",
            "add FROM with the rows to make windows of",
        ),
        (
            "SELECT 1 FROM t ⊞ ⊞",
            "WINDOW",
            "query block has two WINDOW BY clauses",
            "move one of them into a subquery in FROM",
        ),
        (
            "SELECT 1 FROM t ⊞ WHERE",
            "WHERE",
            "expected an expression after WHERE",
            None,
        ),
        (
            "SELECT 1 FROM t ⊞ FROM x",
            "FROM",
            "expected HAVING, GROUP BY, ORDER BY, LIMIT or the end after WINDOW BY, found FROM",
            "write FROM before the clause",
        ),
        (
            "SELECT 1 FROM t ⊞ rest",
            "rest",
            "expected HAVING, GROUP BY, ORDER BY, LIMIT or the end after WINDOW BY, found rest",
            None,
        ),
        (
            "SELECT 1 FROM t ⊞ HAVNG COUNT(w) > 3",
            "HAVNG",
            "expected HAVING, GROUP BY, ORDER BY, LIMIT or the end after WINDOW BY, found HAVNG",
            "did you mean HAVING?",
        ),
        (
            "SELECT 1 FROM t ORDER BY x ⊞",
            "ORDER",
            "ORDER BY must follow WINDOW BY",
            "put ORDER BY after WINDOW BY, or in a subquery in FROM",
        ),
        (
            "SELECT 1 FROM t LIMIT 3 ⊞",
            "LIMIT",
            "LIMIT must follow WINDOW BY",
            "put LIMIT after WINDOW BY, or in a subquery in FROM",
        ),
    ],
)
def test_a_clause_in_the_wrong_place_is_marked(sql, marked, message, hint):
    error, fragment = mistake(sql)
    assert isinstance(error, ParseError)
    assert (error.condition, fragment) == ("PARSE_SYNTAX_ERROR", marked)
    assert (error.message, error.hint) == (message, hint)


@pytest.mark.parametrize(
    "over", ["QUALIFY x", "WINDOW v AS (ORDER BY x)", "WINDOW v AS (ORDER BY x) QUALIFY y"]
)
def test_what_spark_evaluates_of_the_rows_is_of_their_query(over):
    assert block(f"SELECT 1 FROM t WHERE z {over} ⊞")["source"] == f"FROM t WHERE z {over}"
    found = block(f"SELECT 1 FROM t GROUP BY k HAVING z {over} ⊞")
    assert (found["source"], found["group_having"], found["group_over"]) == ("FROM t", "z", over)


@pytest.mark.parametrize(
    ("item", "keys"),
    [
        ("a", ["a"]),
        ("(a, b)", ["(a, b)"]),
        ("f(a, b)", ["f(a, b)"]),
        ("ROLLUP (a, b + 1)", ["a", "b + 1"]),
        ("CUBE((a, b), (c))", ["a", "b", "c"]),
        ("GROUPING SETS ((a, b), (a), ())", ["a", "b", "a"]),
        ("GROUPING SETS (ROLLUP (a, b), c)", ["a", "b", "c"]),
        ("b WITH ROLLUP", ["b"]),
        ("b GROUPING SETS ((a, b), a)", ["b"]),
        ("rollup", ["rollup"]),
    ],
)
def test_keys_of_groups_of_several_sets(item, keys):
    tokens = tokenize(item)
    assert [tokens.text(*key) for key in grouping_keys(tokens, 0, len(tokens))] == keys


@pytest.mark.parametrize(
    ("sql", "condition", "marked", "hint"),
    [
        ("SELECT AVG(w.x) OVER w FROM t ⊞", "MISSING_WINDOW_SPECIFICATION", "OVER w", "leave OVER w out"),
        (
            "SELECT 1 FROM t ⊞ ORDER BY SUM(W.x) OVER W",
            "MISSING_WINDOW_SPECIFICATION",
            "OVER W",
            "leave OVER w",
        ),
        ("SELECT s.*, w.* FROM t ⊞", "INVALID_USAGE_OF_STAR_OR_REGEX", "w.*", "inline(w)"),
        ("SELECT COUNT(w.*) FROM t ⊞", "INVALID_USAGE_OF_STAR_OR_REGEX", "w.*", "COUNT(w)"),
    ],
)
def test_the_window_taken_for_a_row_or_for_a_window_of_over_is_refused(sql, condition, marked, hint):
    error, fragment = mistake(sql)
    assert (error.condition, fragment) == (condition, marked)
    assert error.hint is not None
    assert hint in error.hint


def test_a_subquery_after_select_has_a_window_of_its_own_with_the_name():
    sql = "SELECT (SELECT MAX(SUM(x) OVER w) FROM u AS w WINDOW w AS (ORDER BY w.x)), s.x FROM t ⊞"
    assert block(sql)["select"].startswith("(SELECT")


def test_a_column_called_limit_is_not_the_clause():
    assert block("SELECT 1 FROM t WHERE limit > 3 AND t.offset = 1 ⊞")["source"].endswith("t.offset = 1")


# -- scripts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "parts"),
    [
        ("SELECT 1", ["SELECT 1"]),
        ("SELECT 1;", ["SELECT 1"]),
        (";;SELECT 1; ;\nSELECT 2;", ["SELECT 1", "SELECT 2"]),
        ("SELECT ';', `;` -- ;\n /* ; */", ["SELECT ';', `;`"]),
        ("EXPLAIN SELECT 1; SELECT 2", ["EXPLAIN SELECT 1", "SELECT 2"]),
        ("BEGIN SELECT 1; SELECT 2; END", ["BEGIN SELECT 1; SELECT 2; END"]),
        ("", []),
        (" -- nothing\n;", []),
    ],
)
def test_a_script_is_split_at_semicolons_between_statements(script, parts):
    assert statements(script) == parts

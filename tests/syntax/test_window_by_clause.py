"""The parser of the clause: every production, words that are also names, and what is said of mistakes."""

from __future__ import annotations

import pytest

from windrow.errors import AnalysisError, ParseError, WindrowError
from windrow.syntax.nodes import Side, WindowClause
from windrow.syntax.tokens import TokenList, tokenize
from windrow.syntax.window_by_clause import parse_window_by

HEAD = "WINDOW BY w AS ("


def parse(body: str) -> tuple[WindowClause, TokenList]:
    tokens = tokenize(f"{HEAD}{body})")
    return parse_window_by(tokens, 0), tokens


def keys(body: str) -> tuple[list[str], list[str]]:
    """PARTITION BY's and ORDER BY's expressions as text."""
    clause, tokens = parse(body)
    return (
        [tokens.text(*item) for item in clause.partition_by],
        [tokens.text(*item.expression) for item in clause.order_by],
    )


def test_the_end_of_a_case_before_when_is_not_that_of_a_start():
    condition = "CASE CASE WHEN s.v > 1 THEN 2 END WHEN next.v THEN TRUE END"
    clause, tokens = parse(f"TYPE TUMBLING ORDER BY t START NEXT AS next AS s WHEN {condition}")
    assert tokens.text(*clause.start.when) == condition
    clause, tokens = parse(
        f"TYPE TUMBLING ORDER BY t START PREV AS prev AS s WHEN {condition}".replace("next", "prev")
    )
    assert tokens.text(*clause.start.when) == condition.replace("next", "prev")


def boundaries(body: str) -> dict[str, str]:
    """Each boundary as it is understood: ONLY, UNBOUNDED, variables in the order declared, predicate."""
    clause, tokens = parse(body)
    found = {}
    for boundary in clause.boundaries():
        words = ["ONLY"] if boundary.only else []
        words += ["UNBOUNDED"] if boundary.unbounded else []
        words += [f"{variable.role.value} {variable.name}" for variable in boundary.variables]
        words += [f"WHEN {tokens.text(*boundary.when)}"] if boundary.when else []
        found[boundary.side.name] = " ".join(words)
    return found


def mistake(body: str) -> tuple[WindrowError, str, str]:
    """The error, the text it marks, and the text before the mark."""
    with pytest.raises(WindrowError) as caught:
        parse(body)
    error = caught.value
    assert error.sql is not None
    assert error.span is not None
    before = error.sql[len(HEAD) : error.span.start]
    return error, error.sql[error.span.start : error.span.stop], before


# -- the grammar ------------------------------------------------------------------------------------


def test_everything_that_may_be_left_out_may_be_left_out():
    clause, _ = parse("TYPE SLIDING ORDER BY t START END")
    assert (clause.name, clause.tumbling, clause.partition_by, clause.label) == ("w", False, (), None)
    assert boundaries("TYPE SLIDING ORDER BY t START END") == {"START": "", "END": ""}


def test_everything_that_may_be_given_may_be_given():
    body = (
        "TYPE TUMBLING PARTITION BY a, f(b, c) ORDER BY t DESC NULLS LAST, u"
        " LABEL AS l AT lp PREV AS l0 NEXT AS l1 WHEN l.x > 0"
        " ONLY START AS s AT sp PREV AS s0 NEXT AS s1 WHEN s.x > l.x"
        " ONLY END AS e AT ep PREV AS e0 NEXT AS e1 WHEN e.x > s.x"
    )
    assert keys(body) == (["a", "f(b, c)"], ["t", "u"])
    assert boundaries(body) == {
        "LABEL": "AS l AT lp PREV AS l0 NEXT AS l1 WHEN l.x > 0",
        "START": "ONLY AS s AT sp PREV AS s0 NEXT AS s1 WHEN s.x > l.x",
        "END": "ONLY AS e AT ep PREV AS e0 NEXT AS e1 WHEN e.x > s.x",
    }


@pytest.mark.parametrize(("word", "tumbling"), [("SLIDING", False), ("TUMBLING", True), ("tumbling", True)])
def test_the_type_is_one_of_two_words_in_any_case(word, tumbling):
    assert parse(f"type {word} order by t start end")[0].tumbling is tumbling


@pytest.mark.parametrize(
    ("item", "descending", "nulls_first"),
    [
        ("t", False, True),
        ("t ASC", False, True),
        ("t DESC", True, False),
        ("t NULLS LAST", False, False),
        ("t NULLS FIRST", False, True),
        ("t ASC NULLS LAST", False, False),
        ("t DESC NULLS FIRST", True, True),
        ("t desc nulls last", True, False),
    ],
)
def test_the_direction_of_a_key_and_its_nulls_are_as_in_spark(item, descending, nulls_first):
    clause, tokens = parse(f"TYPE SLIDING ORDER BY {item} START END")
    (key,) = clause.order_by
    assert tokens.text(*key.expression) == "t"
    assert (key.descending, key.nulls_first) == (descending, nulls_first)


@pytest.mark.parametrize("column", ["desc", "asc", "nulls", "first", "last"])
def test_a_key_may_be_a_column_called_like_a_direction(column):
    clause, tokens = parse(f"TYPE SLIDING ORDER BY {column}, {column} DESC START END")
    assert [tokens.text(*key.expression) for key in clause.order_by] == [column, column]
    assert [key.descending for key in clause.order_by] == [False, True]


@pytest.mark.parametrize(
    "variables",
    ["AS a AT b PREV AS c NEXT AS d", "NEXT AS d PREV AS c AT b AS a", "AT b", "PREV AS c", "NEXT AS d AS a"],
)
@pytest.mark.parametrize("when", ["", " WHEN x"])
def test_variables_stand_in_any_order_and_keep_it(variables, when):
    assert boundaries(f"TYPE SLIDING ORDER BY t START {variables}{when} END") == {
        "START": variables + when,
        "END": "",
    }


def test_names_of_variables_may_be_quoted():
    clause, _ = parse("TYPE SLIDING ORDER BY t START AS `a b` END AS `c``d`")
    assert [variable.name for variable in clause.variables()] == ["a b", "c`d"]


@pytest.mark.parametrize("side", ["START", "END"])
def test_start_and_end_may_be_unbounded(side):
    other = "END" if side == "START" else "START"
    parts = {side: f"{side} UNBOUNDED", other: f"{other} AS x"}
    body = f"TYPE SLIDING ORDER BY t {parts['START']} {parts['END']}"
    assert boundaries(body)[side] == "UNBOUNDED"
    clause, tokens = parse(body)
    (unbounded,) = [boundary for boundary in clause.boundaries() if boundary.unbounded]
    assert tokens.sql[unbounded.span.start : unbounded.span.stop] == f"{side} UNBOUNDED"


def test_a_tumbling_window_may_have_no_end():
    assert parse("TYPE TUMBLING ORDER BY t START AS s WHEN s.x")[0].end is None


def test_the_clause_and_its_name_know_where_they_stand():
    clause, tokens = parse("TYPE SLIDING ORDER BY t START END")
    assert tokens.sql[clause.span.start : clause.span.stop] == tokens.sql
    assert tokens.sql[clause.name_span.start : clause.name_span.stop] == "w"


def test_variables_come_in_the_order_of_the_text_with_their_sides():
    clause, _ = parse("TYPE SLIDING ORDER BY t LABEL AS l START AT p AS s END AS e")
    assert [(variable.name, variable.side) for variable in clause.variables()] == [
        ("l", Side.LABEL),
        ("p", Side.START),
        ("s", Side.START),
        ("e", Side.END),
    ]


# -- no word is reserved ----------------------------------------------------------------------------

WORDS = [
    "start", "end", "label", "only", "type", "window", "by", "partition", "order", "prev", "next", "at", "as",
    "when", "unbounded", "sliding", "tumbling",
]  # fmt: skip


@pytest.mark.parametrize("word", WORDS)
def test_a_column_may_be_called_like_any_word_of_the_clause(word):
    body = (
        f"TYPE SLIDING PARTITION BY {word}, x ORDER BY {word} DESC, {word}"
        f" LABEL AS l WHEN l.{word} > 1 START AS s WHEN s.{word} = l.{word} END AS e WHEN s.{word} < e.{word}"
    )
    assert keys(body) == ([word, "x"], [word, word])
    assert boundaries(body) == {
        "LABEL": f"AS l WHEN l.{word} > 1",
        "START": f"AS s WHEN s.{word} = l.{word}",
        "END": f"AS e WHEN s.{word} < e.{word}",
    }


@pytest.mark.parametrize("word", WORDS)
def test_a_variable_may_be_called_like_any_word_of_the_clause(word):
    body = f"TYPE SLIDING ORDER BY t START AS {word} WHEN {word}.x > 1 END AS e WHEN e.x > {word}.x"
    assert boundaries(body) == {"START": f"AS {word} WHEN {word}.x > 1", "END": f"AS e WHEN e.x > {word}.x"}


@pytest.mark.parametrize(
    "predicate",
    [
        "end",
        "start",
        "label",
        "NOT end",
        "x AND end",
        "x OR start",
        "x = end",
        "x BETWEEN start AND end",
        "end > start",
        "(end)",
        "x IN (SELECT end FROM start)",
        ":end",
        "x > :start",
        "?",
        "x[end]",
    ],
)
def test_a_predicate_may_end_or_begin_with_a_name_that_is_a_word_of_the_clause(predicate):
    body = f"TYPE SLIDING ORDER BY t START AS s WHEN {predicate} END AS e WHEN {predicate}"
    assert boundaries(body) == {"START": f"AS s WHEN {predicate}", "END": f"AS e WHEN {predicate}"}


@pytest.mark.parametrize(
    "case",
    [
        "CASE WHEN s.x THEN 1 END = 1",
        "CASE s.x WHEN 1 THEN TRUE END",
        "CASE WHEN a THEN CASE b WHEN 1 THEN 2 END END > 0",
        "f(CASE WHEN a THEN b END) AND CASE WHEN c THEN d ELSE e END",
        "s.case > 1",
    ],
)
def test_the_end_of_a_case_is_not_the_windows_end(case):
    body = f"TYPE SLIDING ORDER BY t START AS s WHEN {case} END AS e WHEN {case}"
    assert boundaries(body) == {"START": f"AS s WHEN {case}", "END": f"AS e WHEN {case}"}


def test_a_key_may_be_a_case():
    body = "TYPE SLIDING PARTITION BY CASE WHEN a THEN b END ORDER BY CASE WHEN a THEN b END START END"
    assert keys(body) == (["CASE WHEN a THEN b END"], ["CASE WHEN a THEN b END"])


def test_an_operand_that_is_missing_does_not_swallow_the_next_part():
    body = "TYPE SLIDING ORDER BY t START AS s WHEN s.x = END AS e WHEN e.x AND"
    assert boundaries(body) == {"START": "AS s WHEN s.x =", "END": "AS e WHEN e.x AND"}


# -- mistakes ---------------------------------------------------------------------------------------

ORDER_OF_PARTS = "use the order TYPE, PARTITION BY, ORDER BY, LABEL, START, END"
NEAR_TYPE = "write TYPE SLIDING or TYPE TUMBLING first"


@pytest.mark.parametrize(
    ("body", "marked", "before", "message", "hint"),
    [
        ("", ")", "", "expected TYPE in WINDOW BY, found the end of the clause", NEAR_TYPE),
        ("SLIDING ORDER BY t", "SLIDING", "", "expected TYPE in WINDOW BY, found SLIDING", NEAR_TYPE),
        ("TYP SLIDING", "TYP", "", "expected TYPE in WINDOW BY, found TYP", NEAR_TYPE),
        (
            "TYPE SLIDNG ORDER BY t",
            "SLIDNG",
            "TYPE ",
            "expected SLIDING or TUMBLING in WINDOW BY, found SLIDNG",
            "did you mean SLIDING?",
        ),
        (
            "TYPE SLIDING PARTITION BY a ODER BY t START END",
            "ODER",
            "TYPE SLIDING PARTITION BY a ",
            "expected ORDER BY in WINDOW BY, found ODER",
            "did you mean ORDER BY?",
        ),
        (
            "TYPE SLIDING ORDER BY t START AS s WHEN f(s.v) EDN AS e WHEN e.v > 2",
            "EDN",
            "TYPE SLIDING ORDER BY t START AS s WHEN f(s.v) ",
            "expected END in WINDOW BY, found EDN",
            "did you mean END?",
        ),
        (
            "TYPE TUMBLING ORDER BY t START AS s WHEN s.v < 25 EDN",
            "EDN",
            "TYPE TUMBLING ORDER BY t START AS s WHEN s.v < 25 ",
            "expected END in WINDOW BY, found EDN",
            "did you mean END?",
        ),
        (
            "TYPE TUMBLING ORDER BY t START AS s WHEN s.v < 25 END e NEXT AS n WHEN n.v > 2",
            "e",
            "TYPE TUMBLING ORDER BY t START AS s WHEN s.v < 25 END ",
            "expected AS in WINDOW BY, found e",
            "write END AS e",
        ),
        (
            "TYPE SLIDING PARTITION a ORDER BY t",
            "PARTITION",
            "TYPE SLIDING ",
            "expected PARTITION BY or ORDER BY in WINDOW BY, found PARTITION",
            "did you mean PARTITION BY?",
        ),
        (
            "TYPE SLIDING PARTITION BY ORDER BY t START END",
            "ORDER",
            "TYPE SLIDING PARTITION BY ",
            "expected an expression after PARTITION BY in WINDOW BY, found ORDER",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING PARTITION BY a, ORDER BY t START END",
            "ORDER",
            "TYPE SLIDING PARTITION BY a, ",
            "expected an expression after PARTITION BY in WINDOW BY, found ORDER",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY START AS s END",
            "START",
            "TYPE SLIDING ORDER BY ",
            "expected an expression after ORDER BY in WINDOW BY, found START",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t PARTITION BY a START END",
            "PARTITION",
            "TYPE SLIDING ORDER BY t ",
            "expected LABEL or START in WINDOW BY, found PARTITION",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t",
            ")",
            "TYPE SLIDING ORDER BY t",
            "expected LABEL or START in WINDOW BY, found the end of the clause",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t END START",
            "END",
            "TYPE SLIDING ORDER BY t ",
            "expected LABEL or START in WINDOW BY, found END",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t LABEL AS l END AS e",
            "END",
            "TYPE SLIDING ORDER BY t LABEL AS l ",
            "expected START in WINDOW BY, found END",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t START AS s WHEN END AS e",
            "END",
            "TYPE SLIDING ORDER BY t START AS s WHEN ",
            "expected a predicate after WHEN in WINDOW BY, found END",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t START END AS e WHEN",
            ")",
            "TYPE SLIDING ORDER BY t START END AS e WHEN",
            "expected a predicate after WHEN in WINDOW BY, found the end of the clause",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t START PREV s END",
            "s",
            "TYPE SLIDING ORDER BY t START PREV ",
            "expected AS in WINDOW BY, found s",
            "write PREV AS and a name",
        ),
        (
            "TYPE SLIDING ORDER BY t START AS 1 END",
            "1",
            "TYPE SLIDING ORDER BY t START AS ",
            "expected a name after AS in WINDOW BY, found 1",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t START AS s NEXT AS n AS r END",
            "AS r",
            "TYPE SLIDING ORDER BY t START AS s NEXT AS n ",
            "AS appears twice in one boundary",
            "write each of AS, AT, PREV AS and NEXT AS at most once",
        ),
        (
            "TYPE SLIDING ORDER BY t START UNBOUNDED WHEN x END",
            "WHEN",
            "TYPE SLIDING ORDER BY t START UNBOUNDED ",
            "expected END in WINDOW BY, found WHEN",
            ORDER_OF_PARTS,
        ),
        (
            "TYPE SLIDING ORDER BY t START END AS e rest",
            "rest",
            "TYPE SLIDING ORDER BY t START END AS e ",
            "expected the end of the clause in WINDOW BY, found rest",
            ORDER_OF_PARTS,
        ),
    ],
)
def test_a_mistake_is_marked_with_what_was_expected_and_one_hint(body, marked, before, message, hint):
    error, fragment, text_before = mistake(body)
    assert isinstance(error, ParseError)
    assert (error.condition, error.sqlstate) == ("PARSE_SYNTAX_ERROR", "42601")
    assert (fragment, text_before) == (marked, before)
    assert (error.message, error.hint) == (message, hint)


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ("TYPE SLIDING", ")"),
        ("TYPE SLIDING START AS s END", "START"),
        ("TYPE SLIDING LABEL AS l START END", "LABEL"),
        ("TYPE SLIDING PARTITION BY a ONLY START END", "ONLY"),
    ],
)
def test_a_window_without_order_by_says_where_it_belongs(body, marked):
    error, fragment, _ = mistake(body)
    assert (error.condition, fragment) == ("MISSING_ORDER_BY", marked)
    assert error.hint == "add ORDER BY with the column that orders each sequence, before LABEL and START"


def test_a_sliding_window_without_end_is_marked_at_its_end():
    error, fragment, before = mistake("TYPE SLIDING ORDER BY t START AS s WHEN s.x")
    assert (error.condition, fragment) == ("MISSING_END", ")")
    assert before == "TYPE SLIDING ORDER BY t START AS s WHEN s.x"
    assert error.hint is not None
    assert "END UNBOUNDED" in error.hint


@pytest.mark.parametrize(
    ("body", "marked", "taken_by"),
    [
        ("START AS s END AS s", "s", "START AS"),
        ("START AS s END AS S", "S", "START AS"),
        ("START AS s END AS `s`", "`s`", "START AS"),
        ("LABEL AT p START PREV AS p END", "p", "LABEL AT"),
        ("START AS W END", "W", "the window"),
    ],
)
def test_a_name_that_is_taken_says_by_what(body, marked, taken_by):
    error, fragment, before = mistake(f"TYPE SLIDING ORDER BY t {body}")
    assert isinstance(error, AnalysisError)
    assert (error.condition, error.sqlstate, fragment) == ("DUPLICATE_VARIABLE", "42712", marked)
    assert error.hint == f"rename this variable: the name is in use by {taken_by}"
    assert before  # it is the second one that is marked

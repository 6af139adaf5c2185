"""Row variables compared as wholes: by identity, or refused where only values could decide."""

import pytest

from windrow.algebra.bind import bind
from windrow.errors import NotSupportedError
from windrow.syntax.tokens import tokenize

CLAUSE = "WINDOW BY w AS (TYPE SLIDING ORDER BY o LABEL AS l AT pl START AS s AT ps END AS e WHEN {})"

BY_VALUE = [
    "e < l",
    "(e) >= (l)",
    "e BETWEEN l AND l",
    "e.x > 0 AND e NOT BETWEEN s AND l",
    "CASE e WHEN l THEN TRUE WHEN struct(1) THEN FALSE END",
    "NULLIF(e, l) IS NULL",
    "greatest(e, l) IS NOT NULL",
]

BY_IDENTITY = [
    "e = l",
    "((e)) = (l)",
    "NOT e = l",
    "e.x = 1 OR e == l",
    "CASE WHEN e = l THEN TRUE END",
    "e NOT IN (l, (s))",
    "e IS NOT DISTINCT FROM l",
    "equal_null((e), l)",
    "CASE e WHEN l THEN TRUE ELSE FALSE END",
    "CASE e WHEN NULL THEN FALSE WHEN (l) THEN CASE WHEN l.x > 1 THEN TRUE END END",
]

NOT_ROWS = [
    "e.x = l.x",
    "e.x BETWEEN l.x AND s.x",
    "pl = ps",
    "pl < ps",
    "CASE e.x WHEN l.x THEN TRUE END",
    "e IS NULL",
    "coalesce(e, l).x = 1",
    "f(e) = g(l)",
    "e = struct(1)",
]


def bound(condition: str, select: str = "1"):
    tokens = tokenize(f"SELECT {select} FROM t {CLAUSE.format(condition)}")
    statement = bind(tokens, (0, len(tokens.tokens)))
    assert statement is not None
    return statement.windows[0]


@pytest.mark.parametrize("condition", BY_VALUE)
def test_what_only_values_could_decide_is_refused_in_predicates(condition):
    with pytest.raises(NotSupportedError) as error:
        bound(condition)
    assert error.value.getCondition() == "UNSUPPORTED_ROW_COMPARISON"


@pytest.mark.parametrize("condition", BY_VALUE)
def test_what_only_values_could_decide_is_refused_after_the_clause(condition):
    with pytest.raises(NotSupportedError) as error:
        bound("TRUE", f"{condition} AS same")
    assert error.value.getCondition() == "UNSUPPORTED_ROW_COMPARISON"


def test_the_error_marks_the_rows():
    with pytest.raises(NotSupportedError) as error:
        bound("e BETWEEN s AND l")
    span = error.value.span
    assert error.value.sql[span.start : span.stop] == "e BETWEEN s"


@pytest.mark.parametrize("condition", BY_IDENTITY)
def test_equality_of_rows_is_identity(condition):
    assert "__row_of_e" in bound(condition).end.when.text.render()
    assert {row.name for row in bound("TRUE", f"{condition} AS same").compared} >= {"e", "l"}


@pytest.mark.parametrize("condition", NOT_ROWS)
def test_values_stay_values(condition):
    assert "__row_of" not in bound(condition).end.when.text.render()
    assert bound("TRUE", f"{condition} AS same").compared == ()

"""Columns of the query around with the schema of their table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from windrow.algebra.bind import bind
from windrow.algebra.match_node import Match
from windrow.algebra.window_node import Window
from windrow.errors import AnalysisError
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import tokenize

CLAUSE = "WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS {} END UNBOUNDED)"


def rows(around: str, inner: str, condition: str, refused: Collection[str] | None, row: str = "s") -> str:
    """The rows of a clause in a subquery, where Spark refuses only these queries."""
    clause = CLAUSE.format(row)
    text = f"SELECT 1 FROM {around} WHERE EXISTS (SELECT 1 FROM {inner} WHERE {condition} {clause})"
    tokens = tokenize(text)

    def columns_of(query: SqlText, _: tuple[Window | Match, ...]) -> Sequence[str] | None:
        assert refused is not None
        return None if query.render() in refused else ["c"]

    bound = bind(tokens, (0, len(tokens)), columns_of=None if refused is None else columns_of)
    assert bound is not None
    return bound.windows[0].rows.render()


def test_tables_of_one_name_in_two_schemas_have_columns_of_their_own() -> None:
    found = rows("x.t, y.t", "r", "r.v > x.t.c AND r.v < y.t.c", None)
    values = "SELECT DISTINCT x.t.c AS `__of___outer13.x.t.c`, y.t.c AS `__of___outer13.y.t.c` FROM x.t, y.t"
    assert values in found
    assert "r.v > `__of___outer13.x.t.c` AND r.v < `__of___outer13.y.t.c`" in found


@pytest.mark.parametrize(("around", "inner"), [("t", "r"), ("x.t", "y.t"), ("t", "y.t"), ("x.t", "r AS t")])
def test_spark_says_of_which_table_a_column_is(around: str, inner: str) -> None:
    inside, outside = (f"SELECT x.t.c FROM {source}" for source in (inner, around))
    assert "x.t.c AS" in rows(around, inner, "v > x.t.c", {inside})
    for refused in (set[str](), {inside, outside}, {inside, f"SELECT * FROM {inner}"}):
        assert "x.t.c AS" not in rows(around, inner, "v > x.t.c", refused)


def test_a_variable_hides_a_schema_and_no_table_with_one() -> None:
    assert "x.t.c AS" in rows("x.t", "r", "v > x.t.c", None, "t")
    with pytest.raises(AnalysisError, match="AMBIGUOUS_REFERENCE"):
        rows("x.t", "r", "v > x.t.c", None, "x")

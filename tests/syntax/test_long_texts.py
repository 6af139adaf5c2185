"""What is asked of every text before it is read takes time that is linear in it."""

from __future__ import annotations

import pytest

from windrow.errors import UsageError
from windrow.spark.catalog import Catalog
from windrow.spark.logs.text_log import _LINE
from windrow.spark.relations.table_functions_in_from import calls_table_functions
from windrow.statements.classification import may_be_ours, stream_shown
from windrow.statements.emit_statements import may_be_emitted
from windrow.statements.stream_statements import has_stream_words
from windrow.statements.temporal_joins import may_join_versions
from windrow.without_sql.python_lengths import duration_of

MANY = 100_000
LONG = {
    "comments between words": "SELECT window" + "/**/" * MANY + " FROM t",
    "comments behind pattern": "SELECT pattern" + "/* a */ -- b\n" * MANY + " FROM t",
    "comments that do not end": "SELECT " + "window/*" * MANY,
    "blanks": "SELECT * FROM t" + " " * MANY + "x",
    "blanks behind words": "window" + " " * MANY + "pattern" + " " * MANY + "[" + " " * MANY,
    "a long word": "SELECT " + "a" * MANY,
    "a long string": "SELECT '" + "pattern(" * MANY + "'",
    "words of clauses": "AS OF SYSTEM FOR SYSTEM_TIME CREATE OR REPLACE " * (MANY // 10),
}


@pytest.mark.timeout(30)
@pytest.mark.parametrize("name", LONG)
def test_a_long_text_is_looked_through_in_linear_time(name):
    text, nothing = LONG[name], Catalog()
    assert not has_stream_words(text)
    assert not may_be_emitted(text, nothing)
    assert not may_join_versions(text)
    assert not calls_table_functions(text, {})
    assert stream_shown(text, nothing) is None
    assert may_be_ours(text) is any(mark in text for mark in ("/*", "--", "pattern("))
    assert _LINE.fullmatch("1 " + text) is not None or "\n" in text
    with pytest.raises(UsageError):
        duration_of(f"1 {text}", "lag")


@pytest.mark.parametrize(
    ("text", "ours"),
    [
        ("SELECT * FROM t WINDOW BY w AS (…)", True),
        ("SELECT * FROM t window\n by w AS (…)", True),
        ("SELECT * FROM t WINDOW /* a /* nested */ one */ BY w AS (…)", True),
        ("SELECT * FROM t WINDOW-- one\nBY w AS (…)", True),
        ("… PATTERN(A)", True),
        ("… PATTERN /* … */ (A)", True),
        ("… MATCH_RECOGNIZE (…)", True),
        ("SELECT window, by FROM t", False),
        ("SELECT pattern FROM t", False),
        ("SELECT my_window by", False),
    ],
)
def test_a_text_that_may_have_clauses_is_known_by_its_words(text, ours):
    assert may_be_ours(text) is ours

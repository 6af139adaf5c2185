"""What the arguments of table functions are, and what is wrong with others."""

from __future__ import annotations

import pytest

from windrow.errors import ParseError
from windrow.syntax.streams.table_functions import WINDOWS, call_at, window_call
from windrow.syntax.tokens import tokenize

FUNCTIONS = [name.lower() for name in WINDOWS]


def call(text: str):
    tokens = tokenize(text)
    at = next(at for at in range(len(tokens)) if call_at(tokens, at, FUNCTIONS) is not None)
    return tokens, window_call(tokens, call_at(tokens, at, FUNCTIONS))


def shown(tokens, window):
    return {name: tokens.text(*length.tokens) for name, length in window.lengths.items()}


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM TUMBLE(TABLE t, DESCRIPTOR(ts), 10, 3)",
        "SELECT * FROM t0 JOIN tumble(TABLE(t), DESCRIPTOR(ts), size => 10, offset => 3) AS x",
        "SELECT * FROM t0, Tumble(data => TABLE t, timecol => DESCRIPTOR(ts), dur => 10, offset => 3)",
        "SELECT * FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), 10, offset => 3))",
    ],
)
def test_spellings_of_one_window(text):
    tokens, window = call(text)
    assert tokens.text(*window.data) == "t"
    assert tokens[window.time].name == "ts"
    assert shown(tokens, window) == {"dur": "10", "offset": "3"}
    assert window.names[0] == ("window_start" if "TABLE(TUMBLE" in text else "wstart")


def test_a_query_is_a_table_and_a_name_in_another_place_is_no_function():
    tokens, window = call("SELECT hop(1) FROM HOP(TABLE(SELECT tumble(a) FROM b), DESCRIPTOR(ts), 5, 10)")
    assert tokens.text(*window.data) == "SELECT tumble(a) FROM b"
    assert shown(tokens, window) == {"hopsize": "5", "dur": "10"}


@pytest.mark.parametrize(
    "arguments",
    [
        "TABLE t PARTITION BY (k), DESCRIPTOR(ts), 5, key => DESCRIPTOR(u)",
        "TABLE t, DESCRIPTOR(ts), DESCRIPTOR(k, u), 5",
        "TABLE t, DESCRIPTOR(ts), gap => 5, key => DESCRIPTOR(k, u)",
        "TABLE t PARTITION BY (k, u), DESCRIPTOR(ts), 5",
    ],
)
def test_spellings_of_keys_of_sessions(arguments):
    tokens, window = call(f"SELECT * FROM SESSION({arguments})")
    assert [tokens[at].name for at in window.keys] == ["k", "u"]
    assert shown(tokens, window) == {"gap": "5"}


@pytest.mark.parametrize(
    ("text", "condition", "fragment"),
    [
        ("TUMBLE(«t», DESCRIPTOR(ts), 10)", "PARSE_SYNTAX_ERROR", "write TABLE t"),
        ("TUMBLE(TABLE t, «ts», 10)", "PARSE_SYNTAX_ERROR", "DESCRIPTOR(ts)"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), 10, 0, «1»)", "PARSE_SYNTAX_ERROR", "write TUMBLE"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), dur => 10, «0»)", "PARSE_SYNTAX_ERROR", "name this argument too"),
        ("TUMBLE(TABLE t PARTITION BY «k», DESCRIPTOR(ts), 10)", "PARSE_SYNTAX_ERROR", "GROUP BY"),
        ("SESSION(TABLE t, DESCRIPTOR(ts), 5, key => «k»)", "PARSE_SYNTAX_ERROR", "DESCRIPTOR(k)"),
        ("SESSION(TABLE t PARTITION BY «k» + 1, DESCRIPTOR(ts), 5)", "PARSE_SYNTAX_ERROR", "in a query"),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), «DESCRIPTOR»(a))", "PARSE_SYNTAX_ERROR", "write TUMBLE"),
        (
            "TUMBLE(TABLE t, DESCRIPTOR(ts), «gap» => 10)",
            "UNRECOGNIZED_PARAMETER_NAME",
            "use one of data",
        ),
        ("TUMBLE(TABLE t, DESCRIPTOR(ts), «durr» => 10)", "UNRECOGNIZED_PARAMETER_NAME", "did you mean dur"),
        (
            "TUMBLE(TABLE t, DESCRIPTOR(ts), 10, «size» => 5)",
            "DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT",
            "once",
        ),
        ("«SESSION»(TABLE t, DESCRIPTOR(ts))", "REQUIRED_PARAMETER_NOT_FOUND", "write SESSION"),
    ],
)
def test_mistakes_are_told_where_they_are(text, condition, fragment):
    query = "SELECT * FROM " + text.replace("«", "").replace("»", "")
    start = text.index("«") + len("SELECT * FROM ")
    with pytest.raises(ParseError) as error:
        call(query)
    assert error.value.condition == condition
    assert fragment in (error.value.hint or "")
    assert (error.value.span.start, error.value.span.stop) == (
        start,
        start + text.index("»") - text.index("«") - 1,
    )

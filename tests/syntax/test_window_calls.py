"""Functions over windows: which rows they read."""

from __future__ import annotations

import pytest

from windrow.syntax.expressions.window_calls import window_calls
from windrow.syntax.queries import UnknownShapeError
from windrow.syntax.tokens import tokenize

BY = "PARTITION BY a, b.c ORDER BY d DESC, f(e, 1)"


def calls(text, named=None):
    tokens = tokenize(f"{text} ; {named or ''}")
    end = next(at for at in range(len(tokens)) if tokens.is_symbol(at, ";"))
    return tokens, window_calls(tokens, [(0, end)], (end + 1, len(tokens)) if named else None)


@pytest.mark.parametrize(
    ("call", "looks_back", "reach"),
    [
        ("rank() OVER ({BY})", True, None),
        ("row_number() OVER ({BY})", True, None),
        ("rank() OVER (PARTITION BY a)", False, None),
        ("sum(x) OVER ()", False, None),
        ("sum(x) OVER ({BY})", True, None),
        ("ntile(3) OVER ({BY})", False, None),
        ("lag(x) OVER ({BY})", True, 1),
        ("lag(x, 3, 0) OVER ({BY})", True, 3),
        ("lag(x, -1) OVER ({BY})", False, None),
        ("lag(x, 2) IGNORE NULLS OVER ({BY})", True, None),
        ("lead(x) OVER ({BY})", False, None),
        ("sum(x) FILTER (WHERE y > 0) OVER ({BY} ROWS 2 PRECEDING)", True, 2),
        ("s.f(x) OVER ({BY} ROWS BETWEEN 4 PRECEDING AND 1 PRECEDING)", True, 4),
        ("sum(x) OVER ({BY} ROWS BETWEEN 4 PRECEDING AND 1 FOLLOWING)", False, None),
        ("sum(x) OVER ({BY} ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING)", False, None),
        ("sum(x) OVER ({BY} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)", True, None),
        ("sum(x) OVER ({BY} ROWS BETWEEN 1 + 1 PRECEDING AND CURRENT ROW)", True, None),
        ("sum(x) OVER ({BY} RANGE BETWEEN CURRENT ROW AND CURRENT ROW)", True, 0),
        ("sum(x) OVER ({BY} ROWS BETWEEN 2 PRECEDING AND -1 PRECEDING)", False, None),
        ("sum(x) OVER ({BY} ROWS BETWEEN 2 PRECEDING AND (1 - 2) PRECEDING)", False, None),
        ("sum(x) OVER ({BY} RANGE BETWEEN 9 PRECEDING AND INTERVAL 2 DAYS PRECEDING)", True, None),
        ("sum(x) OVER ({BY} RANGE BETWEEN 9 PRECEDING AND INTERVAL '-2' DAY PRECEDING)", False, None),
        ("`lead`(x) OVER ({BY})", False, None),
        ("sum(x) OVER ({BY} RANGE 5 PRECEDING)", True, None),
        ("sum(x) OVER ({BY} RANGE CURRENT ROW)", True, 0),
    ],
)
def test_what_a_function_reads(call, looks_back, reach):
    text = call.replace("{BY}", BY)
    tokens, (found,) = calls(text)
    assert tokens.text(*found.range) == text
    assert (found.looks_back, found.reach) == (looks_back, reach)
    if "{BY}" in call:
        assert [tokens.text(*key) for key in found.partition] == ["a", "b.c"]
        assert [(tokens.text(*item.expression), item.descending) for item in found.order] == [
            ("d", True),
            ("f(e, 1)", False),
        ]


def test_windows_by_name_and_what_is_not_taken_apart():
    tokens, found = calls("1 + sum(x) OVER w, over, rank() OVER V", f"w AS (PARTITION BY a), v AS ({BY})")
    assert [(tokens.text(*one.range), one.looks_back) for one in found] == [
        ("sum(x) OVER w", False),
        ("rank() OVER V", True),
    ]
    for text in ("sum(x) OVER u", "sum(x) OVER (w ORDER BY a)", "sum(x) OVER (DISTRIBUTE BY a SORT BY b)"):
        with pytest.raises(UnknownShapeError):
            calls(text, "w AS (PARTITION BY a)")

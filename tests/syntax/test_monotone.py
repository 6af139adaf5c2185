"""Which expressions go with a part of theirs, and how: rising, falling, or different where it is."""

from __future__ import annotations

import pytest

from windrow.syntax.expressions.monotone_parts import going
from windrow.syntax.expressions.rising import goes_by_zone, rising
from windrow.syntax.tokens import tokenize


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("k + 1", ("k", "number", "number", True, True)),
        ("(2L + t.k)", ("t.k", "number", "number", True, True)),
        ("k - -1.5", ("k", "number", "number", True, False)),
        ("7 - (k * 2)", ("(k * 2)", "number", "number", False, True)),
        ("-k", ("k", "number", "number", False, True)),
        ("k * 3", ("k", "number", "number", True, True)),
        ("-3 * k", ("k", "number", "number", False, True)),
        ("k * 2e0", ("k", "number", "number", True, False)),
        ("k / 10", ("k", "number", "number", True, False)),
        ("k DIV -10", ("k", "number", "number", False, False)),
        ("floor(k / 10)", ("k / 10", "number", "number", True, False)),
        ("CAST(k AS BIGINT)", ("k", "number", "number", True, True)),
        ("k::DECIMAL(20, 0)", ("k", "number", "number", True, True)),
        ("CAST(k + 1 AS DOUBLE)", ("k + 1", "number", "number", True, False)),
        ("CAST(k AS STRING)", ("k", "text", "text", True, True)),
        ("'item-' || k || '!'", ("'item-' || k", "text", "text", True, True)),
        ("concat('a', k, 'b')", ("k", "text", "text", True, True)),
        ("year(ts)", ("ts", "time", "number", True, False)),
        ("date_trunc('HOUR', ts)", ("ts", "time", "time", True, False)),
        ("ts + INTERVAL 2 DAYS", ("ts", "time", "time", True, False)),
    ],
)
def test_expressions_go_with_a_part(text, told):
    tokens = tokenize(text)
    found = going(tokens, 0, len(tokens))
    assert found is not None
    assert (tokens.text(*found.part), found.wants, found.gives, found.rises, found.differs) == told


@pytest.mark.parametrize(
    "text",
    [
        "k", "7", "k % 10", "k * 0", "0.0 * k", "k / 0", "10 / k", "k + j", "k * k", "abs(k)", "upper(k)",
        "concat(k, j)", "concat('a', 'b')", "TRY_CAST(k AS INT)", "CAST(k AS BINARY)", "k + ?", "k + :n",
        "coalesce(k, 0)", "CASE WHEN k > 1 THEN k END", "round(k)", "k & 1", "hour(ts)", "k + '1'",
    ],
)  # fmt: skip
def test_others_do_not(text):
    tokens = tokenize(text)
    assert going(tokens, 0, len(tokens)) is None


@pytest.mark.parametrize(
    "text",
    [
        "ts + INTERVAL 1 MONTH", "ts - INTERVAL '1-2' YEAR TO MONTH", "ts + INTERVAL '1 month'",
        "ts + interval 2 years", "date_trunc(unit, ts)", "date_trunc('FORTNIGHT', ts)", "date_trunc(?, ts)",
    ],
)  # fmt: skip
def test_shifts_by_months_and_units_that_are_not_written_do_not_rise(text):
    tokens = tokenize(text)
    assert rising(tokens, 0, len(tokens)) is None


@pytest.mark.parametrize(
    ("text", "is_set_back"),
    [
        ("ts + INTERVAL 1 DAY", True),
        ("date_trunc('HOUR', ts - INTERVAL '1 week')", True),
        ("CAST(ts AS TIMESTAMP_NTZ)", True),
        ("ts + INTERVAL 90 MINUTES", False),
        ("date_trunc('DAY', ts)", False),
        ("CAST(ts AS DATE)", False),
    ],
)
def test_clocks_that_are_set_back_matter_to_days_and_to_casts(text, is_set_back):
    tokens = tokenize(text)
    assert goes_by_zone(tokens, 0, len(tokens)) is is_set_back

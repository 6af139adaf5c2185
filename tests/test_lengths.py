"""Lengths of time from Python."""

from __future__ import annotations

from datetime import timedelta

import pytest

from windrow.errors import UsageError
from windrow.without_sql.python_lengths import duration_of


@pytest.mark.parametrize(
    ("given", "length"),
    [
        ("10 seconds", timedelta(seconds=10)),
        ("1 Minute", timedelta(minutes=1)),
        (" INTERVAL '2' HOURS ", timedelta(hours=2)),
        ("1 hour 30 minutes", timedelta(hours=1, minutes=30)),
        ("0.5 seconds", timedelta(milliseconds=500)),
        ("1500 nanoseconds", timedelta(microseconds=1)),
        (timedelta(days=3), timedelta(days=3)),
        ("0 seconds", timedelta(0)),
    ],
)
def test_a_length_is_a_timedelta_or_a_text(given, length):
    assert duration_of(given, "lag") == length


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("soon", "10 seconds"),
        ("10", "10 seconds"),
        ("10 seconds ago", "10 seconds"),
        ("", "10 seconds"),
        (1.5, "10 seconds"),
        ("10 secnds", "did you mean seconds?"),
        ("2 years", "use one of weeks, days"),
        (timedelta(seconds=-1), "0 or more"),
    ],
)
def test_what_is_none_is_refused_with_what_would_be(given, hint):
    with pytest.raises(UsageError) as caught:
        duration_of(given, "lag")
    assert caught.value.condition == "INVALID_ARGUMENT"
    assert hint in caught.value.hint

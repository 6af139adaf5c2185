"""Row patterns: shapes that MATCH_RECOGNIZE is asked for, and one that is hard for naive machines."""

from __future__ import annotations

from benchmarks.queries import Query

__all__ = ["ALTERNATION", "FUNNEL", "NESTED", "PATTERNS", "RUNS", "SHAPES"]


def _pattern(title: str, pattern: str, define: str, within: str = "") -> Query:
    return Query(
        title=title,
        windrow=f"""
        SELECT station, date, value FROM readings
        MATCH_RECOGNIZE (
            PARTITION BY station ORDER BY date
            MEASURES FIRST(date) AS date, AVG(val) AS value
            PATTERN ({pattern}) {within}
            DEFINE {define}
        )
        """,
    )


SHAPES = _pattern("V shapes", "top down+ up+", "down AS val < PREV(val), up AS val > PREV(val)")

RUNS = _pattern("runs above a threshold", "a+ b", "a AS val > 150, b AS val <= 150")

FUNNEL = _pattern(
    "three steps within a week",
    "a x*? b x*? c",
    "a AS val < 0, b AS val > 100, c AS val > b.val",
    within="WITHIN INTERVAL 7 DAYS",
)

ALTERNATION = _pattern(
    "an alternation",
    "(hot+ | cold+) mild",
    "hot AS val > 250, cold AS val < 0, mild AS val BETWEEN 0 AND 250",
)

NESTED = _pattern("nested quantifiers", "(a+)+ b", "a AS val > -1000, b AS val < -1000")

PATTERNS = [SHAPES, RUNS, FUNNEL, ALTERNATION, NESTED]

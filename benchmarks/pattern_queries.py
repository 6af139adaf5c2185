"""Row patterns: shapes that MATCH_RECOGNIZE is asked for, and one that is hard for naive machines."""

from __future__ import annotations

from benchmarks.queries import Query

__all__ = ["ALTERNATION", "FUNNEL", "HARD", "NESTED", "PATTERNS", "RUNS", "SHAPES"]


def _pattern(title: str, pattern: str, define: str, within: str = "", over: str | None = None) -> Query:
    return Query(
        title=title,
        over=over,
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


def _islands(member: str, last: str) -> str:
    """Gaps and islands: rows of `member`, and a row after them that is `last` and ends them.

    The number of rows before one that are no members is the same along such rows and at the row after them.
    """
    return f"""
        SELECT station, min(date) AS date, avg(val) AS value
        FROM (
            SELECT *, count_if(NOT coalesce({member}, FALSE)) OVER (
                PARTITION BY station ORDER BY date ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS island
            FROM readings)
        GROUP BY station, island
        HAVING count(*) > 1 AND coalesce(max_by({last}, date), FALSE)
        """


_RUNS_OF_KINDS = """
    SELECT station, min(date) AS date, avg(val) AS value
    FROM (
        SELECT *, count_if(kind IS DISTINCT FROM before AND NOT (kind = 'mild' AND before IN ('hot', 'cold')))
            OVER (PARTITION BY station ORDER BY date) AS run
        FROM (
            SELECT *, lag(kind) OVER (PARTITION BY station ORDER BY date) AS before
            FROM (
                SELECT station, date, val, CASE WHEN val > 250 THEN 'hot' WHEN val < 0 THEN 'cold'
                    WHEN val BETWEEN 0 AND 250 THEN 'mild' ELSE 'none' END AS kind
                FROM readings)))
    WHERE NOT (kind = 'mild' AND before <=> 'mild')
    GROUP BY station, run
    HAVING count(*) > 1 AND max_by(kind, date) = 'mild'
    """
"""A run of hot or cold rows and the mild row after it, as one group."""

SHAPES = _pattern("V shapes", "top down+ up+", "down AS val < PREV(val), up AS val > PREV(val)")

RUNS = _pattern(
    "runs above a threshold",
    "a+ b",
    "a AS val > 150, b AS val <= 150",
    over=_islands("val > 150", "val <= 150"),
)

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
    over=_RUNS_OF_KINDS,
)

NESTED = _pattern(
    "nested quantifiers",
    "(a+)+ b",
    "a AS val > -1000, b AS val < -1000",
    over=_islands("val > -1000", "val < -1000"),
)

HARD = _pattern(
    "alternatives of two lengths, in a loop that never ends in a match",
    "(a | a a)+ b",
    "a AS val > -1000, b AS val < -1000",
)
"""Trying one way after the other would take time exponential in the rows of a station."""

PATTERNS = [SHAPES, RUNS, FUNNEL, ALTERNATION, NESTED, HARD]

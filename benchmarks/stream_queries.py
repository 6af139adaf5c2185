"""What is asked of streams: changelogs, as rows that enter and leave, next to plain SQL that gives the same.

All read a stream `readings_stream` of the readings, and give station, date (the instant) and value: negative
for what leaves.
"""

from __future__ import annotations

from benchmarks.queries import Query

__all__ = ["GROUPED_RANGE", "GROUPED_ROWS", "JOINED", "RANGE", "STREAM", "last_rows"]

STREAM = "CREATE OR REPLACE STREAM readings_stream (ROWTIME date, station STRING, val INT) FROM readings"
"""Makes the stream."""


def _changes(query: str) -> str:
    return f"""
        SELECT station, _commit_timestamp AS date, IF(_change_type = 'insert', value, -value) AS value
        FROM CHANGELOG OF ({query})
        """


_RANGE = """
    SELECT station, date, val AS value FROM readings
    UNION ALL
    SELECT station, {later}, -val FROM readings
    """
RANGE = Query(
    title="changelog of [RANGE 7 DAYS]",
    windrow=_changes("SELECT station, date, val AS value FROM readings_stream [RANGE 7 DAYS]"),
    over=_RANGE.format(later="date_add(date, 7)"),
    duckdb=_RANGE.format(later="date + 7"),
)


def last_rows(rows: int) -> Query:
    """The changes of the last so many rows of each station."""
    plain = f"""
        SELECT station, date, val AS value FROM readings
        UNION ALL
        SELECT station, later, -val
        FROM (SELECT *, LEAD(date, {rows}) OVER (PARTITION BY station ORDER BY date) AS later FROM readings)
        WHERE later IS NOT NULL
        """
    window = f"readings_stream [PARTITION BY station ROWS {rows}]"
    return Query(
        title=f"changelog of [PARTITION BY station ROWS {rows:,}]",
        windrow=_changes(f"SELECT station, date, val AS value FROM {window}"),
        over=plain,
        duckdb=plain,
    )


def _averages(states: str) -> str:
    """The changes of an average per station, from what it is from each instant on."""
    return f"""
        WITH states AS ({states}),
        pairs AS (
            SELECT *, LAG(value) OVER (PARTITION BY station ORDER BY date) AS before FROM states)
        SELECT station, date, value FROM pairs WHERE value IS DISTINCT FROM before AND value IS NOT NULL
        UNION ALL
        SELECT station, date, -before FROM pairs WHERE value IS DISTINCT FROM before AND before IS NOT NULL
        """


_EVENTS = """
    SELECT station, date, AVG(val) OVER (
        PARTITION BY station ORDER BY date RANGE BETWEEN {days} PRECEDING AND CURRENT ROW) AS value
    FROM (SELECT station, date, SUM(val) AS val FROM (
        SELECT station, date, val FROM readings UNION ALL SELECT station, {later}, NULL FROM readings)
        GROUP BY station, date)
    """
GROUPED_RANGE = Query(
    title="changelog of the average over [RANGE 7 DAYS], by station",
    windrow=_changes(
        "SELECT station, AVG(val) AS value FROM readings_stream [RANGE 7 DAYS] GROUP BY station"
    ),
    over=_averages(_EVENTS.format(days="INTERVAL '6' DAY", later="date_add(date, 7)")),
    duckdb=_averages(_EVENTS.format(days="INTERVAL 6 DAY", later="date + 7")),
)

_LAST = """
    SELECT station, date, AVG(val) OVER (
        PARTITION BY station ORDER BY date ROWS BETWEEN 19 PRECEDING AND CURRENT ROW) AS value
    FROM readings
    """
GROUPED_ROWS = Query(
    title="changelog of the average over [PARTITION BY station ROWS 20], by station",
    windrow=_changes(
        "SELECT station, AVG(val) AS value "
        "FROM readings_stream [PARTITION BY station ROWS 20] GROUP BY station"
    ),
    over=_averages(_LAST),
    duckdb=_averages(_LAST),
)

_PAIRS = """
    SELECT a.station, GREATEST(a.date, b.date) AS date, CAST(a.val AS BIGINT) * 1000 + b.val AS value
    FROM readings AS a
    JOIN (
        SELECT *, LEAD(date) OVER (PARTITION BY station ORDER BY date) AS later FROM readings
    ) AS b ON a.station = b.station AND a.date < COALESCE(b.later, DATE '9999-12-31') AND b.date < {later}
    """
JOINED = Query(
    title="what enters the join of [RANGE 2 DAYS] with [PARTITION BY station ROWS 1]",
    windrow="""
        SELECT station, _commit_timestamp AS date, value
        FROM CHANGELOG OF (
            SELECT a.station, a.date AS one, b.date AS other, CAST(a.val AS BIGINT) * 1000 + b.val AS value
            FROM readings_stream [RANGE 2 DAYS] AS a, readings_stream [PARTITION BY station ROWS 1] AS b
            WHERE a.station = b.station)
        WHERE _change_type = 'insert'
        """,
    over=_PAIRS.format(later="date_add(a.date, 2)"),
    duckdb=_PAIRS.format(later="a.date + 2"),
)

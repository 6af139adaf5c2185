"""What is asked: each query once as WINDOW BY, and once for each peer that can express it.

All read a table `readings` and give the columns station, date and value, a row for each window. Windows that
reach the end of their station before their own are in all the answers: WINDOW BY without ONLY and the frames
of OVER agree on them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from benchmarks import nested

__all__ = [
    "CHOSEN",
    "COMPUTED",
    "ISLANDS",
    "LABEL",
    "SESSION",
    "TUMBLING",
    "TUMBLING_WEEK",
    "UNBOUNDED",
    "WEEK",
    "Query",
    "joined_rows",
    "next_rows",
    "week",
]

Plan = Callable[[pl.LazyFrame], pl.LazyFrame]


@dataclass(frozen=True)
class Query:
    """A question, in the words of each system; None where it has none."""

    title: str
    windrow: str
    over: str | None = None
    duckdb: str | None = None
    polars: Plan | None = None
    nested: str | None = None
    joins: bool = False
    """Whether it reads the table `stations` too."""


@dataclass(frozen=True)
class _Aggregate:
    windrow: str
    over: str
    duckdb: str
    polars: Callable[[pl.Expr, int], pl.Expr] | None


_AGGREGATES = {
    "avg": _Aggregate(
        "AVG(w.val)",
        "AVG(val) OVER frame",
        "AVG(val) OVER frame",
        lambda column, rows: column.rolling_mean(rows, min_samples=1),
    ),
    "min": _Aggregate(
        "MIN(w.val)",
        "MIN(val) OVER frame",
        "MIN(val) OVER frame",
        lambda column, rows: column.rolling_min(rows, min_samples=1),
    ),
    "max": _Aggregate(
        "MAX(w.val)",
        "MAX(val) OVER frame",
        "MAX(val) OVER frame",
        lambda column, rows: column.rolling_max(rows, min_samples=1),
    ),
    # Spark has neither MEDIAN nor COUNT(DISTINCT) over a frame, but these.
    "median": _Aggregate(
        "MEDIAN(w.val)",
        "percentile(val, 0.5) OVER frame",
        "MEDIAN(val) OVER frame",
        lambda column, rows: column.rolling_median(rows, min_samples=1),
    ),
    "count distinct": _Aggregate(
        "COUNT(DISTINCT w.val)",
        "size(collect_set(val) OVER frame)",
        "COUNT(DISTINCT val) OVER frame",
        None,
    ),
}


def next_rows(rows: int, aggregate: str = "avg", *, partitioned: bool = True) -> Query:
    """An aggregate of each row and those after it, so many in all."""
    chosen = _AGGREGATES[aggregate]
    keys = "PARTITION BY station" if partitioned else ""
    frame = f"{keys} ORDER BY date ROWS BETWEEN CURRENT ROW AND {rows - 1} FOLLOWING"
    rolling = chosen.polars
    return Query(
        title=f"{aggregate}, next {rows:,} rows" + ("" if partitioned else ", no PARTITION BY"),
        windrow=f"""
            SELECT s.station, s.date, {chosen.windrow} AS value
            FROM readings
            WINDOW BY w AS (
                TYPE SLIDING {keys} ORDER BY date
                START AS s AT sp
                END AT ep WHEN ep - sp = {rows - 1})
            """,
        over=f"SELECT station, date, {chosen.over} AS value FROM readings WINDOW frame AS ({frame})",
        duckdb=f"SELECT station, date, {chosen.duckdb} AS value FROM readings WINDOW frame AS ({frame})",
        polars=None if rolling is None else _next_rows_in_polars(rolling, rows, partitioned),
    )


def joined_rows(rows: int) -> Query:
    """An average of each row and those after it, over a join with a small table."""
    joined = """(
            SELECT r.station, r.date, r.val, t.region
            FROM readings r JOIN stations t ON t.station = r.station)"""
    over = f"""
        SELECT station, date, AVG(val) OVER (
            PARTITION BY region, station ORDER BY date ROWS BETWEEN CURRENT ROW AND {rows - 1} FOLLOWING
        ) AS value
        FROM {joined}
        """
    return Query(
        title=f"avg, next {rows:,} rows, over a join of two tables",
        windrow=f"""
            SELECT s.station, s.date, AVG(w.val) AS value
            FROM {joined}
            WINDOW BY w AS (
                TYPE SLIDING PARTITION BY region, station ORDER BY date
                START AS s AT sp
                END AT ep WHEN ep - sp = {rows - 1})
            """,
        over=over,
        duckdb=over,
        joins=True,
    )


def _next_rows_in_polars(rolling: Callable[[pl.Expr, int], pl.Expr], rows: int, partitioned: bool) -> Plan:
    # Its windows end at their row, so the rows are turned round.
    value = rolling(pl.col("val").reverse(), rows).reverse()

    def plan(readings: pl.LazyFrame) -> pl.LazyFrame:
        ordered = readings.sort("station", "date") if partitioned else readings.sort("date")
        wanted = value.over("station") if partitioned else value
        return ordered.select("station", "date", value=wanted)

    return plan


def week(*, partitioned: bool = True) -> Query:
    """The paper's figure 11: an average of each row and those of the seven days after it."""
    keys = "PARTITION BY station" if partitioned else ""
    over = f"""
        SELECT station, date,
               AVG(val) OVER (
                   {keys} ORDER BY date RANGE BETWEEN CURRENT ROW AND INTERVAL '7' DAY FOLLOWING
               ) AS value
        FROM readings
        """

    def plan(readings: pl.LazyFrame) -> pl.LazyFrame:
        ordered = readings.sort("station", "date")
        span = ordered.rolling("date", period="7d", offset="0d", closed="both", group_by="station")
        return span.agg(value=pl.col("val").mean())

    return Query(
        title="avg, next week by date" + ("" if partitioned else ", no PARTITION BY"),
        windrow=f"""
            SELECT s.station, s.date, AVG(w.val) AS value
            FROM readings
            WINDOW BY w AS (
                TYPE SLIDING {keys} ORDER BY date
                START AS s
                END NEXT AS n WHEN n.date - s.date > INTERVAL '7' DAY)
            """,
        over=over,
        duckdb=over,
        # There is one station where there is no PARTITION BY.
        polars=plan,
        nested=nested.WEEK if partitioned else None,
    )


WEEK = week()

UNBOUNDED = Query(
    title="unbounded sliding (figure 24)",
    windrow="""
        SELECT s.station, s.date, AVG(w.val) AS value
        FROM readings
        WINDOW BY w AS (
            TYPE SLIDING PARTITION BY station ORDER BY date
            START AS s WHEN s.val < 25
            END NEXT AS n WHEN n.val >= 25)
        """,
    nested=nested.UNBOUNDED,
)

TUMBLING = Query(
    title="unbounded tumbling (figure 25)",
    windrow="""
        SELECT s.station, s.date, AVG(w.val) AS value
        FROM readings
        WINDOW BY w AS (
            TYPE TUMBLING PARTITION BY station ORDER BY date
            START AS s WHEN s.val < 25
            END NEXT AS n WHEN n.val >= 25)
        """,
    nested=nested.TUMBLING,
)

TUMBLING_WEEK = Query(
    title="tumbling, one week (figure 26)",
    windrow="""
        SELECT s.station, s.date, AVG(w.val) AS value
        FROM readings
        WINDOW BY w AS (
            TYPE TUMBLING PARTITION BY station ORDER BY date
            START AS s
            END NEXT AS n WHEN n.date - s.date > INTERVAL '7' DAY)
        """,
)

_CHOSEN = """
    SELECT station, date, {value} AS value
    FROM (
        SELECT *, AVG({measured}) OVER (
            {keys} ORDER BY date ROWS BETWEEN CURRENT ROW AND 19 FOLLOWING) AS average
        FROM {rows})
    WHERE {where}
    """
_CHOSEN_BY_OVER = _CHOSEN.format(
    value="average",
    measured="val",
    keys="PARTITION BY station",
    rows="readings WHERE dataType = 'TMIN'",
    where="TRUE",
)

CHOSEN = Query(
    title="avg, next 20 rows, WHERE on a text column",
    windrow="""
        SELECT s.station, s.date, AVG(w.val) AS value
        FROM readings WHERE dataType = 'TMIN'
        WINDOW BY w AS (
            TYPE SLIDING PARTITION BY station ORDER BY date
            START AS s AT sp
            END AT ep WHEN ep - sp = 19)
        """,
    over=_CHOSEN_BY_OVER,
    duckdb=_CHOSEN_BY_OVER,
)

_COMPUTED = """(
        SELECT station, date, year(date) AS y, val / 10 AS degrees FROM readings WHERE dataType = 'TMIN')"""
_COMPUTED_BY_OVER = _CHOSEN.format(
    value="average",
    measured="degrees",
    keys="PARTITION BY station, y",
    rows=_COMPUTED,
    where="degrees < 2.5",
)

COMPUTED = Query(
    title="avg, next 20 rows, computed columns in WHEN and PARTITION BY, WHERE",
    windrow=f"""
        SELECT s.station, s.date, AVG(w.degrees) AS value
        FROM {_COMPUTED}
        WINDOW BY w AS (
            TYPE SLIDING PARTITION BY station, y ORDER BY date
            START AS s AT sp WHEN s.degrees < 2.5
            END AT ep WHEN ep - sp = 19)
        """,
    over=_COMPUTED_BY_OVER,
    duckdb=_COMPUTED_BY_OVER,
)

_ISLANDS_BY_OVER = """
    SELECT station, MIN(date) AS date, AVG(val) AS value
    FROM (
        SELECT *, SUM(CASE WHEN val >= 25 THEN 1 ELSE 0 END) OVER (
            PARTITION BY station ORDER BY date) AS island
        FROM readings WHERE dataType = 'TMIN')
    WHERE val < 25
    GROUP BY station, island
    """

ISLANDS = Query(
    title="islands below a threshold, WHERE",
    windrow="""
        SELECT s.station, s.date, AVG(w.val) AS value
        FROM readings WHERE dataType = 'TMIN'
        WINDOW BY w AS (
            TYPE TUMBLING PARTITION BY station ORDER BY date
            START AS s WHEN s.val < 25
            END NEXT AS n WHEN n.val >= 25)
        """,
    over=_ISLANDS_BY_OVER,
    duckdb=_ISLANDS_BY_OVER,
)

_LABEL_BY_OVER = """
    SELECT station, date, value
    FROM (
        SELECT station, date, val,
               AVG(val) OVER (
                   PARTITION BY station ORDER BY date ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING
               ) AS value
        FROM readings
    ) AS averages
    WHERE val < 25
    """

LABEL = Query(
    title="LABEL, the row before to the row after (figure 27)",
    windrow="""
        SELECT l.station, l.date, AVG(w.val) AS value
        FROM readings
        WINDOW BY w AS (
            TYPE SLIDING PARTITION BY station ORDER BY date
            LABEL AS l AT lp WHEN l.val < 25
            START AT sp WHEN lp - sp = 1
            END AT ep WHEN ep - lp = 1)
        """,
    over=_LABEL_BY_OVER,
    duckdb=_LABEL_BY_OVER,
    nested=nested.LABEL,
)

_SESSION_BY_OVER = """
    SELECT station, MIN(date) AS date, AVG(val) AS value
    FROM (
        SELECT station, date, val,
               SUM(CASE WHEN fresh THEN 1 ELSE 0 END) OVER (PARTITION BY station ORDER BY date) AS session
        FROM (
            SELECT station, date, val,
                   date > LAG(date) OVER (PARTITION BY station ORDER BY date) + INTERVAL '2' DAY AS fresh
            FROM readings
        ) AS steps
    ) AS sessions
    GROUP BY station, session
    """

SESSION = Query(
    title="session, time-out of two days (figure 28)",
    windrow="""
        SELECT s.station, s.date, AVG(w.val) AS value
        FROM readings
        WINDOW BY w AS (
            TYPE TUMBLING PARTITION BY station ORDER BY date
            START AS s
            END AS e NEXT AS n WHEN n.date - e.date > INTERVAL '2' DAY)
        """,
    over=_SESSION_BY_OVER,
    duckdb=_SESSION_BY_OVER,
    nested=nested.SESSION,
)

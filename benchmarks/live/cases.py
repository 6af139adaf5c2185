"""What is asked, of streams of which a file is a micro-batch: of readings, and of the events of NEXMark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from benchmarks.live import nexmark

__all__ = ["CASES", "EVENTS", "NEXMARK", "Case"]

NEXMARK = "nexmark"
"""What names all cases of NEXMark."""

READINGS = "key STRING, ts TIMESTAMP, value DOUBLE"
EVENTS = MappingProxyType(
    {
        "person": "id BIGINT, name STRING, emailAddress STRING, creditCard STRING, city STRING, state STRING,"
        " dateTime TIMESTAMP, extra STRING",
        "auction": "id BIGINT, itemName STRING, description STRING, initialBid BIGINT, reserve BIGINT,"
        " expires TIMESTAMP, seller BIGINT, category BIGINT, dateTime TIMESTAMP, extra STRING",
        "bid": "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING,"
        " dateTime TIMESTAMP, extra STRING",
    }
)
"""The streams of NEXMark with their columns."""


@dataclass(frozen=True)
class Case:
    """A query in the languages that have it.

    Attributes
    ----------
    title
        What it is.
    windrow
        The query.
    native
        The name of what `benchmarks.live.native` has of it; None if Spark has no such query.
    flink
        Flink SQL over the same names; None if that has no such query.
    streams
        Those that it reads, with their columns.
    rowtime
        Their column of that.
    target
        The least that Windrow's rate is to be in Spark's; None without a target.
    on_executors
        Whether it is run on Spark's executors too.
    """

    title: str
    windrow: str
    native: str | None = None
    flink: str | None = None
    streams: Mapping[str, str] = field(default_factory=lambda: {"readings": READINGS})
    rowtime: str = "ts"
    target: float | None = None
    on_executors: bool = False


def _nexmark(number: int, title: str) -> Case:
    """A query of NEXMark."""
    return Case(
        f"NEXMark {number}: {title}",
        nexmark.ASKED[number],
        f"{NEXMARK}-q{number}" if number in nexmark.NATIVE else None,
        nexmark.FLINK[number],
        {name: EVENTS[name] for name in nexmark.READS[number]},
        "dateTime",
        target=1.5 if number in nexmark.NATIVE else None,
    )


_NEXMARK = {
    0: "every bid",
    1: "every bid in euros",
    2: "bids on some auctions",
    3: "auctions and their sellers in three states",
    4: "average of the highest bids of each category",
    5: "auctions with the most bids of ten seconds",
    6: "average of a seller's last prices",
    7: "highest bids of ten seconds",
    8: "persons who open an auction at once",
    9: "winning bids",
    10: "every bid, with its day and minute",
    11: "sessions of bidders",
    13: "bids with what a table has about them",
    14: "expressions over bids",
    15: "bids, bidders and auctions of a day",
    16: "the same of each channel",
    17: "bids and prices of each auction and day",
    18: "last bid of each bidder on each auction",
    19: "ten highest bids of each auction",
    20: "bids with the auctions of a category",
    21: "channel numbers out of URLs",
    22: "folders out of URLs",
}


CASES: Mapping[str, Case] = MappingProxyType(
    {
        "tumbling": Case(
            "average of each key over each 7 days",
            """
            SELECT ISTREAM(key, MAX(ts) AS latest, AVG(value) AS mean)
            FROM readings [RANGE 7 DAYS SLIDE 7 DAYS] GROUP BY key
            """,
            "tumbling",
            """
            SELECT key, MAX(ts) AS latest, AVG(`value`) AS mean
            FROM TABLE(TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL '7' DAY))
            GROUP BY key, window_start, window_end
            """,
            target=1.5,
            on_executors=True,
        ),
        "five-minutes": Case(
            "average of each key over each 5 minutes",
            """
            SELECT ISTREAM(key, MAX(ts) AS latest, AVG(value) AS mean)
            FROM readings [RANGE 5 MINUTES SLIDE 5 MINUTES] GROUP BY key
            """,
            "five-minutes",
            on_executors=True,
        ),
        "emit-five-minutes": Case(
            "average of each key over each 5 minutes, with EMIT",
            """
            SELECT key, wend, MAX(ts) AS latest, AVG(value) AS mean
            FROM TUMBLE(TABLE readings, DESCRIPTOR(ts), INTERVAL 5 MINUTES)
            GROUP BY key, wend EMIT STREAM AFTER WATERMARK
            """,
            "five-minutes",
            on_executors=True,
        ),
        "rows-20": Case(
            "average of the last 20 readings of a key, at each reading",
            """
            SELECT ISTREAM(key, MAX(ts) AS latest, AVG(value) AS mean)
            FROM readings [PARTITION BY key ROWS 20] GROUP BY key
            """,
            None,
            """
            SELECT key, ts, AVG(`value`) OVER (
                PARTITION BY key ORDER BY ts ROWS BETWEEN 19 PRECEDING AND CURRENT ROW) AS mean
            FROM readings
            """,
            on_executors=True,
        ),
        "predicate": Case(
            "windows that begin above 90 and end 50 below",
            """
            SELECT s.key, s.ts, e.ts AS until, AVG(w.value) AS mean
            FROM readings
            WINDOW BY w AS (
                TYPE SLIDING PARTITION BY key ORDER BY ts
                START AS s WHEN s.value > 90 ONLY END AS e WHEN e.value < s.value - 50)
            """,
            on_executors=True,
        ),
        "runs": Case(
            "runs above 50 and the reading that ends them",
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key
                MEASURES FIRST(a.ts) AS since, b.ts AS until, COUNT(a.value) AS length
                PATTERN (a+ b) DEFINE a AS value > 50, b AS value <= 50)
            """,
            None,
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key ORDER BY ts
                MEASURES FIRST(a.ts) AS since, b.ts AS until, COUNT(a.`value`) AS length
                ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
                PATTERN (a+ b) DEFINE a AS a.`value` > 50, b AS b.`value` <= 50)
            """,
            on_executors=True,
        ),
        "falls": Case(
            "falls and the rise that ends them",
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key
                MEASURES top.ts AS since, up.ts AS until, LAST(down.value) AS low
                PATTERN (top down+ up) DEFINE down AS value < PREV(value), up AS value > PREV(value))
            """,
            None,
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key ORDER BY ts
                MEASURES top.ts AS since, up.ts AS until, LAST(down.`value`) AS low
                ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
                PATTERN (top down+ up)
                DEFINE down AS down.`value` < LAST(down.`value`, 1) OR
                        (LAST(down.`value`, 1) IS NULL AND down.`value` < top.`value`),
                    up AS up.`value` > LAST(down.`value`))
            """,
        ),
        "funnel": Case(
            "three steps within a week",
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key
                MEASURES a.ts AS since, c.ts AS until, c.value AS reached
                PATTERN (a x*? b x*? c) WITHIN INTERVAL 7 DAYS
                DEFINE a AS value < 20, b AS value > 60, c AS value > b.value)
            """,
            None,
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key ORDER BY ts
                MEASURES a.ts AS since, c.ts AS until, c.`value` AS reached
                ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW
                PATTERN (a x*? b y*? c) WITHIN INTERVAL '7' DAY
                DEFINE a AS a.`value` < 20, b AS b.`value` > 60, c AS c.`value` > b.`value`)
            """,
        ),
        "kinds": Case(
            "runs above 80 or below 20 and the reading that ends them",
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key
                MEASURES FIRST(ts) AS since, mild.ts AS until, COUNT(*) AS length
                PATTERN ((high+ | low+) mild)
                DEFINE high AS value > 80, low AS value < 20, mild AS value BETWEEN 20 AND 80)
            """,
        ),
        "nested": Case(
            "runs above 2, in all the ways to divide them by ones and twos",
            """
            SELECT * FROM readings MATCH_RECOGNIZE (
                PARTITION BY key
                MEASURES FIRST(ts) AS since, b.ts AS until, COUNT(*) AS length
                PATTERN ((a | a a)+ b) DEFINE a AS value > 2, b AS value <= 2)
            """,
        ),
        "join": Case(
            "pairs of readings of a key less than a day apart",
            """
            SELECT ISTREAM(r.key, r.ts, r.value, o.ts AS other, o.value AS compared)
            FROM readings [RANGE 1 DAY] AS r, others [RANGE 1 DAY] AS o WHERE r.key = o.key
            """,
            "join",
            """
            SELECT r.key, r.ts, r.`value`, CAST(o.ts AS TIMESTAMP(3)) AS other, o.`value` AS compared
            FROM readings AS r, others AS o
            WHERE r.key = o.key AND o.ts > r.ts - INTERVAL '1' DAY AND o.ts < r.ts + INTERVAL '1' DAY
            """,
            streams={"readings": READINGS, "others": READINGS},
            target=1.5,
            on_executors=True,
        ),
        **{f"{NEXMARK}-q{number}": _nexmark(number, title) for number, title in _NEXMARK.items()},
    }
)
"""The cases by name."""

"""The same questions for DuckDB, over the same events: an answer of its own to hold ours to.

Windows of time are joined with lists of windows, sessions are found with `lag`, and where our queries count,
these collect: so a mistake in one is hardly in the other.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from examples.nexmark.generate import Events

__all__ = ["answers"]

_OPEN = """
    FROM auction a, bid b
    WHERE a.id = b.auction AND b.dateTime >= a.dateTime AND b.dateTime <= a.expires
    """
_RANKS = ("price < 10000", "price >= 10000 AND price < 1000000", "price >= 1000000")
_RANKED = ", ".join(f"sum(CASE WHEN {condition} THEN 1 ELSE 0 END)" for condition in _RANKS)


def _reported() -> str:
    parts = ["count(*)", _RANKED]
    for of in ("bidder", "auction"):
        parts.append(f"len(list_distinct(list({of})))")
        parts += [f"coalesce(len(list_distinct(list({of}) FILTER ({condition}))), 0)" for condition in _RANKS]
    return ", ".join(parts)


_SECONDS = "epoch_ms(dateTime) // 1000"


def _windows(size: int, hop: int) -> str:
    """The windows that bids may be in, by their begin in seconds."""
    least = f"(SELECT min({_SECONDS}) FROM bid) // {hop} * {hop} - {size}"
    return f"(SELECT unnest(range({least}, (SELECT max({_SECONDS}) FROM bid) + {hop}, {hop})) AS since)"


_MODELS = {
    0: "SELECT auction, bidder, price, dateTime, extra FROM bid",
    1: "SELECT auction, bidder, price * 908 / 1000, dateTime, extra FROM bid",
    2: "SELECT auction, price FROM bid WHERE auction IN (SELECT unnest(range(0, 1000000, 123)))",
    3: """
        SELECT name, city, state, a.id FROM person p, auction a
        WHERE p.id = a.seller AND a.category = 10 AND (state = 'OR' OR state = 'ID' OR state = 'CA')
        """,
    4: f"""
        WITH sold AS (
            SELECT a.id, any_value(a.category) AS category, list(b.price) AS prices {_OPEN} GROUP BY a.id)
        SELECT category, sum(list_max(prices)) / count(*) FROM sold GROUP BY category
        """,
    5: f"""
        WITH counted AS (
            SELECT since, auction, count(*) AS num
            FROM bid, {_windows(10, 2)} WHERE {_SECONDS} >= since AND {_SECONDS} < since + 10 GROUP BY ALL)
        SELECT make_timestamptz(since * 1000000), make_timestamptz((since + 10) * 1000000), auction, num
        FROM counted c WHERE num >= ALL (SELECT num FROM counted d WHERE d.since = c.since)
        """,
    6: f"""
        WITH best AS (
            SELECT a.id, any_value(a.seller) AS seller, max((b.price, -epoch_ms(b.dateTime))) AS top
            {_OPEN} GROUP BY a.id),
        ranked AS (SELECT seller, top[1] AS price, -top[2] AS at FROM best)
        SELECT seller, (SELECT avg(price) FROM (
            SELECT price FROM ranked o
            WHERE o.seller = r.seller AND o.at <= r.at ORDER BY o.at DESC LIMIT 11))
        FROM ranked r
        """,
    7: """
        SELECT auction, price, bidder, dateTime, extra FROM bid b
        WHERE NOT EXISTS (SELECT 1 FROM bid o WHERE o.price > b.price
            AND epoch_ms(o.dateTime) // 10000 = epoch_ms(b.dateTime) // 10000)
        """,
    8: """
        SELECT DISTINCT p.id, name, make_timestamptz(epoch_ms(p.dateTime) // 10000 * 10000000)
        FROM person p SEMI JOIN auction a
        ON p.id = a.seller AND epoch_ms(p.dateTime) // 10000 = epoch_ms(a.dateTime) // 10000
        """,
    9: f"""
        SELECT DISTINCT ON (a.id) a.id, itemName, description, initialBid, reserve, a.dateTime, expires,
            seller, category, auction, bidder, price, b.dateTime {_OPEN} ORDER BY a.id, price DESC, b.dateTime
        """,
    10: """
        SELECT auction, bidder, price, dateTime, extra, strftime(dateTime, '%Y-%m-%d'),
            strftime(dateTime, '%H:%M')
        FROM bid
        """,
    11: """
        WITH marked AS (
            SELECT bidder, dateTime,
                coalesce(dateTime - lag(dateTime) OVER w > INTERVAL 10 SECONDS, true)::INT AS first
            FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)),
        numbered AS (SELECT *, sum(first) OVER (PARTITION BY bidder ORDER BY dateTime) AS number FROM marked)
        SELECT bidder, count(*), min(dateTime), max(dateTime) + INTERVAL 10 SECONDS
        FROM numbered GROUP BY bidder, number
        """,
    12: """
        SELECT bidder, count(*), make_timestamptz(epoch_ms(arrived) // 10000 * 10000000) AS since,
            make_timestamptz(epoch_ms(arrived) // 10000 * 10000000 + 10000000)
        FROM bid GROUP BY bidder, since, 4
        """,
    13: """
        SELECT auction, bidder, price, dateTime, value
        FROM bid, side_input WHERE key = auction - auction // 100 * 100
        """,
    14: """
        SELECT auction, bidder, price * 908 / 1000, if(hour(dateTime) >= 8 AND hour(dateTime) < 19, 'dayTime',
            if(hour(dateTime) IN (7, 19), 'otherTime', 'nightTime')), dateTime, extra,
            len(list_filter(string_split(extra, ''), lambda x: x = 'c'))
        FROM bid WHERE price * 908 > 1000000000 AND price * 908 < 50000000000
        """,
    15: f"SELECT dateTime::DATE AS day, {_reported()} FROM bid GROUP BY day",
    16: f"""
        SELECT channel, dateTime::DATE AS day, max(strftime(dateTime, '%H:%M')), {_reported()}
        FROM bid GROUP BY channel, day
        """,
    17: f"""
        SELECT auction, dateTime::DATE AS day, count(*),
            {_RANKED},
            list_min(list(price)), list_max(list(price)), sum(price) / count(*), list_sum(list(price))
        FROM bid GROUP BY auction, day
        """,
    18: """
        SELECT auction, bidder, price, channel, url, dateTime, extra FROM bid
        WHERE (auction, bidder, dateTime) IN (
            SELECT (auction, bidder, max(dateTime)) FROM bid GROUP BY auction, bidder)
        """,
    19: """
        SELECT auction, bidder, price, channel, url, dateTime, extra, 1 + (
            SELECT count(*) FROM bid o WHERE o.auction = b.auction
            AND (o.price > b.price OR (o.price = b.price AND o.dateTime < b.dateTime))) AS place
        FROM bid b WHERE place <= 10
        """,
    20: """
        SELECT auction, bidder, price, channel, url, b.dateTime, itemName, description, initialBid, reserve,
            a.dateTime, expires, seller, category
        FROM auction a, bid b WHERE a.id = b.auction AND category = 10
        """,
    21: """
        SELECT auction, bidder, price, channel, if(channel IN ('Apple', 'Google', 'Facebook', 'Baidu'),
            (list_position(['Apple', 'Google', 'Facebook', 'Baidu'], channel) - 1)::VARCHAR,
            string_split(url, 'channel_id=')[2])
        FROM bid WHERE channel IN ('Apple', 'Google', 'Facebook', 'Baidu') OR contains(url, 'channel_id=')
        """,
    22: """
        SELECT auction, bidder, price, channel, string_split(url, '/')[4], string_split(url, '/')[5],
            string_split(url, '/')[6]
        FROM bid
        """,
}


def answers(events: Events, side_input: pa.Table) -> dict[int, list[tuple[Any, ...]]]:
    """The rows that DuckDB gives of each query, in the order of their columns."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, table in events.tables().items():
            connection.register(name, table.filter(pc.is_valid(table["dateTime"])))
        connection.register("side_input", side_input)
        return {number: connection.execute(text).fetchall() for number, text in _MODELS.items()}

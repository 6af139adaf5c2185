"""The queries of NEXMark in the languages of other systems, where these differ from ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from examples.nexmark.queries import as_stream, query

__all__ = ["ASKED", "FLINK", "NATIVE", "READS", "UPDATING"]

READS: Mapping[int, tuple[str, ...]] = MappingProxyType(
    {
        **dict.fromkeys((0, 1, 2, 5, 7, 10, 11, 13, 14, 15, 16, 17, 18, 19, 21, 22), ("bid",)),
        **dict.fromkeys((4, 6, 9, 20), ("auction", "bid")),
        3: ("auction", "person"),
        8: ("person", "auction"),
    }
)
"""The streams of each query. The twelfth, which is of processing time, is left out."""

_ONCE = (0, 1, 2, 3, 10, 14, 20, 21, 22)
_COMPLETE = (5, 7, 8, 11)

ASKED: Mapping[int, str] = MappingProxyType(
    {
        number: as_stream(number)
        if number in _ONCE
        else f"{query(number)} EMIT STREAM{' AFTER WATERMARK' if number in _COMPLETE else ''}"
        for number in READS
    }
)
"""As Windrow is asked: rows once, windows when they are complete, and changes of all else."""


def _flink(number: int) -> str:
    """Our text with the spellings of Flink's."""
    text = re.sub(r"\b(dateTime|final|day|minute)\b", r"`\1`", query(number))
    return re.sub(r"INTERVAL (\d+) SECONDS", r"INTERVAL '\1' SECOND", text)


_DAY = "DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')"
_HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"


def _tumble(stream: str) -> str:
    return f"TABLE(TUMBLE(TABLE {stream}, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))"


_WRITTEN = {
    2: "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    5: f"""
        SELECT c.window_start, c.window_end, c.auction, c.num
        FROM (SELECT window_start, window_end, auction, COUNT(*) AS num FROM {_HOP}
              GROUP BY window_start, window_end, auction) AS c
        JOIN (SELECT MAX(n.num) AS most, n.window_start, n.window_end
              FROM (SELECT window_start, window_end, auction, COUNT(*) AS num FROM {_HOP}
                    GROUP BY window_start, window_end, auction) AS n
              GROUP BY n.window_start, n.window_end) AS m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num = m.most
        """,
    7: f"""
        SELECT b.auction, b.price, b.bidder, b.`dateTime`, b.extra
        FROM bid AS b JOIN (
            SELECT MAX(price) AS most, window_start, window_end FROM {_tumble("bid")}
            GROUP BY window_start, window_end) AS m
        ON b.price = m.most AND b.`dateTime` >= m.window_start AND b.`dateTime` < m.window_end
        """,
    8: f"""
        SELECT p.id, p.name, p.window_start
        FROM (SELECT id, name, window_start, window_end FROM {_tumble("person")}
              GROUP BY id, name, window_start, window_end) AS p
        JOIN (SELECT seller, window_start, window_end FROM {_tumble("auction")}
              GROUP BY seller, window_start, window_end) AS a
        ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
        """,
    11: """
        SELECT bidder, COUNT(*) AS bids, window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
        """,
    10: f"""
        SELECT auction, bidder, price, `dateTime`, extra, {_DAY} AS `day`,
            DATE_FORMAT(`dateTime`, 'HH:mm') AS `minute`
        FROM bid
        """,
    14: """
        SELECT auction, bidder, 0.908 * price AS price,
            CASE WHEN HOUR(`dateTime`) BETWEEN 8 AND 18 THEN 'dayTime'
                 WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
                 ELSE 'otherTime' END AS bidTimeType,
            `dateTime`, extra, CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
        FROM bid
        WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
        """,
    22: """
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1,
            SPLIT_INDEX(url, '/', 4) AS dir2, SPLIT_INDEX(url, '/', 5) AS dir3
        FROM bid
        """,
}

FLINK: Mapping[int, str | None] = MappingProxyType(
    {
        **{number: _flink(number) for number in READS},
        **{number: query(number).replace("to_date(dateTime)", _DAY).replace("date_format(dateTime,",
           "DATE_FORMAT(`dateTime`,").replace(" AS day", " AS `day`").replace(" AS minute", " AS `minute`")
           for number in (15, 16, 17)},
        **_WRITTEN,
        # of a frame over rows that are taken back Flink has nothing; its table has no other file
        6: None,
        13: None,
    }
)  # fmt: skip
"""In Flink SQL; None where it has no such query."""


def _views(number: int, frames: tuple[DataFrame, ...]) -> DataFrame:
    for name, frame in zip(READS[number], frames, strict=True):
        frame.createOrReplaceTempView(name)
    return frames[0].sparkSession.sql(query(number))


def _same(number: int) -> Callable[..., DataFrame]:
    return lambda *frames: _views(number, frames)


def _sessions(bid: DataFrame) -> DataFrame:
    timed = bid.withWatermark("dateTime", "0 seconds")
    return timed.groupBy("bidder", F.session_window("dateTime", "10 seconds")).count()


def _new_users(person: DataFrame, auction: DataFrame) -> DataFrame:
    window = F.window("dateTime", "10 seconds").alias("window")
    persons = person.withWatermark("dateTime", "0 seconds").groupBy("id", "name", window).count()
    sellers = auction.withWatermark("dateTime", "0 seconds").groupBy("seller", window).count()
    joined = persons.alias("p").join(sellers.alias("a"), F.expr("p.id = a.seller AND p.window = a.window"))
    return joined.select("p.id", "p.name", F.col("p.window.start").alias("wstart"))


NATIVE: Mapping[int, Callable[..., DataFrame]] = MappingProxyType(
    {**{number: _same(number) for number in (*_ONCE, 13, 17)}, 8: _new_users, 11: _sessions}
)
"""As Spark Structured Streaming has them: each is given the query's streams."""

UPDATING = (17,)
"""Those of which Spark gives groups whenever they change."""

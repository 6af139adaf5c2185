"""Live queries over streams whose rowtimes have several types and units, on the scale of recorded ones."""

from __future__ import annotations

import datetime
import random
from collections import Counter

import pyarrow as pa
import pytest

from tests.live.queries.test_named import opened
from tests.live.stepping import in_micro_batches, total
from tests.spark.ticks import refused
from windrow.streams import NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")

DAY = 86_400
KINDS = {
    "seconds": (pa.int64(), "seconds", lambda at: at),
    "millis": (pa.int64(), "milliseconds", lambda at: at * 1000),
    "zoned": (pa.timestamp("us", "UTC"), None, lambda at: datetime.datetime.fromtimestamp(at, datetime.UTC)),
    "local": (
        pa.timestamp("us"),
        None,
        lambda at: datetime.datetime.fromtimestamp(at, datetime.UTC).replace(tzinfo=None),
    ),
    "days": (pa.date32(), None, lambda at: datetime.date(1970, 1, 1) + datetime.timedelta(at // DAY)),
}
JOIN = """
    SELECT a.k, COUNT(*) AS n, MAX(b.v) AS m
    FROM {} [RANGE {}] a JOIN {} [RANGE {}] b ON a.k = b.k GROUP BY a.k
"""


def stream_of(folder, name, at):
    """A stream with rowtimes of a kind, in whose log are rows of random instants."""
    kind, unit, convert = KINDS[name]
    schema = pa.schema([("ts", kind), ("k", pa.int64()), ("v", pa.int64())])
    options = {} if unit is None else {"unit": unit}
    made = NamedStream.create(folder / name, schema, "ts", ordering=Ordering.lagging(at["lag"]), **options)
    chance = random.Random(name)
    with made.producer("a") as producer:
        for _ in range(4):
            rows = [
                (chance.randrange(*at["range"]), chance.randrange(2), chance.randrange(5)) for _ in range(3)
            ]
            producer.insert([{"ts": convert(when), "k": k, "v": v} for when, k, v in rows])
        producer.finish()
    return made


@pytest.mark.parametrize(
    ("names", "query", "span"),
    [
        (("seconds", "zoned"), JOIN.format("seconds", "5 SECONDS", "zoned", "3 SECONDS"), 20),
        (
            ("millis", "local"),
            JOIN.format("millis", "5 SECONDS", "local", "ROWS 2").replace("RANGE ROWS", "ROWS"),
            20,
        ),
        (("days", "local"), JOIN.format("days", "2 DAYS", "local", "1 DAY"), 9 * DAY),
        (("days", "seconds"), JOIN.format("days", "2 DAYS", "seconds", "1 DAY"), 9 * DAY),
        (("seconds", "zoned"), "SELECT STREAM s.k, z.v FROM seconds AS s, zoned [RANGE 4 SECONDS] AS z", 20),
    ],
)
def test_instants_are_those_of_the_recorded_query_wherever_it_is_cut_and_killed(
    spark, tmp_path, names, query, span
):
    at = {"range": (0, span), "lag": 2}
    streams = {name: stream_of(tmp_path, name, at) for name in names}
    session, frames = opened(spark.newSession(), streams)
    relation = session.sql(query)
    envelope = "delta" if "STREAM" in query else "diff"
    tables, _ = in_micro_batches(relation._live, tmp_path, [0.3, 0.6], {1}, frames, envelope)
    if envelope == "delta":
        live = Counter(tuple(row.values()) for table in tables for row in table.to_pylist())
        expected = Counter(tuple(row.values()) for row in relation.to_arrow().to_pylist())
    else:
        live, expected = total(tables), total([relation.changelog("diff").df.toArrow()])
    assert len(expected) > 3
    assert +live == +expected


def test_types_whose_order_depends_on_the_time_zone_are_refused(spark, tmp_path):
    at = {"range": (0, 9), "lag": 2}
    session, _ = opened(
        spark.newSession(), {name: stream_of(tmp_path, name, at) for name in ("local", "zoned")}
    )
    query = JOIN.format("local", "5 SECONDS", "zoned", "3 SECONDS")
    assert refused(session, query) == ("MIXED_ROWTIMES", "zoned [RANGE 3 SECONDS]")

"""The listings of the paper on one SQL over a stream that goes on: running queries give what they print."""

from __future__ import annotations

import datetime
import re
from collections import Counter

import pyarrow as pa
import pytest

from tests.conformance import test_one_sql_reference as reference
from tests.conformance.test_one_sql_reference import ANSWERS, ENTRIES, HIGHEST, TIME, instant, listed, shown
from windrow import Memory, Session
from windrow.streams import NamedStream, Ordering

pytestmark = reference.pytestmark

BIDS = pa.schema([("bidtime", pa.timestamp("us", "UTC")), ("price", pa.int32()), ("item", pa.string())])
TUMBLE = "TUMBLE(TABLE bid, DESCRIPTOR(bidtime), INTERVAL 10 MINUTES)"
HOP = "HOP(TABLE bid, DESCRIPTOR(bidtime), INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)"
QUERIES = {
    "changes": f"{HIGHEST} EMIT STREAM",
    "complete": f"{HIGHEST} EMIT STREAM AFTER WATERMARK",
    "gathered": f"{HIGHEST} EMIT STREAM AFTER DELAY INTERVAL 6 MINUTES",
    "rows": f"SELECT wstart, wend, bidtime, price, item FROM {TUMBLE} EMIT STREAM AS diff",
    "sums": f"SELECT wend, SUM(price) FROM {TUMBLE} GROUP BY wend EMIT STREAM AS diff",
    "hops": f"SELECT item, wstart FROM {HOP} EMIT STREAM AS diff",
    "sums of hops": f"SELECT wend, SUM(price) FROM {HOP} GROUP BY wend EMIT STREAM AS diff",
}


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """The log of the paper as that of a named stream, entries with the processing times of the paper."""
    stream = NamedStream.create(
        tmp_path_factory.mktemp("bid") / "bid", BIDS, "bidtime", ordering=Ordering.unordered()
    )
    with pytest.MonkeyPatch.context() as patch:

        def at(time: datetime.datetime) -> None:
            now = int(time.timestamp() * 1_000_000) * 1000
            patch.setattr("windrow.streams.producer.time.time_ns", lambda: now)

        at(instant("8:06"))
        producer = stream.producer("paper")
        for ptime, kind, told in ENTRIES:
            at(instant(ptime))
            if kind == "watermark":
                producer.watermark(instant(told))
            else:
                bidtime, price, item = (part.strip() for part in told.split(","))
                producer.insert({"bidtime": instant(bidtime), "price": int(price), "item": item})
        at(instant("8:22"))
        producer.close()
    return stream


@pytest.fixture
def session(spark, stream):
    session = Session(spark)
    session.stream("bid", stream)
    yield session
    spark.catalog.dropTempView("bid")


def given(relation, path) -> list[tuple]:
    """What a query gives that runs over all of the log, in the order of time."""
    sink = Memory()
    query = relation.start(sink, checkpoint=path, trigger={"availableNow": True})
    query.await_termination()
    query.stop()
    tables = [*sink.batches.values()]
    order = [(name, "ascending") for name in ("ptime", "ver", "_at") if name in tables[0].column_names]
    return [tuple(row.values()) for row in pa.concat_tables(tables).sort_by(order).to_pylist()]


def told(rows) -> list[str]:
    return [" ".join(map(shown, row)) for row in rows]


def table(rows, ptime: str) -> list[str]:
    """The rows that are there at a processing time, by changes with undo, ptime and ver at their ends."""
    there: Counter = Counter()
    for *row, undo, at, _ in rows:
        if at <= instant(ptime):
            there[" ".join(map(shown, row))] += -1 if undo else 1
    return sorted(there.elements())


def folded(rows) -> list[str]:
    """The rows that are there in the end, by changes with a count and the time at their ends."""
    there: Counter = Counter()
    for *row, diff, _ in rows:
        there[" ".join(map(shown, row))] += diff
    return sorted(there.elements())


@pytest.mark.long
def test_listings_of_tables_and_changes(session, tmp_path):
    found = {name: given(session.sql(query), tmp_path / name) for name, query in QUERIES.items()}
    # what is recorded of it says the same
    relation = session.sql(QUERIES["gathered"])
    assert reference.rows(relation) == listed(14)
    for name, number in (("changes", 9), ("complete", 13), ("gathered", 14)):
        assert told(found[name]) == listed(number), name
    assert table(found["changes"], "8:21") == sorted(listed(3))
    assert table(found["changes"], TIME.findall(ANSWERS[4][0])[0]) == sorted(listed(4))
    for number in (10, 11, 12):
        assert table(found["complete"], TIME.findall(ANSWERS[number][0])[0]) == sorted(listed(number))
    printed = [f"{part.split(': ')[0]} {bid}" for part in listed(5) for bid in re.findall(r"\((.*?)\)", part)]
    assert folded(found["rows"]) == sorted(printed)
    begins = [
        f"{item} {begin}"
        for part in listed(7)
        for item, both in [part.split(": ")[-1].split()[:2]]
        for begin in both.split("/")
    ]
    assert folded(found["hops"]) == sorted(begins)
    for name, number in (("sums", 6), ("sums of hops", 8)):
        assert folded(found[name]) == sorted(part.replace(" → ", " ") for part in listed(number))

"""The listings of the paper on one SQL, read out of their text: what they print is what Windrow answers."""

from __future__ import annotations

import datetime
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from windrow import Session

SHARED = Path(os.environ.get("WINDROW_SHARED", Path(__file__).parents[3] / "shared"))
LISTINGS = SHARED / "reference" / "one-sql-listings.md"
SEMANTICS = SHARED / "design" / "semantics.md"

pytestmark = [
    pytest.mark.skipif(not LISTINGS.exists(), reason="the text of the listings is not here"),
    pytest.mark.usefixtures("interpreted"),
]

TEXT = LISTINGS.read_text(encoding="utf-8") if LISTINGS.exists() else ""
ANSWERS = {
    int(number): (form.strip(), answer.strip())
    for number, form, answer in re.findall(r"^\| (\d+) \| ([^|]*) \| ([^|]*) \|$", TEXT, re.MULTILINE)
}
ENTRIES = re.findall(r"^\| ([\d:]+) \| (watermark|bid) ([^|]*) \|$", TEXT, re.MULTILINE)
INNER = (re.findall(r"`(SELECT MAX\(price\).*?GROUP BY wend)`", TEXT, re.DOTALL) or [""])[0]
HIGHEST = f"""
    SELECT wstart, wend, bidtime, price, item
    FROM Bid JOIN ({INNER}) ON price = maxPrice AND bidtime >= wstart AND bidtime < wend
"""
TIME = re.compile(r"\d{1,2}:\d\d")


def instant(text: str) -> datetime.datetime:
    hour, minute = map(int, text.split(":"))
    return datetime.datetime(2020, 1, 1, hour, minute, tzinfo=datetime.UTC)


def shown(value: object) -> str:
    if isinstance(value, datetime.datetime):
        return f"{value.hour}:{value.minute:02}"
    return {True: "undo", False: "–"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def rows(relation) -> list[str]:
    """As the text writes them: the columns with spaces between."""
    return [" ".join(map(shown, row)) for row in relation.collect()]


def listed(number: int) -> list[str]:
    return [] if ANSWERS[number][1] == "empty" else [part.strip() for part in ANSWERS[number][1].split("·")]


def test_all_listings_are_here():
    assert sorted(ANSWERS) == list(range(3, 15))
    assert len(ENTRIES) == 10


@pytest.fixture(params=["batch", pytest.param("reference", marks=pytest.mark.sampled)])
def session(spark, request) -> Iterator[Session]:
    data = []
    for ptime, kind, told in ENTRIES:
        parts = [part.strip() for part in told.split(",")]
        bid = (instant(parts[0]), int(parts[1]), parts[2], None) if kind == "bid" else None
        data.append((instant(ptime), *(bid or (None, None, None, instant(told)))))
    log = spark.createDataFrame(
        data, "at timestamp, bidtime timestamp, price int, item string, upto timestamp"
    )
    session = Session(spark, execution=request.param)
    session.register("bid_log", log)
    session.sql("""
        CREATE OR REPLACE STREAM Bid (
            ROWTIME bidtime TIMESTAMP, price INT, item STRING, PTIME at TIMESTAMP, WATERMARK upto TIMESTAMP
        ) FROM bid_log
    """)
    yield session
    for name in ("Bid", "bid_log"):
        spark.catalog.dropTempView(name)


def test_tables(session):
    """Listings 3 and 4: the table as of now, and as of a processing time."""
    relation = session.sql(HIGHEST)
    assert sorted(rows(relation)) == sorted(listed(3))
    at = TIME.findall(ANSWERS[4][0])[0]
    assert sorted(rows(relation.at(ptime=instant(at)))) == sorted(listed(4))
    as_of = session.sql(f"{HIGHEST} AS OF SYSTEM TIME TIMESTAMP '2020-01-01 {at}'")
    assert sorted(rows(as_of)) == sorted(listed(4))


def test_windows(session):
    """Listings 5 to 8: the rows with their windows, and sums of them."""
    tumble = "Tumble(data => TABLE(Bid), timecol => DESCRIPTOR(bidtime), dur => INTERVAL '10' MINUTE)"
    hop = tumble.replace("Tumble", "Hop").replace("MINUTE)", "MINUTE, hopsize => INTERVAL '5' MINUTE)")
    printed = [f"{part.split(': ')[0]} {bid}" for part in listed(5) for bid in re.findall(r"\((.*?)\)", part)]
    found = rows(session.sql(f"SELECT wstart, wend, bidtime, price, item FROM {tumble}"))
    assert sorted(found) == sorted(printed)
    begins = [
        f"{item} {begin}"
        for part in listed(7)
        for item, both in [part.split(": ")[-1].split()[:2]]
        for begin in both.split("/")
    ]
    assert sorted(rows(session.sql(f"SELECT item, wstart FROM {hop}"))) == sorted(begins)
    for number, function in ((6, tumble), (8, hop)):
        sums = rows(session.sql(f"SELECT wend, SUM(price) FROM {function} GROUP BY wend"))
        assert sorted(sums) == sorted(part.replace(" → ", " ") for part in listed(number))


def test_complete_tables(session):
    """Listings 10 to 12: only what is complete."""
    relation = session.sql(f"{HIGHEST} EMIT AFTER WATERMARK")
    for number in (10, 11, 12):
        at = TIME.findall(ANSWERS[number][0])[0]
        assert sorted(rows(relation.at(ptime=instant(at)))) == sorted(listed(number)), number
    assert sorted(rows(relation)) == sorted(listed(12))


STREAMS = {
    9: "EMIT STREAM",
    13: "EMIT STREAM AFTER WATERMARK",
    14: "EMIT STREAM AFTER DELAY INTERVAL 6 MINUTES",
}


@pytest.mark.parametrize("number", STREAMS)
def test_streams(session, number):
    """Listings 9, 13 and 14: the changes, in their order."""
    relation = session.sql(f"{HIGHEST} {STREAMS[number]}")
    assert relation.df.columns[-3:] == ["undo", "ptime", "ver"]
    assert rows(relation) == listed(number)


def test_early_on_time_and_late(session):
    """The case that the semantics add."""
    (told,) = re.findall(r"AFTER DELAY 6 minutes AND AFTER WATERMARK: (.*?)\. Moving", SEMANTICS.read_text())
    printed = []
    for part in told.split(";"):
        what, at = part.strip().rsplit(" at ", 1)
        for word in what.split(" and "):
            printed.append((word.removeprefix("undo "), "undo" in word, at.strip()))
    clause = "EMIT STREAM AFTER DELAY INTERVAL 6 MINUTES AND AFTER WATERMARK"
    found = session.sql(f"{HIGHEST} {clause}").collect()
    assert [(row["item"], row["undo"], shown(row["ptime"])) for row in found] == printed


@pytest.mark.parametrize("session", ["batch"], indirect=True)
def test_the_cql_form_gives_the_same_bids(session):
    (query,) = re.findall(r"`(SELECT RSTREAM.*?)`", TEXT, re.DOTALL)
    found = [row[1:] for row in session.sql(" ".join(query.split())).collect()]
    assert [" ".join(map(shown, row)) for row in found] == [" ".join(row.split()[3:]) for row in listed(3)]

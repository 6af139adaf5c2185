"""NEXMark: the answers of all queries are those of DuckDB, over recorded logs and live."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from examples.nexmark.generate import events
from examples.nexmark.model import answers
from examples.nexmark.queries import NUMBERS, as_stream, query, recorded, side_input
from windrow import AnalysisError, Session
from windrow.testing import playing

PAGE = Path(__file__).parents[3] / "docs" / "streams" / "nexmark.md"
EVENTS = events(2000, rate=100, disorder=3, in_flight=10, each=9)

COMPLETE = (7, 11)
"""Queries of windows that are told when these are complete."""


def seen(value):
    """A value with what two systems may tell differently taken away."""
    if isinstance(value, Decimal | float):
        return round(float(value), 4)
    return value.astimezone(datetime.UTC) if isinstance(value, datetime.datetime) else value


@pytest.fixture(scope="module")
def expected():
    found = answers(EVENTS, side_input())
    return {number: Counter(tuple(map(seen, row)) for row in rows) for number, rows in found.items()}


@pytest.fixture(scope="module")
def session(spark):
    session = Session(spark)
    recorded(session, EVENTS)
    yield session
    for name in ("person", "auction", "bid", "side_input"):
        spark.catalog.dropTempView(name)


def told(session, text):
    """The rows that changes add up to, and how many were taken back."""
    found, undone = Counter(), 0
    for row in session.sql(text).to_arrow().to_pylist():
        *values, diff, _ = row.values()
        found[tuple(map(seen, values))] += diff
        undone += diff < 0
    return found, undone


@pytest.mark.sampled
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.usefixtures("interpreted")
def test_the_changes_add_up_to_the_answer_of_duckdb(session, expected, number):
    assert expected[number]
    how = "AFTER WATERMARK" if number in COMPLETE else ""
    found, undone = told(session, f"{query(number)} EMIT STREAM AS diff {how}")
    assert +found == expected[number]
    assert min(found.values()) >= 0
    if number in COMPLETE:
        assert not undone


@pytest.fixture(scope="module")
def live(spark, tmp_path_factory):
    """The same streams, whose entries are played."""
    session = Session(spark)
    session.register("side_input", side_input())
    folder = tmp_path_factory.mktemp("arriving")
    for name, table in EVENTS.tables().items():
        (folder / name).mkdir()
        schema = spark.createDataFrame(table.slice(0, 1)).schema
        arriving = spark.readStream.schema(schema).parquet(str(folder / name))
        session.stream(name, arriving, rowtime="dateTime", bound="upto")
    return session


def played(live, text, folder):
    """The rows that a query gives of two micro-batches, with kills in between, without times of ours."""
    tables = EVENTS.tables()

    def frames(low, high):
        def made(steps):
            found = {}
            for _, name, stream in steps.streams():
                first, last = (round(edge * tables[name].num_rows) for edge in (low, high))
                part = tables[name].slice(first, last - first)
                found[name] = live.spark.createDataFrame(part).select(*stream.live.columns)
            return found

        return made

    return playing.in_micro_batches(live.sql(text)._live, folder, [frames(0, 0.6), frames(0.6, 1)], {0})


@pytest.mark.usefixtures("interpreted")
def test_the_page_says_what_is_kept_live(live):
    shown = re.findall(r"^\| \[(\d+)\]\(#query-\d+\) .+? \| (.+?) \|", PAGE.read_text(), re.MULTILINE)
    assert [int(number) for number, _ in shown] == list(NUMBERS)
    for number in (0, 3, 11, 15, 18):  # for each reason one
        assert shown[number][1] == live.sql(f"{query(number)} EMIT STREAM")._live.retains


# 5, 7, 8 and 11 are of windows, which time ends
@pytest.mark.sampled
@pytest.mark.parametrize("number", [0, 1, 2, 3, 5, 7, 8, 10, 11, 14, 20, 21, 22])
@pytest.mark.usefixtures("interpreted")
def test_rows_are_given_live_once(live, expected, tmp_path, number):
    rows = played(live, as_stream(number), tmp_path).rows
    count = len(next(iter(expected[number])))  # of columns; rows of a stream may begin with their rowtime
    assert Counter(tuple(map(seen, list(row.values())[-count:])) for row in rows) == expected[number]


@pytest.mark.parametrize("number", NUMBERS)
def test_the_page_says_of_which_the_watermark_tells(session, number):
    try:
        session.sql(f"{query(number)} EMIT AFTER WATERMARK")
        found = "yes"
    except AnalysisError as error:
        found = f"`{error.condition}`"
    told = re.search(rf"^\| \[{number}\]\([^|]*\|[^|]*\| ([^|]*) \|", PAGE.read_text(), re.MULTILINE)
    assert told is not None
    assert told[1] == found

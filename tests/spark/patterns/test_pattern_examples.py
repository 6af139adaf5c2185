"""The scripts of examples/patterns find what loops over their rows find."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import groupby
from pathlib import Path

import windrow

SCRIPTS = Path(__file__).parents[3] / "examples" / "patterns"


def run(spark, name: str, view: str) -> tuple[list[list], list[tuple]]:
    """The rows of the view by partition, in order, and what the script finds."""
    session = windrow.Session(spark)
    found = session.script((SCRIPTS / f"{name}.sql").read_text(encoding="utf-8"))[-1].collect()
    rows = sorted(map(tuple, session.table(view).collect()))
    return [list(group) for _, group in groupby(rows, key=lambda row: row[0])], [tuple(row) for row in found]


def test_fraud(spark):
    cards, found = run(spark, "fraud", "charges")
    assert found == [row for rows in cards for row in frauds(rows)]
    assert found


def frauds(rows: list) -> Iterator[tuple]:
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end][2] < 50:
            end += 1
        in_time = end < len(rows) and rows[end][1] - rows[at][1] < timedelta(minutes=10)
        if end - at >= 2 and in_time and rows[end][2] > 500:
            yield rows[at][0], end - at, rows[end][1], rows[end][2]
            at = end
        at += 1


def test_sessions(spark):
    users, found = run(spark, "sessions", "clicks")
    assert found == [row for rows in users for row in orders(rows)]
    assert found


def orders(rows: list) -> Iterator[tuple]:
    begin = 0
    for at, (user, time, page) in enumerate(rows):
        pause = at > begin and time - rows[at - 1][1] > timedelta(minutes=30)
        if pause:
            begin = at
        if page != "order":
            continue
        views = sum(row[2] == "view" for row in rows[begin:at])
        if views >= 2:
            yield user, rows[begin][1], time - rows[begin][1], views
        begin = at + 1


def test_faults(spark):
    machines, found = run(spark, "faults", "readings")
    assert found == [row for rows in machines for row in stops(rows)]
    assert found


def stops(rows: list) -> Iterator[tuple]:
    for at, (machine, minute, _, state) in enumerate(rows):
        begin = at
        while begin and rows[begin - 1][3] == "on" and rows[begin - 1][2] > 90:
            if begin < at and rows[begin - 1][2] >= rows[begin][2]:
                break
            begin -= 1
        if state == "off" and at - begin >= 3:
            yield machine, rows[begin][1], minute, max(row[2] for row in rows[begin:at])


def test_heartbeats(spark):
    hosts, found = run(spark, "heartbeats", "heartbeats")
    assert found == [row for rows in hosts for row in silences(rows)]
    assert found


def silences(rows: list) -> Iterator[tuple]:
    for at, (host, time) in enumerate(rows):
        back = rows[at + 1][1] if at + 1 < len(rows) else None
        missed = time + timedelta(minutes=2)
        if back is None or back >= missed:
            yield host, time, missed, back


def test_shapes(spark):
    symbols, found = run(spark, "shapes", "closes")
    assert found == [row for rows in symbols for row in shapes(rows)]
    assert found


def shapes(rows: list) -> Iterator[tuple]:
    """From each peak: the days by the signs of their changes, - + - +, up to the last rise above the peak."""
    at = 0
    while at < len(rows):
        ends = []
        turn = at
        for falls in (True, False, True):
            start = turn
            while turn + 1 < len(rows) and (rows[turn + 1][2] < rows[turn][2]) == falls:
                turn += 1
            ends.append(turn if turn > start else None)
        over = None
        last = turn
        while last + 1 < len(rows) and rows[last + 1][2] > rows[last][2]:
            last += 1
            over = last if rows[last][2] > rows[at][2] else over
        if None in ends or over is None:
            at += 1
            continue
        yield rows[at][0], rows[at][1], rows[over][1], min(row[2] for row in rows[at : over + 1])
        at = ends[1]

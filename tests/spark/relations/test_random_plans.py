"""Queries composed at random: each equals the reference, or is refused when it is given.

Batch and the reference give the same changelog, whether streams have windows in brackets or EMIT shows them
as they come, and the same rows that are late for groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.live.emit_queries import cut, recorded_log
from tests.spark.random_queries import CONTINUOUS, EMITTED, written
from windrow import Session
from windrow.errors import WindrowError
from windrow.streams.entries import BEFORE

ROWS = "(0, 5, 'o'), (1, 6, 'a'), (1, 6, 'a'), (CAST(NULL AS BIGINT), 2, NULL), (2, NULL, 'b')"
WAYS = [
    "EMIT STREAM",
    "EMIT STREAM",
    "EMIT AFTER WATERMARK",
    "EMIT STREAM AFTER WATERMARK",
    "EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS",
    "EMIT AFTER DELAY INTERVAL 4 SECONDS",
    "EMIT STREAM AFTER DELAY INTERVAL 6 SECONDS AND AFTER WATERMARK",
]
LOG = f"at timestamp, p string, ts bigint, k bigint, v bigint, {BEFORE} bigint, upto bigint"

Below = Callable[[int], int]
"""Chooses a number from 0 on that is below another."""


@pytest.fixture(scope="module")
def session(spark):
    session = spark.newSession()
    query = f"SELECT CAST(k AS BIGINT) AS k, CAST(w AS BIGINT) AS w, x FROM VALUES {ROWS} AS n(k, w, x)"
    session.sql(query).createOrReplaceTempView("names")
    return session


def answered(session: Session, query: str):
    """What a query gives; None where it is refused when it is given."""
    try:
        return session.sql(query)
    except WindrowError:  # any other exception is a fault
        return None


# -- windows in brackets -------------------------------------------------------------------------------


def rows_of_stream(below: Below) -> list[tuple[int, int | None, int | None]]:
    return [(below(12), [None, 0, 1, 2][below(4)], [None, 0, 1, 2, 3][below(5)]) for _ in range(below(8))]


def declared(spark, logs: dict[str, list[tuple[int, int | None, int | None]]], execution: str) -> Session:
    """A session with streams of rows with a time, a key and a value, in the order in which they came."""
    session = Session(spark, execution=execution)
    for name, rows in logs.items():
        columns = {"n": range(len(rows))} | {
            column: [row[at] for row in rows] for at, column in enumerate(("ts", "k", "v"))
        }
        table = pa.table({column: pa.array(values, pa.int64()) for column, values in columns.items()})
        session.stream(name, table, rowtime="ts", unit="seconds", ptime="n")
        known = session._catalog.streams
        known[name] = replace(known[name], columns=("ts", "k", "v"))
    return session


def changes(relation: Any) -> Counter:
    """The net changes of a relation."""
    found: Counter = Counter()
    for row in relation.changelog("diff").collect():
        *values, count, at = row
        found[at, tuple(tuple(value) if isinstance(value, list) else value for value in values)] += count
    return found


def compare_windows(spark, logs, query: str) -> None:
    relation = answered(declared(spark, logs, "batch"), query)
    if relation is None or not any(word in query for word in (" s [", " t [")):
        return
    assert changes(relation) == changes(declared(spark, logs, "reference").sql(query))


@pytest.mark.timeout(3600)  # of all examples; each plans and runs a query twice
@settings(max_examples=64, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_query_over_windows_equals_the_reference_or_is_refused(session, data):
    def below(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    logs = {"s": rows_of_stream(below), "t": rows_of_stream(below)}
    compare_windows(session, logs, written(below, CONTINUOUS))


# -- EMIT ----------------------------------------------------------------------------------------------


def entries_of_stream(below: Below) -> list[tuple[str, int | None, int | None, int | None, int | None]]:
    found: list[tuple[str, int | None, int | None, int | None, int | None]] = []
    now, late = 0, below(3)
    for _ in range(1 + below(8)):
        now += below(3)
        ts = max(0, now - (below(4) if late == 2 else 0))
        upto = [None, now - 1, now][below(3)]
        key, value = [None, 0, 1, 2][below(4)], [None, 0, 1, 2, 3][below(5)]
        found.append(("ab"[below(2)], ts if below(5) else None, key, value, upto))
    if below(2):
        found += [("a", None, None, None, 30), ("b", None, None, None, 30)]
    return found


def recorded(spark, logs, lag: int | None, execution: str) -> Session:
    session = Session(spark, execution=execution)
    for name, batches in logs.items():
        frame = spark.createDataFrame(recorded_log(batches, lag), LOG)
        session.stream(name, frame, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
        known = session._catalog.streams
        known[name] = replace(known[name], columns=("ts", "k", "v"))
    return session


def counted(relation: Any) -> Counter:
    columns = [column.to_pylist() for column in relation.to_arrow().columns]
    return Counter(zip(*columns, strict=True))


def compare_emitted(spark, logs, lag: int | None, query: str) -> None:
    relation = answered(recorded(spark, logs, lag, "batch"), query)
    if relation is None:
        return
    envelope = "one-sql" if "STREAM" in query else "delta"
    reference = recorded(spark, logs, lag, "reference").sql(query)
    assert counted(relation.changelog(envelope)) == counted(reference.changelog(envelope))
    assert counted(relation.late) == counted(reference.late)


@pytest.mark.timeout(3600)  # of all examples; each plans and runs a query twice
@settings(max_examples=64, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_query_with_emit_equals_the_reference_or_is_refused(session, data):
    def below(count: int) -> int:
        return data.draw(st.integers(0, count - 1))

    entries = [entries_of_stream(below) for _ in range(2)]
    cuts = [below(101) / 100 for _ in range(1 + below(3))]
    logs = {name: cut(one, cuts) for name, one in zip("st", entries, strict=True)}
    lag = [None, None, 0, 2][below(4)]
    if not all(any(recorded_log(batches, lag)) for batches in logs.values()):
        return
    lateness = ["", "", " ALLOWED LATENESS 2"][below(3)]
    query = f"{written(below, EMITTED)} {WAYS[below(len(WAYS))]}{lateness}"
    compare_emitted(session, logs, lag, query)

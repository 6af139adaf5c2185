"""EMIT AFTER WATERMARK into a named stream: complete rows at their event times, with bounds, once."""

from __future__ import annotations

from collections import Counter

import pytest

from windrow import NotSupportedError, Session, WindrowError
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.live.sinks.targets import in_mode, sink_of
from windrow.streams import NamedStream

COLUMNS = "ts bigint, k string, v int, b bigint"
TOTALS = (
    "SELECT wend, k, SUM(v) AS total FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY wend, k"
    " EMIT STREAM AFTER WATERMARK"
)
BATCHES = [
    [(1, "a", 1, None), (12, "b", 2, None), (3, "a", 4, 10)],
    [(15, "a", 8, None), (11, "b", 16, None), (4, "a", 32, None)],  # the last is late
    [(27, "b", 64, 21)],
    [(None, None, None, 100)],
]
WANTED = Counter({(10, "a", 5): 1, (20, "a", 8): 1, (20, "b", 18): 1, (30, "b", 64): 1})
PROMISED = [20, 20, 30, 110]  # the ends of the first windows that are open still


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark.newSession())
    (tmp_path / "arriving").mkdir()
    session.spark.conf.set("spark.windrow.checkpoint", str(tmp_path / "checkpoints"))
    arriving = session.spark.readStream.schema(COLUMNS).parquet(str(tmp_path / "arriving"))
    session.stream("s", arriving, rowtime="ts", unit="seconds", bound="b")
    return session


def made(session, folder, columns="ROWTIME at BIGINT UNIT SECONDS, k STRING, total BIGINT", more=""):
    session.sql(f"CREATE STREAM totals ({columns}) LOCATION '{folder / 'totals'}' {more}")
    return NamedStream.open(folder / "totals")


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.usefixtures("interpreted")
def test_complete_rows_come_at_their_event_times_with_bounds(session, tmp_path, monkeypatch, in_memory):
    """Each micro-batch is taken by a process of its own, and again as after a kill."""
    if not in_memory:
        monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    stream = made(session, tmp_path)
    plan, promised, counts = session.sql(TOTALS)._live, [], {}
    for number, rows in enumerate(BATCHES):
        for _ in range(2):
            sink, form = in_mode(sink_of(stream), plan, "changelog", None, None, tmp_path / "c")
            steps = micro_batches_of(plan, sink, tmp_path / "c", form, "keep")
            ((_, name, live),) = steps.streams()
            frame = session.spark.createDataFrame(rows, COLUMNS).coalesce(1)
            steps.take(steps.input({name: frame.select(*live.live.columns)}), number)
            counts = dict(steps.progress) or counts
            (producer,) = stream.position().watermark.producers.values()
            sink.end()
            steps.close()
        promised.append(producer.firm)
    assert promised == PROMISED
    assert Counter(map(tuple, session.sql("SELECT * FROM totals").collect())) == WANTED
    assert counts["rows_late"] == 1
    assert counts["rows_emitted"] == WANTED.total()
    session.sql("DROP STREAM totals")


def test_a_query_that_is_inserted_feeds_others(session, tmp_path):
    """From a stream over one with totals to what follows it, by SQL alone."""
    made(session, tmp_path)
    session.sql(f"CREATE STREAM base (ROWTIME ts BIGINT UNIT SECONDS, v INT) LOCATION '{tmp_path / 'base'}'")
    session.sql(
        "INSERT INTO totals SELECT wend, 'all', SUM(v) FROM TUMBLE(TABLE base, DESCRIPTOR(ts), 10)"
        " GROUP BY wend EMIT STREAM AFTER WATERMARK"
    )
    (query,) = session.queries.values()
    session.sql("INSERT INTO base VALUES (1, 1), (5, 2), (12, 4), (31, 8)")
    session.sql("PUNCTUATE base BOUND 35")
    query.process_all_available()
    query.stop()
    rows = session.sql("SELECT at, total FROM totals ORDER BY at").collect()
    assert [tuple(row) for row in rows] == [(10, 3), (20, 4)]
    for name in ("totals", "base"):
        session.sql(f"DROP STREAM {name}")


def test_a_stream_that_has_ended_says_so_when_all_rows_have_been_told(session, tmp_path):
    """Of two streams one of which is known further than the other, its end is not that of the query."""
    made(session, tmp_path, more="UNORDERED")
    for name in ("one", "two"):
        session.sql(
            f"CREATE STREAM {name} (ROWTIME ts BIGINT UNIT SECONDS, v INT) LOCATION '{tmp_path / name}'"
        )
    session.sql(
        "INSERT INTO totals SELECT wend, 'both', SUM(v) FROM TUMBLE(TABLE (SELECT ts, v FROM one UNION ALL"
        " SELECT ts, v FROM two), DESCRIPTOR(ts), 10) GROUP BY wend EMIT STREAM AFTER WATERMARK"
    )
    (query,) = session.queries.values()
    with session.stream("one").producer("p") as p, session.stream("two").producer("q") as q:
        p.insert([{"ts": 1, "v": 1}])
        q.insert([{"ts": 2, "v": 2}])
        p.finish()
        query.process_all_available()
        q.insert([{"ts": 25, "v": 4}])
        q.finish()
    query.process_all_available()
    query.stop()
    rows = session.sql("SELECT at, total FROM totals ORDER BY at").collect()
    assert [tuple(row) for row in rows] == [(10, 3), (30, 4)]
    for name in ("totals", "one", "two"):
        session.sql(f"DROP STREAM {name}")


REFUSED = [
    (TOTALS.replace(" AFTER WATERMARK", ""), "RELATION_WHERE_STREAM_IS_NEEDED"),
    (f"{TOTALS} ALLOWED LATENESS 5", "RELATION_WHERE_STREAM_IS_NEEDED"),
    (TOTALS.replace("SELECT wend, k,", "SELECT k, k AS l,"), "RELATION_WHERE_STREAM_IS_NEEDED"),
    (TOTALS.replace("SELECT wend, k,", "SELECT wend + 1, k,"), "RELATION_WHERE_STREAM_IS_NEEDED"),
    (TOTALS.replace("SELECT wend, k,", "SELECT k, wend,"), "ROWTIME_DIFFERS"),
    (TOTALS.replace("SELECT wend, k,", "SELECT wend, wend,"), "DUPLICATE_COLUMN"),
    (TOTALS.replace("SELECT wend, k,", "SELECT wend, k, k AS l,"), "INSERT_COLUMN_ARITY_MISMATCH"),
]


@pytest.mark.parametrize(("query", "condition"), REFUSED)
def test_other_rows_are_refused_when_the_query_is_given(session, tmp_path, query, condition):
    made(session, tmp_path)
    with pytest.raises(WindrowError) as error:
        session.sql(f"INSERT INTO totals {query}")
    assert error.value.condition == condition
    assert error.value.span is not None
    session.sql("DROP STREAM totals")


def test_a_stream_in_order_takes_no_rows_that_promises_of_keys_complete(session, tmp_path):
    made(session, tmp_path)
    session.sql(
        f"CREATE STREAM base (ROWTIME ts BIGINT UNIT SECONDS, k STRING, v INT) LOCATION '{tmp_path / 'base'}'"
    )
    with pytest.raises(NotSupportedError, match="declare the stream UNORDERED"):
        session.sql(f"INSERT INTO totals {TOTALS.replace('TABLE s', 'TABLE base')}")
    for name in ("totals", "base"):
        session.sql(f"DROP STREAM {name}")

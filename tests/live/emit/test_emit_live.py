"""Queries with EMIT that run: what is due is given while every stream is silent, and after a restart."""

from __future__ import annotations

import datetime
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.live.queries.test_named import opened
from tests.live.stepping import in_micro_batches
from windrow import Memory, Session, WindrowError
from windrow.kernels.operator_state import Carried
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.streams import NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")

SCHEMA = pa.schema([("t", pa.int64()), ("k", pa.string())])
COUNTS = "SELECT k, wend, COUNT(*) AS n FROM TUMBLE(TABLE {}, DESCRIPTOR(t), 10) GROUP BY k, wend"
LATER = f"{COUNTS} EMIT STREAM AFTER DELAY INTERVAL 2 SECONDS"


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


@pytest.fixture
def session(spark, tmp_path):
    folder = tmp_path / "arriving"
    folder.mkdir()
    pq.write_table(
        pa.Table.from_pylist([{"t": 3, "k": "a"}, {"t": 7, "k": "a"}], SCHEMA), folder / "0.parquet"
    )
    session = Session(spark)
    arriving = spark.readStream.schema("t bigint, k string").parquet(str(folder))
    session.stream("s", arriving, rowtime="t", unit="seconds")
    stream = NamedStream.create(tmp_path / "named", SCHEMA, "t", unit="second")
    session.stream("r", stream)
    yield session
    for name in ("s", "r"):
        spark.catalog.dropTempView(name)


def rows(sink):
    return [tuple(row.values()) for table in sink.batches.values() for row in table.to_pylist()]


@pytest.mark.parametrize("name", ["s", "r"])
def test_what_is_due_is_given_while_all_is_silent_and_after_a_restart(session, tmp_path, name):
    if name == "r":
        with NamedStream.open(tmp_path / "named").producer("p") as producer:
            producer.insert([{"t": 3, "k": "a"}, {"t": 7, "k": "a"}])
    sink, given = Memory(), threading.Event()

    def heard(progress):
        if progress["batch_rows_emitted"]:
            given.set()

    session.listeners.add(heard)
    relation = session.sql(LATER.format(name))
    with pytest.MonkeyPatch.context() as patch:  # it ends before anything is due
        patch.setattr("windrow.spark.live.input.ticks.Ticker.want", lambda *_: None)
        first = relation.start(sink, checkpoint=tmp_path / "checkpoint")
        first.process_all_available()
        arrived_at = first.progress["frontier"]
        first.stop()
    assert rows(sink) == []
    if name == "r":
        stream = NamedStream.open(tmp_path / "named")
        arrived_at = stream.read(stream.start)[0].admitted.column("__ptime")[0].as_py()
    second = relation.start(sink, checkpoint=tmp_path / "checkpoint")
    assert given.wait(180)
    second.stop()
    session.listeners.remove(heard)
    due = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
        microseconds=arrived_at + 2_000_000
    )
    assert rows(sink) == [("a", 10, 2, False, due, 0)]
    state = {(row["kind"], row["name"]): row for row in second.state().collect()}
    kept = state["rows", name]
    assert (kept["rows"], kept["why"]) == (2, "rows until the watermark has passed their groups")
    assert "state" in relation.plan()


PAYMENTS = "p.ts BETWEEN o.ts AND o.ts + INTERVAL 10 MINUTES"
UNPAID = {
    "LEFT JOIN": f"SELECT o.id, p.paid FROM o LEFT JOIN p ON o.id = p.id AND {PAYMENTS}",
    "LEFT ANTI JOIN": f"SELECT id, NULL AS paid FROM o LEFT ANTI JOIN p ON o.id = p.id AND {PAYMENTS}",
    "NOT EXISTS": "SELECT id, NULL AS paid FROM o WHERE NOT EXISTS"
    f" (SELECT 1 FROM p WHERE o.id = p.id AND {PAYMENTS})",
}


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize("name", UNPAID)
def test_a_row_without_a_partner_within_minutes_is_given_when_these_are_over(spark, tmp_path, name):
    columns = pa.schema([("ts", pa.timestamp("us", "UTC")), ("id", pa.int64()), ("paid", pa.int64())])
    streams = {each: NamedStream.create(tmp_path / each, columns, "ts") for each in ("o", "p")}
    began = datetime.datetime(2026, 1, 1, 10, tzinfo=datetime.UTC)

    def at(minute, number, paid=None):
        return {"ts": began + datetime.timedelta(minutes=minute), "id": number, "paid": paid}

    def tick():
        for stream in streams.values():
            stream.tick()

    orders, payments = streams["o"].producer("orders"), streams["p"].producer("payments")
    orders.insert([at(0, 1), at(1, 2)], bound=at(30, 0)["ts"])
    payments.insert([at(5, 1, 7), at(11, 9, 9)])
    tick()
    for minute, late in ((12, at(12, 9, 9)), (12.5, at(12.5, 2, 6))):  # 2 could be paid until 10:11
        orders.bound(at(minute + 30, 0)["ts"])
        payments.insert(late)
        tick()
    assert [stream.log.last() for stream in streams.values()] == [7, 7]
    session, frames = opened(spark.newSession(), streams)
    relation = session.sql(f"{UNPAID[name]} EMIT STREAM AFTER WATERMARK")
    plan = relation._live
    given, _ = in_micro_batches(plan, tmp_path, [3 / 7, 5 / 7], {1}, frames, plan.envelope)
    paid, unpaid = [(1, 7)] if name == "LEFT JOIN" else [], [(2, None)]
    assert [[(row["id"], row["paid"]) for row in one.to_pylist()] for one in given] == [paid, unpaid, []]
    assert sorted((row["id"], row["paid"]) for row in relation.collect()) == paid + unpaid
    for producer in (orders, payments):
        producer.close()


def test_progress_has_as_many_rows_as_the_state(session, tmp_path):
    with NamedStream.open(tmp_path / "named").producer("p") as producer:
        producer.insert([{"t": at, "k": "a"} for at in range(25)])
    query = session.sql(f"{COUNTS.format('r')} EMIT STREAM AFTER WATERMARK").start(
        Memory(), checkpoint=tmp_path / "checkpoint"
    )
    query.process_all_available()
    retained = [row["rows"] for row in query.state().collect() if row["kind"] == "rows"]
    assert 0 < sum(retained) == query.progress["rows_in_windows"] < 25
    query.stop()


def test_groups_in_place_of_rows_are_in_the_state(session, tmp_path, monkeypatch):
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    with NamedStream.open(tmp_path / "named").producer("p") as producer:
        producer.insert([{"t": at, "k": "a"} for at in range(25)])
    relation = session.sql(f"{COUNTS.format('r')} EMIT STREAM AFTER WATERMARK")
    query = relation.start(Memory(), checkpoint=tmp_path / "checkpoint")
    query.process_all_available()
    (retained,) = [row for row in query.state().collect() if row["kind"] == "operators"]
    query.stop()
    assert retained["rows"] == query.progress["rows_in_windows"] == 1, "the last window is open"
    assert retained["bytes"] > 0
    assert retained["why"] == "rows until the watermark has passed their groups"


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM", None),
        ("SELECT k FROM s UNION SELECT k FROM r EMIT STREAM", None),
        (f"{COUNTS.format('s')} EMIT STREAM AFTER DELAY INTERVAL 5 SECONDS", None),
        ("SELECT COUNT(*) AS n FROM s EMIT STREAM", None),
        ("SELECT k FROM s UNION SELECT 'x' EMIT STREAM", None),
        ("SELECT array(k) AS a FROM s EMIT STREAM", None),
        ("SELECT INTERVAL 1 MONTH AS m FROM s EMIT STREAM", None),
        ("SELECT array(INTERVAL 1 MONTH) AS m FROM s EMIT STREAM", "a column of type array<interval month>"),
    ],
)
def test_a_plan_says_how_steps_are_evaluated_and_why(session, query, reason):
    plan = session.sql(query).plan()
    if reason is None:
        assert "evaluated  in memory, over what changes" in plan
        is_stored = "stored     as rows, up to 10,000, then as the operators' state" in plan
        needs_state = ("operators' state, unbounded", "punctuation closes their groups")
        assert is_stored == any(words in plan for words in needs_state)
        assert "because" not in plan.split("live\n")[-1].split("state")[0]
    else:
        assert "evaluated  by tasks, over all retained rows" in plan
        assert f"because    of {reason}" in plan
        assert "operators' state" not in plan


def test_tasks_say_that_a_delay_without_groups_retains_all_rows(session, tmp_path, monkeypatch):
    delayed = "SELECT k, 1 AS m FROM s EMIT STREAM AFTER DELAY INTERVAL 5 SECONDS"
    in_memory = session.sql(delayed)
    assert "unbounded" not in in_memory.plan()
    in_memory.start(Memory(), checkpoint=tmp_path / "c", on_unbounded="error").stop()
    monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    by_tasks = session.sql(delayed)
    assert "unbounded  the query retains all rows, because of AFTER DELAY without groups" in by_tasks.plan()
    with refused("UNBOUNDED_STATE"):
        by_tasks.start(Memory(), checkpoint=tmp_path / "d", on_unbounded="error")


def test_a_query_says_which_rows_it_keeps_and_what_it_cannot_do(session, tmp_path):
    def kept(query):
        return session.sql(query)._live.retains

    assert kept(f"{COUNTS.format('s')} EMIT STREAM ALLOWED LATENESS 5").endswith("can change them")
    assert kept("SELECT * FROM s EMIT STREAM") == "no rows"
    assert kept("SELECT * FROM s EMIT AFTER WATERMARK") == "rows that are not complete"
    assert kept("SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM").endswith(
        "without a key of event time"
    )
    assert kept("SELECT s.k FROM s JOIN r ON s.k = r.k EMIT STREAM").endswith("of a join")
    lives = session.sql("SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM STATE LIFETIME 5")
    assert lives._live.retains.startswith("rows until the watermark has passed their sessions")
    assert "state: groups until the watermark has passed the end of their STATE LIFETIME" in lives.plan()
    with refused("MISSING_KEY"):
        lives.start(Memory(), mode="upsert")
    live = session.sql(f"{COUNTS.format('s')} EMIT STREAM")
    assert live.schema.names == ["k", "wend", "n", "undo", "ptime", "ver"]
    with refused("LIVE_RELATION"):
        live.show()
    with refused("RELATION_WHERE_STREAM_IS_NEEDED"):
        live.start(NamedStream.open(tmp_path / "named"))
    arriving = session.spark.readStream.schema("at timestamp, k string").parquet(str(tmp_path / "arriving"))
    session.register("clicks", arriving)
    lag = "STREAM clicks WATERMARK at DELAY OF INTERVAL 10 SECONDS"
    pages = f"TUMBLE(TABLE(SELECT at, k FROM {lag}), DESCRIPTOR(at), INTERVAL 1 MINUTE)"
    told = session.sql(f"SELECT wend, COUNT(*) AS n FROM {pages} GROUP BY wend EMIT STREAM AFTER WATERMARK")
    (declared,) = told._live.streams
    assert session._catalog.streams[declared].live.ordering == Ordering.lagging(10_000_000)
    assert kept(f"SELECT clicks.k FROM {lag} WHERE k <> 'x' EMIT STREAM") == "no rows"
    with refused("UNRESOLVED_COLUMN.WITH_SUGGESTION") as caught:
        session.sql(f"SELECT kk FROM {lag} EMIT STREAM")
    assert caught.value.getQueryContext()[0].fragment() == "kk"
    with refused("UNSUPPORTED_STREAM"):
        session.sql("SELECT * FROM s AS OF SYSTEM TIME TIMESTAMP '2026-01-01' EMIT STREAM")

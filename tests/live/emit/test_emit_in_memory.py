"""Queries with EMIT run in memory: what operators compute, what they retain, and what a restart reads."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.live import emit_queries
from tests.live.emit_queries import (
    BOTH,
    CONTINUOUS,
    HOW,
    IN_TIME,
    OVER,
    SOME_LATE,
    WATERMARK,
    counted,
    cut,
    live,
    recorded,
)
from tests.live.random_logs import COLUMNS, folded, table
from windrow import Memory, Session, WindrowError
from windrow.kernels import operator_state
from windrow.kernels import stored as stored_module
from windrow.kernels.incremental import UnmatchedError
from windrow.kernels.operator_state import Carried
from windrow.spark.live.micro_batches import emit_rows
from windrow.spark.live.plans.emit_by_spark import EmittedBySpark
from windrow.spark.live.plans.emit_flow import EmittedFlow

HOURS = "(SELECT CAST(timestamp_seconds(1793507400 + ts * 1800) AS {}) AS at, v FROM s)"
OF_WINDOWS = {
    "sessions that rows join and leave": "SELECT k, wstart, wend, COUNT(*) AS n, MAX(v) AS most "
    "FROM SESSION(TABLE (SELECT ts, k, v FROM s EXCEPT SELECT ts, k, v FROM t ) PARTITION BY k, "
    "DESCRIPTOR(ts), 2) GROUP BY k, wstart, wend",
    "rows of sessions": "SELECT k, v, wstart, wend FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 1)",
    "sessions of doubles": "SELECT d, wend, SUM(v) AS v, COUNT(DISTINCT e) AS n FROM SESSION(TABLE (SELECT "
    "ts, v, CASE k WHEN 1 THEN -0.0D WHEN 2 THEN 0.0D END AS d, CAST(v AS DECIMAL(9, 2)) AS e FROM s) "
    "PARTITION BY d, DESCRIPTOR(ts), 2) GROUP BY d, wend",
    "hops of clock times": "SELECT wstart, wend, MIN(v) AS least, COUNT(*) AS n FROM HOP(TABLE "
    f"{HOURS.format('TIMESTAMP_NTZ')}, DESCRIPTOR(at), INTERVAL 1 HOUR, INTERVAL 3 HOURS) "
    "GROUP BY wstart, wend",
    "groups without aggregates": "SELECT d, COUNT(*) AS n FROM (SELECT k, CAST(wend AS DOUBLE) AS d FROM "
    "TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY k, wend HAVING k IS NULL OR k > 0) GROUP BY d",
    "growing windows of instants": "SELECT wstart, wend, SUM(v) AS v FROM CUMULATE(TABLE "
    f"{HOURS.format('TIMESTAMP')}, DESCRIPTOR(at), INTERVAL 1 HOUR, INTERVAL 4 HOURS) GROUP BY wstart, wend",
}
"""Queries over windows of time that operators of their own find; clocks are set back within the hours."""


@pytest.mark.sampled
@pytest.mark.parametrize("name", OF_WINDOWS)
@pytest.mark.usefixtures("interpreted")
def test_windows_are_what_the_definition_says(spark, tmp_path, monkeypatch, name):
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    zone = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    query = f"{OF_WINDOWS[name]} EMIT STREAM"
    s = [
        [(0, 1, 3), (4, 1, 1), (9, None, 2)],
        [(2, 1, 2), (7, None, None)],
        [(8, 2, 3), (6, 1, 1), (2, 2, 0)],
        [],
    ]
    t = [[], [(4, 1, 1)], [(2, 1, 2)], []]
    logs = {"s": [[("a", *row, None) for row in batch] for batch in s]}
    if " t " in query:
        logs["t"] = [[("a", *row, None) for row in batch] for batch in t]
    try:
        given, _ = live(spark, tmp_path, logs, None, {1}, query)
        told = counted([recorded(spark, logs, None, query)])
        assert counted(given) == told
        assert told == counted([recorded(spark, logs, None, query, "reference")])
    finally:
        spark.conf.set("spark.sql.session.timeZone", zone)


@pytest.mark.usefixtures("interpreted")
def test_months_variants_and_nothing_are_there_in_memory(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(EmittedBySpark, "advance", None)
    query = (
        "SELECT k, CAST(i AS STRING) AS i, to_json(j) AS j, n FROM (SELECT k, make_ym_interval(0, v) AS i,"
        " parse_json(CAST(v AS STRING)) AS j, NULL AS n FROM s) AS a"
        " WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k) EMIT STREAM"
    )
    logs = {one: cut(IN_TIME[at], [0.3, 0.6]) for at, one in enumerate(("s", "t"))}
    given, _ = live(spark, tmp_path, logs, None, {1}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])


TEXTS = "(SELECT ts, k, v, substring('aAbBA', v + 1, 1) COLLATE UTF8_LCASE AS c FROM s)"
OF_TEXTS = {
    "rows": f"SELECT v, c FROM {TEXTS} {HOW[0]}",
    "groups": f"SELECT c, COUNT(*) AS n FROM {TEXTS} GROUP BY c {HOW[0]}",
    "groups by other texts than before": f"SELECT c, COUNT(*) AS n FROM {TEXTS} AS a WHERE NOT EXISTS"
    f" (SELECT 1 FROM t WHERE t.k = a.k) GROUP BY c {HOW[0]}",
    "the last text": f"SELECT k, LAST(c) AS c FROM {TEXTS} GROUP BY k {HOW[0]}",
    "rows that wait": f"SELECT c FROM {TEXTS} {HOW[1]}",
    "groups that wait": f"SELECT k, LAST(c) AS c FROM {TEXTS} GROUP BY k {HOW[1]}",
    "sessions": f"SELECT c, wend, COUNT(*) AS n FROM SESSION(TABLE {TEXTS} PARTITION BY c, DESCRIPTOR(ts), 2)"
    f" GROUP BY c, wend {HOW[0]}",
}
"""Queries whose changes differ, if at all, by texts with a collation."""


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("name", OF_TEXTS)
@pytest.mark.usefixtures("interpreted")
def test_texts_are_compared_as_their_collation_says(spark, tmp_path, name):
    s = [
        [("a", 0, 1, 0, None), ("a", 1, 2, 1, None), ("a", 1, 1, 2, None)],
        [("a", 3, 1, 3, None), ("a", 2, 2, 0, None), ("a", 6, 0, 4, None)],
        [("a", 5, 2, 1, None), ("a", 7, None, None, None), ("a", 7, 1, 2, None)],
        [],
    ]
    logs = {"s": s}
    if " t " in OF_TEXTS[name]:
        logs["t"] = [[], [("a", 0, 1, 0, None)], [("a", 0, 2, 0, None)], []]

    given, _ = live(spark, tmp_path, logs, None, {1}, OF_TEXTS[name])
    for execution in ("batch", "reference"):
        assert folded(given) == folded([recorded(spark, logs, None, OF_TEXTS[name], execution)])


@pytest.mark.long
@pytest.mark.parametrize("entries", [IN_TIME, SOME_LATE])
@pytest.mark.parametrize("name", CONTINUOUS)
@pytest.mark.usefixtures("interpreted")
def test_what_operators_hold_is_kept_in_place_of_rows(spark, tmp_path, monkeypatch, name, entries):
    """Written in every step, and read again after a kill: what is told is what it was."""
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{CONTINUOUS[name]} EMIT STREAM"
    names = ("s", "t") if "FROM t " in f"{query} " or "JOIN t " in query else ("s",)
    logs = {one: cut(entries[at], [0.3, 0.6]) for at, one in enumerate(names)}
    given, _ = live(spark, tmp_path, logs, None, {1}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])


ENDING = ["tumbling windows", "hopping windows", "groups of groups"]
"""Those of which all that operators hold goes with time."""


@pytest.mark.long
@pytest.mark.parametrize("lateness", ["", " ALLOWED LATENESS 2"])
@pytest.mark.parametrize("how", [HOW[0], *WATERMARK])
@pytest.mark.parametrize("entries", [IN_TIME, SOME_LATE])
@pytest.mark.parametrize("name", ENDING)
@pytest.mark.usefixtures("interpreted")
def test_what_operators_forget_changes_nothing(spark, tmp_path, monkeypatch, name, entries, how, lateness):
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{OVER[name]} {how}{lateness}"
    rows = [*entries[0], *(("c", *row[1:]) for row in entries[1])]
    logs = {"s": cut(rows, [0.2, 0.4, 0.7])}
    given, told = live(spark, tmp_path, logs, None, {1, 3}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    # the bounds at the end are past all windows
    assert told["rows_in_windows"] == 0


@pytest.mark.usefixtures("interpreted")
def test_values_that_leave_otherwise_than_they_came_end_the_query(spark, tmp_path, monkeypatch):
    """Rows of which what operators hold is made are not there any more to begin again from."""
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    steps, step = [], EmittedFlow.advance

    def second_fails(*given):
        steps.append(given)
        if len(steps) > 1:
            raise UnmatchedError
        return step(*given)

    monkeypatch.setattr(EmittedFlow, "advance", second_fails)
    logs = {"s": cut(IN_TIME[0], [0.3, 0.6])}
    with pytest.raises(WindrowError, match="UNSTABLE_VALUES") as caught:
        live(spark, tmp_path, logs, None, set(), f"{CONTINUOUS['distinct']} EMIT STREAM")
    assert caught.value.hint


DELAYED = [
    ("tumbling windows", HOW[1]),
    ("tumbling windows", BOTH[0]),
    ("tumbling windows", f"{BOTH[0]} ALLOWED LATENESS 2"),
    ("hopping windows", HOW[2]),
    ("sessions", BOTH[0]),
    ("rows", HOW[1]),
    ("rows", BOTH[0]),
    ("groups without a partner", BOTH[0]),
    ("ranks of windows", HOW[1]),
    ("groups", HOW[1]),
    ("a group of what leaves", HOW[2]),
]
"""Queries whose changes wait."""


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("is_carried", [False, True])
@pytest.mark.parametrize(("name", "how"), DELAYED)
@pytest.mark.usefixtures("interpreted")
def test_changes_that_wait_are_in_memory_and_kept(spark, tmp_path, monkeypatch, name, how, is_carried):
    """Whether rows are retained, of which they are found again, or they are with what operators hold."""
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    if is_carried:
        monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{(OVER | CONTINUOUS)[name]} {how}"
    names = ("s", "t") if " t " in query else ("s",)
    rows = [*SOME_LATE[0], ("a", 3, 1, 1, None), ("a", 12, 1, 2, 13), ("a", 13, 1, 1, 20)]
    logs = {one: cut([rows, SOME_LATE[1]][at], [0.2, 0.5, 0.7]) for at, one in enumerate(names)}
    given, told = live(spark, tmp_path, logs, None, {1, 3}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    if is_carried and name == "rows":
        assert told["rows_in_windows"] == 0, "nothing waits in the end"


WITH_RECORDED = [
    ("groups of a join by time", HOW[0]),
    ("groups of either", WATERMARK[1]),
    ("a join of streams", BOTH[0]),
    ("either", HOW[1]),
]
"""Queries of two streams, of which one is recorded."""


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("is_carried", [False, True])
@pytest.mark.parametrize("name", ["s", "t"])
@pytest.mark.parametrize(("query", "how"), WITH_RECORDED)
@pytest.mark.usefixtures("interpreted")
def test_recorded_streams_beside_live_ones_are_in_memory(
    spark, tmp_path, monkeypatch, query, how, name, is_carried
):
    """Their entries come at their processing times: before, between and after those of live streams."""
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    if is_carried:
        monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{(OVER | CONTINUOUS)[query]} {how}"
    logs = {one: cut(SOME_LATE[at], [0.3, 0.6]) for at, one in enumerate("st")}
    beside = {name: logs[name]}
    others = {one: batches for one, batches in logs.items() if one != name}
    given, _ = live(spark, tmp_path, others, None, {1, 2}, query, beside)
    assert counted(given) == counted([recorded(spark, logs, None, query)])


TABLES_OF_THEIR_OWN = ["a join of streams", "distinct", "the first of each", "but for"]


@pytest.mark.parametrize("name", TABLES_OF_THEIR_OWN)
@pytest.mark.usefixtures("interpreted")
def test_tables_that_never_change_have_files_of_their_own(spark, tmp_path, monkeypatch, name):
    """Two kills: what is read from files that several micro-batches share is what was written."""
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    monkeypatch.setattr(stored_module, "_ALONE", 0)
    query = f"{(OVER | CONTINUOUS)[name]} EMIT STREAM"
    names = ("s", "t") if "FROM t " in f"{query} " or "JOIN t " in query else ("s",)
    logs = {one: cut(SOME_LATE[at], [0.2, 0.4, 0.6, 0.8]) for at, one in enumerate(names)}
    given, _ = live(spark, tmp_path, logs, None, {1, 3}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    assert [*(tmp_path / "checkpoint" / "windrow" / "chunks").glob("carry-table-*.arrow")]


KEYED = {
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS s, AVG(v) AS a, MAX(v) AS m FROM s GROUP BY k",
    "floats": "SELECT k, SUM(v / 3.0D) AS s, AVG(v * 1e16D) AS a, MAX(CAST(v AS STRING)) AS m FROM s "
    "GROUP BY k",
    "distinct": "SELECT DISTINCT k FROM s",
    "a group": "SELECT COUNT(*) AS n, SUM(v) AS s, AVG(v / 3.0D) AS a, MAX(v) AS m FROM s",
    "windows": "SELECT k, wend, COUNT(*) AS n, MAX(v) AS m FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 30) "
    "GROUP BY k, wend",
    "the best": "SELECT k, v FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY k ORDER BY v DESC, ts) AS place "
    "FROM s) WHERE place <= 1",
}
"""Queries of which nothing but a few numbers for each key is needed, of windows while they are open."""


@pytest.mark.parametrize("name", KEYED)
@pytest.mark.usefixtures("interpreted")
def test_state_is_by_key_where_that_will_do(spark, tmp_path, monkeypatch, name):
    monkeypatch.setattr(operator_state, "ROWS_BEFORE_STATE", 5)
    query = f"{KEYED[name]} EMIT STREAM"
    rows = [("a", at, at % 3, at * 7 % 11, at - 1) for at in range(40)]
    logs = {"s": cut(rows, [0.25, 0.5, 0.75])}
    given, told = live(spark, tmp_path, logs, None, {1}, query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    # once more where the rank is found
    assert told["rows_in_windows"] == {"the best": 6, "a group": 1}.get(name, 3)


SESSIONS = (
    "SELECT k, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 3) GROUP BY k, wend"
)
KEPT = {
    # those that end at 4, 5 and 8 are settled at 13, the gap later, and those that end at 12 and 18 are not
    "in memory": (f"{SESSIONS} EMIT STREAM", 3),
    # lives that end at 3 and 8 are, and those that end at 12 and 18 are not; WHERE drops the row whose v is 3
    "while changes wait": (f"{OVER['keys that live']} {BOTH[0]}", 2),
    "by tasks": (f"{OVER['keys that live']} {BOTH[0]}", 2),
}
"""Queries of the log below, and how many of its rows may still change what they give."""


@pytest.mark.parametrize("how", KEPT)
@pytest.mark.usefixtures("interpreted")
def test_rows_of_sessions_go_when_nothing_can_join_them(spark, tmp_path, monkeypatch, how):
    monkeypatch.setattr(emit_rows, "FINAL_FROM", 0)
    if how == "by tasks":
        monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    more = pa.field("a.b", pa.int64())  # a name that has to be quoted
    monkeypatch.setattr(emit_queries, "COLUMNS", f"{COLUMNS}, `{more.name}` bigint")
    plain = table
    monkeypatch.setattr(
        emit_queries, "table", lambda rows: plain(rows).append_column(more, pa.nulls(len(rows), more.type))
    )
    query, kept = KEPT[how]
    rows = [(0, 1, 1), (2, 1, 1), (1, 2, 3), (5, 2, 1), (9, 1, 1), (9, 1, 3), (15, 1, 1)]
    entries = [("a", *row, None) for row in rows]
    logs = {"s": [entries[:4], entries[4:6], [*entries[6:], ("a", None, None, None, 13)], []]}
    given, told = live(spark, tmp_path, logs, None, set(), query)
    assert counted(given) == counted([recorded(spark, logs, None, query)])
    assert told["rows_in_windows"] == kept


@pytest.mark.usefixtures("interpreted")
def test_rows_of_sessions_of_texts_stay_while_an_equal_text_can_join_them(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(emit_rows, "FINAL_FROM", 0)
    (incoming := tmp_path / "in").mkdir()
    query = (
        "SELECT c, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY c, DESCRIPTOR(ts), 2)"
        " GROUP BY c, wend EMIT STREAM"
    )
    sink = Memory()
    for number, rows in enumerate([[(0, "a"), (2, "A"), (4, "A"), (6, "A")], [(8, "a")]]):
        ts, c = zip(*rows, strict=True)
        pq.write_table(pa.table({"ts": ts, "c": c}), incoming / f"{number}.parquet")
        session = Session(spark)
        arriving = spark.readStream.schema("ts bigint, c string collate UTF8_LCASE").parquet(str(incoming))
        session.stream("s", arriving, rowtime="ts", unit="seconds", lag=0)
        start = {"checkpoint": tmp_path / "c", "envelope": "diff", "trigger": {"availableNow": True}}
        session.sql(query).start(sink, **start).await_termination()
    found = Counter()
    for one in sink.batches.values():
        for row in one.to_pylist():
            found[row["c"].lower(), row["wend"], row["n"]] += row["_diff"]
    assert {row for row, count in found.items() if count} == {("a", 10, 5)}


NESTED = [
    "SELECT k, array(MAX(v), k) AS a, named_struct('n', COUNT(*), 'of', map('k', array(k))) AS g FROM s "
    f"GROUP BY k {HOW[0]}",
    f"SELECT DISTINCT named_struct('k', k, 'vs', array(v % 2, NULL)) AS g FROM s {HOW[1]}",
    f"SELECT a, COUNT(*) AS n FROM (SELECT array(k) AS a FROM s) GROUP BY a {HOW[1]}",
    f"SELECT ts, array(k, v) AS a, map('v', v) AS m, make_dt_interval(0, 0, v) AS i FROM s {WATERMARK[1]}",
    f"SELECT a.ts, b.k, a.m FROM (SELECT ts, map('v', v) AS m FROM s) a JOIN s AS b ON a.ts = b.ts {BOTH[0]}",
]
"""Queries that give lists, structs, maps and intervals."""


@pytest.mark.sampled(every=6)
@pytest.mark.parametrize("query", NESTED)
@pytest.mark.usefixtures("interpreted")
def test_lists_structs_and_maps_are_in_memory_and_kept(spark, tmp_path, monkeypatch, query):
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    logs = {"s": cut([*SOME_LATE[0], ("a", 4, 1, 5, None), ("b", 9, 2, 0, 20)], [0.3, 0.6])}
    given, _ = live(spark, tmp_path, logs, None, {1, 2}, query)
    wanted = recorded(spark, logs, None, query)
    assert given
    assert Counter(map(repr, (row for one in given for row in one.to_pylist()))) == Counter(
        map(repr, wanted.to_pylist())
    )


BESIDE = {
    "tables and texts": (
        "SELECT k, 'of t' AS c FROM t UNION ALL SELECT k, 'a\n\nb' FROM (SELECT DISTINCT k FROM s) WHERE k "
        "IN (SELECT k FROM beside) UNION ALL SELECT s.k, 'pair' FROM s CROSS JOIN t",
        {(1, "of t"): 1, (3, "of t"): 1, (1, "a\n\nb"): 1, (1, "pair"): 4, (2, "pair"): 2},
    ),
    "many columns": (
        f"SELECT {', '.join(f's.v + {at} AS c{at}' for at in range(28))}, t.v FROM s JOIN t ON s.k = t.k",
        {(*range(5, 33), 8): 1, (*range(7, 35), 8): 1},
    ),
    "rows of each row": (
        "SELECT k, x, y FROM s LATERAL VIEW explode(array(v, k, NULL)) e AS x LATERAL VIEW OUTER"
        " explode(IF(x > 5, array(x), NULL)) f AS y UNION ALL SELECT k, explode(array(v, 1)), NULL FROM t",
        {(1, 5, None): 1, (1, 1, None): 3, (1, None, None): 2, (2, 6, 6): 1, (2, 2, None): 1,
         (2, None, None): 1, (1, 7, 7): 1, (1, 8, None): 1, (3, 9, None): 1, (3, 1, None): 1},
    ),
    "groups of rows of each row": (
        "SELECT x, COUNT(*) AS n FROM s, LATERAL explode(array(v % 2, k)) AS e(x) GROUP BY x",
        {(0, 1): 1, (1, 4): 1, (2, 1): 1},
    ),
}  # fmt: skip
"""Queries of which the plans are read with care, and their rows in the end."""


@pytest.mark.parametrize("name", BESIDE)
@pytest.mark.usefixtures("interpreted")
def test_all_of_a_plan_is_evaluated(spark, tmp_path, monkeypatch, name):
    spark.sql("SELECT 1 AS k").createOrReplaceTempView("beside")
    monkeypatch.setattr(EmittedBySpark, "advance", None)  # in memory alone
    query, wanted = BESIDE[name]
    logs = {
        "s": [[("a", 0, 1, 5, None)], [("a", 1, 2, 6, None), ("a", 2, 1, 7, None)]],
        "t": [[("a", 0, 1, 8, None)], [("a", 1, 3, 9, None)]],
    }
    given, _ = live(spark, tmp_path, logs, None, set(), f"{query} EMIT STREAM AS diff")
    found = Counter()
    for (*row, diff, _), count in counted(given).items():
        found[tuple(row)] += diff * count
    assert {row: count for row, count in found.items() if count} == wanted
    spark.catalog.dropTempView("beside")

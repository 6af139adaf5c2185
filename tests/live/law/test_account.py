"""The account of live queries closes: every row that came was used, waits, or is late, wherever it is cut."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st
from pyspark.sql import functions as F

from tests.live.emit_queries import OVER, WATERMARK
from tests.live.random_clauses import sequences
from tests.live.random_logs import COLUMNS, ended, entry, table
from tests.live.stepping import law
from tests.spark.random_queries import CONTINUOUS, EMITTED, written
from windrow import Session, WindrowError
from windrow.errors import ExecutionError
from windrow.kernels.reference.emit import late_for, watermarks_before
from windrow.kernels.reference.time_windows import windows_of
from windrow.spark.live import Memory
from windrow.spark.live.plans.emit_flow import EmittedFlow
from windrow.spark.live.reports.account import Account
from windrow.streams import NamedStream, Ordering
from windrow.testing import playing


def test_an_account_that_does_not_close_is_an_error():
    assert Account(arrived=9, used=4, buffered=2, late=1, malformed=2).counts["rows_malformed"] == 2
    with pytest.raises(ExecutionError, match="ACCOUNT_NOT_CLOSED"):
        Account(arrived=9, used=4, buffered=2, late=1)


# -- rows that are late for a group ----------------------------------------------------------------------

LAG = 2
WINDOWS = {
    "TUMBLE": ("TUMBLE(TABLE s, DESCRIPTOR(ts), 4)", {"dur": 4}),
    "HOP": ("HOP(TABLE s, DESCRIPTOR(ts), 2, 6)", {"hopsize": 2, "dur": 6}),
    "CUMULATE": ("CUMULATE(TABLE s, DESCRIPTOR(ts), 2, 6)", {"step": 2, "dur": 6}),
    "SESSION": ("SESSION(TABLE s, DESCRIPTOR(ts), 2)", {"gap": 2}),
}
#: of HOP 1 is late for all of its windows, 5 for some, and 8 for none though it is below the watermark 9
TIMES = [1, 7, 5, 11, 1, 8, 5, 15, 9, 30, 31]


def declared(spark, folder, lag=LAG, **options):
    session = Session(spark)
    arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
    for name in ("s", "t"):
        session.stream(
            name, arriving, rowtime="ts", unit="seconds", producer="p", bound="b", lag=lag, **options
        )
    return session


def played(spark, plan, folder, parts):
    """What a query gives and has of a log in these parts."""

    def frames(part):
        def of(steps):
            made = spark.createDataFrame(table(part))
            return {name: made.select(*stream.live.columns) for _, name, stream in steps.streams()}

        return of

    return playing.in_micro_batches(
        plan,
        folder / "checkpoint",
        [frames(part) for part in parts],
        (),
        plan.envelope,
        on_malformed="keep",
    )


def defined(kind, lateness):
    """The late rows and the count of each window, a row after the other, by the definitions."""
    _, lengths = WINDOWS[kind]
    late, counts, kept = [], Counter(), []
    for time, mark in zip(TIMES, watermarks_before(TIMES, LAG), strict=True):
        alone = [(time, time + lengths["gap"] + 1)] if kind == "SESSION" else None
        groups = alone or windows_of(kind, [time], [None], lengths)[0]
        wrong = late_for(groups, mark, lateness)
        late += [time] if wrong else []
        kept += [] if wrong else [time]
        counts.update(group for group in groups if group not in wrong)
    if kind == "SESSION":
        counts = Counter(
            window for one in windows_of(kind, kept, [None] * len(kept), lengths) for window in one
        )
    return late, counts


RUNS = [
    ("TUMBLE", 0, True),
    ("HOP", 0, False),
    ("HOP", 3, True),
    ("CUMULATE", 0, True),
    ("SESSION", 0, False),
]
RUNS += [("SESSION", 3, True)]
"""Windows, the allowed lateness, and whether micro-batches are evaluated in memory; else tasks do it."""


@pytest.mark.sampled
@pytest.mark.parametrize(("kind", "lateness", "in_memory"), RUNS)
@pytest.mark.usefixtures("interpreted")
def test_rows_late_for_a_group_are_told_and_counted_wherever_the_log_is_cut(
    spark, tmp_path, monkeypatch, kind, lateness, in_memory
):
    if not in_memory:
        monkeypatch.setattr(EmittedFlow, "_by_tasks", lambda _: "the test")
    entries = [("a", time, 1, number, None) for number, time in enumerate(TIMES)]
    source, _ = WINDOWS[kind]
    query = f"SELECT wstart, wend, COUNT(*) AS n FROM {source} GROUP BY wstart, wend EMIT STREAM AS diff"
    query += f" ALLOWED LATENESS {lateness}" if lateness else ""
    late, counts = defined(kind, lateness)
    assert late
    for cuts in ([], [4, 5, 8]):
        parts = [entries[low:high] for low, high in pairwise([0, *cuts, len(entries)])]
        plan = declared(spark, tmp_path).sql(query)._live
        found = played(spark, plan, tmp_path / str(len(cuts)), parts)
        assert sorted(json.loads(row["row"])["ts"] for row in found.late) == sorted(late)
        told = {name: found.progress[name] for name in ("rows_in", "rows_used", "rows_buffered", "rows_late")}
        assert told == {
            "rows_in": 11,
            "rows_used": 11 - len(late),
            "rows_buffered": 0,
            "rows_late": len(late),
        }
        total = Counter()
        for one in found.rows:
            total[one["wstart"], one["wend"]] += one["n"] * one["_diff"]
        assert {window: count for window, count in total.items() if count} == counts


@pytest.mark.usefixtures("interpreted")
def test_a_query_or_stream_that_is_to_fail_of_late_rows_fails_of_those_late_for_a_group(spark, tmp_path):
    query = f"SELECT wend, COUNT(*) AS n FROM {WINDOWS['HOP'][0]} GROUP BY wend EMIT STREAM AFTER WATERMARK"
    plan = declared(spark, tmp_path, on_late="fail").sql(query)._live
    entries = [("a", time, 1, number, None) for number, time in enumerate(TIMES)]
    with pytest.raises(WindrowError, match="LATE_ROW"):
        played(spark, plan, tmp_path / "checkpoint", [entries])
    late, _ = defined("HOP", 0)
    in_time = [entry for entry in entries if entry[1] not in late]
    assert played(spark, plan, tmp_path / "other", [in_time]).progress["rows_late"] == 0


@pytest.mark.usefixtures("interpreted")
def test_rows_of_a_named_stream_that_are_late_for_a_group_are_told_and_counted(spark, tmp_path):
    columns = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    ordering = Ordering.lagging(LAG)
    stream = NamedStream.create(tmp_path / "s", columns, "ts", unit="seconds", ordering=ordering)
    with stream.producer("a") as producer:
        for number, time in enumerate(TIMES):
            producer.insert({"ts": time, "k": number})
    session = Session(spark.newSession())
    session.stream("s", stream)
    query = f"SELECT wend, COUNT(*) AS n FROM {WINDOWS['HOP'][0]} GROUP BY wend EMIT STREAM AS diff"
    late, counts = defined("HOP", 0)
    relation, sink, options = session.sql(query), Memory(), {"trigger": {"availableNow": True}}
    running = relation.start(sink, checkpoint=tmp_path / "checkpoint", **options)
    running.await_termination()
    told = {name: running.progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late")}
    assert told == {"in": 11, "used": 11 - len(late), "buffered": 0, "late": len(late)}
    for rows in (running.late, relation.late.df):
        assert sorted(json.loads(row["row"])["ts"] for row in rows.collect()) == sorted(late)
    found = Counter()
    for row in (row for one in sink.batches.values() for row in one.to_pylist()):
        found[row["wend"]] += row["n"] * row["_diff"]
    assert {wend: n for wend, n in found.items() if n} == {wend: n for (_, wend), n in counts.items()}
    with pytest.raises(WindrowError, match="LATE_ROW"):
        relation.start(Memory(), on_late="fail", **options).await_termination()


def recorded(spark, times, **options):
    """A session with such a log."""
    session = Session(spark)
    log = logged(spark, times)
    session.stream("s", log, rowtime="ts", unit="seconds", ptime="at", watermark="upto", **options)
    return session


def logged(spark, times):
    """The log of rows of these times, each with the watermark after it."""
    rows = [(number, time, None) for number, time in enumerate(times)]
    seen = [(number, None, max(times[: number + 1]) - LAG) for number, _ in enumerate(times)]
    return spark.createDataFrame([*rows, *seen], "at int, ts bigint, upto bigint")


@pytest.mark.parametrize(("kind", "lateness"), [("HOP", 0), ("HOP", 3), ("SESSION", 3)])
@pytest.mark.usefixtures("interpreted")
def test_a_recorded_stream_that_is_to_fail_of_late_rows_fails_of_those_late_for_a_group(
    spark, kind, lateness
):
    query = f"SELECT wend, COUNT(*) AS n FROM {WINDOWS[kind][0]} GROUP BY wend EMIT STREAM"
    query += f" ALLOWED LATENESS {lateness}" if lateness else ""
    late, _ = defined(kind, lateness)
    with pytest.raises(WindrowError, match="LATE_ROW"):
        recorded(spark, TIMES, on_late="fail").sql(query).collect()
    in_time = [time for time in TIMES if time not in late]
    found = recorded(spark, in_time, on_late="fail").sql(query)
    assert found.late.collect() == []
    assert found.collect()


@pytest.mark.usefixtures("interpreted")
def test_a_recorded_stream_beside_a_live_one_may_fail_of_rows_late_for_a_group(spark, tmp_path):
    source = WINDOWS["HOP"][0].replace("TABLE s", "TABLE r")
    query = (
        f"SELECT wend, COUNT(*) AS n FROM {source} GROUP BY wend UNION ALL SELECT ts, v FROM s EMIT STREAM"
    )
    late, _ = defined("HOP", 0)
    for times, fails in ((TIMES, True), ([time for time in TIMES if time not in late], False)):
        session = declared(spark, tmp_path)
        log = logged(spark, times).withColumn("at", F.timestamp_seconds("at"))
        session.stream("r", log, rowtime="ts", unit="seconds", ptime="at", watermark="upto", on_late="fail")
        plan, folder = session.sql(query)._live, tmp_path / str(fails)
        if fails:
            with pytest.raises(WindrowError, match="LATE_ROW"):
                played(spark, plan, folder, [[("a", 1, 1, 0, None)]])
        else:
            found = played(spark, plan, folder, [[("a", 1, 1, 0, None)]])
            assert (found.progress["rows_in"], found.progress["rows_used"]) == (1, 1)
            assert {row["wend"] for row in found.rows} >= {32, 1}, "a window, and the row of the live stream"


def test_late_rows_of_a_recorded_log_are_those_of_its_groups_once(spark):
    session = recorded(spark, TIMES)
    twice = (
        "SELECT a.ts, n, m FROM (SELECT ts, COUNT(*) AS n FROM s GROUP BY ts) AS a JOIN (SELECT wend, "
        "COUNT(*) AS m FROM TUMBLE(TABLE s , DESCRIPTOR(ts), 4) GROUP BY wend) AS b ON a.ts = b.wend "
        "EMIT STREAM"
    )
    for query, wanted in (
        (
            f"SELECT wend, COUNT(*) AS n FROM {WINDOWS['HOP'][0]} GROUP BY wend EMIT STREAM",
            defined("HOP", 0)[0],
        ),
        (f"SELECT wend, COUNT(*) AS n FROM {WINDOWS['SESSION'][0]} GROUP BY wend", defined("SESSION", 0)[0]),
        (twice, [1, 5, 8, 9]),  # each once, though 1 and 9 are late for a group of either
        ("SELECT ts FROM s EMIT STREAM", []),
    ):
        late = session.sql(query).late.collect()
        found = sorted(json.loads(row["row"])["ts"] for row in late)
        assert found == sorted(wanted), query
        assert all(row["stream"] == "s" and row["rowtime"] < row["bound"] for row in late)


# -- any query ---------------------------------------------------------------------------------------------

GROUPED = ("tumbling windows", "hopping windows", "sessions", "keys that live", "groups of groups")
ANY = {
    **{f"EMIT: {name}": OVER[name] for name in (*GROUPED, "equal rows of windows", "a join")},
    "CQL: a group": "SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k",
    "CQL: a join": "SELECT a.v, b.v AS w FROM s [ROWS 2] AS a JOIN s [NOW] AS b ON a.k = b.k",
    "SELECT STREAM": "SELECT STREAM ts, k, v + 1 AS v FROM s WHERE v > 0",
    "WINDOW BY": "SELECT e.ts, e.k, SUM(w.v) AS v FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k "
    "ORDER BY ts START AS a ONLY END AS e WHEN e.v >= a.v AND e.ts > a.ts)",
    "MATCH_RECOGNIZE": "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES LAST(ts) AS "
    "last, COUNT(*) AS n PATTERN (u d+) DEFINE u AS v > 0, d AS v < 2)",
}


STREAMS = [
    "SELECT STREAM ts, k, v FROM s WHERE v > 0 OR k IS NULL",
    "SELECT STREAM ts, k, SUM(v) OVER (PARTITION BY k ORDER BY ts) AS v FROM s",
    "SELECT STREAM wend, k, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY wend, k",
    "SELECT STREAM s.ts, s.k, t.v FROM s JOIN t ON s.k = t.k AND s.ts = t.ts",
]


@st.composite
def asked(draw):
    """A query, and how it is shown: one that is written here, or one at random."""

    def below(count):
        return draw(st.integers(0, count - 1))

    kind = draw(st.sampled_from(["written", "EMIT", "CQL", "clause", "clause", "stream"]))
    if kind == "CQL":
        return written(below, CONTINUOUS)
    if kind == "clause":
        return draw(sequences())
    if kind == "stream":
        return draw(st.sampled_from(STREAMS))
    name = draw(st.sampled_from([*ANY]))
    query = written(below, EMITTED) if kind == "EMIT" else ANY[name]
    # which rows of several streaming DataFrames are late for a group is what docs/limits.md says
    assume(kind != "EMIT" or not re.search(r"\bt\b", query))
    is_emitted = kind == "EMIT" or name.startswith("EMIT")
    how = draw(st.sampled_from(["EMIT STREAM AS diff", *WATERMARK])) if is_emitted else ""
    lateness = draw(st.sampled_from(["", " ALLOWED LATENESS 2"])) if how else ""
    query = f"{query} {how}{lateness}"
    if "STATE LIFETIME" in query:  # comes last
        query = f"{query.replace(' STATE LIFETIME 3', '')} STATE LIFETIME 3"
    return query


def in_the_end(found):
    """What is there when all changes are added up; times of processing are those of micro-batches."""
    total = Counter()
    for row in found.rows:
        change = row.pop("_change_type", None)
        diff = row.pop(
            "_diff", -1 if row.pop("undo", False) or change in ("delete", "update_preimage") else 1
        )
        told = [(name, value) for name, value in row.items() if name not in OF_TIME]
        # rows of windows are dictionaries, and lists of them
        total[tuple((name, str(one) if isinstance(one, dict | list) else one) for name, one in told)] += diff
    return {row: count for row, count in total.items() if count}


def said_of(late):
    """The late rows; how far ahead a row may be is a matter of its micro-batch's time."""
    return Counter(str({**row, "bound": "future" in row["reason"] or row["bound"]}) for row in late)


OF_TIME = ("_at", "ptime", "ver", "_commit_version", "_commit_timestamp")
LATE_LOG = [("a", ts, ts % 2, 1 + number % 3, None) for number, ts in enumerate([1, 7, 5, 9, 1, 6, 8, 3])]


WRITTEN = [
    ([0.3, 0.6], f"{ANY['EMIT: hopping windows']} {WATERMARK[1]}"),
    ([0.2, 0.5], f"{ANY['EMIT: sessions']} EMIT STREAM AS diff"),
    ([0.4, 0.8], ANY["WINDOW BY"]),
    (
        [0.4, 0.8],
        "SELECT *, COUNT(w.v) AS n FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts, p, k, v START AS s AT sa"
        " END AS e WHEN e.ts - s.ts >= 2)",
    ),
    ([0.4, 0.8], ANY["MATCH_RECOGNIZE"]),
]


@pytest.mark.sampled
@pytest.mark.parametrize(("cuts", "query"), WRITTEN)
@pytest.mark.usefixtures("interpreted")
def test_the_account_of_rows_that_are_late_does_not_depend_on_cuts(spark, tmp_path, cuts, query):
    account_does_not_depend_on_cuts(spark, tmp_path, LATE_LOG, cuts, 2, query)


FAR = 4_000_000_000
"""A rowtime of a clock that is wrong: the year 2096."""
wrong_entry = st.sampled_from(
    [("a", FAR, 1, 1, None), ("a", None, None, None, FAR), ("b", FAR, 0, 1, FAR), ("a", None, 1, 2, None)]
)
"""Rows and bounds too far ahead, and a row without a rowtime."""


@law(40)
@given(
    st.lists(entry | entry | entry | wrong_entry, max_size=10),
    st.lists(st.floats(0, 1), min_size=1, max_size=4),
    st.sampled_from([0, 2]),
    asked(),
)
@pytest.mark.timeout(3600)  # of all examples
@pytest.mark.usefixtures("interpreted")
def test_neither_the_account_nor_a_final_row_depends_on_where_micro_batches_are_cut(
    spark, tmp_path_factory, entries, cuts, lag, query
):
    folder = tmp_path_factory.mktemp("account")
    account_does_not_depend_on_cuts(spark, folder, entries, cuts, lag, query)


def account_does_not_depend_on_cuts(spark, folder, entries, cuts, lag, query):
    log = ended(entries)
    spark = spark.newSession()
    spark.sql("SELECT 1L AS k, 2L AS w, 'a' AS x").createOrReplaceTempView("names")
    session = declared(spark, folder, lag, future="1 day")
    try:
        plan = session.sql(query)._live
    except WindrowError:  # refused when it is given
        reject()
    if plan is None:  # it reads no stream
        reject()
    bounds = [0, *(round(each * len(log)) for each in sorted(cuts)), len(log)]
    found = [
        played(spark, plan, folder / str(number), parts)
        for number, parts in enumerate(([log], [log[low:high] for low, high in pairwise(bounds)]))
    ]
    names = ("rows_in", "rows_used", "rows_buffered", "rows_late", "rows_malformed")
    whole, in_parts = (
        ({name: one.progress[name] for name in names}, said_of(one.late), in_the_end(one)) for one in found
    )
    assert whole == in_parts
    account, *_ = whole
    streams = len(plan.streams)
    assert account["rows_in"] == sum(count for name, count in account.items() if name != "rows_in")
    assert account["rows_in"] == streams * sum(ts is not None or bound is None for _, ts, *_, bound in log)
    assert account["rows_malformed"] == streams * sum(
        ts is None and bound is None for _, ts, *_, bound in log
    )
    assert account["rows_late"] == sum(one["row"] is not None for one in found[0].late)

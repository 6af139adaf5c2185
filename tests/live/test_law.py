"""Live queries give what the whole log gives, wherever it is cut and wherever they are killed."""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import cycle

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.stepping import in_micro_batches, law, rows_of, total
from tests.spark.test_continuous_property import relations
from windrow import Session
from windrow.spark.live.checkpoints import carried_state
from windrow.streams import FOREVER, Decision, EntryKind, Ordering, WatermarkState
from windrow.streams.admission.watermark import decide
from windrow.streams.entries import Entries

SCHEMA = pa.schema(
    [("p", pa.string()), ("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64()), ("b", pa.int64())]
)
COLUMNS = "p string, ts bigint, k bigint, v bigint, b bigint"
PRODUCERS = ["a", "b"]

value = st.none() | st.integers(0, 3)
row = st.tuples(st.sampled_from(PRODUCERS), st.integers(0, 9), st.none() | st.integers(0, 2), value)
entry = st.one_of(
    row.map(lambda found: (*found, None)),
    st.tuples(st.sampled_from(PRODUCERS), st.none(), st.none(), st.none(), st.integers(0, 9)),
    st.tuples(row, st.integers(0, 9)).map(lambda pair: (*pair[0], pair[1])),
)
log = st.lists(entry, max_size=8)
LAGS = [None, 0, 2]


def ended(entries):
    """The log with promises that nothing follows, of all producers that have said anything."""
    said = {producer for producer, *_ in entries} or set(PRODUCERS[:1])
    return [*entries, *((producer, None, None, None, FOREVER) for producer in sorted(said))]


def admitted(entries, lag):
    """The rows that the definition of clocks admits, an entry at a time."""
    items = []
    for number, (producer, ts, _, _, bound) in enumerate(entries):
        items += [(EntryKind.ROW, producer, ts, number)] if ts is not None else []
        items += [(EntryKind.BOUND, producer, bound, number)] if bound is not None else []
    ordering = Ordering.unordered() if lag is None else Ordering.lagging(lag)
    found = decide(WatermarkState(), ordering, Entries.of(items))
    return [
        (number, *entries[number][:4])
        for (kind, _, _, number), decision in zip(items, found.decision, strict=True)
        if kind == EntryKind.ROW and decision == Decision.ADMITTED
    ]


def table(entries):
    columns = list(zip(*entries, strict=True)) or [()] * len(SCHEMA)
    return pa.table(
        [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def recorded(spark, logs, lag):
    """A session with streams of the rows that are admitted."""
    session = Session(spark)
    for name, entries in logs.items():
        rows = [(producer, ts, k, v, number) for number, producer, ts, k, v in admitted(entries, lag)]
        declared = table(rows).rename_columns(["p", "ts", "k", "v", "n"])
        session.stream(name, declared, rowtime="ts", unit="seconds", ptime="n")
    return session


def declared_live(spark, folder, logs, lag):
    """A session with live streams of these names."""
    session = Session(spark)
    for name in logs:
        arriving = spark.readStream.schema(COLUMNS).parquet(str(folder))
        session.stream(name, arriving, rowtime="ts", unit="seconds", producer="p", bound="b", lag=lag)
    return session


def live(spark, folder, logs, lag, cuts, kills, query, **params):
    """What the steps give, in which the logs are cut, the process being killed at some."""

    def frames(steps, low, high):
        found = {}
        for _, name, stream in steps.streams():
            entries = logs[name]
            part = entries[round(low * len(entries)) : round(high * len(entries))]
            found[name] = spark.createDataFrame(table(part)).select(*stream.live.columns)
        return found

    plan = declared_live(spark, folder, logs, lag).sql(query, **params)._live
    given, counted = in_micro_batches(plan, folder, cuts, kills, frames)
    count = sum(len(entries) for entries in logs.values())
    assert counted["rows_in"] == counted["rows_used"] + counted["rows_held"] + counted["rows_late"] <= count
    assert counted["rows_held"] == 0
    return given


@law(5)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    relations(),
)
@example(
    [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", None, None, None, 4)],
    [("a", 2, 0, 1, 3), ("a", 5, 0, None, None)],
    None,
    [0.3, 0.6],
    {1},
    "SELECT k, COUNT(*) AS v FROM s [ROWS 2] GROUP BY k",
)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s), "t": ended(t)}
    used = [name for name in logs if name in query.split()]
    # before its first row a stream has no clock, and what reads it waits
    if "names" in query or not used or not all(admitted(logs[name], lag) for name in used):
        return
    found = total(live(spark, folder, logs, lag, cuts, kills, query))
    wanted = total([recorded(spark, logs, lag).sql(query).changelog("diff").to_arrow()])
    assert (+found, -found) == (+wanted, -wanted)


@pytest.mark.usefixtures("interpreted")
def test_changes_of_a_live_relation_are_those_of_the_whole_log(spark, tmp_path):
    entries = [
        ("a", 0, 1, 1, None),
        ("b", 1, 1, 3, 1),
        ("a", 3, 1, 2, 2),
        ("b", 4, 2, 1, 4),
        ("a", 8, 1, 1, 8),
    ]
    logs = {"s": ended(entries)}
    query = (
        "SELECT _change_type AS c, _commit_version AS at, k + n AS v FROM"
        " CHANGELOG OF (SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k) KEY (k) WHERE n > 0 AND k <> 9"
    )
    found = rows_of(live(spark, tmp_path, logs, None, [0.3, 0.6], {1}, query))
    assert found == rows_of([recorded(spark, logs, None).sql(query).to_arrow()])
    assert sum(found.values()) > 5


@pytest.mark.parametrize(
    "window", ["[RANGE :n]", "[RANGE :n SLIDE 1 + :m]", "[PARTITION BY k ROWS :m RANGE :n]"]
)
@pytest.mark.usefixtures("interpreted")
def test_lengths_by_parameters_are_live_what_they_are_over_the_whole_log(spark, tmp_path, window):
    entries = [("a", at, at % 2, at % 3, at) for at in (0, 1, 3, 4, 8)]
    logs, given = {"s": ended(entries)}, {"n": 3, "m": 1}
    query = f"SELECT k, COUNT(*) AS n FROM s {window} GROUP BY k"
    found = total(live(spark, tmp_path, logs, None, [0.3, 0.6], {1}, query, **given))
    wanted = total([recorded(spark, logs, None).sql(query, **given).changelog("diff").to_arrow()])
    assert (+found, -found) == (+wanted, -wanted)
    assert sum(abs(count) for count in found.values()) > 5


# -- in memory -----------------------------------------------------------------------------------------

BRACKETS = [
    "[NOW]",
    "[RANGE 3]",
    "[RANGE 4 SLIDE 2]",
    "[RANGE 2 SLIDE 3]",
    "[RANGE UNBOUNDED]",
    "[ROWS 2]",
    "[PARTITION BY k ROWS 1]",
    "[PARTITION BY p, k ROWS 2 RANGE 4]",
    "[PARTITION BY k ROWS 2 RANGE 5 SLIDE 2]",
]
IN_MEMORY = [
    "SELECT p, ts, k, v FROM s {}",
    "SELECT k, v * 2 AS v, ts FROM s {} WHERE v > 0 OR k IS NULL",
    "SELECT ISTREAM(k, v) FROM s {}",
    "SELECT DSTREAM(ts, v + 1 AS v) FROM s {} WHERE k = 1",
    "SELECT k, COUNT(*) AS n, SUM(v) AS v, MIN(ts) AS t FROM s {} GROUP BY k",
    "SELECT ISTREAM(k, MAX(v) AS v) FROM s {} WHERE 4 DIV (v + 1) > 1 GROUP BY k",
    "SELECT p, COUNT(DISTINCT v) % 2 AS v FROM s {} WHERE v <> 0 GROUP BY p, k HAVING COUNT(*) > 1",
    "SELECT k + 1 AS m, AVG(v) AS v FROM s {} GROUP BY k + 1",
    "SELECT a.p, a.k, b.v FROM s {} AS a, t {} AS b WHERE a.k = b.k",
    "SELECT ISTREAM(a.p, a.v, b.ts + 1 AS u) FROM s {} AS a JOIN t {} AS b ON a.k = b.k AND a.p = b.p "
    "WHERE b.v > 0",
]


FLOWING = [
    "SELECT COUNT(*) AS n, SUM(v) AS v, MAX(p) AS p FROM s {}",
    "SELECT ISTREAM(SUM(v) AS v) FROM s {} WHERE v > 0 HAVING COUNT(*) > 1",
    "SELECT DISTINCT k, v > 1 AS more FROM s {}",
    "SELECT k FROM s {} UNION SELECT v FROM t {}",
    "SELECT k, v FROM s {} EXCEPT ALL SELECT k, v FROM t {}",
    "SELECT a.k, a.v, b.v AS w FROM s {} AS a LEFT JOIN t {} AS b ON a.k = b.k AND a.v >= b.v",
    "SELECT k, v FROM s {} AS a WHERE v >= (SELECT AVG(v) FROM t {} AS b)",
    "SELECT ts, k FROM s {} AS a WHERE NOT EXISTS (SELECT 1 FROM t {} AS b WHERE b.k = a.k)",
    "SELECT MAX(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s {} GROUP BY k)",
    "SELECT k, MEDIAN(v) AS m FROM (SELECT k, v FROM s {} UNION ALL SELECT k, v FROM t {}) GROUP BY k",
    "SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM s {}",
    "SELECT v, k FROM s {} ORDER BY v DESC, k, ts LIMIT 2",
    "SELECT a.k, a.n FROM (SELECT k, COUNT(*) AS n FROM s {} GROUP BY k) AS a JOIN t {} AS b ON a.n = b.v",
]


def _in_memory(spark, folder, logs, lag, cuts, kills, query):
    assert declared_live(spark, folder, logs, lag).sql(query)._live.stage is not None
    found = live(spark, folder, logs, lag, cuts, kills, query)
    relation = recorded(spark, logs, lag).sql(query)
    if "STREAM" in query:
        wanted = relation.to_arrow()
        count = Counter(tuple(row.values()) for table in found for row in table.to_pylist())
        assert count == Counter(tuple(row.values()) for row in wanted.to_pylist())
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert (+changed, -changed) == (+meant, -meant)


@law(6)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=4),
    st.sets(st.integers(0, 4), max_size=2),
    st.sampled_from(IN_MEMORY),
    st.sampled_from(BRACKETS),
    st.sampled_from(BRACKETS),
)
@pytest.mark.usefixtures("interpreted")
def test_steps_in_memory_change_nothing(
    spark, tmp_path_factory, s, t, lag, cuts, kills, query, window, other
):
    query = query.format(window, other)
    logs = {name: ended(entries) for name, entries in (("s", s), ("t", t)) if f" {name} [" in query}
    if all(admitted(entries, lag) for entries in logs.values()):  # before its first row a stream has no clock
        _in_memory(spark, tmp_path_factory.mktemp("live"), logs, lag, cuts, kills, query)


@law(6)
@given(
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    st.sampled_from(FLOWING),
    st.sampled_from(BRACKETS),
    st.sampled_from(BRACKETS),
)
@pytest.mark.usefixtures("interpreted")
def test_any_plan_over_windows_in_memory_changes_nothing(
    spark, tmp_path_factory, s, t, lag, cuts, kills, query, window, other
):
    query = query.format(window, other)
    logs = {name: ended(entries) for name, entries in (("s", s), ("t", t)) if f" {name} [" in query}
    if all(admitted(entries, lag) for entries in logs.values()):
        _in_memory(spark, tmp_path_factory.mktemp("live"), logs, lag, cuts, kills, query)


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SUM(v / 3.0D) AS d FROM (SELECT k, v FROM s [RANGE 4] UNION ALL "
        "SELECT v, k FROM s [ROWS 2]) GROUP BY k",
        "SELECT AVG(v / 3.0D) AS d, SUM(v * 1e17D) AS e FROM s [RANGE 4]",
        "SELECT k, array_join(array_sort(collect_list(v)), ' ') AS l, stddev(v) AS d FROM s [ROWS 4] "
        "GROUP BY k",
        "SELECT a.k, b.v FROM s [RANGE 3] a CROSS JOIN s [ROWS 1] b",
        "SELECT k, SUM(v) OVER (ORDER BY ts, v, k) AS c FROM s [RANGE 4]",
        "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY ROLLUP (k))",
        "SELECT ISTREAM(k, v) FROM s [RANGE 3] WHERE k IN (SELECT v FROM s [RANGE 5])",
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_plans_of_one_stream_in_memory_change_nothing(spark, tmp_path, query):
    entries = [("a", 0, 1, 2, 0), ("a", 1, 2, 3, 1), ("a", 1, 1, 2, 1), ("b", 3, 1, 7, 3), ("a", 4, 2, 1, 4)]
    entries += [("a", 6, 1, 3, 6), ("a", 9, 1, 3, 9), ("a", 20, 3, 3, 20)]
    _in_memory(spark, tmp_path, {"s": ended(entries)}, None, [0.2, 0.5, 0.7], {1, 2}, query)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n, SUM(v) AS v, AVG(v / 3.0D) AS a, MAX(p) AS m FROM s {} WHERE v > 0 "
        "GROUP BY k",
        "SELECT ISTREAM(k + 1 AS m, MIN(v) AS v, COUNT(DISTINCT ts) AS n) FROM s {} GROUP BY k + 1",
    ],
)
@pytest.mark.parametrize("always", [True, False])
@pytest.mark.usefixtures("interpreted")
def test_groups_of_rows_that_never_leave_keep_numbers(spark, tmp_path, monkeypatch, query, always):
    """Written in every step, or when there are more rows than groups; and read again after a kill."""
    if always:
        monkeypatch.setattr(carried_state.Carried, "is_due", staticmethod(lambda *_: True))
    monkeypatch.setattr(carried_state, "_FEWEST", 5)
    query = query.format("[RANGE UNBOUNDED]")
    logs = {"s": ended([("a", at, at % 3, at * 7 % 11, None) for at in range(40)])}
    cuts = [0.2, 0.4, 0.6, 0.8]
    found = live(spark, tmp_path, logs, 0, cuts, {1, 3}, query)
    relation = recorded(spark, logs, 0).sql(query)
    if "STREAM" in query:
        assert rows_of(found) == rows_of([relation.to_arrow()])
    else:
        changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
        assert (+changed, -changed) == (+meant, -meant)
    meta = json.loads((tmp_path / "checkpoint" / "windrow" / "4" / "step.json").read_text())
    (groups,) = meta["chunks"]["carry"].values()
    assert groups <= 3 + 40 * ("DISTINCT" in query)
    assert sum(sum(one.values()) for name, one in meta["chunks"].items() if name != "carry") < 40


# -- windows and patterns ------------------------------------------------------------------------------

ORDER = "ORDER BY ts, p, k, v"
"""An order in which rows that tie are the same row to every query."""

AGGREGATES = "COUNT(w.v) AS n, SUM(w.v) AS total, MEDIAN(w.v) AS middle"
STARTS = [
    "START AS s AT sa",
    "START AS s AT sa WHEN s.v > 1",
    "START AS s AT sa PREV AS sp WHEN sp IS NULL OR s.ts - sp.ts > 1",
    "ONLY START AS s AT sa NEXT AS sn WHEN sn.v < s.v",
]
ENDS = [
    "END AS e WHEN e.ts - s.ts >= 2",
    "END AS e AT ea WHEN ea = sa + 1",
    "END AS e NEXT AS en WHEN en.ts - s.ts > 2 OR en IS NULL",
    "ONLY END AS e PREV AS ep NEXT AS en WHEN en.v > e.v",
    "END UNBOUNDED",
]
LABELS = [
    "LABEL AS l START AS s WHEN l.ts - s.ts <= 2 END AS e WHEN e = l",
    "LABEL AS l NEXT AS ln WHEN l.v > 0 ONLY START AS s WHEN s.ts > l.ts END AS e WHEN e.ts - s.ts > 1",
    "LABEL AS l START UNBOUNDED END AS e AT ea WHEN ea = 3",
]
PATTERNS = [
    "PATTERN (a b+) DEFINE b AS b.v >= PREV(b.v)",
    "PATTERN (a b*? c) WITHIN 3 DEFINE c AS c.v < a.v",
    "PATTERN (a b+) WITHIN INCLUSIVE v DEFINE b AS b.v <> 2",
    "PATTERN (a b*) DURATION v DEFINE b AS b.v <> 2",
    "PATTERN (^ a | b c) DEFINE a AS NEXT(a.v) > a.v, c AS c.ts - b.ts > 1",
    "PATTERN ((a | b)* c $) DEFINE c AS COUNT(*) > 1, a AS a.v > 0",
]
MODES = ["ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"]
SKIPS = ["AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW", "ALL MATCHES"]
FRAMES = ["CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING"]
OF_FRAMES = [
    "{} PATTERN (a b+) DEFINE b AS b.v >= PREV(b.v)",
    "{} SEEK PATTERN (a b*? c) WITHIN 3 DEFINE c AS c.v < a.v",
    "AFTER MATCH SKIP TO NEXT ROW {} PATTERN (a b | c) WITHIN 2 DEFINE a AS NEXT(a.v) > a.v, c AS c.v = 1",
]


@st.composite
def sequences(draw):
    """A query with WINDOW BY or MATCH_RECOGNIZE over the stream s."""
    partition = draw(st.sampled_from(["", "PARTITION BY k "]))
    source = draw(st.sampled_from(["s", "(SELECT * FROM s WHERE v <> 2 OR v IS NULL) AS t"]))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["SLIDING", "TUMBLING"]))
        tail = draw(st.sampled_from([*(f"{start} {end}" for start in STARTS for end in ENDS), *LABELS]))
        row = "l" if tail in LABELS else "s"
        select = draw(st.sampled_from([f"SELECT *, {AGGREGATES}", f"SELECT {row}.k, {AGGREGATES}"]))
        return f"{select} FROM {source} WINDOW BY w AS (TYPE {kind} {partition}{ORDER} {tail})"
    pattern, mode, skip = (draw(st.sampled_from(options)) for options in (PATTERNS, MODES, SKIPS))
    measures = "MEASURES MATCH_NUMBER() AS n, CLASSIFIER() AS c, FIRST(ts) AS t, SUM(v) AS total"
    if draw(st.booleans()):
        frame = f"{measures[:8]} FIRST(ts) AS t, SUM(v) AS total ROWS BETWEEN CURRENT ROW AND {{}}"
        text = draw(st.sampled_from(OF_FRAMES))
        before, _, after = text.partition("{}")
        frame = frame.format(draw(st.sampled_from(FRAMES)))
        window = f"{partition}{ORDER} {frame} {before}{after}"
        source = source.replace(" AS t", "")
        return f"SELECT *, t OVER w, total OVER w, count(*) OVER w AS n FROM {source} WINDOW w AS ({window})"
    mode = "ONE ROW PER MATCH" if "UNMATCHED" in mode and skip == "ALL MATCHES" else mode
    clause = f"{partition}{ORDER} {measures} {mode} {skip} {pattern}"
    return f"SELECT * FROM {source} MATCH_RECOGNIZE ({clause})".replace(" AS t MATCH", " MATCH")


@law(4)
@given(
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    st.sampled_from(["driver", "both", "tasks"]),
    st.lists(st.integers(1, 8), min_size=1, max_size=3),
    sequences(),
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    "tasks",
    [3, 8, 1],
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES MATCH_NUMBER() AS n, FIRST(ts) AS t"
    " ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b) WITHIN 3 DEFINE b AS b.v > a.v)",
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("a", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    "driver",
    [1],
    f"SELECT *, t OVER w, count(*) OVER w AS n FROM s WINDOW w AS (PARTITION BY k {ORDER}"
    " MEASURES LAST(ts) AS t ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a b+)"
    " DEFINE b AS b.v <= NEXT(b.v) OR b.v > a.v)",
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("a", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    "both",
    [2, 1],
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES MATCH_NUMBER() AS n, FIRST(ts) AS t,"
    " COUNT(*) AS c ALL MATCHES PATTERN (a b | a+ $) DEFINE b AS b.v > a.v)",
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("a", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    "both",
    [2, 1],
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES FIRST(ts) AS t,"
    " SUM(DISTINCT v) AS total, MAX_BY(a.ts, a.ts) FILTER (WHERE a.v < 3) AS m"
    " ALL ROWS PER MATCH PATTERN (a+ b) DEFINE b AS b.v < a.v)",
)
@pytest.mark.usefixtures("interpreted")
def test_windows_and_patterns_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, lag, cuts, kills, by, buckets, query
):
    """Also where the tasks of each step deal the partitions to another number of buckets."""
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s)}
    if not admitted(logs["s"], lag):
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.spark.live.micro_batches.steps.FEW", -1 if by == "tasks" else 20_000)
        # by both: in memory while nothing is kept, of what the other way has left too
        most = {"driver": 1 << 22, "tasks": -1, "both": 0}[by]
        patch.setattr("windrow.spark.live.micro_batches.clause_steps.MOST", most)
        turns = cycle(buckets)
        patch.setattr("windrow.spark.live.operators.clause_operator.shuffled", lambda _: next(turns))
        found = rows_of(live(spark, folder, logs, lag, cuts, kills, query))
    for execution in ("batch", "reference"):
        session = Session(spark, execution=execution)
        session.register("s", table([(*row, None) for _, *row in admitted(logs["s"], lag)]).drop_columns("b"))
        assert found == rows_of([session.sql(query).to_arrow()])


# -- conditions that Spark evaluates over pairs of rows ---------------------------------------------------

FAR, IN_WORDS = re.compile(r"far\(([\w.]+), ([\w.]+)\)"), r"abs(\1 - \2) >= 2"
PAIRED = [
    "START AS s PREV AS sp WHEN sp IS NULL OR upper(concat(sp.p, s.p)) = 'AB'"
    " END AS e NEXT AS en WHEN en.ts - s.ts > 2 OR en IS NULL",
    "START AS s AT sa NEXT AS sn WHEN sn.v >= s.v END AS e AT ea NEXT AS en WHEN far(en.v, s.v) OR ea = 4",
    "START AS s ONLY END AS e PREV AS ep WHEN upper(concat(ep.p, e.p)) = 'AB' AND e.ts > s.ts",
    "LABEL AS l START AS s WHEN l.ts - s.ts <= 2 END AS e WHEN e.ts > l.ts AND far(s.v, e.v)",
    "LABEL AS l AT la START AS s AT sa WHEN sa = la - 1 AND upper(l.p || s.p) = 'BA' END AS e WHEN e = l",
    "LABEL AS l NEXT AS ln WHEN far(l.v, ln.v) ONLY START AS s WHEN far(s.v, l.v) END AS e WHEN e.v > s.v",
]


@law(1)
@given(
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 1), max_size=1),
    st.just(False),
    st.sampled_from(["SLIDING", "TUMBLING"]),
    st.sampled_from(PAIRED),
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 0, 4), ("a", 8, 1, 3, 8)],
    [0.5],
    set(),
    True,
    "SLIDING",
    PAIRED[3],
)
@pytest.mark.usefixtures("interpreted")
def test_conditions_over_pairs_of_rows_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, cuts, kills, by_tasks, kind, clause
):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s)}
    if not admitted(logs["s"], None):
        return
    spark.udf.register("far", lambda v, u: None not in (v, u) and abs(v - u) >= 2, "boolean")
    rows = table([(*row, None) for _, *row in admitted(logs["s"], None)]).drop_columns("b")
    query = f"SELECT *, {AGGREGATES} FROM s WINDOW BY w AS (TYPE {kind} PARTITION BY k {ORDER} {clause})"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.spark.live.micro_batches.steps.FEW", -1 if by_tasks else 20_000)
        found = rows_of(live(spark, folder, logs, None, cuts, kills, query))
    for execution, text in (("batch", query), ("reference", FAR.sub(IN_WORDS, query))):
        session = Session(spark, execution=execution)
        session.register("s", rows)
        assert found == rows_of([session.sql(text).to_arrow()])


# -- what follows windows and patterns -----------------------------------------------------------------

GAPS = (
    f"SELECT s.ts, s.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE TUMBLING PARTITION BY k {ORDER}"
    " START AS s END AS e NEXT AS en WHEN en.ts - e.ts > 1 OR en IS NULL)"
)
AHEAD = (
    f"SELECT l.ts, l.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING {ORDER}"
    " LABEL AS l START AS a WHEN l.ts - a.ts <= 2 END AS e WHEN e.ts - l.ts >= 1)"
)
RISES = (
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES LAST(ts) AS ts, COUNT(*) AS n"
    " PATTERN (a b+) WITHIN 4 DEFINE b AS b.ts > a.ts)"
)
FOLLOWING = [
    "SELECT k, COUNT(*) AS c, SUM(n) AS n FROM ({}) [RANGE 3] AS x GROUP BY k",
    "SELECT a.k, a.n, b.v FROM ({}) [RANGE 3] AS a, s [RANGE 2] AS b WHERE a.k = b.k",
    "SELECT COUNT(*) AS c FROM ({}) [ROWS 2] AS x",
    "SELECT ISTREAM(x.k, y.v) FROM ({}) [PARTITION BY k ROWS 1] AS x JOIN t [NOW] AS y ON x.k = y.k",
    "SELECT k, SUM(n) AS n FROM ({}) [RANGE UNBOUNDED] AS x WHERE n > 1 GROUP BY k HAVING COUNT(*) < 3",
    "SELECT k, n FROM ({}) [RANGE 2] AS x UNION SELECT k, v FROM t [RANGE 1] AS y",
    "SELECT k, SUM(n) OVER (PARTITION BY k) AS n FROM ({}) [RANGE 3] AS x",
]
CLAUSES = [
    "SELECT t.k, t.ts, SUM(w.n) AS n FROM ({}) WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts, n"
    " START AS t END AS e WHEN e.ts - t.ts >= 2)",
    "SELECT * FROM ({}) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, n MEASURES FIRST(n) AS m, LAST(ts) AS u"
    " PATTERN (a b*) DEFINE b AS b.ts - PREV(b.ts) <= 3)",
    "SELECT k, n FROM ({}) UNION ALL SELECT t.k, COUNT(w) FROM t WINDOW BY w AS (TYPE TUMBLING PARTITION BY k"
    f" {ORDER} START AS t WHEN t.v > 1)",
]


@law(2)
@given(
    log,
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 2), max_size=1),
    st.just(False),
    st.sampled_from([GAPS, AHEAD, RISES]),
    st.sampled_from(FOLLOWING + CLAUSES),
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [("a", 4, 1, 7, 4)],
    [0.4, 0.7],
    {1},
    True,
    GAPS,
    FOLLOWING[1],
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [("a", 4, 1, 7, 4)],
    [0.5],
    {0},
    True,
    AHEAD,
    CLAUSES[1],
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [],
    [0.4, 0.7],
    {1},
    False,
    RISES,
    FOLLOWING[4],
)
@pytest.mark.usefixtures("interpreted")
def test_what_follows_windows_and_patterns_is_that_of_the_whole_log(
    spark, tmp_path_factory, s, t, cuts, kills, by_tasks, clause, query
):
    folder = tmp_path_factory.mktemp("live")
    query = query.format(clause)
    logs = {name: ended(entries) for name, entries in (("s", s), ("t", t)) if f" {name} " in query}
    if not all(admitted(entries, None) for entries in logs.values()):
        return  # before its first row a stream has no clock, and what reads it waits
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.spark.live.micro_batches.steps.FEW", -1 if by_tasks else 20_000)
        patch.setattr("windrow.spark.live.micro_batches.clauses_steps.MOST", -1 if by_tasks else 1 << 22)
        found = live(spark, folder, logs, None, cuts, kills, query)
    relation = recorded(spark, logs, None).sql(query)
    if "[" not in query or "STREAM" in query:
        assert rows_of(found) == rows_of([relation.to_arrow()])
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert (+changed, -changed) == (+meant, -meant)

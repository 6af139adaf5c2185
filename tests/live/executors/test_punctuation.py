"""Punctuation on executors does what it does on the driver, in each micro-batch."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.buckets import LAG_AND_CUTS, in_buckets
from tests.live.executors.test_executors import changes_of, counted, on_executors, small
from tests.live.executors.test_executors_clauses import emitted, few_in_a_chunk
from tests.live.executors.test_executors_emit import agree, moment
from tests.live.executors.test_executors_emit import small as small_groups
from tests.live.random_logs import COLUMNS, PRODUCERS, SCHEMA, row
from tests.live.stepping import in_micro_batches, law, rows_of, total
from windrow import Session
from windrow.streams import FOREVER

__all__ = ["few_in_a_chunk", "on_executors", "small", "small_groups"]

pytestmark = pytest.mark.usefixtures("interpreted", "small", "few_in_a_chunk")

PATTERNS = [
    '{"k": [1]}',
    '{"k": [0, null]}',
    '{"k": [{"in": {">=": 1}}]}',
    '{"k": [1], "v": [{"in": {"<": 2}}]}',
    '{"v": [0, 1, 2, 3, null]}',
    '{"ts": [{"in": {"<": 5}}]}',
]
ORDER = "PARTITION BY k ORDER BY ts"
CLAUSES = [
    f"SELECT s.ts, s.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING {ORDER} START AS s END UNBOUNDED)",
    f"SELECT s.k, s.ts + 1 AS t, e.v FROM s WHERE v > 0 WINDOW BY w AS (TYPE TUMBLING {ORDER}"
    " START AS s END AS e NEXT AS x WHEN x IS NULL OR x.ts - e.ts > 1)",
    f"SELECT k, n, t FROM s MATCH_RECOGNIZE ({ORDER} MEASURES COUNT(*) AS n, FIRST(ts) AS t"
    " PATTERN (a b*) DEFINE b AS b.v >= a.v)",
    "SELECT s.k, s.ts, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k, v % 2 ORDER BY ts"
    " START AS s END UNBOUNDED)",
    "SELECT s.ts, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY ts ORDER BY ts"
    " START AS s END UNBOUNDED)",
]
OF_WINDOWS = [
    "SELECT k, v FROM s [PARTITION BY k ROWS 2]",
    "SELECT k, SUM(v) AS v FROM s [PARTITION BY k ROWS 1] GROUP BY k",
    "SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k",
    "ISTREAM(SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k)",
    "SELECT a.k, a.v, b.v AS w FROM s [RANGE UNBOUNDED] a JOIN s [PARTITION BY k ROWS 1] b ON a.k = b.k",
    "SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k",
    "SELECT n, COUNT(*) AS m FROM (SELECT k, COUNT(*) AS n FROM s [RANGE UNBOUNDED] GROUP BY k) GROUP BY n",
]

HOURS = "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 4) GROUP BY wend, k"
EMITS = [
    "SELECT k, SUM(v) AS v FROM s GROUP BY k EMIT STREAM",
    "SELECT k, SUM(v) AS v FROM s GROUP BY k EMIT STREAM AFTER WATERMARK",
    "SELECT k, v, COUNT(*) AS n FROM s GROUP BY k, v EMIT STREAM AFTER WATERMARK ALLOWED LATENESS 2",
    "SELECT DISTINCT k FROM s EMIT STREAM",
    "SELECT ts, k, v FROM s WHERE v > 0 EMIT STREAM AFTER WATERMARK",
    f"SELECT wend, k, SUM(v) AS v {HOURS} EMIT STREAM AFTER WATERMARK",
    f"SELECT wend, k, SUM(v) AS v {HOURS} EMIT STREAM",
    "SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k EMIT STREAM",
    "SELECT s.k, s.v, t.v AS w FROM s LEFT JOIN t ON s.k = t.k EMIT STREAM AFTER WATERMARK",
    "SELECT k, v FROM s WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.k = s.k) EMIT STREAM AFTER WATERMARK",
    "SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k AND t.ts BETWEEN s.ts AND s.ts + 2 EMIT STREAM",
    "SELECT k, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 2) GROUP BY k, wend"
    " EMIT STREAM AFTER WATERMARK",
]

pattern = st.none() | st.sampled_from(PATTERNS)
punctuated = st.one_of(
    st.tuples(row, pattern).map(lambda found: (*found[0], None, found[1])),
    st.tuples(st.sampled_from(PRODUCERS), st.integers(0, 9), pattern).map(
        lambda found: (found[0], None, None, None, *found[1:])
    ),
    st.tuples(st.sampled_from(PRODUCERS), st.sampled_from(PATTERNS)).map(
        lambda found: (found[0], None, None, None, None, found[1])
    ),
)
LOG = [
    ("a", 1, 1, 1, None, None),
    ("b", 2, 2, 1, None, '{"k": [1]}'),
    ("a", 3, 1, 2, None, None),
    ("b", 4, 1, 3, None, None),
    ("a", None, None, None, 3, '{"k": [0, null]}'),
    ("a", 5, None, 3, None, None),
    ("a", 6, 1, 1, None, '{"k": [1]}'),
    ("b", 8, 2, 0, 5, None),
    ("a", 9, 2, 2, 7, None),
]


def as_table(entries, _=None):
    columns = list(zip(*entries, strict=True)) or [()] * 6
    plain = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=False)]
    return pa.table([*plain, pa.array(columns[5], pa.string())], names=[*SCHEMA.names, "said"])


def streams(spark, folder, names, lag, *, is_one):
    """A session with live streams with punctuations, of one producer or of several."""
    session = Session(spark)
    own = {} if is_one else {"producer": "p"}
    own |= {"rowtime": "ts", "unit": "seconds", "bound": "b", "lag": lag, "punctuation": "said"}
    for name in names:
        session.stream(name, spark.readStream.schema(f"{COLUMNS}, said string").parquet(str(folder)), **own)
    return session


def assert_as_on_the_driver(spark, folder, log, lag, query, cuts, parts, count, forget, again, *, is_one):
    folder.mkdir(exist_ok=True)
    log = [*log, *((name, None, None, None, FOREVER, None) for name in PRODUCERS)]

    def frames(steps, low, high):
        ((_, name, stream),) = steps.streams()
        part = as_table(log[round(low * len(log)) : round(high * len(log))])
        return {name: spark.createDataFrame(part).select(*stream.live.columns)}

    plan = streams(spark, folder, ["s"], lag, is_one=is_one).sql(query).live
    asked = {"as_table": as_table}
    graph, tables, accounts = in_buckets(spark, plan, {"s": log}, cuts, parts, count, forget, again, **asked)
    wanted, progress = in_micro_batches(plan, folder, cuts, set(), frames)
    if query in OF_WINDOWS and "STREAM" not in query:
        assert counted(changes_of(spark, graph, tables)) == counted(total(wanted))
    else:
        found = [sorted(one) for one in emitted(spark, graph, tables) if one]
        assert found == [sorted(rows_of([one])) for one in wanted if one.num_rows]
    last = accounts.values()
    assert sum(sum(one.late.values()) + sum(one.rejected.values()) for one in last) == progress["rows_late"]
    assert sum(one.waiting[0] for one in last) == progress["rows_buffered"]
    if graph.onward is None and "UNBOUNDED] GROUP" not in query:  # of those, state may replace rows sooner
        retained = sum(sum(one.retained.values()) for one in last)
        assert retained == progress["rows_in_windows"]


@law(8)
@given(
    st.lists(punctuated, max_size=9), st.booleans(), *LAG_AND_CUTS, st.sampled_from([*CLAUSES, *OF_WINDOWS])
)
def test_buckets_cuts_parts_and_new_workers_change_nothing(
    spark, tmp_path_factory, log, is_one, lag, cuts, parts, count, forget, again, query
):
    folder = tmp_path_factory.mktemp("punctuation")
    assert_as_on_the_driver(spark, folder, log, lag, query, cuts, parts, count, forget, again, is_one=is_one)


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("query", [*CLAUSES, *OF_WINDOWS])
def test_a_log_with_punctuation(spark, tmp_path, query, is_one):
    cuts = [0.3, 0.6, 0.8]
    assert_as_on_the_driver(spark, tmp_path, LOG, 2, query, cuts, 2, 3, {1, 3}, {2}, is_one=is_one)


def assert_emits_as_on_the_driver(
    spark, folder, logs, lag, query, cuts, parts, count, forget, again, *, is_one
):
    ends = [(name, None, None, None, 30, None) for name in PRODUCERS]
    names = ["s", "t"] if " t " in query else ["s"]
    own = {name: [*logs[name], *ends] for name in names}

    def declare(spark, folder, names, lag):
        return streams(spark, folder, names, lag, is_one=is_one)

    agree(
        spark, folder, query, own, lag, cuts, parts, count, forget, again, declare=declare, as_table=as_table
    )


@law(8)
@given(
    st.lists(punctuated, max_size=9),
    st.lists(punctuated, max_size=5),
    st.booleans(),
    *LAG_AND_CUTS,
    st.sampled_from(EMITS),
)
@pytest.mark.usefixtures("small_groups")
def test_buckets_of_emit_change_nothing(
    spark, tmp_path_factory, log, other, is_one, lag, cuts, parts, count, forget, again, query
):
    folder, logs = tmp_path_factory.mktemp("punctuation"), {"s": log, "t": other}
    assert_emits_as_on_the_driver(
        spark, folder, logs, lag, query, cuts, parts, count, forget, again, is_one=is_one
    )


@pytest.mark.parametrize("is_one", [True, False])
@pytest.mark.parametrize("query", EMITS)
@pytest.mark.usefixtures("small_groups")
def test_emit_over_logs_with_punctuation(spark, tmp_path, query, is_one):
    logs, cuts = {"s": LOG, "t": LOG[::2]}, [0.3, 0.6, 0.8]
    assert_emits_as_on_the_driver(spark, tmp_path, logs, 2, query, cuts, 2, 3, {1, 3}, {2}, is_one=is_one)


@pytest.mark.parametrize("query", [EMITS[0], EMITS[3], OF_WINDOWS[0], CLAUSES[0]])
@pytest.mark.usefixtures("small_groups")
def test_state_of_closed_keys_is_dropped(spark, tmp_path, query):
    """Of keys 1, 2 and 3, all but 2 are closed, 3 before its last row; EMIT looks when rows have doubled."""
    rows = [("a", at, key, at, None, None) for at, key in enumerate([1, 2, 3, 1, 2, 1])]
    closed = [("a", None, None, None, bound, f'{{"k": [{key}]}}') for key, bound in ((1, 6), (3, None))]
    log = [*rows[:4], closed[1], *rows[4:], closed[0], ("a", 7, 3, 0, None, None)]
    plan = streams(spark, tmp_path, ["s"], None, is_one=False).sql(query).live
    cuts = [] if query in EMITS else [0.4, 0.9]
    _, _, accounts = in_buckets(
        spark, plan, {"s": log}, cuts, 1, 2, set(), set(), times=moment, as_table=as_table
    )
    last = accounts.values()
    assert sum(one.late.get(0, 0) + one.rejected.get(0, 0) for one in last) == 1
    assert sum(sum(one.retained.values()) for one in last) == 2


COLUMNS_OF_FILES = "ts bigint, k string, v int, said string"


@pytest.mark.usefixtures("on_executors")
def test_punctuation_goes_on_with_the_state_store(spark, tmp_path):
    session, arrived = Session(spark), tmp_path / "in"
    arrived.mkdir()
    frame = spark.readStream.schema(COLUMNS_OF_FILES).option("maxFilesPerTrigger", 1).parquet(str(arrived))
    session.stream("s", frame, rowtime="ts", unit="seconds", lag=2, punctuation="said")
    emitted = session.sql("SELECT k, SUM(v) AS v FROM s GROUP BY k EMIT STREAM AFTER WATERMARK")
    out = tmp_path / "out"

    def put(*rows):
        part = spark.createDataFrame(rows, COLUMNS_OF_FILES).coalesce(1)
        part.write.mode("append").parquet(str(arrived))

    def start():
        return emitted.start(out, checkpoint=tmp_path / "checkpoint", on_unbounded="ignore")

    put((1, "a", 1, None), (2, "b", 5, None), (4, "a", 3, None))
    query = start()
    query.process_all_available()
    assert not [*out.glob("*.parquet")]
    query.stop()
    put((None, None, None, '{"k": ["a"]}'), (5, "a", 7, None))
    query = start()
    query.process_all_available()
    ((k, v),) = [(row["k"], row["v"]) for row in spark.read.parquet(str(out)).collect()]
    assert (k, v) == ("a", 4)
    (late,) = query.late.collect()
    assert (late["row"], late["bound"], late["reason"]) == ('{"ts":5,"k":"a","v":7}', None, "punctuation")
    progress = query.progress
    account = [progress[f"rows_{name}"] for name in ("in", "used", "buffered", "late", "malformed")]
    assert account == [4, 3, 0, 1, 0]
    query.stop()

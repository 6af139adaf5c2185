"""Live queries as users start them: over files that come, stopped and refused."""

from __future__ import annotations

import datetime
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from windrow import Memory, Session, WindrowError
from windrow.spark.live.checkpoints.checkpoint import Checkpoint
from windrow.spark.live.micro_batches.host import MicroBatches

COLUMNS = "ts bigint, k string, v bigint"
COUNTS = "SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k"


def put(folder, number, rows):
    """A file of rows, there as a whole or not at all."""
    kinds = [pa.int64(), pa.string(), pa.int64()]
    columns = [pa.array([row[at] for row in rows], kind) for at, kind in enumerate(kinds)]
    pending = folder / f".{number}.pending"
    pq.write_table(pa.table(columns, names=["ts", "k", "v"]), pending)
    os.utime(pending, (number, 1_700_000_000 + number))  # Spark takes files in the order of these times
    pending.rename(folder / f"{number:03}.parquet")


def declared(spark, folder, **options):
    """A session with the stream s of the files in a folder, a file a micro-batch."""
    session = Session(spark)
    arriving = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder))
    session.stream("s", arriving, rowtime="ts", unit="seconds", **options)
    return session


@pytest.fixture
def incoming(tmp_path):
    folder = tmp_path / "incoming"
    folder.mkdir()
    return folder


def given_by(folder):
    """The rows in the files of a sink, as any reader finds them."""
    files = sorted(folder.glob("*.parquet"))
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.mark.usefixtures("interpreted")
def test_changes_leave_with_the_bound_that_allows_them(spark, incoming, tmp_path):
    session = declared(spark, incoming)
    sink = Memory()
    query = session.sql(COUNTS).start(sink, checkpoint=tmp_path / "checkpoint", envelope="op")
    put(incoming, 0, [(0, "a", 1), (1, "b", 1)])
    put(incoming, 1, [(1, "a", 1), (4, "a", 1)])
    put(incoming, 2, [(2, "c", 1), (9, "a", 1)])
    query.process_all_available()
    changes = [tuple(row.values()) for batch in sink.batches.values() for row in batch.to_pylist()]
    assert sorted(changes, key=lambda row: (row[1], row[0], row[2])) == [
        ("+I", 0, "a", 1),
        ("+I", 1, "a", 2),
        ("+I", 1, "b", 1),
        ("-D", 1, "a", 1),
        ("+I", 3, "a", 1),
        ("-D", 3, "a", 2),
        ("-D", 4, "b", 1),
        ("-D", 7, "a", 1),
    ]
    assert sorted(sink.batches) == [0, 1, 2]
    assert {row[1] for row in map(tuple, (r.values() for r in sink.batches[1].to_pylist()))} == {1, 3}
    late = query.late.collect()
    assert [(row.stream, row.rowtime, row.bound) for row in late] == [("s", "2", "4")]
    progress = query.progress
    assert progress["rows_in"] == 6
    assert (progress["rows_used"], progress["rows_buffered"], progress["rows_late"]) == (4, 1, 1)
    assert progress["rows_in_windows"] == 0
    with pytest.raises(WindrowError) as caught:
        declared(spark, incoming).sql(COUNTS).start(Memory(), checkpoint=tmp_path / "checkpoint")
    assert caught.value.condition == "CHECKPOINT_IN_USE"
    query.stop()
    with pytest.raises(WindrowError) as caught:
        session.sql("SELECT k FROM s [NOW]").start(Memory(), checkpoint=tmp_path / "checkpoint")
    assert caught.value.condition == "CHECKPOINT_OF_ANOTHER_QUERY"
    assert "SELECT k, COUNT(*)" in str(caught.value)


@pytest.mark.usefixtures("interpreted")
def test_views_of_live_streams_are_live(spark, incoming, tmp_path):
    session = declared(spark, incoming)
    session.sql("CREATE TEMPORARY VIEW counts AS SELECT k, COUNT(*) AS n FROM s [ROWS 3] GROUP BY k")
    session.sql("CREATE TEMPORARY VIEW news AS ISTREAM(SELECT * FROM counts WHERE n > 1)")
    sink = Memory()
    query = session.sql("SELECT MAX(n) AS most FROM news [ROWS 1]").start(sink, envelope="diff")
    put(incoming, 0, [(0, "a", 1), (1, "a", 1), (2, "b", 1)])
    put(incoming, 1, [(3, "b", 1), (5, "b", 1), (6, "c", 1)])
    query.process_all_available()
    query.stop()
    changes = [tuple(row.values()) for batch in sink.batches.values() for row in batch.to_pylist()]
    assert sorted(changes, key=str) == sorted(
        [(None, 1, 0), (None, -1, 1), (2, 1, 1), (2, -1, 5), (3, 1, 5)], key=str
    )


def test_rows_of_a_live_relation_come_by_starting_it(spark, incoming, tmp_path):
    session = declared(spark, incoming)
    relation = session.sql(COUNTS)
    with pytest.raises(WindrowError) as caught:
        relation.collect()
    assert caught.value.condition == "LIVE_RELATION"
    with pytest.raises(WindrowError) as caught:
        relation.start(3)
    assert caught.value.condition == "UNKNOWN_SINK"
    (tmp_path / "file").touch()
    for sink, options in (
        ("", {}),
        (tmp_path / "file", {}),
        (tmp_path / "out", {"checkpoint": ""}),
        (tmp_path / "out", {"checkpoint": 5}),
        (tmp_path / "out", {"checkpoint": tmp_path / "file"}),
        (tmp_path / "out", {"checkpoint": tmp_path / "x" / ".." / "out"}),
        (tmp_path / "out", {"name": ""}),
        (tmp_path / "out", {"name": 5}),
        (tmp_path / "out", {"mode": "upsert", "key": 5}),
        (tmp_path / "out", {"mode": "upsert", "key": ["k", 5]}),
    ):
        with pytest.raises(WindrowError) as caught:
            relation.start(sink, **options)
        assert caught.value.condition == "INVALID_ARGUMENT", (sink, options)
    assert not list((tmp_path / "out").iterdir())
    assert "evaluated for whole logs" not in relation.plan()
    for text in (
        "SELECT * FROM s",
        "SELECT s FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS s END AS e)",
    ):
        with pytest.raises(WindrowError, match=r"(?i)stream|live"):
            session.sql(text).collect()


@pytest.mark.parametrize(
    "text",
    [
        COUNTS,
        "SELECT s.ts, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts"
        " START AS s END AS e WHEN e.ts - s.ts = 5)",
        "SELECT k, SUM(v) AS n FROM s GROUP BY k EMIT STREAM",
        "SELECT STREAM k, COUNT(*) AS n FROM s GROUP BY k",
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_directly_after_a_restart_progress_is_that_of_the_last_micro_batch(spark, incoming, tmp_path, text):
    def started():
        return (
            declared(spark, incoming).sql(text).start(tmp_path / "out", checkpoint=tmp_path / "c", **options)
        )

    options = {"on_unbounded": "ignore", "name": "counting"}
    query = started()
    put(incoming, 0, [(0, "a", 1), (1, "b", 1), (4, "a", 2)])
    put(incoming, 1, [(3, "b", 5), (9, "b", 1)])
    query.process_all_available()
    query.stop()
    last = dict(query.progress)
    assert last["rows_in"] == 5
    query = started()
    first = dict(query.progress)
    query.stop()
    for of_now in ("seconds", "rows_per_second", "seconds_behind", "tries"):
        first.pop(of_now, None)
        last.pop(of_now, None)
    assert first == last


@pytest.mark.usefixtures("interpreted")
def test_rows_without_rowtime_and_late_rows_can_fail_the_query(spark, incoming, tmp_path):
    query = declared(spark, incoming).sql(COUNTS).start(Memory(), on_late="fail")
    put(incoming, 0, [(5, "a", 1), (3, "b", 1)])
    with pytest.raises(WindrowError) as caught:
        query.process_all_available()
    assert caught.value.condition == "LATE_ROW"
    query = declared(spark, incoming, lag=datetime.timedelta(seconds=5)).sql(COUNTS).start(Memory())
    put(incoming, 1, [(None, "a", 1)])
    with pytest.raises(WindrowError) as caught:
        query.process_all_available()
    assert caught.value.condition == "NULL_ROWTIME"
    assert "filter the stream: df.where('… IS NOT NULL')" in caught.value.hint

    def sink(rows, number):
        rows.sparkSession._jvm.java.lang.Integer.parseInt("no number " * 2000)

    # Spark itself takes a function that fails with so long a message for a query that has ended
    query = declared(spark, incoming, lag=datetime.timedelta(seconds=5)).sql(COUNTS).start(sink)
    (incoming / "001.parquet").unlink()
    put(incoming, 2, [(20, "a", 1)])
    with pytest.raises(WindrowError, match="no number"):
        query.process_all_available()


_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def managers(query):
    """What writes Spark's logs of the offsets, of what is done and of the files that are read."""
    stream = query.streaming._jsq.streamingQuery()
    source = stream.logicalPlan().collectLeaves().head().source()
    (field,) = [one for one in source.getClass().getDeclaredFields() if one.getName() == "metadataLog"]
    field.setAccessible(True)
    logs = (stream.offsetLog(), stream.commitLog(), field.get(source))
    return {log.fileManager().getClass().getSimpleName() for log in logs}


@pytest.mark.parametrize("given", [None, "FileContextBasedCheckpointFileManager"])
def test_no_other_program_helps_to_write_what_spark_keeps_of_micro_batches(spark, incoming, tmp_path, given):
    session = declared(spark, incoming)
    put(incoming, 0, [(0, "a", 1)])
    package = "org.apache.spark.sql.execution.streaming.checkpointing."
    name = None if given is None else f"{package}{given}"
    if name is not None:
        spark.conf.set(_MANAGER, name)
    try:
        query = session.sql(COUNTS).start(Memory(), checkpoint=tmp_path / "checkpoint")
        query.process_all_available()
        query.stop()
        assert spark.conf.get(_MANAGER, None) == name
    finally:
        spark.conf.unset(_MANAGER)
    assert managers(query) == {given or "FileSystemBasedCheckpointFileManager"}


@pytest.mark.usefixtures("interpreted")
def test_a_query_that_has_ended_by_itself_has_let_go_of_its_checkpoint(spark, incoming, tmp_path):
    session = declared(spark, incoming)
    for number in range(2):
        put(incoming, number, [(number + 1, "a", 1)])
        query = session.sql(COUNTS).start(
            Memory(), checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}
        )
        assert query.await_termination()
        assert not query.is_active
        assert query.progress["rows_in"] == number + 1


@pytest.mark.usefixtures("interpreted")
def test_a_query_without_a_checkpoint_leaves_no_folder_behind_and_can_be_asked_still(
    spark, incoming, tmp_path, monkeypatch
):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def folders():
        return list(tmp_path.glob("windrow-*"))

    session = declared(spark, incoming)
    put(incoming, 0, [(5, "a", 1), (3, "b", 1)])
    query = session.sql(COUNTS).start(Memory(), trigger={"availableNow": True})
    early = query.late
    query.await_termination()
    assert folders() == []
    assert [row.rowtime for row in query.late.collect()] == ["3"]
    assert early.count() <= 1  # its rows are those of when it was asked for
    reasons = {(row.kind, row.name, row.rows): row.why for row in query.state().collect()}
    assert reasons[("stream", "s", 1)] == "rows that the watermark has not passed"
    (reason,) = [why for (kind, *_), why in reasons.items() if kind == "window"]
    assert f"{reason}, and rows that the watermark has not passed" in session.sql(COUNTS).plan()
    stopped = session.sql(COUNTS).start(Memory())
    stopped.process_all_available()
    assert len(folders()) == 1
    stopped.stop()
    failing = session.sql(COUNTS).start(Memory(), on_late="fail")
    with pytest.raises(WindrowError):
        failing.process_all_available()
    failing.stop()
    with pytest.raises(WindrowError):
        session.sql(COUNTS).start(Memory(), envelope="unknown")
    with pytest.raises(WindrowError):
        session.sql(COUNTS).start(Memory(), trigger={"never": True})
    assert folders() == []


LIFE = """
import os, signal, sys
from windrow import Memory, Session
from windrow.spark.runtime.local import local_session
session = Session(local_session(master="local[1]"))
arriving = session.spark.readStream.schema("ts bigint").parquet(sys.argv[1])
session.stream("s", arriving, rowtime="ts", unit="seconds")
query = session.sql("SELECT COUNT(*) AS n FROM s [ROWS 1]").start(Memory())
print(query.streaming.id, flush=True)
os.kill(os.getpid(), signal.SIGTERM)
"""


@pytest.mark.spark
def test_a_process_that_a_signal_ends_leaves_no_folder_behind(tmp_path):
    (tmp_path / "in").mkdir()
    place = tmp_path / "tmp"
    place.mkdir()
    ended = subprocess.run(
        [sys.executable, "-c", LIFE, str(tmp_path / "in")],
        env={**os.environ, "TMPDIR": str(place), "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={place}"},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == -signal.SIGTERM, ended.stderr
    until = time.monotonic() + 60
    while (left := sorted(place.glob("windrow-*"))) and time.monotonic() < until:
        time.sleep(0.05)  # Java's machine ends a moment later
    assert left == []


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("fails_after_the_sink", [False, True])
@pytest.mark.parametrize("is_function", [False, True])
def test_a_worker_that_fails_does_not_end_a_query(
    spark, incoming, tmp_path, monkeypatch, is_function, fails_after_the_sink
):
    commit, take, failures, called = Checkpoint.commit, MicroBatches.take, [2], []

    def failing(inner):
        def attempt(*given):
            if failures[0]:
                failures[0] -= 1
                raise RuntimeError("SparkException: Python worker failed to connect back.")
            return inner(*given)

        return attempt

    if fails_after_the_sink:
        monkeypatch.setattr(Checkpoint, "commit", failing(commit))
    else:
        monkeypatch.setattr(MicroBatches, "take", failing(take))
    put(incoming, 0, [(1, "a", 1), (3, "a", 1)])
    sink = (lambda _, number: called.append(number)) if is_function else Memory()
    start = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        query = declared(spark, incoming).sql(COUNTS).start(sink, **start)
        if is_function and fails_after_the_sink:
            with pytest.raises(RuntimeError, match="connect back"):
                query.await_termination()
            assert called == [0]
            return
        query.await_termination()
    assert query.progress["tries"] == 3
    assert query.progress["rows_in"] == 2
    assert sum("tried again: Python worker failed to connect back" in str(one.message) for one in told) == 2
    assert called == [0] if is_function else list(sink.batches) == [0]


@pytest.mark.parametrize(
    "query", ["SELECT STREAM ts, k, v AS K FROM s", "SELECT k, COUNT(*) AS k FROM s [RANGE 3] GROUP BY k"]
)
def test_two_columns_of_one_name_into_a_folder_are_refused_when_the_query_is_started(
    spark, incoming, tmp_path, query
):
    session = declared(spark, incoming)
    with pytest.raises(WindrowError) as raised:
        session.sql(query).start(tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    assert raised.value.condition == "DUPLICATE_COLUMN"
    assert given_by(tmp_path / "out") == []


RESPELLED = {
    "CQL": (
        "SELECT k, COUNT(*) AS n FROM s [RANGE 3] AS a WHERE v <> 5 GROUP BY k",
        "select k, COUNT(*) as n -- of each key\n  from s [range 3] as a where v != 5 group by k;",
    ),
    "CQL, without AS and with a qualifier": (
        "SELECT k, COUNT(*) AS n FROM s [RANGE 3] WHERE v <> 5 GROUP BY k",
        "SELECT s.k, COUNT(*) n FROM s [RANGE 3] WHERE s.v <> 5 GROUP BY s.k",
    ),
    "CQL, two windows": (
        "SELECT a.k, COUNT(*) AS n, MAX(b.v) AS m FROM s [RANGE 3] AS a, s [ROWS 2] AS b WHERE a.k = b.k "
        "GROUP BY a.k",
        "SELECT a.k, COUNT(*) n, MAX(b.v) m FROM s [RANGE 3] a, s [ROWS 2] b WHERE a.k = b.k GROUP BY a.k",
    ),
    "EMIT, without AS and with a qualifier": (
        "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM AS op",
        "SELECT s.k, COUNT(*) n FROM s GROUP BY s.k EMIT STREAM AS op",
    ),
    "a pattern, without AS": (
        "SELECT m.k AS l, n AS c FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (a b) DEFINE a AS v > 0) AS m",
        "SELECT m.k l, n c FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (a b) DEFINE a AS v>0) m",
    ),
    "EMIT": (
        "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM AS op",
        "select k,COUNT( * ) as n from s group by k emit stream as op",
    ),
    "a pattern": (
        "SELECT m.k, n AS c FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts MEASURES COUNT(*) AS n "
        "PATTERN (a b) DEFINE a AS v > 0) AS m",
        "select m.k, n as c from s match_recognize (partition by k order by ts measures COUNT(*) as n "
        "pattern (a b) define a as v > 0) as m",
    ),
}


@pytest.mark.sampled
@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize("host", ["driver", "executors"])
@pytest.mark.parametrize("kind", RESPELLED)
def test_a_query_that_is_spelled_otherwise_goes_on_with_its_checkpoint(
    spark, incoming, tmp_path, conf, kind, host
):
    conf("spark.windrow.live.host", host)
    first, again = RESPELLED[kind]
    sink = Memory()
    put(incoming, 0, [(0, "a", 1), (1, "b", 1)])
    for number, text in enumerate((first, again)):
        options = {"envelope": "op"} if kind.startswith("CQL") else {}
        query = declared(spark, incoming).sql(text).start(sink, checkpoint=tmp_path / "c", **options)
        query.process_all_available()
        query.stop()
        put(incoming, number + 1, [(5, "a", 1), (12, "b", 1)])
    with pytest.raises(WindrowError) as caught:
        declared(spark, incoming).sql(first.replace("COUNT(*)", "COUNT(1)")).start(
            sink, checkpoint=tmp_path / "c", **options
        )
    assert caught.value.condition == "CHECKPOINT_OF_ANOTHER_QUERY"


@pytest.mark.usefixtures("interpreted")
def test_a_checkpoint_of_the_version_before_is_gone_on_with_unless_it_has_rows_elsewhere(
    spark, incoming, tmp_path
):
    sink = Memory()

    def run():
        query = declared(spark, incoming).sql(COUNTS).start(sink, checkpoint=tmp_path / "c")
        query.process_all_available()
        query.stop()
        return query.progress

    put(incoming, 0, [(0, "a", 1), (1, "b", 1), (2, "a", 2)])
    run()
    manifest = tmp_path / "c" / "windrow" / "0" / "step.json"
    known = json.loads(manifest.read_text())
    put(incoming, 1, [(6, "b", 5), (12, "b", 1)])
    for version, rows in ((6, {}), (7, {"below-s": "{}"})):
        manifest.write_text(json.dumps({**known, "version": version, "rows": rows}))
        with pytest.raises(WindrowError, match="CHECKPOINT_VERSION") as caught:
            run()
        assert caught.value.hint
    earlier = {"positions": "clocks", "punctuations": "told", "checksums": "seals"}
    counts = {"rows_buffered": "rows_held", "rows_emitted": "rows_given"}
    named = {earlier.get(name, name): value for name, value in known.items()} | {
        "counts": {counts.get(name, name): count for name, count in known["counts"].items()},
        "marks": {"told" if name == "emitted" else name: at for name, at in known["marks"].items()},
    }
    manifest.write_text(json.dumps({**named, "version": 7, "rows": {}}))
    last = run()
    assert sorted(sink.batches) == [0, 1]
    assert last["rows_in"] == last["rows_used"] + last["rows_buffered"] == 5
    with pytest.warns(DeprecationWarning, match="rows_buffered"):
        assert last["rows_held"] == last["rows_buffered"]
    with pytest.warns(DeprecationWarning, match="seconds_behind"):
        assert last["lag"] == last["seconds_behind"]
    with pytest.warns(DeprecationWarning, match="rows_buffered") as warned:
        assert last.get("rows_held") == last["rows_buffered"]
    assert warned[0].filename == __file__
    assert last.get("nothing", 7) == 7


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    ("text", "first", "other"),
    [
        ("SELECT STREAM k, v FROM s WHERE v < ?", ((5,), {}), ((6,), {})),
        (
            "SELECT k, COUNT(*) AS n FROM s WHERE k = :key GROUP BY k EMIT STREAM",
            ((), {"key": "5"}),
            ((), {"key": "a"}),
        ),
    ],
)
def test_a_live_query_with_another_parameter_is_another_query(spark, incoming, tmp_path, text, first, other):
    def start(values, named):
        return (
            declared(spark, incoming).sql(text, *values, **named).start(Memory(), checkpoint=tmp_path / "c")
        )

    put(incoming, 0, [(0, "a", 1), (1, "b", 1)])
    query = start(*first)
    query.process_all_available()
    query.stop()
    with pytest.raises(WindrowError) as caught:
        start(*other)
    assert caught.value.condition == "CHECKPOINT_OF_ANOTHER_QUERY"
    assert "parameters" in caught.value.message
    start(*first).stop()


def test_a_live_query_with_another_length_is_another_query(spark, incoming, tmp_path):
    counted = "SELECT k, COUNT(*) AS n FROM s [RANGE ? SLIDE 1 + ?] WHERE v < ? GROUP BY k"
    put(incoming, 0, [(0, "a", 1), (1, "b", 1), (2, "a", 1), (9, "b", 1)])
    found = {}
    for name, text, args in (
        ("given", counted, (4, 1, 5)),
        ("written", counted.replace("? SLIDE 1 + ?", "4 SLIDE 2"), (5,)),
    ):
        sink = Memory()
        session = declared(spark, incoming)
        query = session.sql(text, *args).start(sink, checkpoint=tmp_path / name, envelope="op")
        query.process_all_available()
        query.stop()
        found[name] = [tuple(row.values()) for batch in sink.batches.values() for row in batch.to_pylist()]
    assert found["given"] == found["written"] != []
    place = tmp_path / "given"
    with pytest.raises(WindrowError) as caught:
        declared(spark, incoming).sql(counted, 6, 1, 5).start(Memory(), checkpoint=place, envelope="op")
    assert caught.value.condition == "CHECKPOINT_OF_ANOTHER_QUERY"
    assert "[RANGE 4 SLIDE 2]" in str(caught.value)
    again = declared(spark, incoming).sql(counted, 4, 1, 5).start(Memory(), checkpoint=place, envelope="op")
    again.stop()


@pytest.mark.parametrize(
    "query",
    [
        COUNTS,
        "SELECT k, SUM(v) AS n FROM s GROUP BY k EMIT STREAM",
        "SELECT STREAM k, COUNT(*) AS n FROM s GROUP BY k",
        "SELECT l.k FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts START AS l END AS e AT p"
        " WHEN e.v > 1)",
        "SELECT STREAM k, v FROM s",
    ],
)
def test_a_query_goes_on_with_a_stream_that_is_dropped(spark, incoming, query):
    session = declared(spark, incoming)
    put(incoming, 0, [(1, "a", 1), (2, "b", 2)])
    with warnings.catch_warnings(action="ignore"):
        running = session.sql(query).start(Memory())
    running.process_all_available()
    session.sql("DROP STREAM s")
    put(incoming, 1, [(8, "a", 3)])
    running.process_all_available()
    assert running.progress["rows_in"] == 3
    assert [row.name for row in running.state().where("kind = 'stream'").collect()] == ["s"]
    running.stop()
    assert running.late.count() == 0

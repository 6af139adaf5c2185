"""Live queries into streams and tables, alone and as the statements of one script."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pyarrow as pa
import pytest

from tests.live.queries.test_named import SCHEMA, as_arrived, recorded, refused
from windrow import Memory, Session
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import write_one
from windrow.streams import FOREVER, NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")


class KilledError(Exception):
    """Stands for the end of the process."""


class Killing(IntoStream):
    """A stream after which the process ends the first time that it is given rows, before that is kept."""

    has_killed = False

    def insert(self, rows, until, punctuations, before):
        count = super().insert(rows, until, punctuations, before)
        if count and not self.has_killed:
            self.has_killed = True
            raise KilledError
        return count


def test_a_stream_has_each_row_once_though_a_step_is_repeated(spark, tmp_path):
    calls = [
        ("insert", "a", [(1, 1, 3), (3, 1, 0)]),
        ("insert", "b", [(2, 2, 1), (5, 2, 2)]),
        ("insert", "a", [(2, 9, 9), (4, 1, 1), (4, 1, 1), (7, None, 2)]),
    ]
    source = recorded(tmp_path / "s", Ordering.ordered(), calls)
    target = NamedStream.create(tmp_path / "t", SCHEMA, "ts", unit="seconds")
    session = Session(spark)
    session.stream("s", source)
    session.stream("t", target)
    plan = session.sql("SELECT STREAM k, v FROM s WHERE v > 0")._live
    sink = Killing(target)

    def started():
        return micro_batches_of(plan, sink, tmp_path / "checkpoint", "delta", "keep")

    steps = started()
    kills = 0
    for number, (low, high) in enumerate(pairwise([0, 4, source.log.last()])):
        frame = as_arrived(spark, source, low, high).select(*source_columns(steps))
        while True:
            try:
                steps.take(steps.input({"s": frame}), number)
                break
            except KilledError:
                kills += 1
                steps.close()
                steps = started()
    progress, steps_rows = steps.progress, steps.state().rows
    state = {row.kind: row for row in steps_rows}
    steps.close()
    assert kills == 1
    assert (progress["rows_emitted"], progress["rows_buffered"]) == (5, 0)
    assert state["stream"].bound == "the end"
    assert {(row.name, row.rows) for row in steps_rows if row.kind == "window"} <= {("s", 0)}
    batch, position = target.read(target.start)
    found = sorted(map(tuple, (row.values() for row in batch.rows.to_pylist())))
    admitted = source.read(source.start)[0].rows.to_pylist()
    assert found == sorted(tuple(row.values()) for row in admitted if row["v"] > 0)
    assert len(found) == 5
    assert position.watermark.value == FOREVER
    assert (position.watermark.late, position.watermark.rejected) == (0, 0)


def source_columns(steps):
    ((_, _, stream),) = steps.streams()
    return stream.live.columns


SCRIPT = """
CREATE STREAM trades (ROWTIME ts TIMESTAMP, ticker STRING, price INT) LOCATION '{0}/trades';
CREATE STREAM highs (ROWTIME ts TIMESTAMP, ticker STRING, high INT) LOCATION '{0}/highs';
CREATE TABLE IF NOT EXISTS seen_highs (ticker STRING, high INT) USING parquet LOCATION '{0}/seen';
INSERT INTO highs ISTREAM(SELECT ticker, MAX(price) AS high FROM trades [RANGE 1 HOUR] GROUP BY ticker);
INSERT INTO seen_highs SELECT STREAM ticker, high FROM highs
"""


@pytest.fixture
def trading(spark, tmp_path):
    spark.sql("DROP TABLE IF EXISTS seen_highs")
    yield Session(spark), SCRIPT.format(tmp_path), tmp_path
    for name in ("trades", "highs"):
        spark.catalog.dropTempView(name)
    spark.sql("DROP TABLE IF EXISTS seen_highs")


def test_the_queries_of_a_pipeline_feed_each_other_and_go_on_together(spark, trading):
    session, script, folder = trading
    told = []
    session.listeners.add(told.append)
    options = {"checkpoint": folder / "checkpoint"}
    with session.pipeline(script, **options) as running:
        assert list(running) == ["highs", "seen_highs"]
        put(session, (30, "ORCL", 20), (31, "MSFT", 30), (32, "ORCL", 10), (33, "IBM", 1))
        running.process_all_available()
        assert seen(spark) == [("MSFT", 30), ("ORCL", 20)]
        state = {(row["kind"], row["name"]): row for row in running["highs"].state().collect()}
        assert state["stream", "trades"]["rows"] == running.progress["highs"]["rows_buffered"] == 1
        assert state["stream", "trades"]["oldest"] == "2026-01-01 09:33:00"
        assert state["window", "trades [RANGE 1 HOUR]"]["rows"] == 3
        assert not state["producer", "trades"]["delays"]  # the only one: nothing else waits for it
        assert running.progress["highs"]["bound"] == "2026-01-01 09:33:00"
    assert {"highs", "seen_highs"} == {progress["query"] for progress in told}
    assert all(progress["state_bytes"] > 0 for progress in told)
    assert {progress["seconds_behind"] is None for progress in told if progress["bound"]} == {False}
    assert not running.is_active
    assert list(session.queries) == []
    with refused("PIPELINE_DIFFERS") as caught:
        session.pipeline(script.replace("1 HOUR", "2 HOURS"), **options)
    assert "statement 4 was" in str(caught.value)
    put(session, (40, "IBM", 7))
    session.sql("PUNCTUATE trades BOUND TIMESTAMP '2026-01-01 09:50:00'")
    with session.pipeline(script, **options, trigger={"availableNow": True}):
        assert seen(spark) == [("IBM", 1), ("IBM", 7), ("MSFT", 30), ("ORCL", 20)]
    files = list((folder / "seen").glob("*.parquet"))
    assert len(files) == 2  # one for each micro-batch that gave rows
    session.sql("DROP STREAM trades")


@pytest.mark.parametrize("named", [True, False])
def test_a_script_with_parameters_goes_on_with_the_same_values(spark, trading, named):
    session, _, folder = trading
    script = f"""
        CREATE STREAM trades (ROWTIME ts TIMESTAMP, ticker STRING, price INT) LOCATION '{folder}/trades';
        SELECT STREAM price FROM trades WHERE price > {":low" if named else "?"};
        SELECT STREAM price FROM trades WHERE price BETWEEN {":low AND :high" if named else "? AND ?"}
    """
    values = {"low": 9, "high": 20} if named else [9, 9, 20]
    made = []

    def sink():
        made.append(Memory())
        return made[-1]

    options = {"checkpoint": folder / "checkpoint", "sink": sink, "trigger": {"availableNow": True}}
    with session.pipeline(script, args=values, **options):
        pass
    put(session, (30, "ORCL", 20), (31, "MSFT", 30), (32, "ORCL", 10), (33, "IBM", 1))
    with session.pipeline(script, args=values, **options):
        found = [sorted(row["price"] for t in one.batches.values() for row in t.to_pylist()) for one in made]
    assert found[-2:] == [[10, 20, 30], [10, 20]]
    with refused("PIPELINE_DIFFERS") as caught:
        session.pipeline(script, args={"low": 9, "high": 21} if named else [9, 9, 21], **options)
    assert "statement 3 was" in str(caught.value)
    with refused("UNBOUND_SQL_PARAMETER"):
        session.pipeline(script, args={"low": 9} if named else [9, 9], sink=sink)
    session.sql("DROP STREAM trades")


def put(session, *rows):
    values = ", ".join(
        f"('2026-01-01 09:{minute}:00', '{ticker}', {price})" for minute, ticker, price in rows
    )
    session.sql(f"INSERT INTO trades VALUES {values}")


def seen(spark):
    return sorted(map(tuple, spark.table("seen_highs").collect()))


CLAUSES = """
CREATE STREAM clicks (ROWTIME ts BIGINT, who STRING) LOCATION '{0}/clicks';
CREATE STREAM pairs (ROWTIME ts BIGINT, who STRING, since BIGINT) LOCATION '{0}/pairs';
CREATE STREAM counts (ROWTIME ts BIGINT, visits BIGINT) LOCATION '{0}/counts';
CREATE OR REPLACE TEMPORARY VIEW visits AS
    SELECT s.ts, s.who, COUNT(w) AS n FROM clicks WINDOW BY w AS (TYPE TUMBLING PARTITION BY who ORDER BY ts
        START AS s END AS e NEXT AS x WHEN x IS NULL OR x.ts - e.ts > 5);
INSERT INTO pairs
    SELECT STREAM ts, who, since FROM visits MATCH_RECOGNIZE (PARTITION BY who
        MEASURES LAST(b.ts) AS ts, FIRST(ts) AS since PATTERN (a b) DEFINE b AS b.n > a.n);
INSERT INTO counts ISTREAM(SELECT COUNT(*) AS visits FROM visits [RANGE 10 MILLISECONDS])
"""


def test_windows_and_matches_go_into_streams_each_row_once(spark, tmp_path):
    """The visits of ann are from 1 to 3, from 20 to 22, and 40; those of bob are 2, and from 30 to 34."""
    session, script = Session(spark.newSession()), CLAUSES.format(tmp_path)

    def run():
        session.pipeline(script, checkpoint=tmp_path / "run", trigger={"availableNow": True}).stop()
        return [sorted(map(tuple, session.table(name).collect())) for name in ("pairs", "counts")]

    def clicked(*rows):
        producer.insert([{"ts": ts, "who": who} for ts, who in rows])

    session.sql(script.split(";")[0])
    producer = session.stream("clicks").producer("site")
    clicked((1, "ann"), (2, "bob"), (3, "ann"), (20, "ann"))
    assert run() == [[], [(1, 1), (2, 2), (11, 1), (12, 0)]]
    clicked((21, "ann"), (22, "ann"), (30, "bob"), (34, "bob"), (40, "ann"))
    producer.finish()
    pairs, counts = run()
    assert pairs == [(20, "ann", 1), (30, "bob", 2)]
    recorded = session.sql("ISTREAM(SELECT COUNT(*) AS visits FROM visits [RANGE 10 MILLISECONDS])")
    assert counts == sorted(map(tuple, recorded.collect()))


def test_when_one_query_of_a_pipeline_fails_all_stop(trading):
    session, script, folder = trading
    wrong = script.replace("SELECT STREAM ticker, high", "SELECT STREAM ticker, CAST(ticker AS INT) AS high")
    running = session.pipeline(wrong, checkpoint=folder / "checkpoint")
    put(session, (30, "ORCL", 20), (31, "MSFT", 30), (32, "MSFT", 10))
    with refused("CAST_INVALID_INPUT"):
        running.await_termination()
    assert not any(query.is_active for query in running.values())
    session.sql("DROP STREAM trades")


@pytest.mark.parametrize(
    ("condition", "statement", "fragment"),
    [
        ("NO_CHECKPOINT", "INSERT INTO t SELECT STREAM k, v FROM s", "SELECT STREAM k, v FROM s"),
        ("INSERT_COLUMN_ARITY_MISMATCH", "INSERT INTO t SELECT STREAM k FROM s", "SELECT STREAM k FROM s"),
        ("MIXED_ROWTIMES", "INSERT INTO dated SELECT STREAM v FROM s", "SELECT STREAM v FROM s"),
        (
            "MIXED_ROWTIMES",
            "INSERT INTO t SELECT STREAM s.k, s.v FROM s, dated [NOW]",
            "SELECT STREAM s.k, s.v FROM s, dated [NOW]",
        ),
        ("ROWTIME_DIFFERS", "INSERT INTO t SELECT STREAM s.ts, s.k, s.v FROM s, dated [NOW]", "s.ts"),
        ("UNSUPPORTED_STREAM", "INSERT INTO t SELECT STREAM k, v FROM t", "SELECT STREAM k, v FROM t"),
        ("UNKNOWN_STREAM", "INSERT INTO t SELECT STREAM k, v FROM nothing [NOW]", "nothing"),
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "INSERT INTO t SELECT STREAM k, w FROM s", "w"),
        ("TABLE_OR_VIEW_NOT_FOUND", "INSERT INTO plain SELECT k, v FROM s [NOW]", "plain"),
        ("TABLE_OR_VIEW_NOT_FOUND", "INSERT INTO no.table SELECT STREAM k, v FROM s", None),
        (
            "UNKNOWN_ROWTIME",
            "INSERT INTO t SELECT STREAM a.k FROM s WINDOW BY w AS (TYPE TUMBLING ORDER BY ts START AS a)",
            "SELECT STREAM a.k FROM s WINDOW BY w AS (TYPE TUMBLING ORDER BY ts START AS a)",
        ),
    ],
)
def test_what_is_wrong_with_an_insert_is_said_at_its_place(spark, tmp_path, condition, statement, fragment):
    session = Session(spark.newSession())
    if condition == "TABLE_OR_VIEW_NOT_FOUND":
        session.spark.conf.set("spark.windrow.checkpoint", str(tmp_path / "checkpoint"))
    schema = pa.schema([("day", pa.date32()), ("v", pa.int64())])
    for name, columns, rowtime in (("s", SCHEMA, "ts"), ("t", SCHEMA, "ts"), ("dated", schema, "day")):
        session.stream(name, NamedStream.create(tmp_path / name, columns, rowtime))
    with refused(condition) as caught:
        session.sql(statement)
    found = caught.value.getQueryContext()
    assert (found[0].fragment() if found else None) == fragment
    assert list(session.queries) == []


@pytest.mark.parametrize(
    "query", ["SELECT STREAM k, v FROM s WHERE v > 1", "ISTREAM(SELECT k, v FROM s [NOW])"]
)
def test_a_table_is_created_with_the_columns_of_a_live_query(spark, tmp_path, query):
    session = Session(spark.newSession())
    session.spark.conf.set("spark.windrow.checkpoint", str(tmp_path / "checkpoint"))
    schema, folder = "k STRING, ts TIMESTAMP, v BIGINT", tmp_path / "in"
    folder.mkdir()
    session.stream("s", session.spark.readStream.schema(schema).parquet(str(folder)), rowtime="ts")
    place = f"USING parquet LOCATION '{tmp_path / 'made'}'"
    relation = session.sql(query)
    try:
        made = session.sql(f"CREATE TABLE IF NOT EXISTS made {place} AS {query}")
        assert session.sql("TABLE made").schema.simpleString() == relation.schema.simpleString()
        # ISTREAM emits the changes of an instant when a later row has come
        rows = "VALUES ('a', TIMESTAMP '2026-01-01', 2L), ('b', TIMESTAMP '2026-01-02', 1L) AS r (k, ts, v)"
        session.spark.sql(f"SELECT * FROM {rows}").coalesce(1).write.mode("append").parquet(str(folder))
        (running,) = session.queries.values()
        running.process_all_available()
        assert made.collect() == [(running.name, "made")]
        assert [row["k"] for row in session.sql("TABLE made").collect()] == ["a"]
        running.stop()
        with refused("TABLE_OR_VIEW_ALREADY_EXISTS"):
            session.sql(f"CREATE TABLE made {place} AS {query}")
        with refused("UNSUPPORTED_SINK"):
            session.sql(f"CREATE TABLE texts USING csv AS {query}")
        assert not session.spark.catalog.tableExists("texts")
        with refused("UNSUPPORTED_STATEMENT"):
            session.sql("CREATE TABLE whole AS SELECT k, v FROM s [RANGE 1 HOUR]")
    finally:
        session.spark.sql("DROP TABLE IF EXISTS made")


def test_a_created_table_is_found_again_by_a_session_that_has_forgotten_it(spark, tmp_path):
    """As after a restart of the process: tables of a local session are temporary, but not their files."""
    session, folder = Session(spark.newSession()), tmp_path / "in"
    folder.mkdir()
    source = session.spark.readStream.schema("ts TIMESTAMP, `a b` STRING").parquet(str(folder))
    session.stream("s", source, rowtime="ts")
    place = f"USING parquet LOCATION '{tmp_path / 'made'}'"
    script = f"CREATE TABLE IF NOT EXISTS made {place} AS SELECT STREAM `a b` FROM s"
    with refused("NO_CHECKPOINT"):
        session.pipeline(script)
    for number in range(2):
        rows = session.spark.sql(f"SELECT TIMESTAMP '2026-01-0{number + 1}' AS ts, 'k{number}' AS `a b`")
        rows.write.mode("append").parquet(str(folder))
        trigger = {"availableNow": True}
        session.pipeline(script, checkpoint=tmp_path / "checkpoint", trigger=trigger).await_termination()
        found = session.spark.table("made").collect()
        assert sorted(row["a b"] for row in found) == [f"k{each}" for each in range(number + 1)]
        session.spark.sql("DROP TABLE made")
    with refused("UNSUPPORTED_STATEMENT") as caught:
        session.sql(f"CREATE OR REPLACE TABLE made {place} AS SELECT STREAM `a b` FROM s")
    assert "REPLACE TABLE made" in str(caught.value)


def test_what_a_pipeline_is_not_made_of(trading):
    session, script, folder = trading
    options = {"checkpoint": folder / "checkpoint"}
    streams = script.split("INSERT")[0]
    with refused("NO_LIVE_QUERY"):
        session.pipeline(streams, **options)
    for statement in (
        "INSERT INTO trades VALUES ('2026-01-01', 'x', 1)",
        "SELECT 1",
        "SELECT * FROM trades [NOW]",
    ):
        with refused("UNSUPPORTED_STATEMENT"):
            session.pipeline(f"{streams}; {statement}", **options)
    assert NamedStream.open(folder / "trades").log.last() == 0
    assert list(session.queries) == []
    session.sql("DROP STREAM trades")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO kept SELECT * FROM stored",
        "INSERT INTO kept SELECT k, v FROM s",
        "INSERT INTO kept VALUES ('s', 1)",
        "INSERT OVERWRITE kept SELECT * FROM stored",
        "WITH s2 AS (SELECT * FROM stored) INSERT INTO kept SELECT * FROM s2",
        "FROM stored INSERT INTO kept SELECT k, v",
        "INSERT INTO s SELECT TIMESTAMP'2026-01-01', k, v FROM stored",
    ],
)
def test_a_pipeline_runs_no_insert_of_stored_rows(spark, tmp_path, statement):
    """Also where names of streams are in it, or another word is before it."""
    session = Session(spark.newSession())
    source = NamedStream.create(tmp_path / "s", SCHEMA, "ts")
    session.stream("s", source)
    session.spark.sql("SELECT 'a' AS k, 1L AS v").createOrReplaceTempView("stored")
    session.spark.sql(f"CREATE TABLE kept (k STRING, v BIGINT) USING parquet LOCATION '{tmp_path / 'kept'}'")
    try:
        with refused("UNSUPPORTED_STATEMENT"):
            session.pipeline(statement, checkpoint=tmp_path / "checkpoint")
        assert session.spark.table("kept").count() == 0
        assert source.log.last() == 0
    finally:
        session.spark.sql("DROP TABLE kept")


@pytest.mark.filterwarnings("ignore:the state of the query is unbounded")
def test_windows_of_a_live_stream_are_inserted_without_the_word_stream(spark, tmp_path):
    """They are a stream: each is there once."""
    session, folder = Session(spark.newSession()), tmp_path / "in"
    rows = session.spark.sql("SELECT timestamp_seconds(id) AS ts, CAST(id % 3 AS INT) AS v FROM range(9)")
    rows.coalesce(1).write.parquet(str(folder))
    source = session.spark.readStream.schema("ts TIMESTAMP, v INT").parquet(str(folder))
    session.stream("s", source, rowtime="ts")
    session.spark.sql(f"CREATE TABLE falls (v INT) USING parquet LOCATION '{tmp_path / 'falls'}'")
    windows = "WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS a END AS e WHEN e.v < a.v)"
    try:
        script = f"INSERT INTO falls SELECT a.v FROM s {windows}"
        with session.pipeline(script, checkpoint=tmp_path / "checkpoint") as pipeline:
            pipeline.process_all_available()
        assert Counter(row.v for row in session.spark.table("falls").collect()) == {1: 2, 2: 2}
    finally:
        session.spark.sql("DROP TABLE falls")


def test_from_stream_with_a_watermark_is_a_live_stream(spark, tmp_path):
    (tmp_path / "bids").mkdir()
    rows = [(f"2026-01-01 10:00:{second:02}", price) for second, price in ((5, 1), (1, 2), (20, 3), (4, 4))]
    frame = spark.createDataFrame(rows, "ts string, price int").selectExpr(
        "CAST(ts AS TIMESTAMP) AS ts", "price"
    )
    frame.coalesce(1).write.mode("append").parquet(str(tmp_path / "bids"))
    spark.readStream.schema("ts TIMESTAMP, price INT").parquet(
        str(tmp_path / "bids")
    ).createOrReplaceTempView("bids")
    session, given = Session(spark), Memory()
    watermark = "STREAM bids WATERMARK ts DELAY OF INTERVAL 10 SECONDS"
    relation = session.sql(f"SELECT STREAM ts, price * 2 AS p FROM {watermark} WHERE price > 1")
    query = relation.start(given, trigger={"availableNow": True})
    query.await_termination()
    assert [row["p"] for batch in given.batches.values() for row in batch.to_pylist()] == [4]
    assert (query.progress["rows_buffered"], query.progress["rows_late"]) == (1, 1)
    assert query.progress["bound"] == "2026-01-01 10:00:10"
    with refused("UNKNOWN_ROWTIME") as caught:
        session.sql(f"SELECT STREAM ts FROM {watermark.replace(' ts ', ' at ')}")
    assert caught.value.getQueryContext()[0].fragment() == "at"
    spark.catalog.dropTempView("bids")


def test_select_stream_gives_each_row_once_or_what_is_inserted(spark):
    session = Session(spark)
    rows = {"ts": [1, 2, 2, 3], "k": ["a", "a", "b", "a"]}
    session.stream("r", pa.table(rows), rowtime="ts", unit="seconds")
    for short, long in (
        ("SELECT STREAM k AS c FROM r WHERE k < 'b'", "RSTREAM(SELECT k AS c FROM r [NOW] WHERE k < 'b')"),
        (
            "SELECT STREAM r.k, COUNT(*) AS n FROM r, r [RANGE 2] AS w WHERE w.k = r.k GROUP BY r.k",
            "RSTREAM(SELECT r.k, COUNT(*) AS n FROM r [NOW], r [RANGE 2] AS w WHERE w.k = r.k GROUP BY r.k)",
        ),
        (
            "SELECT STREAM k, COUNT(*) AS n FROM r [RANGE 2] GROUP BY k",
            "ISTREAM(SELECT k, COUNT(*) AS n FROM r [RANGE 2] GROUP BY k)",
        ),
    ):
        found = sorted(map(tuple, session.sql(short).collect()))
        assert found == sorted(map(tuple, session.sql(long).collect()))
        assert found
    assert [row["c"] for row in session.sql("SELECT STREAM k AS c FROM r").collect()] == ["a", "a", "b", "a"]
    spark.catalog.dropTempView("r")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM (SELECT STREAM k FROM r WHERE k < 'c') [RANGE 2]",
        "WITH q (key) AS (SELECT STREAM k FROM r) SELECT key, COUNT(*) AS n FROM q [RANGE 3] GROUP BY key",
        "SELECT STREAM q.k, w.ts FROM (SELECT STREAM k FROM r) AS q JOIN r [RANGE 2] AS w ON w.k = q.k",
        "SELECT STREAM * FROM (SELECT STREAM k, COUNT(*) AS n FROM r [RANGE 2] GROUP BY k) WHERE n > 1",
    ],
)
def test_select_stream_in_from_gives_live_what_it_gives_recorded(spark, tmp_path, query):
    session = Session(spark.newSession())
    session.sql(f"CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, k STRING) LOCATION '{tmp_path / 'r'}'")
    session.sql("INSERT INTO r VALUES (1, 'a'), (2, 'a'), (2, 'b')")
    given = Memory()
    live = session.sql(query).start(
        given, checkpoint=tmp_path / "checkpoint", envelope=None, on_unbounded="ignore"
    )
    try:
        live.process_all_available()
        session.sql("INSERT INTO r VALUES (3, 'a'), (3, 'c'), (6, 'b'), (90, 'z')")
        live.process_all_available()
    finally:
        live.stop()
    emitted = Counter(tuple(row.values()) for table in given.batches.values() for row in table.to_pylist())
    recorded = session.sql(query)
    rows = recorded if query.startswith("SELECT STREAM") else recorded.changelog()
    at = rows.columns.index("rowtime" if "rowtime" in rows.columns else "_commit_timestamp")
    assert emitted == Counter(row for row in map(tuple, rows.collect()) if row[at] < 90)
    assert emitted


@pytest.mark.parametrize("form", ["parquet", "json", "csv", "orc"])
def test_a_file_of_each_format_has_the_rows_or_is_not_there(spark, tmp_path, form):
    rows = spark.createDataFrame([(1, 'a "b"\nc'), (2, None), (3, "x,y")], "n int, s string")
    assert write_one(rows, tmp_path, "x", form) == 3
    assert write_one(rows.limit(0), tmp_path, "y", form) == 0
    assert [path.name for path in tmp_path.iterdir()] == [f"x.{form}"]
    reader = spark.read.schema(rows.schema)
    if form == "csv":
        reader = reader.options(header="true", escape='"', multiLine="true")
    assert sorted(reader.format(form).load(str(tmp_path)).collect(), key=lambda row: row.n) == rows.collect()

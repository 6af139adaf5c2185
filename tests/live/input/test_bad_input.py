"""What a live query meets that should not be: it says so, loses nothing, and goes on when it is mended."""

from __future__ import annotations

import contextlib
import datetime
import re
import shutil
import subprocess
import time
from functools import partial

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from tests.live.queries.test_query import COLUMNS, COUNTS, declared, given_by, put
from tests.live.stepping import total
from tests.streams.test_log import small_disk
from windrow import Memory, Session, WindrowError
from windrow.spark.jvm.bridge import JavaError
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.reports.failures import failure
from windrow.spark.live.sinks.sink import Files
from windrow.streams import NamedStream

pytestmark = pytest.mark.usefixtures("interpreted")

BATCHES = [[(0, "a", 1), (1, "b", 1)], [(1, "a", 1), (4, "a", 1)], [(6, "b", 1), (9, "a", 1)]]


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


class Run:
    """A query whose micro-batches the test takes."""

    columns = COLUMNS

    def __init__(self, spark, folder, sink, columns=COLUMNS, envelope="diff", on_malformed="fail"):
        self.columns = columns
        session = Session(spark)
        arriving = spark.readStream.schema(columns).parquet(str(folder))
        session.stream("s", arriving, rowtime="ts", unit="seconds")
        self.spark, self.sink = spark, sink
        plan, rest = session.sql(COUNTS)._live, (sink, folder / "checkpoint", envelope, "keep", on_malformed)
        self.steps = micro_batches_of(plan, *rest)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.steps.close()

    def take(self, number, rows=None):
        columns = list(zip(*(BATCHES[number] if rows is None else rows), strict=True))
        table = pa.table(columns, names=StructType.fromDDL(self.columns).names)
        _, name, stream = self.steps.streams()[0]
        frame = self.spark.createDataFrame(
            table.cast(to_arrow_schema(StructType.fromDDL(self.columns))), self.columns
        ).select(*stream.live.columns)
        self.steps.take(self.steps.input({name: frame}), number)


def whole(spark, batches=BATCHES):
    """The changes up to the last rowtime, of the rows as a recorded stream."""
    session = Session(spark)
    rows = [row for batch in batches for row in batch]
    columns = [list(column) for column in zip(*rows, strict=True)]
    session.stream("s", pa.table(columns, names=["ts", "k", "v"]), rowtime="ts", unit="seconds")
    changes = total([session.sql(COUNTS).changelog("diff").to_arrow()])
    return {key: diff for key, diff in changes.items() if key[0] < rows[-1][0]}


def test_a_checkpoint_that_is_damaged_is_refused_until_it_is_restored(spark, tmp_path):
    sink = Memory()
    started = partial(Run, spark, tmp_path, sink)
    with started() as run:
        run.take(0)
        run.take(1)
    kept, copy = tmp_path / "checkpoint" / "windrow", tmp_path / "copy"
    shutil.copytree(kept, copy)
    before = dict(sink.batches)

    def cut(path):
        path.write_bytes(path.read_bytes()[:-1])

    def change(path):
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)

    for damage, pattern, condition in [
        (cut, "1/step.json", "TORN_FILE"),
        (cut, "chunks/*.arrow", "TORN_FILE"),
        (change, "chunks/*.arrow", "TORN_FILE"),
        (lambda path: path.unlink(), "chunks/*.arrow", "MISSING_FILE"),
        (lambda path: path.unlink(), "1/step.json", "MISSING_FILE"),
    ]:
        path = max(kept.glob(pattern))
        damage(path)
        with refused(condition) as caught, started() as run:
            run.take(2)
        assert str(path) in caught.value.message
        shutil.rmtree(kept)
        shutil.copytree(copy, kept)
    shutil.rmtree(kept / "1")  # a copy of an earlier time
    with started() as run, refused("CHECKPOINT_INCOMPLETE"):
        run.take(2)
    shutil.copytree(copy / "1", kept / "1")
    assert sink.batches == before
    with started() as run:
        run.take(2)
        counts = run.steps.progress
    assert total(sink.batches.values()) == whole(spark)
    assert (counts["rows_in"], counts["rows_used"], counts["rows_buffered"]) == (6, 5, 1)


def test_micro_batches_are_taken_once_and_in_turn(spark, tmp_path):
    sink = Memory()
    with Run(spark, tmp_path, sink) as run:
        run.take(0)
        run.take(1)
        before = dict(sink.batches)
        run.take(1)  # Spark repeats the last where it was ended before it knew
        assert all(sink.batches[number] is table for number, table in before.items())
        for number, rows in [(0, None), (3, BATCHES[2]), (1, BATCHES[1][:1])]:
            with refused("CHECKPOINT_INCOMPLETE"):
                run.take(number, rows)
        assert sink.batches == before
        run.take(2)
    assert total(sink.batches.values()) == whole(spark)


def test_other_columns_of_the_source_are_refused(spark, tmp_path):
    with Run(spark, tmp_path, Memory()) as run:
        run.take(0)
    with refused("CHECKPOINT_OF_ANOTHER_QUERY") as caught:
        Run(spark, tmp_path, Memory(), columns="ts bigint, k string, v double")
    assert "v:bigint" in caught.value.message
    assert "v:double" in caught.value.message


def test_a_folder_of_rows_is_of_one_checkpoint(spark, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    with Run(spark, tmp_path / "one", Files(tmp_path / "out")) as run:
        run.take(0)
        run.take(1)
    rows = given_by(tmp_path / "out")
    assert rows
    with refused("SINK_IN_USE"):
        Run(spark, tmp_path / "other", Files(tmp_path / "out"))
    assert given_by(tmp_path / "out") == rows
    with Run(spark, tmp_path / "one", Files(tmp_path / "out")) as run:
        run.take(2)
    assert len(given_by(tmp_path / "out")) == len(whole(spark))


def test_late_rows_that_are_gone_from_a_checkpoint_are_noticed(spark, tmp_path):
    with Run(spark, tmp_path, Memory()) as run:
        run.take(0, [(5, "a", 1)])
        run.take(1, [(2, "b", 1)])
        assert [row.rowtime for row in run.steps.aside("late").collect()] == ["2"]
    shutil.move(tmp_path / "checkpoint" / "late", tmp_path / "kept")
    with refused("MISSING_FILE") as caught:
        Run(spark, tmp_path, Memory())
    assert "late/part-000000001.parquet" in caught.value.message
    shutil.rmtree(tmp_path / "checkpoint" / "late")
    shutil.move(tmp_path / "kept", tmp_path / "checkpoint" / "late")
    with Run(spark, tmp_path, Memory()) as run:
        run.take(2, [(6, "b", 1)])
        assert [row.rowtime for row in run.steps.aside("late").collect()] == ["2"]


def test_malformed_rows_go_apart_wherever_micro_batches_are_cut(spark, tmp_path):
    rows = [(1, "a", 1, None), (None, None, None, '{"ts"'), (2, "b", None, '{"v":"x"}'), (None, "c", 2, None)]
    rows += [(4, "a", 1, None), (3, "b", 1, None), (6, "b", 1, None)]
    found = []
    for cuts in ([7], [2, 3, 5, 7]):
        sink, folder, began = Memory(), tmp_path / str(len(cuts)), 0
        folder.mkdir()
        for number, stop in enumerate(cuts):  # each in a process of its own
            with Run(spark, folder, sink, f"{COLUMNS}, _corrupt_record string", on_malformed="keep") as run:
                run.take(number, rows[began:stop])
                run.take(number, rows[began:stop])  # repeated, as after a kill before Spark knew
                told, progress = run.steps.aside("malformed").collect(), run.steps.progress
            began = stop
        counts = [progress[f"rows_{what}"] for what in ("in", "used", "buffered", "late", "malformed")]
        found.append((total(sink.batches.values()), counts, sorted((row.reason, row.row) for row in told)))
    assert found[0] == found[1]
    assert found[0][1] == [7, 2, 1, 1, 3]
    assert found[0][2] == [
        ("cannot be parsed", '{"_corrupt_record":"{\\"ts\\""}'),
        ("cannot be parsed", '{"ts":2,"k":"b","_corrupt_record":"{\\"v\\":\\"x\\"}"}'),
        ("has no rowtime", '{"k":"c","v":2}'),
    ]


WITH_CORRUPT = f"{COLUMNS}, _corrupt_record string"
JSON = ['{"ts":1,"k":"a","v":1}', '{"ts":', '{"ts":2,"k":"b","v":"x"}', '{"ts":4,"k":"a","v":2}']
JSON_KEPT = [
    '{"_corrupt_record":"{\\"ts\\":"}',
    '{"ts":2,"k":"b","_corrupt_record":"{\\"ts\\":2,\\"k\\":\\"b\\",\\"v\\":\\"x\\"}"}',
]
CSV = ["1,a,1", "noon,b,1", "2,b,x", "3,c", "4,a,2"]
CSV_KEPT = [
    '{"k":"b","v":1,"_corrupt_record":"noon,b,1"}',
    '{"ts":2,"k":"b","_corrupt_record":"2,b,x"}',
    '{"ts":3,"k":"c","_corrupt_record":"3,c"}',
]


def parsed(frame):
    """Values of JSON within a column, as a query over Kafka has them."""
    options = {"columnNameOfCorruptRecord": "_corrupt_record"}
    return frame.select(F.from_json("value", WITH_CORRUPT, options).alias("r")).select("r.*")


READERS = {
    "JSON": (JSON, JSON_KEPT, lambda reader, path: reader.schema(WITH_CORRUPT).json(path)),
    "CSV": (CSV, CSV_KEPT, lambda reader, path: reader.schema(WITH_CORRUPT).csv(path)),
    "values of JSON": (JSON, JSON_KEPT, lambda reader, path: parsed(reader.text(path))),
}
"""The lines of a file, those that are kept as malformed, and how the file is read."""


@pytest.mark.parametrize(("name", "host"), [*((name, "driver") for name in READERS), ("JSON", "executors")])
def test_lines_that_cannot_be_read_end_a_query_or_are_kept(spark, conf, tmp_path, name, host):
    conf("spark.windrow.live.host", host)
    lines, kept, read = READERS[name]
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    (incoming / "0.txt").write_text("\n".join(lines))
    session = Session(spark)
    session.stream("s", read(spark.readStream, str(incoming)), rowtime="ts", unit="seconds")
    query, sink = session.sql(COUNTS), Memory()
    start = {"checkpoint": tmp_path / "checkpoint", "trigger": {"availableNow": True}, "envelope": "diff"}
    running = query.start(sink, **start)
    with refused("NULL_ROWTIME") as caught:
        running.await_termination()
    assert "on_malformed='keep'" in caught.value.hint
    running.stop()
    running = query.start(sink, on_malformed="keep", **start)
    running.await_termination()
    assert sorted((row.row, row.reason) for row in running.malformed.collect()) == [
        (row, "cannot be parsed") for row in sorted(kept)
    ]
    progress = running.progress
    counts = [progress[f"rows_{name}"] for name in ("in", "used", "buffered", "malformed")]
    assert counts == [len(lines), 1, 1, len(kept)]


MALFORMED = ['{"ts":', '{"k":"q"}']
WAITING = [f'{{"ts":1,"k":"{key}","v":1}}' for key in "abcdefgh"]
COUNTED = {
    "SELECT k, COUNT(*) AS n FROM s [RANGE 1] GROUP BY k": [[2, 0, 0, 2], [10, 0, 8, 2], [12, 0, 8, 4]],
    "SELECT COUNT(*) AS n FROM s EMIT STREAM": [[2, 0, 0, 2], [10, 8, 0, 2], [12, 8, 0, 4]],
}
"""The rows in, used, buffered and malformed after each file."""


@pytest.mark.parametrize("query", COUNTED)
@pytest.mark.parametrize("host", ["driver", "executors"])
def test_the_account_closes_where_all_rows_are_malformed(spark, conf, tmp_path, host, query):
    conf("spark.windrow.live.host", host)
    conf("spark.sql.shuffle.partitions", "3")
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    session, told, sink = Session(spark), [], Memory()
    reader = spark.readStream.schema(WITH_CORRUPT).json(str(incoming))
    session.stream("s", reader, rowtime="ts", unit="seconds")
    began = datetime.datetime.now(datetime.UTC) - datetime.timedelta(minutes=1)
    for number, lines in enumerate([MALFORMED, WAITING, MALFORMED]):
        (incoming / f"{number}.json").write_text("\n".join(lines))
        running = session.sql(query).start(
            sink, checkpoint=tmp_path / "checkpoint", trigger={"availableNow": True}, on_malformed="keep"
        )
        running.await_termination()
        told.append([running.progress[f"rows_{name}"] for name in ("in", "used", "buffered", "malformed")])
    assert told == COUNTED[query]
    rows = [row for table in sink.batches.values() for row in table.to_pylist()]
    assert all(row["ptime"] > began for row in rows if "ptime" in row)
    assert bool(rows) == ("EMIT" in query)


def test_a_checkpoint_goes_on_with_its_envelope_and_its_target(spark, tmp_path):
    out, other = tmp_path / "out", tmp_path / "other"
    with Run(spark, tmp_path, Files(out), envelope="op") as run:
        run.take(0)
    with refused("CHECKPOINT_OF_ANOTHER_QUERY") as caught:
        Run(spark, tmp_path, Files(out), envelope="diff")
    assert "its envelope was 'op', but is now 'diff'" in caught.value.message
    with refused("CHECKPOINT_OF_ANOTHER_QUERY") as caught:
        Run(spark, tmp_path, Files(other), envelope="op")
    assert f"its target was 'folder {out}', but is now 'folder {other}'" in caught.value.message
    with refused("CHECKPOINT_OF_ANOTHER_QUERY"):
        Run(spark, tmp_path, Memory(), envelope="op")
    other.rmdir()
    out.rename(other)  # with the rows that are in it, it is the same folder
    with Run(spark, tmp_path, Files(other), envelope="op") as run:
        run.take(1)


@contextlib.contextmanager
def full(disk):
    """A disk on which there is no room for another byte."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while file.write(b"x" * size):
                    pass
    yield
    filler.unlink()


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("place", ["checkpoint", "sink"])
def test_a_full_disk_loses_nothing(spark, tmp_path, place):
    with small_disk(tmp_path / "disk") as disk:
        own = disk if place == "checkpoint" else tmp_path / "own"
        own.mkdir(exist_ok=True)
        sink = Files((disk if place == "sink" else tmp_path) / "out")
        with Run(spark, own, sink) as run:
            run.take(0)
            with full(disk), pytest.raises((OSError, WindrowError, PySparkException)) as caught:
                run.take(1)
            assert failure(caught.value).condition == "DISK_FULL"
            assert run.steps.progress["batch"] == 0
            run.take(1)
            run.take(2)
            assert run.steps.progress["rows_in"] == 6
        tables = [pa.parquet.read_table(path) for path in sink.folder.glob("*.parquet")]
        assert total(tables) == whole(spark)


def test_a_disk_that_is_full_for_late_rows_loses_none(spark, tmp_path):
    (tmp_path / "checkpoint").mkdir()
    batches = [BATCHES[0], [(4, "a", 1), (0, "c", 1)], BATCHES[2]]
    sink = Files(tmp_path / "out")
    with small_disk(tmp_path / "checkpoint" / "late") as disk:
        with Run(spark, tmp_path, sink) as run:
            run.take(0, batches[0])
            with full(disk), pytest.raises((WindrowError, PySparkException, JavaError)) as caught:
                run.take(1, batches[1])
            assert failure(caught.value).condition == "DISK_FULL"
            assert run.steps.aside("late").count() == 0
            run.take(1, batches[1])
            run.take(2, batches[2])
            assert [row.rowtime for row in run.steps.aside("late").collect()] == ["0"]
            progress = run.steps.progress
        tables = [pa.parquet.read_table(path) for path in sink.folder.glob("*.parquet")]
    assert [progress[f"rows_{what}"] for what in ("in", "used", "buffered", "late")] == [6, 4, 1, 1]
    assert total(tables) == whole(spark, [batches[0], batches[1][:1], batches[2]])


def test_a_query_on_a_full_disk_fails_and_goes_on_when_there_is_room(spark, tmp_path):
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    with small_disk(tmp_path / "disk") as disk:
        query = declared(spark, incoming).sql(COUNTS)
        start = {"sink": disk / "out", "checkpoint": disk / "checkpoint", "envelope": "diff"}
        running = query.start(**start)
        put(incoming, 0, BATCHES[0])
        running.process_all_available()
        with full(disk):
            put(incoming, 1, BATCHES[1])
            with refused("DISK_FULL"):
                running.process_all_available()
        # a column of another type in a file that comes: it is told, and can be replaced
        wrong = [(6, "b", "text"), (9, "a", "text")]
        put_as(incoming, 2, wrong, pa.string())
        running = query.start(**start)
        with pytest.raises(WindrowError) as caught:
            running.process_all_available()
        assert caught.value.condition.startswith("FAILED_READ_FILE")
        assert "002.parquet" in str(caught.value)
        put(incoming, 2, BATCHES[2])
        running = query.start(**start)
        running.process_all_available()
        running.stop()
        assert (
            running.progress["rows_in"]
            == running.progress["rows_used"] + running.progress["rows_buffered"]
            == 6
        )
        tables = [pa.parquet.read_table(path) for path in (disk / "out").glob("*.parquet")]
    assert total(tables) == whole(spark)


def put_as(folder, number, rows, kind):
    """A file whose last column is of another type than the stream's."""
    columns = [list(column) for column in zip(*rows, strict=True)]
    table = pa.table([*map(pa.array, columns[:2]), pa.array(columns[2], kind)], names=["ts", "k", "v"])
    pending = folder / f".{number}.pending"
    pa.parquet.write_table(table, pending)
    pending.rename(folder / f"{number:03}.parquet")


@pytest.mark.long
def test_a_torn_file_of_a_named_stream_is_told_and_the_query_goes_on_when_it_is_restored(spark, tmp_path):
    columns = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    stream = NamedStream.create(tmp_path / "s", columns, "ts", unit="seconds")
    with stream.producer("p") as producer:
        for batch in BATCHES:
            producer.insert([dict(zip(columns.names, row, strict=True)) for row in batch])
        producer.finish()
    torn = stream.log.path(3)
    content = torn.read_bytes()
    session, sink = Session(spark), Memory()
    session.stream("s", stream)
    query = session.sql(COUNTS)
    wanted = total([query.changelog("diff").to_arrow()])
    torn.write_bytes(content[: len(content) // 2])
    running = query.start(sink, checkpoint=tmp_path / "checkpoint", envelope="diff")
    with refused("TORN_FILE") as caught:
        running.process_all_available()
    assert torn.name in caught.value.message
    assert sink.batches == {}
    torn.write_bytes(content)
    running = query.start(sink, checkpoint=tmp_path / "checkpoint", envelope="diff")
    running.process_all_available()
    running.stop()
    assert total(sink.batches.values()) == wanted


def test_a_log_that_was_rolled_back_and_grew_again_is_noticed_by_a_query_that_is_started_again(
    spark, tmp_path
):
    columns = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    stream = NamedStream.create(tmp_path / "s", columns, "ts", unit="seconds")

    def insert(ats, name):
        with stream.producer(name) as producer:
            for at in ats:
                producer.insert({"ts": at, "k": "a", "v": at})

    insert(range(4), "p")
    session, sink, checkpoint = Session(spark), Memory(), tmp_path / "checkpoint"
    session.stream("s", stream)
    query = session.sql(COUNTS)
    running = query.start(sink, checkpoint=checkpoint, envelope="diff")
    running.process_all_available()
    running.stop()
    copy = tmp_path / "copy"
    shutil.copytree(stream.log.files, copy)
    given, position = dict(sink.batches), stream.position()
    for number in (4, 5, 6):
        stream.log.path(number).unlink()
    for ats, condition in ((), "MISSING_FILE"), (range(10, 13), "LOG_CHANGED"):
        insert(ats, "q")
        session = Session(spark)
        session.stream("s", NamedStream.open(stream.folder))
        running = session.sql(COUNTS).start(sink, checkpoint=checkpoint, envelope="diff")
        with refused(condition) as caught:
            running.process_all_available()
        assert stream.log.path(6).name in caught.value.message
        assert sink.batches == given
    shutil.rmtree(stream.log.files)
    copy.rename(stream.log.files)
    assert stream.position() == position
    # an offset of an earlier version has no checksum
    offsets = checkpoint / "spark" / "offsets"
    last = offsets / str(max(int(path.name) for path in offsets.iterdir() if path.name.isdigit()))
    (offsets / f".{last.name}.crc").unlink(missing_ok=True)
    text = last.read_text()
    last.write_text(re.sub(r', "checksum": \d+', "", text))
    assert last.read_text() != text
    with stream.producer("r") as producer:
        producer.insert({"ts": 5, "k": "a", "v": 5})
        producer.finish()
    running = query.start(sink, checkpoint=checkpoint, envelope="diff")
    running.process_all_available()
    running.stop()
    session = Session(spark)
    session.stream("s", NamedStream.open(stream.folder))
    assert total(sink.batches.values()) == total([session.sql(COUNTS).changelog("diff").to_arrow()])


def test_inserts_into_a_full_disk_are_refused_whole_and_go_on_when_there_is_room(spark, tmp_path):
    with small_disk(tmp_path / "disk") as disk:
        session = Session(spark)
        session.sql(f"CREATE STREAM full (ROWTIME at BIGINT, x BINARY) LOCATION '{disk}/s'")
        rows = "SELECT id + {0} AS at, CAST(repeat(uuid(), 40) AS BINARY) AS x FROM range(20)"
        inserted = 0
        with refused("DISK_FULL"):
            while True:
                session.sql(f"INSERT INTO full {rows.format(inserted)}")
                inserted += 20
        assert inserted
        stream = NamedStream.open(disk / "s")
        assert session.sql("SELECT COUNT(*) FROM full").collect()[0][0] == inserted
        with refused("DISK_FULL"):
            session.sql(f"INSERT INTO full {rows.format(inserted)}")
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        session.sql(f"INSERT INTO full {rows.format(inserted)}")
        assert session.sql("SELECT COUNT(*), MAX(at) FROM full").collect() == [(inserted + 20, inserted + 19)]
        session.sql("DROP STREAM full")
        assert stream.check() == []
        spark.catalog.dropTempView("full")


def test_a_producer_that_falls_silent_holds_the_others_back_no_longer_than_it_may(spark, tmp_path):
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    session = declared(spark, incoming, producer="k", idle=datetime.timedelta(seconds=1))
    sink = Memory()
    running = session.sql("SELECT COUNT(*) AS n FROM s [NOW]").start(sink, envelope="diff")
    put(incoming, 0, [(1, "silent", 1), (1, "other", 1), (8, "other", 1)])
    began = time.monotonic()
    while running.is_active and running.progress.get("frontier") != 8:
        assert time.monotonic() - began < 180
        time.sleep(0.05)
    put(incoming, 1, [(5, "silent", 1), (8, "silent", 1)])
    while running.is_active and running.progress["rows_in"] < 5:
        assert time.monotonic() - began < 180
        time.sleep(0.05)
    progress = running.progress
    (late,) = running.late.collect()
    running.stop()
    assert (progress["rows_late"], progress["rows_used"], progress["rows_buffered"]) == (1, 2, 2)
    assert (late.producer, late.rowtime, late.bound) == ("silent", "5", "8")


def test_a_query_that_was_killed_while_spark_wrote_its_first_offset_is_started_again(spark, tmp_path):
    incoming, offsets = tmp_path / "incoming", tmp_path / "checkpoint" / "spark" / "offsets"
    incoming.mkdir()
    offsets.mkdir(parents=True)
    for name in (".0.7bf7a1c4.tmp", "..0.7bf7a1c4.tmp.crc"):
        (offsets / name).write_text("v1")
    put(incoming, 0, BATCHES[0])
    running = declared(spark, incoming).sql(COUNTS).start(Memory(), checkpoint=tmp_path / "checkpoint")
    running.process_all_available()
    running.stop()
    assert running.progress["rows_in"] == 2


def test_live_streams_and_views_of_them_are_no_tables(spark, tmp_path):
    session = Session(spark.newSession())
    arriving = session.spark.readStream.schema(COLUMNS).parquet(str(tmp_path))
    session.stream("s", arriving, rowtime="ts", unit="seconds")
    session.sql("CREATE TEMPORARY VIEW counts AS ISTREAM(SELECT COUNT(*) AS n FROM s [RANGE 2])")
    for name in ("s", "counts"):
        for relation in (session.sql(f"SELECT COUNT(*) AS n FROM {name}"), session.table(name)):
            with refused("LIVE_RELATION"):
                relation.collect()
            with pytest.raises(WindrowError, match=r"\[NOT_LIVE\].*\n.*SELECT STREAM"):
                relation.start(Memory())
    session.sql("CREATE TEMPORARY VIEW late AS SELECT ts FROM s WHERE ts > 3")
    with pytest.raises(WindrowError, match="name a stream in FROM"):
        session.sql("SELECT STREAM ts FROM late")
    with refused("LIVE_RELATION"):
        session.sql("SELECT ts FROM (SELECT STREAM ts FROM s)").collect()
    live = session.sql("SELECT STREAM n FROM counts")
    assert live.columns == ["rowtime", "n"]
    for asked in (live.collect, lambda: live.at(3), live.changelog, lambda: live.late):
        with refused("LIVE_RELATION"):
            asked()
    for condition, options in [
        ("UNKNOWN_ENVELOPE", {"envelope": "opp"}),
        ("UNKNOWN_OPTION", {"on_late": "drop"}),
        ("INVALID_ARGUMENT", {"trigger": "10 seconds"}),
        ("INVALID_ARGUMENT", {"trigger": {"processingTime": "often"}}),
        ("INVALID_ARGUMENT", {"trigger": {"procesingTime": "1 second"}}),
    ]:
        with refused(condition):
            live.start(Memory(), **options)
    assert not session.queries

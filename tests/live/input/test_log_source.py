"""The source of a named stream's log, called as Spark calls it."""

from __future__ import annotations

import os
import time
from itertools import chain
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxFiles

from windrow.errors import NotSupportedError
from windrow.spark.logs.log_source import NUMBER, LogSource, offset_of
from windrow.statements.named_streams.create import _folder
from windrow.streams import EntryKind, NamedStream
from windrow.syntax.streams.create_stream import parse_create_stream
from windrow.syntax.tokens import tokenize

SCHEMA = pa.schema([("at", pa.int64()), ("value", pa.int64())])
START = {"number": 0, "checksum": 0}


@pytest.fixture
def stream(tmp_path):
    return NamedStream.create(tmp_path / "numbers", SCHEMA, "at")


def source(stream):
    return LogSource({"folder": str(stream.folder)})


def reader(stream):
    return source(stream).streamReader(source(stream).schema())


def inserted(stream, count):
    with stream.producer("a") as producer:
        for number in range(count):
            producer.insert({"at": number, "value": number})


def entries(reader, start, end):
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    return pa.Table.from_batches(batches) if batches else None


@pytest.mark.parametrize("warehouse", ["{0}", "file:{0}", "file://{0}"])
def test_without_a_location_a_stream_is_among_the_tables_of_spark(tmp_path, warehouse):
    folder = tmp_path / "ware house"
    named = warehouse.format(str(folder).replace(" ", "%20") if ":" in warehouse else folder)
    spark = SimpleNamespace(conf={"spark.sql.warehouse.dir": named})
    tokens = tokenize("CREATE STREAM Orders (ROWTIME ts BIGINT)")
    create = parse_create_stream(tokens, 0, len(tokens))
    assert _folder(SimpleNamespace(spark=spark), tokens, create) == folder / "orders.stream"


def test_streams_are_in_no_object_store():
    spark = SimpleNamespace(conf={"spark.sql.warehouse.dir": "s3a://bucket/tables"})
    tokens = tokenize("CREATE STREAM orders (ROWTIME ts BIGINT)")
    create = parse_create_stream(tokens, 0, len(tokens))
    with pytest.raises(NotSupportedError, match="UNSUPPORTED_CLAUSE"):
        _folder(SimpleNamespace(spark=spark), tokens, create)


def after(stream, number):
    return offset_of(stream.log.place(number))


def test_offsets_are_places_in_the_log(stream):
    found = reader(stream)
    assert found.initialOffset() == START
    assert found.latestOffset(START, ReadAllAvailable()) == START
    assert found.partitions(START, START) == []
    inserted(stream, 3)
    assert found.latestOffset(START, ReadAllAvailable()) == after(stream, 5)
    assert found.latestOffset(START, ReadMaxFiles(2)) == after(stream, 2)
    assert found.latestOffset(after(stream, 4), found.getDefaultReadLimit()) == after(stream, 5)
    assert found.latestOffset(after(stream, 5), ReadAllAvailable()) == after(stream, 5)


def test_offsets_of_earlier_versions_are_gone_on_with(stream):
    """They are numbers of files; where nothing follows, Spark must not see another offset."""
    inserted(stream, 3)
    found, old = reader(stream), {"number": 3}
    assert found.latestOffset(old, ReadAllAvailable()) == after(stream, 5)
    assert entries(found, old, {"number": 5}).column(NUMBER).to_pylist() == [4, 5]
    assert found.latestOffset({"number": 5}, ReadAllAvailable()) == {"number": 5}
    for torn in (old, after(stream, 3)):
        stream.log.path(3).unlink(missing_ok=True)
        with pytest.raises(RuntimeError, match="MISSING_FILE"):
            found.latestOffset(torn, ReadAllAvailable())


def test_a_log_that_was_changed_is_noticed_from_one_micro_batch_to_the_next(stream):
    inserted(stream, 4)
    found, there = reader(stream), after(stream, 5)
    batch = found.partitions(START, there)
    one, other = stream.log.path(5), stream.log.path(6)
    content = one.read_bytes()
    one.unlink()
    other.unlink()
    calls = (
        lambda: found.latestOffset(there, ReadAllAvailable()),
        lambda: found.partitions(START, there),
        lambda: [*chain.from_iterable(map(found.read, batch))],
    )
    for call in calls:
        with pytest.raises(RuntimeError, match="MISSING_FILE"):
            call()
    inserted(stream, 1)
    for call in calls:
        with pytest.raises(RuntimeError, match="LOG_CHANGED"):
            call()
    one.write_bytes(content)
    assert len(calls[-1]()) == 5


def test_a_part_of_the_log_is_given_whole_and_in_order(stream, monkeypatch):
    monkeypatch.setattr("windrow.spark.logs.log_source._FILES_OF_A_TASK", 2)
    inserted(stream, 4)
    found = reader(stream)
    part = after(stream, 1), after(stream, 6)
    assert len(found.partitions(*part)) == 3
    given = entries(found, *part)
    assert given.column(NUMBER).to_pylist() == [2, 3, 4, 5, 6]
    assert given.column("value").to_pylist() == [0, 1, 2, 3, None]
    assert given.column("__kind").to_pylist() == [EntryKind.ROW] * 4 + [EntryKind.CLOSE]
    assert given.schema.names == source(stream).schema().names


def test_a_query_of_what_is_there_ends_where_it_began(stream):
    inserted(stream, 1)
    found = reader(stream)
    found.prepareForTriggerAvailableNow()
    inserted(stream, 1)
    assert found.latestOffset(START, ReadAllAvailable()) == after(stream, 3)
    assert found.latestOffset(after(stream, 3), ReadAllAvailable()) == after(stream, 3)


def test_a_reader_that_waits_logs_that_producers_have_died(stream):
    producer = stream.producer("dead", lease=0.2)
    producer.insert({"at": 1, "value": 1})
    producer._heart.stop()
    (lease,) = (stream.leases / "dead").iterdir()
    os.utime(lease, (time.time() - 60,) * 2)
    found = reader(stream)
    assert found.latestOffset(START, ReadAllAvailable()) == after(stream, 3)
    given = entries(found, after(stream, 2), after(stream, 3))
    assert given.column("__kind").to_pylist() == [EntryKind.IDLE]

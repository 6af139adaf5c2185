"""OPTIMIZE of a named stream, and queries over a log whose files are merged before, between and while."""

from __future__ import annotations

import datetime

import pytest

from windrow import Memory, Session
from windrow.errors import WindrowError
from windrow.spark.logs.log_source import LogReader

PER_KEY = "SELECT k, SUM(v) AS v FROM bids [RANGE UNBOUNDED] GROUP BY k"


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark)
    session.sql(f"CREATE STREAM bids (ROWTIME ts TIMESTAMP, k STRING, v INT) LOCATION '{tmp_path / 'bids'}'")
    yield session
    session.sql("DROP STREAM bids")


@pytest.fixture
def stream(session):
    return session._catalog.named["bids"].stream


def insert(producer, first, stop):
    for second in range(first, stop):
        at = datetime.datetime(2026, 1, 1, 9, 0, second, tzinfo=datetime.UTC)
        producer.insert({"ts": at, "k": "ab"[second % 2], "v": 1})


def entered(sink):
    """The rows of the last state of each key, in the order of the changes."""
    rows = [row for table in sink.batches.values() for row in table.to_pylist()]
    return [(row["k"], row["v"]) for row in rows if "+I" in row.values()]


def files(stream):
    return len([*stream.log.files.iterdir()])


def test_the_statement_says_how_many_files_there_were_and_are(spark, session, stream):
    with stream.producer("p") as p:
        insert(p, 0, 27)
    before = [tuple(row) for row in session.sql("SELECT * FROM bids").collect()]
    explained = session.sql("EXPLAIN OPTIMIZE bids").collect()
    assert "merge the files of stream bids" in str(explained)
    (row,) = session.sql("OPTIMIZE BIDS").collect()
    assert row.asDict() == {"files_before": 29, "files_after": 11}
    other = Session(spark)
    other.stream("bids", stream.folder)
    assert [tuple(row) for row in other.sql("SELECT * FROM bids").collect()] == before
    assert [tuple(row) for row in other.sql("SELECT COUNT(*) FROM bids").collect()] == [(27,)]


@pytest.mark.parametrize(
    "text",
    ["OPTIMIZE bids_of_delta WHERE day > 1 ZORDER BY (k)", "OPTIMIZE main.bids", "OPTIMIZE delta.`bids`"],
)
def test_tables_are_optimized_by_who_has_them(spark, session, monkeypatch, text):
    said = []

    def sql(_, text, *__, **___):
        said.append(text)
        return spark.range(1)

    monkeypatch.setattr(type(spark), "sql", sql)
    session.sql(text).collect()
    assert said == [text]


def test_a_stream_has_no_clauses_of_delta(session):
    with pytest.raises(WindrowError, match=r"\[UNSUPPORTED_CLAUSE\]") as refused:
        session.sql("OPTIMIZE bids ZORDER BY (k)")
    span = refused.value.span
    assert refused.value.sql[span.start : span.stop] == "ZORDER BY (k)"
    session.sql("CREATE TEMPORARY VIEW seen AS SELECT STREAM * FROM bids")
    with pytest.raises(WindrowError, match=r"\[UNSUPPORTED_STREAM\]"):
        session.sql("OPTIMIZE seen")
    session.sql("DROP VIEW seen")


def test_a_live_query_goes_on_in_the_middle_of_a_merged_file(session, stream, tmp_path):
    relation, sink = session.sql(PER_KEY), Memory()

    def start():
        return relation.start(sink, checkpoint=tmp_path / "checkpoint", envelope="op")

    with stream.producer("p") as p:
        insert(p, 0, 5)
        query = start()
        query.process_all_available()
        insert(p, 5, 13)
        assert stream.compact(grace=0) == (14, 5)  # while it runs
        query.process_all_available()
        query.stop()
        insert(p, 13, 21)
        assert stream.compact(grace=0) == (13, 4)  # where it stopped
        query = start()
        query.process_all_available()
        insert(p, 21, 24)
        query.process_all_available()
        query.stop()
    found = entered(sink)
    assert [v for k, v in found if k == "a"][-1] == len(range(0, 24, 2))
    whole = Memory()
    query = relation.start(whole, checkpoint=tmp_path / "other", envelope="op")
    query.process_all_available()
    query.stop()
    assert sorted(entered(whole)) == sorted(found)


def test_a_job_that_has_begun_reads_files_that_are_merged_meanwhile(session, stream):
    with stream.producer("p") as p:
        insert(p, 0, 30)
    reader = LogReader(stream)
    end = {"number": 31, "checksum": None}
    (files,) = reader.partitions(reader.initialOffset(), end)
    wanted = [batch.to_pylist() for batch in reader.read(files)]
    begun = reader.read(files)
    found = [next(begun).to_pylist()]
    stream.compact(grace=0)
    assert found + [batch.to_pylist() for batch in begun] == wanted
    assert [batch.to_pylist() for batch in reader.read(files)] == wanted

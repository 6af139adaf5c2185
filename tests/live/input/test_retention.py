"""Live queries over a log whose oldest entries are deleted."""

from __future__ import annotations

import datetime

import pytest

from windrow import Memory, Session
from windrow.errors import WindrowError

PER_KEY = "SELECT k, SUM(v) AS v FROM s [RANGE UNBOUNDED] GROUP BY k"


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark)
    session.sql(
        f"CREATE STREAM s (ROWTIME ts TIMESTAMP, k STRING, v INT) LOCATION '{tmp_path / 's'}' LAG 0 SECONDS "
        "RETAIN 7 DAYS"
    )
    yield session
    session.sql("DROP STREAM s")


def minute(number):
    return datetime.datetime(2026, 1, 1, 9, number, tzinfo=datetime.UTC)


def entered(sink):
    """The values of `a`, in their order."""
    rows = [row for table in sink.batches.values() for row in table.to_pylist()]
    assert all("+I" in row.values() or "-D" in row.values() for row in rows), rows
    return sorted(row["v"] for row in rows if row["k"] == "a" and "+I" in row.values())


def test_a_query_goes_on_and_another_begins_with_what_is_left(spark, session, tmp_path, monkeypatch):
    monkeypatch.setattr("windrow.spark.live.input.read_logs._BETWEEN", 0.0)
    relation, stream, sink = session.sql(PER_KEY), session._catalog.named["s"].stream, Memory()
    assert stream.definition.retain == 7 * 86400

    def start():
        return relation.start(sink, checkpoint=tmp_path / "checkpoint", envelope="op")

    with stream.producer("p") as p:
        p.insert({"ts": minute(1), "k": "a", "v": 1})
        query = start()
        query.process_all_available()
        (reader,) = stream.readers()
        assert (reader.number, reader.is_temporary) == (0, False)  # nothing that Spark may ask for again
        p.insert({"ts": minute(2), "k": "a", "v": 2})
        query.process_all_available()
        p.insert({"ts": minute(3), "k": "b", "v": 4})
        query.process_all_available()
        query.stop()
        (reader,) = stream.readers()
        assert 2 <= reader.number < stream.log.last()
        assert stream.trim(older_than=0) == reader.number == stream.log.base
        p.insert({"ts": minute(4), "k": "a", "v": 8})
        query = start()
        query.process_all_available()
        p.insert({"ts": minute(5), "k": "c", "v": 0})
        query.process_all_available()
        query.stop()
        assert entered(sink) == [1, 3, 11]
        first = stream.start.number
        other = Session(spark)
        other.stream("s", stream.folder)
        found = Memory()
        query = other.sql(PER_KEY).start(found, envelope="op")
        query.process_all_available()
        assert {one.is_temporary for one in stream.readers()} == {False, True}
        query.stop()
        assert [one.is_temporary for one in stream.readers()] == [False]
        left = [row for row in stream.read(stream.start)[0].rows.to_pylist() if row["k"] == "a"]
        assert first == stream.start.number
        assert max(entered(found)) == sum(row["v"] for row in left) < 11


def test_what_a_query_needs_and_was_forgotten_ends_it(session, tmp_path):
    relation, stream = session.sql(PER_KEY), session._catalog.named["s"].stream
    with stream.producer("p") as p:
        p.insert({"ts": minute(1), "k": "a", "v": 1})
        query = relation.start(Memory(), checkpoint=tmp_path / "checkpoint")
        query.process_all_available()
        query.stop()
        p.insert([{"ts": minute(at), "k": "a", "v": 1} for at in (2, 3)])
        p.insert({"ts": minute(4), "k": "a", "v": 1})
    (reader,) = stream.readers()
    assert stream.forget(reader.name)
    stream.trim(older_than=0)
    query = relation.start(Memory(), checkpoint=tmp_path / "checkpoint")
    with pytest.raises(WindrowError, match=r"\[LOG_TRIMMED\]"):
        query.process_all_available()


def test_a_query_may_read_a_stream_of_which_it_can_note_nothing(session, tmp_path):
    relation, stream, sink = session.sql(PER_KEY), session._catalog.named["s"].stream, Memory()
    with stream.producer("p") as p:
        p.insert([{"ts": minute(at), "k": "a", "v": 1} for at in (1, 2)])
    (stream.folder / "readers").write_text("no folder, as one that may only be read")
    with pytest.warns(RuntimeWarning, match="cannot write to stream s how far the query has read"):
        query = relation.start(sink, checkpoint=tmp_path / "checkpoint", envelope="op")
    query.process_all_available()
    query.stop()
    assert entered(sink) == [1]


def test_a_query_writes_a_damaged_note_anew(session, tmp_path):
    relation, stream = session.sql(PER_KEY), session._catalog.named["s"].stream
    with stream.producer("p") as p:
        p.insert({"ts": minute(1), "k": "a", "v": 1})
        relation.start(Memory(), checkpoint=tmp_path / "checkpoint").stop()
        (path,) = (stream.folder / "readers").iterdir()
        path.write_text("{")
        with pytest.raises(WindrowError, match=r"\[TORN_FILE\]"):
            stream.trim(older_than=0)
        relation.start(Memory(), checkpoint=tmp_path / "checkpoint").stop()
        assert [reader.number for reader in stream.readers()] == [0]


def test_a_session_has_what_is_left_where_it_had_not_read_what_is_deleted(session):
    stream = session._catalog.named["s"].stream
    counted = "SELECT COUNT(*) AS n FROM s"
    with stream.producer("p") as p:
        p.insert([{"ts": minute(1), "k": "a", "v": 1}, {"ts": minute(2), "k": "a", "v": 1}])
        assert session.sql(counted).df.collect()[0]["n"] == 2
        stream.trim(older_than=0)
        assert session.sql(counted).df.collect()[0]["n"] == 2  # it had read them
        p.insert({"ts": minute(3), "k": "a", "v": 1})
        stream.trim(older_than=0)
        p.insert({"ts": minute(4), "k": "a", "v": 1})
        for text in (counted, f"{counted} EMIT STREAM"):
            assert max(row["n"] for row in session.sql(text).df.collect()) == 1


def test_what_is_declared(spark, session, tmp_path):
    text = "CREATE STREAM IF NOT EXISTS s (ROWTIME ts TIMESTAMP, k STRING, v INT) LOCATION '{}' RETAIN {}"
    session.sql(text.format(tmp_path / "s", "168 HOURS"))
    other = Session(spark)
    with pytest.raises(WindrowError, match=r"\[STREAM_DIFFERS\]") as refused:
        other.sql(text.replace("EXISTS s", "EXISTS r").format(tmp_path / "s", "1 DAY"))
    assert refused.value.message == "the existing stream has RETAIN 604800 SECONDS"
    spark.range(1).selectExpr("timestamp'2026-01-01' AS ts", "1 AS v").createOrReplaceTempView(
        "table_of_rows"
    )
    with pytest.raises(WindrowError, match="only named streams have a log") as refused:
        other.sql("CREATE STREAM u (ROWTIME ts TIMESTAMP, v INT) FROM table_of_rows RETAIN 7 DAYS")
    assert refused.value.condition == "PARSE_SYNTAX_ERROR"
    spark.catalog.dropTempView("table_of_rows")

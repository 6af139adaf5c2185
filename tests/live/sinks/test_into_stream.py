"""Rows that a query gives into a named stream have the rowtime there that they have."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

from windrow import AnalysisError, InputError, Session
from windrow.spark.live.sinks.into_stream import IntoStream, refuse_other
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.logs.storable import scale_of
from windrow.streams import NamedStream, Ordering

COLUMNS = pa.schema([("at", pa.int64()), ("k", pa.int64())])


@pytest.mark.parametrize(
    ("given", "condition"), [([5, 7], None), ([5, None], "NULL_ROWTIME"), ([5, 6], "ROWTIME_DIFFERS")]
)
def test_a_rowtime_that_is_given_is_that_of_the_row(spark, tmp_path, given, condition):
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered())
    frame = spark.createDataFrame(pa.table({"at": pa.array(given, pa.int64()), "k": [1, 2], ROWTIME: [5, 7]}))
    rows = Stream(frame, ("at", "k"), scale_of(stream))
    if condition is None:
        assert IntoStream(stream)._stored(rows).column("at").to_pylist() == given
        return
    with pytest.raises(InputError) as error:
        IntoStream(stream)._stored(rows)
    assert error.value.condition == condition


@pytest.fixture
def moving(spark, tmp_path):
    """A session with a stream of two rows and a bound after them, and a stream to insert into."""
    session = Session(spark.newSession())
    for name in ("orders", "later"):
        created = f"CREATE STREAM {name} (ROWTIME ts TIMESTAMP, k STRING)"
        session.sql(f"{created} LOCATION '{tmp_path / name}'")
    first, second = (f"TIMESTAMP '2006-10-10 10:0{minute}:00'" for minute in (0, 1))
    session.sql(f"INSERT INTO orders VALUES ({first}, 'ORCL'), ({second}, 'MSFT')")
    session.sql("PUNCTUATE orders BOUND TIMESTAMP '2006-10-10 10:05:00'")
    yield session, tmp_path
    for name in ("orders", "later"):
        session.sql(f"DROP STREAM {name}")


@pytest.mark.parametrize("in_sql", [False, True], ids=["start", "INSERT INTO"])
def test_bounds_are_shifted_the_same_way_as_rowtimes(moving, in_sql):
    session, folder = moving
    shifted, checkpoint = (
        "SELECT STREAM ts + INTERVAL 100 SECONDS AS ts, k FROM orders",
        folder / "checkpoint",
    )
    if in_sql:
        session.sql(f"SET spark.windrow.checkpoint = {checkpoint}")
        query = session.sql(f"INSERT INTO later {shifted}").query
    else:
        query = session.sql(shifted).start(NamedStream.open(folder / "later"), checkpoint=checkpoint)
    query.process_all_available()
    rows = session.sql("SELECT date_format(ts, 'HH:mm:ss') AS at, k FROM later ORDER BY ts").df.collect()
    assert [tuple(row) for row in rows] == [("10:01:40", "ORCL"), ("10:02:40", "MSFT")]
    (producer,) = NamedStream.open(folder / "later").position().watermark.producers.values()
    assert datetime.datetime.fromtimestamp(producer.firm / 1e6, datetime.UTC).time().isoformat() == "10:06:40"
    query.stop()


def test_a_bound_goes_through_any_expression_that_rises(moving):
    session, folder = moving
    sink = IntoStream(NamedStream.open(folder / "later"))
    relation = session.sql("SELECT STREAM date_trunc('HOUR', ts - INTERVAL 1 DAY) AS ts, k FROM orders")
    refuse_other(sink, relation._live)
    until = datetime.datetime(2006, 10, 10, 10, 5, tzinfo=datetime.UTC)
    bound = sink._bound(int(until.timestamp()) * 1_000_000, relation._live.scale)
    assert (
        datetime.datetime.fromtimestamp(bound / 1e6, datetime.UTC).isoformat() == "2006-10-09T10:00:00+00:00"
    )


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("ts + INTERVAL 1 MONTH", "it may not rise with the rowtime"),
        ("TIMESTAMP '2006-10-10 10:00:00'", "it may not rise with the rowtime"),
        ("other", "it may not rise with the rowtime"),
        ("year(ts) + k", "it may not rise with the rowtime"),
        ("k", "it is not the rowtime of a row"),
        ("at", "it is not the rowtime of a row"),
        ("CAST(k AS BIGINT) + 1", "it may not rise with the rowtime"),
        ("made", "it falls as the rowtime rises"),
    ],
)
def test_what_does_not_rise_with_the_rowtime_is_refused_when_it_is_given(moving, column, why):
    session, folder = moving
    source = (
        "(SELECT *, greatest(ts, ts) AS other, - year(ts) AS made FROM orders,"
        " (SELECT TIMESTAMP '2006-10-10 10:00:00' AS at))"
    )
    relation = session.sql(f"SELECT STREAM {column} AS ts, k FROM {source}")
    with pytest.raises(AnalysisError, match=why) as error:
        relation.start(NamedStream.open(folder / "later"), checkpoint=folder / "checkpoint")
    assert error.value.condition == "ROWTIME_DIFFERS"
    assert error.value.sql[error.value.span.start : error.value.span.stop] == column


@pytest.mark.parametrize(
    ("query", "column"),
    [
        ("ISTREAM(SELECT ts + INTERVAL 100 SECONDS AS ts, k FROM orders [RANGE 1 MINUTE])", None),
        ("ISTREAM(SELECT ts, k FROM orders [PARTITION BY k ROWS 1])", None),
        ("RSTREAM(SELECT ts, k FROM orders [NOW] GROUP BY ts, k)", None),
        ("SELECT STREAM a.ts, a.k FROM orders a JOIN orders [RANGE 2 MINUTES] b ON a.k = b.k", None),
        ("SELECT STREAM b.ts, a.k FROM orders a JOIN orders [RANGE 2 MINUTES] b ON a.k = b.k", "b.ts"),
        ("ISTREAM(SELECT ts, k FROM orders [RANGE 2 MINUTES SLIDE 2 MINUTES])", "ts"),
        ("DSTREAM(SELECT ts, k FROM orders [RANGE 1 MINUTE])", "ts"),
        ("RSTREAM(SELECT ts, k FROM orders [RANGE 2 MINUTES])", "ts"),
        ("ISTREAM(SELECT MAX(ts) AS ts, k FROM orders [RANGE 1 MINUTE] GROUP BY k)", "MAX(ts)"),
        ("SELECT ISTREAM(MAX(ts) AS ts, k) FROM orders [RANGE 1 MINUTE] GROUP BY k", "MAX(ts)"),
        ("SELECT ISTREAM(DISTINCT ts, k) FROM orders [RANGE 2 MINUTES SLIDE 2 MINUTES]", "ts"),
        ("DSTREAM(SELECT DISTINCT * FROM orders [RANGE 1 MINUTE])", "*"),
        ("DSTREAM(SELECT o.* FROM orders [RANGE 1 MINUTE] AS o)", "o.*"),
    ],
)
def test_only_the_rowtime_of_each_row_is_taken_for_that_of_a_stream(moving, query, column):
    session, folder = moving
    sink = IntoStream(NamedStream.open(folder / "later"))
    plan = session.sql(query)._live
    if column is None:
        refuse_other(sink, plan)
        assert (sink.moved is not None) == ("100 SECONDS" in query)
        return
    with pytest.raises(AnalysisError, match="may differ from the rowtime") as error:
        refuse_other(sink, plan)
    assert error.value.condition == "ROWTIME_DIFFERS"
    assert error.value.sql[error.value.span.start : error.value.span.stop] == column


def test_of_several_rowtimes_of_a_match_a_stream_takes_the_first(moving):
    session, folder = moving
    relation = session.sql(
        "SELECT STREAM fin AS ts, at FROM orders MATCH_RECOGNIZE (ORDER BY ts"
        " MEASURES FIRST(A.ts) AS at, LAST(B.ts) AS fin PATTERN (A B) DEFINE B AS B.k > A.k)"
    )
    stream = NamedStream.open(folder / "later")
    refuse_other(IntoStream(stream, ("ts", "k")), relation._live)
    with pytest.raises(AnalysisError, match="the rowtime of its rows is ts") as error:
        refuse_other(IntoStream(stream, ("k", "ts")), relation._live)
    assert error.value.condition == "ROWTIME_DIFFERS"

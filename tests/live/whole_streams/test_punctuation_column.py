"""Punctuations as a column of recorded logs and of streaming DataFrames: one log, one answer."""

from __future__ import annotations

from collections import Counter

import pytest

from windrow import Memory, Session, WindrowError
from windrow.spark.live.hosts import micro_batches_of

pytestmark = pytest.mark.usefixtures("interpreted")

COLUMNS = "n BIGINT, p STRING, ts BIGINT, k STRING, v INT, b BIGINT, said STRING"
LOG = [
    (1, "p", 1, "a", 1, None, None),
    (2, "q", 2, "b", 1, None, '{"k": ["a"]}'),
    (3, "p", 3, "a", 2, None, None),  # of another producer than has promised
    (4, "q", 4, "a", 9, None, None),  # late
    (5, "p", None, None, None, 3, '{"k": ["a", null], "v": [{"in": {">=": 2}}]}'),
    (6, "p", 5, "a", 3, None, None),  # late
    (7, "p", 6, "a", 1, None, '{"k": ["a"]}'),
    (8, "p", 2, "b", 1, None, None),  # below the bound
    (9, "r", 7, None, 2, None, None),
    (10, "q", 8, "b", 5, 12, None),
]
IN = [(1, "a", 1), (2, "b", 1), (3, "a", 2), (6, "a", 1), (7, None, 2), (8, "b", 5)]
LATE = [(4, "a", 9), (5, "a", 3), (2, "b", 1)]
GROUPS = "SELECT STREAM k, SUM(v) AS s FROM s GROUP BY k"
OPEN = (
    "SELECT s.ts, s.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts"
    " START AS s END UNBOUNDED)"
)


def told(frame, *columns):
    return Counter(tuple(row) for row in frame.df.select(*columns).collect())


def test_rows_that_match_a_punctuation_of_their_producer_are_late(spark):
    session = Session(spark.newSession())
    log = session.spark.createDataFrame(LOG, COLUMNS)
    given = {"rowtime": "ts", "ptime": "n", "producer": "p", "punctuation": "said"}
    session.stream("s", log, bound="b", **given)
    assert told(session.sql("SELECT STREAM * FROM s"), "ts", "k", "v") == Counter(IN)
    assert "said" not in session.sql("SELECT STREAM * FROM s").columns
    late = session.sql("SELECT * FROM s_late")
    assert sorted(row["_bound"] is None for row in late.collect()) == [False, True, True]
    assert told(late, "ts", "k", "v") == Counter(LATE)
    # without bounds, only what matches a pattern is late; of one producer, all that comes after
    session.stream("s", log, **given)
    assert told(session.sql("SELECT * FROM s_late"), "ts", "k", "v") == Counter(LATE[:2])
    one = {name: value for name, value in given.items() if name != "producer"}
    session.stream("s", log, bound="b", **one)
    assert (3, "a", 2) in told(session.sql("SELECT * FROM s_late"), "ts", "k", "v")
    session.stream("s", log, on_late="fail", **given)
    with pytest.raises(WindrowError, match="LATE_ROW"):
        session.sql("SELECT STREAM * FROM s").collect()
    wrong = log.replace('{"k": ["a"]}', '{"auction": [1]}', "said")
    session.stream("s", wrong, **given)
    with pytest.raises(WindrowError, match="INVALID_VALUE"):
        session.sql("SELECT STREAM * FROM s").collect()
    with pytest.raises(WindrowError, match="MISSING_PTIME"):
        session.stream("s", log, rowtime="ts", punctuation="said")
    with pytest.raises(WindrowError, match="INVALID_BOUND"):
        session.stream("s", log, bound=4, **given)
    # watermarks are estimates: what is below them is in, what has been promised not to come is not
    session.stream("s", log, watermark="b", **given)
    assert told(session.sql("SELECT * FROM s_late"), "ts", "k", "v") == Counter(LATE[:2])
    log.createOrReplaceTempView("entries")
    columns = "ROWTIME ts BIGINT, k STRING, v INT, PTIME n BIGINT, PRODUCER p STRING"
    session.sql(f"CREATE STREAM t ({columns}, BOUND b BIGINT, PUNCTUATION said STRING) FROM entries")
    assert told(session.sql("SELECT STREAM * FROM t"), "ts", "k", "v") == Counter(IN)
    with pytest.raises(WindrowError, match="one PUNCTUATION column"):
        session.sql(f"CREATE STREAM u ({columns}, PUNCTUATION a STRING, PUNCTUATION b STRING) FROM entries")
    with pytest.raises(WindrowError, match="cannot declare a column of PUNCTUATION"):
        session.sql("CREATE STREAM u (ROWTIME ts BIGINT, PUNCTUATION said STRING) LOCATION '/tmp/u'")


def test_sql_declares_the_column_of_a_stream_that_comes(spark, tmp_path):
    session = Session(spark.newSession())
    session.spark.readStream.schema(COLUMNS).parquet(str(tmp_path)).createOrReplaceTempView("coming")
    session.sql(
        "CREATE STREAM s (ROWTIME ts BIGINT, k STRING, v INT, PRODUCER p STRING, BOUND b BIGINT,"
        " PUNCTUATION said STRING) FROM STREAM coming"
    )
    live = session._catalog.streams["s"].live
    assert live.has_patterns
    assert "said" not in session._catalog.streams["s"].columns


@pytest.mark.parametrize("query", [OPEN, GROUPS])
def test_what_streams_promise_in_a_column_is_final(spark, tmp_path, query):
    session = Session(spark.newSession())
    arriving = session.spark.readStream.schema(COLUMNS).parquet(str(tmp_path))
    session.stream("s", arriving, rowtime="ts", producer="p", bound="b", punctuation="said")
    plan, sink = session.sql(query)._live, Memory()
    log = [*LOG[:8], LOG[9], (11, "p", None, None, None, 12, '{"k": ["b"]}')]
    steps = micro_batches_of(plan, sink, tmp_path / "c", "delta", "keep")
    found = []
    for number, part in enumerate((log[:6], log[6:9], log[9:])):
        ((_, name, stream),) = steps.streams()
        rows = session.spark.createDataFrame(part, COLUMNS).coalesce(1)
        steps.take(steps.input({name: rows.select(*stream.live.columns)}), number)
        given = sink.batches.get(number)
        found.append([] if given is None else sorted(tuple(row.values()) for row in given.to_pylist()))
    assert steps.progress["rows_late"] == 3
    if query is OPEN:
        assert found == [[], [(1, "a", 3), (3, "a", 2), (6, "a", 1)], []], "all of a is there"
    else:
        assert found == [[], [("a", 4)], []], "b may still come from q"
    steps.close()

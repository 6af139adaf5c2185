"""A query with EMIT inside another, over live streams, gives what the recorded log gives."""

from __future__ import annotations

import pytest

from tests.live.emit_queries import IN_TIME, OVER, SOME_LATE, counted, cut, declared, live, recorded
from windrow import NotSupportedError

pytestmark = pytest.mark.usefixtures("interpreted")

WINDOWS = OVER["tumbling windows"]
COUNTS = "SELECT k, COUNT(*) AS n FROM s GROUP BY k"
INSIDE = {
    "complete groups": f"SELECT wend, COUNT(*) AS c, SUM(n) AS n FROM ({WINDOWS} EMIT STREAM AFTER WATERMARK)"
    " GROUP BY wend EMIT STREAM AFTER WATERMARK",
    "changes": f"SELECT k, COUNT(*) AS c, SUM(ver) AS n FROM ({COUNTS} EMIT STREAM) GROUP BY k, undo"
    " EMIT STREAM",
    "IN": f"SELECT k, v FROM s WHERE k IN (SELECT k FROM ({WINDOWS} EMIT AFTER WATERMARK ALLOWED LATENESS 2)"
    " WHERE n > 0) EMIT STREAM",
    "a value": "SELECT k, (SELECT SUM(v) FROM s EMIT AFTER DELAY INTERVAL 6 SECONDS) AS most FROM s"
    " EMIT STREAM AFTER DELAY INTERVAL 4 SECONDS",
    "two levels": f"SELECT SUM(c) AS c FROM (SELECT wend, COUNT(*) AS c FROM ({WINDOWS} EMIT STREAM AFTER"
    " WATERMARK) GROUP BY wend EMIT STREAM) WHERE NOT undo EMIT STREAM",
    "beside another": f"SELECT t.v, b.n FROM t JOIN ({WINDOWS} EMIT AFTER WATERMARK) AS b ON t.k = b.k"
    " EMIT STREAM",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize(("logs", "cuts"), [(IN_TIME, [0.3, 0.6]), (SOME_LATE, [0.2, 0.5, 0.8])])
def test_cuts_and_kills_change_nothing(spark, tmp_path, logs, cuts, name):
    query = INSIDE[name]
    batches = {
        one: cut(log, cuts) for one, log in zip("st", logs, strict=True) if one == "s" or "FROM t " in query
    }
    found, _ = live(spark, tmp_path, batches, None, {1}, query)
    assert counted(found) == counted([recorded(spark, batches, None, query)])
    assert counted(found)


def test_a_view_of_live_changes_is_read_with_emit(spark, tmp_path):
    session = declared(spark, tmp_path, ["s"], None)
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW counts AS {COUNTS} EMIT STREAM")
    plan = session.sql("EXPLAIN SELECT k, COUNT(*) AS c FROM counts GROUP BY k EMIT STREAM").plan()
    assert "all rows, because a query with EMIT is inside it" in plan
    session.sql("DROP VIEW counts")


@pytest.mark.parametrize(
    ("query", "fragment"),
    [
        (f"SELECT k, n FROM ({COUNTS} EMIT STREAM) WHERE n > 1", "EMIT"),
        ("SELECT s.ts, COUNT(*) AS n FROM s JOIN (SELECT ts, COUNT(*) AS n FROM s GROUP BY ts"
         " EMIT STREAM AFTER WATERMARK) AS b ON s.ts = b.ts GROUP BY s.ts EMIT STREAM", "SELECT"),
    ],
)  # fmt: skip
def test_what_is_not_live_is_refused_at_its_place(spark, tmp_path, query, fragment):
    session = declared(spark, tmp_path, ["s"], None)
    with pytest.raises(NotSupportedError, match="UNSUPPORTED_CLAUSE") as error:
        session.sql(query)
    assert error.value.getQueryContext()[0].fragment().startswith(fragment)
    assert error.value.hint

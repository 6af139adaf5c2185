"""Clauses over SELECT STREAM with windows in brackets are live what they are over the whole log."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.law.test_law import LOGS
from tests.live.random_logs import admitted, declared_live, ended, live, recorded, table
from tests.live.stepping import law, rows_of, total
from windrow import Memory
from windrow.errors import WindrowError
from windrow.spark.live.hosts import micro_batches_of

STREAMS = [
    "SELECT STREAM ts, k, v FROM s {}",
    "SELECT STREAM s.ts, s.k, t.v FROM s [NOW] JOIN t {} ON s.k = t.k",
    "SELECT STREAM s.ts, s.k, COUNT(*) AS v FROM s [NOW] LEFT JOIN t {} ON s.k = t.k GROUP BY s.ts, s.k",
    "SELECT STREAM ts, k, v FROM s [NOW] WHERE v >= (SELECT AVG(v) FROM t {} AS b)",
    "RSTREAM(SELECT s.ts, s.k, t.v FROM s [NOW] JOIN t {} ON s.k = t.k)",
]
BRACKETS = [
    "[NOW]",
    "[RANGE 3]",
    "[RANGE 4 SLIDE 2]",
    "[RANGE UNBOUNDED]",
    "[ROWS 2]",
    "[PARTITION BY k ROWS 1]",
]
CLAUSES = [
    "SELECT * FROM ({}) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, v MEASURES COUNT(*) AS n, LAST(ts) AS"
    " at, SUM(v) AS v AFTER MATCH SKIP TO NEXT ROW PATTERN (a b+ c) DEFINE b AS b.v >= a.v, c AS c.v < b.v)",
    "SELECT a.ts, a.k, e.ts AS until, SUM(w.v) AS v FROM ({}) WINDOW BY w AS (TYPE SLIDING PARTITION BY k"
    " ORDER BY ts, v START AS a END AS e WHEN e.v > a.v)",
    "SELECT COUNT(*) AS n, k FROM (SELECT a.ts, a.k FROM ({}) WINDOW BY w AS (TYPE TUMBLING ORDER BY ts, k, v"
    " START AS a END AS e WHEN e.v > a.v)) [RANGE 5] GROUP BY k",
]


@law(10)
@given(*LOGS, st.sampled_from(CLAUSES), st.sampled_from(STREAMS), st.sampled_from(BRACKETS))
@example(
    [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", 5, 2, None, 4), ("a", 7, 1, 1, 7)],
    [("a", 0, 1, 1, 3), ("a", 4, 1, 5, None), ("b", 6, 1, 2, None)],
    None,
    [0.3, 0.6],
    {1},
    CLAUSES[1],
    STREAMS[1],
    "[RANGE 3]",
)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(
    spark, tmp_path_factory, s, t, lag, cuts, kills, clause, stream, window
):
    if stream == STREAMS[0] and "SLIDE" in window:  # rows enter later than at their rowtimes
        return
    query = clause.format(stream.format(window))
    logs = {name: ended(one) for name, one in (("s", s), ("t", t)) if f" {name} [" in query}
    # before its first row a stream has no watermark
    if not all(admitted(entries, lag) for entries in logs.values()):
        return
    found = live(spark, tmp_path_factory.mktemp("live"), logs, lag, cuts, kills, query)
    relation = recorded(spark, logs, lag).sql(query)
    if "[RANGE 5]" not in query:
        assert rows_of(found) == rows_of([relation.to_arrow()])
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert (+changed, -changed) == (+meant, -meant)


@pytest.mark.parametrize(
    "stream",
    [
        "SELECT STREAM ts, k, v FROM s [RANGE 4 SLIDE 2]",  # they enter later
        "SELECT STREAM t.ts, s.k, s.v FROM s [NOW] JOIN t [RANGE 5] ON s.k = t.k",  # s.ts is that of the row
        "SELECT STREAM s.ts, t.k, t.v FROM t [RANGE 5] LEFT JOIN s [NOW] ON s.k = t.k",  # it may be NULL
        "DSTREAM(SELECT ts, k, v FROM s [NOW])",
    ],
)
def test_rows_of_other_instants_have_no_order(spark, tmp_path, stream):
    session = declared_live(spark, tmp_path, {"s": [], "t": []}, None)
    with pytest.raises(WindrowError, match="ORDER_NOT_ROWTIME") as error:
        session.sql(CLAUSES[0].format(stream))
    assert error.value.hint.startswith("read a relation, without STREAM or DSTREAM")
    relation = stream.replace(" STREAM", "").replace("DSTREAM", "")
    assert session.sql(CLAUSES[0].format(relation))._live is not None


def test_windows_below_a_clause_are_reported(spark, tmp_path):
    session = declared_live(spark, tmp_path, {"s": [], "t": []}, None)
    plan = session.sql(CLAUSES[1].format(STREAMS[1].format("[RANGE UNBOUNDED]")))._live
    assert "t [RANGE UNBOUNDED]" in [*plan.windows().values()]
    assert any(str(one).startswith("t [RANGE UNBOUNDED]") for one in plan.unbounded())


class Failing(Memory):
    """Fails the first time that it is given each micro-batch."""

    def __init__(self):
        super().__init__()
        self.failed = set()

    def write_table(self, rows, number):
        if number not in self.failed:
            self.failed.add(number)
            raise OSError("disk full")
        return super().write_table(rows, number)

    def write(self, rows, number):
        return self.write_table(rows.toArrow(), number)


@pytest.mark.usefixtures("interpreted")
def test_a_micro_batch_that_failed_is_repeated_from_the_files(spark, tmp_path):
    """Not from the windows in memory, which it has changed."""
    s = ended([("a", at, 1, at % 3, at) for at in range(8)])
    t = ended([("a", at, 1, 10 + at, at) for at in range(8)])
    query = CLAUSES[1].format(STREAMS[1].format("[ROWS 3]"))
    plan = declared_live(spark, tmp_path, {"s": s, "t": t}, None).sql(query)._live
    sink = Failing()
    steps = micro_batches_of(plan, sink, tmp_path / "checkpoint", "delta", "keep")
    for number, (low, high) in enumerate([(0, 3), (3, 6), (6, 9)]):
        frames = {
            name: spark.createDataFrame(table(entries[low:high])).select(*stream.live.columns)
            for (_, name, stream) in steps.streams()
            for entries in [{"s": s, "t": t}[name]]
        }
        while number not in sink.batches:
            try:
                steps.take(steps.input(frames), number)
            except OSError:
                assert number not in sink.batches
    steps.close()
    expected = recorded(spark, {"s": s, "t": t}, None).sql(query).to_arrow()
    assert rows_of([*sink.batches.values()]) == rows_of([expected])
    assert expected.num_rows > 3

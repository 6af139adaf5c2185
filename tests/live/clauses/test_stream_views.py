"""Clauses over views of rows as they come: what they emit is that of the whole log."""

from __future__ import annotations

import pytest

from tests.live.law.test_forms_in_memory import S, T
from tests.live.random_logs import ended, live, recorded
from tests.live.stepping import rows_of, total

RUNS = (
    "SELECT f.ts, f.k, COUNT(w) AS n FROM made WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY ts, v"
    " START AS f END AS e NEXT AS x WHEN x IS NULL OR x.v <= e.v)"
)
BEFORE = [
    "CREATE OR REPLACE TEMPORARY VIEW names AS SELECT * FROM VALUES (1, 5), (2, 6), (1, 7) AS t(k, more)",
    "CREATE OR REPLACE TEMPORARY VIEW some AS SELECT STREAM ts, k, v FROM s WHERE k IS NOT NULL",
]
VIEWS = {
    "computed": "SELECT STREAM ts, k, v + 1 AS v FROM s WHERE v > 1",
    "joined with a table": "SELECT STREAM s.ts, s.k, n.more AS v FROM s JOIN names AS n ON s.k = n.k",
    "with all rows of a table": "SELECT STREAM ts, s.k, v FROM s CROSS JOIN names",
    "several rows of each": "SELECT STREAM ts, k, x AS v FROM s LATERAL VIEW explode(array(v, k)) a AS x",
    "of two": "SELECT STREAM ts, k, v FROM s UNION ALL SELECT ts, k + 1, v FROM t",
    "beside a recorded one": "SELECT STREAM ts, k, v FROM s UNION ALL SELECT ts, k, v FROM r",
    "of a name that is quoted": "SELECT STREAM ts, k, v, v AS `a.b` FROM s",
    "of a view": "SELECT STREAM ts, k, v FROM some WHERE v < 7",
}


def held(spark, folder, view, query):
    logs = {"s": ended(S), **({"t": ended(T)} if " t" in view else {})}
    beside = {"r": T} if " r" in view else None
    before = [*BEFORE, f"CREATE OR REPLACE TEMPORARY VIEW made AS {view}"]
    found = live(spark, folder, logs, None, [0.3, 0.55, 0.8], {0, 1, 2}, query, before, beside)
    return found, recorded(spark, {**logs, **(beside or {})}, None, before).sql(query)


@pytest.mark.sampled
@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path, name):
    found, whole = held(spark, tmp_path, VIEWS[name], RUNS)
    assert rows_of(found) == rows_of([whole.to_arrow()])
    assert rows_of(found)


@pytest.mark.usefixtures("interpreted")
def test_two_clauses_may_read_one_view_before_windows_in_brackets(spark, tmp_path):
    query = (
        f"SELECT a.n, b.n AS m FROM ({RUNS}) [RANGE 3] AS a"
        f" JOIN ({RUNS.replace('<=', '<')}) [RANGE 3] AS b ON a.k = b.k"
    )
    found, whole = held(spark, tmp_path, VIEWS["computed"], query)
    changed, meant = total(found), total([whole.changelog("diff").to_arrow()])
    assert +changed
    assert (+changed, -changed) == (+meant, -meant)


@pytest.mark.parametrize(
    "inner",
    [
        "SELECT STREAM ts, k, v + 1 AS v FROM s [NOW] WHERE v > 1",
        "SELECT STREAM a.ts, a.k, a.v + 1 AS v FROM s [NOW] AS a WHERE a.v > 1",
        "RSTREAM(SELECT ts, k, v + 1 AS v FROM s [NOW] WHERE v > 1)",
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_a_recorded_stream_over_windows_in_brackets_stands_below_a_clause(spark, inner):
    session = recorded(
        spark, {"s": ended(S)}, None, ["CREATE OR REPLACE TEMPORARY VIEW made AS " + VIEWS["computed"]]
    )
    found = session.sql(RUNS.replace("made", f"({inner}) AS q")).to_arrow()
    assert rows_of([found]) == rows_of([session.sql(RUNS).to_arrow()])
    assert found.num_rows
    assert not any("below" in row["name"] for row in session.sql("SHOW STREAMS").collect())

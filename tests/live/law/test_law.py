"""Live queries give what the whole log gives, wherever it is cut and wherever they are killed."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.random_logs import LAGS, admitted, declared_live, ended, live, log, recorded, table
from tests.live.stepping import in_micro_batches, law, rows_of, total
from tests.spark.relations.test_continuous_property import relations
from windrow.errors import WindrowError
from windrow.kernels import operator_state
from windrow.kernels.operator_state import Carried

LOGS = (
    log,
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
)
"""Two streams, their lag, where micro-batches are cut, and which of these are killed."""


@law(5)
@given(
    *LOGS,
    relations(),
)
@example(
    [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", None, None, None, 4)],
    [("a", 2, 0, 1, 3), ("a", 5, 0, None, None)],
    None,
    [0.3, 0.6],
    {1},
    "SELECT k, COUNT(*) AS v FROM s [ROWS 2] GROUP BY k",
)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s), "t": ended(t)}
    used = [name for name in logs if name in query.split()]
    # before its first row a stream has no clock, and what reads it waits
    if "names" in query or not used or not all(admitted(logs[name], lag) for name in used):
        return
    found = total(live(spark, folder, logs, lag, cuts, kills, query))
    wanted = total([recorded(spark, logs, lag).sql(query).changelog("diff").to_arrow()])
    assert (+found, -found) == (+wanted, -wanted)


@pytest.mark.usefixtures("interpreted")
def test_changes_of_a_live_relation_are_those_of_the_whole_log(spark, tmp_path):
    entries = [
        ("a", 0, 1, 1, None),
        ("b", 1, 1, 3, 1),
        ("a", 3, 1, 2, 2),
        ("b", 4, 2, 1, 4),
        ("a", 8, 1, 1, 8),
    ]
    logs = {"s": ended(entries)}
    query = (
        "SELECT _change_type AS c, _commit_version AS at, k + n AS v FROM"
        " CHANGELOG OF (SELECT k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k) KEY (k) WHERE n > 0 AND k <> 9"
    )
    found = rows_of(live(spark, tmp_path, logs, None, [0.3, 0.6], {1}, query))
    assert found == rows_of([recorded(spark, logs, None).sql(query).to_arrow()])
    assert sum(found.values()) > 5


@pytest.mark.parametrize(
    "window", ["[RANGE :n]", "[RANGE :n SLIDE 1 + :m]", "[PARTITION BY k ROWS :m RANGE :n]"]
)
@pytest.mark.usefixtures("interpreted")
def test_lengths_by_parameters_are_live_what_they_are_over_the_whole_log(spark, tmp_path, window):
    entries = [("a", at, at % 2, at % 3, at) for at in (0, 1, 3, 4, 8)]
    logs, given = {"s": ended(entries)}, {"n": 3, "m": 1}
    query = f"SELECT k, COUNT(*) AS n FROM s {window} GROUP BY k"
    found = total(live(spark, tmp_path, logs, None, [0.3, 0.6], {1}, query, **given))
    wanted = total([recorded(spark, logs, None).sql(query, **given).changelog("diff").to_arrow()])
    assert (+found, -found) == (+wanted, -wanted)
    assert sum(abs(count) for count in found.values()) > 5


# -- in memory -----------------------------------------------------------------------------------------

BRACKETS = [
    "[NOW]",
    "[RANGE 3]",
    "[RANGE 4 SLIDE 2]",
    "[RANGE 2 SLIDE 3]",
    "[RANGE 3 SLIDE 3]",
    "[RANGE UNBOUNDED]",
    "[ROWS 2]",
    "[PARTITION BY k ROWS 1]",
    "[PARTITION BY p, k ROWS 2 RANGE 4]",
    "[PARTITION BY k ROWS 2 RANGE 5 SLIDE 2]",
    "[ROWS 2 SLIDE 2]",
    "[ROWS 3 SLIDE 2]",
    "[PARTITION BY k % 2 ROWS 2 RANGE 4]",
    "[RANGE 2 ON ts]",
]
IN_MEMORY = [
    "SELECT p, ts, k, v FROM s {}",
    "SELECT k, v * 2 AS v, ts FROM s {} WHERE v > 0 OR k IS NULL",
    "SELECT ISTREAM(k, v) FROM s {}",
    "SELECT DSTREAM(ts, v + 1 AS v) FROM s {} WHERE k = 1",
    "SELECT k, COUNT(*) AS n, SUM(v) AS v, MIN(ts) AS t FROM s {} GROUP BY k",
    "SELECT ISTREAM(k, MAX(v) AS v) FROM s {} WHERE 4 DIV (v + 1) > 1 GROUP BY k",
    "SELECT p, COUNT(DISTINCT v) % 2 AS v FROM s {} WHERE v <> 0 GROUP BY p, k HAVING COUNT(*) > 1",
    "SELECT k + 1 AS m, AVG(v) AS v FROM s {} GROUP BY k + 1",
    "SELECT a.p, a.k, b.v FROM s {} AS a, t {} AS b WHERE a.k = b.k",
    "SELECT ISTREAM(a.p, a.v, b.ts + 1 AS u) FROM s {} AS a JOIN t {} AS b ON a.k = b.k AND a.p = b.p "
    "WHERE b.v > 0",
]


FLOWING = [
    "SELECT COUNT(*) AS n, SUM(v) AS v, MAX(p) AS p FROM s {}",
    "SELECT ISTREAM(SUM(v) AS v) FROM s {} WHERE v > 0 HAVING COUNT(*) > 1",
    "SELECT DISTINCT k, v > 1 AS more FROM s {}",
    "SELECT k FROM s {} UNION SELECT v FROM t {}",
    "SELECT k, v FROM s {} EXCEPT ALL SELECT k, v FROM t {}",
    "SELECT a.k, a.v, b.v AS w FROM s {} AS a LEFT JOIN t {} AS b ON a.k = b.k AND a.v >= b.v",
    "SELECT k, v FROM s {} AS a WHERE v >= (SELECT AVG(v) FROM t {} AS b)",
    "SELECT ts, k FROM s {} AS a WHERE NOT EXISTS (SELECT 1 FROM t {} AS b WHERE b.k = a.k)",
    "SELECT MAX(n) AS n FROM (SELECT k, COUNT(*) AS n FROM s {} GROUP BY k)",
    "SELECT k, MEDIAN(v) AS m FROM (SELECT k, v FROM s {} UNION ALL SELECT k, v FROM t {}) GROUP BY k",
    "SELECT k, v, RANK() OVER (PARTITION BY k ORDER BY v) AS r FROM s {}",
    "SELECT v, k FROM s {} ORDER BY v DESC, k, ts LIMIT 2",
    "SELECT k AS x, x + v AS y FROM s {}",
    "SELECT a.k, a.n FROM (SELECT k, COUNT(*) AS n FROM s {} GROUP BY k) AS a JOIN t {} AS b ON a.n = b.v",
]


def in_memory(spark, folder, logs, lag, cuts, kills, query, before=(), beside=None):
    plan = declared_live(spark, folder, logs, lag, before, beside).sql(query)._live
    found = live(spark, folder, logs, lag, cuts, kills, query, before, beside)
    relation = recorded(spark, {**logs, **(beside or {})}, lag, before).sql(query)
    if not plan.is_relation:
        wanted = relation.to_arrow()
        count = Counter(tuple(row.values()) for table in found for row in table.to_pylist())
        assert count == Counter(tuple(row.values()) for row in wanted.to_pylist())
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert (+changed, -changed) == (+meant, -meant)


def law_in_memory(queries, before=()):
    """The law for queries over one or two windows, which run in memory: a test of them all."""

    @law(6)
    @given(
        *LOGS,
        st.sampled_from(queries),
        st.sampled_from(BRACKETS),
        st.sampled_from(BRACKETS),
    )
    @pytest.mark.usefixtures("interpreted")
    def agrees(spark, tmp_path_factory, s, t, lag, cuts, kills, query, window, other):
        query = query.format(window, other)
        logs = {name: ended(entries) for name, entries in (("s", s), ("t", t)) if f" {name} [" in query}
        # before its first row a stream has no watermark
        if all(admitted(entries, lag) for entries in logs.values()):
            in_memory(spark, tmp_path_factory.mktemp("live"), logs, lag, cuts, kills, query, before)

    return agrees


test_steps_in_memory_change_nothing = law_in_memory(IN_MEMORY)
test_any_plan_over_windows_in_memory_changes_nothing = law_in_memory(FLOWING)


PARTS = "(SELECT k, v, named_struct('a', k) AS r, array(v, k) AS l, map('x', v) AS m FROM s {}) AS q"
SUBQUERIES = [
    "SELECT k, v FROM s {} AS q QUALIFY COUNT(*) OVER (PARTITION BY k) <= (SELECT COUNT(*) FROM t {})",
    "SELECT k, v FROM s {} AS q QUALIFY RANK() OVER (ORDER BY v) IN (SELECT b.v FROM t {} b WHERE b.k = q.k)",
    "SELECT COUNT(*) AS n FROM s {} AS q GROUP BY (SELECT MAX(b.v) FROM t {} AS b WHERE b.k = q.k)",
    "SELECT v IN (SELECT v FROM t {1}) AS i, GROUPING_ID() AS g, SUM(k) AS k FROM s {0} GROUP BY ROLLUP (i)",
    "SELECT k, COUNT(*) AS n FROM s {} GROUP BY CUBE (k) HAVING GROUPING(k) = (FROM t {} SELECT COUNT(*))",
    "SELECT k, (FROM t {1} AS b SELECT SUM(v) WHERE b.k = a.k) AS v FROM s {0} AS a",
    f"SELECT k, v FROM {PARTS} WHERE EXISTS (FROM t {{}} AS b SELECT 1 WHERE b.k = q.r.a AND b.v >= r.a)",
    f"SELECT v FROM {PARTS} WHERE l[1] IN (SELECT b.v FROM t {{}} AS b WHERE b.k < q.l[0] OR b.v = m['x'])",
    "SELECT k, v FROM s {} WHERE (v IN (SELECT k FROM t {})) = false",
    "SELECT k, v FROM s {} WHERE (v, k) NOT IN (SELECT k, v FROM t {})",
    "SELECT k, v FROM s {} WHERE (v, k, v, k) NOT IN (SELECT k, v, v, v FROM t {})",
    "SELECT k, if(v NOT IN (SELECT b.v FROM t {1} AS b WHERE b.k >= a.k), 1, 2) AS n FROM s {0} AS a",
]
test_subqueries_anywhere_in_memory_change_nothing = law_in_memory(SUBQUERIES)


VIEWS = [
    "CREATE OR REPLACE TEMPORARY VIEW chosen AS SELECT ts, k, v + 1 AS v FROM s {} WHERE v > 0 OR k IS NULL",
    "CREATE OR REPLACE TEMPORARY VIEW counts(g, n) AS SELECT k, COUNT(*) FROM s {} GROUP BY k",
    "CREATE OR REPLACE TEMPORARY VIEW pairs AS SELECT c.v, t.k FROM chosen c JOIN t {} ON c.k = t.k",
]
OVER_VIEWS = [
    "SELECT v, k, ts FROM chosen WHERE k <> 1",
    "SELECT k, SUM(v) AS v FROM chosen GROUP BY k",
    "SELECT ISTREAM(c.k, t.v) FROM chosen AS c JOIN t {} AS t ON t.k = c.k",
    "SELECT * FROM counts WHERE n > 1",
    "SELECT a.g, b.n FROM counts AS a, counts AS b WHERE a.n = b.g",
    "SELECT DSTREAM(n, k) FROM counts LEFT JOIN pairs ON n = k",
    "SELECT k, v FROM pairs EXCEPT SELECT g, n FROM counts",
    "SELECT g, (SELECT MAX(v) FROM chosen WHERE k = g) AS most FROM counts",
    "SELECT t.k, t.v FROM t {} AS t WHERE v IN (SELECT n FROM counts)",
]


@law(6)
@given(
    *LOGS,
    st.sampled_from(OVER_VIEWS),
    st.lists(st.sampled_from(BRACKETS), min_size=4, max_size=4),
)
@example(  # whole rows are retained after a late one, of which the window of a view computes columns
    [("a", 0, None, None, None)],
    [
        ("a", 7, None, None, None),
        ("a", 0, None, None, None),
        ("a", None, None, None, 0),
        ("a", None, None, None, 0),
        ("a", 5, None, 2, None),
        ("b", None, None, None, 0),
        ("b", None, None, None, 4),
    ],
    0,
    [0.3, 0.22634696007986316, 0.4974470190145289],
    set(),
    "SELECT DSTREAM(n, k) FROM counts LEFT JOIN pairs ON n = k",
    ["[RANGE 4 SLIDE 2]", "[ROWS 3 SLIDE 2]", "[ROWS 3 SLIDE 2]", "[RANGE 2 ON ts]"],
)
@pytest.mark.usefixtures("interpreted")
def test_views_in_memory_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query, windows):
    own, *others = windows
    views = [view.format(window) for view, window in zip(VIEWS, others, strict=True)]
    reads_both = any(word in query for word in (" t ", "pairs"))
    logs = {"s": ended(s), "t": ended(t)}
    if all(admitted(logs[name], lag) for name in ("s", "t") if name == "s" or reads_both):
        folder = tmp_path_factory.mktemp("live")
        in_memory(spark, folder, logs, lag, cuts, kills, query.format(own), views)


NAMES = (
    "CREATE OR REPLACE TEMPORARY VIEW names AS"
    " SELECT * FROM VALUES (0L, 5L, 'x'), (1L, 1L, 'y'), (1L, 2L, 'z'), (NULL, 0L, 'w') AS t(k, v, name)"
)
BESIDE_TABLES = [
    "SELECT s.k, n.name FROM s {} AS s JOIN names AS n ON s.k = n.k",
    "SELECT ISTREAM(s.ts, n.v) FROM s {} AS s LEFT JOIN names AS n ON s.k = n.k AND n.v > s.v",
    "SELECT n.name, COUNT(s.k) AS c FROM names AS n LEFT JOIN s {} AS s ON s.k = n.k GROUP BY n.name",
    "SELECT n.name, SUM(s.v) AS v FROM s {} AS s, names AS n WHERE s.v <= n.v GROUP BY n.name",
    "SELECT k, v FROM s {} AS s LEFT ANTI JOIN names AS n ON s.k = n.k",
    "SELECT k, v FROM names EXCEPT SELECT k, v FROM s {}",
    "SELECT n.name, t.v FROM s {} AS s JOIN t {} AS t ON s.k = t.k JOIN names AS n ON n.k = t.v",
    "SELECT name FROM names AS x WHERE EXISTS (SELECT 1 FROM s {} AS s WHERE s.k = x.k AND s.v = x.v)",
    "SELECT DSTREAM(name, v) FROM (SELECT n.name, s.v FROM s {} AS s FULL JOIN names n ON s.k = n.k) AS c",
]
test_tables_beside_windows_in_memory_change_nothing = law_in_memory(BESIDE_TABLES, before=[NAMES])


STREAMS = [
    "SELECT RSTREAM(k, v) FROM s {} WHERE v > 0 OR k IS NULL",
    "SELECT RSTREAM(k, COUNT(*) AS n) FROM s {} GROUP BY k",
    "SELECT RSTREAM(COUNT(*) AS n, MAX(v) AS v) FROM s {}",
    "RSTREAM(SELECT a.k, b.v FROM s {} AS a LEFT JOIN t {} AS b ON a.k = b.k)",
    "RSTREAM(SELECT k, v FROM s {} UNION ALL SELECT v, k FROM t {})",
    "ISTREAM(SELECT k, v FROM s {}) DIFFERENCE USING (k)",
    "DSTREAM(SELECT k, COUNT(*) AS n, MAX(v) AS v FROM s {} GROUP BY k) DIFFERENCE USING (v, k)",
    "ISTREAM(SELECT DISTINCT a.k, b.v FROM s {} AS a, t {} AS b WHERE a.v <= b.v) DIFFERENCE USING (v)",
]
test_streams_of_relations_in_memory_change_nothing = law_in_memory(STREAMS)


AS_THEY_COME = [
    "SELECT STREAM s.k, n.name FROM s JOIN names AS n ON s.k = n.k WHERE s.v > 0",
    "SELECT STREAM s.ts, n.v FROM s LEFT JOIN names AS n ON s.k = n.k AND n.v > s.v",
    "SELECT STREAM k, more FROM moved WHERE more > 1",
    "SELECT STREAM m.k, n.name FROM moved AS m JOIN names AS n ON m.k = n.k",
    "SELECT STREAM k, v FROM s UNION ALL SELECT k, v FROM t",
    "SELECT STREAM k, wstart FROM HOP(TABLE s, DESCRIPTOR(ts), 2, 4)",
    "SELECT STREAM k, v FROM s WHERE k IN (SELECT k FROM names)",
    "SELECT STREAM v, (SELECT MAX(name) FROM names) AS m FROM s",
    "SELECT STREAM k, x FROM s LATERAL VIEW explode(array(v, k)) AS x",
]
MOVED = "CREATE OR REPLACE TEMPORARY VIEW moved AS SELECT STREAM ts, k, v + 1 AS more FROM s WHERE v > 0"


@law(6)
@given(
    *LOGS,
    st.sampled_from(AS_THEY_COME),
)
@pytest.mark.usefixtures("interpreted")
def test_rows_as_they_come_in_memory_change_nothing(spark, tmp_path_factory, s, t, lag, cuts, kills, query):
    logs = {"s": ended(s), "t": ended(t)}
    if all(admitted(logs[name], lag) for name in ("s", "t") if name == "s" or query.endswith(" t")):
        in_memory(spark, tmp_path_factory.mktemp("live"), logs, lag, cuts, kills, query, [NAMES, MOVED])


MADE_VIEWS = [
    "CREATE OR REPLACE TEMPORARY VIEW news AS ISTREAM(SELECT k, COUNT(*) AS n FROM s {} GROUP BY k)",
    "CREATE OR REPLACE TEMPORARY VIEW gone(a, b) AS DSTREAM(SELECT k, v FROM t {} WHERE v > 0)",
]
OVER_MADE = [
    "SELECT k, n FROM ISTREAM(SELECT k, COUNT(*) AS n FROM s {} GROUP BY k) {} WHERE n > 1",
    "SELECT MAX(v) AS v FROM (DSTREAM(SELECT k, v FROM s {})) {}",
    "SELECT RSTREAM(k) FROM (RSTREAM(SELECT k FROM s {})) {}",
    "SELECT n, COUNT(*) AS c FROM news {} GROUP BY n",
    "SELECT x.a, y.k FROM gone {} AS x JOIN news {} AS y ON x.a = y.k",
    "SELECT a, b FROM gone {} EXCEPT SELECT k, v FROM s {}",
    "SELECT ISTREAM(n) FROM ISTREAM(SELECT MAX(n) AS n FROM news {}) {}",
    "SELECT STREAM k, v + 1 AS w FROM ISTREAM(SELECT k, v FROM s {})",
]
OF_MADE = [window for window in BRACKETS if "k" not in window and "ON" not in window]


@law(6)
@given(
    *LOGS,
    st.sampled_from(OVER_MADE),
    st.lists(st.sampled_from(OF_MADE), min_size=4, max_size=4),
)
@pytest.mark.usefixtures("interpreted")
def test_streams_that_queries_make_in_memory_change_nothing(
    spark, tmp_path_factory, s, t, lag, cuts, kills, query, windows
):
    views = [view.format(window) for view, window in zip(MADE_VIEWS, windows[2:], strict=True)]
    logs = {"s": ended(s), "t": ended(t)}
    reads = {name for name in logs if f" {name} " in query or {"s": "news", "t": "gone"}[name] in query}
    if all(admitted(logs[name], lag) for name in reads):
        folder = tmp_path_factory.mktemp("live")
        in_memory(spark, folder, logs, lag, cuts, kills, query.format(*windows), views)


BESIDE_RECORDED = [
    "SELECT s.k, t.v FROM s {} AS s JOIN t {} AS t ON s.k = t.k",
    "SELECT COUNT(*) AS n, SUM(t.v) AS v FROM s {} AS s LEFT JOIN t {} AS t ON s.k = t.k",
    "SELECT RSTREAM(k) FROM (SELECT k FROM s {} EXCEPT SELECT k FROM t {})",
    "SELECT ISTREAM(s.k, c.n) FROM s {} AS s JOIN"
    " ISTREAM(SELECT k, COUNT(*) AS n FROM t {} GROUP BY k) [ROWS 2] AS c ON s.k = c.k",
]


@law(6)
@given(
    *LOGS,
    st.sampled_from(BESIDE_RECORDED),
    st.sampled_from(BRACKETS),
    st.sampled_from(BRACKETS),
)
@pytest.mark.usefixtures("interpreted")
def test_recorded_streams_beside_live_ones_change_nothing(
    spark, tmp_path_factory, s, t, lag, cuts, kills, query, window, other
):
    if admitted(s, lag):
        folder, query = tmp_path_factory.mktemp("live"), query.format(window, other)
        in_memory(spark, folder, {"s": ended(s)}, lag, cuts, kills, query, beside={"t": t})


def _beside_a_table_that_changes(spark, folder, logs, query, change):
    """What a query gives that is killed, while a table is changed in each micro-batch."""
    numbers = []

    def frames(steps, low, high):
        change(len(numbers))
        numbers.append(len(numbers))
        ((_, _, stream),) = steps.streams()
        part = logs["s"][round(low * len(logs["s"])) : round(high * len(logs["s"]))]
        return {"s": spark.createDataFrame(table(part)).select(*stream.live.columns)}

    plan = declared_live(spark, folder, logs, 0).sql(query)._live
    given, _ = in_micro_batches(plan, folder, [0.2, 0.4, 0.6], {1}, frames)
    assert numbers == [0, 1, 2, 3]
    return total(given)


WITH_NAMES = "SELECT s.v, n.v AS w FROM s [RANGE 3] AS s JOIN names AS n ON s.k = n.k"
LOG = ended([("a", 1, 1, 2, 1), ("a", 3, 2, 3, 3), ("a", 4, 1, 4, 4), ("a", 9, 0, 0, 9)])


@pytest.mark.parametrize("count", [3, 30_000])
@pytest.mark.usefixtures("interpreted")
def test_a_table_beside_windows_stays_as_it_was_when_the_query_began(spark, tmp_path, count):
    def change(number):
        spark.range(count).selectExpr("id AS k", f"id + {number} AS v").createOrReplaceTempView("names")

    change(0)
    meant = total([recorded(spark, {"s": LOG}, 0).sql(WITH_NAMES).changelog("diff").to_arrow()])
    assert _beside_a_table_that_changes(spark, tmp_path, {"s": LOG}, WITH_NAMES, change) == meant


@pytest.mark.usefixtures("interpreted")
def test_a_table_beside_windows_with_other_columns_is_another_query(spark, tmp_path):
    def change(number):
        spark.range(3).selectExpr("id AS k", f"id AS {'v' if number < 1 else 'u'}").createOrReplaceTempView(
            "names"
        )

    change(0)
    with pytest.raises(
        WindrowError, match=r"the columns struct<k:bigint,u:bigint>, but had struct"
    ) as caught:
        _beside_a_table_that_changes(spark, tmp_path, {"s": LOG}, WITH_NAMES, change)
    assert caught.value.condition == "CHECKPOINT_OF_ANOTHER_QUERY"


@pytest.mark.parametrize(
    ("window", "condition", "place"),
    [("[RANGE 2 ON -ts]", "FALLING_VALUE", "-ts"), ("[RANGE v - 9 ON ts]", "INVALID_WINDOW_SIZE", "v - 9")],
)
@pytest.mark.usefixtures("interpreted")
def test_values_by_which_rows_cannot_leave_end_the_query(spark, tmp_path, window, condition, place):
    with pytest.raises(WindrowError) as caught:
        live(spark, tmp_path, {"s": LOG}, 0, [0.5], set(), f"SELECT k FROM s {window}")
    assert caught.value.condition == condition
    assert caught.value.sql[caught.value.span.start : caught.value.span.stop] == place


@pytest.mark.usefixtures("interpreted")
def test_an_error_in_a_view_points_into_the_text_of_the_view(spark, tmp_path):
    query = "SELECT k, (SELECT v FROM s [ROWS 2]) AS v FROM s [NOW]"
    view = f"CREATE OR REPLACE TEMPORARY VIEW several AS {query}"
    logs = {"s": ended([("a", 1, 1, 2, None), ("a", 2, 1, 3, None)])}
    with pytest.raises(WindrowError) as caught:
        live(spark, tmp_path, logs, 0, [], set(), "SELECT v FROM several", [view])
    assert caught.value.condition == "SCALAR_SUBQUERY_TOO_MANY_ROWS"
    span = caught.value.span
    assert caught.value.sql[span.start : span.stop] == "(SELECT v FROM s [ROWS 2])"


@pytest.mark.sampled
@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, SUM(v / 3.0D) AS d FROM (SELECT k, v FROM s [RANGE 4] UNION ALL "
        "SELECT v, k FROM s [ROWS 2]) GROUP BY k",
        "SELECT AVG(v / 3.0D) AS d, SUM(v * 1e17D) AS e FROM s [RANGE 4]",
        "SELECT k, array_join(array_sort(collect_list(v)), ' ') AS l, stddev(v) AS d FROM s [ROWS 4] "
        "GROUP BY k",
        "SELECT a.k, b.v FROM s [RANGE 3] a CROSS JOIN s [ROWS 1] b",
        "SELECT k, SUM(v) OVER (ORDER BY ts, v, k) AS c FROM s [RANGE 4]",
        "SELECT k, n FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 4] GROUP BY ROLLUP (k))",
        "SELECT ISTREAM(k, v) FROM s [RANGE 3] WHERE k IN (SELECT v FROM s [RANGE 5])",
        "FROM s [RANGE 4] |> WHERE v > 1 |> AGGREGATE COUNT(*) AS n GROUP BY k |> EXTEND n + k AS m",
        "SELECT k, v FROM s [RANGE 3] WHERE (k, v, v, if(v = 2, k, NULL)) NOT IN"
        " (SELECT k, 2, v, k FROM s [ROWS 3])",
        "FROM s [RANGE 4] AS a JOIN s [ROWS 2] AS b ON a.k = b.k |> WHERE a.v > 1 |> JOIN s [ROWS 1] AS c"
        " ON c.k = a.k |> ORDER BY a.v + b.v, a.ts, b.ts |> SELECT a.v, b.v AS w |> LIMIT 2",
    ],
)
@pytest.mark.usefixtures("interpreted")
def test_plans_of_one_stream_in_memory_change_nothing(spark, tmp_path, query):
    entries = [("a", 0, 1, 2, 0), ("a", 1, 2, 3, 1), ("a", 1, 1, 2, 1), ("b", 3, 1, 7, 3), ("a", 4, 2, 1, 4)]
    entries += [("a", 6, 1, 3, 6), ("a", 9, 1, 3, 9), ("a", 20, 3, 3, 20)]
    in_memory(spark, tmp_path, {"s": ended(entries)}, None, [0.2, 0.5, 0.7], {1, 2}, query)


@pytest.mark.long
@pytest.mark.usefixtures("interpreted")
def test_in_a_subquery_with_whose_value_spark_computes_is_live_what_it_is_over_the_whole_log(spark, tmp_path):
    query = (
        "SELECT k, COUNT(CASE WHEN v IN (SELECT b.v FROM t [ROWS 2] b WHERE b.k >= a.k) THEN 1 END) AS n"
        " FROM s [RANGE 3] a WHERE if(v IN (SELECT b.k FROM t [RANGE 4] b WHERE b.k < a.v), 1, 2) = 2"
        " GROUP BY k"
    )
    s = [("a", 0, 1, 2, 0), ("a", 1, 2, 3, 1), ("a", 3, 1, 1, 3), ("a", 9, 1, 3, 9)]
    logs = {"s": ended(s), "t": ended([("a", 0, 1, 2, 0), ("a", 1, 2, 3, 1), ("a", 4, 3, 1, 4)])}
    found = total(live(spark, tmp_path, logs, None, [0.3, 0.6], {1}, query))
    wanted = total([recorded(spark, logs, None).sql(query).changelog("diff").to_arrow()])
    assert (+found, -found) == (+wanted, -wanted)
    assert any(found.values())


def chunks_after_kills(spark, folder, logs, query):
    """The chunks of a live query that was killed twice; it gives what the recorded one gives."""
    found = live(spark, folder, logs, 0, [0.2, 0.4, 0.6, 0.8], {1, 3}, query)
    relation = recorded(spark, logs, 0).sql(query)
    if "STREAM" in query:
        assert rows_of(found) == rows_of([relation.to_arrow()])
    else:
        changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
        assert (+changed, -changed) == (+meant, -meant)
    return json.loads((folder / "checkpoint" / "windrow" / "4" / "step.json").read_text())["chunks"]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT k, COUNT(*) AS n, SUM(v) AS v, AVG(v / 3.0D) AS a, MAX(p) AS m FROM s {} WHERE v > 0 "
        "GROUP BY k",
        "SELECT ISTREAM(k + 1 AS m, MIN(v) AS v, COUNT(DISTINCT ts) AS n) FROM s {} GROUP BY k + 1",
        "SELECT k * 2 AS m, MAX(v) - MIN(v) AS v FROM s {} GROUP BY k HAVING COUNT(*) > 2",
    ],
)
@pytest.mark.parametrize("window", ["[RANGE UNBOUNDED]", "[RANGE 7 SLIDE 7]"])
@pytest.mark.parametrize("always", [True, False])
@pytest.mark.usefixtures("interpreted")
def test_groups_keep_numbers_where_rows_never_leave_or_tumble(
    spark, tmp_path, monkeypatch, query, window, always
):
    """Written in every step, or when there are more rows than groups; and read again after a kill."""
    if always:
        monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    monkeypatch.setattr(operator_state, "ROWS_BEFORE_STATE", 5)
    query = query.format(window)
    logs = {"s": ended([("a", at, at % 3, at * 7 % 11, None) for at in range(40)])}
    chunks = chunks_after_kills(spark, tmp_path, logs, query)
    (groups,) = chunks["carry"].values()
    windows = 1 if "UNBOUNDED" in window else 2
    assert groups <= windows * 3 + 40 * ("DISTINCT" in query)
    assert sum(sum(one.values()) for name, one in chunks.items() if name != "carry") < 40


@pytest.mark.parametrize(
    ("query", "most"),
    [
        ("SELECT k, v FROM s [RANGE UNBOUNDED] WHERE v > 1", 0),
        ("ISTREAM(SELECT a.k, a.v, b.v AS w FROM s [RANGE UNBOUNDED] AS a JOIN t [RANGE UNBOUNDED] AS b"
         " ON a.k = b.k)", 80),
        ("SELECT a.k, a.n, b.v FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5 SLIDE 5] GROUP BY k) AS a"
         " LEFT JOIN t [RANGE UNBOUNDED] AS b ON a.k = b.k", 100),
        ("SELECT DISTINCT k FROM s [RANGE UNBOUNDED] UNION SELECT v FROM t [RANGE UNBOUNDED]", 80),
    ],
)  # fmt: skip
@pytest.mark.parametrize("always", [True, False])
@pytest.mark.usefixtures("interpreted")
def test_state_of_operators_replaces_rows_that_never_leave(spark, tmp_path, monkeypatch, query, most, always):
    if always:
        monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    monkeypatch.setattr(operator_state, "ROWS_BEFORE_STATE", 5)
    rows = [("a", at, at % 3, at * 7 % 11, None) for at in range(40)]
    logs = {"s": ended(rows), "t": ended([("a", at, at % 4, at % 5, None) for at in range(40)])}
    logs = {name: log for name, log in logs.items() if f" {name} [" in query}
    (retained,) = chunks_after_kills(spark, tmp_path, logs, query)["carry"].values()
    assert retained <= most

"""Which columns of a query are event time, what its rows are grouped by, and where late rows are left out."""

from __future__ import annotations

import pytest

from tests.plans.emitted import recorded
from tests.plans.emitted import timed as timed_in
from windrow.errors import AnalysisError, NotSupportedError
from windrow.plan.event_time import HIDDEN
from windrow.plan.nodes import Filter, Join, walk
from windrow.plan.nodes import SessionWindows as Lives

ENDS = "(SELECT wend, k, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k)"
OTHERS = "(SELECT wend FROM TUMBLE(TABLE r, DESCRIPTOR(u), 10) GROUP BY wend)"


@pytest.fixture(scope="module")
def timed(spark):
    session = recorded(spark, s="k string, t bigint, v bigint, at bigint", r="k string, u bigint, at bigint")
    return lambda text, **how: timed_in(session, text, **how)


@pytest.fixture(scope="module")
def instants(spark):
    """The same over streams of a zone whose clocks are set."""
    session = recorded(
        spark, s="k string, t timestamp, v timestamp, at bigint", n="k string, t timestamp_ntz, at bigint"
    )
    session.spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    return lambda text, **how: timed_in(session, text, **how)


@pytest.fixture(scope="module")
def steady(spark):
    """The same over times in UTC."""
    session = recorded(spark, s="k string, t timestamp, v timestamp, at bigint")
    return lambda text, **how: timed_in(session, text, **how)


def mapped(query, mark: int) -> list[int]:
    """What a watermark is in the columns by which rows are complete."""
    found = []
    for each in query.complete:
        text = each.mapped.replace("{t}", str(mark)).replace(" DIV ", "//").replace("BIGINT", "int")
        text = text.replace("L", "").replace("CAST(", "cast(").replace(" AS int", "")
        found.append(eval(text, {"pmod": lambda a, b: a % b, "cast": int}))
    return found


@pytest.mark.parametrize(
    ("function", "key", "least"),
    [
        ("TUMBLE(TABLE s, DESCRIPTOR(t), 10)", "wend", {0: 10, 9: 10, 10: 20}),
        ("TUMBLE(TABLE s, DESCRIPTOR(t), 10)", "wstart", {9: 0, 10: 10}),
        ("HOP(TABLE s, DESCRIPTOR(t), 5, 10)", "wend", {0: 5, 4: 5, 5: 10, 12: 15}),
        ("HOP(TABLE s, DESCRIPTOR(t), 5, 10)", "wstart", {0: -5, 5: 0, 12: 5}),
        ("CUMULATE(TABLE s, DESCRIPTOR(t), 5, 10)", "wend", {0: 5, 4: 5, 5: 10, 10: 15}),
        ("SESSION(TABLE s, DESCRIPTOR(t), 3)", "wend", {7: 7}),
        ("TABLE(TUMBLE(TABLE s, DESCRIPTOR(t), 10))", "window_time", {9: 9, 10: 19}),
    ],
)
def test_a_watermark_is_that_of_the_first_window_that_can_still_come(timed, function, key, least):
    query = timed(f"SELECT COUNT(*) FROM {function} GROUP BY {key}")
    assert {mark: mapped(query, mark) for mark in least} == {mark: [value] for mark, value in least.items()}


def test_of_two_keys_of_one_name_each_tells_of_its_own(timed):
    inner = "SELECT a.n AS x, b.t AS y FROM names AS a JOIN s AS b ON a.k = b.k GROUP BY a.n, b.t"
    assert [each.origin for each in timed(f"SELECT y, COUNT(*) FROM ({inner}) GROUP BY y").complete]
    with pytest.raises(AnalysisError):
        timed(f"SELECT x, COUNT(*) FROM ({inner}) GROUP BY x")


@pytest.mark.parametrize(
    ("key", "from_instants", "local"),
    [
        ("t + INTERVAL 1 HOUR", True, True),
        ("t + INTERVAL 1 DAY", False, True),
        ("CAST(t AS TIMESTAMP)", False, False),
        ("date_trunc('DAY', t)", True, True),
        ("CAST(t AS DATE) + INTERVAL 1 DAY", True, True),
    ],
)
def test_days_are_of_unequal_length_where_clocks_are_set(instants, key, from_instants, local):
    for stream, rises in (("s", from_instants), ("n", local)):
        text = f"SELECT COUNT(*) FROM {stream} GROUP BY {key}"
        if rises:
            assert instants(text).complete
        else:
            with pytest.raises(AnalysisError, match="never final"):
                instants(text)


IN_JANUARY = "t + INTERVAL 1 DAY BETWEEN DATE '2026-01-01' AND DATE '2026-02-01'"


@pytest.mark.parametrize("value", [IN_JANUARY, "t + make_dt_interval(day(v))"])
def test_what_is_computed_of_event_time_in_other_ways_tells_nothing(steady, value):
    with pytest.raises(AnalysisError, match="never final"):
        steady(f"SELECT e, COUNT(*) FROM (SELECT {value} AS e FROM s) GROUP BY e")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t, COUNT(*) FROM (SELECT * EXCEPT (t), v AS t FROM s) GROUP BY t",
        "SELECT s.* EXCEPT (t), t AS e FROM s ORDER BY 2 LIMIT 3",
        "SELECT inline(array(struct(v))), t AS e FROM s ORDER BY 1 LIMIT 3",
        "SELECT e, COUNT(*) FROM (SELECT x.t AS e, x, COUNT(*) AS m FROM s GROUP BY t, x) GROUP BY e",
        "SELECT s.t, COUNT(*) FROM names AS n JOIN r ON t = u JOIN s ON s.k = n.k GROUP BY s.t",
        "SELECT t FROM s WHERE NOT EXISTS (SELECT 1 FROM (SELECT u, u + 1 AS s FROM r) AS x WHERE u = s.t)",
    ],
)
def test_what_only_seems_to_be_event_time_tells_nothing(timed, text):
    with pytest.raises(AnalysisError):
        timed(text)


def test_rows_without_a_partner_among_groups_are_told_by_their_own_time(timed):
    groups = "(SELECT u, MAX(k) AS m FROM r GROUP BY u) AS q"
    query = timed(f"SELECT t FROM s LEFT JOIN {groups} ON s.t = q.u WHERE m IS NULL")
    by = {
        each.column: {one.origin for one in query.complete if one.column == each.column}
        for each in query.complete
    }
    assert {2, 1} == {len(origins) for origins in by.values()}


def late_filters(query):
    """How many conditions keep late rows out: of rows, and of the partners of outer joins."""
    filters = [node for node in walk(query.plan) if isinstance(node, Filter) and "not late" in node.label]
    joins = [node for node in walk(query.plan) if isinstance(node, Join) and node.kind == "left"]
    conditions = [one for node in joins for one in node.conditions if "coalesce" in one.text.render()]
    return len(filters), len(conditions)


def test_late_rows_are_no_partners_and_of_what_select_does_not_see_none_are_judged(timed):
    outer = timed("SELECT s.t, COUNT(*) FROM s LEFT JOIN r ON s.t = r.u GROUP BY s.t", watermark=False)
    assert late_filters(outer) == (1, 1)
    assert outer.unbounded == "of a join"
    for kind in ("SEMI", "ANTI"):
        query = timed(f"SELECT s.t, COUNT(*) FROM s {kind} JOIN r ON s.t = r.u GROUP BY s.t")
        assert late_filters(query) == (1, 0)
        assert [each.stream for each in query.occurrences if each.watermark_of] == ["s"]


def evaluated(text: str, instant: int) -> int:
    text = text.replace("{t}", str(instant)).replace(" DIV ", "//").replace("BIGINT", "int")
    text = text.replace("L", "").replace("CAST(", "cast(").replace(" AS int", "")
    return eval(text, {"pmod": lambda a, b: a % b, "cast": int})


@pytest.mark.parametrize(
    ("function", "dealt"),
    [
        ("TUMBLE(TABLE s, DESCRIPTOR(t), 10)", lambda t: [t - t % 10 + 10]),
        (
            "HOP(TABLE s, DESCRIPTOR(t), 5, 10)",
            lambda t: [start + 10 for start in range(-15, 40, 5) if start <= t < start + 10],
        ),
        ("CUMULATE(TABLE s, DESCRIPTOR(t), 5, 10)", lambda t: [e for e in (5, 10) if t % 10 < e]),
    ],
)
def test_the_groups_of_a_row_are_closed_when_nothing_that_comes_counts_in_them(timed, function, dealt):
    query = timed(f"SELECT COUNT(*) FROM {function} GROUP BY wend", watermark=False)
    assert query.unbounded is None
    (grouping,) = query.closes
    (closing,) = grouping
    for t in range(20):
        ends = [t - t % 10 + end for end in dealt(t)] if "CUMULATE" in function else dealt(t)
        for mark in range(30):
            # rows at the watermark or after it may still come
            others = {
                end
                for later in range(mark, mark + 30)
                for end in (
                    [later - later % 10 + each for each in dealt(later)]
                    if "CUMULATE" in function
                    else dealt(later)
                )
            }
            is_closed = evaluated(closing.greatest, t) < evaluated(closing.least, mark)
            assert not is_closed or others.isdisjoint(ends)
            assert is_closed or mark < max(ends)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("SELECT k FROM s WHERE v > 1", None),
        ("SELECT n, COUNT(*) FROM (SELECT k, t, COUNT(*) AS n FROM s GROUP BY k, t) GROUP BY n, t", None),
        ("SELECT n, COUNT(*) FROM (SELECT k, t, COUNT(*) AS n FROM s GROUP BY k, t) GROUP BY n",
         "of a group without a key of event time"),
        ("SELECT s.k FROM s LEFT JOIN names ON s.k = names.k", None),
        ("SELECT s.k FROM s RIGHT JOIN names ON s.k = names.k", "of a join"),
        ("SELECT s.k FROM names LEFT JOIN s ON s.k = names.k", "of a join"),
        ("SELECT s.k FROM s JOIN r ON s.k = r.k", "of a join"),
        (f"SELECT a.k FROM {ENDS} AS a JOIN {OTHERS} AS b ON a.wend = b.wend", None),
        (f"SELECT a.k FROM {ENDS} AS a, {OTHERS} AS b WHERE b.wend = a.wend", None),
        (f"SELECT a.k FROM {ENDS} AS a JOIN {OTHERS} AS b ON a.n = b.wend", "of a join"),
        (f"SELECT a.k FROM {ENDS} AS a LEFT JOIN {OTHERS} AS b ON a.wend = b.wend", None),
        (f"SELECT a.k FROM {ENDS} AS a FULL JOIN {OTHERS} AS b ON a.wend = b.wend", None),
        (f"SELECT a.k FROM {ENDS} AS a JOIN r ON a.wend = r.u", "of a join"),
        (f"SELECT a.k FROM {ENDS} AS a JOIN (SELECT u FROM r GROUP BY u) AS b ON a.wend = b.u", "of a join"),
        ("SELECT s.t, COUNT(*) FROM s JOIN r ON s.t = r.u GROUP BY s.t", None),
        ("SELECT s.t FROM s JOIN r ON s.t = r.u", "of a join"),
        ("SELECT s.k, COUNT(*) FROM s JOIN r ON s.t = r.u GROUP BY s.k",
         "of a group without a key of event time"),
        ("SELECT s.t, COUNT(*) FROM s JOIN r ON s.k = r.k GROUP BY s.t, r.u", "of a join"),
        ("SELECT x.t, COUNT(*) FROM s AS x JOIN s AS y ON x.t = y.t JOIN r ON r.u = x.t GROUP BY x.t, r.u",
         None),
        ("SELECT DISTINCT k FROM s", "of DISTINCT"),
        ("SELECT DISTINCT k, t FROM s", None),
        ("SELECT DISTINCT * FROM s", None),
        ("SELECT DISTINCT v * 2 AS w, t FROM s", None),
        ("SELECT DISTINCT struct(*) AS r, t FROM s", None),
        ("SELECT DISTINCT * EXCEPT (v) FROM s", None),
        ("SELECT DISTINCT x.*, v + 1 AS w FROM s AS x JOIN names ON x.k = names.k", None),
        ("SELECT DISTINCT * FROM s JOIN names ON s.k = names.k", None),
        ("SELECT DISTINCT COUNT(*) AS n, t FROM s GROUP BY t, k", None),
        ("SELECT DISTINCT COUNT(*) AS n FROM s GROUP BY t, k", "of DISTINCT"),
        ("SELECT k, SUM(v) OVER (PARTITION BY k) FROM s", "of OVER"),
        ("SELECT k FROM s ORDER BY t LIMIT 2", "of ORDER BY and LIMIT"),
        ("SELECT k FROM s UNION SELECT k FROM r", "of a set operator"),
        ("SELECT n FROM names WHERE k IN (SELECT k FROM s)", "of a join"),
        ("SELECT COUNT(*) FROM SESSION(TABLE s, DESCRIPTOR(t), 3) GROUP BY wend", None),
        ("SELECT k, COUNT(*) FROM SESSION(TABLE s, DESCRIPTOR(t), 3) GROUP BY k",
         "of a group without a key of event time"),
        ("SELECT wend, k FROM SESSION(TABLE s, DESCRIPTOR(t), 3)", "of sessions, which may grow"),
    ],
)  # fmt: skip
def test_why_rows_are_needed_for_ever(timed, text, holds):
    assert timed(text, watermark=False).unbounded == holds


def test_keys_that_live_are_sessions_of_the_rows_of_their_group(timed):
    text = "SELECT upper(k) AS u, COUNT(*) AS n FROM s AS x WHERE v > 1 GROUP BY u HAVING n > 1"
    query = timed(text, state_ttl=7)
    assert query.unbounded is None
    assert query.has_ttl
    assert [each.column for each in query.complete] == [query.keys[1]]
    # of what is said when a row may go, each part is of its life
    assert [[each.sessions for each in grouping] for grouping in query.closes] == [[0], [0]]
    (sessions,) = query.sessions
    assert sessions.stream == "s"
    assert [column.name for column in sessions.plan.columns] == ["number", "end"]
    (lives,) = (node for node in walk(sessions.plan) if isinstance(node, Lives))
    assert (lives.gap, lives.longest) == (7, 7)
    assert any(isinstance(node, Filter) and node.label == "WHERE v > 1" for node in walk(lives))


@pytest.mark.parametrize(
    ("text", "condition", "message"),
    [
        ("SELECT t, COUNT(*) FROM s GROUP BY t", "LIFETIME_WITHOUT_KEY", "the query lacks"),
        ("SELECT COUNT(*) FROM s", "LIFETIME_WITHOUT_KEY", "the query lacks"),
        ("SELECT n FROM (SELECT k, t, COUNT(*) AS n FROM s GROUP BY k, t) GROUP BY n", "LIFETIME_WITHOUT_KEY",
         "the query lacks"),
        ("SELECT s.k, COUNT(*) FROM s JOIN r ON s.k = r.k GROUP BY s.k", "UNSUPPORTED_QUERY", "a join"),
    ],
)  # fmt: skip
def test_lifetimes_are_of_the_keys_of_groups_of_rows(timed, text, condition, message):
    with pytest.raises((AnalysisError, NotSupportedError), match=message) as caught:
        timed(text, watermark=False, state_ttl=7)
    assert caught.value.getCondition() == condition


def test_where_a_lifetime_would_help_the_hint_says_so(timed):
    with pytest.raises(AnalysisError) as caught:
        timed("SELECT k, COUNT(*) FROM s GROUP BY k")
    assert "STATE LIFETIME" in caught.value.hint
    with pytest.raises(AnalysisError) as caught:
        timed("SELECT n, COUNT(*) FROM (SELECT k, t, COUNT(*) AS n FROM s GROUP BY k, t) GROUP BY n")
    assert "STATE LIFETIME" not in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "SELECT k, COUNT(*) FROM (SELECT k FROM s) GROUP BY k",
        "SELECT s.k, COUNT(*) FROM s JOIN names ON s.k = names.k GROUP BY s.k",
    ],
)
def test_keys_live_whatever_shows_the_rowtime(timed, text):
    assert timed(text, watermark=False, state_ttl=7).has_ttl


def test_late_rows_are_left_out_where_rows_are_grouped_first(timed):
    text = "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM s WHERE v > 1 GROUP BY k, t) GROUP BY n"
    query = timed(text, watermark=False)
    (occurrence,) = query.occurrences
    assert occurrence.watermark_of == {"s"}
    (late,) = (node for node in walk(query.plan) if isinstance(node, Filter) and "not late" in node.label)
    ids = {column.id: column.name for column in late.columns}
    text = late.conditions[0].text.render()
    for own, name in ids.items():
        text = text.replace(f"__w.{own}", name)
    assert text == f"NOT coalesce(((t) < {occurrence.watermark}), FALSE)"
    assert isinstance(late.input, Filter)
    assert late.input.label == "WHERE v > 1"


def test_what_nodes_give_and_keep_is_told(timed):
    def lines(text, **how):
        return list(timed(text, watermark=False, **how).lines)

    assert lines("SELECT wend, COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k") == [
        "GROUP BY wend, k: count(*) (updating; event time wend; state: groups until the watermark has passed "
        "wend)",
        "└─ TUMBLE by t (append-only; event time t, wstart, wend)",
        "   └─ stream s (append-only; event time t)",
    ]
    assert lines("SELECT wend FROM SESSION(TABLE s, DESCRIPTOR(t), 3) GROUP BY wend")[:2] == [
        "GROUP BY wend (updating; event time wend; state: groups until the watermark has passed wend by the "
        "gap)",
        "└─ SESSION by t (updating; event time t, wend; state: rows until the watermark has passed the end "
        "of their session by the gap)",
    ]
    assert lines("SELECT upper(k) AS u, COUNT(*) FROM s GROUP BY u", state_ttl=7)[0] == (
        "GROUP BY upper(k): count(*) (updating; no event time; state: groups until the watermark has passed "
        "the end of their STATE LIFETIME by the gap)"
    )
    assert lines("SELECT k, COUNT(*) FROM s GROUP BY k")[0].endswith("state: all groups)")
    assert lines("SELECT k, SUM(v), MAX(v) FROM s GROUP BY k")[0].endswith("state: all groups)")
    assert lines("SELECT k, BIT_OR(v) FROM s GROUP BY k")[0].endswith("state: all groups)")
    assert lines("SELECT k, MEDIAN(v) FROM s GROUP BY k")[0].endswith("state: all rows)")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT v + 1 AS w, t FROM s WHERE v > 1", "compute w (append-only; event time t)"),
        ("SELECT * FROM s JOIN names ON s.k = names.k", "JOIN ON s.k = names.k (append-only; event time t)"),
        ("SELECT s.k, r.u FROM s JOIN r ON s.k = r.k",
         "JOIN ON s.k = r.k (append-only; event time t, u; state: all rows)"),
        ("SELECT s.k FROM s LEFT JOIN r ON s.k = r.k",
         "LEFT JOIN ON s.k = r.k (updating; event time t, u; state: all rows)"),
        ("SELECT DISTINCT t FROM s",
         "DISTINCT t (append-only; event time t; state: rows until the watermark has passed t)"),
        ("SELECT DISTINCT n FROM (SELECT COUNT(*) AS n FROM s GROUP BY t)",
         "DISTINCT n (updating; no event time; state: all rows)"),
        ("SELECT k FROM s UNION ALL SELECT k FROM r", "UNION ALL (append-only; no event time)"),
        ("SELECT k FROM s EXCEPT SELECT k FROM r", "EXCEPT (updating; no event time; state: all rows)"),
        ("SELECT k FROM s WHERE v = (SELECT MAX(v) FROM s)", "WHERE v = (SELECT MAX(v) FROM s)"),
        ("SELECT t, ROW_NUMBER() OVER (ORDER BY t) AS n FROM s",
         "OVER (ORDER BY t) (updating; event time t; state: all rows)"),
        ("SELECT t FROM s ORDER BY t LIMIT 1",
         "ORDER BY t LIMIT 1 (updating; event time t; state: all rows)"),
    ],
)  # fmt: skip
def test_the_last_node_says_whether_rows_leave_again(timed, text, told):
    assert timed(text, watermark=False).lines[0] == told


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("SELECT DISTINCT k, t FROM s", 1),
        ("SELECT DISTINCT * FROM s AS x WHERE v = 1", 1),
        ("SELECT DISTINCT s.* FROM s JOIN names ON s.k = names.k", 1),
        ("SELECT DISTINCT struct(*) AS r, t FROM s", 1),
        ("SELECT DISTINCT k FROM s", 0),
    ],
)
def test_late_copies_are_left_out_where_rows_are_told_apart(timed, text, count):
    query = timed(text, watermark=False)
    assert late_filters(query) == (count, 0)
    assert not any(column.name.startswith("__of_watermark") for column in query.plan.columns)


def test_streams_of_a_join_hold_each_other_back(timed):
    query = timed("SELECT s.k, COUNT(*) FROM s JOIN r ON s.k = r.k GROUP BY s.t, r.u, s.k")
    assert {each.watermark_of for each in query.occurrences} == {frozenset({"s", "r"})}
    assert query.streams == {"s", "r"}
    assert len({each.origin for each in query.complete}) == 2
    (late,) = (node for node in walk(query.plan) if isinstance(node, Filter) and "not late" in node.label)
    assert "greatest(__w.w0, __w.w1)" in late.conditions[0].text.render()


def test_keys_of_the_nearest_groups_come_up_through_what_is_around_them(timed):
    inner = "SELECT wend, k, MAX(v) AS m FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k"
    query = timed(f"SELECT s.v FROM s JOIN (SELECT m FROM ({inner}) WHERE m > 1) AS x ON s.v = x.m")
    assert query.keys is not None
    assert len(query.keys) == 2
    assert len(query.complete) == 1
    assert query.complete[0].column in query.keys
    assert query.counts


@pytest.mark.parametrize(
    ("text", "keys", "counts"),
    [
        ("SELECT k FROM s", None, False),
        ("SELECT DISTINCT k FROM s", None, True),
        ("SELECT k FROM s UNION ALL SELECT k FROM r", None, False),
        ("SELECT t FROM s UNION ALL SELECT u FROM r", None, False),
        ("SELECT k FROM (SELECT k FROM s UNION SELECT k FROM r)", None, True),
        ("SELECT k FROM s EXCEPT SELECT k FROM r", None, True),
        ("SELECT COUNT(*) FROM s", 0, True),
        ("SELECT k, v AS x, COUNT(*) FROM s GROUP BY 1, x", 2, True),
        ("SELECT k, COUNT(*) FROM s GROUP BY ALL", 1, True),
    ],
)
def test_what_rows_are_grouped_by(timed, text, keys, counts):
    query = timed(text, watermark=False)
    assert (query.keys if keys is None else len(query.keys)) == keys
    assert query.counts == counts


@pytest.mark.parametrize(
    "key",
    [
        "t",
        "t + INTERVAL 1 DAY",
        "date_trunc('hour', t)",
        "CAST(t AS DATE)",
        "to_date((t))",
        "s.t - INTERVAL '1' HOUR",
    ],
)
def test_event_time_that_rises_is_kept(steady, key):
    (complete,) = steady(f"SELECT COUNT(*) FROM s GROUP BY {key}").complete
    assert "{t}" in complete.mapped
    assert complete.column.startswith(HIDDEN)


@pytest.mark.parametrize(
    "key", ["-unix_micros(t)", "v - t", "date_format(t, 'HH')", "v", "t + (v - t)", "date_trunc('hour', v)"]
)
def test_event_time_that_may_fall_is_lost(steady, key):
    with pytest.raises(AnalysisError) as error:
        steady(f"SELECT COUNT(*) FROM s GROUP BY {key}")
    assert error.value.condition == "GROUP_WITHOUT_EVENT_TIME"
    assert error.value.getQueryContext()[0].fragment() == key


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("SELECT k FROM s WHERE EXISTS (FROM s)", "FROM"),
    ],
)
def test_what_is_not_understood_is_refused_where_it_is(timed, text, fragment):
    with pytest.raises(NotSupportedError) as error:
        timed(text, watermark=False)
    assert error.value.condition == "UNSUPPORTED_QUERY"
    assert error.value.getQueryContext()[0].fragment() == fragment

"""Which columns of a query are event time, what its rows are grouped by, and where late rows are left out."""

from __future__ import annotations

import pytest
from windrow.spark.event_time import HIDDEN, EventTimes, with_lifetimes

from windrow.algebra.clock import Clock
from windrow.algebra.time_windows import TimeWindow
from windrow.errors import AnalysisError, NotSupportedError, Span
from windrow.syntax.table_functions import window_call
from windrow.syntax.tokens import tokenize

STREAMS = {"s": (("k", "t", "v"), "t"), "r": (("k", "u"), "u")}
CLOCK = Clock("bigint", "NANOSECOND")
ENDS = "(SELECT wend, k, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k)"
OTHERS = "(SELECT wend FROM TUMBLE(TABLE r, DESCRIPTOR(u), 10) GROUP BY wend)"
LENGTHS = {"dur": 10, "hopsize": 5, "step": 5, "gap": 3}


def reader(text: str, *, watermark: bool = True, clocks: dict[str, str] | None = None):
    tokens = tokenize(text)

    def window_of(call):
        parsed = window_call(tokens, call)
        time = tokens[parsed.time].name
        return TimeWindow(parsed.kind, time, "bigint", CLOCK, LENGTHS, parsed.names)

    place = Span(0, 1) if watermark else None
    return tokens, EventTimes(tokens, STREAMS, window_of, place, (text, place), clocks=clocks)


def timed(text: str, *, watermark: bool = True):
    tokens, times = reader(text, watermark=watermark)
    return times.read(0, len(tokens), 0)


def living(text: str, lifetime: str = "7") -> str:
    """The text in which keys have a lifetime."""
    tokens, times = reader(text, watermark=False)
    times.read(0, len(tokens), 0)
    return with_lifetimes(tokens, times.endless, lambda _: lifetime, (text, Span(0, 1))).render()


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
def test_a_watermark_is_that_of_the_first_window_that_can_still_come(function, key, least):
    query = timed(f"SELECT COUNT(*) FROM {function} GROUP BY {key}")
    assert {mark: mapped(query, mark) for mark in least} == {mark: [value] for mark, value in least.items()}


def test_of_two_keys_of_one_name_each_tells_of_its_own():
    inner = "SELECT a.t AS x, b.t AS y FROM names AS a JOIN s AS b ON a.k = b.k GROUP BY a.t, b.t"
    assert [each.origin for each in timed(f"SELECT y, COUNT(*) FROM ({inner}) GROUP BY y").complete]
    with pytest.raises(AnalysisError):
        timed(f"SELECT x, COUNT(*) FROM ({inner}) GROUP BY x")


@pytest.mark.parametrize(
    ("key", "instants", "local"),
    [
        ("t + INTERVAL 1 HOUR", True, True),
        ("t + INTERVAL 1 DAY", False, True),
        ("CAST(t AS TIMESTAMP)", False, False),
        ("date_trunc('DAY', t)", True, True),
        ("CAST(t AS DATE) + INTERVAL 1 DAY", True, True),
    ],
)
def test_days_are_of_unequal_length_where_clocks_are_set(key, instants, local):
    for kind, rises in (("TIMESTAMP", instants), ("TIMESTAMP_NTZ", local)):
        tokens, times = reader(f"SELECT COUNT(*) FROM s GROUP BY {key}", clocks={"s": kind})
        if rises:
            assert times.read(0, len(tokens), 0).complete
        else:
            with pytest.raises(AnalysisError, match="never complete"):
                times.read(0, len(tokens), 0)


IN_JANUARY = "t + INTERVAL 1 DAY BETWEEN DATE '2026-01-01' AND DATE '2026-02-01'"


@pytest.mark.parametrize(
    "text",
    [
        "SELECT t, COUNT(*) FROM (SELECT * EXCEPT (t), v AS t FROM s) GROUP BY t",
        "SELECT s.* EXCEPT (t), t AS e FROM s ORDER BY 2 LIMIT 3",
        "SELECT inline(a), t AS e FROM s ORDER BY 2 LIMIT 3",
        "SELECT e, COUNT(*) FROM (SELECT x.t AS e, x, COUNT(*) AS m FROM s GROUP BY t, x) GROUP BY e",
        "SELECT s.t, COUNT(*) FROM names AS n JOIN r ON t = u JOIN s ON s.k = n.k GROUP BY s.t",
        f"SELECT e, COUNT(*) FROM (SELECT {IN_JANUARY} AS e FROM s) GROUP BY e",
        "SELECT e, COUNT(*) FROM (SELECT t + INTERVAL (v) DAY AS e FROM s) GROUP BY e",
        "SELECT t FROM s WHERE NOT EXISTS (SELECT 1 FROM (SELECT u, u + 1 AS s FROM r) AS x WHERE u = s.t)",
    ],
)
def test_what_only_seems_to_be_event_time_tells_nothing(text):
    with pytest.raises(AnalysisError):
        timed(text)


def test_rows_without_a_partner_among_groups_are_told_by_their_own_time():
    groups = "(SELECT u, MAX(k) AS m FROM r GROUP BY u) AS q"
    query = timed(f"SELECT t FROM s LEFT JOIN {groups} ON s.t = q.u WHERE m IS NULL")
    by = {
        each.column: {one.origin for one in query.complete if one.column == each.column}
        for each in query.complete
    }
    assert {2, 1} == {len(origins) for origins in by.values()}


def test_late_rows_are_no_partners_and_of_what_select_does_not_see_none_are_judged():
    outer = timed("SELECT s.t, COUNT(*) FROM s LEFT JOIN r ON s.t = r.u GROUP BY s.t", watermark=False)
    assert outer.text.render().count("NOT coalesce") == 2
    assert outer.holds == "of a join"
    for kind in ("SEMI", "ANTI"):
        text = timed(f"SELECT s.t, COUNT(*) FROM s {kind} JOIN r ON s.t = r.u GROUP BY s.t").text.render()
        assert text.count("__of_watermark") == 1


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
def test_the_groups_of_a_row_are_closed_when_nothing_that_comes_counts_in_them(function, dealt):
    query = timed(f"SELECT COUNT(*) FROM {function} GROUP BY wend", watermark=False)
    assert query.holds is None
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
        ("SELECT DISTINCT struct(*) AS r, t FROM s", "of DISTINCT"),
        ("SELECT DISTINCT * EXCEPT (v) FROM s", "of DISTINCT"),
        ("SELECT DISTINCT x.*, v + 1 AS w FROM s AS x JOIN names ON x.k = names.k", None),
        ("SELECT DISTINCT * FROM s JOIN names ON s.k = names.k", "of DISTINCT"),
        ("SELECT DISTINCT COUNT(*) AS n, t FROM s GROUP BY t, k", None),
        ("SELECT DISTINCT COUNT(*) AS n FROM s GROUP BY t, k", "of DISTINCT"),
        ("SELECT k, SUM(v) OVER (PARTITION BY k) FROM s", "of OVER"),
        ("SELECT k FROM s ORDER BY t LIMIT 2", "of ORDER BY and LIMIT"),
        ("SELECT k FROM s UNION SELECT k FROM r", "of a set operator"),
        ("SELECT name FROM names WHERE k IN (SELECT k FROM s)", "of a subquery"),
        ("SELECT COUNT(*) FROM SESSION(TABLE s, DESCRIPTOR(t), 3) GROUP BY wend", None),
        ("SELECT k, COUNT(*) FROM SESSION(TABLE s, DESCRIPTOR(t), 3) GROUP BY k",
         "of a group without a key of event time"),
        ("SELECT wend, k FROM SESSION(TABLE s, DESCRIPTOR(t), 3)", "of sessions, which may grow"),
    ],
)  # fmt: skip
def test_why_rows_are_needed_for_ever(text, holds):
    assert timed(text, watermark=False).holds == holds


def test_keys_that_live_are_sessions_of_the_rows_of_their_group():
    text = living("SELECT upper(k) AS u, COUNT(*) AS n FROM s AS x WHERE v > 1 GROUP BY u HAVING n > 1")
    assert " ".join(text.split()) == (
        "SELECT upper(k) AS u, COUNT(*) AS n FROM __LIFETIME(TABLE(SELECT *, (upper(k) ) AS __of_key0 FROM "
        "s AS x WHERE v > 1 ), DESCRIPTOR(`t`), key => DESCRIPTOR(__of_key0), gap => 7, maxdur => 7) AS `x` "
        "GROUP BY u , `x`.`__of_end` HAVING n > 1"
    )
    query = timed(text)
    assert query.holds is None
    assert [each.column for each in query.complete] == [query.keys[1]]
    # of what is said when a row may go, each part is of its life
    assert [[each.sessions for each in grouping] for grouping in query.closes] == [[0], [0]]
    (sessions,) = query.sessions
    assert sessions.stream == "s"
    text = sessions.text.render()
    assert text.startswith(f"SELECT `{query.occurrences[0].number}` AS number, `__of_end` AS end FROM")
    assert text.count(query.occurrences[0].name) > 1
    assert "v > 1" in text


@pytest.mark.parametrize(
    ("text", "condition", "message"),
    [
        ("SELECT t, COUNT(*) FROM s GROUP BY t", "LIFETIME_WITHOUT_KEY", "no rows are grouped so"),
        ("SELECT COUNT(*) FROM s", "LIFETIME_WITHOUT_KEY", "no rows are grouped so"),
        ("SELECT n FROM (SELECT k, t, COUNT(*) AS n FROM s GROUP BY k, t) GROUP BY n", "LIFETIME_WITHOUT_KEY",
         "no rows"),
        ("SELECT k, COUNT(*) FROM (SELECT k FROM s) GROUP BY k", "UNSUPPORTED_QUERY", "do not show"),
        ("SELECT s.k, COUNT(*) FROM s JOIN names ON s.k = names.k GROUP BY s.k", "UNSUPPORTED_QUERY",
         "a join"),
        ("SELECT k, max(struct(*)) FROM s GROUP BY k", "UNSUPPORTED_QUERY", "beside a star"),
    ],
)  # fmt: skip
def test_lifetimes_are_of_the_keys_of_groups_of_rows(text, condition, message):
    with pytest.raises((AnalysisError, NotSupportedError), match=message) as caught:
        living(text)
    assert caught.value.getCondition() == condition


def test_where_a_lifetime_would_help_the_hint_says_so():
    with pytest.raises(AnalysisError) as caught:
        timed("SELECT k, COUNT(*) FROM s GROUP BY k")
    assert "STATE LIFETIME" in caught.value.hint
    with pytest.raises(AnalysisError) as caught:
        timed("SELECT n, COUNT(*) FROM (SELECT k, t, COUNT(*) AS n FROM s GROUP BY k, t) GROUP BY n")
    assert "STATE LIFETIME" not in caught.value.hint


def test_late_rows_are_left_out_where_rows_are_grouped_first():
    text = "SELECT n, COUNT(*) FROM (SELECT k, COUNT(*) AS n FROM s WHERE v > 1 GROUP BY k, t) GROUP BY n"
    query = timed(text, watermark=False)
    rendered = " ".join(query.text.render().split())
    (occurrence,) = query.occurrences
    assert occurrence.watermark_of == {"s"}
    assert (
        f"WHERE ( v > 1 ) AND NOT coalesce(((t ) < {occurrence.watermark}), FALSE) GROUP BY k, t" in rendered
    )
    assert rendered.count("coalesce") == 1
    assert rendered.endswith("GROUP BY n")


def operators(text: str) -> list[str]:
    return list(timed(text, watermark=False).operators)


def test_what_operators_give_and_keep_is_told():
    assert operators("SELECT wend, COUNT(*) FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) GROUP BY wend, k") == [
        "stream s: append-only, event time t",
        "tumble by t: append-only, event time t, wstart, wend",
        "group by wend, k: updating, event time wend, keeps groups until the watermark has passed wend",
    ]
    assert operators("SELECT wend FROM SESSION(TABLE s, DESCRIPTOR(t), 3) GROUP BY wend")[1:] == [
        "session by t: updating, event time t, wend, keeps rows until the watermark has passed the end of "
        "their session by the gap",
        "group by wend: updating, event time wend, keeps groups until the watermark has passed wend by the "
        "gap",
    ]
    assert operators(living("SELECT upper(k) AS u, COUNT(*) FROM s GROUP BY u"))[-1] == (
        "group by upper(k): updating, no event time, keeps groups until the watermark has passed the end of "
        "their life by the gap"
    )
    assert operators("SELECT k, COUNT(*) FROM s GROUP BY k")[-1].endswith("keeps all rows")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("SELECT v, t FROM s WHERE v > 1", "select: append-only, event time t"),
        ("SELECT * FROM s JOIN names ON s.k = names.k", "select: append-only, event time t"),
        ("SELECT s.k, r.u FROM s JOIN r ON s.k = r.k", "select: append-only, event time u"),
        ("SELECT s.k FROM s LEFT JOIN r ON s.k = r.k", "select: updating, no event time"),
        ("SELECT DISTINCT t FROM s",
         "distinct: append-only, event time t, keeps rows until the watermark has passed t"),
        ("SELECT DISTINCT n FROM (SELECT COUNT(*) AS n FROM s GROUP BY t)",
         "distinct: updating, no event time, keeps all rows"),
        ("SELECT k FROM s UNION ALL SELECT k FROM r", "union all: append-only, no event time"),
        ("SELECT k FROM s EXCEPT SELECT k FROM r", "except: updating, no event time, keeps all rows"),
        ("SELECT k FROM s WHERE v = (SELECT MAX(v) FROM s)",
         "select with a subquery: updating, no event time, keeps all rows"),
        ("SELECT t, ROW_NUMBER() OVER (ORDER BY t) AS n FROM s",
         "select with OVER: updating, event time t, keeps all rows"),
        ("SELECT t FROM s ORDER BY t LIMIT 1", "first rows in order: updating, event time t, keeps all rows"),
    ],
)  # fmt: skip
def test_the_last_operator_says_whether_rows_leave_again(text, told):
    assert operators(text)[-1] == told


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("SELECT DISTINCT k, t FROM s", "SELECT DISTINCT k, t FROM {s} AS `s` WHERE {late:t } "),
        ("SELECT DISTINCT * FROM s AS x WHERE k = 1", "SELECT DISTINCT * EXCEPT ({mark}) FROM {s} AS x WHERE "
         "( k = 1 ) AND {late:`x`.`t`} "),
        ("SELECT DISTINCT s.* FROM s JOIN names ON s.k = names.k", "SELECT DISTINCT s.* EXCEPT ({mark}) FROM "
         "{s} AS `s` JOIN names ON s.k = names.k WHERE {late:`s`.`t`} "),
        ("SELECT DISTINCT k FROM s", "SELECT DISTINCT k FROM {s} AS `s`"),
    ],
)  # fmt: skip
def test_late_copies_are_left_out_where_rows_are_told_apart(text, rendered):
    query = timed(text, watermark=False)
    (occurrence,) = query.occurrences
    for key in ("t ", "`x`.`t`", "`s`.`t`"):
        late = f"NOT coalesce((({key}) < {occurrence.watermark}), FALSE)"
        rendered = rendered.replace(f"{{late:{key}}}", late)
    rendered = rendered.replace("{s}", occurrence.name).replace("{mark}", f"`{occurrence.watermark}`")
    assert " ".join(query.text.render().split()) == rendered.strip()


def test_stars_within_groups_show_no_watermarks():
    query = timed(
        "SELECT t, max(struct(*)) AS m, max(struct(s.*, v)) AS n, COUNT(*) FROM s GROUP BY t", watermark=False
    )
    (occurrence,) = query.occurrences
    hidden = f"EXCEPT (`{occurrence.watermark}`)"
    text = " ".join(query.text.render().split())
    assert f"max(struct(* {hidden} )) AS m, max(struct(s.* {hidden} , v)) AS n, COUNT(*) , t" in text


def test_streams_of_a_join_hold_each_other_back():
    query = timed("SELECT s.k, COUNT(*) FROM s JOIN r ON s.k = r.k GROUP BY s.t, r.u, s.k")
    assert {each.watermark_of for each in query.occurrences} == {frozenset({"s", "r"})}
    assert query.streams == {"s", "r"}
    assert len({each.origin for each in query.complete}) == 2
    marks = " , ".join(each.watermark for each in query.occurrences)
    assert f"greatest({marks.replace(' ,', ',')})" in query.text.render()


def test_keys_of_the_nearest_groups_come_up_through_what_is_around_them():
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
def test_what_rows_are_grouped_by(text, keys, counts):
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
def test_event_time_that_rises_is_kept(key):
    (complete,) = timed(f"SELECT COUNT(*) FROM s GROUP BY {key}").complete
    assert "{t}" in complete.mapped
    assert complete.column.startswith(HIDDEN)


@pytest.mark.parametrize(
    "key", ["-t", "INTERVAL 1 DAY - t", "date_format(t, 'HH')", "v", "t + v", "date_trunc('hour', v)"]
)
def test_event_time_that_may_fall_is_lost(key):
    with pytest.raises(AnalysisError) as error:
        timed(f"SELECT COUNT(*) FROM s GROUP BY {key}")
    assert error.value.condition == "GROUP_WITHOUT_EVENT_TIME"
    assert error.value.getQueryContext()[0].fragment() == key


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("SELECT k, COUNT(*) FROM s GROUP BY CUBE (k, v)", "CUBE (k, v)"),
        ("SELECT k FROM mine(TABLE s)", "mine(TABLE s)"),
        ("SELECT COUNT(*) FROM s AS x(a, b, c) GROUP BY b", "s"),
        ("SELECT k FROM s LATERAL VIEW explode(v) AS e", "SELECT k FROM s LATERAL VIEW explode(v) AS e"),
    ],
)
def test_what_is_not_understood_is_refused_where_it_is(text, fragment):
    with pytest.raises(NotSupportedError) as error:
        timed(text, watermark=False)
    assert error.value.condition == "UNSUPPORTED_QUERY"
    assert error.value.getQueryContext()[0].fragment() == fragment

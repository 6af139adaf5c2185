"""Live windows and matches are those of the whole log, wherever it is cut and wherever they are killed."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.random_clauses import AGGREGATES, ENDS, MODES, ORDER, PATTERNS, SKIPS, STARTS, sequences
from tests.live.random_logs import LAGS, admitted, ended, live, log, recorded, table
from tests.live.stepping import law, rows_of, total
from windrow import Session


@law(4)
@given(
    log,
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    sequences(),
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES MATCH_NUMBER() AS n, FIRST(ts) AS t"
    " ALL ROWS PER MATCH WITH UNMATCHED ROWS PATTERN (a b) WITHIN 3 DEFINE b AS b.v > a.v)",
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("a", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    f"SELECT *, t OVER w, count(*) OVER w AS n FROM s WINDOW w AS (PARTITION BY k {ORDER}"
    " MEASURES LAST(ts) AS t ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a b+)"
    " DEFINE b AS b.v <= NEXT(b.v) OR b.v > a.v)",
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("a", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES MATCH_NUMBER() AS n, FIRST(ts) AS t,"
    " COUNT(*) AS c ALL MATCHES PATTERN (a b | a+ $) DEFINE b AS b.v > a.v)",
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("a", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    None,
    [0.4, 0.7],
    {1},
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES FIRST(ts) AS t,"
    " SUM(DISTINCT v) AS total, MAX_BY(a.ts, a.ts) FILTER (WHERE a.v < 3) AS m"
    " ALL ROWS PER MATCH PATTERN (a+ b) DEFINE b AS b.v < a.v)",
)
@pytest.mark.usefixtures("interpreted")
def test_windows_and_patterns_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, lag, cuts, kills, query
):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s)}
    if not admitted(logs["s"], lag):
        return
    found = rows_of(live(spark, folder, logs, lag, cuts, kills, query))
    for execution in ("batch", "reference"):
        session = Session(spark, execution=execution)
        session.register("s", table([(*row, None) for _, *row in admitted(logs["s"], lag)]).drop_columns("b"))
        assert found == rows_of([session.sql(query).to_arrow()])


# -- texts and decimals of a row and its neighbours, which Spark computes of recorded rows -----------------

BESIDE = [
    "b AS concat(PREV(b.p), b.p) IN ('ab', 'ba')",
    "b AS PREV(p, 2) || p >= 'aa' OR CAST(v AS DECIMAL(9, 2)) * PREV(v) > 2.5",
    "b AS NEXT(p) || p LIKE 'a%'",
    "b AS substring(PREV(p) || p || NEXT(p), 2, 1) = 'b' AND v - NEXT(CAST(v AS DECIMAL(5, 1))) <= 0.5",
]


@law(1)
@given(
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 1), max_size=1),
    st.sampled_from(["a b+", "(a | b)+ $", "a? b b"]),
    st.sampled_from(BESIDE),
)
@pytest.mark.usefixtures("interpreted")
def test_texts_and_decimals_of_neighbours_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, cuts, kills, pattern, define
):
    logs = {"s": ended(s)}
    if not admitted(logs["s"], None):
        return
    query = (
        f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES FIRST(ts) AS t, COUNT(b.*) AS n"
        f" ALL ROWS PER MATCH PATTERN ({pattern}) DEFINE {define})"
    )
    found = rows_of(live(spark, tmp_path_factory.mktemp("live"), logs, None, cuts, kills, query))
    rows = table([(*row, None) for _, *row in admitted(logs["s"], None)]).drop_columns("b")
    for execution in ("batch", "reference"):
        session = Session(spark, execution=execution)
        session.register("s", rows)
        assert found == rows_of([session.sql(query).to_arrow()])


# -- conditions that Spark evaluates over rows of a match --------------------------------------------------

FAR, IN_WORDS = re.compile(r"far\(([\w.]+), ([\w.]+)\)"), r"abs(\1 - \2) >= 2"
ASKED = [
    "b AS upper(concat(a.p, b.p)) IN ('AB', 'BB')",
    "b AS far(a.v, b.v) OR COUNT(*) = 3",
    "a AS concat(upper(p), NEXT(p)) <> 'Ab', b AS MAX_BY(a.p, a.ts) IS DISTINCT FROM b.p",
    "b AS upper(concat(LAST(CLASSIFIER(), 1), MATCH_NUMBER(), COUNT(*))) <> 'A12'",
    "a AS a.v + PREV(a.v) IN (SELECT x FROM nums), b AS b.v + a.v NOT IN (SELECT x FROM nums)",
]
EVENTS = [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 0, 4), ("a", 8, 1, 3, 8)]


@law(2)
@given(
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 1), max_size=1),
    st.sampled_from(MODES),
    st.sampled_from(["a b+", "(a | b)+? b", "a? b b", "(b | a)+ $"]),
    st.sampled_from(["", "", "WITHIN 4"]),
    st.sampled_from(ASKED),
)
@example(EVENTS, [0.5], set(), MODES[2], "a b+", "", ASKED[3])
@example(EVENTS, [0.4, 0.7], {1}, MODES[1], "(a | b)+ b", "WITHIN 4", ASKED[2])
@example(EVENTS, [0.3, 0.6], {0}, MODES[1], "a b+", "", ASKED[4])
@example(EVENTS, [0.3, 0.6], set(), "ALL MATCHES", "a b+", "", ASKED[2])
@example(EVENTS, [0.4, 0.8], {1}, "2 FOLLOWING", "a b+", "", ASKED[1])
@example(EVENTS, [0.4, 0.8], set(), "UNBOUNDED FOLLOWING", "a b+", "WITHIN 4", ASKED[0])
@pytest.mark.usefixtures("interpreted")
def test_conditions_over_rows_of_a_match_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, cuts, kills, mode, pattern, length, define
):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s)}
    if not admitted(logs["s"], None):
        return
    spark.udf.register("far", lambda v, u: None not in (v, u) and abs(v - u) >= 2, "boolean")
    spark.sql("SELECT explode(array(2, 5)) AS x").createOrReplaceTempView("nums")
    rows = table([(*row, None) for _, *row in admitted(logs["s"], None)]).drop_columns("b")
    query = (
        f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES MATCH_NUMBER() AS n,"
        f" FIRST(ts) AS t {mode} PATTERN ({pattern}) {length} DEFINE {define})"
    )
    if "FOLLOWING" in mode:
        query = (
            f"SELECT *, t OVER w FROM s WINDOW w AS (PARTITION BY k {ORDER} MEASURES FIRST(ts) AS t"
            f" ROWS BETWEEN CURRENT ROW AND {mode} PATTERN ({pattern}) {length} DEFINE {define})"
        )
    found = rows_of(live(spark, folder, logs, None, cuts, kills, query))
    for execution, text in (("batch", query), ("reference", FAR.sub(IN_WORDS, query))):
        session = Session(spark, execution=execution)
        session.register("s", rows)
        assert found == rows_of([session.sql(text).to_arrow()])


# -- keys that a collation compares ------------------------------------------------------------------------

COLLATED = (
    "(SELECT ts, (CASE WHEN v > 1 THEN upper(p) ELSE p END) COLLATE UTF8_LCASE AS c,"
    " (CASE WHEN k = 1 THEN 'X' WHEN v = 2 THEN 'y' ELSE 'x' END) COLLATE UNICODE_CI AS d, p, k, v FROM s)"
)
OVER_COLLATED = (
    "SELECT lower(c) AS c, t, n, u FROM (SELECT a.ts, a.c, a.d, a.v, a.k, a.p, COUNT(w) AS m FROM {} WINDOW"
    " BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts, v, p START AS a END AS e WHEN e.ts - a.ts > 2))"
    " MATCH_RECOGNIZE (PARTITION BY c ORDER BY ts, d DESC, v, k, p MEASURES FIRST(ts) AS t, COUNT(*) AS n,"
    " LAST(p) AS u PATTERN (a b+) DEFINE b AS b.m >= a.m)"
)
"""A pattern over windows, of which some wait for others."""


@law(1)
@given(
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 1), max_size=1),
    st.sampled_from(
        [
            "SELECT lower(c) AS c, t, n FROM {} MATCH_RECOGNIZE (PARTITION BY c ORDER BY ts, d, v, k, p"
            " MEASURES FIRST(ts) AS t, COUNT(*) AS n, LAST(d) AS u PATTERN (a b+) DEFINE b AS b.v >= a.v)",
            "SELECT lower(a.c) AS c, a.ts, a.v, SUM(w.v) AS n FROM {} WINDOW BY w AS (TYPE SLIDING"
            " PARTITION BY c ORDER BY ts, d, v, k, p START AS a END AS e AT n WHEN e.ts - a.ts > 2)",
            OVER_COLLATED,
        ]
    ),
)
@example(EVENTS, [0.4, 0.7], {1}, OVER_COLLATED)
@example(
    [("a", at // 2, at % 2, (7 * at) % 4, at // 2 - 1) for at in range(14)],
    [0.3, 0.5, 0.8],
    {0},
    OVER_COLLATED,
)
@example(
    EVENTS,
    [0.4, 0.7],
    {1},
    "SELECT t, n FROM {} MATCH_RECOGNIZE (PARTITION BY c ORDER BY ts, v"
    " MEASURES FIRST(ts) AS t, COUNT(*) AS n PATTERN (a b+) DEFINE b AS b.v >= a.v)",
)
@pytest.mark.usefixtures("interpreted")
def test_keys_with_a_collation_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, cuts, kills, query
):
    logs, query = {"s": ended(s)}, query.format(COLLATED)
    if not admitted(logs["s"], None):
        return
    found = rows_of(live(spark, tmp_path_factory.mktemp("live"), logs, None, cuts, kills, query))
    session = Session(spark)
    session.register("s", table([(*row, None) for _, *row in admitted(logs["s"], None)]).drop_columns("b"))
    assert found == rows_of([session.sql(query).to_arrow()])


# -- conditions that Spark evaluates over pairs of rows ---------------------------------------------------

PAIRED = [
    "START AS s PREV AS sp WHEN sp IS NULL OR upper(concat(sp.p, s.p)) = 'AB'"
    " END AS e NEXT AS en WHEN en.ts - s.ts > 2 OR en IS NULL",
    "START AS s AT sa NEXT AS sn WHEN sn.v >= s.v END AS e AT ea NEXT AS en WHEN far(en.v, s.v) OR ea = 4",
    "START AS s ONLY END AS e PREV AS ep WHEN upper(concat(ep.p, e.p)) = 'AB' AND e.ts > s.ts",
    "LABEL AS l START AS s WHEN l.ts - s.ts <= 2 END AS e WHEN e.ts > l.ts AND far(s.v, e.v)",
    "LABEL AS l AT la START AS s AT sa WHEN sa = la - 1 AND upper(l.p || s.p) = 'BA' END AS e WHEN e = l",
    "LABEL AS l NEXT AS ln WHEN far(l.v, ln.v) ONLY START AS s WHEN far(s.v, l.v) END AS e WHEN e.v > s.v",
]


@law(1)
@given(
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 1), max_size=1),
    st.sampled_from(["SLIDING", "TUMBLING"]),
    st.sampled_from(PAIRED),
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 0, 4), ("a", 8, 1, 3, 8)],
    [0.5],
    set(),
    "SLIDING",
    PAIRED[3],
)
@pytest.mark.usefixtures("interpreted")
def test_conditions_over_pairs_of_rows_live_are_those_of_the_whole_log(
    spark, tmp_path_factory, s, cuts, kills, kind, clause
):
    folder = tmp_path_factory.mktemp("live")
    logs = {"s": ended(s)}
    if not admitted(logs["s"], None):
        return
    spark.udf.register("far", lambda v, u: None not in (v, u) and abs(v - u) >= 2, "boolean")
    rows = table([(*row, None) for _, *row in admitted(logs["s"], None)]).drop_columns("b")
    query = f"SELECT *, {AGGREGATES} FROM s WINDOW BY w AS (TYPE {kind} PARTITION BY k {ORDER} {clause})"
    found = rows_of(live(spark, folder, logs, None, cuts, kills, query))
    for execution, text in (("batch", query), ("reference", FAR.sub(IN_WORDS, query))):
        session = Session(spark, execution=execution)
        session.register("s", rows)
        assert found == rows_of([session.sql(text).to_arrow()])


# -- what follows windows and patterns -----------------------------------------------------------------

GAPS = (
    f"SELECT s.ts, s.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE TUMBLING PARTITION BY k {ORDER}"
    " START AS s END AS e NEXT AS en WHEN en.ts - e.ts > 1 OR en IS NULL)"
)
AHEAD = (
    f"SELECT l.ts, l.k, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING {ORDER}"
    " LABEL AS l START AS a WHEN l.ts - a.ts <= 2 END AS e WHEN e.ts - l.ts >= 1)"
)
RISES = (
    f"SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k {ORDER} MEASURES LAST(ts) AS ts, COUNT(*) AS n"
    " PATTERN (a b+) WITHIN 4 DEFINE b AS b.ts > a.ts)"
)
FOLLOWING = [
    "SELECT k, COUNT(*) AS c, SUM(n) AS n FROM ({}) [RANGE 3] AS x GROUP BY k",
    "SELECT a.k, a.n, b.v FROM ({}) [RANGE 3] AS a, s [RANGE 2] AS b WHERE a.k = b.k",
    "SELECT COUNT(*) AS c FROM ({}) [ROWS 2] AS x",
    "SELECT ISTREAM(x.k, y.v) FROM ({}) [PARTITION BY k ROWS 1] AS x JOIN t [NOW] AS y ON x.k = y.k",
    "SELECT k, SUM(n) AS n FROM ({}) [RANGE UNBOUNDED] AS x WHERE n > 1 GROUP BY k HAVING COUNT(*) < 3",
    "SELECT k, n FROM ({}) [RANGE 2] AS x UNION SELECT k, v FROM t [RANGE 1] AS y",
    "SELECT k, SUM(n) OVER (PARTITION BY k) AS n FROM ({}) [RANGE 3] AS x",
    "SELECT RSTREAM(k, n) FROM ({}) [RANGE 3] AS x",
    "SELECT RSTREAM(k, n + 1 AS n) FROM ({}) [NOW] AS x",
]
CLAUSES = [
    "SELECT t.k, t.ts, SUM(w.n) AS n FROM ({}) WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY ts, n"
    " START AS t END AS e WHEN e.ts - t.ts >= 2)",
    "SELECT * FROM ({}) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, n MEASURES FIRST(n) AS m, LAST(ts) AS u"
    " PATTERN (a b*) DEFINE b AS b.ts - PREV(b.ts) <= 3)",
    "SELECT k, n FROM ({}) UNION ALL SELECT t.k, COUNT(w) FROM t WINDOW BY w AS (TYPE TUMBLING PARTITION BY k"
    f" {ORDER} START AS t WHEN t.v > 1)",
]


@law(2)
@given(
    log,
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 2), max_size=1),
    st.sampled_from([GAPS, AHEAD, RISES]),
    st.sampled_from(FOLLOWING + CLAUSES),
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [("a", 4, 1, 7, 4)],
    [0.4, 0.7],
    {1},
    GAPS,
    FOLLOWING[1],
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [("a", 4, 1, 7, 4)],
    [0.5],
    {0},
    AHEAD,
    CLAUSES[1],
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [],
    [0.4, 0.7],
    {1},
    RISES,
    FOLLOWING[4],
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [],
    [0.4, 0.7],
    {1},
    GAPS,
    FOLLOWING[-2],
)
@example(
    [("a", 0, 1, 1, None), ("b", 1, 1, 3, None), ("a", 3, 1, 2, 2), ("b", 4, 1, 1, 4), ("a", 8, 1, 1, 8)],
    [],
    [0.4, 0.7],
    {1},
    AHEAD,
    FOLLOWING[-1],
)
@pytest.mark.usefixtures("interpreted")
def test_what_follows_windows_and_patterns_is_that_of_the_whole_log(
    spark, tmp_path_factory, s, t, cuts, kills, clause, query
):
    folder = tmp_path_factory.mktemp("live")
    query = query.format(clause)
    logs = {name: ended(entries) for name, entries in (("s", s), ("t", t)) if f" {name} " in query}
    if not all(admitted(entries, None) for entries in logs.values()):
        return  # before its first row a stream has no clock, and what reads it waits
    found = live(spark, folder, logs, None, cuts, kills, query)
    relation = recorded(spark, logs, None).sql(query)
    if "[" not in query or "STREAM" in query:
        assert rows_of(found) == rows_of([relation.to_arrow()])
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert (+changed, -changed) == (+meant, -meant)


# -- what gathers rows of clauses: they are the relations that they are so far -----------------------------

OF_WINDOWS = (
    "SELECT s.k AS k, COUNT(w.v) AS n, SUM(w.v) AS m FROM s WINDOW BY w AS (TYPE {} PARTITION BY k {} {} {})"
)
OF_MATCHES = (
    "SELECT k, n, m FROM s MATCH_RECOGNIZE (PARTITION BY k {} MEASURES COUNT(*) AS n, SUM(v) AS m {} {} {})"
)
AROUND = [
    "SELECT k, COUNT(*) AS c, SUM(m) AS m, MIN(n) AS least FROM ({}) GROUP BY k HAVING COUNT(*) < 5",
    "SELECT COUNT(*) AS c, MAX(n) AS most FROM ({}) WHERE n > 0",
    "SELECT DISTINCT k, n FROM ({}) AS x",
    "SELECT k, n, RANK() OVER (PARTITION BY k ORDER BY n DESC) AS place FROM ({})",
    "SELECT k, n, m FROM ({}) ORDER BY n DESC, k, m LIMIT 2",
    "{} UNION SELECT k, v, 1 FROM facts",
    "{} UNION ALL SELECT k, v, 1 FROM facts",
    "SELECT x.k, x.n, t.v FROM ({}) AS x LEFT JOIN s AS t ON x.k = t.k AND t.v > 0",
    "SELECT x.n, f.v FROM ({}) AS x FULL JOIN facts AS f ON x.k = f.k",
]
AROUND_TWO = [
    "SELECT x.k, x.n, y.m FROM ({}) AS x JOIN ({}) AS y ON x.k = y.k",
    "WITH x AS ({}), y AS ({}) SELECT k, n FROM x WHERE n >= (SELECT AVG(n) FROM y)",
    "{} UNION {}",
    "{} INTERSECT ALL {}",
]
_PATTERN = f"(PARTITION BY k {ORDER} {{}} ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING {PATTERNS[0]})"
OVER_PATTERNS = [
    "SELECT ts, k, t OVER w, count(*) OVER w, lag(v) OVER w AS b, lead(v, 2, 7) OVER w AS c FROM s WINDOW"
    " w AS " + _PATTERN.format("MEASURES LAST(ts) AS t"),
    "SELECT *, t OVER w, row_number() OVER w AS n, SUM(v) OVER u AS m FROM (SELECT * FROM s WHERE v > 0) AS r"
    " WINDOW u AS (PARTITION BY k ORDER BY ts RANGE BETWEEN 2 PRECEDING AND CURRENT ROW), w AS "
    + _PATTERN.format("MEASURES LAST(ts) AS t")
    + " QUALIFY n < 3 AND (t OVER w IS NULL OR t OVER w > 2)",
    "SELECT DISTINCT r.k, rank() OVER w AS n, ntile(2) OVER w AS m FROM s AS r WHERE v > 0 WINDOW w AS "
    + _PATTERN.format(""),
]
"""What reads the rows of a partition, beside what reads the rows of a match."""

_GROUPS = f"FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k {ORDER} START AS f AT fa END AS e"
GROUPED = [
    f"SELECT f.k, SUM(COUNT(w)), MAX(SUM(w.v)) + 1 AS m, 1 + MIN(e.v), f.v AS u {_GROUPS} WHEN e.v > f.v)"
    " HAVING u > 0 GROUP BY f.k, f.v, e IS NULL HAVING MAX(COUNT(w)) < 5",
    f"SELECT to_json(struct(*)) AS j FROM (SELECT *, COUNT(*) AS c {_GROUPS} WHEN e.v > f.v) GROUP BY ALL)",
    f"SELECT size(w), f.v + fa, MAX_BY(f, fa).k, COUNT(*) AS c, COUNT_IF(e = g) {_GROUPS} NEXT AS g"
    " WHEN g.v > 1) GROUP BY size(w), f.v + fa, f = e",
    f"SELECT f = e AS is_one, MAX(CASE f WHEN e THEN COUNT(w) WHEN NULL THEN 1 END) AS n, COUNT(*) {_GROUPS}"
    " WHEN e.v <> f.v) GROUP BY f = e, COUNT(w)",
    f"SELECT MAX(COUNT(w)) AS n, SUM(e.v) {_GROUPS} WHEN e.v <> f.v) HAVING f.v < 3",
    f"SELECT f.*, RANK() OVER (PARTITION BY f.k ORDER BY COUNT(w), fa) AS r {_GROUPS} WHEN e.v > f.v)"
    " QUALIFY r < 4",
]
"""What gathers windows in the SELECT of their clause."""

NAMELESS = [
    "SELECT n, COUNT(*) AS c FROM (SELECT COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k"
    f" {ORDER} START END AS e WHEN e.v > 1)) GROUP BY n",
    "SELECT to_json(struct(*)) AS j FROM (SELECT DISTINCT * EXCEPT (w) FROM s WINDOW BY w AS (TYPE TUMBLING"
    f" PARTITION BY k {ORDER} LABEL NEXT AS ln WHEN ln.v > 0 START AS b WHEN b.v > 0 END AS e"
    " WHEN e.v = b.v))",
    f"SELECT SUM(COUNT(w)) AS n, MAX(e.v) AS m FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k {ORDER}"
    " START UNBOUNDED END AS e WHEN e.v > 1) GROUP BY e.k",
    f"SELECT DISTINCT COUNT(w) AS n FROM s WINDOW BY w AS (TYPE TUMBLING PARTITION BY k {ORDER}"
    " START UNBOUNDED END AS e AT ea WHEN e.v > 1)",
    f"SELECT DISTINCT n OVER w AS n FROM s WINDOW w AS (PARTITION BY k {ORDER} MEASURES COUNT(*) AS n"
    " ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a+) DEFINE a AS v > 1)",
]
"""Windows whose label row has no name, and rows of windows with patterns without their rowtime."""

_EMPTY = (
    "SELECT {} FROM s MATCH_RECOGNIZE (PARTITION BY k {} MEASURES COUNT(*) AS n, MATCH_NUMBER() AS i"
    " {} PATTERN ({}) {} DEFINE a AS v > 1)"
)
EMPTY = [
    _EMPTY.format("DISTINCT n", ORDER, "", "a*", ""),
    _EMPTY.format("k, COUNT(*) AS c, SUM(n) AS n", ORDER, SKIPS[1], "a? | ^", "") + " GROUP BY k",
    _EMPTY.format("k, i, n, RANK() OVER (ORDER BY n) AS r", ORDER, SKIPS[2], "a*?", "WITHIN 2"),
    _EMPTY.format("k, COUNT(*) AS c", "ORDER BY ts", "", "a* $", "") + " GROUP BY k",
    _EMPTY.format("k, MAX(n) AS n", ORDER, "", "{- a -}*", "") + " GROUP BY k",
]
"""Patterns that match no row, too."""


@st.composite
def gathering(draw):
    """A query that gathers rows of clauses over the stream s, which do not select its rowtime."""

    def clause():
        if draw(st.booleans()):
            kind = draw(st.sampled_from(["SLIDING", "TUMBLING"]))
            start, end = draw(st.sampled_from(STARTS)), draw(st.sampled_from(ENDS))
            return OF_WINDOWS.format(kind, ORDER, start, end)
        mode, skip = draw(st.sampled_from(MODES[:2])), draw(st.sampled_from(SKIPS))
        return OF_MATCHES.format(ORDER, mode, skip, draw(st.sampled_from(PATTERNS)))

    if not draw(st.integers(0, 3)):
        return draw(st.sampled_from([*OVER_PATTERNS, *GROUPED, *NAMELESS, *EMPTY]))
    if draw(st.booleans()):
        return draw(st.sampled_from(AROUND)).format(clause())
    return draw(st.sampled_from(AROUND_TWO)).format(clause(), clause())


_WINDOWS = OF_WINDOWS.format("SLIDING", ORDER, STARTS[0], ENDS[0])
_MATCHES = OF_MATCHES.format(ORDER, "ONE ROW PER MATCH", SKIPS[0], PATTERNS[0])


@law(3)
@given(
    log,
    st.lists(st.floats(0, 1), min_size=1, max_size=2),
    st.sets(st.integers(0, 1), max_size=1),
    gathering(),
)
@example(EVENTS, [0.5], {0}, AROUND[0].format(_WINDOWS))
@example(EVENTS, [0.4, 0.8], {1}, OVER_PATTERNS[0])
@example(EVENTS, [0.5], set(), OVER_PATTERNS[1])
@example(EVENTS, [0.3, 0.6], {0}, OVER_PATTERNS[2])
@example(EVENTS, [0.4, 0.8], {0}, GROUPED[0])
@example(EVENTS, [0.5], {1}, GROUPED[1])
@example(EVENTS, [0.5], {0}, GROUPED[3])
@example(EVENTS, [0.5], {0}, GROUPED[5])
@example(EVENTS, [0.5], {0}, NAMELESS[1])
@example(EVENTS, [0.5], {1}, NAMELESS[3])
@example(EVENTS, [0.4, 0.7], {1}, EMPTY[0])
@example(EVENTS, [0.5], {1}, EMPTY[2])
@example(EVENTS, [0.5], {1}, EMPTY[4])
@example(EVENTS, [0.4, 0.7], {1}, AROUND[3].format(_MATCHES))
@example(EVENTS, [0.4, 0.7], set(), AROUND[6].format(_WINDOWS))
@example(EVENTS, [0.6], set(), AROUND[7].format(_MATCHES))
@example(EVENTS, [0.3, 0.8], {0}, AROUND_TWO[0].format(_WINDOWS, _MATCHES))
@example(EVENTS, [0.6], {0}, AROUND_TWO[1].format(_MATCHES, _WINDOWS))
@example(
    EVENTS,
    [0.5],
    {1},
    f"SELECT s.k, COUNT(*) AS n, MAX(e.v) AS m FROM s WINDOW BY w AS (TYPE SLIDING {ORDER} {STARTS[0]}"
    f" {ENDS[0]}) GROUP BY s.k HAVING COUNT(*) > 0",
)
@example(
    EVENTS,
    [0.5],
    {1},
    f"SELECT DISTINCT s.k FROM s WINDOW BY w AS (TYPE SLIDING {ORDER} {STARTS[0]} {ENDS[0]})"
    " ORDER BY k LIMIT 1",
)
@pytest.mark.usefixtures("interpreted")
def test_what_gathers_rows_of_clauses_adds_up_to_that_of_the_whole_log(
    spark, tmp_path_factory, s, cuts, kills, query
):
    logs = {"s": ended(s)}
    if not admitted(logs["s"], None):
        return
    spark.sql("SELECT explode(array(0, 1)) AS k, 2 AS v").createOrReplaceTempView("facts")
    changes = total(live(spark, tmp_path_factory.mktemp("live"), logs, None, cuts, kills, query))
    found: Counter = Counter()
    for (_, values), diff in changes.items():
        found[values] += diff
    rows = table([(*row, None) for _, *row in admitted(logs["s"], None)]).drop_columns("b")
    for execution in ("batch", "reference"):
        session = Session(spark, execution=execution)
        session.register("s", rows)
        meant = Counter(tuple(row.values()) for row in session.sql(query).to_arrow().to_pylist())
        assert (+found, -found) == (meant, Counter())

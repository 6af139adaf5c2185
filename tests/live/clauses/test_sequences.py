"""WINDOW BY and MATCH_RECOGNIZE over live streams: what is given when, what is refused, what is said."""

from __future__ import annotations

import datetime

import pytest

from tests.live.stepping import total
from windrow import Memory, Session, WindrowError
from windrow.explain.explain_live import explain_live
from windrow.spark.live.checkpoints.checkpoint import Checkpoint
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.micro_batches.around_clause import AroundClause
from windrow.spark.live.micro_batches.windowed_steps import WindowedSteps
from windrow.testing import Script

pytestmark = pytest.mark.usefixtures("interpreted")
COLUMNS = "ts timestamp, k string, v int, b timestamp"
SESSION_WINDOWS = (
    "SELECT s.k, s.ts AS begins, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE TUMBLING PARTITION BY k"
    " ORDER BY ts START AS s END AS e NEXT AS x WHEN x IS NULL OR x.ts - e.ts > INTERVAL 10 MINUTES)"
)
PATTERN = (
    "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k MEASURES MATCH_NUMBER() AS n, FIRST(a.ts) AS since,"
    " LAST(v) AS v PATTERN (a+ b) WITHIN INTERVAL 10 MINUTES DEFINE a AS a.v < 10)"
)


#: What takes one micro-batch after the other: one process, or each goes on where another has stopped.
WAYS = {"one": [micro_batches_of], "turns": [micro_batches_of] * 2}


def at(minute):
    return datetime.datetime(2026, 1, 1, 9) + datetime.timedelta(minutes=minute)


@pytest.fixture(scope="module")
def session(spark, tmp_path_factory):
    """A session with the live stream s, and a table."""
    session = Session(spark.newSession())
    arriving = session.spark.readStream.schema(COLUMNS).parquet(str(tmp_path_factory.mktemp("arriving")))
    session.stream("s", arriving, rowtime="ts", bound="b")
    session.spark.sql("CREATE TEMPORARY VIEW names AS SELECT 'a' AS k, 'first' AS name")
    session.sql(f"CREATE TEMPORARY VIEW firsts AS {SESSION_WINDOWS}")
    return session


_FIRST = 1_767_258_000_000_000  # at(0) in UTC


def taken(session, query, folder, batches):
    """The rows that each micro-batch of entries gives, and the rows that are kept after it.

    Of one process, and of one for each micro-batch.
    """
    ways = [taken_by(session, query, folder / name, batches, by) for name, by in WAYS.items()]
    assert ways[0] == ways[1]
    return ways[0]


def taken_by(session, query, folder, batches, by):
    sink, plan = Memory(), session.sql(query)._live
    steps = by[0](plan, sink, folder, "delta", "keep")
    ((_, name, stream),) = steps.streams()
    found = []
    for number, entries in enumerate(batches):
        if number and len(by) > 1:
            steps.close()
            steps = by[number % len(by)](plan, sink, folder, "delta", "keep")
        rows = session.spark.createDataFrame(entries, COLUMNS)
        steps.take(steps.input({name: rows.select(*stream.live.columns)}), number)
        given = sink.batches[number].to_pylist() if number in sink.batches else []
        found.append((sorted(map(_plain, given)), steps.progress["rows_in_windows"]))
    _state_is_told(steps, [time for entries in batches for time, *_ in entries])
    steps.close()
    return found


def _state_is_told(steps, times):
    rows = {row.kind: row for row in steps.state().rows}
    assert rows["window"].rows == steps.progress["rows_in_windows"]
    assert (rows["window"].oldest is None) == (rows["window"].rows == 0)
    assert rows["window"].oldest in [None, *(str(time) for time in times)]
    assert rows["window"].name.startswith(("WINDOW BY", "MATCH_RECOGNIZE"))
    # EXPLAIN's line of a clause
    assert rows["window"].why == steps.context.plan.reasons()[next(iter(steps.context.plan.windows()))]
    assert rows["window"].why in explain_live(steps.context.plan)


def _plain(row):
    values = row.values()
    return tuple(
        value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value for value in values
    )


def test_windows_by_functions_of_several_rows(session, tmp_path):
    query = (
        "SELECT s.ts AS begins, e.v FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS s"
        " ONLY END AS e WHEN abs(e.v - s.v) >= 5 OR CASE WHEN s.v < e.v THEN s.k || e.k END = 'ab')"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "a", 2, at(2))],
        [(at(2), "b", 3, at(3))],
        [(at(4), "b", 9, at(5))],
    ]
    assert taken(session, query, tmp_path, batches) == [
        ([], 2),
        ([(at(0), 3), (at(1), 3)], 1),
        ([(at(2), 9)], 1),
    ]


def test_windows_by_conditions_that_spark_evaluates_over_pairs_of_rows(session, tmp_path):
    """Of the rows that are kept it has the fields that it reads, of types that only Spark compares."""
    query = (
        "SELECT s.ts AS begins, e.v FROM"
        " (SELECT *, make_ym_interval(0, v) AS i, k COLLATE UTF8_LCASE AS c FROM s)"
        " WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS s ONLY END AS e WHEN e.c = s.c AND e.i > s.i)"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "B", 2, at(2))],
        [(at(2), "A", 3, at(3))],
        [(at(4), "b", 9, at(5))],
    ]
    assert taken(session, query, tmp_path, batches) == [
        ([], 2),
        ([(at(0), 3)], 2),
        ([(at(1), 9)], 2),
    ]


def test_values_of_type_variant_are_retained_and_given(session, tmp_path):
    query = (
        "SELECT s.ts AS begins, to_json(s.j) AS j, variant_get(e.j, '$.v', 'bigint') AS v FROM"
        " (SELECT *, parse_json(concat('{\"v\": ', v, '}')) AS j FROM s) WINDOW BY w AS (TYPE SLIDING"
        " PARTITION BY k ORDER BY ts START AS s END AS e WHEN e.v > s.v)"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "b", 2, at(2))],
        [(at(2), "a", 3, at(3))],
        [(at(4), "b", 9, at(5))],
    ]
    assert taken(session, query, tmp_path, batches) == [
        ([], 2),
        ([(at(0), '{"v":1}', 3)], 2),
        ([(at(1), '{"v":2}', 9)], 2),
    ]


def test_what_stands_beside_a_clause_may_give_several_rows_of_each(session, tmp_path):
    query = (
        "SELECT q.ts, q.u, x FROM (SELECT s.*, e.v AS last FROM (SELECT *, v + i AS u FROM s"
        " LATERAL VIEW explode(array(0, 10)) a AS i) WINDOW BY w AS (TYPE SLIDING PARTITION BY i ORDER BY ts"
        " START AS s WHEN s.u > 10 ONLY END AS e WHEN e.v > s.v)) q"
        " LATERAL VIEW explode(array(u, last)) b AS x"
    )
    batches = [[(at(0), "a", 1, None), (at(1), "a", 2, at(2))], [(at(2), "b", 3, at(3))]]
    assert taken(session, query, tmp_path, batches) == [
        ([(at(0), 11, 2), (at(0), 11, 11)], 1),
        ([(at(1), 12, 3), (at(1), 12, 12)], 1),
    ]


def test_columns_that_arrow_computes_need_no_job_of_spark(session, tmp_path, monkeypatch):
    def asked(*_):
        raise AssertionError("Spark computes columns of the clause")

    monkeypatch.setattr(AroundClause, "_by_spark", asked)
    query = (
        "SELECT s.ts AS begins, s.u FROM (SELECT *, v * 2 AS u FROM s WHERE v > 0) WINDOW BY w AS"
        " (TYPE SLIDING PARTITION BY k ORDER BY ts START AS s END AS e WHEN e.u > s.u + 1)"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "a", 0, None), (at(1), "b", 3, at(2))],
        [(at(2), "a", 2, at(3))],
    ]
    assert taken_by(session, query, tmp_path, batches, [micro_batches_of]) == [([], 2), ([(at(0), 2)], 2)]


def test_an_alias_that_is_a_variables_name_reads_no_row(session, tmp_path):
    """So a window need not wait until that row has come."""
    query = SESSION_WINDOWS.replace("NEXT AS x WHEN x IS NULL OR x.ts", "NEXT AS n WHEN n IS NULL OR n.ts")
    batches = [[(at(0), "a", 1, None), (at(4), "a", 2, at(5))], [(None, None, None, at(30))]]
    assert taken(session, query, tmp_path, batches) == [([], 2), ([("a", at(0), 2)], 0)]


@pytest.mark.long
def test_bounds_alone_end_sessions_and_matches(session, tmp_path):
    """Times are TIMESTAMPs, whose differences are taken as the session's clock shows them."""

    def bound(minute):
        return [(None, None, None, at(minute))]

    batches = [
        [(at(0), "a", 1, None), (at(4), "a", 2, None), (at(4), "b", 3, at(5))],
        bound(14),
        bound(15),
        [(at(16), "a", 20, at(17))],
        bound(60),
    ]
    windows = taken(session, SESSION_WINDOWS, tmp_path / "windows", batches)
    assert windows == [
        ([], 3),
        ([], 3),
        ([("a", at(0), 2), ("b", at(4), 1)], 0),
        ([], 1),
        ([("a", at(16), 1)], 0),
    ]
    # until 10 minutes after the first row more may belong to the match; each key keeps a row, to count on
    matches = taken(session, PATTERN, tmp_path / "matches", batches)
    assert matches == [([], 3), ([("a", 1, at(0), 2)], 2), ([], 2), ([], 2), ([], 2)]
    # what has lasted 10 minutes is a match, at the bound of its end without any row
    lasting = PATTERN.replace("(a+ b) WITHIN", "(a b?) DURATION")
    matches = taken(session, lasting, tmp_path / "durations", [*batches[:2], bound(21)])
    assert matches == [([], 3), ([("a", 1, at(0), 2), ("b", 1, at(4), 3)], 2), ([], 2)]
    # as many minutes as the first row says: what begins with 9 at 0 can go on until 9, with 1 at 4 until 5
    own = PATTERN.replace("INTERVAL 10 MINUTES", "v MINUTES")
    batches = [[(at(0), "a", 9, None), (at(4), "a", 8, None), (at(4), "b", 1, at(5))], bound(9), bound(13)]
    matches = taken(session, own, tmp_path / "of a column", batches)
    assert matches == [([], 3), ([("a", 1, at(0), 8)], 2), ([], 2)]


def test_tumbling_windows_with_a_label_are_given_when_none_to_come_begins_before_them(session, tmp_path):
    query = (
        "SELECT l.k, l.ts, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE TUMBLING PARTITION BY k ORDER BY ts"
        " LABEL AS l START AS s WHEN l.ts - s.ts <= INTERVAL 2 MINUTES END AS e WHEN e = l)"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "a", 2, None), (at(2), "a", 3, at(3))],
        # three rows up to the label row, none of which is in the first window
        [(at(3), "a", 4, None), (at(3), "b", 5, at(4))],
        [(None, None, None, at(9))],
        [(at(9), "a", 6, at(10))],
    ]
    assert taken(session, query, tmp_path, batches) == [
        ([("a", at(0), 1)], 2),
        ([("a", at(3), 3), ("b", at(3), 1)], 3),
        ([], 0),
        ([("a", at(9), 1)], 1),
    ]


def test_a_row_of_a_window_with_a_pattern_is_given_when_its_match_is_known(session, tmp_path):
    query = (
        "SELECT k, ts, n OVER w, max(v) OVER w AS most FROM s WINDOW w AS (PARTITION BY k ORDER BY ts"
        " MEASURES COUNT(*) AS n ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING AFTER MATCH SKIP TO NEXT ROW"
        " PATTERN (a b+) DEFINE b AS b.v > PREV(b.v))"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "a", 2, None), (at(2), "b", 5, at(3))],
        # the frame of the first row is whole; of b's row it is known that no match begins there
        [(at(3), "a", 3, None), (at(4), "b", 5, at(5))],
        [(at(6), "a", 1, at(7))],
    ]
    assert taken(session, query, tmp_path, batches) == [
        ([], 3),
        ([("a", at(0), 3, 3), ("b", at(2), None, None)], 3),
        ([("a", at(1), 2, 3), ("a", at(3), None, None)], 2),
    ]


def test_conditions_and_measures_read_tables_by_subqueries(session, tmp_path):
    """`names` has one name, of five letters, for the key a."""
    query = (
        "SELECT * FROM s MATCH_RECOGNIZE ("
        " MEASURES FIRST(ts) AS t, LAST(v) + (SELECT COUNT(*) FROM names) AS v"
        " PATTERN (a b) DEFINE a AS a.k IN (SELECT k FROM names), b AS a.k IN (SELECT k FROM names)"
        " AND b.v > (SELECT MAX(length(name)) FROM names)"
        " AND NOT EXISTS (SELECT 1 FROM names n WHERE n.k = b.k))"
    )
    batches = [
        [(at(0), "a", 1, None), (at(1), "b", 7, at(2))],
        [(at(2), "b", 9, at(3))],
        [(at(4), "a", 9, at(5)), (at(6), "b", 5, at(7))],
        [(at(8), "a", 9, None), (at(9), "b", 6, at(10))],
    ]
    assert taken(session, query, tmp_path, batches) == [
        ([(at(0), 8)], 0),
        ([], 0),
        ([], 0),
        ([(at(8), 7)], 0),
    ]


@pytest.mark.parametrize("anew", [False, True])
def test_windows_of_matches_are_evaluated_in_memory(session, tmp_path, anew):
    """Also where the query is started anew for each micro-batch."""
    query = f"SELECT k, COUNT(*) AS n, SUM(v) AS v FROM ({PATTERN}) [RANGE UNBOUNDED] GROUP BY k"
    batches = [
        [(at(0), "a", 1, None), (at(4), "a", 2, None), (at(4), "b", 3, at(5))],
        [(None, None, None, at(13))],  # the row of b at 4 may still begin a match
        [(at(20), "a", 20, at(17))],
        [(at(17), "a", 3, None), (at(18), "a", 30, at(40))],
    ]
    # what was given, how many rows wait, and before which minute all is known
    meant = [
        ({}, 0, None),
        ({(at(0), ("a", 1, 2)): 1}, 0, 4),
        ({}, 1, 17),
        ({(at(17), ("a", 1, 2)): -1, (at(17), ("a", 2, 32)): 1}, 0, 40),
    ]
    plan, sink = session.sql(query)._live, Memory()
    assert [one.retains for one in plan.unbounded() if one.operator.endswith(") [RANGE UNBOUNDED]")] == [
        "some numbers for each key"
    ]
    steps, found, rows_in = micro_batches_of(plan, sink, tmp_path, "diff", "keep"), [], 0
    assert isinstance(steps.steps, WindowedSteps)
    for number, entries in enumerate(batches):
        if anew:
            steps.close()
            steps = micro_batches_of(plan, sink, tmp_path, "diff", "keep")
        rows = session.spark.createDataFrame(entries, COLUMNS)
        ((_, name, stream),) = steps.streams()
        steps.take(steps.input({name: rows.select(*stream.live.columns)}), number)
        changes = total([sink.batches[number]]) if number in sink.batches else {}
        told = {(time.replace(tzinfo=None), row): diff for (time, row), diff in changes.items()}
        rows_in += sum(time is not None for time, *_ in entries)
        known = steps.progress
        assert known["rows_used"] == rows_in - known["rows_buffered"]
        reached = known["frontier"]
        found.append((told, known["rows_buffered"], reached and (reached - _FIRST) // 60_000_000))
    kept = {row.name: row.rows for row in steps.state().rows if row.kind == "window"}
    steps.close()
    assert found == meant
    # of each key a row, to count matches on
    assert [rows for name, rows in kept.items() if name.endswith("): MATCH_RECOGNIZE")] == [2]
    assert [name for name in kept if name.endswith(") [RANGE UNBOUNDED]")]


@pytest.mark.parametrize(
    ("query", "envelope"),
    [
        ("SELECT k, begins, n FROM firsts", "delta"),
        ("SELECT k, COUNT(*) AS n FROM firsts [RANGE 1 HOUR] GROUP BY k", "diff"),
    ],
)
def test_clauses_behind_others_write_what_changes(session, tmp_path, monkeypatch, query, envelope):
    """Not all that they retain, also where the query is started anew."""
    written = []

    def write(self, name, chunk, table):
        written.append(table.num_rows)
        return write_chunk(self, name, chunk, table)

    write_chunk = Checkpoint.write_chunk
    monkeypatch.setattr(Checkpoint, "write_chunk", write)
    plan, sink, count = session.sql(query)._live, Memory(), 1000
    batches = [
        [(at(0), f"k{key}", 1, None) for key in range(count)],
        [(None, None, None, at(1))],
        [(at(2), "k7", 1, at(3))],
    ]
    for number, entries in enumerate(batches):
        written.clear()
        steps = micro_batches_of(plan, sink, tmp_path, envelope, "keep")
        rows = session.spark.createDataFrame(entries, COLUMNS)
        ((_, name, stream),) = steps.streams()
        steps.take(steps.input({name: rows.select(*stream.live.columns)}), number)
        assert steps.progress["rows_in_windows"] == (
            0 if number == 0 else count if number == 1 else count + 1
        )
        steps.close()
    assert 0 < sum(written) < 20
    assert [path.name for path in (tmp_path / "windrow" / "2").iterdir()] == ["step.json"]


REFUSED = [
    ("ORDER_NOT_ROWTIME", "SELECT * FROM s {windows:ORDER BY v}", "v"),
    ("ORDER_NOT_ROWTIME", "SELECT * FROM s {windows:ORDER BY ts DESC}", "ts"),
    (
        "ORDER_NOT_ROWTIME",
        "SELECT * FROM (SELECT ts + INTERVAL 1 DAY AS ts, k FROM s) {windows:ORDER BY ts}",
        "ts",
    ),
    ("UNSUPPORTED_STREAM", "SELECT STREAM DISTINCT t.k FROM s {windows:ORDER BY ts}", "DISTINCT"),
    (
        "UNSUPPORTED_STREAM",
        "SELECT STREAM t.k, SUM(COUNT(w)) AS n FROM s {windows:ORDER BY ts} GROUP BY t.k",
        "GROUP",
    ),
    (
        "UNSUPPORTED_STREAM",
        "SELECT k FROM (SELECT DISTINCT t.ts, t.k FROM s {windows:ORDER BY ts}) [RANGE 1 HOUR]",
        "DISTINCT",
    ),
    ("SYSTEM_CLOCK", "SELECT * FROM s WHERE ts < now() {windows:ORDER BY ts}", "now()"),
    (
        "NO_CHECKPOINT",
        "CREATE TABLE x AS SELECT * FROM s {windows:ORDER BY ts}",
        "SELECT * FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS t END AS e )",
    ),
    (
        "UNKNOWN_ROWTIME",
        "CREATE TEMPORARY VIEW x AS SELECT e.ts FROM s {windows:ORDER BY ts}",
        "SELECT e.ts FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS t END AS e )",
    ),
    (
        "UNKNOWN_ROWTIME",
        "SELECT COUNT(*) FROM (SELECT t.k FROM s {windows:ORDER BY ts}) [RANGE 1 HOUR]",
        "SELECT t.k FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS t END AS e )",
    ),
    (
        "DUPLICATE_COLUMN",
        "CREATE TEMPORARY VIEW x AS SELECT t.ts, e.ts FROM s {windows:ORDER BY ts}",
        "SELECT t.ts, e.ts FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS t END AS e )",
    ),
    (
        "ORDER_NOT_ROWTIME",  # a window is at its label row, not where it ends
        "SELECT * FROM (SELECT t.ts AS since, e.ts FROM s {windows:ORDER BY ts}) MATCH_RECOGNIZE"
        " (ORDER BY ts PATTERN (a) DEFINE a AS TRUE)",
        "ts",
    ),
    (
        "ORDER_NOT_ROWTIME",
        "SELECT * FROM (SELECT ts, b FROM (SELECT ts, ts AS b FROM s) UNION ALL SELECT b, ts FROM"
        " (SELECT ts, ts + INTERVAL 1 DAY AS b FROM s)) {windows:ORDER BY ts}",
        "UNION",
    ),
    ("STREAM_WHERE_RELATION_IS_NEEDED", "SELECT * FROM firsts, s [RANGE 1 HOUR] AS r", "firsts"),
    (
        "UNSUPPORTED_STREAM",  # pairs of rows, which Spark would join in every step
        "SELECT * FROM s MATCH_RECOGNIZE (PATTERN (a b) DEFINE b AS reverse(concat(a.k, b.k)) = 'ba')",
        "MATCH_RECOGNIZE (PATTERN (a b) DEFINE b AS reverse(concat(a.k, b.k)) = 'ba')",
    ),
    (
        "UNSUPPORTED_STREAM",  # the rank of a row in its partition
        "SELECT STREAM k, ts, rank() OVER w FROM s WINDOW w AS (ORDER BY ts"
        " ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a b*) DEFINE a AS TRUE)",
        None,
    ),
    (
        "ORDER_NOT_ROWTIME",
        "SELECT k, LAST(v) OVER (ORDER BY v ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a b*)"
        " DEFINE a AS TRUE) AS v FROM s",
        "v",
    ),
    (
        "UNSUPPORTED_STREAM",  # it has the changes of later instants too
        "SELECT c.k FROM CHANGELOG OF (SELECT k FROM s [NOW]) AS c JOIN s [NOW] AS n ON c.k = n.k",
        "CHANGELOG OF (SELECT k FROM s [NOW])",
    ),
    (
        "UNSUPPORTED_STREAM",
        "CREATE TEMPORARY VIEW x AS SELECT * FROM CHANGELOG OF (SELECT k FROM s [NOW])",
        None,
    ),
    (
        "INVALID_SUBQUERY_EXPRESSION.STREAMING_QUERY",
        "SELECT * FROM names MATCH_RECOGNIZE (ORDER BY k PATTERN (a) DEFINE a AS name IN (SELECT k FROM s))",
        None,
    ),
    (
        "UNSUPPORTED_STREAM",  # a step has no rows of it but its own
        "SELECT * FROM s MATCH_RECOGNIZE (MEASURES (SELECT MAX(v) FROM s) AS m PATTERN (a) DEFINE a AS TRUE)",
        "(SELECT MAX(v) FROM s)",
    ),
    (
        "UNSUPPORTED_STREAM",
        "SELECT * FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts"
        " START AS t WHEN t.v > (SELECT MAX(v) FROM s) END AS e)",
        "t.v > (SELECT MAX(v) FROM s)",
    ),
    (
        "MISSING_ORDER_BY",
        "SELECT * FROM (SELECT * FROM s) MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS TRUE)",
        "PATTERN",
    ),
]


@pytest.mark.parametrize(("condition", "query", "fragment"), REFUSED)
def test_what_is_not_run_live_is_refused_at_its_place(session, condition, query, fragment):
    before, _, rest = query.partition("{windows:")
    if rest:
        order, _, after = rest.partition("}")
        query = f"{before}WINDOW BY w AS (TYPE SLIDING {order} START AS t END AS e ){after}"
    with pytest.raises(WindrowError) as raised:
        session.sql(query)
    context = raised.value.getQueryContext()
    assert raised.value.condition == condition, raised.value
    assert context, raised.value
    assert fragment is None or context[0].fragment() == fragment


def test_explain_says_what_is_kept(session):
    def live(query):
        plan = session.sql(f"EXPLAIN {query}").collect()[0][0]
        return dict(line.split(None, 1) for line in plan.partition("live\n")[2].splitlines() if line.strip())

    windows = live(SESSION_WINDOWS)
    assert windows["stream"] == "s, by ts, UNORDERED"
    assert windows["emitted"] == "when its last row is known, by a later row or by the watermark"
    assert live(PATTERN)["state"] == "rows of matches that may continue, which WITHIN bounds"
    of_column = live(PATTERN.replace("INTERVAL 10 MINUTES", "v MINUTES"))
    assert of_column["state"] == "rows of matches that may continue, which WITHIN bounds"
    assert live(PATTERN.replace("WITHIN INTERVAL 10 MINUTES", ""))["state"].endswith("do not bound them")
    lasting = PATTERN.replace("WITHIN", "DURATION")
    assert live(lasting)["state"] == "rows from the first one on whose time is not over"
    assert "not bounded" in live(SESSION_WINDOWS)["state"]
    by_pairs = live(SESSION_WINDOWS.replace("x.ts - e.ts >", "upper(x.k || s.k) = 'AB' OR x.ts - e.ts >"))
    assert by_pairs["pairs"] == "Spark evaluates them over retained and new rows in each micro-batch"
    assert by_pairs["emitted"] == "once its last row has arrived, and the rows beside it are known"
    frames = (
        "SELECT *, last(v) OVER (ORDER BY ts ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING PATTERN (a b*)"
        " DEFINE b AS b.v > a.v) AS l FROM s"
    )
    assert live(frames)["emitted"] == "when no later row can change the row's match"
    assert live(frames)["state"] == "rows whose match may continue: the last 2 rows of each partition"
    assert "not bounded" in live(frames.replace("2 FOLLOWING", "UNBOUNDED FOLLOWING"))["state"]
    session.check(PATTERN)
    assert session.sql(PATTERN).plan().partition("live\n")[2]


def test_a_named_stream_is_read_as_recorded_and_live(spark, tmp_path):
    session = Session(spark.newSession())
    session.sql(f"CREATE STREAM orders (ROWTIME ts BIGINT, k STRING, v INT) LOCATION '{tmp_path / 'orders'}'")
    session.sql("INSERT INTO orders VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3), (4, 'a', 1), (9, 'b', 1)")
    query = session.sql(
        "SELECT * FROM (SELECT o.*, name FROM orders AS o LEFT JOIN VALUES ('a', 'first') AS n (key, name)"
        " ON k = key) MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts"
        " MEASURES FIRST(ts) AS since, LAST(name) AS name PATTERN (a b+) DEFINE b AS b.v > PREV(b.v))"
    )
    in_order = session.sql(
        "SELECT * FROM orders MATCH_RECOGNIZE (PARTITION BY k MEASURES LAST(ts) AS until PATTERN (a+ $)"
        " DEFINE a AS a.v > 0)"
    )
    assert sorted(map(tuple, in_order.collect())) == [("a", 4), ("b", 9)]
    recorded = [tuple(row) for row in query.collect()]
    assert recorded == [("a", 1, "first")]
    sink = Memory()
    running = query.start(sink, checkpoint=tmp_path / "checkpoint", on_unbounded="ignore")
    running.process_all_available()
    running.stop()
    assert [tuple(row.values()) for batch in sink.batches.values() for row in batch.to_pylist()] == recorded
    session.sql("DROP STREAM orders")


def test_rows_of_a_stream_and_a_table_have_columns_of_one_name(spark):
    script = Script(Session(spark.newSession()))
    script.stream("orders", "at BIGINT, k STRING, v INT", rowtime="at", unit="minutes")
    script.session.sql("CREATE TEMPORARY VIEW least AS SELECT * FROM VALUES ('a', 1), ('b', 2) AS t(k, v)")
    script.rows("orders", (1, "a", 5), (2, "b", 6), (3, "a", 7), (4, "b", 8)).bound("orders", 4)
    played = script.play(
        "SELECT s.o.at, s.least.v AS least, s.o.v, SUM(w.o.v) AS total FROM orders AS o JOIN least USING (k)"
        " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY at"
        " START AS s END NEXT AS e WHEN e.o.v > s.least.v + s.o.v)",
        cuts=range(3),
        kills=[1],
    )
    rows = [tuple(row.values()) for step in played.steps for row in step]
    assert sorted(rows) == [(1, 1, 5, 5), (2, 2, 6, 14), (3, 1, 7, 7), (4, 2, 8, 8)]

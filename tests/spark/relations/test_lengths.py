"""Lengths by parameters and constant expressions: one value, wherever it stands and however it is written."""

from __future__ import annotations

import datetime

import pytest

from windrow import Session
from windrow.errors import WindrowError
from windrow.relation_kinds import VaryingRelation

pytestmark = pytest.mark.usefixtures("interpreted")

MINUTES = datetime.timedelta(minutes=1)


@pytest.fixture(scope="module")
def session(spark):
    """Streams of a row each second: of integers, and of timestamps with what a log has beside them."""
    session = Session(spark)
    spark.sql("SELECT id AS ts, id % 2 AS k, id AS v FROM range(6)").createOrReplaceTempView("len_rows")
    session.sql("CREATE STREAM len (ROWTIME ts BIGINT UNIT SECONDS, k INT, v INT) FROM len_rows")
    spark.sql(
        "SELECT timestamp_seconds(id * 60) AS ts, timestamp_seconds(id * 60) AS p, id % 2 AS k, id AS v "
        "FROM range(6)"
    ).createOrReplaceTempView("len_log")
    session.sql("CREATE STREAM timed (ROWTIME ts TIMESTAMP, PTIME p TIMESTAMP, k INT, v INT) FROM len_log")
    return session


def rows(relation):
    shown = relation.changelog("op") if isinstance(relation, VaryingRelation) else relation
    return sorted(tuple(row) for row in shown.collect())


COUNTED = "SELECT v FROM {}"
TUMBLED = "SELECT wend, COUNT(*) AS n FROM {} GROUP BY wend"
MATCHED = (
    "SELECT * FROM len_log MATCH_RECOGNIZE (ORDER BY ts MEASURES FIRST(v) AS f, LAST(v) AS l "
    "PATTERN (A+) {} DEFINE A AS TRUE)"
)
NAVIGATED = (
    "SELECT * FROM len_log MATCH_RECOGNIZE (ORDER BY ts MEASURES {} AS m PATTERN (A+ B) "
    "DEFINE A AS v < 4, B AS v > PREV(v, 1))"
)
DEFINED = NAVIGATED.replace("{}", "v").replace("v > PREV(v, 1)", "{}")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("template", "written", "meant", "args"),
    [
        (NAVIGATED, "LAST(A.v, :n)", "LAST(A.v, 2)", {"n": 2}),
        (NAVIGATED, "FIRST(A.v, :n - 1)", "FIRST(A.v, 1)", {"n": 2}),
        (NAVIGATED, "PREV(LAST(A.v, ?), ?)", "PREV(LAST(A.v, 0), 2)", [0, 2]),
        (DEFINED, "v > PREV(v, :n) + 2", "v > PREV(v, 3) + 2", {"n": 3}),
        (COUNTED, "len [RANGE :n]", "len [RANGE 3]", {"n": 3}),
        (COUNTED, "len [RANGE :n SECONDS]", "len [RANGE 3]", {"n": 3}),
        (COUNTED, "len [RANGE :slide SLIDE :range]", "len [RANGE 4 SLIDE 2]", {"slide": 4, "range": 2}),
        (COUNTED, "len [RANGE ? SLIDE ?]", "len [RANGE 4 SLIDE 2]", [4, 2]),
        (COUNTED, "len [RANGE 1 + 2]", "len [RANGE 3]", {}),
        (COUNTED, "len [RANGE (1 + ?) SECONDS]", "len [RANGE 3]", [2]),
        (COUNTED, "len [RANGE 0.5 * 6]", "len [RANGE 3]", {}),
        (COUNTED, "len [RANGE INTERVAL '3' SECONDS]", "len [RANGE 3]", {}),
        (COUNTED, "len [ROWS :n]", "len [ROWS 2]", {"n": 2}),
        (COUNTED, "len [ROWS 2 * 2 SLIDE :rows]", "len [ROWS 4 SLIDE 2]", {"rows": 2}),
        (COUNTED, "len [PARTITION BY k ROWS :n]", "len [PARTITION BY k ROWS 2]", {"n": 2}),
        (
            COUNTED,
            "len [PARTITION BY k ROWS ? RANGE ? SLIDE 1 + ?]",
            "len [PARTITION BY k ROWS 2 RANGE 4 SLIDE 2]",
            [2, 4, 1],
        ),
        (COUNTED, "timed [RANGE 2 * INTERVAL 1 MINUTE]", "timed [RANGE 2 MINUTES]", {}),
        (COUNTED, "timed [RANGE :w]", "timed [RANGE 2 MINUTES]", {"w": 2 * MINUTES}),
        (COUNTED, "timed [RANGE INTERVAL 1 MINUTE + INTERVAL '60' SECOND]", "timed [RANGE 2 MINUTES]", {}),
        (
            TUMBLED,
            "TUMBLE(TABLE len_log, DESCRIPTOR(ts), :w)",
            "TUMBLE(TABLE len_log, DESCRIPTOR(ts), INTERVAL 2 MINUTES)",
            {"w": 2 * MINUTES},
        ),
        (
            TUMBLED.replace("wend", "window_end"),
            "TABLE(HOP(TABLE len_log, DESCRIPTOR(ts), ? MINUTES, 2 * INTERVAL 1 MINUTE))",
            "TABLE(HOP(TABLE len_log, DESCRIPTOR(ts), INTERVAL 1 MINUTE, INTERVAL 2 MINUTES))",
            [1],
        ),
        (
            TUMBLED,
            "TUMBLE(TABLE len_rows, DESCRIPTOR(ts), ?, offset => ?)",
            "TUMBLE(TABLE len_rows, DESCRIPTOR(ts), 4, offset => -1)",
            [4, -1],
        ),
        (
            TUMBLED,
            "SESSION(TABLE len_rows PARTITION BY k, DESCRIPTOR(ts), gap => ? - 1)",
            "SESSION(TABLE len_rows PARTITION BY k, DESCRIPTOR(ts), 1)",
            [2],
        ),
        (MATCHED, "WITHIN :w", "WITHIN INTERVAL 2 MINUTES", {"w": 2 * MINUTES}),
        (MATCHED, "WITHIN INCLUSIVE 60 * ?", "WITHIN INCLUSIVE 120", [2]),
        (MATCHED, "WITHIN :w MINUTES", "WITHIN 2 MINUTES", {"w": 2}),
        (
            "SELECT wend, COUNT(*) AS n FROM TUMBLE(TABLE timed, DESCRIPTOR(ts), INTERVAL 2 MINUTES) "
            "GROUP BY wend {}",
            "EMIT STREAM AFTER DELAY ? MINUTES",
            "EMIT STREAM AFTER DELAY INTERVAL 1 MINUTE",
            [1],
        ),
        (
            "SELECT k, COUNT(*) AS n FROM timed GROUP BY k {}",
            "STATE LIFETIME :life EMIT STREAM ALLOWED LATENESS :emit",
            "STATE LIFETIME INTERVAL 2 MINUTES EMIT STREAM ALLOWED LATENESS INTERVAL 1 MINUTE",
            {"life": 2 * MINUTES, "emit": MINUTES},
        ),
    ],
)
def test_a_length_that_is_computed_is_the_one_that_is_written(session, template, written, meant, args):
    given, named = (args, {}) if isinstance(args, list) else ([], args)
    found = session.sql(template.format(written), *given, **named)
    plain = session.sql(template.format(meant))
    assert type(found) is type(plain)
    assert rows(found) == rows(plain)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("query", "args"),
    [
        ("SELECT COUNT(*) FROM len [PARTITION BY k ROWS ? RANGE 1 + ?]", [1, 1]),
        (TUMBLED.format("TUMBLE(TABLE len_rows, DESCRIPTOR(ts), ? * 2)"), [2]),
        (MATCHED.format("WITHIN ? MINUTES"), [2]),
    ],
)
def test_the_reference_reads_the_same_length(spark, session, query, args):
    reference = Session(spark, execution="reference")
    reference._catalog = session._catalog
    assert rows(reference.sql(query, *args)) == rows(session.sql(query, *args))


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("template", "written", "meant"),
    [
        (COUNTED, "len [RANGE long_ SECONDS]", "len [RANGE 4]"),
        (COUNTED, "len [RANGE session.long_ SLIDE long_ - 2]", "len [RANGE 4 SLIDE 2]"),
        (COUNTED, "len [PARTITION BY k ROWS long_ RANGE 1 + long_]", "len [PARTITION BY k ROWS 4 RANGE 5]"),
        (TUMBLED, "TUMBLE(TABLE len, DESCRIPTOR(ts), long_)", "TUMBLE(TABLE len, DESCRIPTOR(ts), 4)"),
    ],
)
def test_a_length_may_be_a_variable(session, template, written, meant):
    session.sql("DECLARE OR REPLACE VARIABLE long_ INT DEFAULT 4")
    assert rows(session.sql(template.format(written))) == rows(session.sql(template.format(meant)))
    session.sql("SET VARIABLE long_ = 0")
    with pytest.raises(WindrowError, match="zero") as caught:
        session.sql(template.format(written))
    assert caught.value.condition == "INVALID_WINDOW_SIZE"


def test_parameters_of_lengths_and_of_sparks_keep_their_order(session):
    query = "SELECT ? AS a, v /* ? */ FROM len [RANGE ?] WHERE v > ? AND '?' <> ? -- ?"
    found = session.sql(query, "a", 9, 3, "b")
    assert sorted(tuple(row) for row in found.collect()) == [("a", 4), ("a", 5)]
    twice = session.sql("SELECT v FROM len [RANGE :n] WHERE v > :n", n=3)
    assert [row.v for row in twice.collect()] == [
        row.v for row in session.sql("SELECT v FROM len [RANGE 3] WHERE v > 3").collect()
    ]


def test_explain_prints_what_a_length_is(session):
    (text,) = session.sql("EXPLAIN SELECT COUNT(*) FROM len [RANGE :n MINUTES SLIDE 2 + 3]", n=2).collect()[0]
    assert "len [RANGE INTERVAL 2 MINUTES SLIDE 5]" in text


def test_a_length_is_the_value_that_a_query_over_tables_has_when_it_is_given(session):
    session.spark.sql("SELECT 2 AS n, 'a' AS k").createOrReplaceTempView("lasting")
    found = session.sql("SELECT v FROM len [ROWS 1 + (SELECT MAX(n) FROM lasting WHERE k = 'a')]")
    session.spark.sql("SELECT 1 AS n, 'a' AS k").createOrReplaceTempView("lasting")
    assert rows(found) == rows(session.sql("SELECT v FROM len [ROWS 3]"))


def test_a_view_keeps_the_length_that_it_was_made_with(session):
    session.sql("CREATE OR REPLACE TEMPORARY VIEW len_view AS SELECT v FROM len [ROWS ?]", 2)
    assert rows(session.sql("SELECT v FROM len_view")) == rows(session.sql("SELECT v FROM len [ROWS 2]"))


@pytest.mark.parametrize(
    ("window", "args", "condition", "message"),
    [
        ("«:n»", {"n": None}, "INVALID_WINDOW_SIZE", "NULL is not a length"),
        ("«NULL»", {}, "INVALID_WINDOW_SIZE", "NULL is not a length"),
        ("«INTERVAL 1 DAY * CAST(NULL AS INT)»", {}, "INVALID_WINDOW_SIZE", "NULL is not a length"),
        ("«:n»", {"n": "5"}, "INVALID_WINDOW_SIZE", "type STRING is not a length"),
        ("«:n»", {"n": True}, "INVALID_WINDOW_SIZE", "type BOOLEAN is not a length"),
        ("«:n»", {"n": -5}, "INVALID_WINDOW_SIZE", "greater than zero"),
        ("«:n»", {"n": 0}, "INVALID_WINDOW_SIZE", "greater than zero"),
        ("«3 - 3»", {}, "INVALID_WINDOW_SIZE", "greater than zero"),
        ("«:n»", {"n": float("nan")}, "INVALID_WINDOW_SIZE", "is not a length"),
        ("«:n MINUTES»", {"n": MINUTES}, "INVALID_WINDOW_SIZE", "already has a unit"),
        ("«:n DAYS»", {"n": 2**62}, "INVALID_WINDOW_SIZE", "64 bits"),
        ("«9223372036854775807»", {}, "INVALID_WINDOW_SIZE", "64 bits"),
        ("«2 * INTERVAL '1' YEAR»", {}, "INVALID_WINDOW_SIZE", "no fixed length"),
        ("«make_interval(0, 0, 0, 1)»", {}, "INVALID_WINDOW_SIZE", "no fixed length"),
        ("2 + «v»", {}, "NON_CONSTANT_LENGTH", "cannot read a column"),
        ("«(SELECT NULL)»", {}, "INVALID_WINDOW_SIZE", "NULL is not a length"),
        ("«(SELECT 1) + max(2)»", {}, "NON_CONSTANT_LENGTH", "must be a constant"),
        ("(SELECT max(v) FROM «lenn»)", {}, "TABLE_OR_VIEW_NOT_FOUND", "lenn"),
        ("«1 + count(*)»", {}, "NON_CONSTANT_LENGTH", "must be a constant"),
        ("1 + «rand()»", {}, "NONDETERMINISTIC_QUERY", "a different value in each run"),
        ("«1 / 0»", {}, "INVALID_WINDOW_SIZE", "cannot be computed"),
        (":n «MINTES»", {"n": 1}, "UNKNOWN_UNIT", "not a unit of time"),
        ("(1 + :n) «MONTHS»", {"n": 1}, "INVALID_WINDOW_SIZE", "no fixed length"),
        ("«v»", {}, "NON_CONSTANT_LENGTH", "cannot read a column"),
        ("v «MINTES»", {}, "UNKNOWN_UNIT", "not a unit of time"),
        ("2 «+»", {}, "PARSE_SYNTAX_ERROR", r"expected a value after \+"),
        ("2 «*» SECONDS", {}, "PARSE_SYNTAX_ERROR", r"expected a value after \*"),
        (":n DIV «DIV» SLIDE 1", {"n": 1}, "PARSE_SYNTAX_ERROR", "expected a value after DIV"),
        ("(2 +«)»", {}, "PARSE_SYNTAX_ERROR", "syntax error at or near"),
        ("1 + «:m»", {"n": 1}, "UNBOUND_SQL_PARAMETER", "has no value"),
    ],
)
def test_what_is_no_length_is_refused_where_it_stands(session, window, args, condition, message):
    query = f"SELECT * FROM len [RANGE {window.replace('«', '').replace('»', '')}]"
    for ask in (session.sql, session.check):
        with pytest.raises(WindrowError, match=message) as caught:
            ask(query, **args)
        error = caught.value
        assert error.condition == condition
        assert error.hint
        marked = window[window.index("«") + 1 : window.index("»")]
        assert query[error.span.start : error.span.stop] == marked


def test_a_number_of_rows_does_not_end_with_an_operator(session):
    query = "SELECT * FROM len [ROWS 2 *]"
    with pytest.raises(WindrowError, match=r"expected a value after \*") as caught:
        session.sql(query)
    assert query[caught.value.span.start : caught.value.span.stop] == "*"
    assert caught.value.hint


@pytest.mark.parametrize("rows_", ["1.5", 0, -1, 2.5, MINUTES, None, 2**63])
def test_a_number_of_rows_is_whole(session, rows_):
    with pytest.raises(WindrowError) as caught:
        session.sql("SELECT * FROM len [ROWS ?]", rows_)
    assert caught.value.condition in ("INVALID_WINDOW_SIZE", "INVALID_ARGUMENT")
    assert caught.value.hint


def test_a_position_without_a_value_is_told_as_it_is_written(session):
    with pytest.raises(WindrowError, match=r"parameter \? has no value"):
        session.sql("SELECT v FROM len [ROWS ?] WHERE v > ?", 1)
    session.check("SELECT ? AS a FROM len [ROWS 1 + ?]", "a", 1)
    session.check("SELECT ? AS a", 1)


@pytest.mark.parametrize("rows_", [-1, 1.5, None])
def test_an_offset_of_a_navigation_is_a_whole_number(session, rows_):
    with pytest.raises(WindrowError) as found:
        session.sql(NAVIGATED.format("LAST(A.v, :n)"), n=rows_).collect()
    assert found.value.condition == "INVALID_NAVIGATION"
    assert found.value.span is not None


@pytest.mark.parametrize("number", ["0", "1 - 1"])
def test_now_is_the_hint_where_a_window_may_stand_alone(session, number):
    queries = {
        "use [NOW] for rows of one instant": f"SELECT v FROM len [RANGE {number}]",
        "write a longer one": f"SELECT wend FROM TUMBLE(TABLE len, DESCRIPTOR(ts), {number}) GROUP BY wend",
    }
    for hint, query in queries.items():
        with pytest.raises(WindrowError) as caught:
            session.sql(query)
        assert (caught.value.condition, caught.value.hint) == ("INVALID_WINDOW_SIZE", hint)

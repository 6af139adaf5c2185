"""What is said of bad input: the condition, the very words that are wrong, and one hint."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException

import windrow
from windrow.errors import (
    AnalysisError,
    ExecutionError,
    NotSupportedError,
    ParseError,
    WindrowError,
)
from windrow.spark.errors import translate


@pytest.fixture(scope="module")
def session(spark) -> Iterator[windrow.Session]:
    spark.sql(
        "CREATE OR REPLACE TEMP VIEW weather AS SELECT * FROM VALUES"
        " ('a', 1, 10D), ('a', 2, 20D), ('a', 3, 5D), ('b', 1, 7D), ('b', 2, 8D) AS t (station, day, val)"
    )
    yield windrow.Session(spark)
    spark.catalog.dropTempView("weather")


def query(
    *,
    select: str = "s.station",
    source: str = "weather",
    partition: str = "station",
    order: str = "day",
    start: str = "",
    end: str = "",
    rest: str = "",
) -> str:
    return (
        f"SELECT {select} FROM {source} WINDOW BY w AS (TYPE SLIDING"
        f" PARTITION BY {partition} ORDER BY {order}"
        f" START AS s AT sp {start and 'WHEN'} {start} END AS e AT ep {end and 'WHEN'} {end}) {rest}"
    )


def failing(session: windrow.Session, sql: str) -> WindrowError:
    with pytest.raises(WindrowError) as caught:
        session.sql(sql).collect()
    return caught.value


def marked(error: WindrowError) -> str | None:
    contexts = error.getQueryContext()
    return contexts[0].fragment() if contexts else None


def test_an_aggregate_that_spark_evaluates_is_marked_as_a_whole(session):
    for call in ("SUM(w.station)", "ARRAY_SUM(w.station)", "ARRAY_AVG (w.station)"):
        error = failing(session, query(select=f"s.day, {call} AS x"))
        assert (error.condition, marked(error)) == ("CAST_INVALID_INPUT", call)


# -- names ------------------------------------------------------------------------------------------

OF_FROM = "is a relation of FROM, which is not visible after WINDOW BY"
NOT_VISIBLE = "use variables of the same boundary, or of those before it, in a START predicate"


@pytest.mark.parametrize(
    ("sql", "condition", "fragment", "hint"),
    [
        (query(start="x.val > 1"), "UNKNOWN_VARIABLE", "x.val", "use one of s, sp"),
        (query(start="ss.val > 1"), "UNKNOWN_VARIABLE", "ss.val", "did you mean s?"),
        (query(start="val > 1"), "UNKNOWN_VARIABLE", "val", "write s.val: val is a column of the input rows"),
        (query(end="e.val > n.val"), "UNKNOWN_VARIABLE", "n.val", "use one of s, sp, e, ep"),
        (query(select="x.val"), "UNKNOWN_VARIABLE", "x.val", "use one of s, sp, e, ep, w"),
        (query(select="day"), "UNKNOWN_VARIABLE", "day", "write s.day: day is a column of the input rows"),
        (query(select="AVG(x.val)"), "UNKNOWN_VARIABLE", "x.val", "use one of s, sp, e, ep, w"),
        (query(rest="HAVING x.val > 1"), "UNKNOWN_VARIABLE", "x.val", "use one of s, sp, e, ep, w"),
        (query(rest="ORDER BY x.val"), "UNKNOWN_VARIABLE", "x.val", "use one of s, sp, e, ep, w"),
        (query(start="e.val > 1"), "VARIABLE_OUT_OF_SCOPE", "e.val", f"e belongs to END; {NOT_VISIBLE}"),
        (
            query(start="s.val > 1 AND ep > 1"),
            "VARIABLE_OUT_OF_SCOPE",
            "ep",
            f"ep belongs to END; {NOT_VISIBLE}",
        ),
        (
            query(end="w.val > 1"),
            "VARIABLE_OUT_OF_SCOPE",
            "w",
            "use variables of the same boundary, or of those before it, in a WHEN predicate",
        ),
        (query(start="s.vall > 1"), "UNKNOWN_FIELD", "s.vall", "did you mean val?"),
        (query(end="e.val > s.zzz"), "UNKNOWN_FIELD", "s.zzz", "use one of the columns station, day, val"),
        (query(select="s.stat"), "UNKNOWN_FIELD", "s.stat", "did you mean station?"),
        (query(select="AVG(w.vall)"), "UNKNOWN_FIELD", "w.vall", "did you mean val?"),
        (query(rest="HAVING AVG(w.vall) > 1"), "UNKNOWN_FIELD", "w.vall", "did you mean val?"),
        (
            query(select="COUNT(w) AS days", rest="HAVING dayz > 1"),
            "UNKNOWN_VARIABLE",
            "dayz",
            "did you mean days?",
        ),
        (query(select="weather.day"), "UNKNOWN_VARIABLE", "weather.day", f"write s.day: weather {OF_FROM}"),
        (
            query(source="weather AS t", select="AVG(t.val)"),
            "UNKNOWN_VARIABLE",
            "t.val",
            f"aggregate w.val: t {OF_FROM}",
        ),
        (
            query(source="weather t", end="t.val > 1"),
            "UNKNOWN_VARIABLE",
            "t.val",
            f"write s.val: t {OF_FROM}",
        ),
    ],
)
def test_an_unknown_name_is_told_in_terms_of_the_window(session, sql, condition, fragment, hint):
    error = failing(session, sql)
    assert isinstance(error, AnalysisError)
    assert (error.getCondition(), error.getSqlState()) == (condition, "42703")
    assert (marked(error), error.hint) == (fragment, hint)


def test_a_window_that_is_compared_with_a_number_is_counted(session):
    error = failing(session, query(select="s.day", rest="HAVING w >= 8"))
    assert error.hint == "w is an array of rows: COUNT(w) counts them"


@pytest.mark.parametrize(
    ("sql", "condition", "fragment", "hint"),
    [
        (query(source="wether"), "TABLE_OR_VIEW_NOT_FOUND", "wether", "did you mean weather?"),
        ("SELECT * FROM wether", "TABLE_OR_VIEW_NOT_FOUND", "wether", "did you mean weather?"),
        (
            "SELECT * FROM my_frame",
            "TABLE_OR_VIEW_NOT_FOUND",
            "my_frame",
            "write session.register('my_frame', df) for a DataFrame or files, or FROM 'path.csv' for a file",
        ),
        (
            query(source="weather WHERE s.val > 1"),
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "s.val",
            "leave s. out to filter the input rows, as WINDOW BY declares s after them; "
            "or filter the windows in HAVING after the clause",
        ),
        (
            query(start="lag(s.val) > 3"),
            "WINDOW_FUNCTION_WITHOUT_OVER_CLAUSE",
            "lag(s.val)",
            "name the row before with PREV AS p: START AS s PREV AS p WHEN p.val",
        ),
        (
            "SELECT val FROM weather MATCH_RECOGNIZE (PARTITION BY station ORDER BY day MEASURES A.day AS d "
            "PATTERN (A) DEFINE A AS val > 1)",
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "val",
            "add a measure, or write ALL ROWS PER MATCH: MATCH_RECOGNIZE returns its keys and MEASURES",
        ),
        (query(partition="stat"), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "stat", "did you mean station?"),
        (query(order="dya"), "UNRESOLVED_COLUMN.WITH_SUGGESTION", "dya", "did you mean day?"),
        (
            query(source="weather WHERE vall > 1"),
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            "vall",
            "did you mean val?",
        ),
        (
            query(source="weather AS a JOIN weather AS b ON a.day = b.day", partition="a.station"),
            "AMBIGUOUS_REFERENCE",
            "day",
            None,
        ),
        (query(start="fop(s.val)"), "UNRESOLVED_ROUTINE", "fop(s.val)", None),
        (query(select="fop(w.val)"), "UNRESOLVED_ROUTINE", "fop(w.val)", None),
        (
            query(start="s.val > :low"),
            "UNBOUND_SQL_PARAMETER",
            ":low",
            "pass a value: sql(text, low=…), or --param low=…",
        ),
        (query(start="s.val > ?"), "UNBOUND_SQL_PARAMETER", "?", "pass a value for each ?: sql(text, value)"),
        ("SELECT ? AS x", "UNBOUND_SQL_PARAMETER", "?", "pass a value for each ?: sql(text, value)"),
        ("SELECT vall FROM weather", "UNRESOLVED_COLUMN.WITH_SUGGESTION", "vall", "did you mean val?"),
    ],
)
def test_what_spark_does_not_find_is_marked_in_the_users_text(session, sql, condition, fragment, hint):
    error = failing(session, sql)
    assert isinstance(error, AnalysisError)
    assert (error.getCondition(), marked(error)) == (condition, fragment)
    assert error.hint == hint or hint is None


@pytest.mark.parametrize(
    ("sql", "hint"),
    [
        ("SELEC 1", "did you mean SELECT?"),
        ("SELECT id FROM range(3) WHER id > 1", "did you mean WHERE?"),
        ("SELECT cunt(id) FROM range(3)", "did you mean count?"),
        ("SELECT mxa(id) FROM range(3)", "did you mean max?"),
        (query(select="s.day, MXA(w.val)"), "did you mean max?"),
        ("SELECT STREM id, id FROM range(3)", "did you mean SELECT STREAM?"),
        ("SELECT SUM(id) OVER (PARTITON BY id) FROM range(3)", "did you mean PARTITION BY?"),
        (query().replace("WINDOW BY", "WINDW BY"), "did you mean WINDOW BY?"),
        ("SELECT * FROM TUMBEL(TABLE t, DESCRIPTOR(x), INTERVAL 1 SECOND)", "did you mean TUMBLE?"),
    ],
)
def test_words_that_spark_does_not_know_have_a_hint(session, sql, hint):
    with pytest.raises(WindrowError) as error:
        session.sql(sql)
    assert error.value.hint == hint


def test_an_unbound_parameter_is_not_told_by_a_name_of_ours(session):
    error = failing(session, query(start="s.val > ?"))
    assert error.message == "parameter ? has no value"


@pytest.mark.parametrize(
    ("sql", "fragment"),
    [
        (query(select="s.station, AVG(s.val)"), "AVG(s.val)"),
        (query(select="s.station, COUNT(w) AS n, 1 + COUNT(*) AS m, s.day"), "COUNT(*)"),
        (query(select="s.station, MAX(AVG(w.val))"), "MAX(AVG(w.val))"),
        (query(select="s.station, (SELECT MAX(val) FROM weather) AS m, SUM(s.val)"), "SUM(s.val)"),
        (query(rest="HAVING COUNT(*) > 1"), "COUNT(*)"),
        (query(rest="ORDER BY COUNT(*)"), "COUNT(*)"),
    ],
)
def test_an_aggregate_over_all_windows_beside_single_ones_is_marked(session, sql, fragment):
    error = failing(session, sql)
    assert error.message == "an aggregate over all windows cannot be combined with values of single windows"
    assert marked(error) == fragment


@pytest.mark.parametrize(
    ("select", "rest"),
    [
        ("s.station, MAX(w.val)", ""),
        ("s.station, 1 + MAX(w.val) AS x, COUNT(*)", ""),
        ("s.station", "HAVING MAX(w.val) > 3"),
        ("s.station", "ORDER BY MAX(w.val)"),
    ],
)
def test_a_value_of_each_window_beside_groups_is_marked(session, select, rest):
    error = failing(session, query(select=select, rest=f"GROUP BY s.station {rest}"))
    assert error.message == "MAX(w.val) is of each window, and is neither grouped nor aggregated"
    assert (error.condition, marked(error)) == ("MISSING_AGGREGATION", "MAX(w.val)")
    mended = query(select=select.replace("MAX(w.val)", "MAX(MAX(w.val))"), rest="GROUP BY s.station")
    assert session.sql(mended).columns


RUNS = "MATCH_RECOGNIZE (ORDER BY day MEASURES {} AS m PATTERN (A) DEFINE A AS {})"


@pytest.mark.parametrize(
    ("sql", "written"),
    [
        (query(select="COUNT(w) + ARRAY(1)"), '"(COUNT(w) + array(1))"'),
        (query(select="(e = s) + 1"), '"((e = s) + 1)"'),
        (query(rest="ORDER BY MAX(w.val) + ARRAY(1)"), '"(MAX(w.val) + array(1))"'),
        (
            f"SELECT * FROM weather {RUNS.format('A.val + ARRAY(A.day)', 'val > 1')}",
            '"(A.val + array(A.day))"',
        ),
        (f"SELECT * FROM weather {RUNS.format('1', 'A.val > ARRAY(A.val)')}", '"(A.val > array(A.val))"'),
    ],
)
def test_messages_have_what_the_user_wrote(session, sql, written):
    error = failing(session, sql)
    assert error.condition.startswith("DATATYPE_MISMATCH")
    assert written in error.message
    assert "__" not in str(error)


@pytest.mark.parametrize("rest", ["WHERE s.val", "HAVING s.val"])
def test_a_condition_on_windows_that_is_no_condition(session, rest):
    error = failing(session, query(select="s.day, s.val", rest=rest))
    assert error.condition == "DATATYPE_MISMATCH.FILTER_NOT_BOOLEAN"
    assert (marked(error), error.span.start) == ("s.val", error.sql.index(rest) + len(rest) - 5)


def test_a_column_that_a_subquery_lacks_is_not_a_variable(session):
    inner = "(SELECT MAX(x.nope) FROM weather AS x WHERE x.day = s.day)"
    error = failing(session, query(select=f"s.day, {inner} AS m"))
    assert (error.condition, marked(error)) == ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "x.nope")


def test_a_row_of_each_window_beside_groups_is_named(session):
    error = failing(session, query(select="s.station, s.val, COUNT(*)", rest="GROUP BY s.station"))
    assert error.message == "s is of each window, and is neither grouped nor aggregated"
    assert error.hint == (
        "aggregate its columns over the windows of a group, as MAX(s.x), or add it to GROUP BY"
    )


@pytest.mark.parametrize("text", ["", " \n"])
def test_no_statement_is_a_parse_error(session, text):
    error = failing(session, text)
    assert isinstance(error, ParseError)
    assert (error.condition, error.message) == ("PARSE_EMPTY_STATEMENT", "statement is empty")


@pytest.mark.parametrize("method", ["sql", "script"])
def test_what_is_no_text_is_a_type_error(session, method):
    with pytest.raises(TypeError, match="SQL is a str, not NoneType"):
        getattr(session, method)(None)


# -- predicates and types ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [("s.val", "double"), ("s.station", "string"), ("sp + 1", "bigint")])
def test_a_predicate_that_is_no_condition(session, kind):
    error = failing(session, query(start=kind[0]))
    assert (error.condition, error.sqlstate) == ("PREDICATE_NOT_BOOLEAN", "42804")
    assert error.message == f"predicate of START is of type {kind[1]}, not boolean"
    assert (marked(error), error.hint) == (kind[0], "write a condition, for example a comparison")


@pytest.mark.parametrize("aggregate", ["AVG(w.val)", "sum(s.val)", "COUNT(*)", "max_by(s.val, s.day)"])
def test_an_aggregate_in_a_predicate(session, aggregate):
    error = failing(session, query(end=f"{aggregate} > 1"))
    assert (error.condition, error.sqlstate) == ("AGGREGATE_IN_PREDICATE", "42903")
    assert marked(error) == aggregate
    assert error.hint == "test the aggregate in HAVING after the clause; a predicate sees single rows"


@pytest.mark.parametrize("function", ["rand()", "uuid()", "monotonically_increasing_id()", "randn(1)"])
def test_a_function_that_changes_from_run_to_run(session, function):
    error = failing(session, query(start=f"{function} > s.val"))
    assert isinstance(error, NotSupportedError)
    assert (error.condition, marked(error)) == ("NONDETERMINISTIC_PREDICATE", function)


@pytest.mark.parametrize(
    ("key", "sql"),
    [
        ("map(1, day)", query(order="map(1, day)")),
        ("map(1, day)", query(partition="map(1, day)")),
        ("struct(parse_json('1'))", query(order="struct(parse_json('1'))")),
    ],
)
def test_a_key_without_an_order(session, key, sql):
    error = failing(session, sql)
    assert (error.condition, error.sqlstate) == ("UNORDERABLE_TYPE", "42822")
    assert (marked(error), error.hint) == (key, "use a field of it, or cast it to a type with an order")


@pytest.mark.parametrize(
    "comparison", ["s.val = date '2020-01-01'", "s.day > array(1)", "s.val + map(1, 2) > 1"]
)
def test_types_that_spark_does_not_compare(session, comparison):
    error = failing(session, query(start=f"{comparison} AND sp > 1"))
    assert error.condition.startswith("DATATYPE_MISMATCH")
    assert marked(error) is not None
    assert marked(error) in comparison


def test_a_type_that_cannot_be_carried(session):
    error = failing(session, query(select="s.i", source="(SELECT *, make_interval(1, 2) AS i FROM weather)"))
    assert isinstance(error, NotSupportedError)
    assert error.condition == "UNSUPPORTED_TYPE"
    assert error.hint == "cast it to a string or to a number in a subquery in FROM"


# -- syntax -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "fragment"),
    [
        ("SELECT * FROM weather WHRE val > 1", "WHRE"),
        ("SELEC 1", "SELEC"),
        (query(source="weather WHERE val >"), ">"),
        (query(start="s.val >"), ">"),
        (query(start="s..val > 1"), "."),
        (query(select=""), "SELECT"),
        (query(rest="HAVING"), "HAVING"),
        (query(source="weather GROUP BY station LET COUNT(*)"), "COUNT(*)"),
    ],
)
def test_a_syntax_error_of_either_parser_is_marked_in_the_users_text(session, sql, fragment):
    error = failing(session, sql)
    assert isinstance(error, ParseError)
    assert (error.condition, error.sqlstate) == ("PARSE_SYNTAX_ERROR", "42601")
    assert marked(error) == fragment


@pytest.mark.parametrize("head", ["EXPLAIN ", "CREATE TEMP VIEW v AS ", "INSERT INTO v ", "/* 'a */  "])
def test_the_place_is_that_in_the_whole_statement(session, head):
    sql = head + query(start="x.val > 1")
    error = failing(session, sql)
    assert error.span is not None
    assert (error.sql, error.span.start) == (sql, sql.index("x.val"))


def test_the_place_holds_inside_named_queries_and_subqueries(session):
    sql = f"WITH q AS ({query(start='x.val > 1')}) SELECT * FROM (SELECT * FROM q) JOIN q USING (station)"
    error = failing(session, sql)
    assert error.span is not None
    assert (error.condition, error.span.start) == ("UNKNOWN_VARIABLE", sql.index("x.val"))


def test_an_error_is_rendered_with_line_caret_and_hint(session):
    sql = (
        "SELECT s.day\nFROM weather\nWINDOW BY w AS (TYPE SLIDING ORDER BY day\n"
        "  START AS s WHEN s.vall > 1 END)"
    )
    error = failing(session, sql)
    assert str(error) == (
        "[UNKNOWN_FIELD] rows have no column vall\n"
        "line 4, column 19\n"
        "    START AS s WHEN s.vall > 1 END)\n"
        "                    ^^^^^^\n"
        "hint: did you mean val?"
    )
    (context,) = error.getQueryContext()
    assert (context.startIndex(), context.stopIndex()) == (sql.index("s.vall"), sql.index("s.vall") + 5)
    assert (context.objectType(), context.objectName(), context.fragment()) == ("", "", "s.vall")


@pytest.mark.parametrize(
    ("sql", "fragment"),
    [
        ("SELECT val\nFROM STREAM weather WHERE val > 1", "STREAM weather"),
        ("WITH q AS (SELECT val, 'stream' FROM stream `weather`) SELECT * FROM q", "stream `weather`"),
        (query(source="(SELECT * FROM STREAM weather)"), "STREAM weather"),
    ],
)
def test_a_table_that_is_read_as_a_stream_is_marked(session, sql, fragment):
    error = failing(session, sql)
    assert (error.condition, marked(error)) == ("UNSUPPORTED_STREAM", fragment)
    assert error.message == "weather is not a streaming table or view"
    assert (error.hint or "").startswith("leave STREAM out")


# -- while the query runs ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "condition", "fragment"),
    [
        # in the kernel
        (query(end="e.day % (s.day - sp) > 1"), "REMAINDER_BY_ZERO", "e.day % (s.day - sp) > 1"),
        (query(end="e.day / (s.day - sp) > 1"), "DIVIDE_BY_ZERO", "e.day / (s.day - sp) > 1"),
        (
            query(end="e.day + 2147483646 + s.day > 1 AND e.day + s.day > 2147483647"),
            "ARITHMETIC_OVERFLOW",
            None,
        ),
        # in a column that Spark computes for the kernel
        (query(start="s.day / 0 > 1"), "DIVIDE_BY_ZERO", "s.day / 0"),
        (query(start="s.day + 2147483647 > 1"), "ARITHMETIC_OVERFLOW", "s.day + 2147483647"),
        (query(start="CAST(s.station AS INT) > 1"), "CAST_INVALID_INPUT", "CAST(s.station AS INT)"),
        # in a constant
        (query(start="s.val > 1 / 0"), "DIVIDE_BY_ZERO", "1 / 0"),
        # in the join plan
        (
            query(end="concat_ws('', e.day, s.day) / (s.day - sp) > 1"),
            "DIVIDE_BY_ZERO",
            "concat_ws('', e.day, s.day) / (s.day - sp)",
        ),
        # in the rows, the keys, the aggregates and the SELECT over the windows
        (query(source="weather WHERE day / (sin(0) * val) > 1"), "DIVIDE_BY_ZERO", "day / (sin(0) * val)"),
        (query(order="day / (val - val)"), "DIVIDE_BY_ZERO", "day / (val - val)"),
        (query(select="AVG(w.day / (w.val - w.val))"), "DIVIDE_BY_ZERO", "w.day / (w.val - w.val)"),
        (query(select="corr(w.day / (w.val - w.val), w.day)"), "DIVIDE_BY_ZERO", "w.day / (w.val - w.val)"),
        (query(select="s.day / (sp - sp)"), "DIVIDE_BY_ZERO", "s.day / (sp - sp)"),
        (query(rest="HAVING s.day / (sp - sp) > 1"), "DIVIDE_BY_ZERO", "s.day / (sp - sp)"),
        # in Spark's own SQL
        ("SELECT day / (val - val) FROM weather", "DIVIDE_BY_ZERO", "day / (val - val)"),
    ],
)
def test_an_error_while_the_query_runs_is_found_in_the_users_text(session, sql, condition, fragment):
    error = failing(session, sql)
    assert isinstance(error, ExecutionError)
    assert error.condition == condition
    assert fragment is None or marked(error) == fragment


@pytest.mark.parametrize("how", ["show", "collect", "to_arrow", "to_pandas", "_repr_html_"])
def test_every_way_to_look_at_a_relation_tells_errors_alike(session, how):
    relation = session.sql(query(start="s.day / 0 > 1"))
    with pytest.raises(ExecutionError) as caught:
        getattr(relation, how)()
    assert (caught.value.condition, marked(caught.value)) == ("DIVIDE_BY_ZERO", "s.day / 0")
    assert caught.value.sqlstate == "22012"


@pytest.mark.parametrize(
    "sql",
    [
        query(start="s.day / 0 > 1"),
        query(end="e.day % (s.day - sp) > 1"),
        query(start="s.val > (SELECT val FROM weather)"),
        query(source="nowhere"),
        "SELECT raise_error('told') FROM weather",
    ],
    ids=["Spark", "kernel", "subquery", "analysis", "plain"],
)
def test_no_trace_of_java_or_of_a_worker_is_shown_or_logged(session, sql, caplog, capfd):
    with caplog.at_level(logging.DEBUG):
        error = failing(session, sql)
    shown = str(error) + capfd.readouterr().err.replace("WARN", "")
    for trace in ("\tat ", "org.apache", "java.", "Traceback", "JVM stacktrace"):
        assert trace not in shown
    assert not any(record.levelno >= logging.ERROR for record in caplog.records)
    assert error.__cause__ is None


def test_a_predicate_that_fails_only_beyond_the_windows_end_does_not_fail(session):
    # 1 / (e.day - 3) would fail at day 3, which no window reaches
    sql = query(
        select="s.day, e.day AS last",
        source="weather WHERE station = 'a'",
        start="s.day = 1",
        end="e.day = 2 OR 1 / (e.day - 3 + s.day - 1) > 9",
    )
    assert [tuple(row) for row in session.sql(sql).collect()] == [(1, 2)]


# -- what was meant ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def recorded(spark) -> windrow.Session:
    session = windrow.Session(spark)
    rows = spark.sql(
        "SELECT TIMESTAMP '2026-01-01 00:00:00' AS ts, TIMESTAMP '2026-01-01 00:00:01' AS p, 1 AS k"
    )
    session.stream("came", rows, rowtime="ts", ptime="p")
    return session


@pytest.mark.parametrize(
    ("sql", "fragment", "hint"),
    [
        ("SELECT STREAM * FROM came EMIT STREAM", "EMIT", "leave STREAM out after SELECT, or"),
        ("SELECT STREAM k FROM came ALLOWED LATENESS INTERVAL 1 DAY", "INTERVAL", "leave STREAM out after"),
        ("SELECT k, FROM came EMIT STREAM", "M", "leave out the comma before FROM"),
        ("SELECT k p ts FROM came EMIT STREAM", "ts", "is a comma missing? write a comma before ts"),
        ("SELECT * FROM came WHERE ts > 80", "ts > 80", "compare a time with a time, such as TIMESTAMP"),
        (
            "SELECT DISTINCT ON (k) k, ts FROM came",
            "ON (k)",
            "leave DISTINCT ON (k) out, and write QUALIFY",
        ),
        ("SELECT * FROM came [RANGE 1 DAY] WHERE ts > 80", "ts > 80", "compare a time with a time"),
        ("SELECT * FROM read_csv('a.csv')", "read_csv('a.csv')", "put the path in quotes: FROM 'PATH'"),
        ("SELECT k FROM came EMIT CHANGES", "CHANGES", "EMIT STREAM emits every change"),
        ("SELECT k FROM came EMIT FINAL", "FINAL", "EMIT AFTER WATERMARK emits each row once it is final"),
        ("SELECT * FROM day.csv", "day.csv", "put the path in quotes: FROM 'day.csv'"),
        ("CREATE STREAM x (ts TIMESTAMP, WATERMARK FOR ts AS ts)", "WATERMARK", "write ROWTIME ts among the"),
    ],
)
def test_what_was_meant_is_told_at_its_place(recorded, sql, fragment, hint):
    error = failing(recorded, sql)
    assert marked(error) == fragment
    assert (error.hint or "").startswith(hint)
    assert "'AS'" not in error.message


def test_an_aggregate_over_all_windows_is_told_of_the_same_column(session):
    error = failing(session, query(select="AVG(s.val), s.station"))
    assert error.hint == "aggregate the rows of each window w: AVG(w.val)"


def test_an_alias_that_is_also_a_row_variable_is_told(session):
    error = failing(session, query(select="COUNT(w) AS e", rest="HAVING e >= 10"))
    assert marked(error) == "e >= 10"
    assert (
        error.hint == "rename the variable or the alias: e is the row variable here, not the column of SELECT"
    )


def test_a_python_worker_that_is_too_slow_to_start_has_a_cure():
    said = "query terminated with exception: Python worker failed to connect back."
    error = translate(PySparkException(said))
    assert "ten seconds" in error.hint
    assert "checkpoint" in error.hint

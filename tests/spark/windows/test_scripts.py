"""SQL scripts with windows do what Spark's own interpreter does with others."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

import windrow
from windrow.errors import WindrowError

OURS = " -- window by"
"""A comment with which a script may have a clause of ours, so that it is run statement by statement."""
WINDOWS = "WINDOW BY w AS (TYPE TUMBLING ORDER BY i START AS s WHEN s.v < 15 END NEXT AS n WHEN n.v >= 15)"
HANDLED = "DECLARE EXIT HANDLER FOR"
SCRIPTS = [
    "BEGIN END",
    "BEGIN SELECT 1 AS a; SET kept = 9; END",
    "BEGIN SELECT 1 AS a; SHOW TABLES; END",
    "BEGIN DECLARE x INT; IF x > 1 THEN SELECT 1 AS a; ELSE SELECT 2 AS b; END IF; END",
    "BEGIN IF (SELECT MAX(v) FROM t WHERE i > 9) > 1 THEN SELECT 1; ELSEIF 1 < 2 THEN SELECT 5 AS"
    " c; END IF; END",
    "BEGIN IF false THEN SELECT 1; END IF; END",
    "BEGIN SELECT 'first' AS x; IF false THEN SELECT 1; END IF; END",
    "BEGIN CASE 5 WHEN 1 THEN SELECT 1; ELSE SELECT 7 AS d; END CASE; END",
    "BEGIN CASE (SELECT MIN(v) FROM t) WHEN 1 THEN SELECT 1; WHEN 5 THEN SELECT 2 AS f; END CASE; END",
    "BEGIN CASE WHEN CAST(NULL AS BOOLEAN) THEN SELECT 1;"
    " WHEN CASE WHEN 1 < 2 THEN TRUE END THEN SELECT 2; END CASE; END",
    "BEGIN DECLARE i INT = 0; WHILE i < 3 DO SET i = i + 1; SELECT i AS x; END WHILE; END",
    "BEGIN DECLARE i INT = 0; l: LOOP SET i = i + 1; IF i < 3 THEN ITERATE l; END IF; LEAVE l; END"
    " LOOP l;"
    " SELECT i; END",
    "BEGIN DECLARE i INT = 9; DECLARE n INT = 0; REPEAT SET n = n + 1; SET i = i - 4; UNTIL i < 0"
    " END REPEAT;"
    " SELECT i, n; END",
    "BEGIN DECLARE n INT = 0; o: WHILE n < 9 DO i: WHILE true DO SET n = n + 2; IF n > 5 THEN LEAVE"
    " o; END IF;"
    " ITERATE o; END WHILE i; END WHILE o; SELECT n; END",
    "BEGIN l: BEGIN SELECT 1 AS a; LEAVE l; SELECT 2 AS b; END l; END",
    "BEGIN DECLARE s STRING DEFAULT ''; FOR r AS SELECT i, v AS `a b` FROM t ORDER BY i DO"
    " SET s = s || r.i || ':' || `a b` || ' '; END FOR; SELECT s; END",
    "BEGIN DECLARE n INT DEFAULT 0; FOR SELECT i AS kept FROM t DO SET n = n + kept; END FOR;"
    " SELECT n, kept; END",
    "BEGIN FOR r AS SELECT 1 AS a WHERE false DO SELECT a; END FOR; END",
    "BEGIN FOR r AS SELECT i FROM t WHERE i = 2 DO SELECT (SELECT MAX(v) FROM t WHERE i > r.i) AS m,"
    " r.i AS r; END FOR; END",
    "BEGIN FOR r AS SELECT NULL AS a, array(1, NULL) AS b, named_struct('x', 1.5BD, 'y',"
    " DATE'2024-02-29') AS c"
    " DO SELECT a, r.b, c.x, r.c.y; END FOR; END",
    "BEGIN DECLARE x INT = 1; BEGIN DECLARE x STRING = 'in'; SET x = x || '!'; END; SELECT x; END",
    "BEGIN o: BEGIN DECLARE x INT = 1; i: BEGIN DECLARE x INT = o.x + 1; SET o.x = x * 10 + i.x; END i;"
    " SELECT x, o.x AS y; END o; END",
    "BEGIN DECLARE x INT = 1; BEGIN DECLARE x INT = x + 5; SELECT x; END; END",
    "BEGIN DECLARE kept STRING DEFAULT 'own'; SELECT kept, session.kept AS a, system.session.kept AS b; END",
    "BEGIN DECLARE Kept INT DEFAULT kept + 1; SET session.kept = 3; SELECT KEPT, session.kept AS a; END",
    "BEGIN DECLARE a, b INT DEFAULT 3; SET (a, b) = (SELECT b + 1, a + 2); SELECT a, b; END",
    "BEGIN DECLARE v INT DEFAULT 100; SELECT SUM(v) AS s FROM t; END",
    f"BEGIN {HANDLED} SQLEXCEPTION BEGIN SELECT 'h' AS h; END; SELECT 1 DIV 0; SELECT 2; END",
    f"BEGIN SELECT 'a' AS a; BEGIN {HANDLED} DIVIDE_BY_ZERO BEGIN SET kept = 77; END; SELECT 1 DIV"
    f" 0; END;"
    " SELECT kept; END",
    f"BEGIN DECLARE c CONDITION FOR SQLSTATE '22012'; {HANDLED} c BEGIN SELECT 'c' AS h; END;"
    f" {HANDLED} SQLEXCEPTION BEGIN SELECT 'e' AS h; END; SELECT 1 DIV 0; END",
    f"BEGIN DECLARE x INT DEFAULT 1 DIV 0; {HANDLED} DIVIDE_BY_ZERO SET kept = 77; SELECT x; END",
    f"BEGIN {HANDLED} SQLSTATE '42P01' BEGIN SELECT 'none' AS h; END; SELECT * FROM no_such_table; END",
    f"BEGIN {HANDLED} SQLEXCEPTION BEGIN SELECT 'outer' AS h; END; BEGIN {HANDLED} SQLSTATE '11111'"
    " BEGIN SELECT 'inner' AS h; END; SELECT 1 DIV 0; END; SELECT 'after' AS h; END",
    f"BEGIN {HANDLED} SQLEXCEPTION BEGIN SELECT 'h' AS h; END; IF 1 DIV 0 > 1 THEN SELECT 1; END IF; END",
    "BEGIN DECLARE n INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN SET n = n + 1; END;"
    " IF 1 DIV 0 > 1 THEN SELECT 1; ELSE SET n = n + 100; END IF; SELECT 1 DIV 0; WHILE 1 DIV 0 > 1 DO"
    " SELECT 1; END WHILE; SELECT n; END",
    "BEGIN DECLARE x INT DEFAULT 0; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION BEGIN SET x = x + 1; END;"
    " BEGIN DECLARE x STRING DEFAULT 'inner'; SELECT 1 DIV 0; SELECT x; END; SELECT x; END",
    "BEGIN o: BEGIN DECLARE x INT = 0; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION SET o.x = o.x + 1; BEGIN"
    " DECLARE x STRING = 'inner'; SELECT 1 DIV 0; SELECT x, o.x AS y; END; END; END",
    f"BEGIN {HANDLED} SQLSTATE '42703' BEGIN SELECT 's' AS h; END; {HANDLED} UNRESOLVED_COLUMN BEGIN"
    " SELECT 'c' AS h; END; SELECT nothing; END",
    "BEGIN t: BEGIN DECLARE x INT = 6; SET t.x = (SELECT MIN(t.v) + t.x FROM t);"
    " IF (SELECT MAX(t.v) > t.x FROM t) THEN SELECT t.v, t.x, q.v AS t FROM t JOIN t AS q USING (i);"
    " END IF; END; END",
    "BEGIN v: BEGIN DECLARE x, y INT = 6; SET v.x = (SELECT MAX(v.x + v.y + x) FROM (SELECT i,"
    " named_struct('x', v, 'y', 1) AS v FROM t)); SELECT x, v.y, (SELECT MAX(v.x + i) FROM"
    " (SELECT i, named_struct('x', v) AS v FROM t) AS q WHERE q.v.x < v.x + 1) AS m; END; END",
    "BEGIN l: BEGIN DECLARE x INT = 6; FOR v AS SELECT i + l.x AS x FROM t WHERE t.v > l.x DO"
    " SET l.x = l.x + v.x + (SELECT MAX(v.x) FROM (SELECT named_struct('x', i) AS v FROM t)); END FOR;"
    " SELECT x; END; END",
    "BEGIN DECLARE t STRUCT<text STRING> DEFAULT named_struct('text', 'SELECT 5 AS');"
    " EXECUTE IMMEDIATE t.text || ' five'; END",
    "BEGIN l: BEGIN DECLARE kept, day INT = 5; EXECUTE IMMEDIATE 'SELECT kept * 100 + :kept * 10 + :a'"
    " INTO l.kept USING kept, session.kept AS a;"
    " EXECUTE IMMEDIATE 'SELECT :kept AS k, :s, :d, :day, kept'"
    " USING (l.kept, session.kept AS s, INTERVAL '1' day AS d, CAST(day AS STRING) AS day); END; END",
    "BEGIN DECLARE kept STRING = 'own'; EXECUTE IMMEDIATE"
    " 'DECLARE OR REPLACE VARIABLE kept INT DEFAULT 7';"
    " EXECUTE IMMEDIATE 'SET VAR kept = 3'; SELECT kept, session.kept AS a; END",
    "BEGIN DECLARE g STRING = 'in'; DECLARE CONTINUE HANDLER FOR SQLEXCEPTION EXECUTE IMMEDIATE"
    " 'SELECT concat(kept, ?)' INTO g USING g; BEGIN DECLARE g, kept INT = 3;"
    " EXECUTE IMMEDIATE 'SELECT 1 DIV 0'; SELECT g; END; SELECT g; END",
    "BEGIN DECLARE x INT = 5; BEGIN DECLARE x STRING DEFAULT 'in'; SET x = 'y'; SET x = DEFAULT; SELECT x;"
    " END; SET x = 3; BEGIN DECLARE x INT; EXECUTE IMMEDIATE 'SELECT kept'; END; SELECT x; SET x = DEFAULT;"
    " SELECT x; END",
    "BEGIN DECLARE x MAP<STRING, ARRAY<STRUCT<`a b`: STRING, c: DECIMAL(9, 2), d: INTERVAL DAY>>> DEFAULT"
    " map('k''', array(named_struct('a b', 'it', 'c', 1.5, 'd', INTERVAL '-3' DAY), NULL), 'l', array());"
    " EXECUTE IMMEDIATE 'SELECT :x' USING x['l'] IS NULL AS x; SET x = map('m', NULL);"
    " BEGIN DECLARE x, kept INT; EXECUTE IMMEDIATE 'SELECT kept + ?' INTO x USING 1;"
    " SET session.kept = x; END; SELECT x AS a; SET x = DEFAULT; SELECT x, kept; END",
    "BEGIN DECLARE n INT = 0; WHILE n < 2 DO BEGIN DECLARE m, kept INT = n; BEGIN DECLARE n INT = 10 * m;"
    " EXECUTE IMMEDIATE 'SELECT kept + :n' INTO kept USING n; SET session.kept = kept; END; END;"
    " SET n = n + 1; END WHILE; SELECT n, kept; END",
    "BEGIN DECLARE kept INT = 1; EXECUTE IMMEDIATE 'DECLARE OR REPLACE VARIABLE kept INT DEFAULT 7';"
    " BEGIN DECLARE kept STRING = 'in'; EXECUTE IMMEDIATE 'SET VAR kept = kept + 3'; SELECT kept,"
    " session.kept AS a; END; END",
    "BEGIN FOR r AS SELECT i AS kept, array(v) AS v FROM t WHERE i < 3 DO EXECUTE IMMEDIATE"
    " 'SET VAR kept = kept + ?' USING v[0] + r.kept; END FOR; SELECT kept; END",
    f"EXECUTE IMMEDIATE 'SELECT v, ?, typeof(?), ? FROM t WHERE i = 1{OURS}'"
    " USING CAST(1.5 AS DECIMAL(10, 2)), CAST(NULL AS BIGINT), (array('it''s')), 4",
    f"EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE ''SELECT i + :a FROM t WHERE i > 9'' USING :a AS a{OURS}'"
    " INTO kept USING kept AS a",
    "EXECUTE IMMEDIATE 'SELECT 3 - ? AS a, ? AS b, ?, ?, ?, ?, ?, ?, ?, typeof(?) AS c"
    f"{OURS}' USING -5, 2.5D, -7L, 3S, 0.05, true, DATE'2024-02-29', TIMESTAMP_NTZ'2024-02-29 01:02:03',"
    " INTERVAL '-1 2' DAY TO HOUR, double('NaN')",
    f"EXECUTE IMMEDIATE 'SELECT :e AS a, typeof(:e) AS b{OURS}' USING named_struct('a b', NULL, 'c',"
    " map(1L, array(), 2L, array('it''s', NULL), 3L, NULL), 'd', CAST(NULL AS STRUCT<x: INT>), 'e',"
    " array(array(1.5D, double('inf')), array(NULL)), 'f', X'4F00') AS e",
]
"""Those that Spark runs too."""
FAILING = [
    "BEGIN SELECT 1; SELEC 2; END",
    "BEGIN IF 1 THEN SELECT 1; END IF; END",
    "BEGIN LEAVE nowhere; END",
    "BEGIN a: LOOP SELECT 1; END LOOP b; END",
    "BEGIN SELECT 1; DECLARE x INT; END",
    "BEGIN DECLARE x INT; DECLARE x INT; END",
    "BEGIN WHILE true DO DECLARE x INT; END WHILE; END",
    "BEGIN SET nowhere = 1; END",
    "BEGIN l: BEGIN DECLARE y INT; SELECT l.y FROM (SELECT named_struct('x', i) AS l FROM t); END; END",
    "BEGIN SELECT wrong FROM t; END",
    "BEGIN SELECT 1 DIV 0; SELECT 2; END",
    "BEGIN FOR r AS SELECT 1 AS a, 2 AS a DO SELECT a; END FOR; END",
    "BEGIN IF (SELECT i FROM t) > 1 THEN SELECT 1; END IF; END",
    f"BEGIN {HANDLED} SQLSTATE '11111' BEGIN SELECT 1; END; SELECT 1 DIV 0; END",
    f"BEGIN {HANDLED} UNSUPPORTED_QUERRY SELECT 1; END",
    "BEGIN DECLARE x INT; EXECUTE IMMEDIATE 'SELECT x'; END",
    "BEGIN DECLARE x DOUBLE DEFAULT rand(); BEGIN DECLARE x INT; END; SET x = DEFAULT; END",
    "BEGIN DECLARE kept, x INT; BEGIN DECLARE x INT = 1; EXECUTE IMMEDIATE 'SELECT kept, x'; END; END",
    "BEGIN DECLARE kept, x INT; BEGIN DECLARE x INT = 1; EXECUTE IMMEDIATE 'SELECT 1 DIV 0'; END; END",
    "BEGIN DECLARE kept INT; DROP TEMPORARY VARIABLE kept; END",
    f"EXECUTE IMMEDIATE 'SELECT i FROM t{OURS}' INTO kept",
    f"EXECUTE IMMEDIATE 'SELECT i{OURS}' INTO kept, wrong",
    f"EXECUTE IMMEDIATE 'SET VAR kept = 3{OURS}' INTO kept",
    f"EXECUTE IMMEDIATE 'BEGIN SELECT 1; END{OURS}'",
    f"EXECUTE IMMEDIATE 'SELECT ? + ?{OURS}' USING 1",
    f"EXECUTE IMMEDIATE 'SELECT 1{OURS}', 'SELECT 2'",
]
WITH_WINDOWS = [
    (
        "BEGIN IF true THEN CREATE TEMP VIEW made AS SELECT * FROM t WHERE i > 2;"
        " SELECT s.i, COUNT(w) AS n FROM made ⊞; END IF; DROP VIEW made; END",
        [(3, 2)],
    ),
    (
        "BEGIN DECLARE least INT DEFAULT 2; WHILE least > 1 DO SELECT s.i, SUM(w.v) AS n FROM t"
        " WHERE i >= least ⊞;"
        " SET least = least - 1; END WHILE; END",
        [(3, 12)],
    ),
    ("BEGIN IF (SELECT MAX(COUNT(w)) FROM t ⊞) = 2 THEN SELECT 'two' AS x; END IF; END", [("two",)]),
    ("BEGIN CASE WHEN EXISTS (SELECT s.i FROM t ⊞ HAVING COUNT(w) > 2) THEN SELECT 1;"
     " ELSE SELECT 2 AS x; END CASE; END", [(2,)]),
    (
        "BEGIN DECLARE n INT DEFAULT 0; FOR r AS SELECT s.i, COUNT(w) AS n FROM t ⊞ DO SET n = n +"
        " r.n * i;"
        " END FOR; SELECT n; END",
        [(0,)],
    ),
    (
        "BEGIN DECLARE total INT DEFAULT 0; FOR r AS SELECT s.i, COUNT(w) AS n FROM t ⊞ DO"
        " SET total = total + r.n * i; END FOR; SELECT total; END",
        [(7,)],
    ),
    ("BEGIN DECLARE n BIGINT; SET n = (SELECT MAX(COUNT(w)) FROM t ⊞); SELECT n; END", [(2,)]),
    (f"BEGIN {HANDLED} DIVIDE_BY_ZERO BEGIN SELECT 'h' AS h; END;"
     " SELECT s.i, 1 DIV (COUNT(w) - 1) AS x FROM t ⊞; SELECT 2; END", [("h",)]),
    (f"BEGIN {HANDLED} SQLSTATE '42703' BEGIN SELECT 'h' AS h; END; SELECT s.no FROM t ⊞; END", [("h",)]),
    (f"BEGIN {HANDLED} UNKNOWN_VARIABLE BEGIN SELECT 'h' AS h; END; SELECT z.i FROM t ⊞; END", [("h",)]),
    ("BEGIN t: BEGIN DECLARE x INT = 1; SELECT s.i, COUNT(w) * t.x FROM t WHERE t.v > t.x ⊞; END; END",
     [(1, 1), (3, 2)]),
    ("BEGIN DECLARE n BIGINT; DECLARE x INT = 15; EXECUTE IMMEDIATE 'SELECT MAX(COUNT(w)) + :x FROM t ⊞'"
     " INTO n USING x; SELECT n, x; END", [(17, 15)]),
    (f"BEGIN EXECUTE IMMEDIATE 'SELECT s.i FROM t WINDOW' || '{WINDOWS[6:]}' /* window by */; END",
     [(1,), (3,)]),
]  # fmt: skip
UNSEEN = [
    ("BEGIN EXECUTE IMMEDIATE text; END", [(1,), (3,)]),
    ("EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE text'", [(1,), (3,)]),
    ("BEGIN DECLARE part STRING; DECLARE n BIGINT; SET part = replace(text, 's.i', 'MAX(COUNT(w)) + ?');"
     " EXECUTE IMMEDIATE part INTO n USING 5; SELECT n, part LIKE '%+ ?%'; END", [(7, True)]),
    ("BEGIN EXECUTE IMMEDIATE 'EXECUTE IMMEDIATE replace(text, ''s.i'', :a)' USING 's.v' AS a; END",
     [(5,), (10,)]),
    ("BEGIN DECLARE plain STRING = 'SELECT ? + 1'; EXECUTE IMMEDIATE plain USING 2; END", [(3,)]),
]  # fmt: skip


@pytest.fixture
def session(spark):
    spark.sql("SET spark.sql.scripting.continueHandlerEnabled = true")
    session = windrow.Session(spark)
    session.sql(
        "CREATE OR REPLACE TEMP VIEW t AS SELECT * FROM VALUES (1, 10), (2, 20), (3, 5), (4, 7) AS t (i, v)"
    )
    session.sql("DECLARE OR REPLACE VARIABLE kept INT DEFAULT 7")
    session.sql("SET VAR kept = 8")
    yield session
    spark.sql("DROP TEMPORARY VARIABLE kept")
    spark.sql("RESET spark.sql.scripting.continueHandlerEnabled")
    spark.catalog.dropTempView("t")


def rows(frame):
    return frame.columns, sorted(map(tuple, frame.collect()), key=repr)


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("script", SCRIPTS)
def test_scripts_return_what_spark_returns(session, script):
    wanted, left = rows(session.spark.sql(script)), rows(session.spark.sql("SELECT kept"))
    session.sql("SET VAR kept = 8")
    assert rows(session.sql(script + OURS)) == wanted
    assert rows(session.sql("SELECT kept")) == left
    session.sql("SET VAR kept = DEFAULT")
    assert rows(session.sql("SELECT kept")) == (["kept"], [(7,)])


@pytest.mark.sampled(every=4)
@pytest.mark.parametrize("script", FAILING)
def test_scripts_fail_as_in_spark(session, script):
    with pytest.raises((PySparkException, Py4JJavaError)) as wanted:
        session.spark.sql(script)
    with pytest.raises(WindrowError) as caught:
        session.sql(script + OURS).collect()
    assert f"[{caught.value.condition}" in str(wanted.value)
    assert f"SQLSTATE: {caught.value.getSqlState()}" in str(wanted.value)


@pytest.mark.parametrize(("script", "wanted"), WITH_WINDOWS)
def test_windows_in_control_flow(session, script, wanted):
    found = session.sql(script.replace("⊞", WINDOWS))
    assert sorted(map(tuple, found.collect())) == wanted
    assert rows(session.sql("SELECT kept")) == (["kept"], [(8,)])


@pytest.mark.parametrize(("script", "wanted"), UNSEEN)
def test_texts_that_a_script_does_not_show_may_have_windows(session, script, wanted):
    text = f"SELECT s.i FROM t {WINDOWS}"
    session.sql(f"DECLARE OR REPLACE VARIABLE text STRING DEFAULT '{text}'")
    assert sorted(map(tuple, session.sql(script).collect())) == wanted
    session.sql("DROP TEMPORARY VARIABLE text")


def test_variables_with_labels_are_arguments_of_functions_over_windows(session):
    body = f"RETURN SELECT MAX(COUNT(w)) FROM t {WINDOWS.replace('15', 'least')}"
    session.sql(f"CREATE TEMPORARY FUNCTION longest(least INT) RETURNS INT {body}")
    script = (
        "BEGIN l: BEGIN DECLARE x, y INT = 15; SELECT i, longest(l.y + i) AS a, longest(l.x) AS b"
        " FROM (SELECT i, named_struct('x', v) AS l FROM t); END; END"
    )
    assert rows(session.sql(script.replace("l.y", "y"))) == (
        ["i", "a", "b"], [(1, 2, 2), (2, 2, 2), (3, 2, None), (4, 2, 1)]
    )  # fmt: skip
    script = "BEGIN q: BEGIN DECLARE x INT = 15; SELECT i, longest(q.x) AS a FROM t; END; END"
    assert rows(session.sql(script)) == (["i", "a"], [(1, 2), (2, 2), (3, 2), (4, 2)])
    session.sql("DROP TEMPORARY FUNCTION longest")


def test_scripts_are_checked(session):
    session.check("BEGIN DECLARE x INT DEFAULT 1; SET kept = 99; SELECT x; END")
    assert rows(session.sql("SELECT kept")) == (["kept"], [(8,)])
    for script, fragment in [
        ("BEGIN SELEC 1; END", "SELEC"),
        ("BEGIN SELECT wrong FROM t; END", "wrong"),
        ("BEGIN LEAVE nowhere; END", "nowhere"),
    ]:
        with pytest.raises(WindrowError) as caught:
            session.check(script)
        (context,) = caught.value.getQueryContext()
        assert (caught.value.sql, context.fragment()) == (script, fragment)


def test_a_label_before_a_whole_script_is_refused(session):
    text = f"SELECT 1; l: BEGIN SELECT 2; SELECT s.i FROM t {WINDOWS}; END l; SELECT 3"
    with pytest.raises(WindrowError, match="PARSE_SYNTAX_ERROR") as caught:
        session.script(text)
    assert caught.value.hint == "write BEGIN l: BEGIN … END l; END: blocks in a script have labels"


def test_an_error_in_a_handler_ends_the_block_with_the_handler_for_it(session):
    """Spark's own interpreter goes on behind the inner block."""
    script = (
        f"BEGIN {HANDLED} SQLEXCEPTION BEGIN SELECT 'outer' AS h; END; BEGIN {HANDLED} SQLEXCEPTION"
        f" BEGIN SELECT 2 DIV 0; END; SELECT 1 DIV 0; END; SELECT 'after' AS h; END {OURS}"
    )
    assert rows(session.sql(script)) == (["h"], [("outer",)])


def test_parameters_of_scripts(session):
    script = f"BEGIN IF ? > 1 THEN SELECT s.i, ? AS x FROM t WHERE i > :least {WINDOWS}; END IF; END"
    found = session.sql(script.replace(":least", "?"), 5, "x", 2)
    assert sorted(map(tuple, found.collect())) == [(3, "x")]
    immediate = script[script.index("SELECT") : script.index(";")].replace(":least", "?")
    found = session.sql("EXECUTE IMMEDIATE ? USING ?, ?", immediate, "x", 2)
    assert sorted(map(tuple, found.collect())) == [(3, "x")]
    named = script.replace("?", ":one")
    assert sorted(map(tuple, session.sql(named, one=5, least=2).collect())) == [(3, 5)]


@pytest.mark.parametrize(
    ("script", "fragment"),
    [
        ("BEGIN\n IF true THEN -- a comment; with END\n  SELECT s.wrong FROM t ⊞;\n END IF; END", "s.wrong"),
        ("BEGIN WHILE (SELECT MAX(wrong) FROM t ⊞) > 1 DO SELECT 1; END WHILE; END", "wrong"),
        ("BEGIN FOR r AS SELECT s.wrong FROM t ⊞ DO SELECT 1; END FOR; END", "s.wrong"),
        ("BEGIN FOR r AS SELECT s.i FROM t ⊞ DO SELECT r.wrong; END FOR; END", "r.wrong"),
        ("BEGIN SELECT 1; SELECT s.i FRM t ⊞; END", None),
        ("BEGIN SELECT s.i FROM t ⊞; IF true SELECT 1; END IF; END", ";"),
        ("BEGIN SELECT s.i FROM t ⊞; LEAVE `no where`; END", "`no where`"),
        ("BEGIN DECLARE x INT DEFAULT wrong; SELECT s.i FROM t ⊞; END", "wrong"),
        ("BEGIN DECLARE c CURSOR FOR SELECT s.i FROM t ⊞; END", "DECLARE"),
        ("BEGIN SELECT s.i FROM t ⊞; END more", "more"),
        ("BEGIN DECLARE x INT; SELECT s.i FROM t ⊞; DROP TEMP VAR x; END", "DROP TEMP VAR"),
    ],
)
def test_errors_point_into_the_script(session, script, fragment):
    text = script.replace("⊞", WINDOWS)
    with pytest.raises(WindrowError) as caught:
        session.sql(text)
    (context,) = caught.value.getQueryContext()
    assert caught.value.sql == text
    assert fragment is None or context.fragment() == fragment


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("SELECT ?, s.wrong FROM t ⊞", "s.wrong"),
        ("SELECT ? DIV 0, MAX(s.i) FROM t ⊞", "? DIV 0"),
        ("SELECT ?, :a FROM t ⊞", "?, :a"),
    ],
)
def test_errors_in_executed_texts_point_into_these(session, text, fragment):
    text = text.replace("⊞", WINDOWS)
    with pytest.raises(WindrowError) as caught:
        session.sql(f"BEGIN EXECUTE IMMEDIATE '{text}' USING 5; END").collect()
    (context,) = caught.value.getQueryContext()
    assert (caught.value.sql, context.fragment()) == (text, fragment)


@pytest.mark.parametrize("second", [1_792_888_200, 1_792_891_800])
def test_rows_keep_their_values_at_a_change_of_the_clock(spark, session, second):
    spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
    try:
        row = f"SELECT timestamp_seconds({second}) AS t, INTERVAL '5' MONTH AS m"
        found = session.sql(
            f"BEGIN FOR r AS {row} DO SELECT unix_seconds(r.t) AS s, r.m = INTERVAL '5' MONTH AS same;"
            f" END FOR; END{OURS}"
        )
        assert [tuple(one) for one in found.collect()] == [(second, True)]
        found = session.sql(f"BEGIN {row}; SET kept = 3; END{OURS}")
        found.df.createOrReplaceTempView("found_rows")
        seconds = spark.sql("SELECT unix_seconds(t), m = INTERVAL '5' MONTH FROM found_rows")
        assert [tuple(one) for one in seconds.collect()] == [(second, True)]
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        spark.catalog.dropTempView("found_rows")


def test_a_script_that_fails_leaves_the_variables_of_the_session_as_they_were(session):
    failing = f"BEGIN DECLARE kept INT = 1; DECLARE other INT = 2; SELECT 1 DIV 0, s.i FROM t {WINDOWS}; END"
    with pytest.raises(WindrowError):
        session.sql(f"{failing[:-4]} SELECT 1; END").collect()
    assert [tuple(one) for one in session.sql("SELECT kept").collect()] == [(8,)]
    with pytest.raises(WindrowError, match="UNRESOLVED_COLUMN"):
        session.sql("SELECT other")

"""What the Python functions of the clauses take: relations, names, aliases, and Columns that they refuse."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import windrow
from windrow import boundary, match_recognize, window_by
from windrow.errors import NotSupportedError, UsageError, WindrowError
from windrow.spark.tasks import layout

ROWS = [("A", day, val) for day, val in enumerate([31, 18, 22, 40, 24, None, 10], 1)]


@pytest.fixture
def rows(spark):
    return spark.createDataFrame(ROWS, "station string, day int, val int")


def windows(rows, **arguments):
    asked = {
        "type": "tumbling",
        "order_by": "day",
        "start": boundary("s", when="s.val < 25"),
        "select": "s.day",
    }
    return window_by(rows, **(asked | arguments))


def matches(rows, **arguments):
    asked = {
        "order_by": "day",
        "pattern": "a b",
        "define": {"b": "b.val < a.val"},
        "measures": {"d": "a.day"},
    }
    return match_recognize(rows, **(asked | arguments))


def below(*names):
    return F.udf(lambda *values: values[0] < 25, "boolean")(*names)


def number(*names):
    return F.udf(lambda *values: values[0], "int")(*names)


def others(rows):
    return rows.sparkSession.createDataFrame(ROWS, rows.schema)


def found(frame):
    return sorted(map(tuple, frame.collect()))


def test_columns_of_the_dataframe_are_its_columns(rows):
    assert found(
        matches(rows, partition_by=rows.station, order_by=rows["day"].asc(), select=[rows.station, "d"])
    ) == [
        ("A", 1),
        ("A", 4),
    ]
    below = {"b": rows.val < 20}
    assert found(matches(rows.where("day > 0"), define=below, measures={"d": F.max(rows.day)})) == [
        (2,),
        (7,),
    ]


@pytest.mark.parametrize(
    ("ask", "message", "hint"),
    [
        (
            lambda rows: matches(rows, partition_by=others(rows).station),
            "partition_by: column station is of another",
            "F.col('station')",
        ),
        (
            lambda rows: windows(rows, select=["s.day", others(rows).val]),
            "select[1]: column val is of another",
            "F.col('val')",
        ),
        (
            lambda rows: windows(rows, start=boundary("s", when=rows.val < 25)),
            "start: variable val is not",
            "write s.val",
        ),
        (
            lambda rows: windows(rows, start=boundary("s", when=below("s.nope"))),
            "start: rows have no column nope",
            "station, day, val",
        ),
        (
            lambda rows: windows(rows, start=boundary("s", when=below("s.vall"))),
            "start: rows have no column vall",
            "did you mean val?",
        ),
        (
            lambda rows: windows(rows, start=boundary("s", when=below("t.val"))),
            "start: variable t is not",
            "use one of s",
        ),
        (
            lambda rows: windows(rows, end=boundary("e", when=below("e.val", "s.nope"))),
            "end: rows have no column nope",
            "station, day, val",
        ),
        (
            lambda rows: windows(rows, start=boundary("s", when=number("s.val"))),
            "start: predicate of START is of type int",
            "write a condition",
        ),
        (
            lambda rows: windows(rows, end=boundary("e", when=number("e.val", "s.val"))),
            "end: predicate of END is of type int",
            "write a condition",
        ),
        (
            lambda rows: windows(rows, partition_by=number("nope")),
            "partition_by: rows have no column nope",
            "use one of the columns station, day, val",
        ),
        (
            lambda rows: matches(rows, measures={"x": F.col("info").withField("a", F.lit(1))}),
            "measures['x']: the Column cannot be written as SQL: it has withField",
            "withColumn",
        ),
        (
            lambda rows: matches(rows, define={"b": number("b.val") > 1}),
            "define['b']: the Column cannot be written as SQL: it has a Python function",
            "withColumn",
        ),
        (
            lambda rows: windows(rows, select=F.row_number().over(Window.orderBy("s.day"))),
            "select: the Column cannot be written as SQL: it has over()",
            "select it from the result",
        ),
        (
            lambda rows: windows(rows, start=boundary("s", when="s.val < :least")),
            "start: parameter :least has no value",
            "write the value in the text",
        ),
        (
            lambda rows: windows(rows, order_by="dya"),
            "order_by: ",
            "did you mean day?",
        ),
        (
            lambda rows: windows(rows, select="total(s.day) AS t"),
            "select: ",
            "session.register('t', df)",
        ),
    ],
)
def test_errors_about_columns_say_what_the_user_wrote(rows, ask, message, hint):
    with pytest.raises(WindrowError) as caught:
        ask(rows)
    assert caught.value.message.startswith(message)
    assert hint in (caught.value.hint or "")
    assert "__" not in str(caught.value)


def test_reserved_and_odd_words_are_names(rows):
    names = ["from", "select", "where", "emit", "rows", "order", "qualify", "a b", "x.y", "x`y", "table"]
    frame = windows(rows, name="order", select=[F.col("s.day").alias(name) for name in names])
    assert (frame.columns, found(frame)[0]) == (names, (2,) * len(names))
    frame = matches(rows, measures=dict.fromkeys(names, "1"))
    assert (frame.columns, found(frame)[0]) == (names, (1,) * len(names))
    frame = windows(rows, start=boundary("select", when=F.col("select.val") < 25), select=F.col("select.day"))
    assert found(frame)[0] == (2,)
    define = {"select": F.col("select.val") > 0, "b": "b.val < 20"}
    assert found(matches(rows, pattern="`select` b", define=define, measures={"d": "b.day"})) == [(2,)]


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda rows: windows(rows, start=3), "start: 3 is neither a boundary nor SQL"),
        (
            lambda rows: windows(rows, end=F.col("x") > 1),
            "end: Column<'>(x, 1)'> is neither a boundary nor SQL",
        ),
        (
            lambda rows: windows(rows, start="low.val < 25"),
            "start: 'low.val < 25' is a condition, and no boundary: it names no row",
        ),
        (lambda rows: windows(rows, start=boundary(3)), "start: 3 is no name of a variable"),
        (lambda rows: windows(rows, name=None), "name: None is not a text"),
        (lambda rows: windows(rows, name=""), "name is empty"),
        (lambda rows: windows(rows, only_start="yes"), "only_start: 'yes' is neither True nor False"),
        (lambda rows: windows(rows, select=[]), "select is empty"),
        (lambda rows: windows(rows, partition_by=" -- none"), "partition_by is empty"),
        (lambda rows: windows(rows, partition_by=b"day"), "partition_by: b'day' is neither SQL nor a Column"),
        (lambda rows: matches(rows, select={"a": "d"}), "select: {'a': 'd'} is neither SQL nor a Column"),
        (lambda rows: matches(rows, pattern=None), "pattern: None is not a text"),
        (lambda rows: matches(rows, pattern=["a", "b"]), "pattern: ['a', 'b'] is not a text"),
        (lambda rows: matches(rows, define=["b AS true"]), "define: ['b AS true'] is neither a dict nor SQL"),
        (lambda rows: matches(rows, define={3: "true"}), "define: 3 is not a text"),
        (lambda rows: matches(rows, measures={3: "1"}), "measures: 3 is not a text"),
        (lambda rows: matches(rows, measures={"n": "-- x"}), "measures['n'] is empty"),
        (lambda rows: matches(rows, rows_per_match=None), "rows_per_match: None is not a text"),
        (lambda rows: matches(rows, after_match=3), "after_match: 3 is not a text"),
        (lambda rows: matches(rows, after_match=""), "after_match is empty"),
        (lambda rows: matches(rows, subset=3), "subset: 3 is no dict"),
        (lambda rows: matches(rows, subset={"u": "ab"}), "subset['u']: 'ab' is no list of variables"),
        (lambda rows: matches(rows, subset={"u": [3]}), "subset['u']: [3] is no list of variables"),
        (lambda rows: matches(rows, within=True), "within: True is no length of time"),
        (lambda rows: matches(rows, within=float("nan")), "within: nan is no length of time"),
        (lambda rows: matches(rows, duration=-1), "duration: -1 is no length of time"),
        (lambda rows: matches(rows, timer_events=1), "timer_events: 1 is neither True nor False"),
    ],
)
def test_values_that_an_argument_does_not_take_are_refused(rows, ask, message):
    with pytest.raises(UsageError) as caught:
        ask(rows)
    assert (caught.value.condition, caught.value.message) == ("INVALID_ARGUMENT", message)
    assert caught.value.hint


def test_the_hint_for_a_condition_alone_is_the_boundary(rows):
    with pytest.raises(UsageError) as caught:
        windows(rows, start="low.val < 25", select="low.day")
    written = "start=boundary('low', when='low.val < 25'), or start='AS low WHEN low.val < 25'"
    assert caught.value.hint == f"write {written}"
    either = [
        windows(rows, start=start, select="low.day")
        for start in (boundary("low", when="low.val < 25"), "AS low WHEN low.val < 25")
    ]
    assert found(either[0]) == found(either[1]) != []
    with pytest.raises(UsageError) as caught:
        windows(rows, end="val < 25")
    assert "end='AS e WHEN e.val < 25'" in caught.value.hint


def test_arguments_may_end_in_comments(rows):
    cold = F.expr("s.val < 25 -- cold") & (F.col("s.day") > 1)
    select = ["s.day -- first", "COUNT(w) /* n */"]
    frame = windows(rows, start=boundary("s", when=cold), select=select)
    assert found(frame) == [(2, 1), (3, 2), (5, 2), (7, 1)]
    define = "b AS b.val < a.val -- falls"
    frame = matches(rows, pattern="a b -- two", define=define, after_match="to next row -- all")
    assert found(frame) == [(1,), (4,)]


def test_select_may_have_subqueries_with_windows(spark, rows):
    rows.createOrReplaceTempView("measured_twice")
    clause = "WINDOW BY v AS (TYPE SLIDING ORDER BY day START AS a END UNBOUNDED)"
    how_many = f"(SELECT COUNT(*) FROM measured_twice {clause}) AS n"
    assert found(windows(rows, select=["s.day", how_many]))[0] == (2, 7)
    cold = F.udf(lambda x: x is not None and x < 20, "boolean")
    start = boundary("s", when=cold("s.val"))
    assert found(windows(rows, start=start, select=["s.day", how_many])) == [(2, 7), (7, 7)]
    spark.catalog.dropTempView("measured_twice")


def test_a_relation_has_its_own_rows_whatever_its_name_is_given_to_later(spark):
    session = windrow.Session(spark)
    first = session.register("given_twice", spark.createDataFrame([("Z", 1)], "k string, i int"))
    session.register("given_twice", spark.createDataFrame([("Y", 1), ("X", 2)], "k string, i int"))
    found = window_by(first, order_by="i", start="AS s", end="UNBOUNDED", select=["s.k", "COUNT(w) AS n"])
    assert [tuple(row) for row in found.collect()] == [("Z", 1)]
    spark.catalog.dropTempView("given_twice")


@pytest.mark.parametrize(
    "condition",
    [
        lambda: F.row_number().over(Window.orderBy("s.day")) == 2,
        lambda: F.sum("s.val").over(Window.partitionBy("s.station")) > 3,
        lambda: F.explode(F.array("s.day")) == 2,
    ],
)
def test_a_predicate_has_no_over_and_no_rows(rows, condition):
    with pytest.raises(NotSupportedError) as caught:
        window_by(
            rows, order_by="day", start=boundary("s", when=condition()), end=boundary("e"), select=["s.day"]
        )
    assert caught.value.condition == "WINDOW_FUNCTION_IN_PREDICATE"


def test_aliases_of_several_columns_and_quoted_names_of_windows(rows):
    found = window_by(
        rows,
        order_by="day",
        start="AS s WHEN s.val < 25",
        end="NEXT AS n WHEN n.val >= 25",
        name="my window",
        select=["s.day", F.posexplode("`my window`.val").alias("p", "v")],
    )
    assert found.columns == ["day", "p", "v"]


@pytest.mark.parametrize("value", ["0", "-3", "x", "1.5", "1g"])
@pytest.mark.parametrize("name", [layout.ROWS_SETTING, layout.TASK_SETTING])
def test_numbers_of_rows_are_whole_and_above_zero(spark, conf, rows, name, value):
    conf(name, value)
    with pytest.raises(UsageError) as caught:
        window_by(
            rows, partition_by="station", order_by="day", start="AS s", end="AS e", select=["s.day"]
        ).collect()
    assert (caught.value.condition, name in caught.value.message) == ("INVALID_SETTING", True)


def test_doubled_quotes_in_csv_are_quotes(spark, tmp_path):
    (tmp_path / "q.csv").write_text('k,v\n"q""x",1\n"C:\\",2\n', encoding="utf-8")
    found = windrow.Session(spark).sql(f"SELECT * FROM '{tmp_path / 'q.csv'}'")
    assert [tuple(row) for row in found.df.collect()] == [('q"x', 1), ("C:\\", 2)]


def test_a_view_is_altered_to_windows(spark, rows):
    session = windrow.Session(spark)
    rows.createOrReplaceTempView("measured")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW altered AS SELECT 1 AS a")
    query = "SELECT s.day FROM measured WINDOW BY w AS (TYPE SLIDING ORDER BY day START AS s END UNBOUNDED)"
    session.sql(f"ALTER VIEW altered AS {query}")
    assert session.sql("SELECT * FROM altered").collect() == session.sql(query).collect()
    for name in ("altered", "measured"):
        spark.catalog.dropTempView(name)


def test_a_script_of_sparks_stands_among_other_statements(spark):
    found = windrow.Session(spark).script("SELECT 1 AS a; BEGIN SELECT 2; SELECT 3 AS b; END; SELECT 4 AS c")
    assert [[tuple(row) for row in one.collect()] for one in found] == [[(1,)], [(3,)], [(4,)]]


def test_inclusive_needs_a_length(rows):
    with pytest.raises(UsageError, match="within is not given") as raised:
        matches(rows, inclusive=True)
    assert raised.value.condition == "INVALID_ARGUMENT"


@pytest.mark.parametrize("after_match", ["SKIP TO NEXT ROW", "AFTER MATCH SKIP TO NEXT ROW"])
def test_after_match_may_have_its_words(rows, after_match):
    assert (
        matches(rows, after_match=after_match).collect() == matches(rows, after_match="to next row").collect()
    )

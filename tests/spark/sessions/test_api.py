"""window_by over DataFrames, and the session's and the relation's own methods."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType

import windrow
from windrow import UNBOUNDED, boundary, window_by
from windrow.errors import AnalysisError, UsageError, WindrowError

ROWS = [("a", 1, 10.0), ("a", 2, 20.0), ("a", 3, 5.0), ("b", 1, 7.0), ("b", 2, 8.0)]


# Columns can only be made while a session runs, so the cases that hold some are functions.


@pytest.fixture(scope="module")
def df(spark) -> Iterator[DataFrame]:
    frame = spark.createDataFrame(ROWS, "k string, i int, v double")
    frame.createOrReplaceTempView("api_rows")
    yield frame
    spark.catalog.dropTempView("api_rows")


def rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()), key=repr)


def by_sql(df: DataFrame, sql: str) -> list[tuple[Any, ...]]:
    return rows(windrow.Session(df.sparkSession).sql(sql).df)


NEXT_IS_LESS = (
    "SELECT s.k, s.i, e.i AS last, AVG(w.v) AS a FROM api_rows WINDOW BY w AS (TYPE SLIDING PARTITION BY k"
    " ORDER BY i START AS s WHEN s.v > 6 END AS e NEXT AS n WHEN n.v < e.v)"
)
SELECT = ["s.k", "s.i", "e.i AS last", "AVG(w.v) AS a"]


@pytest.mark.parametrize(
    "arguments",
    [
        lambda: {
            "partition_by": "k",
            "order_by": "i",
            "start": "AS s WHEN s.v > 6",
            "end": "AS e NEXT AS n WHEN n.v < e.v",
        },
        lambda: {
            "partition_by": ["k"],
            "order_by": ["i ASC"],
            "start": boundary("s", when="s.v > 6"),
            "end": boundary("e", next="n", when="n.v < e.v"),
        },
        lambda: {
            "partition_by": F.col("k"),
            "order_by": F.col("i"),
            "start": boundary("s", when=F.col("s.v") > 6),
            "end": boundary("e", next="n", when=F.col("n.v") < F.col("e.v")),
        },
        lambda: {
            "partition_by": [F.lower("k"), "k"],
            "order_by": ["i", F.lit(1)],
            "start": boundary("s", when=F.expr("s.v > 6")),
            "end": boundary("e", next="n", when="n.v < e.v"),
        },
    ],
    ids=["words", "boundaries", "Columns", "mixed"],
)
def test_strings_and_columns_say_the_same_as_sql(df, arguments):
    assert rows(window_by(df, select=SELECT, **arguments())) == by_sql(df, NEXT_IS_LESS)


def test_all_twelve_variables_and_only_are_passed_on(df):
    names = {"row": "{0}", "at": "{0}p", "prev": "{0}0", "next": "{0}1"}
    sides = {
        side: boundary(**{role: name.format(side) for role, name in names.items()}, when=when)
        for side, when in (("l", "l.i = 2"), ("s", "sp = lp - 1"), ("e", "ep = lp + 1"))
    }
    found = window_by(
        df, partition_by="k", order_by="i", label=sides["l"], start=sides["s"], end=sides["e"], only_end=True
    )
    assert found.columns == ["l", "lp", "l0", "l1", "s", "sp", "s0", "s1", "e", "ep", "e0", "e1", "w"]
    assert [row.lp for row in found.collect()] == [2]


@pytest.mark.parametrize(
    ("arguments", "count"),
    [
        (lambda: {"start": UNBOUNDED, "end": UNBOUNDED}, 2),
        (lambda: {"type": "tumbling", "start": "AS s WHEN s.i <> 2"}, 3),
        (lambda: {"type": "tumbling", "start": boundary("s", when=F.col("s.i") != 2)}, 3),
        (lambda: {"start": "", "end": ""}, 5),
        (lambda: {"start": "AS s", "end": "AS e WHEN e.v < s.v", "only_end": True}, 2),
        (lambda: {"label": "AS l", "start": "AS s WHEN s.v > l.v", "end": UNBOUNDED, "only_start": True}, 3),
    ],
)
def test_every_form_of_the_clause_can_be_asked_for(df, arguments, count):
    assert window_by(df, partition_by="k", order_by="i", select="COUNT(*) AS n", **arguments()).collect() == [
        (count,)
    ]


def test_the_result_may_be_selected_with_columns(df):
    frame = window_by(
        df, order_by=["k", "i"], start="AS s", end=UNBOUNDED, select=[F.col("s.i"), F.size("w").alias("n")]
    )
    assert rows(frame) == [(1, 2), (1, 5), (2, 1), (2, 4), (3, 3)]


def test_the_rows_of_the_window_are_those_of_the_dataframe_without_keys_that_are_columns(df):
    frame = window_by(df, partition_by=F.upper("k"), order_by=F.col("i").cast("long"), start="AS s", end="")
    assert frame.schema["s"].dataType.simpleString() == "struct<k:string,i:int,v:double>"


def test_a_function_of_the_users_over_both_rows_takes_the_general_plan(spark, df):
    spark.udf.register("gap_of", lambda left, right: right - left, IntegerType())
    found = window_by(
        df,
        partition_by="k",
        order_by="i",
        start="AS s",
        end="AS e WHEN gap_of(s.i, e.i) = 1",
        select=["s.k", "s.i", "e.i AS last"],
        only_end=True,
    )
    assert rows(found) == [("a", 1, 2), ("a", 2, 3), ("b", 1, 2)]


@pytest.mark.parametrize("is_sql", [True, False])
def test_a_column_may_read_two_boundaries(df, is_sql):
    more = F.col("e.v") > F.col("s.v")
    when = more if is_sql else F.udf(lambda value: value, "boolean")(more)
    found = window_by(
        df,
        partition_by="k",
        order_by="i",
        start=boundary("s"),
        end=boundary("e", when=when),
        select=["s.k", F.col("s.i"), F.col("e.i").alias("last"), F.count("w").alias("n")],
        only_end=True,
    )
    assert found.columns == ["k", "i", "last", "n"]
    assert rows(found) == [("a", 1, 2, 2), ("b", 1, 2, 2)]


def test_relations_give_relations_and_streams_what_can_be_started(spark, df):
    session = windrow.Session(spark)
    asked = {"order_by": "i", "start": "AS s", "end": "NEXT AS n WHEN n.v < s.v", "select": "s.i"}
    session.register("api_recorded", df.where("k = 'a'"))
    for relation in (session.table("api_recorded"), session.sql("SELECT * FROM api_recorded")):
        found = window_by(relation, **asked)
        assert isinstance(found, windrow.Relation)
        assert sorted(found.collect()) == [(1,), (2,), (3,)]
        assert "1 WINDOW BY w" in found.plan()
    coming = session.spark.readStream.format("rate").load()
    with pytest.raises(WindrowError) as caught:
        window_by(coming, **asked)
    assert caught.value.condition == "UNSUPPORTED_STREAM"
    assert "window_by" in caught.value.hint
    stream = session.stream("api_coming", coming, rowtime="timestamp")
    live = window_by(
        stream,
        order_by="timestamp",
        start=boundary("s", when=F.col("s.value") > 1),
        end=boundary("e", next="n", when=F.col("n.value") % 2 == 0),
        select=["s.timestamp", F.count("w").alias("n")],
    )
    assert (type(live).__name__, live.columns) == ("LiveRelation", ["timestamp", "n"])


@pytest.mark.parametrize(
    ("arguments", "condition", "hint"),
    [
        (lambda: {"type": "slidng"}, "UNKNOWN_WINDOW_TYPE", "did you mean sliding?"),
        (
            lambda: {"select": ["s.k", changing()("s.v")]},
            "INVALID_ARGUMENT",
            "leave it out here, and select it from the result",
        ),
        (lambda: {"order_by": []}, "MISSING_ORDER_BY", None),
        (lambda: {"end": None}, "MISSING_END", None),
        (lambda: {"start": "AS s WHEN s.vv > 1"}, "UNKNOWN_FIELD", "did you mean v?"),
        (lambda: {"start": boundary("s", when=F.col("s.v"))}, "PREDICATE_NOT_BOOLEAN", None),
        (lambda: {"start": boundary("s", at="s")}, "DUPLICATE_VARIABLE", None),
        (lambda: {"start": boundary("s", when=F.rand() > 2)}, "NONDETERMINISTIC_PREDICATE", None),
        (lambda: {"end": boundary("e", when=F.col("e.v") > F.randn(3))}, "NONDETERMINISTIC_PREDICATE", None),
        (lambda: {"start": boundary("s", when=changing()("s.v"))}, "NONDETERMINISTIC_PREDICATE", None),
        (
            lambda: {"start": boundary("s", when=F.current_timestamp() > F.lit("2026-01-01"))},
            "SYSTEM_CLOCK_IN_PREDICATE",
            "compare with a time in the rows, or pass the time as a parameter",
        ),
        (lambda: {"partition_by": F.col("k").desc()}, "INVALID_ARGUMENT", None),
        (lambda: {"select": "x.k"}, "UNKNOWN_VARIABLE", "use one of s, w"),
    ],
)
def test_a_wrong_argument_is_an_error_of_ours(df, arguments, condition, hint):
    right = {"order_by": "i", "start": "AS s", "end": ""}
    with pytest.raises(WindrowError) as caught:
        window_by(df, **(right | arguments())).collect()
    assert caught.value.condition == condition
    assert hint is None or caught.value.hint == hint


def test_the_type_may_be_written_as_in_sql(df):
    windows = window_by(df, type="TUMBLING", order_by="i", start="AS s", end="", select="s.i")
    assert windows.columns == ["i"]


def changing():
    return F.udf(lambda value: value > 1, "boolean").asNondeterministic()


@pytest.mark.parametrize(
    ("column", "text"),
    [
        (lambda: F.col("v").desc(), "v DESC"),
        (lambda: F.col("v").asc_nulls_last(), "v ASC NULLS LAST"),
        (lambda: F.desc_nulls_first("v"), "v DESC NULLS FIRST"),
        (lambda: F.col("x DESC").asc(), "`x DESC` ASC"),
    ],
)
def test_columns_are_ordered_by_their_direction(spark, column, text):
    values = [("a", 1.0), ("b", None), ("c", 3.0), ("d", 2.0)]
    frame = spark.createDataFrame([(k, v, v) for k, v in values], "k string, v double, `x DESC` double")
    asked = {"start": "AS s", "end": "NEXT AS n WHEN TRUE", "select": ["s.k", "n.k AS following"]}
    assert rows(window_by(frame, order_by=column(), **asked)) == rows(
        window_by(frame, order_by=text, **asked)
    )


def test_the_place_of_an_error_is_in_the_clause_that_the_arguments_make(df):
    with pytest.raises(AnalysisError) as caught:
        window_by(df, order_by="i", start="AS s WHEN s.vv > 1", end="")
    (context,) = caught.value.getQueryContext()
    assert context.fragment() == "s.vv"
    assert "WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s WHEN s.vv > 1 END" in context.sql


# -- Session and Relation ---------------------------------------------------------------------------


@pytest.fixture
def session(spark, df) -> windrow.Session:
    return windrow.Session(spark)


def test_a_session_uses_the_one_that_it_is_given(spark, session):
    assert session.spark is spark


def test_dataframes_relations_and_files_are_registered_under_a_name(session, df, tmp_path):
    path = tmp_path / "rows.parquet"
    df.write.parquet(str(path))
    try:
        for source in (df, session.table("api_rows"), path, str(path), [path]):
            assert rows(session.register("named", source).df) == ROWS
    finally:
        session.spark.catalog.dropTempView("named")


@pytest.mark.parametrize("name", ["a b", "", "1a", "a.b", "a;b", "`a`", None, 1])
def test_a_name_for_a_table_is_an_identifier(session, df, name):
    with pytest.raises(UsageError) as caught:
        session.register(name, df)
    assert caught.value.condition == "INVALID_NAME"


def test_positional_and_named_parameters_do_not_mix(session):
    with pytest.raises(UsageError) as caught:
        session.sql("SELECT ?, :a", 1, a=2)
    assert (caught.value.condition, caught.value.sqlstate) == ("MIXED_PARAMETERS", "22023")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda session: session.sql("SELECT ?", object()), "parameter 1 is a object"),
        (lambda session: session.sql("SELECT :a", a={1, 2}), "parameter a is a set"),
        (lambda _: windrow.Session("local[1]"), "'local[1]' is not a SparkSession"),
        (lambda session: windowed(session, when=5), "start: 5 is neither SQL nor a Column"),
        (lambda session: windowed(session, select=["s.id", 5]), "select[1]: 5 is neither SQL nor a Column"),
        (lambda session: windowed(session, partition_by=5), "partition_by: 5 is neither SQL nor a Column"),
        (lambda session: windowed(session, order_by=None), "order_by: None is neither SQL nor a Column"),
    ],
)
def test_arguments_that_spark_has_no_value_of_are_refused(session, call, message):
    with pytest.raises(UsageError) as caught:
        call(session)
    assert (caught.value.condition, caught.value.message[: len(message)]) == ("INVALID_ARGUMENT", message)


def windowed(session, when=None, order_by="id", select=("s.id",), **options):
    start = windrow.boundary("s", when=when)
    rows = session.spark.range(3)
    return windrow.window_by(rows, type="tumbling", order_by=order_by, start=start, select=select, **options)


def test_an_unknown_execution_mode_is_refused(spark):
    with pytest.raises(UsageError) as caught:
        windrow.Session(spark, execution="refrence")
    assert (caught.value.condition, caught.value.hint) == ("UNKNOWN_EXECUTION", "did you mean reference?")


def test_a_relation_shows_itself_in_every_form(session, capsys):
    relation = session.sql(NEXT_IS_LESS)
    assert repr(relation) == "Relation[k: string, i: int, last: int, a: double]"
    relation.show(1, truncate=False)
    relation.explain()
    shown = capsys.readouterr().out
    assert "|k  |i  |last|a" in shown
    assert relation.plan() in shown
    assert relation.to_arrow().num_rows == len(relation.to_pandas()) == len(relation.collect()) == 4


def test_html_is_escaped_and_says_when_rows_are_left_out(session):
    html = session.sql("SELECT '<b>' AS `a&b`, NULL AS n FROM range(30)")._repr_html_()
    assert ">a&amp;b</th>" in html
    assert ">&lt;b&gt;</td>" in html
    assert ">NULL</span></td>" in html
    assert html.count("<tr>") == 21
    assert "first 20 rows; there are more" in html


def test_a_dataframe_where_a_name_is_meant_is_refused_with_how_to_name_it(spark):
    with pytest.raises(windrow.UsageError, match="INVALID_ARGUMENT") as refused:
        windrow.Session(spark).table(spark.range(1))
    assert "session.register('t', df)" in refused.value.hint

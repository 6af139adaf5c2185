"""What the Python functions of the clauses take: relations, names, aliases, and Columns that they refuse."""

from __future__ import annotations

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F

import windrow
from windrow import boundary, window_by
from windrow.errors import NotSupportedError, UsageError
from windrow.spark.tasks import layout

ROWS = [("A", day, val) for day, val in enumerate([31, 18, 22, 40, 24, None, 10], 1)]


@pytest.fixture
def rows(spark):
    return spark.createDataFrame(ROWS, "station string, day int, val int")


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


def test_a_view_is_not_altered_to_windows(spark, rows):
    session = windrow.Session(spark)
    rows.createOrReplaceTempView("measured")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW altered AS SELECT 1 AS a")
    query = "SELECT s.day FROM measured WINDOW BY w AS (TYPE SLIDING ORDER BY day START AS s END UNBOUNDED)"
    with pytest.raises(NotSupportedError, match="ALTER VIEW"):
        session.sql(f"ALTER VIEW altered AS {query}")
    assert [tuple(row) for row in session.sql("SELECT * FROM altered").df.collect()] == [(1,)]
    for name in ("altered", "measured"):
        spark.catalog.dropTempView(name)


def test_a_script_of_sparks_stands_among_other_statements(spark):
    found = windrow.Session(spark).script("SELECT 1 AS a; BEGIN SELECT 2; SELECT 3 AS b; END; SELECT 4 AS c")
    assert [[tuple(row) for row in one.collect()] for one in found] == [[(1,)], [(3,)], [(4,)]]

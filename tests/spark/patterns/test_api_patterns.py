"""match_recognize over DataFrames and relations."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

import windrow
from windrow import match_recognize
from windrow.errors import WindrowError
from windrow.testing import Script

PRICES = [
    ("A", 1, 10),
    ("A", 2, 8),
    ("A", 3, 7),
    ("A", 4, 9),
    ("A", 5, 12),
    ("B", 1, 5),
    ("B", 2, 4),
    ("B", 3, 6),
]
V = {"pattern": "a b+ c+", "define": {"b": "b.p < PREV(b.p)", "c": "c.p > PREV(c.p)"}}


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(PRICES, "k string, d int, p int")


def prev(column):
    return F.call_function("prev", F.col(column))


@pytest.mark.parametrize(
    "arguments",
    [
        lambda: {
            **V,
            "partition_by": "k",
            "order_by": "d",
            "measures": {"low": "MIN(b.p)", "n": "COUNT(*)", "last": "LAST(c.d)"},
        },
        lambda: {
            "pattern": "a b+ c+",
            "define": {"b": F.col("b.p") < prev("b.p"), "c": F.col("c.p") > prev("c.p")},
            "partition_by": F.col("k"),
            "order_by": [F.col("d").asc()],
            "measures": {"low": F.min("b.p"), "n": F.count("*"), "last": F.last("c.d")},
        },
        lambda: {
            "pattern": "a (b b* c+)",
            "define": "b AS b.p < PREV(b.p), c AS c.p > PREV(c.p)",
            "partition_by": ["k"],
            "order_by": ["d ASC NULLS LAST", F.col("p") * 2],
            "measures": ["MIN(b.p) AS low", F.count("*").alias("n"), F.expr("LAST(c.d)").alias("last")],
            "rows_per_match": "one row",
            "after_match": "PAST LAST ROW",
        },
    ],
    ids=["SQL", "Columns", "mixed"],
)
def test_sql_and_columns_say_the_same(df, arguments):
    found = match_recognize(df, **arguments())
    assert found.columns == ["k", "low", "n", "last"]
    assert sorted(map(tuple, found.collect())) == [("A", 7, 5, 5), ("B", 4, 3, 3)]


ALL = [(k, d) for k, d, _ in PRICES]
TOP = {"pattern": "a*", "define": {"a": "a.p > 11"}, "select": ["k", "d"]}
TWO = {"pattern": "a b+", "define": {"b": "true"}, "within": "2"}
RISES = {"pattern": "a b", "define": {"b": "b.p > a.p"}}
ABOVE_BOTH = {"a": "a.p > 9", "b": "b.p < 6", "c": "c.p > AVG(u.p)"}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({**V, "after_match": "to next row"}, [("A", 1), ("A", 2), ("B", 1)]),
        ({**V, "after_match": "to first c"}, [("A", 1), ("B", 1)]),
        (RISES | {"after_match": "all matches"}, [("A", 3), ("A", 4), ("B", 2)]),
        ({"pattern": "ab{2}", "define": {"ab": "ab.p < 9"}}, [("A", 2), ("B", 1)]),
        ({"pattern": "(a | b)+ c", "subset": {"u": ["a", "b"]}, "define": ABOVE_BOTH}, [("B", 1)]),
        (TWO, [("A", 1), ("A", 3), ("B", 1)]),
        (TWO | {"inclusive": True}, [("A", 1), ("A", 4), ("B", 1)]),
        (TOP | {"rows_per_match": "all rows with unmatched rows"}, ALL),
        (TOP | {"rows_per_match": "all rows"}, ALL),
        (TOP | {"rows_per_match": "ALL ROWS PER MATCH"}, ALL),
        ({**V, "after_match": "AFTER MATCH SKIP TO NEXT ROW"}, [("A", 1), ("A", 2), ("B", 1)]),
        (TWO | {"within": 2}, [("A", 1), ("A", 3), ("B", 1)]),
        (TWO | {"within": Decimal("2.0"), "inclusive": True}, [("A", 1), ("A", 4), ("B", 1)]),
        (TOP | {"rows_per_match": "all rows omit empty matches"}, [("A", 5)]),
    ],
)
def test_every_part_of_the_clause_can_be_given(df, arguments, expected):
    asked = {"measures": {"since": "FIRST(d)"}, "partition_by": "k", "order_by": "d"}
    assert sorted(map(tuple, match_recognize(df, **(asked | arguments)).collect())) == expected


def test_lengths_are_timedeltas_too(df):
    timed = df.withColumn("ts", F.timestamp_seconds(F.col("d") * 60))
    found = match_recognize(
        timed,
        partition_by="k",
        order_by="ts",
        pattern="a b+",
        define={"b": "true"},
        within=datetime.timedelta(minutes=2),
        measures={"n": F.count("*")},
    )
    assert sorted(map(tuple, found.collect())) == [("A", 2), ("A", 2), ("B", 2)]


@pytest.mark.parametrize(
    ("arguments", "condition", "message"),
    [
        (lambda: {"define": {"b": "b.q < 1"}}, "UNKNOWN_FIELD", "define['b']: rows have no column q"),
        (lambda: {"define": {"b": F.col("b.q") < 1}}, "UNKNOWN_FIELD", "define['b']: rows have no column q"),
        (lambda: {"pattern": "a (b"}, "PARSE_SYNTAX_ERROR", "pattern: bracket ( is never closed"),
        (lambda: {"pattern": "a b) (c"}, "PARSE_SYNTAX_ERROR", "pattern: "),
        (lambda: {"after_match": "to z"}, "UNKNOWN_VARIABLE", "after_match: "),
        (lambda: {"within": "soon"}, "UNKNOWN_FIELD", "within: "),
        (lambda: {"within": [2]}, "INVALID_ARGUMENT", "within: [2] is no length of time"),
        (lambda: {"measures": F.max("b.p")}, "PARSE_SYNTAX_ERROR", "measures: measure has no name"),
        (lambda: {"measures": {"m": "MAX(b.p", "n": "1"}}, "PARSE_SYNTAX_ERROR", "measures['m']: "),
        (lambda: {"measures": ["1 AS n", "x.y AS m"]}, "UNKNOWN_VARIABLE", "measures[1]: "),
        (lambda: {"order_by": "nothing"}, "UNRESOLVED_COLUMN.WITH_SUGGESTION", "order_by: "),
        (lambda: {"partition_by": F.col("k").desc()}, "INVALID_ARGUMENT", "partition_by has a Column"),
        (lambda: {"rows_per_match": "all"}, "INVALID_ARGUMENT", "rows_per_match 'all' is unknown"),
        (lambda: {"define": {"b": F.udf(lambda x: x)("b.p")}}, "INVALID_ARGUMENT", "define['b']: "),
    ],
)
def test_errors_name_the_argument(df, arguments, condition, message):
    right = {"pattern": "a b", "define": {"b": "b.p > 1"}, "order_by": "d"}
    with pytest.raises(WindrowError) as caught:
        match_recognize(df, **(right | arguments())).collect()
    assert caught.value.condition == condition
    assert caught.value.message.startswith(message)


def test_what_has_no_rows_is_refused():
    with pytest.raises(WindrowError, match="match_recognize takes a DataFrame or a relation"):
        match_recognize("prices", pattern="a", define={})


def test_streams_give_what_can_be_started(spark):
    script = Script(windrow.Session(spark.newSession()))
    script.stream("prices", "d BIGINT, k STRING, p INT", rowtime="d", unit="minutes")
    prices = script.session.table("prices")
    found = match_recognize(
        prices,
        partition_by="k",
        pattern="a b",
        define={"b": F.col("b.p") > F.col("a.p")},
        measures={"d": "LAST(b.d)"},
    )
    assert isinstance(found, windrow.Relation)
    assert found.columns == ["k", "d"]

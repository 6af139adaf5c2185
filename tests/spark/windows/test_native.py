"""Strategy native: Spark's OVER gives the rows of the kernel, where it may stand in for it."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

import pytest

from windrow import Session
from windrow.errors import WindrowError
from windrow.spark.clauses.native import NATIVE_SETTING

FRAMES = {
    "following": "START AS x AT xp END AT ep WHEN ep - xp = 3",
    "one row": "START AS x AT xp END AT ep WHEN ep = xp",
    "chosen rows": "START AS x AT xp WHEN x.n > 0 AND x.t IS NOT NULL END AT ep WHEN ep - xp = 2",
    "around": "LABEL AS x AT xp WHEN x.n < 3 START AT sp WHEN xp - sp = 1 END AT ep WHEN ep - xp = 1",
    "before": "LABEL AS x AT xp START AT sp WHEN xp - sp = 4 END AT ep WHEN ep = xp",
}
SELECT = """x.k, x.o AS at, COUNT(w) AS rows, COUNT(w.d) AS ds, COUNT(w.f) AS fs,
    MIN(w.t) AS t, MAX(w.d) AS d, SUM(w.n) AS total, SUM(w.d) AS money, AVG(w.n) AS mean,
    MIN(w.day) AS day, MAX(w.n * 2) AS twice"""
QUERY = "SELECT {} FROM rows WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY o {} {})"


@pytest.fixture(scope="module")
def rows(spark):
    chance = random.Random(7)

    def maybe(value):
        return None if chance.random() < 0.2 else value

    made = [
        (
            maybe(chance.choice([0.0, -0.0, float("nan"), 1.5])),
            number if number != 17 else None,
            maybe(chance.randint(-5, 5)),
            maybe(Decimal(chance.randint(-900, 900)) / 100),
            maybe(chance.random()),
            maybe(chance.choice(["", "a", "b", "ä"])),
            maybe(date(2024, 1, 1) + timedelta(chance.randint(0, 400))),
        )
        for number in range(120)
    ]
    chance.shuffle(made)
    schema = "k double, o int, n int, d decimal(9,2), f double, t string, day date"
    spark.createDataFrame(made, schema).createOrReplaceTempView("rows")
    return spark


def is_native(relation):
    return "by Spark's OVER" in relation.plan()


@pytest.mark.parametrize("direction", ["", "DESC", "NULLS LAST"])
@pytest.mark.parametrize("frame", FRAMES)
def test_the_rows_are_those_of_the_kernel(rows, conf, frame, direction):
    query = QUERY.format(SELECT, direction, FRAMES[frame])
    conf(NATIVE_SETTING, "always")
    native = Session(rows).sql(query)
    assert is_native(native)
    conf(NATIVE_SETTING, "never")
    kernel = Session(rows).sql(query)
    assert not is_native(kernel)
    assert [(f.name, f.dataType) for f in native.df.schema] == [
        (f.name, f.dataType) for f in kernel.df.schema
    ]
    assert sorted(map(repr, native.df.collect())) == sorted(map(repr, kernel.df.collect()))


@pytest.mark.parametrize(
    ("select", "clause"),
    [
        ("x.k, SUM(w.f)", FRAMES["following"]),
        ("x.k, AVG(w.d)", FRAMES["following"]),
        ("x.k, MIN(w.f)", FRAMES["following"]),
        ("x.k, MEDIAN(w.n)", FRAMES["following"]),
        ("x.k, COUNT(DISTINCT w.n)", FRAMES["following"]),
        ("x.k, xp", FRAMES["following"]),
        ("x.k", "START AS x AT xp ONLY END AT ep WHEN ep - xp = 3"),
        ("x.k", "START AS x AT xp NEXT AS y WHEN y.n > 0 END AT ep WHEN ep - xp = 3"),
        ("x.k", "START AS x AT xp END AT ep WHEN ep - xp >= 3"),
        ("x.k", "LABEL AS x AT xp START AT sp WHEN sp - xp = 1 END AT ep WHEN ep - xp = 2"),
        ("x.k", "LABEL AS x AT xp START AT sp WHEN xp - sp = 2 END AT ep WHEN xp - ep = 1"),
        ("x.k", "LABEL AS x AT xp START AT sp WHEN xp - sp = 2 END AT ep WHEN ep - sp = 3"),
    ],
)
def test_it_stands_in_for_no_other_windows(rows, conf, select, clause):
    conf(NATIVE_SETTING, "always")
    assert not is_native(Session(rows).sql(QUERY.format(select, "", clause)))


def test_by_itself_it_is_chosen_for_many_rows_of_spark_and_short_frames(spark, conf):
    conf(NATIVE_SETTING, "auto")
    columns = ("id % 7 AS k", "id AS o", "CAST(id % 9 AS int) AS n")
    spark.range(3_000_000).selectExpr(*columns).createOrReplaceTempView("many")
    session = Session(spark)
    query = """SELECT x.k, x.o, SUM(w.n) AS total FROM {} WINDOW BY w AS (
        TYPE SLIDING PARTITION BY k ORDER BY o START AS x AT xp END AT ep WHEN ep - xp = {})"""
    assert is_native(session.sql(query.format("many", 19)))
    assert not is_native(session.sql(query.format("many", 999)))
    assert not is_native(session.sql(query.format("(SELECT * FROM many WHERE false)", 19)))
    assert not is_native(session.sql(query.format("(SELECT 1 AS k, 2 AS o, 3 AS n)", 19)))
    unknown = spark.createDataFrame([(1, 2, 3)], "k int, o int, n int")
    unknown.createOrReplaceTempView("unknown")
    assert not is_native(session.sql(query.format("unknown", 19)))
    joined = "(SELECT many.* FROM many JOIN (SELECT id FROM range(9)) ON k = id)"
    assert is_native(session.sql(query.format(joined, 19)))
    plan = session.sql(query.format("many", 19)).plan()
    assert "by Spark's OVER, ROWS BETWEEN 0 PRECEDING AND 19 FOLLOWING" in plan
    assert "in the kernel" not in plan


def test_an_unknown_setting_is_refused(rows, conf):
    conf(NATIVE_SETTING, "allways")
    with pytest.raises(WindrowError, match="allways") as raised:
        Session(rows).sql(QUERY.format("x.k", "", FRAMES["following"]))
    assert raised.value.condition == "INVALID_SETTING"
    assert "always" in raised.value.hint

"""SQL scripts on a Spark Connect server do what they do in a classic session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark.sessions.test_connect import of_program
from tests.spark.windows.test_scripts import FAILING, OURS, SCRIPTS, UNSEEN, WINDOWS, WITH_WINDOWS

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(1200)]


def chosen(scripts: list[str]) -> list[str]:
    """Those in which variables have other names for a while, or in which Windrow looks at texts."""
    return [one for one in scripts if "EXECUTE" in one or one.count("DECLARE") > 1 or "kept" in one]


PROGRAM = r"""
import json
import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import windrow
from windrow.errors import WindrowError

spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
spark.sql("SET spark.sql.scripting.continueHandlerEnabled = true")
session = windrow.Session(spark)
session.sql("CREATE TEMP VIEW t AS SELECT * FROM VALUES (1, 10), (2, 20), (3, 5), (4, 7) AS t (i, v)")


def answer(run, script):
    spark.sql("DECLARE OR REPLACE VARIABLE kept INT DEFAULT 7")
    spark.sql("SET VAR kept = 8")
    try:
        frame = run(script)
        found = [frame.columns, *sorted(map(repr, frame.collect()))]
    except PySparkException as error:
        found = [error.getCondition(), error.getSqlState()]
    except WindrowError as error:
        found = [error.condition, error.sqlstate]
    (left,) = spark.sql("SELECT kept, typeof(kept)").collect()
    spark.sql("SET VAR kept = DEFAULT")
    (default,) = spark.sql("SELECT kept").collect()
    return [found, list(map(str, [*left, *default]))]


given = json.loads(sys.argv[1])
answers = {"Spark": [answer(spark.sql, one) for one in given["spark"]]}
answers["Windrow"] = [answer(session.sql, one + given["ours"]) for one in given["spark"]]
session.sql(f"DECLARE VARIABLE text STRING DEFAULT 'SELECT s.i FROM t {given['windows']}'")
answers["windows"] = [
    sorted(map(list, session.sql(one.replace("⊞", given["windows"])).collect())) for one in given["rows"]
]
spark.sql("DROP TEMPORARY VARIABLE text")
# what a variable that is left behind would be in the way of
for name in "abcghijklmnopqrstuvwxyz":
    spark.sql(f"DECLARE VARIABLE {name} INT")
spark.stop()
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    given = {"spark": chosen(SCRIPTS) + chosen(FAILING), "ours": OURS, "windows": WINDOWS}
    given["rows"] = [script for script, _ in [*WITH_WINDOWS, *UNSEEN]]
    return of_program(PROGRAM, tmp_path_factory.mktemp("connect"), json.dumps(given), timeout=1100)


def differences(scripts: list[str], wanted: list[Any], found: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    return (one for one in zip(scripts, wanted, found, strict=True) if one[1] != one[2])


def test_scripts_return_what_spark_returns(answers):
    scripts = chosen(SCRIPTS) + chosen(FAILING)
    found = differences(scripts, answers["Spark"], answers["Windrow"])
    # of a statement that is no query, Spark runs what it then refuses
    assert [
        one for one in found if "SET VAR kept = 3 -- window by' INTO" not in one[0] or one[1][0] != one[2][0]
    ] == []


def test_scripts_with_windows_return_what_they_return_in_a_classic_session(answers):
    scripts, wanted = zip(*WITH_WINDOWS, *UNSEEN, strict=True)
    rows = [sorted(map(list, one)) for one in wanted]
    assert list(differences(list(scripts), rows, answers["windows"])) == []

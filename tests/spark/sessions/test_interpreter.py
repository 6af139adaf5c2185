"""Which Python runs Windrow's functions in a session that the user has made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import SparkContext, cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import LongType

from windrow.spark.errors import translate
from windrow.spark.runtime.interpreter import (
    apply_in_arrow,
    is_another,
    map_in_arrow,
    register_source,
    series_function,
)
from windrow.spark.runtime.java import ensure_java

PROGRAM = """
import json
from pyspark.sql import SparkSession
import windrow

spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.ui.enabled", "false").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.driver.memory", "1g").getOrCreate()
)
theirs = spark.sparkContext.pythonExec
spark.sql("CREATE TEMP VIEW r AS SELECT * FROM VALUES (1, 1D), (2, 3D), (3, 4D) AS r (t, v)")
rows = windrow.Session(spark).sql(
    "SELECT s.t, COUNT(w) AS n FROM r WINDOW BY w AS"
    " (TYPE SLIDING ORDER BY t START AS s END AS e WHEN e.v > 2)"
).collect()
print(json.dumps([sorted(map(list, rows)), theirs, spark.sparkContext.pythonExec]))
"""


@pytest.mark.long
@pytest.mark.spark
def test_a_program_whose_python_is_not_on_the_path_runs_in_a_session_of_its_own(tmp_path):
    other = tmp_path / "bin" / "python3"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\necho another python >&2\nexit 1\n", encoding="utf-8")
    other.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    inherited["PATH"] = f"{other.parent}{os.pathsep}{inherited['PATH']}"
    inherited["JAVA_HOME"] = str(ensure_java().home)
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=inherited, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    rows, before, after = json.loads(done.stdout)
    assert rows == [[1, 2], [2, 1], [3, 1]]
    assert before == after == "python3"  # that of the user's own functions


def session(master: str, python: str) -> SimpleNamespace:
    return SimpleNamespace(_sc=SimpleNamespace(master=master, pythonExec=python))


@pytest.mark.parametrize(
    ("master", "python", "runs_in_another"),
    [
        ("local[2]", "/nowhere/python3", True),
        ("local-cluster[1,1,1024]", "/nowhere/python3", True),
        ("local[2]", sys.executable, False),
        ("spark://host:7077", "/nowhere/python3", False),  # of another machine
    ],
)
def test_functions_run_in_this_interpreter_on_this_machine_alone(master, python, runs_in_another):
    assert is_another(session(master, python)) is runs_in_another
    assert not is_another(SimpleNamespace())  # a session of Spark Connect knows of none


class Seen:
    """A function that notes which interpreter the session has while it is made ready for workers."""

    def __init__(self, function, context) -> None:
        self.function, self.context, self.seen = function, context, []

    def __call__(self, _):
        raise AssertionError("it is pickled as the function alone")

    def __reduce__(self):
        self.seen.append(self.context.pythonExec)
        return _same, (self.function,)


def _same(function):
    return function


class Numbers(DataSource):
    """A source of two numbers."""

    @classmethod
    def name(cls) -> str:
        return "windrow_numbers"

    def schema(self) -> str:
        return "n bigint"

    def reader(self, schema) -> DataSourceReader:  # noqa: ARG002 - Spark's
        class Reader(DataSourceReader):
            def read(self, _):
                yield from [(1,), (2,)]

        return Reader()


def doubled(table):
    return pa.table({"n": pc.multiply(table.column(0), 2)})


@pytest.fixture
def without_the_tests() -> Iterator[None]:
    """Workers do not have this module: what is of it goes to them whole."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    yield
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])


@pytest.mark.usefixtures("without_the_tests")
def test_functions_of_each_kind_run_in_this_interpreter_and_the_session_keeps_its_own(spark, monkeypatch):
    context, theirs = spark.sparkContext, "/nowhere/python3"
    monkeypatch.setattr(context, "pythonExec", theirs)
    frame = spark.range(1, 3).toDF("n")
    functions = [
        Seen(
            lambda batches: (pa.record_batch({"n": pc.multiply(each.column(0), 2)}) for each in batches),
            context,
        ),
        Seen(doubled, context),
        Seen(lambda series: series * 2, context),
    ]
    mapped, applied, called = functions
    frames = [
        map_in_arrow(frame, mapped, "n bigint"),
        apply_in_arrow(frame, [], applied, "n bigint"),
        frame.select(series_function(spark, called, LongType())("n").alias("n")),
    ]
    assert [sorted(row.n for row in each.collect()) for each in frames] == [[2, 4]] * 3
    assert {seen for function in functions for seen in function.seen} == {theirs}
    register_source(spark, Numbers)
    assert sorted(row.n for row in spark.read.format("windrow_numbers").load().collect()) == [1, 2]
    assert context.pythonExec == theirs


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("ModuleNotFoundError: No module named 'windrow'", "lacks windrow"),
        ("ModuleNotFoundError: No module named 'windrow.kernels'", "lacks windrow"),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed", "lacks PyArrow"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", "has another version"),
    ],
)
def test_another_python_of_the_workers_is_one_line_with_both_and_the_setting(monkeypatch, said, lacks):
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(pythonExec="/other/python3"))
    error = translate(PySparkException(f"Traceback (most recent call last):\n  File worker.py\n{said}\n"))
    assert error.condition == "WORKER_PYTHON"
    assert f"the Python of Spark's workers (/other/python3) {lacks}" in error.message
    assert f"this process runs {sys.executable}" in error.message
    assert "\n" not in error.message
    assert "PYSPARK_PYTHON" in str(error.hint)

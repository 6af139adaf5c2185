"""Which Python runs Windrow's functions in a session that the user has made."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pyspark.errors import PySparkException

from windrow.spark.errors import translate
from windrow.spark.interpreter import own_interpreter
from windrow.spark.java import ensure_java

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
    ("master", "python", "within"),
    [
        ("local[2]", "/nowhere/python3", sys.executable),
        ("local-cluster[1,1,1024]", "/nowhere/python3", sys.executable),
        ("local[2]", sys.executable, sys.executable),
        ("spark://host:7077", "/nowhere/python3", "/nowhere/python3"),  # of another machine
    ],
)
def test_functions_run_in_this_interpreter_on_this_machine_alone(master, python, within):
    one = session(master, python)
    with own_interpreter(one):
        assert one._sc.pythonExec == within
    assert one._sc.pythonExec == python
    with own_interpreter(SimpleNamespace()):  # a session of Spark Connect knows of none
        pass


@pytest.mark.parametrize(
    ("said", "lacks"),
    [
        ("ModuleNotFoundError: No module named 'windrow'", "lacks windrow"),
        ("ModuleNotFoundError: No module named 'windrow.kernels'", "lacks windrow"),
        ("[PACKAGE_NOT_INSTALLED] PyArrow >= 18.0.0 must be installed", "lacks PyArrow"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version", "is of another version"),
    ],
)
def test_another_python_of_the_workers_is_one_line_with_both_and_the_setting(said, lacks):
    error = translate(PySparkException(f"Traceback (most recent call last):\n  File worker.py\n{said}\n"))
    assert error.condition == "WORKER_PYTHON"
    assert lacks in error.message
    assert sys.executable in error.message
    assert "\n" not in error.message
    assert "PYSPARK_PYTHON" in str(error.hint)

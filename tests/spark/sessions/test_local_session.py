"""The session that Windrow makes: which Java and Python it runs on, and that nobody notices it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from windrow.spark.runtime.local import local_session

PROGRAM = """
import json, os, sys
from pyspark.errors import PySparkException
from pyspark.sql.functions import udf
from windrow.spark.runtime.local import local_session

OURS = "JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"
before = list(map(os.environ.get, OURS))
spark = local_session(master="local[2]", conf={"spark.driver.memory": "1g"})
assert list(map(os.environ.get, OURS)) == before
java = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')").first()[0]
worker = spark.range(1).select(udf(lambda _: sys.executable)("id")).first()[0]
spark.sql("CREATE TABLE kept AS SELECT 1 AS one")

def boom(value):
    raise ValueError("boom")

try:
    spark.range(4).select(udf(boom)("id")).collect()
    failure = ""
except PySparkException as error:
    failure = str(error)
# more than a connection holds, of which one row is read
assert spark.range(0, 1_000_000, 1, 1).mapInArrow(lambda rows: rows, "id long").first()[0] == 0
sockets = spark.conf.get("spark.python.unix.domain.socket.enabled", "false")
spark.stop()
print(json.dumps({"java": java, "worker": worker, "boom": "boom" in failure, "sockets": sockets}))
"""


def run(directory: Path, **environment: str) -> dict[str, object]:
    """What PROGRAM prints, checked to be all that it prints and to have left nothing in its directory."""
    inherited = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=directory,
        env=inherited | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert list(directory.iterdir()) == []
    return dict(json.loads(done.stdout))


@pytest.mark.spark
@pytest.mark.long
def test_on_a_machine_with_an_old_java_only_spark_runs_on_the_bundled_one(tmp_path, path_without_java):
    old = tmp_path / "old" / "bin" / "java"
    old.parent.mkdir(parents=True)
    old.write_text("#!/bin/sh\necho ' java.home = /old\n java.version = 1.8.0_402' >&2\n", encoding="utf-8")
    old.chmod(0o755)
    (tmp_path / "empty").mkdir()
    told = run(tmp_path / "empty", PATH=path_without_java, JAVA_HOME=str(tmp_path / "old"))
    assert str(told.pop("java")).startswith("25.")
    assert told == {"worker": sys.executable, "boom": True, "sockets": "true"}


@pytest.mark.long
@pytest.mark.spark
def test_it_prints_nothing_leaves_nothing_and_its_workers_run_our_interpreter(tmp_path):
    # A python3 that would fail, to show that it is not the one taken from the environment.
    told = run(tmp_path, PYSPARK_PYTHON="/nonexistent/python3")
    assert told["worker"] == sys.executable
    assert told["boom"] is True


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(("deep", "sockets"), [(0, "true"), pytest.param(6, "false", marks=pytest.mark.long)])
def test_no_temporary_file_is_left_and_workers_are_reached_however_deep_those_are(deep, sockets):
    """Sockets with names need short paths."""
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        temporary = Path(top, *["directory"] * deep)
        temporary.mkdir(parents=True, exist_ok=True)
        work = Path(top, "work")
        work.mkdir()
        told = run(work, TMPDIR=str(temporary))
        assert told["sockets"] == sockets
        assert list(temporary.iterdir()) == ([work] if deep == 0 else [])


def test_a_session_that_exists_is_returned_and_only_what_was_asked_for_is_set(spark):
    before = spark.conf.get("spark.sql.shuffle.partitions")
    asked = {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.driver.memory": "1g"}
    try:
        assert local_session(master="local[7]", conf=asked) is spark
        assert spark.conf.get("spark.sql.session.timeZone") == "Asia/Tokyo"
        assert spark.conf.get("spark.sql.shuffle.partitions") == before
        assert spark.sparkContext.master == "local[2]"
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_nothing_listens_beyond_the_loopback_interface(spark):
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


@pytest.mark.spark
def test_an_environment_that_asks_for_spark_connect_is_refused_with_the_way_out():
    program = "from windrow.spark.runtime.local import local_session; local_session()"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"SPARK_REMOTE": "sc://localhost"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "SPARK_CONNECT_REQUESTED" in done.stderr
    assert "hint: unset it" in done.stderr

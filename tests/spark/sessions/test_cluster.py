"""A standalone cluster of a master and two workers, whose Python has no Windrow until it is shipped.

The master and the workers are those of the PySpark that is installed; all are on the loopback interface. The
program is submitted as the documentation says, and is run in this process too, which gives what it should.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sysconfig
import time
import venv
import zipfile
from pathlib import Path

import pyspark
import pytest

from windrow.spark.runtime.java import ensure_java

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.long]

SOURCE = Path(__file__).parents[3] / "src"
PROGRAM = r"""
import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import windrow
from windrow.streams import NamedStream


def answers(spark, folder):
    folder.mkdir()
    session = windrow.Session(spark)
    rows = [{"k": "ab"[i % 2], "i": i, "v": i * 7 % 5} for i in range(12)]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, folder / "rows.parquet")
    spark.read.parquet(f"file://{folder}/rows.parquet").createOrReplaceTempView("t")
    session.stream("s", table, rowtime="i", unit="seconds")
    named = NamedStream.create(folder / "named", table.schema, "i", unit="seconds")
    with named.producer("p") as producer:
        producer.insert(rows[:5])
        producer.insert(rows[5:])
        producer.finish()
    session.stream("n", named)
    found = {
        "WINDOW BY": session.sql(
            "SELECT s.k, s.i, SUM(w.v), MEDIAN(w.v) FROM t"
            " WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START AS s END AS e WHEN e.v > s.v)"
        ),
        "CQL": session.sql(
            "SELECT k, COUNT(*) AS n, MAX(v) AS high FROM s [RANGE 4] GROUP BY k"
        ).changelog("diff"),
        "MATCH_RECOGNIZE": session.sql(
            "SELECT * FROM t MATCH_RECOGNIZE (PARTITION BY k ORDER BY i"
            " MEASURES FIRST(DOWN.i) AS low, LAST(UP.i) AS high"
            " PATTERN (DOWN+ UP+) DEFINE DOWN AS v < PREV(v), UP AS v > PREV(v))"
        ),
    }
    told = {name: sorted(map(list, relation.collect()), key=repr) for name, relation in found.items()}
    query = session.sql(
        "SELECT a.k, COUNT(*) AS n FROM n [RANGE 3] a, n [ROWS 2] b WHERE a.k = b.k GROUP BY a.k"
    )
    told["of the log"] = sorted(map(list, query.changelog("diff").collect()), key=repr)
    return told, query


def live(query, folder):
    started = {"sink": folder / "out", "checkpoint": folder / "checkpoint", "envelope": "diff"}
    running = query.start(**started, trigger={"availableNow": True})
    running.await_termination()
    running.stop()
    files = sorted((folder / "out").glob("*.parquet"))
    given = (row for file in files for row in pq.read_table(file).to_pylist())
    return sorted((list(row.values()) for row in given), key=repr)


def where_auto_says(spark, folder):
    arriving = folder / "arriving"
    arriving.mkdir()
    for number in range(3):
        rows = [{"k": "ab"[i % 2], "ts": 5 * number + i, "v": i} for i in range(5)]
        pq.write_table(pa.Table.from_pylist(rows), arriving / f"{number}.parquet")
        os.utime(arriving / f"{number}.parquet", (number, number + 1_000_000_000))
    session = windrow.Session(spark)
    frame = spark.readStream.schema("k string, ts bigint, v bigint").option("maxFilesPerTrigger", 1)
    session.stream("r", frame.parquet(f"file://{arriving}"), rowtime="ts", unit="seconds")
    query = session.sql("SELECT k, SUM(v) AS v FROM r [RANGE 3] GROUP BY k")
    plan = session.sql(f"EXPLAIN {query.live.text}").plan()
    host = "executors" if "host       executors" in plan else "driver"
    (folder / "auto").mkdir()
    return host, live(query, folder / "auto")


if __name__ == "__main__":
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.getOrCreate()
    here = lambda batches: (pa.RecordBatch.from_pydict({"place": [os.getcwd()]}) for _ in batches)
    places = spark.range(0, 8, 1, 8).mapInArrow(here, "place string")
    told = {"windrow": windrow.__file__, "executors": sorted({row.place for row in places.collect()})}
    found, query = answers(spark, Path(sys.argv[1]))
    told |= found | {"live": live(query, Path(sys.argv[1]))}
    told |= {"auto": where_auto_says(spark, Path(sys.argv[1]))}
    Path(sys.argv[2]).write_text(json.dumps(told))
    spark.stop()
"""
CONF = {
    "spark.log.level": "ERROR",
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.scheduler.minRegisteredResourcesRatio": "1.0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.windrow.task.rows": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """A Python with what Windrow depends on, and without Windrow."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    # Python does not follow the .pth files of a directory named in one, so not that to the source tree
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    python = folder / "bin" / "python"
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYTHONPATH"))
    }
    words = [python, "-c", "import numba, pyarrow, windrow"]
    found = subprocess.run(words, capture_output=True, text=True, env=inherited)
    assert "No module named 'windrow'" in found.stderr
    return inherited | {
        "JAVA_HOME": str(ensure_java().home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1",
        "PYSPARK_PYTHON": str(python),
    }


@pytest.fixture(scope="module")
def cluster(environment, tmp_path_factory):
    """The address of the master."""
    folder = tmp_path_factory.mktemp("cluster")
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    running = []

    def start(name, *words):
        said = folder / f"{name}.log"
        with said.open("w") as log:
            words = [
                program,
                f"org.apache.spark.deploy.{words[0]}",
                "--host",
                "127.0.0.1",
                "--port",
                "0",
                *words[1:],
            ]
            running.append(subprocess.Popen(words, stdout=log, stderr=log, env=environment, cwd=folder))
        return said

    def waited(said, pattern):
        began = time.monotonic()
        while not (found := re.search(pattern, said.read_text())):
            assert time.monotonic() - began < 120, said.read_text()
            time.sleep(0.05)
        return found[0]

    try:
        address = waited(start("master", "master.Master", "--webui-port", "0"), r"spark://127\.0\.0\.1:\d+")
        workers = [
            start(
                name,
                "worker.Worker",
                "--webui-port",
                "0",
                "-c",
                "1",
                "-m",
                "1g",
                "-d",
                str(folder / name),
                address,
            )
            for name in ("one", "two")
        ]
        for said in workers:
            waited(said, "Successfully registered with master")
        yield address
    finally:
        for process in running[::-1]:
            process.terminate()
        for process in running:
            process.wait()


def test_everything_runs_on_a_cluster_to_which_the_package_is_shipped(spark, cluster, environment, tmp_path):
    archive = tmp_path / "windrow.zip"  # as the wheel is, named as --py-files takes it
    with zipfile.ZipFile(archive, "w") as file:
        for path in sorted(SOURCE.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                file.write(path, path.relative_to(SOURCE))
    job = tmp_path / "job.py"
    job.write_text(PROGRAM)
    submit = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", cluster]
    for name, value in CONF.items():
        submit += ["--conf", f"{name}={value}"]
    submit += ["--py-files", str(archive), str(job), str(tmp_path / "there"), str(tmp_path / "told.json")]
    # Spark does not tell its Python processes on the driver, which look for new entries, of shipped files
    with_archive = environment | {"PYTHONPATH": str(archive)}
    done = subprocess.run(submit, capture_output=True, text=True, env=with_archive, cwd=tmp_path, timeout=500)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    told = json.loads((tmp_path / "told.json").read_text())
    assert "windrow.zip" in told.pop("windrow")
    assert len(told.pop("executors")) == 2
    here: dict[str, object] = {"__name__": "job"}
    exec(PROGRAM, here)
    assert told.pop("live") == told["of the log"]
    wanted, _ = here["answers"](spark, tmp_path / "here")
    host, changes = told.pop("auto")
    local, same = here["where_auto_says"](spark, tmp_path / "here")
    assert (host, local) == ("executors", "driver")
    assert changes == json.loads(json.dumps(same))
    assert changes
    assert told == wanted
    assert all(told.values())

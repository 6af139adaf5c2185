"""What was refused when each engine had its own reader is answered, but for what the list names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.spark.former_refusals import FORMER, SECTIONS, STILL, Former
from windrow import Memory, Session, WindrowError

LIVE = {
    "s": ("TIMESTAMP", {"lag": "2 seconds"}),
    "t": ("TIMESTAMP", {"lag": "2 seconds"}),
    "d": ("DATE", {"lag": "2 days"}),
    "i": ("LONG", {"lag": 2, "unit": "seconds"}),
    "j": ("LONG", {"lag": 2, "unit": "minutes"}),
}
ROWS = """
    SELECT timestamp'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id) AS ts,
        IF(id % 2 = 0, 'a', 'b') AS k, CAST(id % 5 AS INT) AS v, CAST(id AS INT) AS at,
        timestamp'2026-01-01 00:00:00' + make_dt_interval(0, 0, 0, id - 2) AS wm
    FROM range(20)
"""
ROWTIMES = {"TIMESTAMP": "ts", "DATE": "DATE'2026-01-01' + at AS ts", "LONG": "CAST(at AS LONG) AS ts"}
TABLES = ("former_log", "r", "u", "parts", "former_windows", "former_counts")


@pytest.fixture(scope="module")
def session(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    session = Session(spark)
    folder = tmp_path_factory.mktemp("former")
    rows = spark.sql(ROWS)
    for name, (rowtime, options) in LIVE.items():
        rows.selectExpr(ROWTIMES[rowtime], "k", "v").write.parquet(str(folder / name))
        read = spark.readStream.schema(f"ts {rowtime}, k STRING, v INT").parquet(str(folder / name))
        session.stream(name, read, rowtime="ts", **options)
    _forget(spark)
    rows.createOrReplaceTempView("arrived")
    rows.write.saveAsTable("former_log")
    rows.select("ts", "k", "v").write.saveAsTable("r")
    spark.sql("SELECT 'a' AS k").createOrReplaceTempView("keys")
    spark.sql("CREATE TABLE u (k STRING, n BIGINT) USING parquet")
    spark.sql("CREATE TABLE parts (n BIGINT, k STRING) USING parquet PARTITIONED BY (k)")
    log = "(ROWTIME ts TIMESTAMP, k STRING, v INT, PTIME at INT, WATERMARK wm TIMESTAMP) FROM arrived"
    for name in ("log", "log2"):
        session.sql(f"CREATE OR REPLACE STREAM {name} {log}")
    for name in ("rec", "rec2"):
        session.sql(f"CREATE OR REPLACE STREAM {name} (ROWTIME ts TIMESTAMP, k STRING, v INT) FROM arrived")
    outs = "(ROWTIME ts TIMESTAMP, k STRING, n BIGINT)"
    session.sql(f"CREATE OR REPLACE STREAM outs {outs} LOCATION '{folder / 'outs'}' UNORDERED")
    session.table_function("former_same", lambda rows: rows)
    spark.udf.register("former_sum", lambda a, b: (a or 0) + (b or 0), "int")
    spark.udf.register("former_greatest", F.pandas_udf(_greatest, "int"))
    yield session
    for name in ("former_lag", "former_fails", "former_times"):
        session.sql(f"DROP STREAM IF EXISTS {name}")
    spark.sql("UNCACHE TABLE IF EXISTS former_cache")
    spark.sql("DROP VIEW IF EXISTS former_view")
    _forget(spark)


def _forget(spark: SparkSession) -> None:
    for name in TABLES:
        spark.sql(f"DROP TABLE IF EXISTS {name}")


def _greatest(values: pd.Series) -> int:
    return int(values.max())


def _answer(session: Session, statement: str, folder: Path) -> None:
    """All of a statement's answer; of a live query that of what has arrived."""
    checkpoint = folder / "checkpoint"
    if statement.startswith("START "):
        with session.pipeline(statement.removeprefix("START "), checkpoint=checkpoint) as pipeline:
            pipeline.process_all_available()
        return
    given = session.sql(statement, **({"n": 1} if ":n" in statement else {}))
    if given._live is not None:
        query = given.start(Memory(), checkpoint=checkpoint)
        query.process_all_available()
        query.stop()
    else:
        given.df.collect()


@pytest.mark.sampled
@pytest.mark.filterwarnings("ignore:the state of the query is unbounded")
@pytest.mark.parametrize("former", FORMER, ids=lambda former: former.name)
def test_a_former_refusal(session: Session, tmp_path: Path, former: Former) -> None:
    *before, last = former.statements
    for statement in before:
        session.sql(statement)
    if former.refused is None:
        _answer(session, last, tmp_path)
    else:
        with pytest.raises(WindrowError) as refusal:
            _answer(session, last, tmp_path)
        assert refusal.value.condition == former.refused


def test_two_thirds_of_them_are_answered_in_each_section() -> None:
    """Of what the standard and Spark allow."""
    assert set(STILL) <= {former.name for former in FORMER}
    answered = Counter(former.section for former in FORMER if former.refused is None)
    possible = Counter(former.section for former in FORMER if not former.by)
    assert set(answered) == set(SECTIONS)
    assert all(answered[section] * 3 >= possible[section] * 2 for section in SECTIONS)

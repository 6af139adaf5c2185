"""What users of Python see of relations that are no DataFrames, and of errors in plain scripts."""

from __future__ import annotations

import traceback
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame

import windrow
from windrow import tracebacks
from windrow.errors import UsageError, WindrowError
from windrow.streams import NamedStream
from windrow.tracebacks import FULL, briefly

PACKAGE = str(Path(windrow.__file__).parent)


@pytest.fixture(scope="module")
def relation(spark) -> windrow.Relation:
    return windrow.Session(spark).sql("SELECT 1 AS a")


def test_a_relation_has_what_its_dataframe_has(relation, tmp_path):
    other = windrow.Session(relation.sparkSession).sql("SELECT 1 AS a, 'x' AS b UNION ALL SELECT 2, 'y'")
    joined = other.join(relation, "a").withColumn("c", other["b"])
    assert isinstance(joined, DataFrame)
    assert [tuple(row) for row in joined.collect()] == [(1, "x", "x")]
    assert [tuple(row) for row in other.where(other.a > 1).select("b").collect()] == [("y",)]
    assert other.groupBy("b").count().orderBy("b").collect() == [("x", 1), ("y", 1)]
    assert other.unionByName(other=other).count() == 4
    assert (other.count(), len(other.toPandas()), other.columns) == (2, 2, ["a", "b"])
    assert other.first() == (1, "x")
    assert other.first(1).collect() == [(1, "x")]
    other.write.parquet(str(tmp_path / "rows"))
    assert relation.sparkSession.read.parquet(str(tmp_path / "rows")).count() == 2


def test_what_a_relation_hands_on_raises_errors_of_ours(relation):
    for fails in (lambda: relation.select("b"), lambda: relation["b"]):
        with pytest.raises(WindrowError) as caught:
            fails()
        assert caught.value.condition.startswith("UNRESOLVED_COLUMN")


def test_a_misspelt_method_is_told(relation):
    with pytest.raises(AttributeError, match="did you mean collect") as caught:
        _ = relation.colect
    assert isinstance(caught.value, UsageError)
    with pytest.raises(AttributeError, match="did you mean group"):
        _ = relation.gropBy
    with pytest.raises(AttributeError, match="has no attribute '_x'"):
        _ = relation._x


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("read", "session.register"),
        ("readStream", "session.stream"),
        ("createDataFrame", "session.register"),
        ("catalog", "session.spark.catalog"),
        ("regster", "did you mean register"),
        ("xyzzy", r"help\(windrow.Session\)"),
    ],
)
def test_what_a_session_lacks_has_what_stands_in_its_place(spark, name, hint):
    with pytest.raises(AttributeError, match=hint) as caught:
        getattr(windrow.Session(spark), name)
    assert isinstance(caught.value, UsageError)


def test_what_starts_a_query_is_named_where_spark_would_write_a_stream(relation):
    with pytest.raises(WindrowError, match="WRITE_STREAM_NOT_ALLOWED") as caught:
        _ = relation.writeStream
    assert "relation.start" in (caught.value.hint or "")


def test_a_relation_has_no_length_and_no_rows_before_it_is_computed(relation):
    with pytest.raises(TypeError, match=r"relation\.count\(\)"):
        len(relation)
    with pytest.raises(TypeError, match=r"relation\.collect\(\)"):
        list(relation)
    assert relation


def _ours(error: WindrowError) -> list[str]:
    frames = traceback.extract_tb(error.__traceback__)
    assert frames[0].filename == __file__
    return [frame.name for frame in frames if frame.filename.startswith(PACKAGE)]


@pytest.mark.parametrize(
    "sql", ["SELEC 1", "SELECT x FROM nothing", "SELECT s.x FROM t WINDOW BY w AS (TYPE ROLLING)"]
)
def test_one_frame_of_ours_stands_above_an_error_of_sql(relation, spark, sql, monkeypatch):
    session = windrow.Session(spark)
    with pytest.raises(WindrowError) as caught:
        session.sql(sql)
    assert len(_ours(caught.value)) == 1
    monkeypatch.setenv(FULL, "full")
    with pytest.raises(WindrowError) as caught:
        session.sql(sql)
    assert len(_ours(caught.value)) > 3


def test_one_frame_of_ours_stands_above_an_error_of_rows(spark):
    with pytest.raises(WindrowError) as caught:
        windrow.Session(spark).sql("SELECT 1 / 0 AS a").collect()
    assert len(_ours(caught.value)) == 1


def _fails_to_open(folder):
    NamedStream.open(folder / "none")


def _fails_to_create(folder):
    NamedStream.create(folder, pa.schema([("ts", pa.int64())]), "other")


def _fails_to_insert(folder):
    stream = NamedStream.create(folder / "s", pa.schema([("ts", pa.int64())]), "ts")
    with stream.producer("p") as producer:
        producer.insert({"other": 1})


def _fails_to_attach(folder):
    NamedStream.create(folder / "s", pa.schema([("ts", pa.int64())]), "ts").producer("p", lease=-1)


@pytest.mark.parametrize(
    "failing",
    [_fails_to_open, _fails_to_create, _fails_to_insert, _fails_to_attach],
    ids=lambda f: f.__name__,
)
def test_one_frame_of_ours_stands_above_an_error_of_named_streams(failing, tmp_path):
    with pytest.raises(WindrowError) as caught:
        failing(tmp_path)
    assert len(_ours(caught.value)) == 1


def test_one_frame_of_ours_stands_above_an_error_of_window_by(spark):
    with pytest.raises(WindrowError) as caught:
        windrow.window_by(spark.range(1), order_by="none", start="AS s")
    assert len(_ours(caught.value)) == 1


def test_one_frame_of_ours_stands_above_an_error_of_a_live_query(spark, tmp_path):
    stream = NamedStream.create(tmp_path / "s", pa.schema([("ts", pa.int64())]), "ts")
    with stream.producer("p") as producer:
        producer.insert([{"ts": 2}, {"ts": 1}])
    session = windrow.Session(spark)
    session.stream("s", tmp_path / "s")
    query = session.sql("SELECT STREAM ts FROM s").start(windrow.Memory(), on_late="fail")
    for wait in (query.process_all_available, query.await_termination):
        with pytest.raises(WindrowError, match="LATE_ROW") as caught:
            wait()
        assert len(_ours(caught.value)) == 1
        files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
        assert files == {__file__, tracebacks.__file__}  # none of Spark's call of a step
    query.stop()


def test_frames_of_the_users_functions_stay():
    @briefly
    class Called:
        def ask(self) -> None:
            users()

    def users() -> None:
        raise UsageError("no", condition="INVALID_ARGUMENT")

    with pytest.raises(UsageError) as caught:
        Called().ask()
    assert [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)][-2:] == ["ask", "users"]


def test_a_warning_is_at_the_line_that_called_the_package():
    inside = {"__name__": "windrow.inside", "warn": tracebacks.warn}
    exec("def start():\n    warn('unbounded')\n", inside)
    with pytest.warns(RuntimeWarning, match="unbounded") as found:
        inside["start"]()
    assert found[0].filename == __file__

"""What users of Python see of relations that are no DataFrames, and of errors in plain scripts."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

import windrow
from windrow.errors import UsageError, WindrowError
from windrow.tracebacks import FULL, briefly

PACKAGE = str(Path(windrow.__file__).parent)


@pytest.fixture(scope="module")
def relation(spark) -> windrow.Relation:
    return windrow.Session(spark).sql("SELECT 1 AS a")


@pytest.mark.parametrize("name", ["filter", "select", "groupBy", "write", "toPandas", "count", "withColumn"])
def test_what_a_dataframe_has_is_told_to_be_of_df(relation, name):
    with pytest.raises(AttributeError, match=rf"relation\.df\.{name}") as caught:
        getattr(relation, name)
    assert isinstance(caught.value, UsageError)
    assert not hasattr(relation, name)


def test_a_misspelt_method_is_told(relation):
    with pytest.raises(AttributeError, match="did you mean collect"):
        _ = relation.colect
    with pytest.raises(AttributeError, match="has no attribute '_x'"):
        _ = relation._x


def test_items_and_length_of_a_relation_are_those_of_its_dataframe(relation):
    with pytest.raises(TypeError, match=r"relation\.df\.count\(\)"):
        len(relation)
    with pytest.raises(TypeError, match=r"relation\.df\['a'\]"):
        relation["a"]
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

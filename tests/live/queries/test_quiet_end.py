"""Nothing is printed by processes of Spark's when a live query over a named stream ends while it begins."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from tests.streams.recorded import NUMBERS
from windrow.spark.logs import log_source
from windrow.spark.logs.log_source import LogReader, LogSource
from windrow.streams import NamedStream

PROGRAM = """
import sys, time
import pyarrow as pa
import windrow
from windrow.streams import NamedStream

if __name__ == "__main__":
    folder = sys.argv[1]
    columns = pa.schema([("at", pa.int64()), ("v", pa.int64())])
    stream = NamedStream.create(folder, columns, "at", unit="seconds")
    with stream.producer("p") as p:
        p.insert({"at": 1, "v": 1})
    session = windrow.Session()
    session.stream("s", folder)
    for seconds in (0, 0.5, 1):
        query = session.sql("SELECT STREAM at, v FROM s").start(windrow.Memory())
        time.sleep(seconds)
        query.stop()
    session.sql("SELECT STREAM at, v FROM s").start(windrow.Memory())
    print("the process ends beside a query that begins")
"""


@pytest.mark.spark
@pytest.mark.long
def test_queries_that_are_stopped_at_once_and_one_that_nobody_stops_print_nothing(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "s")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "the process ends beside a query that begins\n"
    assert done.stderr == ""


def loop(reader: LogReader, call: Callable[[], object]) -> None:
    """What PySpark does in the process that asks a reader for what is new."""
    try:
        call()
    finally:
        reader.stop()


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_: object) -> None:
        raise error

    return fail


@pytest.fixture
def reader(tmp_path) -> LogReader:
    return LogReader(NamedStream.create(tmp_path / "s", NUMBERS, "at", unit="seconds"))


@pytest.mark.parametrize("error", [EOFError(), BrokenPipeError(), ConnectionResetError()])
def test_the_process_that_looks_for_what_is_new_ends_where_its_connection_is_cut(reader, monkeypatch, error):
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with pytest.raises(type(error)):
        loop(reader, raising(error))
    assert ended == [0]


def test_errors_of_the_log_and_an_orderly_end_are_left_to_pyspark(reader, monkeypatch):
    monkeypatch.setattr(os, "_exit", lambda _: pytest.fail("the process ended"))
    loop(reader, reader.initialOffset)
    monkeypatch.setattr(log_source, "place_of", raising(EOFError("a file is cut short")))
    with pytest.raises(EOFError):
        loop(reader, lambda: reader.partitions({}, {}))


@pytest.mark.parametrize("name", ["pyspark.daemon", "windrow.spark.runtime.worker_daemon", None])
def test_a_process_that_plans_the_source_prints_no_trace_of_a_cut_connection(monkeypatch, capsys, name):
    """It is of PySpark's own daemon, which prints whatever ends it; other programs are left alone."""
    main = ModuleType("__main__")
    main.__spec__, main.traceback = name and ModuleSpec(name, None), traceback
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert pickle.loads(pickle.dumps(LogSource({}))).options == {}
    assert (main.traceback is traceback) == (name != "pyspark.daemon")
    for error, is_told in ((BrokenPipeError(), name != "pyspark.daemon"), (ValueError("wrong"), True)):
        try:
            raise error
        except (OSError, ValueError):
            main.traceback.print_exc()
        assert (type(error).__name__ in capsys.readouterr().err) == is_told

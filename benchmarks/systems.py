"""Who is asked: each runs a query over a Parquet file and throws the result away, or hands it over."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Protocol

import duckdb
import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame

import windrow
from benchmarks.queries import Plan, Query
from benchmarks.stream_queries import STREAM
from windrow.spark.runtime.local import local_session
from windrow.spark.scan.file_scan import READ_SETTING

__all__ = ["System", "Systems", "cores", "run_to_nowhere"]

SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"


class System(Protocol):
    """One of the systems that are compared."""

    def open(self, file: Path, stations: Path | None = None) -> None:
        """Make the files the tables `readings` and `stations`. Not timed."""

    def run(self, query: Query) -> None:
        """Compute every row and column of the answer. Timed."""

    def fetch(self, query: Query) -> pa.Table:
        """The answer."""


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0))


def run_to_nowhere(frame: DataFrame) -> None:
    """Have Spark compute every row and column, and keep none."""
    frame.write.format("noop").mode("overwrite").save()


class _Windrow:
    def __init__(self, session: windrow.Session, *, reads_files: bool = True) -> None:
        self.session, self.reads_files = session, reads_files

    def open(self, file: Path, stations: Path | None = None) -> None:
        self.session.register("readings", file)
        if stations is not None:
            self.session.register("stations", stations)
        self.session.sql(STREAM)
        self.session.spark.conf.set(READ_SETTING, str(self.reads_files).lower())
        self.session.spark.conf.unset(SEGMENT_TREE)

    def run(self, query: Query) -> None:
        run_to_nowhere(self.session.sql(query.windrow).df)

    def fetch(self, query: Query) -> pa.Table:
        return self.session.sql(query.windrow).df.toArrow()


class _Spark:
    """Spark's own SQL, in the same session as Windrow."""

    def __init__(
        self, session: windrow.Session, text: Callable[[Query], str | None], *, segment_tree: bool = False
    ) -> None:
        self.session, self.text, self.segment_tree = session, text, segment_tree

    def open(self, file: Path, stations: Path | None = None) -> None:
        self.session.register("readings", file)
        if stations is not None:
            self.session.register("stations", stations)
        self.session.spark.conf.set(SEGMENT_TREE, str(self.segment_tree).lower())

    def run(self, query: Query) -> None:
        run_to_nowhere(self._frame(query))

    def fetch(self, query: Query) -> pa.Table:
        return self._frame(query).toArrow()

    def _frame(self, query: Query) -> DataFrame:
        text = self.text(query)
        assert text is not None, f"Spark is not asked for {query.title}"
        return self.session.spark.sql(text)


class _DuckDB:
    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.connection.execute(f"SET threads = {cores()}")

    def open(self, file: Path, stations: Path | None = None) -> None:
        for name, of_table in (("readings", file), ("stations", stations)):
            if of_table is not None:
                self.connection.execute(
                    f"CREATE OR REPLACE VIEW {name} AS SELECT * FROM read_parquet('{of_table.as_posix()}')"
                )

    def run(self, query: Query) -> None:
        self.connection.execute(f"CREATE OR REPLACE TEMP TABLE answer AS {query.duckdb}")
        self.connection.execute("DROP TABLE answer")

    def fetch(self, query: Query) -> pa.Table:
        assert query.duckdb is not None, f"DuckDB is not asked for {query.title}"
        return self.connection.sql(query.duckdb).to_arrow_table()


class _Polars:
    """Uses all cores by itself."""

    def __init__(self) -> None:
        self.file = Path()

    def open(self, file: Path, stations: Path | None = None) -> None:  # noqa: ARG002 - it is asked for no joins
        self.file = file

    def run(self, query: Query) -> None:
        self._plan(query).collect()

    def fetch(self, query: Query) -> pa.Table:
        return self._plan(query).collect().to_arrow()

    def _plan(self, query: Query) -> pl.LazyFrame:
        plan: Plan | None = query.polars
        assert plan is not None, f"Polars is not asked for {query.title}"
        return plan(pl.scan_parquet(self.file))


class Systems:
    """Every system by its name, started when it is first asked for."""

    def __init__(self, session: windrow.Session | None = None) -> None:
        self._given = session
        self._started: dict[str, System] = {}

    @cached_property
    def _session(self) -> windrow.Session:
        return self._given or windrow.Session(local_session(master=f"local[{cores()}]"))

    def __getitem__(self, name: str) -> System:
        if name not in self._started:
            self._started[name] = self._start(name)
        return self._started[name]

    def _start(self, name: str) -> System:
        match name:
            case "windrow":
                return _Windrow(self._session)
            case "windrow, Spark's rows":
                return _Windrow(self._session, reads_files=False)
            case "over":
                return _Spark(self._session, lambda query: query.over)
            case "over, segment tree":
                return _Spark(self._session, lambda query: query.over, segment_tree=True)
            case "nested":
                return _Spark(self._session, lambda query: query.nested)
            case "duckdb":
                return _DuckDB()
            case "polars":
                return _Polars()
        raise KeyError(name)

    def close(self) -> None:
        """Leave Spark as it was: stopped, if it was started here."""
        if "_session" not in self.__dict__:
            return
        spark = self._session.spark
        if self._given is None:
            spark.stop()
        else:
            spark.conf.unset(SEGMENT_TREE)
            spark.conf.unset(READ_SETTING)
            for table in ("readings", "stations"):
                spark.catalog.dropTempView(table)

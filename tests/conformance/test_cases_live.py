"""The cases over streams as live queries, on either host: they have the changes of the recorded streams.

`EMIT` and streams with processing times are not among them, as a live query has times of its own:
`tests/live/emit` and `tests/live/executors` give them theirs.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.live.buckets import in_buckets
from tests.live.stepping import in_micro_batches, total
from windrow import Session
from windrow.errors import NotSupportedError, WindrowError
from windrow.spark.live.executors.graphs.graph import graph_of, why_not
from windrow.spark.live.executors.input.packing import DATA, NOTE
from windrow.spark.live.plans.live_plan import ContinuousPlan
from windrow.streams import FOREVER

from .casefile import Case, ExpectedRows, case_files, load
from .runner import asked, frame_of, tables_of

pytestmark = pytest.mark.usefixtures("interpreted")

BOUND = "until"
_REFUSED = ("UNSUPPORTED_STREAM", "UNBOUND_SQL_PARAMETER")
CUTS = [0.4, 0.8]
_STREAM = re.compile(r"(STREAM (\w+) \(ROWTIME (\w+) BIGINT UNIT SECONDS.*)\) FROM (\w+)")
_CHANGELOG = "CHANGELOG OF ("


def _is_over_streams(case: Case) -> bool:
    whole = " ".join([*case.setup, case.query])
    is_timed = "PTIME" in whole or " EMIT" in whole
    return bool(_STREAM.search(whole)) and not is_timed and isinstance(case.expected, ExpectedRows)


CASES = [case for path in case_files() for case in load(path).cases if _is_over_streams(case)]


def _relation(case: Case) -> str:
    """The query; of one over a changelog, the relation that changes."""
    at = case.query.find(_CHANGELOG)
    if at < 0:
        return case.query
    start = stop = at + len(_CHANGELOG)
    depth = 1
    while depth:
        depth += {"(": 1, ")": -1}.get(case.query[stop], 0)
        stop += 1
    return case.query[start : stop - 1]


def _arriving(spark: SparkSession, case: Case, folder: Path) -> tuple[Session, dict[str, tuple[str, str]]]:
    """A session in which the streams of a case arrive; and, by their names, their tables and rowtimes."""
    session, streams = Session(spark), dict[str, tuple[str, str]]()
    for statement in case.setup:
        found = _STREAM.search(statement)
        if found is None:
            session.sql(statement)
            continue
        own, name, rowtime, table = found.groups()
        schema = frame_of(spark, _table(case, table)).schema.add(BOUND, "long")
        arriving = folder / name
        arriving.mkdir(parents=True)
        spark.readStream.schema(schema).parquet(str(arriving)).createOrReplaceTempView(f"{name}_arriving")
        session.sql(f"CREATE OR REPLACE {own}, BOUND {BOUND} BIGINT) FROM STREAM {name}_arriving")
        streams[name.lower()] = table, rowtime
    return session, streams


def _table(case: Case, name: str):
    return next(one for one in tables_of(case) if one.name == name)


def _entries(spark: SparkSession, case: Case, table: str, rowtime: str) -> pa.Table:
    """The rows in the order of their rowtimes, each with a bound; at last, that nothing follows."""
    rows = frame_of(spark, _table(case, table)).toArrow().sort_by(rowtime)
    rows = rows.append_column(BOUND, rows.column(rowtime).cast(pa.int64()))
    end = {name: [FOREVER if name == BOUND else None] for name in rows.column_names}
    schema = pa.schema([field.with_nullable(True) for field in rows.schema])
    return pa.concat_tables([rows.cast(schema), pa.table(end, schema=schema)])


@pytest.mark.sampled(every=47)
@pytest.mark.parametrize("host", ["driver", "executors"])
@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_case_as_it_arrives(spark: SparkSession, tmp_path: Path, case: Case, host: str) -> None:
    query, params = _relation(case), case.params if isinstance(case.params, dict) else {}
    with asked(spark, case, "batch"):
        session, streams = _arriving(spark, case, tmp_path / "in")
        try:
            plan = session.sql(query, **params).live
        except WindrowError as error:
            if error.getCondition() not in _REFUSED:
                raise
            pytest.skip(f"not a live query: {error.message}")
        if plan is None or not plan.streams:
            pytest.skip("not a live query")
        is_stream = not isinstance(plan, ContinuousPlan) or plan.windowed.kind is not None
        arriving = {name: _entries(spark, case, *streams[name]) for name in plan.streams}
        if host == "driver":
            tables = _on_driver(spark, plan, arriving, tmp_path)
        else:
            if (reason := why_not(plan)) is not None:
                with pytest.raises(NotSupportedError, match="executors cannot run the query because of"):
                    graph_of(plan)
                pytest.skip(f"executors refuse it: {reason}")
            tables = _on_executors(spark, plan, arriving)
    with asked(spark, case, "batch") as recorded:
        relation = recorded.sql(query, **params)
        if is_stream:
            assert _rows(tables) == _rows([relation.df.toArrow()])
        else:
            changes = total([relation.changelog("diff").to_arrow()])
            assert _without_zeros(total(tables)) == _without_zeros(changes)


def _rows(tables) -> Counter:
    return Counter(str([*row.values()]) for one in tables for row in one.to_pylist())


def _without_zeros(changes: Counter) -> dict:
    return {row: count for row, count in changes.items() if count}


def _on_driver(spark, plan, arriving, folder):
    def frames(steps, low, high):
        found = {}
        for _, name, stream in steps.streams():
            log = arriving[name]
            start, stop = round(low * len(log)), round(high * len(log))
            part = spark.createDataFrame(log.slice(start, stop - start))
            found[name] = part.select(*stream.live.columns)
        return found

    tables, _ = in_micro_batches(plan, folder, CUTS, {1}, frames)
    return tables


def _on_executors(spark, plan, arriving):
    def as_table(entries, name):
        return pa.Table.from_pylist(entries, arriving[name].schema)

    logs = {name: log.to_pylist() for name, log in arriving.items()}
    graph, packed, _ = in_buckets(spark, plan, logs, CUTS, 2, 3, {1}, {2}, as_table=as_table)
    shape = f"{NOTE} string, {DATA} binary"
    return [graph.changes(spark.createDataFrame(one, shape)).toArrow() for one in packed]

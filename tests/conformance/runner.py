"""Run one case in one mode and say, readably, how the answer differs from the expected one."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.conversion import LocalDataToArrowConversion

import windrow
from windrow.errors import WindrowError

from .casefile import Case, ExpectedError, ExpectedRows, Mode, Table, Tolerance, Twin
from .in_parts import matches_in_parts
from .literals import Row, normalise, render_rows, render_schema, to_spark

__all__ = ["Answer", "answer", "difference", "error_difference", "outcome", "plan_of", "twin_answer"]

_FIXED = {"spark.sql.session.timeZone": "UTC"}
"""Every case runs with these: literals of timestamps are in UTC."""


@dataclass(frozen=True)
class Answer:
    """Columns with types, and rows as literals are parsed."""

    schema: T.StructType
    rows: tuple[Row, ...]


def outcome(spark: SparkSession, case: Case, mode: Mode) -> str | None:
    """None where the case holds in `mode`, else what is wrong."""
    try:
        found = answer(spark, case, mode)
    except WindrowError as error:
        if isinstance(case.expected, ExpectedError):
            return error_difference(case.expected, case.query, error)
        return f"the query is refused:\n{error}"
    if isinstance(case.expected, ExpectedError):
        shown = _table("rows", found.schema, found.rows)
        return f"expected the error {case.expected.condition}, but the query answers:\n{shown}"
    return difference(case.expected, found)


def answer(spark: SparkSession, case: Case, mode: Mode) -> Answer:
    """What Windrow answers to the case's query in `mode`.

    A log is given as the table of its rows: with all bounds at +∞ that is what it means. In batch, patterns
    are also found in slices and as on a stream.
    """
    with asked(spark, case, mode) as session, matches_in_parts() if mode == "batch" else nullcontext():
        return _collect(_relation(session, case).df)


def plan_of(spark: SparkSession, case: Case) -> str:
    """What EXPLAIN says of the case's query."""
    with asked(spark, case, "batch") as session:
        return _relation(session, case).plan()


@contextmanager
def asked(spark: SparkSession, case: Case, mode: Mode) -> Iterator[windrow.Session]:
    """A session with what the case's query reads."""
    with _settings(spark, _wanted(case, interpreted=mode == "reference")), _clean_catalogue(spark):
        session = windrow.Session(spark, execution=mode)
        for table in tables_of(case):
            session.register(table.name, frame_of(spark, table))
        for statement in case.setup:
            session.sql(statement)
        yield session


def twin_answer(spark: SparkSession, case: Case, twin: Twin) -> Answer:
    """What plain Spark answers to one of the case's twins."""
    with _settings(spark, _wanted(case, interpreted=True)), _clean_catalogue(spark):
        for table in tables_of(case):
            frame_of(spark, table).createOrReplaceTempView(table.name)
        return _collect(spark.sql(twin.sql))


def difference(expected: ExpectedRows, found: Answer) -> str | None:
    """None where the answer is the expected one, else a description of what is missing and what is extra."""
    wanted, given = render_schema(expected.schema), render_schema(found.schema)
    if wanted != given:
        return f"columns differ\nexpected: {wanted}\nfound:    {given}"
    if expected.ordered:
        same = [_same(a, b, expected.tolerance) for a, b in zip(expected.rows, found.rows, strict=False)]
        if all(same) and len(expected.rows) == len(found.rows):
            return None
        at = same.index(False) if False in same else len(same)
        shown = _table("expected", found.schema, expected.rows), _table("found", found.schema, found.rows)
        return "\n".join([f"rows differ from row {at + 1} on, in the order given", *shown])
    missing, extra = _unmatched(expected.rows, found.rows, expected.tolerance)
    if not missing and not extra:
        return None
    parts = [_table("missing", found.schema, missing), _table("extra", found.schema, extra)]
    matched = len(expected.rows) - len(missing)
    return "\n".join([f"rows differ ({matched} as expected)", *parts])


def error_difference(expected: ExpectedError, query: str, error: WindrowError) -> str | None:
    """None where the error is the expected one, else what differs in it."""
    wrong: list[str] = []
    if error.getCondition() != expected.condition:
        wrong.append(f"condition: expected {expected.condition}, found {error.getCondition()}")
    span = error.span
    if span is None or (span.start, span.stop) != (expected.start, expected.stop):
        marked = "nothing" if span is None else f"{query[span.start : span.stop]!r} at {span.start}"
        fragment = query[expected.start : expected.stop]
        wrong.append(f"caret: expected {fragment!r} at {expected.start}, found {marked}")
    for part, wanted, given in (
        ("message", expected.message, error.message),
        ("hint", expected.hint, error.hint or ""),
    ):
        if wanted is not None and wanted not in given:
            wrong.append(f"{part}: expected to contain {wanted!r}, found {given!r}")
    return "\n".join([*wrong, str(error)]) if wrong else None


def _relation(session: windrow.Session, case: Case) -> windrow.Relation:
    if isinstance(case.params, dict):
        return session.sql(case.query, **case.params)
    if isinstance(case.params, list):
        return session.sql(case.query, *case.params)
    return session.sql(case.query)


def tables_of(case: Case) -> Iterator[Table]:
    yield from case.tables
    yield from (log.table() for log in case.logs)


def frame_of(spark: SparkSession, table: Table) -> DataFrame:
    rows = [
        tuple(to_spark(value, field.dataType) for value, field in zip(row, table.schema.fields, strict=True))
        for row in table.rows
    ]
    if not rows:  # of which PySpark makes no Arrow
        return spark.createDataFrame(rows, table.schema)
    # As Arrow, rows are a relation whose size is known. Of those that Python makes it is not, which costs a
    # job more for each clause; how such are surveyed is tried in tests/spark/windows/test_slices.py.
    return spark.createDataFrame(LocalDataToArrowConversion.convert(rows, table.schema, False), table.schema)


def _collect(frame: DataFrame) -> Answer:
    schema = frame.schema
    return Answer(schema, tuple(normalise(row, schema) for row in frame.collect()))


def _wanted(case: Case, *, interpreted: bool) -> dict[str, str]:
    """The settings with which a case runs; `interpreted`, Spark reads its plans instead of compiling them.

    That takes less time for few rows, and what the rows of Windrow are judged by needs no compiled plans.
    """
    plans: dict[str, str] = {}
    if interpreted:
        plans = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
        # Changes are in the order of time in one partition, to which adaptive plans put those of a case.
        if not (isinstance(case.expected, ExpectedRows) and case.expected.ordered):
            plans["spark.sql.adaptive.enabled"] = "false"
    return _FIXED | plans | dict(case.settings)


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """These settings while a case runs, and the former ones afterwards."""
    former: dict[str, str | None] = {key: spark.conf.get(key, None) for key in wanted}
    for key, value in wanted.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, old in former.items():
            if old is None:
                spark.conf.unset(key)
            else:
                spark.conf.set(key, old)


@contextmanager
def _clean_catalogue(spark: SparkSession) -> Iterator[None]:
    """No temporary view outlives the case that made it."""
    before = _views(spark)
    try:
        yield
    finally:
        for name in _views(spark) - before:
            spark.catalog.dropTempView(name)


def _views(spark: SparkSession) -> set[str]:
    """The names of the temporary views; SHOW VIEWS would be a query, and two of them a tenth of a case."""
    names = spark._jsparkSession.sessionState().catalog().getTempViewNames().mkString("\n")
    return set(names.splitlines())


def _unmatched(
    expected: Iterable[Row], found: Iterable[Row], tolerance: Tolerance | None
) -> tuple[list[Row], list[Row]]:
    """The rows of each bag that the other lacks."""
    if tolerance is None:
        left, right = [_key(row) for row in expected], [_key(row) for row in found]
        names = dict(zip([*left, *right], [*expected, *found], strict=True))
        missing, extra = Counter(left) - Counter(right), Counter(right) - Counter(left)
        return [names[key] for key in missing.elements()], [names[key] for key in extra.elements()]
    rest, lacking = list(found), []
    for row in expected:
        at = next((i for i, other in enumerate(rest) if _same(row, other, tolerance)), None)
        if at is None:
            lacking.append(row)
        else:
            del rest[at]
    return lacking, rest


def _key(value: Any) -> Any:
    """The value in a form in which NaN equals NaN."""
    if isinstance(value, tuple):
        return tuple(_key(part) for part in value)
    return "NaN" if isinstance(value, float) and math.isnan(value) else value


def _same(left: Any, right: Any, tolerance: Tolerance | None) -> bool:
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(
            _same(a, b, tolerance) for a, b in zip(left, right, strict=True)
        )
    if tolerance is not None and isinstance(left, float) and isinstance(right, float):
        return _key(left) == _key(right) or math.isclose(left, right, rel_tol=tolerance.relative)
    return bool(_key(left) == _key(right))


def _table(label: str, schema: T.StructType, rows: Sequence[Row]) -> str:
    lines = render_rows(rows, schema)
    return "\n".join([f"{label} ({len(rows)}):", *(f"    {line}" for line in lines)])

"""The paper's queries on GHCN-Daily as published: each equals its twins there too, value for value.

The query and twin texts are those of the case files. Rows are minima (TMIN) of ten stations; the one day that
has two minima at one station is left out, since twins need unique order keys. Twins whose cost grows with the
square of a station's rows run on one station, or on a span of dates, and so does the query that they are
compared with; so do queries whose start is any condition over label and row, since every pair may have to be
tried.

Nothing is compared with a tolerance: every value is a whole number, so every sum is exact in a double, and an
average is one division of two exact numbers.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import windrow

from .casefile import CASES, Case, Twin, load

DATA = Path(
    os.environ.get(
        "WINDROW_GHCN", Path(__file__).parents[3] / "shared" / "data" / "ghcn" / "ghcn-daily.parquet"
    )
)

ALL = "true"
STATION = "station = 'USW00054734'"
TWO_YEARS = "date >= DATE '2014-01-01' AND date < DATE '2016-01-01'"
# Spark computes the whole join again for every step of a recursion, so spans of recursive twins are short.
QUARTER = "date >= DATE '2015-01-01' AND date < DATE '2015-04-01'"


@dataclass(frozen=True)
class Comparison:
    """A case of a theme, one of its twins, and the rows that both are given."""

    theme: str
    case: str
    twin: str
    rows: str


COMPARISONS = [
    Comparison("worked_example", "three windows, two of them open", "over", ALL),
    Comparison("paper_sliding", "one week from each row (figure 11)", "over", ALL),
    Comparison("paper_sliding", "one week from each row (figure 11)", "nested", STATION),
    Comparison("paper_sliding", "twenty rows from each row (figure 12)", "over", ALL),
    Comparison("paper_sliding", "twenty rows from each row (figure 12)", "nested", STATION),
    Comparison("paper_sliding", "only full spans of twenty rows", "over", ALL),
    Comparison("paper_sliding", "as long as it stays below 25 (figure 13)", "nested", STATION),
    Comparison("paper_sliding", "the row that ends it taken in", "nested", STATION),
    Comparison("paper_tumbling", "as long as it stays below 25 (figure 14)", "nested", STATION),
    Comparison("paper_tumbling", "twenty rows (figure 15)", "over", ALL),
    Comparison("paper_tumbling", "one week from the first row (figure 16)", "recursive", QUARTER),
    Comparison("paper_sessions", "time-out (figure 20)", "nested", STATION),
    Comparison("paper_sessions", "time-out (figure 20)", "islands", ALL),
    Comparison("paper_sessions", "time-out and maximum duration", "recursive", QUARTER),
    Comparison("paper_sessions", "no session key", "islands", ALL),
    Comparison("paper_sessions", "a landmark: from the tenth of January to each day after it", "over", ALL),
    Comparison("paper_sessions", "a landmark that is a row: from the first frost on", "nested", TWO_YEARS),
    Comparison(
        "paper_sessions", "several landmarks: each frost opens a window to the end", "over", TWO_YEARS
    ),
    Comparison("paper_sessions", "several landmarks: week to date, each week a landmark", "over", STATION),
    Comparison("paper_label", "the row before, the label, the row after (figure 17)", "over", ALL),
    Comparison("paper_label", "the row before, the label, the row after (figure 17)", "nested", STATION),
    Comparison("paper_label", "cumulative averages (figure 19a)", "over", ALL),
    Comparison("paper_label", "from ten rows before to five rows before (figure 19b)", "over", ALL),
    Comparison("paper_label", "from ten rows before to five rows before, whole frames only", "over", ALL),
    Comparison("paper_label", "from five rows after to ten rows after", "over", ALL),
    Comparison("paper_label", "five rows before and the label (section 3.3)", "over", ALL),
    Comparison("paper_label", "three days before to one day before", "over", STATION),
]

needs_data = pytest.mark.skipif(
    not DATA.exists(), reason="no GHCN-Daily data; name a Parquet file of it in WINDROW_GHCN"
)


@pytest.fixture(scope="module")
def minima(spark: SparkSession) -> Iterator[DataFrame]:
    """The minima with unique dates in each station, held in memory."""
    spark.read.parquet(str(DATA)).createOrReplaceTempView("published")
    frame = spark.sql(
        """
        SELECT station, date, dataType, val
        FROM published
        WHERE dataType = 'TMIN'
        QUALIFY COUNT(*) OVER (PARTITION BY station, date) = 1
        """
    ).cache()
    yield frame
    frame.unpersist()
    spark.catalog.dropTempView("published")


@needs_data
@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize(
    "comparison", [pytest.param(c, id=f"{c.theme}: {c.case} = {c.twin}") for c in COMPARISONS]
)
def test_the_query_equals_its_twin(spark: SparkSession, minima: DataFrame, comparison: Comparison) -> None:
    case, twin = _find(comparison)
    rows = minima.where(comparison.rows)
    session = windrow.Session(spark, execution="batch")
    session.register("ghcn", rows)
    begun = time.perf_counter()
    found = _sorted(session.sql(case.query).df)
    middle = time.perf_counter()
    rows.createOrReplaceTempView("ghcn")
    wanted = _sorted(spark.sql(twin.sql))
    ended = time.perf_counter()
    seconds = f"windrow {middle - begun:.1f} s, {twin.name} {ended - middle:.1f} s"
    print(f"{case.name}: {found.num_rows} rows, {seconds}")
    assert wanted.num_rows > 0, "a comparison over nothing"
    assert found.schema.names == wanted.schema.names
    assert found.num_rows == wanted.num_rows
    assert found.equals(wanted), _first_difference(found, wanted)


def test_every_twin_of_the_paper_is_compared() -> None:
    compared = {(c.theme, c.case, c.twin) for c in COMPARISONS}
    written = {
        (path.stem, case.name, twin.name)
        for path in sorted(CASES.glob("paper_*.case"))
        for case in load(path).cases
        for twin in case.twins
    }
    assert written - compared == set()


def _find(comparison: Comparison) -> tuple[Case, Twin]:
    case = load(CASES / f"{comparison.theme}.case").case(comparison.case)
    return case, next(twin for twin in case.twins if twin.name == comparison.twin)


def _sorted(frame: DataFrame) -> pa.Table:
    table = frame.toArrow()
    fields = [field.with_nullable(True) for field in table.schema]
    return (
        table.cast(pa.schema(fields))
        .sort_by([(field.name, "ascending") for field in fields])
        .combine_chunks()
    )


def _first_difference(found: pa.Table, wanted: pa.Table) -> str:
    pairs = zip(found.to_pylist(), wanted.to_pylist(), strict=True)
    return next(f"row {i}: {a} instead of {b}" for i, (a, b) in enumerate(pairs) if a != b)

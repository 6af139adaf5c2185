"""NOAA's GHCN-Daily files as published: a station's ``.dly`` and the CSV of a year.

Both become the same table, a row for each value:

========  ======  ==========================================================================
station   string  the station's identifier, 11 characters
date      date
dataType  string  the element: TMIN, TMAX, PRCP, SNOW, …
val       int     the value in the units published: tenths of a degree Celsius, tenths of a
                  millimetre of rain, whole millimetres of snow; not NULL
mflag     string  measurement flag, NULL where blank
qflag     string  quality flag, NULL where blank: a value that failed a check is still there
sflag     string  source flag, NULL where blank
========  ======  ==========================================================================

Missing values (-9999) and days that a month does not have are left out. The time of observation in the CSV is
not read. A line of any other form is an error, never skipped: up front with file and line number if the files
are small and visible to this process, else when Spark reaches it.
Formats: section III of https://www.ncei.noaa.gov/pub/data/ghcn/daily/readme.txt and
https://www.ncei.noaa.gov/pub/data/ghcn/daily/by_year/readme-by_year.txt.
"""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from windrow.errors import InputError

__all__ = ["BY_YEAR", "DLY", "LineFormat", "read"]

_CHECKED_BYTES = 16 * 2**20
"""How much of the files is checked up front, in less than a second."""

_STATION = "[A-Za-z0-9_-]{11}"
_YEAR_MONTH = "[12][0-9]{3}(?:0[1-9]|1[0-2])"
_ELEMENT = "[A-Z0-9]{4}"
_RIGHT_ALIGNED = "(?: {4}[0-9]| {3}[-0-9][0-9]| {2}[-0-9][0-9]{2}| [-0-9][0-9]{3}|[-0-9][0-9]{4})"


@dataclass(frozen=True, slots=True)
class LineFormat:
    """The form of the lines of a kind of file.

    Attributes
    ----------
    name
        The name of the kind of file in errors.
    pattern
        A regular expression for the whole line, of the syntax common to Python and Java.
    """

    name: str
    pattern: str

    def matches(self, line: bytes) -> bool:
        """Whether a line, with or without its end, is of this format."""
        return re.fullmatch(self.pattern.encode(), line.rstrip(b"\r\n")) is not None


DLY = LineFormat(
    "GHCN-Daily station file", f"{_STATION}{_YEAR_MONTH}{_ELEMENT}(?:{_RIGHT_ALIGNED}[ -~]{{3}}){{31}}"
)
BY_YEAR = LineFormat(
    "GHCN-Daily by-year CSV",
    f"{_STATION},{_YEAR_MONTH}(?:0[1-9]|[12][0-9]|3[01]),{_ELEMENT},-?[0-9]{{1,6}}(?:,[^,]?){{3}},[0-9]{{0,4}}",
)


def read(spark: SparkSession, form: LineFormat, targets: list[str], visible: Sequence[Path]) -> DataFrame:
    """Read GHCN-Daily files.

    Parameters
    ----------
    spark
        A classic or a Spark Connect session.
    form
        `DLY` or `BY_YEAR`.
    targets
        The paths for Spark.
    visible
        The files behind them, as far as this process can see them: their lines are checked up front.

    Raises
    ------
    InputError
        ``MALFORMED_LINE`` or ``TORN_FILE``, with the file and the number of the line. A line that only Spark
        finds fails the query, with ``[MALFORMED_LINE]`` in Spark's message.
    """
    _check_lines(form, visible)
    lines = _checked(spark.read.text(targets), form)
    entries = _dly_entries(lines) if form is DLY else _by_year_entries(lines)
    return entries.where("val <> -9999")


def _check_lines(form: LineFormat, files: Sequence[Path]) -> None:
    left = _CHECKED_BYTES
    for file in files:
        try:
            with gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb") as lines:
                for number, line in enumerate(lines, start=1):
                    if not form.matches(line):
                        raise _malformed(form, file, number, line)
                    left -= len(line)
                    if left < 0:
                        return
        except (EOFError, zlib.error) as error:
            raise InputError(
                f"file {file} ends inside its compressed data",
                condition="TORN_FILE",
                hint="fetch the file again: it is cut short",
            ) from error


def _malformed(form: LineFormat, file: Path, number: int, line: bytes) -> InputError:
    if number > 1 and not line.endswith(b"\n"):
        return InputError(
            f"file {file} ends inside line {number}",
            condition="TORN_FILE",
            hint="fetch the file again: it is cut short",
        )
    start = line[:40].decode("ascii", "replace").rstrip()
    return InputError(
        f"line {number} of {file} does not have the format of a {form.name}: {start!r}",
        condition="MALFORMED_LINE",
        hint="name the file's format if it has another one",
    )


def _checked(text: DataFrame, form: LineFormat) -> DataFrame:
    """The lines as column `line`; a malformed one fails the query that reads it."""
    condition = f"value RLIKE '^{form.pattern}$'"
    if form is BY_YEAR:
        condition += f" AND {_by_year_date('value')} IS NOT NULL"
    place = "concat('[MALFORMED_LINE] a line of ', _metadata.file_path"
    problem = f"{place}, ' does not have the format of a {form.name}: ', left(value, 40))"
    return text.selectExpr(f"CASE WHEN {condition} THEN value ELSE raise_error({problem}) END AS line")


def _dly_entries(lines: DataFrame) -> DataFrame:
    """A line is station, year, month, element and 31 groups: a value of five characters and three flags."""
    months = lines.selectExpr(
        "substring(line, 1, 11) AS station",
        "make_date(CAST(substring(line, 12, 4) AS INT), CAST(substring(line, 16, 2) AS INT), 1) AS month",
        "substring(line, 18, 4) AS dataType",
        "substring(line, 22) AS days",
    )
    groups = "transform(sequence(0, day(last_day(month)) - 1), i -> substring(days, 8 * i + 1, 8))"
    days = months.selectExpr("station", "month", "dataType", f"posexplode({groups}) AS (i, entry)")
    return days.selectExpr(
        "station",
        "date_add(month, i) AS date",
        "dataType",
        "CAST(trim(substring(entry, 1, 5)) AS INT) AS val",
        "nullif(substring(entry, 6, 1), ' ') AS mflag",
        "nullif(substring(entry, 7, 1), ' ') AS qflag",
        "nullif(substring(entry, 8, 1), ' ') AS sflag",
    )


def _by_year_entries(lines: DataFrame) -> DataFrame:
    """A line is ``ID,YYYYMMDD,ELEMENT,VALUE,MFLAG,QFLAG,SFLAG,OBSTIME``."""
    fields = lines.selectExpr(f"{_by_year_date('line')} AS date", "split(line, ',') AS field")
    return fields.selectExpr(
        "field[0] AS station",
        "date",
        "field[2] AS dataType",
        "CAST(field[3] AS INT) AS val",
        "nullif(field[4], '') AS mflag",
        "nullif(field[5], '') AS qflag",
        "nullif(field[6], '') AS sflag",
    )


def _by_year_date(line: str) -> str:
    """The date in a line, NULL for the 31st of February. A cast is as strict in every setting of Spark."""
    year, month, day = (
        f"substring({line}, {start}, {length})" for start, length in ((13, 4), (17, 2), (19, 2))
    )
    return f"try_cast(concat_ws('-', {year}, {month}, {day}) AS DATE)"

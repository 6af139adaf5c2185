"""Reads recorded streams from text: each line is a row, as its instant and its values.

    Timestamp   Tuple
         1000   10,0.1
         1002:  15,"a, b"
    h    3800

The heading and empty lines are ignored; a colon may follow the instant; ``h`` lines are heartbeats: no row of
an earlier instant follows. Instants never decrease. An empty value is NULL.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.errors import InputError, refuse_unknown
from windrow.spark.gateway import Gateway
from windrow.spark.logs.admitted_rows import VIOLATED_BOUND
from windrow.spark.logs.session_streams import (
    ARRIVAL,
    ENTRY_BOUND,
    IS_LATE,
    PRODUCER,
    PTIME,
    ROWTIME,
    SEQUENCE,
    Stream,
    StreamArrivals,
)
from windrow.syntax.sqltext import quoted

__all__ = ["TextLog", "is_text_log", "of_text_log", "read_text_log"]

_LINE = re.compile(r"\s*(?P<beat>h\s+)?(?P<instant>[+-]?\d+)(?:\s*:)?(?:\s+(?P<values>\S.*)?)?")
_HEADING = re.compile(r"\s*timestamp\s+tuple\s*", re.IGNORECASE)
_MALFORMED = ("fail", "keep")


@dataclass(frozen=True)
class TextLog:
    """The lines of a recorded text.

    Attributes
    ----------
    rows
        (instant, values, line) of each row in order; values are texts, None for NULL.
    beats
        The instants of the heartbeats and the numbers of their lines.
    late
        (instant, values, line, bound) of rows below an earlier instant.
    malformed
        (line, text, problem) of lines that cannot be read.
    """

    rows: tuple[tuple[int, tuple[str | None, ...], int], ...]
    beats: tuple[tuple[int, int], ...]
    late: tuple[tuple[int, tuple[str | None, ...], int, int], ...]
    malformed: tuple[tuple[int, str, str], ...]

    @property
    def width(self) -> int:
        """The number of values of a row."""
        return len(self.rows[0][1]) if self.rows else 0


def read_text_log(path: str | Path, *, malformed: str = "fail", width: int | None = None) -> TextLog:
    """Read a recorded stream.

    Parameters
    ----------
    path
        A file of UTF-8 text.
    malformed
        What happens to lines that cannot be read, have another number of values than the first row, or are
        below an earlier instant: ``"fail"`` fails; ``"keep"`` collects them, and rows below an earlier
        instant are late.
    width
        The number of values of a row, if it is known.

    Raises
    ------
    InputError
        ``PATH_NOT_FOUND``, ``UNREADABLE_FILE``, ``MALFORMED_LINE`` with the number of the line.
    UsageError
        ``UNKNOWN_OPTION`` for another `malformed`.
    """
    refuse_unknown(f"malformed={malformed!r}", malformed, _MALFORMED, "UNKNOWN_OPTION")
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise InputError(
            f"file {path} does not exist", condition="PATH_NOT_FOUND", hint="check the path"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read file {path}: {error}", condition="UNREADABLE_FILE") from error
    rows: list[tuple[int, tuple[str | None, ...], int]] = []
    beats: list[tuple[int, int]] = []
    late: list[tuple[int, tuple[str | None, ...], int, int]] = []
    wrong: list[tuple[int, str, str]] = []
    reached: int | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or (not rows and _HEADING.fullmatch(line)):
            continue
        expected = width if width is not None else len(rows[0][1]) if rows else None
        problem = _problem(line, expected)
        found = _LINE.fullmatch(line)
        behind = found is not None and reached is not None and int(found["instant"]) < reached
        if problem is None and behind and malformed == "keep" and found is not None and found["values"]:
            assert reached is not None
            late.append((int(found["instant"]), _values(found["values"]), number, reached))
            continue
        if problem is None and behind:
            problem = f"is below the earlier instant {reached}"
        if problem is not None:
            if malformed == "fail":
                raise InputError(
                    f"line {number} of {path} {problem}: {line.strip()[:60]}",
                    condition="MALFORMED_LINE",
                    hint="correct the line, or set malformed='keep', which collects such lines",
                )
            wrong.append((number, line, problem))
            continue
        assert found is not None
        reached = int(found["instant"])
        if found["beat"]:
            beats.append((reached, number))
        else:
            rows.append((reached, _values(found["values"]), number))
    return TextLog(tuple(rows), tuple(beats), tuple(late), tuple(wrong))


def _problem(line: str, width: int | None) -> str | None:
    """The problem of a line; None for a good one."""
    found = _LINE.fullmatch(line)
    if found is None or bool(found["beat"]) == bool(found["values"]):
        return "is neither an instant with values nor h with an instant"
    instant = int(found["instant"])
    if not -(2**63) <= instant < 2**63:
        return "has an instant that is too large"
    if found["values"] is None:
        return None
    try:
        values = _values(found["values"])
    except csv.Error:
        return "has an unclosed quote"
    if width is not None and len(values) != width:
        return f"has {len(values)} values, not {width}"
    return None


def _values(text: str) -> tuple[str | None, ...]:
    (values,) = csv.reader([text.rstrip()], skipinitialspace=True, strict=True)
    return tuple(value.strip() or None for value in values)


def of_text_log(
    gateway: Gateway,
    log: TextLog,
    columns: tuple[tuple[str, str], ...] | None,
    scale: TimeScale,
    rowtime: str | None,
) -> Stream:
    """The rows of a recorded text.

    Parameters
    ----------
    columns
        The names of the values and their types, in Spark's syntax; by default c1, c2 and so on, with types
        inferred from the values.
    scale
        The unit of the instants.
    rowtime
        The name of the column with the instants, if queries have one. It may be among the columns.
    """
    values = (
        [name for name, _ in columns if name != rowtime]
        if columns
        else [f"c{at + 1}" for at in range(log.width)]
    )
    if log.rows and log.width != len(values):
        raise InputError(
            f"rows have {log.width} values, but {len(values)} columns are declared",
            condition="MALFORMED_LINE",
            hint="declare a column for each value, and ROWTIME for the instant",
        )
    texts = ", ".join(f"{quoted(name)} STRING" for name in values)
    data = [(instant, line, *row) for instant, row, line in log.rows]
    frame = gateway.spark.createDataFrame(data, f"{ROWTIME} BIGINT, {SEQUENCE} BIGINT, {texts}")
    types = (
        dict(columns)
        if columns
        else {name: _guessed([row[at] for _, row, _ in log.rows]) for at, name in enumerate(values)}
    )
    made = [f"{_cast(name, types[name])} AS {quoted(name)}" for name in values]
    if rowtime is not None:
        named = [name for name, _ in columns or ()]
        place = named.index(rowtime) if rowtime in named else 0
        made.insert(place, f"{scale.to_column(ROWTIME)} AS {quoted(rowtime)}")
    late = None
    if log.late:
        behind = [(instant, line, bound, *row) for instant, row, line, bound in log.late]
        instants = f"{ROWTIME} BIGINT, {SEQUENCE} BIGINT, {VIOLATED_BOUND} BIGINT"
        late = gateway.spark.createDataFrame(behind, f"{instants}, {texts}")
    with gateway.translated():
        frame = frame.selectExpr(*made, ROWTIME, SEQUENCE)
        late = late.selectExpr(*made, ROWTIME, SEQUENCE, VIOLATED_BOUND) if late is not None else None
    names = tuple(name for name in frame.columns if name not in (ROWTIME, SEQUENCE))
    # a row is a bound for later rows, as a heartbeat is
    entries: list[tuple[int, int | None, int | None, bool]]
    entries = [(line, instant, instant, False) for instant, _, line in log.rows]
    entries += [(line, None, instant, False) for instant, line in log.beats]
    entries += [(line, instant, None, True) for instant, _, line, _ in log.late]
    schema = f"{ARRIVAL} BIGINT, {ROWTIME} BIGINT, {ENTRY_BOUND} BIGINT, {IS_LATE} BOOLEAN"
    unknown = F.lit(None).cast("bigint")
    judged = gateway.spark.createDataFrame(entries, schema).withColumns({PRODUCER: F.lit(""), PTIME: unknown})
    beats = tuple(instant for instant, _ in log.beats)
    arrivals = StreamArrivals(judged.drop(IS_LATE), judged, scale, "line")
    return Stream(frame, names, scale, (SEQUENCE,), beats, rowtime, late=late, arrivals=arrivals)


def _guessed(values: list[str | None]) -> str:
    """The narrowest type of all values."""
    present = [value for value in values if value is not None]
    if not present:
        return "STRING"
    if all(re.fullmatch(r"[+-]?\d{1,18}", value) for value in present):
        return "BIGINT"
    number = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
    return "DOUBLE" if all(re.fullmatch(number, value) for value in present) else "STRING"


def _cast(name: str, kind: str) -> str:
    plain = f"CAST({quoted(name)} AS {kind})"
    if kind.upper() in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        text = f"try_to_timestamp({quoted(name)}, 'MM/dd/yyyy HH:mm:ss')"
        return f"CAST(CASE WHEN {text} IS NULL THEN {plain} ELSE {text} END AS {kind})"
    return plain


def is_text_log(path: object) -> bool:
    """Whether a path is that of a recorded text, by its suffix."""
    return isinstance(path, str | Path) and Path(str(path)).suffix.lower() == ".cql"

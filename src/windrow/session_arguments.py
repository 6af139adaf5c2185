"""Checks the arguments of a session, and explains attributes that it lacks."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windrow.errors import NoAttributeError, UsageError, did_you_mean, refuse_unknown
from windrow.without_sql.python_lengths import duration_of

__all__ = [
    "check_name",
    "is_named_stream",
    "micros_of",
    "no_attribute",
    "refuse_no_table_name",
    "refuse_no_text",
    "refuse_no_values",
    "refuse_of_named",
    "refuse_of_text",
]

_IN_PLACE_OF = {
    "read": "write session.register('t', 'data.csv') for queries over files, or use Spark's"
    " session.spark.read",
    "readStream": "write session.stream('s', session.spark.readStream…, rowtime='ts')",
    "createDataFrame": "write session.register('t', rows), where rows is a DataFrame of pandas or Spark,"
    " or an Arrow table",
}
"""The alternatives to attributes of SparkSession, other than `session.spark`."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def no_attribute(name: str, names: Iterable[str]) -> NoAttributeError:
    """The error that a session, which has the attributes `names`, lacks one; the hint has another way."""
    of_spark = f"use Spark's: session.spark.{name}" if hasattr(SparkSession, name) else None
    known = [each for each in names if not each.startswith("_")]
    hint = _IN_PLACE_OF.get(name) or of_spark or did_you_mean(name, known)
    hint = hint or "run help(windrow.Session) for a list"
    return NoAttributeError(f"a session has no attribute {name}", condition="NO_ATTRIBUTE", hint=hint)


def check_name(name: str) -> None:
    """Refuse what is no plain identifier."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(
            f"table name {name!r} is not an identifier",
            condition="INVALID_NAME",
            hint="use letters, digits and _",
        )


def refuse_no_table_name(name: object) -> None:
    """Refuse a DataFrame, or anything but a text, where the name of a table is meant."""
    if not isinstance(name, str):
        raise UsageError(
            f"the name of a table is a str, not a {type(name).__name__}",
            condition="INVALID_ARGUMENT",
            hint="register it under a name first: session.register('t', df), and then session.table('t')",
        )


def refuse_no_values(parameters: Sequence[tuple[int | str, Any]]) -> None:
    """Refuse what no type of Spark can represent."""
    for name, value in parameters:
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise UsageError(
                f"parameter {name} is an integer of more than 64 bits",
                condition="INVALID_ARGUMENT",
                hint="pass a decimal.Decimal",
            )
        if not isinstance(value, str | int | float | None):
            try:
                if isinstance(
                    value, set | frozenset
                ):  # of which Spark 4.3 complains only where they are used
                    raise TypeError
                F.lit(value)
            except (AttributeError, TypeError, PySparkException) as error:
                hint = "pass a number, text, date, time or list, such as str(value)"
                if hasattr(value, "createOrReplaceTempView"):
                    hint = f"register it, session.register('{name}', df), and write FROM {name}"
                raise UsageError(
                    f"parameter {name} is a {type(value).__name__}, which is not a type of Spark",
                    condition="INVALID_ARGUMENT",
                    hint=hint,
                ) from error


def refuse_no_text(text: object) -> None:
    """Refuse what is no text where SQL is meant."""
    if not isinstance(text, str):
        raise TypeError(f"SQL is a str, not {type(text).__name__}")


def micros_of(length: datetime.timedelta | str | None, name: str) -> int | None:
    """A length of time in microseconds."""
    return None if length is None else duration_of(length, name) // datetime.timedelta(microseconds=1)


def refuse_of_named(name: str, options: Iterable[object], on_late: str) -> None:
    """Refuse options of a named stream, which has its own."""
    if any(value is not None for value in options) or on_late != "keep":
        raise UsageError(
            f"stream {name} is a named stream, whose options are in its folder",
            condition="UNKNOWN_OPTION",
            hint=f"write session.stream({name!r}, folder), and on_late in start(…)",
        )


def refuse_of_text(name: str, of_tables: Iterable[object], on_late: str, malformed: str) -> None:
    """Refuse options of tables for a recorded text, in which late lines fail unless malformed ones do."""
    refuse_unknown(f"on_late={on_late!r}", on_late, ("keep", "fail"), "UNKNOWN_OPTION")
    if any(value is not None for value in of_tables) or (on_late, malformed) == ("fail", "keep"):
        raise UsageError(
            f"stream {name} is of a recorded text, which takes no ptime, producer, bound, watermark or"
            " punctuation, and no on_late='fail' beside malformed='keep'",
            condition="UNKNOWN_OPTION",
            hint="leave them out: lines are in order of arrival, those with h are bounds, and lines out of"
            " order fail",
        )


def is_named_stream(source: object) -> TypeGuard[str | Path]:
    """Whether this is the folder of a named stream."""
    return isinstance(source, str | Path) and (Path(source) / "stream.json").is_file()

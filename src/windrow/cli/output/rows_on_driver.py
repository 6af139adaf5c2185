"""The rows of a result, one by one: the driver has a partition or two at a time in memory, not the result.

Spark turns values into text, in its tasks. So every type is written as Spark writes it, in the session's time
zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.errors import ExecutionError, Span, WindrowError
from windrow.spark.errors import malformed_record, translate
from windrow.spark.jvm.bridge import JavaError, LostError, reported_by_spark
from windrow.spark.runtime.quiet import quiet

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

__all__ = ["as_json", "as_text", "stream", "translated"]

# with microseconds, and the offset from UTC: the default would cut times to milliseconds
_JSON = {
    "ignoreNullFields": "false",
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
}


def as_json(frame: DataFrame) -> DataFrame:
    """One column, `line`: each row as a JSON object with a field for every column, in order.

    Decimals are numbers with all their digits. NaN and infinities are the strings ``"NaN"``, ``"Infinity"``
    and ``"-Infinity"``, as JSON has no numbers for them. Binary values are base64.
    """
    names = frame.columns
    # by position, as two columns of a result may have the same name
    numbered = frame.toDF(*_positions(frame))
    fields = [F.col(position).alias(name) for position, name in zip(numbered.columns, names, strict=True)]
    return numbered.select(F.to_json(F.struct(*fields), _JSON).alias("line"))


def as_text(frame: DataFrame, *, iso: bool) -> DataFrame:
    """Every column as a string or NULL; structs, arrays and maps as JSON.

    With `iso`, timestamps have the form of JSON, else the form of Spark's `show`.
    """
    names = frame.columns
    numbered = frame.toDF(*_positions(frame))
    columns = [_text(F.col(field.name), field.dataType, iso) for field in numbered.schema.fields]
    return numbered.select(*columns).toDF(*names)


# The finalizer of PySpark's iterator reads the rest of its partition. A reference here prevents that for
# iterators that are not read to their end: the process ends without finalizers.
_unread: list[Iterator[Row]] = []


def stream(frame: DataFrame, sql: str) -> Iterator[Row]:
    """The rows in order, with errors located in `sql`; the next partition is computed while one is read."""
    with translated(sql):
        rows = frame.toLocalIterator(prefetchPartitions=True)
        _unread.append(rows)
        # Not `yield from`, which would free PySpark's iterator as soon as this one is closed.
        for row in rows:  # noqa: UP028
            yield row
        _unread.remove(rows)


@contextmanager
def translated(sql: str) -> Iterator[None]:
    """Raise errors of Spark while rows are computed as Windrow's errors, located in `sql`."""
    with quiet():
        try:
            yield
        except PySparkException as error:
            raise _located(translate(error), error, sql) from None
        except JavaError as error:
            if (malformed := malformed_record(str(error))) is not None:
                raise malformed from None
            # the local iterator raises this error of Java untranslated, `collect` does not
            cause = reported_by_spark(error)
            raise _located(translate(cause), cause, sql) from None
        except (LostError, ConnectionError, EOFError):
            raise ExecutionError(
                "Spark ended while it computed the rows",
                condition="SPARK_LOST",
                hint="give Spark more memory if it ran out of it: --conf spark.driver.memory=8g",
            ) from None


def _positions(frame: DataFrame) -> list[str]:
    return [f"c{number}" for number in range(len(frame.columns))]


def _text(column: Column, kind: T.DataType, iso: bool) -> Column:
    if isinstance(kind, T.StructType | T.ArrayType | T.MapType):
        return F.to_json(column, _JSON)
    if isinstance(kind, T.BinaryType):
        return F.base64(column)
    if iso and isinstance(kind, T.TimestampType | T.TimestampNTZType):
        # the only function that formats both types without a conversion to the other
        return F.get_json_object(F.to_json(F.struct(column.alias("v")), _JSON), "$.v")
    if not iso and isinstance(kind, T.DayTimeIntervalType):
        return _length(column)
    return column.cast("string")


def _length(column: Column) -> Column:
    """A day-time interval as text: 00:33:02, or 2 days 00:33:02.5."""
    text = column.cast("interval day to second").cast("string")
    sign, days, rest = (F.regexp_extract(text, r"'(-?)(\d+) ([\d:.]+)'", group) for group in (1, 2, 3))
    whole = (
        F.when(days == "0", F.lit(""))
        .when(days == "1", F.lit("1 day "))
        .otherwise(F.concat(days, F.lit(" days ")))
    )
    return F.when(column.isNotNull(), F.concat(sign, whole, rest))


def _located(error: WindrowError, cause: PySparkException, sql: str) -> WindrowError:
    """The error with the position of Spark's fragment, if that occurs in the user's text exactly once."""
    if error.span is not None:
        return error
    for context in cause.getQueryContext():
        fragment = context.fragment()
        if fragment and sql.count(fragment) == 1:
            start = sql.index(fragment)
            error.sql, error.span = sql, Span(start, start + len(fragment))
            break
    return error

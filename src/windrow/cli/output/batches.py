"""The rows of micro-batches on stdout, in the same forms as rows of batch queries."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windrow.cli.output.formats import Format, csv_lines, markdown_lines
from windrow.cli.output.rows_on_driver import as_json, as_text
from windrow.cli.output.terminal import is_plain, stdout_console
from windrow.cli.output.text_tables import print_table

__all__ = ["Batches", "by_time"]


class Batches:
    """Writes one micro-batch after the other, and the header once."""

    def __init__(self, form: Format) -> None:
        self.form = form
        self._has_header = False

    @property
    def waits(self) -> bool:
        """Whether the header must still be written, even without rows."""
        return self.form is not Format.TABLE and not self._has_header

    def again(self) -> None:
        """Write the header once more, because rows of another query have been written since."""
        if self.form in (Format.CSV, Format.MARKDOWN):
            sys.stdout.write("\n")
            self._has_header = False

    def texts(self, frame: DataFrame) -> list[Sequence[str | None]]:
        """The rows as texts: one for each column, or one JSON object for the row."""
        if self.form is Format.JSON:
            return list(as_json(frame).collect())
        return list(as_text(frame, iso=self.form is not Format.TABLE).collect())

    def put(
        self, schema: T.StructType, texts: Sequence[Sequence[str | None]], more: str | None = None
    ) -> None:
        """Write rows. Below a table, `more` says how to see omitted rows, if there are any."""
        if self.form is Format.TABLE:
            numeric = [isinstance(field.dataType, T.NumericType) for field in schema.fields]
            print_table(stdout_console(), schema.names, texts, numeric, more=more, plain=is_plain())
        elif self.form is Format.JSON:
            sys.stdout.write("".join(f"{line}\n" for (line,) in texts))
        else:
            sys.stdout.write("".join(self._lines(schema.names, texts)))
        sys.stdout.flush()

    def _lines(self, names: Sequence[str], texts: Sequence[Sequence[str | None]]) -> Iterator[str]:
        make, header = (csv_lines, 1) if self.form is Format.CSV else (markdown_lines, 2)
        for number, line in enumerate(make(names, texts)):
            if number >= header or not self._has_header:
                yield line
        self._has_header = True


def by_time(frame: DataFrame) -> DataFrame:
    """Changes in order of their instants, deletes before inserts; rows of a stream in order of rowtime."""
    names = frame.columns
    # by position: two columns may have one name
    numbered = frame.toDF(*(f"c{place}" for place in range(len(names))))
    order = _order(names)
    if not order:
        return frame
    return numbered.coalesce(1).sortWithinPartitions(*order).toDF(*names)


def _order(names: Sequence[str]) -> list[Column]:
    """The ordering columns of a stream, or of a changelog in the envelope with these column names."""
    last = len(names) - 1
    match list(names):
        case ["_op", "_at", *_]:
            return [F.col("c1"), F.col("c0").startswith("+")]
        case ["timestamp", "kind", "tuple"]:
            return [F.col("c0"), F.col("c1") == "+"]
        case [*_, "_diff", "_at"]:
            return [F.col(f"c{last}"), F.col(f"c{last - 1}")]
        case [*_, "_change_type", "_commit_version", "_commit_timestamp"]:
            enters = F.col(f"c{last - 2}").isin("insert", "update_postimage")
            return [F.col(f"c{last - 1}"), enters]
        case [*_, "undo", "ptime", "ver"]:
            return [F.col(f"c{last - 1}"), F.col(f"c{last}")]
        case ["rowtime" | "_rowtime", *_]:
            return [F.col("c0")]
        case _:
            return []

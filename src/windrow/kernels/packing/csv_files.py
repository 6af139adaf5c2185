"""CSV files that the driver reads itself, if Spark certainly reads the same values from them.

A plain file is lines, cut at commas, in which quotes only enclose whole values. Texts are then the same for
Arrow and Spark. For other types only those values count that both read alike: decimal digits, finite numbers,
dates and timestamps of ISO 8601. All other files are Spark's.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

__all__ = ["MOST_BYTES", "plain_csv"]

_NOT_PLAIN = tuple(b"\\\r\0")
_COMMA, _LINE, _QUOTE = b',\n"'
_MARK = 0xEF
"""The first byte of a byte order mark."""
_BLOCK = 1 << 20
MOST_BYTES = 512 << 20
"""What one reader takes into memory."""
_FEWEST = 2
"""The columns of a file, at least: Spark leaves out lines of blanks, which are values of a single column."""


def plain_csv(
    path: str, schema: pa.Schema, wanted: Sequence[str], *, has_header: bool = False
) -> pa.Table | None:
    """These columns of a file, in its order; None if Spark may read other values, or raises an error.

    Parameters
    ----------
    path
        A local file.
    schema
        All columns of the file. Timestamps are read as UTC. NULL is nothing between two commas.
    has_header
        Whether the first line is left out. It must have as many names as there are columns.
    """
    if len(schema) < _FEWEST or not all(map(_is_read, schema.types)):
        return None
    if not path.endswith(".csv"):  # others may be compressed
        return None
    try:
        with pa.OSFile(path) as file:
            content = file.read_buffer()  # whose memory is used again, as that of an array is not
    except OSError:  # Spark says what is wrong
        return None
    found = np.frombuffer(content, np.uint8)
    if len(found) == 0:
        return schema.empty_table().select(wanted)
    lines = None if found[0] == _MARK else _plain_lines(found)
    if lines is None:
        return None
    try:
        texts = pa.csv.read_csv(
            pa.BufferReader(content),
            pa.csv.ReadOptions(column_names=schema.names, block_size=8 * _BLOCK),
            pa.csv.ParseOptions(double_quote=False),
            pa.csv.ConvertOptions(
                include_columns=list(wanted),
                column_types=dict.fromkeys(wanted, pa.string()),
                strings_can_be_null=True,
                null_values=[""],
            ),
        )
        # fewer rows than lines: a line without a value, or a line break in quotes
        if texts.num_rows != lines:
            return None
        texts = texts.slice(int(has_header))
        columns = [_read(texts.column(name), schema.field(name).type) for name in wanted]
    except pa.ArrowException:
        return None
    known = [column for column in columns if column is not None]
    if len(known) < len(columns):
        return None
    return pa.Table.from_arrays(known, schema=pa.schema([schema.field(name) for name in wanted]))


def _plain_lines(content: npt.NDArray[np.uint8]) -> int | None:
    """The number of lines; None if there are escapes, or quotes within a value or around nothing."""
    lines, quotes = int(content[-1] != _LINE), 0
    for begin in range(0, len(content), _BLOCK):  # which stays in the processor's cache
        block = content[begin : begin + _BLOCK]
        if any((block == mark).any() for mark in _NOT_PLAIN):
            return None
        lines += int(np.count_nonzero(block == _LINE))
        places = np.flatnonzero(block == _QUOTE) + begin
        first, last = places[quotes % 2 :: 2], places[1 - quotes % 2 :: 2]
        quotes += len(places)
        before = content[np.maximum(first - 1, 0)]
        after = content[np.minimum(last + 1, len(content) - 1)]
        begins = (before == _COMMA) | (before == _LINE) | (first == 0)
        ends = (after == _COMMA) | (after == _LINE) | (last == len(content) - 1)
        if not (begins.all() and ends.all()) or (content[last - 1] == _QUOTE).any():
            return None
    return lines if quotes % 2 == 0 else None


def _is_read(kind: pa.DataType) -> bool:
    is_time = pa.types.is_timestamp(kind) or pa.types.is_date32(kind)
    is_number = pa.types.is_signed_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)
    return bool(is_time or is_number or pa.types.is_string(kind))


def _read(texts: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray | None:
    """The values of texts; None, or an error, if not all are read alike."""
    if pa.types.is_string(kind):
        return texts
    if pa.types.is_signed_integer(kind):
        others = texts.filter(pc.invert(pc.ascii_is_decimal(texts)))  # without NULLs
        if len(others) and not pc.all(pc.match_substring_regex(others, "^-[0-9]+$")).as_py():
            return None
    if pa.types.is_timestamp(kind):
        return texts.cast(pa.timestamp(kind.unit)).cast(kind)
    values = texts.cast(kind)
    if pa.types.is_floating(kind) and not pc.all(pc.is_finite(values), min_count=0).as_py():
        return None
    return values

"""Tables that tasks join with the rows of the files that they read.

They are read when the query is planned, so only tables qualify that certainly have the same rows when it
runs: constants, and files that each task finds unchanged.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.kernels.computed.lookups import CollectedTable
from windrow.kernels.packing.parquet_files import FilePart
from windrow.spark.analysis.small_tables import small_table
from windrow.spark.analysis.typed_values import Unread
from windrow.spark.errors import local_path
from windrow.spark.gateway import Gateway

__all__ = ["JoinedTables"]

_FIXED = frozenset({"LocalRelation", "OneRowRelation", "Range", "InMemoryFileIndex"})


class JoinedTables:
    """The tables of a plan.

    Parameters
    ----------
    gateway, frame
        The session, and the DataFrame that the plan is of.

    Attributes
    ----------
    files
        The files that they come from.
    rows
        The number of the rows of each.
    """

    def __init__(self, gateway: Gateway, frame: DataFrame) -> None:
        self.gateway, self.frame = gateway, frame
        self.files: list[FilePart] = []
        self.rows: list[int] = []
        self._known = cache(self._read)

    def found(self, path: Sequence[int]) -> CollectedTable:
        """A part of the plan, as :data:`windrow.spark.analysis.computed_columns.FoundTable`.

        Raises
        ------
        Unread
            It is too large, or may have other rows when the query runs.
        """
        return self._known(tuple(path))

    def _read(self, path: tuple[int, ...]) -> CollectedTable:
        table = small_table(self.gateway, self.frame, path)
        if table is None:
            raise Unread("join is between them and the files")
        if not (table.is_deterministic and table.sources <= _FIXED):
            raise Unread("they are joined with a table that may change before the query runs")
        self.files += [_part(uri) for uri in table.frame.inputFiles()]
        found = table.rows()
        self.rows.append(found.num_rows)
        coded = [
            column.dictionary_encode() if pa.types.is_string(column.type) else column
            for column in found.columns
        ]
        return CollectedTable(table.numbers, table.schema, pa.table(coded, names=found.schema.names))


def _part(uri: str) -> FilePart:
    path = local_path(uri)
    try:
        return FilePart.of(path)
    except OSError:
        raise Unread("they are joined with files of another file system") from None

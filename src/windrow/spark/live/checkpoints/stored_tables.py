"""The tables beside windows, as they were when their query was first started.

A row that leaves a window must be joined with the same rows as when it entered. So a checkpoint contains the
rows of such tables, and a restart reads these.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from windrow.errors import InputError
from windrow.spark.collected import collected
from windrow.spark.gateway import Gateway
from windrow.spark.live.checkpoints.checksums import check, checksums_of, missing
from windrow.spark.live.checkpoints.row_files import read_rows, write_collected, write_many
from windrow.spark.relations.time_varying_relation import columns_of
from windrow.streams.durable_files import flush
from windrow.syntax.sqltext import SqlText

__all__ = ["stored_tables"]

_META = "table.json"
_ROWS = "rows"


def stored_tables(
    checkpoint: Path, gateway: Gateway, queries: Mapping[str, SqlText], *, has_begun: bool, of: str = ""
) -> dict[str, DataFrame]:
    """The rows of tables, by the names of their scans, as of the first call.

    Parameters
    ----------
    checkpoint
        The folder of the checkpoint.
    queries
        The queries that return their rows.
    has_begun
        Whether rows have been joined with them.
    of
        Which part of a query reads them.

    Raises
    ------
    InputError
        ``CHECKPOINT_OF_ANOTHER_QUERY`` if one has other columns now; ``TORN_FILE``, ``MISSING_FILE``.
    """
    with gateway.translated():
        return {
            name: _stored(checkpoint, f"table{number}{of}", gateway.sql(query), has_begun=has_begun)
            for number, (name, query) in enumerate(queries.items())
        }


def _stored(checkpoint: Path, name: str, table: DataFrame, *, has_begun: bool) -> DataFrame:
    """The rows of a table, which has this name in the checkpoint, as of the first call."""
    folder = checkpoint / "tables" / name
    if not folder.exists():
        if has_begun:
            raise missing(folder)
        _store(checkpoint / f".{uuid.uuid4().hex}.{name}", folder, table)
    meta = json.loads((folder / _META).read_text())
    schema = StructType.fromJson(meta["schema"])
    if schema.simpleString() != table.schema.simpleString():  # which columns may be NULL does not matter
        raise InputError(
            f"a table of the query has the columns {table.schema.simpleString()}, but had"
            f" {schema.simpleString()} when the query was first started",
            condition="CHECKPOINT_OF_ANOTHER_QUERY",
            hint="start the query with another checkpoint and another target",
        )
    check(folder, meta["files"])
    own = StructType([*map(StructField, columns_of(schema.names), (field.dataType for field in schema))])
    return read_rows(table.sparkSession, folder / _ROWS, own).toDF(*schema.names)


def _store(pending: Path, folder: Path, table: DataFrame) -> None:
    """Write a table to a folder that gets its name when it is complete."""
    pending.mkdir()
    own = _numbered(table)
    rows = collected(own)
    if rows is None:
        write_many(pending / _ROWS, own)
    else:
        write_collected(pending / _ROWS, rows)
    meta = {"schema": table.schema.jsonValue(), "files": checksums_of(pending)}
    (pending / _META).write_text(json.dumps(meta))
    for path in pending.rglob("*"):
        flush(path)
    folder.parent.mkdir(exist_ok=True)
    pending.rename(folder)
    flush(folder.parent)


def _numbered(table: DataFrame) -> DataFrame:
    """The table with generated names: two columns of a query may have the same name."""
    return table.toDF(*columns_of(table.columns))

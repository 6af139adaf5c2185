"""Full refresh: the table of a relation after each micro-batch, and folders that replace it atomically."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow.errors import InputError
from windrow.kernels.incremental import netted
from windrow.kernels.zset.relation import AT, DIFF
from windrow.spark.analysis.collations import collated
from windrow.spark.collected import MOST_COLLECTED, collected, is_plain
from windrow.spark.live.sinks.sink import Around, InFolder, Sink, uri, written_to
from windrow.spark.relations.time_varying_relation import columns_of
from windrow.streams.durable_files import flush

__all__ = ["FullTable", "Replaced"]

_NOTHING = "nothing"
_CURRENT = "current"
_OLDER = 2
"""How many earlier tables stay in a folder for their readers."""


@runtime_checkable
class _TakesFiles(Protocol):
    """A sink that receives the files of a table."""

    def publish(self, files: Sequence[Path], number: int) -> None:
        """Publish the table after a micro-batch."""


class FullTable(Around):
    """Writes the full table to a sink whenever a micro-batch has changed it.

    The checkpoint stores the tables after the last micro-batches. The table after a micro-batch is the one
    before with its changes, also if the micro-batch is repeated.

    Parameters
    ----------
    inner
        The sink.
    names
        The columns of the relation.
    folder
        The folder for tables in the query's checkpoint.
    """

    mode = "table"

    def __init__(self, inner: Sink, names: Sequence[str], folder: Path) -> None:
        super().__init__(inner)
        self.names, self.folder = tuple(names), folder

    def begin(self, spark: SparkSession, identity: str) -> None:
        """Prepare the folder and the sink."""
        super().begin(spark, identity)
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".*.pending"):
            shutil.rmtree(left)
        if not self._stored():
            (self.folder / _NOTHING).touch()  # stands for the empty table before the first micro-batch
            flush(self.folder)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Apply the changes of a micro-batch, in the envelope ``"diff"``, and write the table.

        Raises
        ------
        InputError
            ``CHECKPOINT_INCOMPLETE``: the table before the micro-batch is missing.
        """
        changes = rows.toDF(*columns_of(self.names), DIFF, AT).drop(AT)
        table = collected(changes)
        before = self._before(number)
        if before is not None and table is not None and not table.num_rows:
            return 0
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        is_small = table is not None and (before is None or _count(before) <= MOST_COLLECTED)
        if table is not None and is_small and is_plain(changes.schema) and not collated(changes.schema):
            self._apply_in_memory(table, before, pending)
        else:
            self._apply(changes, before, pending)
        current = self._store(pending, number)
        if isinstance(self.inner, _TakesFiles):
            self.inner.publish(sorted(current.glob("*.parquet")), number)
        else:
            self.inner.write(self._read(current, changes).toDF(*self.names), number)
        return _count(current)

    def _apply_in_memory(self, changes: pa.Table, before: Path | None, pending: Path) -> None:
        """Write a small table with its changes, on the driver."""
        if before is not None:
            known = pq.read_table(before).rename_columns(changes.column_names[:-1])
            known = known.append_column(DIFF, pa.repeat(pa.scalar(1, pa.int64()), known.num_rows))
            changes = pa.concat_tables([known.cast(changes.schema), changes])
        net = netted(changes)
        count = net.column(DIFF).to_numpy()
        copies = net.drop_columns([DIFF]).take(pa.array(np.repeat(np.arange(len(count)), count)))
        pending.mkdir()
        pq.write_table(copies.rename_columns(list(self.names)), pending / "part-00000.parquet")

    def _apply(self, changes: DataFrame, before: Path | None, pending: Path) -> None:
        """Write the table with its changes, by Spark tasks."""
        columns = changes.columns[:-1]
        if before is not None:
            known = self._read(before, changes)
            changes = changes.unionByName(known.withColumn(DIFF, F.lit(1).cast("bigint")))
        net = changes.groupBy(*columns).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) > 0)
        copies = net.withColumn("__copy", F.explode(F.array_repeat(F.lit(0), F.col(DIFF).cast("int"))))
        copies.select(*columns).toDF(*self.names).write.parquet(uri(pending))

    def _read(self, table: Path, changes: DataFrame) -> DataFrame:
        """A stored table, with the columns of its changes."""
        schema = changes.toDF(*self.names, DIFF).drop(DIFF).schema
        return changes.sparkSession.read.schema(schema).parquet(uri(table)).toDF(*changes.columns[:-1])

    def _stored(self) -> list[Path]:
        """The stored tables, in the order of their micro-batches."""
        numbered = (path for path in self.folder.iterdir() if path.name.isdigit())
        return sorted(numbered, key=lambda path: int(path.name))

    def _before(self, number: int) -> Path | None:
        """The table before a micro-batch; None before the first."""
        found = [path for path in self._stored() if int(path.name) < number]
        if found:
            return found[-1]
        if not (self.folder / _NOTHING).exists():
            raise InputError(
                f"the table before micro-batch {number} is not in {self.folder}",
                condition="CHECKPOINT_INCOMPLETE",
                hint="restore the whole checkpoint from one copy, or start with another checkpoint",
            )
        return None

    def _store(self, pending: Path, number: int) -> Path:
        """Make the written files the table after a micro-batch."""
        for file in written_to(pending):
            flush(file)
        for later in self._stored():
            if int(later.name) >= number:  # from a later time than the checkpoint
                shutil.rmtree(later)
        target = self.folder / str(number)
        pending.rename(target)
        flush(self.folder)
        for older in self._stored()[: -1 - _OLDER]:
            (self.folder / _NOTHING).unlink(missing_ok=True)
            shutil.rmtree(older)
        return target


class Replaced(InFolder):
    """A folder with the full table as of the last micro-batch, under the name ``current``.

    ``current`` is a link to a folder of Parquet files, which is replaced atomically. Earlier folders stay for
    a while, so that a reader that has followed the link can finish.

    Parameters
    ----------
    folder
        The folder, for one query alone.
    """

    def begin(self, spark: SparkSession, identity: str) -> None:
        """Claim the folder, and remove what a process that has ended left in it."""
        super().begin(spark, identity)
        for left in self.folder.glob(".*.pending"):
            left.unlink() if left.is_symlink() else shutil.rmtree(left)

    def publish(self, files: Sequence[Path], number: int) -> None:
        """Replace the table."""
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        pending.mkdir()
        for place, file in enumerate(files):
            copy = pending / f"part-{place:05}-{number:09}.parquet"
            shutil.copyfile(file, copy)
            flush(copy)
        flush(pending)
        target = self.folder / f"table-{number:09}-{uuid.uuid4().hex[:8]}"
        pending.rename(target)
        link = self.folder / f".{uuid.uuid4().hex}.pending"
        link.symlink_to(target.name, target_is_directory=True)
        link.replace(self.folder / _CURRENT)
        flush(self.folder)
        others = [path for path in self.folder.glob("table-*") if path != target]
        for older in sorted(others, key=lambda path: path.stat().st_mtime_ns)[:-_OLDER]:
            shutil.rmtree(older)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Replace the rows."""
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        rows.write.parquet(uri(pending))
        files = written_to(pending)
        self.publish(files, number)
        count = _count(pending)
        shutil.rmtree(pending)
        return count


def _count(folder: Path) -> int:
    """The number of rows in the files of a folder."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))

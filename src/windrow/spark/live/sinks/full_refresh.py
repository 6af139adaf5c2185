"""The whole table of a relation after each micro-batch, and folders in which it is replaced at once."""

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
from windrow.kernels.stages import netted
from windrow.kernels.zset.relation import AT, DIFF
from windrow.spark.collected import FEW, few, is_plain
from windrow.spark.live.sinks.sink import Around, Sink, is_owned, take_folder, uri, written_to
from windrow.spark.relations.varying import columns_of
from windrow.streams.durable_files import flush

__all__ = ["Replaced", "Whole"]

_NOTHING = "nothing"
_CURRENT = "current"
_OLDER = 2
"""How many tables stay in a folder beside the current one, for those who read them."""


@runtime_checkable
class _TakesFiles(Protocol):
    """A sink that takes the files of a table."""

    def publish(self, files: Sequence[Path], number: int) -> None:
        """Take the table after a micro-batch."""


class Whole(Around):
    """Gives a sink the whole table whenever a micro-batch has changed it.

    The tables after the last micro-batches are kept: that of a micro-batch is the one before with its
    changes, also where it is repeated.

    Parameters
    ----------
    inner
        The sink.
    names
        The columns of the relation.
    folder
        Where tables are kept, of the query's checkpoint.
    """

    mode = "table"

    def __init__(self, inner: Sink, names: Sequence[str], folder: Path) -> None:
        super().__init__(inner)
        self.names, self.folder = tuple(names), folder

    def begin(self, spark: SparkSession, identity: str) -> None:
        """Have the sink get ready."""
        super().begin(spark, identity)
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".*.pending"):  # by a process that ended
            shutil.rmtree(left)
        if not self._kept():
            (self.folder / _NOTHING).touch()  # is the table before the first
            flush(self.folder)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Take the changes of a micro-batch, in the envelope ``"diff"``.

        Raises
        ------
        InputError
            ``CHECKPOINT_INCOMPLETE``: the table before it is not there.
        """
        changes = rows.toDF(*columns_of(self.names), DIFF, AT).drop(AT)
        table = few(changes)
        before = self._before(number)
        if before is not None and table is not None and not table.num_rows:
            return 0
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        is_small = table is not None and (before is None or _count(before) <= FEW)
        if table is not None and is_small and is_plain(changes.schema):
            self._fold_few(table, before, pending)
        else:
            self._fold(changes, before, pending)
        kept = self._keep(pending, number)
        if isinstance(self.inner, _TakesFiles):
            self.inner.publish(sorted(kept.glob("*.parquet")), number)
        else:
            self.inner.write(self._read(kept, changes).toDF(*self.names), number)
        return _count(kept)

    def _fold_few(self, changes: pa.Table, before: Path | None, pending: Path) -> None:
        """Write the table of a few rows with changes."""
        if before is not None:
            known = pq.read_table(before).rename_columns(changes.column_names[:-1])
            known = known.append_column(DIFF, pa.repeat(pa.scalar(1, pa.int64()), known.num_rows))
            changes = pa.concat_tables([known.cast(changes.schema), changes])
        net = netted(changes)
        count = net.column(DIFF).to_numpy()
        copies = net.drop_columns([DIFF]).take(pa.array(np.repeat(np.arange(len(count)), count)))
        pending.mkdir()
        pq.write_table(copies.rename_columns(list(self.names)), pending / "part-00000.parquet")

    def _fold(self, changes: DataFrame, before: Path | None, pending: Path) -> None:
        """Write the table with changes, by tasks."""
        columns = changes.columns[:-1]
        if before is not None:
            known = self._read(before, changes)
            changes = changes.unionByName(known.withColumn(DIFF, F.lit(1).cast("bigint")))
        net = changes.groupBy(*columns).agg(F.sum(DIFF).alias(DIFF)).where(F.col(DIFF) > 0)
        copies = net.withColumn("__copy", F.explode(F.array_repeat(F.lit(0), F.col(DIFF).cast("int"))))
        copies.select(*columns).toDF(*self.names).write.parquet(uri(pending))

    def _read(self, kept: Path, changes: DataFrame) -> DataFrame:
        """A table, with the columns that changes have."""
        schema = changes.toDF(*self.names, DIFF).drop(DIFF).schema
        return changes.sparkSession.read.schema(schema).parquet(uri(kept)).toDF(*changes.columns[:-1])

    def _kept(self) -> list[Path]:
        """The tables, from the first to the last micro-batch."""
        numbered = (path for path in self.folder.iterdir() if path.name.isdigit())
        return sorted(numbered, key=lambda path: int(path.name))

    def _before(self, number: int) -> Path | None:
        """The table before a micro-batch; None if there was none."""
        found = [path for path in self._kept() if int(path.name) < number]
        if found:
            return found[-1]
        if not (self.folder / _NOTHING).exists():
            raise InputError(
                f"the table before micro-batch {number} is not in {self.folder}",
                condition="CHECKPOINT_INCOMPLETE",
                hint="restore all of the checkpoint from one copy, or begin anew with another",
            )
        return None

    def _keep(self, pending: Path, number: int) -> Path:
        """Have what was written be the table after a micro-batch."""
        for file in written_to(pending):
            flush(file)
        for later in self._kept():
            if int(later.name) >= number:  # of a time after the one that the checkpoint is of
                shutil.rmtree(later)
        target = self.folder / str(number)
        pending.rename(target)
        flush(self.folder)
        for older in self._kept()[: -1 - _OLDER]:
            (self.folder / _NOTHING).unlink(missing_ok=True)
            shutil.rmtree(older)
        return target


class Replaced(Sink):
    """A folder with the whole table as of the last micro-batch, under the name ``current``.

    ``current`` is a link to a folder of Parquet files, and moves on to another when that is whole. The
    folders before stay for a while: whoever has followed the link reads one table to the end.

    Parameters
    ----------
    folder
        The folder, of one query.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def target(self) -> str:
        """The folder."""
        return f"folder {self.folder}"

    def had(self, identity: str) -> bool:
        """Whether the folder is that of a query."""
        return is_owned(self.folder, identity)

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """The table is replaced."""
        return True

    def begin(self, spark: SparkSession, identity: str) -> None:  # noqa: ARG002 - of other sinks
        """Take the folder for the query of a checkpoint.

        Raises
        ------
        UsageError
            ``SINK_IN_USE``.
        """
        take_folder(self.folder, identity)
        for left in self.folder.glob(".*.pending"):  # by a process that ended
            left.unlink() if left.is_symlink() else shutil.rmtree(left)

    def publish(self, files: Sequence[Path], number: int) -> None:
        """Put a table in the place of the one before."""
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
        """Put rows in the place of those before."""
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        rows.write.parquet(uri(pending))
        files = written_to(pending)
        self.publish(files, number)
        count = _count(pending)
        shutil.rmtree(pending)
        return count


def _count(folder: Path) -> int:
    """How many rows are in the files of a folder."""
    return sum(pq.read_metadata(file).num_rows for file in folder.glob("*.parquet"))

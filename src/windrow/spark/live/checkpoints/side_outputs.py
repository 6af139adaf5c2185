"""Side outputs of a live query: folders of files for late and malformed rows.

A micro-batch with such rows adds a file. Eight files of one level are merged into one of the next, so that
their number grows with the logarithm of the number of micro-batches. A micro-batch commits the list of files
with the rows up to it; all other files in the folder are deleted. Merged files stay until the next merge of
their level, so that their readers can finish.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame

from windrow.spark.live.checkpoints.checksums import FileChecksum, FileChecksums, check, checksum_of
from windrow.spark.live.sinks.sink import write_one
from windrow.streams.durable_files import flush

__all__ = ["Listing", "SideOutput"]

_MERGED = 8
"""The number of files of a level that become one of the next."""
_NAME = re.compile(r"part-(\d+)\.parquet|level(\d+)-\d+-(\d+)\.parquet")
_ROWS = 100_000
"""The number of rows in memory while files are merged."""


@dataclass(frozen=True)
class Listing:
    """The files of a side output after a micro-batch.

    Attributes
    ----------
    files
        The files with its rows, with their checksums; each row is in one file.
    replaced
        The files that were merged into others, and stay for their readers.
    """

    files: FileChecksums = field(default_factory=dict)
    replaced: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, listed: Mapping[str, Any]) -> Listing:
        """Read the list from the manifest of a micro-batch."""
        files: dict[str, FileChecksum] = {
            name: (known[0], known[1]) for name, known in listed["files"].items()
        }
        return cls(files, tuple(listed["replaced"]))

    def to_json(self) -> dict[str, Any]:
        """The list as JSON, for the manifest of a micro-batch."""
        return {"files": dict(self.files), "replaced": list(self.replaced)}


class SideOutput:
    """A folder of late or malformed rows.

    Parameters
    ----------
    folder
        The folder, in the query's checkpoint.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, rows: DataFrame, number: int) -> int:
        """Write the rows of a micro-batch; they count once it is committed."""
        return write_one(rows, self.folder, _stem(number), "parquet")

    def undo(self, number: int) -> None:
        """Delete the rows of a micro-batch that was not committed."""
        (self.folder / f"{_stem(number)}.parquet").unlink(missing_ok=True)

    def check(self, listing: Listing) -> None:
        """Check that all files exist with their checksums.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``MISSING_FILE``.
        """
        check(self.folder, listing.files)

    def after(self, before: Listing, number: int) -> Listing:
        """The files with that of a micro-batch; eight of a level are merged."""
        files, replaced = dict(before.files), before.replaced
        name = f"{_stem(number)}.parquet"
        if (self.folder / name).exists():
            files[name] = checksum_of(self.folder / name)
        level = 0
        while len(same := [name for name in files if _level(name) == level]) >= _MERGED:
            for old in same:
                del files[old]
            replaced = (*(old for old in replaced if _level(old) != level), *same)
            level += 1
            merged = f"level{level}-{number:09}-{_number(min(same, key=_number)):09}.parquet"
            self._merge(same, merged)
            files[merged] = checksum_of(self.folder / merged)
        return Listing(files, replaced)

    def tidy(self, listing: Listing) -> None:
        """Delete all files that are not in the list."""
        known = {*listing.files, *listing.replaced}
        for path in self.folder.glob("*.parquet"):
            if path.name not in known:
                path.unlink(missing_ok=True)

    def paths(self, listing: Listing) -> list[Path]:
        """The files with the rows."""
        return [self.folder / name for name in listing.files]

    def _merge(self, names: list[str], target: str) -> None:
        pending = self.folder / f".{uuid.uuid4().hex}.pending"
        try:
            # an earlier version may have written fewer columns
            schema = pa.unify_schemas([_nullable(pq.read_schema(self.folder / name)) for name in names])
            nothing = schema.empty_table()
            with pq.ParquetWriter(pending, schema) as writer:
                for batch in self._batches(names):
                    rows = pa.Table.from_batches([batch])
                    writer.write_table(
                        pa.concat_tables([nothing, rows], promote_options="default").cast(schema)
                    )
            flush(pending)
            pending.replace(self.folder / target)
        finally:
            pending.unlink(missing_ok=True)
        flush(self.folder)

    def batches(self, listing: Listing) -> Iterator[pa.RecordBatch]:
        """The rows in the order of their micro-batches, in Arrow batches."""
        return self._batches(listing.files)

    def _batches(self, names: Iterable[str]) -> Iterator[pa.RecordBatch]:
        for name in names:
            with pq.ParquetFile(self.folder / name) as file:
                yield from file.iter_batches(_ROWS)


def _nullable(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_nullable(True) for field in schema])


def _stem(number: int) -> str:
    return f"part-{number:09}"


def _level(name: str) -> int:
    found = _NAME.fullmatch(name)
    assert found is not None
    return int(found[2] or 0)


def _number(name: str) -> int:
    """The number of the first micro-batch with rows in a file.

    >>> _number("part-000000012.parquet"), _number("level2-000000063-000000007.parquet")
    (12, 7)
    """
    found = _NAME.fullmatch(name)
    assert found is not None
    return int(found[1] or found[3])

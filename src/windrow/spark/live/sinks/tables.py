"""A table of Spark's as the sink of a live query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.errors import AnalysisError, NotSupportedError
from windrow.spark.gateway import Gateway
from windrow.spark.live.sinks.sink import Sink, write_one

__all__ = ["Table"]

_FILES = ("parquet", "orc")


@dataclass(frozen=True)
class _Kept:
    """How a table is kept: its format, where its files are if they are ours to add, and its columns."""

    provider: str
    folder: Path | None
    schema: StructType


class Table(Sink):
    """Appends the rows of a query to a table, each micro-batch once.

    To a table of Parquet or ORC files on a file system it adds a file for each micro-batch, named by the
    query and the number of the micro-batch; to a Delta table, a transaction with both.

    Parameters
    ----------
    name
        The table, with its schema and catalogue where they are not the current ones.
    columns
        Those of its columns that the rows are for, by position; the others are NULL. By default all.
    """

    def __init__(self, name: str, columns: Sequence[str] | None = None) -> None:
        self.name, self.columns = name, columns
        self._kept: _Kept | None = None
        self._identity = ""

    @property
    def target(self) -> str:
        """The table."""
        return f"table {self.name}"

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Its file is replaced, or its transaction known."""
        return True

    def begin(self, spark: SparkSession, identity: str) -> None:
        """Find out how the table is kept.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_SINK`` for a table to which nothing can be added just once.
        """
        self._identity = identity
        gateway = Gateway(spark)
        with gateway.translated():
            told = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name}").collect()
            schema = spark.table(self.name).schema
        described = {row["col_name"]: row["data_type"] for row in told}
        provider = (described.get("Provider") or "").lower()
        if provider == "delta":
            self._kept = _Kept(provider, None, schema)
            return
        why = None
        place = urlsplit(described.get("Location") or "")
        if described.get("Type", "").upper() == "VIEW" or not provider:
            why = "is a view"
        elif provider not in _FILES:
            why = f"is kept as {provider.upper()}"
        elif "# Partition Information" in described or "Bucket Columns" in described:
            why = "has partitions or buckets"
        elif place.scheme not in ("", "file"):
            why = f"is in {place.scheme}:"
        if why is not None:
            raise NotSupportedError(
                f"table {self.name} {why}: a micro-batch cannot be added to it just once",
                condition="UNSUPPORTED_SINK",
                hint="use a table of Parquet or ORC files without partitions, or of Delta; or start it with"
                " a function that writes each micro-batch",
            )
        self._kept = _Kept(provider, Path(unquote(place.path)), schema)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Add the rows of a micro-batch."""
        assert self._kept is not None
        placed = self._in_columns(rows, self._kept.schema)
        if self._kept.folder is None:
            once = {"txnAppId": self._identity, "txnVersion": str(number)}
            placed.write.format("delta").options(**once).mode("append").saveAsTable(self.name)
            return None
        count = write_one(
            placed, self._kept.folder, f"windrow-{self._identity}-{number:09}", self._kept.provider
        )
        rows.sparkSession.catalog.refreshTable(self.name)
        return count

    def _in_columns(self, rows: DataFrame, schema: StructType) -> DataFrame:
        """The rows in the columns of the table, of which those that come without values are NULL."""
        chosen = list(self.columns if self.columns is not None else schema.names)
        given = rows.columns
        if len(given) == len(chosen) + 1:  # a stream shows its rowtime first
            given = given[1:]
        if len(given) != len(chosen):
            raise AnalysisError(
                f"the query gives {len(given)} columns, and table {self.name} takes {len(chosen)}:"
                f" {', '.join(chosen)}",
                condition="INSERT_COLUMN_ARITY_MISMATCH",
                sqlstate="21S01",
                hint="a stream may come with its rowtime first, or without",
            )
        first = len(rows.columns) - len(given)
        places = {name.lower(): f"c{first + at}" for at, name in enumerate(chosen)}
        numbered = rows.toDF(*(f"c{at}" for at in range(len(rows.columns))))
        values = (
            F.col(places[field.name.lower()]) if field.name.lower() in places else F.lit(None)
            for field in schema
        )
        typed = (
            value.cast(field.dataType).alias(field.name) for value, field in zip(values, schema, strict=True)
        )
        return numbered.select(*typed)

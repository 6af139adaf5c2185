"""A Spark table as the sink of a live query."""

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
class _Storage:
    """How a table is stored: its format, its folder if this sink adds files to it, and its columns."""

    provider: str
    folder: Path | None
    schema: StructType


class Table(Sink):
    """Appends the rows of a query to a table, each micro-batch once.

    To a table of Parquet or ORC files it adds a file for each micro-batch, with the identity of the query
    and the number of the micro-batch in its name; to a Delta table, a transaction with both.

    Parameters
    ----------
    name
        The table, with its schema and catalogue unless they are the current ones.
    columns
        The columns of the table for the rows, by position; the others are NULL. By default all.
    """

    def __init__(self, name: str, columns: Sequence[str] | None = None) -> None:
        self.name, self.columns = name, columns
        self._storage: _Storage | None = None
        self._identity = ""

    @property
    def target(self) -> str:
        """The table."""
        return f"table {self.name}"

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Always: the file is replaced, or the transaction is known."""
        return True

    def begin(self, spark: SparkSession, identity: str) -> None:
        """Read how the table is stored.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_SINK`` for a table without exactly-once writes.
        """
        self._identity = identity
        gateway = Gateway(spark)
        with gateway.translated():
            properties = spark.sql(f"DESCRIBE TABLE EXTENDED {self.name}").collect()
            schema = spark.table(self.name).schema
        described = {row["col_name"]: row["data_type"] for row in properties}
        provider = (described.get("Provider") or "").lower()
        if provider == "delta":
            self._storage = _Storage(provider, None, schema)
            return
        why = None
        place = urlsplit(described.get("Location") or "")
        if described.get("Type", "").upper() == "VIEW" or not provider:
            why = "is a view"
        elif provider not in _FILES:
            why = f"is stored as {provider.upper()}"
        elif "# Partition Information" in described or "Bucket Columns" in described:
            why = "has partitions or buckets"
        elif place.scheme not in ("", "file"):
            why = f"is in {place.scheme}:"
        if why is not None:
            raise NotSupportedError(
                f"table {self.name} {why}: micro-batches cannot be written to it exactly once",
                condition="UNSUPPORTED_SINK",
                hint="use a table of Parquet or ORC files without partitions, or of Delta; or start the query"
                " with a function that writes each micro-batch",
            )
        self._storage = _Storage(provider, Path(unquote(place.path)), schema)

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Append the rows of a micro-batch."""
        assert self._storage is not None
        placed = self._in_columns(rows, self._storage.schema)
        if self._storage.folder is None:
            once = {"txnAppId": self._identity, "txnVersion": str(number)}
            placed.write.format("delta").options(**once).mode("append").saveAsTable(self.name)
            return None
        count = write_one(
            placed, self._storage.folder, f"windrow-{self._identity}-{number:09}", self._storage.provider
        )
        rows.sparkSession.catalog.refreshTable(self.name)
        return count

    def _in_columns(self, rows: DataFrame, schema: StructType) -> DataFrame:
        """The rows with the columns of the table; columns without values are NULL."""
        chosen = list(self.columns if self.columns is not None else schema.names)
        own = rows.columns
        if len(own) == len(chosen) + 1:  # the first column of a stream is its rowtime
            own = own[1:]
        if len(own) != len(chosen):
            raise AnalysisError(
                f"the query has {len(own)} columns, but table {self.name} needs {len(chosen)}:"
                f" {', '.join(chosen)}",
                condition="INSERT_COLUMN_ARITY_MISMATCH",
                sqlstate="21S01",
                hint="select a column for each of them; the rowtime of a stream is optional",
            )
        first = len(rows.columns) - len(own)
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

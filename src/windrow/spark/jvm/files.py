"""The files that the rows of a plan come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from windrow.spark.jvm.bridge import class_of, items_of
from windrow.spark.jvm.connect import of_connect
from windrow.spark.jvm.plans import most_broadcast, optimized_of

__all__ = ["ParquetFiles", "options_of", "parquet_files"]


_BETWEEN = ("Project", "Filter")


@dataclass(frozen=True, eq=False)
class ParquetFiles:
    """The Parquet files below a plan, if no table format manages them.

    Attributes
    ----------
    above
        The operator over them that does more than filter rows, compute columns and join them with small
        tables, if there is one.
    path
        For each operator from the top down to the one that reads them, the number of the input that leads
        there.
    """

    above: str | None
    path: tuple[int, ...]
    _spark: SparkSession
    _relation: Any

    @property
    def options(self) -> set[str]:
        """The names of the options with which they are read, in lower case."""
        return {*options_of(self._relation)}

    @property
    def paths(self) -> list[str]:
        """Their URIs, once for each time that Spark reads them."""
        array: Any = self._spark._jvm.scala.collection.immutable.ArraySeq  # type: ignore[union-attr]
        listing = array.unsafeWrapArray(self._relation.location().inputFiles()).mkString("\n")
        return listing.split("\n") if listing else []

    @property
    def directory_columns(self) -> list[str]:
        """The partition columns, whose values are in directory names."""
        return list(self._relation.partitionSchema().fieldNames())

    @property
    def directory_types(self) -> dict[str, str]:
        """The types of these columns."""
        fields = items_of(self._spec.partitionColumns())
        return {str(field.name()): str(field.dataType().simpleString()) for field in fields}

    @property
    def directories(self) -> dict[str, tuple[int | str | None, ...]]:
        """The partition values of directories, by path; dates and times as days and microseconds."""
        kinds = [field.dataType() for field in items_of(self._spec.partitionColumns())]
        found = {}
        for directory in items_of(self._spec.partitions()):
            row = directory.values()
            row_values = [None if row.isNullAt(at) else row.get(at, kind) for at, kind in enumerate(kinds)]
            found[str(directory.path().toUri().getPath())] = tuple(
                one if one is None or isinstance(one, int) else str(one.toString()) for one in row_values
            )
        return found

    @property
    def _spec(self) -> Any:
        return self._relation.location().partitionSpec()


def parquet_files(frame: DataFrame) -> ParquetFiles | None:
    """The Parquet files that rows come from; None if they come from none, and on Connect."""
    if of_connect(frame):
        return None
    plan = optimized_of(frame)
    files = next((leaf.relation() for leaf in items_of(plan.collectLeaves()) if _is_of_parquet(leaf)), None)
    if files is None:
        return None
    spark, path = frame.sparkSession, []
    while (name := class_of(plan)) in _BETWEEN or name == "Join":
        side = _larger(spark, plan) if name == "Join" else 0
        if side is None:
            break
        path.append(side)
        plan = plan.children().apply(side)
    if _is_of_parquet(plan):
        return ParquetFiles(None, tuple(path), spark, plan.relation())
    return ParquetFiles("join" if name == "LogicalRelation" else name, (), spark, files)


def _larger(spark: SparkSession, join: Any) -> int | None:
    """The larger input of a join, if Spark would send the other one to every task."""
    sizes = [int(str(join.children().apply(side).stats().sizeInBytes())) for side in (0, 1)]
    return sizes.index(max(sizes)) if min(sizes) <= most_broadcast(spark) else None


def _is_of_parquet(leaf: Any) -> bool:
    if class_of(leaf) != "LogicalRelation" or class_of(relation := leaf.relation()) != "HadoopFsRelation":
        return False
    formats = (class_of(relation.fileFormat()), class_of(relation.location()))
    return formats == ("ParquetFileFormat", "InMemoryFileIndex")


def options_of(source: Any) -> dict[str, str]:
    """The options with which something is read, by their names in lower case: for this package."""
    options = source.options()
    names = filter(None, options.keys().mkString("\n").split("\n"))
    return {name.lower(): str(options.get(name).get()) for name in names}

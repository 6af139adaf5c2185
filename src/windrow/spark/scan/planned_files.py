"""The files that rows come from, and the operators over them, according to Spark's plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.errors import WindrowError
from windrow.spark.analysis.plan_tree import SparkNode, optimized_tree
from windrow.spark.analysis.typed_values import Unread, kind_of
from windrow.spark.errors import local_path
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.files import ParquetFiles, parquet_files

__all__ = ["Constants", "PlannedFiles", "planned_files"]

Constants = tuple[int | str | None, ...]
"""The partition values of a directory, with dates as days and times as microseconds."""

# Options of a reader that say which files there are, or what is checked, and not how values are read
_OPTIONS = frozenset(
    {
        "path",
        "basepath",
        "mergeschema",
        "recursivefilelookup",
        "pathglobfilter",
        "modifiedbefore",
        "modifiedafter",
        "serialization.format",
        "datetimerebasemode",  # as the setting: only of files that do not say
        "int96rebasemode",
    }
)


@dataclass(frozen=True)
class PlannedFiles:
    """Files, and the operators over them.

    Attributes
    ----------
    operators
        The operators from the last to the first: selections of rows or columns, and joins with tables.
    names, kinds
        The readable columns, by their expression ids in the plan.
    directories
        The expression ids of the columns whose values are in directories.
    files
        The paths, once for each time that Spark reads them, and the values of their directories.
    sides
        For each operator, the number of the input that leads to the files.
    """

    operators: Sequence[SparkNode]
    names: Mapping[int, str]
    kinds: Mapping[int, pa.DataType]
    directories: Sequence[int]
    files: Sequence[tuple[str, Constants]]
    sides: Sequence[int]


def planned_files(gateway: Gateway, rows: DataFrame) -> PlannedFiles | None:
    """The Parquet files that rows come from; None if they come from none.

    Raises
    ------
    Unread
        There are such files, but the plan does more than select rows, compute columns of each and join them
        with small tables, or Spark reads them with special options.
    """
    try:
        with gateway.translated():
            found = parquet_files(rows)
    except WindrowError:  # the same error is reported when the query runs
        return None
    if found is None:
        return None
    if found.above is not None:
        raise Unread(f"{found.above.lower()} is between them and the files")
    tree = optimized_tree(gateway, rows)
    return None if tree is None else _planned(tree, found)


def _planned(tree: SparkNode, found: ParquetFiles) -> PlannedFiles:
    operators = []
    for side in found.path:
        operators.append(tree)
        tree = tree.children[side]
    if others := found.options - _OPTIONS:
        raise Unread(f"the files are read with the option {min(others)}")
    names, kinds = {}, {}
    for node in tree.trees("output"):
        try:
            kind = kind_of(node.fields["dataType"])
        except Unread:
            continue
        if not pa.types.is_duration(kind):
            names[node.number], kinds[node.number] = str(node.fields["name"]), kind
    of_directories = found.directory_columns
    numbers = {name: number for number, name in names.items()}
    paths = [local_path(uri) for uri in found.paths]
    values = _values(found, kinds, numbers) if of_directories else None
    directories = [numbers[name] for name in of_directories]
    return PlannedFiles(operators, names, kinds, directories, _files(paths, values), found.path)


def _files(paths: Sequence[str], values: Mapping[str, Constants] | None) -> list[tuple[str, Constants]]:
    if values is None:
        return [(path, ()) for path in paths]
    found = [(path, values.get(str(Path(path).parent))) for path in paths]
    known = [(path, of_directory) for path, of_directory in found if of_directory is not None]
    if len(known) < len(found):
        raise Unread("a file is in no directory with values of columns")
    return known


def _values(
    found: ParquetFiles, kinds: Mapping[int, pa.DataType], numbers: Mapping[str, int]
) -> Mapping[str, Constants]:
    """The values of directories, by path."""
    for name, kind in found.directory_types.items():
        known = kinds.get(numbers.get(name, -1))
        if known is None or not (
            pa.types.is_signed_integer(known) or pa.types.is_string(known) or pa.types.is_temporal(known)
        ):
            raise Unread(f"directories have the column {name}, of type {kind}")
    return found.directories

"""What Spark's plan says of the files that rows come from: which they are, what is done with their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from windrow.errors import WindrowError
from windrow.spark.errors import local_path
from windrow.spark.expressions import Unread, kind_of
from windrow.spark.gateway import Gateway
from windrow.spark.plan_tree import Node, optimized_tree

__all__ = ["Constants", "PlannedFiles", "planned_files"]

Constants = tuple[int | str | None, ...]
"""What a directory says: of dates and times days and microseconds."""

_BETWEEN = ("Project", "Filter")
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
        From the last to the first, each a choice of rows or columns.
    names, kinds
        Of the columns that can be read, by the numbers by which the plan tells them.
    directories
        The numbers of those of which directories have the values.
    files
        The paths, as often as Spark reads them, and the values of their directories.
    """

    operators: Sequence[Node]
    names: Mapping[int, str]
    kinds: Mapping[int, pa.DataType]
    directories: Sequence[int]
    files: Sequence[tuple[str, Constants]]


def planned_files(gateway: Gateway, rows: DataFrame) -> PlannedFiles | None:
    """The Parquet files that rows come from; None if they come from none.

    Raises
    ------
    Unread
        There are such files, but more is done with them than to choose rows and compute of each, or Spark
        reads them in a way of its own.
    """
    try:
        with gateway.translated():
            plan: Any = rows._jdf.queryExecution().optimizedPlan()
    except WindrowError:  # what fails here fails again, and is told, when the query is run
        return None
    leaves = _items(plan.collectLeaves())
    if not any(map(_is_of_parquet, leaves)):
        return None
    while (name := plan.getClass().getSimpleName()) in _BETWEEN:
        plan = plan.child()
    if name != "LogicalRelation":
        raise Unread(f"{name.lower()} is between them and the files")
    return _planned(gateway, optimized_tree(rows), plan.relation())


def _planned(gateway: Gateway, tree: Node, relation: Any) -> PlannedFiles:
    operators = []
    while tree.children:
        operators.append(tree)
        (tree,) = tree.children
    options = set(relation.options().keys().mkString("\n").lower().split("\n")) - {""}
    if not options <= _OPTIONS:
        raise Unread(f"the files are read with the option {min(options - _OPTIONS)}")
    names, kinds = {}, {}
    for node in tree.trees("output"):
        try:
            kind = kind_of(node.fields["dataType"])
        except Unread:
            continue
        if not pa.types.is_duration(kind):
            names[node.number], kinds[node.number] = str(node.fields["name"]), kind
    of_directories = relation.partitionSchema().fieldNames()
    numbers = {name: number for number, name in names.items()}
    location = relation.location()
    array = gateway.spark._jvm.scala.collection.immutable.ArraySeq  # type: ignore[union-attr]
    said = array.unsafeWrapArray(location.inputFiles()).mkString("\n")
    paths = [local_path(uri) for uri in said.split("\n")] if said else []
    values = _values(location.partitionSpec(), kinds, numbers) if len(of_directories) else None
    directories = [numbers[name] for name in of_directories]
    return PlannedFiles(operators, names, kinds, directories, _files(paths, values))


def _files(paths: Sequence[str], values: Mapping[str, Constants] | None) -> list[tuple[str, Constants]]:
    if values is None:
        return [(path, ()) for path in paths]
    found = [(path, values.get(str(Path(path).parent))) for path in paths]
    known = [(path, of_directory) for path, of_directory in found if of_directory is not None]
    if len(known) < len(found):
        raise Unread("a file is in no directory with values of columns")
    return known


def _values(spec: Any, kinds: Mapping[int, pa.DataType], numbers: Mapping[str, int]) -> dict[str, Constants]:
    """What directories say, by their paths."""
    columns = [
        (at, field.name(), field.dataType()) for at, field in enumerate(_items(spec.partitionColumns()))
    ]
    for _, name, kind in columns:
        known = kinds.get(numbers.get(name, -1))
        if known is None or not (
            pa.types.is_signed_integer(known) or pa.types.is_string(known) or pa.types.is_temporal(known)
        ):
            raise Unread(f"directories have the column {name}, of type {kind.simpleString()}")
    found = {}
    for directory in _items(spec.partitions()):
        row = directory.values()
        given = [None if row.isNullAt(at) else row.get(at, kind) for at, _, kind in columns]
        found[directory.path().toUri().getPath()] = tuple(
            one if one is None or isinstance(one, int) else str(one.toString()) for one in given
        )
    return found


def _is_of_parquet(leaf: Any) -> bool:
    """Whether a leaf is a list of Parquet files, which no table format has a say in."""
    if leaf.getClass().getSimpleName() != "LogicalRelation":
        return False
    relation = leaf.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return False
    return bool(
        relation.fileFormat().getClass().getSimpleName() == "ParquetFileFormat"
        and relation.location().getClass().getSimpleName() == "InMemoryFileIndex"
    )


def _items(found: Any) -> list[Any]:
    return [found.apply(number) for number in range(found.size())]

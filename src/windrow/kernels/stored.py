"""Serialize operators' state as a table, and back: data only, nothing executable.

A structure is a list of *parts*: containers, arrays, tables, and objects of our own classes, whose attributes
are parts again. A shared object is one part, and is shared again after reading. An object that can recompute
some of its attributes (:class:`Remade`) is stored without them.

Parts are JSON, except tables, which are Arrow streams, and the numbers of arrays, which are bytes. A long
table that never changes (:class:`Fixed`) may have a file of its own, which is written once.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

__all__ = ["Fixed", "FixedTables", "Remade", "StoredError", "from_stored", "stored"]

_ROOMS = (
    "windrow.kernels.aggregates.",
    "windrow.kernels.punctuated.",
    "windrow.kernels.sorting",
    "windrow.kernels.incremental.",
    "windrow.kernels.trace",
    "windrow.punctuations.",
    "windrow.spark.live.operators.punctuated.row_maps",
)
"""The modules whose objects may be stored. Reading sets attributes only, and makes no other classes."""

_MOVED = {
    "windrow.spark.live.row_maps": "windrow.spark.live.operators.row_maps",
    "windrow.spark.live.operators.row_maps": "windrow.spark.live.operators.punctuated.row_maps",
    "windrow.kernels.punctuated.step": "windrow.kernels.punctuated.delta",
    "windrow.kernels.punctuated.elementary": "windrow.kernels.punctuated.filters",
    "windrow.kernels.punctuated.flow": "windrow.kernels.punctuated.operator_graph",
    "windrow.kernels.punctuated.join": "windrow.kernels.punctuated.symmetric_join",
    "windrow.kernels.punctuated.over": "windrow.kernels.punctuated.window_functions",
    "windrow.kernels.punctuated.session": "windrow.kernels.punctuated.session_windows",
    "windrow.punctuations.values": "windrow.punctuations.column_values",
    "windrow.kernels.aggregates.ordering": "windrow.kernels.aggregates.order_codes",
    "windrow.kernels.stages.": "windrow.kernels.incremental.",
    "windrow.kernels.incremental.first": "windrow.kernels.incremental.first_of_keys",
}
"""Modules, and packages with a dot, that had other names in earlier versions, and so in stored tables.

A module that was renamed twice has two lines, in their order.
"""

_CLASSES = {"Promises": "Announced"}
"""Classes that had other names."""

_CARRIES = ("Filter", "Project", "Group", "Join", "Set", "RowMap")
_ATTRIBUTES = {
    "Completing": {"held": "retained"},
    "Announced": {"_told": "_covered"},
    "SessionCarry": {"promises": "announced", "told": "least_announced", "came": "is_begun"},
    "OverCarry": {"promises": "announced", "came": "row_count"},
    "SortCarry": {"promises": "announced", "came": "row_count"},
    "Watched": {"_came": "_row_count"},
    **{f"{carry}Carry": {"promises": "announced"} for carry in _CARRIES},
}
"""Attributes that had other names, by their classes."""

_LONG = 1 << 20  # bytes
_ALONE = 1 << 20  # bytes of a table that has a file of its own
_PLAIN = (str, int, float, type(None))


@runtime_checkable
class Remade(Protocol):
    """An object that is stored without some attributes, and recomputes them."""

    def stored_attributes(self) -> dict[str, Any]:
        """The attributes to store."""

    def remake(self) -> None:
        """Recompute the other attributes."""


@dataclass(frozen=True, eq=False)
class Fixed:
    """A table that never changes: the same object is the same table, whenever it is stored."""

    table: pa.Table


class FixedTables(Protocol):
    """The files of tables that never change."""

    def number_of(self, fixed: Fixed) -> int:
        """The number of a table's file, which is written if there is none."""

    def fixed(self, number: int) -> Fixed:
        """The table in a file."""


class StoredError(Exception):
    """A table that is not a stored structure."""


def stored(value: object, files: FixedTables | None = None) -> pa.Table:
    """Serialize a structure as a table: its parts in `part`, their bytes, if any, in `data`.

    Parameters
    ----------
    value
        The structure.
    files
        Where its long tables that never change are; None if they are parts, too.

    Raises
    ------
    TypeError
        For an object that cannot be stored.
    """
    writer = _Writer(files)
    root = writer.of(value)
    return pa.table(
        {
            "part": pa.array([json.dumps(root), *map(json.dumps, writer.parts)], pa.large_string()),
            "data": _column_of([None, *writer.data]),
        }
    )


def _column_of(values: list[bytes | memoryview | None]) -> pa.ChunkedArray:
    """The values as a column, in which long ones are chunks of their own that share their memory."""
    chunks: list[pa.Array] = []
    short: list[bytes | memoryview | None] = []
    for value in values:
        if value is None or len(value) < _LONG:
            short.append(value)
            continue
        offsets = pa.py_buffer(np.array([0, len(value)], np.int64))
        alone = pa.Array.from_buffers(pa.large_binary(), 1, [None, offsets, pa.py_buffer(value)])
        chunks += [pa.array(short, pa.large_binary()), alone]
        short = []
    return pa.chunked_array([*chunks, pa.array(short, pa.large_binary())])


def from_stored(table: pa.Table, files: FixedTables | None = None) -> Any:
    """Read a structure from a table, and from the `files` with which it was stored.

    Raises
    ------
    StoredError
        The table is not a stored structure, or one with files.
    """
    if table.column_names != ["part", "data"]:
        raise StoredError
    root, *parts = map(json.loads, table.column("part").to_pylist())
    return _Reader(parts, table.column("data").to_pylist()[1:], files).of(root)


class _Writer:
    def __init__(self, files: FixedTables | None) -> None:
        self._files = files
        self.parts: list[Any] = []
        self.data: list[bytes | memoryview | None] = []
        self._numbers: dict[int, int] = {}
        self._alive: list[object] = []  # so that no id is reused

    def of(self, value: object) -> Any:
        """A reference to a value: itself if plain, or a list with the number of its part."""
        if isinstance(value, _PLAIN):
            return value
        if id(value) not in self._numbers:
            number = self._numbers[id(value)] = len(self.parts)
            self._alive.append(value)
            self.parts.append(None)
            self.data.append(None)
            self.parts[number], self.data[number] = self._part(value)
        return [self._numbers[id(value)]]

    def _part(self, value: object) -> tuple[Any, bytes | memoryview | None]:
        match value:
            case bytes():
                return {"bytes": base64.b64encode(value).decode()}, None
            case list() | tuple() | set() | frozenset():
                return {type(value).__name__: [self.of(one) for one in value]}, None
            case dict():
                return {"dict": [[self.of(key), self.of(one)] for key, one in value.items()]}, None
            case Fixed() if self._files is not None and value.table.nbytes >= _ALONE:
                return {"file": self._files.number_of(value)}, None
            case Fixed():
                return {"fixed": None}, _bytes_of(value.table)
            case pa.Table():
                return {"table": None}, _bytes_of(value)
            case pa.Schema():
                return {"schema": None}, _bytes_of(value.empty_table())
            case pa.DataType():
                return {"type": None}, _bytes_of(pa.schema([("type", value)]).empty_table())
            case pa.ChunkedArray():
                return {"column": None}, _bytes_of(pa.table({"column": value}))
            case pa.Array():
                return {"array": None}, _bytes_of(pa.table({"array": value}))
            case np.ndarray() if value.dtype.hasobject:
                assert value.ndim == 1
                return {"objects": [self.of(one) for one in value.tolist()]}, None
            case np.ndarray():
                return {"numbers": [value.dtype.str, list(value.shape)]}, np.ascontiguousarray(
                    value
                ).tobytes()
            case np.generic():
                return {"number": value.dtype.str}, value.tobytes()
        kind = type(value)
        if not kind.__module__.startswith(_ROOMS):
            raise TypeError(f"{kind.__module__}.{kind.__qualname__} cannot be stored")
        own = value.stored_attributes().items() if isinstance(value, Remade) else _attributes(value)
        attributes = {name: self.of(one) for name, one in own}
        return {"object": [kind.__module__, kind.__qualname__, attributes]}, None


class _Reader:
    def __init__(self, parts: list[Any], data: list[bytes | None], files: FixedTables | None) -> None:
        self._parts, self._data, self._files = parts, data, files
        self._made: dict[int, Any] = {}

    def of(self, reference: Any) -> Any:
        """The value of a reference."""
        if not isinstance(reference, list):
            return reference
        (number,) = reference
        if number not in self._made:
            ((kind, part),) = self._parts[number].items()
            if kind == "object":
                self._object(number, *part)
            else:
                self._made[number] = self._value(kind, part, self._data[number])
        return self._made[number]

    def _value(self, kind: str, part: Any, data: bytes | None) -> Any:
        match kind:
            case "bytes":
                return base64.b64decode(part)
            case "list" | "tuple" | "set" | "frozenset":
                made = [self.of(one) for one in part]
                return (
                    made
                    if kind == "list"
                    else {"tuple": tuple, "set": set, "frozenset": frozenset}[kind](made)
                )
            case "dict":
                return {self.of(key): self.of(one) for key, one in part}
            case "file" if self._files is not None:
                return self._files.fixed(part)
            case "fixed":
                return Fixed(_table_of(data))
            case "table":
                return _table_of(data)
            case "schema":
                return _table_of(data).schema
            case "type":
                return _table_of(data).schema.field(0).type
            case "column":
                return _table_of(data).column(0)
            case "array":
                return _table_of(data).column(0).combine_chunks()
            case "objects":
                objects = np.empty(len(part), object)
                objects[:] = [self.of(one) for one in part]
                return objects
            case "numbers":
                assert data is not None
                return np.frombuffer(bytearray(data), part[0]).reshape(part[1])
            case "number":
                assert data is not None
                return np.frombuffer(data, part)[0]
        raise StoredError(kind)

    def _object(self, number: int, module: str, name: str, attributes: dict[str, Any]) -> None:
        module, name = _now(module), _CLASSES.get(name, name)
        kind = getattr(sys.modules.get(module), name, None) if module.startswith(_ROOMS) else None
        if not isinstance(kind, type) or kind.__module__ != module:
            raise StoredError(f"{module}.{name}")
        made: object = object.__new__(kind)
        self._made[number] = made  # before its attributes, which may lead back to it
        renamed = _ATTRIBUTES.get(name, {})
        for attribute, reference in attributes.items():
            object.__setattr__(made, renamed.get(attribute, attribute), self.of(reference))
        if isinstance(made, Remade):
            made.remake()


def _now(module: str) -> str:
    """The name of a module by its name in a stored table."""
    for before, after in _MOVED.items():
        if module == before or (before.endswith(".") and module.startswith(before)):
            module = after + module.removeprefix(before)
    return module


def _attributes(value: object) -> Iterator[tuple[str, object]]:
    yield from vars(value).items() if hasattr(value, "__dict__") else ()
    for kind in type(value).__mro__:
        for name in getattr(kind, "__slots__", ()):
            if hasattr(value, name) and name != "__weakref__":
                yield name, getattr(value, name)


def _bytes_of(table: pa.Table) -> memoryview:
    """An Arrow stream of a table, in a buffer of the size that it takes."""
    counting = pa.MockOutputStream()
    with pa.ipc.new_stream(counting, table.schema) as stream:
        stream.write_table(table)
    buffer = pa.allocate_buffer(counting.size())
    with pa.ipc.new_stream(pa.FixedSizeBufferWriter(buffer), table.schema) as stream:
        stream.write_table(table)
    return memoryview(buffer)


def _table_of(data: bytes | None) -> pa.Table:
    assert data is not None
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()

"""The definition of a stream: its columns, rowtime, ordering and punctuation schemes; ``stream.json``."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import AnalysisError, InputError, NotSupportedError, WindrowError
from windrow.punctuations import Cover, Pattern, lines_of
from windrow.punctuations.schemes import Scheme, of_json, to_json
from windrow.streams.admission.future import Future
from windrow.streams.admission.rowtime import Rowtime
from windrow.streams.admission.watermark import Ordering
from windrow.streams.entries import CONTROL, FOREVER, PREFIX

__all__ = ["FORMAT", "Definition", "bound_of", "region_texts"]

FORMAT = 2
"""The version of the folder's layout that this code reads and writes."""

_MARK = "windrow stream"
_ALWAYS = ("version", "identity", "schema", "rowtime", "unit", "ordering")
_OF_OTHER_SHAPE = (
    LookupError,
    TypeError,
    ValueError,
    AttributeError,
    OSError,
    pa.ArrowException,
    WindrowError,
)
"""The errors that malformed JSON, base64 or Arrow values raise."""


@dataclass(frozen=True)
class Definition:
    """A stream's columns and ordering.

    Attributes
    ----------
    identity
        Identifies the stream in each of its files.
    columns
        The columns of a row.
    rowtime
        The column with the rowtime.
    ordering
        What a row implies for later rows of its producer.
    idle
        The number of seconds without an entry after which an attached producer is idle; None for never.
    domain
        Patterns that no row ever matches, as :meth:`Pattern.to_json` writes them.
    schemes
        The punctuations that follow from each row that a producer inserts.
    retain
        For how many seconds entries stay in the log at least; None for ever.
    """

    identity: str
    columns: pa.Schema
    rowtime: Rowtime
    ordering: Ordering
    idle: float | None = None
    domain: tuple[str, ...] = ()
    schemes: tuple[Scheme, ...] = ()
    retain: float | None = None

    @staticmethod
    def of(
        columns: pa.Schema,
        rowtime: str,
        unit: str | None,
        ordering: Ordering,
        idle: float | None = None,
        domain: Sequence[Pattern] = (),
        schemes: Sequence[Scheme] = (),
        future: float | None = None,
        retain: float | None = None,
    ) -> Definition:
        """Make the definition of a new stream; `idle`, `future` and `retain` are in seconds.

        Raises
        ------
        AnalysisError
            ``DUPLICATE_COLUMN``, ``RESERVED_NAME``, ``UNKNOWN_ROWTIME``, ``INVALID_ROWTIME``.
        NotSupportedError
            ``UNSUPPORTED_TYPE``: values of a column's type cannot be stored.
        """
        plain = pa.schema([pa.field(field.name, field.type) for field in columns])
        _check_names(plain)
        _check_types(plain)
        regions, of_rowtime = region_texts(plain, domain), Rowtime.of(plain, rowtime, unit)
        if future is not None:
            ordering = replace(ordering, future=Future(round(future * 1e6), of_rowtime.nanoseconds))
        made = tuple(schemes)
        return Definition(uuid.uuid4().hex, plain, of_rowtime, ordering, idle, regions, made, retain)

    @property
    def stored(self) -> pa.Schema:
        """The columns of an entry in the log."""
        return pa.schema([*CONTROL, *self.columns])

    def bound_of(self, pattern: Pattern) -> int | None:
        """The bound that a pattern is equivalent to, in ticks; None if it is not a bound."""
        return bound_of(pattern, self.rowtime.column)

    def to_json(self) -> str:
        """The text of ``stream.json``."""
        return json.dumps(
            {
                "format": _MARK,
                "version": FORMAT,
                "identity": self.identity,
                "columns": {field.name: str(field.type) for field in self.columns},
                "schema": base64.b64encode(self.columns.serialize().to_pybytes()).decode("ascii"),
                "rowtime": self.rowtime.column,
                "unit": self.rowtime.unit,
                "ordering": {
                    "lag": self.ordering.lag,
                    "is_promise": self.ordering.is_promise,
                    **({} if self.ordering.future is None else {"future": self.ordering.future.micros}),
                },
                **({} if self.idle is None else {"idle": self.idle}),
                **({} if self.retain is None else {"retain": self.retain}),
                **({"domain": list(self.domain)} if self.domain else {}),
                **({"schemes": [to_json(scheme) for scheme in self.schemes]} if self.schemes else {}),
            },
            indent=2,
        )

    @staticmethod
    def from_json(text: str, path: object) -> Definition:
        """Read the text of ``stream.json``.

        Raises
        ------
        InputError
            ``TORN_FILE``, ``FOREIGN_FILE``, ``STREAM_VERSION``.
        """
        try:
            values = json.loads(text)
        except ValueError:
            raise _torn(path, "incomplete") from None
        if not isinstance(values, dict) or values.get("format") != _MARK:
            raise InputError(
                f"{path} is not the definition of a stream",
                condition="FOREIGN_FILE",
                hint="name a folder that CREATE STREAM made",
            )
        if values.get("version", FORMAT) != FORMAT:
            raise InputError(
                f"{path} has format {values['version']}, but this version of Windrow reads format {FORMAT}",
                condition="STREAM_VERSION",
                hint="use the version of Windrow that wrote it",
            )
        missing = [name for name in _ALWAYS if name not in values]
        if missing:
            raise _torn(path, f"damaged: {missing[0]} is missing")
        try:
            return _read(values)
        except _OF_OTHER_SHAPE as error:
            raise _torn(path, "damaged: it is not the definition of a stream") from error


def _read(values: dict[str, Any]) -> Definition:
    """Read what :meth:`Definition.to_json` wrote; other values raise one of `_OF_OTHER_SHAPE`."""
    columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(values["schema"], validate=True)))
    unit = values["unit"] if pa.types.is_integer(columns.field(values["rowtime"]).type) else None
    rowtime = Rowtime.of(columns, values["rowtime"], unit)
    identity, values_of_ordering = values["identity"], dict(values["ordering"])
    idle, retain = values.get("idle"), values.get("retain")
    micros = values_of_ordering.pop("future", None)
    future = None if micros is None else Future(micros, rowtime.nanoseconds)
    ordering = Ordering(values_of_ordering["lag"], values_of_ordering["is_promise"], future)
    domain = tuple(values.get("domain", ()))
    for region in domain:
        Pattern.from_json(region, columns)
    schemes = tuple(of_json(scheme, columns) for scheme in values.get("schemes", ()))
    has_lengths = all(length is None or length > 0 for length in (idle, retain))
    if not isinstance(identity, str) or rowtime.unit != values["unit"] or not has_lengths:
        raise ValueError(values)
    return Definition(identity, columns, rowtime, ordering, idle, domain, schemes, retain)


def _torn(path: object, how: str) -> InputError:
    return InputError(
        f"{path} is {how}",
        condition="TORN_FILE",
        hint="restore it from a copy; the log does not depend on it",
    )


def bound_of(pattern: Pattern, rowtime: str) -> int | None:
    """The bound that a pattern is equivalent to, in ticks of this column; None if it is not a bound."""
    own = pattern[rowtime]
    if pattern.names != (rowtime,) or own is None or len(own.spans) != 1:
        return None
    (first, stop), line = own.spans[0], own.line
    if first != line.first:
        return None
    return FOREVER if stop == line.end else int(stop)


def region_texts(columns: pa.Schema, domain: Sequence[Pattern]) -> tuple[str, ...]:
    """Patterns as JSON texts, one for each region, as in the state of a watermark."""
    lines = lines_of(columns)
    return tuple(Pattern.of_region(region, lines).to_json() for region in Cover(lines, domain))


def _check_names(columns: pa.Schema) -> None:
    known: set[str] = set()
    for name in columns.names:
        if name.startswith(PREFIX):
            raise AnalysisError(
                f"column {name} has a name that begins with {PREFIX}",
                condition="RESERVED_NAME",
                hint=f"rename it: {PREFIX} is reserved for columns of the log",
            )
        if name.lower() in known:
            raise AnalysisError(
                f"column {name} is listed twice", condition="DUPLICATE_COLUMN", hint="rename one of them"
            )
        known.add(name.lower())


def _check_types(columns: pa.Schema) -> None:
    for field in columns:
        one = pa.schema([field])
        sink = pa.BufferOutputStream()
        try:
            pq.write_table(one.empty_table(), sink)
            stored_type = pq.read_schema(pa.BufferReader(sink.getvalue())).field(0).type
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            stored_type = None
        if stored_type != field.type:
            raise NotSupportedError(
                f"values of column {field.name} ({field.type}) cannot be stored in a stream",
                condition="UNSUPPORTED_TYPE",
                hint=f"store them as {stored_type}" if stored_type is not None else "store them as text",
            )

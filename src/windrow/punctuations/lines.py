"""The values of a type as places on a line, so that every set of values is made of half-open spans.

Numbers, times and booleans are integers: the place after a value is the next integer. Strings and binaries
are ordered by their bytes, and the place after ``s`` is ``s`` with a zero byte. So ranges with open, closed
and missing ends are all ``first <= place < stop``, two ranges are adjacent exactly if one stops where the
other begins, and empty ranges are recognized.

Equality and order are Spark's: −0.0 is 0.0, NaN equals itself and is the greatest, strings compare by their
bytes. NULL has no place.
"""

from __future__ import annotations

import base64
import datetime
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.errors import InputError, NotSupportedError

__all__ = ["END", "End", "Line", "Place", "Span", "line_if_any", "line_of"]

Ints = npt.NDArray[np.int64]


@functools.total_ordering
class End:
    """The end of a line without a greatest value: after every place."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, End)

    def __lt__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return hash(End)

    def __repr__(self) -> str:
        return "END"


END: Final = End()

Place: TypeAlias = Any
"""An int, bytes, or `END`; places of one line compare with each other."""

Span: TypeAlias = tuple[Place, Place]
"""The places from the first on, up to the one before the second."""

_INFINITE = 0x7FF0000000000000  # the bits of infinity; NaN comes next
_EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Line:
    """The line of a type.

    Attributes
    ----------
    kind
        The type.
    first, end
        The span of all values.
    """

    kind: pa.DataType
    first: Place
    end: Place

    @property
    def is_of_bytes(self) -> bool:
        """Whether places are bytes rather than ints."""
        return isinstance(self.first, bytes)

    @property
    def is_wide(self) -> bool:
        """Whether places are Python's objects rather than int64."""
        return self.is_of_bytes or not -(2**63) <= self.first < self.end <= 2**63

    def after(self, place: Place) -> Place:
        """The next place."""
        return place + b"\0" if self.is_of_bytes else place + 1

    def point(self, place: Place) -> Span:
        """The span of one place."""
        return place, self.after(place)

    def is_point(self, span: Span) -> bool:
        """Whether a span has one place."""
        return bool(span[1] == self.after(span[0]))

    def place(self, value: object) -> Place:
        """The place of a value, one of Python's.

        Raises
        ------
        InputError
            ``INVALID_VALUE``: it is not of the type, or its conversion is not exact.
        """
        try:
            array = pa.array([value], self.kind)
            converted = array[0].as_py()
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            converted = None
        if (
            converted is None
            or isinstance(value, bool) != isinstance(converted, bool)
            or not _is_same(converted, value)
        ):
            raise InputError(
                f"{value!r} is not a value of type {self.kind}",
                condition="INVALID_VALUE",
                hint="use a value of the column's type",
            )
        place = self.places(array)[0]
        return place if self.is_wide else int(place)

    def value(self, place: Place) -> Any:
        """The Python value of a place."""
        if pa.types.is_decimal(self.kind):
            return Decimal(place).scaleb(-self.kind.scale, _EXACT)
        if self.is_of_bytes:
            return place.decode(errors="replace") if _is_text(self.kind) else place
        if pa.types.is_floating(self.kind):
            return _float_at(place)
        if pa.types.is_boolean(self.kind):
            return bool(place)
        if pa.types.is_integer(self.kind):
            return place
        if pa.types.is_timestamp(self.kind):
            moment = _EPOCH + datetime.timedelta(microseconds=1) * (place * _MICROSECONDS[self.kind.unit])
            return moment if self.kind.tz is None else moment.replace(tzinfo=datetime.UTC)
        width = pa.int32() if self.kind.bit_width == 32 else pa.int64()
        return pa.array([place], width).view(self.kind)[0].as_py()

    def places(self, array: pa.Array | pa.ChunkedArray) -> npt.NDArray[Any]:
        """The places of an array's values, arbitrary for NULL: int64, or objects if `is_wide`."""
        array = _one(array)
        kind = self.kind
        if self.is_of_bytes:
            whole = array.cast(pa.large_binary())
            return _objects([b"" if value is None else value for value in whole.to_pylist()])
        if self.is_wide:
            values = [Decimal(0) if value is None else value for value in array.to_pylist()]
            return _objects([int(value.scaleb(kind.scale, _EXACT)) for value in values])
        if pa.types.is_boolean(kind):
            return np.asarray(array.fill_null(False)).astype(np.int64)
        if pa.types.is_floating(kind):
            return _float_places(np.asarray(array.cast(pa.float64()).fill_null(0.0), np.float64))
        if pa.types.is_decimal(kind):
            words = np.frombuffer(
                array.cast(pa.decimal128(kind.precision, kind.scale)).buffers()[1],
                np.int64,
                2 * len(array),
                array.offset * 16,
            )
            return words[::2].copy()
        if not pa.types.is_integer(kind):
            array = array.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        return np.asarray(array.fill_null(0)).astype(np.int64, copy=False)

    def array(self, places: Sequence[Place | None]) -> pa.Array:
        """The values of places, NULL for None."""
        kind = self.kind
        if self.is_of_bytes:
            is_large = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind)
            return pa.array(places, pa.large_binary() if is_large else pa.binary()).view(kind)
        if pa.types.is_integer(kind):
            return pa.array(places, kind)
        if pa.types.is_temporal(kind):
            return pa.array(places, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
        return pa.array([None if place is None else self.value(place) for place in places], kind)

    def to_json(self, place: Place) -> Any:
        """The value of a place in JSON: a number, a boolean, or a text."""
        value = self.value(place)
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if isinstance(value, bytes):
            return base64.b16encode(value).decode().lower()
        if self.is_of_bytes and value.encode() != place:
            return {"bytes": base64.b16encode(place).decode().lower()}
        if pa.types.is_decimal(self.kind):
            return str(value)
        return place if _is_time(self.kind) else value

    def of_json(self, value: Any) -> Place:
        """The place that :meth:`to_json` wrote."""
        if isinstance(value, dict):
            return base64.b16decode(value["bytes"].upper())
        if self.is_of_bytes:
            return value.encode() if _is_text(self.kind) else base64.b16decode(value.upper())
        if pa.types.is_decimal(self.kind):
            return int(Decimal(value).scaleb(self.kind.scale, _EXACT))
        if pa.types.is_floating(self.kind):
            return int(_float_places(np.array([float(value)]))[0])
        return int(value)

    def formatted(self, place: Place) -> str:
        """Format a value for messages."""
        try:
            value = self.value(place)
        except OverflowError:  # outside of Python's years
            return str(place)
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.replace(tzinfo=None)
        if isinstance(value, datetime.date | str):
            return f"'{value}'"
        return str(value).upper() if isinstance(value, bool) else str(value)


_MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_EXACT = Context(prec=80)


def line_of(kind: pa.DataType) -> Line:
    """The line of a type.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_TYPE``: arrays, structs, maps, and others that have no order of their own.
    """
    line = line_if_any(kind)
    if line is None:
        raise NotSupportedError(
            f"a punctuation cannot restrict a column of type {kind}",
            condition="UNSUPPORTED_TYPE",
            hint="punctuate columns of numbers, times, booleans, strings and binaries",
        )
    return line


def line_if_any(kind: pa.DataType) -> Line | None:
    """The line of a type; None if it has none."""
    if pa.types.is_dictionary(kind):
        return line_if_any(kind.value_type)
    if pa.types.is_boolean(kind):
        return Line(kind, 0, 2)
    if pa.types.is_signed_integer(kind):
        return Line(kind, -(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1))
    if pa.types.is_unsigned_integer(kind) and kind.bit_width < 64:
        return Line(kind, 0, 2**kind.bit_width)
    if pa.types.is_float32(kind) or pa.types.is_float64(kind):
        return Line(kind, int(_float_places(np.array([-math.inf]))[0]), _INFINITE + 2)
    if pa.types.is_decimal128(kind):
        return Line(kind, 1 - 10**kind.precision, 10**kind.precision)
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return Line(kind, -(2**31), 2**31)
    if (pa.types.is_timestamp(kind) and kind.unit != "ns") or kind in (pa.time64("us"), pa.duration("us")):
        return Line(kind, -(2**63), 2**63)
    if _is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return Line(kind, b"", END)
    return None


def _float_places(values: npt.NDArray[np.float64]) -> Ints:
    """The bits of doubles as integers in the order of the numbers; NaN follows infinity."""
    bits = (values + 0.0).view(np.int64)
    places: Ints = np.where(
        np.isnan(values), np.int64(_INFINITE + 1), bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))
    )
    return places


def _float_at(place: int) -> float:
    if place > _INFINITE:
        return math.nan
    bits = np.array([place], np.int64)
    return float((bits ^ ((bits >> 63) & np.int64(0x7FFFFFFFFFFFFFFF))).view(np.float64)[0])


def _is_same(converted: Any, value: Any) -> bool:
    """Whether a converted value equals the original; floats may be rounded."""
    if isinstance(converted, float):
        return not math.isinf(converted) or bool(converted == value)
    if isinstance(converted, datetime.datetime) and isinstance(value, datetime.datetime):
        return (converted.tzinfo is None) == (value.tzinfo is None) and converted == value
    if isinstance(converted, datetime.datetime) != isinstance(value, datetime.datetime):
        return False
    return bool(converted == value)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_time(kind: pa.DataType) -> bool:
    return bool(pa.types.is_temporal(kind))


def _objects(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def _one(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array

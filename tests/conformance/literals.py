"""Typed tables as text: a schema in Spark's DDL, and rows of literals whose types the schema decides.

A row is its cells separated by ``|``. A cell is ``NULL``, a bare word, or a JSON string where the bare form
would be misread; a struct is ``(a, b)``, an array ``[a, b]``, a map ``{k: v}``, a binary ``0x0aff``. Values
are held as Python holds them for Spark, except that arrays are tuples and maps are tuples of sorted pairs, so
that a row can be hashed, and that timestamps know that they are in UTC.

Nothing here needs a running Spark: schemas are read by a small parser of our own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from pyspark.sql import types as T

__all__ = [
    "LiteralError",
    "normalise",
    "parse_row",
    "parse_schema",
    "parse_value",
    "render_rows",
    "render_schema",
    "render_value",
    "to_spark",
]

Value = Any
Row = tuple[Value, ...]

_ATOMIC: dict[str, T.DataType] = {
    "boolean": T.BooleanType(),
    "tinyint": T.ByteType(),
    "smallint": T.ShortType(),
    "int": T.IntegerType(),
    "bigint": T.LongType(),
    "float": T.FloatType(),
    "double": T.DoubleType(),
    "string": T.StringType(),
    "binary": T.BinaryType(),
    "date": T.DateType(),
    "timestamp": T.TimestampType(),
    "timestamp_ntz": T.TimestampNTZType(),
}
_INTEGRAL = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_FRACTIONAL = (T.FloatType, T.DoubleType)
_TOKEN = re.compile(r"\s*(?:(?P<name>`[^`]+`|\w+)|(?P<sign>[<>(),:]))")
_PLAIN = re.compile(r"[^\s|,:()\[\]{}\"](?:[^|,:()\[\]{}\"]*[^\s|,:()\[\]{}\"])?")
_JSON_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')


class LiteralError(ValueError):
    """The text is not a schema, or not a row of the schema that it stands under."""


def parse_schema(text: str) -> T.StructType:
    """Columns and types of a DDL line.

    >>> parse_schema("station string, w array<struct<date: int, val: decimal(38, 2)>>").simpleString()
    'struct<station:string,w:array<struct<date:int,val:decimal(38,2)>>>'
    """
    tokens = _Tokens.of(text)
    fields = tokens.fields(separator=None)
    tokens.finish()
    return T.StructType(fields)


def render_schema(schema: T.StructType) -> str:
    """The DDL line that :func:`parse_schema` reads back."""
    return ", ".join(f"{_name(field.name)} {_type(field.dataType)}" for field in schema.fields)


def parse_row(text: str, schema: T.StructType) -> Row:
    """The typed values of one row.

    >>> schema = parse_schema("s string, n int, w array<struct<i: int, t: string>>")
    >>> parse_row('s1 | NULL | [(1, "a|b"), NULL]', schema)
    ('s1', None, ((1, 'a|b'), None))
    """
    scanner = _Scanner(text)
    values: list[Value] = []
    for index, field in enumerate(schema.fields):
        if index:
            scanner.expect("|")
        values.append(scanner.value(field.dataType, stops="|"))
    if not scanner.at_end():
        raise LiteralError(f"more cells than the {len(schema.fields)} columns: {scanner.rest()!r}")
    return tuple(values)


def parse_value(text: str, data_type: T.DataType) -> Value:
    """One literal that takes up the whole text."""
    scanner = _Scanner(text)
    value = scanner.value(data_type, stops="")
    if not scanner.at_end():
        raise LiteralError(f"unexpected {scanner.rest()!r}")
    return value


def render_value(value: Value, data_type: T.DataType) -> str:
    """The literal of one value as :func:`normalise` leaves it."""
    if value is None:
        return "NULL"
    if isinstance(data_type, T.StructType):
        cells = zip(value, data_type.fields, strict=True)
        return "(" + ", ".join(render_value(cell, field.dataType) for cell, field in cells) + ")"
    if isinstance(data_type, T.ArrayType):
        return "[" + ", ".join(render_value(element, data_type.elementType) for element in value) + "]"
    if isinstance(data_type, T.MapType):
        key_type, value_type = data_type.keyType, data_type.valueType
        pairs = (f"{_key(render_value(k, key_type))}: {render_value(v, value_type)}" for k, v in value)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(data_type, T.StringType):
        plain = _PLAIN.fullmatch(value) and value != "NULL"
        return str(value) if plain else json.dumps(value, ensure_ascii=False)
    return _render_atomic(value, data_type)


def render_rows(rows: Iterable[Sequence[Value]], schema: T.StructType) -> list[str]:
    """Rows as lines, the columns aligned: numbers to the right, all else to the left."""
    types = [field.dataType for field in schema.fields]
    cells = [[render_value(value, kind) for value, kind in zip(row, types, strict=True)] for row in rows]
    widths = [max((len(line[i]) for line in cells), default=0) for i in range(len(types))]
    right = [isinstance(kind, T.NumericType) for kind in types]
    return [
        " | ".join(
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    ]


def normalise(value: Value, data_type: T.DataType) -> Value:
    """A value as Spark hands it out, in the hashable form that literals are parsed to."""
    if value is None:
        return None
    if isinstance(data_type, T.StructType):
        cells = zip(value, data_type.fields, strict=True)
        return tuple(normalise(cell, field.dataType) for cell, field in cells)
    if isinstance(data_type, T.ArrayType):
        return tuple(normalise(element, data_type.elementType) for element in value)
    if isinstance(data_type, T.MapType):
        pairs = (
            (normalise(k, data_type.keyType), normalise(v, data_type.valueType)) for k, v in value.items()
        )
        return tuple(sorted(pairs, key=lambda pair: repr(pair[0])))
    if isinstance(data_type, T.TimestampType):
        return value.astimezone(UTC)
    return bytes(value) if isinstance(data_type, T.BinaryType) else value


def to_spark(value: Value, data_type: T.DataType) -> Value:
    """The inverse of :func:`normalise`, for ``createDataFrame``."""
    if value is None:
        return None
    if isinstance(data_type, T.StructType):
        cells = zip(value, data_type.fields, strict=True)
        return tuple(to_spark(cell, field.dataType) for cell, field in cells)
    if isinstance(data_type, T.ArrayType):
        return [to_spark(element, data_type.elementType) for element in value]
    if isinstance(data_type, T.MapType):
        return {to_spark(k, data_type.keyType): to_spark(v, data_type.valueType) for k, v in value}
    return value


@dataclass
class _Tokens:
    """The tokens of a DDL line and how far they are read."""

    text: str
    items: list[str]
    index: int = 0

    @classmethod
    def of(cls, text: str) -> _Tokens:
        items, at = [], 0
        while at < len(text.rstrip()):
            match = _TOKEN.match(text, at)
            if match is None:
                raise LiteralError(f"unexpected {text[at:].strip()[:1]!r} in the schema {text!r}")
            items.append(match[0].strip())
            at = match.end()
        return cls(text, items)

    def take(self, wanted: str | None = None) -> str:
        token = self.items[self.index] if self.index < len(self.items) else "the end"
        if (wanted is not None and token != wanted) or self.index >= len(self.items):
            raise LiteralError(f"expected {wanted or 'a name'}, found {token} in the schema {self.text!r}")
        self.index += 1
        return token

    def next_is(self, token: str) -> bool:
        return self.index < len(self.items) and self.items[self.index] == token

    def finish(self) -> None:
        if self.index < len(self.items):
            raise LiteralError(f"unexpected {self.items[self.index]} in the schema {self.text!r}")

    def fields(self, separator: str | None) -> list[T.StructField]:
        fields = []
        while True:
            name = self.take().strip("`")
            if separator is not None:
                self.take(separator)
            fields.append(T.StructField(name, self.data_type()))
            if not self.next_is(","):
                return fields
            self.take(",")

    def data_type(self) -> T.DataType:
        name = self.take().lower()
        if name == "decimal":
            self.take("(")
            precision = int(self.take())
            self.take(",")
            scale = int(self.take())
            self.take(")")
            return T.DecimalType(precision, scale)
        if name in ("array", "map", "struct"):
            self.take("<")
            made = self.nested(name)
            self.take(">")
            return made
        if name not in _ATOMIC:
            raise LiteralError(f"unknown type {name} in the schema {self.text!r}")
        return _ATOMIC[name]

    def nested(self, name: str) -> T.DataType:
        if name == "struct":
            return T.StructType(self.fields(separator=":"))
        if name == "array":
            return T.ArrayType(self.data_type())
        key = self.data_type()
        self.take(",")
        return T.MapType(key, self.data_type())


@dataclass
class _Scanner:
    """One line of literals and how far it is read."""

    text: str
    at: int = 0

    def rest(self) -> str:
        return self.text[self.at :].strip()

    def at_end(self) -> bool:
        return not self.rest()

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def expect(self, sign: str) -> None:
        self.skip()
        if not self.text.startswith(sign, self.at):
            raise LiteralError(f"expected {sign!r}, found {self.rest() or 'the end'!r}")
        self.at += 1

    def next_is(self, sign: str) -> bool:
        self.skip()
        return self.text.startswith(sign, self.at)

    def value(self, data_type: T.DataType, stops: str) -> Value:
        self.skip()
        word = re.compile(r"NULL\b").match(self.text, self.at)
        if word is not None:
            self.at = word.end()
            return None
        if isinstance(data_type, T.StructType):
            return self.struct(data_type)
        if isinstance(data_type, T.ArrayType):
            return tuple(self.items("[", "]", lambda: self.value(data_type.elementType, stops=",]")))
        if isinstance(data_type, T.MapType):
            pairs = self.items("{", "}", lambda: self.pair(data_type))
            return tuple(sorted(pairs, key=lambda pair: repr(pair[0])))
        quoted = _JSON_STRING.match(self.text, self.at)
        if quoted is not None:
            self.at = quoted.end()
            return _parse_atomic(str(json.loads(quoted[0])), data_type)
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in stops:
            self.at += 1
        bare = self.text[start : self.at].strip()
        if not bare:
            raise LiteralError('an empty cell; write NULL, or "" for an empty string')
        return _parse_atomic(bare, data_type)

    def struct(self, data_type: T.StructType) -> Row:
        self.expect("(")
        values: list[Value] = []
        for index, field in enumerate(data_type.fields):
            if index:
                self.expect(",")
            values.append(self.value(field.dataType, stops=",)"))
        self.expect(")")
        return tuple(values)

    def pair(self, data_type: T.MapType) -> Row:
        key = self.value(data_type.keyType, stops=":")
        self.expect(":")
        return key, self.value(data_type.valueType, stops=",}")

    def items(self, opening: str, closing: str, item: Callable[[], Value]) -> list[Value]:
        self.expect(opening)
        found: list[Value] = []
        while not self.next_is(closing):
            if found:
                self.expect(",")
            found.append(item())
        self.expect(closing)
        return found


def _parse_atomic(text: str, data_type: T.DataType) -> Value:
    try:
        return _convert(text, data_type)
    except (ValueError, ArithmeticError) as error:
        raise LiteralError(f"{text!r} is not a {data_type.simpleString()}") from error


def _convert(text: str, data_type: T.DataType) -> Value:
    if isinstance(data_type, T.StringType):
        return text
    if isinstance(data_type, T.BooleanType):
        return {"true": True, "false": False}[text] if text in ("true", "false") else _refuse()
    if isinstance(data_type, _INTEGRAL):
        return int(text)
    if isinstance(data_type, _FRACTIONAL):
        return float(text)
    if isinstance(data_type, T.DecimalType):
        return Decimal(text)
    if isinstance(data_type, T.DateType):
        return date.fromisoformat(text)
    if isinstance(data_type, T.TimestampType):
        return datetime.fromisoformat(text).replace(tzinfo=UTC)
    if isinstance(data_type, T.TimestampNTZType):
        return datetime.fromisoformat(text)
    return bytes.fromhex(text.removeprefix("0x")) if text.startswith("0x") else _refuse()


def _refuse() -> Value:
    raise ValueError


def _render_atomic(value: Value, data_type: T.DataType) -> str:
    if isinstance(data_type, T.BooleanType):
        return "true" if value else "false"
    if isinstance(data_type, T.BinaryType):
        return f"0x{value.hex()}"
    if isinstance(data_type, T.TimestampType):
        return value.replace(tzinfo=None).isoformat(sep=" ")  # type: ignore[no-any-return]
    if isinstance(data_type, T.TimestampNTZType):
        return value.isoformat(sep=" ")  # type: ignore[no-any-return]
    if isinstance(data_type, _FRACTIONAL) and math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if isinstance(data_type, _FRACTIONAL) and math.isnan(value):
        return "NaN"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _key(literal: str) -> str:
    """A map's key, quoted where its own colon would end it."""
    return json.dumps(literal) if ":" in literal and not literal.startswith('"') else literal


def _name(name: str) -> str:
    return name if re.fullmatch(r"\w+", name) else f"`{name}`"


def _type(data_type: T.DataType) -> str:
    if isinstance(data_type, T.StructType):
        inner = ", ".join(f"{_name(field.name)}: {_type(field.dataType)}" for field in data_type.fields)
        return f"struct<{inner}>"
    if isinstance(data_type, T.ArrayType):
        return f"array<{_type(data_type.elementType)}>"
    if isinstance(data_type, T.MapType):
        return f"map<{_type(data_type.keyType)}, {_type(data_type.valueType)}>"
    if isinstance(data_type, T.DecimalType):
        return f"decimal({data_type.precision}, {data_type.scale})"
    return data_type.simpleString()

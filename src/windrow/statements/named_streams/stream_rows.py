"""Statements about rows of a named stream, whose values Spark evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from windrow.algebra.names import piece_of
from windrow.errors import (
    AnalysisError,
    InputError,
    NotSupportedError,
    Span,
    WindrowError,
    no_column,
)
from windrow.punctuations import Pattern, Values
from windrow.punctuations.lines import Place, line_of
from windrow.punctuations.schemes import EndOfEntity, GrowingKey, Scheme, UniqueKey
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.logs.storable import type_in_spark
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText
from windrow.syntax.streams.create_stream import CreateStream
from windrow.syntax.streams.punctuate import PunctuateCondition, parse_conditions
from windrow.syntax.tokens import TokenList

__all__ = ["StreamRows", "no_named_stream"]


@dataclass(frozen=True)
class StreamRows:
    """The values of a statement about rows of a stream; Spark evaluates them in the columns' types."""

    gateway: Gateway
    tokens: TokenList
    name: str
    columns: pa.Schema

    def domain(self, create: CreateStream) -> list[Pattern]:
        """The patterns that no row matches, from CHECK."""
        if create.check is None:
            return []
        whole = self.pattern(parse_conditions(self.tokens, *create.check))
        return [Pattern.of({name: ~own}) for name, own in whole.columns]

    def schemes(self, create: CreateStream) -> list[Scheme]:
        """The schemes of expected punctuations, from UNIQUE, GROWING and WHEN."""
        found: list[Scheme] = []
        if create.unique:
            found.append(UniqueKey(self._names(create.unique)))
        if create.growing:
            (column,) = self._names(create.growing)
            found.append(GrowingKey(column))
        if create.when is not None:
            when = self.pattern(parse_conditions(self.tokens, *create.when))
            found.append(EndOfEntity(when, self._names(create.ends)))
        return found

    def pattern(self, conditions: tuple[PunctuateCondition, ...]) -> Pattern:
        """The pattern of conditions."""
        found: dict[str, Values] = {}
        for condition in conditions:
            span = self.tokens.span(*condition.target)
            name = self._known(condition.column, span)
            kind = self.columns.field(name).type
            try:
                line_of(kind)
                places = [self._place(operand, name) for operand in condition.operands]
                own = Values.at_places(kind, condition.operator, places)
            except WindrowError as error:
                if error.span is None:
                    error.sql, error.span = self.tokens.sql, span
                raise
            found[name] = found[name] & own if name in found else own
        return Pattern.of(found)

    def _names(self, named: Sequence[tuple[str, Span]]) -> tuple[str, ...]:
        """Columns that punctuations may name."""
        names = tuple(self._known(name, span) for name, span in named)
        for name, (_, span) in zip(names, named, strict=True):
            try:
                line_of(self.columns.field(name).type)
            except WindrowError as error:
                error.sql, error.span = self.tokens.sql, span
                raise
        return names

    def _known(self, column: str, span: Span) -> str:
        known = {name.lower(): name for name in self.columns.names}
        if column.lower() not in known:
            what, names, sql = f"stream {self.name} has", self.columns.names, self.tokens.sql
            raise no_column(what, column, names, condition="UNKNOWN_COLUMN", sql=sql, span=span)
        return str(known[column.lower()])

    def _place(self, operand: Range, name: str) -> Place:
        """The place of a value in the order of a column."""
        field = self.columns.field(name)
        kind = type_in_spark(field.type)
        piece = piece_of(self.tokens, *operand)
        cast = ("CAST(", piece, f" AS {kind})")
        row = self.gateway.sql(
            SqlText.of("SELECT ", *cast, " AS value, ", *cast, " <=> (", piece, ") AS same")
        )
        with self.gateway.translated():
            table = row.toArrow()
        value = table.column("value")
        if value.null_count or not table.column("same")[0].as_py():
            is_null = bool(value.null_count)
            raise InputError(
                f"a comparison of column {field.name} with NULL is never true"
                if is_null
                else f"{self.tokens.text(*operand)} is not a value of column {field.name} ({kind.upper()})",
                condition="INVALID_VALUE",
                sql=self.tokens.sql,
                span=self.tokens.span(*operand),
                hint=f"write {field.name} IS NULL" if is_null else "compare with values of the column's type",
            )
        line = line_of(field.type)
        place = line.places(value.cast(field.type))[0]
        return place if line.is_wide else int(place)


def no_named_stream(catalog: Catalog, tokens: TokenList, name: str, target: Range) -> WindrowError:
    """The error for a statement that inserts into something other than a named stream."""
    if name.lower() in catalog.names:
        return NotSupportedError(
            f"{name} is not a named stream, so it cannot be written to",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(*target),
            hint="make a named stream with CREATE STREAM without FROM",
        )
    return AnalysisError(
        f"stream {name} does not exist",
        condition="UNKNOWN_STREAM",
        sqlstate="42P01",
        sql=tokens.sql,
        span=tokens.span(*target),
        hint="make it with CREATE STREAM, or open its folder with CREATE STREAM IF NOT EXISTS",
    )

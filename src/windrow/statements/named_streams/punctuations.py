"""PUNCTUATE: a bound or a punctuation of the session's producer."""

from __future__ import annotations

from windrow.algebra.names import piece_of
from windrow.errors import (
    WindrowError,
)
from windrow.relation import Relation, as_plan, no_rows
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.named_streams.stream_rows import StreamRows, no_named_stream
from windrow.streams.producer import Written
from windrow.syntax.sqltext import SqlText
from windrow.syntax.streams.punctuate import parse_punctuate
from windrow.syntax.tokens import TokenList

__all__ = ["punctuate"]


def punctuate(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, start: int, stop: int
) -> Relation | None:
    """Write a bound or a punctuation of the session's producer; returns what was done, None for other
    statements.

    Raises
    ------
    WindrowError
        ``UNKNOWN_STREAM``, ``INVALID_INSTANT``, ``UNSUPPORTED_STREAM``, ``UNKNOWN_COLUMN``,
        ``INVALID_VALUE``, ``UNSUPPORTED_TYPE``, ``UNSUPPORTED_PATTERN``.
    """
    said = parse_punctuate(tokens, start, stop)
    if said is None:
        return None
    named = catalog.named.get(said.name.lower())
    if named is None:
        raise no_named_stream(catalog, tokens, said.name, said.target)
    counts = named.stream.definition.ordering.future is not None
    if said.bound is None:
        columns = named.stream.definition.columns
        pattern = StreamRows(gateway, tokens, named.name, columns).pattern(said.conditions)
        if gateway.plan_only:
            return as_plan(gateway, f"a punctuation of stream {named.name}: {pattern}")
        written = named.producer().promise(pattern)
        return _said(gateway, written) if counts else no_rows(gateway)
    scale = named.scale
    value = gateway.sql(
        SqlText.of("SELECT CAST(", piece_of(tokens, *said.bound), f" AS {scale.kind}) AS bound")
    )
    ticks = value.selectExpr(f"{scale.of_column('bound', scale.kind, scale.unit)} AS ticks")
    if gateway.plan_only:
        return as_plan(gateway, f"a bound of stream {named.name}")
    with gateway.translated():
        (row,) = ticks.collect()
    try:
        written = named.producer().promise_bound(row["ticks"], strict=said.is_strict)
    except WindrowError as error:
        if error.condition == "INVALID_INSTANT":
            error.sql, error.span = tokens.sql, tokens.span(*said.bound)
        raise
    return _said(gateway, written) if counts else no_rows(gateway)


def _said(gateway: Gateway, written: Written) -> Relation:
    """How many bounds or punctuations of a statement were quarantined because of FUTURE."""
    frame = gateway.spark.createDataFrame([(int(written.is_quarantined),)], "quarantined BIGINT")
    return Relation(frame, "done when it was run", gateway)

"""OPTIMIZE: the files of a named stream are merged."""

from __future__ import annotations

from windrow.errors import NotSupportedError
from windrow.relation import Relation, as_plan
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.named_streams.stream_rows import no_named_stream
from windrow.syntax.streams.optimize import parse_optimize
from windrow.syntax.tokens import TokenList

__all__ = ["optimize"]


def optimize(gateway: Gateway, catalog: Catalog, tokens: TokenList, start: int, stop: int) -> Relation | None:
    """Merge the files of a named stream; returns how many there were and are, None for other statements and
    for tables.

    Raises
    ------
    WindrowError
        ``UNSUPPORTED_STREAM``, ``UNSUPPORTED_CLAUSE``; those of
        :meth:`NamedStream.compact <windrow.streams.NamedStream.compact>`.
    """
    read = parse_optimize(tokens, start, stop)
    if read is None or read.name.lower() not in catalog.names:
        return None
    named = catalog.named.get(read.name.lower())
    if named is None:
        raise no_named_stream(catalog, tokens, read.name, read.target)
    first, last = read.clauses
    if first < last:
        raise NotSupportedError(
            f"{tokens[first].text} does not apply to a stream: its entries stay in their order",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(first, last),
            hint=f"write OPTIMIZE {read.name} alone, which merges all small files",
        )
    if gateway.plan_only:
        return as_plan(gateway, f"merge the files of stream {named.name}")
    found = named.stream.compact()
    frame = gateway.spark.createDataFrame([found], "files_before BIGINT, files_after BIGINT")
    return Relation(frame, "done when it was run", gateway)

"""Relations as of different times: FROM s FOR SYSTEM_TIME AS OF '…', for streams and views of them.

Each is the log of its streams up to that time, under a generated name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.expand import Expander
from windrow.errors import NotSupportedError
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.logs.past_log import PAST, up_to
from windrow.statements.emit_statements import instant_of, refuse_rowtime_windows, untimed
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.as_of import Past, pasts
from windrow.syntax.streams.emit_clause import clauses_in
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["past_relations", "with_past"]


def past_relations(tokens: TokenList, catalog: Catalog) -> list[Past]:
    """The relations of a text that have their own AS OF time."""
    return pasts(tokens, {*catalog.streams, *catalog.texts})


@contextmanager
def with_past(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[tuple[str, Catalog] | None]:
    """The text with a log in place of each such relation, and a catalog with these; None if there are none.

    Raises
    ------
    NotSupportedError
        ``MIXED_CLOCKS`` beside relations that change by rowtime, ``UNSUPPORTED_CLAUSE`` beside AS OF SYSTEM
        TIME, ``UNSUPPORTED_STREAM`` for a live stream.
    AnalysisError
        ``MISSING_PTIME``, ``INVALID_INSTANT``.
    """
    tokens = tokenize(text)
    found = past_relations(tokens, catalog)
    if not found:
        yield None
        return
    refuse_rowtime_windows(tokens, (0, len(tokens)), found[0].clause)
    _refuse_two_times(tokens, found[0])
    edits = Edits(tokens)
    own = catalog.as_it_is()
    logs: set[str] = set()
    for past in found:
        token = tokens[past.name]
        edits.instead.update(dict.fromkeys(range(*past.clause), SqlText()))
        rows, read = _rows_of(gateway, own, tokens, past)
        logs |= read
        if alias_after(tokens, past.clause[1], len(tokens)) is None:
            rows += f" AS {quoted(token.name)}"
        edits.instead[past.name] = SqlText.of(Piece(rows, text, token.start, token.stop - token.start))
    for name in logs:  # whose columns Spark knows
        own.streams[name].frame.createOrReplaceTempView(quoted(name))
    try:
        with gateway.instead(edits.text(0, len(tokens))) as read_instead:
            yield read_instead, own
    finally:
        for name in logs if not gateway.is_connect else ():
            gateway.spark.catalog.dropTempView(name)


def _rows_of(gateway: Gateway, catalog: Catalog, tokens: TokenList, past: Past) -> tuple[str, set[str]]:
    """The text that replaces the name of such a relation, and the names of its logs."""
    name = tokens[past.name].name.lower()
    if name in catalog.streams:
        log = _log(gateway, catalog, tokens, past, name)
        return quoted(log), {log}
    view = catalog.texts[name]
    inside = tokenize(view)
    read = {token.name.lower() for token in inside.tokens if token.is_name} & {*catalog.streams}
    logs = {
        stream: _log(gateway, catalog, tokens, past, stream)
        for stream in sorted(read)
        if Expander(inside, {stream}, {}).leads_to_streams((0, len(inside)))
    }
    named = ", ".join(f"{quoted(stream)} AS (SELECT * FROM {quoted(log)})" for stream, log in logs.items())
    return f"(WITH {named} SELECT * FROM ({view}))", {*logs.values()}


def _log(gateway: Gateway, catalog: Catalog, tokens: TokenList, past: Past, name: str) -> str:
    """The name of the log of a stream up to a time."""
    named, stream = catalog.named.get(name), catalog.streams[name]
    if named is None and stream.live is not None:
        raise NotSupportedError(
            "FOR SYSTEM_TIME AS OF of a live stream is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(*past.clause),
            hint="insert its rows into a named stream, whose log has all rows: CREATE STREAM … LOCATION,"
            " INSERT INTO",
        )
    log = stream if named is None else named.as_arrived()
    if log.timed is None:
        raise untimed(tokens, past.name, tokens[past.name].name)
    tick = instant_of(gateway, tokens, log.timed.ptime, past.time)
    key = f"{PAST}{name}_{tick}"
    catalog.streams[key] = up_to(log, tick)
    return key


def _refuse_two_times(tokens: TokenList, past: Past) -> None:
    found = [at for at in clauses_in(tokens, 0, len(tokens)) if tokens.word(at) == "AS"]
    if found:
        raise NotSupportedError(
            "AS OF SYSTEM TIME of a query with FOR SYSTEM_TIME AS OF is not supported",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(*past.clause),
            hint="write FOR SYSTEM_TIME AS OF … after each relation, or AS OF SYSTEM TIME … alone at the end",
        )

"""Temporal joins: a stream joined with the version of another that is valid at a time.

By processing time, a version is valid from its rowtime until that of the next version of its key, which is an
added column. Late versions change earlier results. As a stream, the versions are the last row of each key at
the instant of each row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.errors import NotSupportedError
from windrow.plan.arrow_types import is_orderable
from windrow.plan.event_time import UNTIL
from windrow.relation import Relation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.streams.as_of import AsOf, as_of_joins
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["may_join_versions", "with_versions", "without_ours"]

_WORDS = re.compile(r"\bfor\s+system_time\s+as\s+of\b", re.IGNORECASE)


def may_join_versions(text: str) -> bool:
    """Whether a text may have a temporal join."""
    return _WORDS.search(text) is not None


@contextmanager
def with_versions(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[str | None]:
    """The text with temporal joins rewritten; None if there are none over streams.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` in statements other than queries, ``UNSUPPORTED_CLAUSE``,
        ``UNSUPPORTED_STREAM``.
    """
    tokens = tokenize(text)
    joins = as_of_joins(tokens, catalog.streams)
    if not joins:
        yield None
        return
    first = tokens.word(0) if tokens.word(0) != "EXPLAIN" else tokens.word(1)
    if first not in ("SELECT", "WITH", "(") and not tokens.is_symbol(0, "("):
        raise NotSupportedError(
            f"a temporal join in {tokens[0].text} is not supported",
            condition="UNSUPPORTED_STATEMENT",
            sql=text,
            span=tokens.span(joins[0].name, joins[0].after),
            hint="run the query by itself: relation.start, relation.df",
        )
    edits = Edits(tokens)
    as_stream = any(
        tokens.word(at) == "SELECT" and tokens.word(at + 1) == "STREAM" for at in range(len(tokens))
    )
    for number, join in enumerate(joins):
        stream = catalog.streams[tokens[join.name].name.lower()]
        for at in range(join.name + 1, join.after):
            edits.instead[at] = SqlText()
        if as_stream:
            edits.instead[join.name] = _windowed(tokens, join, stream, catalog)
        else:
            edits.instead[join.name] = _lasting(tokens, join, stream, number)
            alias, until = quoted(join.alias), f"{quoted(join.alias)}.{UNTIL}{number}"
            since = f"{alias}.{quoted(stream.rowtime or '')}"
            time = piece_of(tokens, *join.time)
            edits.put(join.on[0], "(")
            edits.put(
                join.on[1], ") AND ", time, f" >= {since} AND ({until} IS NULL OR ", time, f" < {until})"
            )
    with gateway.instead(edits.text(0, len(tokens))) as read:
        yield read


def without_ours(relation: Relation) -> Relation:
    """Spark's result for such a text, without the added column."""
    if type(relation) is not Relation or relation.is_plan:
        return relation
    ours = [name for name in relation.columns if name.startswith(UNTIL)]
    return Relation(relation.df.drop(*ours), relation.plan(), relation._gateway) if ours else relation


def _lasting(tokens: TokenList, join: AsOf, stream: Stream, number: int) -> SqlText:
    """The versions with the rowtime of the next version of their key."""
    _refuse_untimed(tokens, join, stream)
    rowtime = quoted(stream.rowtime or "")
    # of versions of one rowtime the greatest by their other columns is the last, in all executions
    kinds = {field.name: field.dataType for field in stream.frame.schema}
    others = [quoted(name) for name in stream.columns if name != stream.rowtime and is_orderable(kinds[name])]
    keys, order = ", ".join(map(quoted, join.keys)), ", ".join([rowtime, *others])
    name = piece_of(tokens, join.name, join.name + 1)
    return SqlText.of(
        f"(SELECT *, LEAD({rowtime}) OVER (PARTITION BY {keys} ORDER BY {order}) AS {UNTIL}{number} FROM ",
        name,
        f") AS {quoted(join.alias)}",
    )


def _windowed(tokens: TokenList, join: AsOf, stream: Stream, catalog: Catalog) -> SqlText:
    """The last version of each key, at each instant."""
    _refuse_untimed(tokens, join, stream)
    column = tokens[join.time[1] - 1].name.lower()
    rowtimes = {(known.rowtime or "").lower() for known in catalog.streams.values()}
    if column not in rowtimes:
        raise NotSupportedError(
            f"a temporal join as of {tokens.text(*join.time)}, which is not a rowtime, in SELECT STREAM is"
            " not supported",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(*join.time),
            hint="name the rowtime of the other stream, or write a query with EMIT, which takes any column",
        )
    name = piece_of(tokens, join.name, join.name + 1)
    keys = ", ".join(map(quoted, join.keys))
    return SqlText.of(name, f" [PARTITION BY {keys} ROWS 1] AS {quoted(join.alias)}")


def _refuse_untimed(tokens: TokenList, join: AsOf, stream: Stream) -> None:
    if stream.rowtime is None:
        raise NotSupportedError(
            f"a temporal join with {tokens[join.name].name}, which has no rowtime column, is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=tokens.span(join.name, join.after),
            hint="declare the stream with a rowtime column",
        )

"""DESCRIBE and SHOW of views that Spark lacks: time-varying relations, and queries over whole streams."""

from __future__ import annotations

import re
from collections.abc import Callable

from windrow.relation import Relation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["described", "may_show_views", "shown"]

_SIGNS = re.compile(r"\s*(desc|describe|show\s+(columns|views|tables))\b", re.IGNORECASE)
_HIDDEN = "__windrow"


def may_show_views(text: str) -> bool:
    """Whether a text may show what a view has, or which views there are."""
    return _SIGNS.match(text) is not None


def described(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    statement: Range,
    run_query: Callable[[str], Relation],
) -> Relation | None:
    """DESCRIBE and SHOW COLUMNS of such a view; None for any other statement."""
    start, stop = statement
    at = start + 1
    shows = tokens.word(start) == "SHOW"
    if shows and not (tokens.word(at) == "COLUMNS" and tokens.word(at + 1) in ("IN", "FROM")):
        return None
    at += 2 if shows else tokens.word(at) == "TABLE"
    at += not shows and tokens.word(at) in ("EXTENDED", "FORMATTED")
    if at != stop - 1 or not tokens.is_name(at) or tokens[at].name.lower() not in _views(catalog):
        return None
    fields = run_query(f"SELECT * FROM {quoted(tokens[at].name)}").schema.fields
    rows = [(one.name,) if shows else (one.name, one.dataType.simpleString(), None) for one in fields]
    columns = "col_name STRING" if shows else "col_name STRING, data_type STRING, comment STRING"
    return Relation(gateway.spark.createDataFrame(rows, columns), "the columns of a view", gateway)


def shown(gateway: Gateway, catalog: Catalog, tokens: TokenList, statement: Range) -> Relation | None:
    """SHOW VIEWS and SHOW TABLES, also with such views; None for any other statement, or without any."""
    start, stop = statement
    views = [name for name in _views(catalog) if not name.startswith(_HIDDEN)]
    if tokens.word(start) != "SHOW" or tokens.word(start + 1) not in ("VIEWS", "TABLES") or not views:
        return None
    texts = [tokens[at].text[1:-1] for at in range(start, stop) if tokens[at].kind is TokenKind.STRING]
    patterns = [part.strip().replace("*", ".*") for text in texts for part in text.split("|")] or [".*"]
    found = [name for name in views if any(re.fullmatch(each, name, re.IGNORECASE) for each in patterns)]
    with gateway.translated():
        frame = gateway.spark.sql(tokens.text(start, stop))
    if found:
        ours = gateway.spark.createDataFrame([("", name, True) for name in sorted(found)], frame.schema)
        frame = frame.unionAll(ours)
    return Relation(frame, "the views of Spark and of the session", gateway)


def _views(catalog: Catalog) -> set[str]:
    return {*catalog.relations, *catalog.expanded}

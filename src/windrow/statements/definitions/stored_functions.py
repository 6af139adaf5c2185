"""Permanent functions over windows: ``CREATE FUNCTION f(x INT) RETURNS TABLE RETURN SELECT … WINDOW BY …``.

Spark's catalog has the function with its parameters and what it returns. Its body there is an error that says
who can evaluate it, and has the text of the function beside this.
"""

from __future__ import annotations

import json
import re

from windrow.algebra.names import verbatim
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.functions import stored_body
from windrow.statements.composed import RunQuery
from windrow.statements.definitions.stored_text import (
    called_name,
    ddl,
    literal,
    qualified,
    refuse_unstored,
    whole_name,
)
from windrow.syntax.definitions.sql_functions import (
    EACH,
    FunctionText,
    SqlFunction,
    for_each,
    parse_function,
)
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["KnownFunctions", "store_function"]

_MARK = "is a function of Windrow"
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class KnownFunctions:
    """The functions over windows that a text may call: those of the session, and permanent ones."""

    def __init__(self, gateway: Gateway, catalog: Catalog) -> None:
        self._gateway, self._own = gateway, catalog.sql_functions

    def called(self, tokens: TokenList, at: int) -> SqlFunction | None:
        """The function of which the name ends at a token; None where no such function is called."""
        name = called_name(tokens, at)
        if name is None:
            return None
        if name[-1].startswith(EACH):
            one = self._known((*name[:-1], name[-1].removeprefix(EACH)))
            return None if one is None else for_each(one)
        return self._known(name)

    def _known(self, name: tuple[str, ...]) -> SqlFunction | None:
        own = self._own.get(name[0].lower()) if len(name) == 1 else None
        return self._stored(name) if own is None else own

    def _stored(self, name: tuple[str, ...]) -> SqlFunction | None:
        bodies, key = self._gateway.stored_bodies, tuple(part.lower() for part in name)
        if key not in bodies:
            bodies[key] = stored_body(self._gateway.spark, name)
        body = bodies[key]
        if body is None or _MARK not in body:
            return None
        strings = [token.text for token in tokenize(body).tokens if token.kind is TokenKind.STRING]
        place = next(at for at, text in enumerate(strings) if _MARK in text)
        text = json.loads(_ESCAPED.sub(r"\1", strings[place + 1][1:-1]))
        tokens = tokenize(text)
        written = parse_function(tokens, (0, len(tokens)), lambda _: True)
        return None if written is None else written.function


def store_function(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    written: FunctionText,
    as_called: SqlText,
    run_query: RunQuery,
) -> Relation:
    """CREATE FUNCTION of a query with a clause of ours, of which a call is a query `as_called`.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for a function with parameters of the statement, of live streams, or in
        another catalog.
    AnalysisError
        ``INVALID_TEMP_OBJ_REFERENCE`` for what this session alone has; Spark's errors.
    """
    function, (first, last) = written.function, written.name
    name = [tokens[at].name for at in range(first, last, 2)]
    refuse_unstored(gateway, tokens, 0, name, written.body, "a permanent function")
    body = qualified(gateway, catalog, tokens, written.body, "a permanent function")
    with gateway.instead(as_called) as read:
        planned = run_query(read)
    if isinstance(planned, LiveRelation):
        hint = "create a TEMPORARY VIEW of the query"
        raise unsupported_statement(tokens, 0, "a function over a live stream", hint)
    shown = ".".join(whole_name(gateway, name))
    plan = f"a permanent function of windows: {shown}"
    if gateway.plan_only:
        return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), plan, gateway)
    start, stop = tokens[written.body[0]].start, tokens[written.body[1] - 1].stop
    text = f"CREATE FUNCTION {tokens.sql[tokens[last - 1].start : start]}{body}{tokens.sql[stop:]}"
    message = (
        f"{shown} {_MARK}, which Spark alone cannot evaluate: call it by windrow.Session(spark).sql(…), or"
        " store what it returns with CREATE TABLE … AS SELECT"
    )
    fails = f"raise_error(element_at(array({literal(message)}, {literal(json.dumps(text))}), 1))"
    head = verbatim(tokens, tokens[0].start, tokens[written.return_at].stop)
    frame = gateway.sql(SqlText.of(head, " ", _failing(function, planned, fails)))
    return Relation(frame, plan, gateway)


def _failing(function: SqlFunction, planned: Relation, fails: str) -> str:
    """The body of a function that returns such columns and fails."""
    if function.columns is not None and not function.returns_table:
        ((_, kind),) = function.columns
        return f"CAST({fails} AS {kind})"
    columns = function.columns or [(field.name, ddl(field.dataType)) for field in planned.schema.fields]
    nulls = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(name)}" for name, kind in columns)
    return f"SELECT {nulls} FROM VALUES (1) WHERE {fails} IS NULL"

"""SQL functions over windows and matches: in a session, each call stands for the function's query.

    CREATE TEMPORARY FUNCTION colder(least INT) RETURNS TABLE (day INT)
    RETURN SELECT s.day FROM readings WINDOW BY w AS (… START AS s WHEN s.val < least …)

    SELECT * FROM colder(25)
      →  SELECT * FROM (SELECT CAST(day AS INT) AS day FROM (SELECT CAST(25 AS INT) AS least) AS colder,
                        LATERAL (SELECT s.day FROM readings WINDOW BY …) AS __result(day)) AS colder

The parameters are columns of a query around, so columns of the function's own relations hide them, as in
Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from windrow.algebra.names import piece_of, verbatim
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.composed import RunQuery
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sql_functions import FunctionText, SqlFunction, arguments_of, parse_function
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["create_or_drop_function", "may_call_functions", "with_functions"]

_RESULT, _COLUMN = "__result", "__column"
_ABOUT_FUNCTIONS = re.compile(r"\s*(?:create|drop)\b[^(]*?\bfunction\b", re.IGNORECASE)


def may_call_functions(text: str, catalog: Catalog) -> bool:
    """Whether a text may call such a function."""
    lower = text.lower()
    return any(name in lower for name in catalog.sql_functions)


@contextmanager
def with_functions(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[str | None]:
    """The statement with the queries of such functions in place of their calls; None if it calls none.

    Raises
    ------
    AnalysisError
        ``WRONG_NUM_ARGS``.
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for arguments that are no constants.
    """
    tokens = tokenize(text)
    calls = list(_calls(tokens, catalog.sql_functions))
    if not calls:
        yield None
        return
    parts: list[SqlText | Piece] = []
    done = 0
    for at in calls:
        start, stop = tokens[at].start, tokens[tokens.partner[at + 1]].stop
        query = _of_call(gateway, tokens, at, catalog.sql_functions[tokens[at].name.lower()])
        parts += [verbatim(tokens, done, start), Piece(query, tokens.sql, start, stop - start)]
        done = stop
    with gateway.instead(SqlText.of(*parts, verbatim(tokens, done, len(text)))) as read:
        yield read


def _calls(tokens: TokenList, functions: Mapping[str, SqlFunction]) -> Iterator[int]:
    """The tokens at which calls begin, none inside of another."""
    stop = -1
    for at in range(len(tokens)):
        is_call = tokens[at].is_name and tokens.is_symbol(at + 1, "(") and not tokens.is_symbol(at - 1, ".")
        if at > stop and is_call and tokens[at].name.lower() in functions:
            stop = tokens.partner[at + 1]
            yield at


def _of_call(gateway: Gateway, tokens: TokenList, at: int, function: SqlFunction) -> str:
    """The query that a call stands for, in brackets."""
    arguments = arguments_of(tokens, at, function)
    values = []
    for one, argument in zip(function.parameters, arguments, strict=True):
        if not isinstance(argument, str):
            _refuse_columns(gateway, tokens, argument, function)
        value = argument if isinstance(argument, str) else tokens.text(*argument)
        values.append(f"CAST({value} AS {one.kind}) AS {quoted(one.name)}")
    result, listed = f"({function.query}) AS {_RESULT}{_names(function)}", f"{_RESULT}.*"
    if function.columns is not None:
        listed = ", ".join(
            f"CAST({_RESULT}.{_COLUMN}{number} AS {kind}) AS {quoted(column)}"
            for number, (column, kind) in enumerate(function.columns)
        )
    name = quoted(function.name)
    source = f"(SELECT {', '.join(values)}) AS {name}, LATERAL {result}" if values else result
    query = f"(SELECT {listed} FROM {source})"
    close = tokens.partner[at + 1] + 1
    is_named = alias_after(tokens, close, len(tokens)) is not None
    return query if is_named or not begins_relation(tokens, at) else f"{query} AS {name}"


def _names(function: SqlFunction) -> str:
    """Names of ours for the columns of the query, where the function names what it returns."""
    if function.columns is None:
        return ""
    return f"({', '.join(f'{_COLUMN}{number}' for number in range(len(function.columns)))})"


def _refuse_columns(gateway: Gateway, tokens: TokenList, argument: Range, function: SqlFunction) -> None:
    """Refuse an argument that reads columns: the function's windows are made once for each of its values."""
    try:
        gateway.sql(SqlText.of("SELECT ", piece_of(tokens, *argument)))
    except WindrowError as error:
        if not error.condition.startswith("UNRESOLVED_COLUMN"):
            return  # calls of such functions, and what is wrong anyway: the statement itself reports it
        raise NotSupportedError(
            f"function {function.name}, which makes windows, takes constants and no columns",
            condition="UNSUPPORTED_QUERY",
            sql=tokens.sql,
            span=tokens.span(*argument),
            hint="write its query behind LATERAL, where it may read columns",
        ) from None


def create_or_drop_function(
    gateway: Gateway,
    catalog: Catalog,
    text: str,
    run_query: RunQuery,
    is_ours: Callable[[str], bool],
) -> Relation | None:
    """CREATE TEMPORARY FUNCTION of a query with a clause of ours, or DROP of one; None for other statements.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for a function that is not temporary, or of a live stream.
    AnalysisError
        ``ROUTINE_ALREADY_EXISTS``; ``RECURSIVE_FUNCTION``; the errors of the query.
    """
    if _ABOUT_FUNCTIONS.match(text) is None:
        return None
    tokens = tokenize(text)
    end = len(tokens) - tokens.is_symbol(len(tokens) - 1, ";")
    if tokens.word(0) == "DROP":
        name = tokens[end - 1].name.lower() if tokens[end - 1].is_name else ""
        if tokens.word(1) not in ("TEMP", "TEMPORARY") or name not in catalog.sql_functions:
            return None
        if not gateway.checks:
            del catalog.sql_functions[name]
        return _done(gateway, f"drops the function {name}")
    written = parse_function(tokens, (0, end))
    if written is None or not is_ours(written.function.query):
        return None
    return _create(gateway, catalog, tokens, written, run_query)


def _create(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, written: FunctionText, run_query: RunQuery
) -> Relation:
    function, name = written.function, written.function.name.lower()
    if not written.words.is_temporary:
        hint = "CREATE TEMPORARY FUNCTION, in each session"
        raise unsupported_statement(tokens, 0, "a function over windows that is not temporary", hint)
    if name in catalog.sql_functions and not written.words.replaces:
        if written.words.if_not_exists:
            return _done(gateway, f"the function {function.name} exists")
        raise AnalysisError(
            f"function {function.name} exists",
            condition="ROUTINE_ALREADY_EXISTS",
            sqlstate="42723",
            sql=tokens.sql,
            span=tokens.span(*written.query),
            hint="write CREATE OR REPLACE TEMPORARY FUNCTION",
        )
    for at in range(*written.query):
        if tokens[at].is_name and tokens[at].name.lower() == name and tokens.is_symbol(at + 1, "("):
            raise AnalysisError(
                f"function {function.name} calls itself",
                condition="RECURSIVE_FUNCTION",
                sqlstate="42K0H",
                sql=tokens.sql,
                span=tokens[at].span,
                hint="give it another name",
            )
    with gateway.instead(_as_called(tokens, written)) as read:
        planned = run_query(read)
    if isinstance(planned, LiveRelation):
        hint = "create a TEMPORARY VIEW of the query"
        raise unsupported_statement(tokens, 0, "a function of a live stream", hint)
    if not gateway.plan_only:
        catalog.sql_functions[name] = function
    return _done(gateway, f"a function of windows: {function.name}")


def _as_called(tokens: TokenList, written: FunctionText) -> SqlText:
    """The query as a call has it, with NULL for each parameter, and its place in the statement."""
    function, span = written.function, tokens.span(*written.query)
    nulls = [f"CAST(NULL AS {one.kind}) AS {quoted(one.name)}" for one in function.parameters]
    query = SqlText.of("(", verbatim(tokens, span.start, span.stop), f") AS {_RESULT}{_names(function)}")
    if not nulls:
        return SqlText.of("SELECT * FROM ", query)
    around = f"(SELECT {', '.join(nulls)}) AS {quoted(function.name)}"
    return SqlText.of(f"SELECT {_RESULT}.* FROM {around}, LATERAL ", query)


def _done(gateway: Gateway, plan: str) -> Relation:
    return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), plan, gateway)

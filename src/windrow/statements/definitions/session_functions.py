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
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.clauses_over_variables import clauses_over_variables
from windrow.errors import AnalysisError, WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.analysis.own_aggregates import own_aggregates
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.statements.composed import RunQuery
from windrow.statements.definitions.called_queries import (
    COLUMN,
    RESULT,
    names_of_columns,
    query_of_call,
    refuse_unknown_columns,
)
from windrow.statements.definitions.calls.calls_beside_lambdas import calls_beside_lambdas
from windrow.statements.definitions.calls.calls_in_aggregates import calls_in_aggregates
from windrow.statements.definitions.calls.calls_in_clauses import calls_in_clauses
from windrow.statements.definitions.calls.calls_in_lambdas import calls_in_lambdas
from windrow.statements.definitions.calls.calls_in_pipes import calls_in_pipe
from windrow.statements.definitions.calls.calls_in_pivots import calls_in_pivot
from windrow.statements.definitions.calls.calls_of_rows_around import calls_of_rows_around
from windrow.statements.definitions.calls.calls_of_two_queries import calls_of_two_queries
from windrow.statements.definitions.calls.calls_over_selects import calls_over_select
from windrow.statements.definitions.function_calls import (
    every_call,
    outermost_calls,
    select_around,
)
from windrow.statements.definitions.names_of_with import with_other_names
from windrow.statements.definitions.stored_functions import KnownFunctions, store_function
from windrow.syntax.definitions.sql_functions import FunctionText, SqlFunction, parse_function
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.select_list import aliased
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["calls_functions", "create_or_drop_function", "may_call_functions", "with_functions"]

_CALL = re.compile(r"[\w`]\s*\(")
_QUERY = re.compile(
    r"(?:[\s(]|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
    r"(?:select|with|from|values|table|explain|insert|create|cache|set|merge|update|delete|begin|[idr]stream)\b",
    re.IGNORECASE,
)
_ABOUT_FUNCTIONS = re.compile(r"\s*(?:create|drop)\b[^(]*?\bfunction\b", re.IGNORECASE)


def may_call_functions(text: str, catalog: Catalog) -> bool:
    """Whether a text may call such a function."""
    lower = text.lower()
    is_query = _QUERY.match(text) is not None  # which alone may call permanent ones
    return _CALL.search(text) is not None and (
        is_query or any(name in lower for name in catalog.sql_functions)
    )


def calls_functions(gateway: Gateway, text: str, catalog: Catalog) -> bool:
    """Whether a text calls such a function."""
    functions = KnownFunctions(gateway, catalog)
    return _CALL.search(text) is not None and next(every_call(tokenize(text), functions), None) is not None


@contextmanager
def with_functions(
    gateway: Gateway, catalog: Catalog, text: str, run_query: RunQuery
) -> Iterator[str | None]:
    """The statement with the queries of such functions in place of their calls; None if it calls none.

    It may have further calls, for which `run_query` plans what is computed before them.

    Raises
    ------
    AnalysisError
        ``WRONG_NUM_ARGS``.
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for arguments of columns that a query of these values alone cannot read, and
        for queries of WITH that would be taken for what the function reads,
        ``NONDETERMINISTIC_QUERY`` for columns of rows that may be others when they are read again.
    """
    tokens, functions = tokenize(text), KnownFunctions(gateway, catalog)
    calls = list(outermost_calls(tokens, functions))
    if not calls:
        yield None
        return

    def aggregates() -> frozenset[str]:
        return own_aggregates(gateway, tokens)

    def is_constant(arguments: SqlText) -> bool:
        try:
            gateway.sql(SqlText.of("SELECT ", arguments))
        except WindrowError:
            return False
        return True

    def columns_of(query: SqlText) -> list[str]:
        with gateway.instead(query) as read:
            return run_query(read).columns

    above = (
        calls_in_lambdas(tokens, functions)
        or calls_in_pipe(tokens, functions)
        or calls_in_pivot(tokens, functions)
        or calls_of_rows_around(tokens, functions, columns_of)
        or calls_of_two_queries(tokens, functions, columns_of)
        or calls_in_clauses(tokens, functions, aggregates, is_constant, columns_of)
        or calls_in_aggregates(tokens, functions, aggregates)
        or calls_over_select(tokens, functions, columns_of)
        or calls_beside_lambdas(tokens, functions)
        or clauses_over_variables(tokens, calls)
        or with_other_names(tokens, functions)
    )
    if above is not None:
        with gateway.instead(above) as read:
            yield read
        return
    edits: dict[tuple[int, int], SqlText] = {}
    for start, stop in {item for at in calls if (item := _unnamed_item(tokens, at)) is not None}:
        named = SqlText.of(" AS ", quoted(tokens.text(start, stop)), " ")
        edits[tokens[stop - 1].stop, 0] = named
    for at in calls:
        (first, end), query = query_of_call(gateway, tokens, at, functions)
        start, stop = tokens[first].start, tokens[end - 1].stop
        edits = {place: text for place, text in edits.items() if not start <= place[0] < stop}
        edits[start, stop - start] = SqlText.of(Piece(query, tokens.sql, start, stop - start))
    parts: list[SqlText] = []
    done = 0
    for (start, length), written in sorted(edits.items(), key=lambda edit: edit[0]):
        parts += [verbatim(tokens, done, start), written]
        done = start + length
    try:
        with gateway.instead(SqlText.of(*parts, verbatim(tokens, done, len(text)))) as read:
            yield read
    except WindrowError as error:
        if error.sqlstate == "42703":  # a parameter may be unknown as its value is
            for at in calls:
                refuse_unknown_columns(tokens, at, functions, columns_of)
        raise


def _unnamed_item(tokens: TokenList, call: int) -> Range | None:
    """The item of SELECT with a call, if it has no alias: Spark would name it after a subquery there."""
    select = select_around(tokens, call)
    items = [] if select is None else tokens.split(*select.items)
    found = next((item for item in items if item[0] <= call < item[1]), None)
    return None if found is None or aliased(tokens, found) is not None else found


def create_or_drop_function(
    gateway: Gateway,
    catalog: Catalog,
    text: str,
    run_query: RunQuery,
    is_ours: Callable[[str], bool],
) -> Relation | None:
    """CREATE FUNCTION of a query with a clause of ours, or DROP of one; None for other statements.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` for a function of a live stream, and as :func:`store_function`.
    AnalysisError
        ``ROUTINE_ALREADY_EXISTS``; ``RECURSIVE_FUNCTION``; the errors of the query.
    """
    if _ABOUT_FUNCTIONS.match(text) is None:
        return None
    gateway.stored_bodies.clear()
    tokens = tokenize(text)
    end = len(tokens) - tokens.is_symbol(len(tokens) - 1, ";")
    if tokens.word(0) == "DROP":
        name = tokens[end - 1].name.lower() if tokens[end - 1].is_name else ""
        if tokens.word(1) not in ("TEMP", "TEMPORARY") or name not in catalog.sql_functions:
            return None
        if not gateway.checks:
            del catalog.sql_functions[name]
        return _done(gateway, f"drops the function {name}")
    written = parse_function(tokens, (0, end), is_ours)
    if written is None:
        return None
    return _create(gateway, catalog, tokens, written, run_query)


def _create(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, written: FunctionText, run_query: RunQuery
) -> Relation:
    function, name = written.function, written.function.name.lower()
    is_temporary = written.words.is_temporary
    if is_temporary and written.name[1] - written.name[0] > 1:
        hint = "leave out the database, or TEMPORARY"
        raise unsupported_statement(tokens, 0, "a temporary function in a database", hint)
    if is_temporary and name in catalog.sql_functions and not written.words.replaces:
        if written.words.if_not_exists:
            return _done(gateway, f"the function {function.name} exists")
        raise AnalysisError(
            f"function {function.name} already exists",
            condition="ROUTINE_ALREADY_EXISTS",
            sqlstate="42723",
            sql=tokens.sql,
            span=tokens.span(*written.body),
            hint="write CREATE OR REPLACE TEMPORARY FUNCTION",
        )
    for at in range(*written.body):
        if tokens[at].is_name and tokens[at].name.lower() == name and tokens.is_symbol(at + 1, "("):
            raise AnalysisError(
                f"function {function.name} calls itself",
                condition="RECURSIVE_FUNCTION",
                sqlstate="42K0H",
                sql=tokens.sql,
                span=tokens[at].span,
                hint="choose another name",
            )
    if not is_temporary:
        with _naming_parameters(function):
            return store_function(gateway, catalog, tokens, written, _as_called(tokens, written), run_query)
    with _naming_parameters(function), gateway.instead(_as_called(tokens, written)) as read:
        planned = run_query(read)
    if isinstance(planned, LiveRelation):
        hint = "create a TEMPORARY VIEW of the query"
        raise unsupported_statement(tokens, 0, "a function over a live stream", hint)
    if not gateway.plan_only:
        catalog.sql_functions[name] = function
    return _done(gateway, f"a function of windows: {function.name}")


@contextmanager
def _naming_parameters(function: SqlFunction) -> Iterator[None]:
    """Say what to do about a parameter that a column, or the window, hides, where that is an error."""
    try:
        yield
    except WindrowError as error:
        names = {one.name.lower() for one in function.parameters}
        fragments = [context.fragment().strip("`").lower() for context in error.getQueryContext()]
        name = next((fragment for fragment in fragments if fragment in names), None)
        if name is not None and error.condition in ("UNKNOWN_VARIABLE", "VARIABLE_OUT_OF_SCOPE"):
            error.hint = f"rename the parameter {name}, or write {function.name}.{name}"
        raise


def _as_called(tokens: TokenList, written: FunctionText) -> SqlText:
    """The body as a call has it, with NULL for each parameter, and its place in the statement."""
    function, span = written.function, tokens.span(*written.body)
    body = verbatim(tokens, span.start, span.stop)
    nulls = [f"CAST(NULL AS {one.kind}) AS {quoted(one.name)}" for one in function.parameters]
    around = f"(SELECT {', '.join(nulls)}) AS {quoted(function.name)}" if nulls else ""
    if function.is_expression:
        return SqlText.of("SELECT (", body, ") AS ", quoted(COLUMN), f" FROM {around}" if around else "")
    query = SqlText.of("(", body, f") AS {RESULT}{names_of_columns(function)}")
    if not around:
        return SqlText.of("SELECT * FROM ", query)
    return SqlText.of(f"SELECT {RESULT}.* FROM {around}, LATERAL ", query)


def _done(gateway: Gateway, plan: str) -> Relation:
    return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), plan, gateway)

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
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.algebra.names import piece_of, verbatim
from windrow.algebra.rewriting.outer_values import filters, refuse_changing
from windrow.algebra.scopes import VisibleRelations, scopes
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import rows_change_by_run
from windrow.statements.composed import RunQuery
from windrow.statements.definitions.stored_functions import KnownFunctions, store_function
from windrow.statements.definitions.stored_text import called_name
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.definitions.sql_functions import FunctionText, SqlFunction, arguments_of, parse_function
from windrow.syntax.expression_nodes import names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries, is_set_operator, level_around, visible_ctes
from windrow.syntax.select_list import aliased, without_distinct
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["calls_functions", "create_or_drop_function", "may_call_functions", "with_functions"]

_RESULT, _COLUMN, _ROW, _ARGUMENT = "__result", "__column", "__returned", "__argument"
_AFTER_SELECT = ("FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "LIMIT", "OFFSET")
_CALL = re.compile(r"[\w`]\s*\(")
_QUERY = re.compile(
    r"(?:[\s(]|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*"
    r"(?:select|with|from|values|table|explain|insert|create|cache|set|merge|update|delete|[idr]stream)\b",
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
    return _CALL.search(text) is not None and next(_every_call(tokenize(text), functions), None) is not None


@contextmanager
def with_functions(gateway: Gateway, catalog: Catalog, text: str) -> Iterator[str | None]:
    """The statement with the queries of such functions in place of their calls; None if it calls none.

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
    calls = list(_calls(tokens, functions))
    if not calls:
        yield None
        return
    unnamed = {item[1]: item for at in calls if (item := _unnamed_item(tokens, at)) is not None}
    edits: list[tuple[int, int, SqlText]] = [
        (tokens[stop - 1].stop, 0, SqlText.of(" AS ", quoted(tokens.text(start, stop)), " "))
        for start, stop in unnamed.values()
    ]
    for at in calls:
        start, stop = tokens[_first(tokens, at)].start, tokens[tokens.partner[at + 1]].stop
        query = _of_call(gateway, tokens, at, functions)
        edits.append((start, stop - start, SqlText.of(Piece(query, tokens.sql, start, stop - start))))
    parts: list[SqlText] = []
    done = 0
    for start, length, written in sorted(edits, key=lambda edit: edit[0]):
        parts += [verbatim(tokens, done, start), written]
        done = start + length
    with gateway.instead(SqlText.of(*parts, verbatim(tokens, done, len(text)))) as read:
        yield read


def _calls(tokens: TokenList, functions: KnownFunctions) -> Iterator[int]:
    """The tokens with the last part of a name that is called, none inside of another call."""
    stop = -1
    for at in _every_call(tokens, functions):
        if at > stop:
            stop = tokens.partner[at + 1]
            yield at


def _every_call(tokens: TokenList, functions: KnownFunctions) -> Iterator[int]:
    """The same, also of calls in the arguments of others."""
    return (at for at in range(len(tokens)) if functions.called(tokens, at) is not None)


def _first(tokens: TokenList, call: int) -> int:
    """The token at which the name begins that is called."""
    return call - 2 * len(called_name(tokens, call) or ()) + 2


def _unnamed_item(tokens: TokenList, call: int) -> Range | None:
    """The item of SELECT with a call, if it has no alias: Spark would name it after a subquery there."""
    if begins_relation(tokens, _first(tokens, call)):
        return None
    inside = call
    while True:
        start, stop = level_around(tokens, inside)
        level = [at for at in tokens.level(start, stop) if tokens.parent[at] == tokens.parent[inside]]
        selects = [at for at in level if at < inside and tokens.word(at) == "SELECT"]
        if selects or tokens.parent[inside] < 0:
            break
        inside = tokens.parent[inside]
    if not selects:
        return None
    ends = (at for at in level if at > selects[-1] and _ends_select(tokens, at))
    listed = without_distinct(tokens, (selects[-1] + 1, next(ends, stop)))
    found = next((item for item in tokens.split(*listed) if item[0] <= call < item[1]), None)
    return None if found is None or aliased(tokens, found) is not None else found


def _ends_select(tokens: TokenList, at: int) -> bool:
    """Whether the list of SELECT ends before a token."""
    word = tokens.word(at)
    is_distinct = tokens.word(at - 1) == "DISTINCT" and tokens.word(at - 2) in ("IS", "NOT")
    return (
        (word in _AFTER_SELECT and not is_distinct)
        or (word == "ORDER" and tokens.word(at + 1) == "BY")
        or is_set_operator(tokens, at)
        or any(tokens.is_symbol(at, symbol) for symbol in ("|>", ";"))
    )


def _of_call(gateway: Gateway, tokens: TokenList, at: int, functions: KnownFunctions) -> str:
    """The query that a call stands for, in brackets."""
    function = functions.called(tokens, at)
    assert function is not None
    _refuse_hidden(tokens, at, function)
    arguments = arguments_of(tokens, at, function)
    given = [argument for argument in arguments if not isinstance(argument, str)]
    values = [
        SqlText.of("CAST(", one if isinstance(one, str) else piece_of(tokens, *one), f" AS {parameter.kind})")
        for one, parameter in zip(arguments, function.parameters, strict=True)
    ]
    if any(_reads_columns(gateway, tokens, argument, functions) for argument in given):
        source = _around(gateway, tokens, at, function, given)
        source = _filtered(tokens, at, functions, source)
        query = _for_each_value(function, values, source)
    else:
        query = SqlText.of("(SELECT ", _listed(function), _from(function, values, SqlText()), ")")
    close = tokens.partner[at + 1] + 1
    is_named = alias_after(tokens, close, len(tokens)) is not None
    is_relation = begins_relation(tokens, _first(tokens, at))
    named = "" if is_named or not is_relation else f" AS {quoted(function.name)}"
    return query.render() + named


def _refuse_hidden(tokens: TokenList, at: int, function: SqlFunction) -> None:
    """Refuse queries of WITH with the name of a relation that the function reads from elsewhere."""
    named = {cte.name.lower(): cte for cte in visible_ctes(tokens, at)}
    body = tokenize(function.body)
    for index in range(len(body)):
        name = body[index].name.lower() if body[index].is_name else ""
        is_table = not body.is_symbol(index + 1, ".") and not body.is_symbol(index + 1, "(")
        if name not in named or not is_table or not begins_relation(body, index):
            continue
        if all(cte.name.lower() != name for cte in visible_ctes(body, index)):
            raise NotSupportedError(
                f"a query of WITH has the name {name} of what function {function.name} reads elsewhere",
                condition="UNSUPPORTED_QUERY",
                sql=tokens.sql,
                span=tokens.span(*named[name].item),
                hint="rename it",
            )


def _listed(function: SqlFunction) -> str:
    """What a function returns, as items of SELECT."""
    if function.columns is None:
        return f"{_RESULT}.*"
    return ", ".join(
        f"CAST({_value(function, number)} AS {kind}) AS {quoted(column)}"
        for number, (column, kind) in enumerate(function.columns)
    )


def _value(function: SqlFunction, number: int) -> str:
    return f"({function.body})" if function.is_expression else f"{_RESULT}.{_COLUMN}{number}"


def _from(function: SqlFunction, values: Sequence[SqlText], source: SqlText) -> SqlText:
    """FROM with the parameters, whose values are of the rows of `source`, and the function's query.

    The body of an expression reads the parameters where it stands.
    """
    named = [
        SqlText.of(value, f" AS {quoted(one.name)}")
        for value, one in zip(values, function.parameters, strict=True)
    ]
    relations = []
    if named:
        distinct = "DISTINCT " if source.parts else ""
        relations.append(
            SqlText.of(
                f"(SELECT {distinct}", SqlText.join(", ", named), source, f") AS {quoted(function.name)}"
            )
        )
    if not function.is_expression:
        result = f"({function.body}) AS {_RESULT}{_names(function)}"
        relations.append(SqlText.of("LATERAL " if named else "", result))
    return SqlText.of(" FROM ", SqlText.join(", ", relations)) if relations else SqlText()


def _for_each_value(function: SqlFunction, values: Sequence[SqlText], source: SqlText) -> SqlText:
    """The function's rows for the values that a row around has, of those for all values there."""
    arguments = [f"{quoted(function.name)}.{quoted(one.name)}" for one in function.parameters]
    listed = [f"{one} AS {_ARGUMENT}{number}" for number, one in enumerate(arguments)]
    conditions = [SqlText.of(f"{_ARGUMENT}{number} <=> ", value) for number, value in enumerate(values)]
    return SqlText.of(
        f"(SELECT {_ROW}.* FROM (SELECT {', '.join(listed)}, struct({_listed(function)}) AS {_ROW}",
        _from(function, values, SqlText.of(" FROM ", source)),
        ") WHERE ",
        SqlText.join(" AND ", conditions),
        ")",
    )


def _names(function: SqlFunction) -> str:
    """Names of ours for the columns of the query, where the function names what it returns."""
    if function.columns is None:
        return ""
    return f"({', '.join(f'{_COLUMN}{number}' for number in range(len(function.columns)))})"


def _reads_columns(gateway: Gateway, tokens: TokenList, argument: Range, functions: KnownFunctions) -> bool:
    """Whether an argument reads columns, or rows: ``count(*)`` has no column."""
    if _reads_rows(tokens, argument):
        return True
    if any(argument[0] <= at < argument[1] for at in _every_call(tokens, functions)):
        if next(names_in(parse_expression(tokens, *argument)), None) is None:
            return False
        raise NotSupportedError(
            "a call of a function that makes windows, in an argument that reads columns, is not supported",
            condition="UNSUPPORTED_QUERY",
            sql=tokens.sql,
            span=tokens.span(*argument),
            hint="store what it returns in a table first: CREATE TABLE … AS SELECT",
        )
    try:
        gateway.sql(SqlText.of("SELECT ", piece_of(tokens, *argument)))
    except WindrowError as error:
        return error.condition.startswith("UNRESOLVED_COLUMN")  # else the statement itself reports it
    return False


def _around(
    gateway: Gateway,
    tokens: TokenList,
    at: int,
    function: SqlFunction,
    arguments: Sequence[Range],
) -> SqlText:
    """The relations of which the arguments of a call read columns."""
    scope = _scope(tokens, at)
    source = None if scope is None else scope.source
    if source is None or any(_reads_rows(tokens, one) for one in arguments):
        first = _first(tokens, at)
        in_from = begins_relation(tokens, first) and tokens.word(first - 1) != "LATERAL"
        raise NotSupportedError(
            f"function {function.name}, which makes windows, takes columns of relations in FROM alone",
            condition="UNSUPPORTED_QUERY",
            sql=tokens.sql,
            span=tokens.span(*arguments[0]),
            hint="write LATERAL before it" if in_from else "compute them in a subquery in FROM",
        )
    refuse_changing(tokens, source, visible_ctes(tokens, at))
    found = piece_of(tokens, *source)
    if _changes(gateway, found):
        raise NotSupportedError(
            f"the query around returns other rows each time, and function {function.name} reads them again",
            condition="NONDETERMINISTIC_QUERY",
            sql=tokens.sql,
            span=tokens.span(*source),
            hint="store these rows in a table first",
        )
    return found


def _scope(tokens: TokenList, at: int) -> VisibleRelations | None:
    """The relations around a call."""
    clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
    return next(scopes(tokens, _first(tokens, at), clauses), None)


def _filtered(tokens: TokenList, at: int, functions: KnownFunctions, source: SqlText) -> SqlText:
    """The relations around a call with what WHERE says of them, but for conditions with other calls."""
    scope, calls = _scope(tokens, at), set(_every_call(tokens, functions))
    assert scope is not None
    where = filters(tokens, scope, lambda start, stop: piece_of(tokens, start, stop), calls)
    return SqlText.of(source, " WHERE ", SqlText.join(" AND ", where)) if where else source


def _changes(gateway: Gateway, source: SqlText) -> bool:
    """Whether relations have other rows in each run; of clauses of ours and queries of WITH not known."""
    try:
        return rows_change_by_run(gateway.sql(SqlText.of("SELECT * FROM ", source)))
    except WindrowError:
        return False


def _reads_rows(tokens: TokenList, part: Range) -> bool:
    """Whether a part is computed over several rows."""
    has_over = any(tokens.word(at) == "OVER" and tokens.is_symbol(at - 1, ")") for at in range(*part))
    return has_over or calls_aggregate(tokens, part)


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
        hint = "leave its database out, or TEMPORARY"
        raise unsupported_statement(tokens, 0, "a temporary function of a database", hint)
    if is_temporary and name in catalog.sql_functions and not written.words.replaces:
        if written.words.if_not_exists:
            return _done(gateway, f"the function {function.name} exists")
        raise AnalysisError(
            f"function {function.name} exists",
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
                hint="give it another name",
            )
    if not is_temporary:
        return store_function(gateway, catalog, tokens, written, _as_called(tokens, written), run_query)
    with gateway.instead(_as_called(tokens, written)) as read:
        planned = run_query(read)
    if isinstance(planned, LiveRelation):
        hint = "create a TEMPORARY VIEW of the query"
        raise unsupported_statement(tokens, 0, "a function of a live stream", hint)
    if not gateway.plan_only:
        catalog.sql_functions[name] = function
    return _done(gateway, f"a function of windows: {function.name}")


def _as_called(tokens: TokenList, written: FunctionText) -> SqlText:
    """The body as a call has it, with NULL for each parameter, and its place in the statement."""
    function, span = written.function, tokens.span(*written.body)
    body = verbatim(tokens, span.start, span.stop)
    nulls = [f"CAST(NULL AS {one.kind}) AS {quoted(one.name)}" for one in function.parameters]
    around = f"(SELECT {', '.join(nulls)}) AS {quoted(function.name)}" if nulls else ""
    if function.is_expression:
        return SqlText.of("SELECT (", body, ") AS ", quoted(_COLUMN), f" FROM {around}" if around else "")
    query = SqlText.of("(", body, f") AS {_RESULT}{_names(function)}")
    if not around:
        return SqlText.of("SELECT * FROM ", query)
    return SqlText.of(f"SELECT {_RESULT}.* FROM {around}, LATERAL ", query)


def _done(gateway: Gateway, plan: str) -> Relation:
    return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), plan, gateway)

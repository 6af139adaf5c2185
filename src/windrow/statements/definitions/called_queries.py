"""The query that a call of a SQL function over windows stands for.

SELECT f.day, t.n FROM t, LATERAL colder(t.n) AS f
→  SELECT f.day, t.n FROM t, LATERAL (
SELECT __returned.* FROM (
SELECT colder.__argument0, struct(CAST(__result.__column0 AS INT) AS day) AS __returned
FROM (SELECT DISTINCT CAST(t.n AS INT) AS least, CAST(t.n AS INT) AS __argument0 FROM t) AS colder,
LATERAL (SELECT s.day FROM readings WINDOW BY …) AS __result(__column0))
WHERE __argument0 <=> CAST(t.n AS INT)) AS f
"""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.outer_values import filters, refuse_changing
from windrow.algebra.scopes import VisibleRelations, scopes
from windrow.errors import NotSupportedError, WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import rows_change_by_run
from windrow.statements.definitions.calls.calls_over_selects import ColumnsOf
from windrow.statements.definitions.function_calls import (
    alone_in_lateral,
    every_call,
    first_of_call,
    is_of_relation,
    lambda_around,
    reads_rows,
    select_around,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.statements.definitions.stored_text import literal
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.definitions.sql_functions import EACH, GIVEN, SqlFunction, arguments_of
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.operands import may_be_operand
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries, visible_ctes
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import opens_query, own_relations, subqueries
from windrow.syntax.tokens import TokenList

__all__ = ["COLUMN", "RESULT", "names_of_columns", "query_of_call", "refuse_unknown_columns"]

RESULT, COLUMN, _ROW, _ARGUMENT, _ELEMENT = "__result", "__column", "__returned", "__argument", "__element"
"""Names of the relation that a function's query is, and of its columns."""


def query_of_call(
    gateway: Gateway, tokens: TokenList, at: int, functions: KnownFunctions
) -> tuple[Range, str]:
    """The query that a call stands for, in brackets, and the tokens that it replaces: the call, or all of
    ``(SELECT f(t.n) AS c)`` after LATERAL.

    Raises
    ------
    AnalysisError
        ``WRONG_NUM_ARGS``, ``AMBIGUOUS_REFERENCE``, ``UNRESOLVED_COLUMN…``.
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for arguments of what a query of these values alone cannot read,
        ``NONDETERMINISTIC_QUERY`` for columns of rows that may be others when they are read again.
    """
    function = functions.called(tokens, at)
    assert function is not None
    select = select_around(tokens, at)
    if select is not None and select.is_in("ORDER", at):
        raise _refused(tokens, at, function, "ORDER BY", "select it with a name, and order by that name")
    if lambda_around(tokens, at) is not None:
        hint = "call it in a subquery in FROM"
        raise _refused(tokens, at, function, "a lambda function", hint)
    arguments = arguments_of(tokens, at, function)
    given = [argument for argument in arguments if not isinstance(argument, str)]
    values = [
        SqlText.of("CAST(", one if isinstance(one, str) else piece_of(tokens, *one), f" AS {parameter.kind})")
        for one, parameter in zip(arguments, function.parameters, strict=True)
    ]
    if any(_reads_columns(gateway, tokens, argument, functions) for argument in given):
        source = _around(gateway, tokens, at, function, given)
        source = _filtered(gateway, tokens, at, functions, source)
        compared = [
            key
            for argument, value in zip(arguments, values, strict=True)
            for key in _compared(tokens, at, argument, value, functions)
        ]
        alone = None if function.returns_table else alone_in_lateral(tokens, at)
        name = alone[1] if alone else ""
        if function.of_each is not None:
            query = _for_each_element(tokens, at, function.of_each, values[0], source, compared, name)
        else:
            query = _for_each_value(
                function, values, source, compared, name, is_one=not function.returns_table
            )
        if alone is not None:
            return alone[0], query.render()
    elif function.of_each is not None:
        query = _for_each_element(tokens, at, function.of_each, values[0], SqlText(), (), "")
    else:
        query = SqlText.of("(SELECT ", _listed(function), _from(function, values, SqlText()), ")")
    close = tokens.partner[at + 1] + 1
    is_named = alias_after(tokens, close, len(tokens)) is not None
    named = "" if is_named or not is_of_relation(tokens, at) else f" AS {quoted(function.name)}"
    return (first_of_call(tokens, at), close), query.render() + named


def refuse_unknown_columns(
    tokens: TokenList, at: int, functions: KnownFunctions, columns_of: ColumnsOf
) -> None:
    """Refuse a call whose arguments read columns that are not there, as the relations that they are of show.

    Raises
    ------
    WindrowError
        About the column.
    """
    function, scope = functions.called(tokens, at), _scope(tokens, at)
    assert function is not None
    given = [one for one in arguments_of(tokens, at, function) if not isinstance(one, str)]
    if not given or scope is None or scope.source is None or visible_ctes(tokens, at):
        return
    try:
        columns_of(_selected(tokens, given, scope.source))
    except WindrowError as error:
        if error.sqlstate in ("42702", "42703", "42704", "42K09"):  # names, and types
            raise


def _refused(tokens: TokenList, at: int, function: SqlFunction, where: str, hint: str) -> NotSupportedError:
    return NotSupportedError(
        f"function {function.name} contains windows, so it cannot be called in {where}",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=tokens.span(first_of_call(tokens, at), tokens.partner[at + 1] + 1),
        hint=hint,
    )


def _compared(
    tokens: TokenList, at: int, argument: Range | str, value: SqlText, functions: KnownFunctions
) -> list[SqlText]:
    """What is compared with the row around to find the rows of an argument: its value.

    These are the columns that it reads, if it is of other calls or subqueries, which would be in another one.
    """
    if isinstance(argument, str):
        return [value]
    has_query = any(opens_query(tokens, one) for one in range(*argument))
    if not has_query and not any(argument[0] <= one < argument[1] for one in every_call(tokens, functions)):
        return [value]
    scope = _scope(tokens, at)
    assert scope is not None
    found: dict[tuple[str, ...], SqlText] = {}
    for one in range(*argument):
        if not may_be_operand(tokens, one):
            continue
        name = tokens[one].name.lower()
        has_relation = tokens.is_symbol(one + 1, ".") and name in scope.names
        inner = [query for query in subqueries(tokens, argument) if query[0] <= one < query[1]]
        if inner and (not has_relation or name.upper() in own_relations(tokens, inner[0])):
            continue
        place = (one, one + 3 if has_relation else one + 1)
        found[tokens.folded(*place)] = piece_of(tokens, *place)
    if not found:
        raise NotSupportedError(
            "an argument with a correlated subquery whose columns have no relation is not supported",
            condition="UNSUPPORTED_QUERY",
            sql=tokens.sql,
            span=tokens.span(*argument),
            hint="write the relation before each column, as in t.v",
        )
    return list(found.values())


def _listed(function: SqlFunction) -> str:
    """What a function returns, as items of SELECT."""
    if function.columns is None:
        return f"{RESULT}.*"
    return ", ".join(
        f"CAST({_value(function, number)} AS {kind}) AS {quoted(column)}"
        for number, (column, kind) in enumerate(function.columns)
    )


def _value(function: SqlFunction, number: int) -> str:
    return f"({function.body})" if function.is_expression else f"{RESULT}.{COLUMN}{number}"


def _from(
    function: SqlFunction, values: Sequence[SqlText], source: SqlText, compared: Sequence[SqlText] = ()
) -> SqlText:
    """FROM with the parameters, whose values are of the rows of `source`, and the function's query.

    The body of an expression reads the parameters where it stands.
    """
    named = [
        SqlText.of(value, f" AS {quoted(one.name)}")
        for value, one in zip(values, function.parameters, strict=True)
    ]
    named += [SqlText.of(value, f" AS {_ARGUMENT}{number}") for number, value in enumerate(compared)]
    relations = []
    if named:
        distinct = "DISTINCT " if source.parts else ""
        relations.append(
            SqlText.of(
                f"(SELECT {distinct}", SqlText.join(", ", named), source, f") AS {quoted(function.name)}"
            )
        )
    if not function.is_expression:
        result = f"({function.body}) AS {RESULT}{names_of_columns(function)}"
        relations.append(SqlText.of("LATERAL " if named else "", result))
    return SqlText.of(" FROM ", SqlText.join(", ", relations)) if relations else SqlText()


def _for_each_value(
    function: SqlFunction,
    values: Sequence[SqlText],
    source: SqlText,
    compared: Sequence[SqlText],
    name: str,
    *,
    is_one: bool,
) -> SqlText:
    """The function's rows for the values that a row around has, of those for all values there.

    A value has this name, if it has one.

    The rows are those for which what is `compared` is equal. If `is_one`, they are aggregated to one value:
    Spark asks for that in GROUP BY, and cannot run all joins with what may have several.
    """
    listed = [f"{quoted(function.name)}.{_ARGUMENT}{number}" for number in range(len(compared))]
    conditions = [SqlText.of(f"{_ARGUMENT}{number} <=> ", value) for number, value in enumerate(compared)]
    value = f"{_ROW}.*"
    if is_one:
        value = f"ANY_VALUE({_ROW}.{quoted(function.name)})"
        if not function.is_expression:
            several = literal(f"function {function.name} returned more than one row")
            value = f"IF(COUNT(*) > 1, raise_error({several}), {value})"
        value += f" AS {quoted(name)}" if name else ""
    return SqlText.of(
        f"(SELECT {value} FROM (SELECT {', '.join(listed)}, struct({_listed(function)}) AS {_ROW}",
        _from(function, values, SqlText.of(" FROM ", source), compared),
        ") WHERE ",
        SqlText.join(" AND ", conditions),
        ")",
    )


def _for_each_element(
    tokens: TokenList,
    at: int,
    function: SqlFunction,
    values: SqlText,
    source: SqlText,
    compared: Sequence[SqlText],
    name: str,
) -> SqlText:
    """The map from the arguments in a list to the values of a function that is called for each of them.

    It has this name, if it has one. The lists are those for the rows of `source`; the one is that for which
    what is `compared` is equal.
    """
    keys = [f"{_ARGUMENT}{number}" for number in range(len(compared))]
    listed = "".join(f"{key}, " for key in keys)
    called = [tokens[one].name for one in range(first_of_call(tokens, at), at, 2)]
    called.append(tokens[at].name.removeprefix(EACH))
    given = ", ".join(f"{GIVEN}{number}" for number in range(len(function.parameters)))
    lists = zip([values, *compared], [GIVEN, *keys], strict=True)
    items = SqlText.join(", ", [SqlText.of(one, f" AS {item}") for one, item in lists])
    arrays = SqlText.of("SELECT DISTINCT ", items, " FROM ", source) if keys else SqlText.of("SELECT ", items)
    elements = SqlText.of(
        f"SELECT DISTINCT {listed}{_ELEMENT} FROM (SELECT {listed}explode({GIVEN}) AS {_ELEMENT} FROM (",
        arrays, "))",
    )  # fmt: skip
    results = SqlText.of(
        f"SELECT {listed}{_ELEMENT}, {'.'.join(map(quoted, called))}({given}) AS {RESULT} FROM (SELECT *,"
        f" {_ELEMENT}.* FROM (", elements, f")) AS {_ELEMENT}s",
    )  # fmt: skip
    maps = SqlText.of(
        f"SELECT {listed}map_from_entries(collect_list(struct({_ELEMENT} AS key, {RESULT} AS value)))"
        f" AS {_ROW} FROM (", results, f") GROUP BY {', '.join(keys)}" if keys else ")",
    )  # fmt: skip
    conditions = [SqlText.of(f"{key} <=> ", value) for key, value in zip(keys, compared, strict=True)]
    return SqlText.of(
        f"(SELECT ANY_VALUE({_ROW})", f" AS {quoted(name)}" if name else "", " FROM (", maps, ")",
        SqlText.of(" WHERE ", SqlText.join(" AND ", conditions)) if conditions else "", ")",
    )  # fmt: skip


def names_of_columns(function: SqlFunction) -> str:
    """Names of ours for the columns of the query, where the function names what it returns."""
    if function.columns is None:
        return ""
    return f"({', '.join(f'{COLUMN}{number}' for number in range(len(function.columns)))})"


def _reads_columns(gateway: Gateway, tokens: TokenList, argument: Range, functions: KnownFunctions) -> bool:
    """Whether an argument reads columns, or rows: ``count(*)`` has no column."""
    if reads_rows(tokens, argument):
        return True
    if any(argument[0] <= at < argument[1] for at in every_call(tokens, functions)):
        return any(may_be_operand(tokens, at) for at in range(*argument))
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
    is_beyond = any(_reads_beyond(tokens, at, one) for one in arguments)
    is_beyond = is_beyond and not (source and _is_of_spark(gateway, _selected(tokens, arguments, source)))
    first = first_of_call(tokens, at)
    has_columns = next(scopes(tokens, first, _clauses(tokens)), None) is not None
    if not has_columns and not begins_relation(tokens, first):
        gateway.sql(SqlText.of("SELECT ", _all(tokens, arguments)))  # there are no columns
    if scope is None or source is None or is_beyond or any(reads_rows(tokens, one) for one in arguments):
        in_from = begins_relation(tokens, first) and tokens.word(first - 1) != "LATERAL"
        raise NotSupportedError(
            f"function {function.name} contains windows, so its arguments can only read columns of"
            " relations in FROM",
            condition="UNSUPPORTED_QUERY",
            sql=tokens.sql,
            span=tokens.span(*arguments[0]),
            hint="write LATERAL before it" if in_from else "compute them in a subquery in FROM",
        )
    refuse_changing(tokens, source, visible_ctes(tokens, at))
    _refuse_unresolved(gateway, tokens, at, arguments, source)
    found = piece_of(tokens, *_without_values(tokens, source, arguments, scope.where))
    if _changes(gateway, found):
        raise NotSupportedError(
            f"the outer query returns different rows each time, and function {function.name} reads them"
            " again",
            condition="NONDETERMINISTIC_QUERY",
            sql=tokens.sql,
            span=tokens.span(*source),
            hint="store the rows of the outer query in a table first",
        )
    return found


def _refuse_unresolved(
    gateway: Gateway, tokens: TokenList, at: int, arguments: Sequence[Range], source: Range
) -> None:
    """Refuse arguments with columns that no relation has, or several have: the function's query would report
    its parameter otherwise.
    """
    if visible_ctes(tokens, at):
        return
    try:
        gateway.sql(_selected(tokens, arguments, source))
    except WindrowError as error:
        is_of_columns = error.condition.startswith(("AMBIGUOUS", "UNRESOLVED_COLUMN"))
        if is_of_columns and _is_of_spark(gateway, SqlText.of("SELECT * FROM ", piece_of(tokens, *source))):
            raise


def _all(tokens: TokenList, arguments: Sequence[Range]) -> SqlText:
    return SqlText.join(", ", [piece_of(tokens, *one) for one in arguments])


def _selected(tokens: TokenList, arguments: Sequence[Range], source: Range) -> SqlText:
    """The arguments for each row of these relations."""
    return SqlText.of("SELECT ", _all(tokens, arguments), " FROM ", piece_of(tokens, *source))


def _is_of_spark(gateway: Gateway, query: SqlText) -> bool:
    """Whether Spark alone can answer a query."""
    try:
        gateway.sql(query)
    except WindrowError:
        return False
    return True


def _without_values(
    tokens: TokenList, source: Range, arguments: Sequence[Range], where: Range | None
) -> Range:
    """The relations without the last ones that are values of calls, ``LATERAL (SELECT f(v) AS x) AS y``.

    They add no values of others. Those of which a column is read stay.
    """
    parts = [*arguments, *([where] if where is not None else [])]
    read = {tokens[at].name.lower() for part in parts for at in range(*part) if tokens[at].is_name}
    while True:
        commas = [at for at in tokens.level(*source) if tokens.is_symbol(at, ",")]
        last = commas[-1] if commas else source[0]
        if tokens.word(last + 1) != "LATERAL" or not opens_query(tokens, last + 2):
            return source
        close = tokens.partner[last + 2]
        inside = [tokens[at].text.upper() for at in tokens.level(last + 3, close)]
        names = {tokens[close - 1].name.lower(), tokens[source[1] - 1].name.lower()}
        is_value = inside[:1] == ["SELECT"] and inside[-2:-1] == ["AS"] and not {"FROM", ","} & set(inside)
        if not is_value or close + 3 != source[1] or names & read:
            return source
        source = (source[0], last)


def _scope(tokens: TokenList, at: int) -> VisibleRelations | None:
    """The relations around a call."""
    return next(scopes(tokens, first_of_call(tokens, at), _clauses(tokens)), None)


def _reads_beyond(tokens: TokenList, at: int, argument: Range) -> bool:
    """Whether an argument of a call names a relation that only a query around the nearest one has."""
    around = [one.names for one in scopes(tokens, first_of_call(tokens, at), _clauses(tokens))]
    beyond = {name for names in around[1:] for name in names if name not in around[0]}
    operands = (one for one in range(*argument) if may_be_operand(tokens, one))
    return any(tokens[one].name.lower() in beyond and tokens.is_symbol(one + 1, ".") for one in operands)


def _clauses(tokens: TokenList) -> list[BlockText | MatchRelation]:
    return [*find_window_queries(tokens), *find_matches(tokens)]


def _filtered(
    gateway: Gateway, tokens: TokenList, at: int, functions: KnownFunctions, source: SqlText
) -> SqlText:
    """The relations around a call with what WHERE says of them, but for conditions with other calls."""
    scope, calls = _scope(tokens, at), set(every_call(tokens, functions))
    assert scope is not None

    def is_known(condition: Range) -> bool:
        try:
            gateway.sql(SqlText.of("SELECT ", piece_of(tokens, *condition), " FROM ", source))
        except WindrowError:
            return False  # it reads what is not of these relations, or that is not known
        return True

    where = filters(tokens, scope, lambda start, stop: piece_of(tokens, start, stop), calls, is_known)
    return SqlText.of(source, " WHERE ", SqlText.join(" AND ", where)) if where else source


def _changes(gateway: Gateway, source: SqlText) -> bool:
    """Whether relations have other rows in each run; of clauses of ours and queries of WITH not known."""
    try:
        return rows_change_by_run(gateway.sql(SqlText.of("SELECT * FROM ", source)))
    except WindrowError:
        return False

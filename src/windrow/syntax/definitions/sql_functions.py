"""CREATE FUNCTION in SQL, and calls of such functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from windrow.errors import AnalysisError, ParseError
from windrow.syntax.definitions.create_words import CreateWords, column_items, create_words
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = [
    "EACH",
    "GIVEN",
    "FunctionText",
    "Parameter",
    "SqlFunction",
    "arguments_of",
    "for_each",
    "parse_function",
]

EACH, GIVEN = "__each_", "__given"
"""What stands before the name of a function in that of one for lists of its arguments; their fields there."""

_BEGIN_QUERIES = ("SELECT", "WITH", "FROM")
_BEFORE_BODY = ("LANGUAGE", "DETERMINISTIC", "NOT", "COMMENT", "CONTAINS", "READS", "SQL", "RETURN")


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter: its name, its type and its default as they are written; no default is None."""

    name: str
    kind: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class SqlFunction:
    """A function that returns what a query does, or the value of an expression.

    `columns` are the names and types of the columns that it returns; None for those of the query. A function
    for one value has one column, and returns no table. `body` has the text of the query, or, if
    `is_expression`, of an expression. `of_each` is the function that one of :func:`for_each` calls.
    """

    name: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, str], ...] | None
    body: str
    is_expression: bool = False
    returns_table: bool = False
    of_each: SqlFunction | None = None


@dataclass(frozen=True, slots=True)
class FunctionText:
    """CREATE FUNCTION: the function, and where its name, RETURN and the body stand."""

    function: SqlFunction
    name: Range
    return_at: int
    body: Range
    words: CreateWords


def parse_function(
    tokens: TokenList, statement: Range, is_ours: Callable[[str], bool]
) -> FunctionText | None:
    """The function of CREATE FUNCTION … RETURN body; None for any other statement.

    Parameters
    ----------
    is_ours
        Whether a query needs a session of ours; functions of others are Spark's.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for a parameter without a type, or no RETURNS.
    """
    at, stop = statement
    words = create_words(tokens, at, stop, "FUNCTION")
    if words is None:
        return None
    at = words.name_at
    while tokens.is_symbol(at + 1, ".") and at + 2 < stop and tokens[at + 2].is_name:
        at += 2
    if at + 1 >= stop or not tokens.is_symbol(at + 1, "("):
        return None
    name, close = tokens[at].name, tokens.partner[at + 1]
    returns = close + 1
    return_at = next((one for one in tokens.level(returns, stop) if tokens.word(one) == "RETURN"), None)
    if return_at is None or return_at + 1 >= stop:
        return None
    body = (return_at + 1, stop)
    while tokens.is_symbol(body[0], "(") and tokens.partner[body[0]] == body[1] - 1:
        body = (body[0] + 1, body[1] - 1)
    if body[0] >= body[1]:
        return None
    is_query = tokens.word(body[0]) in _BEGIN_QUERIES or tokens.word(returns + 1) == "TABLE"
    text = tokens.text(*body)
    if not is_ours(text if is_query else f"SELECT {text}"):
        return None
    parameters = tuple(
        _parameter(tokens, item) for item in column_items(tokens, at + 2, close) if item[0] < item[1]
    )
    if tokens.word(returns) != "RETURNS":
        raise ParseError(
            f"function {name} does not declare what it returns",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[return_at].span,
            hint="write RETURNS TABLE, or RETURNS INT, before RETURN",
        )
    ends = [one for one in tokens.level(returns + 2, return_at + 1) if tokens.word(one) in _BEFORE_BODY]
    columns: tuple[tuple[str, str], ...] | None = None
    if tokens.word(returns + 1) != "TABLE":
        columns = ((name, tokens.text(returns + 1, ends[0])),)
    elif tokens.is_symbol(returns + 2, "("):
        listed = column_items(tokens, returns + 3, tokens.partner[returns + 2])
        columns = tuple((one.name, one.kind) for one in (_parameter(tokens, item) for item in listed))
    is_table = tokens.word(returns + 1) == "TABLE"
    function = SqlFunction(name, parameters, columns, text, not is_query, is_table)
    return FunctionText(function, (words.name_at, at + 1), return_at, body, words)


def _parameter(tokens: TokenList, item: Range) -> Parameter:
    """A parameter, or a column that is returned."""
    start, stop = item
    words = [at for at in tokens.level(start + 1, stop) if tokens.word(at) in ("DEFAULT", "COMMENT", "NOT")]
    end = words[0] if words else stop
    if not tokens[start].is_name or end <= start + 1:
        raise ParseError(
            f"{tokens.text(start, stop)} has no type",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(start, stop),
            hint=f"write {tokens[start].text} INT",
        )
    after = next((at for at in words if at > end), stop)
    default = tokens.text(end + 1, after) if words and tokens.word(end) == "DEFAULT" else None
    return Parameter(tokens[start].name, tokens.text(start + 1, end), default)


def for_each(function: SqlFunction) -> SqlFunction | None:
    """The function of a list of arguments that returns a map from each of them to the function's value.

    None for a function that returns a table.
    """
    if function.columns is None or function.returns_table:
        return None
    ((_, kind),) = function.columns
    kinds = [one.kind for one in function.parameters] or ["BOOLEAN"]
    given = f"STRUCT<{', '.join(f'{GIVEN}{number}: {one}' for number, one in enumerate(kinds))}>"
    return SqlFunction(
        function.name,
        (Parameter(GIVEN, f"ARRAY<{given}>"),),
        ((function.name, f"MAP<{given}, {kind}>"),),
        function.body,
        function.is_expression,
        of_each=function,
    )


def arguments_of(tokens: TokenList, at: int, function: SqlFunction) -> list[Range | str]:
    """What a call, of which the name stands at a token, gives to each parameter: a place, or the default.

    Raises
    ------
    AnalysisError
        ``WRONG_NUM_ARGS``.
    """
    close = tokens.partner[at + 1]
    arguments: dict[str, Range] = {}
    items = [item for item in tokens.split(at + 2, close) if item[0] < item[1]]
    names = [one.name.lower() for one in function.parameters]
    for number, (start, stop) in enumerate(items):
        is_named = tokens[start].is_name and tokens.is_symbol(start + 1, "=>")
        name = tokens[start].name.lower() if is_named else names[number] if number < len(names) else ""
        if name not in names or name in arguments:
            raise _wrong_arguments(tokens, (start, stop), function)
        arguments[name] = (start + 2 if is_named else start, stop)
    found: list[Range | str] = []
    for one in function.parameters:
        value = arguments.get(one.name.lower(), one.default)
        if value is None:
            raise _wrong_arguments(tokens, (at, close + 1), function)
        found.append(value)
    return found


def _wrong_arguments(tokens: TokenList, where: Range, function: SqlFunction) -> AnalysisError:
    listed = ", ".join(f"{one.name} {one.kind}" for one in function.parameters)
    return AnalysisError(
        f"the arguments do not match the parameters of function {function.name}",
        condition="WRONG_NUM_ARGS",
        sqlstate="42605",
        sql=tokens.sql,
        span=tokens.span(*where),
        hint=f"pass its parameters: ({listed})",
    )

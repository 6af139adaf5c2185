"""CREATE TEMPORARY FUNCTION of a query, and calls of such functions."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import AnalysisError, ParseError
from windrow.syntax.create_words import CreateWords, create_words
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["FunctionText", "Parameter", "SqlFunction", "arguments_of", "parse_function"]

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
    """A function that returns what a query does.

    `columns` are the names and types of the columns that it returns; None for those of the query. A function
    for one value has one column, and `is_table` is false. `query` has the query's text.
    """

    name: str
    parameters: tuple[Parameter, ...]
    columns: tuple[tuple[str, str], ...] | None
    is_table: bool
    query: str


@dataclass(frozen=True, slots=True)
class FunctionText:
    """CREATE FUNCTION: the function, where its query stands, and the words before its name."""

    function: SqlFunction
    query: Range
    words: CreateWords


def parse_function(tokens: TokenList, statement: Range) -> FunctionText | None:
    """The function of CREATE FUNCTION … RETURN query; None for any other statement, and for expressions.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for a parameter without a type, or no RETURNS.
    """
    at, stop = statement
    words = create_words(tokens, at, stop, "FUNCTION")
    if words is None or words.name_at + 1 >= stop or not tokens.is_symbol(words.name_at + 1, "("):
        return None
    at = words.name_at
    name, close = tokens[at].name, tokens.partner[at + 1]
    parameters = tuple(_parameter(tokens, item) for item in tokens.split(at + 2, close) if item[0] < item[1])
    returns = close + 1
    body = next((one for one in tokens.level(returns, stop) if tokens.word(one) == "RETURN"), None)
    if body is None:
        return None
    query = (body + 1, stop)
    while tokens.is_symbol(query[0], "(") and tokens.partner[query[0]] == query[1] - 1:
        query = (query[0] + 1, query[1] - 1)
    if tokens.word(query[0]) not in _BEGIN_QUERIES:
        return None
    if tokens.word(returns) != "RETURNS":
        raise ParseError(
            f"function {name} does not say what it returns",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[body].span,
            hint="write RETURNS TABLE, or RETURNS INT, before RETURN",
        )
    ends = [one for one in tokens.level(returns + 2, body + 1) if tokens.word(one) in _BEFORE_BODY]
    is_table = tokens.word(returns + 1) == "TABLE"
    columns: tuple[tuple[str, str], ...] | None = None
    if not is_table:
        columns = ((name, tokens.text(returns + 1, ends[0])),)
    elif tokens.is_symbol(returns + 2, "("):
        listed = tokens.split(returns + 3, tokens.partner[returns + 2])
        columns = tuple((one.name, one.kind) for one in (_parameter(tokens, item) for item in listed))
    function = SqlFunction(name, parameters, columns, is_table, tokens.text(*query))
    return FunctionText(function, query, words)


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


def arguments_of(tokens: TokenList, at: int, function: SqlFunction) -> list[Range | str]:
    """What a call, of which the name stands at a token, gives to each parameter: a place, or the default.

    Raises
    ------
    AnalysisError
        ``WRONG_NUM_ARGS``.
    """
    close = tokens.partner[at + 1]
    given: dict[str, Range] = {}
    items = [item for item in tokens.split(at + 2, close) if item[0] < item[1]]
    names = [one.name.lower() for one in function.parameters]
    for number, (start, stop) in enumerate(items):
        is_named = tokens[start].is_name and tokens.is_symbol(start + 1, "=>")
        name = tokens[start].name.lower() if is_named else names[number] if number < len(names) else ""
        if name not in names or name in given:
            raise _wrong_arguments(tokens, (start, stop), function)
        given[name] = (start + 2 if is_named else start, stop)
    found: list[Range | str] = []
    for one in function.parameters:
        value = given.get(one.name.lower(), one.default)
        if value is None:
            raise _wrong_arguments(tokens, (at, close + 1), function)
        found.append(value)
    return found


def _wrong_arguments(tokens: TokenList, where: Range, function: SqlFunction) -> AnalysisError:
    listed = ", ".join(f"{one.name} {one.kind}" for one in function.parameters)
    return AnalysisError(
        f"function {function.name} is called with other arguments than it has",
        condition="WRONG_NUM_ARGS",
        sqlstate="42605",
        sql=tokens.sql,
        span=tokens.span(*where),
        hint=f"its parameters are ({listed})",
    )

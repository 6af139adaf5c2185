"""Reads table functions in FROM: TUMBLE, HOP, CUMULATE, SESSION, and the user's own.

TUMBLE(TABLE bids, DESCRIPTOR(bidtime), INTERVAL 10 MINUTES)
TABLE(TUMBLE(data => TABLE(SELECT …), timecol => DESCRIPTOR(bidtime), dur => INTERVAL '10' MINUTE))
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from windrow.errors import ParseError, did_you_mean
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.lengths import Length, LengthReader
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = [
    "WINDOWS",
    "Argument",
    "FunctionCall",
    "TableFunctionCall",
    "call_at",
    "is_table_argument",
    "refuse_table_in_brackets",
    "window_call",
]

WINDOWS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("data", "timecol", "dur", "offset"),
    "HOP": ("data", "timecol", "hopsize", "dur", "offset"),
    "CUMULATE": ("data", "timecol", "step", "dur", "offset"),
    "SESSION": ("data", "timecol", "key", "gap", "maxdur"),
}
"""The windowing functions, and their parameters in the order of positions."""

_OTHER_NAMES = {"size": "dur", "slide": "hopsize"}
_OPTIONAL = ("offset", "key", "maxdur")
_SHAPES = {
    "TUMBLE": "TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL 10 MINUTES)",
    "HOP": "HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 10 MINUTES)",
    "CUMULATE": "CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL 2 MINUTES, INTERVAL 10 MINUTES)",
    "SESSION": "SESSION(TABLE t PARTITION BY k, DESCRIPTOR(ts), INTERVAL 10 MINUTES)",
}


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument: its name if it is passed by name, and its text.

    Attributes
    ----------
    name, at
        The name, and the token of it.
    tokens
        All of it without the name.
    table
        The relation of ``TABLE t`` or ``TABLE(query)``.
    partition_by
        The columns of PARTITION BY of a table.
    columns
        The tokens of the names in ``DESCRIPTOR(a, b)``.
    """

    name: str | None
    at: int
    tokens: Range
    table: Range | None = None
    partition_by: tuple[int, ...] = ()
    columns: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A table function in place of a relation of FROM.

    Attributes
    ----------
    name
        In lower case.
    tokens
        The relation, with ``TABLE( )`` around the call if it `is_wrapped` so.
    word
        The token of the name.
    """

    name: str
    tokens: Range
    word: int
    arguments: tuple[Argument, ...]
    is_wrapped: bool


@dataclass(frozen=True, slots=True)
class TableFunctionCall:
    """A windowing function.

    Attributes
    ----------
    kind
        TUMBLE, HOP, CUMULATE or SESSION.
    call
        As it is written.
    data
        The relation.
    time
        The token of the name of its time.
    keys
        The tokens of the key columns of sessions.
    lengths
        The lengths of time by the names of their parameters: dur, hopsize, step, gap, maxdur, offset.
    """

    kind: str
    call: FunctionCall
    data: Range
    time: int
    keys: tuple[int, ...]
    lengths: Mapping[str, Length]

    @property
    def names(self) -> tuple[str, ...]:
        """The added columns: named as in Flink if the call is in ``TABLE( )``."""
        return ("window_start", "window_end", "window_time") if self.call.is_wrapped else ("wstart", "wend")


def call_at(tokens: TokenList, index: int, functions: Collection[str]) -> FunctionCall | None:
    """The table function that begins at a token in place of a relation, if it is one of `functions`.

    Parameters
    ----------
    functions
        Names in lower case.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    wrapped = tokens.word(index) == "TABLE" and tokens.is_symbol(index + 1, "(")
    word = index + 2 if wrapped else index
    if not (word < len(tokens) and tokens[word].is_name and tokens.is_symbol(word + 1, "(")):
        return None
    name = tokens[word].name.lower()
    if name not in functions or not (begins_relation(tokens, index) or _is_data(tokens, index)):
        return None
    close = tokens.partner[word + 1]
    if wrapped and tokens.partner[index + 1] != close + 1:
        return None
    arguments = tuple(_argument(tokens, item) for item in tokens.split(word + 2, close))
    return FunctionCall(name, (index, close + 2 if wrapped else close + 1), word, arguments, wrapped)


def is_table_argument(tokens: TokenList, table: int) -> bool:
    """Whether TABLE is in the call of a table function, and not a query."""
    function = tokens.parent[table] - 1
    if function < 0 or not tokens[function].is_name or tokens.word(function) == "LATERAL":
        return False
    is_wrapped = tokens.is_symbol(function - 1, "(") and tokens.word(function - 2) == "TABLE"
    first = function - 2 if is_wrapped else function
    while tokens.is_symbol(first - 1, "."):
        first -= 2
    return begins_relation(tokens, first) or tokens.word(first - 1) in ("LATERAL", "TABLE")


def refuse_table_in_brackets(tokens: TokenList, table: int) -> None:
    """Refuse ``TABLE (name)`` that is not an argument of a table function.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    if not tokens.is_symbol(table + 1, "("):
        return
    close = tokens.partner[table + 1]
    name = tokens.text(table + 2, close)
    raise ParseError(
        "TABLE with a name in brackets can only be the argument of a table function",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens.span(table, close + 1),
        hint=f"write FROM {name}, or the query (TABLE {name})",
    )


def _is_data(tokens: TokenList, index: int) -> bool:
    """Whether a relation follows TABLE, as the argument of a function."""
    before = index - 1 - tokens.is_symbol(index - 1, "(")
    return tokens.word(before) == "TABLE"


def _argument(tokens: TokenList, item: Range) -> Argument:
    start, stop = item
    if start >= stop:
        raise _wrong(tokens, start, "expected an argument", None)
    name, at = None, start
    if start + 1 < stop and tokens[start].is_name and tokens.is_symbol(start + 1, "=>"):
        name, start = tokens[start].name.lower(), start + 2
        if start >= stop:
            raise _wrong(tokens, at, f"expected a value of {name}", None)
    if tokens.word(start) == "DESCRIPTOR" and tokens.is_symbol(start + 1, "("):
        columns = tokens.split(start + 2, tokens.partner[start + 1])
        for first, last in columns or [(start + 1, start + 1)]:
            if last - first != 1 or not tokens[first].is_name:
                raise _wrong(tokens, first, "DESCRIPTOR takes only column names", "write DESCRIPTOR(ts)")
        return Argument(name, at, (start, stop), columns=tuple(first for first, _ in columns))
    if tokens.word(start) != "TABLE" or start + 1 >= stop:
        return Argument(name, at, (start, stop))
    inside = tokens.level(start + 1, stop)
    by = next(
        (each for each in inside if tokens.word(each) == "PARTITION" and tokens.word(each + 1) == "BY"), None
    )
    data = (start + 1, stop if by is None else by)
    keys = () if by is None else _keys(tokens, by + 2, stop)
    while tokens.is_symbol(data[0], "(") and tokens.partner[data[0]] == data[1] - 1:
        data = (data[0] + 1, data[1] - 1)
    if data[0] >= data[1]:
        raise _wrong(tokens, start, "expected a table after TABLE", "write TABLE t or TABLE(SELECT …)")
    return Argument(name, at, (start, stop), data, keys)


def _keys(tokens: TokenList, start: int, stop: int) -> tuple[int, ...]:
    if tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    keys = tokens.split(start, stop)
    for first, last in keys or [(start - 1, start - 1)]:
        if last - first != 1 or not tokens[first].is_name:
            hint = "compute the keys in a query: TABLE(SELECT …) PARTITION BY k"
            raise _wrong(tokens, first, "PARTITION BY takes only column names here", hint)
    return tuple(first for first, _ in keys)


def window_call(tokens: TokenList, call: FunctionCall) -> TableFunctionCall:
    """The parameters of a windowing function.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``, ``UNRECOGNIZED_PARAMETER_NAME``, ``REQUIRED_PARAMETER_NOT_FOUND``,
        ``DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT``.
    """
    kind = call.name.upper()
    bound = _bound(tokens, call, kind)
    for name in WINDOWS[kind]:
        if name not in bound and name not in _OPTIONAL:
            raise ParseError(
                f"{kind} needs the parameter {name}",
                condition="REQUIRED_PARAMETER_NOT_FOUND",
                sqlstate="4274K",
                sql=tokens.sql,
                span=tokens[call.word].span,
                hint=f"write {_SHAPES[kind]}",
            )
    data, time, key = bound["data"], bound["timecol"], bound.get("key")
    if data.table is None:
        text = tokens.text(*data.tokens)
        raise _wrong(
            tokens, data.tokens[0], f"the first argument of {kind} must be a table", f"write TABLE {text}"
        )
    if time.columns is None or len(time.columns) != 1:
        hint = f"write {_SHAPES[kind]}"
        raise _wrong(tokens, time.tokens[0], f"{kind} needs the column of its times", hint)
    if key is not None and key.columns is None:
        raise _wrong(tokens, key.tokens[0], "key takes only columns", "write key => DESCRIPTOR(k)")
    if data.partition_by and kind != "SESSION":
        hint = "add the key to GROUP BY instead: the windows are the same for all keys"
        raise _wrong(tokens, data.partition_by[0], f"{kind} has no PARTITION BY", hint)
    keys = (*data.partition_by, *(key.columns or () if key is not None else ()))
    others = ("data", "timecol", "key")
    lengths = {
        name: _length(tokens, argument, name, kind) for name, argument in bound.items() if name not in others
    }
    return TableFunctionCall(kind, call, data.table, time.columns[0], keys, lengths)


def _length(tokens: TokenList, argument: Argument, name: str, kind: str) -> Length:
    start, stop = argument.tokens
    if argument.table is not None or argument.columns is not None:
        raise _wrong(tokens, start, f"{name} must be a length of time", f"write {_SHAPES[kind]}")
    reader = LengthReader(tokens, start, stop, f"as {name} of {kind}", hint=f"write {_SHAPES[kind]}")
    return reader.whole(least=None if name == "offset" else 1)


def _bound(tokens: TokenList, call: FunctionCall, kind: str) -> dict[str, Argument]:
    """The arguments by their parameters' names."""
    parameters = list(WINDOWS[kind])
    third = call.arguments[2] if len(call.arguments) > 2 else None
    if kind == "SESSION" and (third is None or third.columns is None):
        parameters.remove("key")  # by position only where a DESCRIPTOR stands there
    bound: dict[str, Argument] = {}
    for place, argument in enumerate(call.arguments):
        if argument.name is None:
            if place >= len(parameters) or any(each.name for each in call.arguments[:place]):
                message = (
                    "too many arguments"
                    if place >= len(parameters)
                    else "a positional argument after a named one"
                )
                hint = "name this argument too" if place < len(parameters) else f"write {_SHAPES[kind]}"
                raise _wrong(tokens, argument.tokens[0], f"{kind} has {message}", hint)
            name = parameters[place]
        else:
            name = _OTHER_NAMES.get(argument.name, argument.name)
            if name not in WINDOWS[kind]:
                raise ParseError(
                    f"{kind} has no parameter {argument.name}",
                    condition="UNRECOGNIZED_PARAMETER_NAME",
                    sqlstate="4274K",
                    sql=tokens.sql,
                    span=tokens[argument.at].span,
                    hint=did_you_mean(argument.name, WINDOWS[kind])
                    or f"use one of {', '.join(WINDOWS[kind])}",
                )
        if name in bound:
            raise ParseError(
                f"parameter {name} appears twice",
                condition="DUPLICATE_ROUTINE_PARAMETER_ASSIGNMENT",
                sqlstate="4274K",
                sql=tokens.sql,
                span=tokens[argument.at].span,
                hint="write it once",
            )
        bound[name] = argument
    return bound


def _wrong(tokens: TokenList, at: int, message: str, hint: str | None) -> ParseError:
    span = tokens[at].span if at < len(tokens) else tokens.span(len(tokens) - 1, len(tokens))
    return ParseError(message, condition="PARSE_SYNTAX_ERROR", sql=tokens.sql, span=span, hint=hint)

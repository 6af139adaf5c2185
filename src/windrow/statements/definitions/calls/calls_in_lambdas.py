"""Calls of SQL functions over windows in lambda functions: a map from what they are given to their values.

SELECT transform(xs, x -> f(x) + y) FROM t
→  SELECT element_at(transform(array(struct(`__each_f`(flatten(transform(xs, x -> array(struct(
CAST(x AS INT) AS __given0))))) AS __values0)), __of_calls ->
transform(xs, x -> element_at(__of_calls.__values0, struct(CAST(x AS INT) AS __given0)) + y)), 1) FROM t

So the function is called for the elements alone with which Spark would call it, and for none of an empty
array. ``__each_f`` is a function of a list of arguments (:func:`for_each`), which is called outside.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead, put_name
from windrow.errors import NotSupportedError
from windrow.statements.definitions.function_calls import (
    every_call,
    first_of_call,
    lambda_around,
    outermost_calls,
    select_around,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.definitions.sql_functions import EACH, GIVEN, SqlFunction, arguments_of
from windrow.syntax.nodes import Range
from windrow.syntax.operands import parameters_of_lambda
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["calls_in_lambdas"]

_BOUND, _VALUES = "__of_calls", "__values"


@dataclass(frozen=True)
class _Lambda:
    """A lambda function, and the call of a function of Spark around it.

    Attributes
    ----------
    arrow
        Its arrow.
    call
        The call, from its name to its bracket.
    opened
        The bracket that opens the arguments.
    """

    tokens: TokenList
    arrow: int
    call: Range
    opened: int

    @staticmethod
    def around(tokens: TokenList, at: int) -> Iterator[_Lambda]:
        """The lambda functions around a token, outwards, as far as they are in one query."""
        while (arrow := lambda_around(tokens, at)) is not None:
            inside = tokens.parent[at]
            opened = tokens.parent[arrow]
            while inside > opened:
                if opens_query(tokens, inside):
                    return
                inside = tokens.parent[inside]
            first = opened - 1
            while tokens.is_symbol(first - 1, "."):
                first -= 2
            yield _Lambda(tokens, arrow, (first, tokens.partner[opened] + 1), opened)
            at = opened

    @property
    def arguments(self) -> list[Range]:
        return self.tokens.split(self.opened + 1, self.call[1] - 1)

    @property
    def parameters(self) -> list[str]:
        """The names of its parameters, as they are written."""
        return [self.tokens[at].text for at in parameters_of_lambda(self.tokens, self.arrow)]

    @property
    def is_ours(self) -> bool:
        """Whether it gives names to the values of calls."""
        return self.parameters == [_BOUND]

    def each(self, body: SqlText) -> SqlText | None:
        """The list of what a body, itself a list, has for all parameters with which the function is called.

        None for a lambda function of what we do not know, and of what depends on its own results.
        """
        tokens, arguments = self.tokens, self.arguments
        name = tokens.word(self.opened - 1)
        given = [piece_of(tokens, *one) for one in arguments]
        named, count_of = self.parameters, len(self.parameters)
        last = next(at for at, one in enumerate(arguments) if one[0] <= self.arrow < one[1])
        match name, last, count_of:
            case "TRANSFORM" | "FILTER" | "EXISTS" | "FORALL", 1, 1 | 2:
                return _list(given[0], named, body)
            case "ARRAY_SORT", 1, 2:
                return _list(given[0], named[:1], _list(given[0], named[1:], body))
            case "MAP_FILTER" | "TRANSFORM_KEYS" | "TRANSFORM_VALUES", 1, 2:
                return _list_of_values("transform_values", given[:1], named, body)
            case "MAP_ZIP_WITH", 2, 3:
                return _list_of_values("map_zip_with", given[:2], named, body)
            case "ZIP_WITH", 2, 2:
                return _flat(_called("zip_with", given[:2], named, body))
            case "AGGREGATE" | "REDUCE", 2, 2 if not _reads(body, named[0]):
                return _list(given[0], named[1:], body)
            case "AGGREGATE" | "REDUCE", 3, 1:
                return _called("aggregate", given[:3], named, body)
        return None


def calls_in_lambdas(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with the first such call as one outside of lambda functions; None if there is none.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for a call that depends on the result of its own step, as in
        ``aggregate(xs, 0, (a, x) -> f(a))``.
    """
    calls = list(every_call(tokens, functions))
    for at in calls:
        function, call = functions.called(tokens, at), (first_of_call(tokens, at), tokens.partner[at + 1] + 1)
        around = list(_Lambda.around(tokens, call[0]))
        is_one = sum(one in range(*call) for one in calls) == 1
        if function is None or function.returns_table or not around or not is_one:
            continue
        given = _given(tokens, at, function)
        values: SqlText | None = SqlText.of("array(", given, ")")
        for one in around:
            values = None if values is None else one.each(values)
        if values is None:
            raise _refused(tokens, call, function)
        outside = _call_for_each(tokens, at, values)
        return _bound(tokens, around[-1], call, outside, given, _beside(tokens, functions, around[-1]))
    return None


def _given(tokens: TokenList, at: int, function: SqlFunction) -> SqlText:
    """The arguments of a call as a struct."""
    arguments = [
        SqlText.of(
            "CAST(", one if isinstance(one, str) else piece_of(tokens, *one), f" AS {parameter.kind})",
            f" AS {GIVEN}{number}",
        )
        for number, (one, parameter) in enumerate(
            zip(arguments_of(tokens, at, function), function.parameters, strict=True)
        )
    ]  # fmt: skip
    return SqlText.of("struct(", SqlText.join(", ", arguments or [SqlText.of(f"TRUE AS {GIVEN}0")]), ")")


def _call_for_each(tokens: TokenList, at: int, values: SqlText) -> SqlText:
    """The call of a function for a list of arguments, at the place of the call for one."""
    first, name = first_of_call(tokens, at), tokens[at]
    each = Piece(quoted(f"{EACH}{name.name}"), tokens.sql, name.start, name.stop - name.start)
    return SqlText.of(piece_of(tokens, first, at), each, "(", values, ")")


def _beside(tokens: TokenList, functions: KnownFunctions, outermost: _Lambda) -> list[Range]:
    """The other calls within the call around a lambda function, outside of any."""
    if outermost.is_ours:
        return []
    places = [
        (first_of_call(tokens, at), tokens.partner[at + 1] + 1) for at in outermost_calls(tokens, functions)
    ]
    return [
        one for one in places if one[0] in range(*outermost.call) and lambda_around(tokens, one[0]) is None
    ]


def _bound(
    tokens: TokenList,
    outermost: _Lambda,
    call: Range,
    outside: SqlText,
    given: SqlText,
    beside: Sequence[Range],
) -> SqlText:
    """The text in which what is around the lambda functions reads values of calls, in one more of them.

    Calls `beside` are arguments of that lambda as well, as they would be in it otherwise.
    """
    edits, known = Edits(tokens), {tokens[at].text for at in range(*outermost.call)}
    names = (name for number in count() if (name := f"{_VALUES}{number}") not in known)
    name = next(names)
    values = [SqlText.of(outside, f" AS {name}")]
    put_instead(edits, call, SqlText.of(f"element_at({_BOUND}.{name}, ", given, ")"))
    for place in beside:
        name = next(names)
        values.append(SqlText.of(piece_of(tokens, *place), f" AS {name}"))
        put_instead(edits, place, f"{_BOUND}.{name}")
    listed = SqlText.join(", ", values)
    if outermost.is_ours:
        edits.put(tokens.partner[outermost.opened + 4], ", ", listed)
        return edits.text(0, len(tokens))
    start, stop = outermost.call
    edits.put(start, "element_at(transform(array(struct(", listed, f")), {_BOUND} ->")
    edits.put(stop, "), 1)")
    select = select_around(tokens, start)
    for item in [] if select is None else tokens.split(*select.items):
        put_name(edits, item, [outermost.call], ())
    return edits.text(0, len(tokens))


def _called(name: str, arguments: Sequence[SqlText], parameters: Sequence[str], body: SqlText) -> SqlText:
    named = f"({', '.join(parameters)})" if len(parameters) > 1 else parameters[0]
    return SqlText.of(f"{name}(", SqlText.join(", ", arguments), f", {named} -> ", body, ")")


def _flat(lists: SqlText) -> SqlText:
    """One list of several; without any, an empty one, as of an array that is NULL."""
    return SqlText.of("coalesce(flatten(", lists, "), array())")


def _list(array: SqlText, parameters: Sequence[str], body: SqlText) -> SqlText:
    return _flat(_called("transform", [array], parameters, body))


def _list_of_values(name: str, maps: Sequence[SqlText], parameters: Sequence[str], body: SqlText) -> SqlText:
    return _flat(SqlText.of("map_values(", _called(name, maps, parameters, body), ")"))


def _reads(body: SqlText, parameter: str) -> bool:
    """Whether a name stands in a text, other than as one of a field."""
    tokens = tokenize(body.render())
    return any(
        tokens[at].is_name
        and tokens[at].name.lower() == parameter.strip("`").lower()
        and not tokens.is_symbol(at - 1, ".")
        for at in range(len(tokens))
    )


def _refused(tokens: TokenList, call: Range, function: SqlFunction) -> NotSupportedError:
    return NotSupportedError(
        f"function {function.name} contains windows, so it cannot be called in this lambda function",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=tokens.span(*call),
        hint="call it for the elements before, as in aggregate(transform(xs, x -> f(x)), …)",
    )

"""Where a text calls SQL functions over windows, and in which part of which SELECT."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.algebra.scopes import VisibleRelations, scopes
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.statements.definitions.stored_text import called_name
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.operands import may_be_operand
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import begins_window_by, find_window_queries, is_set_operator, level_around
from windrow.syntax.select_list import aliased, without_distinct
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = [
    "SelectText",
    "alone_in_lateral",
    "depth_of",
    "end_of_column",
    "every_call",
    "first_of_call",
    "is_of_relation",
    "lambda_around",
    "names_beyond",
    "operands_in",
    "operands_of_call",
    "outermost_calls",
    "reads_rows",
    "select_around",
    "select_at",
    "windows_of",
]

_AFTER_SELECT = ("FROM", "WHERE", "GROUP", "HAVING", "QUALIFY", "LIMIT", "OFFSET")
_SORTS = ("ORDER", "SORT", "CLUSTER", "DISTRIBUTE")


@dataclass(frozen=True)
class SelectText:
    """The parts of a SELECT that may call functions for a value.

    Attributes
    ----------
    tokens
        The text.
    range
        From SELECT, or FROM if it stands before, to what follows: a set operator, a pipe or the end.
    items
        What is selected, without DISTINCT.
    parts
        The places of FROM, WHERE, GROUP, HAVING, QUALIFY, WINDOW and of what sorts and limits, in order.
    """

    tokens: TokenList
    range: Range
    items: Range
    parts: tuple[int, ...]

    @property
    def tail(self) -> Range:
        """What sorts and limits, with its words."""
        begins = (at for at in self.parts if self.tokens.word(at) in (*_SORTS, "LIMIT", "OFFSET"))
        return next(begins, self.range[1]), self.range[1]

    def part(self, word: str) -> Range | None:
        """The last part with this word, without it: of windows where there are two."""
        places = [at for at in self.parts if self.tokens.word(at) == word]
        if not places:
            return None
        after = next((at for at in self.parts if at > places[-1]), self.range[1])
        return places[-1] + 1 + (word == "GROUP"), after

    def is_in(self, word: str, at: int) -> bool:
        """Whether a token stands in the part with this word."""
        part = self.part(word)
        return part is not None and part[0] <= at < part[1]


def outermost_calls(tokens: TokenList, functions: KnownFunctions) -> Iterator[int]:
    """The tokens with the last part of a name that is called, none inside of another call."""
    stop = -1
    for at in every_call(tokens, functions):
        if at > stop:
            stop = tokens.partner[at + 1]
            yield at


def every_call(tokens: TokenList, functions: KnownFunctions) -> Iterator[int]:
    """The same, also of calls in the arguments of others."""
    return (at for at in range(len(tokens)) if functions.called(tokens, at) is not None)


def first_of_call(tokens: TokenList, call: int) -> int:
    """The token at which the name begins that is called."""
    return call - 2 * len(called_name(tokens, call) or ()) + 2


def operands_of_call(tokens: TokenList, call: Range) -> list[int]:
    """Where the operands of a call begin, their relations."""
    return operands_in(tokens, (next(at for at in range(*call) if tokens.is_symbol(at, "(")), call[1]))


def operands_in(tokens: TokenList, part: Range) -> list[int]:
    """Where the operands of an expression begin."""
    return [at for at in range(*part) if may_be_operand(tokens, at)]


def end_of_column(tokens: TokenList, at: int) -> int:
    """The token after a column with its relation and fields, which begins at a token."""
    last = at + 1
    while tokens.is_symbol(last, ".") and tokens[last + 1].is_name:
        last += 2
    return last


def depth_of(tokens: TokenList, at: int, scope: VisibleRelations) -> int:
    """How many queries in brackets are between a token and a query around it."""
    depth, parent = 0, tokens.parent[at]
    while parent >= 0 and parent >= scope.at:
        depth += opens_query(tokens, parent)
        parent = tokens.parent[parent]
    return depth


def names_beyond(tokens: TokenList, select: SelectText) -> frozenset[str]:
    """The names of relations, in lower case, that only queries around a SELECT have."""
    first = select.items[0]
    clauses: list[BlockText | MatchRelation] = [*find_window_queries(tokens), *find_matches(tokens)]
    own, outer = set[str](), set[str]()
    for scope in scopes(tokens, first, clauses):
        (own if depth_of(tokens, first, scope) == 0 else outer).update(scope.names)
    return frozenset(outer - own)


def lambda_around(tokens: TokenList, call: int) -> int | None:
    """The arrow of the lambda function around a call; None around others.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("g(xs, x -> 1 + f(x), f(y))")
    >>> [lambda_around(tokens, at) for at in range(len(tokens)) if tokens[at].text == "f"]
    [5, None]
    """
    inside = call
    while (opened := tokens.parent[inside]) >= 0:
        own = (at for at in range(inside - 1, opened, -1) if tokens.parent[at] == opened)
        found = next((at for at in own if any(tokens.is_symbol(at, one) for one in (",", "->"))), opened)
        if tokens.is_symbol(found, "->"):
            return found
        inside = opened
    return None


def reads_rows(tokens: TokenList, part: Range) -> bool:
    """Whether a part is computed over several rows."""
    has_over = any(tokens.word(at) == "OVER" and tokens.is_symbol(at - 1, ")") for at in range(*part))
    return has_over or calls_aggregate(tokens, part)


def is_of_relation(tokens: TokenList, call: int) -> bool:
    """Whether a function is called in FROM."""
    return begins_relation(tokens, first_of_call(tokens, call))


def windows_of(tokens: TokenList, select: SelectText) -> BlockText | None:
    """The SELECT with WINDOW BY that this one is; None without windows."""
    first = select.items[0] - 1
    first -= tokens.word(first) in ("DISTINCT", "ALL")
    return next((one for one in find_window_queries(tokens) if one.range[0] == first), None)


def alone_in_lateral(tokens: TokenList, at: int) -> tuple[Range, str] | None:
    """The brackets of a query after LATERAL that is only a call for a value, and the name of its column."""
    first, close = first_of_call(tokens, at), tokens.partner[at + 1]
    opened = first - 2
    if tokens.word(first - 1) != "SELECT" or tokens.word(opened - 1) != "LATERAL":
        return None
    last = tokens.partner[opened]
    named = aliased(tokens, (first, last))
    if named is None:
        return ((opened, last + 1), tokens.text(first, last)) if last == close + 1 else None
    return ((opened, last + 1), named[0]) if named[1] == (first, close + 1) else None


def select_around(tokens: TokenList, call: int) -> SelectText | None:
    """The SELECT around a call for a value; None in FROM, and where another query is the nearest."""
    return None if is_of_relation(tokens, call) else select_at(tokens, call)


def select_at(tokens: TokenList, inside: int) -> SelectText | None:
    """The SELECT around a token; None where another query is the nearest."""
    while True:
        start, stop = level_around(tokens, inside)
        level = [at for at in tokens.level(start, stop) if tokens.parent[at] == tokens.parent[inside]]
        ends = [at for at in level if _ends_query(tokens, at)]
        first = max((at + 1 for at in ends if at < inside), default=start)
        stop = min((at for at in ends if at > inside), default=stop)
        own = [at for at in level if first <= at < stop]
        select = next((at for at in own if tokens.word(at) == "SELECT" and _is_word(tokens, at)), None)
        if select is not None or tokens.parent[inside] < 0:
            break
        inside = tokens.parent[inside]
    if select is None:
        return None
    listed = next((at for at in own if at > select and _ends_select(tokens, at)), stop)
    clause = next((at for at in own if begins_window_by(tokens, at)), None)
    after = listed if clause is None else tokens.partner[clause + 4] + 1
    before = [at for at in own if listed <= at < after and tokens.word(at) == "FROM"]
    parts = [*before[:1], *(at for at in own if at >= after and _begins_part(tokens, at))]
    begins = next((at for at in own if at < select and tokens.word(at) == "FROM"), select)
    items = without_distinct(tokens, (select + 1, listed))
    return SelectText(tokens, (begins, stop), items, tuple(parts))


def _is_word(tokens: TokenList, at: int) -> bool:
    return not tokens.is_symbol(at - 1, ".")


def _ends_query(tokens: TokenList, at: int) -> bool:
    """Whether another query begins at a token, or an operator over this one."""
    return is_set_operator(tokens, at) or any(tokens.is_symbol(at, symbol) for symbol in ("|>", ";"))


def _begins_part(tokens: TokenList, at: int) -> bool:
    """Whether a part of a SELECT begins at a token, behind what it selects."""
    word = tokens.word(at)
    if tokens.is_symbol(at - 1, ".") or tokens.word(at - 1) == "AS":
        return False
    if word == "WINDOW":
        return tokens.word(at + 2) == "AS"
    if word in _SORTS or word == "GROUP":
        return tokens.word(at + 1) == "BY"
    is_distinct = tokens.word(at - 1) == "DISTINCT" and tokens.word(at - 2) in ("IS", "NOT")
    return word in _AFTER_SELECT and not is_distinct


def _ends_select(tokens: TokenList, at: int) -> bool:
    """Whether the list of SELECT ends before a token."""
    return _begins_part(tokens, at) and tokens.word(at) != "WINDOW"

"""Items of a SELECT list: their expressions and their aliases."""

from __future__ import annotations

from collections.abc import Iterable

from windrow.syntax.nodes import Range
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import Token, TokenKind, TokenList

__all__ = [
    "alias_of",
    "aliased",
    "computes_name",
    "excepted",
    "is_path",
    "stars_in_calls",
    "without_alias",
    "without_distinct",
]

_OPERATORS = {"AND", "OR", "NOT", "IS", "DISTINCT", "FROM", "LIKE", "ILIKE", "RLIKE", "IN", "BETWEEN", "DIV"}
_BEFORE_NAMES = {"THEN", "ELSE", "WHEN", "OVER", "COLLATE"}
"""Words of an expression that a name follows without being an alias: a value, a named window, a collation."""


def aliased(tokens: TokenList, item: Range) -> tuple[str, Range] | None:
    """The alias of an item of SELECT as it is written, and the expression before it; None without an alias.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("a + 1 AS b")
    >>> aliased(tokens, (0, 5))
    ('b', (0, 3))
    >>> aliased(tokenize("a + INTERVAL 1 DAY"), (0, 5))
    """
    start, stop = item
    if stop - start < 2 or not tokens[stop - 1].is_name or tokens.is_symbol(stop - 2, "."):
        return None
    if tokens.word(stop - 2) == "AS":
        return tokens[stop - 1].name, (start, stop - 2)
    of_nulls = tokens.word(stop - 1) == "NULLS" and tokens.word(stop - 2) in ("IGNORE", "RESPECT")
    if of_nulls or tokens.word(stop - 1) == "END" or not _ends_operand(tokens[stop - 2]):
        return None
    if _ends_interval(tokens, start, stop):
        return None
    return tokens[stop - 1].name, (start, stop - 1)


def _ends_interval(tokens: TokenList, start: int, stop: int) -> bool:
    """Whether the last word of an item is a unit: ``INTERVAL 1 DAY``, ``INTERVAL '1-2' YEAR TO MONTH``."""
    is_range = tokens.word(stop - 2) == "TO" and stop - 5 >= start and tokens.word(stop - 5) == "INTERVAL"
    is_one = stop - 3 >= start and tokens.word(stop - 3) == "INTERVAL" and not tokens[stop - 2].is_name
    return is_range or is_one


def is_path(tokens: TokenList, part: Range) -> bool:
    """Whether a part is names with dots between them.

    >>> from windrow.syntax.tokens import tokenize
    >>> [is_path(tokenize(text), (0, size)) for text, size in (("a.b", 3), ("CASE WHEN a THEN b END", 6))]
    [True, False]
    """
    start, stop = part
    places = range(start, stop)
    has_dots = all(tokens.is_symbol(at, ".") if (at - start) % 2 else tokens[at].is_name for at in places)
    return has_dots and (stop - start) % 2 == 1


def alias_of(tokens: TokenList, item: Range) -> str | None:
    """The alias of an item of SELECT, in lower case."""
    found = aliased(tokens, item)
    return found[0].lower() if found else None


def without_alias(tokens: TokenList, item: Range) -> Range:
    """The expression of an item of SELECT."""
    found = aliased(tokens, item)
    return found[1] if found else item


def without_distinct(tokens: TokenList, select: Range) -> Range:
    """The items of a SELECT list, without the word DISTINCT or ALL before them."""
    start, stop = select
    return (start + 1 if tokens.word(start) in ("DISTINCT", "ALL") else start), stop


def _ends_operand(token: Token) -> bool:
    """Whether an expression can end with this token, so that a name after it is an alias."""
    if token.kind is TokenKind.SYMBOL:
        return token.text in (")", "]", "?")
    return token.word not in _OPERATORS | _BEFORE_NAMES


def excepted(tokens: TokenList, item: Range) -> int | None:
    """The bracket of ``* EXCEPT (…)``, or of ``r.* EXCEPT (…)``; None for other items."""
    bracket = tokens.partner.get(item[1] - 1, -1) if tokens.is_symbol(item[1] - 1, ")") else -1
    is_star = bracket - 2 >= item[0] and tokens.is_symbol(bracket - 2, "*")
    return bracket if is_star and tokens.word(bracket - 1) == "EXCEPT" else None


def computes_name(tokens: TokenList, at: int) -> bool:
    """Whether a name is computed there, as in ``IDENTIFIER('s.day')``, which may be any."""
    return tokens.word(at) == "IDENTIFIER" and tokens.is_symbol(at + 1, "(")


def stars_in_calls(tokens: TokenList, ranges: Iterable[Range]) -> list[int]:
    """The stars in functions that stand for all columns, as in ``struct(*)``; not those of COUNT(*).

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("2 * v, COUNT(*), hash(a, *), w.*, (SELECT hash(*) FROM t), COUNT(DISTINCT *)")
    >>> [tokens.text(at - 1, at + 2) for at in stars_in_calls(tokens, [(0, len(tokens))])]
    [', *)', 'DISTINCT *)']
    """
    found = []
    for start, stop in ranges:
        for at in range(start, stop):
            opened = tokens.parent[at]
            is_first = tokens.is_symbol(at - 1, "(") or tokens.is_symbol(at - 1, ",")
            is_all = is_first or (tokens.word(at - 1) in ("DISTINCT", "ALL") and opened == at - 2)
            if (
                not tokens.is_symbol(at, "*")
                or not is_all
                or opened < start
                or not tokens[opened - 1].is_name
            ):
                continue
            counts = tokens.word(opened - 1) == "COUNT" and opened == at - 1 and tokens.is_symbol(at + 1, ")")
            around = opened
            while around >= start and not opens_query(tokens, around):
                around = tokens.parent[around]
            if not counts and around < start:
                found.append(at)
    return found

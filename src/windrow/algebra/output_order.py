"""The columns of a query's result by which its own ORDER BY sorts, and those that it lacks."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.names import verbatim
from windrow.algebra.qualified import is_same, relations_of
from windrow.algebra.scopes import ends_from, is_clause, parts_of_from
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.order_by import order_at, order_item
from windrow.syntax.select_list import aliased, without_alias
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["output_order", "with_keys"]

_KEY = "__key"
_AFTER_ORDER = ("LIMIT", "OFFSET")


def output_order(
    tokens: TokenList, start: int, stop: int, names: Sequence[str]
) -> tuple[tuple[int, OrderItem], ...]:
    """The columns of a query's result by which its own ORDER BY sorts, from 0 on.

    An element is a column of the result if it is its name, its number, or an item of SELECT, whose column may
    have its relation in one of the places. From the first other element on, keys are left out: see
    :func:`with_keys`.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("SELECT a.k, MAX(v) AS best FROM t GROUP BY a.k ORDER BY best DESC, a.k, v LIMIT 3")
    >>> found = output_order(tokens, 0, len(tokens.tokens), ["k", "best"])
    >>> [(place, item.descending) for place, item in found]
    [(1, True), (0, False)]
    >>> tokens = tokenize("SELECT v, t.k AS x, s.a AS y FROM t ORDER BY k, t.v, a")
    >>> [place for place, _ in output_order(tokens, 0, len(tokens.tokens), ["v", "x", "y"])]
    [1, 0]
    """
    found = _elements(tokens, start, stop)
    if found is None:
        return ()
    start, order, items = found
    if _is_all(tokens, items, names):
        return tuple((place, items[0]) for place in range(len(names)))
    selected = _selected(tokens, start, order)
    if len(selected) != len(names):  # a star stands for several columns
        selected = []
    parts = parts_of_from(tokens, (start, order)) if selected else None
    relations = set[str]() if parts is None else set(relations_of(tokens, (parts[0][0] - 1, parts[0][1])))
    places = []
    for item in items:
        place = _named(tokens, item.expression, names)
        if place is None:
            same = [is_same(tokens, one, item.expression, relations) for one in selected]
            place = same.index(True) if True in same else len(names)
        if place >= len(names):
            break
        places.append((place, item))
    return tuple(places)


def with_keys(
    tokens: TokenList, start: int, stop: int, names: Sequence[str], source: TokenList
) -> tuple[SqlText, Range, tuple[str, ...]] | None:
    """The text with the keys of ORDER BY that :func:`output_order` leaves out as columns, after the others.

    Parameters
    ----------
    source
        The text as the user wrote it, which may have more words, at places that are blank in `tokens`.

    Returns
    -------
    tuple[SqlText, Range, tuple[str, ...]] | None
        The text, the place of the first such key, and the names of the columns; None without such keys.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("SELECT v * 2 AS w FROM t ORDER BY w, k DESC, w + 1 LIMIT 3")
    >>> text, place, names = with_keys(tokens, 0, len(tokens.tokens), ["w"], tokens)
    >>> print(text.render())
    SELECT v * 2 AS w, k AS __key0, (v * 2) + 1 AS __key1 FROM t ORDER BY w, __key0 DESC, __key1 LIMIT 3
    >>> names
    ('__key0', '__key1')
    >>> tokens = tokenize("(SELECT v FROM t) UNION (SELECT v FROM t) ORDER BY -v")
    >>> print(with_keys(tokens, 0, len(tokens.tokens), ["v"], tokens)[0].render())
    SELECT *, -v AS __key0 FROM ((SELECT v FROM t) UNION (SELECT v FROM t)) ORDER BY __key0
    """
    found = _elements(tokens, start, stop)
    if found is None or _is_all(tokens, found[2], names):
        return None
    start, order, items = found
    rest = items[len(output_order(tokens, start, stop, names)) :]
    if not rest:
        return None
    place = (rest[0].expression[0], rest[-1].expression[1])
    select = _select_list(tokens, start, order)
    listed = [] if select is None else tokens.split(*select)
    aliases = {named[0].lower(): named[1] for item in listed if (named := aliased(tokens, item)) is not None}

    def written(first: int, last: int) -> SqlText:
        parts: list[SqlText | str] = []
        done = tokens[first].start
        for at in range(first, last):
            name = tokens[at].name.lower() if tokens[at].is_name else ""
            is_part = tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at + 1, ".")
            if name in aliases and not is_part and not tokens.is_symbol(at + 1, "("):
                before, (a, b) = verbatim(source, done, tokens[at].start), aliases[name]
                parts += [before, "(", verbatim(source, tokens[a].start, tokens[b - 1].stop), ")"]
                done = tokens[at].stop
        return SqlText.of(*parts, verbatim(source, done, tokens[last - 1].stop))

    keys = tuple(f"{_KEY}{number}" for number in range(len(rest)))
    columns = [
        SqlText.of(written(*one.expression), f" AS {key}") for one, key in zip(rest, keys, strict=True)
    ]
    added = SqlText.join(", ", columns)
    if select is None:  # of a set operator: ORDER BY sees only its columns
        begin, end = tokens[start].start, tokens[order - 1].stop
        parts: list[SqlText | str] = [verbatim(source, 0, begin), "SELECT *, ", added]
        parts += [" FROM (", verbatim(source, begin, end), ")"]
    else:
        end = tokens[select[1] - 1].stop
        parts = [verbatim(source, 0, end), ", ", added]
    for one, key in zip(rest, keys, strict=True):
        first, last = one.expression
        parts += [verbatim(source, end, tokens[first].start), key]
        end = tokens[last - 1].stop
    return SqlText.of(*parts, verbatim(source, end, len(source.sql))), place, keys


def _elements(tokens: TokenList, start: int, stop: int) -> tuple[int, int, list[OrderItem]] | None:
    """The beginning of the query without its brackets, its ORDER BY, and the elements of that."""
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    order = order_at(tokens, start, stop)
    if order is None:
        return None
    level = tokens.level(order + 2, stop)
    end = next((at for at in level if tokens.word(at) in _AFTER_ORDER), stop)
    return start, order, [order_item(tokens, item) for item in tokens.split(order + 2, end)]


def _is_all(tokens: TokenList, items: Sequence[OrderItem], names: Sequence[str]) -> bool:
    is_all = len(items) == 1 and tokens.text(*items[0].expression).upper() == "ALL"
    return is_all and "all" not in map(str.lower, names)


def _named(tokens: TokenList, expression: Range, names: Sequence[str]) -> int | None:
    """The place of the column with this number or name; as many as there are if none, or several, have it.

    None for other expressions, and for names of no column.
    """
    token = tokens[expression[0]]
    if expression[1] - expression[0] != 1:
        return None
    if token.kind is TokenKind.NUMBER and token.text.isdigit():
        return int(token.text) - 1 if 0 < int(token.text) <= len(names) else len(names)
    found = [at for at, name in enumerate(names) if token.is_name and name.lower() == token.name.lower()]
    if not found:
        return None
    return found[0] if len(found) == 1 else len(names)


def _selected(tokens: TokenList, start: int, stop: int) -> list[Range]:
    """The items of SELECT without aliases, for a single query without brackets."""
    select = _select_list(tokens, start, stop)
    return [] if select is None else [without_alias(tokens, item) for item in tokens.split(*select)]


def _select_list(tokens: TokenList, start: int, stop: int) -> Range | None:
    """The SELECT list of a single query without brackets, which may begin with FROM."""
    level = tokens.level(start, stop)
    words = [tokens.word(at) for at in level]
    if tokens.word(start) not in ("SELECT", "WITH", "FROM") or words.count("SELECT") != 1:
        return None
    first = level[words.index("SELECT")] + 1
    first += tokens.word(first) in ("DISTINCT", "ALL")
    after = (at for at in level if at > first and (is_clause(tokens, at, "FROM") or ends_from(tokens, at)))
    return first, next(after, stop)

"""The shape of a query: its set operators, SELECTs and their clauses, as ranges of tokens.

Only the parts that operators over time-varying relations need are parsed. A text of another shape raises
:class:`UnknownShapeError`, which is no error of the user: Spark can still evaluate the whole.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from windrow.syntax.cql_clauses import alias_after, lists_rows
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.order_by import order_item
from windrow.syntax.query_parts import with_items
from windrow.syntax.tokens import TokenList

__all__ = [
    "FromItem",
    "OrderedBlock",
    "Select",
    "SetOperationText",
    "Shape",
    "UnknownShapeError",
    "conjuncts",
    "is_query",
    "parse_query",
    "parse_select",
]


_OF_PIPES = (
    "name columns in ORDER BY, write SELECT of several relations before ORDER BY if groups or joins follow,"
    " and LIMIT and UNION after |>; or nest SELECTs in FROM"
)


class UnknownShapeError(Exception):
    """The part of the query that is not parsed, its tokens, and how to write it instead, as far as known."""

    def __init__(self, what: str, at: Range | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.at, self.hint = at, hint


@dataclass(frozen=True, slots=True)
class FromItem:
    """A relation in FROM: its tokens, its alias, and how it is joined to those before it.

    One that is `lateral` reads those; it may be the call of a function, as of LATERAL VIEW. `join` is inner,
    left, right, full, semi or anti; `on` the condition, None for all pairs. `using` are the columns that are
    to be equal, None with NATURAL for all that both sides have. `turned` is an item that PIVOT or UNPIVOT
    follows, and the tokens of these.
    """

    source: Range
    alias: str | None
    columns: tuple[str, ...]
    join: str = "inner"
    on: Range | None = None
    using: tuple[str, ...] | None = ()
    lateral: bool = False
    turned: tuple[FromItem, Range] | None = None


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT: the ranges of its clauses, without their words; without FROM it has no `source`.

    `windows` are the named windows: the brackets with their definitions.
    """

    distinct: bool
    items: tuple[Range, ...]
    source: tuple[FromItem, ...]
    where: Range | None = None
    group_by: Range | None = None
    having: Range | None = None
    window: Range | None = None
    qualify: Range | None = None


@dataclass(frozen=True, slots=True)
class OrderedBlock:
    """The first rows of a query in an order: all from the row `offset` on, or `limit` of them."""

    query: Shape
    order: tuple[OrderItem, ...]
    limit: Range | None
    offset: Range | None


@dataclass(frozen=True, slots=True)
class SetOperationText:
    """A set operator: union, intersect or except, of bags if `all`."""

    operator: str
    all: bool
    left: Shape
    right: Shape


Shape = Select | SetOperationText | OrderedBlock

_SET = {"UNION": "union", "INTERSECT": "intersect", "EXCEPT": "except", "MINUS": "except"}
_OTHER = {"PIVOT", "UNPIVOT", "TABLESAMPLE", "ASOF"}
_TURNS = ("PIVOT", "UNPIVOT")
_TAIL = {"LIMIT", "OFFSET", "SORT", "CLUSTER", "DISTRIBUTE"}
_CLAUSES = {"WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY"}
_JOINS = {
    (): "inner", ("INNER",): "inner", ("CROSS",): "inner",
    ("LEFT",): "left", ("LEFT", "OUTER"): "left", ("RIGHT",): "right", ("RIGHT", "OUTER"): "right",
    ("FULL",): "full", ("FULL", "OUTER"): "full",
    ("LEFT", "SEMI"): "semi", ("SEMI",): "semi", ("LEFT", "ANTI"): "anti", ("ANTI",): "anti",
}  # fmt: skip
_JOIN_WORDS = {word for words in _JOINS for word in words} | {"NATURAL", "ASOF"}


def parse_query(tokens: TokenList, start: int, stop: int, *, wholly: bool = False) -> Shape:
    """The shape of a query without its own WITH list; ORDER BY alone does not order a bag.

    With `wholly` SELECTs may have lateral queries in FROM, or no FROM, and queries inside a WITH list.

    Raises
    ------
    UnknownShapeError
        Saying what is in it.
    """
    shape = _query(tokens, start, stop, wholly)
    if not wholly:
        _refuse_more(tokens, shape)
    return shape


def _refuse_more(tokens: TokenList, shape: Shape) -> None:
    """Refuse parts that only some callers support."""
    if isinstance(shape, OrderedBlock):
        _refuse_more(tokens, shape.query)
    elif isinstance(shape, SetOperationText):
        _refuse_more(tokens, shape.left)
        _refuse_more(tokens, shape.right)
    elif not shape.source:
        raise UnknownShapeError("SELECT without FROM")
    else:
        for item in shape.source:
            if item.lateral:
                raise UnknownShapeError("LATERAL", (item.source[0] - 1, item.source[0]))
            if item.turned is not None:
                start, _ = item.turned[1]
                raise UnknownShapeError(tokens.word(start), (start, start + 1))


def _query(tokens: TokenList, start: int, stop: int, wholly: bool) -> Shape:
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    listed = with_items(tokens, start) if wholly and tokens.word(start) == "WITH" else []
    if listed:
        return _query(tokens, listed[-1].item[1], stop, wholly)
    if start >= stop:
        raise UnknownShapeError("an empty query")
    level = [index for index in tokens.level(start, stop) if not tokens.is_symbol(index - 1, ".")]
    if tokens.word(start) == "WITH":
        raise UnknownShapeError("WITH inside a query", (start, start + 1))
    order = next((at for at in level if tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY"), None)
    tails = [at for at in level if _begins_tail(tokens, at)]
    others = [at for at in tails if tokens.word(at) not in ("LIMIT", "OFFSET")]
    if wholly and others and others == tails:  # the order of rows within Spark's tasks
        stop, tails = others[0], []
        level = [at for at in level if at < stop]
    strange = next(iter(others), None) if tails else None
    if strange is not None:
        raise UnknownShapeError(tokens.word(strange), (strange, strange + 1))
    if tails:
        return _ordered(tokens, start, order, tails, stop, wholly)
    if order is not None:
        stop = order
        level = [at for at in level if at < stop]
    for words in (("UNION", "EXCEPT", "MINUS"), ("INTERSECT",)):
        found = [at for at in level if tokens.word(at) in words and _is_set_operator(tokens, at)]
        if found:
            return _set_operation(tokens, start, found[-1], stop, wholly)
    if tokens.word(start) == "FROM":
        return _from_first(tokens, start, level, stop)
    if tokens.word(start) != "SELECT":
        raise UnknownShapeError(f"a query that begins with {tokens[start].text}", (start, start + 1))
    marks = _marks(tokens, level)
    if "FROM" not in marks:
        return _without_from(tokens, start + 1, level, stop)
    return parse_select(tokens, (start + 1, marks["FROM"]), marks["FROM"], stop)


def _from_first(tokens: TokenList, start: int, level: list[int], stop: int) -> Select:
    """``FROM s SELECT …``, a SELECT whose relations are named first."""
    select = next((at for at in level if tokens.word(at) == "SELECT"), None)
    if select is None:
        pipe = next((at for at in level if tokens.is_symbol(at, "|>")), None)
        if pipe is None:
            raise UnknownShapeError("FROM without SELECT", (start, start + 1))
        raise UnknownShapeError("this pipe", (pipe, stop), _OF_PIPES)
    marks = _marks(tokens, [start, *(at for at in level if at > select)])
    end = min((at for at in marks.values() if at > select), default=stop)
    return parse_select(tokens, (select + 1, end), start, stop, select)


def _without_from(tokens: TokenList, start: int, level: list[int], stop: int) -> Select:
    """A SELECT that returns one row."""
    found = [at for at in level if tokens.word(at) in _CLAUSES and tokens.word(at) != "WINDOW"]
    where = next((at for at in found if tokens.word(at) == "WHERE"), None)
    end = stop if where is None else where
    if found not in ([], [where]) or tokens.word(start) in ("DISTINCT", "ALL") or start >= end:
        raise UnknownShapeError("SELECT without FROM")
    return Select(False, tuple(tokens.split(start, end)), (), None if where is None else (where + 1, stop))


def parse_select(
    tokens: TokenList, items: Range, source: int, stop: int, source_stop: int | None = None
) -> Select:
    """A SELECT whose SELECT list is one range and whose FROM begins another, which may end elsewhere.

    Raises
    ------
    UnknownShapeError
        As :func:`parse_query`.
    """
    first, last = items
    while first < last and tokens[first].text.startswith(
        "/*+"
    ):  # how Spark is to join, which is for Spark's own plans
        first += 1
    distinct = tokens.word(first) == "DISTINCT"
    first += distinct or (tokens.word(first) == "ALL" and first + 1 < last)
    if first >= last:
        raise UnknownShapeError("SELECT without columns", (items[0] - 1, items[0]))
    level = [at for at in tokens.level(source, stop) if not tokens.is_symbol(at - 1, ".")]
    for at in level:
        is_tail = _begins_tail(tokens, at) or (tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY")
        if is_tail or (tokens.word(at) in _SET and _is_set_operator(tokens, at)):
            raise UnknownShapeError(tokens.word(at), (at, at + 1))
    marks = _marks(tokens, level)
    ordered = sorted(marks.items(), key=lambda item: item[1])
    ends = [at for _, at in ordered[1:]] + [stop]
    widths = {"GROUP": 2}
    ranges = {word: (at + widths.get(word, 1), end) for (word, at), end in zip(ordered, ends, strict=True)}
    if source_stop is not None:
        ranges["FROM"] = source + 1, source_stop
    views = _lateral_views(tokens, *ranges["FROM"])
    ends_at = views[0].source[0] if views else ranges["FROM"][1]
    while views and tokens.word(ends_at) != "LATERAL":
        ends_at -= 1
    return Select(
        distinct,
        tuple(tokens.split(first, last)),
        (*_from_items(tokens, ranges["FROM"][0], ends_at), *views),
        ranges.get("WHERE"),
        ranges.get("GROUP"),
        ranges.get("HAVING"),
        ranges.get("WINDOW"),
        ranges.get("QUALIFY"),
    )


def conjuncts(tokens: TokenList, start: int, stop: int) -> list[Range]:
    """The operands of AND in a condition; the whole condition if it is not an AND."""
    while tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1 and not is_query(tokens, start):
        start, stop = start + 1, stop - 1
    parts, first, cases, between = [], start, 0, 0
    for at in tokens.level(start, stop):
        word = "" if tokens.is_symbol(at - 1, ".") else tokens.word(at)
        cases += {"CASE": 1, "END": -1}.get(word, 0)
        if cases:
            continue
        if word == "OR":
            return [(start, stop)]
        between += word == "BETWEEN"
        if word == "AND" and between:
            between -= 1
        elif word == "AND":
            parts.append((first, at))
            first = at + 1
    if not parts:
        return [(start, stop)]
    return [inner for part in (*parts, (first, stop)) for inner in conjuncts(tokens, *part)]


def is_query(tokens: TokenList, start: int) -> bool:
    """Whether the content of a bracket is a query."""
    return tokens.word(start + 1) in ("SELECT", "WITH", "VALUES", "FROM", "TABLE")


def _ordered(
    tokens: TokenList, start: int, order: int | None, tails: list[int], stop: int, wholly: bool
) -> OrderedBlock:
    ends = [*tails[1:], stop]
    clauses = {tokens.word(at): (at + 1, end) for at, end in zip(tails, ends, strict=True)}
    if len(clauses) < len(tails) or (order is not None and order > tails[0]):
        raise UnknownShapeError("clauses in this order", (tails[0], tails[0] + 1))
    items: tuple[OrderItem, ...] = ()
    if order is not None:
        items = tuple(order_item(tokens, item) for item in tokens.split(order + 2, tails[0]))
    query = _query(tokens, start, tails[0] if order is None else order, wholly)
    return OrderedBlock(query, items, clauses.get("LIMIT"), clauses.get("OFFSET"))


def _begins_tail(tokens: TokenList, at: int) -> bool:
    word = tokens.word(at)
    if word in ("SORT", "CLUSTER", "DISTRIBUTE"):
        return tokens.word(at + 1) == "BY"
    return word in _TAIL and not tokens.is_symbol(at + 1, ",") and tokens.word(at + 1) not in ("FROM", "AS")


def _is_set_operator(tokens: TokenList, at: int) -> bool:
    follows = tokens.word(at + 1) in ("SELECT", "ALL", "DISTINCT", "FROM", "VALUES", "TABLE")
    return (follows or tokens.is_symbol(at + 1, "(")) and not tokens.is_symbol(at - 1, "*")


def _set_operation(tokens: TokenList, start: int, at: int, stop: int, wholly: bool) -> SetOperationText:
    after = at + 1 + (tokens.word(at + 1) in ("ALL", "DISTINCT"))
    left, right = _query(tokens, start, at, wholly), _query(tokens, after, stop, wholly)
    return SetOperationText(_SET[tokens.word(at)], tokens.word(at + 1) == "ALL", left, right)


def _marks(tokens: TokenList, level: list[int]) -> dict[str, int]:
    marks: dict[str, int] = {}
    for at in level:
        word = tokens.word(at)
        if word == "FROM" and tokens.word(at - 1) == "DISTINCT" and tokens.word(at - 2) in ("IS", "NOT"):
            continue
        if word == "GROUP" and tokens.word(at + 1) != "BY":
            continue
        if word == "WINDOW" and tokens.word(at + 2) != "AS":
            continue
        if word == "FROM" or (word in _CLAUSES and "FROM" in marks):
            marks.setdefault(word, at)
    return marks


def _from_items(tokens: TokenList, start: int, stop: int) -> list[FromItem]:
    items: list[FromItem] = []
    parts: list[tuple[int, int]] = []
    for first, last in tokens.split(start, stop):
        if parts and lists_rows(tokens, parts[-1]):
            parts[-1] = parts[-1][0], last
        else:
            parts.append((first, last))
    for first, last in parts:
        items += _joined(tokens, first, last)
    return items


def _lateral_views(tokens: TokenList, start: int, stop: int) -> list[FromItem]:
    """``LATERAL VIEW [OUTER] function(…) t [[AS] a, b]`` after the relations."""
    level = list(tokens.level(start, stop))
    begins = [at for at in level if tokens.word(at) == "LATERAL" and tokens.word(at + 1) == "VIEW"]
    found = []
    for begin, end in zip(begins, [*begins, stop][1:], strict=True):
        is_outer = tokens.word(begin + 2) == "OUTER" and not tokens.is_symbol(begin + 3, "(")
        at = begin + 2 + is_outer
        if not tokens.is_symbol(at + 1, "("):
            raise UnknownShapeError("LATERAL VIEW in this form", (begin, begin + 2))
        source, at = (at, tokens.partner[at + 1] + 1), tokens.partner[at + 1] + 1
        names = [
            tokens[one].name for one in range(at, end) if tokens[one].is_name and tokens.word(one) != "AS"
        ]
        alias, columns = (names[0], tuple(names[1:])) if names else (None, ())
        found.append(FromItem(source, alias, columns, "left" if is_outer else "inner", lateral=True))
    return found


def _joined(tokens: TokenList, start: int, stop: int) -> list[FromItem]:
    """The relations of one element of FROM, between the words JOIN."""
    level = [at for at in tokens.level(start, stop) if not tokens.is_symbol(at - 1, ".")]
    strange = next((at for at in level if _is_strange(tokens, at)), None)
    if (
        strange is not None
        and tokens.word(strange) in _TURNS
        and not any(tokens.word(at) == "JOIN" for at in level)
    ):
        return [_turned(tokens, start, strange, stop)]
    if strange is not None:
        raise UnknownShapeError(tokens.word(strange), (strange, strange + 1))
    joins = [at for at in level if tokens.word(at) == "JOIN"]
    begins = []
    for join in joins:
        at = join
        while at - 1 > start and tokens.word(at - 1) in _JOIN_WORDS:
            at -= 1
        begins.append(at)
    first = begins[0] if begins else stop
    items = [_item(tokens, start, first, "inner", None)]
    if _holds_relations(tokens, start, first):
        items = _from_items(tokens, start + 1, first - 1)
    for begin, join, end in zip(begins, joins, [*begins, stop][1:], strict=True):
        words = tuple(tokens.word(at) for at in range(begin, join))
        natural = words[:1] == ("NATURAL",)
        words = words[natural:]
        if words not in _JOINS:
            raise UnknownShapeError(f"{' '.join(words)} JOIN", (begin, join + 1))
        inside = [at for at in tokens.level(join + 1, end) if not tokens.is_symbol(at - 1, ".")]
        using = next((at for at in inside if tokens.word(at) == "USING"), None)
        on = next((at for at in inside if tokens.word(at) == "ON"), None)
        last = next((at for at in (on, using) if at is not None), end)
        item = _item(tokens, join + 1, last, _JOINS[words], None if on is None else (on + 1, end))
        if using is not None and on is None:
            if not tokens.is_symbol(using + 1, "("):
                raise UnknownShapeError("USING without columns", (using, using + 1))
            names = tokens.split(using + 2, tokens.partner[using + 1])
            item = replace(item, using=tuple(tokens[at].name for at, _ in names))
        items.append(replace(item, using=None) if natural else item)
    return items


def _turned(tokens: TokenList, start: int, at: int, stop: int) -> FromItem:
    """A relation with PIVOT or UNPIVOT after it, and an alias."""
    words = 3 if tokens.word(at + 1) in ("INCLUDE", "EXCLUDE") else 1
    bracket = at + words
    if not tokens.is_symbol(bracket, "("):
        raise UnknownShapeError(f"{tokens.word(at)} in this form", (at, at + 1))
    end = tokens.partner[bracket] + 1
    inner = _item(tokens, start, at, "inner", None)
    name: str | None = None
    columns: tuple[str, ...] = ()
    alias = alias_after(tokens, end, stop)
    last = end
    if alias is not None:
        name, last = tokens[alias].name, alias + 1
        if tokens.is_symbol(last, "("):
            columns = tuple(tokens[first].name for first, _ in tokens.split(last + 1, tokens.partner[last]))
            last = tokens.partner[last] + 1
    if last != stop:
        raise UnknownShapeError(f"{tokens[last].text} after {tokens.word(at)}", (last, last + 1))
    return FromItem((start, end), name, columns, turned=(inner, (at, end)))


def _holds_relations(tokens: TokenList, start: int, stop: int) -> bool:
    """Whether a bracket contains joined relations, and not a query."""
    if not (tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1) or is_query(tokens, start):
        return False
    level = list(tokens.level(start + 1, stop - 1))
    joins = any(tokens.word(at) == "JOIN" for at in level)
    return joins and not any(tokens.word(at) in _SET and _is_set_operator(tokens, at) for at in level)


def _is_strange(tokens: TokenList, at: int) -> bool:
    """Whether a word of FROM begins a part that is not parsed."""
    return tokens.word(at) in _OTHER or (tokens.word(at) == "LATERAL" and not _is_lateral(tokens, at))


def _is_lateral(tokens: TokenList, at: int) -> bool:
    """Whether LATERAL stands before a query, or before the call of a function."""
    return tokens.is_symbol(at + 1, "(") or (tokens.is_name(at + 1) and tokens.is_symbol(at + 2, "("))


def _item(tokens: TokenList, start: int, stop: int, join: str, on: Range | None) -> FromItem:
    is_lateral = tokens.word(start) == "LATERAL" and start + 1 < stop and _is_lateral(tokens, start)
    start += is_lateral
    if start >= stop:
        raise UnknownShapeError("an empty FROM")
    at = start + 1
    if tokens.word(start) == "CHANGELOG" and tokens.is_symbol(start + 2, "("):
        at = tokens.partner[start + 2] + 1
        if tokens.word(at) == "KEY" and tokens.is_symbol(at + 1, "("):
            at = tokens.partner[at + 1] + 1
    elif tokens.is_symbol(start, "("):
        at = tokens.partner[start] + 1
    elif tokens.word(start) == "VALUES" and at < stop and not tokens.is_name(at) and tokens[at].text != ".":
        first, last = tokens.split(at, stop)[-1]  # the last row, with the alias
        ends = (one for one in tokens.level(first + 1, last) if tokens[one].is_name)
        at = tokens.partner[first] + 1 if tokens.is_symbol(first, "(") else next(ends, last)
    elif tokens[start].is_name:
        while tokens.is_symbol(at, ".") and at + 1 < stop:
            at += 2
        if tokens.is_symbol(at, "("):
            at = tokens.partner[at] + 1  # a function, or ISTREAM(…)
            if tokens.word(at) in ("DIFFERENCE", "DIFFERENCES") and tokens.is_symbol(at + 2, "("):
                at = tokens.partner[at + 2] + 1
    if tokens.is_symbol(at, "[") and at < stop:
        at = tokens.partner[at] + 1
    source = (start, at)
    alias = alias_after(tokens, at, stop)
    columns: tuple[str, ...] = ()
    name = tokens[at - 1].name if alias is None and tokens[at - 1].is_name else None
    if alias is None and tokens[start].is_name and tokens.is_symbol(start + 1, "["):
        name = tokens[start].name
    if alias is not None:
        name, at = tokens[alias].name, alias + 1
        if tokens.is_symbol(at, "("):
            columns = tuple(tokens[first].name for first, _ in tokens.split(at + 1, tokens.partner[at]))
            at = tokens.partner[at] + 1
    if at != stop:
        raise UnknownShapeError(f"{tokens[at].text} in FROM", (at, at + 1))
    return FromItem(source, name, columns, join, on, lateral=is_lateral)

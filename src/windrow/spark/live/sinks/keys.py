"""The key of an upsert: the user's, or that of the query's GROUP BY or DISTINCT."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.errors import AnalysisError, no_column
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, OrderedBlock, Select, Shape, UnknownShapeError, parse_query
from windrow.syntax.query_parts import with_items
from windrow.syntax.select_list import without_alias
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["derived_key", "key_places"]

_GENERATORS = {"EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "INLINE", "INLINE_OUTER"}
_GENERATORS |= {"STACK", "JSON_TUPLE", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER"}


def key_places(plan: LivePlan, key: Sequence[str] | None) -> tuple[int, ...]:
    """The places of a key among the columns of a query's relation.

    Parameters
    ----------
    key
        The names of its columns; None to derive it from the query.

    Raises
    ------
    AnalysisError
        ``UNRESOLVED_COLUMN``, ``AMBIGUOUS_REFERENCE``; ``MISSING_KEY`` if it cannot be derived.
    """
    names = plan.table_columns
    if key is not None:
        return tuple(dict.fromkeys(_place(names, name) for name in key))
    found = None if plan.has_ttl else derived_key(plan.text[plan.span.start : plan.span.stop])
    if found is None or any(place >= len(names) for place in found):
        raise AnalysisError(
            "cannot derive the key columns of the query",
            condition="MISSING_KEY",
            sql=plan.text,
            span=plan.span,
            hint="name them: relation.start(…, mode='upsert', key=['a', 'b']); or select all columns of"
            " GROUP BY",
        )
    return found


def derived_key(text: str) -> tuple[int, ...] | None:
    """The places of columns that are a key of the query's result; None if they cannot be derived.

    >>> derived_key("SELECT COUNT(*) AS n, k FROM s GROUP BY k")
    (1,)
    >>> derived_key("SELECT upper(k) AS k, COUNT(*) AS n FROM s GROUP BY k")
    """
    tokens = tokenize(text)
    items = with_items(tokens, 0) if tokens.word(0) == "WITH" else []
    try:
        return _of(tokens, parse_query(tokens, items[-1].item[1] if items else 0, len(tokens)))
    except UnknownShapeError:
        return None


def _of(tokens: TokenList, shape: Shape) -> tuple[int, ...] | None:
    if isinstance(shape, OrderedBlock):
        return _of(tokens, shape.query)
    if not isinstance(shape, Select):
        return None
    expressions = [without_alias(tokens, item) for item in shape.items]
    if any(_is_several(tokens, item) for item in shape.items):
        return None
    if shape.distinct:
        return tuple(range(len(expressions)))
    if shape.group_by is None:
        return () if any(calls_aggregate(tokens, item) for item in shape.items) else None
    keys = _grouped_by(tokens, shape.group_by, expressions)
    places = [None] if keys is None else [_place_in(tokens, expressions, each, shape.source) for each in keys]
    found = tuple(place for place in places if place is not None)
    # with two keys of one name it is unknown which of them is selected
    return found if len({*found}) == len(places) else None


def _grouped_by(tokens: TokenList, clause: Range, expressions: Sequence[Range]) -> list[Range] | None:
    """The expressions of GROUP BY; None for several sets of them."""
    start, stop = clause
    if stop - start == 1 and tokens.word(start) == "ALL":
        return [each for each in expressions if not calls_aggregate(tokens, each)]
    if {tokens.word(at) for at in tokens.level(start, stop)} & {"ROLLUP", "CUBE", "GROUPING"}:
        return None
    keys = []
    for first, last in tokens.split(start, stop):
        key = (first, last)
        if last - first == 1 and tokens[first].kind is TokenKind.NUMBER:
            number = tokens[first].text
            if not number.isdigit() or not 1 <= int(number) <= len(expressions):
                return None
            key = expressions[int(number) - 1]
        keys.append(key)
    return keys


def _place(names: Sequence[str], name: str) -> int:
    found = [place for place, known in enumerate(names) if known.lower() == name.lower()]
    if len(found) == 1:
        return found[0]
    if found:
        raise AnalysisError(
            f"the relation has {len(found)} columns {name}",
            condition="AMBIGUOUS_REFERENCE",
            sqlstate="42704",
            hint="rename one of them with AS",
        )
    raise no_column("the relation has", name, names)


def _is_several(tokens: TokenList, item: Range) -> bool:
    """Whether an item of SELECT may be several columns or rows: a star, or a call of a generator."""
    start = item[0]
    star = start if tokens.is_symbol(start, "*") else start + 2
    if tokens.is_symbol(star, "*") and (star == start or tokens.is_symbol(start + 1, ".")):
        return True
    return tokens.word(start) in _GENERATORS and tokens.is_symbol(start + 1, "(")


def _place_in(
    tokens: TokenList, keys: Sequence[Range], item: Range, source: Sequence[FromItem]
) -> int | None:
    """The place of an expression among some keys; None if it is not certainly one of them.

    Spaces and case do not matter, nor the qualifier of a name if only one of the two has it.
    """
    aliases = [((each.alias or "").lower(),) for each in source if all(of.using == () for of in source)]
    parts = [_parts(tokens, each) for each in (item, *keys)]
    own, listed = parts[0], parts[1:]
    if own in listed:
        return listed.index(own)
    found = [
        place
        for place, each in enumerate(listed)
        if own[0] == each[0] == "" and own[-1] == each[-1] and min(len(own), len(each)) == 2
        if max(own, each, key=len)[1:-1] in aliases
    ]
    return found[0] if len(found) == 1 else None


def _parts(tokens: TokenList, item: Range) -> tuple[str, ...]:
    """An expression: the parts of a name after an empty one, or its text."""
    expression = parse_expression(tokens, *item)
    if isinstance(expression, Name):
        return ("", *(part.lower() for part in expression.parts))
    texts = (
        tokens[at].text if tokens[at].kind is TokenKind.STRING else tokens[at].text.lower()
        for at in range(*item)
    )
    return (" ".join(texts),)

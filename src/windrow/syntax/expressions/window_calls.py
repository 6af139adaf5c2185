"""Window functions, ``f(…) OVER (…)``: where they are, and which rows of its partition each reads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.order_by import order_item
from windrow.syntax.queries import UnknownShapeError
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["OverCall", "is_over", "window_calls"]

_RANKS = {"ROW_NUMBER", "RANK", "DENSE_RANK"}
_OF_PARTITIONS = {"LEAD", "NTILE", "PERCENT_RANK", "CUME_DIST"}
_FRAMES = ("ROWS", "RANGE")
_RUNNING = {"", "UNBOUNDED PRECEDING", "BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"}
_OTHERS = {"DISTRIBUTE", "SORT", "CLUSTER"}


@dataclass(frozen=True, slots=True)
class OverCall:
    """A call of a window function.

    Attributes
    ----------
    range
        Its tokens, with OVER and what follows.
    over
        The token OVER.
    definition
        What is in the brackets, which may stand in the WINDOW clause.
    partition, order
        The expressions there.
    looks_back
        Whether it reads no row after those with the keys of its own.
    reach
        How many rows before those with the keys of its own it reads at most; None for all.
    function
        Its name, in capitals.
    runs
        Whether it is ordered, and reads all rows up to its own.
    """

    range: Range
    over: int
    definition: Range
    partition: tuple[Range, ...]
    order: tuple[OrderItem, ...]
    looks_back: bool
    reach: int | None
    function: str
    runs: bool


def window_calls(tokens: TokenList, stretches: Iterable[Range], named: Range | None) -> list[OverCall]:
    """The window functions in some ranges; `named` are the definitions of WINDOW.

    Raises
    ------
    UnknownShapeError
        For what is not taken apart.
    """
    definitions = {}
    for start, stop in [] if named is None else tokens.split(*named):
        if not (
            tokens[start].is_name and tokens.word(start + 1) == "AS" and tokens.is_symbol(start + 2, "(")
        ):
            raise UnknownShapeError("WINDOW of this form", (start, stop))
        definitions[tokens[start].name.lower()] = (start + 3, tokens.partner[start + 2])
    return [
        _call(tokens, at, definitions)
        for start, stop in stretches
        for at in range(start, stop)
        if is_over(tokens, at)
    ]


def is_over(tokens: TokenList, at: int) -> bool:
    """Whether the token is the OVER of a window function."""
    after_nulls = tokens.word(at - 1) == "NULLS" and tokens.word(at - 2) in ("IGNORE", "RESPECT")
    return tokens.word(at) == "OVER" and tokens.is_symbol(at - 3 if after_nulls else at - 1, ")")


def _call(tokens: TokenList, over: int, definitions: dict[str, Range]) -> OverCall:
    if tokens.is_symbol(over + 1, "("):
        stop = tokens.partner[over + 1] + 1
        definition = (over + 2, stop - 1)
    else:
        stop = over + 2
        known = definitions.get(tokens[over + 1].name.lower()) if tokens[over + 1].is_name else None
        if known is None:
            raise UnknownShapeError("OVER of this form", (over, stop))
        definition = known
    at = over - 1
    skips_nulls = tokens.word(at) == "NULLS" and tokens.word(at - 1) == "IGNORE"
    at -= 2 * (tokens.word(at) == "NULLS")
    if tokens.word(tokens.partner[at] - 1) == "FILTER":
        at = tokens.partner[at] - 2
    bracket = tokens.partner[at]
    start = bracket - 1
    while tokens.is_symbol(start - 1, "."):
        start -= 2
    first, last = definition
    inside = [one for one in tokens.level(first, last) if not tokens.is_symbol(one - 1, ".")]
    order_at = next(
        (one for one in inside if tokens.word(one) == "ORDER" and tokens.word(one + 1) == "BY"), last
    )
    frame_at = next((one for one in inside if tokens.word(one) in _FRAMES), last)
    is_known = first == last or tokens.word(first) in ("PARTITION", "ORDER", *_FRAMES)
    if not is_known or any(tokens.word(one) in _OTHERS for one in inside):
        raise UnknownShapeError("OVER of this form", (over, stop))
    partition = (
        tuple(tokens.split(first + 2, min(order_at, frame_at))) if tokens.word(first) == "PARTITION" else ()
    )
    order = (
        tuple(order_item(tokens, item) for item in tokens.split(order_at + 2, frame_at))
        if order_at < last
        else ()
    )
    looks_back, reach = False, None
    function = tokens[bracket - 1].name.upper()  # also between backticks
    frame = " ".join(tokens.word(one) for one in range(frame_at + 1, last))
    if order:
        looks_back, reach = _reads(tokens, function, (bracket + 1, tokens.partner[bracket]), (frame_at, last))
    return OverCall(
        (start, stop),
        over,
        definition,
        partition,
        order,
        looks_back,
        None if skips_nulls else reach,
        function,
        bool(order) and not skips_nulls and frame in _RUNNING,
    )


def _reads(tokens: TokenList, function: str, arguments: Range, frame: Range) -> tuple[bool, int | None]:
    """Whether a function looks back only, and how far at most, in rows."""
    if function in _RANKS:
        return True, None
    if function in _OF_PARTITIONS:
        return False, None
    if function == "LAG":
        passed = tokens.split(*arguments)
        count = 1 if len(passed) < 2 else _count(tokens, passed[1])
        return count is not None, count
    start, stop = frame
    if start == stop:
        return True, None
    is_rows = tokens.word(start) == "ROWS"
    start += 1
    low, high = (start, stop), None
    if tokens.word(start) == "BETWEEN":
        both = next(at for at in tokens.level(start, stop) if tokens.word(at) == "AND")
        low, high = (start + 1, both), (both + 1, stop)
    if high is not None and not _is_past(tokens, high):
        return False, None
    if tokens.word(low[1] - 1) == "FOLLOWING":
        return False, None
    if tokens.word(low[0]) == "CURRENT":
        return True, 0
    return True, _count(tokens, (low[0], low[1] - 1)) if is_rows else None


def _is_past(tokens: TokenList, bound: Range) -> bool:
    """Whether a frame with this end certainly has no row after the current one: not with -1 PRECEDING."""
    start, stop = bound
    if tokens.word(stop - 1) == "FOLLOWING":
        return False
    is_plain = tokens.word(start) in ("CURRENT", "UNBOUNDED", "INTERVAL") or stop - start == 2
    return is_plain and not {"-", "("} & {*tokens.text(start, stop)}


def _count(tokens: TokenList, stretch: Range) -> int | None:
    """A literal number of rows."""
    start, stop = stretch
    is_number = stop - start == 1 and tokens[start].kind is TokenKind.NUMBER and tokens[start].text.isdigit()
    return int(tokens[start].text) if is_number else None

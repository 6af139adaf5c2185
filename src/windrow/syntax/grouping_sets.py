"""GROUP BY with several sets of keys: ROLLUP, CUBE and GROUPING SETS, also beside other keys."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, combinations, product
from typing import TypeAlias

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["GroupingSets", "grouping_sets"]

KeySet: TypeAlias = tuple[Range, ...]

_LISTS = ("ROLLUP", "CUBE")


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """The keys of a GROUP BY, each at its first position, and the sets of them, by number.

    `own` are the keys that differ from all earlier ones.
    """

    keys: KeySet
    sets: tuple[tuple[int, ...], ...]
    own: tuple[int, ...]


def grouping_sets(tokens: TokenList, start: int, stop: int) -> GroupingSets | None:
    """The keys of a GROUP BY with several sets of them; None for one with a single set.

    >>> from windrow.syntax.tokens import tokenize
    >>> tokens = tokenize("a, ROLLUP (b, c)")
    >>> found = grouping_sets(tokens, 0, len(tokens))
    >>> [[tokens.text(*found.keys[key]) for key in one] for one in found.sets]
    [['a', 'b', 'c'], ['a', 'b'], ['a']]
    """
    level = tokens.level(start, stop)
    listed: list[Range] = []
    if tokens.word(stop - 2) == "WITH" and tokens.word(stop - 1) in _LISTS:
        listed = tokens.split(start, stop - 2)
        sets = _of_list(tokens.word(stop - 1), [(key,) for key in listed])
    else:
        at = next((at for at in level if _opens(tokens, at)), None)
        if at is None:
            return None
        if at > start and not tokens.is_symbol(at - 1, ","):  # sets of keys that are listed before
            listed = tokens.split(start, at)
            sets = _sets_of(tokens, (at, stop))
        else:
            items = [_sets_of(tokens, item) for item in tokens.split(start, stop)]
            sets = [_joined(one) for one in product(*items)]
    places: dict[tuple[str, ...], int] = {}
    keys: list[Range] = []
    for key in (*listed, *(key for one in sets for key in one)):
        if tokens.folded(*key) not in places:
            places[tokens.folded(*key)] = len(keys)
            keys.append(key)
    chosen = (tuple(dict.fromkeys(places[tokens.folded(*key)] for key in one)) for one in sets)
    return GroupingSets(tuple(keys), tuple(chosen), tuple(range(len(keys))))


def _opens(tokens: TokenList, at: int) -> bool:
    """Whether a token begins ROLLUP (…), CUBE (…) or GROUPING SETS (…)."""
    if tokens.word(at) == "GROUPING":
        return tokens.word(at + 1) == "SETS" and tokens.is_symbol(at + 2, "(")
    return tokens.word(at) in _LISTS and tokens.is_symbol(at + 1, "(")


def _sets_of(tokens: TokenList, item: Range) -> list[KeySet]:
    """The sets of one element of GROUP BY, or of GROUPING SETS."""
    start, stop = item
    if not _opens(tokens, start):
        return [(item,)]
    word = tokens.word(start)
    bracket = start + 1 + (word == "GROUPING")
    inner = tokens.split(bracket + 1, tokens.partner[bracket]) if bracket + 1 < stop - 1 else []
    if word != "GROUPING":
        return _of_list(word, [_together(tokens, one) for one in inner])
    found: list[KeySet] = []
    for one in inner:
        found += _sets_of(tokens, one) if _opens(tokens, one[0]) else [_together(tokens, one)]
    return found


def _of_list(word: str, keys: list[KeySet]) -> list[KeySet]:
    """The sets of ROLLUP or CUBE, those of more keys first."""
    counts = range(len(keys), -1, -1)
    if word == "ROLLUP":
        return [_joined(keys[:count]) for count in counts]
    return [_joined(chosen) for count in counts for chosen in combinations(keys, count)]


def _joined(sets: Iterable[KeySet]) -> KeySet:
    return tuple(chain.from_iterable(sets))


def _together(tokens: TokenList, element: Range) -> KeySet:
    """The keys of an element: several in a bracket, or one."""
    start, stop = element
    if tokens.is_symbol(start, "(") and tokens.partner[start] == stop - 1:
        return tuple(tokens.split(start + 1, stop - 1)) if start + 1 < stop - 1 else ()
    return (element,)

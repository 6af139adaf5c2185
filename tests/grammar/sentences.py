"""Sentences of the grammar, chosen at random but so that every choice is taken."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping

from tests.grammar.notation import Either, Items, Name, Node, Repeated, Rows, Text

__all__ = ["sentences"]

_DEEP = 6
_SAMPLES = {
    "alias": "q", "column": "c", "condition": "v > 1", "conditions": "c = 1", "count": "3",
    "constant": "1 + 1", "envelope": "delta", "expression": "k", "folder": "'some/folder'",
    "instant": "TIMESTAMP '2026-01-01 10:00:00'", "number": "10", "parameter": ":n",
    "path": "'log.csv'", "text": "'5'", "predicate": "val > 1", "query": "SELECT * FROM t", "stream": "s",
    "table": "t", "type": "INT", "unit": "SECONDS", "value": "5",
}  # fmt: skip


def sentences(rules: Mapping[str, Node], name: str, count: int) -> list[str]:
    """So many sentences of a rule.

    Names in one are all different. So are variables, but for those of patterns: a, b and c.
    """
    return [_Maker(rules, number).of(Name(name)) for number in range(count)]


class _Maker:
    def __init__(self, rules: Mapping[str, Node], number: int) -> None:
        self._rules, self._random = rules, random.Random(number)
        self._number = number
        self._names = 0
        self._depth = 0
        self._patterns = 0  # around what is made
        self._pattern_variables = itertools.cycle("abc")
        self._has_pattern = False

    def of(self, node: Node) -> str:
        match node:
            case Text(text):
                return text
            case Name("pattern") if not self._patterns:
                self._patterns += 1
                made = f"a b c {self.of(self._rules['pattern'])}"
                self._patterns -= 1
                return made
            case Name("variable") if self._patterns:
                return self._random.choice("abc")
            case Name("variable") if self._has_pattern:
                return next(self._pattern_variables)
            case Name("name" | "variable" as kind):
                self._names += 1
                return f"{kind[0]}{self._names}"
            case Name(name) if name in self._rules:
                self._depth += 1
                self._has_pattern |= name in ("match-recognize", "pattern-window")
                made = self.of(self._rules[name])
                self._depth -= 1
                return made
            case Name(name):
                return _SAMPLES[name]
            case Items(items) | Rows(items):
                return " ".join(filter(None, map(self.of, items)))
            case Repeated(item, between):
                times = 1 if self._depth > _DEEP else self._random.choice((1, 1, 2, 3))
                return f" {self.of(between)} ".join(self.of(item) for _ in range(times))
            case Either(choices):
                # the first is the shortest
                return self.of(choices[0] if self._depth > _DEEP else self._random.choice(choices))

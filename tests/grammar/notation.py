"""Reads the notation of the grammar, which its own first lines explain."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["GRAMMAR", "Either", "Items", "Name", "Node", "Repeated", "Rows", "Text", "read_grammar"]

GRAMMAR = Path(__file__).parents[2] / "docs" / "sql" / "grammar.txt"
_TOKEN = re.compile(r"\s*(?:('[^']*')|(//)|([\[\](){}|%;=])|([A-Z_]+\b)|([a-z][a-z-]*))")


@dataclass(frozen=True)
class Text:
    """A word or symbol."""

    text: str


@dataclass(frozen=True)
class Name:
    """A rule, or what Spark reads."""

    name: str


@dataclass(frozen=True)
class Items:
    """One after the other; `rows` says before which of them a diagram begins a new line."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Rows:
    """One after the other, each on a line of its own."""

    rows: tuple[Node, ...]


@dataclass(frozen=True)
class Either:
    """One of several; `Items(())` is nothing."""

    choices: tuple[Node, ...]


@dataclass(frozen=True)
class Repeated:
    """Once or more, with something between."""

    item: Node
    between: Node


Node = Text | Name | Items | Rows | Either | Repeated
NOTHING = Items(())


def read_grammar(text: str | None = None) -> Mapping[str, Node]:
    """The rules by their names.

    >>> read_grammar("a = [ B ] c % ',' ;")["a"].items[1]
    Repeated(item=Name(name='c'), between=Text(text=','))
    """
    lines = (GRAMMAR.read_text(encoding="utf-8") if text is None else text).splitlines()
    reader = _Reader("\n".join(line for line in lines if not line.startswith("#")))
    rules: dict[str, Node] = {}
    while reader.more():
        name = reader.take()
        reader.expect("=")
        rules[name] = reader.choice()
        reader.expect(";")
    return rules


class _Reader:
    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at, end = 0, len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            assert found is not None, text[at : at + 40]
            self._tokens.append(found[0].strip())
            at = found.end()
        self._at = 0

    def more(self) -> bool:
        return self._at < len(self._tokens)

    def take(self) -> str:
        self._at += 1
        return self._tokens[self._at - 1]

    def expect(self, token: str) -> None:
        found = self.take()
        assert found == token, (
            f"{token} is expected, and {found} found, after {self._tokens[: self._at][-9:]}"
        )

    def _next(self) -> str:
        return self._tokens[self._at] if self.more() else ""

    def choice(self) -> Node:
        choices = [self._rows()]
        while self._next() == "|":
            self.take()
            choices.append(self._rows())
        return choices[0] if len(choices) == 1 else Either(tuple(choices))

    def _rows(self) -> Node:
        rows = [self._items()]
        while self._next() == "//":
            self.take()
            rows.append(self._items())
        return rows[0] if len(rows) == 1 else Rows(tuple(rows))

    def _items(self) -> Node:
        items = []
        while self.more() and self._next() not in ("|", "//", ";", ")", "]", "}"):
            items.append(self._repeated())
        return items[0] if len(items) == 1 else Items(tuple(items))

    def _repeated(self) -> Node:
        item = self._primary()
        if self._next() != "%":
            return item
        self.take()
        return Repeated(item, self._primary())

    def _primary(self) -> Node:
        token = self.take()
        if token == "(":
            found = self.choice()
            self.expect(")")
            return found
        if token == "[":
            found = self.choice()
            self.expect("]")
            choices = found.choices if isinstance(found, Either) else (found,)
            return Either((NOTHING, *choices))
        if token == "{":
            found = self.choice()
            self.expect("}")
            return Either((NOTHING, Repeated(found, NOTHING)))
        if token.startswith("'"):
            return Text(token[1:-1]) if len(token) > 2 else NOTHING
        return Text(token) if token.isupper() else Name(token)

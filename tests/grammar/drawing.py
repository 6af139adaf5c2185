"""Draws the rules as railroad diagrams."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import railroad

from tests.grammar.notation import Either, Items, Name, Node, Repeated, Rows, Text

__all__ = ["FOLDER", "drawn"]

FOLDER = Path(__file__).parents[2] / "docs" / "images" / "grammar"
_STYLE = """
svg.railroad-diagram { background-color: #ffffff; }
svg.railroad-diagram path { stroke-width: 1.5; stroke: #4d5561; fill: none; }
svg.railroad-diagram text {
  font: 13px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace; text-anchor: middle; fill: #1d2430; }
svg.railroad-diagram g.terminal rect { stroke-width: 1.2; stroke: #3d6fa5; fill: #e8f0f9; }
svg.railroad-diagram g.terminal text { font-weight: 600; }
svg.railroad-diagram g.non-terminal rect { stroke-width: 1.2; stroke: #8a8f98; fill: #f6f6f4; }
svg.railroad-diagram g.non-terminal text { font-style: italic; }
"""


def drawn(rules: Mapping[str, Node]) -> dict[str, str]:
    """The diagram of each rule, as SVG."""
    made = {}
    for name, rule in rules.items():
        parts = rule.rows if isinstance(rule, Rows) else None
        inner = railroad.Stack(*map(_item, parts)) if parts is not None else _item(rule)
        written = io.StringIO()
        railroad.Diagram(inner, type="complex").writeStandalone(written.write, css=_STYLE)
        made[name] = written.getvalue() + "\n"
    return made


def _item(node: Node) -> railroad.DiagramItem:
    match node:
        case Text(text):
            return railroad.Terminal(text)
        case Name(name):
            return railroad.NonTerminal(name.replace("-", " "))
        case Items(()):
            return railroad.Skip()
        case Items(items):
            return railroad.Sequence(*_words(items))
        case Rows(rows):
            return railroad.Stack(*map(_item, rows))
        case Repeated(item, between):
            return railroad.OneOrMore(_item(item), None if between == Items(()) else _item(between))
        case Either((Items(()), only)):
            return railroad.Optional(_item(only))
        case Either(choices):
            return railroad.Choice(0, *map(_item, choices))


def _words(items: tuple[Node, ...]) -> list[railroad.DiagramItem]:
    """The items, words that follow each other as one."""
    made: list[railroad.DiagramItem] = []
    words: list[str] = []
    for item in (*items, None):
        if isinstance(item, Text) and item.text.replace("_", "").isalpha():
            words.append(item.text)
            continue
        if words:
            made.append(railroad.Terminal(" ".join(words)))
            words = []
        if item is not None:
            made.append(_item(item))
    return made

"""CREATE VIEW."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["View", "parse_view"]


@dataclass(frozen=True)
class View:
    """CREATE VIEW: its name, the names of its columns, what it holds, and where its name stands."""

    name: str
    columns: list[str]
    body: Range
    replace: bool
    if_not_exists: bool
    at: int
    temporary: bool


def parse_view(tokens: TokenList, start: int, stop: int) -> View | None:
    """CREATE [OR REPLACE] [TEMPORARY] VIEW … AS; None for any other statement."""
    at = start
    if tokens.word(at) != "CREATE":
        return None
    replace = tokens.word(at + 1) == "OR" and tokens.word(at + 2) == "REPLACE"
    at += 3 if replace else 1
    temporary = tokens.word(at) in ("TEMP", "TEMPORARY")
    at += temporary
    if tokens.word(at) != "VIEW":
        return None
    if_not_exists = tokens.word(at + 1) == "IF"
    at += 4 if if_not_exists else 1
    if at >= stop or not tokens[at].is_name:
        return None
    name, named, columns = tokens[at].name, at, []
    at += 1
    if tokens.is_symbol(at, "("):
        columns = [tokens[first].name for first, _ in tokens.split(at + 1, tokens.partner[at])]
        at = tokens.partner[at] + 1
    if tokens.word(at) != "AS":
        return None
    return View(
        name,
        columns,
        (at + 1, stop),
        replace=replace,
        if_not_exists=if_not_exists,
        at=named,
        temporary=temporary,
    )

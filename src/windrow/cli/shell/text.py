"""The text typed so far: whether a statement is complete, and what may be in it.

The text is unfinished, so it is read by words and quotes alone.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["Declared", "as_command", "declared", "is_complete", "tables_in", "without_quotes"]

_QUOTED = re.compile(
    r"""--[^\n]*(?:\n|$) | /\*.*?(?:\*/|$) | '(?:[^'\\]|\\.|'')*('|$) | "(?:[^"\\]|\\.|"")*("|$)
      | `(?:[^`]|``)*(`|$)""",
    re.VERBOSE | re.DOTALL,
)
_TABLE = re.compile(
    r"\b(?:FROM|JOIN|INTO|TABLE)\s+`?([A-Za-z_]\w*)`?(?:\s*\[[^\]]*\])?(?:\s+(?:AS\s+)?(?!WHERE\b|WINDOW\b|JOIN\b"
    r"|ON\b|GROUP\b|ORDER\b|LIMIT\b|HAVING\b|MATCH_RECOGNIZE\b|LEFT\b|RIGHT\b|FULL\b|INNER\b|CROSS\b|UNION\b"
    r"|USING\b|SELECT\b)([A-Za-z_]\w*))?",
    re.IGNORECASE,
)
_WINDOW = re.compile(r"\bWINDOW\s+BY\s+([A-Za-z_]\w*)\s+AS\s*\(", re.IGNORECASE)
_BOUNDARY = re.compile(r"\b(?:START|END|LABEL)\b", re.IGNORECASE)
_WORDS = ("help", "quit", "exit")
"""Words that are commands even without a dot."""
_WHEN = re.compile(r"\bWHEN\b|\)", re.IGNORECASE)
_VARIABLE = re.compile(r"\b(AS|AT)\s+([A-Za-z_]\w*)", re.IGNORECASE)


def without_quotes(text: str) -> str:
    """The text with spaces in place of comments and of what is quoted; names in backquotes stay.

    >>> without_quotes("SELECT 'a;b' -- c;")
    "SELECT '   '      "
    """

    def blank(found: re.Match[str]) -> str:
        whole = found[0]
        if whole.startswith("`"):
            return whole
        if whole[0] in "'\"":
            closed = len(whole) > 1 and whole.endswith(whole[0])
            return whole[0] + " " * (len(whole) - 1 - closed) + (whole[0] if closed else "")
        return re.sub(r"[^\n]", " ", whole)

    return _QUOTED.sub(blank, text)


def as_command(text: str) -> str | None:
    """The dot command of a line, also one of some words without the dot; None for statements.

    >>> as_command(".mode csv"), as_command(" Exit; "), as_command("SELECT 1")
    ('.mode csv', '.exit', None)
    """
    bare = text.strip()
    if bare.startswith("."):
        return bare
    word = bare.rstrip(";").rstrip().lower()
    return f".{word}" if word in _WORDS else None


def is_complete(text: str) -> bool:
    r"""Whether Enter runs what stands there: a command with a dot, or statements that end with a semicolon.

    >>> [is_complete(text) for text in (".help", "SELECT 1", "SELECT 1;", "SELECT ';", "SELECT 1; -- a", "")]
    [True, False, True, False, True, True]
    >>> is_complete("help"), is_complete("SELECT\\nhelp")
    (True, False)
    """
    bare = text.strip()
    if not bare or as_command(bare) is not None:
        return True
    return not _is_within_quotes(text) and without_quotes(text).rstrip().endswith(";")


def _is_within_quotes(text: str) -> bool:
    """Whether a string, a quoted name or a comment of several lines is still open at the end."""
    *_, last = (None, *_QUOTED.finditer(text))
    if last is None or last.end() < len(text) or last[0].startswith("--"):
        return False
    if last[0].startswith("/*"):
        return len(last[0]) < 4 or not last[0].endswith("*/")
    return last[1 + "'\"`".index(last[0][0])] == ""


def tables_in(text: str) -> dict[str, str]:
    """The tables that a text names, by the names that they have there.

    >>> tables_in("SELECT * FROM weather w JOIN stations AS s ON ")
    {'w': 'weather', 's': 'stations'}
    >>> tables_in("FROM bids [RANGE 10] WHERE")
    {'bids': 'bids'}
    """
    return {alias or table: table for table, alias in _TABLE.findall(without_quotes(text))}


@dataclass(frozen=True, slots=True)
class Declared:
    """The variables of WINDOW BY in a text: those that are rows or the window, and positions."""

    rows: tuple[str, ...] = ()
    positions: tuple[str, ...] = ()


def declared(text: str) -> Declared:
    """The variables that a text declares.

    >>> declared("WINDOW BY w AS (TYPE SLIDING ORDER BY d START AS s AT sp WHEN s.v > 1 END PREV AS p)")
    Declared(rows=('w', 's', 'p'), positions=('sp',))
    """
    bare = without_quotes(text)
    rows: list[str] = []
    positions: list[str] = []
    for window in _WINDOW.finditer(bare):
        rows.append(window[1])
        for boundary in _BOUNDARY.split(bare[window.end() :])[1:]:
            words = _WHEN.split(boundary, maxsplit=1)[0]
            for kind, name in _VARIABLE.findall(words):
                (positions if kind.upper() == "AT" else rows).append(name)
    return Declared(tuple(dict.fromkeys(rows)), tuple(dict.fromkeys(positions)))

"""Colours of what is typed."""

from __future__ import annotations

import re

from prompt_toolkit.styles import Style
from pygments.lexer import inherit, words
from pygments.lexers.sql import SqlLexer
from pygments.token import Keyword, Name

from windrow.cli.shell.words import OURS

__all__ = ["STYLE", "WindrowLexer"]

_WORDS = sorted({word.strip("()") for phrase in OURS for word in phrase.split()}, key=len, reverse=True)


class WindrowLexer(SqlLexer):  # type: ignore[misc] # Pygments has no types
    """SQL with the words of Windrow, and the commands of its shell."""

    name = "Windrow SQL"
    aliases = ("windrow",)
    flags = re.IGNORECASE
    tokens = {  # noqa: RUF012 - as Pygments has it
        "root": [
            (r"\A\s*\.\w+", Name.Builtin),
            (words(_WORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            inherit,
        ],
    }


STYLE = Style.from_dict(
    {
        "prompt": "bold ansicyan",
        "continuation": "ansibrightblack",
        "bottom-toolbar": "noreverse ansibrightblack",
        "pygments.keyword": "bold ansiblue",
        "pygments.name.builtin": "bold ansimagenta",
        "pygments.literal.string": "ansigreen",
        "pygments.literal.string.single": "ansigreen",
        "pygments.literal.number": "ansicyan",
        "pygments.literal.number.integer": "ansicyan",
        "pygments.literal.number.float": "ansicyan",
        "pygments.comment": "italic ansibrightblack",
        "pygments.operator": "",
    }
)

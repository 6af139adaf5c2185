"""Where output goes: consoles on stdout and stderr, colours or none, and text that is safe to show."""

from __future__ import annotations

import os
import sys

from rich.console import Console

__all__ = ["errors_console", "is_plain", "printable", "stdout_console"]

# Escape sequences in data must not reach the terminal: a cell could retitle it, or hide what is beside it.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"}
_CONTROL[ord("\t")] = "    "


def is_plain() -> bool:
    """Whether stdout is to get plain ASCII frames: it is no terminal, or NO_COLOR is set."""
    return bool(os.environ.get("NO_COLOR")) or not sys.stdout.isatty()


def stdout_console(width: int | None = None) -> Console:
    """A console on the stdout of this moment, which tests replace.

    Text wider than the terminal is wrapped there; what is no terminal gets lines as long as they are.
    """
    wide = None if sys.stdout.isatty() else 100_000
    return Console(file=sys.stdout, width=width or wide, highlight=False, soft_wrap=False, emoji=False)


def errors_console() -> Console:
    """A console on stderr, for errors and remarks: in a terminal, their lines break between words."""
    return Console(file=sys.stderr, highlight=False, soft_wrap=not sys.stderr.isatty(), emoji=False)


def printable(text: str) -> str:
    r"""The text with control characters spelled out, line breaks excepted.

    >>> printable("a\x1b[31mb")
    'a\\x1b[31mb'
    """
    return text.translate(_CONTROL)

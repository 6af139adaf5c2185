"""Rows as a table to look at."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windrow.cli.terminal import printable

__all__ = ["ROWS", "print_table"]

ROWS = 50
"""How many rows are shown unless the user says otherwise."""


def print_table(
    console: Console,
    names: Sequence[str],
    rows: Sequence[Sequence[str | None]],
    numeric: Sequence[bool],
    *,
    more: str | None,
    plain: bool,
) -> None:
    """Print rows with a line that counts them.

    Parameters
    ----------
    console
        Where to; long values are wrapped at its width, none is cut.
    names, rows, numeric
        The columns' names, their values as text, and whether they are numbers, which stand at the right.
    more
        Where there are rows after these, how to see them, which may be the empty string; else None.
    plain
        Frames of ASCII instead of lines and colours.
    """
    table = Table(box=box.ASCII2 if plain else box.ROUNDED, header_style="" if plain else "bold")
    for name, is_number in zip(names, numeric, strict=True):
        table.add_column(_cell(name), justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value) if value is not None else _null(plain) for value in row))
    console.print(table)
    count = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    text = count if more is None else f"first {count}; there are more{more}"
    console.print(Text(text, style="" if plain else "dim"))


def _cell(value: str) -> Text:
    return Text(printable(value))


def _null(plain: bool) -> Text:
    return Text("NULL", style="" if plain else "dim")

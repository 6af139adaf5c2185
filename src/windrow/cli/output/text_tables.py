"""Rows as a table to look at."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from windrow.cli.output.terminal import printable

__all__ = ["ROWS", "print_table"]

ROWS = 50
"""How many rows are shown unless the user says otherwise."""

_READABLE = 12  # characters: a column is not made narrower than that


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
        Where to; long values are wrapped at its width, none is cut. Columns that do not fit are left out
        at the end, which the last line says.
    names, rows, numeric
        The columns' names, their values as text, and whether they are numbers, which stand at the right.
    more
        Where there are rows after these, how to see them, which may be the empty string; else None.
    plain
        Frames of ASCII instead of lines and colours.
    """
    widths = [min(_READABLE, _width(name, [row[at] for row in rows])) for at, name in enumerate(names)]
    count = _fitting(widths, console.width)
    table = Table(box=box.ASCII2 if plain else box.ROUNDED, header_style="" if plain else "bold")
    for name, is_number, width in list(zip(names, numeric, widths, strict=True))[:count]:
        side: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(_cell(name), justify=side, overflow="fold", min_width=width)
    if count < len(names):
        table.add_column("..." if plain else "…")
    for row in rows:
        table.add_row(*(_cell(value) if value is not None else _null(plain) for value in row[:count]))
    console.print(table)
    told = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    told = told if more is None else f"first {told}; there are more{more}"
    if count < len(names):
        told += f"; {count:,} of {len(names):,} columns fit; csv, json and markdown have all"
    console.print(Text(told, style="" if plain else "dim"))


def _fitting(widths: Sequence[int], room: int) -> int:
    """How many of the first columns can be read side by side, at least one.

    >>> _fitting([5, 12, 5], 80), _fitting([12] * 40, 80)
    (3, 4)
    """
    ends = list(itertools.accumulate((width + 3 for width in widths), initial=1))
    if ends[-1] <= room:
        return len(widths)
    return max(1, sum(end + 6 <= room for end in ends[1:]))  # 6 for what stands for the others


def _width(name: str, values: Iterable[str | None]) -> int:
    """How wide a column is of which nothing is folded."""
    lines = (line for value in values for line in printable(value or "NULL").splitlines())
    return max(cell_len(printable(name)), *map(cell_len, lines), 1)


def _cell(value: str) -> Text:
    return Text(printable(value))


def _null(plain: bool) -> Text:
    return Text("NULL", style="" if plain else "dim")

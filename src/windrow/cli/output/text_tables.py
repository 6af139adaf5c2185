"""Rows as a table of text."""

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
"""How many rows are printed by default."""

_READABLE = 12  # characters: the least width of a column


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
        Where to print. Long values are wrapped at its width, none is cut. Columns that do not fit are omitted
        at the end, and the last line counts them.
    names, rows, numeric
        The columns' names, their values as text, and whether they are numbers, which are aligned to the
        right.
    more
        If there are further rows, how to see them, which may be the empty string; else None.
    plain
        Whether to draw in ASCII, without colours.
    """
    widths = [min(_READABLE, _width(name, [row[at] for row in rows])) for at, name in enumerate(names)]
    count = _fitting(widths, console.width)
    table = Table(box=box.ASCII2 if plain else box.ROUNDED, header_style="" if plain else "bold")
    for name, is_number, width in list(zip(names, numeric, widths, strict=True))[:count]:
        side: Literal["left", "right"] = "right" if is_number else "left"
        table.add_column(_text(name), justify=side, overflow="fold", min_width=width)
    if count < len(names):
        table.add_column("..." if plain else "…")
    for row in rows:
        table.add_row(*(_text(value) if value is not None else _null(plain) for value in row[:count]))
    console.print(table)
    caption = f"{len(rows):,} row{'' if len(rows) == 1 else 's'}"
    caption = caption if more is None else f"first {caption}; there are more{more}"
    if count < len(names):
        caption += f"; {count:,} of {len(names):,} columns fit; csv, json and markdown have all"
    console.print(Text(caption, style="" if plain else "dim"))


def _fitting(widths: Sequence[int], room: int) -> int:
    """How many of the first columns can be read side by side, at least one.

    >>> _fitting([5, 12, 5], 80), _fitting([12] * 40, 80)
    (3, 4)
    """
    ends = list(itertools.accumulate((width + 3 for width in widths), initial=1))
    if ends[-1] <= room:
        return len(widths)
    return max(1, sum(end + 6 <= room for end in ends[1:]))  # 6 for the ellipsis


def _width(name: str, values: Iterable[str | None]) -> int:
    """How wide a column is without wrapped values."""
    lines = (line for value in values for line in printable(value or "NULL").splitlines())
    return max(cell_len(printable(name)), *map(cell_len, lines), 1)


def _text(value: str) -> Text:
    return Text(printable(value))


def _null(plain: bool) -> Text:
    return Text("NULL", style="" if plain else "dim")

"""``windrow doctor``: the checks, and how to repair what fails."""

from __future__ import annotations

from rich import box
from rich.table import Table
from rich.text import Text

from windrow.cli.output.terminal import is_plain, printable, stdout_console
from windrow.cli.progress import Progress
from windrow.doctor import checks

__all__ = ["show_doctor"]

_STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def show_doctor(*, start_spark: bool) -> bool:
    """Print the checks, and return whether none of them fails."""
    with Progress() as progress:
        progress.begin("examining")
        found = checks(start_spark=start_spark)
        progress.pause()
    plain = is_plain()
    table = Table(box=box.ASCII2 if plain else box.ROUNDED, header_style="" if plain else "bold")
    for name in ("check", "status", "found", "fix"):
        table.add_column(name, overflow="fold")
    for check in found:
        style = "" if plain else _STYLES[check.status]
        table.add_row(
            Text(check.name),
            Text(check.status, style=style),
            Text(printable(check.found)),
            Text(printable(check.fix)),
        )
    console = stdout_console()
    console.print(table)
    failed = sum(check.status == "fail" for check in found)
    if failed:
        console.print(Text(f"{failed} of {len(found)} checks failed", style="" if plain else "bold red"))
    else:
        console.print(Text("Windrow has what it needs", style="" if plain else "green"))
    return not failed

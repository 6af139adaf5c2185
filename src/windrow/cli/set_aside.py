"""The lines about late and malformed rows at the end of a script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from windrow.cli.output.terminal import printable
from windrow.spark.live.reports.rows_set_aside import LATE_FOR_GROUP, SetAside

__all__ = ["lines_of"]

_WHY = {
    "watermark": "late {rows} of {stream}, below the watermark",
    "bound": "late {rows} of {stream}, below a bound",
    "punctuation": "late {rows} of {stream}, closed by punctuation",
    LATE_FOR_GROUP: "late {rows} of {stream}, whose groups were complete",
    "future": "quarantined {rows} of {stream}, too far ahead of processing time",
    "future bound": "quarantined {bounds} of {stream}, too far ahead of processing time",
}
"""By the reasons of `windrow.streams.entries.REASONS`, and that of rows late for groups."""


def lines_of(found: SetAside, query: str | None = None) -> Iterator[str]:
    r"""One line with the number, the reason and the place, and one for each of the first rows.

    Parameters
    ----------
    query
        The name of the live query; None for the rows of a recorded stream.

    Examples
    --------
    >>> row = {"row": '{"v":1}', "rowtime": "09:29", "bound": "09:33"}
    >>> found = SetAside("late", "trades", "bound", 2, (row,), None)
    >>> print("\n".join(lines_of(found, "highs")))
    highs: 2 late rows of trades, below a bound; not stored: --checkpoint DIR stores them
      {"v":1}, rowtime 09:29, bound 09:33
      and 1 more
    >>> next(lines_of(found))
    '2 late rows of trades, below a bound; SELECT * FROM trades_late lists all'
    """
    if found.reason == LATE_FOR_GROUP:
        yield f"{found.count:,} {_why(found)}; relation.late in Python lists all"
    elif query is None:
        yield f"{found.count:,} {_why(found)}; SELECT * FROM {found.stream}_late lists all"
    else:
        yield f"{query}: {found.count:,} {_why(found)}; {_where(found)}"
    for row in found.first:
        yield printable(f"  {_text_of(row)}").replace("\n", "\\n")
    if found.count > len(found.first):
        yield f"  and {found.count - len(found.first):,} more"


def _why(found: SetAside) -> str:
    several = "" if found.count == 1 else "s"
    names = {"rows": f"row{several}", "bounds": f"bound{several}", "stream": found.stream}
    if found.output == "malformed":
        return f"malformed {names['rows']} of {found.stream}: {found.reason}"
    return _WHY.get(found.reason or "", "late {rows} of {stream}").format_map(names)


def _where(found: SetAside) -> str:
    if found.folder is None:
        return "not stored: --checkpoint DIR stores them"
    here = Path.cwd()
    folder = found.folder.relative_to(here) if found.folder.is_relative_to(here) else found.folder
    return f"in the checkpoint: {printable(str(folder))}"


def _text_of(row: Mapping[str, Any]) -> str:
    """A row as JSON, with its times and its producer if its side output has them.

    >>> _text_of({"row": None, "rowtime": None, "bound": "2099-01-01", "producer": "zurich"})
    'bound 2099-01-01, producer zurich'
    """
    parts = [] if row["row"] is None else [row["row"]]
    # a source without producers has a single one with an empty name
    parts += [f"{name} {row[name]}" for name in ("rowtime", "bound", "producer") if row.get(name)]
    return ", ".join(parts)

"""The forms in which rows leave: a table to look at, CSV, JSON, Markdown, and Parquet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path

from windrow.cli.output.terminal import printable
from windrow.errors import UsageError, did_you_mean

__all__ = ["Format", "chosen_format", "csv_line", "csv_lines", "markdown_lines"]


class Format(StrEnum):
    """A form of output."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"
    MARKDOWN = "markdown"
    PARQUET = "parquet"


_BY_SUFFIX = {
    ".csv": Format.CSV,
    ".json": Format.JSON,
    ".jsonl": Format.JSON,
    ".ndjson": Format.JSON,
    ".md": Format.MARKDOWN,
    ".parquet": Format.PARQUET,
    ".pq": Format.PARQUET,
    ".txt": Format.TABLE,
}


def chosen_format(named: str | None, output: Path | None) -> Format:
    """The format that is named, else that of the output's suffix, else a table.

    Raises
    ------
    UsageError
        ``UNKNOWN_FORMAT`` for a name that is none, and a suffix that says nothing; ``NO_OUTPUT`` for Parquet
        without a file.
    """
    known = ", ".join(Format)
    if named is not None and named not in list(Format):
        raise UsageError(
            f"format {named} is unknown",
            condition="UNKNOWN_FORMAT",
            hint=did_you_mean(named, list(Format)) or f"use one of {known}",
        )
    if named == Format.PARQUET and output is None:
        raise UsageError(
            "format parquet needs a file",
            condition="NO_OUTPUT",
            hint="add --output PATH; stdout takes csv, json, markdown and table",
        )
    if named is not None:
        return Format(named)
    if output is None:
        return Format.TABLE
    if output.suffix.lower() not in _BY_SUFFIX:
        raise UsageError(
            f"cannot infer the format of {output} from its suffix",
            condition="UNKNOWN_FORMAT",
            hint=f"add --format, one of {known}",
        )
    return _BY_SUFFIX[output.suffix.lower()]


def csv_lines(names: Iterable[str], rows: Iterable[Iterable[str | None]]) -> Iterator[str]:
    """A header, then the rows."""
    yield csv_line(names)
    for row in rows:
        yield csv_line(row)


def csv_line(values: Iterable[str | None]) -> str:
    r"""One record as RFC 4180 quotes it, ended by LF; NULL is an empty field, the empty string ``""``.

    >>> csv_line(["a", None, "", 'a "b" c', "x,y"])
    'a,,"","a ""b"" c","x,y"\n'

    A lone NULL is quoted, because readers skip empty lines:

    >>> csv_line([None])
    '""\n'
    """
    line = ",".join(_csv_field(value) for value in values)
    return (line or '""') + "\n"


def markdown_lines(names: Iterable[str], rows: Iterable[Iterable[str | None]]) -> Iterator[str]:
    r"""A table in the form that GitHub renders.

    >>> print("".join(markdown_lines(["a|b"], [["1"], [None]])), end="")
    | a\|b |
    | --- |
    | 1 |
    | NULL |
    """
    header = [_markdown_cell(name) for name in names]
    yield _markdown_row(header)
    yield _markdown_row(["---"] * len(header))
    for row in rows:
        yield _markdown_row([_markdown_cell(value) for value in row])


def _csv_field(value: str | None) -> str:
    if value is None:
        return ""
    # Spaces at the ends are quoted as well: some readers strip them.
    if value == "" or re.search(r'[,"\r\n]|^\s|\s$', value):
        return '"' + value.replace('"', '""') + '"'
    return value


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _markdown_cell(value: str | None) -> str:
    if value is None:
        return "NULL"
    escaped = printable(value).replace("\\", "\\\\").replace("|", "\\|")
    # what would be read as an entity, or a tag
    escaped = re.sub(r"&(?=#?\w+;)", "&amp;", escaped).replace("<", "&lt;")
    return re.sub(r"\n", "<br>", escaped)

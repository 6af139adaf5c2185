"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "BOUND",
    "COMMAND",
    "CONF",
    "DEBUG",
    "FILE",
    "MASTER",
    "ON_LATE",
    "PARAM",
    "PRODUCER",
    "PTIME",
    "ROWTIME",
    "ROWTIME_UNIT",
    "STREAM",
    "TABLE",
    "TABLE_FORMAT",
]


FILE = Annotated[
    Path | None,
    typer.Argument(
        metavar="FILE",
        help="The script: statements separated by semicolons. [bold]-[/] or a pipe is stdin.",
        show_default=False,
    ),
]
COMMAND = Annotated[
    str | None,
    typer.Option("--command", "-c", metavar="SQL", help="The script itself.", show_default=False),
]
TABLE = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        "-t",
        metavar="NAME=PATH",
        help="A table to attach: Parquet, CSV, JSON, ORC or GHCN-Daily; a file, a directory, a quoted glob "
        "or a URI. Repeat it for more tables, or for more files of one.",
        show_default=False,
    ),
]
TABLE_FORMAT = Annotated[
    list[str] | None,
    typer.Option(
        "--table-format",
        metavar="[NAME=]FORMAT",
        help="The format of the tables, or of one, where the files' names do not say it.",
        show_default=False,
    ),
]
STREAM = Annotated[
    list[str] | None,
    typer.Option(
        "--stream",
        metavar="NAME=PATH",
        help="A recorded stream to attach: a text of instants and rows (.cql), or files as --table takes "
        "them, with --rowtime. Repeat it for more.",
        show_default=False,
    ),
]
ROWTIME = Annotated[
    list[str] | None,
    typer.Option(
        "--rowtime",
        metavar="[NAME=]COLUMN",
        help="The column of the rowtimes of the streams, or of one.",
        show_default=False,
    ),
]
ROWTIME_UNIT = Annotated[
    list[str] | None,
    typer.Option(
        "--rowtime-unit",
        metavar="[NAME=]UNIT",
        help="The unit of rowtimes that are integers, from days to nanoseconds; else milliseconds.",
        show_default=False,
    ),
]
PTIME = Annotated[
    list[str] | None,
    typer.Option(
        "--ptime",
        metavar="[NAME=]COLUMN",
        help="The column with the processing time, or the number, of each entry of the streams, or of one.",
        show_default=False,
    ),
]
PRODUCER = Annotated[
    list[str] | None,
    typer.Option(
        "--producer",
        metavar="[NAME=]COLUMN",
        help="The column with the producer of each entry.",
        show_default=False,
    ),
]
BOUND = Annotated[
    list[str] | None,
    typer.Option(
        "--bound",
        metavar="[NAME=]COLUMN",
        help="The column of bounds, below which no later row of the producer is on time; or a number, below "
        "which no row follows the log.",
        show_default=False,
    ),
]
ON_LATE = Annotated[
    list[str] | None,
    typer.Option(
        "--on-late",
        metavar="[NAME=]<keep|fail>",
        help="What happens to late rows: they are kept apart and counted, or the query fails.",
        show_default=False,
    ),
]
PARAM = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="The value of :NAME in the query: a number, TRUE, FALSE, NULL, 'text', DATE '…' or "
        "TIMESTAMP '…'; anything else is a string. Repeat it for more.",
        show_default=False,
    ),
]
MASTER = Annotated[
    str,
    typer.Option(
        "--master",
        metavar="URL",
        envvar="SPARK_REMOTE",
        help="Where Spark runs: local\\[*], spark://host:7077, or sc://host:15002 for Spark Connect.",
    ),
]
CONF = Annotated[
    list[str] | None,
    typer.Option("--conf", metavar="KEY=VALUE", help="A setting of Spark's.", show_default=False),
]
DEBUG = Annotated[bool, typer.Option("--debug", help="Show tracebacks with errors, Java's included.")]

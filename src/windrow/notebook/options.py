"""The line of a magic: the options of ``windrow run``, and the name that the result is given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from windrow.cli.connection import Connection, connection
from windrow.cli.live_command import Live
from windrow.cli.main import app
from windrow.cli.output.formats import Format, chosen_format
from windrow.cli.run import Picture
from windrow.errors import UsageError

__all__ = ["MagicLine", "help_text", "read_line"]

_NAME = re.compile(r">>\s*(\S*)\s*$")


@dataclass(frozen=True)
class MagicLine:
    """What a line says.

    Attributes
    ----------
    asked
        The session, its tables, streams and parameters.
    names_session
        Whether it says of which session, by ``--master`` or ``--conf``.
    file
        The script to run before the cell's text.
    format, output, limit, at, envelope, key, picture
        As of ``windrow run``.
    live
        How the last query is run live; None where it is not.
    result
        The name of the variable that the result is given; None for none.
    """

    asked: Connection
    names_session: bool
    file: Path | None
    format: Format
    output: Path | None
    limit: int | None
    at: str | None
    envelope: str | None
    key: tuple[str, ...]
    picture: Picture | None
    live: Live | None
    result: str | None


def read_line(line: str) -> MagicLine:
    """Read the line of a magic.

    Raises
    ------
    UsageError
        ``MALFORMED_OPTION`` for what is no option, ``UNKNOWN_OPTION`` for one that means nothing beside the
        others, ``INVALID_NAME`` for a name that Python does not have.
    """
    result = None
    if (found := _NAME.search(line)) is not None:
        result, line = found[1], line[: found.start()]
        if not result.isidentifier():
            raise UsageError(
                f"{result!r} is no name for a result", condition="INVALID_NAME", hint="write >> readings"
            )
    given = _parsed(line)
    asks_changes = given["changelog"] or given["envelope"] is not None or given["key"] is not None
    return MagicLine(
        asked=connection(
            given["master"], given["conf"], given["table"], given["table_format"], given["param"],
            given["streams"], given["rowtime"], given["rowtime_unit"],
        ),
        names_session=bool(given["conf"]) or "--master" in line,
        file=given["file"],
        format=chosen_format(given["form"], given["output"]),
        output=given["output"],
        limit=given["limit"],
        at=given["at"],
        envelope=(given["envelope"] or "delta") if asks_changes else None,
        key=tuple(name.strip() for name in given["key"].split(",")) if given["key"] is not None else (),
        picture=_picture(given),
        live=_live(given),
        result=result,
    )  # fmt: skip


def help_text() -> str:
    """The options, each with what it is for."""
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined] # of its groups
    bold = re.compile(r"\[/?bold\]")
    lines = ["%%windrow [OPTIONS] [>> name], with the options of windrow run:", ""]
    for option in command.params:
        if option.opts[0].startswith("--") and option.name not in ("command", "debug"):
            lines.append(f"  {', '.join(option.opts):24} {bold.sub('', option.help or '')}")
    return "\n".join(lines)


def _parsed(line: str) -> dict[str, Any]:
    """The options by their names, as the command line has them."""
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined] # of its groups
    try:
        words = shlex.split(line)
        context = command.make_context("windrow", words)
    except ValueError as error:
        raise UsageError(
            f"the line cannot be read: {str(error).lower()}",
            condition="MALFORMED_OPTION",
            hint="close the quotes",
        ) from None
    except Exception as error:
        # What Typer raises for a line that is wrong has a message of its own; its class has moved before.
        if not hasattr(error, "format_message"):
            raise
        raise UsageError(
            _first_lower(error.format_message()),
            condition="MALFORMED_OPTION",
            hint="%windrow --help lists the options",
        ) from None
    return dict(context.params)


def _picture(given: Mapping[str, Any]) -> Picture | None:
    if given["plot"] is None:
        return None
    key = given["plot_key"]
    values = tuple(value.strip() for value in key.split(",")) if key is not None else None
    return Picture(given["plot"], values, given["plot_rows"] or 200)


def _live(given: Mapping[str, Any]) -> Live | None:
    refused: tuple[str, ...]
    if given["live"]:
        refused, beside = ("form", "output", "at", "key", "plot"), "--live"
        hint = "the rows are shown in the notebook; relation.start(…) writes them elsewhere"
    else:
        refused, beside = ("checkpoint", "trigger"), "no --live"
        hint = "it is an option of --live"
    for name in (*refused, "ui", "ui_port"):
        if given[name] not in (None, False):
            option = "--format" if name == "form" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is given with {beside}", condition="UNKNOWN_OPTION", hint=hint)
    return Live(given["checkpoint"], given["trigger"], Format.TABLE) if given["live"] else None


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")

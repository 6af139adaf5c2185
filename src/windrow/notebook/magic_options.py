"""The line of a magic: the options of ``windrow run``, and the name of the result's variable."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from windrow.cli.connection import OF_STREAMS, Connection, connection
from windrow.cli.live_command import Live
from windrow.cli.main import app
from windrow.cli.output.formats import Format, chosen_format
from windrow.cli.run import Picture
from windrow.errors import UsageError

__all__ = ["MagicLine", "help_text", "read_line"]

_NAME = re.compile(r">>\s*(\S*)\s*$")


@dataclass(frozen=True)
class MagicLine:
    """The parsed line of a magic.

    Attributes
    ----------
    options
        The options of the session: its tables, streams and parameters.
    names_session
        Whether it chooses a session, by ``--master`` or ``--conf``.
    file
        The script to run before the cell's text.
    format, output, limit, at, envelope, key, picture
        As for ``windrow run``.
    live
        How the last query runs live; None for a batch query.
    result
        The name of the variable for the result; None for none.
    """

    options: Connection
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
        ``MALFORMED_OPTION`` for an option that cannot be read, ``UNKNOWN_OPTION`` for one that cannot be
        combined with the others, ``INVALID_NAME`` for a name that is no identifier.
    """
    result = None
    if (found := _NAME.search(line)) is not None:
        result, line = found[1], line[: found.start()]
        if not result.isidentifier():
            raise UsageError(
                f"{result!r} is not a name for a result", condition="INVALID_NAME", hint="write >> readings"
            )
    parsed = _parsed(line)
    asks_changes = parsed["changelog"] or parsed["envelope"] is not None or parsed["key"] is not None
    return MagicLine(
        options=connection(
            parsed["master"], parsed["conf"], parsed["table"], parsed["table_format"], parsed["param"],
            parsed["streams"], [parsed[name] for name in OF_STREAMS],
        ),
        names_session=bool(parsed["conf"]) or "--master" in line,
        file=parsed["file"],
        format=chosen_format(parsed["form"], parsed["output"]),
        output=parsed["output"],
        limit=parsed["limit"],
        at=parsed["at"],
        envelope=(parsed["envelope"] or "delta") if asks_changes else None,
        key=tuple(name.strip() for name in parsed["key"].split(",")) if parsed["key"] is not None else (),
        picture=_picture(parsed),
        live=_live(parsed),
        result=result,
    )  # fmt: skip


def help_text() -> str:
    """The options, each with its help."""
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined] # of its groups
    bold = re.compile(r"\[/?bold\]")
    lines = ["%%windrow [OPTIONS] [>> name], with the options of windrow run:", ""]
    for option in command.params:
        if option.opts[0].startswith("--") and option.name not in ("command", "debug"):
            lines.append(f"  {', '.join(option.opts):24} {bold.sub('', option.help or '')}")
    return "\n".join(lines)


def _parsed(line: str) -> dict[str, Any]:
    """The options by their names, parsed as by the command line."""
    command = typer.main.get_command(app).commands["run"]  # type: ignore[attr-defined] # of its groups
    try:
        words = shlex.split(line)
        context = command.make_context("windrow", words)
    except ValueError as error:
        raise UsageError(
            f"cannot parse the line: {str(error).lower()}",
            condition="MALFORMED_OPTION",
            hint="close the quote",
        ) from None
    except Exception as error:
        # Typer's error for a wrong line; its class is in another module in each version
        if not hasattr(error, "format_message"):
            raise
        raise UsageError(
            _first_lower(error.format_message()),
            condition="MALFORMED_OPTION",
            hint="run %windrow --help for a list of options",
        ) from None
    return dict(context.params)


def _picture(parsed: Mapping[str, Any]) -> Picture | None:
    if parsed["plot"] is None:
        return None
    key = parsed["plot_key"]
    values = tuple(value.strip() for value in key.split(",")) if key is not None else None
    return Picture(parsed["plot"], values, parsed["plot_rows"] or 200)


def _live(parsed: Mapping[str, Any]) -> Live | None:
    refused: tuple[str, ...]
    if parsed["live"]:
        refused, beside = ("form", "output", "at", "key", "plot"), "--live"
        hint = "leave it out: the notebook displays the rows; relation.start(…) writes them elsewhere"
    else:
        refused, beside = ("checkpoint", "trigger"), None
        hint = "add --live"
    for name in (*refused, "ui", "ui_port"):
        if parsed[name] not in (None, False):
            option = "--format" if name == "form" else f"--{name.replace('_', '-')}"
            problem = "needs --live" if beside is None else f"cannot be combined with {beside}"
            raise UsageError(f"{option} {problem}", condition="UNKNOWN_OPTION", hint=hint)
    return Live(parsed["checkpoint"], parsed["trigger"], Format.TABLE) if parsed["live"] else None


def _first_lower(text: str) -> str:
    return text[:1].lower() + text[1:].rstrip(".")

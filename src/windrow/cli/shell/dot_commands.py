"""The commands that begin with a dot."""

from __future__ import annotations

import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from windrow.cli.connection import connection
from windrow.cli.output.terminal import is_plain, stdout_console
from windrow.cli.output.text_tables import ROWS, print_table
from windrow.cli.shell.backend import StoppedError
from windrow.cli.shell.context import CommandContext
from windrow.cli.shell.shell_live import progress_of, state_of, stop, watch
from windrow.cli.shell.shell_settings import CHANGELOGS, MODES
from windrow.errors import UsageError, WindrowError, did_you_mean

if TYPE_CHECKING:
    from windrow.session import Session
    from windrow.spark.live import LiveQuery

__all__ = ["ARGUMENTS", "COMMANDS", "DotCommand", "run_command"]

_BESIDE = 24
"""The least width of the column of descriptions; on narrower terminals they are below the commands."""


@dataclass(frozen=True, slots=True)
class DotCommand:
    """A command: its arguments, its description, and the completions of its arguments."""

    name: str
    usage: str
    does: str
    run: Callable[[CommandContext, str], None]
    completes: tuple[str, ...] = ()


def run_command(shell: CommandContext, text: str) -> None:
    """Run a line that begins with a dot.

    Raises
    ------
    WindrowError
        ``UNKNOWN_COMMAND``, ``INVALID_ARGUMENT`` for a wrong argument, and errors of the command itself.
    """
    name, _, argument = text.strip().rstrip(";").partition(" ")
    if name.lower() not in COMMANDS:
        raise UsageError(
            f"command {name} is unknown",
            condition="UNKNOWN_COMMAND",
            hint=did_you_mean(name.lower(), COMMANDS) or "write .help for a list of commands",
        )
    COMMANDS[name.lower()].run(shell, argument.strip())


def _help(_shell: CommandContext, _argument: str) -> None:
    rows = [(f"{command.name} {command.usage}".strip(), command.does) for command in _ALL]
    width = max(len(usage) for usage, _ in rows)
    console = stdout_console()
    console.print("Statements end with a semicolon. Ctrl-C stops a query, Ctrl-D leaves.\n")
    room = console.width - width - 4
    for usage, does in rows:
        indent = width + 4 if room >= _BESIDE else 4
        wrapped = textwrap.wrap(does, max(console.width - indent, _BESIDE))
        line = Text(
            f"  {usage.ljust(width) if room >= _BESIDE else usage}", style="" if is_plain() else "cyan"
        )
        line.append("  " if room >= _BESIDE else "\n" + " " * indent, style="")
        line.append(("\n" + " " * indent).join(wrapped), style="")
        console.print(line)


def _tables(shell: CommandContext, _argument: str) -> None:
    names = shell.backend.call(lambda session: session.names())
    if not names:
        stdout_console().print("no tables: .open readings=readings.parquet attaches one")
        return
    _print(("name", "is"), sorted(names.items()))


def _schema(shell: CommandContext, argument: str) -> None:
    if not argument:
        _tables(shell, argument)
        return

    def columns(session: Session) -> list[tuple[str, str]]:
        try:
            table = session.table(argument)
        except WindrowError as error:
            if error.condition != "TABLE_OR_VIEW_NOT_FOUND":
                raise
            raise _unknown(argument, session.names(), "table, view or stream") from None
        return [(field.name, field.dataType.simpleString()) for field in table.df.schema]

    _print(("column", "type"), shell.backend.call(columns))


def _mode(shell: CommandContext, argument: str) -> None:
    mode, *rest = argument.lower().split() or [""]
    if not mode:
        stdout_console().print(f"{shell.settings.mode}: one of {', '.join(MODES)}")
        return
    _refuse_unless(mode, MODES, ".mode")
    form = " ".join(rest) or CHANGELOGS[0]
    if mode == "changelog":
        _refuse_unless(form, CHANGELOGS, ".mode changelog")
    elif rest:
        raise UsageError(
            f".mode {mode} takes no further argument",
            condition="INVALID_ARGUMENT",
            hint=f"write .mode {mode}",
        )
    shell.settings.mode, shell.settings.envelope = mode, form


def _timer(shell: CommandContext, argument: str) -> None:
    if argument:
        _refuse_unless(argument, ("on", "off"), ".timer")
    shell.settings.timer = argument == "on" if argument else not shell.settings.timer
    stdout_console().print(f"timer {'on' if shell.settings.timer else 'off'}")


def _limit(shell: CommandContext, argument: str) -> None:
    if argument and argument != "off" and not re.fullmatch("[0-9]{1,9}", argument):
        raise UsageError(
            f".limit takes a number, not {argument}", condition="INVALID_ARGUMENT", hint="write .limit 100"
        )
    if argument:
        shell.settings.limit = None if argument == "off" else int(argument)
    limit = shell.settings.limit
    current = f"{ROWS} rows of a table, all in other forms" if limit is None else f"{limit:,} rows"
    stdout_console().print(f"limit {current}")


def _read(shell: CommandContext, argument: str) -> None:
    if not argument:
        raise UsageError(".read takes a file", condition="INVALID_ARGUMENT", hint="write .read script.sql")
    # imported here: the prompt does not need the tokenizer
    from windrow.cli.sql_script import read_script

    path = _path(argument, ".read")
    try:
        text = read_script(path, None)
    except UsageError as error:
        error.hint = "check the path"
        raise
    shell.run_lines(text)


def _open(shell: CommandContext, argument: str) -> None:
    words = _words(argument, ".open")
    if not words or len(words) > 2 or ("=" not in words[0] and len(words) > 1):
        raise UsageError(
            ".open takes NAME=PATH, and a format if the suffix of the file does not show it",
            condition="INVALID_ARGUMENT",
            hint="write .open readings=data.parquet",
        )
    if "=" not in words[0]:
        words[0] = f"{_name_of(words[0])}={words[0]}"
    form = [f"{words[0].partition('=')[0]}={words[1]}"] if len(words) > 1 else None
    options = connection("", None, words[:1], form)
    ((name, paths),) = options.tables.items()

    def attach(session: Session) -> None:
        path = str(Path(paths[0]).expanduser())
        if Path(path).suffix == ".cql" or (Path(path) / "stream.json").is_file():
            session.stream(name, path)
        else:
            session.register(name, path, format=options.format(name))

    shell.backend.call(attach)
    shell.backend.options.tables[name] = paths
    stdout_console().print(Text(f"{name} is attached"))
    shell.refresh()


def _words(argument: str, command: str) -> list[str]:
    """The words of an argument; quotes allow spaces in a word."""
    try:
        return shlex.split(argument)
    except ValueError:
        raise UsageError(
            f"{command} has an unclosed quote", condition="INVALID_ARGUMENT", hint="close the quote"
        ) from None


def _path(argument: str, command: str) -> Path:
    """The file that an argument names, with or without quotes."""
    words = _words(argument, command) if argument[0] in "'\"" else [argument]
    return Path(words[0] if len(words) == 1 else argument).expanduser()


def _name_of(path: str) -> str:
    """The default name of a table: that of its file, without suffixes.

    >>> _name_of("data/daily weather.csv.gz")
    'daily_weather'
    """
    name = re.sub(r"\W", "_", Path(path).name.partition(".")[0])
    return f"t_{name}" if not name[:1].isalpha() else name


def _explain(shell: CommandContext, argument: str) -> None:
    def plan(session: Session) -> str:
        relation = session.sql(argument, **shell.parameters(session)) if argument else shell.last_relation()
        return relation.plan()

    stdout_console().print(Text(shell.backend.call(plan)))


def _plot(shell: CommandContext, argument: str) -> None:
    from windrow.cli.run import Picture, draw_picture

    path = _path(argument or "plot.svg", ".plot")
    relation = shell.last_relation()
    shell.backend.call(lambda _: draw_picture(relation, Picture(path)))
    stdout_console().print(Text(f"drawn to {path}"))


def _watch(shell: CommandContext, argument: str) -> None:
    def start(session: Session) -> LiveQuery:
        relation = session.sql(argument, **shell.parameters(session)) if argument else shell.last_relation()
        begun.append(watch(relation, shell.settings))
        return begun[0]

    begun: list[LiveQuery] = []
    try:
        query = shell.backend.call(start)
    except StoppedError:
        # planning cannot be interrupted: stop the query that it starts
        shell.backend.later(lambda session: [stop(session, each.name) for each in begun])
        raise
    shell.began(query)
    stdout_console().print(Text(f"{query.name} runs; .stop {query.name} stops it"))


def _stop(shell: CommandContext, argument: str) -> None:
    stopped = shell.backend.call(lambda session: stop(session, argument))
    shell.started = {} if not argument else {k: v for k, v in shell.started.items() if k != argument}
    message = f"stopped {', '.join(stopped)}" if stopped else "no query is running"
    stdout_console().print(Text(message))


def _late(shell: CommandContext, argument: str) -> None:
    if argument:
        counted, names = shell.backend.call(lambda session: (session.count_late(), session.names()))
        streams = {name.lower(): name for name, kind in names.items() if kind == "stream"}
        if argument.lower() not in streams:
            raise _unknown(argument, streams.values(), "stream")
        if argument.lower() in counted:
            shell.run_statements(f"SELECT * FROM {streams[argument.lower()]}_late")
        else:
            stdout_console().print("no late rows")
        return

    def counts(session: Session) -> list[tuple[str, str]]:
        found = [(name, f"{count:,}") for name, count in session.count_late().items()]
        for name, query in session.queries.items():
            count = query.late.count()
            found += [(name, f"{count:,}")] if count else []
        return found

    found = shell.backend.call(counts)
    if found:
        _print(("of", "late rows"), found)
    else:
        stdout_console().print("no late rows")


def _state(shell: CommandContext, argument: str) -> None:
    if argument:
        names, rows = shell.backend.call(lambda session: state_of(session, argument))
        _print(tuple(names), rows)
        return
    found = shell.backend.call(lambda session: progress_of(session, shell.started))
    if not found:
        stdout_console().print("no query is running: .watch SELECT … starts one")
    else:
        _print(("query", "state", "bound", "rows in", "buffered", "late", "in windows"), found)


def _quit(_shell: CommandContext, _argument: str) -> None:
    raise EOFError


def _unknown(name: str, known: Iterable[str], what: str) -> UsageError:
    return UsageError(
        f"{what} {name} does not exist",
        condition="UNKNOWN_NAME",
        hint=did_you_mean(name, known) or "write .tables for a list",
    )


def _refuse_unless(word: str, known: tuple[str, ...], command: str) -> None:
    if word not in known:
        raise UsageError(
            f"{command} has no option {word}",
            condition="INVALID_ARGUMENT",
            hint=did_you_mean(word, known) or f"write one of {', '.join(known)}",
        )


def _print(names: tuple[str, ...], rows: list[Any]) -> None:
    print_table(stdout_console(), names, rows, [False] * len(names), more=None, plain=is_plain())
    sys.stdout.flush()


_ALL = (
    DotCommand(".help", "", "this list", _help),
    DotCommand(
        ".open", "[NAME=]PATH [FORMAT]", "attach files as a table, or a recorded or named stream", _open
    ),
    DotCommand(".tables", "", "the tables, views and streams", _tables),
    DotCommand(".schema", "NAME", "the columns of one", _schema, ("TABLE",)),
    DotCommand(".mode", "|".join(MODES), "the form of rows; changelog op|delta|diff|cql", _mode, MODES),
    DotCommand(".limit", "N|off", "how many rows are printed", _limit),
    DotCommand(".timer", "[on|off]", "print how long statements take", _timer, ("on", "off")),
    DotCommand(".read", "FILE", "run a script", _read),
    DotCommand(".explain", "[SQL]", "how a query is run; the last one without", _explain),
    DotCommand(".plot", "[FILE]", "draw the last query into an SVG, PNG or HTML file", _plot),
    DotCommand(
        ".watch",
        "[SQL]",
        "run a query over named streams, and print its output",
        _watch,
    ),
    DotCommand(".stop", "[QUERY]", "stop a live query, or all", _stop),
    DotCommand(".state", "[QUERY]", "the progress of live queries, or the state of one", _state),
    DotCommand(".late", "[STREAM]", "how many rows were late, or those of a stream", _late, ("TABLE",)),
    DotCommand(".quit", "", "leave", _quit),
)

COMMANDS = {command.name: command for command in _ALL} | {".exit": _ALL[-1]}
"""By name."""

ARGUMENTS = {command.name: command.completes for command in _ALL}
"""What may be completed after each."""

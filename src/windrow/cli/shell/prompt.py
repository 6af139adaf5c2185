"""The prompt itself: editing, history, colours and completion, while Spark starts behind it."""

from __future__ import annotations

import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import AnyFormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from prompt_toolkit.output import Output
from prompt_toolkit.patch_stdout import patch_stdout

from windrow import __version__
from windrow.cli.shell.colours import STYLE, WindrowLexer
from windrow.cli.shell.completion import ShellCompleter
from windrow.cli.shell.dot_commands import ARGUMENTS
from windrow.cli.shell.loop import Shell
from windrow.cli.shell.text import is_complete

__all__ = ["history_path", "interact"]

_PROMPT = "windrow> "
_BEHIND = 0.15


def history_path() -> Path:
    """The file of what was entered before, in the user's directory for such."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "windrow" / "history"


def interact(shell: Shell, *, source: Input | None = None, target: Output | None = None) -> None:
    """Read and run until the user leaves.

    Parameters
    ----------
    shell
        The shell that runs the input.
    source, target
        The terminal; by default that of the process.
    """
    session = _session(shell, source, target)
    sys.stdout.write(f"Windrow {__version__}. Statements end with ; and .help lists commands.\n")
    sys.stdout.flush()
    while True:
        try:
            with patch_stdout(raw=True):
                text = session.prompt(pre_run=lambda: _begin(shell, session))
        except KeyboardInterrupt:
            continue
        except EOFError:
            break
        try:
            shell.run(text)
        except EOFError:
            break
        except KeyboardInterrupt:
            continue


def _session(shell: Shell, source: Input | None, target: Output | None) -> PromptSession[str]:
    @Condition
    def goes_on() -> bool:
        return not is_complete(get_app().current_buffer.text)

    keys = KeyBindings()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    def continuation(width: int, _line: int, _wrapped: int) -> AnyFormattedText:
        return [("class:continuation", "... ".rjust(width))]

    def toolbar() -> str | None:
        if shell.backend.is_starting:
            return f" Spark is starting, {time.monotonic() - shell.backend.began:.0f} s"
        return None

    session: PromptSession[str] = PromptSession(
        message=[("class:prompt", _PROMPT)],
        multiline=goes_on,
        prompt_continuation=continuation,
        lexer=PygmentsLexer(WindrowLexer),
        style=STYLE,
        include_default_pygments_style=False,
        completer=ShellCompleter(shell.names, ARGUMENTS),
        complete_while_typing=True,
        complete_in_thread=True,
        auto_suggest=AutoSuggestFromHistory(),
        history=_history(),
        key_bindings=keys,
        bottom_toolbar=toolbar,
        enable_open_in_editor=True,
        input=source,
        output=target,
    )
    return session


def _begin(shell: Shell, session: PromptSession[str]) -> None:
    """Start Spark once the prompt is displayed, as its import would delay the prompt."""
    if shell.backend.has_begun:
        return

    def start() -> None:
        shell.backend.start()
        shell.refresh()
        while shell.backend.is_starting:
            session.app.invalidate()
            time.sleep(0.5)
        with suppress(Exception):
            session.bottom_toolbar = None
            session.app.invalidate()

    timer = threading.Timer(_BEHIND, start)
    timer.daemon = True
    timer.start()


def _history() -> History:
    path = history_path()
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab"):
            pass
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))

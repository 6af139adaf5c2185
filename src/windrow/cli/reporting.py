"""Errors of commands as users see them: one message on stderr and an exit code.

Exit codes: 0, 1 if the query failed, 2 if the command line is wrong, 130 after Ctrl-C, 141 when the reader of
stdout has closed it (as for a program that SIGPIPE ended), 143 after SIGTERM.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

import typer
from rich.text import Text

from windrow.cli.output.terminal import errors_console, printable
from windrow.errors import UsageError, WindrowError, render

__all__ = [
    "CLOSED_PIPE",
    "FAILED",
    "INTERRUPTED",
    "TERMINATED",
    "USAGE",
    "reporting",
    "show_error",
    "show_unexpected",
    "show_warning",
    "terminable",
]

FAILED = 1
USAGE = 2
INTERRUPTED = 130
CLOSED_PIPE = 141
TERMINATED = 143


@contextmanager
def reporting(debug: bool, on_interrupt: Callable[[], None] | None = None) -> Iterator[None]:
    """Run a command, and turn its exceptions into a message and an exit code.

    Parameters
    ----------
    debug
        Show tracebacks too, Java's included.
    on_interrupt
        Called when the command must stop; it cancels Spark's jobs.

    Raises
    ------
    typer.Exit
        With the exit code, where it is not 0.
    """
    try:
        yield
        sys.stdout.flush()
    except typer.Exit:
        raise
    except KeyboardInterrupt:
        if on_interrupt is not None:
            # after a second Ctrl-C, or with a Spark that has ended, stop at once and print no traceback
            with suppress(Exception, KeyboardInterrupt):
                on_interrupt()
        errors_console().print("interrupted", style="yellow")
        raise typer.Exit(INTERRUPTED) from None
    except SystemExit:
        if on_interrupt is not None:
            with suppress(Exception):
                on_interrupt()
        raise typer.Exit(TERMINATED) from None
    except BrokenPipeError:
        if on_interrupt is not None:
            with suppress(Exception):
                on_interrupt()
        _abandon_stdout()
        raise typer.Exit(CLOSED_PIPE) from None
    except WindrowError as error:
        show_error(error, debug)
        raise typer.Exit(USAGE if isinstance(error, UsageError) else FAILED) from None
    except Exception as error:
        show_unexpected(error, debug)
        raise typer.Exit(FAILED) from None


@contextmanager
def terminable() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, with its cleanup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise SystemExit(TERMINATED)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def show_error(error: WindrowError, debug: bool = False) -> None:
    """Print an error to stderr: message, line, caret and hint."""
    if debug:
        _show_traceback(error)
    console = errors_console()
    text = Text(printable(f"error {render(error, console.width if console.is_terminal else None)}"))
    text.highlight_regex(r"^error \[[^\]]*\]", "bold red")
    text.highlight_regex(r"(?m)^\s+\^+$", "bold red")
    text.highlight_regex(r"(?m)^line \d+, column \d+$", "dim")
    text.highlight_regex(r"(?m)^hint:", "bold cyan")
    console.print(text)


def show_unexpected(error: Exception, debug: bool) -> None:
    """Print an unexpected error: its first line, and how to see the traceback."""
    if debug:
        _show_traceback(error)
        return
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    text = Text(printable(f"error {type(error).__name__}: {first}"))
    text.append("\nhint: run it again with --debug to see where it comes from")
    text.highlight_regex(r"^error \w+", "bold red")
    text.highlight_regex(r"(?m)^hint:", "bold cyan")
    errors_console().print(text)


def show_warning(message: Warning | str, *_: object) -> None:
    """Print a warning without its line of Python: a replacement for `warnings.showwarning`."""
    errors_console().print(Text(printable(f"warning: {message}"), style="yellow"))


def _show_traceback(error: BaseException) -> None:
    """Print the traceback, with the errors of Spark that Windrow has translated."""
    link: BaseException | None = error
    while link is not None:
        link.__suppress_context__ = False
        link = link.__context__
    sys.stderr.write("".join(traceback.format_exception(error)))


def _abandon_stdout() -> None:
    """Prevent the error of Python's own flush of the broken pipe at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""Starts the shell: at a prompt on a terminal, else over what comes in."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from windrow.cli.connection import Connection, SessionFactory
from windrow.errors import UsageError

if TYPE_CHECKING:
    from windrow.session import Session

__all__ = ["start_shell"]


def start_shell(
    options: Connection, factory: SessionFactory, opened: Callable[[Session], None], *, debug: bool = False
) -> bool:
    """Run the shell until its user leaves, or until the end of its input.

    Parameters
    ----------
    options, factory, opened
        The options of the session, the factory of the SparkSession, and a function that is called with it.
    debug
        Show tracebacks with errors.

    Returns
    -------
    bool
        Whether a statement from a pipe has failed; False at a prompt.

    Raises
    ------
    UsageError
        ``MISSING_PACKAGE`` without prompt_toolkit and Pygments.
    """
    try:
        from windrow.cli.shell.backend import Backend
        from windrow.cli.shell.loop import Shell
        from windrow.cli.shell.prompt import interact
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("prompt_toolkit", "pygments"):
            raise
        raise UsageError(
            f"the shell needs {error.name.split('.')[0]}, which is not installed",
            condition="MISSING_PACKAGE",
            hint='pip install "prompt-toolkit>=3.0.43" "pygments>=2.17"',
        ) from None
    shell = Shell(Backend(replace(options, attach=".open"), factory, opened), debug=debug)
    try:
        if sys.stdin.isatty():
            interact(shell)
            return False
        with suppress(EOFError):  # .quit
            shell.run_lines(sys.stdin.read())
        return shell.has_failed
    finally:
        shell.close()

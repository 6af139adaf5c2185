"""How long the shell takes until its prompt appears: ``python -m benchmarks.shell_start``.

The program is started on a terminal of its own and left as soon as its prompt is there. What counts is the
least of several times: others are those of a machine that has something else to do.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time

__all__ = ["seconds_to_prompt"]

_TIMES = 5
_PATIENCE = 60.0
_PROMPT = re.compile(rb"windrow> ")
_ASKS_POSITION = b"\x1b[6n"


def seconds_to_prompt(python: str = sys.executable) -> float:
    """Start the shell of an environment once, and leave it.

    Parameters
    ----------
    python
        The interpreter of the environment.

    Raises
    ------
    TimeoutError
        Where no prompt appears.
    """
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    with tempfile.TemporaryDirectory() as state:
        began = time.perf_counter()
        program = subprocess.Popen(
            [python, "-c", "from windrow.cli.main import run; run()", "shell"],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env={**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": state},
            start_new_session=True,
        )
        os.close(follower)
        try:
            shown = _read_until(leader, _PROMPT, began + _PATIENCE)
            took = time.perf_counter() - began
            if not shown:
                raise TimeoutError("no prompt appeared")
            os.write(leader, b"\x04")
            _read_until(leader, None, time.perf_counter() + _PATIENCE)
        finally:
            if program.poll() is None:
                program.terminate()
            program.wait()
            os.close(leader)
    return took


def _read_until(leader: int, wanted: re.Pattern[bytes] | None, end: float) -> bool:
    """Read what the program shows until a pattern, or until it ends; whether the pattern came."""
    shown = b""
    while time.perf_counter() < end:
        if not select.select([leader], [], [], 0.02)[0]:
            continue
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            return False
        shown += piece
        if _ASKS_POSITION in piece:
            os.write(leader, b"\x1b[1;1R")
        if not piece or (wanted is not None and wanted.search(shown)):
            return bool(piece)
    return False


if __name__ == "__main__":
    times = sorted(seconds_to_prompt() for _ in range(_TIMES))
    sys.stdout.write(
        f"prompt after {times[0]:.2f} s at best, {times[len(times) // 2]:.2f} s in the middle of {_TIMES}\n"
    )

"""The Java machine that a command starts: what it writes to stderr, and how it ends with the command.

PySpark starts it with the terminal as its stderr and in the terminal's process group, and hands it out only
when it is up. Ctrl-C before that would leave it behind, and after that, or when the reader of stdout goes
away, it would fill the terminal with traces of tasks that were cancelled.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow.session import Session

__all__ = ["Java", "bridge_silent", "interrupts_ignored", "no_more_counts", "signals_held"]

_PATIENCE = 3.0
_ENDING = (signal.SIGINT, signal.SIGTERM)
_TRACE = b"Traceback (most recent call last):\n"
_LAST_LINE = re.compile(rb"^\S.*\n", re.MULTILINE)
_LET_GO = (b"BrokenPipeError", b"ConnectionResetError", b"EOFError")
_ANOTHER = b"\nDuring handling of the above exception, another exception occurred:\n\n"


class Java:
    """The process that PySpark starts while :meth:`starting` is entered, if it starts one.

    Parameters
    ----------
    is_ours
        Whether it ends with a command of ours, which takes Ctrl-C; else that is left as PySpark has it.
    """

    def __init__(self, *, is_ours: bool = True) -> None:
        self._is_ours = is_ours
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._silent = False

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Take charge of the process that is started in the block, and of Ctrl-C after it."""
        launcher: Any = importlib.import_module("pyspark.java_gateway")
        popen = launcher.Popen
        launcher.Popen = self._start  # called as the class is
        try:
            yield
        except Exception:
            # What it said before it gave up comes before the error that says so.
            if self._reader is not None and self._process is not None and self._process.poll() is not None:
                self._reader.join(_PATIENCE)
            raise
        finally:
            launcher.Popen = popen
            if self._is_ours and threading.current_thread() is threading.main_thread():
                # PySpark's handler talks to Java in the middle of what the main thread tells it.
                signal.signal(signal.SIGINT, signal.default_int_handler)

    def end(self) -> None:
        """End the process, with what it has started, and show nothing of what it says about that."""
        self._silent = True
        process = self._process
        if process is None:
            return
        # Asked first: it has temporary directories to take away.
        for number in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            with suppress(OSError):
                if os.name == "nt":
                    process.terminate()
                else:
                    os.killpg(process.pid, number)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
                return

    def _start(self, command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        if self._is_ours and os.name != "nt":
            # Ctrl-C is for this process, which tells the others.
            options["process_group"] = 0
        with signals_held():
            process = subprocess.Popen(command, **(options | {"stderr": subprocess.PIPE}))
            self._process = process
        self._reader = threading.Thread(target=self._forward, name="windrow java", daemon=True)
        self._reader.start()
        return process

    def _forward(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        source = self._process.stderr.fileno()
        shown = _Shown()
        with suppress(OSError):
            while said := os.read(source, 65536):
                if not self._silent:
                    os.write(2, shown.of(said))


class _Shown:
    r"""What is shown of what Java says: no traces of Python's workers that Spark has let go of.

    >>> shown = _Shown()
    >>> trace = b"Traceback (most recent call last):\n  File daemon.py\nBrokenPipeError: [Errno 32]\n"
    >>> shown.of(b"WARN a\n" + trace[:50]), shown.of(trace[50:] + b"WARN b"), shown.of(b" and c\n")
    (b'WARN a\n', b'WARN b', b' and c\n')
    >>> shown.of(trace.replace(b"BrokenPipeError", b"ValueError")).count(b"\n")
    3
    >>> lost = b"Traceback (most recent call last):\n  in local_connect_and_auth\n%s\n"
    >>> first, second = lost % b"FileNotFoundError: no", lost % b"PySparkRuntimeError: [CANNOT_OPEN_SOCKET]"
    >>> shown.of(first + _ANOTHER + second + b"WARN c\n")
    b'WARN c\n'
    >>> shown.of(first), shown.of(_ANOTHER[:9]), shown.of(_ANOTHER[9:] + second[:40]), shown.of(second[40:])
    (b'', b'', b'', b'')
    >>> shown.of(b"\nDuring"), shown.of(b" the night\n")
    (b'', b'\nDuring the night\n')
    """

    def __init__(self) -> None:
        self._held = b""
        self._follows = False  # on a trace that was not shown, to which what comes may belong

    def of(self, said: bytes) -> bytes:
        """What is to be shown when this has been said; a trace when it is complete."""
        text, self._held = self._held + said, b""
        shown = b""
        while True:
            if self._follows and _ANOTHER.startswith(text[: len(_ANOTHER)]):
                if len(text) < len(_ANOTHER):
                    self._held = text
                    return shown
                text = text[len(_ANOTHER) :]
            self._follows = False
            at = text.find(_TRACE)
            if at < 0:
                return shown + text
            end = _LAST_LINE.search(text, at + len(_TRACE))
            if end is None:
                self._held = text[at:]
                return shown + text[:at]
            self._follows = _is_let_go(text[at : end.start()], end[0])
            shown += text[:at] if self._follows else text[: end.end()]
            text = text[end.end() :]


def _is_let_go(trace: bytes, last: bytes) -> bool:
    """Whether a trace is of a worker that lost its connection, or that found nobody to connect to."""
    if b"local_connect_and_auth" in trace:
        return True
    return any(name in trace for name in (b"daemon.py", b"source_runner.py")) and last.startswith(_LET_GO)


def interrupts_ignored() -> None:
    """From here on the command is ending, in bounded time, and another Ctrl-C has nothing to add."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def no_more_counts(session: Session | None) -> None:
    """End the thread that takes what tasks have counted: it would show a trace when Java goes away."""
    # Spark Connect has no such thread, and a session that was never begun none either.
    context = getattr(getattr(session, "spark", None), "sparkContext", None)
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()


@contextmanager
def bridge_silent() -> Iterator[None]:
    """Keep the bridge to Java from logging tracebacks of lost connections; what matters is raised too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def signals_held() -> Iterator[None]:
    """Have what ends the command wait until the block is left: no process is started without being known.

    To block the signals would not do: of a process with threads, another thread takes them in.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # which no signal interrupts
        return
    came: list[tuple[int, FrameType | None]] = []
    before = {number: handler for number in _ENDING if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda *each: came.append(each))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for told, frame in came:
        before[signal.Signals(told)](told, frame)

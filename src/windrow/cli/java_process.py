"""The JVM that a command starts: what it writes to stderr, and how it ends with the command.

PySpark starts it with the terminal as its stderr, in the terminal's process group, and returns only when it
is ready. Ctrl-C before that would leave it running. Ctrl-C after that, or a closed stdout, would fill the
terminal with tracebacks of cancelled tasks.
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

__all__ = ["Java", "bridge_silent", "interrupts_ignored", "no_more_counts", "signals_deferred"]

_PATIENCE = 3.0
_ENDING = (signal.SIGINT, signal.SIGTERM)
_TRACE = b"Traceback (most recent call last):\n"
_LAST_LINE = re.compile(rb"^\S.*\n", re.MULTILINE)
_DROPPED = (b"BrokenPipeError", b"ConnectionResetError", b"EOFError")
_ANOTHER = b"\nDuring handling of the above exception, another exception occurred:\n\n"


class Java:
    """The JVM that PySpark starts while :meth:`starting` is entered, if it starts one.

    It is for commands, which are processes of their own: signal handlers and PySpark's module are changed.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._silent = False

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Control the process that is started in the block, and Ctrl-C after it."""
        launcher: Any = importlib.import_module("pyspark.java_gateway")
        popen = launcher.Popen
        launcher.Popen = self._start  # called as the class is
        try:
            yield
        except Exception:
            # print what a failed JVM wrote before the error about its failure
            if self._reader is not None and self._process is not None and self._process.poll() is not None:
                self._reader.join(_PATIENCE)
            raise
        finally:
            launcher.Popen = popen
            if threading.current_thread() is threading.main_thread():
                # PySpark's handler calls Java, possibly within a call of the main thread
                signal.signal(signal.SIGINT, signal.default_int_handler)

    def end(self) -> None:
        """End the process and its children, and print nothing of what it writes meanwhile."""
        self._silent = True
        process = self._process
        if process is None:
            return
        # SIGTERM first: it removes its temporary directories
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
        if os.name != "nt":
            # Ctrl-C goes to this process, which stops the others
            options["process_group"] = 0
        with signals_deferred():
            process = subprocess.Popen(command, **(options | {"stderr": subprocess.PIPE}))
            self._process = process
        self._reader = threading.Thread(target=self._forward, name="windrow java", daemon=True)
        self._reader.start()
        return process

    def _forward(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        source = self._process.stderr.fileno()
        output = _Filtered()
        with suppress(OSError):
            while data := os.read(source, 65536):
                if not self._silent:
                    os.write(2, output.of(data))


class _Filtered:
    r"""Java's output without the tracebacks of Python workers that Spark has dropped.

    >>> output = _Filtered()
    >>> trace = b"Traceback (most recent call last):\n  File daemon.py\nBrokenPipeError: [Errno 32]\n"
    >>> output.of(b"WARN a\n" + trace[:50]), output.of(trace[50:] + b"WARN b"), output.of(b" and c\n")
    (b'WARN a\n', b'WARN b', b' and c\n')
    >>> output.of(trace.replace(b"BrokenPipeError", b"ValueError")).count(b"\n")
    3
    >>> lost = b"Traceback (most recent call last):\n  in local_connect_and_auth\n%s\n"
    >>> first, second = lost % b"FileNotFoundError: no", lost % b"PySparkRuntimeError: [CANNOT_OPEN_SOCKET]"
    >>> output.of(first + _ANOTHER + second + b"WARN c\n")
    b'WARN c\n'
    >>> output.of(first), output.of(_ANOTHER[:9]), output.of(_ANOTHER[9:] + second[:40])
    (b'', b'', b'')
    >>> output.of(second[40:])
    b''
    >>> output.of(b"\nDuring"), output.of(b" the night\n")
    (b'', b'\nDuring the night\n')
    """

    def __init__(self) -> None:
        self._pending = b""
        self._follows = False  # the last output was a dropped traceback, which may continue

    def of(self, data: bytes) -> bytes:
        """The part of the output to print after this input; a traceback once it is complete."""
        text, self._pending = self._pending + data, b""
        output = b""
        while True:
            if self._follows and _ANOTHER.startswith(text[: len(_ANOTHER)]):
                if len(text) < len(_ANOTHER):
                    self._pending = text
                    return output
                text = text[len(_ANOTHER) :]
            self._follows = False
            at = text.find(_TRACE)
            if at < 0:
                return output + text
            end = _LAST_LINE.search(text, at + len(_TRACE))
            if end is None:
                self._pending = text[at:]
                return output + text[:at]
            self._follows = _is_dropped(text[at : end.start()], end[0])
            output += text[:at] if self._follows else text[: end.end()]
            text = text[end.end() :]


def _is_dropped(trace: bytes, last: bytes) -> bool:
    """Whether a traceback is of a worker that lost its connection, or could not connect."""
    if b"local_connect_and_auth" in trace:
        return True
    return any(name in trace for name in (b"daemon.py", b"source_runner.py")) and last.startswith(_DROPPED)


def interrupts_ignored() -> None:
    """Ignore Ctrl-C from here on: the command is ending, in bounded time."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def no_more_counts(session: Session | None) -> None:
    """End the thread of Spark's accumulators: it would print a traceback when Java ends."""
    # Spark Connect has no such thread, and neither has a session that has not started
    context = getattr(getattr(session, "spark", None), "sparkContext", None)
    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.shutdown()


@contextmanager
def bridge_silent() -> Iterator[None]:
    """Prevent the bridge to Java from logging tracebacks of lost connections; real errors are raised too."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Defer SIGINT and SIGTERM to the end of the block, so that no process is started without being known.

    Blocking the signals is not enough: another thread of the process would receive them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # which no signal interrupts
        return
    received: list[tuple[int, FrameType | None]] = []
    before = {number: handler for number in _ENDING if callable(handler := signal.getsignal(number))}
    for number in before:
        signal.signal(number, lambda *each: received.append(each))
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    for signum, frame in received:
        before[signal.Signals(signum)](signum, frame)

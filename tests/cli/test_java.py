"""Signals and the start of the Java machine."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from windrow.cli.java_process import signals_deferred
from windrow.cli.reporting import terminable


@pytest.fixture
def another_thread():
    """Which takes in signals that the main thread blocks."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    yield
    over.set()
    thread.join()


@pytest.fixture
def interruptible():
    """Ctrl-C as Python takes it, also where the tests run in the background of a shell, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("another_thread", "interruptible")
@pytest.mark.parametrize(
    ("number", "raised"), [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
)
def test_what_ends_the_command_waits_until_a_process_is_known(number, raised):
    known = []

    def start():
        with signals_deferred():
            os.kill(os.getpid(), number)
            known.append("process")
        known.append("after it")

    with terminable(), pytest.raises(raised):
        start()
    assert known == ["process"]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_thread_that_no_signal_interrupts_holds_none():
    handlers = []

    def look():
        with signals_deferred():
            handlers.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert handlers == [signal.getsignal(signal.SIGINT)]

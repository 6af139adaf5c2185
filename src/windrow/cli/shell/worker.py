"""The only thread that talks to Spark, so that Ctrl-C never interrupts a call."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """Runs calls in order, in a thread that ends with the process."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="windrow shell", daemon=True)
        self._thread.start()

    def run(self, call: Callable[[], T]) -> Future[T]:
        """Have a call run after those before it."""
        future: Future[T] = Future()
        self._calls.put((call, future))
        return future

    def _run(self) -> None:
        while True:
            call, future = self._calls.get()
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(call())
            # Whatever it is belongs to the one who waits for the result.
            except BaseException as error:
                future.set_exception(error)

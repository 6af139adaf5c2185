"""The session behind the prompt: it starts in the background and runs one call at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from windrow.cli.connection import Connection, SessionFactory
from windrow.cli.shell.worker import Worker

if TYPE_CHECKING:
    from windrow.session import Session

__all__ = ["Backend", "StoppedError"]

T = TypeVar("T")

_GROUP = "windrow-shell"
_PATIENCE = 15.0
_TURN = 0.5
_BETWEEN = 0.3


class StoppedError(Exception):
    """The user stopped what was running; `is_over` says whether it has ended."""

    def __init__(self, is_over: bool) -> None:
        super().__init__("interrupted")
        self.is_over = is_over


class Backend:
    """Starts the session in the worker's thread, and runs the shell's calls there.

    Parameters
    ----------
    options, factory
        The options of the session, and the factory of the SparkSession.
    opened
        Called with the session as soon as there is one.
    """

    def __init__(
        self, options: Connection, factory: SessionFactory, opened: Callable[[Session], None] = lambda _: None
    ) -> None:
        self.options = options
        self._factory, self._opened = factory, opened
        self._worker = Worker()
        self._opening: Future[Session] | None = None
        self.began = time.monotonic()

    def start(self) -> None:
        """Begin to start the session, unless it has begun."""
        if self._opening is None:
            self.began = time.monotonic()
            self._opening = self._worker.run(self._open)

    @property
    def has_begun(self) -> bool:
        """Whether the start of the session has begun."""
        return self._opening is not None

    @property
    def is_starting(self) -> bool:
        """Whether the session is starting."""
        return self._opening is not None and not self._opening.done()

    def call(self, function: Callable[[Session], T]) -> T:
        """Call a function with the session, once that has started, and return its result.

        Raises
        ------
        StoppedError
            When the user stops it: Spark's jobs are cancelled.
        """
        self.start()
        future = self.later(function)
        try:
            while not future.done():
                # with a timeout, as otherwise Ctrl-C does not interrupt everywhere
                wait([future], _TURN)
            return future.result()
        except KeyboardInterrupt:
            raise StoppedError(self._stopped(future)) from None

    def later(self, function: Callable[[Session], T]) -> Future[T]:
        """Call a function with the session, without waiting."""
        self.start()
        assert self._opening is not None
        opening = self._opening

        def run() -> T:
            session = opening.result()
            _name_jobs(session)
            return function(session)

        return self._worker.run(run)

    def _open(self) -> Session:
        # imported here: PySpark's import would delay the prompt
        from windrow.cli.connection import open_session

        session = open_session(self.options, self._factory)
        self._opened(session)
        return session

    def _stopped(self, future: Future[Any]) -> bool:
        """Stop a call, and say whether it has ended within some seconds."""
        if future.cancel():
            return True
        end = time.monotonic() + _PATIENCE
        with suppress(KeyboardInterrupt):
            while time.monotonic() < end and not future.done():
                # Another job may follow the one that is cancelled.
                threading.Thread(target=self._cancel, name="windrow cancel", daemon=True).start()
                wait([future], _BETWEEN)
        return future.done()

    def _cancel(self) -> None:
        if self._opening is None or not self._opening.done():
            return
        # A Spark that is gone needs no cancelling.
        with suppress(Exception):
            spark = self._opening.result().spark
            if type(spark).__module__.startswith("pyspark.sql.connect"):
                spark.interruptAll()
            else:
                spark.sparkContext.cancelJobGroup(_GROUP)


def _name_jobs(session: Session) -> None:
    """Name the jobs of this thread, so that they can be cancelled without those of live queries."""
    if not type(session.spark).__module__.startswith("pyspark.sql.connect"):
        session.spark.sparkContext.setJobGroup(_GROUP, "windrow shell", interruptOnCancel=True)

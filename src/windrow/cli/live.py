"""``windrow run --live``: the live queries of a script, until they are stopped or fail."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from windrow.cli.batches import Batches, by_time
from windrow.cli.connection import Connection, SessionFactory, open_session, with_tables
from windrow.cli.formats import Format
from windrow.cli.page import Page, Watching
from windrow.cli.progress import Progress, lines_away
from windrow.cli.terminal import errors_console
from windrow.errors import UsageError, WindrowError
from windrow.spark.live.progress import in_words
from windrow.spark.live.sinks import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.session import Session

__all__ = ["TERMINATED", "Live", "run_live"]

TERMINATED = 143
"""The exit code after SIGTERM."""

_ERASE = "\r\x1b[2K"
_BETWEEN_DRAWS = 0.25  # seconds
_BETWEEN_LINES = 10.0
_RATE_OF = 10.0


@dataclass(frozen=True, slots=True)
class Live:
    """How the live queries of a script are run.

    Attributes
    ----------
    checkpoint
        The folder with which they go on where they were.
    trigger
        ``now``: what is there is processed, and that is all; or an interval, such as ``10 seconds``. Without,
        each micro-batch follows the last.
    format
        The form of the rows of a query that is inserted into nothing.
    port
        Where a page about the queries is served, 0 for any that is free; None for no page.
    keeps_malformed
        Whether records that cannot be read are kept apart.
    """

    checkpoint: Path | None
    trigger: str | None
    format: Format
    port: int | None = None
    keeps_malformed: bool = False

    @property
    def as_spark(self) -> dict[str, Any] | None:
        """The trigger as Spark takes it."""
        if self.trigger is None:
            return None
        return {"availableNow": True} if self.trigger == "now" else {"processingTime": self.trigger}


def run_live(
    script: str,
    asked: Connection,
    live: Live,
    factory: SessionFactory | None,
    opened: Callable[[Session], None],
) -> None:
    """Run the live queries of a script until they end, one fails, or the user stops them.

    Rows of queries that are inserted into nothing go to stdout, what the queries tell of themselves to
    stderr: a line that changes where that is a terminal, else a line from time to time.

    Raises
    ------
    WindrowError
        Located in the script.
    """
    if asked.params:
        raise UsageError(
            "live queries have no parameters",
            condition="UNKNOWN_OPTION",
            hint="write the values into the script, which the checkpoint keeps",
        )
    with Progress() as progress, _terminable():
        progress.begin("starting Spark")
        session = open_session(asked, factory)
        opened(session)
        progress.begin("planning", session.spark)
        watching = Watching(session.queries.values)
        with _Line(sys.stderr.isatty()) as line, _served(watching, live.port):
            session.listeners.add(line.told)
            session.listeners.add(watching.told)
            turn = _Turn()
            try:
                pipeline = session.pipeline(
                    script,
                    checkpoint=live.checkpoint,
                    trigger=live.as_spark,
                    sink=lambda: _Rows(live.format, line, watching, turn),
                    on_malformed="keep" if live.keeps_malformed else "fail",
                )
            except WindrowError as error:
                raise with_tables(error, asked) from error.__cause__
            finally:
                progress.pause()
            with pipeline:
                while not pipeline.await_termination(_BETWEEN_DRAWS):
                    pass


@contextmanager
def _served(watching: Watching, port: int | None) -> Iterator[None]:
    """Serve the page, if it is asked for, and say where it is."""
    if port is None:
        yield
        return
    with Page(watching, port) as page:
        with lines_away():
            sys.stderr.write(f"live queries: {page.address}\n")
            sys.stderr.flush()
        yield


@dataclass
class _Turn:
    """Of several queries that write to stdout, the one that has written last."""

    of: _Rows | None = None


class _Rows(Sink):
    """Writes the rows of a query's micro-batches to stdout."""

    def __init__(self, form: Format, line: _Line, watching: Watching, turn: _Turn) -> None:
        self._batches, self._line, self._watching = Batches(form), line, watching
        self._turn = turn

    def write(self, frame: DataFrame, number: int) -> int | None:  # noqa: ARG002 - of other sinks
        """Show the rows of a micro-batch."""
        form = self._batches.form
        rows = self._batches.texts(by_time(frame))
        self._watching.rows(["row"] if form is Format.JSON else frame.columns, rows)
        if rows or self._batches.waits:
            with self._line.away():
                if self._turn.of not in (None, self):
                    self._batches.again()
                self._turn.of = self
                self._batches.put(frame.schema, rows)
        return len(rows)


@dataclass
class _Query:
    """What a query has told last, and how many rows had come at which times."""

    last: Mapping[str, Any] = field(default_factory=dict)
    counts: deque[tuple[float, int]] = field(default_factory=deque)
    shown: float = 0.0

    def told(self, progress: Mapping[str, Any], now: float) -> None:
        self.last = progress
        self.counts.append((now, progress["rows_in"]))

    def rate(self, now: float) -> float:
        """Rows a second, of the last seconds."""
        while len(self.counts) > 1 and now - self.counts[1][0] > _RATE_OF:
            self.counts.popleft()
        since, before = self.counts[0]
        if len(self.counts) == 1:
            return float(self.last["rows_per_second"]) if now - since < _RATE_OF else 0.0
        return (self.counts[-1][1] - before) / max(now - since, _BETWEEN_DRAWS)


class _Line:
    """The line about the queries on stderr."""

    def __init__(self, is_terminal: bool) -> None:
        self._is_terminal = is_terminal
        self._queries: dict[str, _Query] = {}
        self._lock = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="windrow live", daemon=True)
        self._is_drawn = False

    def __enter__(self) -> _Line:
        if self._is_terminal:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with self._lock:
            self._erase()
            for query in self._queries.values():
                errors_console().print(in_words(query.last), style="dim", markup=False)

    def told(self, progress: Mapping[str, Any]) -> None:
        """Take in what a step has told; where stderr is no terminal, say it from time to time."""
        now = time.monotonic()
        with self._lock:
            query = self._queries.setdefault(progress["query"], _Query())
            query.told(progress, now)
            if not self._is_terminal and now - query.shown >= _BETWEEN_LINES:
                query.shown = now
                sys.stderr.write(f"{in_words(progress, query.rate(now))}\n")
                sys.stderr.flush()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Take the line away while rows are written, and that which says that others are planned."""
        with self._lock, lines_away():
            self._erase()
            yield

    def _draw(self) -> None:
        console = errors_console()
        while not self._ended.wait(_BETWEEN_DRAWS):
            with self._lock:
                now = time.monotonic()
                parts = [in_words(query.last, query.rate(now)) for query in self._queries.values()]
                text = " │ ".join(parts)[: max(console.width - 1, 1)]
                if text:
                    sys.stderr.write(f"{_ERASE}{text}")
                    sys.stderr.flush()
                    self._is_drawn = True

    def _erase(self) -> None:
        if self._is_drawn:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._is_drawn = False


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, with an exit code of its own."""
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

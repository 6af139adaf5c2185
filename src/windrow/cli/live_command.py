"""``windrow run --live``: the live queries of a script, until they are stopped or fail."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.cli.connection import Connection, SessionFactory, open_session, values, with_tables
from windrow.cli.output.batches import Batches, by_time
from windrow.cli.output.formats import Format
from windrow.cli.output.terminal import errors_console
from windrow.cli.page import Page, Watching
from windrow.cli.progress import Progress, lines_away
from windrow.cli.set_aside import lines_of
from windrow.errors import WindrowError
from windrow.spark.live.reports.progress_report import in_words
from windrow.spark.live.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.session import Session
    from windrow.spark.live import LiveQuery

__all__ = ["Live", "run_live"]


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
        The folder from which they resume.
    trigger
        ``now`` to process the present input and end, or an interval, such as ``10 seconds``. Without it, each
        micro-batch follows the last.
    format
        The form of rows of a query without INSERT INTO.
    port
        The port of a web page about the queries, 0 for any free one; None for no page.
    retains_malformed
        Whether records that cannot be read go to a side output.
    """

    checkpoint: Path | None
    trigger: str | None
    format: Format
    port: int | None = None
    retains_malformed: bool = False

    @property
    def as_spark(self) -> dict[str, Any] | None:
        """The trigger as Spark takes it."""
        if self.trigger is None:
            return None
        return {"availableNow": True} if self.trigger == "now" else {"processingTime": self.trigger}


def run_live(
    script: str,
    options: Connection,
    live: Live,
    factory: SessionFactory | None,
    opened: Callable[[Session], None],
) -> None:
    """Run the live queries of a script until they end, one fails, or the user stops them.

    Rows of queries without INSERT INTO go to stdout, and the progress of all queries to stderr: a line that
    changes if that is a terminal, else a line from time to time.

    Raises
    ------
    WindrowError
        Located in the script.
    """
    with Progress() as progress:
        progress.begin("starting Spark")
        session = open_session(options, factory)
        opened(session)
        restarts = live.checkpoint is not None and live.checkpoint.exists()
        what = f"planning the restart from {live.checkpoint}" if restarts else "planning"
        progress.begin(what, session.spark)
        watching = Watching(session.queries.values)
        with _Line(sys.stderr.isatty(), progress.pause) as line, _served(watching, live.port):
            session.queries.started.append(line.began)
            session.listeners.add(line.progressed)
            session.listeners.add(watching.progressed)
            turn = _Turn()
            try:
                pipeline = session.pipeline(
                    script,
                    checkpoint=live.checkpoint,
                    trigger=live.as_spark,
                    sink=lambda: _Rows(live.format, line, watching, turn),
                    args=values(session.spark, options.params),
                    on_malformed="keep" if live.retains_malformed else "fail",
                )
            except WindrowError as error:
                raise with_tables(error, options) from error.__cause__
            finally:
                progress.pause()
            with pipeline:
                while not pipeline.await_termination(_BETWEEN_DRAWS):
                    pass


@contextmanager
def _served(watching: Watching, port: int | None) -> Iterator[None]:
    """Serve the page if it has a port, and print its address."""
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
    """Which of several queries has written to stdout last."""

    of: _Rows | None = None


class _Rows(Sink):
    """Writes the rows of a query's micro-batches to stdout."""

    def __init__(self, form: Format, line: _Line, watching: Watching, turn: _Turn) -> None:
        self._batches, self._line, self._watching = Batches(form), line, watching
        self._turn = turn

    def write(self, frame: DataFrame, number: int) -> int | None:  # noqa: ARG002 - of other sinks
        """Print the rows of a micro-batch."""
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
    """The last progress of a query, and how many rows it had read at which times."""

    last: Mapping[str, Any] = field(default_factory=dict)
    counts: deque[tuple[float, int]] = field(default_factory=deque)
    printed: float = 0.0

    def add(self, progress: Mapping[str, Any], now: float) -> None:
        self.last = progress
        self.counts.append((now, progress["rows_in"]))

    def rate(self, now: float) -> float:
        """The rows per second of the last seconds."""
        while len(self.counts) > 1 and now - self.counts[1][0] > _RATE_OF:
            self.counts.popleft()
        since, before = self.counts[0]
        if len(self.counts) == 1:
            return float(self.last["rows_per_second"]) if now - since < _RATE_OF else 0.0
        return (self.counts[-1][1] - before) / max(now - since, _BETWEEN_DRAWS)


class _Line:
    """The line about the queries on stderr, and at the end a summary of each.

    Parameters
    ----------
    is_terminal
        Whether the line is drawn.
    takes_over
        Called when the first query starts, to remove all other lines.
    """

    def __init__(self, is_terminal: bool, takes_over: Callable[[], object]) -> None:
        self._is_terminal, self._takes_over = is_terminal, takes_over
        self._queries: dict[str, _Query] = {}
        self._started: list[tuple[LiveQuery, float]] = []
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
            for query, _since in self._started:
                for line in self._at_the_end(query):
                    _say(line)

    def began(self, query: LiveQuery) -> None:
        """Add a query that has started; if stderr is no terminal, print from where it resumes."""
        self._takes_over()
        with self._lock:
            self._started.append((query, time.monotonic()))
            if not self._is_terminal and query.began_after >= 0:
                _say(_from_where(query))

    def progressed(self, progress: Mapping[str, Any]) -> None:
        """Add the progress of a micro-batch; if stderr is no terminal, print it from time to time."""
        now = time.monotonic()
        with self._lock:
            query = self._queries.setdefault(progress["query"], _Query())
            query.add(progress, now)
            if not self._is_terminal and now - query.printed >= _BETWEEN_LINES:
                query.printed = now
                sys.stderr.write(f"{in_words(progress, query.rate(now))}\n")
                sys.stderr.flush()

    @contextmanager
    def away(self) -> Iterator[None]:
        """Remove the line while rows are written, and the line of a pipeline that is still planned."""
        with self._lock, lines_away():
            self._erase()
            yield

    def _draw(self) -> None:
        console = errors_console()
        while not self._ended.wait(_BETWEEN_DRAWS):
            with self._lock:
                now = time.monotonic()
                parts = [self._now(query, since, now) for query, since in self._started]
                text = " │ ".join(parts)[: max(console.width - 1, 1)]
                if text:
                    sys.stderr.write(f"{_ERASE}{text}")
                    sys.stderr.flush()
                    self._is_drawn = True

    def _now(self, query: LiveQuery, since: float, now: float) -> str:
        """The progress of a query; before its first micro-batch, from where it resumes."""
        known = self._queries.get(query.name)
        if known is None:
            return f"{_from_where(query)}, {now - since:.0f} s"
        return in_words(known.last, known.rate(now))

    def _at_the_end(self, query: LiveQuery) -> Iterator[str]:
        """The last progress of a query, and its late and malformed rows."""
        known = self._queries.get(query.name)
        after = "" if query.began_after < 0 else f" after {query.began_after} of its checkpoint"
        yield f"{query.name}: no micro-batch{after}" if known is None else in_words(known.last)
        try:
            found = query.set_aside()
        except (OSError, WindrowError) as error:
            yield f"{query.name}: its late and malformed rows cannot be read: {error}"
        else:
            yield from itertools.chain.from_iterable(lines_of(one, query.name) for one in found)

    def _erase(self) -> None:
        if self._is_drawn:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._is_drawn = False


def _from_where(query: LiveQuery) -> str:
    """The line about a query before its first micro-batch."""
    if query.began_after < 0:
        return f"{query.name}: no micro-batch yet"
    return f"{query.name}: continues after micro-batch {query.began_after} of its checkpoint"


def _say(line: str) -> None:
    errors_console().print(line, style="dim", markup=False)

"""One line on stderr that says what Spark is doing and how long that will take.

It is drawn if stderr is a terminal, after a second of waiting, and removed before other output.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Progress", "SparkStage", "described", "lines_away"]

_PATIENCE = 1.0
_INTERVAL = 0.2
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ERASE = "\r\x1b[2K"


@dataclass(frozen=True, slots=True)
class SparkStage:
    """Spark's active stages: the number of the newest one, and the tasks of all.

    `seconds` is how long they have been running.
    """

    number: int
    done: int
    tasks: int
    seconds: float


def described(what: str, stage: SparkStage | None, rows: int, seconds: float) -> str:
    """The line's text.

    >>> described("running", SparkStage(number=3, done=8, tasks=32, seconds=10.0), 12_000, 15.2)
    'running 15 s · stage 3: 8 of 32 tasks, about 30 s left · 12,000 rows written'
    >>> described("starting Spark", None, 0, 2.1)
    'starting Spark 2 s'
    """
    parts = [f"{what} {seconds:.0f} s"]
    if stage is not None:
        text = f"stage {stage.number}: {stage.done} of {stage.tasks} tasks"
        if stage.done:
            # the estimate is for this stage: Spark plans further stages only after its result
            text += f", about {_duration(stage.seconds / stage.done * (stage.tasks - stage.done))} left"
        parts.append(text)
    if rows:
        parts.append(f"{rows:,} rows written")
    return " · ".join(parts)


class Progress:
    """Draws the line from a thread of its own while the block runs.

    Parameters
    ----------
    visible
        Whether to draw at all; by default, where stderr is a terminal.
    """

    def __init__(self, visible: bool | None = None) -> None:
        self._visible = sys.stderr.isatty() if visible is None else visible
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._draw, name="windrow progress", daemon=True)
        self._what: str | None = None
        self._since = 0.0
        self._rows = 0
        self._spark: SparkSession | None = None
        self._first_seen: dict[int, float] = {}
        self._drawn = False

    def __enter__(self) -> Self:
        _open.append(self)
        if self._visible:
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.pause()
        self._ended.set()
        _open.remove(self)

    def begin(self, what: str, spark: SparkSession | None = None) -> None:
        """Begin to show `what`, with the stages of `spark` if it reports them."""
        with self._lock:
            self._erase()
            self._what, self._spark, self._since, self._rows = what, spark, time.monotonic(), 0

    def count(self, rows: int) -> None:
        """Show how many rows have been written."""
        self._rows = rows

    @contextmanager
    def away(self) -> Iterator[None]:
        """Remove the line while something else is written."""
        with self._lock:
            self._erase()
            yield

    def pause(self) -> None:
        """Remove the line until the next :meth:`begin`."""
        with self._lock:
            self._what = None
            self._erase()

    def _draw(self) -> None:
        turn = 0
        while not self._ended.wait(_INTERVAL):
            # Outside the lock: the answer may be slow, and `pause` must not wait for it.
            stage = self._stage()
            with self._lock:
                seconds = time.monotonic() - self._since
                if self._what is None or seconds < _PATIENCE:
                    continue
                turn += 1
                text = described(self._what, stage, self._rows, seconds)
                sys.stderr.write(f"{_ERASE}{_SPINNER[turn % len(_SPINNER)]} {text}")
                sys.stderr.flush()
                self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            sys.stderr.write(_ERASE)
            sys.stderr.flush()
            self._drawn = False

    def _stage(self) -> SparkStage | None:
        """The active stages by the status tracker; None with Spark Connect, or when the session ends."""
        spark = self._spark
        if spark is None or type(spark).__module__.startswith("pyspark.sql.connect"):
            return None
        try:
            tracker = spark.sparkContext.statusTracker()
            stages = [(number, tracker.getStageInfo(number)) for number in tracker.getActiveStageIds()]
        # an error here must not fail the query; a serious one will fail it anyway
        except Exception:
            return None
        running = [(number, info) for number, info in stages if info is not None]
        if not running:
            return None
        now = time.monotonic()
        since = min(self._first_seen.setdefault(number, now) for number, _ in running)
        return SparkStage(
            number=max(number for number, _ in running) + 1,
            done=sum(info.numCompletedTasks for _, info in running),
            tasks=sum(info.numTasks for _, info in running),
            seconds=now - since,
        )


_open: list[Progress] = []


@contextmanager
def lines_away() -> Iterator[None]:
    """Remove all lines while the thread of a live query writes."""
    with ExitStack() as stack:
        for each in list(_open):
            stack.enter_context(each.away())
        yield


def _duration(seconds: float) -> str:
    """A length of time in one or two units.

    >>> _duration(8.4), _duration(125), _duration(7300)
    ('8 s', '2 min', '2 h 2 min')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"

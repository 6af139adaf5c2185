"""Live queries: started, watched and stopped."""

from __future__ import annotations

import atexit
import html
import threading
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from windrow.errors import InputError, UsageError
from windrow.spark.collected import frame_of_collected
from windrow.spark.jvm.bridge import INTERRUPTED, BridgeError
from windrow.spark.jvm.streams import await_sources
from windrow.spark.live.checkpoints.spark_log import clear_unfinished, started
from windrow.spark.live.hosts import micro_batches_of
from windrow.spark.live.input.incoming_files import Incoming, check_shared, writing
from windrow.spark.live.input.read_logs import ReadLogs
from windrow.spark.live.input.ticks import Ticker
from windrow.spark.live.micro_batches.host import ASIDE
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.reports.failures import failure, of_a_worker
from windrow.spark.live.reports.progress_report import QueryProgress, described, in_words
from windrow.spark.live.reports.rows_set_aside import SetAside, counted
from windrow.spark.live.reports.state_table import QueryState, StateRow
from windrow.spark.live.sinks.into_stream import IntoStream, refuse_other
from windrow.spark.live.sinks.sink import uri
from windrow.spark.live.sinks.targets import in_mode, refuse_places, sink_of
from windrow.spark.runtime.settings import settings
from windrow.spark.runtime.temporary import TemporaryFolder
from windrow.tracebacks import briefly

__all__ = ["LiveQuery"]

_TRIES = 5
_TRIES_OF_A_MICRO_BATCH = 4
"""The number of attempts for a micro-batch: as often as Spark tries a task, on a cluster."""
_PATIENCE, _BETWEEN_LOOKS = 10.0, 0.02  # seconds
_WAITS = "Waiting"
"""The beginning of the status of a query that is idle."""


@briefly
class LiveQuery:
    """A running query; see :meth:`windrow.relation.Relation.start`.

    Attributes
    ----------
    name
        Its name in the session, and as a Spark query.
    streaming
        Spark's query, with its own progress.
    began_after
        The last micro-batch of the checkpoint with which it was started; -1 if there was none.
    """

    def __init__(
        self,
        plan: LivePlan,
        sink: Any,
        *,
        checkpoint: str | Path | None = None,
        trigger: Mapping[str, Any] | None = None,
        envelope: str | None = None,
        on_late: str = "keep",
        on_malformed: str = "fail",
        mode: str = "changelog",
        key: str | Sequence[str] | None = None,
        name: str = "query",
        notify: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        refuse_places(name, checkpoint, key, sink_of(sink))
        self.name, self._plan, self._notify = name, plan, notify
        self._spark = plan.gateway.spark
        self._busy = threading.Lock()
        self._has_begun, self._has_ended = threading.Event(), threading.Event()
        self._left: _Left | None = None
        self._temporary: TemporaryFolder | None = None
        if checkpoint is None:
            self._temporary = TemporaryFolder(self._spark)
            checkpoint = self._temporary.path
        folder = Path(checkpoint).resolve()
        try:
            taking, form = in_mode(sink_of(sink), plan, mode, key, envelope, folder)
            if isinstance(taking, IntoStream):
                refuse_other(taking, plan)
            self._sink = taking
            self._made = partial(micro_batches_of, plan, taking, folder, form, on_late, on_malformed)
            self._batches = self._made()
            self.began_after = self._batches.last
            self._progress = described(name, plan, self._batches.progress, 0)
            self._reading = ReadLogs(
                plan, self._batches.identity, folder, is_temporary=self._temporary is not None
            )
        except BaseException:
            if self._temporary is not None:
                self._temporary.remove()
            raise
        self._error: Exception | None = None
        self._is_stopping = False
        self._incoming: Incoming | None = None
        self._ticker = Ticker(self._tick, self._fail)
        try:
            if plan.gateway.is_connect:
                # the server calls functions in processes of its own, where neither this query nor its sink is
                check_shared(self._spark, folder)
                self._incoming = Incoming(folder / "incoming", self._batches.last, self._take)
            clear_unfinished(folder / "spark")
            function = self._take if self._incoming is None else writing(self._incoming.folder)
            writer = self._batches.input().writeStream.queryName(name).foreachBatch(function)
            writer = writer.option("checkpointLocation", uri(folder / "spark"))
            if trigger is not None:
                writer = _triggered(writer, trigger)
            self._has_logs = any(stream.is_log for _, _, stream in self._batches.streams())
            with plan.gateway.translated(), settings(self._spark, self._batches.settings):
                self.streaming: StreamingQuery = started(writer, self._spark, reads_files=not self._has_logs)
        except BaseException:
            self._release()
            raise
        if self._incoming is not None:
            self._incoming.follow(self._spark, self.streaming)
        else:
            atexit.register(self._stop_with_the_process)
        self._ticker.want(self._batches.wants)
        threading.Thread(target=self._see_the_end, name=f"windrow end of {name}", daemon=True).start()

    def __repr__(self) -> str:
        return f"LiveQuery[{self.name}, {'active' if self.is_active else 'ended'}]"

    def _repr_html_(self) -> str:
        failure = self.failure
        status = "runs" if self.is_active else "has ended" if failure is None else "has failed"
        text = in_words(self._progress) if self._progress else f"{self.name}: no micro-batch yet"
        line = f'<div><b>{status}</b> <span style="opacity:.75">{html.escape(text)}</span></div>'
        if failure is None:
            return line
        rendered = getattr(failure, "_repr_html_", None)
        return line + (rendered() if rendered is not None else f"<pre>{html.escape(str(failure))}</pre>")

    @property
    def progress(self) -> QueryProgress:
        """The counts of the last micro-batch, also of one before a restart, and the totals; empty before the
        first.

        ``query``: its name; ``batch``: the number of the micro-batch; ``batch_rows_in`` and
        ``batch_rows_emitted``: rows of this one; ``seconds`` that it took, and ``rows_per_second``, which are
        0 directly after a restart;
        ``frontier``: changes before this instant have been emitted, in ticks, and as a text ``bound``;
        ``bound_in``: which time that is, ``event time``, or with EMIT ``processing time``;
        ``seconds_behind``: by how much it is behind the time of day;
        ``rows_in``, which are ``rows_used`` + ``rows_buffered`` + ``rows_late`` + ``rows_malformed``;
        ``rows_in_windows``, ``rows_emitted``; and ``state_bytes``: what is retained, in files.
        """
        return self._progress

    @property
    def text(self) -> str:
        """The query as written."""
        return self._plan.text

    @property
    def is_active(self) -> bool:
        """Whether it runs, or still owns its checkpoint."""
        return not self._has_ended.is_set()

    @property
    def failure(self) -> Exception | None:
        """The error of the query; None if it runs, or was stopped."""
        error = self._error or (self._incoming.error if self._incoming is not None else None)
        if error is None and not self._is_stopping:
            found = self.streaming.exception()
            error = None if found is None else failure(found) or found
        return error

    def state(self) -> DataFrame:
        """The state after the last micro-batch, and what delays the bound.

        A row for each stream that is read (``kind`` is ``stream``; ``rows`` are those buffered until the
        frontier), for each of its producers (``producer``), and for each window (``window``): ``name``,
        ``rows``, ``bytes``, ``oldest`` rowtime, ``bound`` in event time, and ``delays``: whether others wait
        for this one, because its bound is the least; a single stream or producer delays nothing. A query with
        EMIT has a row for the retained rows of each stream (``rows``). State of operators in place
        of rows has one (``operators``); SELECT STREAM over whole streams has one for each operator
        (``operator``). ``why`` says which rows these are, and until when they are retained, as in EXPLAIN.
        """
        return QueryState(self.state_rows()).frame(self._spark)

    def state_rows(self) -> tuple[StateRow, ...]:
        """The rows of :meth:`state`, without a Spark job."""
        if self._left is not None:
            return self._left.state
        for left in reversed(range(_TRIES)):
            try:
                return self._batches.state().rows
            except (FileNotFoundError, InputError):  # the query has gone on in between, and tidied up
                if not left:
                    raise
        raise AssertionError

    def latest(self, count: int = 10) -> pa.Table | None:
        """The last rows in the target folder or named stream of the query, without a Spark job.

        None if there are none, and for other sinks. In a named stream, they include rows of other producers.
        """
        return self._batches.latest(count)

    def stop(self) -> None:
        """Stop it; when started again with its checkpoint, it continues from there."""
        self._ticker.stop()
        self._wait_for_processes()
        self._is_stopping = True
        self.streaming.stop()
        if self._incoming is not None:
            self._incoming.stop()
        self._release()

    def process_all_available(self) -> None:
        """Wait until everything that has arrived is processed.

        Raises
        ------
        WindrowError
            The error of the query.
        """
        self._watched(self.streaming.processAllAvailable, Incoming.catch_up)

    def await_termination(self, timeout: int | None = None) -> bool:
        """Wait until it stops, or for so many seconds; returns whether it has stopped.

        Raises
        ------
        WindrowError
            The error of the query.
        """
        began = time.monotonic()

        def rest(incoming: Incoming) -> bool:
            return incoming.join(None if timeout is None else max(0.0, began + timeout - time.monotonic()))

        if timeout is None:
            self._watched(self.streaming.awaitTermination, rest)
            return True
        return bool(self._watched(lambda: self.streaming.awaitTermination(timeout), rest))

    @property
    def late(self) -> DataFrame:
        """The late rows so far, each with its stream, rowtime, producer and the bound that it violates."""
        return self._aside("late")

    @property
    def malformed(self) -> DataFrame:
        """The malformed rows so far, retained by ``on_malformed="keep"``, each with its stream and the
        reason.
        """
        return self._aside("malformed")

    def set_aside(self, most: int = 3) -> tuple[SetAside, ...]:
        """How many rows are late or malformed, by stream and reason, without a Spark job.

        Parameters
        ----------
        most
            The number of rows of each stream and reason to include.
        """
        found: list[SetAside] = []
        for name in ASIDE:
            if self._left is not None:
                found += counted(name, self._left.aside[name].to_batches(), most, None)
            else:
                text = self._batches.set_aside(name, most)
                found += text if self._temporary is None else [replace(one, folder=None) for one in text]
        return tuple(found)

    def _aside(self, name: str) -> DataFrame:
        """The rows of a side output."""
        rows = self._left.aside[name] if self._left is not None else None
        if rows is None and self._temporary is not None:  # whose files go with the query
            rows = self._batches.aside_table(name)
        return (
            self._batches.aside(name) if rows is None else frame_of_collected(self._spark, rows, ASIDE[name])
        )

    def _watched(self, wait: Callable[[], Any], rest: Callable[[Incoming], Any]) -> Any:
        """Wait for Spark's query, and, if that has ended or is idle, for the micro-batches still to be
        processed.
        """
        try:
            found = wait()
            if self._incoming is not None and found is not False:
                found = rest(self._incoming)
            self._raise()  # also where Spark takes a failure for an end
            if found is not False and not self.streaming.isActive:
                self._has_ended.wait()
            return found
        except StreamingQueryException as error:
            self._batches.close()
            self._raise()
            raise failure(error) or error from None

    def _raise(self) -> None:
        """Raise the error of a micro-batch."""
        error = self._error or (self._incoming.error if self._incoming is not None else None)
        if error is not None:
            self._batches.close()
            raise error from None

    def _see_the_end(self) -> None:
        """Release all resources of the query when it has ended, for any reason."""
        with suppress(Exception):  # `failure` has its error; if Spark is gone, it has ended too
            self.streaming.awaitTermination()
        if self._incoming is not None:
            self._incoming.join()
        self._release()

    def _release(self) -> None:
        """Release the checkpoint; delete one that was made for this run."""
        self._ticker.stop()
        atexit.unregister(self._stop_with_the_process)
        with self._busy:  # a micro-batch that was begun may be at work still
            if self._has_ended.is_set():
                return
            try:
                self._batches.close()
                self._reading.end()
                if self._temporary is not None:
                    self._left = _Left(
                        {name: self._batches.aside_table(name) for name in ASIDE}, self.state_rows()
                    )
            except (PySparkException, BridgeError, OSError):
                if self._temporary is None:
                    raise  # else Spark is gone, with all that could be requested
            finally:
                if self._temporary is not None:
                    self._temporary.remove()
                self._has_ended.set()

    def _tick(self, instant: int) -> None:
        if self.is_active:
            self._batches.tick(instant)

    def _fail(self, error: Exception) -> None:
        """End the query because of an error outside its micro-batches."""
        self._error = failure(error) or error
        self._wait_for_processes()
        self.streaming.stop()

    def _wait_for_processes(self) -> None:
        """Wait until the Python processes that Spark starts for named streams have found it.

        In the first micro-batch, one process looks for new entries, and one plans how files are read. If
        Spark ends them while they start, they print a trace to the user's terminal.
        """
        if not self._has_logs or self._plan.gateway.is_connect:
            return
        until = time.monotonic() + _PATIENCE
        with suppress(PySparkException, BridgeError, OSError):  # of Java that has ended
            await_sources(self.streaming)
            while not self._has_begun.wait(_BETWEEN_LOOKS) and time.monotonic() < until:
                if not self.streaming.isActive or self.streaming.status["message"].startswith(_WAITS):
                    return
        is_first = self._progress.get("batch", self.began_after) == self.began_after
        if is_first and self._busy.acquire(timeout=_PATIENCE):
            self._busy.release()

    def _stop_with_the_process(self) -> None:
        """Stop it if nobody has: Java, which ends with the process, reports threads that still run."""
        with suppress(PySparkException, BridgeError, OSError):  # of Java that has ended
            self.stop()

    def _take(self, batch: DataFrame, number: int) -> None:
        with self._busy:
            self._has_begun.set()
            if self._is_stopping:  # what Spark does not commit, it has again after a restart
                raise RuntimeError(INTERRUPTED)
            try:
                began = time.monotonic()
                tries = self._process(batch, number)
            except Exception as error:
                if self._is_stopping:
                    raise RuntimeError(INTERRUPTED) from None
                self._error = failure(error) or error
                self._ticker.want(None)
                # not what Java has said: a pattern by which Spark looks for interruptions overflows its stack
                # where that is long, and the query seems to have ended well
                raise self._error from None
            self._ticker.want(self._batches.wants)
            self._reading.note(self._batches.positions)
            elapsed = time.monotonic() - began
            text = {**self._batches.progress, "tries": tries} if self._batches.progress else {}
            self._progress = described(self.name, self._plan, text, elapsed)
        if self._notify is not None and self._progress:
            self._notify(self._progress)

    def _process(self, batch: DataFrame, number: int) -> int:
        """Process a micro-batch, and retry it if a Spark worker has failed; returns the number of
        attempts.
        """
        for tries in range(1, _TRIES_OF_A_MICRO_BATCH):
            try:
                self._batches.take(batch, number)
            except Exception as error:
                why = of_a_worker(error)
                if why is None or self._is_stopping or not self._sink.may_repeat(number):
                    raise
                text = f"micro-batch {number} of query {self.name} is tried again: {why}"
                warnings.warn(text, RuntimeWarning, stacklevel=2)
                self._batches.close()
                self._batches = self._made()  # from the retained rows, as after a restart
            else:
                return tries
        self._batches.take(batch, number)
        return _TRIES_OF_A_MICRO_BATCH


@dataclass(frozen=True, eq=False)
class _Left:
    """The last known state of a query that has ended, and has no files any more."""

    aside: Mapping[str, pa.Table]
    state: tuple[StateRow, ...]


def _triggered(writer: DataStreamWriter, trigger: object) -> DataStreamWriter:
    """The writer, with a trigger in Spark's form."""
    hint = "write {'processingTime': '10 seconds'} or {'availableNow': True}"
    if not isinstance(trigger, Mapping):
        raise UsageError(f"{trigger!r} is not a trigger", condition="INVALID_ARGUMENT", hint=hint)
    try:
        return writer.trigger(**trigger)
    except (TypeError, PySparkException) as error:
        text = f"{dict(trigger)} is not a trigger: {error}"
        raise UsageError(text, condition="INVALID_ARGUMENT", hint=hint) from None

"""Live queries of the shell: started, listed and stopped; their output is printed above the prompt."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from windrow.cli.output.formats import Format
from windrow.cli.output.terminal import errors_console, stdout_console
from windrow.cli.output.text_tables import ROWS
from windrow.cli.progress import lines_away
from windrow.cli.reporting import show_error, show_unexpected
from windrow.cli.shell.shell_settings import Settings
from windrow.errors import UsageError, WindrowError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live import LiveQuery

__all__ = ["follow", "progress_of", "state_of", "stop", "watch"]

_BETWEEN = 0.5  # seconds


def watch(relation: Relation, settings: Settings) -> LiveQuery:
    """Start a query and print its output from now on; returns the query.

    A relation is printed as its full table after each change, or by its changes, as the present settings say;
    a stream by its rows.

    Raises
    ------
    WindrowError
        ``NOT_LIVE`` for a query over recorded data only, and errors of the start.
    """
    plan = relation.live
    if plan is None and not relation.is_plan:
        raise UsageError(
            "the query reads no named stream, so its output never changes",
            condition="NOT_LIVE",
            hint="run it without .watch; or make a named stream: CREATE STREAM … LOCATION",
        )
    printer = _Printer(settings)
    is_table = (
        plan is not None and plan.is_relation and not plan.asks_changes and settings.mode != "changelog"
    )
    if is_table:
        return relation.start(printer.table, mode="table")
    return relation.start(printer.rows, envelope=settings.envelope)


def follow(query: LiveQuery) -> None:
    """Print the failure of a query when it fails."""

    def wait() -> None:
        while query.is_active:
            time.sleep(_BETWEEN)
        if (failure := query.failure) is not None:
            errors_console().print(Text(f"{query.name} has failed:", style="bold red"))
            if isinstance(failure, WindrowError):
                show_error(failure)
            else:
                show_unexpected(failure, debug=False)

    threading.Thread(target=wait, name=f"windrow {query.name}", daemon=True).start()


def stop(session: Session, name: str) -> list[str]:
    """Stop the query of a name, or all; the names of those that were stopped.

    Raises
    ------
    UsageError
        ``UNKNOWN_QUERY``.
    """
    names = [_known(session, name)] if name else list(session.queries)
    for each in names:
        session.queries[each].stop()
    return names


def progress_of(session: Session, started: Mapping[str, LiveQuery]) -> list[tuple[str, ...]]:
    """The status and the last progress of running queries, and of those `started` that have failed."""
    failed = {name: query for name, query in started.items() if query.failure is not None}
    return [(name, *_progress(query)) for name, query in {**failed, **session.queries}.items()]


def state_of(session: Session, name: str) -> tuple[list[str], list[Any]]:
    """The state of a query: the names of the columns, and the rows as text.

    Raises
    ------
    UsageError
        ``UNKNOWN_QUERY``.
    """
    from windrow.cli.output.rows_on_driver import as_text

    frame = session.queries[_known(session, name)].state()
    return frame.columns, as_text(frame, iso=False).collect()


def _known(session: Session, name: str) -> str:
    names = list(session.queries)
    if name not in names:
        known = f"use one of {', '.join(names)}" if names else "start a query with .watch SELECT …"
        hint = did_you_mean(name, names) or known
        raise UsageError(f"no query {name} is running", condition="UNKNOWN_QUERY", hint=hint)
    return name


def _progress(query: LiveQuery) -> tuple[str, ...]:
    progress = query.progress
    failure = query.failure
    reason = f"has failed: {getattr(failure, 'condition', type(failure).__name__)}"
    state = "runs" if query.is_active else reason if failure else "has ended"
    numbers = [progress.get(key, 0) for key in ("rows_in", "rows_buffered", "rows_late", "rows_in_windows")]
    return (state, str(progress.get("bound", "")), *(f"{number:,}" for number in numbers))


class _Printer:
    """Prints the output of a query above the prompt."""

    def __init__(self, settings: Settings) -> None:
        from windrow.cli.output.batches import Batches  # imports PySpark, which would delay the prompt

        self._batches, self._limit = Batches(settings.form), settings.limit

    def rows(self, frame: DataFrame, number: int) -> None:
        """Print the changes of a micro-batch, or its rows."""
        from windrow.cli.output.batches import by_time

        texts = self._batches.texts(by_time(frame))
        if texts:
            self._put(frame, texts, f"-- micro-batch {number}", None)

    def table(self, frame: DataFrame, number: int) -> None:
        """Print the table after a micro-batch, ordered by its columns."""
        from windrow.plan.arrow_types import is_orderable

        most = ROWS if self._limit is None else self._limit
        named = frame.toDF(*(f"c{place}" for place in range(len(frame.columns))))
        keys = [field.name for field in named.schema if is_orderable(field.dataType)]
        texts = self._batches.texts(named.orderBy(*keys).limit(most + 1).toDF(*frame.columns))
        more = " (.limit N shows N)" if len(texts) > most else None
        self._put(frame, texts[:most], f"-- after micro-batch {number}", more)

    def _put(
        self, frame: DataFrame, texts: Sequence[Sequence[str | None]], title: str, more: str | None
    ) -> None:
        with lines_away():
            if self._batches.form is Format.TABLE:
                stdout_console().print(title)
            self._batches.put(frame.schema, texts, more)

"""Live relations as tables that refresh; displaying one starts its query."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from IPython.display import HTML, display
from pyspark.sql import DataFrame
from pyspark.sql import types as T

from windrow.cli.output.batches import by_time
from windrow.cli.output.rows_on_driver import as_text
from windrow.errors import WindrowError
from windrow.notebook.panels import before_start, open_panel, show_query
from windrow.plan.arrow_types import is_orderable
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, StartedRelation
from windrow.rendering import html_table
from windrow.spark.live import LiveQuery
from windrow.spark.live.sinks.sink import Sink

__all__ = ["ROWS", "show_live", "show_started", "watch"]

ROWS = 20
"""How many rows are displayed by default."""


def watch(
    relation: Relation,
    *,
    envelope: str | None = None,
    limit: int = ROWS,
    checkpoint: str | Path | None = None,
    trigger: Mapping[str, Any] | None = None,
) -> LiveQuery:
    """Start a query over live or named streams, and display its output in the output of the cell.

    A relation is displayed as the table after the last micro-batch, its rows ordered by the columns; a
    stream, ``EMIT STREAM`` and ``CHANGELOG OF`` by the last emitted rows.

    Parameters
    ----------
    relation
        A relation over live or named streams.
    envelope
        Display the changes of a relation, in this form, instead of its table.
    limit
        How many rows are displayed.
    checkpoint, trigger
        As for :meth:`windrow.Relation.start`.

    Raises
    ------
    WindrowError
        ``NO_NOTEBOOK`` outside of a notebook, and the errors of :meth:`windrow.Relation.start`.
    """
    before_start()
    plan = relation.live
    is_table = plan is not None and plan.is_relation and not plan.asks_changes and envelope is None
    sink = _Table(limit) if is_table else _Latest(limit)
    query = relation.start(
        sink,  # type: ignore[arg-type] # an internal sink
        mode="table" if is_table else "changelog",
        envelope=envelope,
        checkpoint=checkpoint,
        trigger=trigger,
    )
    open_panel(query, sink.html)
    return query


def show_live(relation: LiveRelation) -> None:
    """Start a live relation, and display its output."""
    try:
        watch(relation)
    except WindrowError as error:
        display(error)  # type: ignore[no-untyped-call] # IPython's


def show_started(relation: StartedRelation) -> None:
    """Display the query that INSERT INTO has started."""
    if relation.query is not None:
        show_query(relation.query)
    else:
        display(HTML(relation._repr_html_()))  # type: ignore[no-untyped-call] # IPython's


class _Table(Sink):
    """Displays the first rows of a table, ordered by its columns."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._html = ""

    def write(self, rows: DataFrame, number: int) -> int | None:  # noqa: ARG002 - of other sinks
        """Display the table."""
        named = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
        keys = [field.name for field in named.schema if is_orderable(field.dataType)]
        found = as_text(named.orderBy(*keys).limit(self._limit), iso=False).collect()
        count = rows.count()
        caption = _counted(count) if count <= self._limit else f"first {_counted(len(found))} of {count:,}"
        self._html = html_table(rows.schema, found, caption)
        return count

    def html(self) -> str:
        """The table."""
        return self._html


class _Latest(Sink):
    """Displays the last emitted rows, the latest at the end."""

    def __init__(self, limit: int) -> None:
        self._rows: deque[Sequence[str | None]] = deque(maxlen=limit)
        self._schema: T.StructType | None = None
        self._count = 0
        self._last = -1

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Display the rows of a micro-batch."""
        found = as_text(by_time(rows), iso=False).collect()
        if number > self._last:  # not repeated
            self._count += len(found)
            self._rows.extend(found)
            self._schema, self._last = rows.schema, number
        return len(found)

    def html(self) -> str:
        """The rows."""
        if self._schema is None:
            return ""
        rows = list(self._rows)
        counted = _counted(self._count)
        return html_table(self._schema, rows, counted if len(rows) == self._count else f"last of {counted}")


def _counted(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"

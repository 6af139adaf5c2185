"""Live queries behind the prompt: started, told of, stopped; their changes are shown as they come."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from windrow.cli.tables import ROWS, print_table
from windrow.cli.terminal import is_plain, stdout_console
from windrow.errors import UsageError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql import types as T

    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live import LiveQuery

__all__ = ["progress_of", "state_of", "stop", "watch"]


def watch(relation: Relation, *, as_table: bool = False, limit: int | None = None) -> str:
    """Start a query, whose changes are shown from now on as rows with `_op`; its name.

    Parameters
    ----------
    relation
        The query.
    as_table
        Show a relation as the whole table whenever it has changed.
    limit
        How many rows of a table are shown; None for as many as of any.

    Raises
    ------
    WindrowError
        ``NOT_LIVE`` for one over what is recorded only, and what starting it raises.
    """
    plan = relation.live
    if as_table and plan is not None and plan.is_relation and not plan.asks_changes:
        return relation.start(partial(_show_table, limit=limit), mode="table").name
    return relation.start(_show, envelope="op").name


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


def progress_of(session: Session) -> list[tuple[str, ...]]:
    """Of each query that runs or has failed: its name, what it does, and what its last step told."""
    return [(name, *_told(query)) for name, query in session.queries.items()]


def state_of(session: Session, name: str) -> tuple[list[str], list[Any]]:
    """What a query keeps: the names of the columns and the rows, as text.

    Raises
    ------
    UsageError
        ``UNKNOWN_QUERY``.
    """
    from windrow.cli.rows import as_text

    frame = session.queries[_known(session, name)].state()
    return frame.columns, as_text(frame, iso=False).collect()


def _known(session: Session, name: str) -> str:
    names = list(session.queries)
    if name not in names:
        hint = did_you_mean(name, names) or f"running: {', '.join(names) or 'none'}"
        raise UsageError(f"no query {name} is running", condition="UNKNOWN_QUERY", hint=hint)
    return name


def _told(query: LiveQuery) -> tuple[str, ...]:
    progress = query.progress
    failure = query.failure
    state = "runs" if query.is_active else f"has failed: {failure}" if failure else "has ended"
    numbers = [progress.get(key, 0) for key in ("rows_in", "rows_held", "rows_late", "rows_in_windows")]
    return (state, str(progress.get("bound", "")), *(f"{number:,}" for number in numbers))


def _show(rows: DataFrame, number: int) -> None:
    """The changes of a micro-batch, above the prompt."""
    from windrow.cli.rows import as_text

    found = as_text(rows, iso=False).collect()
    if found:
        _print(rows.schema, found, f"-- micro-batch {number}", is_cut=False)


def _show_table(rows: DataFrame, number: int, limit: int | None) -> None:
    """The table after a micro-batch, above the prompt, its rows in the order of the columns."""
    from windrow.cli.rows import as_text
    from windrow.spark.arrow import is_orderable

    most = ROWS if limit is None else limit
    named = rows.toDF(*(f"c{place}" for place in range(len(rows.columns))))
    keys = [field.name for field in named.schema if is_orderable(field.dataType)]
    found = as_text(named.orderBy(*keys).limit(most + 1), iso=False).collect()
    _print(rows.schema, found[:most], f"-- after micro-batch {number}", is_cut=len(found) > most)


def _print(schema: T.StructType, rows: Sequence[Sequence[str | None]], title: str, *, is_cut: bool) -> None:
    from pyspark.sql import types as T

    numeric = [isinstance(field.dataType, T.NumericType) for field in schema.fields]
    console = stdout_console()
    console.print(title)
    more = " (.limit N shows N)" if is_cut else None
    print_table(console, schema.names, rows, numeric, more=more, plain=is_plain())
    sys.stdout.flush()

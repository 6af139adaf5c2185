"""WINDOW BY without SQL: the same operator over a DataFrame.

The arguments are put together to the clause that they stand for, so that everything said of WINDOW BY
holds here too. Errors show that clause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import Column, DataFrame

from windrow.algebra import nodes
from windrow.algebra.bind import bind
from windrow.algebra.names import ROW, order_key, partition_key
from windrow.algebra.nodes import Window
from windrow.errors import UsageError, did_you_mean
from windrow.spark.batch import bind_window, build_window, explained, refuse_streaming
from windrow.spark.gateway import Gateway
from windrow.spark.given_columns import refuse_changing_column, sort_order
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.tokens import tokenize
from windrow.tracebacks import brief

__all__ = ["UNBOUNDED", "Boundary", "boundary", "window_by"]

_INPUT = "__input"


@dataclass(frozen=True)
class Boundary:
    """LABEL, START or END: the variables that it declares and its predicate (None: true)."""

    row: str | None = None
    at: str | None = None
    prev: str | None = None
    next: str | None = None
    when: str | Column | None = None
    unbounded: bool = False


UNBOUNDED = Boundary(unbounded=True)
"""The first (START) or last (END) row of the partition."""


def boundary(
    row: str | None = None,
    *,
    at: str | None = None,
    prev: str | None = None,
    next: str | None = None,  # noqa: A002 - the clause's word
    when: str | Column | None = None,
) -> Boundary:
    """A boundary for :func:`window_by`.

    Parameters
    ----------
    row, at, prev, next
        The names of the variables: AS, AT, PREV AS and NEXT AS.
    when
        The predicate, as SQL over the variables in scope or as a Column that reads them
        (``F.col("s.val") < 25``). Without it every row qualifies.
    """
    return Boundary(row, at, prev, next, when)


@brief
def window_by(
    df: DataFrame,
    *,
    type: Literal["sliding", "tumbling"] = "sliding",  # noqa: A002 - the clause's word
    partition_by: str | Column | Sequence[str | Column] = (),
    order_by: str | Column | Sequence[str | Column],
    label: str | Boundary | None = None,
    start: str | Boundary = "",
    end: str | Boundary | None = None,
    only_start: bool = False,
    only_end: bool = False,
    select: str | Sequence[str] | Sequence[Column] = "*",
    name: str = "w",
) -> DataFrame:
    """Windows over a DataFrame whose start and end are predicates.

    Parameters
    ----------
    df
        The rows; classic or Spark Connect.
    type
        ``"sliding"`` or ``"tumbling"``.
    partition_by
        Keys of the sequences: SQL expressions or Columns; none for one sequence.
    order_by
        What orders each sequence: SQL (``"date DESC NULLS LAST"``) or Columns, which are ascending
        but for ``F.col("date").desc()`` and its like.
    label, start, end
        A :func:`boundary`, or the clause's own words: ``"AS s AT sp WHEN s.val < 25"``. `start` and `end`
        may be :data:`UNBOUNDED`; `end` may be left out for tumbling windows.
    only_start, only_end
        Leave out windows whose start (end) was not found.
    select
        The result: SQL expressions over the variables and the window, or Columns over the variables.
        Aggregates over the window are SQL: ``"AVG(w.val) AS a"``.
    name
        The window's own name.

    Returns
    -------
    DataFrame
        One row per window.

    Raises
    ------
    WindrowError
        As WINDOW BY in SQL does; ``query`` positions are those of the clause made from the arguments.

    Examples
    --------
    ::

        window_by(
            weather,
            partition_by="station",
            order_by="date",
            start=boundary("s", when=F.col("s.val") < 25),
            end=boundary(next="n", when="n.val >= 25"),
            select=["s.station", "s.date", "AVG(w.val) AS average"],
        )
    """
    if not hasattr(df, "sparkSession"):
        raise UsageError(
            f"window_by takes a DataFrame, not {df!r:.60}",
            condition="NOT_A_DATAFRAME",
            hint="for a table by name use session.table(name).df",
        )
    if type not in ("sliding", "tumbling"):
        raise UsageError(
            f"window type {type!r} is unknown",
            condition="UNKNOWN_WINDOW_TYPE",
            hint=did_you_mean(str(type), ["sliding", "tumbling"]) or "use 'sliding' or 'tumbling'",
        )
    if only_end and end is None:
        raise UsageError(
            "only_end is given without end", condition="MISSING_END", hint="give end, or leave only_end out"
        )
    partition, order = _several(partition_by), _several(order_by)
    keys: dict[str, Column] = {}
    columns = {side: _column(given) for side, given in (("label", label), ("start", start), ("end", end))}
    parts = [f"TYPE {type.upper()}"]
    if partition:
        parts.append("PARTITION BY " + ", ".join(_partition_key(item, keys) for item in partition))
    if order:
        parts.append("ORDER BY " + ", ".join(_order_key(item, keys) for item in order))
    if label is not None:
        parts.append(f"LABEL {_words(label)}")
    parts.append(f"{'ONLY ' if only_start else ''}START {_words(start)}")
    if end is not None:
        parts.append(f"{'ONLY ' if only_end else ''}END {_words(end)}")
    chosen = _several(select)
    as_columns = [item for item in chosen if isinstance(item, Column)]
    texts = [item for item in chosen if not isinstance(item, Column)]
    if as_columns and texts:
        raise UsageError(
            "select mixes SQL and Columns",
            condition="MIXED_SELECT",
            hint="write all items as SQL, or all as Columns",
        )
    items = ", ".join(texts) if texts else "*"
    sql = f"SELECT {items} FROM df WINDOW BY {name} AS (" + " ".join(parts) + ")"
    frame = _run(df, sql, keys, columns)
    if not as_columns:
        return frame
    with Gateway(df.sparkSession).translated():
        return frame.select(*as_columns)


def _run(df: DataFrame, sql: str, keys: dict[str, Column], columns: dict[str, Column | None]) -> DataFrame:
    gateway = Gateway(df.sparkSession)
    with gateway.reading(sql) as read:
        return _frame(gateway, df, read, keys, columns)


def _frame(
    gateway: Gateway, df: DataFrame, sql: str, keys: dict[str, Column], columns: dict[str, Column | None]
) -> DataFrame:
    tokens = tokenize(sql)
    statement = bind(tokens, (0, len(tokens)))
    assert statement is not None
    window = statement.windows[0]
    assert isinstance(window, Window)
    window = replace(
        window,
        rows=_rows(window, keys),
        label=_with_column(window.label, columns["label"]),
        start=_with_column(window.start, columns["start"]) or window.start,
        end=_with_column(window.end, columns["end"]),
    )
    rows = gateway.sql(window.rows, {_INPUT: df.withColumns(keys) if keys else df})
    refuse_streaming(window, rows)
    bound = bind_window(gateway, window, rows)
    windows = build_window(gateway, bound)
    with explained([bound]):
        return gateway.sql(statement.text, {window.key: windows})


def _rows(window: nodes.Window, keys: dict[str, Column]) -> SqlText:
    """The window's input from the DataFrame; the keys given as Columns are not part of its rows."""
    hidden = f"* EXCEPT ({', '.join(map(quoted, keys))})" if keys else "*"
    items = [SqlText.of(f"struct({hidden}) AS {ROW}")]
    items += [
        SqlText.of("(", key.text, f") AS {partition_key(number)}")
        for number, key in enumerate(window.partition_by)
    ]
    items += [
        SqlText.of("(", key.text, f") AS {order_key(number)}")
        for number, (key, _) in enumerate(window.order_by)
    ]
    return SqlText.of("SELECT ", SqlText.join(", ", items), " FROM ", Relation(_INPUT))


def _with_column(given: nodes.Boundary | None, column: Column | None) -> nodes.Boundary | None:
    """The boundary with a Column as its predicate, if one was given."""
    if given is None or column is None:
        return given
    return replace(given, when=nodes.Fragment(SqlText(), span=given.span, column=column))


def _several(
    given: str | Column | Sequence[str] | Sequence[Column] | Sequence[str | Column],
) -> list[str | Column]:
    return [given] if isinstance(given, str | Column) else list(given)


def _key(item: str | Column, keys: dict[str, Column]) -> str:
    """A key as SQL; a Column becomes a column of its own."""
    if isinstance(item, str):
        return item
    name = f"__key{len(keys)}"
    keys[name] = item
    return quoted(name)


def _partition_key(item: str | Column, keys: dict[str, Column]) -> str:
    if not isinstance(item, str) and sort_order(item)[1]:
        raise UsageError(
            "partition_by has a Column with a direction",
            condition="INVALID_ARGUMENT",
            hint="leave .asc() and .desc() out; order_by takes them",
        )
    return _key(item, keys)


def _order_key(item: str | Column, keys: dict[str, Column]) -> str:
    if isinstance(item, str):
        return item
    column, direction = sort_order(item)
    return f"{_key(column, keys)} {direction}".rstrip()


def _column(given: str | Boundary | None) -> Column | None:
    if not isinstance(given, Boundary) or not isinstance(given.when, Column):
        return None
    refuse_changing_column(given.when)
    return given.when


def _words(given: str | Boundary) -> str:
    """The boundary in the clause's words."""
    if isinstance(given, str):
        return given
    if given.unbounded:
        return "UNBOUNDED"
    named = (("AS", given.row), ("AT", given.at), ("PREV AS", given.prev), ("NEXT AS", given.next))
    words = [f"{word} {quoted(name)}" for word, name in named if name is not None]
    if isinstance(given.when, str):
        words.append(f"WHEN {given.when}")
    return " ".join(words)

"""WINDOW BY without SQL: the same operator over a DataFrame.

A Column that cannot be written as SQL, such as one with a Python function, is put into the bound clause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import Column

from windrow.algebra import window_node
from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.window_node import Window
from windrow.errors import UsageError, refuse_unknown
from windrow.relation import Relation
from windrow.spark.analysis.argument_columns import refuse_changing_column, refuse_over
from windrow.spark.analysis.column_text import as_name, column_text
from windrow.spark.jvm.column_trees import column_tree, columns_of_frames, sort_order
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.tracebacks import brief
from windrow.without_sql.clause_arguments import (
    ClauseArguments,
    Expression,
    Items,
    Rows,
    as_sql,
    check_rows,
    expression,
    invalid,
    name_in_from,
    named_item,
    numbered,
    order_item,
    refuse_columns_of_others,
    refuse_direction,
    refuse_no_items,
    refuse_other_than,
    run,
)

__all__ = ["UNBOUNDED", "Boundary", "boundary", "window_by"]


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
    df: Rows,
    *,
    type: Literal["sliding", "tumbling"] = "sliding",  # noqa: A002 - the clause's word
    partition_by: Items = (),
    order_by: Items,
    label: str | Boundary | None = None,
    start: str | Boundary = "",
    end: str | Boundary | None = None,
    only_start: bool = False,
    only_end: bool = False,
    select: Items = "*",
    name: str = "w",
) -> Rows:
    """Windows over rows whose start and end are predicates.

    Parameters
    ----------
    df
        The rows: a DataFrame, classic or of Spark Connect; or a relation, such as ``session.table("t")`` or a
        stream of ``session.stream``. For a live stream, ``start`` of the result starts the query.
    type
        ``"sliding"`` or ``"tumbling"``.
    partition_by
        Keys of the sequences: SQL expressions or Columns; none for one sequence.
    order_by
        The order of each sequence: SQL (``"date DESC NULLS LAST"``) or Columns, which are ascending unless
        they have a direction, as ``F.col("date").desc()`` has.
    label, start, end
        A :func:`boundary`, or the words of the clause: ``"AS s AT sp WHEN s.val < 25"``. `start` and `end`
        may be :data:`UNBOUNDED`; tumbling windows need no `end`.
    only_start, only_end
        Omit windows whose start (end) was not found.
    select
        The result, over the variables and the window: SQL expressions, ``"AVG(w.val) AS a"``, or Columns,
        ``F.avg("w.val").alias("a")``.
    name
        The window's name.

    Returns
    -------
    DataFrame or Relation
        One row per window, in the class of `df`.

    Raises
    ------
    WindrowError
        As WINDOW BY in SQL does, with a position in the clause that is composed of the arguments, and the
        name of the argument. ``NOT_A_DATAFRAME``, ``INVALID_ARGUMENT``, ``UNKNOWN_WINDOW_TYPE``.

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
    check_rows(df, "window_by")
    sides = (("label", label, False), ("start", start, only_start), ("end", end, only_end))
    whens = {side: boundary.when for side, boundary, _ in sides if isinstance(boundary, Boundary)}
    columns = {"partition_by": partition_by, "order_by": order_by, "select": select, **whens}
    refuse_columns_of_others(df, columns)
    refuse_no_items(select, "select", "leave it out for all columns")
    refuse_other_than(str, name, "name", "write a name for the window, such as name='w'")
    refuse_no_items(name, "name", "write a name for the window, such as name='w'")
    for argument, flag in (("only_start", only_start), ("only_end", only_end)):
        refuse_other_than(bool, flag, argument, f"write {argument}=True, or leave it out")
    known = ("sliding", "tumbling")
    refuse_unknown(f"window type {type!r}", str(type).lower(), known, "UNKNOWN_WINDOW_TYPE")
    if only_end and end is None:
        raise UsageError(
            "only_end needs an end", condition="MISSING_END", hint="pass end, or leave only_end out"
        )
    clause = ClauseArguments()
    opaque = _Opaque(clause, [] if isinstance(df, Relation) and df.named is not None else df.columns)
    clause.listed(
        "SELECT",
        [(named_item(item, argument, _LATER), argument) for item, argument in numbered(select, "select")],
    )
    clause.add(f" FROM {name_in_from(df)} WINDOW BY ")
    clause.add(as_name(name), "name")
    clause.add(f" AS (TYPE {type.upper()}")
    for words, keys in (("PARTITION BY", partition_by), ("ORDER BY", order_by)):
        argument = words.lower().replace(" ", "_")
        if argument == "partition_by":
            refuse_direction(keys)
        clause.listed(words, [(opaque.key(item, name), name) for item, name in numbered(keys, argument)])
    for side, boundary, only in sides:
        if boundary is not None:
            clause.add(f" {'ONLY ' if only else ''}{side.upper()} ")
            words = opaque.words(boundary, side)
            clause.add(words, side if words else None)
    clause.add(")")
    return run(df, clause, opaque.keys, opaque.put)


_BEGINNING = re.compile(r"\s*(\w+)(?=(\.)?)")
_WORDS = ("AS", "AT", "PREV", "NEXT", "WHEN", "UNBOUNDED")


def _refuse_condition(text: str, side: str) -> None:
    """Refuse a boundary that is a condition alone.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    """
    first = _BEGINNING.match(text)
    if first is not None and first[1].upper() not in _WORDS:
        row, when = (first[1], text) if first[2] else (side[0], f"{side[0]}.val < 25")
        hint = f"write {side}=boundary({row!r}, when={when!r}), or {side}={f'AS {row} WHEN {when}'!r}"
        raise invalid(side, text, "a condition, and no boundary: it names no row", hint)


_LATER = "leave it out here, and select it from the result"


class _Opaque:
    """Columns that cannot be written as SQL.

    Keys become columns of the rows, and predicates go into the bound clause. That is possible only for rows
    of a DataFrame: those of `columns`, if there are any.
    """

    def __init__(self, clause: ClauseArguments, columns: Sequence[str]) -> None:
        self.clause = clause
        self.columns = [name.lower() for name in columns]
        self.keys: dict[str, tuple[Column, str]] = {}
        self.conditions: dict[str, Column] = {}

    def key(self, item: Expression, argument: str) -> str:
        """A key as SQL."""
        if isinstance(item, str):
            return item
        column, direction = sort_order(item)
        if not self.columns or (column_text(column) is not None and not self.is_ambiguous(column)):
            return order_item(item, argument)
        name = f"__key{len(self.keys)}"
        self.keys[name] = column, argument
        return f"{quoted(name)} {direction}".rstrip()

    def is_ambiguous(self, column: Column) -> bool:
        """Whether it was taken from one of several DataFrames that have columns of its name."""
        named = columns_of_frames(column_tree(column))
        return any(self.columns.count(one.parts[0].lower()) > 1 for one in named)

    def words(self, boundary: object, side: str) -> str:
        """A boundary in the clause's words."""
        if isinstance(boundary, str):
            _refuse_condition(boundary, side)
            return boundary
        if not isinstance(boundary, Boundary):
            hint = f"write {side}=boundary('s', when='s.val < 25'), or the words of the clause"
            raise invalid(side, boundary, "neither a boundary nor SQL", hint)
        if boundary.unbounded:
            return "UNBOUNDED"
        variables = (boundary.row, boundary.at, boundary.prev, boundary.next)
        named = zip(("AS", "AT", "PREV AS", "NEXT AS"), variables, strict=True)
        words = [f"{word} {_variable(name, side)}" for word, name in named if name is not None]
        when = boundary.when
        if when is not None and not isinstance(when, str):
            expression(when, side)
            refuse_changing_column(when)
            refuse_over(when)
            if column_text(when) is None and self.columns:
                self.conditions[side] = when
                when = None
        if when is not None:
            words.append(f"WHEN {as_sql(when, side)}")
        return " ".join(words)

    def put(self, statement: BoundStatement) -> BoundStatement:
        """The statement with these Columns."""
        if not self.keys and not self.conditions:
            return statement
        # those of subqueries end before the clause that reads them
        window = max(statement.windows, key=lambda one: one.span.stop)
        assert isinstance(window, Window)
        changed = replace(
            window,
            rows=_rows(window, self.keys) if self.keys else window.rows,
            label=self.condition(window.label),
            start=self.condition(window.start) or window.start,
            end=self.condition(window.end),
        )
        windows = tuple(changed if one is window else one for one in statement.windows)
        return replace(statement, windows=windows)

    def condition(self, boundary: window_node.WindowBoundary | None) -> window_node.WindowBoundary | None:
        """A boundary with its Column, if it has one."""
        if boundary is None or boundary.side.value not in self.conditions:
            return boundary
        column = self.conditions[boundary.side.value]
        span = self.clause.span_of(boundary.side.value) or boundary.span
        return replace(boundary, when=window_node.WindowFragment(SqlText(), span=span, column=column))


def _variable(name: object, side: str) -> str:
    if isinstance(name, str):
        return as_name(name)
    hint = "write names: boundary('s', at='sp', prev='p', next='n', when='s.val < 25')"
    raise invalid(side, name, "no name of a variable", hint)


def _rows(window: Window, keys: Iterable[str]) -> SqlText:
    """The window's input without the keys that are not among its columns."""
    hidden = SqlText.of(f"struct(* EXCEPT ({', '.join(map(quoted, keys))})")
    parts = [
        part
        for item in window.rows.parts
        for part in (hidden.parts if isinstance(item, Piece) and item.text == "struct(*" else (item,))
    ]
    return SqlText(tuple(parts))

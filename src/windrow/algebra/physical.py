"""The draft of a window's physical plan, which the rules complete.

Types are Spark's, as their simple strings (``int``, ``decimal(10,2)``, ``struct<…>``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from windrow.algebra.names import ROW, hoisted
from windrow.algebra.window_node import AggregateCall, Window, WindowBoundary, WindowFragment
from windrow.kernels.window_plan import PairExpression, Search
from windrow.syntax.nodes import Side
from windrow.syntax.sqltext import SqlText, quoted

__all__ = [
    "Analyzer",
    "DraftColumns",
    "FoundBoundary",
    "Hoisted",
    "PlanDraft",
    "Predicate",
    "field_of",
    "find_field",
    "is_field",
]


class Analyzer(Protocol):
    """Spark's analysis of one window's rows, for the rules."""

    @property
    def fields(self) -> Mapping[str, str]:
        """The row's field names with their types, in order."""

    @property
    def ansi(self) -> bool:
        """Whether the session raises errors where other modes return NULL."""

    @property
    def has_intervals(self) -> bool:
        """Whether differences of dates are intervals of the standard, not Spark's legacy ones."""

    def types(self, texts: Sequence[SqlText], side: Side) -> list[str]:
        """The types of expressions over the variables that a predicate of `side` sees.

        Raises
        ------
        WindrowError
            Located in the user's text, where Spark cannot analyse one of them.
        """

    def column_scope(self, column: Any, boundary: WindowBoundary) -> str | None:
        """The one variable of the boundary that a PySpark Column reads, None if it reads more."""

    def aggregate_type(self, call: AggregateCall) -> str:
        """The type of an aggregate over the window's rows; raises as :meth:`types`."""

    def kernel_supports(self, function: str, argument: WindowFragment) -> bool:
        """Whether the kernel computes this aggregate for arguments of this type."""


@dataclass(frozen=True)
class Hoisted:
    """A column that Spark computes before the kernel: `text`, in which row variable `variable` is the row."""

    name: str
    text: SqlText
    variable: str
    column: Any = None


@dataclass(frozen=True)
class Predicate:
    """A boundary's predicate, typed for the kernel, or the reason why the kernel cannot evaluate it."""

    boundary: WindowBoundary
    typed: PairExpression | None
    why_not: str | None = None


@dataclass(frozen=True)
class FoundBoundary:
    """How a boundary is found; `join` is the predicate that Spark must evaluate on pairs of rows."""

    side: Side
    search: Search
    reason: str
    join: WindowFragment | None = None


@dataclass(frozen=True)
class PlanDraft:
    """A window on its way to a plan; each rule fills in its part."""

    window: Window
    hoisted: tuple[Hoisted, ...] = ()
    constants: tuple[tuple[str, SqlText], ...] = ()
    predicates: tuple[Predicate, ...] = ()
    labels: PairExpression | None = None
    found: tuple[FoundBoundary, ...] = ()
    kernel_aggregates: tuple[tuple[AggregateCall, str | None], ...] = ()
    spark_aggregates: tuple[AggregateCall, ...] = ()
    fields: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    spark_fields: tuple[tuple[str, str], ...] = ()
    shared: tuple[tuple[str, str], ...] = ()

    def predicate(self, side: Side) -> Predicate | None:
        """The predicate of a side, if it has one."""
        return next((item for item in self.predicates if item.boundary.side is side), None)

    def search(self, side: Side) -> FoundBoundary | None:
        """How a side is found."""
        return next((item for item in self.found if item.side is side), None)


_FIELD = f"{ROW}."
_ONE_FIELD = re.compile(rf"{ROW}\.`(?:[^`]|``)+`")


def is_field(item: Hoisted) -> bool:
    """Whether a column is a field of the row as it is."""
    return item.variable == ROW and _ONE_FIELD.fullmatch(item.text.render()) is not None


def field_of(item: Hoisted) -> str:
    """The field that a column over the row itself contains."""
    return item.text.render()[len(_FIELD) + 1 : -1].replace("``", "`")


def find_field(fields: Mapping[str, str], written: str) -> str | None:
    """The field that a name refers to: exactly, or else regardless of case."""
    if written in fields:
        return written
    return next((field for field in fields if field.lower() == written.lower()), None)


class DraftColumns:
    """The columns and constants of a draft that Spark computes; the same text twice is one column."""

    def __init__(self, draft: PlanDraft | None = None) -> None:
        self.hoisted = {} if draft is None else {item.name: item for item in draft.hoisted}
        self.constants = {} if draft is None else dict(draft.constants)

    def add(self, text: SqlText, variable: str, column: Any = None) -> str:
        """The name of the column for this text over this variable."""
        rendered = text.render()
        for item in self.hoisted.values():
            if (
                item.column is None
                and column is None
                and item.variable == variable
                and item.text.render() == rendered
            ):
                return item.name
        name = hoisted(len(self.hoisted))
        self.hoisted[name] = Hoisted(name, text, variable, column)
        return name

    def field(self, field: str) -> str:
        """The name of the column that has this field of the row."""
        return self.add(SqlText.of(_FIELD, quoted(field)), ROW)

    def constant(self, text: SqlText) -> str:
        """The name of the constant with this text."""
        rendered = text.render()
        for name, known in self.constants.items():
            if known.render() == rendered:
                return name
        name = f"c{len(self.constants)}"
        self.constants[name] = text
        return name

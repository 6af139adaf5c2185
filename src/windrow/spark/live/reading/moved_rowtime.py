"""Rows whose rowtime a query replaces by an expression, and how their bounds are mapped.

``INSERT INTO t SELECT STREAM ts + INTERVAL 100 SECONDS AS ts, … FROM s`` sets another rowtime. If the
expression never decreases as the rowtime increases, a bound of the query is mapped to one of the target by
the expression.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from windrow.algebra.time_scale import TimeScale
from windrow.plan.columns import Expression, column_named
from windrow.plan.nodes import Node, Project, SetOperation
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.live.reading.beside import Beside
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.expressions.monotone_parts import going
from windrow.syntax.expressions.rising import STEADY, goes_by_zone
from windrow.syntax.sqltext import RelationText, SqlText
from windrow.syntax.tokens import tokenize

__all__ = ["MovedRowtime", "UnknownRowtimeError", "moved_rowtime"]

_NO_ROWTIME = "it is not the rowtime of a row"
_UNKNOWN = "it may not rise with the rowtime"
_ROWTIME, _BOUND, _ROWS = "__rowtime", "__bound", "__rows"


class UnknownRowtimeError(Exception):
    """A column is not known to increase with the rowtime; with the reason."""


@dataclass(frozen=True)
class MovedRowtime:
    """A monotone expression of the rowtime: SQL before and after it, for its session.

    It increases with it, or `falls`.
    """

    gateway: Gateway
    before: SqlText = field(default_factory=SqlText)
    after: SqlText = field(default_factory=SqlText)
    falls: bool = False

    def of(self, inner: MovedRowtime) -> MovedRowtime:
        """The composition with another expression."""
        before = SqlText.of(self.before, "(", inner.before)
        return MovedRowtime(
            self.gateway, before, SqlText.of(inner.after, ")", self.after), self.falls != inner.falls
        )

    def bound(self, until: int, scale: TimeScale, target: TimeScale, kind: str) -> int:
        """A bound mapped by the expression, in ticks of the target.

        Parameters
        ----------
        until, scale
            The bound, in ticks of the query's time scale.
        target, kind
            The time scale of the target's rowtime, and its type.
        """
        of = self.gateway.spark.range(1).selectExpr(f"{scale.to_column(f'{until}L')} AS {_ROWTIME}")
        moved = SqlText.of("CAST((", self.before, f" {_ROWTIME} ", self.after, f") AS {kind})")
        text = SqlText.of("SELECT ", moved, f" AS {_BOUND} FROM ", RelationText(_ROWS))
        frame = Gateway(self.gateway.spark, self.gateway.parameters).sql(text, {_ROWS: of})
        found = frame.selectExpr(target.of_column(_BOUND, target.kind, target.unit)).collect()[0][0]
        return int(found)


def moved_rowtime(gateway: Gateway, read: Beside, place: int) -> MovedRowtime | None:
    """How a column follows the rowtime, in a query that processes each row alone; None if it is the rowtime.

    Parameters
    ----------
    gateway
        The session.
    read, place
        The query, and which of its columns.

    Raises
    ------
    UnknownRowtimeError
        With the reason.
    """
    assert read.plan is not None
    node, column = read.plan, read.plan.columns[place].id
    moved: MovedRowtime | None = None
    why = _NO_ROWTIME
    while not read.is_rowtime(node, column):
        above = _where_made(node, column)
        if above is None:
            raise UnknownRowtimeError(why)
        one = next(one for made, one in above.outputs if made.id == column)
        node = above.input
        if one.column is not None:
            column = one.column
            continue
        step, column, written = _computed(gateway, above, one)
        why = f"{written} is not the rowtime of a row"
        moved = step if moved is None else moved.of(step)
    if moved is not None and moved.falls:
        raise UnknownRowtimeError("it falls as the rowtime rises")
    return moved


def _where_made(node: Node, column: str) -> Project | None:
    """The projection that computes a column; None if it comes from a relation, or only a whole SELECT list
    returns it.
    """
    while not isinstance(node, Project):
        if isinstance(node, SetOperation):
            raise UnknownRowtimeError("it is not the rowtime in every part of the UNION ALL")
        below = [one for one in node.inputs if any(own.id == column for own in one.columns)]
        if not below:
            return None
        node = below[0]
    return None if node.is_whole else node


def _computed(gateway: Gateway, node: Project, one: Expression) -> tuple[MovedRowtime, str, str]:
    """How an expression follows a column that it reads, that column, and its text."""
    tokens = tokenize(one.text.render())
    inner, steps = (0, len(tokens)), []
    while not isinstance(parse_expression(tokens, *inner), Name):
        step = going(tokens, *inner)
        if step is None or step.wants == "text":
            raise UnknownRowtimeError(_UNKNOWN)
        steps.append(step)
        inner = step.part
    column = column_named(tokens, inner, node.scope)
    written = tokens.text(*inner)
    if column is None:
        raise UnknownRowtimeError(f"{written} is not the rowtime of a row")
    family = _family(next(own.type for own in node.input.columns if own.id == column))
    for step in reversed(steps):
        if step.wants != family or (family == "number" and not is_ansi(gateway)):
            raise UnknownRowtimeError(_UNKNOWN)
        family = step.gives
    zone = gateway.spark.conf.get("spark.sql.session.timeZone")
    if zone not in STEADY and goes_by_zone(tokens, 0, len(tokens)):
        raise UnknownRowtimeError(f"it follows the local time of {zone}, which is sometimes set back")
    span = tokens.span(*inner)
    before, after = one.text.slice(0, span.start), one.text.slice(span.stop, len(tokens.sql))
    return (
        MovedRowtime(gateway, before, after, sum(not step.rises for step in steps) % 2 == 1),
        column,
        written,
    )


def _family(kind: DataType) -> str:
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        return "time"
    return "number" if isinstance(kind, IntegralType) else "text"

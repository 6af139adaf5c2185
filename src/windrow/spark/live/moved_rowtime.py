"""Rows whose rowtime a query replaces by an expression, and where their bounds go with them.

``INSERT INTO t SELECT STREAM ts + INTERVAL 100 SECONDS AS ts, … FROM s`` gives rows another rowtime. Where
the expression never falls while the rowtime rises, a bound of the query becomes one of the target by the
expression too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import DataType, DateType, IntegralType, TimestampNTZType, TimestampType

from windrow.algebra.clock import Clock
from windrow.algebra.continuous import Reader
from windrow.errors import Span
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.live.feeds import alternatives
from windrow.spark.live.rowtimes import is_marked
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.monotone import going
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, UnknownShapeError, parse_query
from windrow.syntax.rising import STEADY, goes_by_zone
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Relation, SqlText
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["Moved", "UnknownRowtimeError", "moved_rowtime", "written_column"]

_NO_ROWTIME = "it is not the rowtime of a row"
_ROWTIME, _BOUND, _ROWS = "__rowtime", "__bound", "__rows"


class UnknownRowtimeError(Exception):
    """A column is not known to rise with the rowtime; with the reason."""


@dataclass(frozen=True)
class Moved:
    """An expression that rises with the rowtime: SQL before and after it, for the session that it is of."""

    gateway: Gateway
    before: SqlText
    after: SqlText

    def bound(self, until: int, clock: Clock, target: Clock, kind: str) -> int:
        """A bound put through the expression, in ticks of the target.

        Parameters
        ----------
        until, clock
            The bound, in ticks of the query's clock.
        target, kind
            The clock of the target's rowtime, and its type.
        """
        of = self.gateway.spark.range(1).selectExpr(f"{clock.to_column(f'{until}L')} AS {_ROWTIME}")
        moved = SqlText.of("CAST((", self.before, f" {_ROWTIME} ", self.after, f") AS {kind})")
        text = SqlText.of("SELECT ", moved, f" AS {_BOUND} FROM ", Relation(_ROWS))
        frame = Gateway(self.gateway.spark, self.gateway.parameters).sql(text, {_ROWS: of})
        found = frame.selectExpr(target.of_column(_BOUND, target.kind, target.unit)).collect()[0][0]
        return int(found)


def moved_rowtime(gateway: Gateway, text: SqlText, place: int) -> Moved | None:
    """How a column of a query that looks at each row by itself goes with the rowtime; None if it is that.

    Parameters
    ----------
    gateway
        Has the relations of the text as frames in which the rowtimes are marked.
    text, place
        The query, and which of its columns.

    Raises
    ------
    UnknownRowtimeError
        With the reason.
    """
    parts = alternatives(gateway, text) or []
    if parts and all(is_marked(gateway.sql(part).schema[place]) for part in parts):
        return None
    if len(parts) != 1:
        raise UnknownRowtimeError("it is not the rowtime in each part of the UNION ALL")
    tokens = tokenize(text.render())
    item = _item(tokens, place, len(gateway.sql(text).columns))
    inner, steps = item, []
    while not isinstance(parse_expression(tokens, *inner), Name):
        step = going(tokens, *inner)
        if step is None or step.wants == "text":
            raise UnknownRowtimeError("it is not known to rise with the rowtime")
        steps.append(step)
        inner = step.part
    first, last, start, stop = *_place(tokens, item), *_place(tokens, inner)
    alone = SqlText.of(text.slice(0, first), text.slice(start, stop), text.slice(last, len(tokens.sql)))
    column = gateway.sql(alone).schema[place]
    if not is_marked(column):
        raise UnknownRowtimeError(f"{tokens.text(*inner)} is not the rowtime of a row")
    family = _family(column.dataType)
    for step in reversed(steps):
        if step.wants != family or (family == "number" and not is_ansi(gateway)):
            raise UnknownRowtimeError("it is not known to rise with the rowtime")
        family = step.gives
    if sum(not step.rises for step in steps) % 2:
        raise UnknownRowtimeError("it falls where the rowtime rises")
    zone = gateway.spark.conf.get("spark.sql.session.timeZone")
    if zone not in STEADY and goes_by_zone(tokens, *item):
        raise UnknownRowtimeError(f"it goes by the clocks of {zone}, which are set back")
    return Moved(gateway, text.slice(first, start), text.slice(stop, last))


def written_column(text: SqlText, place: int, count: int) -> tuple[str, Span] | None:
    """Where one of the `count` columns of a query was written: its expression, or the star that it is of.

    None where no one place of the user's text gives it, as of UNION ALL.
    """
    tokens = tokenize(text.render())
    try:
        return text.written(*_place(tokens, _listed(tokens, place, count)))
    except UnknownRowtimeError:
        return None


def _item(tokens: TokenList, place: int, count: int) -> Range:
    """The expression of a column of SELECT."""
    item = _listed(tokens, place, count)
    if _is_star(tokens, item):
        raise UnknownRowtimeError(_NO_ROWTIME)
    return without_alias(tokens, item)


def _listed(tokens: TokenList, place: int, count: int) -> Range:
    """What is written in SELECT for a column, with its alias; the star that it is of."""
    body = Reader(tokens, frozenset(), frozenset()).after_with(0, len(tokens))
    try:
        shape = parse_query(tokens, body, len(tokens))
    except UnknownShapeError as found:
        raise UnknownRowtimeError(f"{found} is not read") from None
    items: Sequence[Range] = shape.items if isinstance(shape, Select) else ()
    stars = [at for at, item in enumerate(items) if _is_star(tokens, item)]
    if not items or len(stars) > 1:
        raise UnknownRowtimeError(_NO_ROWTIME)
    first = stars[0] if stars else len(items)
    after = place - count + len(items)
    return items[place if place < first else max(first, after)]


def _is_star(tokens: TokenList, item: Range) -> bool:
    return tokens.is_symbol(item[1] - 1, "*")


def _family(kind: DataType) -> str:
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        return "time"
    return "number" if isinstance(kind, IntegralType) else "text"


def _place(tokens: TokenList, stretch: Range) -> Range:
    span = tokens.span(*stretch)
    return span.start, span.stop

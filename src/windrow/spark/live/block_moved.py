"""Columns that are computed, of which promises about others tell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.types import (
    DataType,
    DateType,
    DecimalType,
    IntegralType,
    NumericType,
    StringType,
    TimestampNTZType,
    TimestampType,
)

from windrow.algebra.time_windows import OF_WINDOWS, TICKS
from windrow.kernels.punctuated.following import Follower
from windrow.punctuations.lines import line_if_any
from windrow.spark.arrow import arrow_type
from windrow.spark.gateway import is_ansi
from windrow.spark.live.block_nodes import BlockNodes, Joined
from windrow.spark.live.row_maps import Followed, Going, Moved
from windrow.spark.scope import ROWS, Scope
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.monotone import Family, going
from windrow.syntax.nodes import Range
from windrow.syntax.rising import STEADY, goes_by_zone, rising
from windrow.syntax.sqltext import SqlText

__all__ = ["BlockMoved"]


class BlockMoved(BlockNodes):
    """Finds the columns with which expressions rise or go."""

    def _moved(self, joined: Joined, named: Sequence[tuple[str, Range]]) -> list[Going]:
        """Of columns that are computed, those that rise with a column, and those that go with one."""
        found: list[Going] = []
        for name, expression in named:
            inner = self._rises_with(expression, joined)
            if inner is not None:
                found.append(Moved(name, inner, self._alone(expression, joined)))
            follower = self._follower(name, expression, joined)
            if follower is not None:
                follower = replace(follower, is_prefixed=inner == follower.column)
                found.append(Followed(follower, self._alone(expression, joined, follower.column)))
        return found

    def _alone(self, expression: Range, joined: Joined, *after: str) -> SqlText:
        """A query for an expression, and columns after it."""
        listed = "".join(f", {ROWS}.{column} AS c{at}" for at, column in enumerate(after, 1))
        text = SqlText.of("SELECT (", self._text(expression), f") AS c0{listed} FROM ")
        return SqlText.of(self._prefix(expression[0]), text, self._scoped(self._scope(joined)))

    def _follower(self, name: str, expression: Range, joined: Joined) -> Follower | None:
        """How an expression that is no column goes with one."""
        found = []
        part, source = expression, None
        while source is None:
            step = going(self.tokens, *part)
            if step is None:
                return None
            found.append(step)
            part = step.part
            source = self._source_of(part, joined)
        kind = joined.rows.kinds[source].dataType
        if line_if_any(arrow_type(kind)) is None:
            return None
        family, rises, differs = _family(kind), True, isinstance(kind, IntegralType | StringType)
        for step in reversed(found):
            if step.wants == "time" and self._is_set_back(*expression):
                return None
            if step.wants == "number" and not is_ansi(self.gateway):
                return None  # what is too great would be NULL, or less
            if family != step.wants and not (step.wants == "text" and family == "number" and differs):
                return None
            family, rises, differs = step.gives, rises == step.rises, differs and step.differs
        return Follower(name, source, None if family == "text" else rises, differs)

    def _cast(self, name: str, column: str, to: DataType, joined: Joined) -> list[Going]:
        """How a cast to the type of what it is compared with goes with a column."""
        kind = joined.rows.kinds[column].dataType
        is_steady = self._zone() in STEADY and isinstance(kind, DateType)
        is_number = _family(kind) == "number" and isinstance(to, NumericType) and is_ansi(self.gateway)
        if not (is_number or is_steady) or line_if_any(arrow_type(kind)) is None:
            return []
        differs = isinstance(kind, IntegralType) and isinstance(to, IntegralType | DecimalType)
        listed = f"SELECT CAST({ROWS}.{column} AS {to.simpleString()}) AS c0, {ROWS}.{column} AS c1 FROM "
        text = SqlText.of(listed, self._scoped(self._scope(joined)))
        return [Followed(Follower(name, column, rises=True, differs=differs), text)]

    def _rises_with(self, expression: Range, joined: Joined) -> str | None:
        """The column with which an expression that is none itself rises."""
        start, stop = expression
        while self.tokens.is_symbol(start, "(") and self.tokens.partner[start] == stop - 1:
            start, stop = start + 1, stop - 1
        inner = rising(self.tokens, start, stop) if start < stop else None
        is_of_time = inner is not None
        inner = None if is_of_time and self._is_set_back(start, stop) else inner
        is_ticks = self.tokens.word(expression[1]) == "AS" and self.tokens[expression[1] + 1].name == TICKS
        for at in range(start, stop):  # what is computed for windows of time has one column
            is_told = self.tokens[at].is_name and self.tokens[at].name in OF_WINDOWS
            if is_told or (is_ticks and self._source_of((at, at + 1), joined) is not None):
                inner, is_of_time = (at, at + 1), False
        if inner is None:
            return None
        source = self._source_of(inner, joined)
        if source is None:
            return self._rises_with(inner, joined)
        return source if not is_of_time or _family(joined.rows.kinds[source].dataType) == "time" else None

    def _is_set_back(self, start: int, stop: int) -> bool:
        """Whether a computed time may fall where its time rises, as clocks are set back."""
        return self._zone() not in STEADY and goes_by_zone(self.tokens, start, stop)

    def _zone(self) -> str | None:
        return self.gateway.spark.conf.get("spark.sql.session.timeZone")

    def _source_of(self, expression: Range, joined: Joined) -> str | None:
        if expression in self._computed:
            return self._computed[expression]
        parsed = parse_expression(self.tokens, *expression)
        return self._resolved(parsed, joined) if isinstance(parsed, Name) else None

    def _resolved(self, name: Name, side: Joined) -> str | None:
        """The column of ours that a path names."""
        *before, last = (part.lower() for part in name.parts)
        found = [
            column
            for part in side.parts
            for shown, column in zip(part.names, part.columns, strict=True)
            if shown.lower() == last and (not before or before == [part.alias.lower()])
        ]
        return found[0] if len(found) == 1 else None

    def _scope(self, side: Joined) -> Scope:
        return Scope(self._frame(side.rows), side.parts, varies=False)


def _family(kind: DataType) -> Family | None:
    """What a column is to the expressions that go with it."""
    if isinstance(kind, IntegralType | DecimalType):
        return "number"
    if isinstance(kind, DateType | TimestampType | TimestampNTZType):
        return "time"
    return "text" if isinstance(kind, StringType) else None

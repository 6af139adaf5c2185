"""A statement while it is read: its text, the substitutions in it, and Spark's analysis of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

from pyspark.sql.types import DataType, StructType

from windrow.algebra.continuous import Reader
from windrow.errors import WindrowError
from windrow.plan.columns import Column, Scope
from windrow.plan.reasons import Reason
from windrow.syntax.cql_clauses import begins_relation
from windrow.syntax.expressions.window_calls import is_over
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.queries import UnknownShapeError
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.sqltext import SqlText

__all__ = ["Analyser", "NotAnalysed", "StatementText", "Texts", "UnreadError"]

Standing: TypeAlias = "tuple[dict[Range, str | SqlText], set[int], dict[Range, str]]"
Found = TypeVar("Found")


class UnreadError(Exception):
    """A form of text has no node. :meth:`StatementText.attempt` turns this into a :class:`Reason`, and
    nothing else catches it; :mod:`windrow.plan.reader.ways` decides what happens then.
    """

    def __init__(self, what: str, at: Range | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.reason = Reason(what, at, hint)

    @classmethod
    def of(cls, reason: Reason) -> UnreadError:
        """The error for a reason."""
        return cls(reason.what, reason.at, reason.hint)


@dataclass(frozen=True, kw_only=True)
class NotAnalysed(Reason):
    """Spark cannot analyse a text at its place; with Spark's error."""

    error: WindrowError


class Analyser(Protocol):
    """Spark's analysis of texts: columns and types, or errors."""

    @property
    def zone(self) -> str | None:
        """The session's time zone."""

    @property
    def is_ansi(self) -> bool:
        """Whether the session raises errors where other modes return NULL."""

    def schema(
        self,
        text: SqlText,
        columns: Sequence[Column] | None = None,
        beside: Mapping[str, Sequence[Column]] | None = None,
    ) -> StructType:
        """The columns of a query, over rows with these columns if it reads any, and over other relations by
        key.

        Raises
        ------
        WindrowError
            Spark's error, located in the user's text.
        """

    def union(self, left: Sequence[Column], right: Sequence[Column]) -> StructType:
        """The common types of a set operation."""

    def value(self, text: SqlText) -> object:
        """The value of an expression that reads no rows.

        Raises
        ------
        WindrowError
            Spark's error, located in the user's text.
        """


class Texts:
    """The text of one statement, with columns substituted for parts.

    Parameters
    ----------
    reader
        The statement.
    """

    def __init__(self, reader: Reader) -> None:
        self.reader, self.tokens = reader, reader.tokens
        # what stands in the text in place of stretches of it, and functions of OVER that are understood
        self.instead: dict[Range, str | SqlText] = {}
        self.windows: set[int] = set()

    def text(self, tokens: Range) -> SqlText:
        """An expression as the user wrote it, with substitutions.

        Raises
        ------
        UnreadError
            If it contains a time-varying relation that has no substitute.
        """
        start, stop = tokens
        parts: list[SqlText | str] = []
        # of stretches that begin together what is put between tokens comes first, and then the longest
        for (first, last), text in sorted(self.instead.items(), key=lambda one: _order(one[0])):
            if start <= first and last <= stop:
                parts += [self._plain((start, first)), SqlText.of(" ", text, " ")]
                start = last
        return SqlText.of(*parts, self._plain((start, stop)))

    def item(self, item: Range) -> SqlText:
        """An item of SELECT; where a part is substituted, it has its original name as alias."""
        text = self.text(item)
        name = self.tokens[item[1] - 1]
        if item in self.instead and name.is_name:
            return SqlText.of(text, f" AS `{name.name.replace('`', '``')}`")
        return text

    def written(self, stretch: Range) -> str:
        """A range as the user wrote it, on one line."""
        return " ".join(self.tokens.text(*stretch).split())

    def is_temporal(self, tokens: Range) -> bool:
        """Whether a range of the query contains anything that changes over time."""
        start, stop = tokens
        return bool(self.reader.text(start, stop).relations()) or any(
            self._is_relation(at) and (cte := self.cte(at)) is not None and self.is_temporal(cte.body)
            for at in range(start, stop)
        )

    def _is_relation(self, at: int) -> bool:
        """Whether a token names a relation in a place for relations, not a column or a qualifier."""
        return self.tokens[at].is_name and begins_relation(self.tokens, at)

    def cte(self, at: int) -> Cte | None:
        """The named query that a token names."""
        name = self.tokens[at].name.lower()
        seen = [cte for cte in visible_ctes(self.tokens, at) if cte.name.lower() == name]
        return seen[-1] if seen and not seen[-1].item[0] <= at < seen[-1].item[1] else None

    def prefix(self, position: int) -> SqlText:
        """The WITH list of the named queries that do not change over time."""
        everything = (0, len(self.tokens))
        return self.reader.with_list(position, everything, lambda cte: not self.is_temporal(cte.body))

    def _plain(self, tokens: Range) -> SqlText:
        text = self.reader.text(*tokens)
        what = None
        if text.relations() or self.is_temporal(tokens):
            what = "a subquery in an expression"
        elif any(self.is_inner_star(at) for at in range(*tokens)):
            what = "a star inside an expression"
        elif any(at not in self.windows and is_over(self.tokens, at) for at in range(*tokens)):
            what = "OVER"
        if what is not None:
            raise UnreadError(what, tokens)
        return text

    def is_inner_star(self, at: int) -> bool:
        """Whether a star stands for columns inside a call; COUNT(*) counts rows."""
        tokens = self.tokens
        if not tokens.is_symbol(at, "*"):
            return False
        begins = tokens.is_symbol(at - 1, "(") or tokens.is_symbol(at - 1, ",")
        is_alone = tokens.is_symbol(at - 1, "(") and tokens.is_symbol(at + 1, ")")
        counts_rows = is_alone and self.is_counted(at)
        return (begins or tokens.word(at - 1) == "DISTINCT") and tokens.parent[at] >= 0 and not counts_rows

    def is_counted(self, at: int) -> bool:
        """Whether a token is in the brackets of COUNT, whose name may be quoted."""
        bracket = self.tokens.parent[at]
        return bracket > 0 and self.tokens[bracket - 1].name.lower() == "count"


def _order(stretch: Range) -> tuple[int, bool, int]:
    first, last = stretch
    return first, last > first, -last


class StatementText(Texts):
    """A statement while it is read into a plan.

    Parameters
    ----------
    reader, analyser
        The statement, and Spark's analysis of texts.
    numbers
        Counts the SELECTs of the plan, for the ids of its columns; the plan of a view continues it.

    Attributes
    ----------
    columns_at
        The columns that replace parts of the text, for parts that are a single column.
    around_read
        The columns of queries around subqueries that these have read.
    """

    def __init__(self, reader: Reader, analyser: Analyser, numbers: list[int] | None = None) -> None:
        super().__init__(reader)
        self.analyser = analyser
        self.columns_at: dict[Range, str] = {}
        self.around_read: set[str] = set()
        self._numbers = [0] if numbers is None else numbers

    @property
    def numbers(self) -> list[int]:
        """The number of SELECTs read so far."""
        return self._numbers

    def attempt(self, read: Callable[[], Found], *conditions: str) -> Found | Reason:
        """The result of `read`, or the reason why it failed. After a failure, or None, the substitutions are
        restored.

        Spark's errors with one of `conditions` are reasons too.

        Raises
        ------
        WindrowError
            Any other error.
        """
        before = self.standing()
        found: Found | Reason
        try:
            found = read()
            if found is not None:
                return found
        except UnreadError as unread:
            found = unread.reason
        except UnknownShapeError as shape:
            found = Reason(str(shape), shape.at, shape.hint)
        except WindrowError as error:
            if not (conditions and error.condition.startswith(conditions)):
                raise
            found = NotAnalysed("a name that is known only in the whole query", error=error)
        self.stand(before)
        return found

    def standing(self) -> Standing:
        """The current substitutions."""
        return dict(self.instead), set(self.windows), dict(self.columns_at)

    def stand(self, before: Standing) -> None:
        """Restore earlier substitutions."""
        self.instead, self.windows, self.columns_at = before

    def fresh(self, count: int) -> list[str]:
        """Unused ids."""
        self._numbers[0] += 1
        return [f"b{self._numbers[0]}_{at}" for at in range(count)]

    def typed(self, text: SqlText, scope: Scope, columns: Iterable[Column]) -> DataType:
        """The type of an expression over some rows."""
        listed = SqlText.of("(", text, ") AS value")
        return self.analyser.schema(scope.select(listed), tuple(columns))[0].dataType

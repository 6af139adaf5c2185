"""The values of a call of a SQL function over windows as a table, for the values that its arguments may have.

f(e.v - s.v)
  →  SELECT __given.__given0, f(__given.__given0) AS __value
     FROM (SELECT DISTINCT __row0.v - __row1.v AS __given0
           FROM (SELECT * FROM t) AS __row0, (SELECT * FROM t) AS __row1) AS __given
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead
from windrow.errors import WindrowError
from windrow.statements.definitions.calls.calls_over_selects import ColumnsOf
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["GivenValues", "name_of_row", "rows_together"]

_GIVEN, _VALUE = "__given", "__value"
_ROW, _THERE, _KEY, _INSIDE = "__row", "__there", "__key", "__inside"


@dataclass(frozen=True)
class GivenValues:
    """A call, and the values that its arguments have in the rows of a source.

    Attributes
    ----------
    call
        The tokens of the call.
    source
        What follows FROM, with WHERE.
    inside
        The arguments in SELECT of the source.
    around
        The arguments where the call stands.
    guards
        Conditions of WHERE there: arguments are not computed where one of them does not hold.
    outer
        The relations of a query around, and WHERE over them: the source reads columns of their rows.
    """

    tokens: TokenList
    call: Range
    source: SqlText
    inside: Edits
    around: Edits
    guards: Sequence[SqlText] = ()
    outer: tuple[SqlText, SqlText] | None = None

    @property
    def arguments(self) -> list[Range]:
        """The expressions of the arguments, without names of parameters."""
        tokens = self.tokens
        listed = tokens.split(self._opened + 1, self.call[1] - 1)
        return [(start + 2 * tokens.is_symbol(start + 1, "=>"), stop) for start, stop in listed]

    @property
    def _opened(self) -> int:
        return next(at for at in range(*self.call) if self.tokens.is_symbol(at, "("))

    def given(self) -> SqlText:
        """The query of the values of the arguments."""
        columns = [
            SqlText.of(self.inside.text(*one), f"AS {_GIVEN}{number}")
            for number, one in enumerate(self.arguments)
        ]
        query = SqlText.of("SELECT DISTINCT ", SqlText.join(", ", columns), " FROM ", self.source)
        if self.outer is None:
            return query
        relations, where = self.outer
        return SqlText.of(
            f"SELECT DISTINCT {_INSIDE}.* FROM ", relations, ", LATERAL (", query, f") AS {_INSIDE}", where
        )

    def is_known(self, columns_of: ColumnsOf) -> bool:
        """Whether the source has what the arguments read."""
        try:
            return len(columns_of(self.given())) > 0
        except WindrowError:
            return False

    def names(self, relation: str) -> list[str]:
        """The columns of the table: the value of the call, and those of its arguments."""
        return [f"{relation}.{_VALUE}", *(f"{relation}.{_GIVEN}{at}" for at in range(len(self.arguments)))]

    def table(self) -> SqlText:
        """The query of the values of the call."""
        called = Edits(self.tokens)
        for number, one in enumerate(self.arguments):
            put_instead(called, one, f"{_GIVEN}.{_GIVEN}{number}")
        value = SqlText.of(called.text(*self.call), f"AS {_VALUE}")
        listed = SqlText.join(", ", [*map(SqlText.of, self.names(_GIVEN)[1:]), value])
        return SqlText.of("SELECT ", listed, " FROM (", self.given(), f") AS {_GIVEN}")

    def condition(self, relation: str) -> SqlText:
        """Which row of the table is that of the arguments where the call stands."""
        names = zip(self.names(relation)[1:], self.arguments, strict=True)
        before = (
            SqlText.of("IF(", SqlText.join(" AND ", self.guards), ", ") if self.guards else SqlText.of("(")
        )
        after = ", NULL)" if self.guards else ")"
        return SqlText.join(
            " AND ",
            [SqlText.of(f"{name} <=> ", before, self.around.text(*one), after) for name, one in names],
        )


def name_of_row(number: int) -> str:
    """The relation of a row among those of :func:`rows_together`."""
    return f"{_ROW}{number}"


def rows_together(relation: SqlText, keys: Sequence[SqlText], may_be_missing: Sequence[bool]) -> SqlText:
    """What follows FROM, with WHERE, for all combinations of rows of a partition, one for each flag.

    A row that may be missing is also one of NULLs.
    """
    listed = SqlText.join(
        ", ", [SqlText.of("*"), *(SqlText.of(key, f" AS {_KEY}{at}") for at, key in enumerate(keys))]
    )
    rows = [
        SqlText.of(
            f"VALUES (TRUE){', (FALSE)' * missing} AS {_THERE}{number}(is_row) LEFT JOIN (SELECT ",
            listed, " FROM ", relation, f") AS {_ROW}{number} ON {_THERE}{number}.is_row",
        )
        for number, missing in enumerate(may_be_missing)
    ]  # fmt: skip
    same = " AND ".join(f"{_ROW}0.{_KEY}{at} <=> {_ROW}{{0}}.{_KEY}{at}" for at in range(len(keys)))
    conditions = [
        f"(NOT {_THERE}0.is_row OR NOT {_THERE}{number}.is_row OR ({same.format(number)}))"
        for number in range(1, len(may_be_missing))
        if keys
    ]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return SqlText.of(SqlText.join(", ", rows), where)

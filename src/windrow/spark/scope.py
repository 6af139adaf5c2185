"""Scopes: the rows of FROM and the relations by their names, over which the user's text is run.

A scope is one DataFrame, of which ``JOIN LATERAL (SELECT …)`` makes the relations that the text knows;
Spark's optimizer takes the joins away again.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from windrow.algebra.continuous import Reader
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS, Part
from windrow.plan.columns import Scope as Names
from windrow.plan.reader import NotPlannedError, Texts
from windrow.spark.gateway import Gateway
from windrow.syntax.queries import Select
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["Rows", "Scope", "SparkTexts"]


@dataclass(frozen=True)
class Scope:
    """The rows of FROM so far, whose columns have names of ours, and the relations that they are of.

    A scope that does not vary has no `ENTER` and `LEAVE`. Of joins with USING, `merged` are the columns that
    have a name without a relation, and the columns of the scope that hold them; `star` is what * shows then,
    names and columns. There may be columns beside those of the parts, for what stands in the text in place of
    subqueries.
    """

    frame: DataFrame
    parts: tuple[Part, ...]
    varies: bool
    net_by: frozenset[str] | None = None
    merged: tuple[tuple[str, str], ...] = ()
    star: tuple[tuple[str, str], ...] | None = None

    @property
    def shown(self) -> list[tuple[str, str]]:
        """What * stands for: names, and the columns of the scope that hold them."""
        if self.star is not None:
            return list(self.star)
        return [pair for part in self.parts for pair in zip(part.names, part.columns, strict=True)]

    @property
    def columns(self) -> list[str]:
        """All columns but the times."""
        return [name for name in self.frame.columns if name not in (ENTER, LEAVE)]


def _star(scope: Scope) -> str:
    if scope.star is None:
        return ", ".join(f"{quoted(part.alias)}.*" for part in scope.parts)
    return ", ".join(f"{ROWS}.{column} AS {quoted(name)}" for name, column in scope.star)


@dataclass(frozen=True)
class Rows:
    """Rows with the names that queries know, and `ENTER` and `LEAVE` after them if they vary."""

    frame: DataFrame
    names: tuple[str, ...]
    varies: bool
    net_by: frozenset[str] | None = None


class SparkTexts(Texts):
    """The user's text over scopes: what may be run there, with the named queries that it sees.

    Parameters
    ----------
    gateway, reader
        The session, and the statement.
    """

    def __init__(self, gateway: Gateway, reader: Reader) -> None:
        super().__init__(reader)
        self.gateway = gateway

    def _sql(self, query: SqlText, frame: DataFrame, select: Select) -> DataFrame:
        """Run text over a scope, with the named queries that do not vary before it."""
        prefix = self.prefix(select.items[0][0])
        return self.gateway.sql(SqlText.of(prefix, query), {ROWS: frame})

    def _scoped(self, scope: Scope) -> SqlText:
        """FROM: the rows, and from them the relations by their names."""
        return Names(scope.parts).rows()

    def _items(self, select: Select, scope: Scope) -> SqlText:
        """The SELECT list, in which a star stands for the relations of FROM alone."""
        items = []
        for start, stop in select.items:
            if self.tokens.is_symbol(start, "*"):
                if stop - start > 1 and (len(scope.parts) > 1 or scope.star is not None):
                    raise NotPlannedError("* EXCEPT over several relations")
                rest = self.text((start + 1, stop)) if stop - start > 1 else SqlText()
                items.append(SqlText.of(_star(scope), " ", rest))
            elif scope.star is not None and self.tokens.text(start, stop).endswith(".*"):
                raise NotPlannedError("all columns of one of the relations of USING")
            else:
                items.append(self.item((start, stop)))
        return SqlText.join(", ", items)

    def _kind(self, text: SqlText, scope: Scope, select: Select) -> DataType:
        query = SqlText.of("SELECT ", text, " AS value FROM ", self._scoped(scope))
        return self._sql(query, scope.frame, select).schema[0].dataType

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
from windrow.spark.gateway import Gateway
from windrow.syntax.blocks import visible_ctes
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.queries import Select
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["ROWS", "Part", "Rows", "Scope", "Texts", "Unplanned", "is_over"]

ROWS = "__w"
"""The name of the rows of a scope in the text."""


class Unplanned(Exception):  # noqa: N818 - it is no error: another way is taken
    """What is in a query that has no operator for whole logs, and at which tokens, if that is known."""

    def __init__(self, what: str, at: Range | None = None) -> None:
        super().__init__(what)
        self.at = at


@dataclass(frozen=True)
class Part:
    """A relation in FROM: its alias, its columns' names, and the columns of the scope that hold them."""

    alias: str
    names: tuple[str, ...]
    columns: tuple[str, ...]


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


def is_over(tokens: TokenList, at: int) -> bool:
    """Whether the token is the OVER of a function over a frame."""
    after_nulls = tokens.word(at - 1) == "NULLS" and tokens.word(at - 2) in ("IGNORE", "RESPECT")
    return tokens.word(at) == "OVER" and tokens.is_symbol(at - 3 if after_nulls else at - 1, ")")


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


class Texts:
    """The user's text over scopes: what may be run there, with the named queries that it sees.

    Parameters
    ----------
    gateway, reader
        The session, and the statement.
    """

    def __init__(self, gateway: Gateway, reader: Reader) -> None:
        self.gateway, self.reader, self.tokens = gateway, reader, reader.tokens
        # what stands in the text in place of stretches of it, and windows of OVER that are understood
        self._instead: dict[Range, str] = {}
        self._windows: set[int] = set()

    def _sql(self, query: SqlText, frame: DataFrame, select: Select) -> DataFrame:
        """Run text over a scope, with the named queries that do not vary before it."""
        prefix = self._prefix(select.items[0][0])
        return self.gateway.sql(SqlText.of(prefix, query), {ROWS: frame})

    def _scoped(self, scope: Scope) -> SqlText:
        """FROM: the rows, and from them the relations by their names."""
        parts = []
        for part in scope.parts:
            columns = ", ".join(
                f"{ROWS}.{column} AS {quoted(name)}"
                for column, name in zip(part.columns, part.names, strict=True)
            )
            parts.append(f" JOIN LATERAL (SELECT {columns}) AS {quoted(part.alias)}")
        return SqlText.of(Relation(ROWS), f" AS {ROWS}", *parts)

    def _items(self, select: Select, scope: Scope) -> SqlText:
        """The SELECT list, in which a star stands for the relations of FROM alone."""
        items = []
        for start, stop in select.items:
            if self.tokens.is_symbol(start, "*"):
                if stop - start > 1 and (len(scope.parts) > 1 or scope.star is not None):
                    raise Unplanned("* EXCEPT over several relations")
                rest = self._text((start + 1, stop)) if stop - start > 1 else SqlText()
                items.append(SqlText.of(_star(scope), " ", rest))
            elif scope.star is not None and self.tokens.text(start, stop).endswith(".*"):
                raise Unplanned("all columns of one of the relations of USING")
            else:
                items.append(self._item((start, stop)))
        return SqlText.join(", ", items)

    def _item(self, item: Range) -> SqlText:
        """An item of SELECT, under its own name where something stands in its place."""
        text = self._text(item)
        if item[1] - item[0] == 1 and item in self._instead:
            return SqlText.of(text, f" AS {quoted(self.tokens[item[0]].name)}")
        return text

    def _text(self, tokens: Range) -> SqlText:
        """An expression as the user wrote it, but for what stands in place of parts of it.

        Raises
        ------
        Unplanned
            Where something varies in it for which nothing stands.
        """
        start, stop = tokens
        parts: list[SqlText | str] = []
        for (first, last), text in sorted(self._instead.items()):
            if start <= first and last <= stop:
                parts += [self._plain((start, first)), f" {text} "]
                start = last
        return SqlText.of(*parts, self._plain((start, stop)))

    def _plain(self, tokens: Range) -> SqlText:
        text = self.reader.text(*tokens)
        if text.relations() or self._varies(tokens):
            raise Unplanned("a subquery in an expression")
        if any(self._is_inner_star(at) for at in range(*tokens)):
            raise Unplanned("a star inside of an expression")
        if any(at not in self._windows and is_over(self.tokens, at) for at in range(*tokens)):
            raise Unplanned("OVER")
        return text

    def _is_inner_star(self, at: int) -> bool:
        """Whether a star stands for columns inside of a call; COUNT(*) counts rows."""
        tokens = self.tokens
        if not tokens.is_symbol(at, "*"):
            return False
        begins = tokens.is_symbol(at - 1, "(") or tokens.is_symbol(at - 1, ",")
        counts = (
            tokens.word(at - 2) == "COUNT" and tokens.is_symbol(at - 1, "(") and tokens.is_symbol(at + 1, ")")
        )
        return (begins or tokens.word(at - 1) == "DISTINCT") and tokens.parent[at] >= 0 and not counts

    def _kind(self, text: SqlText, scope: Scope, select: Select) -> DataType:
        query = SqlText.of("SELECT ", text, " AS value FROM ", self._scoped(scope))
        return self._sql(query, scope.frame, select).schema[0].dataType

    def _varies(self, tokens: Range) -> bool:
        """Whether anything in a stretch of the query varies."""
        start, stop = tokens
        return bool(self.reader.text(start, stop).relations()) or any(
            self.tokens[at].is_name and (cte := self._cte(at)) is not None and self._varies(cte.body)
            for at in range(start, stop)
        )

    def _cte(self, at: int) -> Cte | None:
        """The named query that a token names."""
        name = self.tokens[at].name.lower()
        seen = [cte for cte in visible_ctes(self.tokens, at) if cte.name.lower() == name]
        return seen[-1] if seen and not seen[-1].item[0] <= at < seen[-1].item[1] else None

    def _prefix(self, position: int) -> SqlText:
        """The named queries that do not vary."""
        everything = (0, len(self.tokens))
        return self.reader.with_list(position, everything, lambda cte: not self._varies(cte.body))

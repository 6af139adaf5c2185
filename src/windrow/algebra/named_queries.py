"""WITH and the named queries that the SELECTs of a statement see."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.nodes import Cte, Range, is_within
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["NamedQueries"]

_MOST_HIDDEN = 12


@dataclass(frozen=True)
class NamedQueries:
    """The named queries of a statement.

    Attributes
    ----------
    tokens
        The statement.
    clauses
        Where clauses stand in it, and how each is called.
    text
        Returns a stretch in which every clause reads its windows or matches instead.
    piece
        Returns a stretch as it is written.
    """

    tokens: TokenList
    clauses: Sequence[tuple[Range, str]]
    text: Callable[[int, int], SqlText]
    piece: Callable[[Range], SqlText]

    def prefix(self, ctes: tuple[Cte, ...]) -> SqlText:
        """WITH and these queries; a SELECT sees the innermost one of each name.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_CLAUSE`` for a clause in a recursive query.
        ParseError
            ``FAILED_TO_PARSE_TOO_COMPLEX`` where many queries hide others.
        """
        for cte in {one.name.lower(): one for one in ctes}.values():
            inside = [clause for clause in self.clauses if is_within(clause[0], cte.body)]
            if cte.recursive and inside and self._mentions(cte):
                place, words = inside[0]
                raise NotSupportedError(
                    f"{words} in a recursive query is not supported",
                    condition="UNSUPPORTED_CLAUSE",
                    sql=self.tokens.sql,
                    span=self.tokens.span(*place),
                    hint="move the clause into a query that is not recursive",
                )
        return self._with_list(ctes)

    def _with_list(self, ctes: tuple[Cte, ...]) -> SqlText:
        """WITH and the queries that can be seen, from the outermost inwards."""
        seen = {cte.name.lower(): cte for cte in ctes}
        if not seen:
            return SqlText()
        if len(seen) < len(ctes) and len(ctes) > _MOST_HIDDEN:
            raise ParseError(
                f"more than {_MOST_HIDDEN} named queries are in scope, and some have the same name",
                condition="FAILED_TO_PARSE_TOO_COMPLEX",
                sqlstate="54001",
                sql=self.tokens.sql,
                span=self.tokens.span(*ctes[-1].item),
                hint="give each query of the WITH lists a different name",
            )
        items = []
        for index, cte in enumerate(ctes):
            if seen[cte.name.lower()] is not cte:
                continue
            if len(seen) == len(ctes):
                items.append(self.text(*cte.item))
            else:
                # a name is taken twice: each query reads which ones it sees itself
                head, body = (cte.item[0], cte.body[0] - 1), self.text(*cte.body)
                others = self._with_list(ctes[:index])
                items.append(SqlText.of(self.piece(head), " (", others, "(", body, "))"))
        word = "WITH RECURSIVE " if any(cte.recursive for cte in seen.values()) else "WITH "
        return SqlText.of(word, SqlText.join(", ", items), " ")

    def _mentions(self, cte: Cte) -> bool:
        """Whether a query names itself."""
        names = (self.tokens[index] for index in range(*cte.body))
        return any(token.is_name and token.name.lower() == cte.name.lower() for token in names)

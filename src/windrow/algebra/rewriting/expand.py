"""Replaces the names of named queries and views by their queries, so that each use is independent."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from windrow.algebra.names import piece_of
from windrow.errors import ParseError
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.query_parts import visible_ctes, with_items
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.streams.table_functions import is_table_argument, refuse_table_in_brackets
from windrow.syntax.tokens import TokenList

__all__ = ["Expander"]

_MOST_EXPANDED = 2_000


@dataclass(frozen=True)
class Expander:
    """Expands queries over streams; the rest of a text is unchanged.

    Attributes
    ----------
    tokens
        The text.
    streams
        Names in lower case.
    views
        The queries of views, expanded themselves, by their names in lower case.
    """

    tokens: TokenList
    streams: Collection[str]
    views: Mapping[str, str]
    _leads: dict[Range, bool] = field(default_factory=dict)
    _expanded: list[Range] = field(default_factory=list)

    def text(self, start: int, stop: int) -> SqlText:
        """A part of the text, in which queries replace their names in FROM.

        WITH lists then lack the queries that are expanded.
        """
        tokens = self.tokens
        parts: list[SqlText | str] = []
        later: dict[int, str] = {}  # an alias of a table function's, by the token after the call
        at = index = start
        while index < stop:
            if index in later:
                parts += [self._piece(at, index), later.pop(index)]
                at = index
            left = self._with(index)
            if left is not None:
                parts += [self._piece(at, index), left[0]]
                at = index = left[1]
                continue
            query = self._query(index)
            if query is None:
                index += 1
                continue
            name = tokens[index].name
            table = index - 1 - tokens.is_symbol(index - 1, "(")
            if tokens.word(table) != "TABLE":
                named = alias_after(tokens, index + 1, stop) is not None
                parts += [self._piece(at, index), query, " " if named else f" AS {quoted(name)} "]
            elif not is_table_argument(tokens, table):
                refuse_table_in_brackets(tokens, table)
                parts += [self._piece(at, table), "SELECT * FROM ", query, f" AS {quoted(name)} "]
            else:
                bracketed = table < index - 1
                parts += [self._piece(at, index), "SELECT * FROM " if bracketed else "(SELECT * FROM ", query]
                parts += [f" AS {quoted(name)}{'' if bracketed else ')'} "]
                call = self._call_around(index)
                if alias_after(tokens, call, len(tokens)) is None:
                    later[call] = f" AS {quoted(name)} "
            index += 1
            at = index
        parts.append(self._piece(at, stop))
        return SqlText.of(*parts, *later.values())

    def leads_to_streams(self, body: Range) -> bool:
        """Whether a part of the text names a stream, or a query over one."""
        if body not in self._leads:
            self._leads[body] = self._finds_streams(body)
        return self._leads[body]

    def _finds_streams(self, body: Range) -> bool:
        return any(
            self.tokens[at].is_name
            and not self.tokens.is_symbol(at - 1, ".")
            and self._is_relation(at)
            and (self._cte(at) is not None or self.tokens[at].name.lower() in {*self.streams, *self.views})
            for at in range(*body)
        )

    def _query(self, index: int) -> SqlText | None:
        """The query that a name stands for, in brackets."""
        tokens = self.tokens
        if not tokens[index].is_name or tokens.is_symbol(index - 1, ".") or not self._is_relation(index):
            return None
        if tokens.is_symbol(index + 1, ".") or tokens.is_symbol(index + 1, "("):
            return None
        cte = self._cte(index)
        if cte is not None:
            self._expanded.append(cte.item)
            if len(self._expanded) > _MOST_EXPANDED:
                raise ParseError(
                    f"the named queries expand to more than {_MOST_EXPANDED} queries, as each reads several"
                    " others",
                    condition="FAILED_TO_PARSE_TOO_COMPLEX",
                    sqlstate="54001",
                    sql=tokens.sql,
                    span=tokens[index].span,
                    hint="store the rows of one of them in a named stream",
                )
            columns = cte.item[0] + 1
            body = SqlText.of("(", self.text(*cte.body), ")")
            if not tokens.is_symbol(columns, "("):
                return body
            names = [f"({tokens.text(columns + 1, tokens.partner[columns])})"]
            return SqlText.of("(SELECT * FROM ", body, f" AS {quoted(cte.name)}{names[0]})")
        name = tokens[index].name.lower()
        if name in self.views and not self._is_cte(index):
            token = tokens[index]
            piece = Piece(f"({self.views[name]})", tokens.sql, token.start, token.stop - token.start)
            return SqlText.of(piece)
        return None

    def _is_relation(self, index: int) -> bool:
        before = index - 1 - self.tokens.is_symbol(index - 1, "(")
        return begins_relation(self.tokens, index) or self.tokens.word(before) == "TABLE"

    def _with(self, index: int) -> tuple[SqlText, int] | None:
        """A WITH list without expanded queries, and the token after it."""
        if self.tokens.word(index) != "WITH" or self.tokens.is_symbol(index - 1, "."):
            return None
        items = with_items(self.tokens, index)
        if not items:
            return None
        remaining = [item for item in items if item.recursive or not self.leads_to_streams(item.body)]
        listed = SqlText.join(", ", [self._piece(*item.item) for item in remaining])
        word = "WITH RECURSIVE " if any(item.recursive for item in remaining) else "WITH "
        return (SqlText.of(word, listed, " ") if remaining else SqlText()), items[-1].item[1]

    def _seen(self, index: int) -> Cte | None:
        name = self.tokens[index].name.lower()
        seen = [cte for cte in visible_ctes(self.tokens, index) if cte.name.lower() == name]
        return seen[-1] if seen else None

    def _is_cte(self, index: int) -> bool:
        return self._seen(index) is not None

    def _cte(self, index: int) -> Cte | None:
        """The named query that a name stands for, if it is over streams."""
        cte = self._seen(index)
        if cte is None or cte.recursive or cte.item[0] <= index < cte.item[1]:
            return None
        return cte if self.leads_to_streams(cte.body) else None

    def _call_around(self, index: int) -> int:
        """The token after the table function whose table a name is."""
        tokens = self.tokens
        at = tokens.parent[index]
        if tokens.word(at - 1) == "TABLE":
            at = tokens.parent[at]
        close = tokens.partner[at]
        wrapped = tokens.word(tokens.parent[at] - 1) == "TABLE" and tokens.is_symbol(close + 1, ")")
        return close + (2 if wrapped else 1)

    def _piece(self, start: int, stop: int) -> SqlText:
        return piece_of(self.tokens, start, stop, " ")

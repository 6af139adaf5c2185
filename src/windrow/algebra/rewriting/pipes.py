"""Windrow's clauses in SQL pipes (``FROM t |> …``) and in queries that begin with FROM, as SELECTs.

    FROM t |> WHERE x |> WINDOW BY w AS (…) |> SELECT s.k |> LIMIT 3
      →  (SELECT s.k FROM t WHERE x WINDOW BY w AS (…)) |> LIMIT 3
    FROM t |> EXTEND m OVER (… PATTERN …) AS m
      →  SELECT *, m OVER (… PATTERN …) AS m FROM t

The text before one of Windrow's operators becomes the rows of a SELECT. The text after it stays a pipe over
the SELECT, which Spark evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.algebra.names import piece_of
from windrow.errors import ParseError
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import has_parts
from windrow.syntax.patterns.pattern_windows import opened_windows
from windrow.syntax.query_parts import begins_window_by, is_set_operator, level_around, with_items
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["Level", "Piped", "as_nested_queries", "is_pipe", "level_of"]

_BEGINS_QUERY = {"SELECT", "FROM", "TABLE", "VALUES"}


def as_nested_queries(tokens: TokenList) -> SqlText | None:
    """The text with the first such clause in a SELECT; None if there is none.

    The resulting text may have further ones.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for text that is not allowed behind the operator.
    """
    for at in opened_windows(tokens):
        found = Piped(tokens, level_of(tokens, at)).pattern_window(at)
        if found is not None:
            return found
    for at in range(len(tokens)):
        is_window = begins_window_by(tokens, at)
        is_match = (
            tokens.word(at) == "MATCH_RECOGNIZE"
            and is_pipe(tokens, at - 1)
            and tokens.is_symbol(at + 1, "(")
            and has_parts(tokens, at + 1)
        )
        if is_window or is_match:
            found = Piped(tokens, level_of(tokens, at)).text(at, is_window=is_window)
            if found is not None:
                return found
    return None


def is_pipe(tokens: TokenList, at: int) -> bool:
    """Whether a pipe operator follows a token."""
    return tokens.is_symbol(at, "|>")


@dataclass(frozen=True)
class Level:
    """A query, from its SELECT or the like up to the end of the brackets around it, and the pipes in it."""

    start: int
    stop: int
    pipes: tuple[int, ...]


def level_of(tokens: TokenList, at: int) -> Level:
    """The query around a token, within brackets or the statement."""
    first, stop = level_around(tokens, at)
    own = [index for index in tokens.level(first, stop) if tokens.parent[index] == tokens.parent[at]]
    pipes = tuple(index for index in own if is_pipe(tokens, index))
    start = next(
        (
            index
            for index in own
            if (index == first and tokens.is_symbol(index, "("))
            or (
                tokens.word(index) in _BEGINS_QUERY
                and not tokens.is_symbol(index - 1, ".")
                and not _is_named(tokens, own, index)
            )
        ),
        first,
    )
    return Level(start, stop, pipes)


def _is_named(tokens: TokenList, own: list[int], index: int) -> bool:
    """Whether a word is part of WITH, or the target of an INSERT, and begins no query."""
    in_with = any(
        item.item[0] <= index < item.item[1]
        for at in own
        if tokens.word(at) == "WITH"
        for item in with_items(tokens, at)
    )
    return in_with or tokens.word(index - 1) in ("INTO", "OVERWRITE", "CREATE", "REPLACE", "TEMPORARY")


@dataclass(frozen=True)
class Piped:
    """A pipe whose operators become SELECTs."""

    tokens: TokenList
    level: Level

    def text(self, at: int, *, is_window: bool) -> SqlText | None:
        """The whole text with the clause at a token in a SELECT; None if it is already in one."""
        before = [pipe for pipe in self.level.pipes if pipe < at]
        after = next((pipe for pipe in self.level.pipes if pipe > at), self.level.stop)
        if not before:
            return self.from_first(at, after)
        if not is_window:
            relation = self.source(before[-1], is_single=True)
            query, rest = SqlText.of("SELECT * FROM ", relation, self.piece(at, after)), after
        elif before[-1] + 1 == at:
            query, rest = self.window(at, before[-1], after)
        elif self.tokens.word(before[-1] + 1) == "SELECT":
            query = SqlText.of(
                self.piece(before[-1] + 1, at), "FROM ", self.source(before[-1]), self.piece(at, after)
            )
            rest = after
        else:
            return None
        return self.put(self.level.start, query, rest)

    def pattern_window(self, at: int) -> SqlText | None:
        """The whole text with the operator of a window with a pattern as a SELECT; None if it is one."""
        before = [pipe for pipe in self.level.pipes if pipe < at]
        after = next((pipe for pipe in self.level.pipes if pipe > at), self.level.stop)
        if not before:
            return self.from_first(at, after)
        operator = before[-1] + 1
        words = {"SELECT": "SELECT ", "EXTEND": "SELECT *, "}.get(self.tokens.word(operator))
        if words is None:
            return None
        listed = next(
            (index for index in self.between(operator, after) if _ends_list(self.tokens, index)), after
        )
        relation = self.source(before[-1], is_single=True)
        items = self.piece(operator + 1, listed)
        query = SqlText.of(words, items, "FROM ", relation, self.piece(listed, after))
        return self.put(self.level.start, query, after)

    def put(self, start: int, query: SqlText, rest: int) -> SqlText:
        """The whole text with a SELECT in place of the tokens from `start` to `rest`."""
        whole = query if rest >= self.level.stop else SqlText.of("(", query, ") ")
        return SqlText.of(self.piece(0, start), whole, self.piece(rest, len(self.tokens)))

    def piece(self, start: int, stop: int) -> SqlText:
        """A part of the original text."""
        return piece_of(self.tokens, start, stop, " ")

    def from_first(self, at: int, after: int) -> SqlText | None:
        """A SELECT that begins with FROM, or that a pipe follows."""
        tokens = self.tokens
        sets = [index for index in self.between(self.level.start, at) if is_set_operator(tokens, index)]
        start = self.level.start
        if sets:
            start = sets[-1] + 1
            start += tokens.word(start) in ("ALL", "DISTINCT")
        select = next((index for index in self.between(start, at) if tokens.word(index) == "SELECT"), None)
        if tokens.word(start) == "FROM" and select is not None:
            into = next((index for index in self.between(select, at) if _ends_list(tokens, index)), at)
            query = (self.piece(select, into), self.piece(start, select), self.piece(into, len(tokens)))
            return SqlText.of(self.piece(0, start), *query)
        if after < self.level.stop:
            return self.put(self.level.start, self.piece(self.level.start, after), after)
        return None

    def between(self, start: int, stop: int) -> Iterator[int]:
        """The tokens of the level in a range."""
        for index in self.tokens.level(start, stop):
            if self.tokens.parent[index] == self.tokens.parent[
                self.level.start
            ] and not self.tokens.is_symbol(index - 1, "."):
                yield index

    def window(self, at: int, pipe: int, after: int) -> tuple[SqlText, int]:
        """The SELECT of an operator WINDOW BY, with the operators WHERE and SELECT after it."""
        tokens = self.tokens
        stop = tokens.partner[at + 4] + 1
        if stop < after:
            raise ParseError(
                f"expected |> after WINDOW BY in a pipe, found {tokens[stop].text}",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens[stop].span,
                hint="write |> before it",
            )
        conditions = []
        rest = after
        while tokens.word(rest + 1) == "WHERE" and rest < self.level.stop:
            conditions.append((rest + 2, self.end(rest)))
            rest = self.end(rest)
        items = SqlText.of("* ")
        if tokens.word(rest + 1) == "SELECT" and rest < self.level.stop:
            items, rest = self.piece(rest + 2, self.end(rest)), self.end(rest)
        chosen = [SqlText.of("(", self.piece(*one), ")") for one in conditions]
        if len(conditions) == 1:
            chosen = [self.piece(*conditions[0])]
        where: list[str | SqlText] = [" WHERE ", SqlText.join(" AND ", chosen)] if chosen else []
        query = SqlText.of("SELECT ", items, "FROM ", self.source(pipe), self.piece(at, stop), *where)
        return query, rest

    def end(self, pipe: int) -> int:
        """The end of a pipe operator."""
        return next((other for other in self.level.pipes if other > pipe), self.level.stop)

    def source(self, pipe: int, *, is_single: bool = False) -> SqlText:
        """The result of the operators before a pipe, as text after FROM; a single relation if needed."""
        tokens, (start, stop) = self.tokens, (self.level.start, pipe)
        operators = [one for one in self.level.pipes if one < pipe]
        from_stop = operators[0] if operators else pipe
        is_plain = tokens.word(start) == "FROM" and "SELECT" not in map(
            tokens.word, self.between(start, from_stop)
        )
        if is_plain and is_single:
            is_plain = not operators and _is_name(tokens, (start + 1, stop))
        if not is_plain or not all(tokens.word(one + 1) == "WHERE" for one in operators):
            return SqlText.of("(", self.piece(start, stop), ") ")
        conditions = [self.piece(one + 2, self.end(one)) for one in operators]
        if len(conditions) > 1:
            conditions = [SqlText.of("(", condition, ") ") for condition in conditions]
        where: list[str | SqlText] = ["WHERE ", SqlText.join("AND ", conditions)] if conditions else []
        return SqlText.of(self.piece(start + 1, from_stop), *where)


def _ends_list(tokens: TokenList, at: int) -> bool:
    """Whether a clause begins at a token after the SELECT list."""
    after = {"GROUP": "BY", "LATERAL": "VIEW"}.get(tokens.word(at))
    if tokens.word(at - 1) == "AS":
        return False
    if tokens.word(at) == "WINDOW":
        return tokens.word(at + 2) == "AS"
    return tokens.word(at) in ("WHERE", "HAVING", "QUALIFY") or (
        after is not None and tokens.word(at + 1) == after
    )


def _is_name(tokens: TokenList, relation: Range) -> bool:
    """Whether a relation is a name, with or without an alias."""
    start, stop = relation
    while start + 2 < stop and tokens.is_symbol(start + 1, "."):
        start += 2
    return tokens[start].is_name and (start + 1 == stop or alias_after(tokens, start + 1, stop) == stop - 1)

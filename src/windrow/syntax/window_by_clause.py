"""The parser of one WINDOW BY clause.

    WINDOW BY w AS (
        TYPE SLIDING | TUMBLING
        [PARTITION BY expr, …]
        ORDER BY expr [ASC|DESC] [NULLS FIRST|LAST], …
        [LABEL  vars [WHEN predicate]]
        [ONLY] START  UNBOUNDED | vars [WHEN predicate]
        [ [ONLY] END  UNBOUNDED | vars [WHEN predicate] ] )
    vars := [AS v] [AT v] [PREV AS v] [NEXT AS v]

None of these words is reserved: START, END, LABEL and ONLY begin a part of the clause only where an
expression is complete and one of the words that may follow them does.
"""

from __future__ import annotations

from typing import NoReturn

from windrow.errors import AnalysisError, ParseError, did_you_mean
from windrow.syntax.cursor import Cursor
from windrow.syntax.nodes import BoundaryClause, OrderItem, Range, Role, Side, Variable, WindowClause
from windrow.syntax.order_by import order_item
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["parse_window_by"]

_AFTER_BOUNDARY = {"AS", "AT", "PREV", "NEXT", "WHEN", "UNBOUNDED", "ONLY", "START", "END", ""}
_VARIABLES_FOLLOW = {"AS", "AT", "PREV", "NEXT", "WHEN", "UNBOUNDED"}
_OPERATORS = {"AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "DIV"}
_ROLES = {"AS": Role.ROW, "AT": Role.POSITION, "PREV": Role.PREVIOUS, "NEXT": Role.NEXT}


def parse_window_by(tokens: TokenList, start: int) -> WindowClause:
    """Parse the clause whose WINDOW stands at token `start`.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``, ``MISSING_ORDER_BY`` or ``MISSING_END``.
    AnalysisError
        ``DUPLICATE_VARIABLE`` or ``RESERVED_NAME``.
    """
    return _Parser(tokens, start).clause()


class _Parser(Cursor):
    def __init__(self, tokens: TokenList, window: int) -> None:
        self.window, self.open = window, window + 4
        super().__init__(tokens, self.open + 1, tokens.partner[self.open])

    def clause(self) -> WindowClause:
        name = self.tokens[self.window + 2]
        tumbling = self.type()
        partition_by = self.partition_by()
        order_by = self.order_by()
        label = self.boundary(Side.LABEL) if self.word() == "LABEL" else None
        if self.boundary_word() != "START":
            self.find_misspelt_start(order_by)
            self.fail(["START"] if label else ["LABEL", "START"])
        first = self.boundary(Side.START)
        self.find_misspelt_end(first)
        last = self.boundary(Side.END) if self.boundary_word() == "END" else None
        if self.at < self.stop:
            word = self.word()
            words = ["WHEN", "PREV", "NEXT", "END"]
            meant = did_you_mean(word, words) if len(word) > 2 and word not in words else None
            self.fail(["END"] if last is None else [], meant)
        if last is None and not tumbling:
            raise ParseError(
                "sliding window has no END",
                condition="MISSING_END",
                sql=self.tokens.sql,
                span=self.tokens[self.stop].span,
                hint="add END … WHEN …, or END UNBOUNDED for windows that run to the end of the partition",
            )
        span = self.tokens.span(self.window, self.stop + 1)
        clause = WindowClause(
            name.name, name.span, span, tumbling, partition_by, order_by, label, first, last
        )
        self.check_names(clause)
        return clause

    # -- parts, in the order of the grammar ------------------------------------------------------

    def type(self) -> bool:
        if self.word() != "TYPE":
            self.fail(["TYPE"], "write TYPE SLIDING or TYPE TUMBLING first")
        self.at += 1
        if self.word() not in ("SLIDING", "TUMBLING"):
            self.fail(["SLIDING", "TUMBLING"])
        self.at += 1
        return self.tokens.word(self.at - 1) == "TUMBLING"

    def partition_by(self) -> tuple[Range, ...]:
        if self.words("PARTITION", "BY"):
            self.at += 2
            return tuple(self.expressions("PARTITION BY"))
        return ()

    def order_by(self) -> tuple[OrderItem, ...]:
        if not self.words("ORDER", "BY"):
            if self.at < self.stop and self.boundary_word() == "" and self.word() != "LABEL":
                self.fail(["PARTITION BY", "ORDER BY"])
            self.find_misspelt_order()
            raise ParseError(
                "window has no ORDER BY",
                condition="MISSING_ORDER_BY",
                sql=self.tokens.sql,
                span=self.here(),
                hint="add ORDER BY with the column that orders each sequence, before LABEL and START",
            )
        self.at += 2
        return tuple(order_item(self.tokens, item) for item in self.expressions("ORDER BY"))

    def find_misspelt_order(self) -> None:
        """If ORDER BY is missing, PARTITION BY has swallowed the misspelt word: point there."""
        for index in range(self.open + 3, self.at):
            near = did_you_mean(self.tokens.word(index), ["ORDER"], is_word=True)
            if near is not None and self.tokens.word(index + 1) == "BY":
                self.at = index
                self.fail(["ORDER BY"], "did you mean ORDER BY?")

    def find_misspelt_end(self, first: BoundaryClause) -> None:
        """If the condition of START has swallowed a misspelt END, point there."""
        open_cases, (start, stop) = 0, first.when or (0, 0)
        for index in range(start, stop):
            open_cases += self.tokens.word(index) == "CASE"
            if index == start:
                continue
            if open_cases and self.tokens.word(index) == "END":
                open_cases -= 1
                continue
            before, following = self.tokens[index - 1], self.tokens.word(index + 1)
            follows_value = before.is_symbol(")") or (
                before.kind is not TokenKind.SYMBOL and before.word not in _OPERATORS | {"AS", "IS", "CASE"}
            )
            is_followed = index + 1 == self.stop or following in ("AS", "AT", "NEXT", "WHEN")
            meant = did_you_mean(self.tokens.word(index), ["END"], is_word=True)
            if follows_value and is_followed and meant is not None:
                self.at = index
                self.fail(["END"])
            is_end = self.tokens.word(index) == "END" and self.tokens.is_name(index + 1)
            is_end &= following not in _VARIABLES_FOLLOW
            if follows_value and is_end and self.tokens.word(index + 2) in ("PREV", "NEXT", "WHEN"):
                self.at = index + 1
                self.fail(["AS"], f"write END AS {self.tokens[index + 1].text}")

    def find_misspelt_start(self, order_by: tuple[OrderItem, ...]) -> None:
        """If START is missing, ORDER BY has swallowed the misspelt word: point there."""
        if not order_by:
            return
        start, stop = order_by[0].expression[0], order_by[-1].expression[1]
        for index in range(start + 1, stop):
            if self.tokens.word(index) in ("ROWS", "RANGE", "GROUPS"):
                self.at = index
                self.fail(["START"], "write LABEL, START and END instead of a frame")
            following = self.tokens.word(index + 1) if index + 1 < stop else ""
            if self.tokens[index].is_name and following in ("AS", "AT", "PREV", "NEXT", "WHEN"):
                self.at = index
                before, name = self.tokens.word(index - 1), self.tokens[index].text
                forgotten = f"write {before} AS {name}" if before in ("START", "LABEL") else None
                self.fail(["START"], forgotten or did_you_mean(name, ["START", "LABEL"]))

    def boundary(self, side: Side) -> BoundaryClause:
        first = self.at
        only = self.word() == "ONLY"
        self.at += 2 if only else 1
        span = self.tokens.span(first, self.at)
        if self.word() == "UNBOUNDED" and side is not Side.LABEL:
            self.at += 1
            return BoundaryClause(side, self.tokens.span(first, self.at), only=only, unbounded=True)
        variables = self.variables(side)
        when = None
        if self.word() == "WHEN":
            self.at += 1
            when = (self.at, self.end_of_expression())
            if when[0] == when[1]:
                self.fail(["a predicate after WHEN"])
            self.at = when[1]
        return BoundaryClause(side, span, tuple(variables), when, only)

    def variables(self, side: Side) -> list[Variable]:
        found: list[Variable] = []
        while self.at < self.stop and self.word() in _ROLES:
            role = _ROLES[self.word()]
            first = self.at
            self.at += 1
            if role in (Role.PREVIOUS, Role.NEXT):
                if self.word() != "AS":
                    self.fail(["AS"], f"write {role.value} and a name")
                self.at += 1
            if self.at >= self.stop or not self.tokens[self.at].is_name:
                self.fail([f"a name after {role.value}"])
            if any(variable.role is role for variable in found):
                raise ParseError(
                    f"{role.value} appears twice in one boundary",
                    condition="PARSE_SYNTAX_ERROR",
                    sql=self.tokens.sql,
                    span=self.tokens.span(first, self.at + 1),
                    hint="write each of AS, AT, PREV AS and NEXT AS at most once",
                )
            token = self.tokens[self.at]
            found.append(Variable(token.name, side, role, token.span))
            self.at += 1
        return found

    def check_names(self, clause: WindowClause) -> None:
        named = [(clause.name, clause.name_span), *((item.name, item.span) for item in clause.variables())]
        for name, span in named:
            if name.startswith("__"):
                raise AnalysisError(
                    f"name {name} begins with two underscores, which are reserved for Windrow's columns",
                    condition="RESERVED_NAME",
                    sqlstate="42939",
                    sql=self.tokens.sql,
                    span=span,
                    hint="choose another name",
                )
        seen: dict[str, str] = {clause.name.lower(): "the window"}
        for variable in clause.variables():
            if variable.name.lower() in seen:
                raise AnalysisError(
                    f"variable {variable.name} is declared twice",
                    condition="DUPLICATE_VARIABLE",
                    sqlstate="42712",
                    sql=self.tokens.sql,
                    span=variable.span,
                    hint=f"rename this variable: the name is in use by {seen[variable.name.lower()]}",
                )
            seen[variable.name.lower()] = f"{variable.side.name} {variable.role.value}"

    # -- the cursor ------------------------------------------------------------------------------

    def boundary_word(self) -> str:
        """START or END if the cursor stands at that part of the clause, ONLY skipped; else empty."""
        word = self.word()
        if word == "ONLY":
            word = self.tokens.word(self.at + 1) if self.at + 1 < self.stop else ""
        return word if word in ("START", "END") else ""

    def expressions(self, after: str) -> list[Range]:
        return self.listed(after, self.end_of_expression())

    def end_of_expression(self) -> int:
        """The token at which the next part of the clause begins: an expression runs to it."""
        cases = 0
        for index in self.tokens.level(self.at, self.stop):
            word = self.tokens.word(index)
            if word == "CASE" and not self.is_qualified(index):
                cases += 1
            elif word == "END" and cases:
                cases -= 1
            elif not cases and (
                self.begins_no_expression(index) if index == self.at else self.begins_part(index)
            ):
                return index
        return self.stop

    def is_qualified(self, index: int) -> bool:
        return self.tokens.is_symbol(index - 1, ".")

    def begins_no_expression(self, index: int) -> bool:
        """Whether words are here that can only be the next part, even if an operand is missing."""
        word = self.tokens.word(index)
        following = self.tokens.word(index + 1) if index + 1 < self.stop else ""
        if word in ("START", "END"):
            return following in _VARIABLES_FOLLOW
        return word in ("PARTITION", "ORDER") and following == "BY"

    def begins_part(self, index: int) -> bool:
        before = self.tokens[index - 1]
        word, following = (
            self.tokens.word(index),
            self.tokens.word(index + 1) if index + 1 < self.stop else "",
        )
        after_operator = before.word in _OPERATORS and not self.is_qualified(index - 1)
        if after_operator or (before.kind is TokenKind.SYMBOL and before.text not in (")", "]", "?")):
            return before.text not in (".", ":") and self.begins_no_expression(index)
        ends = index + 1 == self.stop
        if word in ("START", "END"):
            return ends or (following in _AFTER_BOUNDARY and following != "")
        if word == "LABEL":
            return not ends and following in _AFTER_BOUNDARY - {"", "UNBOUNDED"}
        if word == "ONLY":
            return following in ("START", "END")
        if word in ("PARTITION", "ORDER"):
            return following == "BY"
        return word == "TYPE" and following in ("SLIDING", "TUMBLING")

    def fail(self, expected: list[str], hint: str | None = None) -> NoReturn:
        found = "the end of the clause" if self.at >= self.stop else self.tokens[self.at].text
        wanted = " or ".join(expected) if expected else "the end of the clause"
        raise ParseError(
            f"expected {wanted} in WINDOW BY, found {found}",
            condition="PARSE_SYNTAX_ERROR",
            sql=self.tokens.sql,
            span=self.here(),
            hint=hint
            or did_you_mean(found, expected)
            or "use the order TYPE, PARTITION BY, ORDER BY, LABEL, START, END",
        )

"""Comparisons of row variables as wholes: two of them are equal when they are the same row."""

from __future__ import annotations

from collections.abc import Iterator

from windrow.algebra.scopes import is_of_subquery
from windrow.errors import NotSupportedError
from windrow.syntax.nodes import Range, Role, Variable, WindowClause
from windrow.syntax.tokens import TokenList

__all__ = ["compared_rows", "comparisons_of_rows", "rows_of_case"]

_EQUALITIES = {"=", "==", "<>", "!=", "<=>"}
_ORDERINGS = {"<", "<=", ">", ">="}
_ARITHMETIC = {"+", "-", "*", "/", "%", "||", "|", "&", "^", "<<", ">>", ">>>", "::", "DIV"}
_BEFORE_OPERANDS = {"AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE", "SELECT", "HAVING", "BY", "DISTINCT",
                    "ALL", "IN", "BETWEEN", "FROM", "WHERE"}  # fmt: skip
_COMPARING_CALLS = {"NULLIF", "GREATEST", "LEAST", "DECODE"}


def compared_rows(tokens: TokenList, ranges: list[Range], clause: WindowClause) -> dict[int, Variable]:
    """The tokens that name a row which is compared with another row, each with its variable.

    Comparisons are ``=``, ``<>``, ``<=>``, ``IN``, ``IS DISTINCT FROM``, ``EQUAL_NULL``, ``CASE e WHEN l``.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_ROW_COMPARISON``: rows compared in a way that would look at their values.
    """
    rows = {item.name.lower(): item for item in clause.variables() if item.role is not Role.POSITION}
    finder = _Finder(tokens, rows)
    found: list[int] = []
    for start, stop in ranges:
        finder.begin = start
        for index in range(start, stop):
            finder.refuse(index, start, stop)
            found += finder.equal(index, start, stop)
    return {index: rows[tokens[index].name.lower()] for index in found}


def comparisons_of_rows(tokens: TokenList, ranges: list[Range], clause: WindowClause) -> list[Range]:
    """The ranges of such comparisons; for CASE, the whole expression.

    Raises
    ------
    NotSupportedError
        As :func:`compared_rows`.
    """
    rows = {item.name.lower(): item for item in clause.variables() if item.role is not Role.POSITION}
    finder = _Finder(tokens, rows)
    found: list[Range] = []
    for start, stop in ranges:
        finder.begin = start
        for index in range(start, stop):
            finder.refuse(index, start, stop)
            is_inside = bool(found) and found[-1][0] <= index < found[-1][1]
            if not is_inside and finder.equal(index, start, stop):
                found.append(finder.comparison(index, stop))
    return found


def rows_of_case(tokens: TokenList, case: Range) -> list[Range]:
    """The operand of ``CASE e WHEN l THEN … END``, and the values that it is compared with; brackets are
    included.
    """
    first = case[0] + 1
    starts, depth = [first], 0
    for at in tokens.level(*case):
        depth += (tokens.word(at) == "CASE") - (tokens.word(at) == "END")
        if tokens.word(at) == "WHEN" and depth == 1:
            starts.append(at + 1)
    return [(at, tokens.partner.get(at, at) + 1) for at in starts]


class _Finder:
    def __init__(self, tokens: TokenList, rows: dict[str, Variable]) -> None:
        self.tokens, self.rows, self.begin = tokens, rows, 0

    # -- operands that are a row and nothing else --------------------------------------------------

    def after(self, index: int, stop: int) -> int | None:
        """The row variable that is the operand starting at token `index`."""
        if index >= stop:
            return None
        return self.operand(index, self.tokens.partner.get(index, index))

    def before(self, index: int, start: int) -> int | None:
        """The row variable that is the operand ending with token `index`."""
        first = self.tokens.partner.get(index, index)
        return self.operand(first, index) if first >= start else None

    def operand(self, first: int, last: int) -> int | None:
        """The row variable between these tokens, if there is nothing else, in parentheses or not."""
        tokens = self.tokens
        is_call = (
            first < last and tokens[first - 1].is_name and tokens.word(first - 1) not in _BEFORE_OPERANDS
        )
        if is_call or tokens[first - 1].text in _ARITHMETIC:
            return None
        if last + 1 < len(tokens.tokens) and tokens[last + 1].text in _ARITHMETIC | {".", "["}:
            return None
        while first < last and tokens.is_symbol(first, "(") and tokens.partner[first] == last:
            first, last = first + 1, last - 1
        is_row = tokens[first].is_name and tokens[first].name.lower() in self.rows
        is_one = first == last and is_row and not tokens.is_symbol(first - 1, ".")
        return first if is_one and not is_of_subquery(tokens, first, self.begin) else None

    # -- comparisons -------------------------------------------------------------------------------

    def equal(self, index: int, start: int, stop: int) -> list[int]:
        """The rows on both sides of the equality at token `index`, if there is one."""
        tokens, right, left = self.tokens, index + 1, index - 1
        if tokens.word(index) == "IN" and tokens.is_symbol(right, "("):
            left -= tokens.word(left) == "NOT"
            items = [
                self.after(item[0], item[1]) if item[1] - item[0] > 0 else None
                for item in tokens.split(right + 1, tokens.partner[right])
            ]
            return _all([self.before(left, start), *items])
        if tokens.word(index) == "EQUAL_NULL" and tokens.is_symbol(right, "("):
            return _all([self.after(*item) for item in tokens.split(right + 1, tokens.partner[right])])
        if tokens.word(index) == "CASE" and not tokens.is_symbol(left, "."):
            operands = self.chosen(index, stop)
            return [] if None in operands else _all(operands)
        if tokens.word(index) == "IS":  # IS [NOT] DISTINCT FROM
            right += 3 if tokens.word(right) == "NOT" else 2
            if tokens.word(right - 1) != "FROM":
                return []
        elif tokens[index].text not in _EQUALITIES:
            return []
        return _all([self.before(left, start), self.after(right, stop)])

    def comparison(self, index: int, stop: int) -> Range:
        """The whole comparison at token `index`, if both sides are rows."""
        tokens, word = self.tokens, self.tokens.word(index)
        if word == "CASE":
            return self.case(index, stop)
        if word == "EQUAL_NULL":
            return index, tokens.partner[index + 1] + 1
        left, right = index - 1 - (tokens.word(index - 1) == "NOT"), index + 1
        if word == "IS":
            right += 3 if tokens.word(right) == "NOT" else 2
        return tokens.partner.get(left, left), tokens.partner.get(right, right) + 1

    def chosen(self, index: int, stop: int) -> list[int | None]:
        """The rows of CASE e WHEN l, e first, None for operands other than rows and NULL; empty for other
        CASEs.
        """
        tokens, operand = self.tokens, self.after(index + 1, stop)
        if operand is None:
            return []
        _, *rows = rows_of_case(tokens, self.case(index, stop))
        return [operand, *(self.after(at, stop) for at, _ in rows if tokens.word(at) != "NULL")]

    def case(self, index: int, stop: int) -> Range:
        """The whole CASE that begins at a token."""
        depth = 0
        for at in self.tokens.level(index, stop):
            depth += (self.tokens.word(at) == "CASE") - (self.tokens.word(at) == "END")
            if not depth:
                return index, at + 1
        return index, stop

    def refuse(self, index: int, start: int, stop: int) -> None:
        for first, last in self.by_value(index, start, stop):
            name = self.tokens[first].name
            raise NotSupportedError(
                f"rows cannot be compared in this way: {name} is a row, not a value",
                condition="UNSUPPORTED_ROW_COMPARISON",
                sql=self.tokens.sql,
                span=self.tokens.span(first, last + 1),
                hint="compare columns, or positions (AT); =, <>, <=> and IN test whether two rows are the"
                " same row",
            )

    def by_value(self, index: int, start: int, stop: int) -> Iterator[Range]:
        """First and last row of a comparison at token `index` that only values could decide."""
        tokens = self.tokens
        if tokens[index].text in _ORDERINGS:
            yield from _pairs([self.before(index - 1, start), self.after(index + 1, stop)])
        elif tokens.word(index) == "BETWEEN":
            left = index - 1 - (tokens.word(index - 1) == "NOT")
            high = next((at for at in tokens.level(index, stop) if tokens.word(at) == "AND"), stop - 1)
            for bound in (index + 1, high + 1):
                yield from _pairs([self.before(left, start), self.after(bound, stop)])
        elif tokens.word(index) == "CASE" and not tokens.is_symbol(index - 1, "."):
            operand, *rows = self.chosen(index, stop) or [None]
            for row in rows if None in rows else ():
                yield from _pairs([operand, row])
        elif tokens.word(index) in _COMPARING_CALLS and tokens.is_symbol(index + 1, "("):
            arguments = tokens.split(index + 2, tokens.partner[index + 1])
            rows = [self.after(*item) for item in arguments]
            yield from _pairs([at for at in rows if at is not None])


def _all(operands: list[int | None]) -> list[int]:
    found = [operand for operand in operands if operand is not None]
    return found if len(found) == len(operands) > 1 else []


def _pairs(operands: list[int | None]) -> Iterator[Range]:
    found = _all(operands)
    if found:
        yield found[0], found[-1]

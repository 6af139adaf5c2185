"""Reads PUNCTUATE: a session's bounds and punctuations of a stream."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import NotSupportedError, ParseError, WindrowError
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["Punctuate", "PunctuateCondition", "parse_conditions", "parse_punctuate"]


@dataclass(frozen=True, slots=True)
class PunctuateCondition:
    """A comparison of a column in the rows that no longer arrive.

    Attributes
    ----------
    column
        Its name.
    target
        The token of its name.
    operator
        ``=``, ``<``, ``<=``, ``>``, ``>=``, ``in``, ``between`` or ``is null``.
    operands
        The expressions that it is compared with.
    """

    column: str
    target: Range
    operator: str
    operands: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class Punctuate:
    """``PUNCTUATE name BOUND expression [STRICT]``, ``PUNCTUATE name WHERE conditions``.

    Attributes
    ----------
    name
        The stream.
    target
        The token of its name.
    bound
        The expression of the instant; None for conditions.
    is_strict
        Whether the instant itself is closed too.
    conditions
        The conditions whose conjunction no later row satisfies.
    """

    name: str
    target: Range
    bound: Range | None
    is_strict: bool = False
    conditions: tuple[PunctuateCondition, ...] = ()


_HINT = "write PUNCTUATE s BOUND TIMESTAMP '2026-01-31 10:00:00', and STRICT if it is included"
_EITHER = "write PUNCTUATE s BOUND TIMESTAMP '2026-01-31 10:00:00', or PUNCTUATE s WHERE k = 1"
_FORMS = (
    "write conditions such as column = value, <, <=, >, >=, IN (…), BETWEEN … AND …, IS NULL, joined by AND"
)
_COMPARISONS = ("=", "<", "<=", ">", ">=")


def parse_punctuate(tokens: TokenList, start: int, stop: int) -> Punctuate | None:
    """The PUNCTUATE statement; None for others.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    NotSupportedError
        ``UNSUPPORTED_PATTERN``: a condition of another form.
    """
    if tokens.word(start) != "PUNCTUATE":
        return None
    name, first = start + 1, start + 3
    if name >= stop or not tokens[name].is_name:
        raise _expected(tokens, "the name of a stream", name, stop)
    if name + 1 < stop and tokens.word(name + 1) == "WHERE":
        conditions = parse_conditions(tokens, first, stop)
        return Punctuate(tokens[name].name, (name, name + 1), None, conditions=conditions)
    if name + 1 >= stop or tokens.word(name + 1) != "BOUND":
        raise _expected(tokens, "BOUND or WHERE", name + 1, stop, _EITHER)
    is_strict = stop > first and tokens.word(stop - 1) == "STRICT"
    last = stop - is_strict
    if first >= last:
        raise _expected(tokens, "an instant", first, stop)
    return Punctuate(tokens[name].name, (name, name + 1), (first, last), is_strict)


def parse_conditions(tokens: TokenList, start: int, stop: int) -> tuple[PunctuateCondition, ...]:
    """A conjunction of comparisons of columns with values.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    NotSupportedError
        ``UNSUPPORTED_PATTERN``: a condition of another form.
    """
    return _Conditions(tokens, stop).read(start)


def _expected(tokens: TokenList, what: str, at: int, stop: int, hint: str = _HINT) -> ParseError:
    found = tokens[at].text if at < stop else "the end"
    return ParseError(
        f"expected {what}, found {found}",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens.span(at, at + 1) if at < stop else tokens.span(stop - 1, stop),
        hint=hint,
    )


class _Conditions:
    """Reads a conjunction from left to right."""

    def __init__(self, tokens: TokenList, stop: int) -> None:
        self.tokens, self.stop = tokens, stop

    def read(self, at: int) -> tuple[PunctuateCondition, ...]:
        found = []
        while True:
            condition, at = self._condition(at)
            found.append(condition)
            if at >= self.stop:
                return tuple(found)
            at += 1  # AND

    def _condition(self, at: int) -> tuple[PunctuateCondition, int]:
        """A condition, and where it ends: at AND, or at the end."""
        tokens = self.tokens
        if at < self.stop and (tokens.word(at) == "NOT" or not tokens[at].is_name):
            raise self._refused(at, at + 1, "a pattern begins with the name of a column")
        if at >= self.stop:
            raise _expected(tokens, "a column", at, self.stop, _FORMS)
        name, target, after = tokens[at].name, (at, at + 1), at + 1
        word = tokens.word(after) if after < self.stop else ""
        if (
            after < self.stop
            and tokens[after].kind is TokenKind.SYMBOL
            and tokens[after].text in _COMPARISONS
        ):
            operand, end = self._operand(after + 1)
            return PunctuateCondition(name, target, tokens[after].text, (operand,)), end
        if word == "BETWEEN":
            least, middle = self._operand(after + 1)
            if middle >= self.stop:
                raise _expected(tokens, "AND and the greatest value", middle, self.stop, _FORMS)
            most, end = self._operand(middle + 1)
            return PunctuateCondition(name, target, "between", (least, most)), end
        if word == "IN" and tokens.is_symbol(after + 1, "("):
            close = tokens.partner[after + 1]
            parts = tokens.split(after + 2, close)
            for start, stop in parts or [(close, close)]:
                if start >= stop:
                    raise _expected(tokens, "a value", stop, self.stop, _FORMS)
            return PunctuateCondition(name, target, "in", tuple(parts)), self._ended(close + 1)
        if word == "IS" and tokens.word(after + 1) == "NULL":
            return PunctuateCondition(name, target, "is null", ()), self._ended(after + 2)
        if after >= self.stop:
            raise _expected(tokens, "a comparison", after, self.stop, _FORMS)
        end = next((at for at in self._level(after) if tokens.word(at) == "AND"), self.stop)
        raise self._refused(target[0], end, "it does not compare a column with values")

    def _operand(self, at: int) -> tuple[Range, int]:
        """An expression up to the next AND."""
        end = at
        for place in self._level(at):
            if self.tokens.word(place) == "AND":
                break
            self._refuse_more(place)
            end = place + 1
        if end == at:
            raise _expected(self.tokens, "a value", at, self.stop, _FORMS)
        return (at, end), end

    def _ended(self, at: int) -> int:
        if at < self.stop and self.tokens.word(at) != "AND":
            self._refuse_more(at)
            raise _expected(self.tokens, "AND or the end", at, self.stop, _FORMS)
        return at

    def _refuse_more(self, at: int) -> None:
        token = self.tokens[at]
        if token.word in ("OR", "NOT"):
            raise self._refused(at, at + 1, "a pattern is a conjunction of conditions on single columns")
        if token.kind is TokenKind.SYMBOL and token.text in (*_COMPARISONS, "<>", "!=", "<=>"):
            raise self._refused(at, at + 1, "a value can be compared with only one column")

    def _level(self, at: int) -> list[int]:
        return self.tokens.level(at, self.stop)

    def _refused(self, start: int, stop: int, reason: str) -> WindrowError:
        return NotSupportedError(
            f"{self.tokens.text(start, stop)} cannot be part of a pattern: {reason}",
            condition="UNSUPPORTED_PATTERN",
            sql=self.tokens.sql,
            span=self.tokens.span(start, stop),
            hint=f"{_FORMS}; write several PUNCTUATE statements for several patterns",
        )

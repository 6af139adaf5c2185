"""Reads lengths: how long rows stay, how many do, how late they may be.

A length is a number, with or without a unit of time; an INTERVAL; a parameter; or a constant expression of
these, optionally followed by a unit, which applies to the whole expression:

    10 MINUTES    INTERVAL '5' MINUTE    :n    ? HOURS    2 * INTERVAL 5 MINUTES    (:n + 1) DAYS

Numbers and intervals are read here. The others stay ranges of tokens. Spark evaluates them before anything
else reads the statement (`windrow.spark.analysis.evaluated_lengths`), unless they read columns, as those of
matches may.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from decimal import Decimal

from windrow.errors import ParseError, did_you_mean
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = [
    "LENGTH_UNITS", "TIME_UNITS", "Length", "LengthReader", "begins_length", "interval_of",
    "stands_in_window",
]  # fmt: skip

TIME_UNITS = {
    "DAY": 86_400_000_000_000,
    "HOUR": 3_600_000_000_000,
    "MINUTE": 60_000_000_000,
    "SECOND": 1_000_000_000,
    "MILLISECOND": 1_000_000,
    "MICROSECOND": 1_000,
    "NANOSECOND": 1,
}
"""Nanoseconds of each unit of rowtimes."""

LENGTH_UNITS = {"WEEK": 7 * TIME_UNITS["DAY"], **TIME_UNITS}
"""Nanoseconds of each unit of lengths of time."""

_MONTHS = ("MONTH", "QUARTER", "YEAR")
_OF_INTERVALS = {*LENGTH_UNITS, *_MONTHS}
_OPERATORS = {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>", ">>>", "||", "::"}


@dataclass(frozen=True, slots=True)
class Length:
    """A length as it is written.

    Attributes
    ----------
    tokens
        All of it.
    number
        What stands before the unit, where that is a number.
    unit
        The unit after a number or an expression, a word of `LENGTH_UNITS`.
    is_interval
        Whether it is an INTERVAL and nothing else.
    least
        The least that it may be; None where it may be less than nothing.
    counts_rows
        Whether it is a number of rows.
    reads_row
        Whether it is an expression over a row.
    navigates
        Whether it is the number of rows of PREV, NEXT, FIRST or LAST.
    """

    tokens: Range
    number: Decimal | None = None
    unit: str | None = None
    is_interval: bool = False
    least: int | None = 1
    counts_rows: bool = False
    reads_row: bool = False
    navigates: bool = False

    @property
    def is_evaluated(self) -> bool:
        """Whether it needs no evaluation."""
        return self.number is not None or self.is_interval

    @property
    def value(self) -> Range:
        """The value before the unit."""
        return self.tokens[0], self.tokens[1] - (self.unit is not None)

    @property
    def nanoseconds(self) -> Decimal | None:
        """The nanoseconds of a number with a unit."""
        return None if self.number is None or self.unit is None else self.number * LENGTH_UNITS[self.unit]

    @property
    def count(self) -> int:
        """The number of rows, once evaluated."""
        assert self.number is not None
        return int(self.number)


def stands_in_window(tokens: TokenList, at: int) -> bool:
    """Whether a token belongs to a window in brackets."""
    while (at := tokens.parent[at]) >= 0:
        if tokens.is_symbol(at, "["):
            return True
    return False


class LengthReader:
    """Reads the length that begins at a token.

    Parameters
    ----------
    tokens, start, stop
        The text, where the length begins, and where it ends at the latest.
    place
        Where it stands, as an error says it: ``in the window``, ``after LAG``.
    ends
        The words before which it ends.
    hint
        What errors say to write.
    """

    def __init__(
        self,
        tokens: TokenList,
        start: int,
        stop: int,
        place: str,
        ends: Collection[str] = (),
        hint: str = "write a number and a unit, such as 10 SECONDS",
    ) -> None:
        self.tokens, self.start, self.place, self.hint = tokens, start, place, hint
        inside = tokens.level(start, stop)
        self.stop = next((at for at in inside if tokens.word(at) in ends and self._is_keyword(at)), stop)
        self._last = stop

    def length(self, *, least: int | None = 1) -> Length:
        """A length of time, or a number without a unit; it ends at the first possible token.

        Raises
        ------
        ParseError
            ``PARSE_SYNTAX_ERROR``, ``UNKNOWN_UNIT``, and ``INVALID_WINDOW_SIZE`` for months, and for a number
            that is less than the least.
        """
        tokens, start, stop = self.tokens, self.start, self.stop
        if not self._begins() or (least is not None and self._is_signed()):
            raise self.unexpected()
        if tokens[start].kind is TokenKind.NUMBER and not self._is_operator(start + 1):
            found = self._number(least)
            if least is not None and found.number is not None and found.number < least and found.number <= 0:
                of_window = stands_in_window(tokens, start)
                hint = "use [NOW] for rows of one instant" if of_window else "write a longer one"
                raise self.wrong("a length of time must be greater than zero", start, hint)
            return found
        intervals = [at for at in tokens.level(start, stop) if self._interval_end(at) == stop]
        is_interval = start in intervals and not any(self._is_parameter(at) for at in range(start, stop))
        unit = tokens.word(stop - 1).removesuffix("S")
        has_unit = unit in LENGTH_UNITS and self._is_keyword(stop - 1) and not intervals and stop > start + 1
        if not has_unit and not intervals and self._follows_operand(stop - 1):
            raise self._no_unit(stop - 1)
        self._refuse_operator(stop - 1 - has_unit)
        return Length((start, stop), unit=unit if has_unit else None, is_interval=is_interval, least=least)

    def whole(self, *, least: int | None = 1) -> Length:
        """The same, up to the last token.

        Raises
        ------
        ParseError
            As :meth:`length`, and ``PARSE_SYNTAX_ERROR`` for what follows.
        """
        found = self.length(least=least)
        if found.tokens[1] < self._last:
            self.start = found.tokens[1]
            raise self.unexpected("nothing more")
        return found

    def short(self, *, least: int | None = 1) -> Length:
        """The same where anything may follow: one operand and its unit, an expression in brackets."""
        tokens, start = self.tokens, self.start
        end = start + 1
        if tokens.is_symbol(start, ":"):
            end += 1
        elif tokens.word(start) == "INTERVAL":
            end = self._interval_end(start)
        elif tokens.is_symbol(start, "(") or (tokens.is_symbol(end, "(") and tokens[start].is_name):
            end = tokens.partner[start if tokens.is_symbol(start, "(") else end] + 1
        elif tokens[start].is_name:
            end = self._path_end()
        has_unit = tokens.word(start) != "INTERVAL" and end < self.stop
        end += has_unit and tokens.word(end).removesuffix("S") in LENGTH_UNITS
        self.stop = min(end, self.stop)
        return self.length(least=least)

    def rows(self) -> Length:
        """A number of rows.

        Raises
        ------
        ParseError
            ``PARSE_SYNTAX_ERROR``, and ``INVALID_WINDOW_SIZE`` for a number that is none of rows.
        """
        tokens, start = self.tokens, self.start
        if not self._begins():
            raise self.unexpected("a number of rows")
        text, after = tokens[start].text, start + 1
        if tokens[start].kind is TokenKind.NUMBER and not self._is_operator(after):
            if not text.isdigit() or int(text) == 0:
                raise self.wrong(
                    f"{text} is not a number of rows", start, "write a whole number of 1 or more"
                )
            return Length((start, after), Decimal(text), counts_rows=True)
        self._refuse_operator(self.stop - 1)
        return Length((start, self.stop), counts_rows=True)

    def unexpected(self, expected: str = "a length of time") -> ParseError:
        """The error if no length begins here."""
        at = self.start
        found = ""
        if at < self._last or (at < len(self.tokens) and self.tokens[at].kind is TokenKind.SYMBOL):
            found = f", found {self.tokens[at].text}"
        sign = " (a length has no sign)" if found.endswith(" -") else ""
        return self.wrong(f"expected {expected} {self.place}{found}{sign}", at, None, "PARSE_SYNTAX_ERROR")

    def wrong(
        self, message: str, at: int, hint: str | None, condition: str = "INVALID_WINDOW_SIZE"
    ) -> ParseError:
        """An error at a token."""
        at = min(at, len(self.tokens) - 1)
        return ParseError(
            message,
            condition=condition,
            sql=self.tokens.sql,
            span=self.tokens[at].span,
            hint=hint or self.hint,
        )

    def _refuse_operator(self, last: int) -> None:
        """Refuse an expression that ends with one."""
        if last >= self.start and self._is_operator(last):
            operator = self.tokens[last].text
            message, hint = (
                f"expected a value after {operator}",
                f"write a value after it, or leave {operator} out",
            )
            raise self.wrong(message, last, hint, "PARSE_SYNTAX_ERROR")

    def _number(self, least: int | None) -> Length:
        tokens, start = self.tokens, self.start
        text = tokens[start].text
        if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
            hint = "write a number and a unit, such as 10 MINUTES"
            raise self.wrong(f"{text} is not a length of time", start, hint)
        at = start + 1
        unit = tokens.word(at).removesuffix("S") if at < self.stop else ""
        if unit and unit not in LENGTH_UNITS:
            raise self._no_unit(at)
        stop = at + bool(unit)
        return Length((start, stop), Decimal(text), unit or None, least=least)

    def _no_unit(self, at: int) -> ParseError:
        """The error for a word after a number that is not a unit."""
        written = self.tokens[at].text
        unit = written.upper().removesuffix("S")
        if unit in _MONTHS:
            hint = "write days, hours, minutes or seconds, such as 30 DAYS"
            return self.wrong(f"a {unit.lower()} has no fixed length", at, hint)
        names = [each + "S" for each in LENGTH_UNITS]
        hint = did_you_mean(written, names) or f"use one of {', '.join(names)}"
        return self.wrong(f"{written} is not a unit of time", at, hint, "UNKNOWN_UNIT")

    def _interval_end(self, start: int) -> int:
        """The token after the values and units that follow INTERVAL; `start` if there is no INTERVAL."""
        tokens, at = self.tokens, start + 1
        if tokens.word(start) != "INTERVAL" or not self._is_keyword(start):
            return start
        while at < self.stop:
            value = at + (tokens.is_symbol(at, "-") or tokens.is_symbol(at, "+"))
            unit = value + (2 if tokens.is_symbol(value, ":") else 1)
            is_value = value < self.stop and tokens[value].kind in (TokenKind.NUMBER, TokenKind.STRING)
            if unit >= self.stop or not (is_value or self._is_parameter(value)):
                break
            if tokens.word(unit).removesuffix("S") not in _OF_INTERVALS:
                break
            at = unit + 1
            if tokens.word(at) == "TO" and at + 1 < self.stop:
                return at + 2
            if at < self.stop and tokens[at].kind is TokenKind.SYMBOL:
                break  # a sign after a unit is an operator
        if at == start + 1 and at < self.stop and tokens[at].kind is TokenKind.STRING:
            return at + 1  # INTERVAL '1 day'
        return at if at > start + 1 else start

    def _begins(self) -> bool:
        """Whether a length begins here, which may be the name of a variable or column."""
        tokens, start = self.tokens, self.start
        is_name = start < self.stop and tokens[start].is_name and tokens.word(start) != "INTERVAL"
        return is_name or begins_length(tokens, start, self.stop)

    def _path_end(self) -> int:
        """The token after the name that it begins with: ``n``, ``session.n``."""
        tokens, at = self.tokens, self.start + 1
        while at + 1 < self._last and tokens.is_symbol(at, ".") and tokens[at + 1].is_name:
            at += 2
        return at

    def _follows_operand(self, at: int) -> bool:
        """Whether a word follows a complete expression, so that it must be a unit."""
        tokens, before = self.tokens, at - 1
        if not tokens[at].word or tokens[at].word == "END" or not self._is_keyword(at) or before < self.start:
            return False
        is_end = any(tokens.is_symbol(before, symbol) for symbol in (")", "]", "?"))
        is_name = tokens.is_symbol(before - 1, ":") and before - 1 >= self.start
        is_path = tokens[self.start].is_name and tokens.word(self.start) != "CASE" and self._path_end() == at
        return is_end or is_name or is_path

    def _is_parameter(self, at: int) -> bool:
        tokens = self.tokens
        return tokens.is_symbol(at, "?") or tokens.is_symbol(at, ":")

    def _is_signed(self) -> bool:
        """Whether it is only a number with a sign, and possibly a unit."""
        tokens, start = self.tokens, self.start
        has_sign = tokens.is_symbol(start, "-") or tokens.is_symbol(start, "+")
        is_number = start + 1 < self.stop and tokens[start + 1].kind is TokenKind.NUMBER
        return has_sign and is_number and not self._is_operator(start + 2)

    def _is_operator(self, at: int) -> bool:
        if at >= self.stop:
            return False
        token = self.tokens[at]
        return token.word == "DIV" or (token.kind is TokenKind.SYMBOL and token.text in _OPERATORS)

    def _is_keyword(self, at: int) -> bool:
        """Whether a word is not the name of a parameter or a field."""
        return not (self.tokens.is_symbol(at - 1, ":") or self.tokens.is_symbol(at - 1, "."))


def begins_length(tokens: TokenList, at: int, stop: int) -> bool:
    """Whether a token may be the first of a length."""
    if at >= stop:
        return False
    token, after = tokens[at], at + 1
    if token.kind is TokenKind.NUMBER or token.is_symbol("?"):
        return True
    if token.is_symbol(":"):
        return after < stop and tokens[after].is_name
    if token.is_symbol("(") or token.is_symbol("-") or token.is_symbol("+"):
        return after < stop
    if token.word == "INTERVAL":
        return after < stop
    return token.word in ("NULL", "CASE") or (token.is_name and tokens.is_symbol(after, "("))


def interval_of(nanoseconds: Decimal) -> str:
    """A length of time in SQL, in the longest unit of which it is a whole number.

    >>> interval_of(Decimal(90 * 10**9))
    'INTERVAL 90 SECONDS'
    """
    unit = next((unit for unit, length in TIME_UNITS.items() if nanoseconds % length == 0), "NANOSECOND")
    count = nanoseconds / TIME_UNITS[unit]
    number = str(int(count)) if count == int(count) else f"{count.normalize():f}"
    return f"{'' if unit == 'NANOSECOND' else 'INTERVAL '}{number} {unit}S"

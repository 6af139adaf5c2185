"""Reads away what stands around streams in other dialects: SELECT STREAM, FROM STREAM t WATERMARK …, and
ORDER BY ts WITHIN INTERVAL ….

They are left out of the text, with spaces in their place, so that positions stay those of the text as
written; what they said is remembered by where it stood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from windrow.errors import ParseError
from windrow.syntax.nodes import Range
from windrow.syntax.streams import LENGTH_UNITS, TO_STREAM, Duration, begins_relation
from windrow.syntax.tokens import Kind, TokenList, tokenize

__all__ = ["Spelled", "Watermark", "spelled"]

_NOT_IN_LISTS = ("FROM", "AS", "WHERE", "UNION", "EXCEPT", "INTERSECT", "MINUS", "ORDER", "LIMIT")
_AFTER_STAR = ("FROM", "EXCEPT")


@dataclass(frozen=True, slots=True)
class Watermark:
    """``STREAM name [WATERMARK column DELAY OF INTERVAL … [FUTURE …]]``: a streaming table as a stream.

    Attributes
    ----------
    name
        The tokens of the table's name.
    column, delay
        The token of the column of the rowtimes, and the tokens of the interval by which they lag; None
        without the clause.
    future
        By how much rows may be ahead of their processing time.
    """

    name: Range
    column: int | None = None
    delay: Range | None = None
    future: Duration | None = None

    @property
    def end(self) -> int:
        """The token after all of it."""
        last = self.name if self.delay is None else self.delay
        return (last if self.future is None else self.future.tokens)[1]


@dataclass(frozen=True)
class Spelled:
    """A text without these words.

    Attributes
    ----------
    tokens
        Of the text with spaces in their place.
    selects
        Where the SELECTs stand, in characters, that were ``SELECT STREAM``.
    sources
        The tables that were ``STREAM t``, by where their names begin.
    written
        The tokens of the text as it was, which those of `sources` and `within` are of.
    within
        The tokens of the interval of ``ORDER BY … WITHIN``.
    """

    tokens: TokenList
    selects: frozenset[int]
    sources: Mapping[int, Watermark] = field(default_factory=dict)
    written: TokenList | None = None
    within: Range | None = None


def spelled(tokens: TokenList, start: int, stop: int) -> Spelled:
    """The statement without these words.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for a WATERMARK clause that is not of its form, and ISTREAM after STREAM.
    """
    selects = [at for at in tokens.level(start, stop) if _selects_stream(tokens, at, stop)]
    for at in selects:
        if tokens.word(at + 2) in TO_STREAM and tokens.is_symbol(at + 3, "("):
            raise ParseError(
                f"SELECT STREAM and {tokens.word(at + 2)} both make a stream of the query",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens[at + 1].span,
                hint=f"write SELECT {tokens.word(at + 2)}(…)",
            )
    sources = {at: _source(tokens, at, stop) for at in range(start, stop) if _is_source(tokens, at, stop)}
    if not selects and not sources:
        return Spelled(tokens, frozenset())
    within = _within(tokens, start, stop) if selects else None
    gone = [] if within is None else [(within[0] - 1, within[1])]
    gone += [(at + 1, at + 2) for at in selects] + [(at, at + 1) for at in sources]
    gone += [(found.name[1], found.end) for found in sources.values() if found.delay is not None]
    text = tokens.sql
    for first, last in gone:
        span = tokens.span(first, last)
        blank = "".join("\n" if letter == "\n" else " " for letter in text[span.start : span.stop])
        text = text[: span.start] + blank + text[span.stop :]
    return Spelled(
        tokenize(text),
        frozenset(tokens[at].start for at in selects),
        {tokens[found.name[0]].start: found for found in sources.values()},
        tokens,
        within,
    )


def _selects_stream(tokens: TokenList, at: int, stop: int) -> bool:
    """Whether a token is the SELECT of SELECT STREAM, and STREAM is no column."""
    after = at + 2
    if tokens.word(at) != "SELECT" or tokens.word(at + 1) != "STREAM" or after >= stop:
        return False
    if tokens.is_symbol(after, "*"):
        return after + 1 == stop or tokens.word(after + 1) in _AFTER_STAR or tokens.is_symbol(after + 1, ",")
    if tokens[after].kind is Kind.SYMBOL:
        return tokens.is_symbol(after, "(") and tokens[after].start > tokens[at + 1].stop
    return tokens.word(after) not in _NOT_IN_LISTS


def _within(tokens: TokenList, start: int, stop: int) -> Range | None:
    """The interval of the WITHIN at the end of ORDER BY: ``INTERVAL …``."""
    level = list(tokens.level(start, stop))
    order = next((at for at in level if tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY"), stop)
    found = [
        at for at in level if at > order and tokens.word(at) == "WITHIN" and tokens.word(at + 1) == "INTERVAL"
    ]
    return (found[-1] + 1, stop) if found else None


def _is_source(tokens: TokenList, at: int, stop: int) -> bool:
    """Whether a token is the STREAM before a table in FROM, and no table of that name with an alias."""
    if tokens.word(at) != "STREAM" or at + 1 >= stop or not tokens[at + 1].is_name:
        return False
    if tokens.word(at + 1) in ("AS", "WHERE", "JOIN", "ON", "UNION", "GROUP", "ORDER", "LIMIT"):
        return False
    return begins_relation(tokens, at)


def _source(tokens: TokenList, at: int, stop: int) -> Watermark:
    last = at + 2
    while tokens.is_symbol(last, ".") and last + 1 < stop:
        last += 2
    name = (at + 1, last)
    if tokens.word(last) != "WATERMARK":
        return Watermark(name)
    words = [tokens.word(place) for place in (last + 2, last + 3, last + 4)]
    first = last + 4
    end, has_unit = _interval(tokens, first, stop)
    is_column = last + 1 < stop and tokens[last + 1].is_name
    if not is_column or words != ["DELAY", "OF", "INTERVAL"] or not has_unit:
        raise ParseError(
            "the WATERMARK of a stream names a column and an interval",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(last, min(last + 2, stop)),
            hint="write FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS",
        )
    return Watermark(name, last + 1, (first, end), _future(tokens, end, stop))


def _interval(tokens: TokenList, first: int, stop: int) -> tuple[int, bool]:
    """Where the interval ends that begins with INTERVAL, and whether it has a unit."""
    end = first + 1
    while end < stop and not _ends_interval(tokens, end):
        end += 1
    has_unit = end < stop and tokens.word(end).removesuffix("S") in LENGTH_UNITS
    end += has_unit
    while has_unit and tokens.word(end) == "TO":
        end += 2
    return end, has_unit


def _future(tokens: TokenList, at: int, stop: int) -> Duration | None:
    """``FUTURE 1 DAY`` or ``FUTURE INTERVAL …``; FUTURE alone is an alias."""
    first = at + 1
    if tokens.word(at) != "FUTURE" or first >= stop:
        return None
    if tokens.word(first) == "INTERVAL":
        end, has_unit = _interval(tokens, first, stop)
        if has_unit:
            return Duration((first, end), None)
    elif re.fullmatch(r"\d+(\.\d*)?", tokens[first].text):
        unit = tokens.word(first + 1).removesuffix("S")
        if first + 1 < stop and unit in LENGTH_UNITS:
            return Duration((first, first + 2), Decimal(tokens[first].text) * LENGTH_UNITS[unit])
    else:
        return None
    raise ParseError(
        "expected a length of time after FUTURE",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens[first].span,
        hint="write a number and a unit, such as FUTURE 1 DAY",
    )


def _ends_interval(tokens: TokenList, at: int) -> bool:
    return tokens[at].kind is Kind.WORD or (tokens[at].kind is Kind.SYMBOL and tokens[at].text in "[(,)")

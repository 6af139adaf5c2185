"""Reads and removes words about streams of other dialects: SELECT STREAM, FROM STREAM t WATERMARK …, and
ORDER BY ts WITHIN INTERVAL ….

Spaces replace them in the text, so positions stay those of the text as written; their meaning is stored by
position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from windrow.errors import ParseError
from windrow.syntax.cql_clauses import TO_STREAM, begins_relation
from windrow.syntax.lengths import Length, LengthReader, begins_length
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["Spelled", "Watermark", "is_source", "selects_stream", "spelled"]

_NOT_IN_LISTS = ("FROM", "AS", "WHERE", "UNION", "EXCEPT", "INTERSECT", "MINUS", "ORDER", "LIMIT")
_AFTER_STAR = ("FROM", "EXCEPT")


@dataclass(frozen=True, slots=True)
class Watermark:
    """``STREAM name [WATERMARK [expression AS] column DELAY OF length [FUTURE length]]``: a streaming table
    as a stream.

    Attributes
    ----------
    name
        The tokens of the table's name.
    column, delay
        The token of the column of the rowtimes, and the length by which they lag; None without the clause.
    expression
        What computes that column; None where the table has it.
    future
        By how much rows may be ahead of their processing time.
    """

    name: Range
    column: int | None = None
    delay: Length | None = None
    future: Length | None = None
    expression: Range | None = None

    @property
    def end(self) -> int:
        """The token after the clause."""
        last = self.future or self.delay
        return self.name[1] if last is None else last.tokens[1]


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
        The length of ``ORDER BY … WITHIN``.
    """

    tokens: TokenList
    selects: frozenset[int]
    sources: Mapping[int, Watermark] = field(default_factory=dict)
    written: TokenList | None = None
    within: Length | None = None


def spelled(tokens: TokenList, start: int, stop: int, nested: Sequence[int] = ()) -> Spelled:
    """The statement without these words.

    Parameters
    ----------
    nested
        The SELECTs inside of brackets that are ``SELECT STREAM`` too.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for a WATERMARK clause that is not of its form, and ISTREAM after STREAM.
    """
    own = [at for at in tokens.level(start, stop) if selects_stream(tokens, at, stop)]
    selects = [*own, *nested]
    for at in selects:
        if tokens.word(at + 2) in TO_STREAM and tokens.is_symbol(at + 3, "("):
            raise ParseError(
                f"SELECT STREAM cannot be combined with {tokens.word(at + 2)}",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens[at + 1].span,
                hint=f"write SELECT {tokens.word(at + 2)}(…)",
            )
    sources = {at: _source(tokens, at, stop) for at in range(start, stop) if is_source(tokens, at, stop)}
    if not selects and not sources:
        return Spelled(tokens, frozenset())
    within = _within(tokens, start, stop) if own else None
    gone = [] if within is None else [(within.tokens[0] - 1, within.tokens[1])]
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


def selects_stream(tokens: TokenList, at: int, stop: int) -> bool:
    """Whether a token is the SELECT of SELECT STREAM, and STREAM is not a column."""
    after = at + 2
    if tokens.word(at) != "SELECT" or tokens.word(at + 1) != "STREAM" or after >= stop:
        return False
    if tokens.is_symbol(after, "*"):
        return after + 1 == stop or tokens.word(after + 1) in _AFTER_STAR or tokens.is_symbol(after + 1, ",")
    if tokens[after].kind is TokenKind.SYMBOL:
        return tokens.is_symbol(after, "(") and tokens[after].start > tokens[at + 1].stop
    return tokens.word(after) not in _NOT_IN_LISTS


def _within(tokens: TokenList, start: int, stop: int) -> Length | None:
    """The length of the WITHIN at the end of ORDER BY."""
    level = list(tokens.level(start, stop))
    order = next((at for at in level if tokens.word(at) == "ORDER" and tokens.word(at + 1) == "BY"), stop)
    found = [
        at for at in level if at > order + 2 and tokens.word(at) == "WITHIN" and _ends_key(tokens, at - 1)
    ]
    if not found or not begins_length(tokens, found[-1] + 1, stop):
        return None
    return LengthReader(tokens, found[-1] + 1, stop, "after WITHIN").length(least=0)


def _ends_key(tokens: TokenList, at: int) -> bool:
    """Whether the words after a token are not a column named within."""
    return tokens[at].is_name or any(tokens.is_symbol(at, symbol) for symbol in (")", "]", "?"))


def is_source(tokens: TokenList, at: int, stop: int) -> bool:
    """Whether a token is the STREAM before a table in FROM, and not a table with that name and an alias."""
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
    delays = next((one for one in tokens.level(last + 1, stop) if _is_delay(tokens, one)), stop)
    first, column = delays + 2, delays - 1
    is_column = column == last + 1
    is_named = is_column or (column > last + 2 and tokens.word(column - 1) == "AS")
    if not is_named or not tokens[column].is_name or not begins_length(tokens, first, stop):
        raise ParseError(
            "the WATERMARK of a stream needs a column and a length of time",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(last, min(last + 2, stop)),
            hint="write FROM STREAM t WATERMARK ts DELAY OF INTERVAL 10 SECONDS, or"
            " WATERMARK to_timestamp(text) AS ts DELAY OF …",
        )
    delay = _length(tokens, first, stop, "after DELAY OF")
    at = delay.tokens[1]
    # FUTURE alone is an alias
    has_future = tokens.word(at) == "FUTURE" and begins_length(tokens, at + 1, stop)
    future = _length(tokens, at + 1, stop, "after FUTURE") if has_future else None
    return Watermark(name, column, delay, future, None if is_column else (last + 1, column - 1))


def _is_delay(tokens: TokenList, at: int) -> bool:
    return tokens.word(at) == "DELAY" and tokens.word(at + 1) == "OF"


def _length(tokens: TokenList, at: int, stop: int, place: str) -> Length:
    """A length with a unit, followed by the rest of the query."""
    reader = LengthReader(tokens, at, stop, place)
    found = reader.short(least=0)
    if found.number is not None and found.unit is None:
        raise reader.unexpected()
    return found

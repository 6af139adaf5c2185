"""Reads PUNCTUATE: what a session promises of the rows that it will insert into a stream."""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import ParseError
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = ["Punctuate", "parse_punctuate"]


@dataclass(frozen=True, slots=True)
class Punctuate:
    """``PUNCTUATE name BOUND expression [STRICT]``.

    Attributes
    ----------
    name
        The stream.
    target
        The token of its name.
    bound
        The expression of the instant.
    is_strict
        Whether no row at the instant itself will come either.
    """

    name: str
    target: Range
    bound: Range
    is_strict: bool


def parse_punctuate(tokens: TokenList, start: int, stop: int) -> Punctuate | None:
    """PUNCTUATE, if that is what the statement is.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    if tokens.word(start) != "PUNCTUATE":
        return None

    def expected(what: str, at: int) -> ParseError:
        found = tokens[at].text if at < stop else "the end"
        return ParseError(
            f"expected {what}, found {found}",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(at, at + 1) if at < stop else tokens.span(stop - 1, stop),
            hint="write PUNCTUATE s BOUND TIMESTAMP '2026-01-31 10:00:00', and STRICT if it is included",
        )

    name, first = start + 1, start + 3
    if name >= stop or not tokens[name].is_name:
        raise expected("the name of a stream", name)
    if name + 1 >= stop or tokens.word(name + 1) != "BOUND":
        raise expected("BOUND", name + 1)
    is_strict = stop > first and tokens.word(stop - 1) == "STRICT"
    last = stop - is_strict
    if first >= last:
        raise expected("an instant", first)
    return Punctuate(tokens[name].name, (name, name + 1), (first, last), is_strict)

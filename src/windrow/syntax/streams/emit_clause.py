"""Reads when a query emits: EMIT, AS OF SYSTEM TIME, ALLOWED LATENESS and STATE LIFETIME.

query [AS OF SYSTEM TIME t] [EMIT …] [ALLOWED LATENESS d] [STATE LIFETIME d]
EMIT [STREAM [AS envelope]] [AFTER WATERMARK | AFTER DELAY d [AND AFTER WATERMARK]]
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from windrow.errors import ParseError, did_you_mean
from windrow.syntax.lengths import Length, LengthReader
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["EMIT_ENVELOPES", "Emission", "clauses_in", "has_clauses", "parse_emission"]

EMIT_ENVELOPES = ("one-sql", "delta", "op", "diff")
_SHAPES = "EMIT STREAM, EMIT AFTER WATERMARK, EMIT STREAM AFTER DELAY INTERVAL 5 MINUTES AND AFTER WATERMARK"
_AFTER_EMIT = ("STREAM", "AFTER", "ALLOWED", "STATE")
_CHANGES, _FINAL = "EMIT STREAM emits every change", "EMIT AFTER WATERMARK emits each row once it is final"
_ELSEWHERE = {"CHANGES": _CHANGES, "CHANGELOG": _CHANGES, "FINAL": _FINAL, "ON": _FINAL}
"""The words of other systems after EMIT, and their equivalents."""
_WORDS = re.compile(
    r"\bemit\b|\bas\s+of\s+system\s+time\b|\ballowed\s+lateness\b|\bstate\s+lifetime\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Emission:
    """A query, and its EMIT clauses.

    Attributes
    ----------
    query
        The query without these clauses.
    emit
        The clause EMIT, if there is one.
    stream
        Whether it emits changes, not rows.
    envelope
        The form of the changes.
    watermark
        The token of WATERMARK, if it emits rows once they are complete.
    delay
        How long changes are delayed and merged.
    as_of
        The expression after AS OF SYSTEM TIME.
    lateness
        How long after the watermark rows still count.
    state_ttl
        The state TTL of keys without event time.
    """

    query: Range
    emit: Range | None = None
    stream: bool = False
    envelope: str = "one-sql"
    watermark: int | None = None
    delay: Length | None = None
    as_of: Range | None = None
    lateness: Length | None = None
    state_ttl: Length | None = None

    @property
    def says_how(self) -> bool:
        """Whether it has any of the clauses."""
        return any(part is not None for part in (self.emit, self.as_of, self.lateness, self.state_ttl))

    @property
    def says(self) -> Range | None:
        """The range of the first clause, without its word."""
        length = self.lateness or self.state_ttl
        return self.emit or self.as_of or (None if length is None else length.tokens)


def parse_emission(tokens: TokenList, start: int, stop: int) -> Emission:
    """The clauses at the end of a query.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    found = [at for at in tokens.level(start, stop) if _clause(tokens, at, stop)]
    if not found:
        return Emission((start, stop))
    emission = Emission((start, found[0]))
    if found[0] == start:
        raise _wrong(tokens, start, f"{tokens[start].text} must follow a query", "write SELECT … EMIT STREAM")
    seen: set[str] = set()
    for at, end in zip(found, [*found[1:], stop], strict=True):
        clause = _clause(tokens, at, stop)
        if clause in seen:
            raise _wrong(tokens, at, f"{clause} appears twice", "write it once")
        seen.add(clause)
        if clause == "EMIT":
            emission = _emit(tokens, emission, at, end)
        else:
            value = (at + (4 if clause == "AS OF SYSTEM TIME" else 2), end)
            if value[0] >= value[1]:
                what = "a time" if clause == "AS OF SYSTEM TIME" else "a length of time"
                raise _wrong(tokens, end - 1, f"expected {what} after {clause}", None)
            late = next((one for one in tokens.level(*value) if tokens.word(one) in _BEFORE_CLAUSES), None)
            if late is not None:
                word = tokens[late].text
                raise _wrong(tokens, late, f"{word} must precede {clause}", f"move {clause} to the end")
            if clause == "AS OF SYSTEM TIME":
                emission = replace(emission, as_of=value)
            elif clause == "ALLOWED LATENESS":
                emission = replace(emission, lateness=_length(tokens, value, clause))
            else:
                emission = replace(emission, state_ttl=_length(tokens, value, clause))
    return emission


def has_clauses(text: str) -> bool:
    """Whether a text may have any of these clauses: it has their words."""
    return _WORDS.search(text) is not None


def clauses_in(tokens: TokenList, start: int, stop: int) -> list[int]:
    """The positions of these clauses in a range, including inside brackets."""
    return [at for at in range(start, stop) if _clause(tokens, at, stop)]


def _clause(tokens: TokenList, at: int, stop: int) -> str:
    """The name of the clause that begins at a token; empty if none does."""
    if tokens.is_symbol(at - 1, ".") or at >= stop:
        return ""
    word, after = tokens.word(at), tokens.word(at + 1) if at + 1 < stop else ""
    if word == "EMIT" and not _needs_operand(tokens, at - 1):
        continues = after in ("AS", "FROM", "WHERE", "GROUP", "ORDER") or (after == "" and at + 1 < stop)
        return "" if continues else "EMIT"
    if word == "AS" and after == "OF" and tokens.word(at + 2) == "SYSTEM" and tokens.word(at + 3) == "TIME":
        return "AS OF SYSTEM TIME"
    if word == "STATE" and after == "LIFETIME" and not _needs_operand(tokens, at - 1):
        return "STATE LIFETIME"
    return "ALLOWED LATENESS" if word == "ALLOWED" and after == "LATENESS" else ""


_BEFORE_CLAUSES = frozenset({"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET"})
_BEFORE_NAMES = {
    "AS", "SELECT", "DISTINCT", "ALL", "FROM", "JOIN", "BY", "WHERE", "HAVING", "ON", "QUALIFY", "AND", "OR",
    "NOT", "IN", "LIKE", "BETWEEN", "WHEN", "THEN", "ELSE", "CASE",
}  # fmt: skip


def _needs_operand(tokens: TokenList, at: int) -> bool:
    """Whether the word after a token is a name, not a clause."""
    if at < 0:
        return False
    if tokens.word(at) == "ALL" and tokens.word(at - 1) in ("BY", "LIMIT"):
        return False
    ends = any(tokens.is_symbol(at, symbol) for symbol in (")", "]", "*", "?"))
    return tokens.word(at) in _BEFORE_NAMES or (tokens[at].kind is TokenKind.SYMBOL and not ends)


def _emit(tokens: TokenList, emission: Emission, at: int, stop: int) -> Emission:
    emission = replace(emission, emit=(at, stop))
    at += 1
    if at < stop and tokens.word(at) == "STREAM":
        emission, at = replace(emission, stream=True), at + 1
        if at < stop and tokens.word(at) == "AS":
            name = tokens.text(at + 1, stop).split()[0].lower() if at + 1 < stop else ""
            if name not in EMIT_ENVELOPES:
                near = did_you_mean(name, EMIT_ENVELOPES) or f"use one of {', '.join(EMIT_ENVELOPES)}"
                raise _wrong(tokens, min(at + 1, stop - 1), f"{name or 'nothing'} is not an envelope", near)
            at += 4 if name == "one-sql" else 2
            emission = replace(emission, envelope=name)
    if at >= stop:
        if emission.stream:
            return emission
        raise _wrong(tokens, stop - 1, "EMIT is incomplete", f"write {_SHAPES}")
    while True:
        if tokens.word(at) != "AFTER":
            known = [word for word in _AFTER_EMIT if word != "STREAM" or not emission.stream]
            hint = _ELSEWHERE.get(tokens.word(at)) or _meant(tokens, at, known)
            raise _wrong(tokens, at, f"expected AFTER in EMIT, found {tokens[at].text}", hint)
        kind = tokens.word(at + 1) if at + 1 < stop else ""
        if kind == "WATERMARK" and emission.watermark is None:
            emission, at = replace(emission, watermark=at + 1), at + 2
        elif kind == "DELAY" and emission.delay is None:
            end = next((each for each in tokens.level(at + 2, stop) if tokens.word(each) == "AND"), stop)
            if end == at + 2:
                raise _wrong(tokens, at + 1, "expected a length of time after DELAY", None)
            emission, at = replace(emission, delay=_length(tokens, (at + 2, end), kind)), end
        else:
            message = "appears twice" if kind in ("WATERMARK", "DELAY") else "needs WATERMARK or DELAY"
            last = min(at + 1, stop - 1)
            what = f"AFTER {kind}" if message == "appears twice" else "AFTER"
            raise _wrong(tokens, last, f"{what} {message}", _meant(tokens, last, ["WATERMARK", "DELAY"]))
        if at >= stop:
            return emission
        if tokens.word(at) != "AND":
            raise _wrong(tokens, at, f"expected AND or the end, found {tokens[at].text}", f"write {_SHAPES}")
        at += 1
        if at >= stop:
            raise _wrong(tokens, stop - 1, "expected AFTER after AND", f"write {_SHAPES}")


def _length(tokens: TokenList, value: Range, after: str) -> Length:
    return LengthReader(tokens, *value, f"after {after}", hint="write INTERVAL 5 MINUTES").whole()


def _meant(tokens: TokenList, at: int, known: list[str]) -> str:
    return did_you_mean(tokens.word(at), known, is_word=True) or f"write {_SHAPES}"


def _wrong(tokens: TokenList, at: int, message: str, hint: str | None) -> ParseError:
    span = tokens[at].span
    return ParseError(message, condition="PARSE_SYNTAX_ERROR", sql=tokens.sql, span=span, hint=hint)

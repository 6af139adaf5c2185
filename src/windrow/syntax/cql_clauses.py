"""Reads the clauses of CQL: windows in brackets, ISTREAM and its like, CHANGELOG OF.

Only these are parsed; the SQL around them stays ranges of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.errors import ParseError, Span, did_you_mean
from windrow.syntax.lengths import Length, LengthReader
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenList

__all__ = [
    "TO_STREAM",
    "StreamWindowClause",
    "ToStream",
    "alias_after",
    "begins_relation",
    "is_changelog",
    "lists_rows",
    "named_columns",
    "parse_stream_window",
    "parse_to_stream",
    "refuse_alias_before",
    "window_at",
]

_PARTS_OF_WINDOW = ("SLIDE", "RANGE", "ROWS", "PARTITION", "ON")
_SHAPES = (
    "windows are [NOW], [RANGE 10 MINUTES SLIDE 1 MINUTE], [ROWS 5], [PARTITION BY k ROWS 5], [RANGE 10 ON e]"
)
TO_STREAM = ("ISTREAM", "DSTREAM", "RSTREAM")
_CLAUSES = {
    "SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET",
    "ON", "USING", "WINDOW", "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "LATERAL", "PIVOT",
    "UNPIVOT",
    "JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ASOF", "TABLESAMPLE",
}  # fmt: skip


_ENDS_FROM = {
    "SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "WINDOW",
    "QUALIFY", "UNION", "EXCEPT", "INTERSECT", "MINUS", "SET", "VALUES",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class StreamWindowClause:
    """A window in brackets after a stream, as ranges of tokens.

    Attributes
    ----------
    tokens
        The bracket.
    is_now, is_unbounded
        ``[NOW]``, ``[RANGE UNBOUNDED]``.
    range_, slide
        The length of the window, and its slide.
    row_length, row_slide_length
        The number of rows, and the slide in rows; `rows` and `row_slide` if they are constants.
    partition_by
        The expressions of PARTITION BY.
    distance, on
        ``[RANGE distance ON on]``.
    """

    tokens: Range
    is_now: bool = False
    is_unbounded: bool = False
    range_: Length | None = None
    slide: Length | None = None
    row_length: Length | None = None
    row_slide_length: Length | None = None
    partition_by: tuple[Range, ...] = ()
    distance: Range | None = None
    on: Range | None = None

    @property
    def lengths(self) -> tuple[Length, ...]:
        """The lengths that are written."""
        found = (self.range_, self.slide, self.row_length, self.row_slide_length)
        return tuple(length for length in found if length is not None)

    @property
    def rows(self) -> int | None:
        """How many rows stay."""
        return None if self.row_length is None else self.row_length.count

    @property
    def row_slide(self) -> int | None:
        """How many rows enter at once."""
        return None if self.row_slide_length is None else self.row_slide_length.count


@dataclass(frozen=True, slots=True)
class ToStream:
    """``ISTREAM(query) DIFFERENCE USING (columns)`` and its like.

    `query` is the range between the brackets. If it is a SELECT list, as in ``SELECT ISTREAM(a, b) FROM …``,
    `rest` is the range after the brackets; otherwise it is empty.
    """

    kind: str
    tokens: Range
    query: Range
    using: tuple[tuple[str, Span], ...] = ()
    rest: Range | None = None


def window_at(tokens: TokenList, index: int) -> bool:
    """Whether the bracket at `index` is a window of a stream, not a place in an array."""
    if not tokens.is_symbol(index, "["):
        return False
    return begins_relation(tokens, _source_before(tokens, index))


def refuse_alias_before(tokens: TokenList, index: int) -> None:
    """Refuse a window after an alias.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    if not tokens.is_symbol(index, "[") or tokens.word(index + 1) not in (
        "NOW",
        "RANGE",
        "ROWS",
        "PARTITION",
    ):
        return
    alias, before = index - 1, index - 2
    before -= tokens.word(before) == "AS"
    if alias > 0 and tokens[alias].is_name and tokens[before].is_name and begins_relation(tokens, before):
        window, name, source = tokens.text(index, tokens.partner[index] + 1), tokens[alias], tokens[before]
        raise ParseError(
            f"alias {name.name} must follow the window",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=name.span,
            hint=f"write {source.text} {window} AS {name.text}",
        )


def _source_before(tokens: TokenList, bracket: int) -> int:
    """The first token of the source before a bracket: a name, a call, or a query in brackets."""
    at = bracket - 1
    if tokens.is_symbol(at, ")"):
        at = tokens.partner[at]
        if tokens.word(at - 1) == "KEY" and tokens.is_symbol(at - 2, ")"):
            at = tokens.partner[at - 2]
        if is_changelog(tokens, at - 2):
            return at - 2
        if tokens.word(at - 1) == "USING" and tokens.word(at - 2) in ("DIFFERENCE", "DIFFERENCES"):
            at -= 3
            at = tokens.partner.get(at, at)
        return at - 1 if tokens.word(at - 1) in TO_STREAM else at
    while tokens.is_symbol(at - 1, ".") and at >= 2:
        at -= 2
    return at


def is_changelog(tokens: TokenList, index: int) -> bool:
    """Whether CHANGELOG OF (…) begins at a token."""
    words = tokens.word(index), tokens.word(index + 1)
    return words == ("CHANGELOG", "OF") and tokens.is_symbol(index + 2, "(")


def begins_relation(tokens: TokenList, index: int) -> bool:
    """Whether a relation of FROM begins at a token."""
    before = index - 1
    word = tokens.word(before)
    if word == "JOIN":
        return True
    if word == "FROM":
        return _is_clause(tokens, before)
    if tokens.is_symbol(before, "("):
        return before == tokens.parent[index] and begins_relation(tokens, before)
    return tokens.is_symbol(before, ",") and _separates_relations(tokens, before)


def lists_rows(tokens: TokenList, part: Range) -> bool:
    """Whether VALUES in FROM has no alias yet, so that a comma after it separates its rows.

    >>> from windrow.syntax.tokens import tokenize
    >>> texts = ("VALUES (1)", "VALUES 1, DATE '2024-01-01'", "VALUES (1) AS q(k)", "VALUES (1) q(k)")
    >>> [lists_rows(tokens, (0, len(tokens))) for tokens in map(tokenize, texts)]
    [True, True, False, False]
    """
    places = [at for at in tokens.level(*part) if tokens.parent[at] == tokens.parent[part[0]]]
    values = next((at for at in reversed(places) if tokens.word(at) == "VALUES"), None)
    if values is None or (values > part[0] and tokens.word(values - 1) not in ("JOIN", "LATERAL")):
        return False
    if values + 1 == part[1]:
        return False  # a table of this name
    after = (at for at in places if at > values + 1 and not tokens.is_symbol(at - 1, ","))
    return not any(tokens[at].is_name for at in after)


def _separates_relations(tokens: TokenList, comma: int) -> bool:
    """Whether a comma is in FROM, not in a list of expressions."""
    at = comma - 1
    while at >= 0 and at != tokens.parent[comma]:
        if at in tokens.partner and tokens.partner[at] < at:
            at = tokens.partner[at] - 1
            continue
        word = "" if tokens.is_symbol(at - 1, ".") else tokens.word(at)
        if word == "VIEW" and tokens.word(at - 1) == "LATERAL":
            return False
        if word == "FROM" and _is_clause(tokens, at):
            return True
        if word == "VALUES" and begins_relation(tokens, at):
            return not lists_rows(tokens, (at, comma))
        if word in _ENDS_FROM:
            return False
        at -= 1
    # FROM (a, b JOIN c): brackets around relations
    return at >= 0 and tokens.is_symbol(at, "(") and begins_relation(tokens, at)


def _is_clause(tokens: TokenList, at: int) -> bool:
    """Whether FROM begins a clause: not that of IS DISTINCT FROM, nor of EXTRACT(day FROM x)."""
    if tokens.word(at - 1) == "DISTINCT" and tokens.word(at - 2) in ("IS", "NOT"):
        return False
    parent = tokens.parent[at]
    first = parent + 1
    query = tokens.word(first) in ("SELECT", "WITH", "FROM") or tokens.is_symbol(first, "(")
    return parent < 0 or query


def alias_after(tokens: TokenList, index: int, stop: int) -> int | None:
    """The token of the alias at `index`, with AS or without; None if there is none.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` where nothing follows AS.
    """
    if index < stop and tokens.word(index) == "AS":
        if index + 1 >= stop:
            raise ParseError(
                "expected a name after AS",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens[index].span,
                hint="write the name, or leave AS out",
            )
        return index + 1
    if index < stop and tokens[index].is_name and tokens.word(index) not in _CLAUSES:
        return index
    return None


def parse_stream_window(tokens: TokenList, bracket: int) -> StreamWindowClause:
    """The window in the bracket that opens at `bracket`.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``, ``INVALID_WINDOW_SIZE`` for numbers of rows or lengths of time that are none.
    """
    return _WindowParser(tokens, bracket).parse()


class _WindowParser:
    def __init__(self, tokens: TokenList, bracket: int) -> None:
        self.tokens = tokens
        self.bracket = bracket
        self.at, self.stop = bracket + 1, tokens.partner[bracket]

    def parse(self) -> StreamWindowClause:
        whole = (self.bracket, self.stop + 1)
        if self.take("NOW"):
            window = StreamWindowClause(whole, is_now=True)
        elif self.take("RANGE"):
            window = self.range(whole)
        elif self.take("ROWS"):
            rows = self.count()
            slide = self.count() if self.take("SLIDE") else None
            window = StreamWindowClause(whole, row_length=rows, row_slide_length=slide)
        elif self.take("PARTITION"):
            window = self.partitioned(whole)
        else:
            raise self.unexpected("NOW, RANGE, ROWS or PARTITION BY")
        if self.at < self.stop:
            raise self.unexpected("]")
        return window

    def range(self, whole: Range) -> StreamWindowClause:
        if self.take("UNBOUNDED"):
            return StreamWindowClause(whole, is_unbounded=True)
        inside = self.tokens.level(self.at, self.stop)
        on = next((index for index in inside if self.is_word(index, "ON")), None)
        if on is not None:
            distance = (self.at, on)
            if distance[0] == distance[1] or on + 1 == self.stop:
                self.at = on if distance[0] == distance[1] else self.stop
                raise self.unexpected("an expression")
            self.at = self.stop
            return StreamWindowClause(whole, distance=distance, on=(on + 1, self.stop))
        range_ = self.duration()
        slide = self.duration() if self.take("SLIDE") else None
        return StreamWindowClause(whole, range_=range_, slide=slide)

    def partitioned(self, whole: Range) -> StreamWindowClause:
        self.expect("BY")
        inside = self.tokens.level(self.at, self.stop)
        rows = next((index for index in reversed(inside) if self.is_word(index, "ROWS")), None)
        if rows is None:
            self.at = self.stop
            raise self.unexpected("ROWS")
        keys = tuple(self.tokens.split(self.at, rows))
        if not keys or any(start == stop for start, stop in keys):
            self.at = next((start for start, stop in keys if start == stop), rows)
            raise self.unexpected("an expression")
        self.at = rows + 1
        count = self.count()
        range_ = slide = None
        if self.take("RANGE"):
            range_ = self.duration()
            slide = self.duration() if self.take("SLIDE") else None
        return StreamWindowClause(whole, row_length=count, partition_by=keys, range_=range_, slide=slide)

    def count(self) -> Length:
        return self.passed(self.reader().rows())

    def duration(self) -> Length:
        return self.passed(self.reader().length())

    def reader(self) -> LengthReader:
        return LengthReader(self.tokens, self.at, self.stop, "in the window", _PARTS_OF_WINDOW, _SHAPES)

    def passed(self, length: Length) -> Length:
        self.at = length.tokens[1]
        return length

    def is_word(self, at: int, word: str) -> bool:
        """Whether a word is at a token, and is not the name of a parameter."""
        return self.tokens.word(at) == word and not self.tokens.is_symbol(at - 1, ":")

    def take(self, word: str) -> bool:
        found = self.at < self.stop and self.tokens.word(self.at) == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.unexpected(word)

    def unexpected(self, expected: str) -> ParseError:
        found = self.tokens[self.at].text if self.at < self.stop else "]"
        meant = did_you_mean(found, ("NOW", "BY", *_PARTS_OF_WINDOW), is_word=True)
        return ParseError(
            f"expected {expected} in the window, found {found}",
            condition="PARSE_SYNTAX_ERROR",
            sql=self.tokens.sql,
            span=self.tokens[self.at].span,
            hint=meant or _SHAPES,
        )


def parse_to_stream(tokens: TokenList, start: int, stop: int) -> ToStream | None:
    """ISTREAM, DSTREAM or RSTREAM over a whole query, if the range is one."""
    selected = tokens.word(start) == "SELECT"
    at = start + selected
    kind = tokens.word(at)
    if kind not in TO_STREAM or not tokens.is_symbol(at + 1, "("):
        return None
    close = tokens.partner[at + 1]
    if selected:
        if tokens.word(close + 1) != "FROM":
            return None
        using, last = _using(tokens, close + 1, stop)
        return ToStream(kind, (start, stop), (at + 2, close), using, (close + 1, last))
    if close >= stop:
        return None
    using, last = _using(tokens, close + 1, stop)
    if last != close + 1:
        return None
    return ToStream(kind, (start, stop), (at + 2, close), using)


def _using(tokens: TokenList, start: int, stop: int) -> tuple[tuple[tuple[str, Span], ...], int]:
    """The columns of DIFFERENCE USING at the end of the range, and its position."""
    inside = tokens.level(start, stop)
    for index in inside:
        if tokens.word(index) in ("DIFFERENCE", "DIFFERENCES") and tokens.word(index + 1) == "USING":
            if not tokens.is_symbol(index + 2, "(") or tokens.partner[index + 2] != stop - 1:
                raise ParseError(
                    f"expected columns in brackets after {tokens[index].text} USING",
                    condition="PARSE_SYNTAX_ERROR",
                    sql=tokens.sql,
                    span=tokens.span(index, min(index + 3, stop)),
                    hint="write ISTREAM(query) DIFFERENCE USING (a, b)",
                )
            return named_columns(tokens, index + 2, f"{tokens.word(index)} USING"), index
    return (), stop


def named_columns(tokens: TokenList, bracket: int, clause: str) -> tuple[tuple[str, Span], ...]:
    """The names in the bracket of a clause, and their positions.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for what is no name.
    """
    columns = tokens.split(bracket + 1, tokens.partner[bracket])
    for start, stop in columns or [(bracket, bracket)]:
        if stop - start != 1 or not tokens[start].is_name:
            raise ParseError(
                f"{clause} takes only column names of the query",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens.span(start, stop) if start < stop else tokens[bracket].span,
                hint="name the expression in SELECT with AS",
            )
    return tuple((tokens[start].name, tokens[start].span) for start, _ in columns)

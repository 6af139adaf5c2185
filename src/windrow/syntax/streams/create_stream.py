"""Reads CREATE STREAM."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from windrow.errors import ParseError, Span
from windrow.syntax.cql_clauses import named_columns
from windrow.syntax.definitions.create_words import column_items, create_words
from windrow.syntax.lengths import TIME_UNITS, Length, LengthReader
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["CreateStream", "DeclaredColumn", "parse_create_stream"]

_PARTS = ("PTIME", "PRODUCER", "BOUND", "WATERMARK", "PUNCTUATION")
_STREAM_OPTIONS = (
    "LOCATION", "FROM", "ORDERED", "UNORDERED", "LAG", "IDLE", "FUTURE", "RETAIN", "CHECK", "UNIQUE",
    "GROWING", "WHEN", "ON",
)  # fmt: skip
_LONG_TYPES = ("INTERVAL", "STRING", "CHAR", "VARCHAR")


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """A column of CREATE STREAM: its name and type, its part in the log, and of the rowtime its unit."""

    name: str
    tokens: Range
    kind: Range | None
    part: str = ""
    unit: str | None = None

    @property
    def is_rowtime(self) -> bool:
        """Whether it is the stream's rowtime."""
        return self.part == "ROWTIME"


@dataclass(frozen=True, slots=True)
class CreateStream:
    """``CREATE [OR REPLACE] STREAM [IF NOT EXISTS] name (columns) [FROM [STREAM] source] [LOCATION 'folder']
    [ORDERED | UNORDERED | LAG duration] [IDLE duration] [FUTURE duration] [RETAIN duration]
    [ON LATE KEEP | ON LATE FAIL] [CHECK (conditions)] [UNIQUE (columns)] [GROWING (column)]
    [WHEN conditions PUNCTUATES (columns)]``.

    Attributes
    ----------
    name, target, columns
        The name of the stream, its token, and the columns.
    replace, if_not_exists
        Whether an existing stream is replaced, or remains.
    source
        A table's name or a path; None for a named stream.
    location
        The token of its folder, if one is passed.
    is_live
        Whether the source is one that streams.
    options
        The tokens of ``ORDERED``, ``UNORDERED``, ``LAG``, ``IDLE``, ``FUTURE``, ``RETAIN``, ``ON LATE``,
        ``CHECK``, ``UNIQUE``, ``GROWING`` and ``WHEN``, by these words.
    lag, idle, future, retain
        Their lengths, which have units.
    on_late
        ``"keep"`` or ``"fail"``: what happens to late rows.
    check, when
        The conditions of ``CHECK`` and ``WHEN``.
    unique, growing, ends
        The columns of ``UNIQUE``, ``GROWING`` and ``PUNCTUATES``: their names, and where they stand.
    """

    name: str
    target: int
    columns: tuple[DeclaredColumn, ...]
    replace: bool
    source: Range | None
    if_not_exists: bool = False
    location: int | None = None
    is_live: bool = False
    options: Mapping[str, Range] = field(default_factory=dict)
    lag: Length | None = None
    idle: Length | None = None
    future: Length | None = None
    retain: Length | None = None
    on_late: str = "keep"
    check: Range | None = None
    when: Range | None = None
    unique: tuple[tuple[str, Span], ...] = ()
    growing: tuple[tuple[str, Span], ...] = ()
    ends: tuple[tuple[str, Span], ...] = ()


def parse_create_stream(tokens: TokenList, start: int, stop: int) -> CreateStream | None:
    """CREATE STREAM, if that is what the statement is.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    words = create_words(tokens, start, stop, "STREAM")
    if words is None or words.is_temporary:
        return None
    target, at = words.name_at, words.name_at + 1

    def wrong(message: str, index: int, hint: str = "") -> ParseError:
        span = tokens[index].span if index < stop else tokens.span(stop - 1, stop)
        shape = "write CREATE STREAM s (a INT, ROWTIME ts TIMESTAMP) FROM t"
        return ParseError(
            message, condition="PARSE_SYNTAX_ERROR", sql=tokens.sql, span=span, hint=hint or shape
        )

    if not tokens.is_symbol(at, "("):
        raise wrong("expected the columns of the stream in brackets", at)
    close = tokens.partner[at]
    columns = tuple(_column(tokens, item, wrong) for item in column_items(tokens, at + 1, close))
    marked = [column for column in columns if column.is_rowtime]
    if len(marked) != 1:
        second = marked[1].tokens[0] if marked else at
        message = "a stream has only one ROWTIME column" if marked else "the stream has no ROWTIME column"
        raise wrong(message, second, "put ROWTIME before the name of one column")
    for part in _PARTS:
        several = [column for column in columns if column.part == part]
        if len(several) > 1:
            raise wrong(f"a stream has only one {part} column", several[1].tokens[0])
    names = [column.name.lower() for column in columns]
    for place, column in enumerate(columns):
        if column.name.lower() in names[:place]:
            raise wrong(f"column {column.name} is listed twice", column.tokens[0], "rename one of them")
    made = CreateStream(tokens[target].name, target, columns, words.replaces, None, words.if_not_exists)
    return _OptionsParser(tokens, close + 1, stop, wrong).parse(made)


class _OptionsParser:
    """Reads the options after the columns of CREATE STREAM."""

    def __init__(self, tokens: TokenList, at: int, stop: int, wrong: Callable[..., ParseError]) -> None:
        self.tokens, self.at, self.stop, self.wrong = tokens, at, stop, wrong

    def parse(self, create: CreateStream) -> CreateStream:
        tokens = self.tokens
        options: dict[str, Range] = {}
        while self.at < self.stop:
            start, word = self.at, tokens.word(self.at)
            if word == "ON":
                word = "ON LATE"
            if word in options:
                raise self.wrong(f"{word} appears twice", start)
            self.at += 1
            if word == "LOCATION":
                if self.at == self.stop or tokens[self.at].kind is not TokenKind.STRING:
                    hint = "write LOCATION 'folder'"
                    raise self.wrong("expected one folder after LOCATION", min(self.at, self.stop), hint)
                create = replace(create, location=self.at)
                self.at += 1
            elif word == "FROM" and self.at < self.stop:
                create = self.source(create)
            elif word == "LAG":
                create = replace(create, lag=self.length(word))
            elif word == "IDLE":
                create = replace(create, idle=self.length(word))
            elif word == "FUTURE":
                create = replace(create, future=self.length(word))
            elif word == "RETAIN":
                create = replace(create, retain=self.length(word))
            elif word == "ON LATE":
                create = replace(create, on_late=self.late())
            elif word == "CHECK":
                first = self.bracket(word)
                create = replace(create, check=(first + 1, self.at - 1))
            elif word in ("UNIQUE", "GROWING"):
                listed = named_columns(tokens, self.bracket(word), word)
                if word == "GROWING" and len(listed) > 1:
                    raise self.wrong("GROWING takes only one column", start, "write GROWING (column)")
                is_unique = word == "UNIQUE"
                create = replace(create, unique=listed) if is_unique else replace(create, growing=listed)
            elif word == "WHEN":
                create = self.ended(create)
            elif word not in ("ORDERED", "UNORDERED"):
                raise self.wrong(f"expected FROM and a table or a path, found {tokens[start].text}", start)
            options[word] = (start, self.at)
        several = [options[word] for word in ("ORDERED", "UNORDERED", "LAG") if word in options]
        if len(several) > 1:
            raise self.wrong("ORDERED, UNORDERED and LAG cannot be combined", several[1][0])
        if "FROM" in options and "RETAIN" in options:
            hint = "leave RETAIN out"
            raise self.wrong("only named streams have a log to retain", options["RETAIN"][0], hint)
        if "FROM" in options and "LOCATION" in options:
            raise self.wrong("LOCATION cannot be combined with FROM", options["FROM"][0])
        return replace(create, options=options)

    def bracket(self, word: str) -> int:
        """The bracket after a word; moves past it."""
        at = self.at
        if at >= self.stop or not self.tokens.is_symbol(at, "("):
            raise self.wrong(f"expected a bracket after {word}", min(at, self.stop), f"write {word} (…)")
        self.at = self.tokens.partner[at] + 1
        return at

    def late(self) -> str:
        """What follows ``ON``: ``LATE`` and ``KEEP`` or ``FAIL``."""
        words = ("LATE",), ("KEEP", "FAIL")
        for each in words:
            if self.at >= self.stop or self.tokens.word(self.at) not in each:
                expected = (
                    "expected LATE after ON" if len(each) == 1 else "expected KEEP or FAIL after ON LATE"
                )
                raise self.wrong(expected, min(self.at, self.stop), "write ON LATE FAIL, or ON LATE KEEP")
            self.at += 1
        return self.tokens.word(self.at - 1).lower()

    def ended(self, create: CreateStream) -> CreateStream:
        """``WHEN conditions PUNCTUATES (columns)``."""
        tokens, start = self.tokens, self.at
        level = tokens.level(start, self.stop)
        found = next((at for at in level if tokens.word(at) == "PUNCTUATES"), None)
        if found is None:
            hint = "write WHEN status = 'closed' PUNCTUATES (auction)"
            raise self.wrong("expected PUNCTUATES and columns after WHEN", start - 1, hint)
        self.at = found + 1
        ends = named_columns(tokens, self.bracket("PUNCTUATES"), "PUNCTUATES")
        return replace(create, when=(start, found), ends=ends)

    def source(self, create: CreateStream) -> CreateStream:
        after = self.at + 1
        follows = after < self.stop and self.tokens[after].is_name
        follows = follows and self.tokens.word(after) not in _STREAM_OPTIONS
        is_live = self.tokens.word(self.at) == "STREAM" and follows
        start = self.at + is_live
        self.at = start + 1
        while self.at < self.stop and self.tokens.word(self.at) not in _STREAM_OPTIONS:
            self.at += 1
        return replace(create, source=(start, self.at), is_live=is_live)

    def length(self, word: str) -> Length:
        reader = LengthReader(self.tokens, self.at, self.stop, f"after {word}", _STREAM_OPTIONS)
        found = reader.length(least=0)
        if found.number is not None and found.unit is None:
            raise reader.unexpected()
        self.at = found.tokens[1]
        return found


def _column(tokens: TokenList, item: Range, wrong: Callable[..., ParseError]) -> DeclaredColumn:
    at, stop = item
    if tokens.word(at) == "WATERMARK" and tokens.word(at + 1) == "FOR" and at + 2 < stop:
        column = tokens[at + 2].text
        hint = f"write ROWTIME {column} among the columns, and LAG 5 SECONDS after them"
        raise wrong("WATERMARK FOR is not a column of a stream", at, hint)
    part = _part(tokens, at, stop)
    is_rowtime = part == "ROWTIME"
    at += bool(part)
    if at >= stop or not tokens[at].is_name:
        raise wrong("expected the name of a column", min(at, stop))
    name, at = tokens[at].name, at + 1
    unit = None
    inside = [index for index in tokens.level(at, stop) if tokens.word(index) == "UNIT"]
    if inside and is_rowtime:
        unit = tokens.word(inside[-1] + 1).removesuffix("S") if inside[-1] + 2 == stop else ""
        if unit not in TIME_UNITS:
            hint = f"use one of {', '.join(each + 'S' for each in TIME_UNITS)}"
            raise wrong("expected a unit of time after UNIT", inside[-1], hint)
        stop = inside[-1]
    kind = (at, stop) if at < stop else None
    if kind is None and not is_rowtime:
        raise wrong(f"expected the type of column {name}", item[0])
    return DeclaredColumn(name, item, kind, part, unit)


def _part(tokens: TokenList, at: int, stop: int) -> str:
    """The word before the name of a column that states its part in the log; `producer STRING` has none."""
    word = tokens.word(at)
    if word == "ROWTIME":
        return word if at + 1 < stop and tokens[at + 1].is_name else ""
    is_part = word in _PARTS and at + 2 < stop and tokens[at + 1].is_name and tokens[at + 2].is_name
    return word if is_part and tokens.word(at + 1) not in _LONG_TYPES else ""

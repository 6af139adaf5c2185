"""Tokens of a query text, with their places in it.

sqlglot's Spark tokenizer reads the text; this module converts its tokens to one form: a kind, the text as
written, and offsets. A number with a suffix (``1.5D``), which sqlglot splits in three, is one token.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, lru_cache
from typing import ClassVar

from sqlglot import TokenType
from sqlglot.dialects.spark import Spark
from sqlglot.errors import TokenError

from windrow.errors import ParseError, Span

__all__ = ["Token", "TokenKind", "TokenList", "tokenize", "without_comment"]


class TokenKind(Enum):
    """The kind of a token, for a parser of only some clauses."""

    WORD = "word"
    QUOTED = "quoted identifier"
    STRING = "string"
    NUMBER = "number"
    SYMBOL = "symbol"


_STRINGS = {
    TokenType.STRING,
    TokenType.RAW_STRING,
    TokenType.BYTE_STRING,
    TokenType.HEX_STRING,
    TokenType.NATIONAL_STRING,
    TokenType.UNICODE_STRING,
    TokenType.HEREDOC_STRING,
    TokenType.BIT_STRING,
}
_DEEPEST = 500
"""Spark accepts 499 brackets around a number, and fewer around anything else."""
_OPENING = {"(": ")", "[": "]"}
# operators that sqlglot returns in parts: array<array<int>> closes two brackets, x >> 1 is a shift
_JOINED = {("<", "<"): "<<", (">", ">"): ">>", (">>", ">"): ">>>"}


class _Tokenizer(Spark.Tokenizer):
    """sqlglot's, without commands: those would make one string of the text after EXPLAIN and the like."""

    COMMANDS: ClassVar[set[TokenType]] = set()


_TOKENIZER = _Tokenizer(dialect=Spark())


@dataclass(frozen=True, slots=True)
class Token:
    """One token: `text` is the range ``[start, stop)`` of the query as written."""

    kind: TokenKind
    text: str
    start: int
    stop: int

    @property
    def span(self) -> Span:
        """Its span."""
        return Span(self.start, self.stop)

    @property
    def word(self) -> str:
        """The text in capitals if this is an unquoted word, else the empty string."""
        return self.text.upper() if self.kind is TokenKind.WORD else ""

    @property
    def is_name(self) -> bool:
        """Whether it can be the name of a variable, column or table."""
        return self.kind in (TokenKind.WORD, TokenKind.QUOTED)

    @property
    def name(self) -> str:
        """The name without its backquotes."""
        return self.text[1:-1].replace("``", "`") if self.kind is TokenKind.QUOTED else self.text

    def is_symbol(self, text: str) -> bool:
        """Whether it is this piece of punctuation."""
        return self.kind is TokenKind.SYMBOL and self.text == text


@dataclass(frozen=True, eq=False)
class TokenList:
    """A query text, its tokens, and for every bracket the index of its partner.

    `parent[i]` is the index of the innermost ``(`` or ``[`` around token i, -1 at the outermost level.
    """

    sql: str
    tokens: tuple[Token, ...]
    partner: dict[int, int]
    parent: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.tokens)

    def __getitem__(self, index: int) -> Token:
        return self.tokens[index]

    def word(self, index: int) -> str:
        """The word at `index` in capitals; empty past the end or for anything but a word."""
        return self.tokens[index].word if 0 <= index < len(self.tokens) else ""

    def places(self, word: str) -> list[int]:
        """The positions of a word, in order; it is in capitals."""
        return self._places.get(word, [])

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for index, token in enumerate(self.tokens):
            if token.kind is TokenKind.WORD:
                found.setdefault(token.word, []).append(index)
        return found

    @cached_property
    def semicolons(self) -> tuple[int, ...]:
        """The semicolons outside all brackets, which end statements."""
        return tuple(
            index
            for index, token in enumerate(self.tokens)
            if self.parent[index] < 0 and token.is_symbol(";")
        )

    def is_symbol(self, index: int, text: str) -> bool:
        """Whether the token at `index` exists and is this piece of punctuation."""
        return 0 <= index < len(self.tokens) and self.tokens[index].is_symbol(text)

    def is_name(self, index: int) -> bool:
        """Whether the token at `index` exists and can be a name."""
        return 0 <= index < len(self.tokens) and self.tokens[index].is_name

    def span(self, start: int, stop: int) -> Span:
        """The span from token `start` to the token before `stop`."""
        if start >= stop:
            at = self.tokens[start].start if start < len(self.tokens) else len(self.sql)
            return Span(at, at)
        return Span(self.tokens[start].start, self.tokens[stop - 1].stop)

    def text(self, start: int, stop: int) -> str:
        """The text of that span, including comments inside it."""
        span = self.span(start, stop)
        return self.sql[span.start : span.stop]

    def folded(self, start: int, stop: int) -> tuple[str, ...]:
        """The tokens of that range in a form for comparison: names and words in lower case, strings as
        written.
        """
        return tuple(one.text.lower() if one.is_name else one.text for one in self.tokens[start:stop])

    def level(self, start: int, stop: int) -> list[int]:
        """The tokens of a range outside any bracket opened in the range, including the brackets."""
        found, index = [], start
        while index < stop:
            found.append(index)
            if index in self.partner and self.partner[index] > index:
                index = self.partner[index]
                found.append(index)
            index += 1
        return found

    def split(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The ranges between the commas of a list; an empty range returns an empty list."""
        if start >= stop:
            return []
        commas = [index for index in self.level(start, stop) if self.tokens[index].is_symbol(",")]
        return list(zip([start, *(comma + 1 for comma in commas)], [*commas, stop], strict=True))


@lru_cache(maxsize=8)
def tokenize(sql: str) -> TokenList:
    """Read a text into tokens.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR`` for a string, identifier or comment that does not end, and for brackets
        that do not pair; ``FAILED_TO_PARSE_TOO_COMPLEX`` for brackets that are too deep for Spark.
    """
    tokens = _read(sql)
    partner, parent = _pair(sql, tokens)
    return TokenList(sql, tuple(tokens), partner, parent)


def without_comment(sql: str) -> str:
    """The text without the comment at its end.

    >>> without_comment("v > 3 -- hot")
    'v > 3'
    """
    tokens = tokenize(sql)
    return sql[: tokens[-1].stop] if len(tokens) else ""


def _read(sql: str) -> list[Token]:
    try:
        raw = _TOKENIZER.tokenize(sql)
    except TokenError as error:
        message = "text ends inside a string, a quoted identifier or a comment"
        raise ParseError(
            message, condition="PARSE_SYNTAX_ERROR", sql=sql, span=_unterminated(sql), hint="close the quote"
        ) from error
    tokens: list[Token] = []
    for item in raw:
        start, stop = item.start, item.end + 1
        if tokens and start < tokens[-1].stop:
            continue  # the suffix of a number, read as a cast
        kind = _kind(item.token_type, sql[start:stop])
        # sqlglot reads ORDER BY as one token
        words = re.finditer(r"\S+", sql[start:stop]) if kind is TokenKind.WORD else ()
        split = [Token(kind, word[0], start + word.start(), start + word.end()) for word in words]
        for token in split or [Token(kind, sql[start:stop], start, stop)]:
            whole = _joined(tokens[-1], token) if tokens else None
            if whole is not None:
                tokens.pop()
            tokens.append(whole or token)
    return tokens


def _joined(left: Token, right: Token) -> Token | None:
    """The single token that two of sqlglot's are in Spark: a shift operator, or .5 with its point."""
    if left.kind is not TokenKind.SYMBOL or left.stop != right.start:
        return None
    text = left.text + right.text
    if right.kind is TokenKind.NUMBER and left.text == "." and "." not in right.text:
        return Token(TokenKind.NUMBER, text, left.start, right.stop)
    if right.kind is TokenKind.SYMBOL and (left.text, right.text) in _JOINED:
        return Token(TokenKind.SYMBOL, text, left.start, right.stop)
    return None


def _kind(token_type: TokenType, text: str) -> TokenKind:
    if text[0] == "`":
        return TokenKind.QUOTED
    if token_type in _STRINGS:
        return TokenKind.STRING
    if token_type is TokenType.NUMBER:
        return TokenKind.NUMBER
    # Spark's names may begin with a digit
    return TokenKind.WORD if text[0].isalnum() or text[0] == "_" else TokenKind.SYMBOL


def _pair(sql: str, tokens: list[Token]) -> tuple[dict[int, int], tuple[int, ...]]:
    partner: dict[int, int] = {}
    parent: list[int] = []
    opened: list[int] = []
    for index, token in enumerate(tokens):
        closing = token.kind is TokenKind.SYMBOL and token.text in _OPENING.values()
        if closing:
            if not opened or _OPENING[tokens[opened[-1]].text] != token.text:
                raise ParseError(
                    f"bracket {token.text} has no matching opening bracket",
                    condition="PARSE_SYNTAX_ERROR",
                    sql=sql,
                    span=token.span,
                    hint="remove it, or add the opening bracket",
                )
            partner[index], partner[opened[-1]] = opened[-1], index
            opened.pop()
        parent.append(opened[-1] if opened else -1)
        if token.kind is TokenKind.SYMBOL and token.text in _OPENING:
            opened.append(index)
            if len(opened) > _DEEPEST:
                raise ParseError(
                    f"brackets are nested more than {_DEEPEST} deep",
                    condition="FAILED_TO_PARSE_TOO_COMPLEX",
                    sqlstate="54001",
                    sql=sql,
                    span=token.span,
                    hint="move a part of the query into a view",
                )
    if opened:
        token = tokens[opened[-1]]
        raise ParseError(
            f"bracket {token.text} is never closed",
            condition="PARSE_SYNTAX_ERROR",
            sql=sql,
            span=token.span,
            hint=f"add the missing {_OPENING[token.text]}",
        )
    return partner, tuple(parent)


def _unterminated(sql: str) -> Span:
    """The quote or comment that is not closed: the last one opened."""
    position, opened = 0, 0
    while position < len(sql):
        character = sql[position]
        if sql.startswith("--", position):
            end = sql.find("\n", position)
            position = len(sql) if end < 0 else end
        elif sql.startswith("/*", position):
            end = sql.find("*/", position + 2)
            if end < 0:
                return Span(position, position + 2)
            position = end + 2
        elif character in "'\"`":
            opened = position
            position += 1
            while position < len(sql) and sql[position] != character:
                position += 2 if sql[position] == "\\" and character != "`" else 1
            if position >= len(sql):
                return Span(opened, opened + 1)
            position += 1
        else:
            position += 1
    return Span(len(sql), len(sql))

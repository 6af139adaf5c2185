"""The parser of a row pattern, in the parentheses of PATTERN.

    pattern   := sequence { '|' sequence }
    sequence  := factor { factor }
    factor    := primary [ quantifier ]
    primary   := variable | '^' | '$' | '(' [ pattern ] ')' | '{-' pattern '-}'
               | PERMUTE '(' pattern { ',' pattern } ')'
    quantifier := ( '*' | '+' | '?' | '{' n '}' | '{' [n] ',' [m] '}' ) [ '?' ]

The standard defines the order of attempts: the left alternative first; for a quantifier more iterations
first, for a reluctant one fewer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.errors import AnalysisError, ParseError, Span
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = [
    "Alternation",
    "Anchor",
    "Concatenation",
    "Exclusion",
    "Pattern",
    "PatternVariable",
    "Permutation",
    "Quantified",
    "may_be_empty",
    "parse_pattern",
    "variables_of",
    "variables_written",
]

_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class PatternVariable:
    """A variable; `name` is in upper case unless it was quoted."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class Concatenation:
    """One part after the other; the empty pattern has none."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the parts, the first that leads to a match."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Permutation:
    """The alternation of all orders of the parts, in lexicographic order of their places in the text."""

    parts: tuple[Pattern, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Quantified:
    """From `low` to `high` (None: any number of) iterations of a part, `greedy` or reluctant."""

    part: Pattern
    low: int
    high: int | None
    greedy: bool


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A part whose rows are matched and not output under ALL ROWS PER MATCH."""

    part: Pattern
    span: Span


@dataclass(frozen=True, slots=True)
class Anchor:
    """The start of the partition, or its end."""

    is_start: bool


Pattern = PatternVariable | Concatenation | Alternation | Permutation | Quantified | Exclusion | Anchor


def parse_pattern(tokens: TokenList, opened: int) -> Pattern:
    """The pattern in the parentheses that token `opened` opens.

    Raises
    ------
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    AnalysisError
        ``INVALID_QUANTIFIER`` for ``{0}``, ``{,0}`` and ``{3,2}``,
        ``PATTERN_TOO_LONG``.
    """
    parser = _Parser(tokens, opened + 1, tokens.partner[opened])
    found = parser.alternation()
    if parser.at < parser.stop:
        parser.fail("the end of the pattern")
    return found


def variables_of(pattern: Pattern) -> dict[str, Span]:
    """The variables of a pattern in the order of their first occurrence, with its position."""
    found: dict[str, Span] = {}
    for variable in variables_written(pattern):
        found.setdefault(variable.name, variable.span)
    return found


def variables_written(pattern: Pattern) -> Iterator[PatternVariable]:
    """Every mention of a variable, in order."""
    match pattern:
        case PatternVariable():
            yield pattern
        case Concatenation(parts=parts) | Alternation(parts=parts) | Permutation(parts=parts):
            for part in parts:
                yield from variables_written(part)
        case Quantified(part=part) | Exclusion(part=part):
            yield from variables_written(part)
        case Anchor():
            return


def may_be_empty(pattern: Pattern) -> bool:
    """Whether a pattern may match no row."""
    match pattern:
        case Concatenation(parts=parts) | Permutation(parts=parts):
            return all(map(may_be_empty, parts))
        case Alternation(parts=parts):
            return any(map(may_be_empty, parts))
        case Quantified(part=part, low=low):
            return low == 0 or may_be_empty(part)
        case Exclusion(part=part):
            return may_be_empty(part)
    return isinstance(pattern, Anchor)


class _Parser:
    """A cursor over the tokens between the parentheses of PATTERN."""

    def __init__(self, tokens: TokenList, start: int, stop: int, depth: int = 0) -> None:
        self.tokens, self.at, self.stop, self.depth = tokens, start, stop, depth

    def symbol(self, ahead: int = 0) -> str:
        at = self.at + ahead
        if at >= self.stop or self.tokens[at].kind is not TokenKind.SYMBOL:
            return ""
        return self.tokens[at].text

    def take(self, symbol: str) -> bool:
        if self.symbol() != symbol:
            return False
        self.at += 1
        return True

    def alternation(self) -> Pattern:
        parts = [self.sequence()]
        while self.symbol() in ("|", "||"):
            if self.symbol() == "||":
                self.fail("a pattern between | and |, or () for the empty one")
            self.at += 1
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def sequence(self) -> Pattern:
        parts = []
        while self.begins_primary():
            parts.append(self.factor())
        if not parts:
            self.fail("a variable, or () for the empty pattern")
        return parts[0] if len(parts) == 1 else Concatenation(tuple(parts))

    def begins_primary(self) -> bool:
        if self.at >= self.stop:
            return False
        opens = self.symbol() == "{" and self.symbol(1) == "-"
        return self.tokens[self.at].is_name or self.symbol() in ("(", "^", "$") or opens

    def factor(self) -> Pattern:
        primary = self.primary()
        first = self.at
        bounds = self.quantifier()
        if bounds is None:
            return primary
        low, high, greedy = bounds
        if high is not None and (high == 0 or high < low):
            raise AnalysisError(
                "quantifier allows no iteration"
                if high == 0
                else f"quantifier goes from {low} down to {high}",
                condition="INVALID_QUANTIFIER",
                sqlstate="42601",
                sql=self.tokens.sql,
                span=self.tokens.span(first, self.at),
                hint="write the smaller number first, and at least 1 after the comma",
            )
        if self.symbol() in ("*", "+", "?", "??", "{") and not (
            self.symbol() == "{" and self.symbol(1) == "-"
        ):
            self.fail("a variable: quantifiers follow each other only around parentheses")
        return Quantified(primary, low, high, greedy)

    def quantifier(self) -> tuple[int, int | None, bool] | None:
        symbol = self.symbol()
        if symbol == "??":
            self.at += 1
            return 0, 1, False
        if symbol in ("*", "+", "?"):
            self.at += 1
            low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}[symbol]
            return low, high, not self.take("?")
        if symbol != "{" or self.symbol(1) == "-":
            return None
        self.at += 1
        least = self.number()
        most = least
        if self.take(","):
            most = self.number()
        elif least is None:
            self.fail("a number")
        if not self.take("}"):
            self.fail("}")
        return least or 0, most, not self.take("?")

    def number(self) -> int | None:
        token = self.tokens[self.at]
        if self.at >= self.stop or token.kind is not TokenKind.NUMBER or not token.text.isdigit():
            return None
        self.at += 1
        return int(token.text)

    def primary(self) -> Pattern:
        token = self.tokens[self.at]
        if self.take("^"):
            return Anchor(True)
        if self.take("$"):
            return Anchor(False)
        if self.symbol() == "(":
            return self.parenthesised()
        if self.symbol() == "{":
            return self.exclusion()
        if token.word == "PERMUTE" and self.symbol(1) == "(":
            return self.permutation()
        self.at += 1
        return PatternVariable(
            token.name if token.kind is TokenKind.QUOTED else token.name.upper(), token.span
        )

    def parenthesised(self) -> Pattern:
        first, close = self.at + 1, self.tokens.partner[self.at]
        self.at, last = close + 1, close
        while self.tokens.is_symbol(first, "(") and self.tokens.partner[first] == last - 1:
            first, last = first + 1, last - 1
        return Concatenation(()) if first == last else self.inside(first, last)

    def inside(self, start: int, stop: int) -> Pattern:
        """The pattern between two tokens."""
        self.refuse_depth(start - 1)
        inner = _Parser(self.tokens, start, stop, self.depth + 1)
        found = inner.alternation()
        if inner.at < stop:
            inner.fail("the end of the parentheses")
        return found

    def refuse_depth(self, at: int) -> None:
        if self.depth == _DEEPEST:
            raise AnalysisError(
                f"parentheses and exclusions are nested more than {_DEEPEST} deep",
                condition="PATTERN_TOO_LONG",
                sqlstate="54001",
                sql=self.tokens.sql,
                span=self.tokens[at].span,
                hint="write the pattern with fewer parentheses",
            )

    def exclusion(self) -> Pattern:
        self.refuse_depth(self.at)
        span = self.tokens.span(self.at, self.at + 2)
        self.at, self.depth = self.at + 2, self.depth + 1
        part = self.alternation()
        self.depth -= 1
        if not (self.symbol() == "-" and self.symbol(1) == "}"):
            self.fail("-}")
        self.at += 2
        return Exclusion(part, span)

    def permutation(self) -> Pattern:
        first = self.at
        close = self.tokens.partner[self.at + 1]
        ranges = self.permuted(self.at + 2, close)
        if not ranges:
            self.at = close
            self.fail("a variable")
        parts = tuple(self.inside(*item) for item in ranges)
        self.at = close + 1
        return Permutation(parts, self.tokens.span(first, self.at))

    def permuted(self, start: int, stop: int) -> list[tuple[int, int]]:
        """The ranges between the commas of a list, except commas in braces."""
        depth, cuts = 0, []
        for index in self.tokens.level(start, stop):
            depth += self.tokens.is_symbol(index, "{") - self.tokens.is_symbol(index, "}")
            if not depth and self.tokens.is_symbol(index, ","):
                cuts.append(index)
        ends = zip([start, *(cut + 1 for cut in cuts)], [*cuts, stop], strict=True)
        return list(ends) if start < stop else []

    def fail(self, expected: str) -> None:
        self.refuse_length()
        at_end = self.at >= self.stop
        found = "the end" if at_end else self.tokens[self.at].text
        raise ParseError(
            f"expected {expected} in PATTERN, found {found}",
            condition="PARSE_SYNTAX_ERROR",
            sql=self.tokens.sql,
            span=self.tokens[min(self.at, len(self.tokens) - 1)].span,
            hint="write variables one after the other, as A B; only PERMUTE (A, B) has commas"
            if found == ","
            else "write a pattern of variables, ( ), |, quantifiers, ^, $, {- -} and PERMUTE",
        )

    def refuse_length(self) -> None:
        """Refuse WITHIN and its length between the parentheses."""
        tokens, word = self.tokens, self.at - 1
        while tokens.word(word) in ("INTERVAL", "INCLUSIVE"):
            word -= 1
        is_value = tokens[self.at].kind in (TokenKind.NUMBER, TokenKind.STRING) or self.symbol() == ":"
        if self.at < self.stop and is_value and tokens.word(word) == "WITHIN":
            raise ParseError(
                "WITHIN must follow the parentheses of PATTERN",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens.span(word, self.stop),
                hint=f"write PATTERN (…) {' '.join(tokens.text(word, self.stop).split())}",
            )

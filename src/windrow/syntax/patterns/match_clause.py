"""The parser of a MATCH_RECOGNIZE clause.

    relation MATCH_RECOGNIZE (
        [PARTITION BY expr [AS name], …]
        ORDER BY expr [ASC|DESC] [NULLS FIRST|LAST], …
        [MEASURES expr AS name, …]
        [ONE ROW PER MATCH [SHOW EMPTY MATCHES]
         | ALL ROWS PER MATCH [SHOW EMPTY MATCHES | OMIT EMPTY MATCHES | WITH UNMATCHED ROWS]]
        [ALL MATCHES | AFTER MATCH SKIP PAST LAST ROW | TO NEXT ROW | TO [FIRST|LAST] variable]
        [INCLUDE TIMER EVENTS]
        PATTERN ( pattern ) [WITHIN [INCLUSIVE] duration | DURATION duration]
        [SUBSET name = (variable, …), …]
        DEFINE variable AS condition, … )

and of the similar clause in a window of OVER, which has a frame:

    ( [name] [PARTITION BY …] ORDER BY … [MEASURES …]
      ROWS BETWEEN CURRENT ROW AND { CURRENT ROW | n FOLLOWING | UNBOUNDED FOLLOWING } [EXCLUDE NO OTHERS]
      [AFTER MATCH SKIP …] [INITIAL | SEEK] PATTERN ( pattern ) [WITHIN …] [SUBSET …] DEFINE … )

None of these words is reserved. A part begins at its words, unless an operand is missing before them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from windrow.errors import AnalysisError, NotSupportedError, ParseError, Span, did_you_mean
from windrow.syntax.cursor import Cursor
from windrow.syntax.expression_nodes import names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.lengths import Length, LengthReader
from windrow.syntax.nodes import Range
from windrow.syntax.order_by import order_item
from windrow.syntax.patterns.match_names import check_names
from windrow.syntax.patterns.match_nodes import FrameClause, MatchClause, Named, Skip, Subset, variable_name
from windrow.syntax.patterns.row_patterns import (
    parse_pattern,
)
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import Token, TokenKind, TokenList

__all__ = ["parse_match_clause", "parse_pattern_window"]

_PARTS = ("AFTER", "PATTERN", "SUBSET", "DEFINE")  # that may stand after the measures

_ORDER = (
    "PARTITION BY, ORDER BY, MEASURES, ROWS PER MATCH, AFTER MATCH or ALL MATCHES, PATTERN, "
    "WITHIN or DURATION, SUBSET, DEFINE"
)
_OPERATORS = {
    "AND",
    "OR",
    "NOT",
    "IN",
    "BETWEEN",
    "LIKE",
    "ILIKE",
    "RLIKE",
    "REGEXP",
    "DIV",
    "AS",
    "BY",
    "IS",
}


_FRAMES = ("ROWS", "RANGE", "GROUPS")
_FRAME_ORDER = (
    "PARTITION BY, ORDER BY, MEASURES, ROWS BETWEEN, AFTER MATCH, INITIAL or SEEK, PATTERN, WITHIN, "
    "SUBSET, DEFINE"
)


def parse_match_clause(tokens: TokenList, word: int) -> MatchClause:
    """Parse the clause whose MATCH_RECOGNIZE stands at token `word`; raises as `find_matches` does."""
    return _Parser(tokens, word).clause()


def parse_pattern_window(tokens: TokenList, opened: int, named: Mapping[str, int]) -> MatchClause:
    """Parse the window of OVER in the parentheses that open at token `opened`.

    It may begin with a window of those that are `named`: where they open, by names in lower case. Raises as
    `find_pattern_windows` does.
    """
    return _WindowParser(tokens, opened - 1, named).clause()


class _Parser(Cursor):
    what, order = "MATCH_RECOGNIZE", _ORDER

    def __init__(self, tokens: TokenList, word: int) -> None:
        self.first = word
        super().__init__(tokens, word + 2, tokens.partner[word + 1])

    def clause(self) -> MatchClause:
        keys = [self.named_key(item) for item in self.list_after("PARTITION", "BY")]
        partition_by = tuple(key for key, _ in keys)
        ordered = self.list_after("ORDER", "BY")
        unordered_at = None if ordered else self.place_of_order()
        measures = tuple(self.measure(item) for item in self.list_after("MEASURES"))
        all_rows, shows_empty, with_unmatched = self.rows_per_match()
        skip_at = self.at
        skip = self.skip()
        every = self.all_matches(skip_at)
        timers_at = self.at
        timers = self.timer_events()
        pattern_at = self.pattern_at()
        pattern = parse_pattern(self.tokens, pattern_at[0])
        within, inclusive = self.within()
        duration = self.duration(within)
        if timers and duration is None:
            hint = "add DURATION and a time after PATTERN (…), or leave INCLUDE TIMER EVENTS out"
            raise self.misplaced("INCLUDE TIMER EVENTS needs DURATION", (timers_at, timers_at + 3), hint)
        subsets = self.subsets()
        defines = self.defines()
        clause = MatchClause(
            self.tokens.span(self.first, self.stop + 1), self.tokens[self.first].span,
            partition_by, tuple(order_item(self.tokens, item) for item in ordered), measures,
            all_rows, shows_empty, with_unmatched, skip, pattern, pattern_at, within, inclusive,
            subsets, defines, every, duration, key_names=tuple(name for _, name in keys),
        )  # fmt: skip
        check_names(self.tokens, clause)
        return clause if unordered_at is None else replace(clause, unordered_at=unordered_at)

    # -- parts, in the order of the grammar ------------------------------------------------------

    def list_after(self, *words: str) -> list[Range]:
        """The items of a comma-separated list after these words; none if the words are not here."""
        if not self.words(*words):
            return []
        self.at += len(words)
        end = self.end_of_part()
        for at in self.tokens.level(self.at + 1, end):
            if self.tokens.word(at) in ("WITHIN", "DURATION") and self.begins_length(at, end):
                word = self.tokens[at].text
                hint = f"move it after PATTERN (…); the order is {self.order}"
                raise self.misplaced(f"{word} must follow PATTERN", (at, at + 1), hint)
        return self.listed(" ".join(words), end)

    def begins_length(self, at: int, end: int) -> bool:
        """Whether a length of time follows a word after a value."""
        if at + 1 >= end or self.wants_operand(at - 1) or self.tokens.is_symbol(at - 1, ","):
            return False
        following = self.tokens[at + 1]
        return following.kind is TokenKind.NUMBER or following.word in ("INTERVAL", "INCLUSIVE")

    def named_key(self, item: Range) -> tuple[Range, str | None]:
        """A key of PARTITION BY, and its alias."""
        start, stop = item
        named = stop - start > 2 and self.tokens.word(stop - 2) == "AS" and self.tokens[stop - 1].is_name
        return ((start, stop - 2), self.tokens[stop - 1].name) if named else (item, None)

    def place_of_order(self) -> Span:
        """The position where ORDER BY is missing."""
        if not self.begins_part(self.at) and self.at < self.stop:
            self.fail(["PARTITION BY", "ORDER BY"])
        return self.here()

    def measure(self, item: Range) -> Named:
        start, stop = item
        named = stop - start > 2 and self.tokens.word(stop - 2) == "AS" and self.tokens[stop - 1].is_name
        if not named:
            for at in range(start + 1, stop):
                if (hint := did_you_mean(self.tokens.word(at), _PARTS, is_word=True)) is not None:
                    raise ParseError(
                        f"{self.tokens[at].text} is not a clause of MATCH_RECOGNIZE",
                        condition="PARSE_SYNTAX_ERROR",
                        sql=self.tokens.sql,
                        span=self.tokens[at].span,
                        hint=hint,
                    )
            raise ParseError(
                "measure has no name",
                condition="PARSE_SYNTAX_ERROR",
                sql=self.tokens.sql,
                span=self.tokens.span(start, stop),
                hint="write expression AS name",
            )
        early = next((at for at in self.tokens.level(start, stop - 2) if self.tokens.word(at) == "AS"), None)
        if early is not None and early > start and not self.tokens.is_symbol(early - 1, "."):
            follows = min(early + 2, stop - 1)
            hint = f"is a comma missing? write a comma before {self.tokens[follows].text}"
            raise self.misplaced("measure has two names", (follows, follows + 1), hint)
        token = self.tokens[stop - 1]
        return Named(token.name, token.span, (start, stop - 2))

    def rows_per_match(self) -> tuple[bool, bool, bool]:
        """Whether the output has all rows, empty matches, and unmatched rows."""
        if self.words("ONE", "ROW", "PER") or self.words("ALL", "ROWS", "PER"):
            is_whole = self.tokens.word(self.at + 3) == "MATCH"
            self.at += 0 if is_whole else 3
            if not is_whole:
                self.fail(["MATCH"])
        if self.words("ONE", "ROW", "PER", "MATCH"):
            self.at += 4
            if self.words("SHOW", "EMPTY", "MATCHES"):
                self.at += 3
            return False, True, False
        if not self.words("ALL", "ROWS", "PER", "MATCH"):
            return False, True, False
        self.at += 4
        if self.words("SHOW", "EMPTY", "MATCHES"):
            self.at += 3
        elif self.words("OMIT", "EMPTY", "MATCHES"):
            self.at += 3
            return True, False, False
        elif self.words("WITH", "UNMATCHED", "ROWS"):
            self.at += 3
            return True, True, True
        return True, True, False

    def skip(self) -> Skip:
        first = self.at
        if not self.words("AFTER", "MATCH"):
            return Skip("past last", None, self.here())
        self.at += 2
        if not self.words("SKIP"):
            self.fail(["SKIP"])
        self.at += 1
        if self.words("PAST", "LAST", "ROW"):
            self.at += 3
            return Skip("past last", None, self.tokens.span(first, self.at))
        if not self.words("TO"):
            self.fail(["PAST LAST ROW", "TO"])
        self.at += 1
        if self.words("NEXT", "ROW"):
            self.at += 2
            return Skip("next", None, self.tokens.span(first, self.at))
        kind = "last"
        if self.word() in ("FIRST", "LAST") and self.at + 1 < self.stop and self.tokens[self.at + 1].is_name:
            follows = self.tokens.word(self.at + 1)
            if not (follows == "PATTERN" and self.tokens.is_symbol(self.at + 2, "(")):
                kind = self.word().lower()
                self.at += 1
        if self.at >= self.stop or not self.tokens[self.at].is_name:
            self.fail(["NEXT ROW", "FIRST", "LAST", "a variable"])
        token = self.tokens[self.at]
        self.at += 1
        return Skip(kind, variable_name(token), token.span)

    def all_matches(self, skip_at: int) -> bool:
        if self.word() in ("INITIAL", "SEEK"):
            self.fail(["PATTERN"], "leave it out: INITIAL and SEEK apply only to patterns of OVER windows")
        if not self.words("ALL", "MATCHES"):
            return False
        if skip_at < self.at:
            hint = "leave AFTER MATCH SKIP out: ALL MATCHES also finds matches that overlap"
            raise self.misplaced(
                "ALL MATCHES cannot be combined with AFTER MATCH SKIP", (self.at, self.at + 2), hint
            )
        self.at += 2
        return True

    def timer_events(self) -> bool:
        """Whether CQL's words that go with DURATION are here."""
        stands = self.words("INCLUDE", "TIMER", "EVENTS")
        self.at += 3 * stands
        return stands

    def misplaced(self, message: str, where: Range, hint: str) -> ParseError:
        return ParseError(
            message,
            condition="PARSE_SYNTAX_ERROR",
            sql=self.tokens.sql,
            span=self.tokens.span(*where),
            hint=hint,
        )

    def pattern_at(self) -> Range:
        if self.word() == "PATTERN" and self.tokens.is_symbol(self.at + 1, "("):
            opened = self.at + 1
            self.at = self.tokens.partner[opened] + 1
            return opened, self.at
        stands_later = any(
            self.tokens.word(index) == "PATTERN" and self.begins_part(index)
            for index in self.tokens.level(self.at, self.stop)
        )
        if stands_later:
            self.fail(["PATTERN"], f"use the order {self.order}")
        if self.at < self.stop and not self.begins_part(self.at):
            self.fail(["PATTERN"])
        raise ParseError(
            f"{self.what} has no PATTERN",
            condition="MISSING_PATTERN",
            sql=self.tokens.sql,
            span=self.here(),
            hint=f"add PATTERN (…); the order is {self.order}",
        )

    def within(self) -> tuple[Length | None, bool]:
        if self.word() != "WITHIN":
            return None, False
        self.at += 1
        inclusive = self.word() == "INCLUSIVE"
        self.at += inclusive
        for at in range(self.at, self.end_of_part()):
            if self.tokens.word(at) == "INCLUSIVE":
                hint = "write WITHIN INCLUSIVE, then the length"
                raise self.misplaced("INCLUSIVE must follow WITHIN", (at, at + 1), hint)
        return self.length(), inclusive

    def duration(self, within: Length | None) -> Length | None:
        if self.word() != "DURATION":
            return None
        if within is not None:
            raise self.two_lengths()
        self.at += 1
        if self.words("MULTIPLES", "OF"):
            raise NotSupportedError(
                "DURATION MULTIPLES OF in MATCH_RECOGNIZE is not supported",
                condition="UNSUPPORTED_CLAUSE",
                sql=self.tokens.sql,
                span=self.tokens.span(self.at, self.at + 2),
                hint="write DURATION, which matches once",
            )
        found = self.length()
        if self.word() == "WITHIN":
            raise self.two_lengths()
        return found

    def two_lengths(self) -> ParseError:
        hint = "choose one: WITHIN leaves out matches that last longer, DURATION waits until the time is over"
        return self.misplaced("WITHIN cannot be combined with DURATION", (self.at, self.at + 1), hint)

    def length(self) -> Length:
        """A length of time, or of numeric keys."""
        start = self.at
        stop = start if self.begins_part(start) else self.end_of_part()
        if start == stop:
            self.fail(["a duration, such as INTERVAL 5 MINUTES"])
        hint = "write INTERVAL 5 MINUTES, or a column of the match's first row"
        reader = LengthReader(self.tokens, start, stop, f"in {self.what}", ("WITHIN", "DURATION"), hint)
        found = reader.length(least=0)
        self.at = found.tokens[1]
        if found.is_evaluated or any(subqueries(self.tokens, found.value)):
            return found
        return replace(found, reads_row=any(names_in(parse_expression(self.tokens, *found.value))))

    def subsets(self) -> tuple[Subset, ...]:
        found = []
        for start, stop in self.list_after("SUBSET"):
            tokens = self.tokens
            shaped = (
                tokens[start].is_name
                and tokens.is_symbol(start + 1, "=")
                and tokens.is_symbol(start + 2, "(")
                and tokens.partner[start + 2] == stop - 1
            )
            members = tokens.split(start + 3, stop - 1) if shaped else []
            if not members or not all(last == first + 1 and tokens[first].is_name for first, last in members):
                raise ParseError(
                    "expected name = (variable, …) after SUBSET",
                    condition="PARSE_SYNTAX_ERROR",
                    sql=tokens.sql,
                    span=tokens.span(start, stop),
                    hint="write SUBSET u = (a, b)",
                )
            names = tuple(variable_name(tokens[first]) for first, _ in members)
            found.append(Subset(variable_name(tokens[start]), tokens[start].span, names))
        return tuple(found)

    def defines(self) -> tuple[Named, ...]:
        if self.word() != "DEFINE":
            if self.at < self.stop:
                self.fail(["DEFINE"])
            raise ParseError(
                f"{self.what} has no DEFINE",
                condition="MISSING_DEFINE",
                sql=self.tokens.sql,
                span=self.here(),
                hint="add DEFINE variable AS condition; a variable without one matches any row",
            )
        found = []
        for start, stop in self.list_after("DEFINE"):
            token = self.tokens[start]
            if not token.is_name or self.tokens.word(start + 1) != "AS" or stop < start + 3:
                raise ParseError(
                    "expected variable AS condition after DEFINE",
                    condition="PARSE_SYNTAX_ERROR",
                    sql=self.tokens.sql,
                    span=self.tokens.span(start, stop),
                    hint="write DEFINE a AS a.x > 1, b AS b.x < a.x",
                )
            found.append(Named(variable_name(token), token.span, (start + 2, stop)))
        return tuple(found)

    def end_of_part(self) -> int:
        """The token at which the next part of the clause begins."""
        for index in self.tokens.level(self.at, self.stop):
            if index > self.at and self.begins_part(index) and not self.wants_operand(index - 1):
                return index
        return self.stop

    def wants_operand(self, index: int) -> bool:
        """Whether an expression cannot end with this token."""
        token = self.tokens[index]
        qualified = self.tokens.is_symbol(index - 1, ".")
        if token.word in _OPERATORS and not qualified:
            # a measure may be called like an operator
            return self.tokens.word(index - 1) != "AS"
        return token.kind is TokenKind.SYMBOL and token.text not in (")", "]", "?", ",")

    def begins_part(self, index: int) -> bool:
        tokens = self.tokens
        word, following = tokens.word(index), tokens.word(index + 1) if index + 1 < self.stop else ""
        match word:
            case "PARTITION" | "ORDER":
                return following == "BY"
            case "ONE" | "ALL":
                return following in ("ROW", "ROWS", "MATCHES") and tokens.word(index + 2) in (
                    "PER",
                    "PATTERN",
                    "INCLUDE",
                )
            case "INCLUDE":
                return following == "TIMER"
            case "AFTER":
                return following == "MATCH"
            case "PATTERN":
                return tokens.is_symbol(index + 1, "(")
            case "SUBSET":
                return (
                    bool(following) and tokens.is_symbol(index + 2, "=") and tokens.is_symbol(index + 3, "(")
                )
            case "DEFINE":
                return index + 1 < self.stop and tokens[index + 1].is_name and tokens.word(index + 2) == "AS"
            case "MEASURES":
                return index + 1 < self.stop and not tokens.is_symbol(index + 1, ".")
            case "INITIAL" | "SEEK":
                return following == "PATTERN"
            case _:
                return False

    def fail(self, expected: list[str], hint: str | None = None) -> NoReturn:
        found = "the end of the clause" if self.at >= self.stop else self.tokens[self.at].text
        raise ParseError(
            f"expected {' or '.join(expected)} in {self.what}, found {found}",
            condition="PARSE_SYNTAX_ERROR",
            sql=self.tokens.sql,
            span=self.here(),
            hint=hint or did_you_mean(found, expected) or f"use the order {self.order}",
        )


class _WindowParser(_Parser):
    """The parser of a window of OVER."""

    what, order = "a window with a pattern", _FRAME_ORDER

    def __init__(self, tokens: TokenList, word: int, named: Mapping[str, int]) -> None:
        super().__init__(tokens, word)
        self.named = named

    def keys(self) -> tuple[list[Range], list[Range]]:
        """PARTITION BY and ORDER BY, of the named window at its beginning or written out."""
        base: tuple[list[Range], list[Range]] = ([], [])
        at, token = self.at, self.tokens[self.at]
        follows = self.begins_part(at + 1) or self.tokens.word(at + 1) in _FRAMES
        if at < self.stop and token.is_name and follows and not self.begins_part(at):
            others = {name: opened for name, opened in self.named.items() if name != token.name.lower()}
            if len(others) == len(self.named):
                raise AnalysisError(
                    f"window {token.name} is not defined",
                    condition="MISSING_WINDOW_SPECIFICATION",
                    sqlstate="42P20",
                    sql=self.tokens.sql,
                    span=token.span,
                    hint=did_you_mean(token.name, list(self.named))
                    or "write PARTITION BY and ORDER BY instead of the name",
                )
            named = _WindowParser(self.tokens, self.named[token.name.lower()] - 1, others)
            base = named.keys()
            if named.at < named.stop:
                raise self.framed(token)
            self.at += 1
        found = []
        for word, inherited in zip(("PARTITION", "ORDER"), base, strict=True):
            if self.words(word, "BY") and (inherited or (word == "PARTITION" and self.at > at)):
                hint = f"leave out {word} BY, or the name of the window"
                message = f"a window that refines a named window cannot have {word} BY"
                raise self.misplaced(message, (self.at, self.at + 2), hint)
            found.append(self.list_after(word, "BY") or inherited)
        return found[0], found[1]

    def clause(self) -> MatchClause:
        partition_by, ordered = self.keys()
        unordered_at = None if ordered else self.place_of_order()
        measures = tuple(self.measure(item) for item in self.list_after("MEASURES"))
        following = self.frame()
        skip = self.skip()
        seek = self.words("SEEK")
        self.at += seek or self.words("INITIAL")
        pattern_at = self.pattern_at()
        pattern = parse_pattern(self.tokens, pattern_at[0])
        within, inclusive = self.within()
        subsets = self.subsets()
        defines = self.defines()
        clause = MatchClause(
            self.tokens.span(self.first + 1, self.stop + 1), self.tokens[self.first].span,
            tuple(partition_by), tuple(order_item(self.tokens, item) for item in ordered), measures,
            False, True, True, skip, pattern, pattern_at, within, inclusive, subsets, defines,
            frame=FrameClause(following, seek), unordered_at=unordered_at,
        )  # fmt: skip
        check_names(self.tokens, clause)
        self.refuse_anchors(pattern_at)
        return clause

    def frame(self) -> int | None:
        """How many rows after the current one the frame has, None for all."""
        first = self.at
        if not self.words("ROWS", "BETWEEN", "CURRENT", "ROW", "AND"):
            end = (
                max(self.end_of_part(), self.at + 1)
                if self.word() in ("ROWS", "RANGE", "GROUPS")
                else self.at + 1
            )
            raise self.invalid_frame("has no frame, or an unsupported one", (first, end))
        self.at += 5
        if self.words("CURRENT", "ROW"):
            following: int | None = 0
        elif self.words("UNBOUNDED", "FOLLOWING"):
            following = None
        elif (
            self.at < self.stop
            and self.tokens[self.at].text.isdigit()
            and self.tokens.word(self.at + 1) == "FOLLOWING"
        ):
            following = int(self.tokens[self.at].text)
        else:
            raise self.invalid_frame(
                "has a frame with an unsupported end", (self.at, max(self.end_of_part(), self.at + 1))
            )
        self.at += 2
        if self.words("EXCLUDE"):
            if not self.words("EXCLUDE", "NO", "OTHERS"):
                raise self.invalid_frame("excludes rows from its frame", (self.at, self.at + 2))
            self.at += 3
        return following

    def framed(self, name: Token) -> AnalysisError:
        """The error for a window that refines one with a frame, which SQL does not allow."""
        return AnalysisError(
            f"window {name.name} has a frame, so no other window can refine it",
            condition="INVALID_PATTERN_FRAME",
            sqlstate="42601",
            sql=self.tokens.sql,
            span=name.span,
            hint="write its PARTITION BY and ORDER BY instead of its name, or name a window without a frame",
        )

    def invalid_frame(self, what: str, where: Range) -> AnalysisError:
        return AnalysisError(
            f"window with a pattern {what}",
            condition="INVALID_PATTERN_FRAME",
            sqlstate="42601",
            sql=self.tokens.sql,
            span=self.tokens.span(*where),
            hint="write ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING, 5 FOLLOWING, or CURRENT ROW",
        )

    def refuse_anchors(self, pattern_at: Range) -> None:
        anchors = (
            at
            for at in range(*pattern_at)
            if self.tokens.is_symbol(at, "^") or self.tokens.is_symbol(at, "$")
        )
        for at in anchors:
            raise AnalysisError(
                f"the pattern of a window cannot have the anchor {self.tokens[at].text}",
                condition="ANCHOR_IN_WINDOW",
                sqlstate="42601",
                sql=self.tokens.sql,
                span=self.tokens[at].span,
                hint="leave it out: the search begins at the current row",
            )

    def begins_part(self, index: int) -> bool:
        frame = self.tokens.word(index) in ("ROWS", "RANGE", "GROUPS") and index + 1 < self.stop
        return (frame and self.tokens[index + 1].is_name) or super().begins_part(index)

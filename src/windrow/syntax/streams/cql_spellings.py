"""The dialect of CQL, rewritten in Spark SQL: `||`, sysdate, strings in double quotes and times.

    c2 || "xyz"  →  NULLIF(CONCAT(COALESCE(CAST(c2 AS STRING), ''), COALESCE(CAST('xyz' AS STRING), '')), '')

`+`, `-` and `||` have one level of precedence, from left to right, in CQL as in Spark. So the operands of
`||` are found by parsing no more of an expression than its operands: everything under another operator stays
the original text, with its comments and positions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from windrow.syntax.cql_clauses import TO_STREAM
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import Token, TokenKind, TokenList

__all__ = ["DIALECTS", "in_spark"]

DIALECTS = ("spark", "cql")
"""The dialects of a session's expressions."""

# words after which an expression begins, so that they are no operands themselves
_BEFORE = {
    "SELECT", "DISTINCT", "ALL", "FROM", "JOIN", "ON", "USING", "WHERE", "GROUP", "ORDER", "BY", "HAVING",
    "QUALIFY", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT", "MINUS", "AND", "OR", "NOT", "IN",
    "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "ESCAPE", "IS", "WHEN", "THEN", "ELSE", "END", "AS",
    "VALUES", "SET", "RETURN", "LET", "FOR", "BOTH", "LEADING", "TRAILING", "DIV", "INTO", "DEFAULT",
    "RANGE", "ROWS", "SLIDE", "ISTREAM", "DSTREAM", "RSTREAM",
}  # fmt: skip
_TIMES = {"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ"}
_TYPED = _TIMES | {"TIME", "X", "B"}
_ENDS_SELECT = {
    "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "LIMIT", "OFFSET", "WINDOW",
    "QUALIFY", "LATERAL", "UNION", "EXCEPT", "INTERSECT", "MINUS", "INTO",
}  # fmt: skip
_SEVERAL = {"EXPLODE", "EXPLODE_OUTER", "POSEXPLODE", "POSEXPLODE_OUTER", "INLINE", "INLINE_OUTER", "STACK",
            "JSON_TUPLE", "TRANSFORM", "VARIANT_EXPLODE", "VARIANT_EXPLODE_OUTER"}  # fmt: skip
_AMERICAN = re.compile(r"(\d\d)/(\d\d)/(\d{4})( \d\d:\d\d:\d\d(?:\.\d{1,6})?)?")
_OPEN, _NEXT, _CLOSE = (
    "NULLIF(CONCAT(COALESCE(CAST(",
    " AS STRING), ''), COALESCE(CAST(",
    " AS STRING), '')), '')",
)


def in_spark(tokens: TokenList) -> SqlText | None:
    """The text in Spark SQL, or None if it is that already.

    - `a || b` is NULL only where both are: NULL and '' add nothing, and of nothing it is NULL. Its operands
      are read as text. Where it makes a column without a name, the column is called as it is written.
    - `sysdate` is `current_timestamp()`.
    - A string may stand in double quotes, whatever Spark's settings say of them.
    - `TIMESTAMP '08/07/2004 11:13:48'`, `CAST('08/07/2004 11:13:48' AS TIMESTAMP)` and the same of DATE have
      the month first.
    """
    return _Translator(tokens).text()


class _Translator:
    """Finds the texts to rewrite: words before and after tokens, and replacements of them."""

    def __init__(self, tokens: TokenList) -> None:
        self.tokens = tokens
        self.before: dict[int, str] = {}
        self.after: dict[int, str] = {}
        self.instead: dict[int, str] = {}

    def text(self) -> SqlText | None:
        self._quote()
        unread: list[Range] = [(0, len(self.tokens))]
        while unread:
            at, stop = unread.pop()
            while at < stop:
                found = self._chain(at, stop)
                at = found[0] if found is not None else at + 1
                unread += found[1] if found is not None else []
        for item in self._items():
            self._name(*item)
        if not (self.before or self.instead):
            return None
        return SqlText.of(*self._parts())

    def _quote(self) -> None:
        """Write strings in single quotes; `"a""b"`, one string, is two tokens."""
        first, inside = 0, ""
        for index, token in enumerate(self.tokens.tokens):
            if token.kind is not TokenKind.STRING or not token.text.startswith('"'):
                continue
            if index - 1 in self.instead and self.tokens[index - 1].stop == token.start:
                inside += '"' + token.text[1:-1]
                self.instead[index] = ""
            else:
                first, inside = index, token.text[1:-1]
            self.instead[first] = _single_quoted(inside)

    def _parts(self) -> Iterator[str | Piece]:
        sql, at = self.tokens.sql, 0
        for index, token in enumerate(self.tokens.tokens):
            if not (index in self.before or index in self.after or index in self.instead):
                continue
            yield Piece(sql[at : token.start], sql, at)
            yield self.before.get(index, "")
            if index in self.instead:
                yield Piece(self.instead[index], sql, token.start, len(token.text))
            else:
                yield Piece(token.text, sql, token.start)
            yield self.after.get(index, "")
            at = token.stop
        yield Piece(sql[at:], sql, at)

    # -- operands, each of which ends before a token, with the stretches in its brackets ----------------

    def _chain(self, start: int, stop: int) -> tuple[int, list[Range]] | None:
        """The operands of `+`, `-` and `||` from a token on."""
        first = self._product(start, stop)
        if first is None:
            return None
        at, inside = first
        ends: list[int] = []  # of stretches that `||` joins, with no + and - between
        joined = False
        while (
            at < stop
            and self.tokens[at].kind is TokenKind.SYMBOL
            and self.tokens[at].text in ("+", "-", "||")
        ):
            found = self._product(at + 1, stop)
            if found is None:
                break
            if self.tokens[at].text == "||":
                self.instead[at] = _NEXT
                ends = [*(ends[:-1] if joined else ends), found[0] - 1]
            joined = self.tokens[at].text == "||"
            at = found[0]
            inside += found[1]
        if ends:
            self.before[start] = _OPEN * len(ends)
            self.after |= dict.fromkeys(ends, _CLOSE)
        return at, inside

    def _product(self, start: int, stop: int) -> tuple[int, list[Range]] | None:
        found = self._operand(start, stop)
        while found is not None and found[0] < stop:
            at, inside = found
            token = self.tokens[at]
            if not (
                (token.kind is TokenKind.SYMBOL and token.text in ("*", "/", "%")) or token.word == "DIV"
            ):
                break
            factor = self._operand(at + 1, stop)
            if factor is None:
                break
            found = factor[0], inside + factor[1]
        return found

    def _operand(self, start: int, stop: int) -> tuple[int, list[Range]] | None:
        tokens = self.tokens
        at = min(self.behind_signs[start], stop) if start < stop else stop
        if at >= stop or tokens[at].word in _BEFORE:
            return None
        token = tokens[at]
        if token.is_symbol("("):
            return self._postfixes(tokens.partner[at] + 1, stop, [(at + 1, tokens.partner[at])])
        if token.is_symbol(":"):
            return self._postfixes(at + 2, stop, []) if at + 1 < stop and tokens[at + 1].is_name else None
        if token.kind is TokenKind.STRING:
            while at < stop and tokens[at].kind is TokenKind.STRING:
                at += 1
            return self._postfixes(at, stop, [])
        if token.kind is TokenKind.NUMBER or token.is_symbol("?"):
            return self._postfixes(at + 1, stop, [])
        if not token.is_name:
            return None
        if token.word == "CASE" and (end := self._end_of_case(at, stop)) is not None:
            return self._postfixes(end + 1, stop, [(at + 1, end)])
        if token.word == "INTERVAL" and (after := self._after_interval(at, stop)) > at + 1:
            return after, []
        if token.word in _TYPED and at + 1 < stop and tokens[at + 1].kind is TokenKind.STRING:
            self._read_time(at + 1, token.word)
            return self._postfixes(at + 2, stop, [])
        return self._name_or_call(at, stop)

    def _name_or_call(self, at: int, stop: int) -> tuple[int, list[Range]]:
        tokens, word = self.tokens, self.tokens.word(at)
        while tokens.is_symbol(at + 1, ".") and at + 2 < stop:
            at += 2
            word = ""
        if tokens.is_symbol(at + 1, "(") and at + 1 < stop:
            close = tokens.partner[at + 1]
            of_string = at + 4 < close and tokens[at + 2].kind is TokenKind.STRING
            if word in ("CAST", "TRY_CAST") and of_string and tokens.word(at + 3) == "AS":
                self._read_time(at + 2, tokens.word(at + 4))
            return self._postfixes(close + 1, stop, [(at + 2, close)])
        if word == "SYSDATE" and tokens.word(at - 1) != "AS":
            self.instead[at] = "current_timestamp()"
        return self._postfixes(at + 1, stop, [])

    def _postfixes(self, at: int, stop: int, inside: list[Range]) -> tuple[int, list[Range]]:
        """The token after subscripts, fields and casts, and the parts of calls in them."""
        tokens = self.tokens
        while at < stop:
            token, word = tokens[at], tokens.word(at)
            if token.is_symbol("[") and tokens.word(at + 1) not in ("NOW", "PARTITION"):
                inside.append((at + 1, tokens.partner[at]))
                at = tokens.partner[at] + 1
            elif token.kind is TokenKind.SYMBOL and token.text in (".", ":", "::"):
                at += 2
                if token.text == "::" and tokens.is_symbol(at, "("):
                    at = tokens.partner[at] + 1
            elif word in ("FILTER", "OVER") and tokens.is_symbol(at + 1, "("):
                inside.append((at + 2, tokens.partner[at + 1]))
                at = tokens.partner[at + 1] + 1
            elif word == "WITHIN" and tokens.word(at + 1) == "GROUP" and tokens.is_symbol(at + 2, "("):
                inside.append((at + 3, tokens.partner[at + 2]))
                at = tokens.partner[at + 2] + 1
            elif word in ("COLLATE", "OVER") or (
                word in ("IGNORE", "RESPECT") and tokens.word(at + 1) == "NULLS"
            ):
                at += 2
            else:
                break
        return min(at, stop), inside

    def _end_of_case(self, start: int, stop: int) -> int | None:
        end = self.ends_of_cases.get(start, stop)
        return end if end < stop else None

    @cached_property
    def behind_signs(self) -> list[int]:
        """For each token, the first token from there on that is not a sign."""
        places = list(range(len(self.tokens) + 1))
        for at in reversed(range(len(self.tokens))):
            token = self.tokens[at]
            if token.kind is TokenKind.SYMBOL and token.text in ("+", "-", "~"):
                places[at] = places[at + 1]
        return places

    @cached_property
    def ends_of_cases(self) -> dict[int, int]:
        """For each CASE its END, in the same brackets."""
        opened: dict[int, list[int]] = {}
        ends = {}
        for index, parent in enumerate(self.tokens.parent):
            word = "" if self.tokens.is_symbol(index - 1, ".") else self.tokens.word(index)
            if word == "CASE":
                opened.setdefault(parent, []).append(index)
            elif word == "END" and opened.get(parent):
                ends[opened[parent].pop()] = index
        return ends

    def _after_interval(self, start: int, stop: int) -> int:
        """INTERVAL '1 2' DAY TO HOUR, INTERVAL 7 DAYS 3 HOURS."""
        tokens, at = self.tokens, start + 1
        while at < stop:
            sign = tokens[at].kind is TokenKind.SYMBOL and tokens[at].text in ("+", "-") and at == start + 1
            number = at + sign
            if number >= stop or tokens[number].kind not in (TokenKind.NUMBER, TokenKind.STRING):
                break
            at = number + 1
            if at < stop and tokens[at].kind is TokenKind.WORD and tokens[at].word not in _BEFORE:
                at += 1
                at += 2 if tokens.word(at) == "TO" else 0
        return min(at, stop)

    def _read_time(self, at: int, kind: str) -> None:
        """Rewrite a time with the month first in Spark's form."""
        found = _AMERICAN.fullmatch(self.tokens[at].text[1:-1])
        if found is not None and kind in _TIMES:
            self.instead[at] = f"'{found[3]}-{found[1]}-{found[2]}{found[4] or ''}'"

    # -- names ---------------------------------------------------------------------------------------------

    def _items(self) -> Iterator[Range]:
        """The items of every SELECT list."""
        tokens = self.tokens
        for index, token in enumerate(tokens.tokens):
            if token.word != "SELECT" or tokens.is_symbol(index - 1, "."):
                continue
            start = index + 1 + (tokens.word(index + 1) in ("DISTINCT", "ALL"))
            if tokens.word(start) in TO_STREAM and tokens.is_symbol(start + 1, "("):
                yield from tokens.split(start + 2, tokens.partner[start + 1])
                continue
            parent = tokens.parent[index]
            end = tokens.partner[parent] if parent >= 0 else len(tokens)
            ends = (
                at
                for at in tokens.level(start, end)
                if tokens[at].is_symbol(";")
                or (tokens.word(at) in _ENDS_SELECT and not tokens.is_symbol(at - 1, "."))
            )
            yield from tokens.split(start, next(ends, end))

    def _name(self, start: int, stop: int) -> None:
        """Name an unnamed column by its text."""
        tokens, inside = self.tokens, range(start, stop)
        if not any(
            index in self.before or self.instead.get(index) == "current_timestamp()" for index in inside
        ):
            return
        several = tokens.word(start) in _SEVERAL and tokens.is_symbol(start + 1, "(")
        level = tokens.level(start, stop)
        named = any(tokens.word(index) == "AS" for index in level) or (
            stop - start > 1 and tokens[stop - 1].is_name and _ends_operand(tokens[stop - 2])
        )
        if not (several or named):
            written = " ".join(tokens.text(start, stop).split())
            self.after[stop - 1] = self.after.get(stop - 1, "") + f" AS {quoted(written)}"


def _ends_operand(token: Token) -> bool:
    is_operator = token.word in _BEFORE
    return (
        (token.kind is not TokenKind.SYMBOL and not is_operator)
        or token.is_symbol(")")
        or token.is_symbol("]")
    )


def _single_quoted(inside: str) -> str:
    r"""A string's content, with its escapes, in single quotes.

    >>> _single_quoted(r'a\"b'), _single_quoted("it's")
    ('\'a\\"b\'', "'it\\'s'")
    """
    return "'" + re.sub(r"(\\.)|'", lambda found: found[1] or r"\'", inside, flags=re.DOTALL) + "'"

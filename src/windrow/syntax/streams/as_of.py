"""Reads temporal joins: JOIN s FOR SYSTEM_TIME AS OF time [AS] alias ON …, or USING (…), CROSS and
NATURAL JOIN without either; and relations of the past: FROM s FOR SYSTEM_TIME AS OF '…'.

The versions are the rows of a stream; a version is valid from its rowtime until that of the next one with the
same key. The key is the column that the condition compares for equality.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.lengths import TIME_UNITS
from windrow.syntax.nodes import Range
from windrow.syntax.queries import conjuncts
from windrow.syntax.query_parts import visible_ctes
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["AsOf", "Past", "as_of_joins", "pasts"]

_WORDS = ("FOR", "SYSTEM_TIME", "AS", "OF")
_JOINS = {"JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI", "ON", "USING"}
_ENDS = {"WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "WINDOW", "QUALIFY", "UNION", "EXCEPT",
         "MINUS", "INTERSECT", "EMIT", "ALLOWED", "SORT", "CLUSTER", "DISTRIBUTE"}  # fmt: skip
_OPERATORS = ("+", "-", "*", "/", "%", "||")
_KINDS = {"INNER", "LEFT", "RIGHT", "FULL", "OUTER", "CROSS", "NATURAL", "SEMI", "ANTI"}


@dataclass(frozen=True)
class AsOf:
    """A temporal join with the versions of a stream.

    Attributes
    ----------
    name
        The token of the stream.
    time
        The column of the other side, or an expression over it, that says as of when.
    alias
        Of the versions.
    after
        The token after the alias.
    on
        The condition; of USING, the names in its bracket; empty for CROSS and NATURAL JOIN.
    keys
        The columns of the versions that it compares for equality; none for CROSS JOIN, all rows of which have
        one key, and none yet for NATURAL JOIN.
    kind
        The words before JOIN.
    using
        Whether the condition is USING, or that of NATURAL JOIN.
    begin
        The first word of the join.
    """

    name: int
    time: Range
    alias: str
    after: int
    on: Range
    keys: tuple[str, ...]
    kind: frozenset[str] = frozenset()
    using: bool = False
    begin: int = 0

    @property
    def is_written(self) -> bool:
        """Whether the text has a condition."""
        return self.on[0] < self.on[1]

    @property
    def shows_versions(self) -> bool:
        """Whether the query has columns of the versions: not after SEMI and ANTI."""
        return not self.kind & {"SEMI", "ANTI"}


@dataclass(frozen=True)
class Past:
    """A relation of FROM as of a time: the token of its name, the clause after it, and the time."""

    name: int
    clause: Range
    time: Range


def pasts(tokens: TokenList, names: Collection[str]) -> list[Past]:
    """The relations with these names, in lower case, that are as of a time without columns.

    >>> from windrow.syntax.tokens import tokenize
    >>> of = "FOR SYSTEM_TIME AS OF"
    >>> tokens = tokenize(f"SELECT * FROM a {of} 3 JOIN b {of} a.ts ON a.k = b.k")
    >>> [tokens.text(*past.time) for past in pasts(tokens, {"a", "b"})]
    ['3']

    Raises
    ------
    NotSupportedError
        ``MIXED_CLOCKS`` beside a window in brackets.
    """
    found = []
    for at in range(1, len(tokens) - len(_WORDS)):
        is_one = all(tokens.word(at + place) == word for place, word in enumerate(_WORDS))
        window = tokens.partner.get(at - 1) if tokens.is_symbol(at - 1, "]") else None
        relation = (at if window is None else window) - 1
        if not is_one or not tokens.is_name(relation) or not begins_relation(tokens, relation):
            continue
        name, first = tokens[relation].name.lower(), at + len(_WORDS)
        after = _end_of_instant(tokens, first)
        if after is not None and any(tokens.is_symbol(after, sign) for sign in _OPERATORS):
            continue
        is_named = any(cte.name.lower() == name for cte in visible_ctes(tokens, relation))
        if after is None or name not in names or is_named:
            continue
        if window is not None or tokens.is_symbol(after, "["):
            raise _two_clocks(tokens, (at, after))
        found.append(Past(relation, (at, after), (first, after)))
    return found


def _two_clocks(tokens: TokenList, clause: Range) -> NotSupportedError:
    return NotSupportedError(
        "a window in brackets cannot be combined with FOR SYSTEM_TIME AS OF",
        condition="MIXED_CLOCKS",
        sql=tokens.sql,
        span=tokens.span(*clause),
        hint="leave one of them out, as windows change by rowtime, not by processing time;"
        " relation.at(instant) has the rows as of a rowtime",
    )


def _end_of_instant(tokens: TokenList, first: int) -> int | None:
    """The token after a literal, a parameter, a call or brackets; None for a column, and what reads one."""
    if tokens.word(first) == "NULL":
        return first + 1
    is_typed = tokens.word(first) in ("TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "DATE")
    typed = first + (is_typed or tokens.is_symbol(first, "-") or tokens.is_symbol(first, "+"))
    if typed < len(tokens) and tokens[typed].kind in (TokenKind.STRING, TokenKind.NUMBER):
        return typed + 1
    if tokens.is_symbol(first, "?"):
        return first + 1
    if tokens.is_symbol(first, ":"):
        return first + 2
    opened = first + tokens[first].is_name
    if not tokens.is_symbol(opened, "("):
        return None
    inside = range(opened + 1, tokens.partner[opened])
    has_column = any(tokens[at].is_name and tokens.is_symbol(at + 1, ".") for at in inside)
    return None if has_column else tokens.partner[opened] + 1


def as_of_joins(tokens: TokenList, streams: Collection[str]) -> list[AsOf]:
    """The temporal joins with these streams, by their names in lower case.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_CLAUSE`` for such a join that is not understood.
    ParseError
        ``PARSE_SYNTAX_ERROR``.
    """
    words = _WORDS
    found = []
    for at in range(1, len(tokens) - len(words)):
        is_one = all(tokens.word(at + place) == word for place, word in enumerate(words))
        if is_one and tokens[at - 1].is_name and tokens[at - 1].name.lower() in streams:
            found.append(_read(tokens, at - 1, at + len(words)))
    return found


def _read(tokens: TokenList, name: int, first: int) -> AsOf:
    stop = _stop(tokens, first)
    end = _end_of_time(tokens, first, stop)
    alias = None if tokens.word(end) in _ENDS else alias_after(tokens, end, stop)
    after = end if alias is None else alias + 1
    if not any(tokens[at].is_name for at in range(first, end)) or (
        after < stop and tokens.word(after) not in _JOINS | _ENDS
    ):
        hint = "name a column of the other side: FOR SYSTEM_TIME AS OF o.ts; or put a constant into brackets"
        raise _refused(tokens, (first, max(end, first + 1)), "as of what reads no column", hint)
    before = name - 1
    while tokens.word(before - 1) in _KINDS:
        before -= 1
    kind = frozenset(tokens.word(at) for at in range(before, name - 1))
    known = tokens[alias if alias is not None else name].name
    if tokens.word(name - 1) != "JOIN":
        hint = "write JOIN s FOR SYSTEM_TIME AS OF o.ts AS v ON o.key = v.key"
        raise _refused(tokens, (name, end), "without JOIN", hint)
    if "NATURAL" in kind or ("CROSS" in kind and tokens.word(after) not in ("ON", "USING")):
        is_natural = "NATURAL" in kind
        return AsOf(
            name, (first, end), known, after, (after, after), (), kind, using=is_natural, begin=before
        )
    if tokens.word(after) == "USING" and tokens.is_symbol(after + 1, "("):
        listed = after + 2, tokens.partner[after + 1]
        merged = tuple(tokens[first].name for first, _ in tokens.split(*listed))
        return AsOf(name, (first, end), known, after, listed, merged, kind, using=True, begin=before)
    if tokens.word(after) != "ON":
        raise ParseError(
            "a temporal join needs a condition that compares the key",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(name, end),
            hint="add ON o.key = v.key, or USING (key)",
        )
    on = (after + 1, _end_of_condition(tokens, after + 1, stop))
    keys = [key for part in conjuncts(tokens, *on) if (key := _key(tokens, part, known)) is not None]
    if not keys:
        raise _refused(tokens, on, "without a key", f"compare columns of {known}: ON o.key = {known}.key")
    return AsOf(name, (first, end), known, after, on, tuple(dict.fromkeys(keys)), kind, begin=before)


def _end_of_time(tokens: TokenList, first: int, stop: int) -> int:
    """The end of the expression that says as of when; an alias may follow it, with AS or without."""
    for end in tokens.level(first, stop):
        word = tokens.word(end)
        is_call = word in ("LEFT", "RIGHT") and tokens.is_symbol(end + 1, "(")
        if is_call or tokens.is_symbol(end - 1, "."):
            continue
        if word in _JOINS | _ENDS | {"AS"} or tokens.is_symbol(end, ",") or tokens.is_symbol(end, ";"):
            break
    else:
        end = stop
    return end - (tokens.word(end) != "AS" and _is_alias(tokens, first, end - 1))


def _is_alias(tokens: TokenList, first: int, at: int) -> bool:
    """Whether a token after an expression is its alias: it is a name after a value, and no unit of time."""
    if at <= first or not tokens[at].is_name or tokens.word(at) == "END":
        return False
    is_value = tokens[at - 1].kind in (TokenKind.STRING, TokenKind.NUMBER)
    is_unit = is_value and tokens.word(at).removesuffix("S") in {*TIME_UNITS, "MONTH", "YEAR"}
    return not is_unit and (is_value or tokens[at - 1].is_name or tokens.is_symbol(at - 1, ")"))


def _stop(tokens: TokenList, at: int) -> int:
    """The end of the bracket around a token, or of the text."""
    opened = (tokens.partner[start] for start in range(at) if tokens.is_symbol(start, "("))
    return min((end for end in opened if end >= at), default=len(tokens))


def _end_of_condition(tokens: TokenList, start: int, stop: int) -> int:
    for at in tokens.level(start, stop):
        word = "" if tokens.is_symbol(at - 1, ".") else tokens.word(at)
        is_join = word in _JOINS and not tokens.is_symbol(at + 1, "(")
        is_as_of = word == "AS" and tokens.word(at + 1) == "OF"
        if word in _ENDS or is_join or is_as_of or tokens.is_symbol(at, ",") or tokens.is_symbol(at, ";"):
            return at
    return stop


def _key(tokens: TokenList, part: Range, alias: str) -> str | None:
    """The version column that a condition compares with a column of another relation."""
    start, stop = part
    equal = [at for at in tokens.level(start, stop) if tokens.is_symbol(at, "=")]
    if len(equal) != 1:
        return None
    sides = ((start, equal[0]), (equal[0] + 1, stop))
    own = [side for side in sides if _is_of(tokens, side, alias)]
    if len(own) != 1 or any(_reads(tokens, side, alias) for side in sides if side != own[0]):
        return None
    return tokens[own[0][1] - 1].name


def _is_of(tokens: TokenList, side: Range, alias: str) -> bool:
    start, stop = side
    return stop - start == 3 and _reads(tokens, side, alias) and tokens[stop - 1].is_name


def _reads(tokens: TokenList, side: Range, alias: str) -> bool:
    return any(
        tokens[at].is_name and tokens[at].name.lower() == alias.lower() and tokens.is_symbol(at + 1, ".")
        for at in range(*side)
    )


def _refused(tokens: TokenList, place: Range, what: str, hint: str) -> NotSupportedError:
    return NotSupportedError(
        f"a temporal join {what} is not supported",
        condition="UNSUPPORTED_CLAUSE",
        sql=tokens.sql,
        span=tokens.span(*place),
        hint=hint,
    )

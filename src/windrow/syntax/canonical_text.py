"""A normal form of texts that mean the same: it identifies a restarted query."""

from __future__ import annotations

from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.tokens import Token, TokenKind, TokenList, tokenize

__all__ = ["canonical_place", "canonical_text"]

_KEYWORDS = frozenset(
    {
        "AFTER", "ALL", "AND", "ANTI", "AS", "ASC", "BETWEEN", "BY", "CASE", "CAST", "CROSS", "DEFINE",
        "DELAY", "DESC", "DISTINCT", "DSTREAM", "ELSE", "EMIT", "END", "EXCEPT", "EXISTS", "FALSE",
        "FILTER", "FOLLOWING", "FROM", "FULL", "GROUP", "HAVING", "IN", "INNER", "INTERSECT",
        "INTERVAL", "IS", "ISTREAM", "JOIN", "LABEL", "LATERAL", "LEFT", "LIKE", "LIMIT", "MATCH",
        "MATCH_RECOGNIZE", "MEASURES", "NOT", "NOW", "NULL", "ON", "ONE", "ONLY", "OR", "ORDER",
        "OUTER", "OVER", "PARTITION", "PATTERN", "PER", "PRECEDING", "QUALIFY", "RANGE", "RIGHT", "ROW",
        "ROWS", "RSTREAM", "SELECT", "SEMI", "SKIP", "SLIDE", "SLIDING", "START", "STREAM", "THEN",
        "TRUE", "TUMBLING", "TYPE", "UNBOUNDED", "UNION", "USING", "WATERMARK", "WHEN", "WHERE",
        "WINDOW", "WITH", "WITHIN",
    }
)  # fmt: skip
_NEVER_OPERANDS = frozenset(
    {
        "ALL", "AND", "AS", "CASE", "CAST", "DISTINCT", "EXISTS", "FALSE", "FROM", "NOT", "NULL", "OR",
        "SELECT", "TRUE", "WHEN", "WITH",
    }
)  # fmt: skip
"""Keywords that are names only beside a dot or after AS."""
_BEFORE_OPERANDS = frozenset(
    {
        "AND", "BETWEEN", "BY", "CASE", "DISTINCT", "ELSE", "FROM", "HAVING", "JOIN", "LIKE", "NOT", "ON",
        "OR", "QUALIFY", "SELECT", "THEN", "WHEN", "WHERE",
    }
)  # fmt: skip
_AFTER_OPERANDS = frozenset(
    {
        "AND", "AS", "ASC", "BETWEEN", "CROSS", "DESC", "ELSE", "END", "EXCEPT", "FROM", "FULL", "GROUP",
        "HAVING", "IN", "INNER", "INTERSECT", "IS", "JOIN", "LEFT", "LIKE", "LIMIT", "NOT", "ON", "OR",
        "ORDER", "QUALIFY", "RIGHT", "THEN", "UNION", "USING", "WHEN", "WHERE",
    }
)  # fmt: skip
_NEVER_ALIASES = frozenset(
    {
        "ANTI", "ASC", "CROSS", "DESC", "END", "EXCEPT", "FOLLOWING", "FULL", "INNER", "INTERSECT", "JOIN",
        "LEFT", "ON", "OVER", "PRECEDING", "RIGHT", "ROW", "ROWS", "SEMI", "UNBOUNDED", "UNION",
    }
)  # fmt: skip
"""Keywords that may end an expression or a clause, and those that Spark does not accept as aliases."""
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "ISTREAM", "DSTREAM", "RSTREAM"})
_WITH_VARIABLES = frozenset({"MATCH_RECOGNIZE", "PATTERN", "WINDOW"})
"""Words of clauses whose variables also precede a dot."""
_SYMBOLS = {"!=": "<>", "==": "="}


def canonical_text(sql: str) -> str:
    r"""The text with keywords in capitals, one space between tokens, and without comments.

    AS before an alias is left out, and so is the name of the only relation before its columns. Names remain
    as they are written, because they become column names; so do keywords that may be names.

    >>> canonical_text("select k, -- a key\n   count(*) as n from s where k!=1;")
    'SELECT k , count ( * ) n FROM s WHERE k <> 1'
    >>> canonical_text("select Type, x.range as Start from s [range 5] as x")
    'SELECT Type , range Start FROM s [ RANGE 5 ] x'
    """
    tokens = tokenize(sql)
    count = len(tokens)
    while tokens.is_symbol(count - 1, ";"):
        count -= 1
    only = _only_relation(tokens)
    places = (at for at in range(count) if not (_is_as_of_alias(tokens, at) or _qualifies(tokens, at, only)))
    return " ".join(_written(tokens, at) for at in places)


def canonical_place(tokens: TokenList, index: int) -> int:
    """How many tokens precede one, without AS, and without names before a dot.

    So it does not depend on optional words, and state is stored under it.

    >>> [canonical_place(tokenize(f"SELECT {item} FROM s"), 4) for item in ("1 n", "1 AS n")]
    [4, 3]
    """
    return sum(
        not (token.word == "AS" or token.is_symbol(".") or tokens.is_symbol(at + 1, "."))
        for at, token in enumerate(tokens.tokens[:index])
    )


def _is_as_of_alias(tokens: TokenList, at: int) -> bool:
    """Whether a token is an optional AS, between two tokens."""
    if tokens.word(at) != "AS" or tokens.is_symbol(at - 1, ".") or not tokens.is_name(at + 1):
        return False
    before = tokens[at - 1] if at else None
    return before is not None and _is_operand(before) and tokens.word(at + 1) not in _QUERIES


def _is_operand(token: Token) -> bool:
    """Whether an operand may end with a token."""
    if token.kind is TokenKind.SYMBOL:
        return token.text in (")", "]")
    return token.word not in _BEFORE_OPERANDS


def _only_relation(tokens: TokenList) -> str:
    """The name of a text's only relation, in lower case; empty if there is none."""
    places = [at for at in range(len(tokens)) if begins_relation(tokens, at)]
    if len(places) != 1 or not _WITH_VARIABLES.isdisjoint(token.word for token in tokens.tokens):
        return ""
    (at,) = places
    if not tokens.is_name(at):
        return ""
    after = at + 1
    while after in tokens.partner:  # a window in brackets, or the arguments of a function
        after = tokens.partner[after] + 1
    alias = alias_after(tokens, after, len(tokens))
    name = tokens[at if alias is None else alias].name.lower()
    others = [
        here for here, token in enumerate(tokens.tokens)
        if token.is_name and token.name.lower() == name and not tokens.is_symbol(here + 1, ".")
    ]  # fmt: skip
    return name if len(others) == 1 else ""  # of others, a point behind the name may mean another thing


def _qualifies(tokens: TokenList, at: int, relation: str) -> bool:
    """Whether a token is the name of the relation before a column, or the dot after it."""
    if tokens.is_symbol(at, "."):
        return bool(relation) and _qualifies(tokens, at - 1, relation)
    is_first = at >= 0 and not tokens.is_symbol(at - 1, ".") and tokens.is_symbol(at + 1, ".")
    return bool(relation) and is_first and tokens.is_name(at) and tokens[at].name.lower() == relation


def _written(tokens: TokenList, at: int) -> str:
    token = tokens[at]
    if token.word in _KEYWORDS and not _may_be_name(tokens, at):
        return token.word
    return _SYMBOLS.get(token.text, token.text) if token.kind is TokenKind.SYMBOL else token.text


def _may_be_name(tokens: TokenList, at: int) -> bool:
    """Whether a keyword may be the name of a column, field, table or variable at its position."""
    word, before = tokens.word(at), tokens.word(at - 1)
    if tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at + 1, "."):
        return True
    if before == "AS":
        is_interval = word == "INTERVAL" and not _ends_operand(tokens, at + 1)
        return not (word in _NEVER_OPERANDS or word in _QUERIES or is_interval)
    if word in _NEVER_OPERANDS or at == 0:
        return False
    if word == "STREAM" and before in ("SELECT", "FROM"):
        return _ends_item(tokens, at + 1) or tokens.word(at + 1) == "AS"
    if word in ("RANGE", "ROWS") and tokens.word(at + 1) == "BETWEEN":
        return False
    if word == "NOW" and tokens.is_symbol(at - 1, "[") and tokens.is_symbol(at + 1, "]"):
        return False
    opens = tokens[at - 1].kind is TokenKind.SYMBOL and not _closes(tokens, at - 1)
    if opens or before in _BEFORE_OPERANDS:
        return _ends_operand(tokens, at + 1)
    is_alias = before not in _KEYWORDS or before == "END"
    return is_alias and word not in _NEVER_ALIASES and _ends_item(tokens, at + 1)


def _ends_operand(tokens: TokenList, at: int) -> bool:
    """Whether a token may follow an operand, an alias without AS included."""
    if at >= len(tokens):
        return True
    token = tokens[at]
    if token.kind is TokenKind.SYMBOL:
        return token.text not in ("(", ":", "?", "{")
    if token.is_name and token.word not in _KEYWORDS:
        return _ends_item(tokens, at + 1)
    return token.word in _AFTER_OPERANDS


def _ends_item(tokens: TokenList, at: int) -> bool:
    """Whether an item of SELECT or FROM may end before a token."""
    is_end = any(tokens.is_symbol(at, symbol) for symbol in (",", ")", ";", "["))
    return at >= len(tokens) or is_end or tokens.word(at) in ("FROM", "JOIN", "ON", "WHERE")


def _closes(tokens: TokenList, at: int) -> bool:
    return tokens.is_symbol(at, ")") or tokens.is_symbol(at, "]")

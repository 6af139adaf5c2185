"""One spelling for texts that say the same: what tells whether a restarted query is the one it was."""

from __future__ import annotations

from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["canonical_text"]

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
"""Keywords that are names only beside a point or after AS."""
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
"""Keywords that may end an expression or a clause, and those that Spark takes for no alias."""
_QUERIES = frozenset({"SELECT", "WITH", "FROM", "ISTREAM", "DSTREAM", "RSTREAM"})
_SYMBOLS = {"!=": "<>", "==": "="}


def canonical_text(sql: str) -> str:
    r"""The text with keywords in capitals, one space between tokens, and without comments.

    It has the tokens of the text: state is stored under their numbers. Names stay as they are written, since
    they become names of columns; so do keywords where they may be names.

    >>> canonical_text("select k, -- a key\n   count(*) as n from s where k!=1;")
    'SELECT k , count ( * ) AS n FROM s WHERE k <> 1'
    >>> canonical_text("select Type, s.range as Start from s [range 5]")
    'SELECT Type , s . range AS Start FROM s [ RANGE 5 ]'
    """
    tokens = tokenize(sql)
    count = len(tokens)
    while tokens.is_symbol(count - 1, ";"):
        count -= 1
    return " ".join(_written(tokens, at) for at in range(count))


def _written(tokens: TokenList, at: int) -> str:
    token = tokens[at]
    if token.word in _KEYWORDS and not _may_be_name(tokens, at):
        return token.word
    return _SYMBOLS.get(token.text, token.text) if token.kind is TokenKind.SYMBOL else token.text


def _may_be_name(tokens: TokenList, at: int) -> bool:
    """Whether a keyword may be the name of a column, field, table or variable where it stands."""
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

"""One spelling for texts that say the same: what tells whether a restarted query is the one it was."""

from __future__ import annotations

from windrow.syntax.tokens import Token, TokenKind, tokenize

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
_SYMBOLS = {"!=": "<>", "==": "="}


def canonical_text(sql: str) -> str:
    r"""The text with keywords in capitals, one space between tokens, and without comments.

    It has the tokens of the text: state is stored under their numbers. Names stay as they are written, since
    they become names of columns.

    >>> canonical_text("select k, -- a key\n   count(*) as n from s where k!=1;")
    'SELECT k , count ( * ) AS n FROM s WHERE k <> 1'
    """
    tokens = tokenize(sql).tokens
    while tokens and tokens[-1].is_symbol(";"):
        tokens = tokens[:-1]
    return " ".join(map(_written, tokens))


def _written(token: Token) -> str:
    if token.word in _KEYWORDS:
        return token.word
    return _SYMBOLS.get(token.text, token.text) if token.kind is TokenKind.SYMBOL else token.text

"""What a text that Spark refuses was meant to be: looked up only when it has been refused.

Spark reads a misspelt clause as an alias and a clause that it does not have as a syntax error some words
later. Here the text is read again, for what its author had in mind.
"""

from __future__ import annotations

from contextlib import suppress

from windrow.errors import NotSupportedError, ParseError, Span, WindrowError, did_you_mean
from windrow.syntax.blocks import find_blocks
from windrow.syntax.match_recognize import has_parts
from windrow.syntax.nodes import Block
from windrow.syntax.tokens import TokenList, tokenize

__all__ = [
    "is_name_of_from",
    "meant_clause",
    "meant_function",
    "meant_keyword",
    "misplaced_to_stream",
    "unsupported_statement",
    "variable_before_clause",
]


def meant_clause(sql: str) -> WindrowError | None:
    """The error for a text with a syntax error, where it has a clause of ours that is misspelt or missing.

    >>> error = meant_clause("SELECT s.x FROM t WINDOW w AS (TYPE SLIDING ORDER BY x START AS s END)")
    >>> error.hint
    'write WINDOW BY w AS (TYPE …)'
    """
    tokens = _tokens(sql)
    for index in range(len(tokens)):
        word = tokens.word(index)
        if tokens.is_symbol(index - 1, "."):
            continue
        if tokens.is_symbol(index + 1, "(") and (meant := _meant_match(tokens, index)) is not None:
            return meant
        is_ours = (
            word in ("WINDOW", "WINDOWBY")
            and tokens.word(index + 2) == "AS"
            and tokens.is_symbol(index + 3, "(")
            and tokens.word(index + 4) == "TYPE"
        )
        if is_ours:
            return ParseError(
                f"{word} is no clause of a query" if word == "WINDOWBY" else "WINDOW stands without BY",
                condition="PARSE_SYNTAX_ERROR",
                sql=sql,
                span=tokens[index].span,
                hint=f"write WINDOW BY {tokens[index + 1].text} AS (TYPE …)",
            )
    return None


def _meant_match(tokens: TokenList, index: int) -> ParseError | None:
    """The error of a MATCH_RECOGNIZE at a word before a bracket, if it is misspelt or one of its parts is."""
    word, parts = tokens.word(index), has_parts(tokens, index + 1)
    message, at = "MATCH_RECOGNIZE lacks its parts", index
    hint: str | None = "write t MATCH_RECOGNIZE (ORDER BY … PATTERN (…) DEFINE …)"
    if word != "MATCH_RECOGNIZE":
        message = f"{tokens[index].text} is no clause of a query"
        hint = did_you_mean(word, ["MATCH_RECOGNIZE"]) if parts else None
    elif parts:
        message, hint = "", None
        inside = tokens.level(index + 2, tokens.partner[index + 1])
        for at in inside:
            # a word between two names is no operator, nor a column
            between = tokens[at - 1].is_name and tokens[at].is_name and tokens[at + 1].is_name
            hint = did_you_mean(tokens[at].text, ["MEASURES"]) if between else None
            if hint is not None and tokens.word(at) != "MEASURES":
                message = f"{tokens[at].text} is no part of MATCH_RECOGNIZE"
                break
    if not message or hint is None:
        return None
    return ParseError(
        message, condition="PARSE_SYNTAX_ERROR", sql=tokens.sql, span=tokens[at].span, hint=hint
    )


_KEYWORDS = (
    "GROUP BY", "ORDER BY", "PARTITION BY", "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING",
    "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "INTERSECT", "EXCEPT", "WITH", "VALUES", "BETWEEN",
    "INTERVAL", "PARTITION", "WINDOW", "CREATE", "INSERT", "DROP", "DESCRIBE", "EXPLAIN", "EMIT",
    "STREAM", "TABLE", "VIEW", "TEMPORARY",
)  # fmt: skip
_TABLE_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_FUNCTIONS = (
    "istream", "dstream", "rstream",
    "abs", "any", "array_agg", "avg", "ceil", "coalesce", "collect_list", "collect_set", "concat",
    "corr", "count", "date_add", "date_diff", "date_format", "date_sub", "date_trunc", "day",
    "dense_rank", "every", "exp", "explode", "first_value", "floor", "greatest", "hour", "if", "ifnull",
    "kurtosis", "lag", "last_value", "lead", "least", "length", "ln", "lower", "make_date", "map",
    "max", "max_by", "median", "min", "min_by", "minute", "mode", "month", "named_struct", "ntile",
    "nullif", "nvl", "percentile", "percentile_approx", "power", "quarter", "rank", "regexp_extract",
    "replace", "round", "row_number", "second", "skewness", "split", "sqrt", "stddev", "struct",
    "substring", "sum", "timestampadd", "timestampdiff", "to_date", "to_timestamp", "trim", "upper",
    "variance", "year",
)  # fmt: skip


def meant_keyword(sql: str, span: Span) -> str | None:
    """The hint for a syntax error at a word, where that or the one before it is nearly a keyword.

    >>> meant_keyword("SELECT a FROM t WHER a > 1", Span(21, 22))
    'did you mean WHERE?'
    """
    tokens = _tokens(sql)
    at = next((index for index in range(len(tokens)) if tokens[index].start >= span.start), None)
    if at is None:
        return None
    if tokens.word(at) == "BY" and tokens.word(at - 1) == "WINDOW":
        return "write WINDOW BY w AS (TYPE …)"
    if tokens.is_symbol(at - 1, "(") and (called := tokens.word(at - 2)):
        return did_you_mean(called, _TABLE_FUNCTIONS, is_word=True)
    words = [tokens.word(index) for index in (at, at - 1) if index >= 0]
    return next((hint for word in words if (hint := did_you_mean(word, _KEYWORDS, is_word=True))), None)


def meant_function(name: str) -> str | None:
    """The hint for a function that there is not, where its name is nearly that of a usual one.

    >>> meant_function("CUNT")
    'did you mean count?'
    """
    return did_you_mean(name, _FUNCTIONS, is_word=True)


def variable_before_clause(sql: str, span: Span) -> str | None:
    """The hint for a name in FROM or WHERE that WINDOW BY declares after them, None for any other."""
    tokens = _tokens(sql)
    for block in _blocks(tokens):
        declared = {name.lower() for name in (block.clause.name, *(v.name for v in block.clause.variables()))}
        for index in range(*block.source):
            if tokens[index].start == span.start and tokens[index].name.lower() in declared:
                name = tokens[index].name
                return (
                    f"{name} is declared by WINDOW BY, which comes after: leave {name}. out to filter the "
                    "rows, or filter the windows in HAVING after the clause"
                )
    return None


def is_name_of_from(sql: str, clause: Span, name: str) -> bool:
    """Whether FROM, before the WINDOW BY at `clause`, gives a table this name or reads one of this name."""
    tokens = _tokens(sql)
    for block in _blocks(tokens):
        if block.clause.span == clause:
            return any(
                tokens[index].is_name
                and tokens[index].name.lower() == name.lower()
                and not tokens.is_symbol(index + 1, ".")
                for index in _before_where(tokens, block)
            )
    return False


def _before_where(tokens: TokenList, block: Block) -> list[int]:
    level = tokens.level(*block.source)
    where = [index for index in level if tokens.word(index) == "WHERE"]
    return level[: level.index(where[0])] if where else level


def _tokens(sql: str) -> TokenList:
    with suppress(ParseError):
        return tokenize(sql)
    return tokenize("")


def _blocks(tokens: TokenList) -> list[Block]:
    with suppress(WindrowError):
        return find_blocks(tokens)
    return []


def unsupported_statement(tokens: TokenList, at: int, what: str, hint: str) -> NotSupportedError:
    """The error of a kind of statement that is not supported, with the caret at a token."""
    return NotSupportedError(
        f"{what} is not supported",
        condition="UNSUPPORTED_STATEMENT",
        sql=tokens.sql,
        span=tokens[at].span,
        hint=hint,
    )


def misplaced_to_stream(tokens: TokenList, index: int) -> ParseError:
    """The error for ISTREAM and its like, at this token, where they are not over a whole query."""
    word, close = tokens.word(index), tokens.partner[index + 1]
    inside = tokens.text(index + 2, close)
    if tokens.word(index + 2) in ("SELECT", "WITH"):
        hint = f"give the stream a window where a relation stands: SELECT … FROM {word}(…) [NOW]"
    elif tokens.word(index - 1) == "DISTINCT":
        hint = f"write {word}(SELECT DISTINCT {inside} FROM …)"
    else:
        hint = f"write all columns into it, SELECT {word}({inside}, …) FROM …, or {word}(SELECT … FROM …)"
    return ParseError(
        f"{word} is not over a whole query",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens.span(index, close + 1),
        hint=hint,
    )

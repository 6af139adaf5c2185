"""What a refused text was meant to be: analysed only after Spark has refused it.

Spark reads a misspelt clause as an alias, and reports a syntax error some words later for a clause that it
does not support. Here the text is read again to find the author's intention.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress

from windrow.errors import NotSupportedError, ParseError, Span, WindrowError, did_you_mean
from windrow.syntax.lengths import LENGTH_UNITS
from windrow.syntax.nodes import BlockText
from windrow.syntax.patterns.match_relations import has_parts
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = [
    "aliases_before",
    "behind_match",
    "call_within",
    "is_name_of_from",
    "meant_clause",
    "meant_file",
    "meant_function",
    "meant_keyword",
    "meant_modifier",
    "meant_neighbour",
    "meant_one_row_each",
    "meant_syntax",
    "meant_unit",
    "misplaced_to_stream",
    "missing_comma",
    "misspelt_word",
    "named_like_variable",
    "unsupported_statement",
    "variable_before_clause",
]


def meant_clause(sql: str) -> WindrowError | None:
    """The error for a syntax error caused by a misspelt or missing clause of Windrow.

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
        if _begins_windows(tokens, index + 1) and _is_nearly(word, "WINDOW", "WINDOWBY"):
            message = "WINDOW lacks BY" if word == "WINDOW" else f"{word} is not a clause of a query"
            hint = f"write WINDOW BY {tokens[index + 1].text} AS (TYPE …)"
            return _misspelt(tokens, index, index + 1, message, hint)
        is_right = (word, tokens.word(index + 1)) == ("WINDOW", "BY")
        if _begins_windows(tokens, index + 2) and _is_nearly(word, "WINDOW") and not is_right:
            message = f"{tokens.text(index, index + 2)} is not a clause of a query"
            return _misspelt(tokens, index, index + 2, message, "did you mean WINDOW BY?")
        if tokens.word(index + 1) == "BY" and (meant := _meant_by(tokens, index)) is not None:
            return meant
    return None


def _begins_windows(tokens: TokenList, at: int) -> bool:
    """Whether a name of windows is here, followed by the brackets of WINDOW BY."""
    return tokens.word(at + 1) == "AS" and tokens.is_symbol(at + 2, "(") and tokens.word(at + 3) == "TYPE"


def _is_nearly(word: str, *known: str) -> bool:
    return word in known or did_you_mean(word, known, is_word=True) is not None


_BY = ("GROUP", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE")
_BY_OF_OVER = ("PARTITION", "ORDER")
_BY_OF_TABLES = ("SORTED", "CLUSTERED", "PARTITIONED")


def _meant_by(tokens: TokenList, index: int) -> ParseError | None:
    """The error for a misspelt word before BY."""
    word, bracket = tokens.word(index), tokens.parent[index]
    is_over = bracket > 0 and tokens.word(bracket - 1) in ("OVER", "AS", "GROUP")
    hint = did_you_mean(word, _BY_OF_OVER if is_over else _BY, is_word=True)
    if hint is None or word in _BY_OF_TABLES:
        return None
    message = f"{tokens.text(index, index + 2)} is not a clause of {'OVER' if is_over else 'a query'}"
    return _misspelt(tokens, index, index + 2, message, f"{hint[:-1]} BY?")


def _misspelt(tokens: TokenList, start: int, stop: int, message: str, hint: str) -> ParseError:
    span = tokens.span(start, stop)
    return ParseError(message, condition="PARSE_SYNTAX_ERROR", sql=tokens.sql, span=span, hint=hint)


def _meant_match(tokens: TokenList, index: int) -> ParseError | None:
    """The error for a misspelt MATCH_RECOGNIZE before a bracket, or for one of its parts."""
    word, parts = tokens.word(index), has_parts(tokens, index + 1)
    message, at = "MATCH_RECOGNIZE has no clauses", index
    hint: str | None = "write t MATCH_RECOGNIZE (ORDER BY … PATTERN (…) DEFINE …)"
    if word != "MATCH_RECOGNIZE":
        message = f"{tokens[index].text} is not a clause of a query"
        hint = did_you_mean(word, ["MATCH_RECOGNIZE"]) if parts else None
    elif parts:
        message, hint = "", None
        inside = tokens.level(index + 2, tokens.partner[index + 1])
        for at in inside:
            # a word between two names is no operator, nor a column
            between = tokens[at - 1].is_name and tokens[at].is_name and tokens[at + 1].is_name
            hint = did_you_mean(tokens[at].text, ["MEASURES"]) if between else None
            if hint is not None and tokens.word(at) != "MEASURES":
                message = f"{tokens[at].text} is not a clause of MATCH_RECOGNIZE"
                break
    if not message or hint is None:
        return None
    return _misspelt(tokens, at, at + 1, message, hint)


_OF_PATTERNS = ("PREV", "NEXT", "FIRST", "LAST", "CLASSIFIER", "MATCH_NUMBER")
_KEYWORDS = (
    "GROUP BY", "ORDER BY", "PARTITION BY", "SELECT", "DISTINCT", "FROM", "WHERE", "GROUP", "HAVING",
    "ORDER", "LIMIT", "OFFSET", "JOIN", "UNION", "INTERSECT", "EXCEPT", "WITH", "VALUES", "BETWEEN",
    "INTERVAL", "PARTITION", "WINDOW", "CREATE", "INSERT", "DROP", "DESCRIBE", "EXPLAIN", "EMIT",
    "STREAM", "TABLE", "VIEW", "TEMPORARY", "PUNCTUATE",
)  # fmt: skip
_LENGTHS = {
    "TUMBLE": "INTERVAL 10 MINUTES",
    "HOP": "INTERVAL 5 MINUTES, INTERVAL 10 MINUTES",
    "CUMULATE": "INTERVAL 5 MINUTES, INTERVAL 1 HOUR",
    "SESSION": "INTERVAL 10 MINUTES",
}
_GROUPED_WINDOW = re.compile(rf"({'|'.join(_LENGTHS)})(?:_START|_END|_ROWTIME|_PROCTIME)?")
_TABLE_FUNCTIONS = ("TUMBLE", "HOP", "CUMULATE", "SESSION")
_FUNCTIONS = (
    "istream", "dstream", "rstream",
    "abs", "any", "array_agg", "avg", "ceil", "coalesce", "collect_list", "collect_set", "concat",
    "corr", "count", "date_add", "date_diff", "date_format", "date_sub", "date_trunc", "day",
    "dense_rank", "every", "exp", "explode", "first", "first_value", "floor", "greatest", "hour", "if",
    "ifnull", "kurtosis", "lag", "last", "last_value", "lead", "least", "length", "ln", "lower", "make_date",
    "map",
    "max", "max_by", "median", "min", "min_by", "minute", "mode", "month", "named_struct", "ntile",
    "nullif", "nvl", "percentile", "percentile_approx", "power", "quarter", "rank", "regexp_extract",
    "replace", "round", "row_number", "second", "skewness", "split", "sqrt", "stddev", "struct",
    "substring", "sum", "timestampadd", "timestampdiff", "to_date", "to_timestamp", "trim", "upper",
    "variance", "year",
)  # fmt: skip


def meant_keyword(sql: str, span: Span) -> str | None:
    """The hint for a syntax error at a word, if that or the one before it is similar to a keyword.

    :func:`meant_clause` finds misspelt words before BY.

    >>> meant_keyword("SELECT a FROM t WHER a > 1", Span(21, 22))
    'did you mean WHERE?'
    """
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at is None:
        return None
    if tokens.word(at) == "BY":
        return "write WINDOW BY w AS (TYPE …)" if tokens.word(at - 1) == "WINDOW" else None
    if tokens.is_symbol(at, "(") and tokens.is_symbol(at - 2, ")"):
        return did_you_mean(tokens.word(at - 1), ["OVER", "FILTER"], is_word=True)
    if tokens.is_symbol(at - 1, "(") and (called := tokens.word(at - 2)):
        return did_you_mean(called, _TABLE_FUNCTIONS, is_word=True)
    if tokens.word(at - 1) == "ONLY":
        return did_you_mean(tokens.word(at), ["START", "END"])
    words = [tokens.word(index) for index in (at, at - 1) if index >= 0]
    return next((hint for word in words if (hint := did_you_mean(word, _KEYWORDS, is_word=True))), None)


def meant_syntax(sql: str, span: Span) -> str | None:
    """The hint for a syntax error: syntax of other dialects, a misspelt word, a comma.

    >>> meant_syntax("SELECT a b c FROM t", Span(11, 12))
    'is a comma missing? write a comma before c'
    """
    guesses = [_meant_watermark, meant_unit, meant_one_row_each, _label_of_script, meant_keyword]
    guesses += [missing_comma, _extra_comma]
    return next((hint for guess in guesses if (hint := guess(sql, span)) is not None), None)


def _label_of_script(sql: str, span: Span) -> str | None:
    """The hint for a label before a whole script, which may only be before blocks in one.

    >>> _label_of_script("l: BEGIN SELECT 1; END l", Span(0, 1))
    'write BEGIN l: BEGIN … END l; END: blocks in a script have labels'
    """
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at != 0 or not tokens.is_symbol(1, ":") or tokens.word(2) != "BEGIN":
        return None
    label = tokens[0].text
    return f"write BEGIN {label}: BEGIN … END {label}; END: blocks in a script have labels"


def misspelt_word(sql: str, span: Span, hint: str) -> Span:
    """The place of the word that a hint of :func:`meant_syntax` corrects, at the error or near it.

    >>> misspelt_word("SELECT a FROM t WHER a > 1", Span(21, 22), "did you mean WHERE?")
    Span(start=16, stop=20)
    """
    tokens = _tokens(sql)
    at = _at(tokens, span)
    meant = re.fullmatch(r"did you mean (.*)\?", hint)
    if at is None or meant is None:
        return span
    words = (index for index in (at, at - 1, at - 2, at + 2) if index >= 0)
    near = (
        index for index in words if did_you_mean(tokens.word(index), meant.groups(), is_word=True) == hint
    )
    return next((tokens[index].span for index in near), span)


def meant_modifier(sql: str, span: Span) -> str | None:
    """The hint for a column with an alias that is similar to a word after SELECT.

    >>> meant_modifier("SELECT STREM item FROM bids", Span(7, 12))
    'did you mean SELECT STREAM?'
    """
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at is None or tokens.word(at - 1) != "SELECT" or not tokens.is_name(at + 1):
        return None
    hint = did_you_mean(tokens.word(at), ["STREAM", "DISTINCT"], is_word=True)
    is_alias = tokens.word(at + 1) in ("AS", "FROM")
    return None if hint is None or is_alias else hint.replace("mean ", "mean SELECT ")


def meant_file(called: str) -> str | None:
    """The hint for a missing table whose name is that of a file or a function that reads one.

    >>> meant_file("`day`.`csv`")
    "put the path in quotes: FROM 'day.csv'"
    >>> meant_file("weather") is None
    True
    """
    name = called.replace("`", "")
    if name.lower().startswith("read_"):
        return "put the path in quotes: FROM 'PATH'"
    return f"put the path in quotes: FROM '{name}'" if name.lower().endswith(_FILES) else None


_FILES = (".csv", ".parquet", ".json", ".jsonl", ".ndjson", ".orc", ".tsv")


def _meant_watermark(sql: str, span: Span) -> str | None:
    """The hint for WATERMARK FOR among the columns of a table, which is Flink's."""
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at is None or tokens.word(at) == "WATERMARK" or not _says_watermark(tokens, at - 2):
        return None
    return f"write FROM STREAM t WATERMARK {tokens[at].text} DELAY OF INTERVAL 5 SECONDS in the query"


def _says_watermark(tokens: TokenList, at: int) -> bool:
    return tokens.word(at) == "WATERMARK" and tokens.word(at + 1) == "FOR"


_UNITS = [f"{unit}{end}" for unit in (*LENGTH_UNITS, "MONTH", "YEAR") for end in ("", "S")]


def meant_unit(sql: str, span: Span) -> str | None:
    """The hint for a misspelt unit of time, at a position or after the interval that begins there."""
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at is not None and tokens.word(at) == "INTERVAL":
        at += 2
    if at is None or tokens.word(at - 2) != "INTERVAL" or tokens[at - 1].is_name:
        return None
    return did_you_mean(tokens.word(at), _UNITS, is_word=True)


def meant_one_row_each(sql: str, span: Span) -> str | None:
    """The hint for DISTINCT ON, which Spark reads as a function of that name."""
    tokens = _tokens(sql)
    at = _at(tokens, span)
    while at is not None and at > 0 and not (tokens.word(at) == "ON" and tokens.word(at - 1) == "DISTINCT"):
        at = at - 1 if tokens.word(at) not in ("SELECT", "FROM") else 0
    if not at or not tokens.is_symbol(at + 1, "("):
        return None
    keys = tokens.text(at + 2, tokens.partner[at + 1])
    first = f"QUALIFY ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY …) = 1"
    return f"leave DISTINCT ON ({keys}) out, and write {first} at the end"


_LISTS = ("SELECT", "MEASURES", "DEFINE", "BY", "VALUES", "SUBSET", "SET")
_CLAUSES = (
    *_LISTS, "FROM", "WHERE", "HAVING", "QUALIFY", "LIMIT", "PATTERN", "WHEN", "CASE", "JOIN", "ON", "WITH",
)  # fmt: skip
_NO_OPERAND = frozenset(
    {*_CLAUSES, "AND", "OR", "NOT", "IN", "IS", "LIKE", "ILIKE", "RLIKE", "BETWEEN", "AS", "DISTINCT", "ALL"}
    | {"THEN", "ELSE", "DIV", "OVER", "INTERVAL", "GROUP", "ORDER", "PARTITION", "EMIT", "STREAM"}
)  # fmt: skip


def missing_comma(sql: str, span: Span) -> str | None:
    """The hint for a syntax error where two values of a list are adjacent.

    >>> missing_comma("SELECT t.a t.b FROM t", Span(12, 13))
    'is a comma missing? write a comma before t.b'
    """
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at is None:
        return None
    if tokens.is_symbol(at, ".") or tokens.is_symbol(at, "(") or tokens.word(at) == "AS":
        at -= 1
    if at < 1 or not (_ends_value(tokens, at - 1) and _begins_value(tokens, at)):
        return None
    level = [index for index in range(at) if tokens.parent[index] == tokens.parent[at]]
    clause = next((tokens.word(index) for index in reversed(level) if tokens.word(index) in _CLAUSES), "")
    bracket = tokens.parent[at]
    is_call = bracket > 0 and tokens.is_symbol(bracket, "(") and tokens[bracket - 1].is_name
    is_argument = clause == "" and is_call
    if clause not in _LISTS and not is_argument:
        return None
    last = at + 1
    while tokens.is_symbol(last, ".") and last + 1 < len(tokens):
        last += 2
    return f"is a comma missing? write a comma before {tokens.text(at, last)}"


def _extra_comma(sql: str, span: Span) -> str | None:
    """The hint for a comma after the last value of a list."""
    tokens = _tokens(sql)
    for at in range(1, len(tokens)):
        ends = tokens.word(at) in ("FROM", "WHERE", "HAVING") or tokens.is_symbol(at, ")")
        if tokens[at].start <= span.stop and ends and tokens.is_symbol(at - 1, ","):
            return f"leave out the comma before {tokens[at].text}"
    return None


def _ends_value(tokens: TokenList, at: int) -> bool:
    token = tokens[at]
    if token.kind is TokenKind.SYMBOL:
        return token.text in (")", "]", "*")
    return token.word not in _NO_OPERAND or tokens.is_symbol(at - 1, ".")


def _begins_value(tokens: TokenList, at: int) -> bool:
    begins_more = tokens.word(at) in _NO_OPERAND or tokens.word(at) in ("WINDOW", "UNION", "END")
    return tokens[at].kind is not TokenKind.SYMBOL and not begins_more


def _at(tokens: TokenList, span: Span) -> int | None:
    """The first token that begins at a place or after it."""
    return next((index for index in range(len(tokens)) if tokens[index].start >= span.start), None)


def named_like_variable(sql: str, span: Span, clause: Span, rows: Collection[str]) -> str | None:
    """The hint for a condition after the WINDOW BY at `clause` that uses a variable, of `rows`, as a value.

    A column of SELECT may have the variable's name, which hides it there.

    >>> named_like_variable("SELECT (e = s) + 1", Span(7, 18), Span(18, 18), ["s", "e"])
    'a comparison of rows is true or false: write IF(e = s, 1, 0) for a number'
    """
    tokens = _tokens(sql)
    variables = {name.lower() for name in rows}
    compared = None
    for at in range(len(tokens)):
        name = tokens[at].name
        is_part = tokens.is_symbol(at + 1, ".") or tokens.is_symbol(at - 1, ".")
        is_read = span.start <= tokens[at].start < span.stop and name.lower() in variables
        if not is_read or is_part or not tokens[at].is_name:
            continue
        if any(tokens.is_symbol(one, "=") for one in (at - 1, at + 1)):
            first = at - 2 * tokens.is_symbol(at - 1, "=")
            compared = compared or tokens.text(first, first + 3)
            continue
        if name.lower() in map(str.lower, aliases_before(sql, clause)):
            return (
                f"rename the variable or the alias: {name} is the row variable here, not the column of SELECT"
            )
        return f"compare a column, such as {name}.x: {name} is a row"
    return compared and f"a comparison of rows is true or false: write IF({compared}, 1, 0) for a number"


def aliases_before(sql: str, clause: Span) -> list[str]:
    """The names that columns of SELECT have before a clause.

    >>> aliases_before("SELECT s.x AS a, COUNT(w) AS `b` FROM t WINDOW BY", Span(39, 48))
    ['a', 'b']
    """
    tokens = _tokens(sql)
    return [
        tokens[index + 1].name
        for index in range(1, len(tokens) - 1)
        if tokens[index].stop <= clause.start
        and tokens.word(index) == "AS"
        and tokens[index + 1].is_name
        and _ends_value(tokens, index - 1)
    ]


def meant_function(sql: str, span: Span) -> str | None:
    """The hint for a call of an unknown function whose name is similar to that of a common one.

    Time windows that other dialects have in GROUP BY are in FROM here.

    >>> meant_function("SELECT CUNT(*) FROM t", Span(7, 14))
    'did you mean count?'
    >>> meant_function("SELECT tumble(a) FROM t", Span(7, 16))
    'write FROM TUMBLE(TABLE t, DESCRIPTOR(a), INTERVAL 10 MINUTES), and group by wstart and wend'
    >>> meant_function("SELECT HOP(ts, INTERVAL 1 DAY, INTERVAL 7 DAYS) FROM t", Span(7, 46))
    'write FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL 1 DAY, INTERVAL 7 DAYS), and group by wstart and wend'
    """
    tokens = _tokens(sql)
    at = _at(tokens, span)
    if at is None:
        return None
    window = _GROUPED_WINDOW.fullmatch(tokens.word(at))
    if window is not None:
        opened = at + 1 if tokens.is_symbol(at + 1, "(") else None
        listed = [] if opened is None else tokens.split(opened + 1, tokens.partner[opened])
        texts = [tokens.text(*one) for one in listed if one[0] < one[1]]
        lengths = texts[1:] if all(text.upper().startswith("INTERVAL") for text in texts[1:]) else []
        column = texts[0] if texts else "ts"
        call = f"{window[1]}(TABLE t, DESCRIPTOR({column}), {', '.join(lengths) or _LENGTHS[window[1]]})"
        return f"write FROM {call}, and group by wstart and wend"
    known = (*_OF_PATTERNS, *_FUNCTIONS) if _is_in_match(tokens, at) else _FUNCTIONS
    return did_you_mean(tokens.word(at), known, is_word=True)


def variable_before_clause(sql: str, span: Span) -> str | None:
    """The hint for a name in FROM or WHERE that WINDOW BY declares after them, None for any other."""
    tokens = _tokens(sql)
    for query in _blocks(tokens):
        declared = {name.lower() for name in (query.clause.name, *(v.name for v in query.clause.variables()))}
        for index in range(*query.source):
            if tokens[index].start == span.start and tokens[index].name.lower() in declared:
                name = tokens[index].name
                return (
                    f"leave {name}. out to filter the input rows, as WINDOW BY declares {name} after them;"
                    " or filter the windows in HAVING after the clause"
                )
    return None


_NEIGHBOURS = {
    "LAG": "name the row before with PREV AS p: START AS s PREV AS p WHEN p.",
    "LEAD": "name the row after with NEXT AS n: END AS e NEXT AS n WHEN n.",
}
"""Functions of OVER that newcomers use in a condition of WINDOW BY, and what to write instead."""

_NEIGHBOURS_OF_PATTERNS = {"LAG": ("PREV", "before"), "LEAD": ("NEXT", "after")}
"""The same in MATCH_RECOGNIZE: which function reads which row."""


def meant_neighbour(sql: str, span: Span) -> str | None:
    """The hint for LAG or LEAD in a condition of WINDOW BY or in MATCH_RECOGNIZE, None for any other call.

    The position may be that of the call, or of a comparison with it.
    """
    tokens = _tokens(sql)
    calls = (at for word in _NEIGHBOURS for at in tokens.places(word) if tokens.is_symbol(at + 1, "("))
    at = next((at for at in calls if span.start <= tokens[at].start < span.stop), None)
    if at is None:
        return None
    word = tokens.word(at)
    path = [at + 2, at + 4] if tokens.is_symbol(at + 3, ".") else [at + 2]
    if any(query.clause.span.start <= span.start < query.clause.span.stop for query in _blocks(tokens)):
        column = tokens[path[-1]].text if tokens.is_name(path[-1]) else "x"
        return f"{_NEIGHBOURS[word]}{column}"
    if _is_in_match(tokens, at):
        function, where = _NEIGHBOURS_OF_PATTERNS[word]
        column = tokens.text(path[0], path[-1] + 1) if tokens.is_name(path[0]) else "x"
        return f"write {function}({column}) for the row {where}"
    return None


def _is_in_match(tokens: TokenList, at: int) -> bool:
    return any(start < at < tokens.partner.get(start + 1, 0) for start in tokens.places("MATCH_RECOGNIZE"))


def call_within(sql: str, span: Span, name: str) -> Span:
    """The position of the only call of a function in a range; the range itself if there are none or
    several.
    """
    tokens = _tokens(sql)
    calls = [
        at
        for at in tokens.places(name.upper())
        if span.start <= tokens[at].start < span.stop and tokens.is_symbol(at + 1, "(")
    ]
    if len(calls) != 1:
        return span
    return tokens.span(calls[0], tokens.partner[calls[0] + 1] + 1)


def behind_match(sql: str) -> str | None:
    """The hint for a column that MATCH_RECOGNIZE does not return; None without such a clause."""
    tokens = _tokens(sql)
    if not tokens.places("MATCH_RECOGNIZE") or any(
        tokens.word(at + 1) == "ROWS" for at in tokens.places("ALL")
    ):
        return None
    return "add a measure, or write ALL ROWS PER MATCH: MATCH_RECOGNIZE returns its keys and MEASURES"


def is_name_of_from(sql: str, clause: Span, name: str) -> bool:
    """Whether FROM, before the WINDOW BY at `clause`, has a table with this name or alias."""
    tokens = _tokens(sql)
    for query in _blocks(tokens):
        if query.clause.span == clause:
            return any(
                tokens[index].is_name
                and tokens[index].name.lower() == name.lower()
                and not tokens.is_symbol(index + 1, ".")
                for index in _before_where(tokens, query)
            )
    return False


def _before_where(tokens: TokenList, query: BlockText) -> list[int]:
    level = tokens.level(*query.source)
    where = [index for index in level if tokens.word(index) == "WHERE"]
    return level[: level.index(where[0])] if where else level


def _tokens(sql: str) -> TokenList:
    with suppress(ParseError):
        return tokenize(sql)
    return tokenize("")


def _blocks(tokens: TokenList) -> list[BlockText]:
    with suppress(WindrowError):
        return find_window_queries(tokens)
    return []


def unsupported_statement(tokens: TokenList, at: int, what: str, hint: str) -> NotSupportedError:
    """The error for an unsupported kind of statement, with the caret at a token."""
    return NotSupportedError(
        f"{what} is not supported",
        condition="UNSUPPORTED_STATEMENT",
        sql=tokens.sql,
        span=tokens[at].span,
        hint=hint,
    )


def misplaced_to_stream(tokens: TokenList, index: int) -> ParseError:
    """The error for ISTREAM and its like, at this token, if they are not over a whole query."""
    word, close = tokens.word(index), tokens.partner[index + 1]
    inside = tokens.text(index + 2, close)
    if tokens.word(index + 2) in ("SELECT", "WITH"):
        hint = f"write a window after the stream: SELECT … FROM {word}(…) [NOW]"
    elif tokens.word(index - 1) == "DISTINCT":
        hint = f"write {word}(SELECT DISTINCT {inside} FROM …)"
    else:
        hint = f"write all columns into it, SELECT {word}({inside}, …) FROM …, or {word}(SELECT … FROM …)"
    return ParseError(
        f"{word} must contain a whole query",
        condition="PARSE_SYNTAX_ERROR",
        sql=tokens.sql,
        span=tokens.span(index, close + 1),
        hint=hint,
    )

"""EXECUTE IMMEDIATE of texts that only a Windrow session can run.

    EXECUTE IMMEDIATE 'SELECT … > :least WINDOW BY …' INTO x USING y AS least
    →  SELECT … > 5 WINDOW BY …, of which the row becomes the value of x

Spark evaluates the text and the arguments, and runs all other texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from pyspark.sql.types import StringType

from windrow.algebra.names import piece_of
from windrow.errors import AnalysisError, WindrowError
from windrow.relation import Relation
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.plans import selected_texts
from windrow.statements.classification import only_statement
from windrow.statements.composed import RunQuery
from windrow.statements.definitions.stored_text import literal
from windrow.statements.scripts.values_on_connect import values_on_connect
from windrow.syntax.compounds import QUERIES
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.sqltext import Piece, RelationText, SqlText
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["executes_unseen", "run_text"]

_EXECUTE = re.compile(r"\bexecute\b.*?\bimmediate\b", re.IGNORECASE | re.DOTALL)


def run_text(
    gateway: Gateway, text: str, is_ours: Callable[[str], bool], run_query: RunQuery
) -> Relation | None:
    """Run EXECUTE IMMEDIATE, or EXPLAIN it; None for other statements, and for texts that Spark can run.

    Raises
    ------
    AnalysisError
        ``SQL_SCRIPT_IN_EXECUTE_IMMEDIATE``; ``INVALID_STATEMENT_FOR_EXECUTE_INTO``.
    WindrowError
        Spark's, about the statement; those of the text show the text.
    """
    if _EXECUTE.search(text) is None:
        return None
    tokens = tokenize(text)
    is_explained = tokens.word(0) == "EXPLAIN"
    execute = 1 + (tokens.word(2) == "EXECUTE") if is_explained else 0
    if [tokens.word(execute), tokens.word(execute + 1)] != ["EXECUTE", "IMMEDIATE"]:
        return None
    _, stop = only_statement(tokens)
    places = tokens.level(execute + 2, stop)
    using = next((at for at in places if tokens.word(at) == "USING"), stop)
    into = next((at for at in places if at < using and tokens.word(at) == "INTO"), using)
    query = _evaluated(gateway, piece_of(tokens, execute + 2, into))
    if query is None or not (is_ours(query) or executes_unseen(query)):
        return None
    inner = tokenize(query)
    if inner.word(0) == "BEGIN":
        condition = "SQL_SCRIPT_IN_EXECUTE_IMMEDIATE"
        raise _refused(inner, "EXECUTE IMMEDIATE runs no script", condition, "run the script itself")
    written = _with_values(gateway, inner, tokens, (using, stop))
    if is_explained:
        written = SqlText.of(piece_of(tokens, 0, execute, " "), written)
    with gateway.instead(written) as read:
        if into == using or is_explained:
            return run_query(read)
        first = next((at for at in range(len(inner)) if not inner.is_symbol(at, "(")), 0)
        found = run_query(read) if inner.word(first) in QUERIES else None
        if found is None or not found.columns:
            condition = "INVALID_STATEMENT_FOR_EXECUTE_INTO"
            raise _refused(inner, "INTO is for queries, and this is none", condition, "leave out INTO")
    return found if gateway.checks else _assigned(gateway, found, piece_of(tokens, into, using))


def executes_unseen(text: str) -> bool:
    """Whether a text executes others that it does not show, as those of variables.

    >>> executes_unseen("EXECUTE IMMEDIATE q"), executes_unseen("BEGIN EXECUTE IMMEDIATE 'SELECT 1'; END")
    (True, False)
    """
    if _EXECUTE.search(text) is None:
        return False
    tokens = tokenize(text)
    executed = (
        at + 2
        for at in range(len(tokens) - 2)
        if tokens.word(at) == "EXECUTE" and tokens.word(at + 1) == "IMMEDIATE"
    )
    return any(not _is_shown(tokens, at) for at in executed)


def _is_shown(tokens: TokenList, at: int) -> bool:
    """Whether the text to execute, which begins here, is a string, and executes no others."""
    after = tokens.word(at + 1)
    is_whole = at + 1 == len(tokens) or tokens.is_symbol(at + 1, ";") or after in ("INTO", "USING")
    shown = tokens[at].text
    return tokens[at].kind is TokenKind.STRING and is_whole and _EXECUTE.search(shown) is None


def _assigned(gateway: Gateway, found: Relation, into: SqlText) -> Relation:
    """Let Spark set variables to the row of a query."""
    with gateway.translated():
        rows = found.df.limit(2).localCheckpoint()  # an error in it is one of the query, not of INTO
    text = SqlText.of("EXECUTE IMMEDIATE 'SELECT * FROM ", RelationText("rows"), "' ", into)
    return Relation(gateway.sql(text, {"rows": rows}), found.plan(), gateway)


def _evaluated(gateway: Gateway, expression: SqlText) -> str | None:
    """The text to execute; None if Spark refuses it: it is NULL, or no text."""
    found = gateway.sql(SqlText.of("EXECUTE IMMEDIATE 'SELECT ?' USING (", expression, ") AS text"))
    if not isinstance(found.schema[0].dataType, StringType):
        return None
    with gateway.translated():
        text: str | None = found.collect()[0][0]
    return text


def _with_values(gateway: Gateway, inner: TokenList, tokens: TokenList, using: Range) -> SqlText:
    """The text with values in place of its parameters, as Spark writes them."""
    marks = [(at, at + 1) for at in parameter_marks(inner)]
    marks = sorted(marks + [(at, at + 2) for at in range(len(inner)) if _begins_name(inner, at)])
    whole = SqlText.of(Piece(inner.sql, inner.sql))
    if not marks and using[0] == using[1]:
        return whole
    names = [inner.text(*mark) for mark in marks]
    selected = literal("SELECT " + (", ".join(names) or "1"))
    try:
        frame = gateway.sql(SqlText.of("EXECUTE IMMEDIATE ", selected, " ", piece_of(tokens, *using)))
    except WindrowError as error:
        if error.sql is None and marks and "PARAMETER" in error.condition:  # Spark does not say where
            error.sql, error.span = inner.sql, inner.span(marks[0][0], marks[-1][1])
            error.hint = "write a value for each ? after USING, or USING value AS name for :name"
        raise
    values = list[str]()
    if marks and gateway.is_connect:
        values = values_on_connect(gateway, names, frame, piece_of(tokens, *using))
    elif marks:
        values = selected_texts(frame)
    values = [f" {value}" if value.startswith("-") else value for value in values]  # x -? is no comment
    places = [inner.span(*mark) for mark in marks]
    return whole.with_words(inner.sql, dict(zip(places, values, strict=True)))


def _begins_name(tokens: TokenList, at: int) -> bool:
    """Whether a parameter ``:name`` begins here, not the type or value of what is written before."""
    if not (tokens.is_symbol(at, ":") and tokens.is_name(at + 1)) or at == 0:
        return False
    before = tokens[at - 1]
    is_operand = before.is_name or before.text in (")", "]")
    return not (is_operand and before.stop == tokens[at].start)


def _refused(inner: TokenList, message: str, condition: str, hint: str) -> AnalysisError:
    return AnalysisError(
        message, condition=condition, sqlstate="07501", sql=inner.sql, span=inner.span(0, 1), hint=hint
    )

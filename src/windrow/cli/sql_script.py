"""The SQL of a command: where it is read from, and the statements in it."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from windrow.errors import InputError, Span, UsageError, WindrowError
from windrow.syntax.query_parts import split_statements
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["ScriptStatement", "read_script", "split_script"]

_QUERIES = frozenset(
    {"SELECT", "WITH", "FROM", "VALUES", "TABLE", "MAP", "REDUCE", "ISTREAM", "DSTREAM", "RSTREAM"}
)
_RETURN_ROWS = frozenset({"SHOW", "DESCRIBE", "DESC", "EXPLAIN", "LIST", "BEGIN", "EXECUTE"})
# Spark answers these with the new setting, which is no result.
_SILENT = frozenset({"SET", "RESET", "USE"})
_SESSION_LOCAL = frozenset({"SET", "RESET", "USE", "DECLARE"})


@dataclass(frozen=True, slots=True)
class ScriptStatement:
    """One statement of a script.

    Attributes
    ----------
    script
        The whole text.
    span
        The place of the statement in it.
    words
        Its first words in capitals; the empty string for a token that is no word.
    is_query
        Whether it is a query, which runs only when its rows are read.
    source
        The place of the query in CREATE … AS SELECT and INSERT INTO … SELECT; None for other statements.
    """

    script: str
    span: Span
    words: tuple[str, ...]
    is_query: bool
    source: Span | None = None

    @property
    def padded(self) -> str:
        """The statement after as many spaces as characters before it: errors have positions in the script."""
        return _padded(self.script, self.span)

    @property
    def padded_source(self) -> str | None:
        """The query of :attr:`source` in the same way."""
        return _padded(self.script, self.source) if self.source is not None else None

    @property
    def line(self) -> int:
        """The number of its first line, from 1."""
        return self.script.count("\n", 0, self.span.start) + 1

    @property
    def returns_rows(self) -> bool:
        """Whether it is a query or lists something."""
        return self.is_query or self.words[0] in _RETURN_ROWS

    @property
    def is_silent(self) -> bool:
        """Whether the rows with which Spark answers it are not printed."""
        return self.words[0] in _SILENT

    @property
    def is_explain(self) -> bool:
        """Whether it is EXPLAIN itself."""
        return self.words[0] == "EXPLAIN"

    @property
    def is_session_local(self) -> bool:
        """Whether it affects only later statements of the session, as temporary views and SET do."""
        if self.words[0] in _SESSION_LOCAL:
            return True
        return self.words[0] == "CREATE" and bool({"TEMP", "TEMPORARY", "STREAM"} & set(self.words[1:5]))

    def relocated(self, error: WindrowError, inserted: int = 0) -> WindrowError:
        """The error with its position in the script instead of in the text that was run.

        `inserted` is the number of characters that were added to that text before the statement.
        """
        if error.span is not None and error.sql is not None:
            error.sql = self.script
            error.span = error.span.shifted(-inserted)
        return error


def read_script(file: Path | None, command: str | None) -> str:
    """The text of ``-c``, of a file, or of stdin (``-``, or a pipe where neither is passed).

    Raises
    ------
    UsageError
        ``NO_QUERY``, ``TWO_QUERIES``, ``QUERY_FILE_NOT_FOUND``.
    InputError
        ``UNREADABLE_QUERY``.
    """
    if command is not None and file is not None:
        raise UsageError(
            "a file cannot be combined with -c",
            condition="TWO_QUERIES",
            hint="put the query into one of them",
        )
    if command is not None:
        return command
    if file is None and sys.stdin.isatty():
        raise UsageError(
            "there is no query to run", condition="NO_QUERY", hint="name a file, or write -c 'SELECT …'"
        )
    try:
        if file is None or str(file) == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"query of {file or 'stdin'} is not UTF-8 text (byte {error.start})",
            condition="UNREADABLE_QUERY",
            hint="name a file with SQL text; attach data files with --table NAME=PATH",
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot read query file {file}: {error.strerror}",
            condition="QUERY_FILE_NOT_FOUND",
            hint="check the path; write -c before a query on the command line",
        ) from None


def split_script(text: str) -> list[ScriptStatement]:
    """The statements between semicolons.

    Raises
    ------
    UsageError
        ``NO_QUERY`` where there are none.
    """
    tokens = tokenize(text)
    statements = [_statement(tokens, start, stop) for start, stop in split_statements(tokens)]
    if not statements:
        raise UsageError(
            "query is empty",
            condition="NO_QUERY",
            hint="write a statement, such as SELECT 1, into the file, after -c, or to stdin",
        )
    return statements


def _padded(script: str, span: Span) -> str:
    return re.sub(r"[^\n]", " ", script[: span.start]) + script[span.start : span.stop]


def _statement(tokens: TokenList, start: int, stop: int) -> ScriptStatement:
    words = tuple(tokens.word(index) for index in range(start, min(start + 6, stop)))
    # A bracket begins a query: (SELECT …) UNION …
    is_query = words[0] in _QUERIES or tokens.is_symbol(start, "(")
    inserts = any(
        tokens.word(index) == "INSERT" and tokens.word(index + 1) in ("INTO", "OVERWRITE")
        for index in tokens.level(start, stop)
    )
    return ScriptStatement(
        script=tokens.sql,
        span=tokens.span(start, stop),
        words=words,
        is_query=is_query and not inserts,
        source=_source(tokens, start, stop) if words[0] in ("CREATE", "REPLACE", "INSERT") else None,
    )


def _source(tokens: TokenList, start: int, stop: int) -> Span | None:
    for index in tokens.level(start, stop):
        if tokens.word(index) in ("SELECT", "WITH") and tokens.word(index + 1) != "SCHEMA":
            return tokens.span(index, stop)
    return None

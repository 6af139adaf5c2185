"""Files that FROM names by their paths: each is read as a temporary view of the session."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

from windrow.algebra.names import verbatim
from windrow.errors import InputError
from windrow.spark.gateway import Gateway
from windrow.spark.scan.file_sources import read_table
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenKind, TokenList, tokenize

__all__ = ["may_name_files", "with_files"]

_MAY = re.compile(r"""\b(?:from|join)(?:\s|--[^\n]*\n|/\*.*?\*/)*['"]""", re.IGNORECASE | re.DOTALL)
_STATEMENTS = ("SELECT", "WITH", "FROM", "EXPLAIN", "INSERT", "CREATE", "CACHE", "")
_GLOB = re.compile(r"[*?\[{]")


def may_name_files(text: str) -> bool:
    """Whether a text may name a file."""
    return _MAY.search(text) is not None


def with_files(gateway: Gateway, text: str) -> SqlText | None:
    """The statement with views in place of files; None if it names no file.

    ``SELECT * FROM 'data/sensor.csv'`` reads a temporary view, under the alias ``sensor``. Each statement
    that names a file checks it again.

    Raises
    ------
    InputError
        As :func:`windrow.spark.scan.file_sources.read_table`, at the path.
    """
    if not may_name_files(text):
        return None
    tokens = tokenize(text)
    if tokens.word(0) not in _STATEMENTS or _makes_a_stream(tokens):
        return None
    paths = [at for at in range(len(tokens)) if _is_path(tokens, at)]
    if not paths:
        return None
    parts: list[SqlText | Piece | str] = []
    done = 0
    for at in paths:
        token = tokens[at]
        path = token.text[1:-1]
        try:
            with gateway.translated():
                frame = read_table(gateway.spark, path)
        except InputError as error:
            error.sql, error.span = tokens.sql, token.span
            raise
        name = _view(path)
        frame.createOrReplaceTempView(name)
        parts += [
            verbatim(tokens, done, token.start),
            Piece(quoted(name), tokens.sql, token.start, len(token.text)),
        ]
        if alias_after(tokens, at + 1, len(tokens)) is None:
            parts.append(f" AS {quoted(_alias(path))} ")
        done = token.stop
    return SqlText.of(*parts, verbatim(tokens, done, len(text)))


def _is_path(tokens: TokenList, at: int) -> bool:
    token = tokens[at]
    return token.kind is TokenKind.STRING and token.text[0] in "'\"" and begins_relation(tokens, at)


def _makes_a_stream(tokens: TokenList) -> bool:
    """Whether it is [EXPLAIN] CREATE [OR REPLACE] STREAM, where FROM has a recorded text."""
    words = [tokens.word(at) for at in range(min(len(tokens), 6))]
    return words[0] in ("CREATE", "EXPLAIN") and "CREATE" in words and "STREAM" in words


def _view(path: str) -> str:
    """The name of the view of a path, which depends on the working directory."""
    whole = path if "://" in path else str(Path(path).absolute())
    name = re.sub(r"\W+", "_", path.rsplit("/", 1)[-1])
    return f"__file_{name}_{sha256(whole.encode()).hexdigest()[:12]}"


def _alias(path: str) -> str:
    """The name of a table in a file: that of the file, or of the folder of many, up to its first dot.

    >>> _alias("data/sensor.csv.gz"), _alias("bids/*.parquet"), _alias("*.json")
    ('sensor', 'bids', 'files')
    """
    names = [part for part in path.split("/") if part and not _GLOB.search(part)]
    return names[-1].split(".")[0] if names else "files"

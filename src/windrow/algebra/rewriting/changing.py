"""Functions that do not depend only on rows: those of the system clock, and nondeterministic ones."""

from __future__ import annotations

from windrow.errors import NotSupportedError
from windrow.syntax.nodes import Range
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["reads_time", "refuse_changing", "varies_by_run"]

_BY_RUN = {"rand", "randn", "random", "randstr", "uniform", "uuid", "shuffle",
           "monotonically_increasing_id", "spark_partition_id", "input_file_name"}  # fmt: skip
_CLOCK = {"current_timestamp", "now", "current_date", "curdate", "current_time", "localtimestamp"}
_WITH_BRACKETS = {"now", "curdate"}


def reads_time(tokens: TokenList, index: int) -> bool:
    """Whether a token begins a call of the system clock."""
    token = tokens[index]
    if (
        token.kind is not TokenKind.WORD
        or token.text.lower() not in _CLOCK
        or tokens.is_symbol(index - 1, ".")
    ):
        return False
    called = tokens.is_symbol(index + 1, "(")
    return not tokens.is_symbol(index + 1, ".") and (called or token.text.lower() not in _WITH_BRACKETS)


def varies_by_run(tokens: TokenList, index: int) -> bool:
    """Whether a token begins a call of a nondeterministic function."""
    token = tokens[index]
    return token.kind is TokenKind.WORD and token.text.lower() in _BY_RUN and tokens.is_symbol(index + 1, "(")


def refuse_changing(tokens: TokenList, query: Range) -> None:
    """Refuse a continuous query whose result would differ between runs.

    Raises
    ------
    NotSupportedError
        ``SYSTEM_CLOCK``, ``NONDETERMINISTIC_QUERY``.
    """
    for index in range(*query):
        if tokens.is_symbol(index - 1, "."):
            continue
        called = tokens.is_symbol(index + 1, "(")
        if reads_time(tokens, index):
            message, condition = "a query over streams cannot read the system clock", "SYSTEM_CLOCK"
            hint = "read a column of processing times, or pass the time as a parameter"
        elif varies_by_run(tokens, index):
            message, condition = (
                f"{tokens[index].text} returns a different value in each run",
                "NONDETERMINISTIC_QUERY",
            )
            hint = "compute it once into a column of a stored table"
        else:
            continue
        stop = tokens.partner[index + 1] + 1 if called else index + 1
        raise NotSupportedError(
            message, condition=condition, sql=tokens.sql, span=tokens.span(index, stop), hint=hint
        )

"""The rows of a block with GROUP BY before WINDOW BY: its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windrow.algebra.qualified import relations_of, written
from windrow.errors import NotSupportedError, ParseError
from windrow.syntax.blocks import grouping_keys
from windrow.syntax.nodes import BlockText
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["groups"]


def groups(
    tokens: TokenList, block: BlockText, text: Callable[[int, int], SqlText], qualified: Sequence[SqlText]
) -> SqlText:
    """The grouped rows: the keys, the LET names, and columns that are read with their relations."""
    assert block.group_by is not None
    if tokens.text(*block.group_by).upper() == "ALL":
        raise NotSupportedError(
            "GROUP BY ALL before WINDOW BY is not supported",
            condition="UNSUPPORTED_CLAUSE",
            sql=tokens.sql,
            span=tokens.span(*block.group_by),
            hint="list the keys: SELECT has columns of windows here",
        )
    columns: list[SqlText] = []
    keys: list[SqlText] = []
    listed: set[tuple[str, ...]] = set()
    relations = _that_may_be_left_out(tokens, block)
    for start, stop in tokens.split(*block.group_by):
        named = stop - start > 2 and tokens.word(stop - 2) == "AS" and tokens[stop - 1].is_name
        keys.append(text(start, stop - 2 if named else stop))
        if named:
            columns.append(SqlText.of(keys[-1], " AS ", text(stop - 1, stop)))
            continue
        for key in grouping_keys(tokens, start, stop):
            said = written(tokens, key, relations)
            if said not in listed:
                listed.add(said)
                columns.append(text(*key))
    for start, stop in tokens.split(*block.let) if block.let else []:
        if stop - start < 3 or not tokens[start].is_name or not tokens.is_symbol(start + 1, "="):
            raise ParseError(
                "expected name = aggregate after LET",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens.span(start, stop),
                hint="write LET n = COUNT(*), m = AVG(x)",
            )
        columns.append(SqlText.of(text(start + 2, stop), " AS ", text(start, start + 1)))
    columns += qualified
    parts: list[str | SqlText] = [
        "SELECT ",
        SqlText.join(", ", columns),
        " ",
        text(*block.source),
        " GROUP BY ",
    ]
    having: list[str | SqlText] = [" HAVING ", text(*block.group_having)] if block.group_having else []
    over: list[str | SqlText] = [" ", text(*block.group_over)] if block.group_over else []
    return SqlText.of(*parts, SqlText.join(", ", keys), *having, *over)


def _that_may_be_left_out(tokens: TokenList, block: BlockText) -> set[str]:
    """The relations of FROM with which a column is the same as without: none beside a column of several."""
    merges = any(tokens.word(at) in ("USING", "NATURAL") for at in tokens.level(*block.source))
    return set() if merges else set(relations_of(tokens, block.source))

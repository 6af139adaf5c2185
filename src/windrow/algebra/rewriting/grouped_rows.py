"""The rows of a SELECT with GROUP BY before WINDOW BY: its groups."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from windrow.algebra.qualified import relations_of, written
from windrow.errors import ParseError
from windrow.syntax.expression_nodes import names_in
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import BlockText, Range
from windrow.syntax.query_parts import grouping_keys
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["groups"]


def groups(
    tokens: TokenList,
    query: BlockText,
    text: Callable[[int, int], SqlText],
    qualified: Sequence[SqlText],
    more: Sequence[SqlText] = (),
) -> SqlText:
    """The grouped rows: the keys, `more` keys, the LET names, and columns that are read with a qualifier.

    GROUP BY ALL groups by the columns that are read of the rows. Columns of two relations with the same name
    are two keys.
    """
    assert query.group_by is not None
    columns: list[SqlText] = []
    keys: list[SqlText] = []
    listed: set[tuple[str, ...]] = set()
    is_all = tokens.text(*query.group_by).upper() == "ALL"
    items = _read_of_rows(tokens, query) if is_all else tokens.split(*query.group_by)
    said = _sayings(tokens, query, [key for item in items for key in grouping_keys(tokens, *item)])
    for start, stop in items:
        named = stop - start > 2 and tokens.word(stop - 2) == "AS" and tokens[stop - 1].is_name
        if is_all and said((start, stop)) in listed:
            continue
        keys.append(text(start, stop - 2 if named else stop))
        if named:
            columns.append(SqlText.of(keys[-1], " AS ", text(stop - 1, stop)))
            continue
        for key in grouping_keys(tokens, start, stop):
            if said(key) not in listed:
                listed.add(said(key))
                columns.append(text(*key))
    for start, stop in tokens.split(*query.let) if query.let else []:
        if stop - start < 3 or not tokens[start].is_name or not tokens.is_symbol(start + 1, "="):
            raise ParseError(
                "expected name = aggregate after LET",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens.span(start, stop),
                hint="write LET n = COUNT(*), m = AVG(x)",
            )
        columns.append(SqlText.of(text(start + 2, stop), " AS ", text(start, start + 1)))
    columns += [*more, *qualified]
    keys += more
    parts: list[str | SqlText] = [
        "SELECT ",
        SqlText.join(", ", columns),
        " ",
        text(*query.source),
        " GROUP BY ",
    ]
    having: list[str | SqlText] = [" HAVING ", text(*query.group_having)] if query.group_having else []
    over: list[str | SqlText] = [" ", text(*query.group_over)] if query.group_over else []
    return SqlText.of(*parts, SqlText.join(", ", keys or [SqlText.of("GROUPING SETS (())")]), *having, *over)


def _read_of_rows(tokens: TokenList, query: BlockText) -> list[Range]:
    """The columns that a SELECT reads of the rows, by which GROUP BY ALL groups: all except the LET names."""
    clause = query.clause
    let = {tokens[start].name.lower() for start, _ in (tokens.split(*query.let) if query.let else [])}
    relations = set(relations_of(tokens, query.source))
    found: list[Range] = []
    for key in (*clause.partition_by, *(item.expression for item in clause.order_by)):
        for name in names_in(parse_expression(tokens, *key)):
            of_relation = len(name.parts) > 1 and name.parts[0].lower() in relations
            found.append((name.range[0], name.range[0] + (3 if of_relation else 1)))
    variables = {clause.name.lower(), *(item.name.lower() for item in clause.variables())}
    parts = (query.select, query.having, query.groups_after, query.tail)
    whens = (boundary.when for boundary in clause.boundaries())
    for start, stop in (part for part in (*parts, *whens) if part is not None):
        for at in range(start, stop - 2):
            of_row = tokens[at].is_name and tokens[at].name.lower() in variables
            if not of_row or tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at - 1, ":"):
                continue
            if tokens.is_symbol(at + 1, ".") and tokens[at + 2].is_name:
                in_relation = tokens.is_symbol(at + 3, ".") and tokens[at + 2].name.lower() in relations
                found.append((at + 2, at + (5 if in_relation else 3)))
    return [part for part in found if tokens[part[1] - 1].name.lower() not in let]


def _sayings(
    tokens: TokenList, query: BlockText, keys: Sequence[Range]
) -> Callable[[Range], tuple[str, ...]]:
    """A function that normalizes keys: their qualifier counts if several relations have key columns with the
    same name.
    """
    relations, merged = _that_may_be_left_out(tokens, query), _merged(tokens, query.source)
    full = {written(tokens, key, set()) for key in keys}
    paths = [one[1:] for one in full if len(one) > 2 and not one[0] and one[1] in relations]
    names = [path[1:] for path in paths]

    def said(key: Range) -> tuple[str, ...]:
        found = written(tokens, key, relations)
        is_of_relation = names.count(found[1:]) > 1 or (len(found) > 1 and found[1] in merged)
        return written(tokens, key, set()) if is_of_relation else found

    return said


def _that_may_be_left_out(tokens: TokenList, query: BlockText) -> set[str]:
    """The relations of FROM whose columns are the same with and without qualifier: none beside NATURAL."""
    merges = any(tokens.word(at) == "NATURAL" for at in range(*query.source))
    return set() if merges else set(relations_of(tokens, query.source))


def _merged(tokens: TokenList, source: Range) -> set[str]:
    """The columns of USING, in lower case: with a qualifier, they are not the same as without."""
    lists = [at + 1 for at in range(*source) if tokens.word(at) == "USING" and tokens.is_symbol(at + 1, "(")]
    return {tokens[at].name.lower() for first in lists for at in range(first + 1, tokens.partner[first])}

"""The columns that a statement selects, if it only selects and renames columns of its windows.

SELECT s.k, ep, AVG(w.x) AS a FROM …   →   field k of s, ep, an aggregate as a
"""

from __future__ import annotations

from dataclasses import dataclass

from windrow.algebra.bound_statement import BoundStatement
from windrow.syntax.sqltext import RelationText, SqlText
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["ChosenColumn", "chosen_columns"]


@dataclass(frozen=True)
class ChosenColumn:
    """A field of a variable, a position or an aggregate; and its name in the answer."""

    source: str
    field: str | None
    name: str


def chosen_columns(statement: BoundStatement) -> list[ChosenColumn] | None:
    """The columns of the last window that the statement selects, if no two share a name; otherwise None."""
    key = statement.windows[-1].key
    if [part.key for part in statement.text.parts if isinstance(part, RelationText)] != [key]:
        return None
    return _chosen(statement.text, key)


def _chosen(text: SqlText, key: str) -> list[ChosenColumn] | None:
    tokens = tokenize(text.render())
    last = len(tokens) - 1
    if tokens.word(0) != "SELECT" or tokens.word(last - 1) != "FROM" or tokens[last].name != key:
        return None
    columns = [_column(tokens, *item) for item in tokens.split(1, last - 1)]
    found = [column for column in columns if column is not None]
    names = {column.name.lower() for column in found}
    return found if len(found) == len(columns) == len(names) else None


def _column(tokens: TokenList, start: int, stop: int) -> ChosenColumn | None:
    if stop - start > 2 and tokens.word(stop - 2) == "AS":
        if not tokens.is_name(stop - 1):
            return None
        inner = _column(tokens, start, stop - 2)
        return None if inner is None else ChosenColumn(inner.source, inner.field, tokens[stop - 1].name)
    if not all(tokens.is_name(at) for at in range(start, stop, 2)):
        return None
    match stop - start:
        case 1:
            return ChosenColumn(tokens[start].name, None, tokens[start].name)
        case 3 if tokens.is_symbol(start + 1, "."):
            return ChosenColumn(tokens[start].name, tokens[start + 2].name, tokens[start + 2].name)
    return None

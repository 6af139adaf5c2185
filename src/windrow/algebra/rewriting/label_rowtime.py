"""The rowtime of windows, whether or not their label row has a name.

START WHEN n.v > 1 END …  →  START AS since_row WHEN n.v > 1 END …         since_row.ts
START UNBOUNDED END …     →  START AS since_row AT since_at WHEN since_at = 1 END …
"""

from __future__ import annotations

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.syntax.nodes import BlockText, Range, Role
from windrow.syntax.select_list import is_path
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["column_of_key", "put_label_row"]


def put_label_row(edits: Edits, query: BlockText) -> tuple[SqlText | None, list[str]]:
    """Add the rowtime to the windows of a SELECT; returns its text, and the variables added to the clause.

    There is no rowtime if no column orders the windows, which the plan refuses.
    """
    tokens, clause = edits.tokens, query.clause
    key = column_of_key(tokens, clause.order_by[0].expression)
    if key is None:
        return None, []
    boundary = clause.label or clause.start
    row = next((one for one in boundary.variables if one.role is Role.ROW), None)
    if row is not None:
        return SqlText.of(quoted(row.name), ".", key), []
    label, place = _free(tokens, "since_row"), _free(tokens, "since_at")
    word = "START" if clause.label is None else "LABEL"
    inside = (at for at in range(*query.range) if tokens[at].start >= boundary.span.start)
    at = next(at for at in inside if tokens.word(at) == word) + 1
    if not boundary.unbounded:
        edits.put(at, f"AS {label}")
        return SqlText.of(f"{label}.", key), [label]
    edits.instead[at] = SqlText.of(f"AS {label} AT {place} WHEN {place} = 1 ")
    return SqlText.of(f"{label}.", key), [label, place]


def column_of_key(tokens: TokenList, key: Range) -> SqlText | None:
    """The column that a key is, without its qualifier; None for an expression."""
    return piece_of(tokens, key[1] - 1, key[1]) if is_path(tokens, key) else None


def _free(tokens: TokenList, name: str) -> str:
    """A name like this that does not occur in the text: Windrow's reserved names cannot be variables.

    >>> from windrow.syntax.tokens import tokenize
    >>> _free(tokenize("START AS since_row"), "since_row")
    'since_row_'
    """
    taken = {token.name.lower() for token in tokens.tokens if token.is_name}
    while name in taken:
        name += "_"
    return name

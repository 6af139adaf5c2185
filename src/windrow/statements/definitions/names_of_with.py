"""Queries of WITH with the name of a table that a SQL function reads: they get another name.

WITH t AS (…) SELECT f(t.v) FROM t    where f reads a table t
→  WITH __with0 AS (…) SELECT f(t.v) FROM __with0 AS t
"""

from __future__ import annotations

from windrow.algebra.names import piece_of
from windrow.statements.definitions.function_calls import outermost_calls
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.statements.definitions.stored_text import names_of_relations
from windrow.syntax.cql_clauses import alias_after, begins_relation
from windrow.syntax.definitions.sql_functions import SqlFunction
from windrow.syntax.nodes import Cte
from windrow.syntax.query_parts import visible_ctes, with_items
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["with_other_names"]


def with_other_names(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with other names for such queries; None if there are none."""
    hidden: dict[Cte, None] = {}
    for at in outermost_calls(tokens, functions):
        function = functions.called(tokens, at)
        assert function is not None
        read = _read_elsewhere(function)
        hidden |= {one: None for name, one in _visible(tokens, at).items() if name in read}
    if not hidden:
        return None
    edits: dict[int, SqlText] = {}
    names = {one: f"__with{number}" for number, one in enumerate(hidden)}
    for one, name in names.items():
        edits[one.item[0]] = SqlText.of(Piece(name, tokens.sql, *_place(tokens, one.item[0])))
    for relation in names_of_relations(tokens):
        at, stop = relation.at
        cte = _visible(tokens, at).get(tokens[at].name.lower())
        if cte is None or cte not in names or len(relation.parts) > 1:
            continue
        named = Piece(names[cte], tokens.sql, *_place(tokens, at))
        edits[at] = SqlText.of(named)
        last = _before_alias(tokens, stop)
        if not relation.is_query(tokens) and alias_after(tokens, last, len(tokens)) is None:
            alias = SqlText.of(" AS ", quoted(tokens[at].name))
            edits[last - 1] = SqlText.of(edits.get(last - 1, piece_of(tokens, last - 1, last)), alias)
    parts, done = [], 0
    for at, text in sorted(edits.items()):
        parts += [piece_of(tokens, done, at, " "), text, SqlText.of(" ")]
        done = at + 1
    return SqlText.of(*parts, piece_of(tokens, done, len(tokens)))


def _before_alias(tokens: TokenList, at: int) -> int:
    """The token behind what may stand between a name and its alias: a sample, or a window in brackets."""
    while True:
        if tokens.is_symbol(at, "["):
            at = tokens.partner[at] + 1
        elif tokens.word(at) in ("TABLESAMPLE", "REPEATABLE") and tokens.is_symbol(at + 1, "("):
            at = tokens.partner[at + 1] + 1
        else:
            return at


def _place(tokens: TokenList, at: int) -> tuple[int, int]:
    return tokens[at].start, tokens[at].stop - tokens[at].start


def _visible(tokens: TokenList, at: int) -> dict[str, Cte]:
    """The named queries that a token sees, by their names in lower case; in a recursion, that itself."""
    lists = (with_items(tokens, index) for index in tokens.places("WITH"))
    own = [one for items in lists for one in items if one.recursive and one.body[0] <= at < one.body[1]]
    return {one.name.lower(): one for one in (*visible_ctes(tokens, at), *own)}


def _read_elsewhere(function: SqlFunction) -> set[str]:
    """The names of the relations that a function reads, but for its own queries of WITH."""
    body = tokenize(function.body)
    return {
        body[at].name.lower()
        for at in range(len(body))
        if body[at].is_name
        and begins_relation(body, at)
        and not body.is_symbol(at + 1, ".")
        and not body.is_symbol(at + 1, "(")
        and all(one.name.lower() != body[at].name.lower() for one in visible_ctes(body, at))
    }

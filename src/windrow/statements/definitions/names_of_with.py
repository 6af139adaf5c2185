"""Queries of WITH with the name of a table that a SQL function reads: they get another name.

WITH t AS (…) SELECT f(t.v) FROM t    where f reads a table t
→  WITH __with0 AS (…) SELECT f(t.v) FROM __with0 AS t
"""

from __future__ import annotations

from windrow.algebra.names import piece_of
from windrow.errors import NotSupportedError
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

_BEFORE_ALIAS = ("TABLESAMPLE", "FOR", "TIMESTAMP", "VERSION", "WITH")


def with_other_names(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with other names for such queries; None if there are none.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` where such a query is read by a clause that takes no alias behind its name.
    """
    hidden: dict[Cte, SqlFunction] = {}
    for at in outermost_calls(tokens, functions):
        function = functions.called(tokens, at)
        assert function is not None
        read = _read_elsewhere(function)
        hidden |= {one: function for name, one in _visible(tokens, at).items() if name in read}
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
        if tokens.is_symbol(stop, "[") or tokens.word(stop) in _BEFORE_ALIAS:
            name, function = cte.name, hidden[cte]
            raise NotSupportedError(
                f"the name {name} of a query of WITH hides the {name} that function {function.name} reads",
                condition="UNSUPPORTED_QUERY",
                sql=tokens.sql,
                span=tokens.span(*cte.item),
                hint="rename the query of WITH",
            )
        is_named = relation.is_query(tokens) or alias_after(tokens, stop, len(tokens)) is not None
        named = Piece(names[cte], tokens.sql, *_place(tokens, at))
        edits[at] = SqlText.of(named, "" if is_named else f" AS {quoted(tokens[at].name)}")
    parts, done = [], 0
    for at, text in sorted(edits.items()):
        parts += [piece_of(tokens, done, at, " "), text, SqlText.of(" ")]
        done = at + 1
    return SqlText.of(*parts, piece_of(tokens, done, len(tokens)))


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

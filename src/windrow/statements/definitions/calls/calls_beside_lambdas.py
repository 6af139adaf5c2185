"""Calls of SQL functions over windows beside lambda functions: columns of the relations in FROM.

    SELECT transform(array(f(v)), x -> x + 1) FROM t
      →  SELECT transform(array(__of_row0.__value), x -> x + 1)
         FROM t, LATERAL (SELECT f(v) AS __value) AS __of_row0

    FROM t, LATERAL (SELECT `__each_f`(transform(xs, x -> …)) AS y) AS z
      →  FROM t, LATERAL (SELECT transform(xs, x -> …) AS __value) AS __of_row1,
         LATERAL (SELECT `__each_f`(__of_row1.__value) AS y) AS z

Spark has no subqueries in the arguments of functions with lambda functions.
"""

from __future__ import annotations

from windrow.algebra.names import piece_of
from windrow.algebra.rewriting.edits import Edits
from windrow.algebra.rewriting.groups_of_windows import put_instead
from windrow.algebra.scopes import scopes
from windrow.errors import NotSupportedError
from windrow.statements.definitions.added_columns import (
    leave_out,
    put_column,
    reads_groups,
    takes_columns,
    unused_name,
)
from windrow.statements.definitions.function_calls import (
    alone_in_lateral,
    depth_of,
    end_of_column,
    first_of_call,
    outermost_calls,
    select_around,
    select_at,
)
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.sqltext import SqlText
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = ["calls_beside_lambdas"]

_VALUE = "__value"


def calls_beside_lambdas(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with the first such call as a column of FROM; None if there is none.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` where FROM cannot have the column.
    """
    for at in outermost_calls(tokens, functions):
        call, function = (first_of_call(tokens, at), tokens.partner[at + 1] + 1), functions.called(tokens, at)
        if function is not None and function.of_each is not None:
            found = _with_list(tokens, at)
            if found is not None:
                return found
        if function is None or function.returns_table or not _is_beside_lambda(tokens, call[0]):
            continue
        found = _with_column(tokens, call)
        if found is None:
            raise NotSupportedError(
                f"function {function.name} contains windows, so it cannot be called here in a function with a"
                " lambda function",
                condition="UNSUPPORTED_QUERY",
                sql=tokens.sql,
                span=tokens.span(*call),
                hint="select it in a subquery in FROM",
            )
        return found
    return None


def _with_list(tokens: TokenList, at: int) -> SqlText | None:
    """The text with the list that such a call behind LATERAL is given as a column, for Spark to compare it.

    None if it is one, and for other calls.
    """
    alone, argument = alone_in_lateral(tokens, at), (at + 2, tokens.partner[at + 1])
    if alone is None or end_of_column(tokens, argument[0]) == argument[1]:
        return None
    lateral, row, edits = alone[0][0] - 1, unused_name(tokens), Edits(tokens)
    joins = "," if tokens.is_symbol(lateral - 1, ",") else "CROSS JOIN"
    listed = SqlText.of("LATERAL (SELECT ", piece_of(tokens, *argument), f" AS {_VALUE}) AS {row} {joins}")
    edits.put(lateral, listed)
    put_instead(edits, argument, f"{row}.{_VALUE}")
    select = select_at(tokens, lateral)
    is_hidden = select is None or leave_out(edits, select, [f"{row}.{_VALUE}"])
    return edits.text(0, len(tokens)) if is_hidden else None


def _is_beside_lambda(tokens: TokenList, at: int) -> bool:
    """Whether a token stands in the arguments of a function of which another is a lambda function."""
    around = tokens.parent[at]
    while around >= 0 and not opens_query(tokens, around):
        own = tokens.level(around + 1, tokens.partner[around])
        if any(tokens.is_symbol(one, "->") and tokens.parent[one] == around for one in own):
            return True
        around = tokens.parent[around]
    return False


def _with_column(tokens: TokenList, call: Range) -> SqlText | None:
    select, row, edits = select_around(tokens, call[0]), unused_name(tokens), Edits(tokens)
    value = SqlText.of("(SELECT ", piece_of(tokens, *call), f" AS {_VALUE}) AS {row}")
    if select is None:
        return None
    if select.part("FROM") is None:
        edits.put(select.items[1], "FROM ", value)
    else:
        scope = next(scopes(tokens, call[0], [*find_window_queries(tokens), *find_matches(tokens)]), None)
        is_own = scope is not None and scope.is_whole and depth_of(tokens, call[0], scope) == 0
        if scope is None or scope.source is None or not is_own:
            return None
        if not takes_columns(tokens, scope.source, select) or reads_groups(tokens, scope, select):
            return None
        edits.put(scope.source[1], ", LATERAL ", value)
    is_hidden = put_column(edits, select, call, [f"{row}.{_VALUE}"])
    return edits.text(0, len(tokens)) if is_hidden else None

"""Calls of SQL functions over windows in pipes (``FROM t |> …``): the operators with them as SELECTs.

FROM t |> EXTEND f(v) AS x |> WHERE x > 1
  →  (SELECT *, f(v) AS x FROM t) |> WHERE x > 1
FROM t |> AGGREGATE MAX(f(v)) GROUP BY k
  →  SELECT k, MAX(f(v)) FROM t GROUP BY k
FROM t |> SET v = f(v)
  →  (SELECT *, f(v) AS __called0 FROM t) |> SET v = __called0 |> DROP __called0
"""

from __future__ import annotations

from windrow.algebra.rewriting.pipes import Level, Piped, level_of
from windrow.statements.definitions.calls.calls_in_pivots import pivoted
from windrow.statements.definitions.function_calls import every_call, outermost_calls
from windrow.statements.definitions.stored_functions import KnownFunctions
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["calls_in_pipe"]

_JOINS = ("JOIN", "INNER", "CROSS", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI", "NATURAL", "LATERAL")
_KEEP_NAMES = ("WHERE", "EXTEND", "SET", "DROP", "ORDER", "LIMIT", "OFFSET", "TABLESAMPLE")
_CALLED = "__called"


def calls_in_pipe(tokens: TokenList, functions: KnownFunctions) -> SqlText | None:
    """The text with the first operator that calls functions as a SELECT; None if there is none.

    Calls in other operators stay where they are, and are reported.
    """
    for call in every_call(tokens, functions):
        inside = call
        while inside >= 0:
            level = level_of(tokens, inside)
            pipe = max((at for at in level.pipes if at < inside), default=None)
            if pipe is not None and tokens.parent[pipe] == tokens.parent[inside]:
                stop = next((at for at in level.pipes if at > pipe), level.stop)
                found = _as_select(tokens, level, pipe, stop, functions)
                if found is not None:
                    return found
            if any(tokens.word(at) == "SELECT" for at in range(level.start, inside)):
                break
            inside = tokens.parent[inside]
    return None


def _as_select(
    tokens: TokenList, level: Level, pipe: int, stop: int, functions: KnownFunctions
) -> SqlText | None:
    piped, word, first = Piped(tokens, level), tokens.word(pipe + 1), pipe + 2
    source = _source(piped, pipe)
    match word:
        case "SELECT":
            query = SqlText.of("SELECT ", piped.piece(first, stop), "FROM ", source)
        case "EXTEND":
            query = SqlText.of("SELECT *, ", piped.piece(first, stop), "FROM ", source)
        case "WHERE":
            query = SqlText.of("SELECT * FROM ", source, "WHERE ", piped.piece(first, stop))
        case "AGGREGATE":
            query = _aggregated(piped, source, first, stop)
        case "SET":
            return _set(piped, source, pipe, stop, list(every_call(tokens, functions)))
        case "PIVOT":
            inside = [call for call in outermost_calls(tokens, functions) if pipe < call < stop]
            relation, rest = pivoted(tokens, source, (pipe, stop), inside)
            return SqlText.of(piped.piece(0, level.start), relation, rest, piped.piece(stop, len(tokens)))
        case _ if word in _JOINS:
            query = SqlText.of("SELECT * FROM ", source, piped.piece(pipe + 1, stop))
        case _:
            return None
    return piped.put(level.start, query, stop)


def _source(piped: Piped, pipe: int) -> SqlText:
    """What is before a pipe, with the name that a relation has there."""
    tokens, level = piped.tokens, piped.level
    before = [at for at in level.pipes if at < pipe]
    relation = (level.start + 1, before[0] if before else pipe)
    source = piped.source(pipe, is_single=True)
    last = relation[0]
    while tokens.is_symbol(last + 1, ".") and last + 2 < relation[1]:
        last += 2
    alias = alias_after(tokens, last + 1, relation[1])
    is_name = tokens.word(level.start) == "FROM" and tokens[last].is_name
    is_whole = (last if alias is None else alias) == relation[1] - 1
    if (
        not before
        or not is_name
        or not is_whole
        or any(tokens.word(at + 1) not in _KEEP_NAMES for at in before)
    ):
        return source
    return SqlText.of(source, "AS ", quoted(tokens[last if alias is None else alias].name), " ")


def _aggregated(piped: Piped, source: SqlText, first: int, stop: int) -> SqlText:
    """AGGREGATE, which returns the keys before the aggregates."""
    tokens = piped.tokens
    own = [
        at for at in tokens.level(first, stop) if tokens.word(at) == "GROUP" and tokens.word(at + 1) == "BY"
    ]
    end = own[0] if own else stop
    keys = tokens.split(own[0] + 2, stop) if own else []
    items = [piped.piece(*item) for item in [*keys, *tokens.split(first, end)]]
    query = SqlText.of("SELECT ", SqlText.join(", ", items), "FROM ", source)
    grouped = [piped.piece(*without_alias(tokens, key)) for key in keys]
    return SqlText.of(query, "GROUP BY ", SqlText.join(", ", grouped)) if keys else query


def _set(piped: Piped, source: SqlText, pipe: int, stop: int, calls: list[int]) -> SqlText:
    """SET, of values that are columns before it."""
    tokens = piped.tokens
    items: list[SqlText] = []
    parts: list[SqlText] = []
    for start, end in tokens.split(pipe + 2, stop):
        if any(start <= call < end for call in calls):
            items.append(SqlText.of(piped.piece(start + 2, end), f"AS {_CALLED}{len(items)}"))
            parts.append(SqlText.of(piped.piece(start, start + 2), f"{_CALLED}{len(items) - 1} "))
        else:
            parts.append(piped.piece(start, end))
    names = ", ".join(f"{_CALLED}{number}" for number in range(len(items)))
    query = SqlText.of("SELECT *, ", SqlText.join(", ", items), " FROM ", source)
    rest = SqlText.of("|> SET ", SqlText.join(", ", parts), f" |> DROP {names} ")
    whole = SqlText.of(piped.piece(0, piped.level.start), "(", query, ") ", rest)
    return SqlText.of(whole, piped.piece(stop, len(tokens)))

"""Groups of a SELECT: keys, aggregates, and the columns that replace them in SELECT, HAVING and QUALIFY."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from windrow.algebra.aggregate_calls import calls_aggregate, find_calls, places_of_calls
from windrow.algebra.window_node import AggregateCall
from windrow.kernels.aggregates import FUNCTIONS
from windrow.plan.columns import ROWS, Column, Expression, Part
from windrow.plan.nodes import Aggregate, GroupAggregate, Node, Project
from windrow.plan.reader.query_rows import BlockRows, expression, filtered, passed, source_of
from windrow.plan.reader.read_sets import by_sets, grouping_calls, merged
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.plan.reasons import Reason
from windrow.syntax.expression_nodes import Name
from windrow.syntax.expressions import parse_expression
from windrow.syntax.expressions.window_calls import window_calls
from windrow.syntax.grouping_sets import grouping_sets
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, is_query
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.sqltext import SqlText
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["grouped", "groups_by_all", "is_grouped", "key_places", "keys_of", "read_of_rows"]


def is_grouped(tokens: TokenList, select: Select) -> bool:
    """Whether a SELECT has groups."""
    return (
        select.group_by is not None
        or select.having is not None
        or any(calls_aggregate(tokens, item) for item in select.items)
    )


def groups_by_all(tokens: TokenList, select: Select) -> bool:
    """Whether a SELECT groups by all columns that are not aggregates."""
    return select.group_by is not None and tokens.text(*select.group_by).upper() == "ALL"


def read_of_rows(statement: StatementText, select: Select, rows: BlockRows) -> list[Range]:
    """The expressions that a grouped SELECT computes from each row: keys, and arguments of aggregates."""
    tokens, by = statement.tokens, [] if select.group_by is None else [select.group_by]
    may_ask = any(True for part in (*select.items, *by) for _ in subqueries(tokens, part))
    found = _written_keys(statement, select, rows) if may_ask else []
    clauses = [clause for clause in (select.having, select.window, select.qualify) if clause is not None]
    for start, stop in places_of_calls(tokens, [*select.items, *clauses]):
        bracket = start + 1
        found += tokens.split(bracket + 1 + (tokens.word(bracket + 1) == "DISTINCT"), tokens.partner[bracket])
        if tokens.word(tokens.partner[bracket] + 1) == "FILTER":  # (WHERE …)
            found.append((tokens.partner[bracket] + 4, stop - 1))
    return found


def grouped(
    statement: StatementText,
    select: Select,
    rows: BlockRows,
    conditions: Sequence[Range],
    further: Sequence[str] = (),
) -> BlockRows:
    """The groups of a SELECT as rows; columns replace keys and aggregates in its text.

    `further` columns of the rows are keys too; they come first.
    """
    tokens = statement.tokens
    sets = None if select.group_by is None else grouping_sets(tokens, *select.group_by)
    keys = keys_of(statement, select, rows)
    clauses = [clause for clause in (select.window, select.qualify) if clause is not None]
    stretches = [*select.items, *([] if select.having is None else [select.having]), *clauses]
    if any(tokens.is_symbol(start, "*") for start, _ in select.items):
        raise UnreadError("SELECT * with GROUP BY", select.group_by)
    calls = find_calls(tokens, stretches, statement.text)
    rows = filtered(statement, rows, conditions, "WHERE")
    known = {column.id: column for column in rows.node.columns}
    read = [(column.name, one) for column, one in passed([known[own] for own in further])]
    read += [(statement.written(key), expression(statement, key, rows)) for key in keys]
    made = statement.fresh(len(read) + len(calls))
    columns = [(Column(own, name, one.type), one) for own, (name, one) in zip(made, read, strict=False)]
    arguments: dict[str, str] = {}
    scope = rows.scope(statement.prefix(select.items[0][0]))
    for name, call in zip(made[len(read) :], calls.values(), strict=True):
        if not _is_known(call):
            continue
        assert call.argument is not None
        if call.function == "count" and call.argument.text.render().strip() == "1":
            continue
        parsed = call.argument.expression
        source = rows.resolved(parsed) if isinstance(parsed, Name) else None
        type_ = statement.typed(call.argument.text, scope, rows.node.columns)
        columns.append((Column(name, name, type_), Expression(call.argument.text, type_, source)))
        arguments[call.name] = name
    if not columns:  # rows without columns could not be counted
        (one,) = statement.fresh(1)
        type_ = statement.typed(SqlText.of("1"), scope, rows.node.columns)
        columns.append((Column(one, "1", type_), Expression(SqlText.of("1"), type_)))
    whole = SqlText.join(", ", [SqlText.of("(", one.text, f") AS {column.id}") for column, one in columns])
    passes = all(one.column is not None for _, one in columns)
    inside = Project(rows.node, scope, tuple(columns), whole, "columns" if passes else "expressions")
    ids = statement.fresh(len(read) + len(calls))
    by = tuple(
        (Column(own, column.name, column.type), column.id)
        for own, (column, _) in zip(ids, columns[: len(read)], strict=False)
    )
    found = tuple(
        GroupAggregate(
            Column(own, call.text.render(), statement.typed(call.text, scope, rows.node.columns)),
            call,
            arguments.get(call.name),
            _is_known(call),
            place,
        )
        for own, (place, call) in zip(ids[len(read) :], calls.items(), strict=True)
    )
    written = ", ".join(name for name, _ in read)
    at = select.group_by or select.items[0]
    if sets is not None:
        sets = merged(sets, [source_of(statement, key, rows) for key in keys])
    groups = Aggregate(inside, by, found, f"GROUP BY {written or '()'}", at, len(further))
    of_sets = [] if sets is None else grouping_calls(statement, keys, sets, stretches)
    node: Node = groups if sets is None else by_sets(statement, groups, sets, of_sets)
    ids = [column.id for column in node.columns]
    own = ids[len(further) : len(by)]
    _replace(statement, select, keys, own, calls, ids[len(by) : len(by) + len(found)])
    for what, column in zip(of_sets, ids[len(by) + len(found) :], strict=False):
        statement.instead[what.at] = f"{ROWS}.{column}"
        statement.columns_at[what.at] = column
    named = [(_name_of(tokens, key), column) for key, column in zip(keys, own, strict=True)]
    visible = [(name, own) for name, own in named if name is not None]
    alias = f"__t{statement.numbers[0]}"
    part = Part(alias, tuple(name for name, _ in visible), tuple(own for _, own in visible))
    # subqueries beside the groups know the keys by the relations that they are of
    sources = {column.id: one.column for column, one in columns}
    around = tuple(
        Part(one.alias, (name,), (made_key,), qualified=True)
        for made_key, (_, read_key) in zip(ids, by, strict=False)
        for one in rows.relations
        for name, column in zip(one.names, one.columns, strict=True)
        if column == sources[read_key]
    )
    return BlockRows(node, (part,) if visible else (), (), around)


def _is_known(call: AggregateCall) -> bool:
    """Whether the name of an aggregate determines its result, regardless of the order of its rows."""
    if call.function is None or call.argument is None:
        return False
    return not FUNCTIONS[call.function].is_arbitrary


def keys_of(statement: StatementText, select: Select, rows: BlockRows) -> list[Range]:
    """The expressions of GROUP BY; for numbers and aliases, the expressions in SELECT."""
    return [_key_expression(statement, rows, key) for key in _written_keys(statement, select, rows)]


def _written_keys(statement: StatementText, select: Select, rows: BlockRows) -> list[Range]:
    """The elements of GROUP BY; for numbers and aliases, the items of SELECT."""
    tokens = statement.tokens
    if select.group_by is None:
        return []
    if groups_by_all(tokens, select):
        return [item for item in select.items if not calls_aggregate(tokens, item)]
    sets = grouping_sets(tokens, *select.group_by)
    keys = []
    for key in tokens.split(*select.group_by) if sets is None else sets.keys:
        first, last = key
        token = tokens[first] if last - first == 1 else None
        items: Sequence[Range] = ()
        if token is not None and token.kind is TokenKind.NUMBER and token.text.isdigit():
            items = select.items[int(token.text) - 1 : int(token.text)] if int(token.text) else ()
        elif token is not None and token.is_name and not _is_expression(statement, rows, key):
            items = [item for item in select.items if alias_of(tokens, item) == token.name.lower()]
        keys.append(items[0] if items else key)
    return keys


def _key_expression(statement: StatementText, rows: BlockRows, item: Range) -> Range:
    """An element of GROUP BY, or an item of SELECT without its alias."""
    for key in (item, without_alias(statement.tokens, item)):
        if _is_expression(statement, rows, key):
            return key
    raise UnreadError("a GROUP BY key that is not an expression", item)


def _is_expression(statement: StatementText, rows: BlockRows, key: Range) -> bool:
    if source_of(statement, key, rows) is not None:
        return True
    text, scope = SqlText.of("(", statement.text(key), ")"), rows.scope(statement.prefix(key[0]))
    kind = statement.attempt(lambda: statement.typed(text, scope, rows.node.columns), "")
    return not isinstance(kind, Reason)


def _replace(
    statement: StatementText,
    select: Select,
    keys: Sequence[Range],
    key_ids: Sequence[str],
    calls: Iterable[Range],
    call_ids: Sequence[str],
) -> None:
    """Substitute columns for aggregates and keys wherever the SELECT reads its groups."""
    tokens = statement.tokens
    replaced = dict(zip(calls, call_ids, strict=True))
    items = [without_alias(tokens, item) for item in select.items]
    clauses = [one for one in (select.having, select.window, select.qualify) if one is not None]
    parts: list[Range] = []
    if select.window is not None or select.qualify is not None or _has_over(tokens, select):
        read = [*select.items, *([] if select.qualify is None else [select.qualify])]
        for call in window_calls(tokens, read, select.window):
            parts += [*call.partition, *(item.expression for item in call.order)]
    for key, own in zip(keys, key_ids, strict=True):
        for stretch in [*items, *clauses, *parts]:
            for found in key_places(tokens, key, stretch):
                if not any(first < found[1] and found[0] < last for first, last in replaced):
                    replaced[found] = own
    for stretch, own in replaced.items():
        statement.instead[stretch] = f"{ROWS}.{own}"
        statement.columns_at[stretch] = own


def _has_over(tokens: TokenList, select: Select) -> bool:
    return any(tokens.word(at) == "OVER" for item in select.items for at in range(*item))


def key_places(tokens: TokenList, key: Range, stretch: Range) -> list[Range]:
    """Where a key's expression occurs in a range: a path anywhere, other expressions only as the
    whole range.
    """
    words = tokens.folded(*key)
    if tokens.folded(*stretch) == words:
        return [stretch]
    if not all(tokens[at].is_name or tokens.is_symbol(at, ".") for at in range(*key)):
        return []
    found = []
    inside = stretch[0]
    for start in range(stretch[0], stretch[1] - len(words) + 1):
        if tokens.is_symbol(start, "(") and is_query(tokens, start):
            inside = max(inside, tokens.partner[start])
        if start < inside:  # names there may be of its own relations
            continue
        stop = start + len(words)
        if tokens.folded(start, stop) != words:
            continue
        beside = (
            tokens.is_symbol(start - 1, ".") or tokens.is_symbol(stop, ".") or tokens.is_symbol(stop, "(")
        )
        if not beside:
            found.append((start, stop))
    return found


def _name_of(tokens: TokenList, key: Range) -> str | None:
    is_path = isinstance(parse_expression(tokens, *key), Name)
    return tokens[key[1] - 1].name if is_path else None

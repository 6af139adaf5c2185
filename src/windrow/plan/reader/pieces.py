"""Blocks that read several rows in a way that only Spark understands: their text, over pieces of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import LongType

from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import Column, Scope
from windrow.plan.nodes import TIMES, Pieces
from windrow.plan.reader.groups import groups_by_all, is_grouped, key_places, keys_of
from windrow.plan.reader.rows import Rows, column_of, filtered
from windrow.plan.reader.select import listed, sources_of
from windrow.plan.reader.statement import NotPlannedError, Statement
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, UnknownShapeError
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList
from windrow.syntax.window_calls import is_over

__all__ = ["framed_pieces", "grouped_pieces"]

Reason = NotPlannedError | UnknownShapeError
_SETS = ("ROLLUP", "CUBE", "GROUPING")
_UNKNOWN = {"DISTRIBUTE", "CLUSTER"}
_AFTER_KEYS = ("ORDER", "SORT", "ROWS", "RANGE")


def grouped_pieces(
    statement: Statement, select: Select, rows: Rows, conditions: Sequence[Range], why: Reason
) -> Pieces:
    """A block with groups."""
    tokens = statement.tokens
    keys = keys_of(statement, select, rows)
    if keys is None:
        _refuse_sets(statement, select)
    rows = filtered(statement, rows, conditions, "WHERE")
    texts = [statement.text(key) for key in keys or ()]
    columns = []
    for key in keys or ():
        rows, column = column_of(statement, rows, key)
        columns.append(column)
    if select.group_by is not None and not groups_by_all(tokens, select):
        texts = [statement.text(select.group_by)]
    items = listed(statement, select, rows)
    having = SqlText() if select.having is None else SqlText.of(" HAVING ", statement.text(select.having))
    scope = rows.scope(statement.prefix(select.items[0][0]))
    by = SqlText.of(" GROUP BY ", SqlText.join(", ", [*texts, SqlText.of(TIMES)]))
    halves = _halves(scope, items, SqlText.of(by, having))
    empty = SqlText.of(scope.select(items), having) if keys == [] else None
    places = [without_alias(tokens, item) for item in select.items]
    found = dict(zip(keys or (), columns, strict=True))
    passes = [_key_at(tokens, place, found) for place in places]
    return _made(statement, rows, columns, halves, empty, why, select, passes)


def _key_at(tokens: TokenList, place: Range, keys: Mapping[Range, str]) -> str | None:
    """The column of the key that stands at a place."""
    found = (
        column for key, column in keys.items() if place == key or place in key_places(tokens, key, place)
    )
    return next(found, None)


def framed_pieces(
    statement: Statement, select: Select, rows: Rows, conditions: Sequence[Range], why: Reason
) -> Pieces:
    """A block with functions over frames."""
    tokens = statement.tokens
    brackets = _definitions(statement, select)
    rows = filtered(statement, rows, conditions, "WHERE")
    columns = []
    for key in _common_keys(statement, brackets):
        rows, column = column_of(statement, rows, key)
        columns.append(column)
    for start, stop in brackets:
        if tokens.word(start) == "PARTITION":
            statement.instead[start + 2, start + 2] = f"{TIMES}, "
        elif start == stop or tokens.word(start) in _AFTER_KEYS:
            statement.instead[start, start] = f" PARTITION BY {TIMES} "
    scope = rows.scope(statement.prefix(select.items[0][0]))
    after = SqlText()
    for word, clause in (("WINDOW", select.window), ("QUALIFY", select.qualify)):
        if clause is not None:
            after = SqlText.of(after, f" {word} ", statement.text(clause))
    halves = _halves(scope, listed(statement, select, rows), after)
    passes = [one for item in select.items for one in sources_of(statement, item, rows)]
    return _made(statement, rows, columns, halves, None, why, select, passes)


def _halves(scope: Scope, items: SqlText, after: SqlText) -> tuple[SqlText, SqlText]:
    """The text of a block up to the end of its list, and from there on."""
    before = SqlText.of(scope.prefix, "SELECT ", items)
    return before, SqlText.of(" FROM ", scope.rows(), after)


def _made(
    statement: Statement,
    rows: Rows,
    keys: Sequence[str],
    halves: tuple[SqlText, SqlText],
    empty: SqlText | None,
    why: Reason,
    select: Select,
    passes: Sequence[str | None],
) -> Pieces:
    times = Column(ENTER, ENTER, LongType()), Column(LEAVE, LEAVE, LongType())
    text = SqlText.of(halves[0], f", {TIMES}", halves[1])
    found = statement.analyser.schema(text, (*rows.node.columns, *times)).fields[:-2]
    columns = [
        Column(made, one.name, one.dataType)
        for made, one in zip(statement.fresh(len(found)), found, strict=True)
    ]
    label = f"SELECT {', '.join(statement.written(item) for item in select.items)}"
    known = (
        []
        if len(passes) != len(columns)
        else [
            (column.id, source) for column, source in zip(columns, passes, strict=True) if source is not None
        ]
    )
    return Pieces(
        rows.node,
        tuple(keys),
        halves,
        empty,
        tuple(columns),
        why,
        label,
        is_grouped(statement.tokens, select),
        tuple(known),
    )


def _refuse_sets(statement: Statement, select: Select) -> None:
    """Refuse the forms of ROLLUP and its kin in which columns of ours would count."""
    assert select.group_by is not None
    tokens, (start, stop) = statement.tokens, select.group_by
    if tokens.word(stop - 2) == "WITH" or tokens.word(start) not in _SETS:
        raise NotPlannedError("this form of GROUP BY", select.group_by)
    if not any(tokens[at].is_name for at in range(start + 1, stop) if tokens.word(at) != "SETS"):
        raise NotPlannedError("sets without a key", select.group_by)  # a row while there is nothing
    read = [*select.items, *([] if select.having is None else [select.having])]
    if any(tokens.word(at) == "GROUPING_ID" for item in read for at in range(*item)):
        raise NotPlannedError("GROUPING_ID", select.group_by)


def _definitions(statement: Statement, select: Select) -> list[Range]:
    """What is in the brackets of OVER and of named windows."""
    tokens, found = statement.tokens, []
    clauses = [clause for clause in (select.qualify, select.window) if clause is not None]
    for start, stop in (*select.items, *clauses):
        for at in range(start, stop):
            named = tokens.word(at) == "AS" and (start, stop) == select.window
            if not named and not is_over(tokens, at):
                continue
            statement.windows.add(at)
            if tokens.is_symbol(at + 1, "("):
                found.append((at + 2, tokens.partner[at + 1]))
    strange = next((one for one in found for at in range(*one) if tokens.word(at) in _UNKNOWN), None)
    if strange is not None:
        raise NotPlannedError("DISTRIBUTE BY in OVER", strange)
    return found


def _common_keys(statement: Statement, brackets: Sequence[Range]) -> list[Range]:
    """The expressions by which all frames are partitioned."""
    tokens = statement.tokens
    common: dict[str, Range] | None = None
    for start, stop in brackets:
        word = tokens.word(start)
        if start < stop and word not in ("PARTITION", *_AFTER_KEYS):
            continue  # a named window with more
        keys: dict[str, Range] = {}
        if word == "PARTITION":
            ends = [at for at in tokens.level(start, stop) if tokens.word(at) in _AFTER_KEYS]
            items = tokens.split(start + 2, ends[0] if ends else stop)
            keys = {tokens.text(*key): key for key in items}
        common = keys if common is None else {text: key for text, key in common.items() if text in keys}
    return list((common or {}).values())

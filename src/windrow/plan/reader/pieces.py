"""SELECTs that read several rows in a way that only Spark understands: their text, over intervals of time.

The rows of a SELECT carry the bounds of intervals, which become additional group and partition keys. A whole
query is evaluated for each interval by a lateral join with the relations as they are then.
:mod:`windrow.plan.reader.computed_by_spark` has columns that Spark computes from rows and subqueries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql.types import LongType

from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS, Column, Scope
from windrow.plan.nodes import TIMES, Node, Pieces
from windrow.plan.reader.groups import groups_by_all, is_grouped, key_places, keys_of
from windrow.plan.reader.query_rows import BlockRows, column_of, filtered
from windrow.plan.reader.reader_state import ReaderState
from windrow.plan.reader.select import listed, sources_of
from windrow.plan.reader.sources import input_of
from windrow.plan.reader.statement_text import NotAnalysed, StatementText
from windrow.plan.reasons import Reason
from windrow.syntax.expressions.window_calls import is_over
from windrow.syntax.grouping_sets import grouping_sets
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Piece, RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["framed_pieces", "grouped_pieces", "whole_pieces"]

_UNKNOWN = {"DISTRIBUTE", "CLUSTER"}
_AFTER_KEYS = ("ORDER", "SORT", "ROWS", "RANGE")
_TIMES = Column(ENTER, ENTER, LongType()), Column(LEAVE, LEAVE, LongType())


def whole_pieces(reading: ReaderState, text: SqlText, at: Range, why: Reason) -> Pieces | None:
    """A query without nodes; `text` is the query with the keys of its inputs.

    None if Spark cannot evaluate it as a lateral join either.
    """
    statement = reading.statement
    inputs = statement.reader.inputs
    places = {item.key: place for place, item in inputs.items()}
    read = {key: input_of(reading, inputs[places[key]], places[key]) for key in text.relations()}
    then = SqlText.of(*(_then(part, read) for part in text.parts))
    before = SqlText.of("SELECT __q.*")
    after = SqlText.of(" FROM ", RelationText(ROWS), f" AS {ROWS} JOIN LATERAL (", then, ") AS __q")
    whole = SqlText.of(before, f", {TIMES}", after)
    known = {key: (*node.columns, *_TIMES) for key, node in read.items()}
    schema = statement.attempt(lambda: statement.analyser.schema(whole, _TIMES, known), "")
    if isinstance(schema, Reason):
        return None
    found = schema.fields[:-2]
    ids = statement.fresh(len(found))
    columns = tuple(Column(made, one.name, one.dataType) for made, one in zip(ids, found, strict=True))
    label = statement.written(at)
    if isinstance(why, NotAnalysed):
        why = Reason(why.what, at)
    return Pieces(None, tuple(read.items()), (), (before, after), None, columns, why, label, True, ())


def _then(part: Piece | RelationText, read: dict[str, Node]) -> Piece | RelationText | SqlText:
    """A part of a text, in which a relation stands for its rows in one interval."""
    if not isinstance(part, RelationText):
        return part
    listed = ", ".join(f"__r.{column.id} AS {quoted(column.name)}" for column in read[part.key].columns)
    return SqlText.of(f"(SELECT {listed} FROM ", part, f" AS __r WHERE __r.{ENTER} = {ROWS}.{ENTER})")


def grouped_pieces(
    statement: StatementText, select: Select, rows: BlockRows, conditions: Sequence[Range], why: Reason
) -> Pieces | None:
    """A SELECT with groups, except by several sets of keys."""
    tokens = statement.tokens
    if select.group_by is not None and grouping_sets(tokens, *select.group_by) is not None:
        return None
    keys = keys_of(statement, select, rows)
    brackets = _definitions(statement, select)
    if brackets is None:
        return None
    _part_by_times(statement, brackets)
    rows = filtered(statement, rows, conditions, "WHERE")
    texts = [statement.text(key) for key in keys]
    columns = []
    for key in keys:
        rows, column = column_of(statement, rows, key)
        columns.append(column)
    if select.group_by is not None and not groups_by_all(tokens, select):
        texts = [statement.text(select.group_by)]
    items = listed(statement, select, rows)
    having = SqlText() if select.having is None else SqlText.of(" HAVING ", statement.text(select.having))
    scope = rows.scope(statement.prefix(select.items[0][0]))
    by = SqlText.of(" GROUP BY ", SqlText.join(", ", [*texts, SqlText.of(TIMES)]))
    halves = _halves(scope, items, after=SqlText.of(by, having, _windows(statement, select)))
    empty = None if keys else SqlText.of(scope.select(items), having)
    places = [without_alias(tokens, item) for item in select.items]
    found = dict(zip(keys, columns, strict=True))
    passes = [_key_at(tokens, place, found) for place in places]
    return _made(statement, rows, columns, halves, empty, why, select, passes)


def _key_at(tokens: TokenList, place: Range, keys: Mapping[Range, str]) -> str | None:
    """The column of the key at a place."""
    for key, column in keys.items():
        if place == key or place in key_places(tokens, key, place):
            return column
    return None


def framed_pieces(
    statement: StatementText, select: Select, rows: BlockRows, conditions: Sequence[Range], why: Reason
) -> Pieces | None:
    """A SELECT with window functions."""
    brackets = _definitions(statement, select)
    if brackets is None:
        return None
    rows = filtered(statement, rows, conditions, "WHERE")
    columns = []
    for key in _common_keys(statement, brackets):
        rows, column = column_of(statement, rows, key)
        columns.append(column)
    _part_by_times(statement, brackets)
    scope = rows.scope(statement.prefix(select.items[0][0]))
    halves = _halves(scope, listed(statement, select, rows), after=_windows(statement, select))
    passes = [one for item in select.items for one in sources_of(statement, item, rows)]
    return _made(statement, rows, columns, halves, None, why, select, passes)


def _halves(scope: Scope, items: SqlText, after: SqlText | None = None) -> tuple[SqlText, SqlText]:
    """The text of a SELECT up to the end of its list, and the rest."""
    return SqlText.of(scope.prefix, "SELECT ", items), SqlText.of(scope.source(), after or SqlText())


def _part_by_times(statement: StatementText, brackets: Sequence[Range]) -> None:
    """Add the interval to the partition keys of all window functions."""
    tokens = statement.tokens
    for start, stop in brackets:
        if tokens.word(start) == "PARTITION":
            statement.instead[start + 2, start + 2] = f"{TIMES}, "
        elif start == stop or tokens.word(start) in _AFTER_KEYS:
            statement.instead[start, start] = f" PARTITION BY {TIMES} "


def _windows(statement: StatementText, select: Select) -> SqlText:
    """The WINDOW clause and its like in a SELECT."""
    text = SqlText()
    for word, clause in (("WINDOW", select.window), ("QUALIFY", select.qualify)):
        if clause is not None:
            text = SqlText.of(text, f" {word} ", statement.text(clause))
    return text


def _made(
    statement: StatementText,
    rows: BlockRows,
    keys: Sequence[str],
    halves: tuple[SqlText, SqlText],
    empty: SqlText | None,
    why: Reason,
    select: Select,
    passes: Sequence[str | None],
) -> Pieces:
    text = SqlText.of(halves[0], f", {TIMES}", halves[1])
    found = statement.analyser.schema(text, (*rows.node.columns, *_TIMES)).fields[:-2]
    columns = [
        Column(made, one.name, one.dataType)
        for made, one in zip(statement.fresh(len(found)), found, strict=True)
    ]
    label = f"SELECT {', '.join(statement.written(item) for item in select.items)}"
    known: list[tuple[str, str]] = []
    if len(passes) == len(columns):
        known = [(made.id, one) for made, one in zip(columns, passes, strict=True) if one is not None]
    return Pieces(
        rows.node,
        (),
        tuple(keys),
        halves,
        empty,
        tuple(columns),
        why,
        label,
        is_grouped(statement.tokens, select),
        tuple(known),
    )


def _definitions(statement: StatementText, select: Select) -> list[Range] | None:
    """The contents of the brackets of OVER and of named windows; None if a window is defined in
    another way.
    """
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
    return None if any(tokens.word(at) in _UNKNOWN for one in found for at in range(*one)) else found


def _common_keys(statement: StatementText, brackets: Sequence[Range]) -> list[Range]:
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

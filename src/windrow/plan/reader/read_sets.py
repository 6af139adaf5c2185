"""ROLLUP, CUBE and GROUPING SETS: the union of the groups by each set of keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import ByteType, DataType, IntegerType, LongType

from windrow.plan.columns import ROWS, Column, Expression, Scope, sql_of
from windrow.plan.nodes import Aggregate, Node, Project, SetOperation
from windrow.plan.reader.statement_text import StatementText, UnreadError
from windrow.syntax.grouping_sets import GroupingSets
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText

__all__ = ["GroupingCall", "by_sets", "grouping_calls", "merged"]

SET = "set"
"""The column with the number of a group's set of keys: rows of two sets may be equal in all others."""


@dataclass(frozen=True)
class GroupingCall:
    """``GROUPING(k)`` or ``GROUPING_ID(…)``: its place, and the keys whose bits it has."""

    at: Range
    keys: tuple[int, ...]
    type: DataType

    def value(self, chosen: Sequence[int]) -> int:
        """Its value for groups by a set of keys: a bit for each key that is not in the set."""
        found = 0
        for key in self.keys:
            found = found * 2 + (key not in chosen)
        return found


def merged(sets: GroupingSets, sources: Sequence[str | None]) -> GroupingSets:
    """The sets, where each contains all spellings of its keys that name the same column: ``k`` and
    ``t.k``.
    """

    def alike(one: int, other: int) -> bool:
        return one == other or (sources[one] is not None and sources[one] == sources[other])

    places = range(len(sources))
    return GroupingSets(
        sets.keys,
        tuple(tuple(key for key in places if any(alike(key, own) for own in one)) for one in sets.sets),
        tuple(key for key in places if not any(alike(key, before) for before in range(key))),
    )


def grouping_calls(
    statement: StatementText, keys: Sequence[Range], sets: GroupingSets, stretches: Sequence[Range]
) -> list[GroupingCall]:
    """The GROUPING calls of a SELECT; `keys` are its key expressions."""
    tokens, found = statement.tokens, []
    places = {tokens.folded(*key): place for own in (sets.keys, keys) for place, key in enumerate(own)}
    for at in (at for stretch in stretches for at in range(*stretch)):
        word = tokens.word(at)
        if word not in ("GROUPING", "GROUPING_ID") or not tokens.is_symbol(at + 1, "("):
            continue
        stop = tokens.partner[at + 1]
        named = tokens.split(at + 2, stop)
        if any(tokens.folded(*one) not in places for one in named):
            raise UnreadError(f"{word} of an expression that is not a GROUP BY key", (at, stop + 1))
        of = tuple(places[tokens.folded(*one)] for one in named) or sets.own
        found.append(GroupingCall((at, stop + 1), of, ByteType() if word == "GROUPING" else LongType()))
    return found


def by_sets(
    statement: StatementText, node: Aggregate, sets: GroupingSets, grouping_calls: Sequence[GroupingCall]
) -> Node:
    """The groups by each set of keys, instead of those by all of them.

    ::

        GROUP BY ROLLUP (k): count(*)   →   UNION ALL
                                            ├─ GROUP BY k: count(*)
                                            └─ GROUP BY (): count(*), and NULL AS k

    The columns are those of `node`, then one for each GROUPING call, and the number of the set. An empty set
    of keys is grouped by a constant, because Spark returns no row for it over empty input, unless it is the
    only set.
    """
    inside = node.input
    (one,) = statement.fresh(1)
    if not all(sets.sets) and not node.around and sets.keys:
        constant = Column(one, "()", IntegerType()), Expression(SqlText.of("1"), IntegerType())
        listed = SqlText.of(inside.listed, f", (1) AS {one}")
        inside = replace(inside, outputs=(*inside.outputs, constant), listed=listed)
    node = replace(node, input=inside)
    found: Node | None = None
    for number, chosen in enumerate(sets.sets):
        side = _side(statement, node, chosen, [*grouping_calls, number], one)
        if found is None:
            found = side
            continue
        others = {call.column.id for call in node.calls}
        by = [column.id for column, own in zip(found.columns, node.columns, strict=False)
              if own.id not in others]  # fmt: skip
        found = SetOperation(found, side, "union", True, found.columns, (*by, found.columns[-1].id))
    assert found is not None
    return found


def _side(
    statement: StatementText,
    node: Aggregate,
    chosen: Sequence[int],
    constants: Sequence[GroupingCall | int],
    one: str,
) -> Project:
    """The groups by one set of keys, with NULL for the other keys."""
    by = [*node.keys[: node.around], *(node.keys[node.around + place] for place in chosen)]
    sources = [source for _, source in by] or [one for column in node.input.columns if column.id == one]
    ids = statement.fresh(len(sources) + len(node.calls))
    types = {column.id: column for column in node.input.columns}
    keys = tuple(
        (Column(own, types[source].name, types[source].type), source)
        for own, source in zip(ids, sources, strict=False)
    )
    calls = tuple(
        replace(call, column=Column(own, call.column.name, call.column.type))
        for own, call in zip(ids[len(sources) :], node.calls, strict=True)
    )
    label = f"GROUP BY {', '.join(column.name for column, _ in by) or '()'}"
    groups = replace(node, keys=keys, calls=calls, label=label)
    made = {column.id: own for (column, _), own in zip(by, ids, strict=False)}
    made |= {call.column.id: own for call, own in zip(node.calls, ids[len(sources) :], strict=True)}
    outputs = []
    names = statement.fresh(len(node.columns) + len(constants))
    for own, column in zip(names, node.columns, strict=False):
        if column.id in made:
            text, source = SqlText.of(f"{ROWS}.{made[column.id]}"), made[column.id]
            outputs.append((Column(own, column.name, column.type), Expression(text, column.type, source)))
        else:
            nothing = SqlText.of(f"CAST(NULL AS {sql_of(column.type)})")
            value = Expression(nothing, column.type, reads=frozenset())
            outputs.append((Column(own, column.name, column.type), value))
    for own, what in zip(names[len(node.columns) :], constants, strict=True):
        kind: DataType = IntegerType() if isinstance(what, int) else what.type
        name = SET if isinstance(what, int) else statement.written(what.at)
        number = what if isinstance(what, int) else what.value(chosen)
        text = SqlText.of(f"CAST({number} AS {sql_of(kind)})")
        outputs.append((Column(own, name, kind), Expression(text, kind, reads=frozenset())))
    whole = SqlText.join(", ", [value.text for _, value in outputs])
    return Project(groups, Scope(), tuple(outputs), whole, "columns")

"""Groups whose keys live for so long: what a declared lifetime makes of a plan.

The rows of a key, in order of rowtime, are of one life of it from the first on, for as long as the lifetime;
the next begins another. That is a session whose gap and greatest length are the lifetime. So the lives are
sessions of what the group reads, and their end is one more key, which is event time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql.types import LongType

from windrow.algebra.clock import Clock
from windrow.algebra.rewriting.time_windows_as_sql import TICKS, TimeWindow, windowed
from windrow.plan.columns import ROWS, Column, Expression
from windrow.plan.nodes import Aggregate, Session
from windrow.plan.reader.read_over import AT
from windrow.plan.shown import Shown, passing, with_columns
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["LIFE", "with_lives"]

LIFE = ("__of_begin", "__of_end")
"""The columns that lives add."""


def with_lives(
    node: Aggregate, time: str, length: int, fresh: Callable[[int], list[str]], shown: Shown
) -> Aggregate:
    """Groups of which the end of their life is one more key.

    Parameters
    ----------
    time
        The column of the rowtime, which the rows can show.
    length
        The lifetime, in ticks.
    fresh
        Makes ids of columns.
    """
    inside = node.input
    rows = shown.showing(inside.input, [time])
    kinds = {column.id: column.type for column in rows.columns}
    kind = kinds[time].simpleString()
    clock = Clock.of(kind, "NANOSECOND")
    assert clock is not None
    ticks, begin, end, *made = fresh(3 + len(node.keys))
    outputs = {column.id: one for column, one in inside.outputs}
    keys, further = [], []
    for (_, source), own in zip(node.keys, made, strict=True):
        one = outputs[source]
        keys.append(one.column or own)
        if one.column is None:
            further.append((Column(own, own, one.type), Expression(one.text, one.type)))
    time_type = clock.kind if kind == "int" else kind
    text = clock.of_column(f"{ROWS}.{time}", time_type, clock.unit)
    further.append(
        (Column(ticks, TICKS, LongType()), Expression(SqlText.of(text), LongType(), rises_with=time))
    )
    timed = with_columns(rows, inside.scope, further, "the keys and times of lives")
    lengths = {"gap": length, "maxdur": length}
    window = TimeWindow("SESSION", time, time_type, clock, lengths, LIFE, tuple(dict.fromkeys(keys)))
    read = ", ".join(dict.fromkeys([*keys, time, AT]))
    data = SqlText.of(f"(SELECT {read} FROM ", RelationText(ROWS), ")")
    listed = f"SELECT {', '.join(LIFE)}, {AT} FROM ("
    bound = LongType() if kind == "int" else kinds[time]
    bounds = (Column(begin, LIFE[0], bound), Column(end, LIFE[1], bound))
    session = Session(
        timed, tuple(dict.fromkeys(keys)), ticks, length, length,
        SqlText.of(listed, windowed(window, data), ")"), bounds, "lives of keys",
    )  # fmt: skip
    lived = passing(replace(inside, input=rows), session, [end])
    (key,) = fresh(1)
    return replace(node, input=lived, keys=(*node.keys, (Column(key, LIFE[1], bound), end)))

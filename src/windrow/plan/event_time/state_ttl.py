"""STATE LIFETIME: groups whose keys have a state TTL.

The state of a key begins with its first row, in order of rowtime, and expires after the TTL. The next row of
the key begins new state. That is a session whose gap and longest duration are the TTL. So the plan of such a
group is a SESSION over its input, and the end of the session is an additional key, which is event time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql.types import LongType

from windrow.algebra.rewriting.time_windows_as_sql import TICKS, TimeWindow, windowed
from windrow.algebra.time_scale import TimeScale
from windrow.plan.columns import ROWS, Column, Expression
from windrow.plan.nodes import Aggregate, SessionWindows
from windrow.plan.reader.read_over import AT
from windrow.plan.visible import VisibleColumns, passing, with_columns
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["TTL_BOUNDS", "with_ttl"]

TTL_BOUNDS = ("__of_begin", "__of_end")
"""The columns that these sessions add."""


def with_ttl(
    node: Aggregate, time: str, length: int, fresh: Callable[[int], list[str]], visible: VisibleColumns
) -> Aggregate:
    """Groups with an additional key: the time at which their state expires.

    Parameters
    ----------
    time
        The column of the rowtime, which the rows can show.
    length
        The TTL, in ticks.
    fresh
        Makes ids of columns.
    """
    inside = node.input
    rows = visible.showing(inside.input, [time])
    kinds = {column.id: column.type for column in rows.columns}
    kind = kinds[time].simpleString()
    scale = TimeScale.of(kind, "NANOSECOND")
    assert scale is not None
    ticks, begin, end, *made = fresh(3 + len(node.keys))
    outputs = {column.id: one for column, one in inside.outputs}
    keys, further = [], []
    for (_, source), own in zip(node.keys, made, strict=True):
        one = outputs[source]
        keys.append(one.column or own)
        if one.column is None:
            further.append((Column(own, own, one.type), Expression(one.text, one.type)))
    time_type = scale.kind if kind == "int" else kind
    text = scale.of_column(f"{ROWS}.{time}", time_type, scale.unit)
    further.append(
        (Column(ticks, TICKS, LongType()), Expression(SqlText.of(text), LongType(), rises_with=time))
    )
    timed = with_columns(rows, inside.scope, further, "the keys and times of state TTL")
    lengths = {"gap": length, "maxdur": length}
    window = TimeWindow("SESSION", time, time_type, scale, lengths, TTL_BOUNDS, tuple(dict.fromkeys(keys)))
    read = ", ".join(dict.fromkeys([*keys, time, AT]))
    data = SqlText.of(f"(SELECT {read} FROM ", RelationText(ROWS), ")")
    listed = f"SELECT {', '.join(TTL_BOUNDS)}, {AT} FROM ("
    bound = LongType() if kind == "int" else kinds[time]
    bounds = (Column(begin, TTL_BOUNDS[0], bound), Column(end, TTL_BOUNDS[1], bound))
    session = SessionWindows(
        timed, tuple(dict.fromkeys(keys)), ticks, length, length,
        SqlText.of(listed, windowed(window, data), ")"), bounds, "state TTL of keys",
    )  # fmt: skip
    lived = passing(replace(inside, input=rows), session, [end])
    (key,) = fresh(1)
    return replace(node, input=lived, keys=(*node.keys, (Column(key, TTL_BOUNDS[1], bound), end)))

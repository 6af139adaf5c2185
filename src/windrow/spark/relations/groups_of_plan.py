"""Groups, window functions, and the first rows in an order, over time-varying relations.

For aggregates with a kernel, the result has a row for each interval in which a group does not change. Spark
computes everything else that reads several rows in each such interval, with a copy of the rows for each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra.rewriting.time_windows_as_sql import windowed
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.sorting import SortKey
from windrow.kernels.zset.keyed_operator import First
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import is_carried, is_orderable
from windrow.plan.columns import ROWS
from windrow.plan.event_time.window_times import window_of
from windrow.plan.reasons import Reason
from windrow.spark.relations.aggregates_of_plan import kernel_aggregates
from windrow.spark.relations.bags import BagRows, Bags, inner
from windrow.spark.tasks.keyed import can_be_keyed, run_keyed
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = [
    "distinct",
    "evaluated",
    "first",
    "framed",
    "frames_of_a_block",
    "grouped",
    "in_sessions",
    "kernel_groups",
]

RowsOf = Callable[[plan.Node], BagRows]
Specs = tuple[tuple[str, AggregateSpec], ...]


def kernel_groups(bags: Bags, node: plan.Aggregate) -> Specs | None:
    """The aggregates as the kernel's; None if the kernel does not support these groups."""
    if not node.columns:
        return None
    found = kernel_aggregates(bags.gateway, node)
    return None if isinstance(found, Reason) else found


def grouped(bags: Bags, node: plan.Aggregate, specs: Specs | None, rows_of: RowsOf) -> BagRows:
    """The groups; `specs` are their aggregates if the kernel supports them."""
    if specs is None:
        rows = bags.temporal(rows_of(node.input.input))
        found = _by_spark(bags, node, rows)
    else:
        rows = bags.temporal(rows_of(node.input))
        sources = [source for _, source in node.keys]
        result = StructType([rows.frame.schema[source] for source in sources])
        for call in node.calls:
            result = result.add(call.column.id, call.column.type)
        sides = [rows.frame]
        if not node.keys:
            sides.append(bags.from_beginning(_of_nothing(bags, node, rows_of)))
        frame = run_keyed(bags.gateway, "group", sides, sources, result, aggregates=specs, until=node.until)
        return BagRows(frame.toDF(*(column.id for column in node.columns), ENTER, LEAVE), is_temporal=True)
    return found if node.keys else _with_empty(bags, rows, found, _of_nothing(bags, node, rows_of))


def _of_nothing(bags: Bags, node: plan.Aggregate, rows_of: RowsOf) -> DataFrame:
    """The row of a group without keys while it is empty."""
    inside = node.input
    nothing = rows_of(inside.input).frame.limit(0).drop(ENTER, LEAVE)
    texts = [SqlText.of(one.call.text, f" AS {one.column.id}") for one in node.calls]
    listed = SqlText.join(", ", texts or [SqlText.of("count(1) AS __one")])
    return bags.gateway.sql(inside.scope.select(listed), {ROWS: nothing}).drop("__one")


def _by_spark(bags: Bags, node: plan.Aggregate, rows: BagRows) -> BagRows:
    """The groups computed by Spark: every row once for each interval of its time."""
    inside = node.input
    columns = {column.id: one.text for column, one in inside.outputs}
    sources = [source for _, source in node.keys]
    own = {column.id for column in inside.input.columns}
    computed = [source for source in sources if source not in own]
    keys = [SqlText.of(", (", columns[source], f") AS {source}") for source in computed]
    text = inside.scope.select(SqlText.of(f"{ROWS}.*", *keys))
    pieces = _pieces(bags, bags.gateway.sql(text, {ROWS: rows.frame}), sources)
    outputs = [SqlText.of(f"{ROWS}.{source} AS {column.id}") for column, source in node.keys]
    outputs += [SqlText.of(one.call.text, f" AS {one.column.id}") for one in node.calls]
    by = ", ".join([*(f"{ROWS}.{source}" for source in sources), plan.TIMES])
    listed = SqlText.join(", ", [*outputs, SqlText.of(plan.TIMES)])
    found = bags.gateway.sql(SqlText.of(inside.scope.select(listed), f" GROUP BY {by}"), {ROWS: pieces})
    return BagRows(found, is_temporal=True)


def _pieces(bags: Bags, frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The rows, once for each interval in which those with equal keys do not change.

    Keys that Spark does not compare by their bytes do not split intervals.
    """
    by = [key for key in keys if is_carried(frame.schema[key].dataType)]
    return run_keyed(bags.gateway, "expand", [frame], by, inner(frame))


def distinct(bags: Bags, rows: BagRows) -> BagRows:
    """Each distinct row once."""
    if can_be_keyed(rows.frame):
        return bags.counted("distinct", [rows.frame])
    return BagRows(_pieces(bags, rows.frame, rows.columns).distinct(), is_temporal=True)


def _with_empty(bags: Bags, rows: BagRows, found: BagRows, empty: DataFrame) -> BagRows:
    """Without GROUP BY there is a row even for empty input, from the log's first instant on."""
    one = F.lit(0).alias("__one")
    whole = bags.from_beginning(bags.gateway.spark.range(1).select(one))
    none = bags.partnered("anti", whole, {}, rows.frame.select(one, ENTER, LEAVE)).select(ENTER, LEAVE)
    return BagRows(found.frame.unionAll(empty.crossJoin(none)), is_temporal=True)


def evaluated(bags: Bags, node: plan.Pieces, rows_of: RowsOf) -> BagRows:
    """The result of a SELECT or a query that Spark evaluates as a whole."""
    names = [column.id for column in node.columns]
    if node.input is None or node.beside:
        return _beside_others(bags, node, rows_of)
    rows = bags.temporal(rows_of(node.input))
    pieces = _pieces(bags, rows.frame, node.keys)
    found = BagRows(bags.gateway.sql(node.text, {ROWS: pieces}).toDF(*names, ENTER, LEAVE), is_temporal=True)
    if node.empty is None:
        return found
    nothing = rows.frame.limit(0).drop(ENTER, LEAVE)
    return _with_empty(bags, rows, found, bags.gateway.sql(node.empty, {ROWS: nothing}).toDF(*names))


def in_sessions(bags: Bags, node: plan.SessionWindows, rows: BagRows) -> BagRows:
    """The rows with begin and end of their sessions, in each interval."""
    pieces = _pieces(bags, bags.temporal(rows).frame, node.keys)
    time = next(column for column in node.input.columns if column.id == node.time)
    window = window_of(node, time, by_ids=True)
    window = replace(window, keys=(*window.keys, ENTER, LEAVE))
    found = bags.gateway.sql(windowed(window, SqlText.of(RelationText(ROWS))), {ROWS: pieces})
    bounds = {column.name: column.id for column in node.bounds}
    own = [column.id for column in node.input.columns]
    return BagRows(
        found.withColumnsRenamed(bounds).select(*own, *bounds.values(), ENTER, LEAVE), is_temporal=True
    )


def _beside_others(bags: Bags, node: plan.Pieces, rows_of: RowsOf) -> BagRows:
    """The result of a text that Spark evaluates over several relations, in the same intervals."""
    inputs = {key: bags.temporal(rows_of(one)) for key, one in node.beside}
    if node.input is not None:
        inputs[ROWS] = bags.temporal(rows_of(node.input))
    pieces = _timeline(bags, [one.frame for one in inputs.values()])
    relations = {key: _cut(bags, one.frame, pieces) for key, one in inputs.items()}
    relations.setdefault(ROWS, pieces)
    names = [column.id for column in node.columns]
    return BagRows(bags.gateway.sql(node.text, relations).toDF(*names, ENTER, LEAVE), is_temporal=True)


def _timeline(bags: Bags, frames: Sequence[DataFrame]) -> DataFrame:
    """The intervals between changes of any of these relations, from the logs' first instant on."""
    one = F.lit(0).alias("__piece")  # no row is without columns
    times = bags.from_beginning(bags.gateway.spark.range(1).select(one))
    for frame in frames:
        times = times.unionAll(frame.select(one, ENTER, LEAVE))
    pieces = run_keyed(bags.gateway, "timeline", [times], [], StructType([]))
    return pieces.select(one, ENTER, LEAVE)


def _cut(bags: Bags, frame: DataFrame, pieces: DataFrame) -> DataFrame:
    """The rows, once for each of these intervals in which they exist."""
    both = StructType([*inner(frame), *inner(pieces)])
    return run_keyed(bags.gateway, "join", [frame, pieces], [], both).select(*frame.columns)


def framed(
    bags: Bags, node: plan.Over, rows_of: RowsOf, project: Callable[[plan.Project, BagRows], BagRows]
) -> BagRows:
    """The rows with the results of window functions, several in sequence over the same intervals."""
    chain = frames_of_a_block(node)
    common = set.intersection(*(set(one.partition) for one in chain if isinstance(one, plan.Over)))
    base = bags.temporal(rows_of(chain[-1].input))
    rows = BagRows(_pieces(bags, base.frame, sorted(common)), is_temporal=True)
    for one in reversed(chain):
        if isinstance(one, plan.Project):
            rows = project(one, rows)
            continue
        calls = [
            SqlText.of(text, f" AS {column.id}")
            for text, (column, _, _) in zip(one.parted(plan.TIMES), one.calls, strict=True)
        ]
        names = [SqlText.of(f"{ROWS}.{column}") for column in rows.columns]
        listed = SqlText.join(", ", [*names, *calls, SqlText.of(plan.TIMES)])
        rows = BagRows(bags.gateway.sql(one.scope.select(listed), {ROWS: rows.frame}), is_temporal=True)
    return rows


def frames_of_a_block(node: plan.Over) -> list[plan.Over | plan.Project]:
    """The window functions of one SELECT, and the projections between them, the last one first."""
    chain: list[plan.Over | plan.Project] = []
    count = 0
    below: plan.Node = node
    while isinstance(below, plan.Over | plan.Project):
        if isinstance(below, plan.Project) and not _extends(below):
            break
        chain.append(below)
        count = len(chain) if isinstance(below, plan.Over) else count
        below = below.input
    return chain[:count]


def _extends(node: plan.Project) -> bool:
    """Whether a projection only adds columns."""
    ids = [column.id for column in node.input.columns]
    return (
        [one.column for _, one in node.outputs[: len(ids)]]
        == ids
        == [column.id for column, _ in node.outputs[: len(ids)]]
    )


def first(bags: Bags, node: plan.Sort, rows: BagRows) -> BagRows:
    """The first rows at each instant, of all or of each partition; among equals, any."""
    rows = bags.temporal(rows)
    kinds = {column.id: column.type for column in node.columns}
    by = [key.column for key in node.keys]
    assert all(is_orderable(kinds[name]) for name in by), "Spark orders by no others"
    # a column may be ordered by twice
    names = [f"__o{number}" for number in range(len(by))]
    frame = rows.frame.withColumns({name: F.col(column) for name, column in zip(names, by, strict=True)})
    keys = [
        SortKey(name, key.descending, key.nulls_first) for name, key in zip(names, node.keys, strict=True)
    ]
    ties = [SortKey(name) for name in rows.columns if is_orderable(kinds[name])]
    first_rows = First(tuple(rows.columns), (*keys, *ties), node.offset, node.limit)
    # in the order of a partition, which has the rows of a key
    found = run_keyed(bags.gateway, "first", [frame], node.partition, inner(rows.frame), first=first_rows)
    return BagRows(found, is_temporal=True)

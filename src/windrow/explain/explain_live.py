"""EXPLAIN of live queries: how they are evaluated, when they emit rows, and what their state is."""

from __future__ import annotations

from decimal import Decimal

from windrow.algebra.names import without_since
from windrow.explain.explain_text import section
from windrow.explain.explained import explain
from windrow.kernels.advance import retention
from windrow.plan.format import tree
from windrow.plan.nodes import Node
from windrow.spark.live import (
    BUFFERED_ROWS,
    NOT_CLOSED,
    ClausePlan,
    ContinuousPlan,
    EmittedPlan,
    LivePlan,
    WholeStreamsPlan,
    graph_of,
    unbounded_by_tasks,
    why_by_tasks,
    why_not,
    why_on_driver,
)
from windrow.spark.live.plans.read_names import live_windows
from windrow.spark.logs.session_streams import Stream
from windrow.syntax.lengths import interval_of

__all__ = ["explain_emitted", "explain_live", "how_blocking", "how_live"]

_WITH_STREAM = "only with the stream: a partition key is not an unchanged column of each of its streams"


def explain_live(plan: ClausePlan) -> str:
    """The plan of a query of clauses over rows, and for each clause when it emits and what its state is."""
    text = explain(plan.statement, tuple(clause.bound for clause in plan.clauses))
    parts = [text]
    for clause in plan.clauses:
        emitted, state = retention(clause.kernel.growing.plan, clause.kernel.frontier(0))
        streams = plan.catalog.streams
        read = [key for key in clause.clause.rows.relations() if key in plan.read]
        sources = [
            f"{_named(plan, name)}, by {streams[name].rowtime}{_watermark(streams[name])}"
            for name in dict.fromkeys(read)
        ]
        source = "; ".join(sources) or "the output of the clause before"
        lines = [("stream", source), ("evaluated", "in memory"), ("emitted", emitted), ("state", state)]
        ends = plan.ends.get(clause.clause.key)
        if ends is not None:
            by = ", and ".join(dict.fromkeys(map(str, ends)))
            lines.append(("closed", f"partitions whose keys punctuation closes, by {by}"))
        elif clause.kernel.growing.partition and not clause.keys:
            lines.append(("closed", _WITH_STREAM))
        unbounded = plan.grows(clause)
        if unbounded is not None:
            lines.append(("unbounded", str(unbounded)))
        if clause.is_spark_per_batch:
            what = "asked" if clause.pairs is None else "pairs"
            lines.append((what, "Spark evaluates them over retained and new rows in each micro-batch"))
        if plan.is_endless and clause is plan.clauses[-1]:
            lines += _host(plan)
        parts.append(section("live", lines))
    return "\n\n".join(parts)


def explain_emitted(plan: EmittedPlan) -> str:
    """The plan of a query with EMIT, how its micro-batches are evaluated, and what its state is."""
    instead = why_by_tasks(plan)
    if instead is None:
        lines = [("evaluated", "in memory, over what changes"), *_host(plan), ("state", plan.retains)]
        lines += [] if plan.stored is None else [("stored", plan.stored)]
    else:
        how = "by tasks, over all retained rows"
        why = ("because", f"of {instead}")
        lines = [("evaluated", how), why, *_host(plan), ("state", plan.retains_by_tasks)]
        lines += [("unbounded", str(one)) for one in unbounded_by_tasks(plan)]
    live = section("live", [*_streams(plan), *lines])
    return f"{plan.query.plan(plan.emit_envelope is not None)}\n\n{live}"


def _watermark(stream: Stream) -> str:
    """When the watermark of a live stream advances, in the words of CREATE STREAM."""
    live = stream.live
    if live is None:
        return ""
    order, tick = live.ordering, stream.scale.nanoseconds
    unordered = "UNORDERED" if order.lag is None else f"LAG {_length(order.lag * tick)}"
    words = ["ORDERED" if order.is_promise else unordered]
    words += [] if live.idle is None else [f"IDLE {_length(live.idle * 1000)}"]
    words += ["ON LATE FAIL"] if live.on_late == "fail" else []
    words += [] if order.future is None else [f"FUTURE {_length(order.future.micros * 1000)}"]
    return f", {', '.join(words)}"


def _length(nanoseconds: int) -> str:
    found = interval_of(Decimal(nanoseconds)).removeprefix("INTERVAL ") if nanoseconds else "0 SECONDS"
    return found.removesuffix("S") if found.startswith("1 ") else found


def _streams(plan: LivePlan) -> list[tuple[str, str]]:
    """The live streams that a query reads, each by its rowtime."""
    streams = plan.catalog.streams
    return [
        ("stream", f"{_named(plan, name)}, by {streams[name].rowtime}{_watermark(streams[name])}")
        for name in sorted(plan.streams)
    ]


def _named(plan: LivePlan, name: str) -> str:
    views = plan.catalog.sequences
    return views[name].label if name in views else plan.catalog.streams[name].name or name


def how_live(plan: ContinuousPlan) -> str:
    """How the micro-batches of a query over windows in brackets are evaluated."""
    unbounded = [("unbounded", str(one)) for one in plan.unbounded()]
    by_spark = plan.windowed.by_spark
    jobs = [] if by_spark is None else [("jobs", f"of Spark in each micro-batch, for {by_spark}")]
    how = ("evaluated", "in memory, over affected keys")
    text = section("live", [*_streams(plan), how, *jobs, *_states(plan), *_host(plan), *unbounded])
    return without_since(f"{_plan(plan.windowed.plan)}\n\n{text}")


def _states(plan: ContinuousPlan) -> list[tuple[str, str]]:
    """The retained rows of each window with bounded state."""
    found = []
    for window in live_windows(plan.catalog, plan.query, plan.reader):
        bracket = window.item.window
        if bracket.is_unbounded:
            continue
        what = "" if bracket.is_now else f"{plan.reason(window)}, and "
        found.append(f"{window.text}: {what}{BUFFERED_ROWS}")
    return [("state", text) for text in dict.fromkeys(found)]


def _host(plan: LivePlan) -> list[tuple[str, str]]:
    """Where the query runs, and by which columns its rows are exchanged."""
    instead = why_on_driver(plan)
    if instead is not None:
        return [("host", f"the driver: {instead}")]
    missing = why_not(plan)
    if missing is not None:
        return [("host", f"executors, which cannot run it: {missing}")]
    graph = graph_of(plan)
    divided = "; ".join(f"{side.stream} by {', '.join(side.labels)}" for side in graph.sides)
    has_key = any(side.key for side in graph.sides)
    exchange = f"{graph.buckets} buckets: {divided}" if has_key else "one bucket: no key divides the rows"
    lines = [("host", "executors"), ("exchange", exchange)]
    if graph.onward is not None:
        then = f"{graph.buckets} buckets, by other keys" if any(graph.onward.keys.values()) else "one bucket"
        lines.append(("exchange", f"{then}: the changes of the operators above"))
    return lines


def how_blocking(plan: WholeStreamsPlan) -> str:
    """The operators of a query over whole streams, and their unbounded state."""
    lines = [*_streams(plan), ("emitted", "rows that bounds and punctuations make final")]
    found = plan.unbounded()
    lines += [("unbounded", str(one)) for one in found] or [("state", NOT_CLOSED)]
    return f"{_plan(plan.blocking.plan)}\n\n{section('live', lines)}"


def _plan(plan: Node) -> str:
    """The nodes of a plan, one on each line."""
    return "\n".join(["plan", *(f"  {line}" for line in tree(plan))])

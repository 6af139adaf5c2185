"""EXPLAIN of live queries: how they are evaluated, when rows are given, which are kept till then."""

from __future__ import annotations

from windrow.explain.explain_text import section
from windrow.explain.explained import explain
from windrow.kernels.advance import keeping
from windrow.plan.format import tree
from windrow.plan.nodes import Node
from windrow.spark.live import (
    BlockingPlan,
    ContinuousPlan,
    EmittedPlan,
    LivePlan,
    SequencePlan,
    graph_of,
    why_by_tasks,
    why_not,
    why_on_driver,
)

__all__ = ["explain_emitted", "explain_live", "how_blocking", "how_live"]

_WITH_STREAM = "partitions with the stream: a key is not, as it is, a column of each of the streams behind it"


def explain_live(plan: SequencePlan) -> str:
    """The plan of the query, and what it keeps."""
    text = explain(plan.statement, tuple(clause.bound for clause in plan.clauses))
    parts = [text]
    for clause in plan.clauses:
        given, kept = keeping(clause.growing.plan, clause.frontier(0))
        streams = plan.catalog.streams
        read = [key for key in clause.clause.rows.relations() if key in plan.read]
        told = [
            f"{_named(plan, name)}, by {streams[name].rowtime}{_wary(plan, name)}"
            for name in dict.fromkeys(read)
        ]
        source = "; ".join(told) or "what the clause before gives"
        lines = [("stream", source), ("evaluated", "in memory"), ("given", given), ("kept", kept)]
        ends = plan.ends.get(clause.clause.key)
        if ends is not None:
            by = ", and ".join(dict.fromkeys(map(str, ends)))
            lines.append(("ended", f"partitions whose keys are promised to be over, by {by}"))
        elif clause.growing.partition and not clause.keys:
            lines.append(("ended", _WITH_STREAM))
        grows = plan.grows(clause)
        if grows is not None:
            lines.append(("unbounded", str(grows)))
        if clause.pairs is not None:
            lines.append(("pairs", "of rows that are kept or have come are tried by Spark in each step"))
        parts.append(section("live", lines))
    return "\n\n".join(parts)


def explain_emitted(plan: EmittedPlan) -> str:
    """How a query with EMIT is read, and what its steps keep."""
    instead = why_by_tasks(plan)
    if instead is None:
        lines = [("evaluated", "in memory, over what changes"), *_host(plan), ("kept", plan.keeps)]
    else:
        how = "by tasks, over all rows that are kept"
        why = ("because", f"of {instead}")
        lines = [("evaluated", how), why, *_host(plan), ("kept", plan.keeps_by_tasks)]
    return f"{plan.query.plan(plan.told_as is not None)}\n\n{section('live', lines)}"


def _wary(plan: SequencePlan, name: str) -> str:
    """How far ahead of their processing time rows of a stream may be."""
    live = plan.catalog.streams[name].live
    future = None if live is None else live.ordering.future
    return "" if future is None else f", at most {future.micros / 1e6:,g} seconds ahead of now"


def _named(plan: SequencePlan, name: str) -> str:
    views = plan.catalog.sequences
    return views[name].shown if name in views else plan.catalog.streams[name].name or name


def how_live(plan: ContinuousPlan) -> str:
    """How the steps of a query are evaluated."""
    instead = plan.not_staged
    how = (
        "in memory, over the keys that rows touch"
        if instead is None
        else "by the operators of recorded streams"
    )
    reason = [] if instead is None else [("because", f"of {instead}")]
    grows = [("unbounded", str(one)) for one in plan.unbounded()]
    text = section("live", [("evaluated", how), *reason, *_host(plan), *grows])
    return text if plan.stage is None else f"{_plan(plan.stage.plan)}\n\n{text}"


def _host(plan: LivePlan) -> list[tuple[str, str]]:
    """Where the query runs, and into which buckets its rows are divided."""
    instead = why_on_driver(plan)
    if instead is not None:
        return [("host", f"the driver: {instead}")]
    missing = why_not(plan)
    if missing is not None:
        return [("host", f"executors, which do not run it yet: {missing}")]
    graph = graph_of(plan)
    if not any(side.key for side in graph.sides):
        return [("host", "executors, in one bucket: nothing divides the rows")]
    divided = "; ".join(f"{side.stream} by {', '.join(side.shown)}" for side in graph.sides)
    return [("host", "executors"), ("exchange", f"{graph.buckets} buckets: {divided}")]


def how_blocking(plan: BlockingPlan) -> str:
    """The operators of a query over whole streams, and what of their state nothing bounds."""
    lines = [("stream", name) for name in sorted(plan.streams)]
    lines.append(("given", "what the promises of its streams make final"))
    found = plan.unbounded()
    lines += [("unbounded", str(one)) for one in found] or [("kept", "what is not yet promised to be over")]
    return f"{_plan(plan.blocking.plan)}\n\n{section('live', lines)}"


def _plan(plan: Node) -> str:
    """The nodes of a plan."""
    return "\n".join(["plan", *(f"  {line}" for line in tree(plan))])

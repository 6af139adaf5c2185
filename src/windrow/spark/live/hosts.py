"""Where a live query runs, on the driver or on executors, and the class that runs its micro-batches."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from windrow.errors import NotSupportedError, UsageError, did_you_mean, refuse_unknown
from windrow.spark.live.checkpoints.checkpoint import BUCKETS, form_in
from windrow.spark.live.executors.bucket_steps import ExecutorSteps
from windrow.spark.live.executors.graphs.graph import graph_of, why_not
from windrow.spark.live.micro_batches.clause_steps import ClauseSteps
from windrow.spark.live.micro_batches.emit_steps import EmittedSteps
from windrow.spark.live.micro_batches.host import MicroBatches
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.query_steps import Steps
from windrow.spark.live.micro_batches.whole_streams_steps import WholeStreamsSteps
from windrow.spark.live.micro_batches.windowed_steps import WindowedSteps
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.plans.live_plan import ContinuousPlan, LivePlan
from windrow.spark.live.plans.whole_streams_plan import WholeStreamsPlan
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink
from windrow.spark.relations.changelog import ENVELOPES
from windrow.spark.runtime.local import local_cores
from windrow.syntax.streams.emit_clause import EMIT_ENVELOPES

__all__ = ["HOST_SETTING", "micro_batches_of", "why_on_driver"]

HOST_SETTING = "spark.windrow.live.host"
"""``auto``, ``driver`` or ``executors``."""

_HOSTS = ("auto", "driver", "executors")


def why_on_driver(plan: LivePlan, envelope: str | None = None) -> str | None:
    """Why a query runs on the driver; None if executors run it, or the setting requests them.

    `envelope` is the form of its changes, if it is not the plan's own.

    Raises
    ------
    UsageError
        ``INVALID_SETTING``.
    """
    host = _requested_host(plan)
    if host == "executors":
        return None
    if host == "driver":
        return f"{HOST_SETTING} says so"
    if plan.gateway.is_connect:
        return "Spark Connect"
    if local_cores(str(plan.gateway.spark.sparkContext.master)) is not None:
        return "the master is local"
    why = why_not(plan, envelope)
    return None if why is None else f"executors do not run it yet: {why}"


def _requested_host(plan: LivePlan) -> str:
    host = str(plan.gateway.spark.conf.get(HOST_SETTING, None) or "auto").lower()
    if host not in _HOSTS:
        raise UsageError(
            f"{HOST_SETTING} has the unknown value {host!r}",
            condition="INVALID_SETTING",
            hint=did_you_mean(host, _HOSTS) or f"use one of {', '.join(_HOSTS)}",
        )
    return host


def micro_batches_of(
    plan: LivePlan,
    sink: Sink | IntoStream,
    folder: Path,
    envelope: str,
    on_late: str,
    on_malformed: str = "fail",
) -> MicroBatches:
    """The object that runs the micro-batches of a query.

    The arguments are those of :class:`LiveContext`; `on_malformed` is as for
    :meth:`windrow.relation.Relation.start`.

    Raises
    ------
    UsageError
        ``UNKNOWN_ENVELOPE``, ``UNKNOWN_OPTION``.
    NotSupportedError
        ``UNSUPPORTED_ON_EXECUTORS``.
    """
    known = EMIT_ENVELOPES if isinstance(plan, EmittedPlan) else ENVELOPES
    refuse_unknown(f"envelope {envelope!r}", envelope, known, "UNKNOWN_ENVELOPE")
    refuse_unknown(f"on_late={on_late!r}", on_late, ("keep", "fail"), "UNKNOWN_OPTION")
    refuse_unknown(f"on_malformed={on_malformed!r}", on_malformed, ("keep", "fail"), "UNKNOWN_OPTION")
    keeps = on_malformed == "keep"
    form = envelope if plan.is_relation else None
    if _is_for_executors(plan, form, sink, folder):
        steps_of: Callable[[LiveContext], Steps[Any]] = _on_executors(plan, sink, form)
        state = BUCKETS
    else:
        steps_of, state = _on_driver(plan), None
    context = LiveContext(plan, sink, folder, envelope, on_late, retains_malformed=keeps, form=state)
    try:
        return MicroBatches(context, steps_of(context))
    except BaseException:
        context.close()
        raise


def _is_for_executors(plan: LivePlan, envelope: str | None, sink: Sink | IntoStream, folder: Path) -> bool:
    """Whether executors run the query; with ``auto``, not if they do not support it, or the driver has begun
    it.
    """
    if why_on_driver(plan, envelope) is not None:
        return False
    if _requested_host(plan) == "executors":
        return True
    return not isinstance(sink, IntoStream) and form_in(folder / "windrow") in (None, BUCKETS)


def _on_executors(
    plan: LivePlan, sink: Sink | IntoStream, envelope: str | None
) -> Callable[[LiveContext], ExecutorSteps]:
    """The steps of a query on executors."""
    if isinstance(sink, IntoStream):
        raise NotSupportedError(
            "a query on executors cannot write to a named stream",
            condition="UNSUPPORTED_ON_EXECUTORS",
            sql=plan.text,
            span=plan.span,
            hint=f"SET {HOST_SETTING} = driver",
        )
    return partial(ExecutorSteps, graph_of(plan, envelope=envelope))


def _on_driver(plan: LivePlan) -> Callable[[LiveContext], Steps[Any]]:
    """The steps of a query on the driver."""
    if isinstance(plan, WholeStreamsPlan):
        return partial(WholeStreamsSteps, plan, plan.blocking)
    if isinstance(plan, EmittedPlan):
        return partial(EmittedSteps, plan)
    if isinstance(plan, ClausePlan):
        return partial(ClauseSteps, plan)
    assert isinstance(plan, ContinuousPlan)
    return partial(WindowedSteps, plan)

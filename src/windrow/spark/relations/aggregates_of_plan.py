"""The aggregates of a plan as the kernel's."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.plan import nodes as plan
from windrow.plan.arrow_types import arrow_type, is_carried
from windrow.plan.reasons import Reason
from windrow.spark.analysis.known_aggregates import kernel_type
from windrow.spark.gateway import Gateway, is_ansi

__all__ = ["kernel_aggregates"]


def kernel_aggregates(
    gateway: Gateway, node: plan.Aggregate, name_of: Callable[[str], str] = lambda column: column
) -> tuple[tuple[str, AggregateSpec], ...] | Reason:
    """The aggregates by the ids of their columns, or a reason that names one without a kernel.

    Parameters
    ----------
    name_of
        Maps a column of the input to its name.
    """
    kinds = {column.id: column.type for column in node.input.columns}
    found = []
    strange = next((kind for kind in kinds.values() if not is_carried(kind)), None)
    if strange is not None:
        return Reason(f"values of type {strange.simpleString().upper()}, which Spark compares", node.at)
    for one in node.calls:
        call, result = one.call, arrow_type(one.column.type)
        if not one.is_known:
            return Reason("an aggregate that only Spark knows", one.at)
        if one.argument is None:
            found.append((one.column.id, AggregateSpec("count_star", None, pa.int64())))
            continue
        if call.function is None or result is None or kernel_type(call.function, kinds[one.argument]) is None:
            return Reason("an aggregate that only Spark knows", one.at)
        ansi = is_ansi(gateway)
        spec = AggregateSpec(
            call.function, name_of(one.argument), result, call.ignore_nulls, call.parameters, ansi
        )
        found.append((one.column.id, spec))
    return tuple(found)

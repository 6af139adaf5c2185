"""Changes in memory, in all forms for users; `relations/changelog.py` has the same as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.zset.relation import AT, DIFF

__all__ = ["IN_MEMORY", "copies", "copies_of", "enveloped", "inserted"]

IN_MEMORY = ("delta", "op", "diff")
"""The envelopes that need no Spark expression."""


def enveloped(changes: pa.Table, names: Sequence[str], scale: TimeScale, envelope: str) -> pa.Table:
    """The changelog of changes with `AT` and `DIFF` after their columns.

    Parameters
    ----------
    names
        The names of the columns in queries.
    scale
        The unit of `AT`.
    envelope
        One of `IN_MEMORY`.
    """
    if envelope == "diff":
        rows = changes.drop_columns([AT, DIFF]).columns
        columns = [*rows, changes.column(DIFF), as_instants(changes.column(AT), scale)]
        return pa.Table.from_arrays(columns, names=[*names, "_diff", "_at"])
    changes = copies_of(changes)
    rows = changes.drop_columns([AT, DIFF]).columns
    at = as_instants(changes.column(AT), scale)
    if envelope == "delta":
        kind = _words(changes, "delete", "insert")
        ours = ["_change_type", "_commit_version", "_commit_timestamp"]
        return pa.Table.from_arrays([*rows, kind, changes.column(AT), at], names=[*names, *ours])
    return pa.Table.from_arrays([_words(changes, "-D", "+I"), at, *rows], names=["_op", "_at", *names])


def inserted(changes: pa.Table, names: Sequence[str], scale: TimeScale, sign: int) -> pa.Table:
    """The rows that enter (`sign` 1) or leave (−1), preceded by the instants as their rowtimes."""
    changes = _copies(changes, np.maximum(changes.column(DIFF).to_numpy() * sign, 0))
    name = "rowtime" if "rowtime" not in {known.lower() for known in names} else "_rowtime"
    rows = changes.drop_columns([AT, DIFF]).columns
    return pa.Table.from_arrays([as_instants(changes.column(AT), scale), *rows], names=[name, *names])


def copies_of(changes: pa.Table) -> pa.Table:
    """Each change, repeated by its count."""
    return _copies(changes, np.abs(changes.column(DIFF).to_numpy()))


def copies(changes: pa.Table, sign: int) -> pa.Table:
    """The rows that enter (`sign` 1) or leave (−1), followed by the instants, in ticks."""
    return _copies(changes, np.maximum(changes.column(DIFF).to_numpy() * sign, 0)).drop_columns([DIFF])


def as_instants(at: pa.ChunkedArray, scale: TimeScale) -> pa.ChunkedArray:
    """Instants in the type of the streams' rowtimes."""
    if scale.kind == "bigint":
        return at
    if scale.kind == "date":
        return at.cast(pa.int32()).cast(pa.date32())
    micros = pc.multiply_checked(at, scale.nanoseconds // 1000)
    return micros.cast(pa.timestamp("us", "UTC" if scale.kind == "timestamp" else None))


def _copies(changes: pa.Table, count: np.ndarray) -> pa.Table:
    if (count == 1).all():
        return changes
    return changes.take(pa.array(np.repeat(np.arange(changes.num_rows), count)))


def _words(changes: pa.Table, leaves: str, enters: str) -> pa.Array:
    codes = (changes.column(DIFF).to_numpy() > 0).astype(np.int8)
    return pa.DictionaryArray.from_arrays(codes, [leaves, enters]).cast(pa.string())

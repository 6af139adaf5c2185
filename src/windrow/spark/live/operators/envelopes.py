"""Changes in memory, in all forms for users; `relations/changelog.py` has the same as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.algebra.time_scale import TimeScale
from windrow.kernels.chosen import chosen
from windrow.kernels.sorting import SortKey, sorted_partitions
from windrow.kernels.zset.relation import AT, DIFF

__all__ = ["IN_MEMORY", "changes_as_rows", "copies", "copies_of", "enveloped", "inserted"]

_KIND = "__kind"

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


def changes_as_rows(
    changes: pa.Table,
    compared: pa.Table,
    key: Sequence[str],
    order: Sequence[str],
    scale: TimeScale,
    own: TimeScale,
) -> pa.Table:
    """Changes, a row for each copy, as the rows of ``CHANGELOG OF``, followed by the instants.

    Those of one instant are in the order of their values.

    Parameters
    ----------
    compared
        The same rows with the values by which they are compared.
    key
        The columns of KEY.
    order
        The columns that order rows.
    scale, own
        The unit of the instants, and that of versions and times.
    """
    kind = _kinds(compared, key, order) if key else _words(changes, "delete", "insert")
    place, _ = sorted_partitions(
        compared.append_column(_KIND, kind), (), tuple(map(SortKey, (AT, *order, _KIND)))
    )
    rows = changes.drop_columns([AT, DIFF])
    at = changes.column(AT)
    version = pc.divide(at, own.nanoseconds // scale.nanoseconds)
    ours = {"__change": kind, "__version": version, "__time": as_instants(version, own), AT: at}
    for name, column in ours.items():
        rows = rows.append_column(name, column)
    return rows if place is None else rows.take(pa.array(place))


def _kinds(compared: pa.Table, key: Sequence[str], order: Sequence[str]) -> pa.Array:
    """The kinds of changes with a key: those that leave and enter at one instant are updates, in pairs."""
    enters = compared.column(DIFF).to_numpy() > 0
    signed = compared.drop_columns([DIFF]).append_column(DIFF, pa.array(enters))
    place, bounds = sorted_partitions(signed, (AT, *key), tuple(map(SortKey, (DIFF, *order))))
    place = np.arange(len(enters)) if place is None else place
    sizes = np.diff(bounds)
    entered = np.concatenate([[0], np.cumsum(enters[place])])
    entering = entered[bounds[1:]] - entered[bounds[:-1]]
    leaving = sizes - entering
    number = np.arange(len(enters)) - np.repeat(bounds[:-1], sizes)
    number -= np.where(enters[place], np.repeat(leaving, sizes), 0)
    updated = np.zeros(len(enters), bool)
    updated[place] = number < np.repeat(np.minimum(entering, leaving), sizes)
    words = ["delete", "insert", "update_preimage", "update_postimage"]
    codes = enters.astype(np.int8) + 2 * updated.astype(np.int8)
    return pa.DictionaryArray.from_arrays(codes, words).cast(pa.string())


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
    if (count <= 1).all():
        return chosen(changes, count > 0)
    return changes.take(pa.array(np.repeat(np.arange(changes.num_rows), count)))


def _words(changes: pa.Table, leaves: str, enters: str) -> pa.Array:
    codes = (changes.column(DIFF).to_numpy() > 0).astype(np.int8)
    return pa.DictionaryArray.from_arrays(codes, [leaves, enters]).cast(pa.string())

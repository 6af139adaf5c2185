"""The columns of a time-varying relation with the times of its rows."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["AT", "COMPLETE", "DIFF", "ENTER", "LEAVE", "NEVER", "PARTNER", "with_one_zero"]

ENTER = "__enter"
"""The instant from which a row exists, int64."""

LEAVE = "__leave"
"""The instant from which it no longer exists, after `ENTER`."""

NEVER = 2**63 - 1
"""The `LEAVE` of a row that never leaves."""

AT = "__at"
"""The instant of a change, int64."""

DIFF = "__diff"
"""The change of a row's multiplicity, int64."""

COMPLETE = "__complete"
"""The instant at which a row's group is complete, or `NEVER`."""

PARTNER = "__partner"
"""Whether a row has a partner, as a mark join adds it."""


def with_one_zero(rows: pa.Table) -> pa.Table:
    """The rows with 0.0 for -0.0, as Spark has the keys of groups and the rows of DISTINCT."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            rows = rows.set_column(at, field, pc.add(rows.column(at), pa.scalar(0, field.type)))
    return rows

"""The columns that say when rows are there."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["AT", "COMPLETE", "DIFF", "ENTER", "LEAVE", "NEVER", "with_one_zero"]

ENTER = "__enter"
"""The instant from which a row is there, int64."""

LEAVE = "__leave"
"""The instant from which it is not any more, after that of `ENTER`."""

NEVER = 2**63 - 1
"""The `LEAVE` of a row that stays."""

AT = "__at"
"""The instant of a change, int64."""

DIFF = "__diff"
"""How many more of a row there are from a change on, int64; less than 0 if there are fewer."""

COMPLETE = "__complete"
"""The instant from which nothing more is expected of a row's group, or `NEVER`."""


def with_one_zero(rows: pa.Table) -> pa.Table:
    """The rows with 0.0 for -0.0, as Spark has the keys of groups and the rows of DISTINCT."""
    for at, field in enumerate(rows.schema):
        if pa.types.is_floating(field.type):
            rows = rows.set_column(at, field, pc.add(rows.column(at), pa.scalar(0, field.type)))
    return rows

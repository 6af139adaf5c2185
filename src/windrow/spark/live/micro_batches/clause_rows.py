"""The rows that a clause retains between micro-batches, on the driver and in each bucket on executors.

admitted rows ─▶ buffered until the watermark ─▶ due ─▶ columns of the clause ─▶ advance ─▶ emitted
retained rows ─┘        └─▶ retained rows
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pyarrow as pa

from windrow.kernels.advance import Ended
from windrow.spark.live.micro_batches.affected_partitions import step_of
from windrow.spark.live.micro_batches.retained_rows import Bools, KeptRows, Marks, Places, union
from windrow.spark.live.operators.clause_operator import ClauseKernel
from windrow.spark.logs.session_streams import ROWTIME

__all__ = ["ClauseRows"]


@dataclass(frozen=True, eq=False)
class ClauseRows:
    """The rows.

    Attributes
    ----------
    waits
        Those of the stream that wait for the watermark.
    kept
        Those of windows and matches that are not final, by the keys of the partitions.
    """

    waits: KeptRows
    kept: KeptRows

    def due(
        self,
        came: pa.Table,
        until: int | None,
        number: int,
        ended: Bools | None = None,
        others: Places | None = None,
    ) -> tuple[pa.Table, ClauseRows]:
        """The rows that the clause takes in a micro-batch; those that came later wait.

        Parameters
        ----------
        came
            The rows that were admitted.
        until
            The watermark: rows before it are due. None while there is none.
        number
            Of the micro-batch.
        ended, others
            Of the rows that came, which are of partitions that have ended, and so due too; and of those that
            waited.
        """
        is_due = np.zeros(came.num_rows, bool) if ended is None else ended
        places: Places = {} if others is None else others
        if until is not None:
            is_due = is_due | _before(until, came)
            places = union(places, self.waits.where(partial(_before, until)))
        waited, due = self.waits.rows(places), came.filter(pa.array(is_due))
        due = due if waited is None else pa.concat_tables([waited.cast(due.schema), due])
        waits = self.waits.without(places).with_rows(came.filter(pa.array(~is_due)), number)
        return due, replace(self, waits=waits)

    def advanced(
        self,
        kernel: ClauseKernel,
        keyed: pa.Table,
        until: int | None,
        number: int,
        ended: Ended | None = None,
        over: Marks | None = None,
        *,
        moves: bool,
    ) -> tuple[pa.Table, ClauseRows]:
        """What the clause emits when rows are due, of which these are its columns.

        `until` and `number` are those of :meth:`due`, all others those of
        :func:`windrow.spark.live.micro_batches.affected_partitions.step_of`.
        """
        frontier = kernel.reached(until)
        given, kept = step_of(kernel.growing, self.kept, keyed, frontier, ended, over, number, moves=moves)
        return given, replace(self, kept=kept)

    def merged(self, number: int) -> ClauseRows:
        """As they are to be stored after the micro-batch of this number."""
        return ClauseRows(self.waits.merged(number), self.kept.merged(number))


def _before(until: int, rows: pa.Table) -> Bools:
    """Which rows have an earlier rowtime."""
    is_before: Bools = rows.column(ROWTIME).to_numpy() < until
    return is_before

"""Sequences that grow: which windows and matches are final as rows come, and which rows are still needed.

    retained rows + rows that came ─▶ advance ─▶ output, rows to retain

One call is a micro-batch. Rows come in the order of the clause; those of a micro-batch are all behind those
of the ones before. What has been emitted is not emitted again, and the output is that of the whole sequence:
nothing that may come later can change it. When all sequences are closed, or one is by its keys
(:mod:`.ended`), all that is left of them is emitted.

All that is carried from micro-batch to micro-batch is on the retained rows (:mod:`.suffix`), so a
micro-batch is a function over tables, which a task can call for the partitions that it has, or the driver
for all. So is what can be declared of the output of all later micro-batches (:mod:`.output_bounds`): by it,
one sequence follows another.
"""

from windrow.kernels.advance.advancing import Frontier, Growing, advance
from windrow.kernels.advance.affected_alone import Changed, changed, moves_by_time
from windrow.kernels.advance.ended import Ended
from windrow.kernels.advance.output_bounds import least_open
from windrow.kernels.advance.retention import retained_by, retention
from windrow.kernels.advance.suffix import AT, CARRIED, DONE, STATE

__all__ = [
    "AT",
    "CARRIED",
    "DONE",
    "STATE",
    "Changed",
    "Ended",
    "Frontier",
    "Growing",
    "advance",
    "changed",
    "least_open",
    "moves_by_time",
    "retained_by",
    "retention",
]

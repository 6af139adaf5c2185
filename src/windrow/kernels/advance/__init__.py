"""Growing sequences: which windows and matches are final as rows arrive, and which rows are still needed.

    retained rows + new rows ─▶ advance ─▶ output, rows to retain

One call is a micro-batch. Rows arrive in the order of the clause: those of a micro-batch all follow those of
earlier ones. Nothing is emitted twice, and the output is that of the whole sequence: no later row can change
it. When all sequences are closed, or one is by its keys (:mod:`.ended`), the rest of their output is emitted.

All state between micro-batches is on the retained rows (:mod:`.suffix`). So a micro-batch is a function over
tables, which a task can call for its partitions, or the driver for all. So are bounds on the output of all
later micro-batches (:mod:`.output_bounds`), by which another sequence can follow this one.
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

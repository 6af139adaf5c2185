"""What a step of a live operator costs, with ten thousand and with five million rows kept.

    python -m benchmarks.operators

times steps that bring 1,000 rows, and prints the median and the 95th percentile of 60. It imports nothing but
the kernels, so that `PYTHONPATH` may name the `src` of another commit, for one run beside the other.
"""

from __future__ import annotations

import sys
import time

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.incremental import Times
from windrow.kernels.incremental.stepwise import stepwise
from windrow.kernels.packing.shards import Layout
from windrow.kernels.zset.keyed_operator import Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER

_KEPT = (10_000, 5_000_000)
_AT_ONCE = 1_000_000
_STEPS, _ROWS = 60, 1000
_TIMES = (pa.field(ENTER, pa.int64()), pa.field(LEAVE, pa.int64()))
_LEFT = pa.schema([("k", pa.int64()), ("v", pa.int64())])
_RIGHT = pa.schema([("k", pa.int64()), ("w", pa.int64())])
_AGGREGATES = (
    ("n", AggregateSpec("count", None, pa.int64())),
    ("s", AggregateSpec("sum", "v", pa.int64())),
    ("m", AggregateSpec("max", "v", pa.int64())),
)
_OPERATORS = {
    "group": (
        Keyed("group", ("k",), Layout(1), aggregates=_AGGREGATES),
        (_LEFT,),
        [("k", pa.int64()), *((name, pa.int64()) for name, _ in _AGGREGATES)],
    ),
    "distinct": (Keyed("distinct", ("k", "v"), Layout(1)), (_LEFT,), [("k", pa.int64()), ("v", pa.int64())]),
    "join": (Keyed("join", ("k",), Layout(1)), (_LEFT, _RIGHT), [("v", pa.int64()), ("w", pa.int64())]),
}


def main() -> None:
    """Print the times of all operators."""
    sys.stdout.write(f"{'operator':10}{'rows kept':>12}{'median, ms':>12}{'95 %, ms':>10}\n")
    for name in _OPERATORS:
        for kept in _KEPT:
            times = np.array(_steps(name, kept)) * 1000
            median, most = np.percentile(times, (50, 95))
            sys.stdout.write(f"{name:10}{kept:12,}{median:12.1f}{most:10.1f}\n")
            sys.stdout.flush()


def _steps(name: str, kept: int) -> list[float]:
    """The seconds of each step, in an operator whose first side has so many keys."""
    keyed, schemas, result = _OPERATORS[name]
    operator = stepwise(keyed, schemas, pa.schema([*result, *_TIMES]))
    at = 0
    for first in range(0, kept, _AT_ONCE):
        keys = np.arange(first, min(first + _AT_ONCE, kept))
        changes = [_rows(schemas[0], keys, at), *(None for _ in schemas[1:])]
        operator.advance(changes, Times(at or None, at + 1))
        at += 1
    drawn, found = np.random.default_rng(1), []
    for _ in range(_STEPS):
        keys = drawn.integers(0, 2 * kept, _ROWS)
        began = time.perf_counter()
        operator.advance([_rows(schema, keys, at) for schema in schemas], Times(at, at + 1))
        found.append(time.perf_counter() - began)
        at += 1
    return found


def _rows(schema: pa.Schema, keys: np.ndarray, at: int) -> pa.Table:
    columns = [keys, keys, np.full(len(keys), at), np.full(len(keys), NEVER)]
    return pa.table(dict(zip([*schema.names, ENTER, LEAVE], columns, strict=True)))


if __name__ == "__main__":
    main()

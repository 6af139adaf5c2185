"""What a punctuation costs, by how many keys an operator keeps."""

from __future__ import annotations

import pickle
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.punctuated import Delta, GroupOperator, SetOperator, SortOperator, SymmetricJoin
from windrow.kernels.sorting import SortKey
from windrow.punctuations import Pattern

__all__ = ["BIDS", "SIZES", "Cost", "Kept", "auctions", "measured"]

SIZES = (1_000, 1_000_000)
"""Keys."""
TIMES = 200
BIDS = 10_000_000
_OPEN = 1_000  # auctions at once
_STEP = 50_000  # bids
_BIDS = pa.schema([("auction", pa.int64()), ("price", pa.int64())])
_AUCTIONS = pa.schema([("id", pa.int64()), ("item", pa.string())])


@dataclass(frozen=True)
class Cost:
    """Milliseconds of a step that brings one punctuation and no row, at the median, for each of `SIZES`."""

    name: str
    milliseconds: tuple[float, ...]


def measured(sizes: tuple[int, ...] = SIZES, times: int = TIMES) -> list[Cost]:
    """What a punctuation of one key costs that closes one kept row; keys are kept in no order."""
    return [Cost(name, tuple(_median(begin, size, times) for size in sizes)) for name, begin in _OPERATORS]


def _median(begin: Callable[[int], Callable[[int], int]], size: int, times: int) -> float:
    close = begin(size)
    keys = np.random.default_rng(1).choice(size, times + 1, replace=False).tolist()
    assert close(keys[0]) == 1  # puts what is kept in order, once
    taken = []
    for key in keys[1:]:
        started = time.perf_counter()
        given = close(key)
        taken.append(time.perf_counter() - started)
        assert given == 1
    return 1000 * statistics.median(taken)


def _bids(size: int) -> pa.Table:
    return pa.table({"auction": np.random.default_rng(0).permutation(size), "price": np.arange(size)})


def _group(size: int) -> Callable[[int], int]:
    operator = GroupOperator(
        (("auction", "auction"),), (("high", AggregateSpec("max", "price", pa.int64())),)
    )
    return _unary(operator, size, lambda key: [("auction", "=", key)])


def _sort(size: int) -> Callable[[int], int]:
    """Punctuations are of prices in their order: each lets one row go."""
    closed = iter(range(size))
    return _unary(
        SortOperator((SortKey("price", nulls_first=False),)), size, lambda _: [("price", "<=", next(closed))]
    )


def _unary(operator: Any, size: int, told: Callable[[int], list[tuple[Any, ...]]]) -> Callable[[int], int]:
    _, carry = operator.advance(None, Delta(_bids(size)))

    def close(key: int) -> int:
        nonlocal carry
        pattern = Pattern.where(_BIDS, told(key))
        step, carry = operator.advance(carry, Delta(_BIDS.empty_table(), (pattern,)))
        return int(step.rows.num_rows)

    return close


def _except(size: int) -> Callable[[int], int]:
    return _binary(SetOperator("except"), size, _BIDS, "auction")


def _anti(size: int) -> Callable[[int], int]:
    return _binary(SymmetricJoin((("auction", "id"),), "anti"), size, _AUCTIONS, "id")


def _binary(operator: Any, size: int, other: pa.Schema, name: str) -> Callable[[int], int]:
    nothing = other.empty_table()
    _, carry = operator.advance(None, Delta(_bids(size)), Delta(nothing))

    def close(key: int) -> int:
        nonlocal carry
        pattern = Pattern.where(other, [(name, "=", key)])
        step, carry = operator.advance(carry, Delta(_BIDS.empty_table()), Delta(nothing, (pattern,)))
        return int(step.rows.num_rows)

    return close


_OPERATORS: tuple[tuple[str, Callable[[int], Callable[[int], int]]], ...] = (
    ("GROUP BY", _group),
    ("ORDER BY", _sort),
    ("EXCEPT", _except),
    ("anti join", _anti),
)


@dataclass(frozen=True)
class Kept:
    """What a query keeps after so many bids: groups, promises, and bytes when it is written down."""

    bids: int
    given: int
    groups: int
    promises: int
    bytes: int
    seconds: float


def auctions(bids: int = BIDS, told: int = 10) -> list[Kept]:
    """The highest bid of each auction, given when it closes, over bids on auctions that come and go.

    A thousand auctions are open at a time; each step's bids are on those, and then the hundred oldest close,
    in any order, by a punctuation each. What is kept is told so many times.
    """
    random = np.random.default_rng(2)
    operator = GroupOperator(
        (("auction", "auction"),), (("high", AggregateSpec("max", "price", pa.int64())),)
    )
    carry, given, found = None, 0, []
    steps = bids // _STEP
    started = time.perf_counter()
    for step in range(steps):
        first = step * _OPEN // 10
        bid_on, prices = random.integers(first, first + _OPEN, _STEP), random.integers(0, 10**6, _STEP)
        rows = pa.table({"auction": bid_on, "price": prices})
        closed = random.permutation(np.arange(first, first + _OPEN // 10)).tolist()
        patterns = tuple(Pattern.where(_BIDS, [("auction", "=", key)]) for key in closed)
        output, carry = operator.advance(carry, Delta(rows, patterns))
        given += output.rows.num_rows
        if (step + 1) % max(steps // told, 1) == 0:
            taken = time.perf_counter() - started
            promises, size = len(carry.closing.closed), len(pickle.dumps(carry))
            found.append(Kept((step + 1) * _STEP, given, carry.retained[0], promises, size, taken))
    return found

"""That the answers are the same, value for value, before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

__all__ = ["Checksum", "DifferentAnswersError", "agreed"]

_TOLERANCE = 1e-9


class DifferentAnswersError(Exception):
    """Two systems answer a query differently."""


@dataclass(frozen=True)
class Checksum:
    """What all have answered: how many windows, and the rounded sum of their values."""

    windows: int
    total: float

    def __str__(self) -> str:
        return f"{self.windows:,} windows, sum {self.total:,}"


def agreed(answers: Mapping[str, pa.Table]) -> Checksum:
    """The checksum of answers that are the same, windows and values.

    Raises
    ------
    DifferentAnswersError
        Naming the first window that is not.
    """
    tables = {name: _sorted(answer) for name, answer in answers.items()}
    (first, wanted), *others = tables.items()
    for name, found in others:
        if found.num_rows != wanted.num_rows:
            raise DifferentAnswersError(f"{first} gives {wanted.num_rows} windows, {name} {found.num_rows}")
        for column in ("station", "date", "value"):
            different = np.flatnonzero(~_same(wanted[column], found[column]))
            if len(different):
                at = int(different[0])
                raise DifferentAnswersError(
                    f"{first} gives {wanted.slice(at, 1).to_pylist()[0]}, "
                    f"{name} {found.slice(at, 1).to_pylist()[0]}"
                )
    return Checksum(wanted.num_rows, round(float(np.sum(wanted["value"].to_numpy())), 3))


def _sorted(answer: pa.Table) -> pa.Table:
    # Systems differ in their types of strings, dates, times and whole numbers.
    schema = pa.schema([("station", pa.string()), ("date", pa.timestamp("us")), ("value", pa.float64())])
    table = answer.select(schema.names).cast(schema)
    return table.sort_by([(name, "ascending") for name in schema.names])


def _same(wanted: pa.ChunkedArray, found: pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    mine, other = wanted.to_numpy(), found.to_numpy()
    same: npt.NDArray[np.bool_] = (
        np.isclose(mine, other, rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        if pa.types.is_floating(wanted.type)
        else mine == other
    )
    return same

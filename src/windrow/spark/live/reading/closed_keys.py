"""Which rows the windows of a CQL query in memory can drop because punctuation has closed their keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.advance import Ended
from windrow.kernels.incremental.bracket_windows.closed_rows import closed_alone, closed_pairs
from windrow.kernels.incremental.bracket_windows.input_state import InputState
from windrow.kernels.incremental.bracket_windows.window_input import WindowInput
from windrow.spark.catalog import Catalog
from windrow.spark.live.operators.ended_partitions import ClosedPartitions
from windrow.spark.live.operators.window_flow import KeysOfWindows
from windrow.spark.live.reading.windowed_query import WindowedQuery, WindowedSide
from windrow.spark.logs.clause_view import ClauseSource, Ends

__all__ = ["ClosingWindows", "bounding_ends", "ends_of_windows"]

Bools = npt.NDArray[np.bool_]

_GROUPS = "groups"


def ends_of_windows(windowed: WindowedQuery, catalog: Catalog) -> dict[str, Ends]:
    """The punctuation that ends the partitions of its windows, its groups, and the keys of its joins."""
    found: dict[str, Ends] = {}
    keys = windowed.keys
    if keys is None:
        return found
    if any(side.window.row_slide > 1 for side in windowed.sides):  # a group of rows goes as a whole
        return found
    if any(side.made is not None for side in windowed.sides):  # punctuations are of streams alone
        return found

    def note(key: str, names: Sequence[str], side: WindowedSide, own: Sequence[str]) -> None:
        """Record these columns of rows as keys, and the columns of a side that end them."""
        columns = {
            name: side.columns[inner] for name, inner in zip(names, own, strict=True) if inner in side.columns
        }
        stream = catalog.streams[side.stream]
        if names and len(columns) == len(names) and stream.live is not None:
            found[key] = (ClauseSource(side.stream, stream, columns),)

    for side in windowed.sides:
        if side.window.rows is not None and (side.window.length is None or keys.joined is not None):
            note(side.name, side.window.partition, side, side.window.partition)
    first = windowed.sides[0]
    if keys.grouped is not None and first.window.length is None:
        note(_GROUPS, keys.grouped, first, keys.grouped)
    if keys.joined is not None:
        kinds = [
            [side.schema.field(name).type for name in names]
            for side, names in zip(windowed.sides, keys.joined, strict=True)
        ]
        for at, side in enumerate(windowed.sides):
            if kinds[0] == kinds[1]:
                note(_beside(side), keys.joined[at], windowed.sides[1 - at], keys.joined[1 - at])
    return found


def bounding_ends(windowed: WindowedQuery, ends: Mapping[str, Ends], name: str) -> list[ClauseSource]:
    """The punctuation that drops all rows of a window that time does not; none if that is not enough."""
    keys = windowed.keys
    if keys is None or all(side.name != name for side in windowed.sides):
        return []
    wanted = [side.name for side in windowed.sides if side.window.rows is not None]
    wanted += [_GROUPS] if keys.grouped is not None else []
    wanted += [_beside(side) for side in windowed.sides] if keys.joined is not None else []
    return (
        [one for key in wanted for one in ends[key]] if wanted and all(key in ends for key in wanted) else []
    )


@dataclass(frozen=True, eq=False)
class ClosingWindows:
    """The windows of a query whose rows can be dropped, as tasks have them too.

    Attributes
    ----------
    keys
        The keys of the query.
    windows
        The windows.
    columns
        For each, its columns with those of the stream.
    """

    keys: KeysOfWindows
    windows: tuple[WindowInput, ...]
    columns: tuple[Mapping[str, str], ...]

    @staticmethod
    def of(windowed: WindowedQuery) -> ClosingWindows | None:
        """Those of a query; None if it drops none."""
        if windowed.keys is None:
            return None
        sides = windowed.sides
        columns = tuple(side.columns for side in sides)
        return ClosingWindows(windowed.keys, tuple(side.window_input for side in sides), columns)

    def closed_rows(
        self, states: Mapping[str, InputState], endings: ClosedPartitions
    ) -> tuple[dict[str, Bools], bool]:
        """The retained rows that can be dropped, by window, and whether more may be without further
        punctuation.
        """
        waits, keys = False, self.keys
        inner_of = {
            one.name: {column: name for name, column in columns.items()}
            for one, columns in zip(self.windows, self.columns, strict=True)
        }

        def ended(key: str, side: WindowInput) -> Ended | None:
            """The partitions that have ended by the punctuation of a side's stream, and by its buffered
            rows.
            """
            nonlocal waits
            waiting, inner = states[side.name].waiting, inner_of[side.name]
            found = endings.ended(
                key, lambda _, columns: pa.table({one: waiting.column(inner[one]) for one in columns})
            )
            waits |= found is not None and found.waiting is not None
            return found

        own = [ended(side.name, side) for side in self.windows]
        retained = [states[side.name].retained for side in self.windows]
        first, *others = self.windows
        if keys.joined is None:
            over = None if keys.grouped is None else ended(_GROUPS, first)
            gone = [closed_alone(retained[0], first.window, own[0], keys.grouped, over)]
            closed = own[0] if keys.grouped is None else over
            waits |= closed is not None and bool(
                (closed.rows(retained[0].rows) & retained[0].alive & ~gone[0]).any()
            )
        else:
            (second,) = others
            over_each = ended(_beside(first), second), ended(_beside(second), first)
            windows = first.window, second.window
            gone = list(
                closed_pairs((retained[0], retained[1]), windows, (own[0], own[1]), keys.joined, over_each)
            )
            waits |= any(one is not None for one in over_each)
        found = {side.name: rows for side, rows in zip(self.windows, gone, strict=True) if rows.any()}
        return found, waits


def _beside(side: WindowedSide | WindowInput) -> str:
    return f"{side.name} beside"

"""WHERE and projection: rows pass at once; the only state is the punctuations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.delta import Announced, Delta, renamed
from windrow.punctuations import Closing, lines_of

__all__ = ["FilterCarry", "FilterOperator", "ProjectCarry", "ProjectOperator"]


@dataclass
class FilterCarry:
    """The punctuations emitted so far."""

    announced: Announced

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of retained rows."""
        return (0,)


@dataclass(frozen=True)
class FilterOperator:
    """The rows that qualify, and all punctuations.

    Attributes
    ----------
    qualifies
        Whether each row of a table qualifies.
    """

    qualifies: Callable[[pa.Table], npt.NDArray[np.bool_]]

    def advance(self, carry: FilterCarry | None, delta: Delta) -> tuple[Delta, FilterCarry]:
        """Process a micro-batch; consumes the carry."""
        carry = carry or FilterCarry(Announced(lines_of(delta.rows.schema)))
        rows = delta.rows.filter(pa.array(self.qualifies(delta.rows)))
        news = (region for pattern in delta.punctuations for region in pattern.regions())
        return Delta(rows, carry.announced.news(news)), carry


@dataclass
class ProjectCarry:
    """The closed keys over the columns, and the punctuations emitted so far."""

    closing: Closing
    announced: Announced

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of retained rows."""
        return (0,)


@dataclass(frozen=True)
class ProjectOperator:
    """Some columns of all rows, with a punctuation for each closed key over them.

    Attributes
    ----------
    columns
        The output's names and the input's columns.
    """

    columns: tuple[tuple[str, str], ...]

    def advance(self, carry: ProjectCarry | None, delta: Delta) -> tuple[Delta, ProjectCarry]:
        """Process a micro-batch; consumes the carry."""
        rows = pa.table(
            [delta.rows.column(name) for _, name in self.columns],
            schema=pa.schema([delta.rows.schema.field(name).with_name(out) for out, name in self.columns]),
        )
        if carry is None:
            closing = Closing(lines_of(delta.rows.schema), (name for _, name in self.columns))
            carry = ProjectCarry(closing, Announced(lines_of(rows.schema)))
        names = {name: out for out, name in reversed(self.columns)}
        news = (renamed(region, names) for region in carry.closing.add(delta.punctuations))
        return Delta(rows, carry.announced.news(news)), carry

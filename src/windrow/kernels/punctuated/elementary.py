"""WHERE and a choice of columns: rows pass at once, and nothing is kept but what is promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.punctuated.step import Promises, Step, renamed
from windrow.punctuations import Closing, lines_of

__all__ = ["Filter", "FilterCarry", "Project", "ProjectCarry"]


@dataclass
class FilterCarry:
    """What has been promised."""

    promises: Promises

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows are kept."""
        return (0,)


@dataclass(frozen=True)
class Filter:
    """The rows that qualify; all punctuations, those of rows that do not qualify too.

    Attributes
    ----------
    qualifies
        Of each row of a table whether it does.
    """

    qualifies: Callable[[pa.Table], npt.NDArray[np.bool_]]

    def advance(self, carry: FilterCarry | None, step: Step) -> tuple[Step, FilterCarry]:
        """Take a step; the carry that is given is used up."""
        carry = carry or FilterCarry(Promises(lines_of(step.rows.schema)))
        rows = step.rows.filter(pa.array(self.qualifies(step.rows)))
        told = (box for pattern in step.punctuations for box in pattern.boxes())
        return Step(rows, carry.promises.news(told)), carry


@dataclass
class ProjectCarry:
    """Which values of the columns are closed."""

    closing: Closing
    promises: Promises

    @property
    def kept(self) -> tuple[int, ...]:
        """How many rows are kept."""
        return (0,)


@dataclass(frozen=True)
class Project:
    """Some columns of all rows; the values that the punctuations close, whatever is in the columns left out.

    Attributes
    ----------
    columns
        The output's names and the input's columns.
    """

    columns: tuple[tuple[str, str], ...]

    def advance(self, carry: ProjectCarry | None, step: Step) -> tuple[Step, ProjectCarry]:
        """Take a step; the carry that is given is used up."""
        rows = pa.table(
            [step.rows.column(name) for _, name in self.columns],
            schema=pa.schema([step.rows.schema.field(name).with_name(out) for out, name in self.columns]),
        )
        if carry is None:
            closing = Closing(lines_of(step.rows.schema), (name for _, name in self.columns))
            carry = ProjectCarry(closing, Promises(lines_of(rows.schema)))
        names = {name: out for out, name in reversed(self.columns)}
        told = (renamed(box, names) for box in carry.closing.add(step.punctuations))
        return Step(rows, carry.promises.news(told)), carry

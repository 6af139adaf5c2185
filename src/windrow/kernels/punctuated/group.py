"""GROUP BY: a group is emitted, and its state dropped, when punctuations close it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from windrow.kernels.aggregates import FUNCTIONS, AggregateSpec, aggregate
from windrow.kernels.aggregates.spec import Partial
from windrow.kernels.punctuated.delta import Announced, Delta, renamed
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.trace import Trace
from windrow.punctuations import Closing, lines_of
from windrow.punctuations.regions import Region

__all__ = ["GroupCarry", "GroupOperator"]

Ints = npt.NDArray[np.int64]

_GROUP = "group."  # before the keys among the columns of the states


@dataclass
class GroupCarry:
    """The open groups: partial aggregates, and the rows for aggregates without a partial form."""

    schema: pa.Schema
    closing: Closing
    announced: Announced
    states: Trace | None = None
    rows: Trace | None = None

    @property
    def retained(self) -> tuple[int, ...]:
        """The number of retained groups, and of retained rows if there are some."""
        groups = 0 if self.states is None else len(self.states)
        return (groups,) if self.rows is None else (groups, len(self.rows))


@dataclass(frozen=True)
class GroupOperator:
    """Groups by the values of some columns, and aggregates of their rows.

    Output: a row for each closed group, and the punctuation of its keys. Without keys there is one group,
    which has a row even if it is empty.

    Attributes
    ----------
    keys
        The output's names and the input's columns.
    aggregates
        The output's names, and the aggregates over the rows of a group in the order of arrival.
    """

    keys: tuple[tuple[str, str], ...]
    aggregates: tuple[tuple[str, AggregateSpec], ...]

    def advance(self, carry: GroupCarry | None, delta: Delta) -> tuple[Delta, GroupCarry]:
        """Process a micro-batch; consumes the carry."""
        columns = tuple(name for _, name in self.keys)
        if carry is None:
            closing = Closing(lines_of(delta.rows.schema), columns)
            carry = GroupCarry(
                delta.rows.schema, closing, Announced(lines_of(self._schema(delta.rows.schema)))
            )
        if delta.rows.num_rows or carry.states is None:
            self._take_in(carry, delta.rows, columns)
        closed = carry.closing.add(delta.punctuations)
        output = self._output(carry, closed, columns)
        names = {name: out for out, name in reversed(self.keys)}
        return Delta(output, carry.announced.news(renamed(region, names) for region in closed)), carry

    def _take_in(self, carry: GroupCarry, rows: pa.Table, columns: tuple[str, ...]) -> None:
        order, bounds = sorted_partitions(rows, columns, ())
        rows = rows if order is None else rows.take(pa.array(order))
        lo, hi = bounds[:-1], bounds[1:]
        if not len(rows):
            lo = hi = np.zeros(0, np.int64)
        states = rows.select(columns).take(pa.array(lo))
        if not columns:
            states = pa.table({_GROUP: pa.nulls(len(lo), pa.int8())})
        for name, column in self._states(rows, lo, hi).items():
            states = states.append_column(name, column)
        if carry.states is None:
            carry.states = Trace(states.schema, columns, carry.closing.closed.lines)
            whole = [*columns, *sorted({spec.argument for spec in self._whole() if spec.argument})]
            if self._whole():
                carry.rows = Trace(rows.select(whole).schema, columns, carry.closing.closed.lines)
        found = carry.states.find(states)
        if len(found.probed):
            before = carry.states.rows(found.places)
            merged = self._merged(before, states.take(pa.array(found.probed)))
            carry.states.remove(found.places)
            is_new = np.ones(len(states), bool)
            is_new[found.probed] = False
            states = pa.concat_tables([states.filter(pa.array(is_new)), merged.cast(states.schema)])
        carry.states.add(states)
        if carry.rows is not None:
            carry.rows.add(rows.select(carry.rows.schema.names))

    def _output(self, carry: GroupCarry, closed: list[Region], columns: tuple[str, ...]) -> pa.Table:
        """The output rows of closed groups; drops their state."""
        assert carry.states is not None
        schema = self._schema(carry.schema)
        places = carry.states.matching(closed)
        states = carry.states.rows(places)
        carry.states.remove(places)
        if not columns and closed and not len(states):
            zero = np.zeros(1, np.int64)
            of_none = self._states(carry.schema.empty_table(), zero, zero)
            states = pa.table({_GROUP: pa.nulls(1, pa.int8()), **of_none})
        if not len(states):
            return schema.empty_table()
        order, _ = sorted_partitions(states, columns, ())
        states = states if order is None else states.take(pa.array(order))
        found = {out: states.column(name) for out, name in self.keys}
        whole = self._members(carry, closed, columns)
        for number, (out, spec) in enumerate(self.aggregates):
            partial = _partial(spec)
            if partial is None:
                rows, lo, hi = whole
                found[out] = aggregate(spec, rows, lo, hi)
                continue
            kind = pa.null() if spec.argument is None else carry.schema.field(spec.argument).type
            found[out] = partial.final(spec, kind, _state(states, number))
        return pa.table(found).cast(schema)

    def _members(
        self, carry: GroupCarry, closed: list[Region], columns: tuple[str, ...]
    ) -> tuple[pa.Table, Ints, Ints]:
        """The members of closed groups, in order, and the bounds of each group; drops them."""
        if carry.rows is None:
            return pa.table({}), np.zeros(0, np.int64), np.zeros(0, np.int64)
        places = np.sort(carry.rows.matching(closed))
        rows = carry.rows.rows(places)
        carry.rows.remove(places)
        if not columns and not len(rows):
            rows = pa.table([pa.nulls(1, field.type) for field in rows.schema], schema=rows.schema)
        order, bounds = sorted_partitions(rows, columns, ())
        return rows if order is None else rows.take(pa.array(order)), bounds[:-1], bounds[1:]

    def _states(self, rows: pa.Table, lo: Ints, hi: Ints) -> dict[str, pa.ChunkedArray]:
        found: dict[str, pa.ChunkedArray] = {}
        for number, (_, spec) in enumerate(self.aggregates):
            partial = _partial(spec)
            if partial is not None:
                nothing = pa.chunked_array([], pa.null())
                argument = nothing if spec.argument is None else rows.column(spec.argument)
                states = partial.state(spec, argument, lo, hi)
                found |= {f"{number}.{name}": states.column(name) for name in states.column_names}
        return found

    def _merged(self, before: pa.Table, after: pa.Table) -> pa.Table:
        found = {name: after.column(name) for name in after.column_names}
        for number, (_, spec) in enumerate(self.aggregates):
            partial = _partial(spec)
            if partial is not None:
                states = partial.merge(spec, _state(before, number), _state(after, number))
                found |= {f"{number}.{name}": states.column(name) for name in states.column_names}
        return pa.table(found)

    def _whole(self) -> list[AggregateSpec]:
        """The aggregates without a partial form, which need the rows."""
        return [spec for _, spec in self.aggregates if _partial(spec) is None]

    def _schema(self, schema: pa.Schema) -> pa.Schema:
        keys = [pa.field(out, schema.field(name).type) for out, name in self.keys]
        return pa.schema([*keys, *(pa.field(out, spec.result_type) for out, spec in self.aggregates)])


def _partial(spec: AggregateSpec) -> Partial | None:
    return FUNCTIONS[spec.function].partial


def _state(states: pa.Table, number: int) -> pa.Table:
    """The columns of an aggregate's states."""
    before = f"{number}."
    names = [name for name in states.column_names if name.startswith(before)]
    return pa.table([states.column(name) for name in names], [name.removeprefix(before) for name in names])

"""Runs WINDOW BY without Spark: the real parser, rules and kernel over rows in memory.

What Spark would compute before the kernel (hoisted columns, constants, types) the reference interpreter
computes here, from the same texts. So a difference from the reference is the rules' or the kernel's.
"""

from __future__ import annotations

import datetime
import pickle
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cmp_to_key, lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from windrow.algebra.bind import bind
from windrow.algebra.names import IDENTITY, partition_key
from windrow.algebra.physical import PlanDraft
from windrow.algebra.window_node import AggregateCall, Window, WindowBoundary, WindowFragment
from windrow.kernels import slices
from windrow.kernels.aggregates import supports
from windrow.kernels.reference.aggregates import aggregate
from windrow.kernels.reference.comparison import compare
from windrow.kernels.reference.scalar_expressions import compile_expression as compile_uncached
from windrow.kernels.reference.window_by import OrderKey, WindowBy, window_by
from windrow.kernels.reference.window_by import ReferenceBoundary as ReferenceBoundary
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.window_by import window_by as kernel
from windrow.kernels.window_plan import WindowPlan
from windrow.rules import optimize
from windrow.rules.kernel_plan import kernel_plan
from windrow.syntax.expression_nodes import OperationNode
from windrow.syntax.expressions import parse_expression
from windrow.syntax.nodes import Role, Side
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import tokenize

__all__ = [
    "ARROW",
    "Table",
    "by_kernel",
    "by_reference",
    "cut",
    "draft_of",
    "planned",
    "run_slices",
    "sliced",
    "unsliced",
]

T = TypeVar("T")
PARTITION = partition_key(0)[:-1]

ARROW = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "decimal(10,2)": pa.decimal128(10, 2),
    "interval day to second": pa.duration("us"),
    "void": pa.null(),
}
_SAMPLES: dict[str, Any] = {
    "boolean": True,
    "int": 1,
    "bigint": 1,
    "double": 1.5,
    "string": "a",
    "date": datetime.date(2024, 1, 1),
    "timestamp_ntz": datetime.datetime(2024, 1, 1),
    "decimal(10,2)": Decimal("1.25"),
}


_OTHER_SAMPLES = _SAMPLES | {"boolean": False, "int": 0, "bigint": 0, "double": -1.0, "string": ""}
_KINDS = (
    (bool, "boolean"),
    (int, "bigint"),
    (float, "double"),
    (str, "string"),
    (datetime.datetime, "timestamp_ntz"),
    (datetime.date, "date"),
    (datetime.timedelta, "interval day to second"),
    (Decimal, "decimal(10,2)"),
)


# parsing is most of the time that a small example takes
compile_expression = lru_cache(maxsize=None)(compile_uncached)


@dataclass(frozen=True)
class Table:
    """Rows with Spark types: column → simple string."""

    types: Mapping[str, str]
    rows: Sequence[Mapping[str, Any]]


class _Analyzer:
    """Types by evaluation over a sample row: enough for the expressions that the tests generate."""

    def __init__(self, window: Window, table: Table) -> None:
        self.window, self.table = window, table
        self.fields = dict(table.types)
        self.ansi = self.has_intervals = True

    def sample(self) -> dict[str, Any]:
        return {name: _SAMPLES[kind] for name, kind in self.fields.items()}

    def types(self, texts: Sequence[SqlText], side: Side) -> list[str]:
        env: dict[str, Any] = {}
        for variable in self.window.visible(side):
            if variable.role is Role.POSITION:
                env[variable.name] = 1
            else:
                env[variable.name] = self.sample()
                env[IDENTITY + variable.name] = 1
        return [self.kind(text.render(), env) for text in texts]

    def kind(self, text: str, env: Mapping[str, Any]) -> str:
        if text.startswith("CASE WHEN "):  # a guarded column: of the type of what it guards
            text = _guarded(text.removesuffix(" END"))
        path = text.strip("() `").split(".")
        if len(path) == 2 and path[0] in env and path[1].strip("`") in self.fields:
            return self.fields[path[1].strip("`")]
        if len(path) == 1 and env.get(path[0]) == 1:
            return "bigint"
        evaluate = compile_expression(text)
        one, other = (
            {name: sample[kind] for name, kind in self.fields.items()}
            for sample in (_SAMPLES, _OTHER_SAMPLES)
        )
        variables = [name for name, held in env.items() if isinstance(held, dict)]
        # also with one row that differs from the rest, as NULLIF of equal values is NULL
        for differing in ([], variables, *([name] for name in variables)):
            rows = {name: other if name in differing else one for name in variables}
            value = evaluate({**env, **rows})
            for python, kind in _KINDS:
                if isinstance(value, python):
                    return kind
        # NULL for these samples, but not for every row
        return "boolean" if _is_condition(text) else "void"

    def column_scope(self, column: Any, boundary: WindowBoundary) -> str | None:
        raise AssertionError(f"no Columns here: {column} of {boundary}")

    def aggregate_type(self, call: AggregateCall) -> str:
        return call.name

    def kernel_supports(self, function: str, argument: WindowFragment) -> bool:
        return supports(function, ARROW[self.argument(argument.text.render())])

    def argument(self, text: str) -> str:
        return self.kind(text, {self.window.name: self.sample()})


def _guarded(text: str) -> str:
    """What stands in brackets, cast or not, after the last THEN that is not in them."""
    depth = 0
    for at in range(len(text) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(text[at], 0)
        if not depth:
            break
    return text[text.rindex(" THEN ", 0, at) + len(" THEN ") :]


def _is_condition(text: str) -> bool:
    tokens = tokenize(text)
    found = parse_expression(tokens, 0, len(tokens))
    return isinstance(found, OperationNode) and found.operator not in ("+", "-", "*", "/", "%", "DIV", "NEG")


def draft_of(sql: str, table: Table) -> tuple[PlanDraft, _Analyzer]:
    """The plan of a query with one WINDOW BY."""
    tokens = tokenize(sql)
    statement = bind(tokens, (0, len(tokens)))
    assert statement is not None
    (window,) = statement.windows
    analyzer = _Analyzer(window, table)
    return optimize(window, analyzer), analyzer


def by_kernel(sql: str, table: Table, aggregate_types: Mapping[str, pa.DataType]) -> list[dict[str, Any]]:
    """The windows as the kernel gives them: the query's variables, `w`, and its aggregates by name."""
    plan, rows = planned(sql, table, aggregate_types)
    return unsliced(plan, rows)


def unsliced(plan: WindowPlan, rows: pa.Table) -> list[dict[str, Any]]:
    """The windows over rows in order."""
    return [row for batch in kernel(plan, rows, bounds_of(rows)) for row in given(batch)]


def given(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a result, with the variables that came as columns put together."""
    for row in batch.to_pylist():
        together: dict[str, Any] = {}
        for name, value in row.items():
            if length := re.match(r"__(\d+)\.", name):
                stop = length.end() + int(length[1])
                together.setdefault(name[length.end() : stop], {})[name[stop + 1 :]] = value
            else:
                together[name] = value
        yield together


def bounds_of(rows: pa.Table) -> np.ndarray:
    """Where the partitions of rows in order begin, and the number of rows."""
    keys = tuple(name for name in rows.column_names if name.startswith(PARTITION))
    order, bounds = sorted_partitions(rows, keys, ())
    assert order is None
    return bounds if rows.num_rows else np.zeros(1, np.int64)


def sliced(plan: WindowPlan, rows: pa.Table, cuts: Sequence[int], chunk_rows: int) -> list[dict[str, Any]]:
    """The windows over rows in order, each partition cut into slices before these of its rows."""
    parts = [rows.slice(low, stop - low) for low, stop in pairwise(bounds_of(rows).tolist())]
    return [row for part in parts for row in run_slices(plan, cut(part, cuts), chunk_rows)]


def cut(rows: pa.Table, cuts: Sequence[int]) -> list[pa.Table]:
    """The rows in slices."""
    places = sorted(min(place, rows.num_rows) for place in cuts)
    return [rows.slice(low, stop - low) for low, stop in pairwise([0, *places, rows.num_rows])]


def run_slices(plan: WindowPlan, parts: Sequence[pa.Table], chunk_rows: int) -> list[dict[str, Any]]:
    """The results of the slices of one sequence, one after the other, with all that travels pickled."""
    plan = travelled(plan)
    summaries = [travelled(slices.summarise(plan, part, chunk_rows=chunk_rows)) for part in parts]
    chunks = [chunk for part in parts for chunk in slices.chunks_of(part, chunk_rows)]
    sent = [{number: chunks[number] for number in wanted} for wanted in slices.wanted(plan, summaries)]
    entries: Sequence[int | None] = [None] * len(parts)
    if slices.needs_chain(plan):
        entries = slices.compose(
            [
                travelled(slices.chain(plan, number, summaries, part, sent[number]))
                for number, part in enumerate(parts)
            ]
        )
    return [
        row
        for number, (part, entry) in enumerate(zip(parts, entries, strict=True))
        for batch in slices.finish(plan, number, summaries, part, sent[number], entry)
        for row in given(batch)
    ]


def travelled(value: T) -> T:
    """The value as another process has it."""
    copy: T = pickle.loads(pickle.dumps(value))
    return copy


def planned(
    sql: str, table: Table, aggregate_types: Mapping[str, pa.DataType]
) -> tuple[WindowPlan, pa.Table]:
    """The kernel's plan of a query with one WINDOW BY, and the rows that it runs over."""
    draft, analyzer = draft_of(sql, table)
    assert not draft.spark_aggregates
    assert all(predicate.typed is not None for predicate in draft.predicates), draft.predicates
    window = draft.window
    rows = sorted(table.rows, key=cmp_to_key(lambda one, other: _order(window, one, other)))
    columns: dict[str, pa.Array] = {}
    for number, key in enumerate(window.partition_by):
        columns[partition_key(number)] = pa.array(
            [row[key.text.render()] for row in rows], ARROW[table.types[key.text.render()]]
        )
    types: dict[str, pa.DataType] = {}
    for item in draft.hoisted:
        text = item.text.render()
        evaluate = compile_expression(text)
        scope = item.variable
        env = {scope: analyzer.sample()} | {IDENTITY + scope: 1}
        types[item.name] = ARROW[analyzer.kind(text, env)]
        values = [evaluate({scope: row, IDENTITY + scope: number}) for number, row in enumerate(rows)]
        columns[item.name] = pa.array([_cast(value, types[item.name]) for value in values], types[item.name])
    nothing = {variable.name: None for variable in window.variables()}
    constants = {
        name: _constant(compile_expression(text.render())(nothing)) for name, text in draft.constants
    }
    plan = kernel_plan(draft, types, aggregate_types, pa.table(constants), ansi=True)
    # the rows are counted also where no column is read
    columns.setdefault(partition_key(0), pa.array([0] * len(rows), pa.int64()))
    return plan, pa.table(columns)


def by_reference(sql: str, table: Table) -> list[dict[str, Any]]:
    """The same, by the reference interpreter."""
    draft, analyzer = draft_of(sql, table)
    window = draft.window
    clause = WindowBy(
        name=window.name,
        tumbling=window.tumbling,
        partition_by=tuple(compile_expression(key.text.render()) for key in window.partition_by),
        order_by=tuple(
            OrderKey(compile_expression(key.text.render()), item.descending, item.nulls_first)
            for key, item in window.order_by
        ),
        start=_boundary(window.start, sql),
        end=None if window.end is None else _boundary(window.end, sql),
        label=None if window.label is None else _boundary(window.label, sql),
    )
    results = []
    for result in window_by(table.rows, clause):
        row = {name: _plain(result[name], fields) for name, fields in draft.fields}
        for call, _ in draft.kernel_aggregates:
            row[call.name] = _aggregate(
                call, [item for item in result[window.name] if item is not None], window.name, analyzer
            )
        results.append(row)
    return results


def _aggregate(call: AggregateCall, rows: Sequence[Any], name: str, analyzer: _Analyzer) -> Any:
    assert call.argument is not None
    if call.function == "count_star":
        return len(rows)
    text = call.argument.text.render()
    values = [compile_expression(text)({name: row}) for row in rows]
    distinct = call.function == "count_distinct"
    kind = analyzer.argument(text)
    return aggregate(
        "count" if distinct else str(call.function),
        values,
        distinct=distinct,
        ignore_nulls=call.ignore_nulls,
        parameters=call.parameters,
        kind="integer" if kind in ("int", "bigint") else kind,
    )


def _boundary(boundary: WindowBoundary, sql: str) -> ReferenceBoundary:
    names = {variable.role: variable.name for variable in boundary.variables}
    span = boundary.when.span if boundary.when is not None else None
    return ReferenceBoundary(
        as_=names.get(Role.ROW),
        at=names.get(Role.POSITION),
        prev=names.get(Role.PREVIOUS),
        next=names.get(Role.NEXT),
        when=compile_expression(sql[span.start : span.stop]) if span is not None else None,
        only=boundary.only,
        unbounded=boundary.unbounded,
    )


def _order(window: Window, one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    keys = [(key.text.render(), False, True) for key in window.partition_by]
    keys += [(key.text.render(), item.descending, item.nulls_first) for key, item in window.order_by]
    for name, descending, nulls_first in keys:
        left, right = one[name], other[name]
        if left is None or right is None:
            order = ((left is not None) - (right is not None)) * (1 if nulls_first else -1)
        else:
            order = compare(left, right) * (-1 if descending else 1)
        if order:
            return order
    return 0


def _plain(value: Any, fields: tuple[tuple[str, str], ...]) -> Any:
    if isinstance(value, list):
        return [_plain(item, fields) for item in value]
    if isinstance(value, Mapping):
        return {name: value[name] for name, _ in fields}
    return value


def _cast(value: Any, kind: pa.DataType) -> Any:
    return float(value) if value is not None and pa.types.is_floating(kind) else value


def _constant(value: Any) -> pa.Array:
    if isinstance(value, datetime.timedelta):
        return pa.array([value], pa.duration("us"))
    if isinstance(value, Decimal):
        return pa.array([value], ARROW["decimal(10,2)"])
    return pa.array([value])

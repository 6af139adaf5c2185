"""Runs windows through the reference interpreter: collects rows to the driver, evaluates them one by one, and
creates a DataFrame.

The interpreter evaluates the predicates and the arguments of aggregates from the user's own text. Spark
computes the input rows and the SELECT over the windows, as in other modes. ``Session(execution="reference")``
selects this mode; all other modes are compared with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, LongType, StructField, StructType

from windrow.algebra import window_node
from windrow.algebra.names import (
    IDENTITY,
    POSITIONAL,
    QUALIFIED,
    ROW,
    order_key,
    partition_key,
    visible_field,
)
from windrow.errors import NotSupportedError
from windrow.kernels.reference.aggregates import aggregate
from windrow.kernels.reference.scalar_expressions import compile_expression
from windrow.kernels.reference.window_by import OrderKey, ReferenceBoundary, WindowBy, window_by
from windrow.plan.arrow_types import contains
from windrow.rules.kernel_plan import ROWS
from windrow.spark.analysis.collations import with_ranks
from windrow.spark.clauses.batch import Bound, BoundWindow
from windrow.spark.clauses.match_reference import MatchReference, with_parameters
from windrow.spark.clauses.matching import BoundMatch
from windrow.spark.clauses.spark_aggregates import aggregate_in_spark
from windrow.spark.clauses.subquery_reference import plain, with_subqueries
from windrow.spark.gateway import Gateway, is_ansi
from windrow.syntax.nodes import Role
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.tokens import tokenize

__all__ = ["build_reference"]


def build_reference(gateway: Gateway, bound: Bound) -> DataFrame:
    """One row per window, or the rows of matches, as :func:`.batch.build_window` returns them."""
    if isinstance(bound, BoundMatch):
        return MatchReference(gateway, bound).run()
    return _Reference(gateway, bound).run()


class _Reference:
    def __init__(self, gateway: Gateway, bound: BoundWindow) -> None:
        self.gateway, self.window, self.draft, self.analyzer = (
            gateway,
            bound.window,
            bound.draft,
            bound.analyzer,
        )
        self.ansi = is_ansi(gateway)
        self.row = bound.analyzer.row

    def run(self) -> DataFrame:
        if any(contains(field.dataType, "months") for field in self.row.fields):
            raise NotSupportedError(
                "the reference interpreter does not support year-month intervals",
                condition="REFERENCE_EXPRESSION",
                sql=self.window.sql,
                span=self.window.span,
            )
        with self.gateway.translated():
            collected = with_ranks(self.analyzer.rows).collect()
        # the keys that Spark computed ride along under names that no field can have
        rows = [
            {
                **_by_relation(plain(item[ROW])),
                **{f"\0{name}": item[name] for name in item.__fields__ if name != ROW},
            }
            for item in collected
        ]
        windows = window_by(rows, self.clause())
        columns = self.columns()
        data = [tuple(read(result) for _, _, read in columns) for result in windows]
        schema = StructType([StructField(name, kind) for name, kind, _ in columns])
        frame = self.gateway.spark.createDataFrame(data, schema)
        if self.draft.spark_aggregates:
            keys = [name for name, _, _ in columns if name != ROWS]
            frame = aggregate_in_spark(self.gateway, self.window, self.draft.spark_aggregates, frame, keys)
        return frame

    # -- the clause as the interpreter takes it ----------------------------------------------------

    def clause(self) -> WindowBy:
        window = self.window
        return WindowBy(
            name=window.name,
            tumbling=window.tumbling,
            partition_by=tuple(
                _key(f"\0{partition_key(number)}") for number in range(len(window.partition_by))
            ),
            order_by=tuple(
                OrderKey(_key(f"\0{order_key(number)}"), item.descending, item.nulls_first)
                for number, (_, item) in enumerate(window.order_by)
            ),
            start=self.boundary(window.start),
            end=self.boundary(window.end) if window.end is not None else None,
            label=self.boundary(window.label) if window.label is not None else None,
        )

    def boundary(self, boundary: window_node.WindowBoundary) -> ReferenceBoundary:
        names = {variable.role: variable.name for variable in boundary.variables}
        return ReferenceBoundary(
            as_=names.get(Role.ROW),
            at=names.get(Role.POSITION),
            prev=names.get(Role.PREVIOUS),
            next=names.get(Role.NEXT),
            when=self.condition(boundary.when) if boundary.when else None,
            only=boundary.only,
            unbounded=boundary.unbounded,
        )

    def condition(self, fragment: window_node.WindowFragment) -> Callable[[Mapping[str, Any]], Any]:
        """A predicate over variables, which its subqueries may read too."""
        around = {
            variable.name: LongType() if variable.role is Role.POSITION else self.row
            for variable in self.window.variables()
        }

        def compiled(text: str) -> Callable[[Mapping[str, Any]], Any]:
            return compile_expression(with_parameters(self.gateway, text), ansi=self.ansi)

        return with_subqueries(self.written(fragment), self.gateway, self.window.prefix, around, compiled)

    def written(self, fragment: window_node.WindowFragment) -> str:
        """The user's text of an expression."""
        if fragment.column is not None or fragment.span is None:
            raise NotSupportedError(
                "the reference interpreter does not support predicates as Columns",
                condition="REFERENCE_EXPRESSION",
            )
        sql, span = self.window.sql, fragment.span
        # positional parameters are numbered through the whole query
        tokens = tokenize(sql)
        marks = [tokens[at].span for at in parameter_marks(tokens)]
        words = [(mark, f":{POSITIONAL}{number}") for number, mark in enumerate(marks)]
        instead = {at: word for at, word in (*words, *fragment.instead) if span.start <= at.start < span.stop}
        text = SqlText.of(Piece(sql[span.start : span.stop], sql, span.start)).with_words(sql, instead)
        return text.render()

    # -- the result --------------------------------------------------------------------------------

    def columns(self) -> list[tuple[str, DataType, Callable[[Mapping[str, Any]], Any]]]:
        """Name, type and value of each column of the result."""
        types = {field.name: field.dataType for field in self.row.fields}
        positions = self.window.positions()
        columns: list[tuple[str, DataType, Callable[[Mapping[str, Any]], Any]]] = []
        for name, fields in self.draft.fields:
            names = [field for field, _ in fields]
            struct = StructType([StructField(visible_field(field) or field, types[field]) for field in names])
            variable = name.removeprefix(QUALIFIED)
            if name in positions:
                row = name.removeprefix(IDENTITY)
                columns.append((name, LongType(), _key(name) if row == name else _identity(row)))
            elif variable == self.window.name:
                columns.append((name, ArrayType(struct), _rows(variable, names, markers=True)))
            else:
                columns.append((name, struct, _struct(variable, names)))
        if self.draft.spark_aggregates:
            names = [field for field, _ in self.draft.spark_fields]
            struct = StructType([StructField(field, types[field]) for field in names])
            columns.append((ROWS, ArrayType(struct), _rows(self.window.name, names, markers=False)))
        for call, _ in self.draft.kernel_aggregates:
            columns.append((call.name, self.analyzer.aggregate(call), self.aggregate(call)))
        return columns

    def aggregate(self, call: window_node.AggregateCall) -> Callable[[Mapping[str, Any]], Any]:
        name = self.window.name
        assert call.function is not None
        assert call.argument is not None
        distinct = call.function == "count_distinct"
        function = "count" if distinct else call.function
        argument = compile_expression(
            with_parameters(self.gateway, call.argument.text.render()), ansi=self.ansi
        )
        kind = self.analyzer.argument_type(call.argument) if call.function != "count_star" else "double"

        def value(result: Mapping[str, Any]) -> Any:
            rows = [row for row in result[name] if row is not None]
            values = [argument({name: row, QUALIFIED + name: row}) for row in rows]
            parameters = (call.parameters,) if len(call.parameters) > 1 else call.parameters
            return aggregate(
                function,
                values,
                distinct=distinct,
                ignore_nulls=call.ignore_nulls,
                parameters=parameters,
                kind=kind,
            )

        return value


def _by_relation(row: dict[str, Any]) -> dict[str, Any]:
    """A row in which columns that are read with a qualifier are also in a row for that relation."""
    found = dict(row)
    for field, value in row.items():
        if field.startswith(QUALIFIED):
            relation, _, column = field.removeprefix(QUALIFIED).partition(".")
            known = found.get(relation)
            found[relation] = {**(known if isinstance(known, dict) else {}), column: value}
    return found


def _key(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda row: row[name]


def _identity(name: str) -> Callable[[Mapping[str, Any]], Any]:
    """A number that identifies a row, NULL if there is none."""
    return lambda result: None if result[name] is None else id(result[name])


def _struct(name: str, fields: list[str]) -> Callable[[Mapping[str, Any]], Any]:
    def value(result: Mapping[str, Any]) -> Any:
        row = result[name]
        return None if row is None else tuple(row[field] for field in fields)

    return value


def _rows(name: str, fields: list[str], *, markers: bool) -> Callable[[Mapping[str, Any]], Any]:
    def value(result: Mapping[str, Any]) -> Any:
        rows = [row for row in result[name] if markers or row is not None]
        return [None if row is None else tuple(row[field] for field in fields) for row in rows]

    return value

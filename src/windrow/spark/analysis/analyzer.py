"""Types and scopes of a window's rows: Spark analyses the parts of the clause."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, StructType

from windrow.algebra.names import IDENTITY, ROW
from windrow.algebra.window_node import AggregateCall, Window, WindowBoundary, WindowFragment
from windrow.errors import NotSupportedError, WindrowError
from windrow.plan.arrow_types import contains
from windrow.rules.known_types import has_plain_names
from windrow.rules.types import INTEGERS
from windrow.spark.analysis.argument_columns import not_boolean
from windrow.spark.analysis.keyed_rows import refuse_unorderable
from windrow.spark.analysis.known_aggregates import kernel_type, known_aggregate
from windrow.spark.analysis.row_fields import as_variable, row_type, with_distinct_names
from windrow.spark.errors import in_window_terms
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.jvm.plans import changes_by_run
from windrow.spark.runtime.quiet import quiet
from windrow.syntax.expression_nodes import Name
from windrow.syntax.nodes import Role, Side
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["SparkAnalyzer"]

_LEGACY_INTERVALS = "spark.sql.legacy.interval.enabled"


class SparkAnalyzer:
    """The analyzer of one window over its rows (:class:`windrow.algebra.physical.Analyzer`)."""

    def __init__(self, gateway: Gateway, window: Window, rows: DataFrame) -> None:
        self.gateway, self.window, self.rows = gateway, window, with_distinct_names(rows)
        self.row = row = row_type(self.rows)
        self.fields = {field.name: field.dataType.simpleString() for field in row.fields}
        self.ansi = is_ansi(gateway)
        self.aggregate_types: dict[str, DataType] = {}
        refuse_unorderable(window, rows)

    @cached_property
    def has_intervals(self) -> bool:
        """See the protocol."""
        return str(self.gateway.spark.conf.get(_LEGACY_INTERVALS, "false")).lower() != "true"

    def types(self, texts: Sequence[SqlText], side: Side) -> list[str]:
        """See the protocol."""
        try:
            schema = self.analyse(texts, self.scope(side))
        except WindrowError as error:
            raise in_window_terms(error, self.window, self.fields, side) from None
        return [field.dataType.simpleString() for field in schema.fields]

    def column_scope(self, column: Any, boundary: WindowBoundary) -> str | None:
        """See the protocol: it tries each variable alone."""
        for variable in boundary.variables:
            if variable.role is Role.POSITION:
                continue
            with quiet():
                try:
                    found = self.rows.select(*as_variable(F.col(ROW), self.fields, variable.name))
                    found = found.select(column)
                    kind = found.schema.fields[0].dataType.simpleString()
                except PySparkException:
                    continue
            if kind not in ("boolean", "void"):
                raise not_boolean(boundary, kind)
            if changes_by_run(found):
                raise NotSupportedError(
                    f"predicate of {boundary.side.name} returns a different value in each run",
                    condition="NONDETERMINISTIC_PREDICATE",
                    hint="compute it once into a column of a stored table",
                )
            return variable.name
        return None

    def aggregate_type(self, call: AggregateCall) -> str:
        """See the protocol."""
        return self.aggregate(call).simpleString()

    def aggregate(self, call: AggregateCall) -> DataType:
        """The type of an aggregate in Spark."""
        if call.name not in self.aggregate_types:
            known = None if call.own is not None else self._field(call.argument)
            found = None if known is None else known_aggregate(call.function, known)
            if found is not None:
                self.aggregate_types[call.name] = found
                return found
            scope = self.scope(Side.END).select("*", *as_variable(F.col(ROW), self.fields, self.window.name))
            try:
                text = call.text if call.own is None else call.own.text
                self.aggregate_types[call.name] = self.analyse([text], scope).fields[0].dataType
            except WindrowError as error:
                raise in_window_terms(error, self.window, self.fields, None) from None
        return self.aggregate_types[call.name]

    def kernel_supports(self, function: str, argument: WindowFragment) -> bool:
        """See the protocol."""
        kind = self._argument(argument)
        if function == "collect_list" and (contains(kind, "months") or contains(kind, "void")):
            return False  # Arrow cannot exchange a list of such values
        return kernel_type(function, kind) is not None

    def argument_type(self, argument: WindowFragment) -> str:
        """The type of an aggregate's argument: ``integer`` for any whole number, else Spark's name."""
        kind = self._argument(argument).simpleString()
        return "integer" if kind in INTEGERS else kind

    def _argument(self, argument: WindowFragment) -> DataType:
        known = self._field(argument)
        if known is not None:
            return known
        return self.analyse([SqlText.of("(", argument.text, ")")], self.window_row).fields[0].dataType

    def _field(self, argument: WindowFragment | None) -> DataType | None:
        """The type of an argument that is just a field of the window's rows."""
        match argument:
            case WindowFragment(expression=Name(parts=(name, field))) if name == self.window.name:
                return self.row[field].dataType if field in self.fields and self.is_plain else None
        return None

    @cached_property
    def is_plain(self) -> bool:
        """Whether fields have the names by which they are read."""
        return has_plain_names(self.fields)

    def constants(self, texts: dict[str, SqlText]) -> pa.Table:
        """The values of constants and of expressions over missing rows: a table of one row.

        A job of Spark's computes them, unless all are TRUE or FALSE, as in ``WHEN TRUE``.
        """
        known = {name: text.render().strip("() ").upper() for name, text in texts.items()}
        if all(value in ("TRUE", "FALSE") for value in known.values()):
            return pa.table({name: [value == "TRUE"] for name, value in known.items()})
        one = self.gateway.spark.sql("SELECT 1 AS __one")
        nothing = F.lit(None)
        columns = [nothing.cast(self.row).alias(ROW)]
        for variable in self.window.variables():
            if variable.role is Role.POSITION:
                columns.append(nothing.cast("bigint").alias(variable.name))
            else:
                columns += as_variable(nothing.cast(self.row), self.fields, variable.name)
        relation = one.select(*columns)
        items = SqlText.join(", ", (SqlText.of(text, f" AS `{name}`") for name, text in texts.items()))
        frame = self.gateway.sql(
            SqlText.of(self.window.prefix, "SELECT ", items, " FROM ", RelationText("scope")),
            {"scope": relation},
        )
        with self.gateway.translated():
            return frame.toArrow()

    @cached_property
    def window_row(self) -> DataFrame:
        """The rows, with the window's name standing for one row."""
        return self.rows.select(*as_variable(F.col(ROW), self.fields, self.window.name))

    def scope(self, side: Side) -> DataFrame:
        """A relation with a column for each variable that a predicate of `side` sees."""
        columns = [F.col(ROW).alias(ROW)]
        for variable in self.window.visible(side):
            if variable.role is Role.POSITION:
                columns.append(F.lit(1).cast("bigint").alias(variable.name))
            else:
                columns += as_variable(F.col(ROW), self.fields, variable.name)
                columns.append(F.lit(1).cast("bigint").alias(IDENTITY + variable.name))
        return self.rows.select(*columns)

    def analyse(self, texts: Sequence[SqlText], scope: DataFrame) -> StructType:
        """The schema of these expressions over a relation."""
        items = SqlText.join(", ", (SqlText.of(text, f" AS x{number}") for number, text in enumerate(texts)))
        query = SqlText.of(self.window.prefix, "SELECT ", items, " FROM ", RelationText("scope"))
        return self.gateway.sql(query, {"scope": scope}).schema

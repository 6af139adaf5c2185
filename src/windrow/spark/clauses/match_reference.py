"""Runs MATCH_RECOGNIZE through the reference interpreter: rows to the driver, and back."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, LongType, StringType, StructField, StructType

from windrow.algebra.match_node import MatchExpression
from windrow.algebra.names import ROW, order_key, partition_key
from windrow.algebra.navigations import (
    Aggregation,
    Leaf,
    Navigated,
    Numbered,
    classifiers,
    match_numbers,
)
from windrow.algebra.physical import field_of, is_field
from windrow.errors import NotSupportedError, WindrowError
from windrow.kernels.patterns.pattern_plan import CLASSIFIER, STATE
from windrow.kernels.reference.aggregates import aggregate
from windrow.kernels.reference.match_recognize import (
    LABEL,
    NUMBER,
    Clause,
    Frame,
    MatchView,
    OutputRow,
    match_recognize,
)
from windrow.kernels.reference.scalar_expressions import compile_expression
from windrow.kernels.reference.window_by import OrderKey
from windrow.plan.arrow_types import contains
from windrow.rules.match_draft import ARGUMENT, MATCH_NUMBER, AggregateLeaf, calls_of_spark
from windrow.rules.types import INTEGERS
from windrow.spark.analysis.collations import with_ranks
from windrow.spark.clauses.answers import KnownAnswers
from windrow.spark.clauses.matching import BoundMatch, result_types, selected
from windrow.spark.clauses.spark_aggregates import aggregate_lists
from windrow.spark.clauses.subquery_reference import plain, with_subqueries
from windrow.spark.gateway import Gateway
from windrow.syntax.subqueries import subqueries
from windrow.syntax.tokens import tokenize

__all__ = ["MatchReference", "with_parameters"]

Value = Callable[[Any], Any]
_FIRST, _LAST = "__first", "__last"
"""The keys of a match's first row and of the current row, besides the columns of the first."""
_LIST = "__list"
"""The index of a list among those that Spark aggregates together."""


class MatchReference:
    """One clause over its rows."""

    def __init__(self, gateway: Gateway, bound: BoundMatch) -> None:
        self.gateway, self.bound = gateway, bound
        self.match, self.draft, self.analyzer = bound.match, bound.draft, bound.analyzer

    def run(self) -> DataFrame:
        """The rows that the clause returns."""
        if any(contains(field.dataType, "months") for field in self.analyzer.row.fields):
            raise NotSupportedError(
                "the reference interpreter does not support year-month intervals",
                condition="REFERENCE_EXPRESSION",
                sql=self.match.sql,
                span=self.match.span,
            )
        with self.gateway.translated():
            collected = with_ranks(self.analyzer.rows).collect()
        # the keys that Spark computed ride along under names that no field can have
        rows = [
            {**plain(item[ROW]), **{f"\0{name}": item[name] for name in item.__fields__ if name != ROW}}
            for item in collected
        ]
        try:
            output = match_recognize(rows, self.clause())
        except WindrowError as error:
            if error.condition.startswith("SKIP_TO") or error.condition.startswith("SKIP_TARGET"):
                error.span = self.match.clause.skip.span
            raise error.located(self.match.sql) from None
        schema = result_types(self.gateway, self.bound)
        columns = [self.column(field.name) for field in schema.fields]
        data = [tuple(value(item) for value in columns) for item in output]
        frame = self.gateway.spark.createDataFrame(data, schema)
        return selected(self.bound, frame)

    def clause(self) -> Clause:
        """The clause in the interpreter's form."""
        match, clause = self.match, self.match.clause
        target = clause.skip.target
        return Clause(
            partition_by=tuple(
                _key(f"\0{partition_key(number)}") for number in range(len(match.partition_by))
            ),
            order_by=tuple(
                OrderKey(_key(f"\0{order_key(number)}"), item.descending, item.nulls_first)
                for number, (_, item) in enumerate(match.order_by)
            ),
            tree=match.tree,
            conditions={match.labels.index(item.name): self.condition(item) for item in match.defines},
            within=self.within(),
            skip=clause.skip.kind,
            targets=match.members[target] if target is not None else frozenset(),
            all_rows=clause.all_rows,
            shows_empty=clause.shows_empty,
            with_unmatched=clause.with_unmatched,
            every=clause.every,
            in_time=self.in_time(),
            frame=None if clause.frame is None else Frame(clause.frame.following, clause.frame.seek),
        )

    def compiled(self, text: str, leaves: Mapping[str, DataType] | None = None) -> Value:
        """A user's expression, with its parameters, as a function of an environment.

        Spark runs its subqueries anew over the values that they read: a row, and `leaves` of these types.
        """
        kinds = {field.name: field.dataType for field in self.analyzer.row.fields}
        around = {**kinds, ROW: self.analyzer.row, **(leaves or {})}

        def compiled(written: str) -> Value:
            return compile_expression(with_parameters(self.gateway, written), ansi=self.analyzer.ansi)

        return with_subqueries(text, self.gateway, self.match.prefix, around, compiled)

    # -- DEFINE and WITHIN -------------------------------------------------------------------------

    def condition(self, item: MatchExpression) -> Callable[[MatchView], Any]:
        """A condition over the taken rows."""
        names = {leaf.range: f"__l{number}" for number, leaf in enumerate(item.leaves)}
        queries = list(subqueries(self.match.tokens, item.range))
        inside = [
            leaf for leaf in item.leaves if any(start < leaf.range[0] < stop for start, stop in queries)
        ]
        kinds = {names[leaf.range]: self.type_of(leaf) for leaf in inside}
        test = self.compiled(self.match.replace(item.range, names).render(), kinds)
        values = {names[leaf.range]: self.leaf(leaf) for leaf in item.leaves}

        def satisfied(view: MatchView) -> Any:
            row = view.rows[view.mapped[-1][0]]
            return test({**row, **{name: value(view) for name, value in values.items()}})

        return satisfied

    def type_of(self, leaf: Leaf) -> DataType:
        """The type of a value that a subquery reads from the match."""
        if isinstance(leaf, Numbered):
            return LongType()
        assert isinstance(leaf, Navigated)
        if leaf.argument is None:
            return StringType()
        start = leaf.argument[0]
        text = self.match.replace(leaf.argument, {(start, start + 1): ROW})
        return self.analyzer.analyse([text], self.analyzer.scope(())).schema[0].dataType

    def within(self) -> Callable[[MatchView], Any] | None:
        """The condition of WITHIN."""
        clause = self.match.clause
        if clause.within is None:
            return None
        sign = "<=" if clause.inclusive else "<"
        assert self.draft.length is not None
        falls = self.match.order_by[0][1].descending
        length = f"{_FIRST} - {_LAST}" if falls else f"{_LAST} - {_FIRST}"
        test = self.compiled(f"({length}) {sign} ({self.draft.length.render()})")
        key = f"\0{order_key(0)}"

        def satisfied(view: MatchView) -> Any:
            first, last = (view.rows[view.mapped[at][0]] for at in (0, -1))
            return test({**first, _FIRST: first[key], _LAST: last[key]})

        return satisfied

    def in_time(self) -> Callable[[Mapping[str, Any], Mapping[str, Any]], Any] | None:
        """The condition of DURATION over a match's first row and a later row."""
        if self.match.clause.duration is None:
            return None
        assert self.draft.length is not None
        length = self.draft.length.render()
        falls = self.match.order_by[0][1].descending
        sign, back = (">", "-") if falls else ("<", "+")
        test = self.compiled(f"{_LAST} {sign} {_FIRST} {back} ({length})")
        key = f"\0{order_key(0)}"
        return lambda first, last: test({**first, _FIRST: first[key], _LAST: last[key]})

    def leaf(self, leaf: Leaf) -> Callable[[MatchView], Any]:
        """A value that an expression reads from the match."""
        if isinstance(leaf, Numbered):
            return lambda view: view.number
        members = self.match.members_of(leaf.variable)
        if isinstance(leaf, Aggregation):
            return self.running(leaf)
        argument = None if leaf.argument is None else self.argument(leaf)
        return lambda view: view.navigate(
            members, leaf.from_first, leaf.offset, leaf.shift, argument, self.match.labels
        )

    def running(self, leaf: Aggregation) -> Callable[[MatchView], Any]:
        """An aggregate over the rows taken so far."""
        if leaf.function == "count_star":
            return lambda view: len(view.of(self.match.members_of(leaf.variable)))
        found = next(item for item in self.draft.running if item.leaf == leaf)
        value = self.aggregated(found)
        if found.of_spark is not None:
            return self.by_spark(found, value)
        if leaf.keeps_nulls and leaf.filter is not None:
            return lambda view: None if (one := value(view)) is None else one["value"]
        return value

    def by_spark(self, leaf: AggregateLeaf, listed: Callable[[MatchView], Any]) -> Callable[[MatchView], Any]:
        """An aggregate that Spark evaluates anew, over a list."""
        kind = self.analyzer.aggregate(leaf, self.analyzer.scope(self.draft.arguments))
        fields = [StructField(leaf.name, kind), StructField(MATCH_NUMBER, LongType())]
        schema = StructType([*fields, StructField(_LIST, LongType())])

        def answered(rows: Sequence[tuple[Any, int]]) -> list[Any]:
            numbered = [(*row, place) for place, row in enumerate(rows)]
            found = aggregate_lists(
                calls_of_spark([leaf]),
                self.match.prefix,
                self.gateway.spark.createDataFrame(numbered, schema),
                self.analyzer.run,
                steady=self.gateway.is_steady,
            )
            with self.gateway.translated():
                values = {row[0]: plain(row[1]) for row in found.select(_LIST, leaf.name).collect()}
            return [values[place] for place in range(len(rows))]

        answers = KnownAnswers(answered)
        return lambda view: answers.of((listed(view), view.number))

    def argument(self, leaf: Navigated) -> Value:
        """The argument over a row."""
        assert leaf.argument is not None
        replaced = {(at, at + 1): ROW for at in range(*leaf.argument) if self.is_qualifier(at, leaf.argument)}
        replaced |= dict.fromkeys(classifiers(self.match.tokens, leaf.argument), LABEL)
        replaced |= dict.fromkeys(match_numbers(self.match.tokens, leaf.argument), NUMBER)
        path = self.match.tokens.text(*leaf.argument).rpartition(".")[2]
        is_time = path.upper() == "ELEMENT_TIME" and path.lower() not in map(str.lower, self.analyzer.fields)
        if is_time:
            return _key(f"\0{order_key(0)}")
        return self.over_row(self.match.replace(leaf.argument, replaced).render())

    def is_qualifier(self, at: int, within: tuple[int, int]) -> bool:
        """Whether a token is a variable before a column."""
        tokens = self.match.tokens
        known = {name.upper() for name in self.match.members}
        follows = tokens.is_symbol(at + 1, ".") and at + 2 < within[1]
        return (
            tokens[at].is_name
            and follows
            and tokens[at].name.upper() in known
            and not tokens.is_symbol(at - 1, ".")
        )

    def over_row(self, text: str) -> Value:
        """An expression over a row."""
        value = self.compiled(text, {LABEL: StringType(), NUMBER: LongType()})
        return lambda row: value({**row, ROW: row})

    # -- the result --------------------------------------------------------------------------------

    def column(self, name: str) -> Callable[[OutputRow], Any]:
        """The value of a column of the result."""
        if name == STATE:
            return lambda output: output.state
        if name in self.draft.numbers:
            return lambda output: output.number
        outputs = [column for _, column in (*self.draft.before, *self.draft.after)]
        if name.startswith("__f"):
            value = self.hoisted(outputs[int(name[3:])])
            return lambda output: value(output.row)
        for leaf in self.draft.aggregates:
            if leaf.name == name:
                value, final = self.aggregated(leaf), leaf.leaf.final
                return lambda output: value(output.view(final=final))
        found = next(value for value in self.draft.values if value.name == name)
        argument = None if found.column == CLASSIFIER else self.hoisted(found.column)
        return lambda output: output.view(final=found.final).navigate(
            found.members, found.from_first, found.offset, found.shift, argument, self.match.labels
        )

    def hoisted(self, column: str) -> Value:
        """The value of a column, over a row."""
        item = next(item for item in self.draft.hoisted if item.name == column)
        if is_field(item):
            return _key(field_of(item))
        number = int(item.text.render().removeprefix(ARGUMENT))
        text = self.draft.arguments[number].render()
        if text == self.match.order_by[0][0].text.render():
            return _key(f"\0{order_key(0)}")
        for key, fragment in enumerate(self.match.partition_by):
            if text == fragment.text.render():
                return _key(f"\0{partition_key(key)}")
        return self.over_row(text)

    def aggregated(self, leaf: AggregateLeaf) -> Callable[[MatchView], Any]:
        """An aggregate over the rows that a measure sees."""
        members = self.match.members_of(leaf.leaf.variable)
        arguments: list[Value] = []
        kind = "double"
        if leaf.column not in (None, CLASSIFIER):
            columns = dict(self.draft.by_label).get(leaf.column or "", (leaf.column or "",))
            arguments = [self.hoisted(column) for column in columns]
            item = next(item for item in self.draft.hoisted if item.name == columns[0])
            scope = self.analyzer.scope(self.draft.arguments)
            spark = self.analyzer.analyse([item.text], scope).schema[0].dataType.simpleString()
            kind = "integer" if spark in INTEGERS else spark
        distinct = leaf.function == "count_distinct"
        function = "count" if distinct else leaf.function

        def value(view: MatchView) -> Any:
            mapped = view.of(members)
            if leaf.column == CLASSIFIER:
                values: list[Any] = [self.match.labels[label] for _, label in mapped]
            else:
                read = arguments if len(arguments) > 1 else arguments * len(self.match.labels)
                values = [read[label](view.rows[row]) if read else None for row, label in mapped]
            return aggregate(function, values, distinct=distinct, ignore_nulls=leaf.ignores_nulls, kind=kind)

        return value


def _key(name: str) -> Callable[[Mapping[str, Any]], Any]:
    return lambda row: row[name]


def with_parameters(gateway: Gateway, text: str) -> str:
    """The text with parameters replaced by literals."""
    tokens = tokenize(text)
    marks = [index for index, token in enumerate(tokens.tokens) if token.is_symbol(":")]
    for index in reversed(marks):
        name = tokens[index + 1]
        if name.name in gateway.parameters:
            literal = _literal(gateway.parameters[name.name])
            text = text[: tokens[index].start] + literal + text[name.stop :]
    return text


def _literal(value: Any) -> str:
    """A parameter's value as SQL."""
    match value:
        case None:
            return "NULL"
        case bool() | int() | Decimal():
            return str(value)
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case datetime.datetime():
            return f"TIMESTAMP '{value}'"
        case datetime.date():
            return f"DATE '{value}'"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case _:
            raise NotSupportedError(
                f"the reference interpreter does not support parameters of type {type(value).__name__}",
                condition="REFERENCE_EXPRESSION",
            )

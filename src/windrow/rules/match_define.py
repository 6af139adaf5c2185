"""DEFINE, WITHIN and DURATION: conditions for the machine, and the registers that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal

from windrow.algebra.match_node import MatchExpression
from windrow.algebra.names import ROW
from windrow.algebra.navigations import (
    Aggregation,
    Leaf,
    Navigated,
    Numbered,
    classifiers,
    match_numbers,
    references,
)
from windrow.algebra.window_node import WindowFragment
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.kernels import window_plan
from windrow.kernels.aggregates import FUNCTIONS
from windrow.kernels.patterns.pattern_plan import (
    LABELS,
    NUMBERS,
    REQUESTED,
    Duration,
    PatternCondition,
    Register,
    register_side,
    requests_of,
)
from windrow.rules.hoister import KERNEL_TYPES, NotTypedError, Ranks, RowVariable
from windrow.rules.match_conditions import ConditionSource, MatchConditions
from windrow.rules.match_draft import MATCH_NUMBER, ReadValue, RunningLeaf, SparkCondition, neighbour
from windrow.rules.match_values import RowValues, literal
from windrow.rules.share_keys import plain_field
from windrow.rules.types import is_decimal
from windrow.syntax import expression_nodes as expressions
from windrow.syntax.expression_nodes import Name
from windrow.syntax.lengths import LENGTH_UNITS, Length, interval_of
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.syntax.subqueries import subqueries

__all__ = ["Definitions"]

_SOURCE = "__v"
_CLASSIFIERS = "__c"
_ZERO = "CAST(0 AS BIGINT)"
_DIGITS_OF_BIGINT = 18
_DIGITS_OF_DECIMAL = 38
_NUMBERS = frozenset({"tinyint", "smallint", "int", "bigint", "float", "double"})
_WITHIN: tuple[Range, Range, Range, Range] = ((-4, -4), (-3, -3), (-2, -2), (-1, -1))


class Definitions:
    """The conditions of a clause over the columns of its rows."""

    def __init__(self, rows: RowValues) -> None:
        self.rows = rows
        self.match, self.analyzer, self.tokens = rows.match, rows.analyzer, rows.tokens
        self.ranks = Ranks()
        self.of_names: dict[str, tuple[str, ...]] = {}
        self.sources: dict[tuple[str, int, str], ConditionSource] = {}
        self.made_columns: dict[str, tuple[str, bool]] = {}
        self.running: list[RunningLeaf] = []
        self.registers: list[Register] = []
        self.neighbours: set[int] = set()
        self.requested: list[SparkCondition] = []
        self.of_spark: dict[str, tuple[ReadValue, ...]] = {}
        """Aggregates that only Spark reads, by their variables, with the values that it needs for them."""

    def defined(self) -> list[PatternCondition]:
        """The conditions of DEFINE."""
        conditions = []
        for item in self.match.defines:
            label = self.match.labels.index(item.name)
            typed = self.typed(item, label)
            conditions.append(PatternCondition(label, typed, (item.span.start, item.span.stop)))
        return conditions

    def typed(self, item: MatchExpression, label: int) -> window_plan.PairExpression:
        """A condition of a label as the machine reads it."""
        atoms: dict[int, expressions.Expression] = {}
        replaced: dict[Range, str] = {}
        beside: dict[Range, str] = {}
        named: dict[str, list[Range]] = {}
        made: dict[Range, SqlText] = {}

        def read(leaf: Leaf) -> Name:
            source, field = self.read(leaf, label)
            replaced[leaf.range] = beside[leaf.range] = self.text_of(leaf, self.source_text(source, field))
            if source.variable.side == "row" and source.variable.shift:
                beside[leaf.range] = f"{neighbour(source.variable.shift)}.{quoted(field)}"
            if source.is_classifier:
                named.setdefault(source.variable.name, []).append(leaf.range)
            return Name((source.variable.name, field), leaf.range)

        def computed(leaf: Navigated, argument: Range) -> expressions.Expression:
            """The value at one row of an expression with the variable's name or match number: NULL if there
            is no row.
            """
            parts = list(self.read_at(leaf, argument))
            inner = {part.range[0]: read(part) for part in parts}
            queries = subqueries(self.tokens, argument)
            alone = {query[0] for query in queries if self.stands_alone(query, parts, replaced)}
            value = self.match.expression(argument, inner, deeply=True, alone=alone)
            there = self.there(leaf, label)
            at = (-1 - len(made), -1 - len(made))
            made[at] = SqlText.of(self.source_text(*there))
            around = {
                (leaf.range[0], argument[0]): f"CASE WHEN {made[at].render()} THEN (",
                (argument[1], leaf.range[1]): ") END",
            }
            replaced.update(around)
            beside.update(around)
            is_there = Name((there[0].variable.name, there[1]), at)
            return expressions.Call("case when", (is_there, value), leaf.range)

        def part(of: Range) -> SqlText:
            return made[of] if of in made else self.match.replace(of, replaced)

        for leaf in item.leaves:
            argument = leaf.argument if isinstance(leaf, Navigated) else None
            if isinstance(leaf, Navigated) and argument is not None and self.rows.names_match(argument):
                atoms[leaf.range[0]] = computed(leaf, argument)
            else:
                atoms[leaf.range[0]] = read(leaf)
        queries = tuple(subqueries(self.tokens, item.range))
        alone = {query[0] for query in queries if self.stands_alone(query, item.leaves, replaced)}
        expression = self.match.expression(item.range, atoms, deeply=True, alone=alone)

        def with_neighbours(of: Range) -> SqlText:
            return self.match.replace(of, beside)

        def with_names(of: Range, name: str) -> list[SqlText]:
            words = [*map(literal, self.match.labels), "CAST(NULL AS STRING)"]
            return [self.match.replace(of, replaced | dict.fromkeys(named[name], word)) for word in words]

        when = WindowFragment(part(item.range), expression, item.span, part)
        # a row beside the one that is tried may be outside of a frame, or not have come yet
        by_spark = self.match.clause.frame is None and self.analyzer.whole
        beside_row = with_neighbours if by_spark else None
        return self.converted(when, f"DEFINE {item.name}", beside_row, with_names, queries)

    def read_at(self, leaf: Navigated, argument: Range) -> Iterator[Leaf]:
        """The values that a navigation reads at its row, including the variable's name and the match
        number.
        """
        names, numbers = classifiers(self.tokens, argument), match_numbers(self.tokens, argument)
        for at in numbers:
            yield Numbered(at)
        for at in self.rows.read_in(argument):
            yield replace(leaf, range=at, argument=None if at in names else at)

    def there(self, leaf: Navigated, label: int) -> tuple[ConditionSource, str]:
        """A value that is TRUE at the row of a navigation, and missing without one."""
        members = self.match.members_of(leaf.variable)
        return self.at_row(leaf, members, label), self.rows.argument(SqlText.of("TRUE"))

    def stands_alone(self, query: Range, leaves: Sequence[Leaf], source_text: Mapping[Range, str]) -> bool:
        """Whether a subquery reads rows of the match only through these leaves."""
        missing = {}
        for leaf in leaves:
            if query[0] < leaf.range[0] < query[1]:
                text, sources = SqlText.of(source_text[leaf.range]), list(self.sources.values())
                (kind,) = self.analyzer.types_of([text], self.rows.arguments, sources)
                missing[leaf.range] = f"CAST(NULL AS {kind})"
        return self.analyzer.stands_alone(self.match.replace(query, missing))

    def converted(
        self,
        when: WindowFragment,
        what: str,
        with_neighbours: Callable[[Range], SqlText] | None = None,
        with_names: Callable[[Range, str], list[SqlText]] | None = None,
        queries: Sequence[Range] = (),
    ) -> window_plan.PairExpression:
        """A condition in the machine's form; `what` names its owner in errors."""
        sources = list(self.sources.values())

        def types_of(texts: list[SqlText]) -> list[str]:
            return self.analyzer.types_of(texts, self.rows.arguments, sources)

        hoister = MatchConditions(
            sources,
            when,
            types_of,
            self.analyzer.fields,
            self.rows.columns,
            self.ranks,
            ansi=self.analyzer.ansi,
            made=self.made_columns,
            of_spark=self.of_spark,
            with_neighbours=with_neighbours,
            with_names=with_names,
            written=None if with_names is None else lambda part: self.tokens.text(*part),
            queries=queries,
            ask=None if with_names is None else self.ask,
        )
        try:
            typed = hoister.typed(what)
        except NotTypedError as reason:
            raise NotSupportedError(
                f"condition over several rows is not supported: {reason}",
                condition="UNSUPPORTED_CONDITION",
                sql=self.match.sql,
                span=when.span,
                hint="compute the parts that read one row in a subquery in FROM; combine rows with simpler"
                " functions",
            ) from None
        except WindrowError as error:
            raise error.located(self.match.sql) from None
        self.neighbours |= hoister.neighbours
        self.of_names |= hoister.of_names
        return typed

    def ask(self, text: SqlText, read: tuple[tuple[RowVariable, str], ...]) -> window_plan.PairExpression:
        """A condition over these fields of variables, which Spark evaluates; the same twice is one."""
        values = tuple(ReadValue(one.name, field, self.value_of(one, field)) for one, field in read)
        values += tuple(value for one, _ in read for value in self.of_spark.get(one.name, ()))
        known = {(item.text.render(), item.reads): item.number for item in self.requested}
        number = known.get((text.render(), values), len(self.requested))
        if number == len(self.requested):
            self.requested.append(SparkCondition(number, text, values))
        operands: list[window_plan.PairExpression] = [window_plan.Number(number)]
        operands += [value.column for value in values]
        return window_plan.Operation(REQUESTED, tuple(operands))

    def value_of(self, variable: RowVariable, field: str) -> window_plan.ColumnRef:
        """A field of a variable as the machine has it."""
        if variable.name in self.made_columns:
            column, counts = self.made_columns[variable.name]
            missing = self.rows.columns.constant(SqlText.of(_ZERO)) if counts else None
            return window_plan.ColumnRef(column, variable.side, 0, missing)
        if any(one.variable == variable and one.is_classifier for one in self.sources.values()):
            return window_plan.ColumnRef(LABELS, variable.side)
        return window_plan.ColumnRef(self.rows.column(field), variable.side, variable.shift)

    def requests_in(self, conditions: Sequence[PatternCondition]) -> tuple[SparkCondition, ...]:
        """The conditions that Spark evaluates for these."""
        requested = {number for condition in conditions for number in requests_of(condition.expression)}
        return tuple(item for item in self.requested if item.number in requested)

    def read(self, leaf: Leaf, label: int) -> tuple[ConditionSource, str]:
        """The source and the field of a leaf in a condition of this label."""
        if isinstance(leaf, Numbered):
            if self.match.clause.every:
                hint = "use MATCH_NUMBER() in MEASURES: matches get their numbers only when they are complete"
                raise self.unsupported(leaf, "MATCH_NUMBER in DEFINE with ALL MATCHES", hint)
            return self.number(Register(None, kind="number")), "value"
        if isinstance(leaf, Aggregation):
            return self.running_aggregate(leaf), "value"
        members = self.match.members_of(leaf.variable)
        if leaf.argument is None:
            offset, shift = leaf.offset, leaf.shift
            if _is_far(leaf):
                return self.labels(leaf), "value"
            if members is None and not leaf.from_first:  # the last rows are one after the other
                offset, shift = offset - shift, 0
            if shift:
                self.register(Register(None, False, -shift - 1, "label"))
            register = self.register(Register(members, leaf.from_first, offset, "label", shift))
            return self.source(register_side(register), 0, is_classifier=True), "name"
        field = self.rows.value(leaf.argument, leaf.variable)
        return self.at_row(leaf, members, label), field

    def labels(self, leaf: Navigated) -> ConditionSource:
        """The list of the variables of all rows so far; Spark evaluates conditions over it."""
        column = self.rows.chosen([SqlText.of(literal(label)) for label in self.match.labels])
        name = f"__d{len(self.running)}"
        whole = Aggregation(leaf.range, None, "collect_list", False, None, leaf.range, (), of_classifier=True)
        text = SqlText.of("collect_list('x')")
        self.running.append(RunningLeaf(name, whole, column, text))
        source = self.made(self.list_of(None, column), name, text, counts=False)
        self.of_spark[source.variable.name] = ()
        return source

    def text_of(self, leaf: Leaf, source_text: str) -> str:
        """Spark's text of a leaf, from the values read for it."""
        if isinstance(leaf, Aggregation) and leaf.keeps_nulls and leaf.filter is not None:
            return f"{source_text}.value"
        if not isinstance(leaf, Navigated) or leaf.argument is not None or not _is_far(leaf):
            return source_text
        members = self.match.members_of(leaf.variable)
        known = [name for at, name in enumerate(self.match.labels) if members is None or at in members]
        names = f"array({', '.join(map(literal, known))})"
        is_known = f"array_contains({names}, {source_text}[__at])"
        places = f"filter(sequence(0, size({source_text}) - 1), __at -> {is_known})"
        nth = str(leaf.offset) if leaf.from_first else f"size({places}) - {leaf.offset + 1}"
        return f"get({source_text}, get({places}, {nth}) + {leaf.shift})"

    def at_row(self, leaf: Navigated, members: frozenset[int] | None, label: int) -> ConditionSource:
        """The row that a navigation finds: the current one, or one in a register."""
        if not leaf.from_first and leaf.offset == 0 and (members is None or label in members):
            return self.source("row", leaf.shift)
        register = self.register(Register(members, leaf.from_first, leaf.offset))
        return self.source(register_side(register), leaf.shift)

    def number(self, register: Register) -> ConditionSource:
        """A register that is a number itself."""
        side = register_side(self.register(register))
        return self.made(side, NUMBERS, SqlText.of("CAST(1 AS BIGINT)"), counts=True)

    def running_aggregate(self, leaf: Aggregation) -> ConditionSource:
        """An aggregate over the rows so far: a count of rows is a register, others are over a list of
        rows.
        """
        members = self.match.members_of(leaf.variable)
        if leaf.function == "count_star":
            return self.number(Register(members, kind="count"))
        name = f"__d{len(self.running)}"
        value, argument = self.rows.aggregated(leaf) if leaf.function else ("", SqlText())
        if not leaf.function or not self.rows.is_for_kernel(leaf, argument):
            return self.aggregate_of_spark(leaf, name)
        column = self.rows.column(value)
        call = "count(DISTINCT " if leaf.function == "count_distinct" else f"{leaf.function}("
        text = SqlText.of(call, argument, ")")
        side = self.list_of(members, column)
        self.running.append(RunningLeaf(name, leaf, column, text))
        source = self.made(side, name, text, counts=FUNCTIONS[leaf.function].empty == 0)
        if leaf.keeps_nulls and leaf.filter is not None:  # a struct with the value
            self.of_spark[source.variable.name] = ()
        return source

    def aggregate_of_spark(self, leaf: Aggregation, name: str) -> ConditionSource:
        """An aggregate that the kernel does not support: Spark evaluates conditions that read it, over the
        list.
        """
        found = self.rows.of_spark(leaf, name, MATCH_NUMBER)
        assert found.column is not None
        side = self.list_of(self.match.members_of(leaf.variable), found.column)
        self.running.append(found)
        source = self.made(side, name, self.rows.over_rows(leaf), counts=False)
        reads: tuple[ReadValue, ...] = ()
        if match_numbers(self.tokens, leaf.range):
            number = register_side(self.register(Register(None, kind="number")))
            reads = (ReadValue("", MATCH_NUMBER, window_plan.ColumnRef(NUMBERS, number)),)
        self.of_spark[source.variable.name] = reads
        return source

    def list_of(self, members: frozenset[int] | None, column: str) -> str:
        """The side of the list of the rows so far, with their variables if a column needs these."""
        kind = "labelled rows" if column in self.rows.by_label else "rows"
        return register_side(self.register(Register(members, kind=kind)))

    def made(self, side: str, column: str, value: SqlText, *, counts: bool) -> ConditionSource:
        """A source that is not a row; counts are 0 without rows."""
        key = (side, 0, column)
        if key not in self.sources:
            variable = RowVariable(f"{_SOURCE}{len(self.sources)}", side)
            self.sources[key] = ConditionSource(variable, value=value)
            self.made_columns[variable.name] = (column, counts)
        return self.sources[key]

    def unsupported(self, leaf: Leaf, what: str, hint: str) -> NotSupportedError:
        """The error for something that a condition cannot read."""
        return NotSupportedError(
            f"{what} is not supported",
            condition="UNSUPPORTED_CONDITION",
            sql=self.match.sql,
            span=self.tokens.span(*leaf.range),
            hint=hint,
        )

    def register(self, wanted: Register) -> int:
        """The number of a register; those that its chain needs come before it."""
        if wanted in self.registers:
            return self.registers.index(wanted)
        for offset in range(wanted.offset + 1):
            self.registers.append(replace(wanted, offset=offset))
        return len(self.registers) - 1

    def source_text(self, source: ConditionSource, field: str) -> str:
        """A source's field or argument as text for Spark."""
        if source.variable.is_there:
            return field if self.rows.is_argument(field) else f"{ROW}.{quoted(field)}"
        return f"{source.variable.name}.{quoted(field)}"

    def source(self, side: str, shift: int, *, is_classifier: bool = False) -> ConditionSource:
        """The row of a side, at a distance, or its variable's name."""
        key = (side, shift, LABELS if is_classifier else "")
        if key not in self.sources:
            name = f"{_CLASSIFIERS if is_classifier else _SOURCE}{len(self.sources)}"
            variable = RowVariable(name, side, shift, is_there=side == "row" and shift == 0)
            self.sources[key] = ConditionSource(variable, is_classifier)
        return self.sources[key]

    # -- WITHIN and DURATION -----------------------------------------------------------------------

    def within(self) -> list[PatternCondition]:
        """The conditions that a match is shorter than a duration, for every variable."""
        clause = self.match.clause
        if clause.within is None:
            return []
        key, falls = self.measuring_key("WITHIN", clause.within.tokens)
        at = clause.within.tokens
        field = plain_field(key, self.analyzer.fields) or self.rows.argument(key.text)
        row = self.source("row", 0)
        first = self.source(register_side(self.register(Register(None, True, 0))), 0)
        later, earlier = (first, row) if falls else (row, first)
        whole, difference, left, right = _WITHIN
        texts = {
            left: SqlText.of(self.source_text(later, field)),
            right: SqlText.of(self.source_text(earlier, field)),
            at: self.length() or SqlText(),
        }
        limit: expressions.Expression = expressions.Opaque((), at)
        if clause.within.reads_row:
            of_row = self.rows.argument(texts[at])
            texts[at], limit = (
                SqlText.of(self.source_text(first, of_row)),
                Name((first.variable.name, of_row), at),
            )
        texts[difference] = SqlText.of(texts[left], " - ", texts[right])
        sign = "<=" if clause.inclusive else "<"
        texts[whole] = SqlText.of("(", texts[difference], f") {sign} (", texts[at], ")")
        names = Name((later.variable.name, field), left), Name((earlier.variable.name, field), right)
        length = expressions.OperationNode("-", names, difference)
        condition = expressions.OperationNode(sign, (length, limit), whole)
        span = self.tokens.span(*at)
        with self.measured("WITHIN", at):
            typed = self.converted(WindowFragment(texts[whole], condition, span, texts.__getitem__), "WITHIN")
        return [
            PatternCondition(label, typed, (span.start, span.stop)) for label in range(len(self.match.labels))
        ]

    def measuring_key(self, what: str, at: Range) -> tuple[WindowFragment, bool]:
        """The first ORDER BY key, by which times are measured, and whether it descends."""
        if not self.match.is_ordered:
            raise AnalysisError(
                f"{what} measures time by the first ORDER BY key, but there is no ORDER BY",
                condition="MISSING_ORDER_BY",
                sqlstate="42601",
                sql=self.match.sql,
                span=self.tokens.span(*at),
                hint="add ORDER BY with a time, a date or a number",
            )
        key, item = self.match.order_by[0]
        return key, item.descending

    @contextmanager
    def measured(self, what: str, at: Range) -> Iterator[None]:
        """Add the type of the key to Spark's error if it cannot compare a key and a time."""
        try:
            yield
        except (AnalysisError, NotSupportedError) as error:
            if not error.condition.startswith(("DATATYPE_MISMATCH", "UNSUPPORTED_CONDITION")):
                raise
            kind, span = self.key_type(), self.tokens.span(*at)
            hint = "order by a time, a date or a number"
            if kind == "date" or kind.startswith("timestamp"):
                hint = f"write an interval: {what} INTERVAL 5 MINUTES"
            elif kind in _NUMBERS or is_decimal(kind):
                hint = f"write a number: {what} 5"
            raise type(error)(
                f"{what} {self.tokens.text(*at)} does not measure keys of type {kind}",
                condition=error.condition,
                sqlstate=error.sqlstate,
                sql=self.match.sql,
                span=span,
                hint=hint,
            ) from None

    def length(self) -> SqlText | None:
        """The time of WITHIN or DURATION, which may be an expression over the first row of the match.

        A number with a unit is an interval; so is a number alone, in seconds, if the key is a time.
        """
        length = self.match.clause.within or self.match.clause.duration
        if length is None:
            return None
        if length.reads_row:
            return self.length_of_row(length)
        span, nanoseconds = self.tokens.span(*length.tokens), length.nanoseconds
        if nanoseconds is not None:
            return SqlText.of(
                Piece(interval_of(nanoseconds), self.tokens.sql, span.start, span.stop - span.start)
            )
        seconds = length.number is not None and self.key_type().startswith("timestamp")
        written = self.match.replace(length.tokens, {})
        return SqlText.of("INTERVAL ", written, " SECONDS") if seconds else written

    def length_of_row(self, length: Length) -> SqlText:
        """A time computed from a row."""
        for name, at in references(self.tokens, length.value, frozenset(self.match.members)):
            raise AnalysisError(
                f"a length of time cannot read variable {name}: it reads only the first row of the match",
                condition="INVALID_NAVIGATION",
                sqlstate="42601",
                sql=self.match.sql,
                span=self.tokens.span(at, at + 3),
                hint=f"write {self.tokens[at + 2].text}",
            )
        written = self.match.replace(length.value, {})
        (kind,) = self.analyzer.types_of([written], [], [])
        is_number = kind in _NUMBERS or is_decimal(kind)
        unit = length.unit or ("SECOND" if is_number and self.key_type().startswith("timestamp") else None)
        if unit is None:
            return written
        if unit == "NANOSECOND":
            return SqlText.of("(", written, ") / 1000 * INTERVAL 1 MICROSECOND")
        return SqlText.of("(", written, f") * {interval_of(Decimal(LENGTH_UNITS[unit]))}")

    def key_type(self) -> str:
        """The type of the first ORDER BY key."""
        return self.analyzer.types_of([self.match.order_by[0][0].text], [], [])[0]

    def duration(self) -> Duration | None:
        """The columns of the first key and of the instants at which the time of matches is over."""
        if self.match.clause.duration is None:
            return None
        at = self.match.clause.duration.tokens
        key, falls = self.measuring_key("DURATION", at)
        length = self.length() or SqlText()
        sign = "-" if falls else "+"
        over = SqlText.of("(", key.text, f") {sign} (", length, ")")
        with self.measured("DURATION", at):
            of_key, of_length, of_due = self.analyzer.types_of([key.text, length, over], [], [])
        scale = max(_digits(kind)[1] if is_decimal(kind) else 0 for kind in (of_key, of_length))
        is_rounded = is_decimal(of_due) and _digits(of_due)[1] < scale
        if is_rounded:  # by Spark, for a digit more before the point
            exact = f") AS DECIMAL({_DIGITS_OF_DECIMAL - 1}, {scale}))"
            over = SqlText.of("CAST((", key.text, exact, f" {sign} CAST((", length, exact)
            of_due = f"decimal({_DIGITS_OF_DECIMAL},{scale})"
        rising = _rising(of_due, falls=falls)
        if of_key == "string" or rising is None or (is_rounded and scale == _DIGITS_OF_DECIMAL):
            raise NotSupportedError(
                f"DURATION over keys of type {of_key} is not supported",
                condition="UNSUPPORTED_CONDITION",
                sql=self.match.sql,
                span=self.tokens.span(*at),
                hint="order by a time, a date or a number",
            )
        before, after = rising
        is_same = of_key == of_due or (is_decimal(of_key) and _is_wide(of_due))  # a cast of these may round
        field = plain_field(key, self.analyzer.fields) if is_same and not before else None
        same = key.text if is_same else SqlText.of("CAST((", key.text, f") AS {of_due})")
        texts = [SqlText.of(before, text, after) for text in (same, over)]
        return Duration(
            self.rows.column(field or self.rows.argument(texts[0])),
            self.rows.column(self.rows.argument(texts[1])),
        )


def _is_far(leaf: Navigated) -> bool:
    """Whether a variable's name is that of a row without a register: after a variable's row, or before its
    first.
    """
    if leaf.variable is None and not leaf.from_first:
        return leaf.shift > leaf.offset
    return leaf.shift > 0 or (leaf.from_first and leaf.shift < 0)


def _rising(kind: str, *, falls: bool) -> tuple[str, str] | None:
    """The text around a key of this type that makes it an increasing value for the kernel."""
    if is_decimal(kind) and not _is_wide(kind):  # integers compare faster than decimals
        return f"{'-' * falls}CAST((", f") * 1{'0' * _digits(kind)[1]}BD AS BIGINT)"
    if not is_decimal(kind) and kind not in KERNEL_TYPES - {"boolean", "void"}:
        return None
    if not falls:
        return "", ""
    if kind == "timestamp_ntz":
        return "-timestampdiff(MICROSECOND, TIMESTAMP_NTZ '1970-01-01', ", ")"
    return {"date": "-unix_date(", "timestamp": "-unix_micros("}.get(kind, "-("), ")"


def _digits(decimal: str) -> tuple[int, int]:
    """The precision and scale of a decimal type."""
    precision, scale = decimal[len("decimal(") : -1].split(",")
    return int(precision), int(scale)


def _is_wide(kind: str) -> bool:
    """Whether values of a type are decimals of more digits than a BIGINT has."""
    return is_decimal(kind) and _digits(kind)[0] > _DIGITS_OF_BIGINT

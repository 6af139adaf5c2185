"""From a bound MATCH_RECOGNIZE to what the kernel is told, what Spark computes before it, and what after.

    DEFINE B AS B.price < LAST(A.price) AND upper(B.note) = PREV(B.note)
    →  h0 = price    h1 = upper(note)    h2 = note
       B: h0(row) < h0(r0) AND h1(row) = h2(row − 1)        r0 = the last row of A

A value at the row that is tried, or at its neighbours, is a column moved up or down; other rows of the
match are held in registers of the machine. The measures' values at rows and aggregates are the kernel's;
the expressions around them are Spark's, over the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from windrow.algebra.match import Expression, Match
from windrow.algebra.names import ROW
from windrow.algebra.navigations import Aggregation, Leaf, Navigated, Numbered, references
from windrow.algebra.nodes import Fragment
from windrow.algebra.physical import Columns, Hoisted, find_field
from windrow.errors import AnalysisError, NotSupportedError, WindrowError
from windrow.kernels import plan as kernel
from windrow.kernels.patterns.plan import (
    CLASSIFIER,
    LABELS,
    NUMBERS,
    Condition,
    Navigation,
    Register,
    register_side,
)
from windrow.rules.hoist_predicates import NotTypedError, Ranks, RowVariable
from windrow.rules.match_conditions import Conditions, Source
from windrow.rules.share_keys import plain_field, shared_keys
from windrow.syntax import expressions
from windrow.syntax.expressions import Name, names_in, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["ARGUMENT", "AggregateLeaf", "MatchAnalyzer", "MatchDraft", "draft_match", "neighbour"]

ARGUMENT = "__a"
"""Prefix of the columns that hold expressions of one row."""

_SOURCE = "__v"
_CLASSIFIERS = "__c"
_WITHIN: tuple[Range, Range, Range, Range] = ((-4, -4), (-3, -3), (-2, -2), (-1, -1))


def neighbour(shift: int) -> str:
    """The struct with the row so many rows on, where Spark evaluates a condition over it.

    >>> neighbour(-2)
    '__prev2'
    """
    return f"__prev{-shift}" if shift < 0 else f"__next{shift}"


class MatchAnalyzer(Protocol):
    """What the rules ask of Spark about the rows of a MATCH_RECOGNIZE."""

    @property
    def fields(self) -> Mapping[str, str]:
        """The row's field names with their types, in order."""

    @property
    def ansi(self) -> bool:
        """Whether the session raises errors where other modes give NULL."""

    def types_of(
        self, texts: Sequence[SqlText], arguments: Sequence[SqlText], sources: Sequence[Source]
    ) -> list[str]:
        """The types of expressions over the rows, their arguments, and the sources as structs of both.

        Raises
        ------
        WindrowError
            Located in the user's text, where Spark cannot analyse one of them.
        """


@dataclass(frozen=True)
class AggregateLeaf:
    """An aggregate that the kernel is to compute: `text` is it over the rows, for its type."""

    name: str
    leaf: Aggregation
    column: str | None
    text: SqlText


RunningLeaf = AggregateLeaf


@dataclass(frozen=True)
class MatchDraft:
    """A MATCH_RECOGNIZE on its way to a plan.

    `arguments` are expressions over the rows, columns ``__a0`` and so on. `values` are the measures' values
    at rows, `numbers` the names of match numbers, `running` aggregates that conditions read. `scope` has
    the fields that measures read as they are, with the values that stand for them. `before` and `after` are
    the fields of the result, with the columns that hold them, on either side of the measures. `texts` are the
    measures over all these. `neighbours` say how far the rows are that Spark evaluates conditions over.
    """

    match: Match
    arguments: tuple[SqlText, ...]
    sources: tuple[Source, ...]
    hoisted: tuple[Hoisted, ...]
    constants: tuple[tuple[str, SqlText], ...]
    shared: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...]
    registers: tuple[Register, ...]
    neighbours: tuple[int, ...]
    values: tuple[Navigation, ...]
    aggregates: tuple[AggregateLeaf, ...]
    numbers: tuple[str, ...]
    running: tuple[RunningLeaf, ...]
    scope: tuple[tuple[str, str], ...]
    before: tuple[tuple[str, str], ...]
    after: tuple[tuple[str, str], ...]
    texts: tuple[tuple[str, SqlText], ...]


def draft_match(match: Match, analyzer: MatchAnalyzer) -> MatchDraft:
    """Bind a clause to the columns of its rows.

    Raises
    ------
    AnalysisError
        ``MIXED_VARIABLES``, ``PREDICATE_NOT_BOOLEAN``, and what Spark finds.
    NotSupportedError
        ``UNSUPPORTED_CONDITION`` where the machine cannot evaluate a condition.
    """
    return _Drafter(match, analyzer).draft()


class _Drafter:
    def __init__(self, match: Match, analyzer: MatchAnalyzer) -> None:
        self.match, self.analyzer = match, analyzer
        self.tokens = match.tokens
        self.columns = Columns()
        self.ranks = Ranks()
        self.arguments: list[SqlText] = []
        self.sources: dict[tuple[str, int, str], Source] = {}
        self.made_columns: dict[str, tuple[str, bool]] = {}
        self.running: list[RunningLeaf] = []
        self.registers: list[Register] = []
        self.values: list[Navigation] = []
        self.aggregates: list[AggregateLeaf] = []
        self.numbers: list[str] = []
        self.leaves = 0
        self.neighbours: set[int] = set()

    def draft(self) -> MatchDraft:
        conditions = [*self.defined(), *self.within()]
        texts = tuple((measure.name, self.measure(measure)) for measure in self.match.measures)
        scope = tuple(self.scope())
        before, after = self.given()
        hoisted = tuple(self.columns.hoisted.values())
        return MatchDraft(
            self.match, tuple(self.arguments), tuple(self.sources.values()), hoisted,
            tuple(self.columns.constants.items()), shared_keys(self.match, hoisted, self.analyzer.fields),
            tuple(conditions), tuple(self.registers), tuple(sorted(self.neighbours)),
            tuple(self.values), tuple(self.aggregates),
            tuple(self.numbers), tuple(self.running), scope, before, after, texts,
        )  # fmt: skip

    # -- values at rows ----------------------------------------------------------------------------

    def value(self, argument: Range, variable: str | None) -> str:
        """The field or the argument that holds an expression of one row."""
        self.refuse_mixed(argument, variable)
        parsed = parse_expression(self.tokens, *argument)
        if isinstance(parsed, Name):
            path = parsed.parts[1:] if variable is not None else parsed.parts
            field = find_field(self.analyzer.fields, path[0]) if len(path) == 1 else None
            if field is not None:
                return field
            if len(path) == 1 and variable is not None and path[0].upper() == "ELEMENT_TIME":
                return self.argument(self.match.order_by[0][0].text)
        return self.argument(self.of_row(argument))

    def of_row(self, part: Range) -> SqlText:
        """The user's text with the row in place of variables."""
        known = frozenset(self.match.members)
        replaced = {(at, at + 1): ROW for _, at in references(self.tokens, part, known)}
        return self.match.replace(part, replaced)

    def argument(self, text: SqlText) -> str:
        rendered = text.render()
        for number, known in enumerate(self.arguments):
            if known.render() == rendered:
                return f"{ARGUMENT}{number}"
        self.arguments.append(text)
        return f"{ARGUMENT}{len(self.arguments) - 1}"

    def refuse_mixed(self, argument: Range, variable: str | None) -> None:
        """Columns without a variable are of all rows: they do not stand beside those of one."""
        if variable is None:
            return
        for name in names_in(parse_expression(self.tokens, *argument)):
            start = name.range[0]
            bare = len(name.parts) == 1 and self.tokens[start].is_name and start + 1 == name.range[1]
            if bare and find_field(self.analyzer.fields, name.parts[0]) is not None:
                raise AnalysisError(
                    f"column {name.parts[0]} of all rows stands beside columns of {variable}",
                    condition="MIXED_VARIABLES",
                    sqlstate="42601",
                    sql=self.match.sql,
                    span=self.tokens.span(*name.range),
                    hint=f"write {variable}.{name.parts[0]}",
                )

    def column(self, name: str) -> str:
        """The hoisted column of a field or an argument."""
        if self.is_argument(name):
            return self.columns.add(SqlText.of(name), ROW)
        return self.columns.field(name)

    # -- DEFINE ------------------------------------------------------------------------------------

    def defined(self) -> list[Condition]:
        conditions = []
        for item in self.match.defines:
            label = self.match.labels.index(item.name)
            typed = self.typed(item, label)
            conditions.append(Condition(label, typed, (item.span.start, item.span.stop)))
        return conditions

    def typed(self, item: Expression, label: int) -> kernel.PairExpression:
        atoms: dict[int, Name] = {}
        replaced: dict[Range, str] = {}
        beside: dict[Range, str] = {}
        for leaf in item.leaves:
            source, field = self.read(leaf, label)
            replaced[leaf.range] = beside[leaf.range] = self.shown(source, field)
            if source.variable.side == "row" and source.variable.shift:
                beside[leaf.range] = f"{neighbour(source.variable.shift)}.{quoted(field)}"
            atoms[leaf.range[0]] = Name((source.variable.name, field), leaf.range)
        expression = parse_expression(self.tokens, *item.range, atoms)

        def part(of: Range) -> SqlText:
            return self.match.replace(of, replaced)

        def with_neighbours(of: Range) -> SqlText:
            return self.match.replace(of, beside)

        when = Fragment(part(item.range), expression, item.span, part)
        return self.converted(when, f"DEFINE {item.name}", with_neighbours)

    def converted(
        self, when: Fragment, what: str, with_neighbours: Callable[[Range], SqlText] | None = None
    ) -> kernel.PairExpression:
        sources = list(self.sources.values())

        def types_of(texts: list[SqlText]) -> list[str]:
            return self.analyzer.types_of(texts, self.arguments, sources)

        hoister = Conditions(
            sources,
            when,
            types_of,
            self.analyzer.fields,
            self.columns,
            self.ranks,
            ansi=self.analyzer.ansi,
            made=self.made_columns,
            with_neighbours=with_neighbours,
        )
        try:
            typed = hoister.typed(what)
        except NotTypedError as reason:
            raise NotSupportedError(
                f"condition over several rows is not supported: {reason}",
                condition="UNSUPPORTED_CONDITION",
                sql=self.match.sql,
                span=when.span,
                hint="compute what reads one row in a subquery in FROM; compare numbers, times or strings",
            ) from None
        except WindrowError as error:
            raise error.located(self.match.sql) from None
        self.neighbours |= hoister.neighbours
        return typed

    def read(self, leaf: Leaf, label: int) -> tuple[Source, str]:
        """The source and the field that a leaf of a condition of this label is."""
        if isinstance(leaf, Numbered):
            return self.number(Register(None, kind="number")), "value"
        if isinstance(leaf, Aggregation):
            return self.running_aggregate(leaf), "value"
        members = self.match.members_of(leaf.variable)
        if leaf.argument is None:
            offset = leaf.offset
            if leaf.shift:
                if leaf.shift > 0 or members is not None or leaf.from_first:
                    raise self.unsupported(
                        leaf,
                        "CLASSIFIER of a neighbour in DEFINE",
                        "LAST(CLASSIFIER(), 1) is that of the row before",
                    )
                offset -= leaf.shift
            register = self.register(Register(members, leaf.from_first, offset, "label"))
            return self.source(register_side(register), 0, is_classifier=True), "name"
        field = self.value(leaf.argument, leaf.variable)
        is_row = not leaf.from_first and leaf.offset == 0 and (members is None or label in members)
        if is_row:
            return self.source("row", leaf.shift), field
        register = self.register(Register(members, leaf.from_first, leaf.offset))
        return self.source(register_side(register), leaf.shift), field

    def number(self, register: Register) -> Source:
        """A register that is a number itself."""
        side = register_side(self.register(register))
        return self.made(side, NUMBERS, SqlText.of("CAST(1 AS BIGINT)"), counts=True)

    def running_aggregate(self, leaf: Aggregation) -> Source:
        """An aggregate over the rows so far: a count of rows is a register, others are of a list of rows."""
        members = self.match.members_of(leaf.variable)
        if leaf.function == "count_star":
            return self.number(Register(members, kind="count"))
        if leaf.of_classifier or leaf.argument is None:
            raise self.unsupported(
                leaf, "an aggregate of variables' names in DEFINE", "COUNT(a.*) counts the rows of a variable"
            )
        column = self.column(self.value(leaf.argument, leaf.variable))
        call = "count(DISTINCT " if leaf.function == "count_distinct" else f"{leaf.function}("
        text = SqlText.of(call, self.of_row(leaf.argument), ")")
        side = register_side(self.register(Register(members, kind="rows")))
        name = f"__d{len(self.running)}"
        self.running.append(RunningLeaf(name, leaf, column, text))
        counts = leaf.function in ("count", "count_distinct", "count_if")
        return self.made(side, name, text, counts=counts)

    def made(self, side: str, column: str, value: SqlText, *, counts: bool) -> Source:
        """A source that is no row; of counts, there are none where there are no rows."""
        key = (side, 0, column)
        if key not in self.sources:
            variable = RowVariable(f"{_SOURCE}{len(self.sources)}", side)
            self.sources[key] = Source(variable, value=value)
            self.made_columns[variable.name] = (column, counts)
        return self.sources[key]

    def unsupported(self, leaf: Leaf, what: str, hint: str) -> NotSupportedError:
        return NotSupportedError(
            f"{what} is not supported",
            condition="UNSUPPORTED_CONDITION",
            sql=self.match.sql,
            span=self.tokens.span(*leaf.range),
            hint=hint,
        )

    def register(self, wanted: Register) -> int:
        """The number of a register; those that its chain needs stand before it."""
        if wanted in self.registers:
            return self.registers.index(wanted)
        for offset in range(wanted.offset + 1):
            self.registers.append(Register(wanted.members, wanted.from_first, offset, wanted.kind))
        return len(self.registers) - 1

    def shown(self, source: Source, field: str) -> str:
        """A source's field or argument as text for Spark."""
        if source.variable.is_there:
            return field if self.is_argument(field) else f"{ROW}.{quoted(field)}"
        return f"{source.variable.name}.{quoted(field)}"

    def is_argument(self, name: str) -> bool:
        return name.startswith(ARGUMENT) and name not in self.analyzer.fields

    def source(self, side: str, shift: int, *, is_classifier: bool = False) -> Source:
        key = (side, shift, LABELS if is_classifier else "")
        if key not in self.sources:
            name = f"{_CLASSIFIERS if is_classifier else _SOURCE}{len(self.sources)}"
            variable = RowVariable(name, side, shift, is_there=side == "row" and shift == 0)
            self.sources[key] = Source(variable, is_classifier)
        return self.sources[key]

    # -- WITHIN ------------------------------------------------------------------------------------

    def within(self) -> list[Condition]:
        """That a match is shorter than a duration: a condition of every variable."""
        clause = self.match.clause
        if clause.within is None:
            return []
        key, item = self.match.order_by[0]
        if item.descending:
            raise NotSupportedError(
                "WITHIN over a descending ORDER BY is not supported",
                condition="UNSUPPORTED_CONDITION",
                sql=self.match.sql,
                span=self.tokens.span(*clause.within),
                hint="order by a time that rises",
            )
        field = plain_field(key, self.analyzer.fields) or self.argument(key.text)
        row = self.source("row", 0)
        first = self.source(register_side(self.register(Register(None, True, 0))), 0)
        whole, difference, left, right = _WITHIN
        texts = {
            left: SqlText.of(self.shown(row, field)),
            right: SqlText.of(self.shown(first, field)),
            clause.within: self.duration(clause.within),
        }
        texts[difference] = SqlText.of(texts[left], " - ", texts[right])
        sign = "<=" if clause.inclusive else "<"
        texts[whole] = SqlText.of("(", texts[difference], f") {sign} (", texts[clause.within], ")")
        names = Name((row.variable.name, field), left), Name((first.variable.name, field), right)
        limit = expressions.Opaque((), clause.within)
        length = expressions.Operation("-", names, difference)
        condition = expressions.Operation(sign, (length, limit), whole)
        span = self.tokens.span(*clause.within)
        typed = self.converted(Fragment(texts[whole], condition, span, texts.__getitem__), "WITHIN")
        return [Condition(label, typed, (span.start, span.stop)) for label in range(len(self.match.labels))]

    def duration(self, within: Range) -> SqlText:
        """The duration; a number and a unit are an interval."""
        start, stop = within
        bare = stop == start + 2 and self.tokens[start].text.isdigit() and self.tokens.word(start + 1)
        return SqlText.of("INTERVAL " if bare else "", self.match.replace(within, {}))

    # -- MEASURES ----------------------------------------------------------------------------------

    def measure(self, item: Expression) -> SqlText:
        """A measure's text over the values that the kernel gives."""
        replaced = {leaf.range: self.leaf(leaf) for leaf in item.leaves}
        return self.match.replace(item.range, replaced)

    def leaf(self, leaf: Leaf) -> str:
        """The column with a leaf's values."""
        match leaf:
            case Numbered():
                name = self.new_leaf()
                self.numbers.append(name)
                return name
            case Aggregation():
                return self.aggregate(leaf)
            case Navigated():
                column = CLASSIFIER
                if leaf.argument is not None:
                    column = self.column(self.value(leaf.argument, leaf.variable))
                members = self.match.members_of(leaf.variable)
                return self.navigation(members, leaf.from_first, leaf.offset, leaf.shift, leaf.final, column)

    def navigation(
        self,
        members: frozenset[int] | None,
        from_first: bool,
        offset: int,
        shift: int,
        final: bool,
        column: str,
    ) -> str:
        final = final and self.match.clause.all_rows
        for known in self.values:
            same = Navigation(known.name, members, from_first, offset, shift, final, column)
            if known == same:
                return known.name
        self.values.append(Navigation(self.new_leaf(), members, from_first, offset, shift, final, column))
        return self.values[-1].name

    def aggregate(self, leaf: Aggregation) -> str:
        column, argument = None, SqlText.of("1")
        if leaf.of_classifier:
            column, argument = CLASSIFIER, SqlText.of("'x'")
        elif leaf.argument is not None:
            argument = self.of_row(leaf.argument)
            column = self.column(self.value(leaf.argument, leaf.variable))
        function = leaf.function
        call = {"count_star": "count(", "count_distinct": "count(DISTINCT "}.get(function, f"{function}(")
        name = self.new_leaf()
        self.aggregates.append(AggregateLeaf(name, leaf, column, SqlText.of(call, argument, ")")))
        return name

    def new_leaf(self) -> str:
        self.leaves += 1
        return f"__m{self.leaves - 1}"

    def scope(self) -> list[tuple[str, str]]:
        """The fields that measures read without a variable, with the values of the last row."""
        found: dict[str, str] = {}
        for item in self.match.measures:
            atoms = {leaf.range[0]: Name(("",), leaf.range) for leaf in item.leaves}
            for name in names_in(parse_expression(self.tokens, *item.range, atoms)):
                field = find_field(self.analyzer.fields, name.parts[0])
                if field is not None and field not in found:
                    column = self.columns.field(field)
                    found[field] = self.navigation(None, False, 0, 0, False, column)
        return list(found.items())

    # -- the columns of the result -----------------------------------------------------------------

    def given(self) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        fields = self.analyzer.fields
        keys: list[str] = []
        for key in self.match.partition_by:
            assert isinstance(key.expression, Name)
            field = find_field(fields, key.expression.parts[-1])
            if field is not None and field not in keys:
                keys.append(field)
        rest: list[str] = []
        if self.match.clause.all_rows:
            for key, _ in self.match.order_by:
                name = key.expression.parts[-1] if isinstance(key.expression, Name) else ""
                field = find_field(fields, name)
                if field is not None and field not in keys:
                    keys.append(field)
            rest = [field for field in fields if field not in keys]
        return tuple(self.kept(keys)), tuple(self.kept(rest))

    def kept(self, names: list[str]) -> list[tuple[str, str]]:
        """Those of the fields that the query may read, with their columns."""
        mentioned = self.match.mentioned
        return [
            (name, self.columns.field(name))
            for name in names
            if mentioned is None or name.lower() in mentioned
        ]

"""MEASURES and the other columns of the result: the output of the kernel, and the texts over it."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.algebra.match_node import MatchExpression
from windrow.algebra.names import SINCE, visible_field
from windrow.algebra.navigations import (
    Aggregation,
    Leaf,
    Navigated,
    Numbered,
    classifiers,
    match_numbers,
)
from windrow.algebra.physical import find_field
from windrow.kernels.patterns.pattern_plan import CLASSIFIER, Navigation
from windrow.rules.match_draft import AggregateLeaf
from windrow.rules.match_values import RowValues
from windrow.rules.share_keys import plain_field
from windrow.syntax.expression_nodes import Name, names_in
from windrow.syntax.nodes import Range
from windrow.syntax.operands import names_a_field
from windrow.syntax.select_list import is_path
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["Measures"]


class Measures:
    """The measures of a clause over the columns of its rows."""

    def __init__(self, rows: RowValues) -> None:
        self.rows = rows
        self.match, self.analyzer, self.tokens = rows.match, rows.analyzer, rows.tokens
        self.values: list[Navigation] = []
        self.aggregates: list[AggregateLeaf] = []
        self.numbers: list[str] = []
        self.leaves = 0
        # a bare column under this name is that of the row of the output, which a match without rows has too
        self.of_row = [item for item in self.match.measures if item.name == SINCE and not item.leaves]
        self.items = [item for item in self.match.measures if item not in self.of_row]

    def measure(self, item: MatchExpression) -> SqlText:
        """A measure's text over the values that the kernel returns."""
        replaced: dict[Range, str] = {}
        for leaf in item.leaves:
            argument = leaf.argument if isinstance(leaf, Navigated) else None
            if isinstance(leaf, Navigated) and argument is not None and self.rows.names_match(argument):
                replaced |= self.computed(leaf, argument)
            else:
                replaced[leaf.range] = self.as_field(leaf, self.leaf(leaf))
        return self.match.replace(item.range, replaced)

    def leaf(self, leaf: Leaf) -> str:
        """The column with a leaf's values."""
        match leaf:
            case Numbered():
                return self.number()
            case Aggregation():
                return self.aggregate(leaf)
            case Navigated(argument=argument):
                if argument is None:
                    return self.navigated(leaf, CLASSIFIER)
                return self.navigated(leaf, self.rows.column(self.rows.value(argument, leaf.variable)))

    def as_field(self, leaf: Leaf, column: str) -> str:
        """The column, with the name of its field where it is an argument of STRUCT."""
        word = names_a_field(self.tokens, leaf.range)
        if word == "STRUCT" and is_path(self.tokens, leaf.range):
            return f"{column} AS {quoted(self.tokens[leaf.range[1] - 1].name)}"
        return f"coalesce({column})" if word else column

    def navigated(self, leaf: Navigated, column: str) -> str:
        """The name of a column's values at the row of a navigation."""
        members = self.match.members_of(leaf.variable)
        return self.navigation(members, leaf.from_first, leaf.offset, leaf.shift, leaf.final, column)

    def computed(self, leaf: Navigated, argument: Range) -> dict[Range, str]:
        """The value at one row of an expression with CLASSIFIER() or MATCH_NUMBER().

        It is computed from values read at that row; NULL without a row, whatever it returns for NULL.
        """
        self.rows.refuse_mixed(argument, leaf.variable)
        names = set(classifiers(self.tokens, argument))
        there = CLASSIFIER
        if leaf.shift:
            there = self.rows.column(self.rows.argument(SqlText.of("TRUE")))
        replaced = {
            (leaf.range[0], argument[0]): f"CASE WHEN {self.navigated(leaf, there)} IS NOT NULL THEN (",
            (argument[1], leaf.range[1]): ") END",
        }
        replaced |= {at: self.number() for at in match_numbers(self.tokens, argument)}
        for at in self.rows.read_in(argument):
            column = CLASSIFIER if at in names else self.rows.column(self.rows.value(at, leaf.variable))
            replaced[at] = self.navigated(leaf, column)
        return replaced

    def number(self) -> str:
        """The name of the match's number."""
        if not self.numbers:
            self.numbers.append(self.new_leaf())
        return self.numbers[0]

    def navigation(
        self,
        members: frozenset[int] | None,
        from_first: bool,
        offset: int,
        shift: int,
        final: bool,
        column: str,
    ) -> str:
        """The name of the values at a row of the match; the same twice is one."""
        final = final and self.match.clause.all_rows
        for known in self.values:
            same = Navigation(known.name, members, from_first, offset, shift, final, column)
            if known == same:
                return known.name
        self.values.append(Navigation(self.new_leaf(), members, from_first, offset, shift, final, column))
        return self.values[-1].name

    def aggregate(self, leaf: Aggregation) -> str:
        """The name of an aggregate's values."""
        column, argument = None, SqlText.of("1")
        if leaf.of_classifier:
            column, argument = CLASSIFIER, SqlText.of("'x'")
        elif leaf.function and leaf.function != "count_star":
            value, argument = self.rows.aggregated(leaf)
            column = self.rows.column(value)
        function = leaf.function
        if not function or not self.rows.is_for_kernel(leaf, argument):
            return self.of_spark(leaf)
        call = {"count_star": "count(", "count_distinct": "count(DISTINCT "}.get(function, f"{function}(")
        name = self.new_leaf()
        self.aggregates.append(AggregateLeaf(name, leaf, column, SqlText.of(call, argument, ")")))
        if leaf.nth is not None:
            return f"get({name}, {leaf.nth - 1})"
        return f"{name}.value" if leaf.keeps_nulls and leaf.filter is not None else name

    def of_spark(self, leaf: Aggregation) -> str:
        """The name of the values of an aggregate that Spark evaluates, over lists that the kernel returns."""
        name = self.new_leaf()
        number = self.number() if match_numbers(self.tokens, leaf.range) else None
        self.aggregates.append(self.rows.of_spark(leaf, name, number))
        return name

    def new_leaf(self) -> str:
        """A name for values that the kernel returns."""
        self.leaves += 1
        return f"__m{self.leaves - 1}"

    def scope(self) -> list[tuple[str, str]]:
        """The fields that measures read without a variable, with the values of the last row."""
        found: dict[str, str] = {}
        for item in self.items:
            atoms = {leaf.range[0]: Name(("",), leaf.range) for leaf in item.leaves}
            for name in names_in(self.match.expression(item.range, atoms)):
                field = find_field(self.rows.visible, name.parts[0])
                if field is not None and field not in found:
                    column = self.rows.columns.field(field)
                    found[field] = self.navigation(None, False, 0, 0, False, column)
        return list(found.items())

    def outside(self, before: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        """The outer values, which are keys, so they are available without any row of the match."""
        names = [name for name, _ in before]
        return [(field, f"__f{names.index(field)}") for field in self.match.hidden]

    # -- the columns of the result -----------------------------------------------------------------

    def output_columns(self) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
        """The columns of the result before and after the measures, with the columns that contain them."""
        fields, visible = self.analyzer.fields, self.rows.visible
        if self.match.clause.frame is not None:
            return tuple(self.passed_on(list(fields))), ()
        keys: list[str] = []
        named: list[tuple[str, str]] = []
        for key, name in zip(self.match.partition_by, self.match.clause.key_names, strict=True):
            if name is not None:
                named.append((name, plain_field(key, fields) or self.rows.argument(key.text)))
                continue
            field = (
                find_field(visible, key.expression.parts[-1]) if isinstance(key.expression, Name) else None
            )
            if field is not None and field not in keys:
                keys.append(field)
                named.append((field, field))
        rest: list[str] = []
        if self.match.clause.all_rows:
            for key, _ in self.match.order_by:
                name = key.expression.parts[-1] if isinstance(key.expression, Name) else ""
                field = find_field(visible, name)
                if field is not None and field not in keys:
                    keys.append(field)
                    named.append((field, field))
            rest = [field for field in visible if field not in keys]
        mentioned = self.match.mentioned
        of_row = [(item.name, self.rows.column(self.rows.value(item.range, None))) for item in self.of_row]
        before = tuple(
            (name, self.rows.column(field))
            for name, field in named
            if mentioned is None or name.lower() in mentioned
        )
        return before, (*self.passed_on(rest), *of_row)

    def passed_on(self, names: list[str]) -> list[tuple[str, str]]:
        """The fields that the query may read, with their columns."""
        mentioned = self.match.mentioned
        return [
            (name, self.rows.columns.field(name))
            for name in names
            if mentioned is None or (visible_field(name) or name).lower() in mentioned
        ]

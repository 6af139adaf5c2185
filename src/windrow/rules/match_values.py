"""Expressions of one row, in conditions, aggregates and navigations, as columns that Spark computes."""

from __future__ import annotations

from windrow.algebra.aggregate_calls import own_call
from windrow.algebra.match_node import Match
from windrow.algebra.names import ROW, visible_field
from windrow.algebra.navigations import Aggregation, classifiers, match_numbers, references
from windrow.algebra.physical import DraftColumns, find_field
from windrow.algebra.window_node import CallOfSpark
from windrow.errors import AnalysisError
from windrow.rules.match_draft import ARGUMENT, ELEMENT, AggregateLeaf, MatchAnalyzer
from windrow.syntax.expression_nodes import Name, names_in
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.subqueries import subqueries

__all__ = ["RowValues", "literal"]

_CHOSEN = "__b"
_AS_MONTHS = ("CAST(CAST((", ") AS INTERVAL MONTH) AS INT)")
_MONTHS = ("interval year", "interval month", "interval year to month")


def literal(name: str) -> str:
    """A variable's name as a literal of SQL."""
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


class RowValues:
    """The columns of one clause; the same expression twice is one column."""

    def __init__(self, match: Match, analyzer: MatchAnalyzer) -> None:
        self.match, self.analyzer = match, analyzer
        self.tokens = match.tokens
        self.columns = DraftColumns()
        self.arguments: list[SqlText] = []
        self.by_label: dict[str, tuple[str, ...]] = {}
        self.visible = {
            name: kind for name, kind in analyzer.fields.items() if visible_field(name) is not None
        }
        """The columns of the rows, without those with outer values."""

    def value(self, argument: Range, variable: str | None) -> str:
        """The field or the argument that has an expression of one row."""
        self.refuse_mixed(argument, variable)
        parsed = self.match.expression(argument)
        if isinstance(parsed, Name):
            path = parsed.parts[1:] if variable is not None else parsed.parts
            field = find_field(self.analyzer.fields, path[0]) if len(path) == 1 else None
            if field is not None:
                return field
            is_time = len(path) == 1 and variable is not None and path[0].upper() == "ELEMENT_TIME"
            if is_time and self.match.is_ordered:
                return self.argument(self.match.order_by[0][0].text)
        return self.argument(self.of_row(argument))

    def of_row(self, part: Range, label: str | None = None, *, numbers: bool = False) -> SqlText:
        """The user's text with the row in place of variables, and `label` in place of CLASSIFIER().

        With `numbers` a number stands in place of MATCH_NUMBER().
        """
        known = frozenset(self.match.members)
        replaced = {(at, at + 1): ROW for _, at in references(self.tokens, part, known)}
        replaced |= dict.fromkeys(classifiers(self.tokens, part), literal(label or self.match.labels[0]))
        if numbers:
            replaced |= dict.fromkeys(match_numbers(self.tokens, part), "CAST(1 AS BIGINT)")
        return self.match.replace(part, replaced)

    def chosen(self, texts: list[SqlText]) -> str:
        """A column that differs for each variable."""
        columns = tuple(self.column(self.argument(text)) for text in texts)
        name = f"{_CHOSEN}{len(self.by_label)}"
        self.by_label[name] = columns
        return name

    def aggregated(self, leaf: Aggregation) -> tuple[str, SqlText]:
        """The field or argument of an aggregate, and its text.

        If a filter may leave out rows before one whose value is NULL, values are fields of structs.
        """
        argument = leaf.arguments[0] if leaf.of_classifier else leaf.argument
        parts = [part for part in (leaf.filter, argument) if part is not None]
        for part in parts:
            self.refuse_mixed(part, leaf.variable)

        def text(label: str) -> SqlText:
            value = SqlText.of("1") if argument is None else self.of_row(argument, label)
            if leaf.filter is None:
                return value
            if leaf.keeps_nulls:
                value = SqlText.of("named_struct('value', ", value, ")")
            return SqlText.of("CASE WHEN (", self.of_row(leaf.filter, label), ") THEN (", value, ") END")

        texts = [text(label) for label in self.match.labels]
        if any(classifiers(self.tokens, part) for part in parts):
            return self.chosen(texts), texts[0]
        if leaf.filter is None:
            assert argument is not None
            return self.value(argument, leaf.variable), texts[0]
        return self.argument(texts[0]), texts[0]

    def of_spark(self, leaf: Aggregation, name: str, number: str | None) -> AggregateLeaf:
        """An aggregate that Spark evaluates over lists of values of rows, which the kernel returns.

        It is over a list of this name; `number` stands for the match number.
        """
        column, value, fields = self.collected(leaf)
        element = f"{ELEMENT}.{name}"
        replaced = {part: ", ".join(one.format(element) for one in of) or "1" for part, of in fields.items()}
        replaced |= dict.fromkeys(match_numbers(self.tokens, leaf.range), number or "")
        counts = f"{element} IS NOT NULL"  # lists of other lengths stand beside
        listed = SqlText.of("collect_list(", value, ")")
        if leaf.is_own:
            own = own_call(self.tokens, leaf.call[0], lambda part: self.match.replace(part, replaced), counts)
            return AggregateLeaf(name, leaf, self.column(column), listed, own)
        if leaf.filter is not None:
            condition = self.match.replace(leaf.filter, replaced).render()
            start, stop = leaf.filter
            replaced = {at: word for at, word in replaced.items() if not start <= at[0] < stop}
            replaced[leaf.filter] = f"{counts} AND ({condition})"
        text = self.match.replace(leaf.call, replaced)
        if leaf.filter is None:
            text = SqlText.of(text, f" FILTER (WHERE {counts})")
        return AggregateLeaf(name, leaf, self.column(column), listed, CallOfSpark(text))

    def over_rows(self, leaf: Aggregation) -> SqlText:
        """An aggregate over the rows, for its type."""
        return self.of_row(leaf.call, numbers=True)

    def is_for_kernel(self, leaf: Aggregation, argument: SqlText) -> bool:
        """Whether the kernel supports values of this type, or Spark cannot do it because the order of rows
        counts.
        """
        is_supported = leaf.function in ("count_star", "first", "last", "any_value") or leaf.nth is not None
        return is_supported or self.analyzer.kernel_supports(leaf.function, argument, self.arguments)

    def collected(self, leaf: Aggregation) -> tuple[str, SqlText, dict[Range, tuple[str, ...]]]:
        """The values that Spark aggregates, in a struct for each row: its column, its text, and its parts.

        Parts that read no row stay in the text of the call, where some must be constants; so does the text
        around columns and names beside MATCH_NUMBER(), which is unknown for rows. A star is all fields.
        Year-month intervals, which structs do not support, are encoded as numbers.
        """
        parts: list[Range] = []
        fields: dict[Range, tuple[str, ...]] = {}
        for part in (*leaf.arguments, *([] if leaf.filter is None else [leaf.filter])):
            self.refuse_mixed(part, leaf.variable)
            if self.tokens.is_symbol(part[1] - 1, "*"):
                distinct = self.tokens.word(leaf.call[0] + 2) == "DISTINCT"
                fields[part] = tuple(f"{{}}.f{number}" for number in range(len(self.visible) * distinct))
            elif match_numbers(self.tokens, part):
                parts += self.read_in(part)
            elif part == leaf.filter or self.reads_row(part):
                parts.append(part)
        stars = sum(fields.values(), ())
        texts = [self.of_row(part) for part in parts]
        kinds = self.analyzer.types_of(texts, self.arguments, []) if texts else []
        around = [_AS_MONTHS if kind in _MONTHS else ("", "") for kind in kinds]
        for number, (part, kind) in enumerate(zip(parts, kinds, strict=True)):
            field = f"{{}}.p{number}"
            if kind in _MONTHS:
                field = f"CAST(make_ym_interval(0, {field}) AS {kind.upper()})"
            fields[part] = (field,)

        def text(label: str) -> SqlText:
            values = [
                SqlText.of(f"'p{number}', ", before, self.of_row(part, label), after)
                for number, (part, (before, after)) in enumerate(zip(parts, around, strict=True))
            ]
            named = zip(range(len(stars)), self.visible, strict=False)
            values += [SqlText.of(f"'f{number}', {ROW}.{quoted(name)}") for number, name in named]
            return SqlText.of("named_struct(", SqlText.join(", ", values or [SqlText.of("'p', 1")]), ")")

        texts = [text(label) for label in self.match.labels]
        by_label = any(classifiers(self.tokens, part) for part in parts)
        return self.chosen(texts) if by_label else self.argument(texts[0]), texts[0], fields

    def names_match(self, part: Range) -> bool:
        """Whether an expression over one row contains CLASSIFIER() or MATCH_NUMBER()."""
        return bool(classifiers(self.tokens, part) or match_numbers(self.tokens, part))

    def read_in(self, part: Range) -> list[Range]:
        """The columns, and the calls of CLASSIFIER, in an expression over one row.

        In a subquery these are the ones qualified by a variable; it has its own columns.
        """
        names = classifiers(self.tokens, part)
        calls = [*names, *match_numbers(self.tokens, part)]
        queries = list(subqueries(self.tokens, part))
        atoms = {start: Name(("",), (start, stop)) for start, stop in calls}
        known = {at for _, at in references(self.tokens, part, frozenset(self.match.members))}
        names += [self.path(at) for at in known if any(start < at < stop for start, stop in queries)]
        alone = {start for start, _ in queries}
        for name in names_in(self.match.expression(part, atoms, alone=alone)):
            start = name.range[0]
            is_field = start not in atoms and find_field(self.analyzer.fields, name.parts[0]) is not None
            if start in known or is_field:
                names.append(name.range)
        return sorted(names)

    def path(self, at: int) -> Range:
        """A name with the fields after it."""
        stop = at + 1
        while self.tokens.is_symbol(stop, ".") and self.tokens[stop + 1].is_name:
            stop += 2
        return at, stop

    def reads_row(self, part: Range) -> bool:
        """Whether a part mentions a column, also of the outer query, or CLASSIFIER()."""
        known = frozenset(self.match.members)
        names = (self.tokens[at] for at in range(*part) if self.tokens[at].is_name)
        return (
            any(references(self.tokens, part, known))
            or bool(classifiers(self.tokens, part))
            or self.match.reads_outside(part)
            or any(find_field(self.analyzer.fields, token.name) is not None for token in names)
        )

    def argument(self, text: SqlText) -> str:
        """The name of the column with an expression over the rows."""
        rendered = text.render()
        for number, known in enumerate(self.arguments):
            if known.render() == rendered:
                return f"{ARGUMENT}{number}"
        self.arguments.append(text)
        return f"{ARGUMENT}{len(self.arguments) - 1}"

    def refuse_mixed(self, argument: Range, variable: str | None) -> None:
        """Refuse unqualified columns beside those of a variable: they are of all rows."""
        if variable is None:
            return
        alone = {query[0] for query in subqueries(self.tokens, argument)}
        for name in names_in(self.match.expression(argument, alone=alone)):
            start = name.range[0]
            bare = len(name.parts) == 1 and self.tokens[start].is_name and start + 1 == name.range[1]
            if bare and find_field(self.visible, name.parts[0]) is not None:
                raise AnalysisError(
                    f"column {name.parts[0]} has no variable, but other columns of the expression are of"
                    f" {variable}",
                    condition="MIXED_VARIABLES",
                    sqlstate="42601",
                    sql=self.match.sql,
                    span=self.tokens.span(*name.range),
                    hint=f"write {variable}.{name.parts[0]}",
                )

    def column(self, name: str) -> str:
        """The hoisted column of a field or an argument."""
        if name in self.by_label:
            return name
        if self.is_argument(name):
            return self.columns.add(SqlText.of(name), ROW)
        return self.columns.field(name)

    def is_argument(self, name: str) -> bool:
        """Whether it is a generated argument name, and not a field."""
        return name.startswith(ARGUMENT) and name not in self.analyzer.fields

"""Types conditions of DEFINE: which parts are columns, which read registers, and which only Spark can
evaluate.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass

from windrow.algebra.names import ROW
from windrow.algebra.physical import DraftColumns, find_field
from windrow.algebra.window_node import WindowFragment
from windrow.kernels import window_plan
from windrow.kernels.patterns.pattern_plan import LABELS
from windrow.rules.hoister import KERNEL_TYPES, Guards, NotTypedError, Ranks, RowVariable
from windrow.rules.pair_conditions import PairConditions
from windrow.rules.types import is_decimal
from windrow.syntax import expression_nodes as expressions
from windrow.syntax.expression_nodes import Name, names_in, parts_of
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText

__all__ = ["OF_NAMES", "ConditionSource", "MatchConditions"]

OF_NAMES = "__n"
"""Prefix of the columns that have a constant for each of the variables."""


@dataclass(frozen=True, slots=True)
class ConditionSource:
    """A row that conditions read, under a name: a struct of fields and arguments, or of the variable's name.

    With `value`, an expression over the rows, it is a struct of a value of that type: an aggregate, a number.
    """

    variable: RowVariable
    is_classifier: bool = False
    value: SqlText | None = None

    @property
    def is_made(self) -> bool:
        """Whether it is not a row of the input."""
        return self.is_classifier or self.value is not None


Ask = Callable[[SqlText, tuple[tuple[RowVariable, str], ...]], window_plan.PairExpression]


class MatchConditions(PairConditions):
    """Types a condition; unqualified names refer to the current row.

    Parameters
    ----------
    sources
        The rows, aggregates and numbers that the condition may read.
    when, types_of, fields, columns, ranks, ansi
        As :class:`windrow.rules.hoister.Hoister` takes them.
    made
        Of sources that are no rows: the kernel's column, and whether it is 0 where there is none.
    of_spark
        Those among them that are aggregates which only Spark reads.
    with_neighbours
        The text of a part in which neighbours stand as Spark's lag returns them; None where there are none.
    with_names
        The texts of a part in which each of the variables' names stands for a source, and then NULL.
    written
        A part as it stands in the query.
    queries
        Where subqueries stand.
    ask
        Returns a condition that Spark evaluates over these fields of variables; None where it evaluates none.
    """

    def __init__(
        self,
        sources: Sequence[ConditionSource],
        when: WindowFragment,
        types_of: Callable[[list[SqlText]], list[str]],
        fields: Mapping[str, str],
        columns: DraftColumns,
        ranks: Ranks,
        *,
        ansi: bool,
        made: Mapping[str, tuple[str, bool]],
        of_spark: Container[str] = (),
        with_neighbours: Callable[[Range], SqlText] | None,
        with_names: Callable[[Range, str], list[SqlText]] | None,
        written: Callable[[Range], str] | None = None,
        queries: Sequence[Range] = (),
        ask: Ask | None = None,
    ) -> None:
        scope = {source.variable.name: source.variable for source in sources}
        super().__init__(scope, when, types_of, fields, columns, ranks, ansi=ansi)
        self.aggregates_of_spark = of_spark
        self.made_columns, self.with_neighbours, self.with_names = made, with_neighbours, with_names
        self.written, self.queries, self.ask = written, queries, ask
        self.of_names: dict[str, tuple[str, ...]] = {}
        """Columns that have a constant for each variable."""
        self.made = {source.variable.name for source in sources if source.is_made}
        self.classifiers = {source.variable.name for source in sources if source.is_classifier}
        self.row = RowVariable(ROW, "row", is_there=True)
        self.neighbours: set[int] = set()
        """The distances of the rows that Spark reads beside each row."""

    def otherwise(
        self, expression: expressions.Expression, guards: Guards, reason: str
    ) -> window_plan.PairExpression:
        """As usual; Spark evaluates what the kernel cannot, over the row and its neighbours.

        If nothing but the variable's name is read, Spark evaluates it for each name.
        """
        read = self.reads(expression)
        kind = self.types[expression.range]
        if len(read) == 1 and {one.name for one in read} <= self.classifiers and kind in KERNEL_TYPES:
            (variable,) = read
            return self.of_name(expression, variable)
        if self.is_for_kernel(expression):
            with self.attempt() as found:
                return super().otherwise(expression, guards, reason)
            reason = found.reason
        if not self.is_beside(expression) or kind not in KERNEL_TYPES:
            return self.of_spark(expression, reason)
        assert self.with_neighbours is not None
        self.neighbours |= {variable.shift for variable in read} - {0}
        column = self.columns.add(self.with_neighbours(expression.range), ROW)
        return window_plan.ColumnRef(column, "row")

    def of_spark(self, expression: expressions.Expression, reason: str) -> window_plan.PairExpression:
        """A condition that only Spark can evaluate over rows of a match, before the machine runs."""
        if self.ask is None or self.types[expression.range] != "boolean":
            raise NotTypedError(reason)
        read = []
        for name in names_in(expression):
            variable = self.variable(name)
            if variable is not None:
                at = 1 if name.parts[0] in self.scope else 0
                field = name.parts[at] if at else find_field(self.fields, name.parts[at])
                assert field is not None
                read.append((variable, field))
        return self.ask(self.text(expression), tuple(dict.fromkeys(read)))

    def is_beside(self, *parts: expressions.Expression) -> bool:
        """Whether the parts read only the row and its neighbours, which Spark can read too."""
        sides = {variable.side for part in parts for variable in self.reads(part)}
        return sides <= {"row"} and self.with_neighbours is not None

    def reads_objects(self, expression: expressions.Expression) -> bool:
        """Whether texts or decimals of several rows are read, which are slower in the kernel than in
        Spark.
        """
        kinds = {self.types[part.range] for part in parts_of(expression)}
        return any(kind == "string" or is_decimal(kind) for kind in kinds)

    def is_for_kernel(self, *parts: expressions.Expression) -> bool:
        """Whether Spark cannot evaluate it, or the kernel is no slower."""
        return not self.is_beside(*parts) or not any(map(self.reads_objects, parts))

    def displayed(self, expression: expressions.Expression) -> str:
        """As the user wrote it."""
        return super().displayed(expression) if self.written is None else self.written(expression.range)

    def is_made(self, expression: expressions.Expression) -> bool:
        """Whether the part is an aggregate, a number or a variable's name."""
        return isinstance(expression, Name) and expression.parts[0] in self.made

    def of_name(
        self, expression: expressions.Expression, variable: RowVariable
    ) -> window_plan.PairExpression:
        """A function of a variable's name, as a column of its values for all names."""
        assert self.with_names is not None
        *texts, missing = map(self.columns.constant, self.with_names(expression.range, variable.name))
        name = f"{OF_NAMES}{'_'.join(texts)}"
        self.of_names[name] = tuple(texts)
        return window_plan.ColumnRef(name, variable.side, 0, missing)

    def variable(self, name: Name) -> RowVariable | None:
        """The source that a path begins with; for unqualified columns, the row."""
        found = self.scope.get(name.parts[0])
        if found is not None:
            return self.row if found.side == "row" and found.shift == 0 else found
        return self.row if find_field(self.fields, name.parts[0]) is not None else None

    def field(self, expression: expressions.Expression) -> str | None:
        """The name of the field, if the part is a field of a source or of the row."""
        if not isinstance(expression, Name):
            return None
        if expression.parts[0] in self.scope:
            return expression.parts[1] if len(expression.parts) == 2 else None
        return expression.parts[0] if len(expression.parts) == 1 and self.variable(expression) else None

    def single_row(self, expression: expressions.Expression) -> RowVariable | None:
        """As usual; a variable's name is not a column of Spark's, so expressions over it are split."""
        found = super().single_row(expression)
        made = found is not None and found.name in self.made and not isinstance(expression, Name)
        return None if made else found

    def constant(
        self, expression: expressions.Expression, cast: str | None = None, rank: int | None = None
    ) -> window_plan.PairExpression:
        """As usual; Spark adds the result of a subquery to each row when the rows are read."""
        start, stop = expression.range
        if not any(start <= first and last <= stop for first, last in self.queries):
            return super().constant(expression, cast, rank)
        kind = self.types[expression.range]
        if rank is None and cast is None and not self.has_values(kind):
            raise NotTypedError(f"a subquery of type {kind}")
        text = self.text(expression)
        if cast is not None:
            text = SqlText.of("CAST((", text, f") AS {cast})")
        return window_plan.ColumnRef(self.columns.add(text, ROW), "row", 0, None, rank)

    def hoisted(
        self,
        expression: expressions.Expression,
        guards: Guards,
        cast: str | None = None,
        rank: int | None = None,
    ) -> window_plan.PairExpression:
        """As usual; values that are not of an input row are not columns of Spark's."""
        variable = self.single_row(expression)
        assert variable is not None
        if variable.name not in self.made:
            return super().hoisted(expression, guards, cast, rank)
        if variable.name in self.classifiers:
            if not isinstance(expression, Name) or cast is not None:
                raise NotTypedError("a function of CLASSIFIER()")
            return window_plan.ColumnRef(LABELS, variable.side, 0, None, rank)
        kind = self.types[expression.range]
        if (
            not isinstance(expression, Name)
            or cast is not None
            or rank is not None
            or not self.has_values(kind)
            or variable.name in self.aggregates_of_spark
        ):
            raise NotTypedError(f"an aggregate of type {kind}")
        column, counts = self.made_columns[variable.name]
        missing = self.columns.constant(SqlText.of("CAST(0 AS BIGINT)")) if counts else None
        return window_plan.ColumnRef(column, variable.side, 0, missing)

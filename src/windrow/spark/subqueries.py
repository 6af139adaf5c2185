"""Subqueries over what varies: each becomes a column of the scope, which stands in the text in its place.

EXISTS and IN are TRUE for the rows that have a partner in the subquery, at the times at which they have one;
a subquery that gives one value is a join with the relation of one row that it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.errors import WindrowError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS, Part
from windrow.plan.reader import NotPlannedError
from windrow.spark.joins import Joins, Matching
from windrow.spark.scope import Rows, Scope
from windrow.syntax.expressions import Opaque, Operation, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, Shape, parse_query
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import SqlText

__all__ = ["Subqueries"]

_BEFORE_OPERAND = ("AND", "OR", "NOT", "WHEN", "THEN", "ELSE", "CASE")
_BOOLEAN = ("AND", "OR", "NOT", "=", "<>", "<", "<=", ">", ">=", "<=>", "IS NULL", "IN", "BETWEEN")


class Subqueries(Joins, ABC):
    """Blocks whose expressions have subqueries over what varies."""

    _outside: frozenset[int]  # the brackets directly around what the query gives

    @abstractmethod
    def _shape(self, shape: Shape) -> Rows:
        """The rows of a query."""

    @abstractmethod
    def _from(self, select: Select) -> Scope:
        """The scope of FROM."""

    @abstractmethod
    def _is_grouped(self, select: Select) -> bool:
        """Whether a block has groups."""

    def _with_subqueries(self, select: Select, scope: Scope, stretches: Sequence[Range]) -> Scope:
        """The scope with a column for each subquery over what varies in these stretches."""
        for start, stop in stretches:
            at = start
            while at < stop:
                is_query = self.tokens.is_symbol(at, "(") and self.tokens.word(at + 1) == "SELECT"
                close = self.tokens.partner[at] if is_query else at
                if is_query and self.varies((at, close + 1)):
                    shown = (
                        without_alias(self.tokens, (start, stop)) if (start, stop) in select.items else None
                    )
                    scope = self._with_subquery(select, scope, shown or (start, stop), (at, close + 1))
                at = close + 1
        return scope

    def _with_subquery(self, select: Select, scope: Scope, stretch: Range, bracket: Range) -> Scope:
        (start, _), (first, last) = stretch, bracket
        scope = self._varying_scope(scope)
        shape = parse_query(self.tokens, first, last)
        name = f"__asked{first}"
        word = self.tokens.word(first - 1)
        before = ""
        if word == "EXISTS":
            scope = self._exists(select, scope, shape, name)
            first -= 1
        elif word == "IN":
            is_not = self.tokens.word(first - 2) == "NOT"
            operand = self._operand(start, first - 1 - is_not)
            if not self._decides(stretch, (operand[0], last)):
                raise NotPlannedError("a value that is computed of IN a subquery")
            if stretch != select.where and not self._is_outermost(select):
                raise NotPlannedError("IN a subquery as a column that is read")
            negated = is_not != self._is_negated(start, operand[0])
            scope = self._in(select, scope, shape, operand, name, negated=negated)
            first, before = operand[0], "NOT " if is_not else ""
        elif word in ("ANY", "ALL", "SOME"):
            raise NotPlannedError(f"{word} of a subquery")
        else:
            scope = self._value(select, scope, shape, name)
        self.instead[first, last] = f"{before}{ROWS}.{name}"
        return scope

    def _exists(self, select: Select, scope: Scope, shape: Shape, name: str) -> Scope:
        inner, matching = self._asked(scope, shape)
        if not matching.conditions:  # all that counts is whether there is a row
            one = inner.frame.select(F.lit(1).alias(name), ENTER, LEAVE)
            inner = Scope(self._counted("distinct", [one]), (Part(name, (name,), (name,)),), varies=True)
        pairs = self._matching(select, scope, inner, matching)
        return replace(scope, frame=self._marked(scope, pairs, name), net_by=None)

    def _in(
        self, select: Select, scope: Scope, shape: Shape, operand: Range, name: str, *, negated: bool
    ) -> Scope:
        """Whether a value is in the subquery; where it is `negated`, what may be in it counts as being in it.

        So neither is ever NULL, as in Spark, and conditions decide as with SQL's three values.
        """
        value, asked = f"{name}value", f"{name}operand"
        inner, matching = self._asked(scope, shape, value)
        beside = self._with_column(select, scope, self.text(operand), asked)
        pairs = self._matching(select, beside, inner, replace(matching, equal=((asked, value),)))
        if negated:
            sides = [
                (F.col(asked).isNull(), F.lit(True)),
                (F.col(asked).isNotNull(), F.col(value).isNull()),
            ]
            for of_row, of_value in sides:
                left = replace(beside, frame=beside.frame.where(of_row))
                right = replace(inner, frame=inner.frame.where(of_value))
                pairs = pairs.unionByName(self._matching(select, left, right, matching))
        return replace(scope, frame=self._marked(beside, pairs, name).drop(asked), net_by=None)

    def _marked(self, scope: Scope, pairs: DataFrame, name: str) -> DataFrame:
        """The rows with a column that says while they are in one of the pairs."""
        is_there = self._with_partner("semi", scope, pairs).withColumn(name, F.lit(True))
        is_not = self._with_partner("anti", scope, pairs).withColumn(name, F.lit(False))
        return is_there.unionByName(is_not)

    def _value(self, select: Select, scope: Scope, shape: Shape, name: str) -> Scope:
        """The one value that an aggregate over what varies has at any time."""
        if not isinstance(shape, Select) or shape.group_by is not None or not self._is_grouped(shape):
            raise NotPlannedError("a subquery that may give several rows for one value")
        rows = self._alone(shape)
        if rows is None:
            raise NotPlannedError("a subquery for one value that reads the query around it")
        inner = _as_scope(rows, name, name)
        if shape.having is None:  # there always is a row
            whole = self._matched(select, scope, inner, Matching())
        else:
            whole = self._outer(select, scope, inner, "left", Matching())
        return replace(scope, frame=whole.frame, net_by=None)

    def _asked(self, scope: Scope, shape: Shape, value: str | None = None) -> tuple[Scope, Matching]:
        """The rows of a subquery, their first column as `value`, and which of them a row meets."""
        rows = self._alone(shape)
        if rows is not None:
            return _as_scope(rows, value or "__alone", value), Matching()
        if not isinstance(shape, Select) or shape.group_by is not None or self._is_grouped(shape):
            raise NotPlannedError("a subquery with groups that reads the query around it")
        inner = self._varying_scope(self._from(shape))
        aliases = {part.alias.lower() for part in scope.parts} & {part.alias.lower() for part in inner.parts}
        if aliases or inner.merged or scope.merged:
            raise NotPlannedError("a subquery that reads the query around it and names its relations alike")
        if value is not None:
            try:
                inner = self._with_column(shape, inner, self.text(shape.items[0]), value)
            except WindrowError:
                raise NotPlannedError("a value of a subquery that reads the query around it") from None
        return inner, Matching(() if shape.where is None else (shape.where,))

    def _alone(self, shape: Shape) -> Rows | None:
        """The rows of a subquery; None if it reads what is around it."""
        try:
            return self._varying(self._shape(shape))
        except WindrowError as error:
            if not error.condition.startswith("UNRESOLVED_COLUMN"):
                raise
            return None

    def _matching(self, select: Select, left: Scope, right: Scope, matching: Matching) -> DataFrame:
        try:
            return self._matched(select, left, right, matching).frame
        except WindrowError as error:
            if error.condition != "AMBIGUOUS_REFERENCE":
                raise
            raise NotPlannedError("a name in a subquery that the query around it has too") from None

    def _with_column(self, select: Select, scope: Scope, text: SqlText, name: str) -> Scope:
        query = SqlText.of(f"SELECT {ROWS}.*, (", text, f") AS {name} FROM ", self._scoped(scope))
        return replace(scope, frame=self._sql(query, scope.frame, select), net_by=None)

    def _decides(self, stretch: Range, condition: Range) -> bool:
        """Whether a condition is shown, or decides with no more than AND, OR, NOT and brackets around it.

        Of what is computed with it otherwise, Spark says now that unknown is false, and now that it is not.
        """
        tokens, (first, stop) = self.tokens, condition
        bracket = tokens.parent[first]
        inner = bracket >= stretch[0]
        begin, end = (bracket + 1, tokens.partner[bracket]) if inner else stretch
        if any(tokens.word(at) in ("CASE", "THEN", "ELSE") for at in tokens.level(begin, first)):
            of_case = tokens.word(begin) == "CASE" and (begin + 1, begin + 2) == (first - 1, first)
            return not inner and of_case and tokens.word(stop) == "THEN"
        begins = first == begin or tokens.word(first - 1) in ("AND", "OR", "NOT")
        ends = stop == end or tokens.word(stop) in ("AND", "OR")
        return begins and ends and (not inner or self._decides(stretch, (bracket, end + 1)))

    def _is_outermost(self, select: Select) -> bool:
        """Whether what the block gives is what the whole query gives."""
        return self.tokens.parent[select.items[0][0]] in self._outside

    def _is_negated(self, start: int, at: int) -> bool:
        """Whether what begins at a token counts the other way round in the condition that it is in."""
        negated = self.tokens.word(at - 1) == "NOT" and at > start
        bracket = self.tokens.parent[at]
        while bracket >= start:
            if self.tokens.word(bracket - 1) == "NOT":
                negated = not negated
            bracket = self.tokens.parent[bracket]
        return negated

    def _operand(self, start: int, stop: int) -> Range:
        """What stands before IN."""
        tokens = self.tokens
        parent = tokens.parent[stop]
        first = max(start, parent + 1)
        for at in range(first, stop):
            begins = tokens.word(at) in _BEFORE_OPERAND or tokens.is_symbol(at, ",")
            if begins and tokens.parent[at] == parent and not tokens.is_symbol(at - 1, "."):
                first = at + 1
        found = parse_expression(tokens, first, stop)
        is_value = isinstance(found, Operation) and found.operator not in _BOOLEAN
        if first >= stop or not (is_value or not isinstance(found, Operation | Opaque)):
            raise NotPlannedError("what stands before IN")
        return first, stop


def _as_scope(rows: Rows, alias: str, value: str | None) -> Scope:
    """Rows as a scope of one relation; its first column is the `value`."""
    columns = tuple(
        value if value is not None and at == 0 else f"{alias}_{at}" for at in range(len(rows.names))
    )
    part = Part(f"{alias}rows", columns, columns)
    return Scope(rows.frame.toDF(*columns, ENTER, LEAVE), (part,), varies=True)

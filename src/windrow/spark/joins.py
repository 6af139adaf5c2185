"""Joins of relations that vary, with each other and with tables.

The pairs of rows that are there at one time are a kernel's. The rows of one side that have a partner, or
none, are told by counting: at any instant a row is there as often as it is on its side, if there is a pair
with such a row, or if there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, IntegralType, MapType, StructType, VariantType

from windrow.errors import WindrowError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS
from windrow.plan.reader import NotPlannedError
from windrow.spark.bags import Bags
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.scope import Scope
from windrow.syntax.expressions import Expression, Name, Operation, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, Select, conjuncts, is_query
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Relation, SqlText, quoted

__all__ = ["Joins", "Matching"]

_SPARK_JOINS = {"inner": "JOIN", "left": "LEFT JOIN", "semi": "LEFT SEMI JOIN", "anti": "LEFT ANTI JOIN"}


@dataclass(frozen=True)
class Matching:
    """Which pairs of rows a join is about.

    Attributes
    ----------
    conditions
        Of the user's, that pairs satisfy.
    equal
        Columns of the left and of the right scope that are equal in pairs.
    hints
        Further conditions, which decide on the pairs later: equalities in them may serve to find pairs.
    """

    conditions: tuple[Range, ...] = ()
    equal: tuple[tuple[str, str], ...] = ()
    hints: tuple[Range, ...] = ()


class Joins(Bags):
    """FROM with several relations."""

    def _join(self, select: Select, left: Scope, right: Scope, item: FromItem) -> Scope:
        """The scope with one relation more."""
        shared = self._shared(left, right, item)
        equal = tuple((one, other) for _, one, other in shared)
        on = (item.on,) if item.on is not None else ()
        if item.join != "inner" and left.varies and not right.varies and item.join in _SPARK_JOINS:
            scope = self._beside_table(select, left, right, item, equal)
        elif item.join == "inner":
            hints = (select.where,) if select.where is not None else ()
            scope = self._matched(select, left, right, Matching(on, equal, hints))
        else:
            sides = self._varying_scope(left), self._varying_scope(right)
            scope = self._outer(select, *sides, item.join, Matching(on, equal))
        return self._merged(scope, left, shared, item.join)

    def _outer(self, select: Select, left: Scope, right: Scope, join: str, matching: Matching) -> Scope:
        pairs = self._matched(select, left, right, matching)
        if join in ("semi", "anti"):
            return replace(left, frame=self._with_partner(join, left, pairs.frame), net_by=None)
        whole = pairs.frame
        for side, other, joins in ((left, right, ("left", "full")), (right, left, ("right", "full"))):
            if join in joins:
                alone = self._with_partner("anti", side, pairs.frame)
                kinds = {field.name: field.dataType for field in other.frame.schema}
                none = {name: F.lit(None).cast(kinds[name]) for name in other.columns}
                whole = whole.unionByName(alone.withColumns(none))
        return replace(pairs, frame=whole)

    def _with_partner(self, operator: str, side: Scope, pairs: DataFrame) -> DataFrame:
        """The rows of a side that are in one of the pairs (semi), or in none (anti), while that is so."""
        return self._counted(operator, [side.frame, pairs.select(*side.columns, ENTER, LEAVE)])

    def _matched(self, select: Select, left: Scope, right: Scope, matching: Matching) -> Scope:
        """The pairs of rows that are there at one time and match."""
        if left.varies and right.varies:
            frame = self._pairs(select, left, right, matching)
        else:
            frame = left.frame.crossJoin(right.frame)
        scope = Scope(
            frame,
            (*left.parts, *right.parts),
            left.varies or right.varies,
            merged=(*left.merged, *right.merged),
            star=_both_stars(left, right),
        )
        conditions = [self.text(condition) for condition in matching.conditions]
        conditions += [SqlText.of(f"{ROWS}.{one} = {ROWS}.{other}") for one, other in matching.equal]
        if not conditions:
            return scope
        bracketed = [SqlText.of("(", condition, ")") for condition in conditions]
        query = SqlText.of(
            f"SELECT {ROWS}.* FROM ", self._scoped(scope), " WHERE ", SqlText.join(" AND ", bracketed)
        )
        return replace(scope, frame=self._sql(query, frame, select))

    def _pairs(self, select: Select, left: Scope, right: Scope, matching: Matching) -> DataFrame:
        """Pairs of rows that are there at one time, of those that an equality of both must hold for."""
        parts = [
            parse_expression(self.tokens, *part)
            for condition in (*matching.conditions, *matching.hints)
            for part in conjuncts(self.tokens, *condition)
        ]
        found = [
            keys
            for part in parts
            # what is computed may fail for rows that another condition leaves out
            if (len(parts) == 1 or _compares_columns(part))
            and (keys := self._equal(select, left, right, part)) is not None
        ]
        for one, other in matching.equal:
            texts = SqlText.of(f"{ROWS}.{one}"), SqlText.of(f"{ROWS}.{other}")
            keys = self._comparable(select, left, right, texts)
            found += [keys] if keys is not None else []
        names = [f"__k{number}" for number in range(len(found))]
        sides = []
        for side, scope in enumerate((left, right)):
            listed = [
                SqlText.of(", ", pair[side], f" AS {name}") for name, pair in zip(names, found, strict=True)
            ]
            query = SqlText.of(f"SELECT {ROWS}.*", *listed, " FROM ", self._scoped(scope))
            sides.append(self._sql(query, scope.frame, select) if listed else scope.frame)
        if not all(map(can_be_keyed, sides)):
            raise NotPlannedError("columns that a join cannot carry")
        fields = [
            field for side in sides for field in side.schema if field.name not in (*names, ENTER, LEAVE)
        ]
        return run_keyed(self.gateway, "join", sides, names, StructType(fields))

    def _equal(
        self, select: Select, left: Scope, right: Scope, part: Expression
    ) -> tuple[SqlText, SqlText] | None:
        """The sides of an equality of something of the left relations with something of the right one."""
        if not isinstance(part, Operation) or part.operator != "=":
            return None
        one, other = (operand.range for operand in part.operands)
        for first, second in ((one, other), (other, one)):
            try:
                keys = self._comparable(select, left, right, (self.text(first), self.text(second)))
            except (WindrowError, NotPlannedError):  # of the other side, or of both: no key
                continue
            if keys is not None:
                return keys
        return None

    def _comparable(
        self, select: Select, left: Scope, right: Scope, texts: tuple[SqlText, SqlText]
    ) -> tuple[SqlText, SqlText] | None:
        """Keys that are the same where the texts are equal; None if their types do not tell."""
        kinds = [self._kind(text, scope, select) for text, scope in zip(texts, (left, right), strict=True)]
        if all(isinstance(kind, IntegralType) for kind in kinds):
            one, other = (SqlText.of("CAST(", text, " AS BIGINT)") for text in texts)
            return one, other
        if kinds[0] == kinds[1] and not isinstance(kinds[0], ArrayType | MapType | StructType | VariantType):
            one, other = (SqlText.of("(", text, ")") for text in texts)
            return one, other
        return None

    def _beside_table(
        self, select: Select, left: Scope, right: Scope, item: FromItem, equal: Sequence[tuple[str, str]]
    ) -> Scope:
        """Outer, semi and anti joins with what does not vary: Spark's own, row by row of the left."""
        (part,) = right.parts
        shown = list(zip(part.columns, part.names, strict=True))
        columns = ", ".join(f"{column} AS {quoted(name)}" for column, name in shown)
        gives_left = item.join in ("semi", "anti")
        given = [f"{quoted(part.alias)}.{quoted(name)} AS {column}" for column, name in shown]
        listed = f"SELECT {', '.join([f'{ROWS}.*', *([] if gives_left else given)])} FROM "
        names = dict(shown)
        conditions = [
            SqlText.of(f"{ROWS}.{one} = {quoted(part.alias)}.{quoted(names[other])}") for one, other in equal
        ]
        if item.on is not None:
            conditions.append(self.text(item.on))
        on = SqlText.of(" ON ", SqlText.join(" AND ", conditions)) if conditions else SqlText()
        query = SqlText.of(
            listed, self._scoped(left), f" {_SPARK_JOINS[item.join]} ",
            f"(SELECT {columns} FROM ", Relation("__right"), f") AS {quoted(part.alias)}", on,
        )  # fmt: skip
        text = SqlText.of(self.prefix(select.items[0][0]), query)
        frame = self.gateway.sql(text, {ROWS: left.frame, "__right": right.frame})
        if gives_left:
            return Scope(frame, left.parts, varies=True, merged=left.merged, star=left.star)
        star = _both_stars(left, right)
        return Scope(frame, (*left.parts, part), varies=True, merged=left.merged, star=star)

    # -- USING ---------------------------------------------------------------------------------------

    def _shared(self, left: Scope, right: Scope, item: FromItem) -> list[tuple[str, str, str]]:
        """Of the columns of USING or NATURAL the name, and the columns of both sides."""
        (part,) = right.parts
        places = {name.lower(): column for name, column in zip(part.names, part.columns, strict=True)}
        if item.using is not None:
            return [(name, self._left_column(left, name), places[name.lower()]) for name in item.using]
        names = [name for name, _ in left.shown if name.lower() in places]
        return [(name, self._left_column(left, name), places[name.lower()]) for name in names]

    def _left_column(self, scope: Scope, name: str) -> str:
        merged = [column for known, column in scope.merged if known.lower() == name.lower()]
        found = merged or [
            column
            for part in scope.parts
            for known, column in zip(part.names, part.columns, strict=True)
            if known.lower() == name.lower()
        ]
        if len(found) != 1:
            raise NotPlannedError("USING of a column that several relations have")
        return found[0]

    def _merged(self, scope: Scope, left: Scope, shared: list[tuple[str, str, str]], join: str) -> Scope:
        """The scope with the columns of USING under their names alone."""
        if not shared:
            return scope
        if join in ("semi", "anti"):
            keys = [(name, one) for name, one, _ in shared]
            others = [pair for pair in left.shown if pair[1] not in {column for _, column in keys}]
            return replace(scope, star=(*keys, *others))
        frame, merged = scope.frame, []
        for name, one, other in shared:
            column = other if join == "right" else one
            if join == "full":
                column = f"__using{len(frame.columns)}"
                frame = frame.withColumn(column, F.coalesce(one, other))
            merged.append((name, column))
        names = {name.lower() for name, _ in merged}
        before = [pair for pair in left.merged if pair[0].lower() not in names]
        beside = {column for _, *both in shared for column in both}
        others = [pair for pair in scope.shown if pair[1] not in beside]
        return replace(scope, frame=frame, merged=(*merged, *before), star=(*merged, *others))

    def _name_merged(self, select: Select, scope: Scope) -> None:
        """Let the columns of USING stand in the block where their names alone do."""
        columns = {name.lower(): column for name, column in scope.merged}
        clauses = (select.where, select.group_by, select.having, select.window, select.qualify)
        stretches = [without_alias(self.tokens, item) for item in select.items]
        for start, stop in [*stretches, *(clause for clause in clauses if clause is not None)]:
            at = start
            while at < stop:
                name = self.tokens[at].name.lower() if self.tokens[at].is_name else ""
                if name in columns and self._is_bare(at):
                    if any(self.tokens.is_symbol(mark, "->") for mark in range(start, stop)):
                        raise NotPlannedError("a column of USING beside the variables of a function")
                    self.instead[at, at + 1] = f"{ROWS}.{columns[name]}"
                # a name inside of a query is one of its own relations
                inside = self.tokens.is_symbol(at, "(") and is_query(self.tokens, at)
                at = self.tokens.partner[at] if inside else at + 1

    def _is_bare(self, at: int) -> bool:
        """Whether the name stands alone: no path, no call, no field of a type."""
        tokens = self.tokens
        before = tokens.word(at - 1) == "AS" or any(tokens.is_symbol(at - 1, mark) for mark in (".", ":"))
        return not before and not any(tokens.is_symbol(at + 1, mark) for mark in (".", "(", ":"))


def _both_stars(left: Scope, right: Scope) -> tuple[tuple[str, str], ...] | None:
    """What * shows of a join without USING; None if that is what the relations are."""
    if left.star is None and right.star is None:
        return None
    return (*left.shown, *right.shown)


def _compares_columns(expression: Expression) -> bool:
    return isinstance(expression, Operation) and all(isinstance(part, Name) for part in expression.operands)

"""FROM and WHERE of queries over whole streams: joins, and subqueries as joins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql.types import (
    DataType,
    DateType,
    IntegralType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from windrow.algebra.continuous import StreamQuery, WindowedStream
from windrow.kernels.punctuated import Join
from windrow.spark.arrow import is_orderable
from windrow.spark.catalog import Definition
from windrow.spark.live.block_moved import BlockMoved
from windrow.spark.live.block_nodes import Joined, Rows, is_bare
from windrow.spark.live.row_maps import Going
from windrow.spark.scope import ROWS, Part, Unplanned, is_over
from windrow.syntax.expressions import Name, Operation, names_in, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import FromItem, Select, Shape, UnknownShapeError, conjuncts, parse_query
from windrow.syntax.sqltext import SqlText

__all__ = ["BlockJoins"]

_USING = "__using"
"""With this begin the names of relations of the columns of USING."""


class BlockJoins(BlockMoved, ABC):
    """The rows that FROM and WHERE of a block let through."""

    @abstractmethod
    def _rows_of(self, shape: Shape) -> Rows:
        """The rows of a query."""

    def _over(self, select: Select) -> Range | None:
        """Where a block looks at several rows by OVER."""
        for start, stop in select.items:
            for at in range(start, stop):
                if is_over(self.tokens, at):
                    return (at, at + 1)
        return select.window or select.qualify

    # -- FROM and WHERE ------------------------------------------------------------------------------

    def _from_where(self, select: Select) -> tuple[Joined, list[Range]]:
        """The rows of FROM, and the conditions that are still to be held against each."""
        where = [] if select.where is None else conjuncts(self.tokens, *select.where)
        asked = [part for part in where if self._is_asked(part)]
        where = [part for part in where if part not in asked]
        joined: Joined | None = None
        # of rows that an outer join makes WHERE is told after it
        is_padded = any(item.join in ("right", "full") for item in select.source)
        for item in select.source:
            one = self._part(item)
            if joined is None:
                joined = one
                continue
            joined, where = self._join(joined, one, item, where, is_padded=is_padded)
        assert joined is not None
        aliases = [part.alias.lower() for part in joined.parts]
        for number, alias in enumerate(aliases):
            if alias in aliases[:number]:
                raise Unplanned("relations of one name", select.source[number].source)
        if any(item.using != () for item in select.source):
            self._refuse_own_of_using(select, joined)
        for part in asked:
            joined = self._asked_of(joined, part)
        return joined, where

    def _part(self, item: FromItem) -> Joined:
        rows = self._relation(item)
        names = item.columns or rows.names
        if len(names) != len(rows.names):
            raise Unplanned("other names for the columns than there are columns", item.source)
        made = self._fresh(len(names))
        rows = self._project(rows, rows.columns, made, names, "columns")
        return Joined(rows, (Part(item.alias or f"__t{self._found.blocks}", tuple(names), tuple(made)),))

    def _relation(self, item: FromItem) -> Rows:
        known = self.reader.inputs.get(item.source)
        if known is not None:
            return self._stream(known, item.source)
        start, stop = item.source
        cte = self._cte(start) if stop - start == 1 and self.tokens[start].is_name else None
        if cte is not None and self._varies(cte.body):
            if cte.recursive:
                raise Unplanned("WITH RECURSIVE", (start, stop))
            if cte.body not in self._named_queries:
                self._named_queries[cte.body] = self._rows_of(parse_query(self.tokens, *cte.body))
            rows = self._named_queries[cte.body]
            at = cte.item[0] + 1
            if self.tokens.is_symbol(at, "("):
                listed = self.tokens.split(at + 1, self.tokens.partner[at])
                rows = replace(rows, names=tuple(self.tokens[first].name for first, _ in listed))
            return rows
        if self.tokens.is_symbol(start, "(") and self._varies(item.source):
            return self._rows_of(parse_query(self.tokens, start, stop))
        if self._varies(item.source):
            raise Unplanned("a function of a stream", item.source)
        return self._table(item.source)

    def _stream(self, item: object, source: Range) -> Rows:
        if not isinstance(item, WindowedStream) or not is_bare(item):
            raise Unplanned("a window of a stream beside one without", source)
        name = str(item.source).lower()
        stream = self.catalog.streams[name]
        if stream.live is None:
            definition = self.catalog.definitions.get(name)
            if definition is not None and isinstance(definition.query, StreamQuery):
                return self._view(str(item.source), definition, definition.query, source)
            raise self._refused(
                (item.span.start, item.span.stop),
                f"{item.source}, which is no live stream,",
                "run it over what was recorded",
                is_place=True,
            )
        kinds = StructType([stream.frame.schema[column] for column in stream.columns])
        self._refuse_types(kinds)
        own = {f"{name}.{column}": (name, column) for column in stream.columns}
        self._found.origins |= own
        made = StructType()
        for (key, _), one in zip(own.items(), kinds, strict=True):
            made = made.add(key, one.dataType)
        return Rows(name, stream.columns, made)

    def _view(self, name: str, definition: Definition, query: StreamQuery, source: Range) -> Rows:
        """The rows of a view of streams without windows, read from its own text."""
        reader, (start, stop) = definition.reader, query.query.tokens
        inside = type(self)(self.gateway, reader, self.catalog)
        inside._found = self._found  # its operators are of the same flow
        try:
            rows = inside._rows_of(parse_query(reader.tokens, reader.after_with(start, stop), stop))
        except (Unplanned, UnknownShapeError) as found:
            raise Unplanned(f"view {name}, with {found}", source) from None
        return replace(rows, names=definition.names)

    def _table(self, source: Range) -> Rows:
        """A table beside the streams: all of it is there when the query starts."""
        text = SqlText.of(self._prefix(source[0]), "SELECT * FROM ", self.reader.text(*source))
        key = f"__table{len(self._found.tables)}_{source[0]}"
        found = self.gateway.sql(text)
        self._refuse_types(found.schema)
        made = [f"{key}_{at}" for at in range(len(found.columns))]
        kinds = StructType()
        for name, one in zip(made, found.schema, strict=True):
            kinds = kinds.add(name, one.dataType)
        self._found.tables[key] = text
        return Rows(key, tuple(found.columns), kinds)

    def _join(
        self, left: Joined, right: Joined, item: FromItem, where: list[Range], *, is_padded: bool
    ) -> tuple[Joined, list[Range]]:
        """Both sides, and the conditions that are still to be held against each pair."""
        if item.using != ():
            return self._using(left, right, item), where
        given = [] if item.on is None else conjuncts(self.tokens, *item.on)
        if item.join == "inner" and not is_padded:
            given, where = [*given, *where], []
        keys: list[tuple[str, str]] = []
        rest: list[Range] = []
        for part in given:
            pair = self._equal(left, right, part)
            if pair is None:
                rest.append(part)
                continue
            left, right, key = pair
            keys.append(key)
        if not keys:
            raise Unplanned("a join without an equality", item.on or item.source)
        if item.join != "inner":
            left, right = self._filtered_sides(left, right, item, rest)
            rest = []
        joined = self._paired(left, right, keys, item.join, f"{_words(item)}JOIN ON {self._equalities(keys)}")
        if is_padded:
            for part in rest:
                joined = self._filtered(joined, part)
            rest = []
        return joined, [*where, *rest]

    def _paired(
        self, left: Joined, right: Joined, keys: Sequence[tuple[str, str]], kind: str, name: str
    ) -> Joined:
        place = self._add(name, Join(tuple(keys), kind), left.rows.place, right.rows.place)
        if kind in ("semi", "anti"):
            return replace(left, rows=replace(left.rows, place=place))
        kinds = StructType([*left.rows.kinds, *right.rows.kinds])
        rows = Rows(place, (*left.rows.names, *right.rows.names), kinds)
        return Joined(rows, (*left.parts, *right.parts))

    def _using(self, left: Joined, right: Joined, item: FromItem) -> Joined:
        """A join whose columns of one name are one, in a relation of their own before the others."""
        theirs = {name.lower() for part in right.parts for name in part.names}
        mine = [name for part in left.parts for name in part.names]
        names = item.using if item.using is not None else [name for name in mine if name.lower() in theirs]
        if not names:
            raise Unplanned("a join without an equality", item.source)
        keys, shown = [], []
        for name in names:
            found = [self._resolved(Name((name,), item.source), side) for side in (left, right)]
            if found[0] is None or found[1] is None:
                raise Unplanned(f"USING {name}, which each side should have once,", item.source)
            left, right, key = self._alike_types(left, right, (found[0], found[1]), item.source)
            keys.append(key)
            shown.append((found[0], found[1]))
        joined = self._paired(left, right, keys, item.join, f"{_words(item)}JOIN ON {self._equalities(keys)}")
        columns = [theirs if item.join == "right" else mine for mine, theirs in shown]
        if item.join == "full":
            made = self._fresh(len(shown))
            pairs = zip(made, shown, strict=True)
            both = [f"coalesce({ROWS}.{one}, {ROWS}.{other}) AS {name}" for name, (one, other) in pairs]
            joined, columns = self._further(joined, SqlText.of(", ".join(both)), made, "USING"), made
        gone = {name.lower() for name in names}
        parts = [Part(f"{_USING}{self._found.blocks}", tuple(names), tuple(columns))]
        for part in joined.parts:
            named = zip(part.names, part.columns, strict=True)
            rest = [(name, own) for name, own in named if name.lower() not in gone]
            if rest:
                parts.append(Part(part.alias, tuple(name for name, _ in rest), tuple(own for _, own in rest)))
        return replace(joined, parts=tuple(parts))

    def _refuse_own_of_using(self, select: Select, joined: Joined) -> None:
        """Refuse columns of USING with the name of a relation before them, and all columns of a relation."""
        parts = [part for part in joined.parts if part.alias.startswith(_USING)]
        merged = {name.lower() for part in parts for name in part.names}
        aliases = {item.alias.lower() for item in select.source if item.alias is not None}
        clauses = (select.where, select.group_by, select.having, select.window, select.qualify)
        for start, stop in [*select.items, *(clause for clause in clauses if clause is not None)]:
            for at in range(start, stop - 2):
                is_of_one = self.tokens[at].is_name and self.tokens[at].name.lower() in aliases
                if not is_of_one or not self.tokens.is_symbol(at + 1, "."):
                    continue
                column = self.tokens[at + 2]
                if column.is_symbol("*") or (column.is_name and column.name.lower() in merged):
                    told = f"{self._told((at, at + 3))} beside USING"
                    raise self._refused((at, at + 3), told, "leave out the relation's name; or write ON")

    def _further(
        self,
        side: Joined,
        listed: SqlText,
        made: Sequence[str],
        name: str,
        widened: Sequence[tuple[str, str]] = (),
        going: Sequence[Going] = (),
    ) -> Joined:
        """The rows with further columns, which Spark computes; those that widen others or go with them."""
        query = SqlText.of(f"SELECT {ROWS}.*, ", listed, " FROM ", self._scoped(self._scope(side)))
        result = self.gateway.sql(query, {ROWS: self._frame(side.rows)}).schema
        plain = [(column, column) for column in side.rows.columns]
        names = (*side.rows.names, *made)
        rows = self._map(side.rows, query, ROWS, result, plain, names, name, going, widened)
        return replace(side, rows=rows)

    def _equalities(self, keys: Sequence[tuple[str, str]]) -> str:
        return " AND ".join(f"{self._shown(one)} = {self._shown(other)}" for one, other in keys)

    def _alike_types(
        self, left: Joined, right: Joined, pair: tuple[str, str], place: Range
    ) -> tuple[Joined, Joined, tuple[str, str]]:
        """Two columns that are compared, in the type in which Spark compares them."""
        sides, columns = [left, right], [*pair]
        kinds = [side.rows.kinds[column].dataType for side, column in zip(sides, columns, strict=True)]
        common = kinds[0] if kinds[0] == kinds[1] else self._common_type(kinds)
        if common is None or not is_orderable(common):
            shown = " and ".join(kind.simpleString().upper() for kind in kinds)
            raise self._refused(place, f"an equality of {shown}", "cast one to the type of the other")
        for at, (side, column) in enumerate(zip(sides, pair, strict=True)):
            if kinds[at] == common:
                continue
            (made,) = self._fresh(1)
            cast = SqlText.of(f"CAST({ROWS}.{column} AS {common.simpleString()}) AS {made}")
            widened = [(made, column)] if isinstance(common, IntegralType) else []
            going = [] if widened else self._cast(made, column, common, side)
            told = f"{self._shown(column)} AS {common.simpleString()}"
            sides[at] = self._further(side, cast, [made], told, widened, going)
            columns[at] = made
        return sides[0], sides[1], (columns[0], columns[1])

    def _common_type(self, kinds: Sequence[DataType]) -> DataType | None:
        """The type of both numbers, or both times; None for what is compared in other ways."""
        for family in ((NumericType,), (DateType, TimestampType, TimestampNTZType)):
            if all(isinstance(kind, family) for kind in kinds):
                nulls = ", ".join(f"CAST(NULL AS {kind.simpleString()})" for kind in kinds)
                return self.gateway.sql(SqlText.of(f"SELECT coalesce({nulls}) AS value")).schema[0].dataType
        return None

    def _shown(self, column: str) -> str:
        origin = self._found.origins.get(column)
        return ".".join(origin) if origin is not None else "an expression"

    def _filtered_sides(
        self, left: Joined, right: Joined, item: FromItem, rest: Sequence[Range]
    ) -> tuple[Joined, Joined]:
        """The sides of a join that is no inner one, without the rows that no condition of ON lets in."""
        for part in rest:
            if item.join in ("left", "semi", "anti") and self._reads_only(part, right):
                right = self._filtered(right, part)
            elif item.join in ("right", "semi") and self._reads_only(part, left):
                left = self._filtered(left, part)
            else:
                raise self._refused(part, f"{self._told(part)} in the ON of an outer join", _IN_AN_INTERVAL)
        return left, right

    def _equal(
        self, left: Joined, right: Joined, part: Range
    ) -> tuple[Joined, Joined, tuple[str, str]] | None:
        """The sides with the columns that an equality of both compares; None if it is none."""
        parsed = parse_expression(self.tokens, *part)
        if not isinstance(parsed, Operation) or parsed.operator != "=":
            return None
        one, other = (operand.range for operand in parsed.operands)
        if self._reads_only(other, left) and self._reads_only(one, right):
            one, other = other, one
        if not (self._reads_only(one, left) and self._reads_only(other, right)):
            return None
        if self._reads_only(one, right) or self._reads_only(other, left):
            raise self._refused(part, "a name of both sides", "put the relation's name before it")
        left, mine = self._column(left, one)
        right, theirs = self._column(right, other)
        return self._alike_types(left, right, (mine, theirs), part)

    def _reads_only(self, stretch: Range, side: Joined) -> bool:
        """Whether an expression reads columns of a side, and nothing else."""
        names = list(names_in(parse_expression(self.tokens, *stretch, deeply=True)))
        return bool(names) and all(self._resolved(name, side) is not None for name in names)

    def _column(self, side: Joined, stretch: Range) -> tuple[Joined, str]:
        """The side with a column that holds an expression."""
        parsed = parse_expression(self.tokens, *stretch)
        found = self._computed.get(stretch)
        if found is None and isinstance(parsed, Name):
            found = self._resolved(parsed, side)
        if found is not None:
            return side, found
        (made,) = self._fresh(1)
        listed = SqlText.of("(", self._text(stretch), f") AS {made}")
        going = self._moved(side, [(made, stretch)])
        return self._further(side, listed, [made], self._told(stretch), (), going), made

    def _filtered(self, side: Joined, condition: Range) -> Joined:
        scope = self._scope(side)
        where = self._text(condition)
        query = SqlText.of(f"SELECT {ROWS}.* FROM ", self._scoped(scope), " WHERE ", where)
        self.gateway.sql(query, {ROWS: scope.frame})
        plain = [(column, column) for column in side.rows.columns]
        told = f"WHERE {self._told(condition)}"
        rows = self._map(side.rows, query, ROWS, side.rows.kinds, plain, side.rows.names, told)
        return replace(side, rows=rows)

    def _where(self, conditions: Sequence[Range]) -> SqlText:
        if not conditions:
            return SqlText()
        parts = [SqlText.of("(", self._text(part), ")") for part in conditions]
        return SqlText.of(" WHERE ", SqlText.join(" AND ", parts))

    # -- subqueries ----------------------------------------------------------------------------------

    def _is_asked(self, part: Range) -> bool:
        """Whether a condition has a subquery over streams."""
        return any(
            self.tokens.is_symbol(at, "(")
            and self.tokens.word(at + 1) in ("SELECT", "WITH")
            and self._varies((at, self.tokens.partner[at] + 1))
            for at in range(*part)
        )

    def _asked_of(self, joined: Joined, part: Range) -> Joined:
        """The rows for which EXISTS, NOT EXISTS or IN holds."""
        start, stop = part
        is_not = self.tokens.word(start) == "NOT"
        if (
            self.tokens.word(start + is_not) == "EXISTS"
            and self.tokens.partner[start + is_not + 1] == stop - 1
        ):
            return self._exists_of(joined, (start + is_not + 1, stop), part, "anti" if is_not else "semi")
        bracket = self.tokens.partner[stop - 1] if self.tokens.is_symbol(stop - 1, ")") else -1
        if bracket < 0 or self.tokens.word(bracket - 1) != "IN":
            raise self._refused(part, "this subquery", "EXISTS, NOT EXISTS and IN are, in AND of WHERE")
        if self.tokens.word(bracket - 2) == "NOT" or is_not:
            raise self._refused(part, "NOT IN a subquery", "write NOT EXISTS (SELECT … WHERE a = b)")
        inner = self._rows_of(parse_query(self.tokens, bracket, stop))
        if len(inner.names) != 1:
            raise self._refused((bracket, stop), "IN a subquery of several columns", "select one")
        joined, mine = self._column(joined, (start, bracket - 1))
        made = self._fresh(1)
        rows = self._project(inner, inner.columns, made, inner.names, "columns")
        other = Joined(rows, ())
        joined, other, key = self._alike_types(joined, other, (mine, made[0]), part)
        return self._paired(joined, other, [key], "semi", self._told(part))

    def _exists_of(self, joined: Joined, bracket: Range, part: Range, kind: str) -> Joined:
        shape = parse_query(self.tokens, *bracket)
        if not isinstance(shape, Select) or self._is_grouped(shape):
            raise self._refused(bracket, "EXISTS of groups or set operators", "ask for the rows of a block")
        over = self._over(shape)
        if over is not None:
            raise self._refused(over, "OVER in EXISTS", "leave it out, or write a query in FROM")
        where = [] if shape.where is None else conjuncts(self.tokens, *shape.where)
        keys: list[tuple[str, str]] = []
        inside, _ = self._from_where(replace(shape, where=None))
        for condition in where:
            pair = None
            if not self._reads_only(condition, inside):
                pair = self._equal(joined, inside, condition)
            if pair is not None:
                joined, inside, key = pair
                keys.append(key)
            elif self._is_asked(condition):
                inside = self._asked_of(inside, condition)
            elif self._reads_beyond(condition, inside, joined):
                raise self._refused(
                    condition, f"{self._told(condition)} between the rows of two streams", _IN_AN_INTERVAL
                )
            else:
                inside = self._filtered(inside, condition)
        if not keys:
            raise self._refused(part, "EXISTS without an equality with the query around it", "compare by =")
        return self._paired(joined, inside, keys, kind, self._told(part))

    def _reads_beyond(self, condition: Range, inside: Joined, around: Joined) -> bool:
        """Whether a condition in a subquery names a column that only the query around it has."""
        names = names_in(parse_expression(self.tokens, *condition))
        return any(self._resolved(one, inside) is None and self._resolved(one, around) for one in names)


_IN_AN_INTERVAL = (
    "compare the two sides by =; or, where the condition says until when a partner may come, leave STREAM out"
    " and write EMIT STREAM AFTER WATERMARK at the end"
)


def _words(item: FromItem) -> str:
    """How the join of an item is written, before JOIN."""
    words = {"inner": "", "semi": "LEFT SEMI ", "anti": "LEFT ANTI "}
    return words.get(item.join, f"{item.join.upper()} ")

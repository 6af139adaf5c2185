"""OVER and SESSION in queries over whole streams."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql.types import LongType, StructType

from windrow.algebra.time_windows import TICKS, told_sessions
from windrow.kernels.punctuated import Over, Session
from windrow.kernels.sorting import SortKey
from windrow.punctuations.lines import line_if_any
from windrow.spark.arrow import arrow_type, is_orderable
from windrow.spark.collected import frame_of_few
from windrow.spark.gateway import Gateway
from windrow.spark.grouping import alias_of, without_alias
from windrow.spark.live.block_joins import BlockJoins
from windrow.spark.live.block_nodes import Joined, Rows
from windrow.spark.live.row_maps import arrow_schema
from windrow.spark.scope import ROWS, Unplanned, is_over
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, parse_query
from windrow.syntax.sqltext import Relation, SqlText, quoted
from windrow.syntax.window_calls import WindowCall, window_calls

__all__ = ["BlockOver"]

_AT = "__at"


@dataclass(frozen=True)
class WindowColumns:
    """What Spark computes over windows of rows that are in order: columns for each of them.

    Attributes
    ----------
    gateway
        The session, and the parameters of the query.
    text
        The query, which gives the columns, and `_AT` after them.
    given, result
        The columns of the rows, and those that are computed.
    """

    gateway: Gateway
    text: SqlText
    given: StructType
    result: StructType

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The columns, in the order of the rows."""
        schema = arrow_schema(self.result)
        if not rows.num_rows:
            return schema.empty_table()
        numbered = rows.append_column(_AT, pa.array(range(rows.num_rows), pa.int64()))
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        # in one partition, where rows with equal keys stay in their order from step to step
        frame = frame_of_few(gateway.spark, numbered, _numbered(self.given)).coalesce(1)
        made = gateway.sql(self.text, {ROWS: frame})
        made = made.toDF(*(f"c{at}" for at in range(len(made.columns))))
        with gateway.translated():
            found = made.toArrow()
        found = found.sort_by(found.column_names[-1]).select(found.column_names[:-1])
        return found.rename_columns(schema.names).cast(schema)


def _numbered(kinds: StructType) -> StructType:
    return StructType([*kinds.fields]).add(_AT, LongType())


class BlockOver(BlockJoins, ABC):
    """Blocks that look at several rows by OVER, and those that SESSION becomes."""

    def _looked(self, select: Select, joined: Joined, conditions: Sequence[Range]) -> Joined:
        """The rows that WHERE and QUALIFY let through, with a column for each function over a window."""
        clauses = [] if select.qualify is None else [select.qualify]
        calls = window_calls(self.tokens, [*select.items, *clauses], select.window)
        if conditions:
            joined = self._passed(joined, conditions, "WHERE")
        if select.qualify is not None:
            self._name_in(select, select.qualify, joined)
        together: dict[tuple[object, ...], list[WindowCall]] = {}
        for call in calls:
            together.setdefault(self._alike(call), []).append(call)
        for alike in together.values():
            joined = self._over_window(select, joined, alike)
        if select.qualify is None:
            return joined
        self._name_in(select, select.qualify, joined)
        return self._passed(joined, clauses, "QUALIFY")

    def _alike(self, call: WindowCall) -> tuple[object, ...]:
        """What functions have in common that are evaluated together."""
        order = tuple(
            (self.tokens.text(*item.expression), item.descending, item.nulls_first) for item in call.order
        )
        return tuple(self.tokens.text(*key) for key in call.partition), order

    def _over_window(self, select: Select, joined: Joined, calls: Sequence[WindowCall]) -> Joined:
        """The rows with columns for functions over one partition and order."""
        first = calls[0]
        partition, order = [], []
        for key in first.partition:
            joined, column = self._column(joined, key)
            partition.append(column)
        for item in first.order:
            joined, column = self._column(joined, item.expression)
            order.append(SortKey(column, item.descending, item.nulls_first))
        kinds = joined.rows.kinds
        for column in (*partition, *(key.column for key in order)):
            if not is_orderable(kinds[column].dataType):
                raise Unplanned(f"OVER by {kinds[column].dataType.simpleString().upper()}", first.range)
        looks_back = all(call.looks_back for call in calls) and all(
            line_if_any(arrow_type(kinds[key.column].dataType)) is not None for key in order
        )
        reaches = [call.reach for call in calls]
        reach = None if None in reaches else max(one for one in reaches if one is not None)
        scope = self._scope(joined)
        listed = []
        for call in calls:
            self._windows.add(call.over)
            if self.tokens[call.over + 1].is_name:
                named = (call.over + 1, call.over + 2)
                self._instead[named] = f"({self._text(call.definition).render()})"
            listed.append(self._text(call.range))
        text = SqlText.of("SELECT ", SqlText.join(", ", listed), f", {ROWS}.{_AT} FROM ", self._scoped(scope))
        text = SqlText.of(self._prefix(select.items[0][0]), text)
        numbered = self.gateway.spark.createDataFrame([], _numbered(kinds))
        found = self.gateway.sql(text, {ROWS: numbered}).schema
        made = self._fresh(len(calls))
        result = StructType()
        for name, call, one in zip(made, calls, found, strict=False):
            result = result.add(name, one.dataType)
            self._instead[call.range] = f"{ROWS}.{name}"
            self._computed[call.range] = name
        self._refuse_types(result)
        compute = WindowColumns(self.gateway, text, kinds, result)
        operator = Over(tuple(partition), tuple(order), looks_back, reach if looks_back else None, compute)
        place = self._add(f"OVER ({self._told(first.definition)})", operator, joined.rows.place)
        rows = Rows(place, (*joined.rows.names, *made), StructType([*kinds, *result]))
        return replace(joined, rows=rows)

    def _name_in(self, select: Select, clause: Range, joined: Joined) -> None:
        """Let names that SELECT gives stand for what they name, unless that is over a window still unknown.

        Of a name that the rows have too it depends on what stands around it, to Spark, which of them it is.
        """
        own = {alias_of(self.tokens, item): without_alias(self.tokens, item) for item in select.items}
        known = {name.lower() for part in joined.parts for name in part.names}
        for at in range(*clause):
            token = self.tokens[at]
            is_bare = token.is_name and not self.tokens.is_symbol(at - 1, ".")
            if not is_bare or self.tokens.is_symbol(at + 1, ".") or self.tokens.is_symbol(at + 1, "("):
                continue
            item = own.get(token.name.lower())
            if item is None or any(
                at not in self._windows and is_over(self.tokens, at) for at in range(*item)
            ):
                continue
            parsed = parse_expression(self.tokens, *item)
            is_same = isinstance(parsed, Name) and parsed.parts[-1].lower() == token.name.lower()
            if token.name.lower() in known and not is_same:
                told = f"HAVING or QUALIFY by {token.name}, a name of SELECT's and of the rows,"
                raise self._refused((at, at + 1), told, "give it another name in SELECT")
            source = self._computed.get(item)
            if source is None and isinstance(parsed, Name):
                source = self._resolved(parsed, joined)
            if source is not None:
                self._computed[at, at + 1] = source
            self._instead[at, at + 1] = f"({self._text(item).render()})"

    def _is_unknown(self, stretch: Range) -> bool:
        """Whether there is a function over a window in it for which no column stands yet."""
        return any(at not in self._windows and is_over(self.tokens, at) for at in range(*stretch))

    def _passed(self, joined: Joined, conditions: Sequence[Range], word: str) -> Joined:
        """The rows that satisfy all of some conditions."""
        scope = self._scope(joined)
        query = SqlText.of(f"SELECT {ROWS}.* FROM ", self._scoped(scope), self._where(conditions))
        plain = [(column, column) for column in joined.rows.columns]
        told = f"{word} {' AND '.join(map(self._told, conditions))}"
        rows = self._map(joined.rows, query, ROWS, joined.rows.kinds, plain, joined.rows.names, told)
        return replace(joined, rows=rows)

    # -- SESSION -------------------------------------------------------------------------------------

    def _session_lengths(self, select: Select) -> tuple[int, int | None] | None:
        """The gap and the longest duration of a block that SESSION becomes."""
        return told_sessions(select.source[0].alias) if len(select.source) == 1 else None

    def _sessions(self, select: Select, lengths: tuple[int, int | None]) -> Rows:
        """The rows with their sessions, which the text numbers by how often a row comes after a gap."""
        gap, longest = lengths
        numbered = self._inside(select)
        while not (calls := window_calls(self.tokens, numbered.items, None)):
            numbered = self._inside(numbered)
        (call,) = calls
        timed = self._inside(numbered).source[0].source
        rows = self._rows_of(parse_query(self.tokens, *timed))
        columns = dict(zip((name.lower() for name in rows.names), rows.columns, strict=True))
        keys = [self.tokens[start].name for start, _ in call.partition]
        read = [(name, columns[name.lower()]) for name in (*keys, TICKS)]
        listed = ", ".join(f"{column} AS {quoted(name)}" for name, column in read)
        outer, inner = select.items[0][0], select.source[0].source
        names = [self.tokens[stop - 1].name for _, stop in select.items[1:]]
        text = SqlText.of(
            f"SELECT {', '.join(map(quoted, names))}, {_AT} FROM (SELECT ",
            self.reader.text(outer, select.items[-1][1]),
            " FROM ",
            self.reader.text(inner[0], timed[0]),
            f"(SELECT {listed}, {_AT} FROM ",
            Relation(ROWS),
            ") ",
            self.reader.text(timed[1], inner[1]),
            ")",
        )
        empty = self.gateway.spark.createDataFrame([], _numbered(rows.kinds))
        found = self.gateway.sql(text, {ROWS: empty}).schema
        made = self._fresh(len(names))
        result = StructType()
        for name, one in zip(made, found, strict=False):
            result = result.add(name, one.dataType)
        by = tuple(columns[key.lower()] for key in keys)
        compute = WindowColumns(self.gateway, text, rows.kinds, result)
        operator = Session(by, columns[TICKS], gap, (made[0], made[1]), compute, longest)
        told = f"SESSION by {', '.join(keys)}" if keys else "SESSION"
        place = self._add(told, operator, rows.place)
        given = Rows(place, (*rows.names, *names), StructType([*rows.kinds, *result]))
        shown = [pair for pair in zip(given.names, given.columns, strict=True) if pair[0] != TICKS]
        kept = [column for _, column in shown]
        return self._project(given, kept, self._fresh(len(kept)), [name for name, _ in shown], "columns")

    def _inside(self, select: Select) -> Select:
        """The block of which a block reads the rows."""
        found = parse_query(self.tokens, *select.source[0].source)
        assert isinstance(found, Select)
        return found

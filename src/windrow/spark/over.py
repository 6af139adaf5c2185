"""Frames of OVER, and the first rows in an order, over relations that vary.

A function over a frame is evaluated in each piece of time in which its partition stays as it is: rows are
written out once for each, and pieces are partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from windrow.kernels.sorting import SortKey
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.stage import First
from windrow.plan.columns import ROWS
from windrow.plan.reader import NotPlannedError
from windrow.spark.arrow import is_orderable
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.spark.scope import Rows, Scope
from windrow.spark.subqueries import Subqueries
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Ordered, Select, Shape
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.sqltext import SqlText
from windrow.syntax.window_calls import is_over

__all__ = ["Frames"]

_UNKNOWN = {"DISTRIBUTE", "CLUSTER"}
_AFTER_KEYS = ("ORDER", "SORT", "ROWS", "RANGE")


class Frames(Subqueries):
    """Blocks with functions over frames, and queries of which only the first rows are asked for."""

    def _framed(self, select: Select, scope: Scope) -> Scope | None:
        """The rows that satisfy WHERE in each piece of time; None if there is no frame."""
        brackets = self._definitions(select)
        if not brackets or not scope.varies:
            return None
        keys = self._common_keys(brackets)
        names = [f"__g{number}" for number in range(len(keys))]
        listed = [
            SqlText.of(", (", self.text(key), f") AS {name}") for name, key in zip(names, keys, strict=True)
        ]
        query = SqlText.of(f"SELECT {ROWS}.*", *listed, " FROM ", self._scoped(scope))
        if select.where is not None:
            query = SqlText.of(query, " WHERE ", self.text(select.where))
        rows = self._sql(query, scope.frame, select)
        if not can_be_keyed(rows):
            raise NotPlannedError("columns that a frame cannot carry")
        given = StructType([field for field in rows.schema if field.name not in (ENTER, LEAVE)])
        pieces = run_keyed(self.gateway, "expand", [rows], names, given).drop(*names)
        times = f" {ROWS}.{ENTER}, {ROWS}.{LEAVE}"
        for start, stop in brackets:
            if self.tokens.word(start) == "PARTITION":
                self.instead[start + 2, start + 2] = f"{times}, "
            elif start == stop or self.tokens.word(start) in _AFTER_KEYS:
                self.instead[start, start] = f" PARTITION BY{times} "
        return replace(scope, frame=pieces, net_by=None)

    def _definitions(self, select: Select) -> list[Range]:
        """What is in the brackets of OVER and of named windows."""
        tokens, found = self.tokens, []
        clauses = [clause for clause in (select.qualify, select.window) if clause is not None]
        for start, stop in (*select.items, *clauses):
            for at in range(start, stop):
                named = tokens.word(at) == "AS" and (start, stop) == select.window
                if not named and not is_over(tokens, at):
                    continue
                self.windows.add(at)
                if tokens.is_symbol(at + 1, "("):
                    found.append((at + 2, tokens.partner[at + 1]))
        if any(tokens.word(at) in _UNKNOWN for bracket in found for at in range(*bracket)):
            raise NotPlannedError("DISTRIBUTE BY in OVER")
        return found

    def _common_keys(self, brackets: Sequence[Range]) -> list[Range]:
        """The expressions by which all frames are partitioned."""
        common: dict[str, Range] | None = None
        for start, stop in brackets:
            word = self.tokens.word(start)
            if start < stop and word not in ("PARTITION", *_AFTER_KEYS):
                continue  # a named window with more
            keys: dict[str, Range] = {}
            if word == "PARTITION":
                ends = [at for at in self.tokens.level(start, stop) if self.tokens.word(at) in _AFTER_KEYS]
                items = self.tokens.split(start + 2, ends[0] if ends else stop)
                keys = {self.tokens.text(*key): key for key in items}
            common = keys if common is None else {text: key for text, key in common.items() if text in keys}
        return list((common or {}).values())

    # -- ORDER BY … LIMIT ----------------------------------------------------------------------------

    def _ordered(self, ordered: Ordered) -> Rows:
        """The first rows at each instant; of equals, any."""
        query = ordered.query
        rows = self._varying(self._shape(query))
        count = len(rows.names)
        orders, others = [], []
        for number, item in enumerate(ordered.order):
            text = self._of_output(rows, item.expression)
            if text is None:
                self._refuse_renamed(query, item.expression)
                others.append((number, item.expression))
            orders.append(text)
        if others:
            if not isinstance(query, Select) or query.distinct:
                raise NotPlannedError("ORDER BY of what the query does not give")
            more = tuple(expression for _, expression in others)
            rows = self._varying(self._shape(replace(query, items=(*query.items, *more))))
            for place, (number, _) in enumerate(others):
                orders[number] = f"c{count + place}"
        names = [f"__o{number}" for number in range(len(orders))]
        frame = rows.frame
        for name, column in zip(names, orders, strict=True):
            assert column is not None
            frame = frame.withColumn(name, F.col(column))
        kinds = {field.name: field.dataType for field in frame.schema}
        if not can_be_keyed(frame) or not all(is_orderable(kinds[name]) for name in names):
            raise NotPlannedError("columns that are not ordered")
        ties = [name for name in rows.frame.columns[:count] if is_orderable(kinds[name])]
        keys = [
            SortKey(name, item.descending, item.nulls_first)
            for name, item in zip(names, ordered.order, strict=True)
        ]
        given = rows.frame.columns[:count]
        numbers = self._number(ordered.offset) or 0, self._number(ordered.limit)
        first = First(tuple(given), (*keys, *map(SortKey, ties)), *numbers)
        result = StructType([StructField(name, kinds[name]) for name in given])
        made = run_keyed(self.gateway, "first", [frame], [], result, first=first)
        return Rows(made, rows.names[:count], varies=True)

    def _of_output(self, rows: Rows, expression: Range) -> str | None:
        """A key of ORDER BY as a column of what the query gives; None if it is none."""
        start, stop = expression
        text = self.tokens.text(start, stop)
        if stop - start == 1 and text.isdigit():
            if not 1 <= int(text) <= len(rows.names):
                raise NotPlannedError("a number in ORDER BY that is of no item")
            return f"c{int(text) - 1}"
        if stop - start != 1 or not self.tokens[start].is_name:
            return None
        named = [
            f"c{at}" for at, name in enumerate(rows.names) if name.lower() == self.tokens[start].name.lower()
        ]
        return named[0] if len(named) == 1 else None

    def _refuse_renamed(self, query: Shape, expression: Range) -> None:
        """Refuse to compute with a name that SELECT gives to something else than the column that has it."""
        if not isinstance(query, Select):
            return
        tokens, renamed = self.tokens, set()
        aliases = {source.alias.lower() for source in query.source if source.alias}
        for item in query.items:
            given = parse_expression(tokens, *without_alias(tokens, item))
            path = [part.lower() for part in given.parts] if isinstance(given, Name) else [""]
            name = alias_of(tokens, item) or path[-1]
            if path[-1] != name or not (len(path) == 1 or (len(path) == 2 and path[0] in aliases)):
                renamed.add(name)
        for at in range(*expression):
            if tokens[at].is_name and tokens[at].name.lower() in renamed and self._is_bare(at):
                raise NotPlannedError("ORDER BY of something computed with what SELECT gives a name")

    def _number(self, clause: Range | None) -> int | None:
        """The number of rows in LIMIT or OFFSET; None for all."""
        if clause is None or self.tokens.word(clause[0]) == "ALL":
            return None
        found = self.gateway.sql(SqlText.of("SELECT ", self.text(clause), " AS number"))
        with self.gateway.translated():
            (value,) = found.collect()[0]
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise NotPlannedError("a number of rows that is none")
        return value

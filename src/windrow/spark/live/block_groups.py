"""Groups of queries over whole streams; what stands over them, and what rises with a column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import IntegerType

from windrow.errors import AnalysisError, WindrowError
from windrow.kernels.aggregates import Aggregate
from windrow.kernels.punctuated import Group, Project
from windrow.spark.grouping import GROUPS, Groups, groups_of, without_alias
from windrow.spark.live.block_nodes import Joined, Rows, renamed
from windrow.spark.live.block_over import BlockOver
from windrow.spark.scope import ROWS, Part, Unplanned
from windrow.syntax.expressions import Name, parse_expression
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.sqltext import SqlText
from windrow.syntax.window_calls import window_calls

__all__ = ["BlockGroups"]


@dataclass(frozen=True)
class Grouped:
    """The groups of a block.

    Attributes
    ----------
    groups
        What SELECT and the like read of them.
    rows
        Their keys and aggregates, of which `groups` has the names.
    names
        Of each key the name of the column that it is, None for what is computed.
    """

    groups: Groups
    rows: Rows
    names: tuple[str | None, ...]


class BlockGroups(BlockOver, ABC):
    """Blocks that group rows."""

    @abstractmethod
    def _each(
        self, select: Select, joined: Joined, conditions: Sequence[Range], further: Sequence[Range]
    ) -> Rows:
        """SELECT over the rows of a block."""

    def _groups(
        self, select: Select, joined: Joined, conditions: Sequence[Range], over: Range | None
    ) -> Rows:
        """SELECT with groups, of which it may look at several by OVER."""
        grouped = self._grouped(select, joined, conditions, over)
        if over is None:
            return self._over_groups(select, grouped)
        try:
            looked = self._looked(select, self._as_rows(select, grouped), [])
            given = self._each(select, looked, [], [])
        except AnalysisError:
            raise Unplanned("an expression over groups that only Spark understands", over) from None
        return replace(given, names=self._group_names(select))

    def _as_rows(self, select: Select, grouped: Grouped) -> Joined:
        """The groups that HAVING lets through as rows: keys and aggregates stand for columns of theirs."""
        rows, groups = grouped.rows, grouped.groups
        made = self._fresh(len(rows.columns))
        pairs = tuple(zip(made, rows.columns, strict=True))
        self._pass_on([(name, f"{rows.place}.{column}") for name, column in pairs])
        place = self._add("columns", Project(pairs), rows.place)
        named = [(name, made[at]) for at, name in enumerate(grouped.names) if name is not None]
        part = Part(
            f"__t{self._found.blocks}", tuple(name for name, _ in named), tuple(own for _, own in named)
        )
        joined = Joined(Rows(place, tuple(made), renamed(rows.kinds, pairs)), (part,) if named else ())
        columns = {column: name for name, column in pairs}
        for stretch, name in groups.replaced.items():
            self._instead[stretch] = f"{ROWS}.{columns[name]}"
            self._computed[stretch] = columns[name]
        if select.having is None:
            return joined
        self._name_in(select, select.having, joined)
        return self._passed(joined, [select.having], "HAVING")

    def _grouped(
        self, select: Select, joined: Joined, conditions: Sequence[Range], over: Range | None
    ) -> Grouped:
        """The groups of a block with what SELECT needs of them."""
        scope = self._scope(joined)
        keys = self._group_keys(select, scope)
        clauses, parts = ([], []) if over is None else self._beside(select)
        groups = None if keys is None else groups_of(self.tokens, select, keys, self._text, clauses, parts)
        if keys is None or groups is None:
            raise Unplanned("groups of this form, or an aggregate that only Spark knows,", select.group_by)
        listed: list[tuple[str, SqlText, str | None]] = [
            (name, text, self._source_of(where, joined))
            for name, (where, text) in zip(groups.key_names, keys, strict=True)
        ]
        counted = set()
        for call in groups.calls.values():
            assert call.argument is not None
            parsed = call.argument.expression
            if call.function == "count" and call.argument.text.render().strip() == "1":
                counted.add(call.name)
                continue
            source = self._resolved(parsed, joined) if isinstance(parsed, Name) else None
            listed.append((f"{call.name}_of", call.argument.text, source))
        if not listed:  # rows without columns could not be counted
            listed.append(("nothing", SqlText.of("1"), None))
        rows = self._listed(select, joined, conditions, listed, [where for where, _ in keys])
        kinds = {name: one.dataType for (name, _, _), one in zip(listed, rows.kinds, strict=True)}
        inside = dict(zip(kinds, rows.columns, strict=True))
        by = [(name, inside[name]) for name in groups.key_names]
        specs, result = [], renamed(rows.kinds, by)
        self._refuse_unordered(result, "GROUP BY")
        of_calls = {
            call.name: IntegerType() if call.name in counted else kinds[f"{call.name}_of"]
            for call in groups.calls.values()
        }
        found = groups.aggregates(self.gateway, of_calls, lambda text: self._kind(text, scope, select))
        if found is None:
            raise Unplanned("an aggregate that only Spark knows")
        for name, spec, kind in found:
            is_counted = name in counted
            specs.append(
                (
                    name,
                    Aggregate(
                        "count_star" if is_counted else spec.function,
                        None if is_counted else inside[f"{name}_of"],
                        spec.result_type,
                        spec.ignore_nulls,
                        spec.parameters,
                        spec.ansi,
                    ),
                )
            )
            result = result.add(name, kind)
        told = ", ".join(self._told(where) for where, _ in keys)
        node = self._add(f"GROUP BY {told or '()'}", Group(tuple(by), tuple(specs)), rows.place)
        self._pass_on([(f"{node}.{name}", column) for name, column in by])
        names = [
            self.tokens[stop - 1].name if self._is_path(start, stop) else None for (start, stop), _ in keys
        ]
        return Grouped(groups, Rows(node, (), result), tuple(names))

    def _is_path(self, start: int, stop: int) -> bool:
        return isinstance(parse_expression(self.tokens, start, stop), Name)

    def _beside(self, select: Select) -> tuple[list[Range], list[Range]]:
        """Where OVER and QUALIFY may read groups: clauses, and expressions that may be a key as a whole."""
        clauses = [clause for clause in (select.window, select.qualify) if clause is not None]
        read = [*select.items, *([] if select.qualify is None else [select.qualify])]
        calls = window_calls(self.tokens, read, select.window)
        return clauses, [
            stretch
            for call in calls
            for stretch in (*call.partition, *(item.expression for item in call.order))
        ]

    def _listed(
        self,
        select: Select,
        joined: Joined,
        conditions: Sequence[Range],
        listed: Sequence[tuple[str, SqlText, str | None]],
        keys: Sequence[Range],
    ) -> Rows:
        """The keys of groups and the arguments of aggregates as columns."""
        made = self._fresh(len(listed))
        names = [name for name, _, _ in listed]
        if not conditions and all(source is not None for _, _, source in listed):
            columns = [source for _, _, source in listed if source is not None]
            return self._project(joined.rows, columns, made, names, "columns")
        scope = self._scope(joined)
        texts = [
            SqlText.of("(", text, f") AS {name}") for name, (_, text, _) in zip(made, listed, strict=True)
        ]
        shown = SqlText.join(", ", texts)
        query = SqlText.of("SELECT ", shown, " FROM ", self._scoped(scope), self._where(conditions))
        result = self._sql(query, scope.frame, select).schema
        plain = [
            (name, source) for name, (_, _, source) in zip(made, listed, strict=True) if source is not None
        ]
        prefixed = SqlText.of(self._prefix(select.items[0][0]), query)
        told = " AND ".join(map(self._told, conditions))
        going = self._moved(joined, list(zip(made, keys, strict=False)))
        name = f"WHERE {told}" if told else "expressions"
        return self._map(joined.rows, prefixed, ROWS, result, plain, names, name, going)

    def _over_groups(self, select: Select, grouped: Grouped) -> Rows:
        """SELECT and HAVING over groups."""
        rows, groups = grouped.rows, grouped.groups
        items = [without_alias(self.tokens, item) for item in select.items]
        sources = [groups.replaced.get(item) for item in items]
        names = self._group_names(select)
        made = self._fresh(len(items))
        if select.having is None and None not in sources:
            columns = [source for source in sources if source is not None]
            pairs = tuple(zip(made, columns, strict=True))
            self._pass_on([(name, f"{rows.place}.{column}") for name, column in pairs])
            return Rows(self._add("columns", Project(pairs), rows.place), names, renamed(rows.kinds, pairs))
        query = groups.select(select, self.tokens, self._text, varies=False)
        try:
            result = self.gateway.sql(query, {GROUPS: self._frame(rows)}).toDF(*made).schema
        except WindrowError:
            raise Unplanned("an expression over groups that only Spark understands") from None
        plain = [
            (name, source)
            for name, source in zip(made, sources, strict=True)
            if source is not None and source in groups.key_names
        ]
        prefixed = SqlText.of(self._prefix(select.items[0][0]), query)
        told = "" if select.having is None else f"HAVING {self._told(select.having)}"
        mapped = self._map(rows, prefixed, GROUPS, result, plain, names, told or "expressions")
        self._pass_on([(name, f"{rows.place}.{column}") for name, column in plain])
        return mapped

    def _group_names(self, select: Select) -> tuple[str, ...]:
        """The names of the columns of a block with groups, as far as they can be known without the rows."""
        names = []
        for item in select.items:
            bare = without_alias(self.tokens, item)
            last = self.tokens[item[1] - 1]
            parsed = parse_expression(self.tokens, *bare)
            named = bare != item or isinstance(parsed, Name)
            names.append(last.name if named and last.is_name else self._told(item))
        return tuple(names)

"""What a block is grouped by: the expressions of GROUP BY, be it by their numbers or names in SELECT."""

from __future__ import annotations

from windrow.algebra.aggregates import calls_aggregate
from windrow.errors import WindrowError
from windrow.plan.reader import NotPlannedError
from windrow.spark.scope import Scope, SparkTexts
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import alias_of, without_alias
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import Kind

__all__ = ["GroupKeys"]


class GroupKeys(SparkTexts):
    """Blocks with groups; takes what :class:`windrow.spark.scope.SparkTexts` does."""

    def _is_grouped(self, select: Select) -> bool:
        return select.group_by is not None or select.having is not None or self._aggregates(select)

    def _aggregates(self, select: Select) -> bool:
        """Whether the SELECT list has an aggregate."""
        return any(calls_aggregate(self.tokens, item) for item in select.items)

    def _groups_by_all(self, select: Select) -> bool:
        return select.group_by is not None and self.tokens.text(*select.group_by).upper() == "ALL"

    def _group_keys(self, select: Select, scope: Scope) -> list[tuple[Range, SqlText]] | None:
        """The expressions of GROUP BY, and where they stand, be it in SELECT for numbers and aliases.

        None for ROLLUP and its kin, by which a row is in several groups.
        """
        tokens = self.tokens
        if select.group_by is None:
            return []
        start, stop = select.group_by
        if self._groups_by_all(select):
            every = [
                self._expression(select, scope, item)
                for item in select.items
                if not calls_aggregate(self.tokens, item)
            ]
            return [(key, self.text(key)) for key in every]
        if {tokens.word(at) for at in tokens.level(start, stop)} & {"ROLLUP", "CUBE", "GROUPING"}:
            if tokens.word(stop - 2) == "WITH" or tokens.word(start) not in ("ROLLUP", "CUBE", "GROUPING"):
                raise NotPlannedError("this form of GROUP BY", select.group_by)
            if not any(tokens[at].is_name for at in range(start + 1, stop) if tokens.word(at) != "SETS"):
                raise NotPlannedError("sets without a key", select.group_by)  # a row while there is nothing
            read = [*select.items, *([] if select.having is None else [select.having])]
            if any(tokens.word(at) == "GROUPING_ID" for item in read for at in range(*item)):
                raise NotPlannedError("GROUPING_ID")  # our columns would count
            return None
        keys = []
        for first, last in tokens.split(start, stop):
            key = (first, last)
            if last - first == 1 and tokens[first].kind is Kind.NUMBER and tokens[first].text.isdigit():
                number = int(tokens[first].text)
                if not 1 <= number <= len(select.items):
                    raise NotPlannedError("a number in GROUP BY that is of no item", key)
                key = self._expression(select, scope, select.items[number - 1])
            elif not self._is_expression(select, scope, key):
                name = tokens[first].name.lower() if last - first == 1 and tokens[first].is_name else None
                named = [item for item in select.items if name and alias_of(tokens, item) == name]
                if not named:
                    raise NotPlannedError("a key of GROUP BY that is no expression", key)
                key = self._expression(select, scope, named[0])
            keys.append((key, self.text(key)))
        return keys

    def _expression(self, select: Select, scope: Scope, item: Range) -> Range:
        """An item of SELECT without its alias."""
        for key in (item, without_alias(self.tokens, item)):
            if self._is_expression(select, scope, key):
                return key
        raise NotPlannedError("an item of SELECT in GROUP BY", item)

    def _is_expression(self, select: Select, scope: Scope, key: Range) -> bool:
        try:
            # with an alias it would be no expression in brackets
            self._kind(SqlText.of("(", self.text(key), ")"), scope, select)
        except WindrowError:
            return False
        return True

"""Groups whose aggregates the kernel computes: what is asked of it, and SELECT over what it gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructType

from windrow.algebra.aggregates import find_calls
from windrow.algebra.nodes import AggregateCall
from windrow.kernels.aggregates import Aggregate, supports
from windrow.kernels.zset.grouped import is_compared
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.spark.arrow import arrow_type
from windrow.spark.gateway import Gateway, is_ansi
from windrow.spark.keyed import can_be_keyed, run_keyed
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select
from windrow.syntax.select_list import without_alias
from windrow.syntax.sqltext import Relation, SqlText
from windrow.syntax.tokens import TokenList

__all__ = ["GROUPS", "Groups", "groups_of"]

# what they give depends on the order in which rows come, or on which of equals is taken
_ARBITRARY = {"first", "last", "any_value", "collect_list", "collect_set", "mode"}
GROUPS = "__groups"
"""The key of the groups in the text of :meth:`Groups.select`."""


@dataclass(frozen=True)
class Groups:
    """A block with groups, of which all aggregates are the kernel's; there may be none.

    Attributes
    ----------
    keys
        The expressions of GROUP BY.
    calls
        The aggregates, by where they stand.
    replaced
        What stands for each aggregate and key in SELECT and HAVING.
    """

    keys: tuple[SqlText, ...]
    calls: Mapping[Range, AggregateCall]
    replaced: Mapping[Range, str]

    def columns(self) -> SqlText:
        """The keys and the arguments of the aggregates, for SELECT over the rows."""
        parts = [
            SqlText.of("(", key, f") AS {name}") for key, name in zip(self.keys, self.key_names, strict=True)
        ]
        for call in self._read:
            assert call.argument is not None
            parts.append(SqlText.of("(", call.argument.text, f") AS {_argument(call)}"))
        return SqlText.join(", ", parts)

    @property
    def _read(self) -> list[AggregateCall]:
        """The aggregates of which the argument is read: to count the rows of a key, the key is enough."""
        return [call for call in self.calls.values() if not (self.keys and _counts_rows(call))]

    @property
    def key_names(self) -> list[str]:
        """The columns of the keys."""
        return [f"__g{number}" for number in range(len(self.keys))]

    def run(
        self, gateway: Gateway, rows: DataFrame, type_of: Callable[[SqlText], DataType]
    ) -> DataFrame | None:
        """The keys and aggregates of every group in every piece of time; None if that is beyond the kernel.

        Parameters
        ----------
        rows
            With the columns of :meth:`columns`, `ENTER` and `LEAVE`.
        type_of
            The type of an aggregate by its text.
        """
        if not can_be_keyed(rows):
            return None
        kinds = {call.name: rows.schema[_argument(call)].dataType for call in self._read}
        found = self.aggregates(gateway, kinds, type_of)
        if found is None:
            return None
        result = StructType([rows.schema[name] for name in self.key_names])
        for name, _, kind in found:
            result = result.add(name, kind)
        specs = tuple((name, spec) for name, spec, _ in found)
        return run_keyed(gateway, "group", [rows], self.key_names, result, aggregates=specs)

    def aggregates(
        self, gateway: Gateway, kinds: Mapping[str, DataType], type_of: Callable[[SqlText], DataType]
    ) -> list[tuple[str, Aggregate, DataType]] | None:
        """What is asked of the kernel, by the names of columns, and the types of these; None if beyond it.

        Parameters
        ----------
        kinds
            The types of the arguments, by the same names; not of rows that are counted.
        type_of
            The type of an aggregate by its text.
        """
        found = []
        for call in self.calls.values():
            kind = type_of(call.text)
            if call.name not in kinds:
                found.append((call.name, Aggregate("count_star", None, pa.int64()), kind))
                continue
            argument, gives = arrow_type(kinds[call.name]), arrow_type(kind)
            if (
                call.function is None
                or argument is None
                or gives is None
                or not supports(call.function, argument)
            ):
                return None
            ansi = is_ansi(gateway)
            spec = Aggregate(call.function, _argument(call), gives, call.ignore_nulls, call.parameters, ansi)
            found.append((call.name, spec, kind))
        return found

    def select(
        self, select: Select, tokens: TokenList, text: Callable[[Range], SqlText], *, varies: bool = True
    ) -> SqlText:
        """SELECT and HAVING over the groups, whose key in the text is `GROUPS`; with times if it varies."""
        items = [
            SqlText.of(self._over(item, text), f" AS c{number}")
            for number, item in enumerate(_without_aliases(tokens, select.items))
        ]
        times = f", {ENTER}, {LEAVE}" if varies else ""
        query = SqlText.of("SELECT ", SqlText.join(", ", items), f"{times} FROM ", Relation(GROUPS))
        if select.having is None:
            return query
        return SqlText.of(query, " WHERE ", self._over(select.having, text))

    def tells_apart(self, select: Select, tokens: TokenList, made: DataFrame) -> bool:
        """Whether SELECT has all keys and aggregates as they are: equal rows in turn are then one row."""
        shown = {self.replaced.get(item) for item in _without_aliases(tokens, select.items)}
        kinds = [arrow_type(made.schema[call.name].dataType) for call in self.calls.values()]
        every = {*self.key_names, *(call.name for call in self.calls.values())}
        return every <= shown and all(kind and is_compared(kind) for kind in kinds)

    def _over(self, stretch: Range, text: Callable[[Range], SqlText]) -> SqlText:
        parts: list[SqlText | str] = []
        at, stop = stretch
        for (first, last), name in sorted(self.replaced.items()):
            if stretch[0] <= first and last <= stop and first >= at:
                if at < first:
                    parts.append(text((at, first)))
                parts.append(f" {name} ")
                at = last
        if at < stop:
            parts.append(text((at, stop)))
        return SqlText.of(*parts)


def groups_of(
    tokens: TokenList,
    select: Select,
    keys: Sequence[tuple[Range, SqlText]],
    text: Callable[[Range], SqlText],
    clauses: Sequence[Range] = (),
    parts: Sequence[Range] = (),
) -> Groups | None:
    """The groups of a block, None where an aggregate or a part of SELECT is beyond the kernel.

    `keys` are the expressions of GROUP BY and where they stand; `text` gives the text of a stretch. Groups
    are read by SELECT, HAVING and further `clauses`; `parts` of these may be keys as a whole.
    """
    stretches = [*select.items, *([select.having] if select.having is not None else []), *clauses]
    if any(tokens.is_symbol(start, "*") for start, _ in select.items):
        return None
    calls = find_calls(tokens, list(stretches), text)
    if any(
        call.function is None or call.argument is None or call.function in _ARBITRARY
        for call in calls.values()
    ):
        return None
    replaced = {at: call.name for at, call in calls.items()}
    for number, (key, _) in enumerate(keys):
        for stretch in [*_without_aliases(tokens, select.items), *stretches[len(select.items) :], *parts]:
            for found in _places(tokens, key, stretch):
                inside = any(first < found[1] and found[0] < last for first, last in replaced)
                if not inside:
                    replaced[found] = f"__g{number}"
    return Groups(tuple(key for _, key in keys), calls, replaced)


def _counts_rows(call: AggregateCall) -> bool:
    return call.function == "count" and call.argument is not None and call.argument.text.render() == "1"


def _argument(call: AggregateCall) -> str:
    return f"__of{call.name}"


def _places(tokens: TokenList, key: Range, stretch: Range) -> list[Range]:
    """Where the expression of a key stands in a stretch: a path anywhere, others as the whole of it."""
    words = [_folded(tokens, at) for at in range(*key)]
    is_path = all(tokens[at].is_name or tokens.is_symbol(at, ".") for at in range(*key))
    found = []
    for start in range(stretch[0], stretch[1] - len(words) + 1):
        stop = start + len(words)
        if [_folded(tokens, at) for at in range(start, stop)] != words:
            continue
        beside = (
            tokens.is_symbol(start - 1, ".") or tokens.is_symbol(stop, ".") or tokens.is_symbol(stop, "(")
        )
        if (start, stop) == stretch or (is_path and not beside):
            found.append((start, stop))
    return found


def _folded(tokens: TokenList, at: int) -> str:
    """A token's text, names and words in small letters."""
    return tokens[at].text.lower() if tokens[at].is_name else tokens[at].text


def _without_aliases(tokens: TokenList, items: Sequence[Range]) -> list[Range]:
    return [without_alias(tokens, item) for item in items]

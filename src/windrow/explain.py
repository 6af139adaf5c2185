"""EXPLAIN: the algebra of a statement, how each window is computed, and why so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from windrow.algebra.continuous import ChangelogOf, Continuous, StreamQuery, WindowedStream
from windrow.algebra.names import ROW, order_key, partition_key
from windrow.algebra.nodes import Boundary, Fragment, Statement
from windrow.algebra.physical import Draft, Found
from windrow.errors import Span
from windrow.rules.kernel_plan import needs_join
from windrow.spark.batch import BoundWindow
from windrow.syntax.sqltext import Relation as Reference
from windrow.syntax.sqltext import SqlText

__all__ = ["explain", "explain_continuous"]

_CHEAP = ("always", "unbounded")
_INTERNAL = re.compile(r"\b__(?=[poh]\d+\b|aggregate\d+\b)")


def explain(statement: Statement, bound: tuple[BoundWindow, ...]) -> str:
    """The plan as text: each window, inputs first, then the SQL that reads them."""
    names = {item.window.key: f"windows {number}" for number, item in enumerate(bound, 1)}
    parts = [_window(number, item, names) for number, item in enumerate(bound, 1)]
    parts.append(_section("Spark SQL", [("query", _shown(statement.text, names))]))
    return _INTERNAL.sub("", "\n\n".join(parts))


def _window(number: int, item: BoundWindow, names: dict[str, str]) -> str:
    window, draft = item.window, item.draft
    lines = [
        ("rows", _shown(_without_keys(window.rows), names)),
        ("type", "TUMBLING" if window.tumbling else "SLIDING"),
        (
            "partition by",
            ", ".join(_text(key, names) for key in window.partition_by) or "nothing: one sequence",
        ),
        (
            "order by",
            ", ".join(
                _order(key, order.descending, order.nulls_first, names) for key, order in window.order_by
            ),
        ),
        ("", "ties are in an arbitrary order, the same throughout the query"),
    ]
    for boundary in window.boundaries():
        lines.append((boundary.side.value, _boundary(boundary, names)))
        lines.append(("", _strategy(boundary, draft)))
    if window.end is None:
        lines += [("end", "none: a window runs to the row before the next start")]
    for item_ in draft.hoisted:
        lines.append(
            ("column", f"{item_.name} = {_shown(item_.text, names) if item_.column is None else 'a Column'}")
        )
    for name, text in draft.constants:
        lines.append(("constant", f"{name} = {_shown(text, names)}"))
    for call, column in draft.kernel_aggregates:
        lines.append(
            (
                "aggregate",
                f"{_shown(call.text, names)}: {call.function} of {column or 'rows'}, in the kernel",
            )
        )
    for call in draft.spark_aggregates:
        lines.append(("aggregate", f"{_shown(call.text, names)}: by Spark, over the exploded windows"))
    for name, fields in draft.fields:
        kept = ", ".join(field for field, _ in fields) or "its position"
        lines.append(("gives", f"{name}: {kept}"))
    if item.reads_files:
        lines.append(("reads", "the Parquet files, in the tasks themselves"))
    lines.append(("exchange", _exchange(item)))
    lines += [("", text) for text in _after_exchange(item)]
    return _section(f"{number} WINDOW BY {window.name}", lines)


def _strategy(boundary: Boundary, draft: Draft) -> str:
    found: Found | None = draft.search(boundary.side)
    if found is not None and needs_join(draft) and found.join is None and found.search.strategy not in _CHEAP:
        return "strategy: given (Spark finds this boundary too, as the other one needs it)"
    if found is not None:
        return f"strategy: {found.search.strategy} ({found.reason})"
    if boundary.unbounded:
        return "one window, from the first row of the partition"
    predicate = draft.predicate(boundary.side)
    if predicate is None:
        return "every row"
    if predicate.typed is None:
        return f"the rows where it is true, by Spark ({predicate.why_not})"
    return "the rows where it is true"


def _boundary(boundary: Boundary, names: dict[str, str]) -> str:
    words = [f"{variable.role.value} {variable.name}" for variable in boundary.variables]
    if boundary.only:
        words.insert(0, "ONLY")
    if boundary.unbounded:
        words.append("UNBOUNDED")
    if boundary.when is not None:
        words.append(f"WHEN {_text(boundary.when, names)}")
    return " ".join(words) or "every row"


def _exchange(item: BoundWindow) -> str:
    """What Spark will shuffle."""
    columns = [partition_key(number) for number in range(len(item.window.partition_by))]
    columns += [order_key(number) for number in range(len(item.window.order_by))]
    shared = dict(item.draft.shared)
    columns = [name for name in columns if name not in shared]
    columns += [hoisted.name for hoisted in item.draft.hoisted]
    to = "by hash of the partition keys" if item.window.partition_by else "to one task"
    return f"{', '.join(columns)}: in chunks {to}, then sorted"


def _after_exchange(item: BoundWindow) -> list[str]:
    if needs_join(item.draft):
        return ["before it, the rows are joined with themselves"]
    if item.window.tumbling and item.window.label is not None:
        return []
    return ["a long partition in slices, by ranges of the first order key"]


def _order(key: Fragment, descending: bool, nulls_first: bool, names: dict[str, str]) -> str:
    direction = "DESC" if descending else "ASC"
    return f"{_text(key, names)} {direction} NULLS {'FIRST' if nulls_first else 'LAST'}"


def _text(fragment: Fragment, names: dict[str, str]) -> str:
    return "a Column" if fragment.column is not None else _shown(fragment.text, names)


def _shown(text: SqlText, names: dict[str, str]) -> str:
    return " ".join(text.render(names).replace(f"{ROW}.", "").split())


def _without_keys(rows: SqlText) -> SqlText:
    """The input's SQL as the user would write it: what we select from it is listed below it."""
    for index, part in enumerate(rows.parts):
        if not isinstance(part, Reference) and part.text.startswith("struct(*"):
            rest = rows.parts[index + 1 :]
            source = next(
                (
                    at
                    for at, piece in enumerate(rest)
                    if not isinstance(piece, Reference) and _begins(piece.text)
                ),
                None,
            )
            if source is not None:
                return SqlText((*rows.parts[:index], *(SqlText.of("* ").parts), *rest[source:]))
    return rows


def _begins(text: str) -> bool:
    return text.lstrip().upper().startswith("FROM")


def _section(title: str, lines: list[tuple[str, str]]) -> str:
    width = max(len(name) for name, _ in lines) + 2
    return "\n".join([title, *(f"  {name:<{width}}{text}" for name, text in lines)])


def explain_continuous(query: Continuous, by_instants: Mapping[Span, str]) -> str:
    """The plan of a continuous query as text: its inputs, then the SQL that is evaluated over them.

    `by_instants` says of the queries that are evaluated instant by instant why they are.
    """
    return "\n\n".join(_continuous(query, by_instants))


def _continuous(query: Continuous, by_instants: Mapping[Span, str]) -> Iterator[str]:
    relation = query.query if isinstance(query, StreamQuery) else query
    names: dict[str, str] = {}
    for number, item in enumerate(relation.inputs, 1):
        names[item.key] = f"input {number}"
        if isinstance(item, WindowedStream) and isinstance(item.source, StreamQuery):
            yield from _continuous(item.source, by_instants)
        elif isinstance(item, ChangelogOf):
            yield from _continuous(item.query, by_instants)
        yield _section(names[item.key], [("relation", relation.sql[item.span.start : item.span.stop])])
    title = query.kind if isinstance(query, StreamQuery) else "relation"
    why = by_instants.get(relation.span)
    how = "evaluated for whole logs" if why is None else f"evaluated instant by instant: {why}"
    yield _section(title, [("query", _shown(relation.text, names)), ("", how)])

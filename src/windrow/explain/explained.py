"""EXPLAIN: the clauses of a statement, the strategy of each window, and the reason for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.continuous import ChangelogOf, Continuous, Query, StreamQuery, WindowedStream
from windrow.algebra.names import ROW, order_key, partition_key, without_since
from windrow.algebra.physical import FoundBoundary, PlanDraft
from windrow.algebra.window_node import WindowBoundary
from windrow.errors import Span
from windrow.explain.explain_match import explain_match
from windrow.explain.explain_text import (
    constants,
    not_exchanged,
    one_line,
    order,
    section,
    text_of,
    without_keys,
)
from windrow.plan.nodes import Aggregate, Node, Pieces, walk
from windrow.plan.reasons import Reason
from windrow.rules.kernel_plan import needs_join
from windrow.spark.clauses.batch import Bound, BoundWindow
from windrow.spark.clauses.matching import BoundMatch
from windrow.spark.gateway import Gateway
from windrow.spark.relations.aggregates_of_plan import kernel_aggregates

__all__ = ["explain", "explain_clause", "explain_continuous"]

_IN_PART = "a part by Spark, over pieces of time"
_KEYS = re.compile(rf"struct\(\*\) AS {ROW}\b.*?(?=FROM input \d)")
"""The columns selected from the rows of a clause: the rows themselves, and its keys."""
_INTERNAL = re.compile(r"\b__(?=[pohamd]\d+\b|aggregate\d+\b)|\b__of_|\b__twin\d+_")


def explain(statement: BoundStatement, bound: tuple[Bound, ...]) -> str:
    """The plan as text: each window and each pattern, inputs first, then the SQL that reads them."""
    names = {
        item.match.key if isinstance(item, BoundMatch) else item.window.key: (
            f"matches {number}" if isinstance(item, BoundMatch) else f"windows {number}"
        )
        for number, item in enumerate(bound, 1)
    }
    parts = [
        explain_match(number, item, names) if isinstance(item, BoundMatch) else _window(number, item, names)
        for number, item in enumerate(bound, 1)
    ]
    parts.append(section("Spark SQL", [("query", one_line(statement.text, names))]))
    return _INTERNAL.sub("", "\n\n".join(parts))


def _window(
    number: int, item: BoundWindow, names: dict[str, str], more: Iterable[tuple[str, str]] = ()
) -> str:
    window, draft = item.window, item.draft
    lines = [
        ("rows", one_line(without_keys(window.rows), names)),
        ("type", "TUMBLING" if window.tumbling else "SLIDING"),
        (
            "partition by",
            ", ".join(text_of(key, names) for key in window.partition_by) or "nothing: one sequence",
        ),
        (
            "order by",
            ", ".join(order(key, item.descending, item.nulls_first, names) for key, item in window.order_by),
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
            (
                "column",
                f"{item_.name} = {one_line(item_.text, names) if item_.column is None else 'a Column'}",
            )
        )
    lines += constants(draft, names)
    where = "in the kernel" if item.native is None else "by Spark"
    for call, column in draft.kernel_aggregates:
        lines.append(
            (
                "aggregate",
                f"{one_line(call.text, names)}: {call.function} of {column or 'rows'}, {where}",
            )
        )
    for call in draft.spark_aggregates:
        lines.append(("aggregate", f"{one_line(call.text, names)}: by Spark, over the exploded windows"))
    for name, fields in draft.fields:
        columns = ", ".join(field for field, _ in fields) or "its position"
        lines.append(("output", f"{name}: {columns}"))
    if item.native is not None:
        frame = item.native.frame
        over = f"ROWS BETWEEN {frame.before} PRECEDING AND {frame.after} FOLLOWING"
        lines += [("native", f"by Spark's OVER, {over}"), ("", item.native.reason)]
    else:
        lines += zip(("reads", ""), item.reads, strict=False)
        if item.exchanges:
            lines.append(("exchange", _exchange(item)))
            lines += [("", text) for text in _after_exchange(item)]
        else:
            lines.append(("exchange", not_exchanged(in_slices=item.has_slices)))
    lines += more
    return section(f"{number} WINDOW BY {window.name}", lines)


def _strategy(boundary: WindowBoundary, draft: PlanDraft) -> str:
    found: FoundBoundary | None = draft.search(boundary.side)
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


def _boundary(boundary: WindowBoundary, names: dict[str, str]) -> str:
    words = [f"{variable.role.value} {variable.name}" for variable in boundary.variables]
    if boundary.only:
        words.insert(0, "ONLY")
    if boundary.unbounded:
        words.append("UNBOUNDED")
    if boundary.when is not None:
        words.append(f"WHEN {text_of(boundary.when, names)}")
    return " ".join(words) or "every row"


def _exchange(item: BoundWindow) -> str:
    """The columns that Spark shuffles, and how."""
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


def explain_clause(bound: Bound, how: str) -> str:
    """The section of a clause in a query over windows in brackets, and how it is evaluated over time."""
    more = [("over time", how)]
    match bound:
        case BoundMatch():
            text = explain_match(1, bound, {}, more)
        case BoundWindow():
            text = _window(1, bound, {}, more)
    return _INTERNAL.sub("", text).removeprefix("1 ")


def explain_continuous(
    gateway: Gateway, query: Continuous, plans: Mapping[Span, Node], *, only_live: bool = False
) -> str:
    """The plan of a continuous query as text: its inputs, then the SQL that is evaluated over them.

    Parameters
    ----------
    plans
        Those of its queries; the reference interpreter has none.
    only_live
        Whether it is not evaluated over what is recorded: how it is, stands elsewhere.
    """
    text = "\n\n".join(_continuous(gateway, query, plans, only_live=only_live))
    return _INTERNAL.sub("", without_since(text))


def _continuous(
    gateway: Gateway, query: Continuous, plans: Mapping[Span, Node], *, only_live: bool
) -> Iterator[str]:
    relation = query.query if isinstance(query, StreamQuery) else query
    names: dict[str, str] = {}
    for number, item in enumerate(relation.inputs, 1):
        names[item.key] = f"input {number}"
        if isinstance(item, WindowedStream) and isinstance(item.source, StreamQuery):
            yield from _continuous(gateway, item.source, plans, only_live=only_live)
        elif isinstance(item, ChangelogOf):
            yield from _continuous(gateway, item.query, plans, only_live=only_live)
        written = " ".join(relation.sql[item.span.start : item.span.stop].split())
        yield section(names[item.key], [("relation", written)])
    title = query.kind if isinstance(query, StreamQuery) else "relation"
    how = [] if only_live else [("", _how(gateway, relation, plans.get(relation.span)))]
    written = _KEYS.sub("* ", one_line(relation.text, names))
    yield section(title, [("query", written), *how])


def _how(gateway: Gateway, relation: Query, plan: Node | None) -> str:
    """How a query is evaluated, and why Spark evaluates parts of it over intervals of time."""
    if plan is None and not relation.is_temporal:
        return "evaluated by Spark: a table of changes"
    if plan is None:
        return "evaluated instant by instant: the reference"
    parts = dict.fromkeys(part for node in walk(plan) if (part := _by_spark(gateway, node)) is not None)
    return "; ".join(["evaluated for whole logs", *parts])


def _by_spark(gateway: Gateway, node: Node) -> str | None:
    """The part of a node that Spark evaluates because no operator can, with the reason."""
    match node:
        case Pieces():
            how = "by Spark at each piece of time" if node.input is None else _IN_PART
            return f"{how}: {node.why}"
        case Aggregate():
            specs = kernel_aggregates(gateway, node)
            return f"{_IN_PART}: {specs}" if isinstance(specs, Reason) else None
    return None

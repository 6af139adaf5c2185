"""Rule: a key that is a plain field of the rows and is carried anyway is sent once.

PARTITION BY station … SELECT s.station   →   the key is the column of s.station
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from windrow.algebra.match_node import Match
from windrow.algebra.names import of_relation, order_key, partition_key
from windrow.algebra.physical import Analyzer, Hoisted, PlanDraft, field_of, find_field, is_field
from windrow.algebra.window_node import Window, WindowFragment
from windrow.syntax.expression_nodes import Name

__all__ = ["plain_field", "share_keys", "shared_keys"]


def share_keys(draft: PlanDraft, analyzer: Analyzer) -> PlanDraft:
    """Fill in `shared`: the keys that are hoisted columns, with the column of each."""
    return replace(draft, shared=shared_keys(draft.window, draft.hoisted, analyzer.fields))


def shared_keys(
    window: Window | Match, hoisted: Iterable[Hoisted], fields: Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    """The keys that are hoisted columns, with the column of each."""
    carried = {field_of(item): item.name for item in hoisted if is_field(item)}
    keys = {partition_key(number): key for number, key in enumerate(window.partition_by)}
    keys |= {order_key(number): key for number, (key, _) in enumerate(window.order_by)}
    shared = {}
    for name, key in keys.items():
        field = plain_field(key, fields)
        if field in carried:
            shared[name] = carried[field]
    return tuple(shared.items())


def plain_field(key: WindowFragment, fields: Mapping[str, str]) -> str | None:
    """The field that a key is, if it is one; it may be qualified."""
    match key.expression:
        case Name(parts=(column,)):
            return find_field(fields, column)
        case Name(parts=(relation, column)):
            return find_field(fields, of_relation(relation.lower(), column.lower()))
    return None

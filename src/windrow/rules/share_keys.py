"""Rule: a key that is a plain field of the rows and is carried anyhow travels once.

PARTITION BY station … SELECT s.station   →   the key is the column of s.station
"""

from __future__ import annotations

from dataclasses import replace

from windrow.algebra.names import ROW, order_key, partition_key
from windrow.algebra.nodes import Fragment
from windrow.algebra.physical import Analyzer, Draft, field_of, find_field
from windrow.syntax.expressions import Name

__all__ = ["share_keys"]


def share_keys(draft: Draft, analyzer: Analyzer) -> Draft:
    """Fill in `shared`: the keys that are hoisted columns, with the column of each."""
    carried = {field_of(item): item.name for item in draft.hoisted if item.variable == ROW}
    keys = {partition_key(number): key for number, key in enumerate(draft.window.partition_by)}
    keys |= {order_key(number): key for number, (key, _) in enumerate(draft.window.order_by)}
    shared = {}
    for name, key in keys.items():
        field = _plain_field(key, analyzer)
        if field in carried:
            shared[name] = carried[field]
    return replace(draft, shared=tuple(shared.items()))


def _plain_field(key: Fragment, analyzer: Analyzer) -> str | None:
    name = key.expression
    if not isinstance(name, Name) or len(name.parts) != 1:
        return None
    return find_field(analyzer.fields, name.parts[0])

"""From a window to its plan: a tuple of rules, in one file each.

Every rule takes a draft and an analyzer and returns the draft with its part filled in.
"""

from __future__ import annotations

from windrow.algebra.physical import Analyzer, PlanDraft
from windrow.algebra.window_node import Window
from windrow.rules.choose_strategies import choose_strategies
from windrow.rules.hoist_predicates import hoist_predicates
from windrow.rules.prune_fields import prune_fields
from windrow.rules.push_aggregates import push_aggregates
from windrow.rules.share_keys import share_keys

__all__ = ["RULES", "optimize"]

RULES = (
    hoist_predicates,
    choose_strategies,
    push_aggregates,
    prune_fields,
    share_keys,
)


def optimize(window: Window, analyzer: Analyzer) -> PlanDraft:
    """Apply every rule in turn."""
    draft = PlanDraft(window)
    for rule in RULES:
        draft = rule(draft, analyzer)
    return draft

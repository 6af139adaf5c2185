"""Reads the text of Spark's plans: the one public way to learn what Spark will do with a DataFrame.

What is not understood is not acted upon.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["optimized", "physical", "plain_choice"]

_PLAIN = r"(?!NOT )\w[^,.`#]*"  # -x and NOT x are shown as if they were names


def optimized(plan: str) -> list[str]:
    """The operators of the optimized plan, the last first, in EXPLAIN COST."""
    lines = _section(plan, "Optimized Logical Plan")
    return [line.rpartition(", Statistics(")[0] or line for line in lines]


def physical(plan: str) -> list[str]:
    """The operators of the physical plan, the last first, in EXPLAIN COST."""
    return [re.sub(r"^\*\(\d+\) ", "", line) for line in _section(plan, "Physical Plan")]


def _section(plan: str, title: str) -> list[str]:
    text = plan.partition(f"== {title} ==\n")[2].partition("\n\n")[0]
    return [re.sub(r"^[\s:]*\+- ", "", line) for line in text.splitlines() if line.strip()]


def plain_choice(
    operator: str, names: Sequence[str], columns: Sequence[str] | None = None
) -> tuple[str, ...] | None:
    """The input columns that a Project gives under these names; None if it does more than choose and rename.

    Parameters
    ----------
    operator
        Of the optimized plan.
    names
        The columns of its output.
    columns
        Those of its input; by default any whose name plans show without doubt.
    """
    column = _PLAIN if columns is None else "|".join(map(re.escape, columns))
    items = [
        rf"(?:(?P<from{at}>{column})#\d+L? AS {re.escape(name)}|(?P<as{at}>{re.escape(name)}))#\d+L?"
        for at, name in enumerate(names)
    ]
    found = re.fullmatch(rf"Project \[{', '.join(items)}\]", operator)
    if found is None:
        return None
    return tuple(found[f"from{at}"] or found[f"as{at}"] for at in range(len(names)))

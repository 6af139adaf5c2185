"""Reads the text of Spark's plans: the one public way to learn what Spark will do with a DataFrame.

What is not understood is not acted upon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

__all__ = ["chosen_fields", "is_cut", "optimized", "plain_choice"]

_PLAIN = r"(?!NOT )\w[^,`#]*"  # -x and NOT x are shown as if they were names
_NEVER = r"(?!)"


def optimized(plan: str) -> list[str]:
    """The operators of the optimized plan, the last first, in EXPLAIN COST."""
    lines = _section(plan, "Optimized Logical Plan")
    return [line.rpartition(", Statistics(")[0] or line for line in lines]


def _section(plan: str, title: str) -> list[str]:
    text = plan.partition(f"== {title} ==\n")[2].partition("\n\n== ")[0]
    return [re.sub(r"^[\s:]*[+:]- ", "", line) for line in text.splitlines() if line.strip()]


def is_cut(line: str) -> bool:
    """Whether Spark has left out some of the many parts of an operator."""
    return re.search(r"\.\.\. \d+ more (fields|characters)", line) is not None


def _is_plain(name: str) -> bool:
    """Whether plans show a name without doubt: no expression looks like it."""
    return re.fullmatch(_PLAIN, name) is not None


def plain_choice(operator: str, names: Sequence[str], columns: Sequence[str]) -> tuple[str, ...] | None:
    """The input columns that a Project gives under these names; None if it does more than choose and rename.

    Parameters
    ----------
    operator
        Of the optimized plan.
    names
        The columns of its output.
    columns
        Those of its input. Only those whose names plans show without doubt are renamed.
    """
    column = "|".join(re.escape(name) for name in columns if _is_plain(name)) or _NEVER
    items = [
        rf"(?:(?P<from{at}>{column})#\d+L? AS {re.escape(name)}|(?P<as{at}>{re.escape(name)}))#\d+L?"
        for at, name in enumerate(names)
    ]
    found = re.fullmatch(rf"Project \[{', '.join(items)}\]", operator)
    if found is None:
        return None
    return tuple(found[f"from{at}"] or found[f"as{at}"] for at in range(len(names)))


def chosen_fields(
    operator: str, names: Sequence[str], columns: Mapping[str, Sequence[str]]
) -> tuple[tuple[str, str | None], ...] | None:
    """As :func:`plain_choice`; an output may be a field of an input that is a struct.

    Parameters
    ----------
    operator, names
        As there.
    columns
        Those of the input, with their fields.

    Returns
    -------
    tuple
        Of each output, the input column, and the field; None for the column itself.
    """
    shown: dict[str, tuple[str, str | None]] = {}
    for name in filter(_is_plain, columns):
        shown[rf"{re.escape(name)}#\d+L?"] = (name, None)
        # s#1.a.b is the field b of s.a, not the field `a.b` of s; a.b#1 is the column `a.b`
        fields = [field for field in columns[name] if _is_plain(field) and "." not in field]
        shown |= {rf"{re.escape(name)}#\d+\.{re.escape(field)}": (name, field) for field in fields}
    if not operator.startswith("Project [") or not operator.endswith("]"):
        return None
    rest, found = operator.removeprefix("Project ["), []
    for at, name in enumerate(names):
        end = r"\]$" if at == len(names) - 1 else ", "
        for path, origin in shown.items():
            own = f"(?:{path} AS )" + ("?" if origin == (name, None) else "")
            taken = re.match(rf"{own}{re.escape(name)}#\d+L?{end}", rest)
            if taken is not None:
                rest = rest[taken.end() :]
                found.append(origin)
                break
        else:
            return None
    return tuple(found)

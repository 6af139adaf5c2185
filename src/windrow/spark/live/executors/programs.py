"""Which programs buckets run, and by which columns of their leaves rows are divided."""

from __future__ import annotations

from collections.abc import Sequence

from windrow.kernels.stages import Division, Program
from windrow.spark.live.operators.flow import computed_elsewhere

__all__ = ["keys_of", "why_not_program"]


def why_not_program(program: Program, keys: Sequence[Sequence[str]] | None) -> str | None:
    """What of a program buckets do not run, of which rows are divided by these columns; None for nothing."""
    if program.beginning is not None:
        return "groups without keys, or a table"
    why = computed_elsewhere(program)
    if why is not None or keys is not None:
        return why
    return "operators whose keys have no column of the streams in common, which the result shows"


def keys_of(found: Sequence[Division], leaves: Sequence[int]) -> tuple[tuple[str, ...], ...] | None:
    """Of each leaf the columns by which all divisions have it that have all leaves; None where none has."""
    whole = [one for one in found if one.keys() == {*leaves}]
    if not whole:
        return None
    return tuple(tuple(dict.fromkeys(one[leaf] for one in whole)) for leaf in leaves)

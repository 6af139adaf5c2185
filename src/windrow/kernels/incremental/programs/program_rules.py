"""The rules by which programs are rewritten before they run, on either host."""

from __future__ import annotations

from windrow.kernels.incremental.programs.operator_program import Program
from windrow.kernels.incremental.programs.over_panes import over_panes
from windrow.kernels.incremental.programs.repeated_nodes import without_repeated

__all__ = ["RULES", "rewritten"]

RULES = (without_repeated, over_panes)


def rewritten(program: Program) -> Program:
    """The program that runs."""
    for rule in RULES:
        program = rule(program)
    return program

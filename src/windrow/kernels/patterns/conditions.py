"""Compiles the machine together with the conditions that read registers.

The conditions become one function, a branch a label, whose meaning is that of :mod:`windrow.kernels.pairs`:
the statements are written by :mod:`windrow.kernels.codegen`. The columns that it reads travel as `data`.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from windrow.kernels.codegen import OPTIONS, NoFormError, Translator
from windrow.kernels.compiled import loaded, plain
from windrow.kernels.pairs import Array, Rows
from windrow.kernels.patterns import machine
from windrow.kernels.patterns.plan import Condition
from windrow.kernels.plan import Operation

__all__ = ["compiled_run"]


def compiled_run(parts: list[Condition], rows: Rows, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The machine as machine code, which takes `arguments`; None where a part or numba does not allow it."""
    try:
        source, data = _condition(parts, rows)
    except NoFormError:
        return None
    source = f"{_head()}{source}\n\n{_run_source()}"
    name = f"run_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    source = source.replace("def run(", f"def {name}(")
    data = tuple(plain(item) for item in data)
    given = (*(plain(item) for item in arguments), data)
    function = loaded(name, source, given)
    if function is None:
        return None
    return lambda *_: function(*given)


# lists of rows are kept in Python alone
_STUB = f"@numba.njit(**{OPTIONS!r})\ndef interned(before, row):\n    return np.int64(-1)\n\n"


def _head() -> str:
    grown = f"@numba.njit(**{OPTIONS!r})\n{inspect.getsource(machine.grown)}"
    return f"from __future__ import annotations\n\nimport numba\nimport numpy as np\n\n\n{_STUB}\n{grown}\n\n"


@lru_cache(maxsize=1)
def _run_source() -> str:
    return inspect.getsource(machine.run)


def _condition(parts: list[Condition], rows: Rows) -> tuple[str, tuple[Array | np.generic, ...]]:
    """The function and its data."""
    data: list[Array | np.generic] = []
    places: dict[Hashable, str] = {}
    lines = [f"@numba.njit(**{OPTIONS!r})", "def condition(label, j, registers, begin, end, data):"]
    for label in sorted({part.label for part in parts}):
        operands = tuple(part.expression for part in parts if part.label == label)
        whole = Operation("AND", operands) if len(operands) > 1 else operands[0]
        lines.append(f"    if label == {label}:")
        lines += _Branch(rows, label, data, places).lines(whole)
    return "\n".join([*lines, "    return 1", ""]), tuple(data)


class _Branch(Translator):
    """The statements of one label's condition."""

    def __init__(
        self, rows: Rows, label: int, data: list[Array | np.generic], places: dict[Hashable, str]
    ) -> None:
        super().__init__(rows, {}, "row")
        self.label, self.arguments, self.parameters = label, data, places
        self.per_row.depth = self.per_window.depth = 2

    def lines(self, expression: Any) -> list[str]:
        value = self.value(expression)
        known = "" if value.known is None else f" and {value.known}"
        answer = f"        return 1 if ({value.truth}){known} else 0"
        return [*self.per_window.lines, *self.per_row.lines, answer]

    def parameter(self, key: Hashable, value: Array | np.generic) -> str:
        if key not in self.parameters:
            self.parameters[key] = f"data[{len(self.arguments)}]"
            self.arguments.append(value)
        return self.parameters[key]

    def variable(self) -> str:
        self.variables += 1
        return f"v{self.label}_{self.variables}"

    def fail_if(self, wrong: str, known: str | None) -> None:
        both = f"({wrong})" if known is None else f"({known}) & ({wrong})"
        with self.per_row.inside(f"if {both}:"):
            self.per_row.add("return -1")

    def row(self, side: str, shift: int) -> tuple[str, str | None]:
        if side == self.target:
            return super().row(side, shift)
        if (side, shift) not in self.window_rows:
            index, there = self.window_rows[side, shift] = self.variable(), self.variable()
            self.per_window.add(f"{index} = registers[{side.removeprefix('r')}]")
            self.per_window.add(f"{there} = {index} >= 0")
            if shift:
                with self.per_window.inside(f"if {there}:"):
                    self.per_window.add(f"{index} = {index} + {shift}")
                    self.per_window.add(f"{there} = begin <= {index} < end")
        return self.window_rows[side, shift]

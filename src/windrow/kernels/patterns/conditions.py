"""Compiles the machine, and the conditions that read registers.

The conditions become one function with a branch for each label, whose meaning is that of
:mod:`windrow.kernels.pairs`; :mod:`windrow.kernels.compiling.codegen` writes the statements. The columns that
it reads are passed as addresses, so all such functions have one signature. The machine takes fifty times as
long to compile, so it is compiled once for all of them.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Hashable
from functools import lru_cache
from typing import Any

import numpy as np

from windrow.kernels.compiling.codegen import OPTIONS, NoFormError, Translator
from windrow.kernels.compiling.compiled import compiled, plain
from windrow.kernels.pairs import Array, PairRows
from windrow.kernels.patterns import machine
from windrow.kernels.patterns.pattern_plan import PatternCondition
from windrow.kernels.window_plan import Operation

__all__ = ["compiled_run"]


_ready: set[str] = set()
_searched: dict[str, int] = {}


def compiled_run(
    parts: list[PatternCondition], rows: PairRows, arguments: tuple[Any, ...], *, worth: int = 0
) -> Callable[..., Any] | None:
    """The compiled machine, which takes `arguments`; None if a part or numba does not allow it.

    It is compiled only after `worth` rows in total.
    """
    try:
        source, data = _condition(parts, rows)
    except NoFormError:
        return None
    name = f"condition_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    _searched[name] = _searched.get(name, 0) + rows.table.num_rows
    if name not in _ready and _searched[name] < worth:
        return None
    arrays = tuple(np.atleast_1d(plain(item)) for item in data)
    addresses = np.array([part for one in arrays for part in (one.ctypes.data, len(one))], np.int64)
    values = (*map(plain, arguments), plain(addresses))
    functions = _functions(name, source.replace("def condition(", f"def {name}("), values)
    if functions is None:
        return None
    _ready.add(name)
    run, condition = functions

    def bound(*_: Any) -> Any:
        found = run(condition, *values)
        assert arrays is not None  # they live as long as their addresses are read
        return found

    return bound


def _functions(name: str, source: str, values: tuple[Any, ...]) -> tuple[Callable[..., Any], ...] | None:
    """The machine and the condition; None without numba."""
    try:
        import numba
    except ImportError:
        return None
    whole, value_kinds = numba.int64, tuple(map(numba.typeof, values))
    kinds = (whole, whole, numba.types.Array(whole, 1, "A"), whole, whole, value_kinds[-1])
    condition = compiled(name, source, kinds)
    machine_source, machine_name = _machine()
    run = compiled(machine_name, machine_source, (numba.types.FunctionType(whole(*kinds)), *value_kinds))
    return None if condition is None or run is None else (run, condition)


# the machine alone calls these functions: they need no way in from Python
_INNER = f"@numba.njit(**{OPTIONS | {'no_cpython_wrapper': True, 'no_cfunc_wrapper': True}!r})\n"
# lists of rows are retained in Python alone
_STUB = f"{_INNER}def interned(before, row):\n    return np.int64(-1)\n\n"


@lru_cache(maxsize=1)
def _machine() -> tuple[str, str]:
    """The source of the machine, which takes the condition as its first argument, and its name."""
    head = "from __future__ import annotations\n\nimport numba\nimport numpy as np\n\n\n"
    grown = f"{_INNER}{inspect.getsource(machine.grown)}\n\n"
    source = f"{head}{_STUB}\n{grown}{inspect.getsource(machine.run)}"
    name = f"run_{hashlib.sha256(source.encode()).hexdigest()[:24]}"
    return source.replace("def run(", f"def {name}(condition, "), name


def _condition(parts: list[PatternCondition], rows: PairRows) -> tuple[str, tuple[Array | np.generic, ...]]:
    """The function and its data."""
    data: list[Array | np.generic] = []
    places: dict[Hashable, str] = {}
    lines: list[str] = []
    for label in sorted({part.label for part in parts}):
        operands = tuple(part.expression for part in parts if part.label == label)
        whole = Operation("AND", operands) if len(operands) > 1 else operands[0]
        lines.append(f"    if label == {label}:")
        lines += _Branch(rows, label, data, places).lines(whole)
    head = [
        "import numba", "import numpy as np", "from windrow.kernels.compiling.addresses import pointer", "",
        "", "def condition(label, j, registers, begin, end, data):",
    ]  # fmt: skip
    for at, item in enumerate(data):
        if item.ndim > 1 or item.dtype.hasobject:
            raise NoFormError
        place = f"pointer(data[{2 * at}]), (data[{2 * at + 1}],), np.dtype('{item.dtype.str}')"
        head.append(f"    d{at} = numba.carray({place}){'' if item.ndim else '[0]'}")
    return "\n".join([*head, *lines, "    return 1", ""]), tuple(data)


class _Branch(Translator):
    """The statements of one label's condition."""

    def __init__(
        self, rows: PairRows, label: int, data: list[Array | np.generic], places: dict[Hashable, str]
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
            self.parameters[key] = f"d{len(self.arguments)}"
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

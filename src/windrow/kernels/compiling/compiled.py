"""Compiles the search for a predicate, and caches the machine code on disk.

Numba is imported and the program of :mod:`windrow.kernels.compiling.codegen` compiled at the first call,
which takes a second or two: for big work only. The next process with a predicate of the same shape loads the
machine code from the cache directory: ``$WINDROW_CACHE_DIR``, else ``windrow`` among the user's caches. A
problem with the directory costs time, but never the result.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from windrow.caches import cache_directory
from windrow.kernels.compiling.codegen import OPTIONS, translate
from windrow.kernels.pairs import Array, PairRows, Sides, satisfied
from windrow.kernels.window_plan import PairExpression

__all__ = ["compiled", "count", "loaded", "patience", "plain", "search"]

_ITERATIONS_BEFORE_COMPILING = (
    1 << 23
)  # take numpy about as long as numba takes to be imported and to compile
_ITERATIONS_BEFORE_CALLING = 1 << 17
_ready: set[PairExpression] = set()
_counted: dict[PairExpression, int] = {}


def patience(predicate: PairExpression) -> int:
    """How many operations numpy executes for a predicate before a compiled search is worthwhile.

    The number is small if this process has compiled the predicate before, and shrinks with the operations of
    earlier searches.
    """
    if predicate in _ready:
        return _ITERATIONS_BEFORE_CALLING
    least = min(_ITERATIONS_BEFORE_CALLING, _ITERATIONS_BEFORE_COMPILING)
    return max(_ITERATIONS_BEFORE_COMPILING - _counted.get(predicate, 0), least)


def count(predicate: PairExpression, iterations: int) -> None:
    """Record that numpy has executed so many operations for a predicate."""
    _counted[predicate] = _counted.get(predicate, 0) + iterations


def search(
    predicate: PairExpression,
    rows: PairRows,
    sides: Sides,
    target: str,
    low: Array,
    stop: Array,
    *,
    rising: bool = False,
) -> Array | None:
    """The first row of each ``[low, stop)`` that satisfies the predicate, −1 if none; None if not compiled.

    Parameters
    ----------
    predicate
        The predicate, tried row by row.
    rows, sides, target, low, stop
        As for :func:`windrow.kernels.strategies.find`.
    rising
        Whether no window's first row is before that of a window before it: then both are gone through once.

    Raises
    ------
    ExecutionError
        As :func:`windrow.kernels.pairs.evaluate`, for a pair that the search reached.
    """
    program = translate(predicate, rows, sides, target, rising=rising)
    if program is None:
        return None
    found = np.full(len(low), -1, np.int64)
    arguments = [found, *map(plain, (low, stop, rows.first, rows.stop, *program.arguments))]
    function = loaded(program.name, program.source, tuple(arguments))
    if function is None:
        return None
    _ready.add(predicate)
    window, row = function(*arguments)
    if window < 0:
        return found
    # numpy raises the error of the pair that failed
    one = slice(window, window + 1)
    satisfied(
        predicate, rows, {side: index[one] for side, index in sides.items()} | {target: np.array([row])}
    )
    return None


def plain(argument: Array | np.generic) -> Array | np.generic:
    """Arrays in one form for numba: contiguous, aligned and read-only."""
    if not isinstance(argument, np.ndarray):
        return argument
    plain = np.require(argument, requirements=["C", "A"]).view()
    plain.flags.writeable = False
    return plain


def loaded(name: str, source: str, arguments: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The function of this name, compiled for these arguments; None where numba cannot.

    The name must be unique to the source: it is the key in the cache.
    """
    try:
        import numba
    except ImportError:
        return None
    return compiled(name, source, tuple(map(numba.typeof, arguments)))


def compiled(name: str, source: str, types: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The function of this name, compiled for arguments of numba's `types`; None where numba cannot."""
    import numba

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return None
    return _loaded(name, source, types)


@lru_cache(maxsize=256)
def _loaded(name: str, source: str, types: tuple[Any, ...]) -> Callable[..., Any] | None:
    """The function from the cache on disk, else compiled; None where neither can be done."""
    try:
        return _compiled(name, source, types, _stored(name, source))
    except Exception:  # whatever a broken file makes pickle raise
        _forget(name)
    try:
        return _compiled(name, source, types, None)
    except Exception:
        return None


def _compiled(name: str, source: str, types: tuple[Any, ...], file: Path | None) -> Callable[..., Any]:
    """The function; numba caches its machine code beside `file`."""
    import numba

    # numba imports the module that a cached function names
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(compile(source, file or f"<{name}>", "exec"), namespace)
    function = numba.njit(namespace[name], cache=file is not None, **OPTIONS)
    function.compile(types)
    function.disable_compile()
    return function  # type: ignore[no-any-return]


def _directory() -> Path:
    """The directory of programs, by interpreter and numba, as their machine code differs."""
    import numba

    return cache_directory() / "kernels" / f"{sys.implementation.cache_tag}-numba-{numba.__version__}"


def _stored(name: str, source: str) -> Path:
    """The file with exactly this source, written if needed: numba caches machine code beside a file."""
    file = _directory() / f"{name}.py"
    content = source.encode()
    if file.is_file() and file.read_bytes() == content:
        return file
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(prefix=f".{name}-", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as out:
            out.write(content)
        # numba trusts its cache for a file of this age: processes that write it at the same time must agree
        os.utime(draft, (0, 0))
        Path(draft).replace(file)
    finally:
        Path(draft).unlink(missing_ok=True)
    return file


def _forget(name: str) -> None:
    """Remove numba's cached code of a program, so that the next process can write it again."""
    with suppress(OSError, RuntimeError):
        for old in (_directory() / "__pycache__").glob(f"{name}.*"):
            old.unlink(missing_ok=True)

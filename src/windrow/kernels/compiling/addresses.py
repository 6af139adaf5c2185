"""Arrays by their addresses, for compiled functions that take data of any types under one signature.

Numba is imported here, so only generated programs import this module.
"""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["pointer"]


@intrinsic
def pointer(_: Any, address: Any) -> Any:
    """An integer as a pointer, which `numba.carray` takes."""

    def generated(*arguments: Any) -> Any:
        _, builder, _, (value,) = arguments
        return builder.inttoptr(value, cgutils.voidptr_t)

    return types.voidptr(address), generated

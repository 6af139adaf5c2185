"""Errors without the frames of ours above them: what a user sees is where the own program asked."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from windrow.errors import WindrowError

__all__ = ["FULL", "briefly", "of_others"]

FULL = "WINDROW_TRACEBACKS"
"""The environment variable that keeps all frames where it is ``full``."""

_OURS = str(Path(__file__).parent) + os.sep
_BETWEEN = (contextlib.__file__, functools.__file__)
_Made = TypeVar("_Made")


def briefly(cls: type[_Made]) -> type[_Made]:
    """Let the public methods of a class raise errors of ours without the frames beneath them.

    Of the frames, those of this package are left out, and those of functions of the user's stay.
    """
    for name, member in list(vars(cls).items()):
        if not name.startswith("_") and inspect.isfunction(member):
            setattr(cls, name, _brief(member))
    return cls


def _brief(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def called(*args: Any, **kwargs: Any) -> Any:
        try:
            return method(*args, **kwargs)
        except WindrowError as error:
            if os.environ.get(FULL) == "full":
                raise
            raise error.with_traceback(of_others(error.__traceback__)) from error.__cause__

    return called


def of_others(trace: TracebackType | None) -> TracebackType | None:
    """The frames that are neither this package's nor Python's own around them."""
    frames = []  # there may be more of them than Python calls functions within each other
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for frame in reversed(frames):
        file = frame.tb_frame.f_code.co_filename
        if not file.startswith(_OURS) and file not in _BETWEEN:
            rest = TracebackType(rest, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return rest

"""Tracebacks of Windrow's errors, and places of its warnings: both end in the user's own code."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import ParamSpec, TypeVar

from windrow.errors import WindrowError

__all__ = ["FULL", "brief", "briefly", "of_others", "warn"]

FULL = "WINDROW_TRACEBACKS"
"""The environment variable that shows all frames when it is ``full``."""

_OURS = ("windrow", "contextlib", "functools", "py4j", "pyspark")
"""This package, and what calls it: Python's own modules, and Spark when it passes on a micro-batch."""
_Made = TypeVar("_Made")
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def briefly(cls: type[_Made]) -> type[_Made]:
    """Decorate a class: its public methods and properties raise Windrow's errors as :func:`brief` does."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_"):
            continue
        if inspect.isfunction(member):
            setattr(cls, name, brief(member))
        elif isinstance(member, staticmethod):
            setattr(cls, name, staticmethod(brief(member.__func__)))
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, member.getter(brief(member.fget)))
    return cls


def brief(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function: it raises Windrow's errors with short tracebacks.

    They omit the frames of this package, and show those of the user's functions.
    """

    @functools.wraps(function)
    def called(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except WindrowError as error:
            if os.environ.get(FULL) == "full":
                raise
            raise error.with_traceback(of_others(error.__traceback__)) from error.__cause__

    return called


def of_others(trace: TracebackType | None) -> TracebackType | None:
    """The frames that are neither of this package nor of what calls it."""
    frames = []  # a loop: a traceback can be longer than Python's recursion limit
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for frame in reversed(frames):
        if _package(frame.tb_frame) not in _OURS:
            rest = TracebackType(rest, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return rest


def warn(message: str) -> None:
    """Warn at the user's line, which is the last one before this package was called."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and _package(frame) in _OURS:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, RuntimeWarning, stacklevel=level)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__")).partition(".")[0]

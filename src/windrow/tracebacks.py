"""Errors without the frames of ours above them: what a user sees is where the own program asked."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from windrow.errors import WindrowError

__all__ = ["FULL", "brief", "briefly", "of_others"]

FULL = "WINDROW_TRACEBACKS"
"""The environment variable that keeps all frames where it is ``full``."""

_OURS = ("windrow", "contextlib", "functools", "py4j", "pyspark")
"""This package, and what calls it: Python's own, and Spark where it hands a micro-batch over."""
_Made = TypeVar("_Made")
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def briefly(cls: type[_Made]) -> type[_Made]:
    """Let the public methods and properties of a class raise errors of ours as :func:`brief` does."""
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


def brief(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Let a function raise errors of ours without the frames beneath it.

    Of the frames, those of this package are left out, and those of functions of the user's stay.
    """

    @functools.wraps(function)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except WindrowError as error:
            if os.environ.get(FULL) == "full":
                raise
            raise error.with_traceback(of_others(error.__traceback__)) from error.__cause__

    return called


def of_others(trace: TracebackType | None) -> TracebackType | None:
    """The frames that are neither this package's nor of what calls it."""
    frames = []  # there may be more of them than Python calls functions within each other
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    rest: TracebackType | None = None
    for frame in reversed(frames):
        package = str(frame.tb_frame.f_globals.get("__name__")).partition(".")[0]
        if package not in _OURS:
            rest = TracebackType(rest, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return rest

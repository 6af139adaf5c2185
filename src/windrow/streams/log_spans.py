"""Which file of a log has which entries: a file of one number, or a merged one of a span of numbers.

A file is named by its number, a merged one by its first and its last. The spans are aligned: 1 to 10, 11 to
20, …, 1 to 100, …, 1 to 1000, …. So a reader finds the file of a number by four names, without a list, and
two processes never merge spans that overlap in part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["LENGTHS", "Span", "listed", "present", "span_of", "spans_with"]

LENGTHS = (1000, 100, 10)
"""How many files a merged one replaces."""

_NAME = re.compile(r"(?!0{20})(\d{20})(?:-(\d{20}))?\.parquet")


class Span(NamedTuple):
    """The numbers of a file: from the first to the last."""

    first: int
    last: int

    @property
    def is_merged(self) -> bool:
        """Whether there are several."""
        return self.first < self.last

    @property
    def name(self) -> str:
        """The name of the file."""
        return (
            f"{self.first:020d}-{self.last:020d}.parquet" if self.is_merged else f"{self.first:020d}.parquet"
        )


def span_of(name: str) -> Span | None:
    """The numbers of a file by its name; None for a name of another form."""
    found = _NAME.fullmatch(name)
    return None if found is None else Span(int(found[1]), int(found[2] or found[1]))


def spans_with(number: int) -> list[Span]:
    """The spans that may have a number, the longest first."""
    nth = number - 1
    return [Span(nth - nth % length + 1, nth - nth % length + length) for length in (*LENGTHS, 1)]


def listed(files: Path) -> list[Span]:
    """The files in a folder by their first numbers; the longest first, of those that begin together."""
    found = (span_of(name) for name in os.listdir(files))  # noqa: PTH208 - there may be millions
    return sorted((span for span in found if span is not None), key=lambda span: (span.first, -span.last))


def present(spans: Iterable[Span]) -> list[Span]:
    """The files, as :func:`listed` has them, that no merged one replaces."""
    found: list[Span] = []
    for span in spans:
        if not found or span.last > found[-1].last:
            found.append(span)
    return found

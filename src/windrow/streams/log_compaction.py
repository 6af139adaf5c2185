"""Compaction: many small files of a log become few larger ones, and nothing that a reader sees changes.

A merged file is written and claimed as any other file of the log, and replaces files that are all there. From
then on, readers prefer it. The files that it replaces stay for a time, for programs that have listed them. A
process that is killed meanwhile leaves files that the next call deletes.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from windrow.errors import InputError
from windrow.streams.chain import FileDraft, is_whole
from windrow.streams.durable_files import claim, writing, written
from windrow.streams.entries import PTIME
from windrow.streams.log import Log
from windrow.streams.log_file import encoded_merged
from windrow.streams.log_spans import LENGTHS, Span, listed, present

__all__ = ["GRACE", "Compaction", "compact", "drop_files"]

GRACE = 3600.0
"""Seconds for which replaced files stay."""
_LARGEST = 32 * 2**20
"""Bytes of the files that one merged file replaces: a reader decodes it as a whole."""
_OF_RETAIN = 0.1
"""The part of a stream's `retain` that a merged file may span: it is deleted as a whole."""


class Compaction(NamedTuple):
    """The numbers of files that a reader of the whole log reads, before and after a compaction."""

    before: int
    after: int


def compact(log: Log) -> Compaction:
    """Merge the files of a log.

    Raises
    ------
    InputError
        As :meth:`Log.after <windrow.streams.log.Log.after>`.
    ExecutionError
        ``DISK_FULL``, ``STREAM_NOT_WRITTEN``, ``STREAM_NOT_FLUSHED``.
    """
    log.flush_files()  # what is read here survives a power failure
    base = log.base
    files = [span for span in present(listed(log.files)) if span.last >= base]
    before = len(files)
    for length in LENGTHS:
        groups = groupby(files, key=partial(_nth, length))
        files = [span for _, group in groups for span in _merged(log, [*group], length)]
    return Compaction(before, len(files))


def _nth(length: int, span: Span) -> int:
    """Which of the aligned spans of a length a file is in."""
    return (span.first - 1) // length


def _merged(log: Log, files: Sequence[Span], length: int) -> Sequence[Span]:
    """Files in an aligned span as one; as they are, if they do not make it up or one would be too long."""
    first, last = files[0].first, files[-1].last
    if sum(span.last - span.first + 1 for span in files) < length or len(files) == 1 or first <= log.base:
        return files
    try:
        size = sum((log.files / span.name).stat().st_size for span in files)
        # files of earlier versions do not record what is before them
        if size > _LARGEST or log.link(first).before is None or not _is_short(log, first, last):
            return files
        before = log.place(first - 1)
        parts = [*log.after(before, last)]
    except FileNotFoundError:  # another process has merged or deleted them
        return files
    except InputError:
        if first <= log.base:
            return files
        raise
    merged, draft = Span(first, last), FileDraft(encoded_merged(log.definition, parts))
    with writing(log.folder, "merged entries"), written(log.pending, draft.whole(before)) as path:
        claim(path, log.files / merged.name)
    return [merged]


def _is_short(log: Log, first: int, last: int) -> bool:
    """Whether files arrived within so short a time that they may be deleted together."""
    retain = log.definition.retain
    if retain is None:
        return True
    earliest, latest = (log.read(number).column(PTIME).to_numpy() for number in (first, last))
    return bool(latest.max() - earliest.min() <= retain * 1e6 * _OF_RETAIN)


def drop_files(log: Log, grace: float = GRACE) -> None:
    """Delete the files before the first that is left, and those that were replaced some seconds ago."""
    log.flush_files()  # a merged file is durable before those that it replaces are deleted
    base, kept = log.base, Span(0, 0)
    is_over: bool | None = None
    for span in listed(log.files):
        if span.last > kept.last:
            kept, is_over = span, None
        elif is_over is None:
            is_over = _is_over(log.files / kept.name, grace)
        if span.last < base or is_over:
            (log.files / span.name).unlink(missing_ok=True)


def _is_over(merged: Path, grace: float) -> bool:
    """Whether the files that a merged one replaces are no longer needed."""
    try:
        return time.time() - merged.stat().st_ctime >= grace and is_whole(merged.read_bytes())
    except FileNotFoundError:
        return False

"""Files of a log with a processing time in the future: their writer's clock was ahead.

Processing times never go back, so one such file would stop them for years. The first reader records, in a
separate file, when the file arrived by the reader's own clock; all readers use that time from then on. The
decision about the file is thus made once, and a replay of the log has the same result.

A reader whose clock is before the stream's creation is itself behind: it records nothing.
"""

from __future__ import annotations

import json
import os
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from windrow.streams.admission.future import DAY
from windrow.streams.durable_files import claim, flush, writing, written

__all__ = ["FOLDER", "Mistimed", "is_ahead", "mistimed", "when"]

FOLDER = "clocks"
"""The folder of these records, beside the log."""


@dataclass(frozen=True, slots=True)
class Mistimed:
    """A file of a log with a wrong processing time.

    Attributes
    ----------
    number
        The file.
    said, taken
        The time that its writer recorded, and the one that replaces it, in microseconds.
    """

    number: int
    said: int
    taken: int


def is_ahead(ptime: int) -> bool:
    """Whether a processing time is more than a day ahead of this machine's clock."""
    return ptime > time.time_ns() // 1000 + DAY


def when(stream: Path, number: int, said: int) -> int:
    """When a file of a log arrived.

    Parameters
    ----------
    stream
        The folder of the stream.
    number
        The file's number.
    said
        The greatest processing time that its writer recorded, in microseconds.

    Raises
    ------
    ExecutionError
        ``STREAM_NOT_WRITTEN``, ``DISK_FULL``: the time cannot be recorded.
    """
    known = _noted(stream, number)
    if known is None and is_ahead(said):
        known = _note(stream, number, said)
    return said if known is None else min(said, known.taken)


def mistimed(stream: Path, after: int = 0) -> list[Mistimed]:
    """The files after a number with wrong processing times."""
    try:
        names = os.listdir(stream / FOLDER)  # noqa: PTH208 - most streams do not have it
    except FileNotFoundError:
        return []
    numbers = sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json"))
    noted = (_noted(stream, number) for number in numbers if number > after)
    return [one for one in noted if one is not None]


def _noted(stream: Path, number: int) -> Mistimed | None:
    try:
        found = json.loads(_path(stream, number).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Mistimed(number, found["said"], found["taken"])


def _note(stream: Path, number: int, said: int) -> Mistimed | None:
    now = time.time_ns() // 1000
    days = (said - now) // DAY
    if now + DAY < (stream / "stream.json").stat().st_mtime_ns // 1000:
        warnings.warn(
            f"files of the log in {stream} were written {days:,} days after now by this machine's clock,"
            " which is set to a time before the stream was made: correct this machine's clock",
            RuntimeWarning,
            stacklevel=3,
        )
        return None
    folder, path = stream / FOLDER, _path(stream, number)
    with writing(stream, "note of a wrong clock"):
        folder.mkdir(exist_ok=True)
        with written(stream / "pending", json.dumps({"said": said, "taken": now}).encode()) as pending:
            claim(pending, path)
        flush(folder)
        flush(stream)
    warnings.warn(
        f"a file of the log in {stream} has a write time {days:,} days after now: its writer's clock"
        " was wrong, so it counts as written now; stream.mistimed() lists such files, and"
        " docs/streams/wrong-clocks.md describes what to do",
        RuntimeWarning,
        stacklevel=3,
    )
    return _noted(stream, number)


def _path(stream: Path, number: int) -> Path:
    return stream / FOLDER / f"{number:020d}.json"

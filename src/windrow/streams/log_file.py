"""The bytes of a file of a log: Parquet, with a footer that says which file of which stream it is.

A merged file records the number of entries and the checksum of each file that it replaces. So every place in
the log remains known, also those in its middle.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from windrow.errors import InputError
from windrow.streams.chain import BLANK, Link, Place, is_whole, link_of
from windrow.streams.definition import Definition
from windrow.streams.entries import GENERATION, PRODUCER
from windrow.streams.log_spans import Span

__all__ = ["decoded", "encoded", "encoded_merged", "foreign", "links_at_end"]

_PARQUET = b"PAR1"
_IDENTITY, _VERSION, _PARTS, _SEAL = b"windrow.stream", b"windrow.format", b"windrow.parts", b"windrow.seal"
_UNCHAINED, _CHAINED, _MERGED = b"2", b"3", b"4"
"""Versions of the file format: files of the first do not record their place."""
_LENGTH = 8
"""Parquet ends with the length of its footer, in four bytes, and four letters."""
_LISTED = re.compile(rb"windrow\.parts=((?:\d+:\d+ )*)")
_UNKNOWN = "Windrow did not write it"

Parts = Sequence[tuple[pa.Table, Place]]
"""The entries of successive files, and the place after each."""


def encoded(definition: Definition, entries: pa.Table) -> bytes:
    """A file of the entries of one call."""
    return _written(definition, entries, {_VERSION: _CHAINED})


def encoded_merged(definition: Definition, parts: Parts) -> bytes:
    """A file in place of successive ones."""
    whole = pa.concat_tables([entries for entries, _ in parts])
    known = "".join(f"{entries.num_rows}:{place.checksum} " for entries, place in parts)
    return _written(definition, whole, {_VERSION: _MERGED, _PARTS: f"windrow.parts={known}"})


def _written(definition: Definition, entries: pa.Table, metadata: dict[bytes, bytes | str]) -> bytes:
    sink = io.BytesIO()
    with pq.ParquetWriter(sink, definition.stored) as writer:
        writer.write_table(entries, row_group_size=max(entries.num_rows, 1))
        writer.add_key_value_metadata({_IDENTITY: definition.identity, **metadata, _SEAL: BLANK})
    return sink.getvalue()


def links_at_end(file: BinaryIO, path: Path, span: Span) -> list[Link]:
    """Read the link of each number from the end of a file; checksums are not compared with the content.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(max(size - _LENGTH, 0))
    length = file.read()
    footer = int.from_bytes(length[:4], "little")
    if not length.endswith(_PARQUET) or footer + _LENGTH > size:
        raise _torn(path)
    file.seek(size - _LENGTH - footer)
    return [link for _, link in _links(file.read(footer), path, span)]


def decoded(definition: Definition, content: bytes, path: Path, span: Span) -> list[tuple[pa.Table, Link]]:
    """The entries of each number in a file, with its link.

    Raises
    ------
    InputError
        ``TORN_FILE``, ``FOREIGN_FILE``, ``MISPLACED_FILE``, ``STREAM_VERSION``.
    """
    if not (content.startswith(_PARQUET) and content.endswith(_PARQUET)):
        raise _torn(path)
    own = link_of(content)
    if own is None:
        raise foreign(path, _UNKNOWN)
    if not is_whole(content):
        raise _torn(path)
    file = pq.ParquetFile(pa.BufferReader(content))
    metadata = file.metadata.metadata
    if metadata[_IDENTITY].decode() != definition.identity:
        raise foreign(path, "it is of another stream")
    wanted = _MERGED if span.is_merged else _UNCHAINED if own.number is None else _CHAINED
    if metadata[_VERSION] != wanted:
        version = metadata[_VERSION].decode()
        raise InputError(
            f"{path} has format {version}, but this version of Windrow reads format {wanted.decode()}",
            condition="STREAM_VERSION",
            hint="use the version of Windrow that wrote it",
        )
    links = _links(content, path, span)
    table = file.read()
    if not table.schema.equals(definition.stored):
        raise foreign(path, "its columns are not those of the stream")
    if not span.is_merged:
        if not table.num_rows or any(len(table.column(name).unique()) > 1 for name in (PRODUCER, GENERATION)):
            raise foreign(path, "its entries are not those of one producer")
        return [(table, links[0][1])]
    parts, start = [], 0
    for count, link in links:
        parts.append((table.slice(start, count), link))
        start += count
    return parts


def _links(end: bytes, path: Path, span: Span) -> list[tuple[int, Link]]:
    """The number of entries of each number in a file, 0 if it is not merged, and its link."""
    own = link_of(end)
    if own is None:
        raise foreign(path, _UNKNOWN)
    if own.number not in (None, span.first):
        raise InputError(
            f"file {span.first} of the log is a copy of file {own.number}: {path}",
            condition="MISPLACED_FILE",
            hint="restore it from a copy of the log",
        )
    if not span.is_merged:
        return [(0, own)]
    found = _LISTED.match(end, max(end.rfind(_PARTS + b"="), 0))  # rows before it may have the same text
    parts = [] if found is None else found[1].split()
    if len(parts) != span.last - span.first + 1:
        raise foreign(path, "its name is not of the files that it replaces")
    links, before = [], own.before
    for number, part in enumerate(parts, span.first):
        count, checksum = map(int, part.split(b":"))
        links.append((count, Link(number, before, checksum)))
        before = checksum
    return links


def _torn(path: Path) -> InputError:
    return InputError(
        f"{path} is incomplete or damaged",
        condition="TORN_FILE",
        hint="restore it from a copy; the files before it can be read",
    )


def foreign(path: Path, reason: str) -> InputError:
    """The error of a file that does not belong to the log."""
    return InputError(
        f"{path} is not a file of this stream: {reason}",
        condition="FOREIGN_FILE",
        hint="move it out of the stream's folder",
    )

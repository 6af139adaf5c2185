"""Arrow tables as bytes: in packets, and in the state store."""

from __future__ import annotations

import pyarrow as pa

__all__ = ["from_bytes", "to_bytes"]


def to_bytes(table: pa.Table) -> bytes:
    """A table serialized for packets and for the state store."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    found: bytes = sink.getvalue().to_pybytes()
    return found


def from_bytes(data: bytes) -> pa.Table:
    """The table in bytes from :func:`to_bytes`."""
    with pa.ipc.open_stream(data) as reader:
        return reader.read_all()

"""Cuts a slice's rows into chunks: the unit of exchange between slices."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from windrow.kernels.pairs import Array

__all__ = ["CHUNK_ROWS", "chunk_offsets", "chunks_of"]

#: Rows of a chunk: small enough to send for one needed row, large enough to dwarf its summary.
CHUNK_ROWS = 1 << 14


def chunk_offsets(rows: int, chunk_rows: int = CHUNK_ROWS) -> Array:
    """The first row of each chunk of a slice and, last, the number of rows; no chunk is empty."""
    return np.append(np.arange(0, rows, chunk_rows, dtype=np.int64), rows)


def chunks_of(table: pa.Table, chunk_rows: int = CHUNK_ROWS) -> list[pa.Table]:
    """The rows of a slice's chunks, in order."""
    return [table.slice(at, chunk_rows) for at in range(0, table.num_rows, chunk_rows)]

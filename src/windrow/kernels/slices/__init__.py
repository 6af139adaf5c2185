"""WINDOW BY over one long sequence that is cut into slices, each processed by another task.

The phases, with an exchange by Spark between them:

A. each slice: :func:`summarise` its rows; the summaries go to all slices;
B. each slice: :func:`wanted` computes, from all summaries, which chunks (:func:`chunks_of`) it sends to which
   slices;
C. each slice: :func:`finish`. If ``needs_chain(plan)``, first :func:`chain`; one task does :func:`compose`,
   and each slice finishes from its entry.

:func:`unsliceable` returns why a clause needs whole partitions.
"""

from __future__ import annotations

from windrow.kernels.slices.cutting import CHUNK_ROWS, chunk_offsets, chunks_of
from windrow.kernels.slices.finishing import finish, wanted
from windrow.kernels.slices.halo import Halo, finish_alone, halo_of, pieces
from windrow.kernels.slices.summary import Summary, summarise
from windrow.kernels.slices.support import describe, needs_chain, unsliceable
from windrow.kernels.slices.tumbling import Chain, chain, compose

__all__ = [
    "CHUNK_ROWS",
    "Chain",
    "Halo",
    "Summary",
    "chain",
    "chunk_offsets",
    "chunks_of",
    "compose",
    "describe",
    "finish",
    "finish_alone",
    "halo_of",
    "needs_chain",
    "pieces",
    "summarise",
    "unsliceable",
    "wanted",
]

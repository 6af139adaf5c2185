"""The names of queries with EMIT in another query with EMIT, while that is read.

The rowtime is the first column of event time that completes a group. Without one, a stream of changes has
their processing times, and a table none.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from urllib.parse import quote

from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import EmittedPlan
from windrow.spark.recorded.emission import Emitted, EmittedInside
from windrow.spark.recorded.emitted_inside import stream_inside
from windrow.syntax.sqltext import quoted

__all__ = ["emitted_stream"]

_LONGEST = 60  # part of a query in a name


@contextmanager
def emitted_stream(
    gateway: Gateway, catalog: Catalog, query: Emitted, envelope: str | None, text: str
) -> Iterator[str]:
    """The name of the stream in the catalog while a query is read; EXPLAIN prints it.

    Parameters
    ----------
    query, envelope
        The query, and the envelope of its changes; None for its table.
    text
        The query as written.

    Raises
    ------
    AnalysisError
        ``DUPLICATE_COLUMN``.
    """
    known = " ".join(text.split())
    name = quote(f"{known[:_LONGEST]} #{len(catalog.emitted)}".lower(), safe=" '#,()*=<>+-").lower()
    plan = EmittedPlan(gateway, catalog, frozenset(query.streams), text, query, "one-sql")
    rowtime = plan.rowtime
    if query.timed.lineage or (plan.appends and envelope is not None):
        rowtime = None  # rows that are no groups are never late; punctuation may complete groups in any order
    scale = query.scale if rowtime is None else plan.rowtime_scale
    inside = EmittedInside(query, envelope, rowtime, scale, plan.appends and rowtime is not None, known)
    with gateway.translated():
        stream = replace(stream_inside(inside), name=name)
        stream.frame.createOrReplaceTempView(quoted(name))
    catalog.streams[name], catalog.emitted[name] = stream, inside
    try:
        yield name
    finally:
        del catalog.streams[name], catalog.emitted[name]
        gateway.spark.catalog.dropTempView(name)

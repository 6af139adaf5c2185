"""How long a live query takes to give what a punctuation closes, by how many keys it keeps."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

import windrow
from benchmarks.punctuations import SIZES, Cost
from windrow.streams import NamedStream, Ordering

__all__ = ["QUERIES", "of_queries"]

TIMES = 7
_COLUMNS = pa.schema([("at", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])

QUERIES = {
    "GROUP BY k": "SELECT STREAM k, MAX(v) AS high FROM s GROUP BY k",
    "MATCH_RECOGNIZE (PARTITION BY k … (a b*))": "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY at"
    " MEASURES COUNT(*) AS n PATTERN (a b*) DEFINE b AS b.v >= 0)",
    "WINDOW BY w (PARTITION BY k … END WHEN e.v < 0)": "SELECT s.k, COUNT(w) AS n FROM s WINDOW BY w AS"
    " (TYPE SLIDING PARTITION BY k ORDER BY at START AS s END AS e WHEN e.v < 0)",
}


def of_queries(sizes: tuple[int, ...] = SIZES, times: int = TIMES) -> list[Cost]:
    """Milliseconds from a promise about one key, of one row, until the query has given what that ends."""
    session = windrow.Session()
    return [
        Cost(name, tuple(_median(session, query, size, times) for size in sizes))
        for name, query in QUERIES.items()
    ]


def _median(session: windrow.Session, text: str, size: int, times: int) -> float:
    random = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        stream = NamedStream.create(Path(folder) / "s", _COLUMNS, "at", ordering=Ordering.unordered())
        session.stream("s", stream)
        given = windrow.Memory()
        with stream.producer("p") as producer:
            rows = pa.table([np.arange(size), random.permutation(size), np.arange(size)], schema=_COLUMNS)
            producer.insert(rows)
            producer.bound(size)
            query = session.sql(text).start(given, on_unbounded="ignore")
            query.process_all_available()
            taken = []
            for key in random.choice(size, times + 1, replace=False).tolist():
                started = time.perf_counter()
                producer.punctuate(k=key)
                query.process_all_available()
                taken.append(time.perf_counter() - started)
            assert query.progress["rows_emitted"] == times + 1
            query.stop()
        session.sql("DROP STREAM s")
    return 1000 * statistics.median(taken[1:])

"""What reading a query into its plan costs, and what subqueries over windows do: seconds.

``python -m benchmarks.plans [--rows 100000] [--only TEXT]`` prints a line a query: the time of
``session.sql`` alone, the median of several, and once the time of its changes, counted. The queries of
NEXMark are only planned. With another checkout's ``src`` on ``PYTHONPATH`` it times that.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence

from examples.nexmark.generate import events
from examples.nexmark.queries import NUMBERS, query, recorded
from windrow import Session
from windrow.errors import WindrowError

__all__ = ["main"]

_TUMBLED = "FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY wend"
EMIT = {
    "filter": "SELECT k, v FROM s WHERE v > 3 EMIT STREAM",
    "windows": f"SELECT wend, COUNT(*) AS n {_TUMBLED} EMIT STREAM AFTER WATERMARK",
    "join": f"SELECT a.wend, n, m FROM (SELECT wend, COUNT(*) AS n {_TUMBLED}) a "
    f"JOIN (SELECT wend, MAX(v) AS m {_TUMBLED}) b ON a.wend = b.wend EMIT STREAM AFTER WATERMARK",
}
SUBQUERIES = {
    "value by =": "SELECT k, (SELECT MAX(v) FROM t [RANGE 5] WHERE t.k = s.k) AS m FROM s [RANGE 5]",
    "value by <": "SELECT k, (SELECT MAX(v) FROM t [RANGE 5] WHERE t.v < s.v) AS m FROM s [RANGE 5]",
    "in HAVING": "SELECT k, COUNT(*) AS n FROM s [RANGE 5] GROUP BY k "
    "HAVING COUNT(*) * 2 > (SELECT AVG(v) FROM s [RANGE 3])",
    "rank of groups": "SELECT k, RANK() OVER (ORDER BY COUNT(*)) AS r FROM s [RANGE 5] GROUP BY k",
    **{
        f"{count} computed IN": "SELECT s.k, "
        + ", ".join(f"(s.v IN (SELECT v + {at} FROM t [RANGE 3])) = false AS c{at}" for at in range(count))
        + " FROM s [RANGE 1] LEFT JOIN t [RANGE 1] ON s.ts = t.ts AND s.k = t.k"
        for count in (1, 2, 3)
    },
    "share of total": "SELECT k, COUNT(*) * 1.0 / (SELECT COUNT(*) FROM s [RANGE 5]) AS part "
    "FROM s [RANGE 5] GROUP BY k",
}
NEXMARK = {f"NEXMark {number}": f"{query(number)} EMIT STREAM" for number in NUMBERS}
_TIMES, _SECONDS = 7, 20
"""How often a query is planned, unless that takes longer."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Time each query."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plans", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000, help="of each of two streams")
    parser.add_argument("--only", default="", help="the queries with this text in their names")
    given = parser.parse_args(arguments)
    rows = given.rows
    session = Session()
    spark = session.spark
    for name, factor in (("s", 7), ("t", 11)):
        log = spark.range(rows).selectExpr(
            "id AS at", "id DIV 10 AS ts", f"id * {factor} % 20 AS k", f"id * {factor} % 9 AS v",
            "id DIV 10 - 1 AS upto",
        )  # fmt: skip
        session.stream(name, log, rowtime="ts", unit="seconds", ptime="at", watermark="upto")
    _say(f"{rows:,} rows in each of two streams")
    recorded(session, events(2000, rate=100, disorder=3, in_flight=10, each=9))
    for name, text in (EMIT | SUBQUERIES | NEXMARK).items():
        if given.only not in name:
            continue
        try:
            _say(f"{name:15}  {_timed(session, text, runs=name not in NEXMARK)}")
        except WindrowError as error:
            _say(f"{name:15}  refused: {error.condition}")
    spark.stop()


def _timed(session: Session, text: str, *, runs: bool) -> str:
    """The times of a query as a line."""
    planning: list[float] = []
    while len(planning) < _TIMES and sum(planning) < _SECONDS:
        begun = time.perf_counter()
        relation = session.sql(text)
        planning.append(time.perf_counter() - begun)
    planned = f"plan {statistics.median(planning) * 1000:5.0f} ms"
    if not runs:
        return planned
    begun = time.perf_counter()
    changes = relation.df if text in EMIT.values() else relation.changelog("diff").df
    count = changes.count()
    ran = time.perf_counter() - begun
    return f"{planned}  run {ran:6.1f} s, {count:,} changes"


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

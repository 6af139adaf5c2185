"""What is run while it is killed: a window, a grouped join of two streams, a merge of many producers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.logs import Arriving, Named, OfWindows, Source
from windrow import Session
from windrow.relation_kinds import LiveRelation
from windrow.streams import Ordering

__all__ = ["SCENARIOS", "Scenario"]


@dataclass(frozen=True)
class Scenario:
    """A query over streams.

    Attributes
    ----------
    sources
        The streams, in a folder.
    query
        What is asked.
    views
        What the query reads besides.
    has_workers
        Whether its steps run in Python workers, or in the process that started it.
    host
        Where it runs: the driver, or executors.
    is_timed
        Whether its changes are at processing times, which are others in every run.
    is_relation
        Whether it has changes, and not rows alone.
    """

    sources: Callable[[Path], list[Source]]
    query: str
    views: tuple[str, ...] = ()
    has_workers: bool = False
    host: str = "driver"
    is_timed: bool = False
    is_relation: bool = True

    def ask(self, session: Session) -> LiveRelation:
        """The query over what is declared in a session."""
        session.spark.conf.set("spark.windrow.live.host", self.host)
        for view in self.views:
            session.sql(view)
        relation = session.sql(self.query)
        return relation  # type: ignore[return-value]


SCENARIOS = {
    "window": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2)],
        "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 5] GROUP BY k",
    ),
    "rows": Scenario(
        lambda folder: [Arriving(folder, "s", lag=1)],
        "SELECT k, MIN(v) AS low, SUM(v) AS total FROM s [PARTITION BY k ROWS 3] GROUP BY k",
    ),
    "pairs": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2), Arriving(folder, "t", lag=1)],
        "SELECT s.k, s.v AS v, t.v AS other FROM s [RANGE 3], t [RANGE 4] WHERE s.k = t.k",
    ),
    "join": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2), Named(folder, "t", "a", Ordering.lagging(1))],
        "SELECT s.k, COUNT(*) AS n, SUM(t.v) AS total FROM s [RANGE 4], t [RANGE 6] WHERE s.k = t.k"
        " GROUP BY s.k",
        has_workers=True,
    ),
    "window on executors": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2, producers="p")],
        "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM s [RANGE 5] GROUP BY k",
        has_workers=True,
        host="executors",
    ),
    "pairs on executors": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2, producers="p"), Arriving(folder, "t", 1, "p")],
        "SELECT s.k, s.v AS v, t.v AS other FROM s [RANGE 3], t [RANGE 4] WHERE s.k = t.k",
        has_workers=True,
        host="executors",
    ),
    "counts of counts on executors": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2, producers="p")],
        "SELECT n, COUNT(*) AS keys, MAX(k) AS last FROM (SELECT k, COUNT(*) AS n FROM s [RANGE 5]"
        " GROUP BY k) GROUP BY n",
        has_workers=True,
        host="executors",
    ),
    "averages on executors": Scenario(
        lambda folder: [OfWindows(folder, "s", lag=2, length=3)],
        "SELECT k, wend, COUNT(*) AS n, AVG(v) AS mean FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3)"
        " GROUP BY k, wend EMIT AFTER WATERMARK",
        has_workers=True,
        host="executors",
        is_timed=True,
    ),
    "matches on executors": Scenario(
        lambda folder: [Arriving(folder, "s", lag=2, producers="p")],
        "SELECT k, since, n, total FROM s MATCH_RECOGNIZE (PARTITION BY k ORDER BY ts, v"
        " MEASURES FIRST(ts) AS since, COUNT(*) AS n, SUM(v) AS total PATTERN (a b+) WITHIN 6"
        " DEFINE b AS b.v > PREV(b.v))",
        has_workers=True,
        host="executors",
        is_relation=False,
    ),
    "merge": Scenario(
        lambda folder: [
            Named(folder, "x", "abc", Ordering.ordered()),
            Named(folder, "y", "ad", Ordering.lagging(2)),
        ],
        "SELECT k, COUNT(*) AS n, SUM(v) AS total FROM merged [RANGE 4] GROUP BY k",
        (
            "CREATE OR REPLACE TEMPORARY VIEW merged AS"
            " ISTREAM(SELECT k, v FROM x [NOW] UNION ALL SELECT k, v FROM y [NOW])",
        ),
        has_workers=True,
    ),
}

"""Who is compared with whom, on what, and the ratio to reach."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.data import EVEN, EVEN_BY_DATE, EVEN_BY_TIME, GHCN, LONG, MANY, MIXED, ONE, SKEWED, Data
from benchmarks.pattern_queries import ALTERNATION, FUNNEL, HARD, NESTED, PATTERNS, RUNS
from benchmarks.queries import (
    CHOSEN,
    COMPUTED,
    ISLANDS,
    LABEL,
    SESSION,
    TUMBLING,
    TUMBLING_WEEK,
    UNBOUNDED,
    WEEK,
    Query,
    joined_rows,
    next_rows,
    week,
)
from benchmarks.stream_queries import GROUPED_RANGE, GROUPED_ROWS, JOINED, RANGE, last_rows

__all__ = ["Ask", "Comparison", "Entry", "catalogue"]


@dataclass(frozen=True)
class Entry:
    """One that is timed."""

    name: str
    group: str
    """What a row of results names; the best of a group counts."""
    system: str
    query: Query
    data: Data
    scale: float = 1.0
    """The share of the comparison's size that it reads."""
    growth: float = 1.0
    cores: int | None = None
    """With a process of its own, held to so many cores."""
    title: str = "Windrow"
    """What a row of results calls it if it is the subject."""

    @property
    def stays(self) -> bool:
        """Windrow is timed at every size at which a peer is."""
        return self.system.startswith("windrow")


@dataclass(frozen=True)
class Ask:
    """A ratio that is wanted: the time of one group over that of another."""

    subject: str
    peer: str
    target: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Entries that are timed in turn, and the ratios that come out."""

    name: str
    entries: tuple[Entry, ...]
    asks: tuple[Ask, ...]
    sizes: tuple[float, ...]
    """Shares of the full size, the smallest first."""
    rounds: int | None = None
    """How often each is timed, where it is not as often as in other comparisons."""

    @property
    def weight(self) -> float:
        """Its part of the time of a run."""
        return sum(_WEIGHT_OF_LOOPS if entry.system == "nested" else 1 for entry in self.entries)


_WEIGHT_OF_LOOPS = 6
"""More time makes the ratio to nested loops truer: on little data, what any query costs prevails."""

_LINEAR = (1 / 200, 1 / 20, 1 / 4, 1.0)
_OWN = (1 / 20, 1 / 10, 1 / 2, 1.0)
_AS_IS = (1.0,)
_LOOPS = (1 / 400, 1 / 100, 1 / 40, 1 / 20, 1 / 10, 1 / 2)
"""Nested loops: few stations, as long as all are, so that each of their rows costs what it does in all."""
_LOOPS_OF_MINUTES = (1 / 200, 1 / 50, 1 / 3, 1.0)
"""Nested loops over long stations, the largest that fit into what the comparison may take."""
_LOOPS_OF_ONE = (1 / 800, 1 / 400, 1 / 200, 1 / 100, 1 / 50)
"""Nested loops over one station: from 12,000 rows."""

_JOINS = (1 / 400, 1 / 100, 1 / 40, 1 / 20, 1 / 4, 1.0)
"""Joins by a key and a comparison: plain SQL tries all pairs of a station."""

_STREAMS = {
    "stream-range": RANGE,
    "stream-rows": last_rows(20),
    "stream-avg-range": GROUPED_RANGE,
    "stream-avg-rows": GROUPED_ROWS,
}
_NEXT_20 = next_rows(20)
_GIVEN_ROWS = "Windrow, given its rows by Spark"
_CHOSEN = {
    "where-20": (CHOSEN, {"Spark OVER": 0.4, "DuckDB": 2.0}),
    "computed-20": (COMPUTED, {"Spark OVER": 0.5}),
    "where-islands": (ISLANDS, {"Spark OVER": 0.5, "DuckDB": 1.8}),
}
_ISLANDS = {"pattern-runs": RUNS, "pattern-kinds": ALTERNATION, "pattern-nested": NESTED}
_PAPER = {
    "unbounded-sliding": UNBOUNDED,
    "unbounded-tumbling": TUMBLING,
    "tumbling-week": TUMBLING_WEEK,
    "session": SESSION,
    "label": LABEL,
}


def catalogue(cores: int, *, full: bool) -> list[Comparison]:
    """All comparisons, in the order of the table of results. Only a full run has the largest."""
    bounded = {"Spark OVER": 0.4, "DuckDB": 2.5}
    others = {"Spark OVER": 0.3}
    whole = {"Spark OVER": 0.25}
    loops = {"nested loops": 0.025}
    paper = list(_PAPER.values())
    comparisons = [
        *(_peers(f"next-{rows}", next_rows(rows), EVEN, bounded) for rows in (20, 200, 1_000)),
        _peers("next-20-by-date", _NEXT_20, EVEN_BY_DATE, bounded),
        _peers("next-10000", next_rows(10_000), LONG, bounded),
        _peers("week", WEEK, EVEN, bounded | {"Spark OVER": 0.5}),
        *(
            _peers(f"{name.replace(' ', '-')}-1000", next_rows(1_000, name), EVEN, others)
            for name in ("min", "max", "median", "count distinct")
        ),
        *(_peers(name, query, MIXED, wanted, rows=True) for name, (query, wanted) in _CHOSEN.items()),
        *(
            _peers(f"join-{rows}", joined_rows(rows), EVEN, {"Spark OVER": most})
            for rows, most in ((20, 1.0), (1_000, 0.4))
        ),
        _through_rows("rows-20", _NEXT_20),
        _through_rows("rows-label", LABEL),
        _peers("whole-20", next_rows(20, partitioned=False), ONE, whole | {"Spark OVER": 0.35}),
        _peers("whole-week", week(partitioned=False), ONE, whole),
        *(_peers(name, query, EVEN, {}, _LOOPS) for name, query in _PAPER.items() if query.nested),
        *(_loops(f"loops-{name}", query, loops) for name, query in _PAPER.items() if query.nested),
        _peers("label-one", LABEL, ONE, loops, _LOOPS_OF_ONE),
        _against("own", paper, EVEN, _NEXT_20, EVEN, 1.3),
        _against("own-one", [LABEL], ONE, _NEXT_20, ONE, 1.3),
        _against("skew", [_NEXT_20], SKEWED, _NEXT_20, EVEN_BY_TIME, 1.3),
        _against("length", [next_rows(10_000)], LONG, _NEXT_20, LONG, 1.2),
        _against("many", [_NEXT_20], MANY, _NEXT_20, EVEN, None),
        *(_peers(name, query, EVEN, {}) for name, query in _STREAMS.items()),
        _peers("stream-join", JOINED, EVEN, {}, _JOINS),
        _against("patterns", PATTERNS, EVEN, _NEXT_20, EVEN, None),
        _against("patterns-one", [RUNS, FUNNEL, HARD], ONE, _NEXT_20, ONE, None),
        _growth(EVEN, 1, "pattern-growth", HARD),
        *(_peers(name, query, EVEN, {}) for name, query in _ISLANDS.items()),
        _against("stream-length", [last_rows(10_000)], LONG, last_rows(20), LONG, 1.3),
        _growth(ONE, 4 if full else 1),
        _cores("cores", _NEXT_20, cores),
    ]
    if full:
        comparisons += [
            _peers("many-peers", _NEXT_20, MANY, {}),
            _growth(EVEN, 4),
            _cores("cores-week", WEEK, cores),
            *(_cores(f"cores-{name}", query, cores) for name, query in _PAPER.items()),
        ]
    if GHCN.available:
        published = {"next-20": _NEXT_20, "week": WEEK, **_PAPER}
        once = {"Spark OVER": 0.7}
        comparisons += [
            _peers(f"ghcn-{name}", query, GHCN, once, _AS_IS) for name, query in published.items()
        ]
    return comparisons


def _peers(
    name: str,
    query: Query,
    data: Data,
    targets: dict[str, float],
    sizes: tuple[float, ...] = _LINEAR,
    *,
    rows: bool = False,
) -> Comparison:
    """Windrow against every peer that can express the query; with `rows`, also given its rows by Spark."""
    entries = [Entry("Windrow", "Windrow", "windrow", query, data)]
    if rows:
        entries.append(Entry(_GIVEN_ROWS, _GIVEN_ROWS, "windrow, Spark's rows", query, data))
    if query.nested and sizes in (_LOOPS, _LOOPS_OF_ONE):
        growth = 2.0 if data is ONE else 1.0
        entries.append(Entry("nested loops", "nested loops", "nested", query, data, growth=growth))
    if query.over:
        entries.append(Entry("Spark OVER", "Spark OVER", "over", query, data))
        entries.append(Entry("Spark OVER, segment tree", "Spark OVER", "over, segment tree", query, data))
    if query.duckdb:
        entries.append(Entry("DuckDB", "DuckDB", "duckdb", query, data))
    if query.polars:
        entries.append(Entry("Polars", "Polars", "polars", query, data))
    peers = dict.fromkeys(entry.group for entry in entries[1:])
    asks = tuple(Ask("Windrow", peer, targets.get(peer)) for peer in peers)
    return Comparison(name, tuple(entries), asks, sizes)


def _loops(name: str, query: Query, targets: dict[str, float]) -> Comparison:
    """Windrow against nested loops alone, over stations so long that these take minutes; timed once."""
    entries = (
        Entry("Windrow", "Windrow", "windrow", query, LONG),
        Entry("nested loops", "nested loops", "nested", query, LONG),
    )
    asks = (Ask("Windrow", "nested loops", targets["nested loops"]),)
    return Comparison(name, entries, asks, _LOOPS_OF_MINUTES, rounds=1)


def _through_rows(name: str, query: Query) -> Comparison:
    """Windrow where it does not read the files itself, as over any table that is not plain Parquet."""
    title = _GIVEN_ROWS
    entries = (
        Entry(title, title, "windrow, Spark's rows", query, EVEN, title=title),
        Entry("Windrow", "Windrow", "windrow", query, EVEN),
        Entry("Spark OVER", "Spark OVER", "over", query, EVEN),
        Entry("Spark OVER, segment tree", "Spark OVER", "over, segment tree", query, EVEN),
    )
    return Comparison(name, entries, (Ask(title, "Spark OVER"), Ask(title, "Windrow")), _OWN)


def _against(
    name: str, queries: list[Query], data: Data, base: Query, base_data: Data, target: float | None
) -> Comparison:
    """Windrow against itself: other queries or other data against a base."""
    entries = [_own(f"{base.title}, {base_data.title}", base, base_data)]
    entries += [_own(f"{query.title}, {data.title}", query, data) for query in queries]
    asks = tuple(Ask(entry.group, entries[0].group, target) for entry in entries[1:])
    return Comparison(name, tuple(entries), asks, _OWN)


def _growth(data: Data, scale: float, name: str | None = None, query: Query = _NEXT_20) -> Comparison:
    """Four times the rows."""
    part = _own("a quarter of the rows", query, data, scale=scale / 4)
    whole = _own("all of the rows", query, data, scale=scale)
    asks = (Ask(whole.group, part.group, 4.4),)
    return Comparison(name or f"growth-{data.name}", (part, whole), asks, _OWN)


def _cores(name: str, query: Query, cores: int) -> Comparison:
    """Speed-up: twice the cores for the same rows. Scale-up: all of the cores for all of the rows."""
    counts = [2**power for power in range(cores.bit_length())]
    most = counts[-1]
    target = 0.55 if query is _NEXT_20 else None
    entries = [_own(_cores_title(count), query, EVEN, cores=count) for count in counts]
    asks = [Ask(_cores_title(2 * count), _cores_title(count), target) for count in counts[:-1]]
    for count in counts[:-1]:
        share = count / most
        part = f"{_cores_title(count)}, {share:g} of the rows"
        entries.append(_own(part, query, EVEN, scale=share, cores=count))
        asks.append(Ask(_cores_title(most), part))
    return Comparison(name, tuple(entries), tuple(asks), _OWN)


def _cores_title(count: int) -> str:
    return f"Windrow on {count} core" + ("s" if count > 1 else "")


def _own(group: str, query: Query, data: Data, *, scale: float = 1.0, cores: int | None = None) -> Entry:
    title = "Windrow" if cores is None else group
    return Entry(group, group, "windrow", query, data, scale=scale, cores=cores, title=title)

"""The rules of tolls.sql as a loop over seconds: what a toll booth would do, with no SQL and no windows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

REPORT_LASTS = 30
SPEED_OVER = 300
STANDING = 4
FREE_CARS = 5
SLOW = 40

Segment = tuple[int, int, int]


def tolls(reports: Iterable[Mapping[str, int]]) -> list[tuple[int, int, int, int, int, int]]:
    """(ts, car, exp_way, dir, seg, toll) of every notification."""
    by_second: dict[int, list[Mapping[str, int]]] = defaultdict(list)
    for report in reports:
        by_second[report["ts"]].append(report)
    if not by_second:
        return []
    last: dict[int, Mapping[str, int]] = {}
    history: dict[int, list[Mapping[str, int]]] = defaultdict(list)
    seen: list[Mapping[str, int]] = []
    before: set[tuple[int, Segment]] = set()
    told = []
    for now in range(min(by_second), max(by_second) + 1):
        for report in by_second.get(now, ()):
            last[report["car"]] = report
            history[report["car"]] = [*history[report["car"]], report][-STANDING:]
            seen.append(report)
        seen = [report for report in seen if now < report["ts"] + SPEED_OVER]
        here = {(car, _segment(report)) for car, report in last.items() if now < report["ts"] + REPORT_LASTS}
        entered, before = here - before, here
        if not entered:
            continue
        prices = _prices(here, seen, history)
        told += [(now, car, *where, prices[where]) for car, where in sorted(entered) if where in prices]
    return told


def _prices(
    here: set[tuple[int, Segment]],
    seen: list[Mapping[str, int]],
    history: Mapping[int, list[Mapping[str, int]]],
) -> dict[Segment, int]:
    """The toll of each segment that costs one."""
    cars = Counter(where for _, where in here)
    speeds: dict[Segment, list[int]] = defaultdict(list)
    for report in seen:
        speeds[_segment(report)].append(report["speed"])
    closed = _accidents(history)
    return {
        where: 2 * (count - FREE_CARS) ** 2
        for where, count in cars.items()
        if count > FREE_CARS
        and speeds[where]
        and sum(speeds[where]) / len(speeds[where]) < SLOW
        and where not in closed
    }


def _accidents(history: Mapping[int, list[Mapping[str, int]]]) -> set[Segment]:
    """The segments in which two cars stand at one place."""
    places: Counter[tuple[int, int, int, int]] = Counter()
    for reports in history.values():
        # a car that has changed its way stands on neither
        ways = {(report["exp_way"], report["dir"]) for report in reports}
        where = {report["x_pos"] for report in reports}
        if len(reports) == STANDING and len(ways) == len(where) == 1:
            places[(*_segment(reports[0]), reports[0]["x_pos"])] += 1
    return {(way, direction, segment) for (way, direction, segment, _), cars in places.items() if cars >= 2}


def _segment(report: Mapping[str, int]) -> Segment:
    return report["exp_way"], report["dir"], report["seg"]

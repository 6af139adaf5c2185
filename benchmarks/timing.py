"""Rounds of A, B, C, A, B, C, … on data as large as the time allows for.

Times on a shared machine swing by a factor of two within the hour, so only times of one round are compared
with each other, and of several rounds the shortest time of each counts.

A peer that would take too long on the whole data is compared on less: all start on a small part, go on to
larger and larger ones, and whoever would cost more than is left for the comparison at the next size stays
behind and is timed, together with Windrow, at the size that it has reached.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

__all__ = ["Budget", "Contestant", "Timings", "measure"]

_HOPELESS = 1.5
"""Of two variants of one peer, one that takes this much longer is not carried to larger data."""


@dataclass(frozen=True)
class Contestant:
    """Something that can be timed at any size."""

    name: str
    group: str
    """Variants of one peer share a group: the best of them counts."""
    time: Callable[[int], float]
    """Seconds for a size; prepares what is not to be timed first."""
    growth: float = 1.0
    """The power of the size that the time is expected to grow with."""
    stays: bool = False
    """Whether this is timed at every size at which another is: Windrow itself."""


@dataclass
class Timings:
    """The seconds of every run at one size."""

    size: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    compared: list[str] = field(default_factory=list)
    """Whose last size this was; they, and those that stay at every size, have all their rounds here."""

    def add(self, contestant: Contestant) -> None:
        """Time it once more."""
        self.seconds.setdefault(contestant.name, []).append(contestant.time(self.size))

    def best(self, name: str) -> float:
        """The shortest time."""
        return min(self.seconds[name])


@dataclass
class Budget:
    """Seconds that comparisons share by their weight; what one leaves over is for those after it."""

    seconds: float
    weight: float
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def share(self, weight: float) -> float:
        """What the next comparison may take."""
        left = max(0.0, self.seconds - (self.clock() - self._begun))
        share = left * weight / self.weight if self.weight > 0 else left
        self.weight -= weight
        return share


def measure(
    contestants: Sequence[Contestant],
    sizes: Sequence[int],
    rounds: int,
    allowance: float,
    clock: Callable[[], float] = time.monotonic,
) -> list[Timings]:
    """The timings at every size, the smallest first.

    Each contestant runs once without being timed, at the first size.
    """
    begun = clock()
    for contestant in contestants:
        contestant.time(sizes[0])
    running = list(contestants)
    measured: list[Timings] = []
    for size, following in zip(sizes, [*sizes[1:], None], strict=True):
        timings = Timings(size)
        measured.append(timings)
        for contestant in running:
            timings.add(contestant)
        running = _promising(running, timings)
        left = allowance - (clock() - begun)
        going = [] if following is None else _affordable(running, measured, following, rounds, left)
        behind = [c for c in running if c not in going]
        if behind:
            timings.compared = [c.name for c in behind]
            for _ in range(rounds - 1):
                for contestant in running:
                    if contestant.stays or contestant in behind:
                        timings.add(contestant)
        if not going:
            break
        running = going
    return measured


def _promising(running: Sequence[Contestant], timings: Timings) -> list[Contestant]:
    """All but the variants of a peer that take much longer than its best."""
    best: dict[str, float] = {}
    for c in running:
        best[c.group] = min(best.get(c.group, float("inf")), timings.best(c.name))
    return [c for c in running if c.stays or timings.best(c.name) <= _HOPELESS * best[c.group]]


def _affordable(
    running: Sequence[Contestant], measured: Sequence[Timings], following: int, rounds: int, left: float
) -> list[Contestant]:
    """Who goes on to the next size: all but the slowest peers, so that the rounds there fit."""
    timings = measured[-1]

    def expected(c: Contestant) -> float:
        return _expected(c, measured, following)

    def cost(going: Sequence[Contestant]) -> float:
        here = [c for c in running if c.stays or c not in going] if len(going) < len(running) else []
        return rounds * sum(map(expected, going)) + (rounds - 1) * sum(timings.best(c.name) for c in here)

    going = list(running)
    peers = sorted((c for c in going if not c.stays), key=expected)
    while peers and cost(going) > left:
        going.remove(peers.pop())
    # Windrow goes on for its peers, or where it is compared with itself.
    worthwhile = bool(peers) or all(c.stays for c in running)
    return going if worthwhile and cost(going) <= left else []


def _expected(c: Contestant, measured: Sequence[Timings], size: int) -> float:
    """The seconds for a larger size: what does not grow is known from the second size on."""
    here, before = measured[-1], measured[-2] if len(measured) > 1 else None
    seconds = here.best(c.name)
    work = math.pow(here.size, c.growth)
    known = 0.0 if before is None else math.pow(before.size, c.growth)
    grown = seconds if before is None else max(0.0, seconds - before.best(c.name))
    return seconds + grown / (work - known) * (math.pow(size, c.growth) - work)

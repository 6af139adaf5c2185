"""Kills a live query at chosen and random places, starts it again, and holds its end to the batch answer."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from json import loads
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tests.chaos.life import DIED, FATAL, FATAL_OPERATION, PROGRESS, STARTED
from tests.chaos.logs import late_rows
from tests.chaos.processes import born, children, command, kill, tree
from tests.chaos.scenarios import SCENARIOS
from tests.live.stepping import rows_of, total
from windrow import Session

__all__ = ["FORCED", "OPERATION", "RANDOM", "Round", "Summary", "run"]

FORCED = "after a write of the sink"
OPERATION = "before a file operation"
OFFSETS = "java while Spark writes its offsets"
RANDOM = ("all", "driver", "java", "worker", "all while it starts", "all when a step is kept", OFFSETS)
"""Which processes are killed, and when: without a word about that, some time after the query has started."""

_OPERATIONS = 48  # of some micro-batches; each is the one before which a query dies, in turns

_WORDS = Path(__file__).parents[2]
_PATIENCE = 600.0  # seconds, after which something hangs
_AHEAD = 3  # arrivals
_AFTER_START = 4.0  # seconds, within which the random kills fall


class ChaosError(Exception):
    """The harness cannot go on: a process hangs, or has failed by itself."""


@dataclass
class Round:
    """What became of a query over one log.

    Attributes
    ----------
    scenario
        The query.
    kills
        How often which processes were killed.
    places
        Where the query stood when it was.
    before
        Before which operations on files it died.
    lives
        How often it was started.
    rows, late, given
        How many rows came, were late, and were given.
    wrong
        What differs from the batch answer; nothing, if all is well.
    """

    scenario: str
    kills: Counter[str] = field(default_factory=Counter)
    places: Counter[str] = field(default_factory=Counter)
    before: Counter[str] = field(default_factory=Counter)
    lives: int = 0
    rows: int = 0
    late: int = 0
    given: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Summary:
    """All rounds."""

    rounds: Sequence[Round]
    seconds: float

    @property
    def is_right(self) -> bool:
        """Whether every round came to the batch answer."""
        return not any(one.wrong for one in self.rounds)

    def __str__(self) -> str:
        kills = sum((one.kills for one in self.rounds), Counter())
        places = sum((one.places for one in self.rounds), Counter())
        equal = Counter(one.scenario for one in self.rounds if not one.wrong)
        lines = [f"{kills.total()} kills in {self.seconds:.0f} s, {kills[FORCED]} of them forced {FORCED}"]
        lines += [f"  {count:4} {what}" for what, count in kills.most_common()]
        before = sum((one.before for one in self.rounds), Counter())
        if before:
            lines += ["before", *(f"  {count:4} {what}" for what, count in before.most_common())]
        lines += ["the query stood", *(f"  {count:4} {place}" for place, count in places.most_common())]
        starts = sum(one.lives for one in self.rounds)
        lines.append(f"{starts} starts")
        for what in ("rows", "late", "given"):
            lines.append(f"{sum(getattr(one, what) for one in self.rounds)} {what}")
        shown = ", ".join(f"{name} {count}" for name, count in sorted(equal.items()))
        lines.append(f"{equal.total()} of {len(self.rounds)} rounds equal to the batch answer ({shown})")
        for one in self.rounds:
            lines += [f"WRONG {one.scenario}: {told}" for told in one.wrong]
        return "\n".join(lines)


def run(
    spark: SparkSession,
    folder: Path,
    kills: int,
    seed: int,
    *,
    of_a_round: int = 6,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    random_kills: Sequence[str] = RANDOM,
    at_once: int = 1,
    is_long: bool = False,
    tell: Callable[[str], object] = lambda _: None,
) -> Summary:
    """Kill queries so often: of four times once between a write of the sink and the commit of its step, and
    once before an operation on files, each in its turn.

    Parameters
    ----------
    spark
        Gives the batch answers.
    folder
        An empty one.
    kills
        How many.
    seed
        Of all that is left to chance.
    of_a_round
        After how many kills a query is run to its end and judged.
    scenarios
        The queries, which take turns.
    random_kills
        What the random kills are, in turns.
    at_once
        How many queries run beside each other.
    is_long
        Whether it pays to let Java machines share the classes that one has loaded.
    tell
        Is told what happens.
    """
    began = time.monotonic()
    java = _shared_classes(folder) if is_long else ""
    plan = [
        (FORCED, random_kills[number // 2 % len(random_kills)], OPERATION)[(0, 1, 2, 1)[number % 4]]
        for number in range(kills)
    ]
    dies = count(1)

    def one(number: int) -> Round:
        name = scenarios[number % len(scenarios)]
        place = folder / f"{number:03}-{name}"
        place.mkdir()
        ran = _Run(place, name, random.Random(f"{seed}-{number}"), java, dies)
        try:
            ran.run(plan[number * of_a_round :][:of_a_round], spark)
        except ChaosError as error:
            ran.round.wrong.append(str(error))
        finally:
            ran.end()
        told = "; ".join(ran.round.wrong) or "equal"
        places = ", ".join(f"{often} {where}" for where, often in ran.round.places.items())
        total = ran.round.kills.total()
        tell(f"{time.monotonic() - began:6.0f} s  {place.name}: {total} kills ({places}): {told}")
        return ran.round

    with ThreadPoolExecutor(at_once) as pool:
        rounds = list(pool.map(one, range(-(-kills // of_a_round))))
    return Summary(rounds, time.monotonic() - began)


def _shared_classes(folder: Path) -> str:
    """Options by which a Java machine starts in half the time: with what another has loaded until its end."""
    archive, place = folder / "classes.jsa", folder / "classes"
    place.mkdir()
    first = _Run(
        place, "window", random.Random(0), f"-XX:ArchiveClassesAtExit={archive} -Xlog:cds=off", count(1)
    )
    first.feed()
    for source in first.sources:
        source.end()
    try:
        first.start("--to-the-end")
        first.wait(lambda: first.remember() or first.is_over(), feeding=False)
        first.wait(lambda: not any("java" in command(pid) for pid in first.outliving()), feeding=False)
    finally:
        first.end()
    return f"-XX:SharedArchiveFile={archive}"


class _Run:
    def __init__(
        self, folder: Path, name: str, chance: random.Random, java: str, dies: Iterator[int]
    ) -> None:
        self.folder, self.name, self.chance, self.java, self.dies = folder, name, chance, java, dies
        self.scenario = SCENARIOS[name]
        self.sources = self.scenario.sources(folder)
        self.round = Round(name)
        self.time = 0
        self.fed_at: tuple[int, float] = (-2, 0.0)
        self.ahead = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.is_hurt = False
        self.started: dict[int, str] = {}

    def run(self, kills: Sequence[str], spark: SparkSession) -> None:
        """Kill, and judge the end."""
        for what in kills:
            if what == "worker" and not self.scenario.has_workers:
                what = "java"
            while self.process is None or not self.kill(what):
                self.start()
            self.round.kills[what] += 1
            self.check_files()
        if self.process is not None:  # it has survived the last
            kill(*tree(self.process.pid))
            self.process.wait()
        for source in self.sources:
            source.end()
        self.start("--to-the-end")
        assert self.process is not None
        self.wait(lambda: self.process.poll() is not None, feeding=False)
        if self.process.returncode:
            raise self.failed("fails to come to the end")
        self.judge(spark)

    def end(self) -> None:
        """Leave no process behind."""
        if self.process is not None:
            kill(*tree(self.process.pid))
            self.process.wait()
        kill(*self.outliving())

    # -- lives ---------------------------------------------------------------------------------------

    def start(self, *options: str) -> None:
        for name in (FATAL, FATAL_OPERATION, STARTED):
            (self.folder / name).unlink(missing_ok=True)
        retries = self.chance.choice("14")
        words = [sys.executable, "-m", "tests.chaos.life", str(self.folder), self.name, retries, self.java]
        paths = os.pathsep.join([str(_WORDS), *(path for path in sys.path if path)])
        with (self.folder / "said.txt").open("ab") as said:
            self.process = subprocess.Popen(
                [*words, *options], env={**os.environ, "PYTHONPATH": paths}, stdout=said, stderr=said
            )
        self.round.lives += 1
        self.is_hurt = False

    def wait(
        self,
        until: Callable[[], object],
        *,
        seconds: float = _PATIENCE,
        feeding: bool = True,
        pause: float = 0.005,
    ) -> bool:
        """Wait, while rows arrive, until something is so, or for some seconds; whether it is so."""
        began = time.monotonic()
        while not until():
            if time.monotonic() - began > seconds:
                return False
            if feeding:
                self.feed()
            time.sleep(pause)
        return True

    def feed(self) -> None:
        """Let rows arrive when a step is done; before the next, some more, and then no more."""
        step, at = self.fed_at
        if self.last_step() != step:
            self.ahead = 0
        elif self.ahead == _AHEAD or time.monotonic() - at < 1:
            return
        self.ahead += 1
        for source in self.sources:
            source.feed(self.time, self.chance)
        self.time += self.chance.randint(0, 2)
        self.fed_at = self.last_step(), time.monotonic()

    def is_over(self) -> bool:
        assert self.process is not None
        return self.process.poll() is not None

    def gone(self) -> None:
        assert self.process is not None
        self.process.wait()
        self.process = None

    # -- kills ---------------------------------------------------------------------------------------

    def kill(self, what: str) -> bool:
        """Kill the query; False if it has ended first, of the kill of one of its workers."""
        process = self.process
        assert process is not None
        if what == "all while it starts":
            self.wait(self.is_over, seconds=self.chance.uniform(0.5, 6))
            self.kill_all()
            return True
        if not self.wait(lambda: (self.folder / STARTED).exists() or self.is_over()):
            raise self.failed("does not start")
        if what == FORCED:
            self.wait(self.is_over, seconds=self.chance.uniform(0, 1))
            (self.folder / FATAL).touch()
            if not self.wait(self.is_over):
                raise self.failed("does not come to a write")
            if process.returncode == -9:
                self.round.places["after a write, before its step is kept"] += 1
                self.gone()
                return True
        elif what == OPERATION:
            (self.folder / FATAL_OPERATION).write_text(str(next(self.dies) % _OPERATIONS + 1))
            if not self.wait(self.is_over):
                raise self.failed("does not come to an operation on files")
            if process.returncode == -9:
                self.round.before[re.sub(r"[0-9a-f]*\d[0-9a-f]*", "#", (self.folder / DIED).read_text())] += 1
                self.round.places[self.place()] += 1
                self.gone()
                return True
        elif what == OFFSETS:
            offsets = self.folder / "checkpoint" / "spark" / "offsets"
            before = set(offsets.iterdir()) if offsets.exists() else set()
            if not self.wait(
                lambda: self.is_over() or (offsets.exists() and not before.issuperset(offsets.iterdir())),
                pause=0.0,
            ):
                raise self.failed("comes to no micro-batch")
        elif what == "all when a step is kept":
            last = self.last_step()
            if not self.wait(lambda: self.is_over() or self.last_step() > last):
                raise self.failed("comes to no step")
        else:
            self.wait(self.is_over, seconds=self.chance.uniform(0, _AFTER_START))
        if self.is_over():
            if not self.is_hurt:
                raise self.failed("fails by itself")
            self.gone()
            return False
        if what.startswith("all"):
            self.kill_all()
        elif what == "driver":
            self.remember()
            self.told(lambda: kill(process.pid))
            self.gone()
        elif what in ("java", OFFSETS):
            (java,) = (pid for pid in children(process.pid) if "java" in command(pid))
            self.remember()
            self.told(lambda: kill(java))
            if not self.wait(self.is_over):
                raise self.failed("does not end when its Java machine has")
            self.gone()
        else:
            found: list[int] = []
            if not self.wait(lambda: found.extend(self.workers()) or found):
                raise self.failed("has no Python workers")
            self.remember()
            self.told(lambda: kill(self.chance.choice(found)))
            self.is_hurt = True
            if self.wait(self.is_over, seconds=self.chance.uniform(1, 3)):
                self.gone()
        return True

    def kill_all(self) -> None:
        assert self.process is not None
        pids = tree(self.process.pid)
        self.told(lambda: kill(*pids))
        self.gone()

    def workers(self) -> list[int]:
        """The Python processes that the Java machine has started."""
        assert self.process is not None
        named = ("-m pyspark", "worker_daemon")  # Spark's, and that of executors on which workers own buckets
        below = [pid for pid in tree(self.process.pid) if pid != self.process.pid]
        return [pid for pid in below if any(name in command(pid) for name in named)]

    def remember(self) -> None:
        """That processes may outlive the one that is killed."""
        assert self.process is not None
        self.started |= {pid: began for pid in tree(self.process.pid) if (began := born(pid))}

    def outliving(self) -> list[int]:
        """Those that do."""
        return [pid for pid, began in self.started.items() if born(pid) == began]

    def told(self, act: Callable[[], None]) -> None:
        act()
        self.round.places[self.place()] += 1

    def failed(self, what: str) -> ChaosError:
        said = (self.folder / "said.txt").read_text(errors="replace")
        return ChaosError(f"the query {self.name} {what}; it said:\n{said[-3000:]}")

    # -- what is there -------------------------------------------------------------------------------

    def last_step(self) -> int:
        """The number of the last step that was kept, -1 for none."""
        kept = self.folder / "checkpoint" / "windrow"
        names = (path.name for path in kept.glob("[0-9]*"))
        return max(map(int, names), default=-1)

    def place(self) -> str:
        """Where the query stands, by what is on the disk."""
        started, out, step = self.folder / STARTED, self.folder / "out", self.last_step()
        if not started.exists():
            return "before it was started"
        planned, written = self._spark_has("offsets"), out / f"part-{self._spark_has('offsets'):09}.parquet"
        if planned <= step:
            if self._spark_has("commits") < step:
                return "after a step was kept, before Spark knew"
            return "between two micro-batches"
        if written.exists() and written.stat().st_mtime > started.stat().st_mtime:
            return "after a write, before its step is kept"
        pending = [path for path in out.glob(".*pending") if path.stat().st_mtime > started.stat().st_mtime]
        if pending:
            return "in a write"
        return "in a step, before its write"

    def _spark_has(self, what: str) -> int:
        with suppress(OSError):
            names = [path.name for path in (self.folder / "checkpoint" / "spark" / what).iterdir()]
            return max((int(name) for name in names if name.isdigit()), default=-1)
        return -1

    def check_files(self) -> None:
        """Every file that has its name is whole, at any moment and for any reader."""
        for path in (self.folder / "out").glob("*.parquet"):
            pq.read_table(path)

    def changes(self, told: Sequence[pa.Table]) -> Counter:
        """The changes of each row, at each instant if that is the same in every run.

        Of a query that has none, how often each row is there.
        """
        if not self.scenario.is_relation:
            return rows_of(told)
        found = total(told)
        if not self.scenario.is_timed:
            return found
        rows: Counter = Counter()
        for (_, row), often in found.items():
            rows[row] += often
        return rows

    def judge(self, spark: SparkSession) -> None:
        """Hold what was given to the batch answer, and the accounts to what came."""
        session, found = Session(spark.newSession()), self.round
        for source in self.sources:
            source.record(session)
        asked = self.scenario.ask(session)
        whole = asked.changelog("diff") if self.scenario.is_relation else asked
        wanted = self.changes([whole.to_arrow()])
        files = sorted((self.folder / "out").glob("*.parquet"))
        given = [pq.read_table(path) for path in files]
        was = self.changes(given)
        if (+was, -was) != (+wanted, -wanted):
            differ = [(key, wanted[key], was[key]) for key in wanted | was if wanted[key] != was[key]]
            found.wrong.append(f"{len(differ)} changes differ (wanted, given): {differ[:5]}")
        late = late_rows(self.folder / "checkpoint")
        for source in self.sources:
            if late.get(source.name, Counter()) != source.late:
                found.wrong.append(f"late rows of {source.name} differ")
        found.rows = sum(source.row_count for source in self.sources)
        found.late = sum(source.late.total() for source in self.sources)
        found.given = sum(one.num_rows for one in given)
        counts = loads((self.folder / PROGRESS).read_text())
        told = [counts[f"rows_{what}"] for what in ("in", "late", "buffered", "used")]
        if told != [found.rows, found.late, 0, found.rows - found.late]:
            found.wrong.append(f"the accounts do not close: {counts}")

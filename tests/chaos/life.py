"""One life of a live query: a process that runs it until it is killed, or to the end of its streams.

``python -m tests.chaos.life FOLDER SCENARIO RETRIES JAVA [--to-the-end]``; JAVA are options of the machine.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame

from tests.chaos.processes import kill, tree
from tests.chaos.scenarios import SCENARIOS
from windrow import Session
from windrow.spark.live.sinks.sink import Files
from windrow.spark.runtime.local import local_session

FATAL, STARTED, PROGRESS = "fatal", "started", "progress.json"
"""Files in the folder: that the next write is the last, that the query runs, and what it said in the end."""
FATAL_OPERATION, DIED = "fatal-operation", "died"
"""Before which operation on its files the process dies, counted from now; and which one that was."""

OPERATIONS = frozenset({"open", "os.link", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate"})
"""As Python's audit hooks hear of them. Arrow writes what is in a file between two of these."""

JAVA = "spark.driver.extraJavaOptions"
CONF = {
    "spark.sql.shuffle.partitions": "1",
    "spark.default.parallelism": "1",
    "spark.windrow.task.rows": "1",
    "spark.driver.memory": "1g",
    JAVA: "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
}
"""Small data: what is fast to start."""


class Fatal(Files):
    """A folder of files, in which a write is this process's last where somebody has asked for that."""

    def __init__(self, folder: Path, fatal: Path) -> None:
        super().__init__(folder)
        self.fatal = fatal

    def write(self, rows: DataFrame, number: int) -> int | None:
        """Write, and die if rows were written."""
        return self._died(super().write(rows, number))

    def write_table(self, rows: pa.Table, number: int) -> int:
        """Write, and die if rows were written."""
        return self._died(super().write_table(rows, number))

    def _died(self, count: Any) -> Any:
        if count and self.fatal.exists():
            self.fatal.unlink()
            kill(*tree(os.getpid()))
        return count


def die_before_an_operation(folder: Path) -> None:
    """Have the process die before an operation on files of the folder, once somebody asks for that."""
    word, inside, left = folder / FATAL_OPERATION, threading.local(), [0]
    lock = threading.Lock()

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if event not in OPERATIONS or getattr(inside, "is_so", False):
            return
        if event == "open" and not given[2] & (os.O_WRONLY | os.O_RDWR):
            return
        if not str(given[0]).startswith(str(folder)):
            return
        inside.is_so = True
        try:
            with lock:
                if not left[0]:
                    if not word.exists():
                        return
                    left[0] = int(word.read_text())
                left[0] -= 1
                if not left[0]:
                    word.unlink()
                    where = Path(str(given[0])).relative_to(folder)
                    (folder / DIED).write_text(f"{event} of {where}")
                    kill(*tree(os.getpid()))
        finally:
            inside.is_so = False

    sys.addaudithook(hook)


def main(folder: Path, name: str, retries: str, java: str, to_the_end: bool) -> None:
    """Run the query."""
    die_before_an_operation(folder)
    conf = {**CONF, JAVA: f"{CONF[JAVA]} {java}"}
    spark = local_session(master=f"local[1,{retries}]", app_name=f"chaos {name}", conf=conf)
    session = Session(spark)
    scenario = SCENARIOS[name]
    for source in scenario.sources(folder):
        source.declare(session)
    query = scenario.ask(session).start(
        Fatal(folder / "out", folder / FATAL),
        checkpoint=folder / "checkpoint",
        trigger={"availableNow": True} if to_the_end else None,
        envelope="diff",
    )
    (folder / STARTED).touch()
    query.await_termination()
    if to_the_end:
        (folder / PROGRESS).write_text(json.dumps(query.progress))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:5], "--to-the-end" in sys.argv)

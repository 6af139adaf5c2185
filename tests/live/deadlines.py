"""A process that is killed as one of its queries tells what was due, while the other still waits for it.

``python -m tests.live.deadlines FOLDER``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

from tests.chaos.life import CONF, FATAL, Fatal
from windrow import Session
from windrow.relation import Relation
from windrow.spark.runtime.local import local_session
from windrow.streams import NamedStream

DELAYS = {"named": 600, "arriving": 1}
"""Seconds, by the names of the streams and queries."""

ARRIVED = "came"
"""The file in the folder that says, in microseconds, when the rows of the streaming DataFrame came."""

_QUERY = "SELECT k, wend, COUNT(*) AS n FROM TUMBLE(TABLE {}, DESCRIPTOR(t), 10) GROUP BY k, wend"


def asked(session: Session, folder: Path) -> dict[str, Relation]:
    """The queries: over a named stream, and over a streaming DataFrame."""
    arriving = session.spark.readStream.schema("t bigint, k string").parquet(str(folder / "arriving"))
    session.stream("arriving", arriving, rowtime="t", unit="seconds")
    session.stream("named", NamedStream.open(folder / "named"))
    return {
        name: session.sql(f"{_QUERY.format(name)} EMIT STREAM AFTER DELAY INTERVAL {delay} SECONDS")
        for name, delay in DELAYS.items()
    }


def main(folder: Path) -> None:
    """Run the queries."""
    session = Session(local_session(master="local[1]", app_name="deadlines", conf=CONF))
    stepped = threading.Event()

    def heard(progress: dict[str, Any]) -> None:
        if progress["query"] == "arriving" and progress["batch_rows_in"]:
            (folder / ARRIVED).write_text(str(progress["frontier"]))
        stepped.set()

    session.listeners.add(heard)
    for name, relation in asked(session, folder).items():
        sink = Fatal(folder / f"out-{name}", folder / FATAL)
        relation.start(sink, checkpoint=folder / f"checkpoint-{name}", name=name)
        stepped.wait()  # the first is to have its rows before the second, which ends the process, begins
    threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""The queries of NEXMark, and the streams that they are about."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from examples.nexmark.generate import Events
from windrow import Session

__all__ = ["NUMBERS", "as_stream", "query", "recorded", "side_input"]

NUMBERS = range(23)
_FOLDER = Path(__file__).parent / "queries"


def query(number: int) -> str:
    """The text of a query, to which EMIT may be added."""
    return (_FOLDER / f"q{number}.sql").read_text(encoding="utf-8").partition("\n")[2].strip()


def as_stream(number: int) -> str:
    """The query as ``SELECT STREAM``, which gives its rows as they come and takes none of them back."""
    return query(number).replace("SELECT", "SELECT STREAM", 1)


def side_input() -> pa.Table:
    """The table of the thirteenth query: a hundred keys and their values."""
    keys = range(100)
    return pa.table({"key": list(keys), "value": [f"value {key}" for key in keys]})


def recorded(session: Session, events: Events) -> None:
    """Declare the events as recorded logs."""
    session.register("side_input", side_input())
    for name, table in events.tables().items():
        log = session.spark.createDataFrame(table)
        session.stream(name, log, rowtime="dateTime", ptime="arrived", watermark="upto")

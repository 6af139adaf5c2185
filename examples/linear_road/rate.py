"""How many expressways this machine keeps up with: the log of so many minutes, evaluated in less than these.

python -m examples.linear_road.rate --minutes 30 --cars 400 1 2 4
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow.parquet as pq

from examples.linear_road.generate import reports
from windrow import Session

SCRIPT = Path(__file__).with_name("tolls.sql")


def seconds(session: Session, expressways: int, minutes: int, cars: int) -> tuple[int, int, float]:
    """How many reports and tolls there are, and how long the tolls of the log take."""
    table = reports(expressways, minutes, cars)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "reports.parquet"
        pq.write_table(table, file)
        session.register("reports", file)
        started = time.perf_counter()
        told = session.script(SCRIPT.read_text(encoding="utf-8"))[-1].to_arrow().num_rows
        return table.num_rows, told, time.perf_counter() - started


def main() -> None:
    """Print a line for each number of expressways."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("expressways", type=int, nargs="+")
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--cars", type=int, default=400, help="in each direction, about")
    given = parser.parse_args()
    session = Session()
    seconds(session, 1, 2, 20)  # what a first query costs is not the road's
    for count in given.expressways:
        rows, told, taken = seconds(session, count, given.minutes, given.cars)
        share = taken / (60 * given.minutes)
        print(  # noqa: T201 - it is what one calls it for
            f"{count} expressways: {rows:,} reports and {told:,} tolls of {given.minutes} minutes "
            f"in {taken:.1f} s, {share:.1%} of real time"
        )


if __name__ == "__main__":
    main()

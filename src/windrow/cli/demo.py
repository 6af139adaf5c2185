"""``windrow demo``: three windows on a small weather table, each with its SQL and its rows, and a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rich.syntax import Syntax
from rich.text import Text

from windrow.cli.connection import Connection, SessionFactory, open_session
from windrow.cli.output.rows_on_driver import as_text, translated
from windrow.cli.output.terminal import is_plain, stdout_console
from windrow.cli.output.text_tables import print_table
from windrow.cli.progress import Progress
from windrow.datasets import weather

if TYPE_CHECKING:
    from rich.console import Console

    from windrow.session import Session

__all__ = ["EXAMPLES", "show_demo"]

_ROWS = 6

EXAMPLES = (
    (
        "Cold spells: from a day below 2.5 °C to the last one before it is warmer again",
        """\
SELECT s.station, s.date AS first, e.date AS last, COUNT(w.val) AS days, MIN(w.val) / 10 AS lowest
FROM weather
WHERE dataType = 'TMIN'
WINDOW BY w AS (
  TYPE TUMBLING
  PARTITION BY station
  ORDER BY date
  START AS s WHEN s.val / 10 < 2.5
  END AS e NEXT AS n WHEN n.val / 10 >= 2.5)
HAVING COUNT(w.val) >= 5
ORDER BY station, first""",
    ),
    (
        "The week that begins with each day, whatever days are missing",
        """\
SELECT s.station, s.date AS first, COUNT(w.val) AS days, ROUND(AVG(w.val) / 10, 2) AS average
FROM weather
WHERE dataType = 'TMAX'
WINDOW BY w AS (
  TYPE SLIDING
  PARTITION BY station
  ORDER BY date
  START AS s WHEN true
  END AS e NEXT AS n WHEN n.date - s.date >= INTERVAL '7' DAY)
ORDER BY station, first""",
    ),
    (
        "The nights around each hard frost: a window has a label, and bounds relative to it",
        """\
SELECT l.station, l.date AS frost, l.val / 10 AS low, COUNT(w.val) AS nights,
  ROUND(AVG(w.val) / 10, 2) AS average
FROM weather
WHERE dataType = 'TMIN'
WINDOW BY w AS (
  TYPE SLIDING
  PARTITION BY station
  ORDER BY date
  LABEL AS l AT lp WHEN l.val / 10 < -3
  START AT sp WHEN lp - sp = 2
  END AT ep WHEN ep - lp = 2)
ORDER BY station, frost""",
    ),
)
"""What each query shows, and the query."""

_NEXT = """\
Try next

  windrow datasets weather --output weather.parquet
  windrow run -c "SELECT * FROM weather" --table weather=weather.parquet --limit 5
  windrow explain query.sql --table weather=weather.parquet --spark

Real weather: download a station's .dly file of NOAA's GHCN-Daily and attach it as a table.
In Python: windrow.Session().sql("…").show()"""


def show_demo(factory: SessionFactory | None, options: Connection, opened: Callable[[Session], None]) -> None:
    """Make the table, run the queries, and say what to try next."""
    console = stdout_console()
    plain = is_plain()
    with Progress() as progress:
        progress.begin("starting Spark")
        session = open_session(options, factory)
        opened(session)
        table = weather()
        session.register("weather", session.spark.createDataFrame(table))
        progress.pause()
        console.print(f"A table of {table.num_rows} daily measurements: {', '.join(table.column_names)}")
        for number, (title, sql) in enumerate(EXAMPLES, 1):
            _heading(console, f"{number}. {title}", plain)
            console.print(sql if plain else Syntax(sql, "sql", background_color="default"))
            console.print()
            progress.begin("running", session.spark)
            _run(console, session, sql, plain, progress)
    _heading(console, "How the first one runs, by EXPLAIN", plain)
    console.print(Text(session.sql(EXAMPLES[0][1]).plan(), style="" if plain else "dim"))
    console.print()
    console.print(Text(_NEXT))


def _run(console: Console, session: Session, sql: str, plain: bool, progress: Progress) -> None:
    relation = session.sql(sql)
    with translated(sql):
        rows = as_text(relation.df.limit(_ROWS + 1), iso=False).collect()
    progress.pause()
    names = relation.df.columns
    numeric = [kind not in ("string", "date") for _, kind in relation.df.dtypes]
    print_table(console, names, rows[:_ROWS], numeric, more="" if len(rows) > _ROWS else None, plain=plain)


def _heading(console: Console, text: str, plain: bool) -> None:
    console.print()
    console.print(Text(text, style="" if plain else "bold cyan"))
    console.print()

"""``windrow run``: the statements of a script in order, and the rows of its queries."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pyspark.sql import types as T
from rich.console import Console

from windrow.cli.connection import Connection, SessionFactory, open_session, values, with_tables
from windrow.cli.output.formats import Format, csv_lines, markdown_lines
from windrow.cli.output.rows_on_driver import as_json, as_text, stream, translated
from windrow.cli.output.terminal import errors_console, is_plain, stdout_console
from windrow.cli.output.text_tables import ROWS, print_table
from windrow.cli.output.whole_files import atomically, writing_to
from windrow.cli.progress import Progress
from windrow.cli.set_aside import lines_of
from windrow.cli.sql_script import ScriptStatement
from windrow.errors import AnalysisError, UsageError, WindrowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live.reports.rows_set_aside import SetAside

__all__ = [
    "Output",
    "Picture",
    "PrintOptions",
    "at_its_place",
    "draw_picture",
    "late_for_groups",
    "print_rows",
    "report_set_aside",
    "run_script",
    "write_rows",
]

_COUNT_EVERY = 1000
_MORE = " (--limit N shows N, --output writes all)"


@dataclass(frozen=True, slots=True)
class PrintOptions:
    """How time-varying relations are printed: their rows as of an instant, or their changelog."""

    at: str | None = None
    envelope: str | None = None
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.at is not None and self.envelope is not None:
            raise UsageError(
                "--at cannot be combined with --changelog", condition="TWO_VIEWS", hint="use one of them"
            )

    def of(self, relation: Relation, statement: ScriptStatement) -> Relation:
        """The relation to print."""
        if not statement.is_query:
            return relation
        if self.at is not None:
            return relation.at(self.at)
        return relation if self.envelope is None else relation.changelog(self.envelope, self.key)


@dataclass(frozen=True, slots=True)
class Picture:
    """The file of a picture, and the partition and the number of rows that it draws."""

    path: Path
    key: tuple[str, ...] | None = None
    rows: int = 200


@dataclass(frozen=True)
class Output:
    """Where rows go: their form, the file of the last query, a limit, and a view of time-varying relations.

    `picture` is the last query's picture; `more` says how to see the rest of a table.
    """

    format: Format
    path: Path | None = None
    limit: int | None = None
    view: PrintOptions = field(default_factory=PrintOptions)
    picture: Picture | None = None
    more: str = _MORE


def run_script(
    statements: list[ScriptStatement],
    options: Connection,
    output: Output,
    factory: SessionFactory | None,
    opened: Callable[[Session], None],
) -> None:
    """Run the statements in order and print the rows of each that has any.

    With an output file, the last query's rows go there, and those of earlier queries to stdout.

    Parameters
    ----------
    statements, options, output
        What to run, in which session, and where the rows go.
    factory
        Makes the SparkSession; None for the one of the command line.
    opened
        Called with the session as soon as there is one, so that it can be stopped.

    Raises
    ------
    WindrowError
        Located in the script.
    """
    needs_query = output.path is not None or output.picture is not None
    last = _last_query(statements) if needs_query else None
    with Progress() as progress:
        progress.begin("starting Spark")
        session = open_session(options, factory)
        opened(session)
        params = values(session.spark, options.params)
        for statement in statements:
            progress.begin("running", session.spark)
            with at_its_place(statement, options):
                result = session.sql(statement.padded, **params)
                relation = output.view.of(result, statement)
                if statement is last and output.path is not None:
                    write_rows(relation, statement, output, output.path, progress)
                elif relation.df.columns and not statement.is_silent:
                    print_rows(relation, statement, output, progress)
                if statement is last and output.picture is not None:
                    progress.begin("drawing", session.spark)
                    draw_picture(relation, output.picture)
                for_groups = late_for_groups(result)
            progress.pause()
            report_set_aside(for_groups)
        report_set_aside(session.set_aside())


def late_for_groups(relation: Relation) -> Sequence[SetAside]:
    """The rows that are late for the groups of a query with EMIT, or of one that a statement writes."""
    from windrow.relation_kinds import TimeVaryingRelation

    query = relation.written_from or relation
    return query.late_for_groups() if isinstance(query, TimeVaryingRelation) else ()


def report_set_aside(found: Sequence[SetAside]) -> None:
    """Say on stderr which rows are set aside."""
    for one in found:
        for line in lines_of(one):
            errors_console().print(line, style="dim", markup=False)


@contextmanager
def at_its_place(statement: ScriptStatement, options: Connection, inserted: int = 0) -> Iterator[None]:
    """Raise a statement's errors with their position in the script, and hints that name the tables."""
    try:
        yield
    except WindrowError as error:
        raise with_tables(statement.relocated(error, inserted), options) from error.__cause__


def _last_query(statements: list[ScriptStatement]) -> ScriptStatement:
    found = [statement for statement in statements if statement.returns_rows]
    if not found:
        raise UsageError(
            "script has no query for --output or --plot",
            condition="NO_QUERY",
            hint="end it with a SELECT, or leave the option out",
        )
    return found[-1]


def write_rows(
    relation: Relation,
    statement: ScriptStatement,
    output: Output,
    path: Path,
    progress: Progress,
) -> None:
    """Write the rows of the last query to the file."""
    if not relation.df.columns:
        raise AnalysisError(
            "statement has no rows to write", condition="NO_ROWS", hint="end the script with a query"
        )
    with atomically(path) as temporary:
        if output.format is Format.PARQUET:
            from windrow.cli.output.parquet import write_parquet

            frame = relation.ordered if output.limit is None else relation.ordered.limit(output.limit)
            rows = write_parquet(frame, temporary, path, statement.padded, progress.count)
        else:
            with writing_to(path), temporary.open("w", encoding="utf-8", newline="") as file:
                rows = _put(relation, statement, output, file, progress)
    progress.pause()
    if sys.stderr.isatty():
        errors_console().print(f"{rows:,} rows written to {path}", style="dim", markup=False)


def draw_picture(relation: Relation, picture: Picture) -> None:
    """Draw a relation into a file.

    Raises
    ------
    WindrowError
        ``NOTHING_TO_DRAW``, ``MISSING_PACKAGE``, ``UNKNOWN_FORMAT``, ``OUTPUT_NOT_WRITTEN``.
    """
    from windrow.plot import chart_format, save

    path, form = picture.path, chart_format(picture.path)
    chart = relation.plot(key=picture.key, rows=picture.rows)
    with atomically(path) as temporary, writing_to(path):
        save(chart, temporary, form)


def print_rows(relation: Relation, statement: ScriptStatement, output: Output, progress: Progress) -> None:
    """Print the rows to stdout."""
    form = Format.TABLE if output.format is Format.PARQUET else output.format
    to_stdout = Output(form, None, output.limit, more=output.more)
    _put(relation, statement, to_stdout, sys.stdout, progress)
    sys.stdout.flush()


def _put(
    relation: Relation,
    statement: ScriptStatement,
    output: Output,
    file: IO[str],
    progress: Progress,
) -> int:
    """Write the rows to a text file or to stdout, and return their number."""
    if output.format is Format.TABLE:
        return _put_table(relation, statement, output, file, progress)
    frame = relation.ordered if output.limit is None else relation.ordered.limit(output.limit)
    with translated(statement.padded):
        text = as_json(frame) if output.format is Format.JSON else as_text(frame, iso=True)
    rows = stream(text, statement.padded)
    if output.format is Format.JSON:
        lines: Iterable[str] = (f"{line}\n" for (line,) in rows)
        header = 0
    else:
        make = csv_lines if output.format is Format.CSV else markdown_lines
        lines = make(frame.columns, rows)
        header = 1 if output.format is Format.CSV else 2
    written = 0
    is_terminal = file.isatty()
    for line in lines:
        written += 1
        if is_terminal and written > header:
            progress.pause()
        if written % _COUNT_EVERY == 0:
            progress.count(written - header)
        file.write(line)
    return written - header


def _put_table(
    relation: Relation,
    statement: ScriptStatement,
    output: Output,
    file: IO[str],
    progress: Progress,
) -> int:
    most = ROWS if output.limit is None else output.limit
    with translated(statement.padded):
        # one more row than is printed shows whether there are more
        rows = as_text(relation.ordered.limit(most + 1), iso=False).collect()
    progress.pause()
    to_stdout = file is sys.stdout
    print_table(
        stdout_console() if to_stdout else Console(file=file, width=100_000, emoji=False),
        relation.df.columns,
        list(itertools.islice(rows, most)),
        [isinstance(field.dataType, T.NumericType) for field in relation.df.schema.fields],
        more=output.more if len(rows) > most else None,
        plain=is_plain() or not to_stdout,
    )
    return min(len(rows), most)

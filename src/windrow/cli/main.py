"""The commands and their options. What they do is imported when they are called: ``--help`` is instant."""

from __future__ import annotations

import atexit
import os
import sys
import warnings
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from windrow import __version__
from windrow.cli.calls import called, refuse_together, retains_malformed, with_traces
from windrow.cli.connection import connection
from windrow.cli.options import (
    BOUND,
    COMMAND,
    CONF,
    DEBUG,
    FILE,
    MASTER,
    ON_LATE,
    PARAM,
    PRODUCER,
    PTIME,
    ROWTIME,
    ROWTIME_UNIT,
    STREAM,
    TABLE,
    TABLE_FORMAT,
)
from windrow.cli.output.formats import Format, chosen_format
from windrow.cli.reporting import (
    CLOSED_PIPE,
    FAILED,
    INTERRUPTED,
    TERMINATED,
    reporting,
    show_warning,
)

if TYPE_CHECKING:
    pass

__all__ = ["app", "run"]

app = typer.Typer(
    name="windrow",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def run() -> None:
    """The console script: runs the command that the arguments name, and exits."""
    # None where the shell has closed them (`>&-`).
    sys.stdout = sys.stdout or Path(os.devnull).open("w")  # noqa: SIM115 - until the process ends
    sys.stderr = sys.stderr or Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # JSON is UTF-8 by its standard, CSV in practice, whatever the locale.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="replace")
    warnings.showwarning = show_warning  # type: ignore[assignment] # it needs fewer arguments
    try:
        app()
    except SystemExit as ended:
        if ended.code in (FAILED, INTERRUPTED, CLOSED_PIPE, TERMINATED):
            _exit_at_once(ended.code)
        raise


def _exit_at_once(code: int) -> None:
    """End the process after its exit handlers, without finalizers of objects.

    The finalizers of PySpark's iterators would first read all remaining rows.
    """
    atexit._run_exitfuncs()
    with suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _help(*paragraphs: str, examples: tuple[str, ...]) -> str:
    """A command's help. Typer leaves the line breaks of what follows the first paragraph."""
    listed = "\n".join(f"  [cyan]{line}[/]" for line in examples)
    return "\n\n".join([*paragraphs, f"[bold]Examples[/]\n{listed}"])


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"windrow {__version__}")
        raise typer.Exit


@app.callback(
    help=_help(
        "Temporal SQL on Apache Spark: windows by predicates on rows.",
        examples=("windrow demo", "windrow run query.sql --table readings=readings.parquet"),
    )
)
def windrow(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit."),
    ] = False,
) -> None:
    """The program without a command."""


@app.command(
    "run",
    help=_help(
        "Run a script, and show the rows of its queries.",
        "[bold]csv[/] has a header line, the quotes of RFC 4180, lines that end in LF, and NULL as an "
        "empty field. [bold]json[/] has an object a line, with NULL fields, ISO times, decimals as numbers "
        "with all digits, and NaN and infinities as strings. [bold]parquet[/] needs --output.",
        "Exit codes: 0, 1 (query failed), 2 (usage), 130 (Ctrl-C), 141 (the reader of the output left), 143 "
        "(SIGTERM).",
        examples=(
            'windrow run -c "SELECT * FROM t LIMIT 3" --table t=readings.csv',
            "windrow run query.sql -t t='data/*.parquet' --output result.parquet",
            "windrow run query.sql -t t=t.csv --param low=25 --param \"since=DATE '2024-01-31'\"",
            "cat query.sql | windrow run -t t=USW00094728.dly --format json | head",
            'windrow run -c "SELECT * FROM s [RANGE 1]" --stream s=log.cql --envelope cql',
            "windrow run pipeline.sql --live --checkpoint state",
        ),
    ),
)
def run_command(
    context: typer.Context,
    file: FILE = None,
    command: COMMAND = None,
    table: TABLE = None,
    streams: STREAM = None,
    rowtime: ROWTIME = None,
    rowtime_unit: ROWTIME_UNIT = None,
    ptime: PTIME = None,
    producer: PRODUCER = None,
    bound: BOUND = None,
    on_late: ON_LATE = None,
    param: PARAM = None,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            metavar=f"<{'|'.join(Format)}>",
            help="The form of the rows; by default that of the output's suffix, or a table.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="A file for the rows of the last query; those of earlier ones go to stdout. It is replaced "
            "when all rows are written, and unchanged when the query fails.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            metavar="PATH",
            help="A file for a picture of the last query's windows, matches or changes: .svg, .png or .html.",
            show_default=False,
        ),
    ] = None,
    plot_key: Annotated[
        str | None,
        typer.Option(
            "--plot-key",
            metavar="VALUE,…",
            help="Of --plot: draw the partition with these values of PARTITION BY.",
            show_default=False,
        ),
    ] = None,
    plot_rows: Annotated[
        int | None,
        typer.Option(
            "--plot-rows",
            metavar="N",
            min=1,
            help="Of --plot: the greatest number of rows of each partition.",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            min=0,
            help="The greatest number of rows of each query; by default 50 in a table, else all.",
            show_default=False,
        ),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="INSTANT",
            help="Of relations over streams: the rows as of this instant; by default the logs' last one.",
            show_default=False,
        ),
    ] = None,
    changelog: Annotated[
        bool, typer.Option("--changelog", help="Of relations over streams: inserts and deletes over time.")
    ] = False,
    envelope: Annotated[
        str | None,
        typer.Option(
            "--envelope",
            metavar="delta|op|diff|cql",
            help="The form of a changelog (implies --changelog); by default delta.",
            show_default=False,
        ),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            metavar="COLUMN,…",
            help="The key columns of a changelog (implies --changelog): a delete and an insert of one key "
            "are an update.",
            show_default=False,
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help="Run the script as a pipeline: its live queries run until they are stopped (Ctrl-C).",
        ),
    ] = False,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint",
            metavar="DIR",
            help="Of --live: the folder from which its queries resume.",
            show_default=False,
        ),
    ] = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            "--trigger",
            metavar="INTERVAL|now",
            help="Of --live: the interval of micro-batches, such as '10 seconds'; now processes the present "
            "input and ends.",
            show_default=False,
        ),
    ] = None,
    on_malformed: Annotated[
        str | None,
        typer.Option(
            "--on-malformed",
            metavar="<fail|keep>",
            help="Of --live: whether records that cannot be read or computed fail a query, or go to a side "
            "output.",
            show_default=False,
        ),
    ] = None,
    ui: Annotated[
        bool,
        typer.Option(
            "--ui",
            help="Of --live: serve a web page about its queries on this machine; stderr has its address.",
        ),
    ] = False,
    ui_port: Annotated[
        int | None,
        typer.Option(
            "--ui-port",
            metavar="PORT",
            min=0,
            max=65_535,
            help="Of --ui: the port of the page; by default any free one.",
            show_default=False,
        ),
    ] = None,
    master: MASTER = "local[*]",
    conf: CONF = None,
    table_format: TABLE_FORMAT = None,
    debug: DEBUG = False,
) -> None:
    """Run a script, and show the rows of its queries."""
    with called(context, debug) as call:
        from windrow.cli.sql_script import read_script, split_script

        asks_changes = changelog or envelope is not None or key is not None
        output_form = chosen_format(form, output)
        script = read_script(file, command)
        if plot is not None:
            from windrow.plot import chart_format

            chart_format(plot)
        else:
            refuse_together("no --plot", {"--plot-key": plot_key, "--plot-rows": plot_rows})
        of_streams = rowtime, rowtime_unit, ptime, producer, bound, on_late
        options = connection(
            master, with_traces(conf, debug), table, table_format, param, streams, of_streams
        )
        if live:
            recorded = {"--output": output, "--limit": limit, "--at": at, "--changelog": asks_changes or None}
            refuse_together("--live", {**recorded, "--plot": plot})
            from windrow.cli.live_command import Live, run_live

            port = (ui_port or 0) if ui or ui_port is not None else None
            how_live = Live(checkpoint, trigger, output_form, port, retains_malformed(on_malformed))
            run_live(script, options, how_live, call.factory, call.opened)
            return
        page = {"--ui": ui or None, "--ui-port": ui_port, "--on-malformed": on_malformed}
        refuse_together("no --live", {"--checkpoint": checkpoint, "--trigger": trigger, **page})
        statements = split_script(script)
        from windrow.cli.run import Output, Picture, PrintOptions, run_script

        columns = tuple(name.strip() for name in key.split(",")) if key is not None else ()
        view = PrintOptions(at, (envelope or "delta") if asks_changes else None, columns)
        drawn_key = tuple(value.strip() for value in plot_key.split(",")) if plot_key is not None else None
        picture = Picture(plot, drawn_key, plot_rows or 200) if plot is not None else None
        into = Output(output_form, output, limit, view, picture)
        run_script(statements, options, into, call.factory, call.opened)


@app.command(
    "explain",
    help=_help(
        "Show how each statement of a script would be run, without running it.",
        "Temporary views are made, and SET, USE and DECLARE done, so that later statements can be read.",
        examples=(
            "windrow explain query.sql --table t=readings.parquet",
            "windrow explain query.sql --table t=readings.parquet --spark",
        ),
    ),
)
def explain_command(
    context: typer.Context,
    file: FILE = None,
    command: COMMAND = None,
    table: TABLE = None,
    streams: STREAM = None,
    rowtime: ROWTIME = None,
    rowtime_unit: ROWTIME_UNIT = None,
    ptime: PTIME = None,
    producer: PRODUCER = None,
    bound: BOUND = None,
    on_late: ON_LATE = None,
    param: PARAM = None,
    spark: Annotated[bool, typer.Option("--spark", help="Show Spark's plan as well.")] = False,
    master: MASTER = "local[*]",
    conf: CONF = None,
    table_format: TABLE_FORMAT = None,
    debug: DEBUG = False,
) -> None:
    """Show how each statement of a script would be run."""
    with called(context, debug) as call:
        from windrow.cli.sql_script import read_script, split_script

        statements = split_script(read_script(file, command))
        of_streams = rowtime, rowtime_unit, ptime, producer, bound, on_late
        options = connection(
            master, with_traces(conf, debug), table, table_format, param, streams, of_streams
        )
        from windrow.cli.plan_commands import explain_script

        plans = explain_script(statements, options, call.factory, call.opened, spark=spark)
        for statement, plan in zip(statements, plans, strict=True):
            if len(statements) > 1:
                first = "" if statement is statements[0] else "\n"
                sys.stdout.write(f"{first}-- statement of line {statement.line}\n")
            sys.stdout.write(f"{plan}\n")


@app.command(
    "check",
    help=_help(
        "Say whether a script is understood: its syntax, names and types, without running it.",
        examples=("windrow check query.sql --table t=readings.parquet",),
    ),
)
def check_command(
    context: typer.Context,
    file: FILE = None,
    command: COMMAND = None,
    table: TABLE = None,
    streams: STREAM = None,
    rowtime: ROWTIME = None,
    rowtime_unit: ROWTIME_UNIT = None,
    ptime: PTIME = None,
    producer: PRODUCER = None,
    bound: BOUND = None,
    on_late: ON_LATE = None,
    param: PARAM = None,
    master: MASTER = "local[*]",
    conf: CONF = None,
    table_format: TABLE_FORMAT = None,
    debug: DEBUG = False,
) -> None:
    """Say whether a script is understood."""
    with called(context, debug) as call:
        from windrow.cli.sql_script import read_script, split_script

        statements = split_script(read_script(file, command))
        of_streams = rowtime, rowtime_unit, ptime, producer, bound, on_late
        options = connection(
            master, with_traces(conf, debug), table, table_format, param, streams, of_streams
        )
        from windrow.cli.plan_commands import check_script

        check_script(statements, options, call.factory, call.opened)
        sys.stdout.write(f"OK: {len(statements)} statement{'' if len(statements) == 1 else 's'}\n")


@app.command(
    "shell",
    help=_help(
        "Enter statements at a prompt, with history, completion and colours.",
        "Spark starts while you type. [bold].help[/] lists what begins with a dot.",
        examples=(
            "windrow shell",
            "windrow shell --table readings=readings.parquet",
            "windrow shell < script.sql",
        ),
    ),
)
def shell_command(
    context: typer.Context,
    table: TABLE = None,
    streams: STREAM = None,
    rowtime: ROWTIME = None,
    rowtime_unit: ROWTIME_UNIT = None,
    ptime: PTIME = None,
    producer: PRODUCER = None,
    bound: BOUND = None,
    on_late: ON_LATE = None,
    param: PARAM = None,
    master: MASTER = "local[*]",
    conf: CONF = None,
    table_format: TABLE_FORMAT = None,
    debug: DEBUG = False,
) -> None:
    """Enter statements at a prompt."""
    with called(context, debug) as call:
        of_streams = rowtime, rowtime_unit, ptime, producer, bound, on_late
        options = connection(
            master, with_traces(conf, debug), table, table_format, param, streams, of_streams
        )
        from windrow.cli.shell.start import start_shell

        try:
            has_failed = start_shell(options, call.factory, call.opened, debug=debug)
        finally:
            call.close()
        if call.is_own:
            # Spark may be half way up in its thread, and nobody waits for it.
            _exit_at_once(FAILED if has_failed else 0)
        if has_failed:
            raise typer.Exit(FAILED)


@app.command(
    "demo",
    help=_help(
        "Run three windows on a small weather table: the SQL and the rows of each, and a plan.",
        examples=("windrow demo", "windrow demo | less"),
    ),
)
def demo_command(
    context: typer.Context, master: MASTER = "local[*]", conf: CONF = None, debug: DEBUG = False
) -> None:
    """Run the demonstration."""
    with called(context, debug) as call:
        from windrow.cli.demo import show_demo

        show_demo(call.factory, connection(master, with_traces(conf, debug)), call.opened)


@app.command(
    "doctor",
    help=_help(
        "Check Python, Java, Spark and the packages, and show how to fix what is wrong.",
        "Exits with 1 when something fails.",
        examples=("windrow doctor", "windrow doctor --spark"),
    ),
)
def doctor_command(
    spark: Annotated[
        bool, typer.Option("--spark", help="Also start Spark and run a query, which takes some seconds.")
    ] = False,
    debug: DEBUG = False,
) -> None:
    """Examine what Windrow needs."""
    with reporting(debug):
        from windrow.cli.doctor_command import show_doctor

        if not show_doctor(start_spark=spark):
            raise typer.Exit(FAILED)


@app.command(
    "datasets",
    help=_help(
        "List the datasets that Windrow makes itself, or write one to a file.",
        "They have the same rows each time.",
        examples=(
            "windrow datasets",
            "windrow datasets weather --output weather.parquet --stations 100 --days 3650",
        ),
    ),
)
def datasets_command(
    name: Annotated[
        str | None, typer.Argument(help="The one to write; without it, they are listed.", show_default=False)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A .parquet or .csv file.", show_default=False),
    ] = None,
    stations: Annotated[
        int | None, typer.Option(min=0, help="weather: how many stations.", show_default="3")
    ] = None,
    days: Annotated[
        int | None, typer.Option(min=0, help="weather: how many days.", show_default="60")
    ] = None,
    start: Annotated[
        datetime | None,
        typer.Option(formats=["%Y-%m-%d"], help="weather: the first day.", show_default="2024-01-01"),
    ] = None,
    debug: DEBUG = False,
) -> None:
    """List the datasets, or write one."""
    with reporting(debug):
        from windrow.cli.datasets_command import list_datasets, write_dataset

        arguments = {"stations": stations, "days": days, "start": start.date() if start else None}
        options = {key: value for key, value in arguments.items() if value is not None}
        if name is None:
            list_datasets()
        else:
            write_dataset(name, output, options)

"""``python -m benchmarks`` runs the benchmarks; ``python -m benchmarks report FILE`` writes their page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.against import COMPILED, compared
from benchmarks.closed_keys import of_queries
from benchmarks.comparisons import catalogue
from benchmarks.data import CACHE
from benchmarks.live.cases import CASES, NEXMARK
from benchmarks.live.report import markdown as live_markdown
from benchmarks.live.report import write as write_live
from benchmarks.live.running import LOADS, Figure
from benchmarks.live.running import run as run_live
from benchmarks.punctuations import SIZES, auctions, measured
from benchmarks.report import PAGE, into_page, markdown, table
from benchmarks.results import Failure, Row, read, write
from benchmarks.running import MEMORY, Settings, run
from benchmarks.systems import cores

PLACES = 11_000_000
"""2,000 stations and 5,500 days."""
WIDTH_OF_A_FILE = 200

app = typer.Typer(add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback(invoke_without_command=True)
def main(
    context: typer.Context,
    full: Annotated[bool, typer.Option("--full", help="The larger run: more time, data and rounds.")] = False,
    only: Annotated[list[str] | None, typer.Option(help="Only this comparison; may be repeated.")] = None,
    rows: Annotated[
        int, typer.Option(help="The full size; one row in ten of these is left out.", min=1)
    ] = PLACES,
    minutes: Annotated[
        float | None, typer.Option(help="What the run may take, about.  [default: 14, full 180]", min=0)
    ] = None,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = CACHE / "results.json",
) -> None:
    """Compare Windrow with its peers, on this machine, and print a table of ratios."""
    if context.invoked_subcommand:
        return
    comparisons = catalogue(cores(), full=full)
    names = [comparison.name for comparison in comparisons] + [MEMORY]
    if unknown := set(only or []) - set(names):
        raise typer.BadParameter(f"no comparison {', '.join(unknown)}; there are {', '.join(names)}")
    settings = Settings(
        rows, 3 if full else 2, minutes if minutes is not None else 180 if full else 14, 4 if full else 1
    )
    console = Console()
    if not console.is_terminal:
        console.width = WIDTH_OF_A_FILE

    def tell(name: str, told: Sequence[Row] | Failure) -> None:
        if isinstance(told, Failure):
            console.print(f"[red]{name} failed[/]: {told.error}", highlight=False)
        for row in () if isinstance(told, Failure) else told:
            console.print(
                f"{name}, {row.rows:,} rows: {row.ratio:.3g} × {row.peer}", highlight=False, markup=False
            )

    done = run(
        [comparison for comparison in comparisons if not only or comparison.name in only],
        settings,
        with_memory=not only or MEMORY in only,
        tell=tell,
    )
    write(done, out)
    console.print(table(done))
    console.print(f"Written to {out}", highlight=False)


@app.command()
def against(
    other: Annotated[Path, typer.Argument(help="Another checkout of Windrow.", exists=True, file_okay=False)],
    only: Annotated[list[str] | None, typer.Option(help="Only this query; may be repeated.")] = None,
    rows: Annotated[int, typer.Option(help="The size; one row in ten of these is left out.", min=1)] = (
        PLACES // 4
    ),
    rounds: Annotated[int, typer.Option(help="How often each query is timed.", min=1)] = 5,
    least: Annotated[float, typer.Option(help="The least speed, in that of the other.", min=0)] = 0.95,
) -> None:
    """Time what is compiled in this checkout and another, in turns; fails where this one is slower."""
    if unknown := set(only or []) - set(COMPILED):
        raise typer.BadParameter(f"no query {', '.join(unknown)}; there are {', '.join(COMPILED)}")
    found = compared(other, only or list(COMPILED), rows, rounds, least)
    typer.echo("| query | here | there | speed |\n|---|--:|--:|--:|")
    for one in found:
        typer.echo(f"| {one.name} | {one.here:.2f} s | {one.there:.2f} s | {one.speed:.2f} × |")
    slower = [one.name for one in found if one.speed < least]
    if slower:
        typer.echo(f"slower than {least} × the other: {', '.join(slower)}")
        raise typer.Exit(1)


@app.command("live")
def live_queries(
    only: Annotated[list[str] | None, typer.Option(help="Only this case; may be repeated.")] = None,
    rows: Annotated[
        int, typer.Option(help="Of a large micro-batch, of which a run beside Flink has eight.", min=1000)
    ] = 1_000_000,
    rounds: Annotated[int, typer.Option(help="How often Windrow and Flink take turns.", min=1)] = 3,
    flink: Annotated[
        Path | None, typer.Option(help="A Python with PyFlink, to compare with it.", exists=True)
    ] = None,
    load: Annotated[
        list[str] | None, typer.Option(help=f"Only these of {', '.join(LOADS)}; may be repeated.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The file for the results.")] = CACHE / "live.json",
) -> None:
    """Time live queries against Spark's own streaming, and against Flink SQL."""
    if unknown := set(only or []) - {*CASES, NEXMARK}:
        raise typer.BadParameter(f"no case {', '.join(unknown)}; there are {NEXMARK}, {', '.join(CASES)}")
    nexmark = [name for name in CASES if name.startswith(NEXMARK)]
    usual = [name for name in CASES if name != "five-minutes" and name not in nexmark]
    names = [each for name in only or usual for each in (nexmark if name == NEXMARK else [name])]
    if unknown := set(load or []) - set(LOADS):
        raise typer.BadParameter(f"no load {', '.join(unknown)}; there are {', '.join(LOADS)}")

    def tell(figure: Figure) -> None:
        typer.echo(
            f"{figure.case} {figure.load} {figure.system}: {figure.rate:,.0f} rows/s,"
            f" p50 {figure.p50:.2f} s, p99 {figure.p99:.2f} s, {figure.given:,} rows emitted"
            + (f", steady {figure.steady:,.0f} rows/s" if figure.steady else "")
        )

    figures = list(run_live(CACHE / "live", names, rows, flink, tell, tuple(load or LOADS), rounds))
    write_live(figures, out)
    typer.echo(f"Written to {out}")


@app.command("report-live")
def report_live(
    files: Annotated[list[Path], typer.Argument(help="What runs have written.", exists=True, dir_okay=False)],
    section: Annotated[str, typer.Option(help="Of the page: live, executors, nexmark, or flink.")] = "live",
) -> None:
    """Write runs of live queries into benchmarks/figures.md, in place of those there."""
    into_page([live_markdown(file) for file in files], section=section)
    typer.echo(f"Written into {PAGE}")


@app.command()
def report(
    files: Annotated[list[Path], typer.Argument(help="What runs have written.", exists=True, dir_okay=False)],
) -> None:
    """Write runs into benchmarks/figures.md, in place of the results there."""
    into_page([markdown(read(file)) for file in files])
    typer.echo(f"Written into {PAGE}")


@app.command()
def punctuations() -> None:
    """Print what a punctuation of one key costs, by how many keys are kept."""
    sizes = " | ".join(f"{size:,} keys" for size in SIZES)
    typer.echo(f"| operator | {sizes} |\n|{'---|' * (len(SIZES) + 1)}")
    for cost in measured():
        typer.echo(f"| {cost.name} | {' | '.join(f'{each:.2f} ms' for each in cost.milliseconds)} |")
    names = ("bids", "auctions emitted", "groups retained", "patterns stored", "bytes", "seconds")
    typer.echo(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")
    for kept in auctions():
        told = (kept.bids, kept.given, kept.groups, kept.promises, kept.bytes)
        typer.echo(f"| {' | '.join(f'{each:,}' for each in told)} | {kept.seconds:.1f} |")
    typer.echo(f"\n| live query | {sizes} |\n|{'---|' * (len(SIZES) + 1)}")
    for cost in of_queries():
        typer.echo(f"| {cost.name} | {' | '.join(f'{each:,.0f} ms' for each in cost.milliseconds)} |")


if __name__ == "__main__":
    app()

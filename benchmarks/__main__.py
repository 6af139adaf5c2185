"""``python -m benchmarks`` runs the benchmarks; ``python -m benchmarks report FILE`` writes their page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from benchmarks.comparisons import catalogue
from benchmarks.data import CACHE
from benchmarks.report import PAGE, into_page, table
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
def report(
    file: Annotated[Path, typer.Argument(help="What a run has written.", exists=True, dir_okay=False)],
    section: Annotated[str, typer.Option(help="Of the page: results, or streams.")] = "results",
) -> None:
    """Write a run into docs/benchmarks.md, in place of the results there."""
    into_page(read(file), section=section)
    typer.echo(f"Written into {PAGE}")


if __name__ == "__main__":
    app()

"""``windrow datasets``: the tables that Windrow makes itself, listed or written to a file."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet
from rich import box
from rich.table import Table

from windrow.cli.output.terminal import errors_console, is_plain, stdout_console
from windrow.cli.output.whole_files import atomically, writing_to
from windrow.datasets import DATASETS, write_weather
from windrow.errors import UsageError, refuse_unknown

__all__ = ["list_datasets", "write_dataset"]

_SUFFIXES = (".parquet", ".csv")


def list_datasets() -> None:
    """Print the names and the contents of the datasets."""
    plain = is_plain()
    table = Table("name", "holds", box=box.ASCII2 if plain else box.ROUNDED)
    for dataset in DATASETS.values():
        table.add_row(dataset.name, dataset.description)
    stdout_console().print(table)


def write_dataset(name: str, path: Path | None, options: Mapping[str, object]) -> None:
    """Write a dataset to a Parquet or CSV file.

    Parameters
    ----------
    name, path
        The dataset, and the file.
    options
        The options on the command line: arguments of the function that makes the dataset.

    Raises
    ------
    UsageError
        ``UNKNOWN_DATASET``, ``NO_OUTPUT``, ``UNKNOWN_FORMAT``; ``UNKNOWN_OPTION`` for an option that the
        dataset does not have.
    """
    refuse_unknown(f"dataset {name}", name, DATASETS, "UNKNOWN_DATASET")
    if path is None:
        raise UsageError(
            f"dataset {name} has no file to be written to",
            condition="NO_OUTPUT",
            hint=f"add --output {name}.parquet",
        )
    if path.suffix.lower() not in _SUFFIXES:
        raise UsageError(
            f"datasets cannot be written as {path.name}",
            condition="UNKNOWN_FORMAT",
            hint=f"name a file that ends in {' or '.join(_SUFFIXES)}",
        )
    make = DATASETS[name].make
    parameters = inspect.signature(make).parameters
    for option in options:
        if option not in parameters:
            raise UsageError(
                f"dataset {name} has no option --{option}",
                condition="UNKNOWN_OPTION",
                hint=f"leave it out: {name} is always the same",
            )
    with atomically(path) as temporary, writing_to(path):
        if name == "weather" and path.suffix.lower() == ".parquet":
            # A row group at a time: this one may be large.
            rows = write_weather(temporary, **options)  # type: ignore[arg-type] # the signature is checked above
        else:
            table = make(**options)
            rows = table.num_rows
            if path.suffix.lower() == ".csv":
                pyarrow.csv.write_csv(table, temporary)
            else:
                pyarrow.parquet.write_table(table, temporary)
    if sys.stderr.isatty():
        errors_console().print(f"{rows:,} rows written to {path}", style="dim", markup=False)

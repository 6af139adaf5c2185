"""Ways to call the command line: in this process with the shared Spark session, and as a program."""

from __future__ import annotations

import os
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from windrow.cli.main import app


@pytest.fixture(scope="session")
def executable() -> Path:
    """The installed console script."""
    return Path(sysconfig.get_path("scripts")) / "windrow"


@pytest.fixture
def invoke(spark, monkeypatch) -> Callable[..., Any]:
    """Call the command line in this process; each call has a Spark session of its own in the shared one."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)

    def call(*arguments: object, stdin: str | None = None) -> Any:
        return CliRunner().invoke(
            app, [str(each) for each in arguments], input=stdin, obj=lambda _: spark.newSession()
        )

    return call


@pytest.fixture
def before_spark(monkeypatch) -> Callable[..., Any]:
    """Call the command line in this process, where it has no Spark: it fails if it asks for a session."""
    monkeypatch.delenv("SPARK_REMOTE", raising=False)

    def refused(_: object) -> None:
        pytest.fail("it asks for a Spark session")

    def call(*arguments: object) -> Any:
        return CliRunner().invoke(app, [str(each) for each in arguments], obj=refused)

    return call


@pytest.fixture
def program(executable) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the console script."""

    def call(*arguments: object, stdin: str | None = None, **environment: str):
        hidden = {"NO_COLOR", "SPARK_REMOTE", "FORCE_COLOR"}
        inherited = {key: value for key, value in os.environ.items() if key not in hidden}
        return subprocess.run(
            [executable, *map(str, arguments)],
            input=stdin if stdin is not None else "",
            env=inherited | environment,
            capture_output=True,
            text=True,
            check=False,
        )

    return call


@pytest.fixture
def readings(tmp_path) -> Path:
    """A small CSV file with a NULL, an empty string and everything that needs quotes."""
    path = tmp_path / "readings.csv"
    path.write_text("station,day,val\nA,2024-01-01,3\nA,2024-01-02,1\nB,2024-01-01,\n", encoding="utf-8")
    return path

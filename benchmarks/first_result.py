"""How long a newcomer waits: ``python -m benchmarks.first_result [--update]``.

The wheel is built and installed into an environment of its own, as pip does it with what its cache has. Then
come the first commands of ``docs/first-session.md``. With ``--update`` the times are written into that page.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.shell_start import seconds_to_prompt

__all__ = ["PAGE", "measured", "with_times"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "first-session.md"
_PLACE = re.compile(r"(<!-- times -->\n).*?(<!-- until here -->)", re.DOTALL)
_QUERY = """
SELECT s.station, s.date AS since, COUNT(w) AS days FROM weather WHERE dataType = 'TMIN'
WINDOW BY w AS (
    TYPE TUMBLING PARTITION BY station ORDER BY date
    START AS s WHEN s.val < 25
    ONLY END NEXT AS n WHEN n.val >= 25)
"""
_TIMES = 5
_PATIENCE = 600.0


def measured() -> dict[str, float]:
    """Seconds of each step of a newcomer."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        _run(
            [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, str(ROOT)], home
        )
        (wheel,) = home.glob("*.whl")
        _run([sys.executable, "-m", "venv", str(home / "env")], home)
        windrow = str(home / "env" / "bin" / "windrow")
        python = str(home / "env" / "bin" / "python")
        found["`pip install windrow[cli]`"] = _run(
            [python, "-m", "pip", "install", "--quiet", "--use-pep517", f"{wheel}[cli]"], home
        )
        found["`windrow datasets weather --output weather.parquet`"] = _run(
            [windrow, "datasets", "weather", "--output", "weather.parquet"], home
        )
        query = [windrow, "run", "-c", _QUERY, "--table", "weather=weather.parquet"]
        found["the first `windrow run`"] = _run(query, home)
        found["the next one"] = _run(query, home)
        began = time.perf_counter()
        while not list(home.glob("cache/classes-*.jsa")):
            if time.perf_counter() - began > _PATIENCE:
                raise TimeoutError("no process keeps Java's classes")
            time.sleep(0.1)
        found["the fastest of five runs with [cached Java classes](cli.md#cached-java-classes)"] = min(
            _run(query, home) for _ in range(_TIMES)
        )
        found["`windrow shell`, until the prompt appears"] = min(
            seconds_to_prompt(python) for _ in range(_TIMES)
        )
    return found


def with_times(page: str, times: Mapping[str, float]) -> str:
    """The page with the times."""
    rows = "".join(f"| {step} | {seconds:.1f} s |\n" for step, seconds in times.items())
    table = f"\n| step | time |\n|---|---|\n{rows}\nOn {_machine()}.\n\n"
    made, count = _PLACE.subn(lambda found: f"{found[1]}{table}{found[2]}", page)
    assert count == 1
    return made


def _machine() -> str:
    of = machine()
    told = f"{of['cores']} cores of {of['processor']}, {of['memory']}, Python {platform.python_version()}"
    return f"{told}; the load before was {of['load before']}"


def _run(words: Sequence[str], home: Path) -> float:
    began = time.perf_counter()
    # As for one who has never had it, whatever is in this user's caches.
    environment = {**os.environ, "WINDROW_CACHE_DIR": str(home / "cache")}
    subprocess.run(words, cwd=home, check=True, capture_output=True, env=environment)
    return time.perf_counter() - began


if __name__ == "__main__":
    times = measured()
    for step, seconds in times.items():
        sys.stdout.write(f"{step}: {seconds:.1f} s\n")
    if "--update" in sys.argv[1:]:
        PAGE.write_text(with_times(PAGE.read_text(encoding="utf-8"), times), encoding="utf-8")

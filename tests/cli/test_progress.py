"""The line about what Spark does leaves nothing behind on the screen."""

from __future__ import annotations

import io
import sys

from windrow.cli import progress as lines
from windrow.cli.progress import Progress, lines_away

ERASE = "\r\x1b[2K"


def test_rows_of_live_queries_and_what_follows_stand_on_a_line_of_their_own(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(lines, "_PATIENCE", 0.0)
    monkeypatch.setattr(lines, "_INTERVAL", 0.001)
    with Progress(visible=True) as progress:

        def wait_for(text: str) -> None:
            while not screen.getvalue().rsplit(ERASE, 1)[-1][2:].startswith(text):
                assert progress._thread.is_alive()

        progress.begin("starting Spark")
        wait_for("starting Spark")
        with lines_away():
            screen.write("row")
        wait_for("starting Spark")
        progress.begin("planning")
        wait_for("planning")
    shown = screen.getvalue()
    assert f"{ERASE}row{ERASE}" in shown
    # erased once by what begins, and once by what is drawn
    assert ERASE * 2 in shown[shown.rindex("starting Spark") : shown.index("planning")]
    assert shown.endswith(ERASE)

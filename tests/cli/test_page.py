"""The page about live queries: to whom it is served, what it tells, and how a browser shows it."""

from __future__ import annotations

import datetime
import json
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

from tests.cli.browser import chromium, opened
from tests.cli.test_live import COLUMNS, trades
from windrow.cli.page import Page, Watching
from windrow.errors import UsageError
from windrow.spark.live.reports.state_table import StateRow

__all__ = ["trades"]

PROGRESS = {
    "query": "means", "batch": 11, "batch_rows_in": 40, "batch_rows_emitted": 6,
    "rows_in": 10_720, "rows_used": 10_633,
    "rows_buffered": 87, "rows_late": 2, "rows_emitted": 549, "rows_in_windows": 613, "state_bytes": 36_100,
    "seconds": 0.48, "rows_per_second": 83.3, "bound": "2026-11-22 13:28:41.401967", "seconds_behind": 4.0,
}  # fmt: skip
KEPT = (
    StateRow("stream", "news", rows=4, bytes=0, bound="2026-11-22 13:28:44", delays=False),
    StateRow("stream", "trades", rows=83, bytes=0, bound="2026-11-22 13:28:41", delays=True),
    StateRow("producer", "trades", producer="zurich", bound="2026-11-22 13:28:41", delays=True),
    StateRow("window", "trades [RANGE 2 SECONDS]", rows=113, bytes=11_000, oldest="2026-11-22 13:28:39"),
    StateRow("window", "news [RANGE 3 SECONDS]", rows=5, bytes=2_600, oldest="2026-11-22 13:28:38"),
)
ODD = ({"at": 1, "word": "old"}, {"at": 2, "word": None}, {"at": 3, "word": "<new>"})


@dataclass
class Running:
    """A query as the page sees it."""

    name: str = "means"
    text: str = "SELECT '<script>' AS x"
    is_active: bool = True
    failure: Exception | None = None
    rows: tuple[dict[str, object], ...] = ODD
    asked: list[int] = field(default_factory=list)

    def latest(self, count):
        return pa.Table.from_pylist(list(self.rows)).slice(max(len(self.rows) - count, 0))

    def state_rows(self):
        self.asked.append(1)
        return KEPT


def watching(running=None, now=1_000.0):
    running = running or Running()
    found = Watching(lambda: [running], now=lambda: now)
    for batch in range(11):
        found.progressed({**PROGRESS, "batch": batch, "rows_per_second": 60.0 + 17 * batch % 40})
    found.progressed(PROGRESS)
    return running, found


def odd():
    running, found = watching()
    found.rows(["ticker", "text"], [["IBM", "<b>up</b>"], ["SAP", None]])
    return running, found


def drawn():
    """What is on the page in the documentation."""
    text = """\
SELECT t.ticker, n.headline, AVG(t.price) AS mean
FROM trades [RANGE 2 SECONDS] AS t JOIN news [RANGE 3 SECONDS] AS n ON t.ticker = n.ticker
GROUP BY t.ticker, n.headline"""
    names = ("_op", "_at", "ticker", "headline", "mean")
    changes = [
        ("+I", "2026-11-22 13:28:40.912", "IBM", "IBM raises its outlook", 231.42),
        ("-D", "2026-11-22 13:28:41.087", "SAP", "SAP buys a rival", 198.05),
        ("+I", "2026-11-22 13:28:41.087", "SAP", "SAP buys a rival", 198.11),
        ("-D", "2026-11-22 13:28:41.230", "IBM", "IBM raises its outlook", 231.42),
        ("+I", "2026-11-22 13:28:41.230", "IBM", "IBM raises its outlook", 231.39),
        ("+I", "2026-11-22 13:28:41.401", "ORCL", "Oracle opens a region", 142.77),
    ]
    rows = tuple(dict(zip(names, change, strict=True)) for change in changes)
    now = datetime.datetime(2026, 11, 22, 13, 28, 45, tzinfo=datetime.UTC)
    _, found = watching(Running(text=text, rows=rows), now.timestamp())
    found.rows(list(names), [list(change) for change in changes])
    return found


def answer(address):
    with urllib.request.urlopen(address) as found:
        return found.read().decode(), found.headers


def test_it_is_served_to_this_machine_and_to_who_has_the_token():
    _, found = odd()
    with Page(found) as page:
        host, port = re.fullmatch(r"http://([\d.]+):(\d+)/\?token=.+", page.address).groups()
        assert host == "127.0.0.1"
        text, headers = answer(page.address)
        assert "<!doctype html>" in text
        assert headers["Cache-Control"] == "no-store"
        (nonce,) = re.findall(r"'nonce-([^']+)'", headers["Content-Security-Policy"])
        assert f'<script nonce="{nonce}">' in text
        assert not re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text), "it needs nothing from elsewhere"
        for wrong in ("/", "/state", f"/state?token={page.token}x", "/?token=%C3%A9"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                answer(f"http://{host}:{port}{wrong}")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            answer(f"http://{host}:{port}/other?token={page.token}")
        with pytest.raises(UsageError, match="PORT_IN_USE"):
            Page(found, int(port))
        with socket.create_connection((host, int(port))) as gone:  # who leaves before the answer
            gone.sendall(f"GET /state?token={page.token} HTTP/1.1\r\n\r\n".encode())
        answer(page.address)
    with pytest.raises(urllib.error.URLError):
        answer(page.address)


def test_an_address_that_is_none_and_who_asks_nothing_do_no_harm(capsys):
    _, found = odd()
    with Page(found, most=2, patience=0.2) as page:
        place = "127.0.0.1", int(re.search(r":(\d+)/", page.address)[1])
        with socket.create_connection(place) as wrong:
            wrong.sendall(b"GET http://[/ HTTP/1.1\r\n\r\n")
            assert b"400 Bad Request" in wrong.recv(1000).splitlines()[0]
        waiting = [socket.create_connection(place) for _ in range(3)]  # and none of them asks
        assert [one.recv(1) for one in reversed(waiting)] == [b"", b"", b""]  # the last one at once
        for one in waiting:
            one.close()
        assert "<!doctype html>" in answer(page.address)[0]
    assert capsys.readouterr().err == ""


def test_it_tells_what_queries_tell():
    running, found = odd()
    with Page(found) as page:
        told = json.loads(answer(page.address.replace("/?", "/state?"))[0])
    (query,) = told["queries"]
    assert query["progress"] == {**PROGRESS, "at": 1_000.0}
    assert [step["batch"] for step in query["steps"]] == list(range(12))
    assert [(row["kind"], row["rows"], row["delays"]) for row in query["state"]][:2] == [
        ("stream", 4, False),
        ("stream", 83, True),
    ]
    assert told["latest"] == [{"ticker": "IBM", "text": "<b>up</b>"}, {"ticker": "SAP", "text": None}]
    assert query["latest"][1:] == [{"at": "2", "word": None}, {"at": "3", "word": "<new>"}]
    found()
    assert len(running.asked) == 1, "state is read once a step"
    running.is_active, running.failure = False, ValueError("it failed")
    assert found()["queries"][0]["failure"] == "it failed"


@pytest.mark.skipif(chromium() is None, reason="there is no Chromium on the PATH, or in WINDROW_CHROMIUM")
def test_a_browser_shows_it():
    _, found = odd()
    silent = Watching(lambda: [Running("means"), Running("silent")])
    with Page(silent) as page, opened(page.address) as browser:
        assert browser.html("#query-silent").count("no micro-batch yet") >= 1
    with Page(found) as page, opened(page.address) as browser:
        shown = browser.html("#latest td")
    for told in (
        "10,720",
        "113 rows retained",
        "delays the query",
        "news [RANGE 3 SECONDS]",
        "36 kB",
        "+6",
        "4 buffered",
    ):
        assert told in shown, told
    assert "&lt;b&gt;up&lt;/b&gt;" in shown
    assert "<h3>Latest rows</h3>" in shown
    assert "&lt;new&gt;" in shown
    assert "SELECT '&lt;script&gt;' AS x" in shown


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_the_command_line_serves_it(executable, trades):
    script = trades / "pipeline.sql"
    script.write_text(
        f"CREATE STREAM trades {COLUMNS} LOCATION 'trades';"
        "SELECT STREAM ticker, price FROM trades WHERE price > 10"
    )
    command = [executable, "run", script, "--live", "--ui", "--conf", "spark.driver.memory=1g"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=trades)
    assert running.stderr is not None
    address = next(line for line in running.stderr if line.startswith("live queries: ")).split()[-1]
    end = time.monotonic() + 180
    while time.monotonic() < end:
        told = json.loads(answer(address.replace("/?", "/state?"))[0])
        if told["latest"] and told["queries"][0]["progress"]:
            break
        time.sleep(0.1)
    running.send_signal(signal.SIGTERM)
    assert running.wait(timeout=180) == 143
    assert [row["ticker"] for row in told["latest"]] == ["ORCL", "IBM"]
    (query,) = told["queries"]
    assert query["progress"]["rows_in"] == 4
    assert [row["kind"] for row in query["state"]] == ["stream", "window"], "its producer has left"


if __name__ == "__main__":  # python -m tests.cli.test_page PICTURE
    with Page(drawn()) as shown, opened(shown.address) as drawing:
        drawing.html("#latest td")
        drawing.picture(Path(sys.argv[1]))

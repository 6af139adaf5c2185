"""The program as a process with Spark: pipes, signals, and the terminal."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import time

import pytest


@pytest.fixture
def start(executable):
    """Start the program, and see to it that it has ended after the test."""
    started = []

    def call(*arguments, **options):
        child = subprocess.Popen(
            [executable, *map(str, arguments), *LOCAL], stdin=subprocess.DEVNULL, **options
        )
        started.append(child)
        return child

    yield call
    for child in started:
        if child.poll() is None:
            child.kill()
            child.wait()


pytestmark = [pytest.mark.spark, pytest.mark.slow]

LOCAL = ["--master", "local[1]", "--conf", "spark.driver.memory=1g"]
# Rows without end, for all that a test waits, a few hundred at a time.
ENDLESS = """SELECT id, aggregate(sequence(1, 2000), 0L, (a, b) -> xxhash64(a, b)) AS h
             FROM range(0, 10000000, 1, 20000)"""


def test_a_reader_that_leaves_ends_the_program_quietly(start):
    child = start(
        "run",
        "-c",
        "SELECT id FROM range(0, 100000000, 1, 1000)",
        "-f",
        "csv",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    head = subprocess.run(["head", "-1"], stdin=child.stdout, capture_output=True, text=True, check=True)
    child.stdout.close()
    errors = child.stderr.read()
    assert (head.stdout, errors, child.wait()) == ("id\n", "", 141)


def test_a_script_on_stdin_gives_rows_on_stdout_and_nothing_else(program):
    done = program("run", "-f", "json", *LOCAL, stdin="SELECT 1 AS a;\nSELECT NULL AS b\n")
    assert (done.returncode, done.stdout, done.stderr) == (0, '{"a":1}\n{"b":null}\n', "")


def test_a_query_that_fails_exits_with_1_and_no_trace(program):
    done = program("run", "-c", "SELECT raise_error('no') AS x", "-f", "csv", *LOCAL)
    assert (done.returncode, done.stdout) == (1, "x\n")
    assert "[USER_RAISED_EXCEPTION]" in done.stderr
    assert len(done.stderr.splitlines()) < 6


@pytest.mark.parametrize(
    "group",
    [
        pytest.param(False, id="the program alone"),
        pytest.param(True, id="all of its processes", marks=pytest.mark.long),
    ],
)
def test_an_interrupt_cancels_the_query_and_exits_with_130(start, tmp_path, group):
    path = tmp_path / "out.csv"
    child = start(
        "run",
        "-c",
        ENDLESS,
        "-o",
        str(path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    # Its own temporary file tells that rows are on their way.
    wait_for(lambda: any(file.stat().st_size for file in tmp_path.iterdir()), child)
    sent = time.monotonic()
    if group:
        os.killpg(child.pid, signal.SIGINT)
    else:
        child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=180)
    assert (child.returncode, output, errors) == (130, "", "interrupted\n")
    assert time.monotonic() - sent < 120
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("live", [(), ("--live",)], ids=["recorded", "live"])
def test_a_program_that_is_told_to_end_while_it_begins_leaves_no_folders_behind(start, tmp_path, live):
    child = start(
        "run",
        *("-c", ENDLESS, *live),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    wait_for(lambda: any(tmp_path.iterdir()), child)
    child.terminate()
    output, errors = child.communicate(timeout=180)
    assert (child.returncode, output, errors) == (143, "", "")
    assert list(tmp_path.iterdir()) == []


def test_a_long_query_shows_its_progress_on_a_terminal_and_takes_it_away(start, tmp_path):
    leader, follower = pty.openpty()
    path = tmp_path / "out.csv"
    child = start(
        "run",
        "-c",
        ENDLESS,
        "-o",
        str(path),
        stdout=subprocess.PIPE,
        stderr=follower,
        start_new_session=True,
        env=os.environ | {"TERM": "xterm"},
    )
    os.close(follower)
    seen = b""
    while b"rows written" not in seen:
        seen += os.read(leader, 65536)
    child.send_signal(signal.SIGINT)
    try:
        while piece := os.read(leader, 65536):
            seen += piece
    except OSError:  # Linux's way to say that the other end is closed
        pass
    assert child.wait() == 130
    text = seen.decode()
    assert "starting Spark" in text
    assert " tasks" in text
    assert text.rpartition("\r\x1b[2K")[2].endswith("interrupted\x1b[0m\r\n")


def wait_for(condition, child):
    """Poll for what another process does, which tells nobody."""
    deadline = time.monotonic() + 180
    while not condition():
        assert child.poll() is None, child.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.05)

"""Live queries on the command line."""

from __future__ import annotations

import datetime
import signal
import subprocess

import pyarrow as pa
import pytest

from windrow.streams import NamedStream

COLUMNS = "(ROWTIME ts TIMESTAMP, ticker STRING, price INT)"
SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("ticker", pa.string()), ("price", pa.int32())])


@pytest.fixture
def trades(tmp_path):
    """A stream of four rows, each of which its producer's order lets out."""
    stream = NamedStream.create(tmp_path / "trades", SCHEMA, "ts")
    with stream.producer("p") as producer:
        for minute, (ticker, price) in enumerate((("ORCL", 20), ("MSFT", 5), ("IBM", 30), ("IBM", 1))):
            ts = datetime.datetime(2026, 1, 1, 9, 30 + minute, tzinfo=datetime.UTC)
            producer.insert({"ts": ts, "ticker": ticker, "price": price})
        producer.idle()
    return tmp_path


def test_rows_go_to_stdout_and_what_is_said_of_them_to_stderr(invoke, trades):
    script = f"""CREATE STREAM trades {COLUMNS} LOCATION '{trades}/trades';
SELECT STREAM ticker, price FROM trades WHERE price > 10"""
    done = invoke("run", "-c", script, "--live", "--trigger", "now", "--format", "csv")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines() == [
        "rowtime,ticker,price",
        "2026-01-01T09:30:00.000000Z,ORCL,20",
        "2026-01-01T09:32:00.000000Z,IBM,30",
    ]
    said = done.stderr.splitlines()
    assert said[-1].startswith("rows: 4 rows in, 2 out · bound 2026-01-01 09:33:00 · 0 held · 0 late · ")
    done = invoke("run", "-c", script.replace("price >", "prize >"), "--live")
    assert done.exit_code == 1
    assert "line 2, column 47" in done.stderr
    assert "SELECT STREAM ticker, price FROM trades WHERE prize > 10" in done.stderr


def test_rows_of_two_queries_have_the_columns_of_each_above_them(invoke, trades):
    script = f"""CREATE STREAM trades {COLUMNS} LOCATION '{trades}/trades';
SELECT STREAM ticker, price FROM trades WHERE price > 10; SELECT STREAM price * 2 AS twice FROM trades"""
    done = invoke("run", "-c", script, "--live", "--trigger", "now", "--format", "csv")
    assert done.exit_code == 0, done.stderr
    parts = [part.splitlines() for part in done.stdout.split("\n\n")]
    assert sorted(parts) == [
        ["rowtime,ticker,price", "2026-01-01T09:30:00.000000Z,ORCL,20", "2026-01-01T09:32:00.000000Z,IBM,30"],
        [
            "rowtime,twice", "2026-01-01T09:30:00.000000Z,40", "2026-01-01T09:31:00.000000Z,10",
            "2026-01-01T09:32:00.000000Z,60", "2026-01-01T09:33:00.000000Z,2",
        ],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--live", "--output", "x.csv"], "--output is given with --live"),
        (["--live", "--plot", "x.svg"], "--plot is given with --live"),
        (["--live", "--at", "1"], "--at is given with --live"),
        (["--checkpoint", "x"], "--checkpoint is given with no --live"),
        (["--trigger", "now"], "--trigger is given with no --live"),
        (["--live", "--param", "a=1"], "live queries have no parameters"),
    ],
)
def test_options_that_do_not_go_together(before_spark, options, told):
    done = before_spark("run", "-c", "SELECT 1", *options)
    assert done.exit_code == 2
    assert told in done.stderr
    assert "UNKNOWN_OPTION" in done.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_interrupted_it_stops_in_order(executable, trades):
    script = trades / "pipeline.sql"
    script.write_text(
        f"CREATE STREAM trades {COLUMNS} LOCATION 'trades';"
        f"CREATE STREAM dear {COLUMNS} LOCATION 'dear';"
        "INSERT INTO dear SELECT STREAM ts, ticker, price FROM trades WHERE price > 10"
    )
    command = ["run", script, "--live", "--checkpoint", trades / "state", "--conf", "spark.driver.memory=1g"]
    running = subprocess.Popen([executable, *command], stderr=subprocess.PIPE, text=True, cwd=trades)
    assert running.stderr is not None
    said = []
    while not any("2 out" in line or "bound 2026" in line for line in said):
        line = running.stderr.readline()
        assert line, said
        said.append(line)
        running.poll()
    running.send_signal(signal.SIGINT)
    rest = running.stderr.read()
    assert running.wait() == 130
    assert rest.splitlines()[-1] == "interrupted"
    assert "Traceback" not in rest
    dear = NamedStream.open(trades / "dear")
    assert dear.position().clock.admitted == 2
    assert not any(standing.is_open for standing in dear.position().clock.producers.values())

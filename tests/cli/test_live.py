"""Live queries on the command line."""

from __future__ import annotations

import datetime
import io
import itertools
import re
import signal
import subprocess
import sys

import pyarrow as pa
import pytest

from windrow.cli import live_command
from windrow.cli.progress import Progress
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
    assert said[-1].startswith("rows: 4 rows in, 2 out · bound 2026-01-01 09:33:00 · 0 buffered · 0 late · ")
    done = invoke("run", "-c", script.replace("price >", "prize >"), "--live")
    assert done.exit_code == 1
    assert "line 2, column 47" in done.stderr
    assert "SELECT STREAM ticker, price FROM trades WHERE prize > 10" in done.stderr


@pytest.fixture
def dropped(spark):
    """A name of a table of a test's own: the table goes with the test."""
    yield "set_aside"
    spark.sql("DROP TABLE IF EXISTS set_aside")


def test_rows_that_were_set_aside_are_shown_at_the_end_with_their_reason_and_place(
    invoke, trades, dropped, tmp_path, monkeypatch
):
    """Late, quarantined and malformed ones, of each stream; also after a restart that finds nothing new."""
    with NamedStream.open(tmp_path / "trades").producer("q") as producer:
        ts = datetime.datetime(2026, 1, 1, 9, 29, tzinfo=datetime.UTC)
        producer.insert({"ts": ts, "ticker": "LATE", "price": 50})
    (tmp_path / "lines").mkdir()
    lines = [f'{{"minute":{minute},"price":1}}' for minute in (10, 1, 2, 3, 4, 4_000_000_000)]
    (tmp_path / "lines" / "1.json").write_text("\n".join([*lines, '{"minute":10,"pri']))
    script = f"""CREATE STREAM trades {COLUMNS} LOCATION '{tmp_path}/trades';
CREATE TABLE IF NOT EXISTS {dropped} (minute BIGINT, price INT, _corrupt_record STRING)
    USING json LOCATION '{tmp_path}/lines';
CREATE STREAM prices (ROWTIME minute BIGINT UNIT MINUTES, price INT, _corrupt_record STRING)
    FROM STREAM {dropped} LAG 2 MINUTES FUTURE 1 DAY;
SELECT STREAM ticker FROM trades;
SELECT STREAM price FROM prices"""
    options = ["--live", "--trigger", "now", "--format", "csv", "--on-malformed", "keep"]
    monkeypatch.chdir(tmp_path)
    begun = []
    monkeypatch.setattr(Progress, "begin", lambda _, what, *__: begun.append(what))
    place = "in the checkpoint: state"
    late = [
        f"rows: 1 late row of trades, below a bound; {place}/rows/late",
        '  {"ts":"2026-01-01T09:29:00.000Z","ticker":"LATE","price":50},'
        " rowtime 2026-01-01 09:29:00, bound 2026-01-01 09:33:00, producer q",
    ]
    aside = [
        f"rows-2: 1 quarantined row of prices, too far ahead of processing time; {place}/rows-2/late",
        re.compile(r'  {"minute":4000000000,"price":1}, rowtime 4000000000, bound \d+'),
        f"rows-2: 4 late rows of prices, below the watermark; {place}/rows-2/late",
        *(f'  {{"minute":{at},"price":1}}, rowtime {at}, bound 8' for at in (1, 2, 3)),
        "  and 1 more",
        f"rows-2: 1 malformed row of prices: cannot be parsed; {place}/rows-2/malformed",
        r'  {"_corrupt_record":"{\"minute\":10,\"pri"}',
    ]
    done = invoke("run", "-c", script, *options, "--checkpoint", "state")
    assert done.exit_code == 0, done.stderr
    first, second = (
        re.compile("rows: 5 rows in, 4 out · .* · 1 late · .*"),
        re.compile("rows-2: 7 rows in, 0 out · .* · 5 late · 1 malformed · .*"),
    )
    assert_lines(done.stderr.splitlines()[2:], [first, *late, second, *aside])
    done = invoke("run", "-c", script, *options, "--checkpoint", "state")
    assert done.exit_code == 0, done.stderr
    assert begun == ["starting Spark", "planning", "starting Spark", "planning the restart from state"]
    resumed = [f"{name}: continues after micro-batch 0 of its checkpoint" for name in ("rows", "rows-2")]
    first, second = (f"{name}: no micro-batch after 0 of its checkpoint" for name in ("rows", "rows-2"))
    assert_lines(done.stderr.splitlines(), [*resumed, first, *late, second, *aside])


def assert_lines(found, expected):
    """Hold lines to texts and patterns."""
    for line, wanted in itertools.zip_longest(found, expected, fillvalue=""):
        if isinstance(wanted, str):
            assert line == wanted, found
        else:
            assert wanted.fullmatch(line), found


def test_rows_that_go_with_a_query_without_checkpoint_are_shown_all_the_same(invoke, trades):
    with NamedStream.open(trades / "trades").producer("q") as producer:
        ts = datetime.datetime(2026, 1, 1, 9, 29, tzinfo=datetime.UTC)
        producer.insert({"ts": ts, "ticker": "LATE", "price": 50})
    script = f"""CREATE STREAM trades {COLUMNS} LOCATION '{trades}/trades';
SELECT STREAM ticker FROM trades"""
    done = invoke("run", "-c", script, "--live", "--trigger", "now")
    assert done.exit_code == 0, done.stderr
    told, row = done.stderr.splitlines()[-2:]
    assert told == "rows: 1 late row of trades, below a bound; not stored: --checkpoint DIR stores them"
    assert '"ticker":"LATE"' in row


class _Started:
    """A query as the line sees it that has not had a micro-batch."""

    name, began_after = "highs", 12

    def set_aside(self):
        return ()


def test_before_its_first_micro_batch_a_query_is_said_to_go_on(monkeypatch):
    """What says that Spark plans gives way to it: one line is drawn at a time."""
    screen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(live_command, "_BETWEEN_DRAWS", 0.001)
    gave_way = []
    with live_command._Line(is_terminal=True, takes_over=lambda: gave_way.append(True)) as line:
        line.began(_Started())
        while "continues" not in screen.getvalue():
            assert line._thread.is_alive()
    assert gave_way == [True]
    drawn, rest = screen.getvalue().rsplit("\r\x1b[2K", 1)
    assert drawn.startswith("\r\x1b[2Khighs: continues after micro-batch 12 of its checkpoint, 0 s")
    assert rest == "highs: no micro-batch after 12 of its checkpoint\n"


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
        (["--live", "--output", "x.csv"], "--output cannot be combined with --live"),
        (["--live", "--plot", "x.svg"], "--plot cannot be combined with --live"),
        (["--live", "--at", "1"], "--at cannot be combined with --live"),
        (["--checkpoint", "x"], "--checkpoint needs --live"),
        (["--trigger", "now"], "--trigger needs --live"),
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
    assert dear.position().watermark.admitted == 2
    assert not any(standing.is_open for standing in dear.position().watermark.producers.values())

"""The shell on the shared session: what is entered at its prompt, and what it shows."""

from __future__ import annotations

import threading
import time

import pytest

pytest.importorskip("prompt_toolkit")

from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from windrow.cli.connection import Connection
from windrow.cli.shell.backend import Backend, StoppedError
from windrow.cli.shell.loop import Shell
from windrow.cli.shell.prompt import history_path, interact


@pytest.fixture
def shell(spark, readings, monkeypatch, tmp_path):
    """A shell with a table, whose history is in a directory of the test's own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    asked = Connection("local[2]", tables={"readings": [str(readings)]}, params={"low": "2"})
    made = Shell(Backend(asked, lambda _: spark.newSession()))
    yield made
    made.close()


@pytest.fixture
def enter(shell, capsys):
    """Types lines at the prompt, then leaves; what was shown and what was told."""

    def type_in(text):
        with create_pipe_input() as keys:
            keys.send_text(text + "\x04")
            interact(shell, source=keys, target=DummyOutput())
        return capsys.readouterr()

    return type_in


def test_statements_over_several_lines_modes_errors_and_history(enter, tmp_path):
    shown = enter(
        "SELECT station,\r\n val FROM readings WHERE val >= :low;\r"
        ".mode csv\rSELECT * FROM readings ORDER BY day, station LIMIT 1;\r"
        "SELECT nope FROM readings;\r.schema readings\r.tables\r.moed\r.mode yaml\r"
    )
    assert "| A       |   3 |" in shown.out
    assert "station,day,val\nA,2024-01-01,3\n" in shown.out
    assert "| station | string |" in shown.out
    assert "| readings | view |" in shown.out
    assert "UNRESOLVED_COLUMN" in shown.err
    assert "did you mean .mode?" in shown.err
    assert "[INVALID_ARGUMENT] .mode has no option yaml" in shown.err
    assert "Traceback" not in shown.err
    assert ".schema readings" in history_path().read_text(encoding="utf-8")


def test_plans_pictures_scripts_and_changelogs(shell, capsys, tmp_path):
    script = tmp_path / "script.sql"
    script.write_text("CREATE TEMPORARY VIEW high AS SELECT * FROM readings WHERE val > 1;\nTABLE high;\n")
    windows = (
        "SELECT s.station, COUNT(w) AS n FROM readings WINDOW BY w AS "
        "(TYPE TUMBLING PARTITION BY station ORDER BY day "
        "START AS s WHEN s.val > 0 END NEXT AS n WHEN n.val > 2)"
    )
    log = tmp_path / "log.cql"
    log.write_text("1000 a\n2000 b\n")
    shell.run_lines(
        f".read {script}\n{windows};\n.explain\n.plot {tmp_path / 'windows.svg'}\n"
        f".open s={log}\n.mode changelog\nSELECT c1 FROM s [RANGE 2];\n.plot {tmp_path / 'steps.svg'}\n"
        ".late\n.state\n.stop query\n.stop\n.watch SELECT 1\n"
    )
    shown = capsys.readouterr()
    assert "| A       | 2024-01-01 |   3 |" in shown.out
    assert "1 WINDOW BY w" in shown.out
    assert (tmp_path / "windows.svg").read_text(encoding="utf-8").startswith("<svg")
    assert (tmp_path / "steps.svg").stat().st_size > 1000
    assert "+I" in shown.out
    assert "-D" in shown.out
    assert "no late rows" in shown.out
    assert "no query is running" in shown.out
    assert "UNKNOWN_QUERY" in shown.err
    assert "NOT_LIVE" in shown.err
    assert shell.has_failed


def test_errors_in_a_script_have_its_lines(shell, capsys, tmp_path):
    script = tmp_path / "a script.sql"
    script.write_text(
        ".mode csv\n\nSELECT 1 AS one;\n\nSELECT one,\n  two FROM (SELECT 1 AS one);\nSELECT 3;\n"
    )
    shell.run_lines(f".read '{script}'\n.read 'open\n.limit ²\n.limit\n.mode CSV 3\n.open x 'y\n")
    shown = capsys.readouterr()
    assert shown.out == "one\n1\n3\n3\nlimit 50 rows of a table, all in other forms\n"
    assert "\nline 6, column 3\n    two FROM" in shown.err
    assert shown.err.count("[INVALID_ARGUMENT]") == 4


def test_what_newcomers_type(shell, capsys, tmp_path, readings):
    other = tmp_path / "other.csv"
    other.write_bytes(readings.read_bytes())
    with pytest.raises(EOFError):
        shell.run_lines(
            f"help\n.open {other}\n.open a b\n.schema reading\n.late nothing\n"
            ".limit 1\nSELECT * FROM other;\nexit\nSELECT 'not run';"
        )
    shown = capsys.readouterr()
    assert ".help" in shown.out
    assert "other is attached" in shown.out
    assert "(.limit N shows N)" in shown.out
    assert "not run" not in shown.out
    assert "[UNKNOWN_NAME] table, view or stream reading does not exist" in shown.err
    assert "did you mean readings?" in shown.err
    assert "[UNKNOWN_NAME] stream nothing does not exist" in shown.err
    assert "[INVALID_ARGUMENT] .open takes NAME=PATH" in shown.err


@pytest.fixture
def bids(shell, tmp_path):
    """A named stream, and what waits until live queries have taken all of it."""
    shell.run_lines(
        f"CREATE STREAM bids (ROWTIME at BIGINT, item STRING, price INT) LOCATION '{tmp_path / 'bids'}';\n"
        "INSERT INTO bids VALUES (1, 'A', 10), (2, 'B', 14), (4, 'A', 12);\n"
    )

    def catch_up(session):
        for each in session.queries.values():
            each.process_all_available()

    return lambda: shell.backend.call(catch_up)


def test_a_live_query_is_watched_as_a_table_and_by_its_changes(shell, bids, capsys):
    query = "SELECT item, MAX(price) AS best FROM bids [RANGE UNBOUNDED] GROUP BY item"
    with pytest.warns(RuntimeWarning, match="state of the query is unbounded"):
        shell.run_lines(f".watch {query}\n.mode changelog\n.watch {query}\n")
    bids()
    shell.run_lines(".stop\n")
    shown = capsys.readouterr().out
    assert "-- after micro-batch 0" in shown
    assert "| A    |   10 |\n| B    |   14 |" in shown
    assert "| +I  |" in shown
    assert "stopped query-" in shown


@pytest.mark.usefixtures("bids")
def test_late_rows_of_a_named_stream_are_counted_and_shown(shell, capsys):
    """Whatever the case of its name."""
    shell.run_lines("INSERT INTO bids VALUES (3, 'LATE', 9);\n.mode csv\n.late\n.late BIDS\n")
    shown = capsys.readouterr()
    assert "bids | 1" in " ".join(shown.out.split())
    assert shown.out.splitlines()[-1].startswith("3,LATE,9,")
    assert shown.err == ""


def test_rows_that_are_late_for_a_group_are_told_beside_their_query(shell, capsys, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("n,ts,upto\n1,10,\n2,,20\n3,15,\n")
    made = f"CREATE STREAM s (ROWTIME ts INT UNIT SECONDS, PTIME n INT, WATERMARK upto INT) FROM '{path}'"
    counts = "SELECT wend, COUNT(*) AS c FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY wend"
    shell.run_lines(f"{made};\n{counts} EMIT AFTER WATERMARK;\n")
    assert capsys.readouterr().err.splitlines() == [
        "1 late row of s, whose groups were complete; relation.late in Python lists all",
        '  {"ts":15,"n":3}, rowtime 15, bound 20',
    ]


def test_changes_come_in_the_order_of_their_instants_in_the_form_that_is_asked_for(shell, bids, capsys):
    shell.run_lines(
        ".mode changelog diff\n.watch SELECT item FROM bids [RANGE 1 MILLISECOND]\n"
        ".mode csv\n.watch SELECT item FROM bids [RANGE 1 MILLISECOND]\n"
        ".mode json\n.watch SELECT STREAM price FROM bids\n"
    )
    bids()
    shell.run_lines(".stop\n")
    shown = capsys.readouterr().out
    counted = [line.split("|")[1:-1] for line in shown.splitlines() if line.startswith(("| A ", "| B "))]
    assert [[cell.strip() for cell in row] for row in counted] == [
        ["A", "1", "1"], ["A", "-1", "2"], ["B", "1", "2"], ["B", "-1", "3"]
    ]  # fmt: skip
    assert '{"rowtime":1,"price":10}\n{"rowtime":2,"price":14}\n' in shown
    assert "item\n" in shown


def test_the_failure_of_a_live_query_is_told_when_it_comes_and_stays_in_the_list(shell, bids, capsys):
    shell.run_lines(".watch SELECT STREAM 1 / (price - 10) AS x FROM bids\n")
    end = time.monotonic() + 180
    told = ""
    while "DIVIDE_BY_ZERO" not in told and time.monotonic() < end:
        time.sleep(0.2)
        told += capsys.readouterr().err
    assert "has failed:\nerror [DIVIDE_BY_ZERO]" in told
    shell.run_lines(".state\n.stop\n.state\n")
    shown = capsys.readouterr().out
    assert "has failed: DIVIDE_BY_ZERO" in shown
    assert shown.endswith("no query is running: .watch SELECT … starts one\n")


def test_ctrl_c_stops_the_query_and_not_the_shell(shell):
    shell.backend.call(lambda _: None)
    began = time.monotonic()
    # what the terminal does at Ctrl-C, once the query runs
    timer = threading.Timer(2.0, _interrupt_main)
    timer.start()
    with pytest.raises(StoppedError) as stopped:
        shell.backend.call(lambda session: session.spark.range(10**12).selectExpr("sum(sqrt(id))").collect())
    assert stopped.value.is_over
    assert time.monotonic() - began < 180
    assert shell.backend.call(lambda session: session.sql("SELECT 7").collect())[0][0] == 7


@pytest.mark.usefixtures("bids")
def test_ctrl_c_while_a_query_is_begun_stops_it(shell, capsys):
    shell.backend.call(lambda session: session.queries.started.append(lambda _: _interrupt_main()))
    shell.run(".watch SELECT STREAM price FROM bids")
    shell.backend.call(lambda session: session.queries.started.clear())
    assert shell.backend.call(lambda session: dict(session.queries)) == {}
    assert "interrupted" in capsys.readouterr().err
    shell.run_lines(".state\n")
    assert capsys.readouterr().out == "no query is running: .watch SELECT … starts one\n"


def _interrupt_main():
    import _thread

    _thread.interrupt_main()

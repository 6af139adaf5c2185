"""Streams on the command line."""

from __future__ import annotations

import pytest

QUERY = "SELECT c1 FROM s [RANGE 1] WHERE c1 > 10"


@pytest.fixture
def attached(tmp_path):
    path = tmp_path / "s.cql"
    path.write_text("Timestamp Tuple\n1000 10,a\n1500 20,b\nh 1700\n")
    return ["--stream", f"s={path}"]


def test_a_relation_at_the_last_instant_and_at_any_other(invoke, attached):
    for options, rows in (
        ([], ["20"]),
        (["--at", "1499"], []),
        (["--at", "2499"], ["20"]),
        (["--at", "2500"], []),
    ):
        done = invoke("run", "-c", QUERY, *attached, "--format", "csv", *options)
        assert (done.exit_code, done.stdout.split()) == (0, ["c1", *rows])


def test_changelogs(invoke, attached):
    done = invoke("run", "-c", QUERY, *attached, "--format", "csv", "--envelope", "cql")
    assert done.stdout.split() == ["timestamp,kind,tuple", "1500,+,20", "2500,-,20"]
    done = invoke("run", "-c", QUERY, *attached, "--format", "csv", "--changelog")
    assert done.stdout.split()[1] == "20,insert,1500,1500"
    updates = "SELECT 1 AS k, c1 FROM s [ROWS 1]"
    done = invoke("run", "-c", updates, *attached, "--format", "csv", "--key", "k", "--envelope", "op")
    assert done.stdout.split()[1:] == ["+I,1000,1,10", "-U,1500,1,10", "+U,1500,1,20"]
    done = invoke("run", "-c", updates, *attached, "--format", "csv", "--key", "k, z")
    assert "UNRESOLVED_COLUMN" in done.stderr


def test_a_stream_of_a_table(invoke, readings):
    options = ["--stream", f"r={readings}", "--rowtime", "day", "--format", "csv"]
    query = "SELECT station, COUNT(*) AS n FROM r [RANGE 2 DAYS] GROUP BY station"
    done = invoke("run", "-c", query, *options, "--at", "2024-01-02")
    assert (done.exit_code, sorted(done.stdout.split())) == (0, ["A,2", "B,1", "station,n"])


def test_a_log_with_bounds(invoke, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("arrived,who,second,upto,v\n1,p,10,,1\n2,p,,20,\n3,p,15,,2\n3,q,12,,3\n4,p,30,,4\n")
    parts = ["--ptime", "r=arrived", "--producer", "who", "--bound", "upto"]
    options = ["--stream", f"r={path}", "--rowtime", "second", "--rowtime-unit", "seconds", *parts]
    query = "SELECT v FROM r [RANGE UNBOUNDED]"
    done = invoke("run", "-c", query, *options, "--format", "csv")
    assert (done.exit_code, sorted(done.stdout.split())) == (0, ["1", "3", "4", "v"])
    assert "1 late row of r" in done.stderr
    failed = invoke("run", "-c", query, *options, "--on-late", "r=fail")
    assert (failed.exit_code, "LATE_ROW" in failed.stderr) == (1, True)
    bound = ["--stream", f"r={path}", "--rowtime", "arrived", "--rowtime-unit", "seconds", "--bound", "9"]
    done = invoke("run", "-c", "SELECT v FROM r [RANGE 6]", *bound, "--format", "csv")
    assert sorted(done.stdout.split()) == ["4", "v"]


def test_a_script_makes_its_streams(invoke, attached, tmp_path):
    file = tmp_path / "s.cql"
    script = f"""CREATE STREAM r (ROWTIME ts BIGINT UNIT SECONDS, k INT, name STRING) FROM '{file}';
CREATE TEMPORARY VIEW v AS SELECT k FROM r [RANGE 500];
SELECT COUNT(*) AS n FROM v"""
    assert invoke("run", "-c", script, "--format", "csv").stdout.split() == ["n", "1"]
    assert invoke("check", "-c", script).stdout == "OK: 3 statements\n"
    explained = invoke("explain", "-c", script).stdout
    assert "stream r(ts, k, name)" in explained
    assert "evaluated for whole logs" in explained
    wrong = invoke("check", "-c", script.replace("COUNT(*)", "SUM(nosuch)"))
    assert wrong.exit_code == 1
    assert "line 3" in wrong.stderr


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        (["--at", "1", "--changelog"], "TWO_VIEWS"),
        (["--envelope", "deltas"], "UNKNOWN_ENVELOPE"),
        (["--at", "noon"], "INVALID_INSTANT"),
        (["--rowtime", "t=ts"], "UNKNOWN_TABLE"),
        (["--ptime", "t=ts"], "UNKNOWN_TABLE"),
        (["--ptime", "ts"], "UNKNOWN_OPTION"),
        (["--on-late", "drop"], "UNKNOWN_OPTION"),
        (["--rowtime-unit", "s=fortnights"], "UNKNOWN_UNIT"),
    ],
)
def test_mistakes(invoke, attached, options, condition):
    done = invoke("run", "-c", QUERY, *attached, *options)
    assert done.exit_code in (1, 2)
    assert condition in done.stderr


def test_a_table_does_not_vary(invoke):
    assert "NOT_VARYING" in invoke("run", "-c", "SELECT 1", "--changelog").stderr


def test_late_rows_are_shown_with_their_reason(invoke, tmp_path):
    """As at the end of live queries: how many, why, and the first three."""
    path = tmp_path / "log.json"
    late = "".join(f'{{"n": {9 - ts}, "ts": {ts}}}\n' for ts in (8, 7, 6, 2))
    path.write_text(f'{{"n": 0, "ts": 5, "upto": 9}}\n{late}{{"n": 10, "ts": 9}}\n')
    script = f"""CREATE STREAM s (ROWTIME ts BIGINT, PTIME n INT, BOUND upto BIGINT) FROM '{path}';
SELECT ts FROM s [RANGE UNBOUNDED] WHERE ts > 5"""
    done = invoke("run", "-c", script, "--format", "csv")
    assert done.stdout.split() == ["ts", "9"]
    assert done.stderr.splitlines() == [
        "4 late rows of s, below a bound; SELECT * FROM s_late lists all",
        *(f'  {{"ts":{ts},"n":{9 - ts}}}, rowtime {ts}, bound 9' for ts in (2, 6, 7)),
        "  and 1 more",
    ]
    done = invoke("run", "-c", f"{script}; SELECT COUNT(*) AS n FROM s_late", "--format", "csv")
    assert done.stdout.split()[2:] == ["n", "4"]


def test_rows_that_are_late_for_a_group_are_shown_beside_their_query(invoke, tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("n,ts,upto\n1,10,\n2,,20\n3,15,\n4,21,\n5,12,30\n6,29,\n")
    made = f"CREATE STREAM s (ROWTIME ts INT UNIT SECONDS, PTIME n INT, WATERMARK upto INT) FROM '{path}'"
    counts = "SELECT wend, COUNT(*) AS c FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 10) GROUP BY wend"
    late = [
        "3 late rows of s, whose groups were complete; relation.late in Python lists all",
        '  {"ts":12,"n":5}, rowtime 12, bound 20',
        '  {"ts":15,"n":3}, rowtime 15, bound 20',
        '  {"ts":29,"n":6}, rowtime 29, bound 30',
    ]
    for emission in ("", " EMIT STREAM AFTER WATERMARK", " EMIT STREAM AS op"):
        done = invoke("run", "-c", f"{made}; {counts}{emission}; SELECT ts FROM s EMIT STREAM", "-f", "csv")
        assert done.stderr.splitlines() == late, emission
    writes = (
        f"CREATE TABLE counted LOCATION '{tmp_path / 'counted'}' AS {counts} EMIT AFTER WATERMARK",
        f"INSERT INTO counted {counts} EMIT AFTER WATERMARK",
        f"CREATE STREAM k (ROWTIME wend INT UNIT SECONDS, c BIGINT) LOCATION '{tmp_path / 'k'}';"
        f" INSERT INTO k {counts} EMIT AFTER WATERMARK",
        "DROP TABLE counted; DROP STREAM k",
    )
    done = invoke("run", "-c", f"{made}; {'; '.join(writes)}", "-f", "csv")
    assert done.stderr.splitlines() == late * 3


def test_late_rows_of_a_named_stream_and_quarantined_ones_are_shown(invoke, tmp_path):
    script = f"""CREATE STREAM s (ROWTIME ts TIMESTAMP, v INT) LOCATION '{tmp_path / "s"}' FUTURE 1 DAY;
INSERT INTO s VALUES ('2020-01-01 09:30:00', 1);
INSERT INTO s VALUES ('2020-01-01 09:29:00', 2), ('2100-01-01 00:00:00', 3)"""
    done = invoke("run", "-c", script, "--format", "csv")
    assert done.stdout.split() == [
        *("inserted,late,rejected,quarantined", "1,0,0,0"),
        *("inserted,late,rejected,quarantined", "0,0,1,1"),
    ]
    told = [line.partition(", producer session-")[0] for line in done.stderr.splitlines()]
    assert told[0] == "1 late row of s, below a bound; SELECT * FROM s_late lists all"
    assert told[1].startswith('  {"ts":"2020-01-01T09:29:00')
    assert told[1].endswith("rowtime 2020-01-01 09:29:00, bound 2020-01-01 09:30:00")
    assert told[2].startswith("1 quarantined row of s, too far ahead of processing time; SELECT")
    assert '"v":3' in told[3]
    assert len(told) == 4

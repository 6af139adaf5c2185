"""`windrow run` on the shared session: what goes in, and the forms in which rows come out."""

from __future__ import annotations

import csv
import io
import json

import pyarrow.parquet as pq
import pytest

# One column of each type whose text is not obvious, with the time zone of the tests (UTC).
TYPES = """
SELECT 1 AS i, CAST(1.10 AS DECIMAL(38, 10)) AS dec,
       12345678901234567890123456789012345678 AS big, 0.1D AS dbl, CAST('NaN' AS DOUBLE) AS nan,
       -CAST('Infinity' AS DOUBLE) AS inf, TRUE AS yes, DATE '2024-02-29' AS day,
       TIMESTAMP '2024-03-04 08:02:00.123456' AS ts, TIMESTAMP_NTZ '2024-03-31 02:30:00' AS ntz,
       X'6869' AS bin, 'a "b", c' AS txt, '' AS none, CAST(NULL AS STRING) AS nul,
       named_struct('x', NULL, 'y', array(1, NULL)) AS nested, map('k', DATE '2024-01-01') AS m
"""


def test_json_is_an_object_a_line_that_loses_nothing(invoke):
    done = invoke("run", "-c", TYPES, "--format", "json")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        '{"i":1,"dec":1.1000000000,"big":12345678901234567890123456789012345678,"dbl":0.1,"nan":"NaN",'
        '"inf":"-Infinity","yes":true,"day":"2024-02-29","ts":"2024-03-04T08:02:00.123456Z",'
        '"ntz":"2024-03-31T02:30:00.000000","bin":"aGk=","txt":"a \\"b\\", c","none":"","nul":null,'
        '"nested":{"x":null,"y":[1,null]},"m":{"k":"2024-01-01"}}\n'
    )


def test_csv_tells_null_from_the_empty_string_and_quotes_as_rfc_4180(invoke):
    done = invoke("run", "-c", TYPES, "--format", "csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == (
        "i,dec,big,dbl,nan,inf,yes,day,ts,ntz,bin,txt,none,nul,nested,m\n"
        "1,1.1000000000,12345678901234567890123456789012345678,0.1,NaN,-Infinity,true,2024-02-29,"
        '2024-03-04T08:02:00.123456Z,2024-03-31T02:30:00.000000,aGk=,"a ""b"", c","",,'
        '"{""x"":null,""y"":[1,null]}","{""k"":""2024-01-01""}"\n'
    )


def test_csv_with_line_breaks_is_read_back_as_it_was(invoke):
    done = invoke("run", "-c", "SELECT 'two\nlines' AS a, ' spaced ' AS b, 'x,y' AS c", "-f", "csv")
    assert list(csv.reader(io.StringIO(done.stdout))) == [["a", "b", "c"], ["two\nlines", " spaced ", "x,y"]]


def test_a_timestamp_is_written_in_the_session_s_zone(invoke):
    done = invoke(
        "run", "-f", "json", "-c",
        "SET TIME ZONE 'Europe/Berlin'; SELECT TIMESTAMP '2024-07-01 12:00:00' AS ts",
    )  # fmt: skip
    assert json.loads(done.stdout) == {"ts": "2024-07-01T12:00:00.000000+02:00"}


def test_markdown_escapes_what_would_break_its_table(invoke):
    done = invoke("run", "-c", "SELECT 'a|b' AS x, NULL AS y, 'two\nlines' AS z", "-f", "markdown")
    assert done.stdout == "| x | y | z |\n| --- | --- | --- |\n| a\\|b | NULL | two<br>lines |\n"


def test_a_table_is_plain_where_there_is_no_terminal(invoke):
    done = invoke(
        "run", "-c", "SELECT 12 AS n, 'a' AS word, NULL AS nothing UNION ALL SELECT 3, '[b]x[/b]', NULL"
    )
    assert done.stdout == (
        "+----+----------+---------+\n"
        "|  n | word     | nothing |\n"
        "+----+----------+---------+\n"
        "| 12 | a        | NULL    |\n"
        "|  3 | [b]x[/b] | NULL    |\n"
        "+----+----------+---------+\n"
        "2 rows\n"
    )


def test_escape_sequences_in_data_do_not_reach_the_terminal(invoke):
    done = invoke("run", "-c", "SELECT concat(char(27), '[31mred') AS x")
    assert "\x1b" not in done.stdout
    assert "\\x1b[31mred" in done.stdout


def test_a_table_shows_fifty_rows_and_says_that_there_are_more(invoke):
    done = invoke("run", "-c", "SELECT id FROM range(60)")
    assert done.stdout.count("\n") == 50 + 4 + 1
    assert "first 50 rows; there are more" in done.stdout
    assert invoke("run", "-n", 60, "-c", "SELECT id FROM range(60)").stdout.endswith("60 rows\n")


def test_limit_bounds_the_rows_of_every_form(invoke):
    for form, lines in (("csv", 4), ("json", 3), ("markdown", 5)):
        done = invoke("run", "-n", 3, "-c", "SELECT id FROM range(10) ORDER BY id DESC", "-f", form)
        assert len(done.stdout.splitlines()) == lines, form
        assert "9" in done.stdout


def test_rows_come_in_the_order_of_the_query_from_many_partitions(invoke):
    sql = "SELECT id FROM range(0, 5000, 1, 7) ORDER BY id DESC"
    done = invoke("run", "-c", sql, "-f", "csv")
    assert [int(line) for line in done.stdout.splitlines()[1:]] == list(range(4999, -1, -1))


def test_columns_of_one_name_are_all_written(invoke):
    assert invoke("run", "-c", "SELECT 1 AS a, 2 AS a", "-f", "csv").stdout == "a,a\n1,2\n"
    assert invoke("run", "-c", "SELECT 1 AS a, 2 AS a", "-f", "json").stdout == '{"a":1,"a":2}\n'


def test_no_rows_leave_a_header_or_nothing(invoke):
    sql = "SELECT id FROM range(0)"
    assert invoke("run", "-c", sql, "-f", "csv").stdout == "id\n"
    assert invoke("run", "-c", sql, "-f", "json").stdout == ""
    assert "0 rows" in invoke("run", "-c", sql).stdout


def test_tables_are_attached_and_windows_run_on_them(invoke, readings):
    sql = """SELECT s.day, AVG(w.val) AS average FROM readings
             WINDOW BY w AS (TYPE SLIDING PARTITION BY station ORDER BY day START AS s WHEN s.val > 0
                             END NEXT AS n WHEN n.val < 0) ORDER BY s.day"""
    done = invoke("run", "-c", sql, "-t", f"readings={readings}", "-f", "csv")
    assert (done.exit_code, done.stdout) == (0, "day,average\n2024-01-01,2.0\n2024-01-02,1.0\n")


def test_a_table_named_twice_has_the_rows_of_both_paths(invoke, readings, tmp_path):
    other = tmp_path / "more.data"
    other.write_text(readings.read_text(encoding="utf-8"), encoding="utf-8")
    arguments = ["-t", f"r={readings}", "-t", f"r={other}", "--table-format", "r=csv", "-f", "csv"]
    assert invoke("run", "-c", "SELECT COUNT(*) AS n FROM r", *arguments).stdout == "n\n6\n"


@pytest.mark.parametrize(
    ("value", "shown", "kind"),
    [
        ("25", "25", "int"),
        ("-2.50", "-2.50", "decimal(3,2)"),
        ("1e3", "1000.0", "double"),
        ("true", "true", "boolean"),
        ("NULL", "null", "void"),
        ("'it''s'", '"it\'s"', "string"),
        ("DATE '2024-01-31'", '"2024-01-31"', "date"),
        ("TIMESTAMP '2024-01-31 10:00:00'", '"2024-01-31T10:00:00.000000Z"', "timestamp"),
        ("O'Brien = x", '"O\'Brien = x"', "string"),
        ("USW00094728", '"USW00094728"', "string"),
        ("upper('x')", "\"upper('x')\"", "string"),
    ],
)
def test_a_parameter_is_a_literal_or_a_string(invoke, value, shown, kind):
    done = invoke("run", "-f", "json", "-c", "SELECT :x AS x, typeof(:x) AS t", "--param", f"x={value}")
    assert (done.exit_code, done.stdout) == (0, f'{{"x":{shown},"t":"{kind}"}}\n')


def test_parameters_are_bound_in_windows_and_in_every_statement_of_a_script(invoke, readings):
    script = """
        CREATE TEMPORARY VIEW v AS SELECT 1 AS one;
        SELECT s.day FROM readings
        WINDOW BY w AS (TYPE SLIDING PARTITION BY station ORDER BY day START AS s WHEN s.val > :low END);
        SELECT COUNT(*) AS n FROM readings WHERE station = :name
    """
    arguments = ["-c", script, "-t", f"readings={readings}", "--param", "low=1", "--param", "name=A"]
    assert invoke("run", "-f", "json", *arguments).stdout == '{"day":"2024-01-01"}\n{"n":2}\n'
    assert invoke("check", *arguments).stdout == "OK: 3 statements\n"
    assert "s.val > :low" in invoke("explain", *arguments).stdout


def test_a_parameter_without_a_value_and_one_that_is_none_are_told(invoke):
    done = invoke("run", "-c", "SELECT :low + :high", "--param", "low=1")
    assert done.exit_code == 1
    assert "parameter :high has no value\nline 1, column 15" in done.stderr
    assert "--param high=…" in done.stderr
    done = invoke("run", "-c", "SELECT :day", "--param", "day=DATE '2024-02-30'")
    assert done.exit_code == 2
    assert "[MALFORMED_OPTION] --param day=DATE '2024-02-30' is not a value" in done.stderr


def test_the_script_comes_from_a_file_from_a_dash_or_from_a_pipe(invoke, tmp_path):
    path = tmp_path / "query.sql"
    path.write_text("SELECT 'é' AS x", encoding="utf-8")
    expected = '{"x":"é"}\n'
    assert invoke("run", path, "-f", "json").stdout == expected
    assert invoke("run", "-", "-f", "json", stdin="SELECT 'é' AS x;\n").stdout == expected
    assert invoke("run", "-f", "json", stdin="SELECT 'é' AS x").stdout == expected


def test_statements_run_in_order_and_each_query_is_shown(invoke):
    script = """
        CREATE TEMPORARY VIEW v AS SELECT 1 AS a; -- a semicolon; in a comment
        SELECT a FROM v;
        SELECT ';' AS b
    """
    assert invoke("run", "-c", script, "-f", "json").stdout == '{"a":1}\n{"b":";"}\n'


def test_the_last_query_goes_to_the_file_and_those_before_it_are_shown(invoke, tmp_path):
    path = tmp_path / "out.csv"
    script = "SELECT 1 AS a; SELECT 2 AS b; DROP VIEW IF EXISTS nothing"
    done = invoke("run", "-c", script, "-o", path)
    assert (done.exit_code, done.stdout, done.stderr) == (0, "a\n1\n", "")
    assert path.read_text(encoding="utf-8") == "b\n2\n"


def test_parquet_is_one_file_with_the_types_of_the_query(invoke, tmp_path):
    path = tmp_path / "out.parquet"
    sql = """SELECT id, CAST(id AS DECIMAL(38, 3)) AS d, timestamp_seconds(id) AS ts, array(id) AS a,
                    named_struct('x', id) AS s FROM range(0, 25000, 1, 3) ORDER BY id"""
    assert invoke("run", "-c", sql, "-o", path).exit_code == 0
    table = pq.read_table(path)
    assert table.column("id").to_pylist() == list(range(25000))
    assert [str(field.type) for field in table.schema][:3] == [
        "int64",
        "decimal128(38, 3)",
        "timestamp[us, tz=UTC]",
    ]
    assert [file.name for file in tmp_path.iterdir()] == ["out.parquet"]


def test_parquet_without_rows_has_its_columns(invoke, tmp_path):
    path = tmp_path / "out.parquet"
    assert invoke("run", "-c", "SELECT id FROM range(0)", "-o", path).exit_code == 0
    assert pq.read_table(path).schema.names == ["id"]


def test_parquet_refuses_a_name_that_is_there_twice(invoke, tmp_path):
    done = invoke("run", "-c", "SELECT 1 AS a, 2 AS a", "-o", tmp_path / "out.parquet")
    assert (done.exit_code, list(tmp_path.iterdir())) == (1, [])
    assert "[DUPLICATE_COLUMN] column a appears twice" in done.stderr


@pytest.mark.parametrize("name", ["out.csv", "out.json", "out.parquet"])
def test_a_query_that_fails_half_way_leaves_the_file_as_it_was(invoke, tmp_path, name):
    path = tmp_path / name
    path.write_text("before", encoding="utf-8")
    done = invoke("run", "-c", "SELECT 1 / (id - 9000) AS x FROM range(10000)", "-o", path)
    assert done.exit_code == 1
    assert "[DIVIDE_BY_ZERO]" in done.stderr
    assert path.read_text(encoding="utf-8") == "before"
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_file_that_cannot_be_written_is_told_with_the_reason(invoke, tmp_path):
    done = invoke("run", "-c", "SELECT 1", "-o", tmp_path / "missing" / "out.csv")
    assert done.exit_code == 1
    assert "[OUTPUT_NOT_WRITTEN]" in done.stderr
    assert "no such file or directory" in done.stderr
    done = invoke("run", "-c", "SELECT 1", "-o", tmp_path, "-f", "csv")
    assert "is a directory" in done.stderr


def test_a_full_disk_is_told_with_the_reason(invoke):
    done = invoke("run", "-c", "SELECT id FROM range(100000)", "-o", "/dev/full", "-f", "csv")
    assert done.exit_code == 1
    assert "cannot write file /dev/full: no space left on device" in done.stderr


def test_intervals_of_tables_are_written_as_people_write_them(invoke):
    sql = """SELECT INTERVAL '0 00:33:02' DAY TO SECOND AS a, INTERVAL 1 DAY AS b,
        INTERVAL '-2 00:00:01.5' DAY TO SECOND AS c, CAST(NULL AS INTERVAL DAY) AS d"""
    cells = [cell.strip() for cell in invoke("run", "-c", sql).stdout.split("|")]
    assert {"00:33:02", "1 day 00:00:00", "-2 days 00:00:01.5", "NULL"} <= set(cells)
    assert "INTERVAL '0 00:33:02' DAY TO SECOND" in invoke("run", "-f", "csv", "-c", sql).stdout


def test_a_picture_is_of_the_partition_and_of_as_many_rows_as_are_asked_for(invoke, tmp_path):
    sql = """
        SELECT s.day FROM VALUES ('a', 1, 3), ('b', 1, 2), ('b', 2, 9), ('b', 3, 8), ('b', 4, 7), ('b', 5, 6)
            AS t(k, day, val)
        WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY day
            START AS s WHEN s.val > 7 END AS e WHEN e.val < 8)"""
    picture = tmp_path / "windows.json"
    done = invoke("run", "-c", sql, "--plot", picture, "--plot-key", "b", "--plot-rows", "4")
    assert done.exit_code == 0, done.stderr
    drawn = json.loads(picture.read_text(encoding="utf-8"))
    assert max(map(len, drawn["datasets"].values())) == 4

"""Reading files as tables: every format, and every way in which a file can be wrong."""

from __future__ import annotations

import datetime
import gzip
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import windrow
from windrow.errors import InputError, UsageError
from windrow.spark.scan import ghcn
from windrow.spark.scan.file_sources import look, read_table

GHCN = Path(__file__).parents[2] / "shared" / "data" / "ghcn"
ROWS = [("a", 1), ("b", 2)]
TABLE = pa.table({"name": ["a", "b"], "val": pa.array([1, 2], pa.int32())})
CSV = "name,val\na,1\nb,2\n"
JSON_LINES = '{"name": "a", "val": 1}\n{"name": "b", "val": 2}\n'
JSON_ARRAY = '[{"name": "a", "val": 1},\n {"name": "b", "val": 2}]\n'


def dly_line(station="XWM00000001", month="202402", element="TMIN", **entries):
    """A line with the entries of the days `d1`, `d2`, …, each of eight characters."""
    days = "".join(entries.get(f"d{day}", "-9999   ") for day in range(1, 32))
    return f"{station}{month}{element}{days}\n"


DLY = dly_line(d1="  -12  S", d29="   25 I ") + dly_line(element="PRCP", d3="    0T X")
DLY_ROWS = [
    ("XWM00000001", datetime.date(2024, 2, 1), "TMIN", -12, None, None, "S"),
    ("XWM00000001", datetime.date(2024, 2, 29), "TMIN", 25, None, "I", None),
    ("XWM00000001", datetime.date(2024, 2, 3), "PRCP", 0, "T", None, "X"),
]
BY_YEAR = (
    "XWM00000001,20240201,TMIN,-12,,,S,\n"
    "XWM00000001,20240229,TMIN,25,,I,,0700\n"
    "XWM00000001,20240203,PRCP,0,T,,X,2400\n"
)


def parquet_bytes():
    sink = pa.BufferOutputStream()
    pq.write_table(TABLE, sink)
    return sink.getvalue().to_pybytes()


def orc_bytes():
    sink = pa.BufferOutputStream()
    pyarrow.orc.write_table(TABLE, sink)
    return sink.getvalue().to_pybytes()


CONTENT = {
    "t.parquet": parquet_bytes(),
    "t.pq": parquet_bytes(),
    "t.orc": orc_bytes(),
    "t.csv": CSV.encode(),
    "T.CSV": CSV.encode(),
    "t.csv.gz": gzip.compress(CSV.encode(), mtime=0),
    "t.json": JSON_LINES.encode(),
    "t.jsonl": JSON_LINES.encode(),
    "t.ndjson.gz": gzip.compress(JSON_LINES.encode(), mtime=0),
    "array.json": JSON_ARRAY.encode(),
    # Formats told by content.
    "parquet-without-suffix": parquet_bytes(),
    "orc-without-suffix": orc_bytes(),
    # Names that Spark would take for globs.
    "[t]{a,b}*.csv": CSV.encode(),
    "a b%20c,d.csv": CSV.encode(),
}


def rows(frame):
    return [tuple(row) for row in frame.collect()]


def written(directory, files):
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return directory


def refused(spark, path, **options):
    with pytest.raises((InputError, UsageError)) as caught:
        read_table(spark, path, **options)
    assert "\tat " not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("name", CONTENT)
def test_the_format_is_told_by_the_name_or_the_content(spark, tmp_path, name):
    path = written(tmp_path, {name: CONTENT[name]}) / name
    assert sorted(rows(read_table(spark, path).select("name", "val"))) == ROWS


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("parquet", parquet_bytes()),
        ("orc", orc_bytes()),
        ("csv", CSV.encode()),
        ("json", JSON_LINES.encode()),
        ("text", b"a\nb\n"),
        ("ghcn-dly", DLY.encode()),
        ("ghcn-by-year", BY_YEAR.encode()),
    ],
)
def test_a_named_format_goes_before_the_suffix(spark, tmp_path, kind, content):
    path = written(tmp_path, {"t.data": content}) / "t.data"
    expected = {"text": [("a",), ("b",)], "ghcn-dly": DLY_ROWS, "ghcn-by-year": DLY_ROWS}.get(kind, ROWS)
    assert rows(read_table(spark, path, format=kind)) == expected


def test_csv_types_are_inferred_with_dates_and_timestamps(spark, tmp_path):
    text = "d,t,i,x,s\n2024-01-01,2024-01-01 10:00:00,1,1.5,a\n2024-01-02,2024-01-01 10:00:01,,2.5,\n"
    frame = read_table(spark, written(tmp_path, {"t.csv": text}) / "t.csv")
    assert frame.schema.simpleString() == "struct<d:date,t:timestamp,i:int,x:double,s:string>"
    assert [(row.i, row.s) for row in frame.collect()] == [(1, "a"), (None, None)]


def test_csv_of_a_header_alone_is_a_table_without_rows(spark, tmp_path):
    frame = read_table(spark, written(tmp_path, {"t.csv": "a,b\n"}) / "t.csv")
    assert (frame.columns, frame.collect()) == (["a", "b"], [])


@pytest.mark.parametrize("query", [["name"], ["val"], ["count(*)"]])
def test_a_torn_csv_row_fails_also_the_query_that_does_not_read_its_columns(spark, tmp_path, query):
    frame = read_table(spark, written(tmp_path, {"t.csv": CSV + "c\n"}) / "t.csv")
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        frame.selectExpr(*query).collect()


def test_a_malformed_csv_record_is_told_with_its_file(spark, tmp_path):
    written(tmp_path, {"1.csv": CSV, "a b%20ü.csv": CSV + "torn\n"})
    session = windrow.Session(spark)
    session.register("told", tmp_path)
    with pytest.raises(InputError) as caught:
        session.sql("SELECT COUNT(*) FROM told").collect()
    assert caught.value.condition == "MALFORMED_RECORD"
    assert caught.value.message.startswith(f"file {tmp_path}/a b%20ü.csv has a record that is malformed")


@pytest.mark.parametrize("good", [JSON_LINES, JSON_ARRAY])
def test_a_malformed_json_record_is_told_with_its_file_and_table(spark, tmp_path, good):
    written(tmp_path, {"1.json": good, "2.json": good[:-5], "3.json": good})
    with pytest.raises(InputError) as caught:
        windrow.Session(spark).register("told", tmp_path)
    assert caught.value.message.startswith(f"table told: file {tmp_path}/2.json has a record")


def test_csv_files_with_columns_in_another_order_are_not_mixed_up(spark, tmp_path):
    directory = written(tmp_path, {"1.csv": "a,b\n1,2\n", "2.csv": "b,a\n3,4\n"})
    frame = read_table(spark, directory)
    with pytest.raises(Exception, match="FAILED_READ_FILE"):
        frame.collect()


def test_a_directory_is_read_without_hidden_and_empty_parts(spark, tmp_path):
    parts = {
        "part-0.csv": CSV,
        "part-1.csv": "",
        "part-2.csv": "name,val\nc,3\n",
        "_SUCCESS": "",
        ".part-0.csv.crc": b"\0",
    }
    assert sorted(rows(read_table(spark, written(tmp_path / "t.parquet", parts)))) == [*ROWS, ("c", 3)]


def test_a_directory_of_partitions_has_their_keys_as_columns(spark, tmp_path):
    parts = {f"station={name}/part-0.parquet": parquet_bytes() for name in "xy"}
    frame = read_table(spark, written(tmp_path, parts))
    assert sorted(rows(frame.selectExpr("station", "name", "val"))) == [
        (station, *row) for station in "xy" for row in ROWS
    ]


@pytest.mark.parametrize("pattern", ["t?.csv", "t[12].csv", "t{1,2}.csv", "**/t*.csv", "{t1,t2}.csv"])
def test_globs_are_expanded(spark, tmp_path, pattern):
    written(tmp_path, {"t1.csv": CSV, "t2.csv": CSV, "u.csv": "x\n1\n", "t3.orc": orc_bytes()})
    assert sorted(rows(read_table(spark, f"{tmp_path}/{pattern}"))) == sorted(ROWS * 2)


def test_several_paths_are_one_table(spark, tmp_path):
    written(tmp_path, {"t.csv": CSV, "u/part.csv": CSV})
    assert sorted(rows(read_table(spark, [tmp_path / "t.csv", str(tmp_path / "u")]))) == sorted(ROWS * 2)


def test_file_uris_and_relative_paths_are_local(spark, tmp_path, monkeypatch):
    written(tmp_path, {"t.csv": CSV})
    # Spark's own working directory is the one that it was started in.
    monkeypatch.chdir(tmp_path)
    for path in (f"file:{tmp_path}/t.csv", f"file://{tmp_path}/t.csv", "t.csv", "./t.csv"):
        assert rows(read_table(spark, path)) == ROWS
    assert refused(spark, f"file://{tmp_path}/u.csv").condition == "PATH_NOT_FOUND"


@pytest.mark.parametrize(
    ("name", "content", "condition"),
    [
        ("t.csv", b"", "EMPTY_FILE"),
        ("t.parquet", b"", "EMPTY_FILE"),
        ("t.orc", b"", "EMPTY_FILE"),
        ("t.json", b" \n", "EMPTY_FILE"),
        ("t.dly", b"", "EMPTY_FILE"),
        ("t.csv.gz", gzip.compress(b"", mtime=0), "EMPTY_FILE"),
        ("t.parquet", parquet_bytes()[:-1], "TORN_FILE"),
        ("t.parquet", b"PAR1", "TORN_FILE"),
        ("t.parquet", b"PAR1" + b"x" * 100 + b"PAR1", "TORN_FILE"),
        ("t.parquet", CSV.encode(), "NOT_A_PARQUET_FILE"),
        ("t.orc", orc_bytes()[:-20], "TORN_FILE"),
        ("t.orc", CSV.encode(), "NOT_AN_ORC_FILE"),
        ("t.csv", parquet_bytes(), "NOT_A_CSV_FILE"),
        ("t.csv", CSV.encode("utf-16"), "NOT_A_CSV_FILE"),
        ("t.csv", gzip.compress(CSV.encode(), mtime=0), "NOT_A_CSV_FILE"),
        ("t.csv.gz", CSV.encode(), "NOT_A_GZIP_FILE"),
        ("t.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9], "TORN_FILE"),
        ("t.json", CSV.encode(), "NOT_A_JSON_FILE"),
        ("t.json", JSON_LINES.encode()[:-5], "MALFORMED_RECORD"),
        ("t.json", JSON_ARRAY.encode()[:-5], "MALFORMED_RECORD"),
        ("t.dly", CSV.encode(), "MALFORMED_LINE"),
        ("t.dly", DLY.encode()[:-10], "TORN_FILE"),
        ("t.dly.gz", gzip.compress(DLY.encode(), mtime=0)[:-9], "TORN_FILE"),
        ("t.xlsx", b"PK\3\4", "UNKNOWN_FORMAT"),
        ("t", b"hello", "UNKNOWN_FORMAT"),
        ("t.parquet.gz", gzip.compress(parquet_bytes(), mtime=0), "UNKNOWN_FORMAT"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",  # bytes hold the time at which they were made
)
def test_a_bad_file_is_refused_by_name(spark, tmp_path, name, content, condition):
    error = refused(spark, written(tmp_path, {name: content}) / name)
    assert (error.condition, str(tmp_path / name) in error.message) == (condition, True)


def test_a_gzip_file_torn_behind_its_head_is_refused(spark, tmp_path):
    noise = random.Random(7)
    text = "name,val\n" + "".join(f"{noise.random()},{noise.random()}\n" for _ in range(20_000))
    path = written(tmp_path, {"t.csv.gz": gzip.compress(text.encode(), mtime=0)[:-1000]}) / "t.csv.gz"
    assert refused(spark, path).condition == "TORN_FILE"


def test_files_are_looked_at_without_spark(tmp_path):
    written(tmp_path, {"t.csv": CSV, "torn.parquet": parquet_bytes()[:-1]})
    assert [file.path for file in look(tmp_path / "t.csv").files] == [tmp_path / "t.csv"]
    for name, condition in (("u.csv", "PATH_NOT_FOUND"), ("torn.parquet", "TORN_FILE")):
        with pytest.raises(InputError) as caught:
            look(tmp_path / name, master="local[2]")
        assert caught.value.condition == condition
    # A cluster or a server may see what this machine does not.
    for master in ("spark://host:7077", "sc://host"):
        assert look(tmp_path / "u.csv", master=master).files == []


def test_a_missing_path_is_refused_with_a_neighbour(spark, tmp_path):
    written(tmp_path / "data", {"station.dly": DLY})
    error = refused(spark, tmp_path / "data" / "staton.dly")
    assert (error.condition, error.getSqlState()) == ("PATH_NOT_FOUND", "42K03")
    assert error.hint == "did you mean station.dly?"
    assert refused(spark, tmp_path / "dta" / "station.dly").hint == "did you mean data?"
    assert refused(spark, tmp_path / "data" / "*.csv").message == f"no file matches {tmp_path}/data/*.csv"
    assert refused(spark, tmp_path / "data" / "station.dly" / "x.csv").condition == "PATH_NOT_FOUND"
    assert refused(spark, []).condition == "NO_PATH"


@pytest.mark.parametrize(
    ("files", "condition"),
    [
        ({"_SUCCESS": ""}, "EMPTY_DIRECTORY"),
        ({"sub/t.csv": CSV}, "EMPTY_DIRECTORY"),
        ({"1.csv": "", "2.csv": ""}, "EMPTY_FILE"),
        ({"1.csv": CSV, "2.parquet": parquet_bytes()}, "MIXED_FORMATS"),
        ({"1.csv": CSV, "2.csv": BY_YEAR}, "MIXED_FORMATS"),
        ({"1.json": JSON_LINES, "2.json": JSON_ARRAY}, "MIXED_FORMATS"),
        ({"1.parquet": parquet_bytes(), "2.parquet": parquet_bytes()[:-1]}, "TORN_FILE"),
        ({"1.csv": CSV, "README.md": "see elsewhere"}, "UNKNOWN_FORMAT"),
    ],
)
def test_a_bad_directory_is_refused(spark, tmp_path, files, condition):
    assert refused(spark, written(tmp_path, files)).condition == condition


def test_an_unknown_format_is_refused_with_a_near_one(spark, tmp_path):
    path = written(tmp_path, {"t.csv": CSV}) / "t.csv"
    error = refused(spark, path, format="parqet")
    assert (error.condition, error.hint) == ("UNKNOWN_FORMAT", "did you mean parquet?")


def test_delta_without_delta_in_the_session_is_refused(spark, tmp_path):
    table = written(tmp_path, {"t/_delta_log/0.json": "{}", "t/part-0.parquet": parquet_bytes()}) / "t"
    assert refused(spark, table).condition == "UNKNOWN_FORMAT"
    assert refused(spark, table, format="delta").condition == "UNKNOWN_FORMAT"


def test_what_spark_says_about_a_remote_path_is_an_input_error(spark):
    assert refused(spark, "nosuch://host/t.parquet").message.startswith("Spark cannot read nosuch://host/")
    assert refused(spark, "nosuch://host/directory").condition == "UNKNOWN_FORMAT"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.dly", DLY.encode()),
        ("t.dly", DLY.replace("\n", "\r\n").encode()),
        ("t.dly.gz", gzip.compress(DLY.encode(), mtime=0)),
        ("without-suffix", DLY.encode()),
        ("2024.csv", BY_YEAR.encode()),
        ("2024.csv.gz", gzip.compress(BY_YEAR.encode(), mtime=0)),
        ("other.csv", BY_YEAR.encode()),
    ],
)
def test_ghcn_daily_files_are_read_as_published(spark, tmp_path, name, content):
    frame = read_table(spark, written(tmp_path, {name: content}) / name)
    assert rows(frame) == DLY_ROWS
    assert frame.schema.simpleString() == (
        "struct<station:string,date:date,dataType:string,val:int,mflag:string,qflag:string,sflag:string>"
    )


def test_a_csv_named_like_a_year_is_a_csv(spark, tmp_path):
    assert rows(read_table(spark, written(tmp_path, {"2024.csv": CSV}) / "2024.csv")) == ROWS


def test_days_that_a_month_does_not_have_are_left_out(spark, tmp_path):
    text = "".join(dly_line(month=month, d31="    1   ", d29="    1   ") for month in ("202302", "202304"))
    frame = read_table(spark, written(tmp_path, {"t.dly": text}) / "t.dly")
    assert [row.date for row in frame.collect()] == [datetime.date(2023, 4, 29)]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("t.dly", dly_line(month="202413")),
        ("t.dly", dly_line(d5="  1 2   ")),
        ("t.dly", dly_line(d5="12.50   ")),
        ("t.dly", "\n"),
        ("2024.csv", "XWM00000001,20241301,TMIN,1,,,S,\n"),
        ("2024.csv", "XWM00000001,20240101,TMIN,,,,S,\n"),
        ("2024.csv", "XWM00000001,20240101,TMIN,1,,,S\n"),
    ],
)
@pytest.mark.parametrize("found_by", ["windrow", "spark"])
def test_a_malformed_ghcn_line_is_never_skipped(spark, tmp_path, monkeypatch, name, line, found_by):
    good = DLY if name.endswith(".dly") else BY_YEAR
    path = written(tmp_path, {name: good + line + good}) / name
    if found_by == "windrow":
        error = refused(spark, path)
        assert error.condition == "MALFORMED_LINE"
        assert error.message.startswith(
            f"line {good.count(chr(10)) + 1} of {path} does not have the format of a GHCN-Daily "
        )
    else:
        monkeypatch.setattr(ghcn, "_CHECKED_BYTES", 0)
        frame = read_table(spark, path)
        for query in (frame, frame.where("dataType = 'PRCP'"), frame.selectExpr("count(*)")):
            with pytest.raises(
                Exception, match=rf"\[MALFORMED_LINE\] a line of file:.*{name} does not have the format of a"
            ):
                query.collect()


def test_a_by_year_date_that_does_not_exist_fails_the_query(spark, tmp_path):
    text = BY_YEAR + "XWM00000001,20240230,TMIN,1,,,S,\n"
    frame = read_table(spark, written(tmp_path, {"2024.csv": text}) / "2024.csv")
    with pytest.raises(Exception, match="MALFORMED_LINE"):
        frame.select("val").collect()


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_ghcn_files_are_read_alike_in_either_ansi_mode(spark, tmp_path, ansi):
    written(tmp_path, {"t.dly": DLY, "2024.csv": BY_YEAR})
    before = spark.conf.get("spark.sql.ansi.enabled")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        for name in ("t.dly", "2024.csv"):
            assert rows(read_table(spark, tmp_path / name)) == DLY_ROWS
    finally:
        spark.conf.set("spark.sql.ansi.enabled", before)


def test_a_published_station_equals_the_table_made_from_it(spark):
    station, table = GHCN / "EZM00011518.dly", GHCN / "ghcn-daily.parquet"
    if not (station.is_file() and table.is_file()):
        pytest.skip("the GHCN-Daily data is not beside the repository")
    columns = ["station", "date", "dataType", "val"]
    read = read_table(spark, station).select(columns)
    expected = read_table(spark, table).where("station = 'EZM00011518'").select(columns)
    assert read.count() == expected.count() > 0
    assert read.exceptAll(expected).isEmpty()

"""CSV files that are read without Spark have the values that Spark reads from them."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from windrow.kernels.packing.csv_files import plain_csv

COLUMNS = "n BIGINT, i INT, x DOUBLE, s STRING, at TIMESTAMP, local TIMESTAMP_NTZ, day DATE"
SCHEMA = pa.schema(
    {
        "n": pa.int64(),
        "i": pa.int32(),
        "x": pa.float64(),
        "s": pa.string(),
        "at": pa.timestamp("us", "UTC"),
        "local": pa.timestamp("us"),
        "day": pa.date32(),
    }
)
NUMBERS = [
    "0", "7", "-3", "007", "-0", "+5", " 5", "5 ", "0x1F", "1e3", "9223372036854775807", "12345678901",
    "9223372036854775808", "--1", "-", "1_000", "٣",
]  # fmt: skip
REALS = [
    "0.5", "-0.0", "1.", ".5", "1e5", "1E-3", "+1.5", "NaN", "nan", "Inf", "-Infinity", "1e400", "1d",
    "2.5f", "0x1p3", " 1.5", "1.5 ", "1,5", "0.1000000000000000055511151231257827", "4.9e-324",
]  # fmt: skip
TEXTS = [
    "", "a", " a ", "a b", '"q"', '""', '"a,b"', 'a"b', '"a"b', '"a""b"', "a\\b", '"a\\"b"', "ä",
    "\ufeff", "null", "#c", "'x'", "a\tb", '"\n"', '"a\nb"', "\r", "x\x00", '"', '" a"', '"a" ',
]  # fmt: skip
TIMES = [
    "2024-02-29 01:02:03", "2024-02-29T01:02:03", "2024-02-29 01:02:03.1", "2024-02-29 01:02:03.123456",
    "2024-02-29 01:02:03.1234567", "2024-02-29", "2024-02-29 10", "2024-02-29 10:30", "2024-2-9 1:2:3",
    "2023-02-29 00:00:00", "2024-02-29 24:00:00", "2024-02-29 23:59:60", "2024-02-29 01:02:03Z",
    "2024-02-29 01:02:03+02:00", "0000-01-01 00:00:00", "0001-01-01 00:00:00", "1582-10-10 00:00:00",
    "9999-12-31 23:59:59.999999", "12024-02-29 01:02:03", " 2024-02-29 01:02:03", "2024-02-29 01:02:03 ",
    "now", "20240229", "2024-02-29 010203", "2024-02", "1e3",
]  # fmt: skip
OF_COLUMN = (NUMBERS, NUMBERS, REALS, TEXTS, TIMES, TIMES, TIMES)
PLAIN = ("1", "-2", "0.5", "text", "2024-02-29 01:02:03", "2024-02-29 01:02:03.5", "2024-02-29")


def fields_of(texts: list[str]) -> st.SearchStrategy[str]:
    return st.one_of(st.sampled_from(texts), st.just(""), st.text('0123456789-:. Tae"\\,\n', max_size=6))


rows = st.one_of(
    st.just(PLAIN),
    st.tuples(*map(fields_of, OF_COLUMN)),
    st.builds(
        lambda place, text: (*PLAIN[:place], text, *PLAIN[place + 1 :]),
        *(st.integers(0, 6), st.one_of(*map(fields_of, OF_COLUMN))),
    ),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("texts")


def compare(spark, folder: Path, text: str, *, has_header: bool = False) -> pa.Table | None:
    """What is read without Spark, which is what Spark reads, or None."""
    path = folder / "rows.csv"
    path.write_bytes(text.encode())
    found = plain_csv(str(path), SCHEMA, SCHEMA.names, has_header=has_header)
    if found is not None:
        frame = spark.read.schema(COLUMNS).option("header", has_header).csv(f"file://{path}")
        assert plain(found) == plain(frame.toArrow())
    shutil.rmtree(folder / ".rows.csv.crc", ignore_errors=True)
    return found


def plain(rows: pa.Table) -> str:
    """The rows with times as numbers, as Python has no year 0; repr() tells -0.0 from 0.0."""
    numbers = {
        pa.date32(): pa.int32(),
        SCHEMA.field("at").type: pa.int64(),
        SCHEMA.field("local").type: pa.int64(),
    }
    columns = [column.cast(numbers.get(column.type, column.type)) for column in rows.columns]
    return repr(pa.Table.from_arrays(columns, rows.column_names).to_pylist())


@pytest.fixture(autouse=True)
def _utc(conf) -> None:
    conf("spark.sql.session.timeZone", "UTC")


@pytest.mark.sampled
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(rows, max_size=4), st.sampled_from(["\n", "\n\n", "\r\n", " \n"]), st.booleans(), st.booleans()
)
@example([PLAIN, ("1", "2")], "\n", False, True)
@example([PLAIN, (*PLAIN, "more")], "\n", False, True)
@example([PLAIN], "\n", True, False)
def test_random_files(spark, folder, lines, end, has_header, is_ended):
    text = end.join(",".join(line) for line in lines) + (end if is_ended else "")
    compare(spark, folder, text, has_header=has_header)


@pytest.mark.parametrize("column", range(len(OF_COLUMN)))
def test_each_suspicious_text(spark, folder, column):
    lines = ["", *OF_COLUMN[column]]
    read = [
        text
        for text in lines
        if compare(spark, folder, ",".join([*PLAIN[:column], text, *PLAIN[column + 1 :]]) + "\n") is not None
    ]
    assert "" in read  # which is NULL, or nothing would be compared
    assert len(read) > 1


@pytest.mark.parametrize(("header", "quote"), [*itertools.product((False, True), ("", chr(34)))])
def test_plain_files_are_read(spark, folder, header, quote):
    line = ",".join(f"{quote}{value}{quote}" for value in PLAIN)
    names = ",".join(SCHEMA.names)
    found = compare(spark, folder, "\n".join([*([names] if header else []), *[line] * 3]), has_header=header)
    assert found is not None
    assert found.num_rows == 3


@pytest.mark.parametrize("names", ["\n,,,s,,,", " \n,,,s,,,", "s", 'n,i,x,"s,at,local,day'])
def test_the_line_of_names_is_the_one_that_spark_leaves_out(spark, folder, names):
    """Spark passes over empty lines, and ends lines in quotes too."""
    for lines in (['1,2,3,","y,,,', '1,2,3,z",,,'], [",,,t,,,"]):
        compare(spark, folder, "\n".join([names, *lines]), has_header=True)


def test_other_files_are_left_to_spark(folder):
    path = folder / "rows.csv"
    path.write_text(",".join(PLAIN))
    assert plain_csv(str(path), SCHEMA, ["n"]) is not None
    assert plain_csv(str(path), SCHEMA.append(pa.field("b", pa.bool_())), ["n"]) is None
    assert plain_csv(str(path), pa.schema({"n": pa.string()}), ["n"]) is None
    assert plain_csv(str(path.rename(folder / "rows.gz")), SCHEMA, ["n"]) is None
    assert plain_csv(str(folder / "gone.csv"), SCHEMA, ["n"]) is None

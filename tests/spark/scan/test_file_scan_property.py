"""What tasks make of files is what Spark makes of them, whatever is chosen and computed on the way."""

from __future__ import annotations

import datetime as dt
import itertools
import pickle
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from windrow import Session
from windrow.errors import WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.scan.file_scan import READ_SETTING, file_scan

READS = "the Parquet files, in the tasks themselves"
COUNT = 40
LEAST, MOST = -(2**63), 2**63 - 1


def cycled(values):
    return list(itertools.islice(itertools.cycle(values), COUNT))


TABLE = pa.table(
    {
        "n": pa.array(range(COUNT), pa.int32()),
        "x": pa.array(cycled([1, None, -7, 1000, 0, 3, -1000])),
        "i": pa.array(cycled([7, 0, None, -2, 123, 60]), pa.int32()),
        "h": pa.array(cycled([1, 2, None, -4, 300]), pa.int16()),
        "big": pa.array(cycled([LEAST, MOST, None, 5, -1, 2**53 + 1])),
        "f": pa.array(cycled([0.5, None, float("nan"), -0.0, 0.0, 1e300, float("-inf")])),
        "g": pa.array(cycled([float("nan"), 0.0, float("inf"), None, 2.5, -1.0])),
        "r": pa.array(cycled([0.5, None, float("nan"), -0.0, float("inf")]), pa.float32()),
        "s": pa.array(cycled(["a/b", "b", None, "", "ä/ö//", "a"])),
        "t": pa.array([None if at % 9 == 4 else f"t{at}ß{at % 3}" for at in range(COUNT)]),
        "b": pa.array(cycled([True, None, False])),
        "d": pa.array(
            cycled([Decimal("1.25"), None, Decimal("-99999999.99"), Decimal("0")]), pa.decimal128(10, 2)
        ),
        "day": pa.array(
            [None if at % 7 == 3 else dt.date(1969, 12, 1) + dt.timedelta(17 * at) for at in range(COUNT)]
        ),
        "at": pa.array(
            cycled(
                [
                    dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
                    None,
                    dt.datetime(2024, 2, 29, 8, 5, 9, 500000),
                ]
            ),
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array(
            cycled([dt.datetime(1950, 1, 1, 1), dt.datetime(2000, 2, 29, 0, 0, 0, 1), None]),
            pa.timestamp("us"),
        ),
    }
)


def one_of(*templates):
    """Texts by one of the templates, with what is drawn for its places."""

    @st.composite
    def filled(draw):
        template, *parts = draw(st.sampled_from(templates))
        return template.format(*map(draw, parts))

    return filled()


NUMBERS = st.sampled_from(["-7", "0", "1", "3", "60", "1000"])
INTS = one_of(
    ("x",),
    ("i",),
    ("h",),
    ("{}", NUMBERS),
    ("CAST(i AS BIGINT)",),
    ("length(s)",),
    ("year(day)",),
    ("month(local)",),
    ("dayofmonth(at)",),
    ("quarter(day)",),
    ("hour(at)",),
    ("second(local)",),
    ("n",),
)
FLOATS = one_of(("f",), ("g",), ("CAST(r AS DOUBLE)",), ("CAST(big AS DOUBLE)",), ("x / 3",), ("0.5D",))
TEXTS = one_of(
    ("s",),
    ("t",),
    ("'a'",),
    ("''",),
    ("CAST(x AS STRING)",),
    ("split_part(s, '/', 2)",),
    ("substring(t, 2, 2)",),
    ("replace(s, 'a', 'ü')",),
    ("CAST(big AS STRING)",),
    ("date_format(at, 'yyyy-MM')",),
)
DATES = one_of(("day",), ("CAST(at AS DATE)",), ("CAST(local AS DATE)",), ("DATE '2000-02-29'",))
COMPARED = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
ATOMS = one_of(
    ("{} {} {}", INTS, COMPARED, INTS),
    ("big {} {}", COMPARED, st.sampled_from(["5", str(LEAST), str(MOST), "x", "0"])),
    ("{} {} {}", FLOATS, COMPARED, FLOATS),
    (
        "f {} {}",
        COMPARED,
        st.sampled_from(["0.0D", "-0.0D", "1e300D", "DOUBLE('NaN')", "DOUBLE('Infinity')"]),
    ),
    ("r {} {}", COMPARED, st.sampled_from(["FLOAT('NaN')", "FLOAT(0.5)", "r"])),
    ("{} {} {}", TEXTS, COMPARED, TEXTS),
    ("{} {} {}", DATES, COMPARED, DATES),
    ("d {} {}", COMPARED, st.sampled_from(["1.25", "-99999999.99", "0", "d"])),
    ("local {} TIMESTAMP_NTZ '2000-02-29 00:00:00.000001'", COMPARED),
    ("CAST(at AS TIMESTAMP_NTZ) {} local", COMPARED),
    ("{} IN ('a', 'b', '')", TEXTS),
    ("{} IN (1, 3, 1000)", INTS),
    ("{} IS NULL", st.one_of(INTS, FLOATS, TEXTS, DATES)),
    ("{} LIKE '{}'", TEXTS, st.sampled_from(["a%", "%b", "%/%", "t1%0", "a"])),
    ("b",),
)
BOOLS = st.recursive(
    ATOMS,
    lambda parts: one_of(("({} AND {})", parts, parts), ("({} OR {})", parts, parts), ("NOT ({})", parts)),
    max_leaves=4,
)
VALUES = st.one_of(
    BOOLS,
    one_of(
        ("{} + {}", INTS, INTS),
        ("{} - {}", INTS, INTS),
        ("{} * {}", INTS, INTS),
        ("-({})", INTS),
        ("abs({})", INTS),
        ("({}) % 7", INTS),
        ("pmod({}, 5)", INTS),
        ("({}) DIV 4", INTS),
        ("COALESCE({}, {})", INTS, NUMBERS),
        ("CASE WHEN {} THEN {} WHEN {} THEN {} END", BOOLS, INTS, ATOMS, INTS),
        ("IF({}, {}, {})", ATOMS, TEXTS, TEXTS),
        ("{} * {}", FLOATS, FLOATS),
        ("{} - {}", FLOATS, FLOATS),
        ("{} / -4", FLOATS),
        ("COALESCE({}, {})", FLOATS, FLOATS),
        ("concat({}, '-', {})", TEXTS, TEXTS),
        ("length({})", TEXTS),
        ("d * 2.5",),
        ("d + {}", NUMBERS),
        ("year({}) * 100 + month({})", DATES, DATES),
        ("dayofyear({})", DATES),
        ("at + INTERVAL '{}' SECOND", NUMBERS),
        ("unix_micros(at)",),
        ("at",),
        ("d",),
        ("b",),
        ("r",),
    ),
)


@pytest.fixture(scope="module")
def rows(spark, tmp_path_factory):
    """The table in directories of three values, in small row groups."""
    top = tmp_path_factory.mktemp("rows")
    for at, part in enumerate(["one", "__HIVE_DEFAULT_PARTITION__", "a b"]):
        folder = top / f"p={part}" / f"q={at}"
        folder.mkdir(parents=True)
        table = TABLE.slice(at * 14, 14)
        if at == 1:
            table = table.set_column(8, "s", table["s"].dictionary_encode())
        pq.write_table(table, folder / "rows.parquet", row_group_size=5)
    # statistics of files have no NaN: by them Spark leaves out row groups in which it is the greatest
    given = {"spark.sql.session.timeZone": "UTC", "spark.sql.parquet.filterPushdown": "false"}
    before = {name: spark.conf.get(name) for name in given}
    for name, value in given.items():
        spark.conf.set(name, value)
    spark.read.parquet(str(top)).createOrReplaceTempView("rows")
    yield spark
    for name, value in before.items():
        spark.conf.set(name, value)


def listed(table):
    return sorted(map(repr, table.to_pylist()))


def tasks_make(scan):
    batches = [batch.cast(scan.schema) for task in range(len(scan.tasks)) for batch in scan.read(task)]
    return pa.Table.from_batches(batches, scan.schema)


@settings(max_examples=96, suppress_health_check=list(HealthCheck))
@given(where=BOOLS, inner=ATOMS, values=st.lists(VALUES, min_size=6, max_size=6))
@example(
    where="f > 0.0D", inner="p = 'one' OR q >= 1", values=["p", "q + 1", "p || s", "p IS NULL", "n", "1"]
)
@example(where="p = 'a b'", inner="n >= 30", values=["p", "n", "s", "f", "r", "at"])
@example(where="f <= -0.0D AND r <> r", inner="true", values=["n"] * 6)
def test_tasks_make_of_files_what_spark_makes_of_them(rows, where, inner, values):
    of = ", ".join(f"{value} AS v{at}" for at, value in enumerate(values))
    frame = rows.sql(f"SELECT n AS o, {of} FROM (SELECT * FROM rows WHERE {inner}) WHERE {where}")
    scanned = file_scan(Gateway(rows, {}), frame, [])
    if scanned.scan is None:
        return
    scan = pickle.loads(pickle.dumps(scanned.scan))
    assert listed(tasks_make(scan)) == listed(frame.toArrow())
    chosen = ["v3", "o"]
    assert listed(tasks_make(scan.only(chosen))) == listed(tasks_make(scan).select(chosen))


WRONG = one_of(
    ("x * {}", st.sampled_from([str(MOST), "9223372036854775"])),
    ("{} / x", NUMBERS),
    ("i % h",),
    ("CAST(s AS INT)",),
    ("abs(big)",),
    ("CAST(big AS INT)",),
    ("i * 100000000",),
    ("{}", INTS),
)


@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(
    where=BOOLS,
    value=st.one_of(INTS, WRONG),
    total=st.one_of(INTS, WRONG),
    key=st.one_of(TEXTS, DATES, INTS),
    start=BOOLS,
)
@example(where="s = 'b'", value="x % 7", total="x * 2", key="s", start="f > 0.0D")
@example(where="s = 'b' AND x < 3", value=f"x * {MOST}", total="x", key="s", start="b")
@example(where="i >= 0", value="n", total="60 / i", key="day", start="b OR NOT b")
def test_windows_are_the_same_and_so_are_errors(rows, where, value, total, key, start):
    session, found, told = Session(rows), {}, {}
    query = f"""
        SELECT s.n, s.v, COUNT(w) AS c, SUM(w.f) AS f, MAX(w.u) AS m
        FROM (SELECT n, b, f, {value} AS v, {total} AS u, {key} AS k, {start} AS o FROM rows WHERE {where})
        WINDOW BY w AS (
            TYPE SLIDING PARTITION BY k, b ORDER BY n
            START AS s AT sp WHEN s.o END AT ep WHEN ep - sp = 2)
        """
    for reads in ("true", "false"):
        rows.conf.set(READ_SETTING, reads)
        told[reads] = READS in session.sql(query).plan()
        try:
            found[reads] = sorted(map(repr, session.sql(query).collect()))
        except WindrowError as error:
            found[reads] = error.condition
    assert found["true"] == found["false"]
    assert not told["false"]
    if (where, value) == ("s = 'b'", "x % 7"):
        assert told["true"]
        assert found["true"]
    if str(MOST) in value or "60 / i" in total:
        assert not told["true"]

"""Plain Parquet files are read by the tasks themselves, with the rows that Spark reads; all else by Spark."""

from __future__ import annotations

import datetime as dt
import tempfile
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.scan.comparisons import plan_where_answers_agree
from windrow import Session
from windrow.errors import ExecutionError
from windrow.spark.scan.file_scan import READ_SETTING

COUNT = 50
TOLD = "the Parquet files, in the tasks themselves"
QUERY = """
    SELECT s.*, SUM(w.x) AS total, COUNT(w) AS n FROM rows
    WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY o START AS s AT sp END AT ep WHEN ep - sp = 3)
    """
TABLE = pa.table(
    {
        "k": pa.array(["a", "b", None, "ä", ""] * 10),
        "o": pa.array(range(COUNT), pa.int32()),
        "x": pa.array([None if at % 7 == 0 else at / 4 for at in range(COUNT)]),
        "flag": pa.array([None, True, False, True, True] * 10),
        "tiny": pa.array([at - 25 for at in range(COUNT)], pa.int8()),
        "big": pa.array([at << 40 for at in range(COUNT)]),
        "single": pa.array([at / 3 for at in range(COUNT)], pa.float32()),
        "day": pa.array([dt.date(1900, 1, 1) + dt.timedelta(at) for at in range(COUNT)]),
        "at": pa.array([dt.datetime(2020, 1, 1, at % 24) for at in range(COUNT)], pa.timestamp("us", "UTC")),
        "local": pa.array([dt.datetime(1950, 1, 1, at % 24) for at in range(COUNT)], pa.timestamp("us")),
        "price": pa.array([Decimal(at) / 4 for at in range(COUNT)], pa.decimal128(10, 2)),
        "wide": pa.array([Decimal(at) / 4 for at in range(COUNT)], pa.decimal128(38, 2)),
        "bytes": pa.array([bytes([at]) for at in range(COUNT)]),
        "name": pa.array([f"name {at}" for at in range(COUNT)]),
    }
)


@pytest.fixture
def session(spark):
    return Session(spark)


@pytest.fixture
def answers(session, conf):
    """The answers of a query over a path, and whether its tasks read the files."""

    def ask(source, query=QUERY):
        if source is not None:
            session.register("rows", source)
        return TOLD in plan_where_answers_agree(session, conf, query, TOLD)

    return ask


def test_files_of_all_simple_types(answers, tmp_path):
    pq.write_table(TABLE, tmp_path / "one file.parquet", row_group_size=7)
    assert answers(tmp_path / "one file.parquet")


def test_files_of_a_directory_written_by_spark(spark, answers, tmp_path):
    pq.write_table(TABLE, tmp_path / "one.parquet")
    spark.read.parquet(str(tmp_path / "one.parquet")).repartition(3).write.parquet(str(tmp_path / "many"))
    assert answers(tmp_path / "many")
    columns = "s.k, s.o, s.day, SUM(w.x) AS total"
    assert answers(None, QUERY.replace("s.*, SUM(w.x) AS total", columns))


def test_files_whose_strings_are_partly_coded(answers, tmp_path):
    one, two = tmp_path / "d" / "one.parquet", tmp_path / "d" / "two.parquet"
    one.parent.mkdir()
    coded = TABLE.set_column(0, "k", TABLE["k"].dictionary_encode())
    pq.write_table(pa.concat_tables([coded] * 40), one, row_group_size=300)
    pq.write_table(TABLE.set_column(0, "k", TABLE["k"].cast(pa.large_string())), two, use_dictionary=False)
    query = QUERY.replace("s.*", "s.k, s.name").replace("ORDER BY o", "ORDER BY o, name")
    assert answers(one.parent, query)


@pytest.mark.long
def test_predicates_over_fields_and_constants_are_the_kernels(answers, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    for start in ["s.x < 5", "s.x < 5.25", "s.o BETWEEN 3 AND 30 AND NOT s.flag", "s.x IS NULL OR s.x > 3",
                  "s.day >= DATE '1900-01-20'", "s.flag <=> NULL", "s.x = 3.5D OR s.flag"]:  # fmt: skip
        query = f"""
            SELECT s.o, n.o AS next, SUM(w.x) AS total FROM rows
            WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY o
                START AS s WHEN {start} END NEXT AS n WHEN n.x >= 9 OR n.o - s.o > 12)
            """
        assert answers(tmp_path / "rows.parquet", query), start


OTHERS = {
    "sampled": "SELECT * FROM files LIMIT 20",
    "of two tables": "SELECT k, o, x FROM files UNION ALL SELECT k, o + 100, x FROM files",
    "cached": "SELECT * FROM cached",
}


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_more_than_a_choice_of_rows_and_values_of_each_is_read_by_spark(
    spark, answers, tmp_path, name
):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    spark.read.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("files")
    if name == "cached":
        spark.table("files").cache().createOrReplaceTempView("cached")
    spark.sql(OTHERS[name]).createOrReplaceTempView("rows")
    assert not answers(None)
    spark.catalog.clearCache()


FOLDERS = ["u", "v w", "ä%3D+", "__HIVE_DEFAULT_PARTITION__"]


def test_columns_of_directories_are_what_spark_says(session, conf, answers, tmp_path):
    for at, part in enumerate(FOLDERS):
        folder = tmp_path / f"part={part}" / f"number={at:02}" / f"day=2024-01-0{at + 1}"
        folder.mkdir(parents=True)
        pq.write_table(TABLE, folder / "rows.parquet", row_group_size=20)
    query = QUERY.replace("PARTITION BY k", "PARTITION BY part, k")
    assert answers(tmp_path, query)
    assert {row.part for row in session.sql(query).collect()} == {"u", "v w", "ä=+", None}
    assert answers(None, query.replace("FROM rows", "FROM rows WHERE day > DATE '2024-01-02'"))
    some = QUERY.replace(
        "FROM rows", "FROM (SELECT *, number + 1 AS p FROM rows WHERE number = 2 AND o < 30)"
    )
    assert answers(None, some.replace("s.*", "s.p, s.o, s.number, s.part"))
    conf(READ_SETTING, "true")
    assert "2 of their 3 row groups, by statistics" in session.sql(some).plan()
    assert len(session.sql(some).collect()) == 30
    assert answers(None, QUERY.replace("FROM rows", "FROM rows WHERE part IS NULL"))


def test_directories_with_values_of_other_types_are_read_by_spark(spark, answers, tmp_path):
    for part in ("1.5", "2.5"):
        (tmp_path / f"part={part}").mkdir()
        pq.write_table(TABLE, tmp_path / f"part={part}" / "rows.parquet")
    assert not answers(tmp_path)
    spark.read.schema("part decimal(3, 1), k string, o int, x double").parquet(
        str(tmp_path)
    ).createOrReplaceTempView("rows")
    assert not answers(None)


@pytest.mark.parametrize(
    "other",
    [
        TABLE.drop_columns(["x"]),
        TABLE.set_column(1, "o", TABLE["o"].cast(pa.int16())),
        TABLE.rename_columns([name.upper() if name == "x" else name for name in TABLE.column_names]),
    ],
    ids=["without a column", "of another type", "in other letters"],
)
def test_files_that_differ_are_read_by_spark(spark, answers, tmp_path, other):
    pq.write_table(TABLE, tmp_path / "1.parquet")
    pq.write_table(other, tmp_path / "2.parquet")
    spark.read.schema("k string, o int, x double").parquet(str(tmp_path)).createOrReplaceTempView("rows")
    assert not answers(None)


def test_days_of_old_calendars_are_read_by_spark(answers, tmp_path):
    old = TABLE.set_column(7, "day", pa.array([dt.date(1500, 1, 1)] * COUNT))
    pq.write_table(old, tmp_path / "old.parquet")
    assert not answers(tmp_path / "old.parquet")
    assert answers(None, QUERY.replace("s.*", "s.o"))
    pq.write_table(TABLE, tmp_path / "unknown.parquet", write_statistics=False)
    assert not answers(tmp_path / "unknown.parquet")


def test_nested_columns_are_read_by_spark(answers, tmp_path):
    nested = TABLE.select(["k", "o", "x"]).append_column("in", pa.array([{"k": at} for at in range(COUNT)]))
    pq.write_table(nested, tmp_path / "nested.parquet")
    assert not answers(tmp_path / "nested.parquet")
    assert answers(None, QUERY.replace("s.*", "s.k"))


def test_a_column_and_a_field_of_a_struct_with_the_same_path_are_read_by_spark(answers, tmp_path, conf):
    conf("spark.sql.parquet.filterPushdown", "false")  # with which Spark confuses them, too
    conf("spark.windrow.task.rows", "10")
    odd = TABLE.select(["k", "o", "x"]).append_column("a.b", pa.array([at % 4 for at in range(COUNT)]))
    odd = odd.append_column("a", pa.array([{"b": at // 10} for at in range(COUNT)]))
    pq.write_table(odd, tmp_path / "odd.parquet", row_group_size=10)
    query = QUERY.replace("s.*", "s.o").replace("PARTITION BY k", "PARTITION BY `a.b`")
    assert not answers(tmp_path / "odd.parquet", query)
    assert not answers(None, query.replace("FROM rows", "FROM rows WHERE `a.b` >= 3"))


def test_times_as_spark_writes_them(spark, answers, tmp_path, conf):
    times = ["1500-01-01 00:00:00", "1850-06-30 12:00:00.000001", "1969-12-31 23:59:59.999999"]
    times += ["2024-03-31 01:30:00", "9999-12-31 23:59:59.999999", None]
    rows = [(at % 3, at, times[at % 6]) for at in range(COUNT)]
    frame = spark.createDataFrame(rows, "k int, o int, x string").selectExpr(
        "k", "o", "CAST(x AS timestamp) x"
    )
    conf("spark.sql.parquet.outputTimestampType", "INT96")
    frame.coalesce(1).write.parquet(str(tmp_path / "new"))
    (file,) = (tmp_path / "new").glob("*.parquet")
    assert pq.read_metadata(file).schema.column(2).physical_type == "INT96"
    query = QUERY.replace("SUM(w.x)", "MIN(w.x)")
    for zone in ("UTC", "America/New_York"):
        conf("spark.sql.session.timeZone", zone)
        assert answers(tmp_path / "new", query)
        assert answers(None, query.replace("FROM rows", "FROM rows WHERE x > TIMESTAMP '1900-01-01'"))
        assert answers(None, query.replace("BY k", "BY x"))
    conf("spark.sql.parquet.int96RebaseModeInWrite", "LEGACY")
    frame.coalesce(1).write.parquet(str(tmp_path / "old"))
    assert not answers(tmp_path / "old", query)


def test_names_that_plans_do_not_quote(answers, tmp_path):
    odd = TABLE.rename_columns([f"{name}, a.b#1" if name == "x" else name for name in TABLE.column_names])
    pq.write_table(odd, tmp_path / "odd.parquet")
    assert answers(tmp_path / "odd.parquet", QUERY.replace("w.x", "w.`x, a.b#1`"))


def test_a_file_that_is_damaged_is_named(session, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path, compression="none")
    session.register("rows", path)
    answer = session.sql(QUERY)
    whole = path.read_bytes()
    path.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(ExecutionError, match=f"cannot read {path}") as caught:
        answer.collect()
    assert caught.value.condition == "UNREADABLE_FILE"
    path.unlink()
    with pytest.raises(ExecutionError, match=f"cannot read {path}"):
        answer.collect()


@pytest.mark.parametrize(
    "paths", [("rows.parquet", "rows.parquet"), (".", "rows.parquet"), ("*.parquet", "r*")]
)
def test_a_file_that_is_given_twice_is_read_twice(spark, session, answers, tmp_path, paths):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    spark.read.parquet(*(str(tmp_path / path) for path in paths)).createOrReplaceTempView("rows")
    query = QUERY.replace("ORDER BY o", "ORDER BY o, k")
    assert len(session.sql(query).collect()) == 2 * COUNT
    assert answers(None, QUERY.replace("s.*, SUM(w.x) AS total", "s.o"))


def test_several_files_are_read_by_the_tasks(spark, answers):
    with tempfile.TemporaryDirectory(dir="/tmp") as top:
        directory = Path(top)
        for number in range(10):
            pq.write_table(TABLE.slice(number * 5, 5), directory / f"{number}.parquet")
        files = sorted(map(str, directory.iterdir()))
        spark.read.parquet(*files[:2]).createOrReplaceTempView("rows")
        assert answers(None)
        spark.read.parquet(*files).createOrReplaceTempView("rows")
        assert answers(None)
        spark.read.parquet(top).createOrReplaceTempView("rows")
        assert answers(None)


@pytest.mark.parametrize(
    ("value", "is_read"),
    [
        ("coalesce(big, CAST(raise_error('no big') AS BIGINT))", True),
        ("coalesce(unix_date(day), CAST(raise_error('no day') AS INT))", True),
        ("coalesce(nullif(o, -1), CAST(raise_error('no o') AS INT))", False),
        ("coalesce(x, CAST(single AS DOUBLE), raise_error('neither'))", False),
    ],
)
def test_an_error_for_null_is_left_out_where_there_is_none(answers, tmp_path, value, is_read):
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=7)
    query = QUERY.replace("FROM rows", f"FROM (SELECT k, o, x, {value} AS y FROM rows)")
    assert answers(tmp_path / "rows.parquet", query) == is_read


def test_strings_written_as_differences(spark, answers, tmp_path):
    names = "concat('a prefix that is long and common to all the values ', lpad(string(id), 8, '0'))"
    rows = spark.range(500).selectExpr(
        "IF(id % 2 = 0, 'a', 'b') AS k", "int(id) AS o", "0.5D AS x", f"{names} s"
    )
    options = {"parquet.writer.version": "v2", "parquet.enable.dictionary": "false"}
    rows.coalesce(1).write.options(**options).parquet(str(tmp_path / "written"))
    assert answers(tmp_path / "written")


def test_columns_that_are_codes_in_some_files(answers, tmp_path):
    names, marks = [f"name {at}" for at in range(COUNT)], [b"x", b"yy"] * (COUNT // 2)
    for number in range(6):
        columns = [pa.array(names), pa.array(marks)]
        if number % 2:
            columns = [column.dictionary_encode() for column in columns]
        table = TABLE.append_column("s", columns[0]).append_column("m", columns[1])
        table = table.set_column(1, "o", pa.array(range(number * COUNT, (number + 1) * COUNT), pa.int32()))
        pq.write_table(table, tmp_path / f"{number}.parquet")
    assert answers(tmp_path)


def test_a_name_like_an_operator_is_no_operator(answers, tmp_path):
    table = TABLE.select(["k", "o", "x"]).append_column("-o", pa.array(range(COUNT, 0, -1)))
    pq.write_table(table, tmp_path / "rows.parquet")
    assert answers(tmp_path / "rows.parquet", QUERY.replace("SUM(w.x)", "MAX(-w.o)"))
    assert answers(None, QUERY.replace("SUM(w.x)", "MAX(w.`-o`)"))


def test_names_that_differ_by_case_are_sparks_to_refuse(spark, session, tmp_path):
    pq.write_table(TABLE.append_column("X", TABLE["x"]), tmp_path / "rows.parquet")
    frame = spark.read.schema("k string, o int, x double").parquet(str(tmp_path / "rows.parquet"))
    frame.createOrReplaceTempView("rows")
    answer = session.sql(QUERY)
    assert TOLD not in answer.plan()
    with pytest.raises(ExecutionError):
        answer.collect()


def test_a_file_that_is_written_anew_is_not_taken_for_the_one_that_was(session, tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(TABLE, path)
    session.register("rows", path)
    answer = session.sql(QUERY)
    pq.write_table(TABLE, path, row_group_size=10)
    with pytest.raises(ExecutionError, match="has changed since the query was planned"):
        answer.collect()
    assert len(session.sql(QUERY).collect()) == COUNT


WHY = {
    "SELECT * FROM files WHERE name RLIKE '5$'": "the filter has rlike over name",
    "SELECT *, upper(name) AS u FROM files": "a column has upper over name",
    "SELECT *, big * big AS u FROM files": "a column has multiply over big",
    "SELECT *, x / o AS u FROM files": "a column has divide over x, o",
    "SELECT * FROM files LIMIT 20": "globallimit is between them and the files",
    "SELECT l.* FROM files AS l JOIN files AS r ON l.o < r.o": "the join has no equality of a column "
    "with one of the smaller side",
}


@pytest.mark.parametrize("text", WHY)
def test_explain_says_why_rows_come_from_spark(spark, session, tmp_path, text):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    spark.read.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("files")
    spark.sql(text).createOrReplaceTempView("rows")
    query = QUERY.replace("s.*, SUM(w.x)", "s.o, SUM(w.u)") if " AS u" in text else QUERY
    assert f"reads         no files: the rows come from Spark, as {WHY[text]}\n" in session.sql(query).plan()


def test_explain_of_matches_says_who_reads_their_rows(session, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet", row_group_size=10)
    session.register("rows", tmp_path / "rows.parquet")
    query = """
        SELECT * FROM (SELECT k, o, x FROM rows WHERE {where}) MATCH_RECOGNIZE (
            PARTITION BY k ORDER BY o MEASURES FIRST(a.o) AS o1, LAST(a.o) AS o2
            PATTERN (a b+) DEFINE b AS b.x > PREV(b.x))
        """
    told = session.sql(query.format(where="o < 25 AND name LIKE 'name%'")).plan()
    assert "the Parquet files, in the tasks themselves\n" in told
    assert "3 of their 5 row groups, by statistics\n" in told
    assert "as the filter has rlike over name\n" in session.sql(query.format(where="name RLIKE '5$'")).plan()


def test_texts_that_are_no_texts_are_refused_where_their_letters_matter(session, tmp_path):
    wrong = pa.array([b"a\xff"] * COUNT).cast(pa.binary()).view(pa.string())
    pq.write_table(TABLE.set_column(13, "name", wrong), tmp_path / "rows.parquet")
    session.register("rows", tmp_path / "rows.parquet")
    query = QUERY.replace("s.*", "s.o")
    assert len(session.sql(query.replace("FROM rows", "FROM rows WHERE name LIKE 'a%'")).collect()) == COUNT
    with pytest.raises(ExecutionError, match=r"cannot read .*UTF-?8") as caught:
        session.sql(query.replace("FROM rows", "FROM rows WHERE length(name) > 1")).collect()
    assert caught.value.condition == "UNREADABLE_FILE"


def test_a_reader_with_options_of_its_own_is_sparks(spark, answers, tmp_path):
    pq.write_table(TABLE, tmp_path / "rows.parquet")
    reader = spark.read.option("ignoreCorruptFiles", "true")
    reader.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("rows")
    assert not answers(None)
    reader = spark.read.option("pathGlobFilter", "*.parquet").option("mergeSchema", "true")
    reader.parquet(str(tmp_path)).createOrReplaceTempView("rows")
    assert answers(None)

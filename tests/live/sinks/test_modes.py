"""Live queries whose target is kept up to date: by key, or as a whole table."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from windrow import Files, Kafka, Memory, Session, WindrowError
from windrow.spark.live.sinks.keys import derived_key
from windrow.spark.logs.live_source import PTIME
from windrow.streams import NamedStream
from windrow.testing import playing

BATCHES = [
    [(0, "a", 1), (1, None, 5), (1, "b", 2)],
    [(2, "a", 4), (4, "b", None)],
    [],
    [(5, None, 5), (5, "a", 4), (6, "c", 0)],
]
KINDS = (pa.int64(), pa.string(), pa.int64())
WINDOWED = "SELECT SUM(v) AS v, k, COUNT(*) AS n FROM s [RANGE 3] GROUP BY k"
TOLD = "SELECT k, wend, COUNT(*) AS n FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 5) GROUP BY k, wend"


@pytest.fixture
def session(spark, tmp_path):
    folder = tmp_path / "arriving"
    folder.mkdir()
    session = Session(spark)
    arriving = spark.readStream.schema("ts bigint, k string, v bigint").parquet(str(folder))
    session.stream("s", arriving, rowtime="ts", unit="seconds", lag=1)
    yield session
    spark.catalog.dropTempView("s")


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def arriving(number):
    columns = [pa.array([row[place] for row in BATCHES[number]], kind) for place, kind in enumerate(KINDS)]
    return pa.table(columns, names=["ts", "k", "v"])


def stepped(session, query, folder, batches, kills=(), envelope=None, **mode):
    """What a query gives of each micro-batch."""
    spark = session.spark

    def frames(number):
        def made(steps):
            (_, name, stream) = next(iter(steps.streams()))
            rows = spark.createDataFrame(arriving(number)).select(*stream.live.columns)
            when = F.lit((number + 1) * 1_000_000).cast("bigint")
            return {"": spark.range(1).select(when.alias("tick")), name: rows.withColumn(PTIME, when)}

        return made

    plan = session.sql(query)._live
    steps = [frames(number) for number in range(len(batches))]
    return playing.in_micro_batches(plan, folder, steps, kills, envelope, **mode)


def tables_of_changes(played):
    """The table after each step, by the changes added up."""
    table, found = Counter(), []
    for step in played.steps:
        for row in step:
            *values, diff, _ = row.values()
            table[tuple(values)] += diff
        found.append(+table)
        assert min(table.values(), default=0) >= 0
    return found


def tables_of_upserts(played, key):
    """The table after each step, by the last row of each key."""
    table, found = {}, []
    for step in played.steps:
        before = dict(table)
        for row in step:
            operation, _, *values = row.values()
            of = tuple(values[place] for place in key)
            if operation == "-D":
                assert table.pop(of) == tuple(values)
            else:
                assert operation == ("+U" if of in before else "+I")
                assert before.get(of) != tuple(values)
                table[of] = tuple(values)
        assert len({tuple(list(row.values())[2 + place] for place in key) for row in step}) == len(step)
        found.append(Counter(table.values()))
    return found


def whole_tables(played):
    """The table after each step, as it was given last."""
    table, found = Counter(), []
    for number in range(played.count):
        if number in played.tables:
            table = Counter(tuple(row.values()) for row in played.tables[number].to_pylist())
        found.append(table)
    return found


@pytest.mark.usefixtures("interpreted")
def test_after_every_step_the_target_is_the_folded_changelog(session, tmp_path):
    wanted = tables_of_changes(stepped(session, WINDOWED, tmp_path / "d", BATCHES, envelope="diff"))
    assert len({frozenset(table.items()) for table in wanted}) > 2
    upserts = stepped(session, WINDOWED, tmp_path / "u", BATCHES, {1, 3}, mode="upsert")
    assert tables_of_upserts(upserts, (1,)) == wanted
    tables = stepped(session, WINDOWED, tmp_path / "t", BATCHES, {0, 1}, mode="table")
    assert whole_tables(tables) == wanted


COLLATED = (
    "SELECT c, COUNT(*) AS n FROM (SELECT (CASE v WHEN 4 THEN upper(k) ELSE k END) COLLATE UTF8_LCASE AS c"
    " FROM s [RANGE 3]) GROUP BY c"
)


@pytest.mark.usefixtures("interpreted")
def test_keys_are_equal_as_their_collation_says(session, tmp_path):
    """A group is shown by one of its texts, which may be another one after a change."""

    def folded(played):
        def lower(table):
            place = table.column_names.index("c")
            return table.set_column(place, "c", pc.utf8_lower(table.column(place)))

        return replace(played, tables={number: lower(one) for number, one in played.tables.items()})

    wanted = tables_of_changes(folded(stepped(session, COLLATED, tmp_path / "d", BATCHES, envelope="diff")))
    assert len({frozenset(table.items()) for table in wanted}) > 2
    upserts = stepped(session, COLLATED, tmp_path / "u", BATCHES, {1}, mode="upsert")
    assert any(row["c"] == "A" and row["_op"] == "+U" for row in upserts.rows)
    assert tables_of_upserts(folded(upserts), (0,)) == wanted
    tables = stepped(session, COLLATED, tmp_path / "t", BATCHES, {1}, mode="table")
    assert whole_tables(folded(tables)) == wanted


@pytest.mark.usefixtures("interpreted")
def test_of_a_query_with_emit_too(session, tmp_path):
    upserts = stepped(session, f"{TOLD} EMIT STREAM", tmp_path, BATCHES[:2], mode="upsert")
    entries = [row for batch in BATCHES[:2] for row in batch]
    counted = Counter((key, ts // 5 * 5 + 5) for ts, key, _ in entries)
    wanted = Counter((key, wend, count) for (key, wend), count in counted.items())
    assert tables_of_upserts(upserts, (0, 1))[-1] == wanted


@pytest.mark.usefixtures("interpreted")
def test_a_folder_has_the_whole_table_however_large(session, tmp_path, monkeypatch):
    monkeypatch.setattr("windrow.spark.live.sinks.full_refresh.MOST_COLLECTED", -1)
    relation = session.sql(WINDOWED)
    incoming, target = tmp_path / "arriving", tmp_path / "target"

    def put(number):
        pending = incoming / f".{number}"
        pq.write_table(arriving(number), pending)
        pending.rename(incoming / f"{number}.parquet")

    def read():
        return sorted(pq.read_table(target / "current").to_pylist(), key=str)

    checkpoint = tmp_path / "checkpoint"
    put(0)
    put(1)
    query = relation.start(target, checkpoint=checkpoint, mode="table")
    query.process_all_available()
    query.stop()
    first = (target / "current").resolve()
    assert read() == sorted(
        [{"v": 5, "k": "a", "n": 2}, {"v": 5, "k": None, "n": 1}, {"v": 2, "k": "b", "n": 1}], key=str
    )
    with refused("CHECKPOINT_OF_ANOTHER_QUERY"):
        relation.start(tmp_path / "other", checkpoint=checkpoint)
    with refused("SINK_IN_USE"):
        relation.start(target, checkpoint=tmp_path / "anew", mode="table")
    put(3)
    again = relation.start(target, checkpoint=checkpoint, mode="table")
    again.process_all_available()
    again.stop()
    assert read() == [{"v": 4, "k": "a", "n": 1}, {"v": None, "k": "b", "n": 1}]
    assert pq.read_table(first).num_rows == 3  # whoever has begun to read a table reads it to the end


@pytest.mark.usefixtures("interpreted")
def test_a_key_that_has_two_rows_is_told(session, tmp_path):
    with refused("KEY_NOT_UNIQUE") as caught:
        stepped(session, WINDOWED, tmp_path / "c", BATCHES[:2], mode="upsert", key=["n"])
    assert "n = 1" in str(caught.value)


def test_what_cannot_be_kept_up_to_date_is_refused(session, tmp_path):
    relation = session.sql(WINDOWED)
    other = {"mode": "upsert", "envelope": "op"}
    for options in ({"mode": "upset"}, {"key": "k"}, {"mode": "table", "key": "k"}, other):
        with refused("INVALID_ARGUMENT"):
            relation.start(Memory(), **options)
    with refused("UNRESOLVED_COLUMN"):
        relation.start(Memory(), mode="upsert", key="kk")
    with refused("MISSING_KEY") as caught:
        session.sql("SELECT k, v FROM s [RANGE 3]").start(Memory(), mode="upsert")
    assert caught.value.getQueryContext()[0].fragment() == "SELECT k, v FROM s [RANGE 3]"
    with refused("DUPLICATE_COLUMN"):
        session.sql("SELECT k, v AS K FROM s [RANGE 3]").start(Memory(), mode="table")
    for stream in ("SELECT STREAM k FROM s", "ISTREAM(SELECT k FROM s [NOW])"):
        with refused("STREAM_WHERE_RELATION_IS_NEEDED"):
            session.sql(stream).start(Memory(), mode="table")
    for target in (Files(tmp_path / "f", "csv"), Kafka("localhost", "t")):
        with refused("UNSUPPORTED_SINK"):
            relation.start(target, mode="table")
    stream = NamedStream.create(tmp_path / "named", pa.schema([("t", pa.int64())]), "t", unit="second")
    with refused("RELATION_WHERE_STREAM_IS_NEEDED"):
        relation.start(stream, mode="upsert")


@pytest.mark.parametrize(
    ("query", "key"),
    [
        (WINDOWED, (1,)),
        ("SELECT wend, a.k, SUM(x) FROM TUMBLE(TABLE s, DESCRIPTOR(t), 10) a GROUP BY 1, a.k", (0, 1)),
        ("WITH q AS (SELECT 1 FROM x) SELECT DISTINCT a, b FROM q LIMIT 3", (0, 1)),
        ("SELECT COUNT(*) FROM s", ()),
        ("SELECT k, date_trunc('day', t) AS d, SUM(n) FROM s GROUP BY ALL", (0, 1)),
        ("SELECT upper(k) AS k, COUNT(*) FROM s GROUP BY k", None),
        ("SELECT a.k, COUNT(*) FROM a JOIN b ON a.i = b.i GROUP BY a.k, b.k", None),
        ("SELECT k, COUNT(*) FROM s GROUP BY k, v", None),
        ("SELECT k, COUNT(*) FROM s GROUP BY ROLLUP (k)", None),
        ("SELECT *, COUNT(*) FROM s GROUP BY k", None),
        ("SELECT a FROM s UNION SELECT b FROM t", None),
        ("SELECT k, v FROM s", None),
    ],
)
def test_the_key_is_what_is_grouped_by_where_all_of_it_is_selected(query, key):
    assert derived_key(query) == key

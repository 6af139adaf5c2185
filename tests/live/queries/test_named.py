"""Named streams in SQL and in live queries."""

from __future__ import annotations

import datetime
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.stepping import in_micro_batches, law, total
from tests.spark.relations.test_continuous_property import relations
from windrow import Memory, Session, WindrowError
from windrow.spark.logs.log_source import NUMBER
from windrow.streams import NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")
COUNTS = "SELECT ticker, COUNT(*) AS n FROM orders [RANGE 10 MINUTES] GROUP BY ticker"


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def values(relation):
    return [tuple(row) for row in relation.collect()]


def declared(spark, folder):
    session = Session(spark)
    session.sql(
        f"CREATE STREAM IF NOT EXISTS orders (ROWTIME ts TIMESTAMP, ticker STRING) LOCATION '{folder}'"
    )
    return session


@pytest.fixture
def orders(spark, tmp_path):
    yield tmp_path / "orders"
    for name in ("orders", "orders_late", "recorded"):
        spark.catalog.dropTempView(name)


def clock(folder):
    stream = NamedStream.open(folder)
    ticks = stream.position().watermark.value
    return None if ticks is None else stream.definition.rowtime.formatted(ticks)[11:16]


def test_the_worked_example_of_the_reference_in_sql(spark, orders):
    p1, p2, p3 = (declared(spark.newSession(), orders) for _ in range(3))

    def at(time):
        return f"TIMESTAMP '2026-01-01 {time}'"

    def put(session, time):
        return values(session.sql(f"INSERT INTO orders VALUES ({at(time)}, 'ORCL')"))

    p1.sql(f"PUNCTUATE orders BOUND {at('10:00:00')}")
    assert clock(orders) is None
    assert put(p1, "10:00:00") == [(1, 0, 0)]
    assert clock(orders) == "10:00"
    p2.sql(f"PUNCTUATE orders BOUND {at('10:05:00')}")
    assert put(p2, "10:05:00") == [(1, 0, 0)]
    assert clock(orders) == "10:00"
    assert put(p2, "09:59:00") == [(0, 0, 1)]
    p1.sql("DROP STREAM orders")
    assert clock(orders) == "10:05"
    p2.sql("DROP STREAM orders")
    assert clock(orders) == "10:05"
    assert put(p3, "10:04:00") == [(0, 0, 1)]
    assert values(p3.sql("SELECT ts, ticker FROM orders ORDER BY ts")) == [
        (datetime.datetime(2026, 1, 1, 10, 0), "ORCL"),
        (datetime.datetime(2026, 1, 1, 10, 5), "ORCL"),
    ]
    assert len(values(p3.sql("SELECT * FROM orders [NOW]").late)) == 2
    p3.sql("DROP STREAM orders")


def test_a_query_runs_over_what_is_recorded_and_live(spark, orders, tmp_path):
    """Rows come while it runs, it is stopped and goes on, and gives what the whole log gives."""
    session = declared(spark, orders)
    session.sql("CREATE TEMPORARY VIEW counts AS " + COUNTS)
    query = session.sql("SELECT * FROM counts")
    assert values(query) == []

    def put(minute, ticker):
        session.sql(f"INSERT INTO orders SELECT TIMESTAMP '2026-01-01 09:{minute}:00', '{ticker}'")

    sink = Memory()
    running = query.start(sink, checkpoint=tmp_path / "checkpoint", envelope="diff")
    put("30", "ORCL")
    session.sql("PUNCTUATE orders WHERE ticker IN ('IBM', upper('sun'))")
    running.process_all_available()
    put("31", "MSFT")
    put("29", "LATE")
    put("32", "IBM")
    running.process_all_available()
    running.stop()
    put("45", "ORCL")
    put("46", "SUN")
    running = query.start(sink, checkpoint=tmp_path / "checkpoint", envelope="diff")
    session.sql("PUNCTUATE orders BOUND TIMESTAMP '2027-01-01 00:00:00' STRICT")
    running.process_all_available()
    running.stop()
    assert running.progress["rows_in"] == 6
    assert (running.progress["rows_late"], running.progress["rows_buffered"]) == (3, 0)
    late = [(row["producer"][:8], row["rowtime"][11:16], row["bound"]) for row in running.late.collect()]
    assert sorted(late, key=lambda row: row[1]) == [
        ("session-", "09:29", "2026-01-01 09:31:00"),
        ("session-", "09:32", None),  # promised not to come, whatever its rowtime
        ("session-", "09:46", None),
    ]
    recorded = session.sql("SELECT * FROM counts").late.collect()
    assert sorted(str(row["bound"])[11:16] for row in recorded) == ["", "", "09:31"]
    whole = total([session.sql("SELECT * FROM counts").changelog("diff").to_arrow()])
    assert sum(abs(count) for count in whole.values()) == 6
    assert +total(sink.batches.values()) == +whole
    session.sql("DROP STREAM orders")


def test_python_producers_and_sql_share_a_stream(spark, orders):
    session = declared(spark, orders)
    with session.stream("orders").producer("p1") as p:
        p.insert({"ts": datetime.datetime(2026, 1, 1, 9, tzinfo=datetime.UTC), "ticker": "ORCL"})
    other = Session(spark.newSession())
    assert values(other.stream("o", orders)) == [(datetime.datetime(2026, 1, 1, 9), "ORCL")]
    assert other.sql("SELECT ticker FROM o [NOW]").at("2026-01-01 09:00:00").collect()[0][0] == "ORCL"
    other.sql("INSERT INTO o (ticker, ts) SELECT lower(ticker), ts + INTERVAL 1 MINUTE FROM o")
    assert sorted(row[1] for row in values(session.sql("SELECT * FROM orders"))) == ["ORCL", "orcl"]
    other.sql("DROP STREAM o")
    assert NamedStream.open(orders).position().watermark.admitted == 2


def test_what_is_checked_or_explained_is_not_done(spark, orders):
    session = declared(spark, orders)
    for query in ("VALUES (TIMESTAMP '2026-01-01 09:00:00', 'x')", "SELECT ts, ticker FROM orders [NOW]"):
        session.check(f"INSERT INTO orders {query}")
        session.sql(f"EXPLAIN INSERT INTO orders {query}")
    session.check("PUNCTUATE orders BOUND TIMESTAMP '2026-01-01 09:00:00'")
    session.check("PUNCTUATE orders WHERE ticker = 'x'")
    with refused("INSERT_COLUMN_ARITY_MISMATCH"):
        session.check("INSERT INTO orders VALUES (1)")
    assert NamedStream.open(orders).log.last() == 0
    session.sql("DROP STREAM orders")


def test_rows_of_one_insert_come_in_the_order_of_their_rowtimes(spark, orders):
    session = declared(spark, orders)
    rows = ", ".join(f"('2026-01-01 0{hour}:00:00', 'x')" for hour in (3, 1, 2))
    assert values(session.sql(f"INSERT INTO orders VALUES {rows}")) == [(3, 0, 0)]
    session.sql("DROP STREAM orders")


@pytest.mark.parametrize(
    ("condition", "text", "fragment"),
    [
        ("INSERT_COLUMN_ARITY_MISMATCH", "INSERT INTO orders VALUES (1)", "VALUES (1)"),
        ("UNKNOWN_COLUMN", "INSERT INTO orders (price) VALUES (1)", "price"),
        ("DUPLICATE_COLUMN", "INSERT INTO orders (ts, TS) VALUES (1, 2)", "TS"),
        ("UNRESOLVED_COLUMN.WITH_SUGGESTION", "INSERT INTO orders SELECT ts, tickr FROM orders", "tickr"),
        ("UNSUPPORTED_STATEMENT", "INSERT OVERWRITE orders VALUES (1, 2)", "OVERWRITE"),
        ("UNSUPPORTED_STATEMENT", "DELETE FROM orders", "DELETE"),
        ("UNSUPPORTED_STATEMENT", "UPDATE recorded SET at = 1", "UPDATE"),
        ("UNSUPPORTED_STATEMENT", "TRUNCATE TABLE orders", "TRUNCATE"),
        (
            "UNSUPPORTED_STATEMENT",
            "MERGE INTO orders USING orders AS o ON TRUE WHEN MATCHED THEN DELETE",
            "MERGE",
        ),
        ("STREAM_DIFFERS", "CREATE STREAM IF NOT EXISTS orders (ROWTIME ts BIGINT)", "ROWTIME ts BIGINT"),
        (
            "STREAM_DIFFERS",
            "CREATE STREAM IF NOT EXISTS orders (ROWTIME ts TIMESTAMP, ticker STRING) LOCATION '{folder}x'",
            "'{folder}x'",
        ),
        ("INVALID_VALUE", "INSERT INTO orders VALUES ('soon', 'x')", "VALUES ('soon', 'x')"),
        ("NULL_ROWTIME", "INSERT INTO orders (ticker) VALUES ('x')", "VALUES ('x')"),
        ("INVALID_INSTANT", "PUNCTUATE orders BOUND NULL", "NULL"),
        ("UNKNOWN_STREAM", "PUNCTUATE other BOUND 1", "other"),
        ("UNKNOWN_COLUMN", "PUNCTUATE orders WHERE tickr = 'x'", "tickr"),
        ("INVALID_VALUE", "PUNCTUATE orders WHERE ticker = NULL", "NULL"),
        ("UNSUPPORTED_PATTERN", "PUNCTUATE orders WHERE ticker LIKE 'x%'", "ticker LIKE 'x%'"),
        ("UNSUPPORTED_STREAM", "PUNCTUATE recorded BOUND 1", "recorded"),
        ("UNSUPPORTED_STREAM", "INSERT INTO recorded VALUES (1)", "recorded"),
        ("STREAM_ALREADY_EXISTS", "CREATE STREAM orders (ROWTIME ts BIGINT)", "orders"),
        ("STREAM_ALREADY_EXISTS", "CREATE STREAM o (ROWTIME ts BIGINT) LOCATION '{folder}'", "'{folder}'"),
        (
            "STREAM_DIFFERS",
            "CREATE STREAM IF NOT EXISTS o (ROWTIME ts BIGINT) LOCATION '{folder}'",
            "ROWTIME ts BIGINT",
        ),
        (
            "STREAM_DIFFERS",
            "CREATE STREAM IF NOT EXISTS o (ROWTIME ts TIMESTAMP, ticker STRING) LOCATION '{folder}'"
            " UNIQUE (ticker)",
            "UNIQUE (ticker)",
        ),
        ("UNKNOWN_COLUMN", "CREATE STREAM o (ROWTIME ts BIGINT) CHECK (n > 0)", "n"),
        ("UNKNOWN_COLUMN", "CREATE STREAM o (ROWTIME ts BIGINT) WHEN ts = 1 PUNCTUATES (m)", "m"),
        ("UNSUPPORTED_PATTERN", "CREATE STREAM o (ROWTIME ts BIGINT) CHECK (ts <> 1)", "ts <> 1"),
        ("UNSUPPORTED_CLAUSE", "CREATE STREAM o (ROWTIME n BIGINT) FROM recorded GROWING (n)", "GROWING (n)"),
        ("UNSUPPORTED_CLAUSE", "CREATE STREAM o (ROWTIME ts BIGINT, BOUND b BIGINT)", "BOUND b BIGINT"),
        ("INVALID_ROWTIME", "CREATE STREAM o (ROWTIME ts STRING)", "ROWTIME ts STRING"),
        (
            "UNSUPPORTED_TYPE",
            "CREATE STREAM o (ROWTIME ts BIGINT, c STRING COLLATE UTF8_LCASE)",
            "c STRING COLLATE UTF8_LCASE",
        ),
    ],
)
def test_what_is_wrong_is_said_at_its_place(spark, orders, condition, text, fragment):
    session = declared(spark.newSession(), orders)  # in which no other test has made o
    session.stream("recorded", pa.table({"n": [1]}), rowtime="n")
    with refused(condition) as caught:
        session.sql(text.format(folder=orders))
    found = caught.value.getQueryContext()
    assert (found[0].fragment() if found else None) == (fragment and fragment.format(folder=orders))
    assert NamedStream.open(orders).position().watermark.admitted == 0
    session.sql("DROP STREAM orders")


def test_a_relation_of_no_stream_is_not_started(spark):
    with refused("NOT_LIVE"):
        Session(spark).sql("SELECT 1").start("console")


# -- the law -----------------------------------------------------------------------------------------

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.int64())])
value = st.none() | st.integers(0, 3)
rows = st.lists(st.tuples(st.integers(0, 9), st.none() | st.integers(0, 2), value), min_size=1, max_size=3)
call = st.one_of(
    st.tuples(st.just("insert"), st.sampled_from("ab"), rows),
    st.tuples(st.just("bound"), st.sampled_from("ab"), st.integers(0, 9)),
    st.tuples(st.just("watermark"), st.sampled_from("ab"), st.integers(0, 9)),
    st.tuples(st.just("again"), st.sampled_from("ab"), rows),
    st.tuples(st.sampled_from(["idle", "close", "fence"]), st.sampled_from("ab"), st.none()),
)
calls = st.lists(call, max_size=6)
ORDERINGS = [Ordering.ordered(), Ordering.lagging(2), Ordering.unordered()]


def recorded(folder, ordering, calls):
    """A stream into whose log producers have written, all of which have finished."""
    stream = NamedStream.create(folder, SCHEMA, "ts", unit="seconds", ordering=ordering)
    attached = {}
    for what, name, given_ in calls:
        producer = attached.get(name) or attached.setdefault(name, stream.producer(name))
        if what in ("insert", "again"):
            table = [dict(zip(SCHEMA.names, row, strict=True)) for row in given_]
            producer.insert(table)
            if what == "again":  # as a file that was written twice
                stream.log.append(stream.log.read(stream.log.last()))
        elif what in ("bound", "watermark"):
            getattr(producer, what)(given_)
        elif what == "punctuate":
            producer.punctuate(**given_)
        elif what == "idle":
            producer.idle()
        elif what == "close":
            attached.pop(name).close()
        else:  # what the holder of a lease before this one wrote too late
            late = stream.log.read(stream.log.last())
            place = late.schema.get_field_index("__generation")
            zero = pa.array([0] * late.num_rows, pa.int64())
            stream.log.append(late.set_column(place, late.schema.field(place), zero))
    for producer in attached.values() or [stream.producer("a")]:
        producer.finish()
    return stream


def as_arrived(spark, stream, after, last):
    """The entries of some files, as the source gives them."""
    tables = [stream.log.read(number) for number in range(after + 1, last + 1)]
    numbers = [number for number, table in enumerate(tables, after + 1) for _ in range(table.num_rows)]
    whole = pa.concat_tables([stream.definition.stored.empty_table(), *tables])
    return spark.createDataFrame(whole.append_column(NUMBER, pa.array(numbers, pa.int64())))


def opened(spark, streams):
    """A session with named streams, and what a step takes of them, cut between files."""

    def frames(steps, low, high):
        found = {}
        for _, name, known in steps.streams():
            edges = [round(edge * streams[name].log.last()) for edge in (low, high)]
            found[name] = as_arrived(spark, streams[name], *edges).select(*known.live.columns)
        return found

    session = Session(spark)
    for name, stream in streams.items():
        session.stream(name, stream)
    return session, frames


def live(spark, folder, streams, cuts, kills, query):
    session, frames = opened(spark, streams)
    plan = session.sql(query)._live
    given, counted = in_micro_batches(plan, folder, cuts, kills, frames)
    positions = [streams[name].position() for name in plan.streams]
    states = [position.watermark for position in positions]
    assert counted["rows_in"] == sum(state.admitted + state.late + state.rejected for state in states)
    assert counted["rows_late"] == sum(state.late + state.rejected for state in states)
    assert counted["rows_buffered"] == 0
    return given


@law(4)
@given(
    calls,
    calls,
    st.sampled_from(ORDERINGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    relations(),
)
@example(
    [("insert", "a", [(1, 1, 1), (3, 1, 2)]), ("again", "b", [(4, 1, 1)]), ("fence", "a", None),
     ("insert", "a", [(2, 1, 3), (5, 2, 0)]), ("close", "b", None), ("insert", "b", [(9, 1, 1)])],
    [("insert", "a", [(3, 1, 1)])],
    Ordering.ordered(),
    [0.3, 0.6],
    {1},
    "SELECT k, COUNT(*) AS v FROM s [ROWS 2] GROUP BY k",
)  # fmt: skip
def test_live_is_batch_over_the_folder(spark, tmp_path_factory, s, t, ordering, cuts, kills, query):
    folder = tmp_path_factory.mktemp("named")
    words = Counter(query.split())
    if not (words["s"] or words["t"]) or "names" in query:
        return
    streams = {name: recorded(folder / name, ordering, made) for name, made in (("s", s), ("t", t))}
    if not all(stream.position().watermark.started for stream in streams.values()):
        return  # before its first row a stream has no clock, and holds back all that it is read with
    session = Session(spark)
    for name, stream in streams.items():
        session.stream(name, stream)
    wanted = total([session.sql(query).changelog("diff").to_arrow()])
    found = total(live(spark, folder, streams, cuts, kills, query))
    assert (+found, -found) == (+wanted, -wanted)

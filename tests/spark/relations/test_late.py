"""Recorded logs with bounds: which of their rows are admitted, and where the others are."""

from __future__ import annotations

import json
import random

import pytest

from windrow import Session
from windrow.errors import WindrowError

pytestmark = pytest.mark.usefixtures("interpreted")

# (ptime, producer, ts, bound, v): the third row is below what its own producer promised, the fourth is not
LOG = [
    (1, "p", 10, None, 1),
    (2, "p", None, 20, None),
    (3, "p", 15, None, 2),
    (3, "q", 12, None, 3),
    (4, "p", 20, None, 4),
    (5, "q", 30, 25, 5),
    (6, "q", 24, None, 6),
    (7, "q", None, 40, None),
]
SCHEMA = "arrived INT, who STRING, ts INT, upto INT, v INT"
COLUMNS = {"rowtime": "ts", "ptime": "arrived", "producer": "who", "bound": "upto", "unit": "seconds"}


@pytest.fixture
def session(spark):
    return Session(spark)


def log(session, entries=LOG, **options):
    frame = session.spark.createDataFrame(entries, SCHEMA)
    return session.stream("s", frame, **(COLUMNS | options))


def rows(relation):
    return sorted(tuple(row) for row in relation.collect())


def test_a_row_below_its_producer_s_bound_is_late(session):
    named = log(session)
    assert named.df.columns == ["arrived", "who", "ts", "v"]
    assert rows(session.sql("SELECT v FROM s [RANGE UNBOUNDED]")) == [(1,), (3,), (4,), (5,)]
    assert rows(session.sql("SELECT * FROM s_late")) == [
        (3, "p", 15, 2, 15, 20, "p", "bound"),
        (6, "q", 24, 6, 24, 25, "q", "bound"),
    ]
    assert session.table("s_late").df.columns[-3:] == ["_bound", "_producer", "_reason"]
    assert session.count_late() == {"s": 2}


def test_the_log_is_known_up_to_its_last_bound(session):
    log(session)
    assert rows(session.sql("SELECT v FROM s [RANGE 12]")) == [(5,)]
    log(session, LOG[:-1])
    assert rows(session.sql("SELECT v FROM s [RANGE 12]")) == [(4,), (5,)]


def test_late_rows_of_all_streams_that_a_relation_is_made_of(session):
    log(session)
    session.spark.sql("SELECT 1L AS t").createOrReplaceTempView("o")
    session.sql("CREATE OR REPLACE STREAM other (ROWTIME t BIGINT UNIT MILLISECONDS) FROM o")
    query = (
        "SELECT s.v FROM s [RANGE 5] JOIN other [RANGE 5] ON true, ISTREAM(SELECT v FROM s [NOW]) [NOW] AS i"
    )
    expected = [
        ("s", {"arrived": 3, "who": "p", "ts": 15, "v": 2}, 15_000, 20_000, "p", "bound"),
        ("s", {"arrived": 6, "who": "q", "ts": 24, "v": 6}, 24_000, 25_000, "q", "bound"),
    ]
    for relation in (session.sql(query), session.sql(f"ISTREAM({query})")):
        found = [(row[0], json.loads(row[1]), *row[2:]) for row in relation.late.collect()]
        assert sorted(found, key=str) == expected
    assert rows(session.sql("SELECT t FROM other [NOW]").late) == []
    with pytest.raises(WindrowError) as caught:
        _ = session.sql("SELECT 1").late
    assert caught.value.condition == "NOT_VARYING"


def test_late_rows_can_fail_the_query(session):
    log(session, on_late="fail")
    with pytest.raises(WindrowError) as caught:
        session.sql("SELECT v FROM s [NOW]").collect()
    assert caught.value.condition == "LATE_ROW"
    in_time = [entry for entry in LOG if entry[-1] not in (2, 6)]
    log(session, in_time, on_late="fail")
    assert rows(session.sql("SELECT v FROM s [RANGE UNBOUNDED]")) == [(1,), (3,), (4,), (5,)]


def test_create_stream_says_what_happens_to_late_rows(session, tmp_path):
    session.spark.createDataFrame(LOG, SCHEMA).createOrReplaceTempView("entries")
    columns = "PTIME arrived INT, PRODUCER who STRING, ROWTIME ts INT UNIT SECONDS, BOUND upto INT, v INT"
    create = f"CREATE OR REPLACE STREAM s ({columns}) FROM entries ON LATE"
    session.sql(f"{create} FAIL")
    with pytest.raises(WindrowError) as caught:
        session.sql("SELECT v FROM s [NOW]").collect()
    assert caught.value.condition == "LATE_ROW"
    session.sql(f"{create} KEEP")
    assert session.count_late() == {"s": 2}
    for source in (f"LOCATION '{tmp_path / 'named'}'", "ON LATE KEEP"):
        text = f"CREATE STREAM named (ROWTIME ts INT UNIT SECONDS) {source}"
        text = text if "ON LATE" in text else f"{text} ON LATE FAIL"
        with pytest.raises(WindrowError) as caught:
            session.sql(text)
        assert caught.value.condition == "UNSUPPORTED_CLAUSE"
        assert text[caught.value.span.start :].startswith("ON LATE")
    session.sql(f"CREATE STREAM named (ROWTIME ts INT UNIT SECONDS) LOCATION '{tmp_path / 'named'}'")
    with pytest.raises(WindrowError) as caught:
        session.stream("named", on_late="fail")
    assert caught.value.condition == "UNKNOWN_OPTION"


def test_a_text_takes_no_columns_of_a_log(session, tmp_path):
    path = tmp_path / "s.cql"
    path.write_text("1000 a\n1500 b\n")
    for options in ({"ptime": "p"}, {"bound": 4}, {"on_late": "fail", "malformed": "keep"}):
        with pytest.raises(WindrowError) as caught:
            session.stream("t", path, **options)
        assert caught.value.condition == "UNKNOWN_OPTION"


def admitted_by_definition(entries):
    """One entry after the other: those of one ptime come at once."""
    promised, kept = {}, []
    for ptime in sorted({entry[0] for entry in entries}):
        at_once = [entry for entry in entries if entry[0] == ptime]
        kept += [
            (entry[-1],)
            for entry in at_once
            if entry[2] is not None and entry[2] >= promised.get(entry[1], entry[2])
        ]
        for _, who, _, bound, _ in at_once:
            if bound is not None:
                promised[who] = max(bound, promised.get(who, bound))
    return sorted(kept)


@pytest.mark.parametrize("seed", range(4))
def test_random_logs(session, seed):
    chosen = random.Random(seed)
    entries = []
    for number in range(60):
        ts = chosen.choice([None, chosen.randrange(number + 10)])
        bound = None if ts is not None and chosen.random() < 0.8 else chosen.randrange(number + 5)
        entries.append((chosen.randrange(30), chosen.choice(["p", "q", None]), ts, bound, number))
    log(session, entries)
    kept = rows(session.sql("SELECT v FROM s"))
    assert kept == admitted_by_definition(entries)
    assert len(kept) + len(rows(session.sql("SELECT v FROM s_late"))) == sum(
        e[2] is not None for e in entries
    )
    assert session.count_late()["s"] > 0


@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_logs_in_files(session, tmp_path, kind):
    path = str(tmp_path / f"log.{kind}")
    frame = session.spark.createDataFrame(LOG, SCHEMA).selectExpr(
        "arrived", "who", "timestamp_seconds(ts) AS ts", "timestamp_seconds(upto) AS upto", "v"
    )
    if kind == "parquet":
        frame.coalesce(1).write.parquet(path)
    else:
        options = {"header": "true"} if kind == "csv" else {}
        frame.coalesce(1).write.format(kind).options(**options).save(path)
    session.sql(
        "CREATE OR REPLACE STREAM s (v INT, ROWTIME ts TIMESTAMP, PTIME arrived INT, PRODUCER who STRING, "
        f"BOUND upto TIMESTAMP) FROM '{path}'"
    )
    query = "SELECT v, unix_seconds(ts) AS ts, who FROM s [RANGE 12 SECONDS]"
    assert rows(session.sql(query)) == [(5, 30, "q")]
    late = session.sql("SELECT v, unix_seconds(_bound) FROM s_late")
    assert rows(late) == [(2, 20), (6, 25)]


def test_the_view_of_late_rows_goes_with_its_stream(session):
    log(session)
    assert session.spark.catalog.tableExists("s_late")
    log(session, [(1, "p", 1, None, 1)], bound=None)
    assert not session.spark.catalog.tableExists("s_late")
    log(session)
    session.sql("DROP STREAM s")
    assert not session.spark.catalog.tableExists("s_late")


def test_an_entry_that_is_neither_row_nor_bound(session):
    log(session, [(1, "p", None, None, 1)])
    with pytest.raises(WindrowError) as caught:
        session.sql("SELECT v FROM s [NOW]").collect()
    assert caught.value.condition == "NULL_ROWTIME"


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"ptime": None}, "MISSING_PTIME"),
        ({"bound": "who"}, "INVALID_BOUND"),
        ({"bound": "nosuch"}, "UNKNOWN_COLUMN"),
        ({"producer": "nosuch"}, "UNKNOWN_COLUMN"),
        ({"on_late": "drop"}, "UNKNOWN_OPTION"),
    ],
)
def test_mistakes(session, options, condition):
    with pytest.raises(WindrowError) as caught:
        log(session, **options)
    assert caught.value.condition == condition


def test_lines_out_of_order_are_late_where_lines_are_kept(session, tmp_path):
    path = tmp_path / "s.cql"
    path.write_text("1000 1,a\nh 2000\n1500 2,b\n2000 3,c\n1000 x\n")
    session.stream("s", path, malformed="keep")
    assert rows(session.sql("SELECT * FROM s [RANGE UNBOUNDED]")) == [(1, "a"), (3, "c")]
    assert rows(session.sql("SELECT * FROM s_late")) == [(2, "b", 1500, 2000, "bound")]
    assert rows(session.sql("SELECT line FROM s_malformed")) == [(5,)]
    assert [tuple(row) for row in session.sql("SELECT * FROM s [NOW]").late.collect()] == [
        ("s", '{"c1":2,"c2":"b"}', 1500, 2000, None, "bound")
    ]


@pytest.mark.parametrize(
    ("text", "condition", "marked"),
    [
        ("(ROWTIME ts INT, BOUND upto INT)", "MISSING_PTIME", "BOUND upto INT"),
        ("(ROWTIME ts INT, PTIME arrived INT, BOUND who STRING)", "INVALID_BOUND", "BOUND who STRING"),
        ("(ROWTIME ts INT, v INT, nosuch INT)", "UNRESOLVED_COLUMN", "nosuch INT"),
        ("(ROWTIME ts INT UNIT SECONDS, v NOTYPE)", "UNSUPPORTED_DATATYPE", None),
        ("(v INT, ROWTIME who STRING)", "INVALID_ROWTIME", "ROWTIME who STRING"),
        ("(ROWTIME ts TIMESTAMP UNIT SECONDS)", "INVALID_ROWTIME", "ROWTIME ts TIMESTAMP UNIT SECONDS"),
        ("(ROWTIME ts INT UNIT WEEKS)", "PARSE_SYNTAX_ERROR", "UNIT"),
        ("(ROWTIME ts INT, PTIME v INT, PTIME arrived INT)", "PARSE_SYNTAX_ERROR", "PTIME"),
        ("(ROWTIME ts INT, v ARRAY<INT>)", "DATATYPE_MISMATCH.CAST_WITHOUT_SUGGESTION", "v ARRAY<INT>"),
    ],
)
def test_errors_in_create_stream_are_at_the_column(session, text, condition, marked):
    session.spark.createDataFrame(LOG, SCHEMA).createOrReplaceTempView("entries")
    query = f"CREATE OR REPLACE STREAM made {text} FROM entries"
    with pytest.raises(WindrowError) as caught:
        session.sql(query)
    error = caught.value
    assert error.condition == condition
    assert error.sql == query
    if marked is not None:
        assert query[error.span.start : error.span.stop] == marked


def test_a_rowtime_of_null_is_at_its_column(session):
    session.spark.createDataFrame(LOG, SCHEMA).createOrReplaceTempView("entries")
    query = "CREATE OR REPLACE STREAM made (v INT, ROWTIME ts INT) FROM entries"
    session.sql(query)
    with pytest.raises(WindrowError) as caught:
        session.sql("SELECT v FROM made [NOW]").collect()
    error = caught.value
    assert (error.condition, error.sql) == ("NULL_ROWTIME", query)
    assert query[error.span.start : error.span.stop] == "ROWTIME ts INT"

"""INSERT INTO … BY NAME finds columns by their names, and DEFAULT is NULL, recorded and live."""

from __future__ import annotations

import pytest

from windrow import Session, WindrowError

NINE, TEN = (f"TIMESTAMP '2026-01-01 {hour}:00:00'" for hour in ("09", "10"))


@pytest.fixture
def sessions(spark, tmp_path):
    """Makes sessions with the same two streams and the same folder of checkpoints."""
    made = []

    def make():
        session = Session(spark.newSession())
        for name in ("source", "target"):
            session.sql(
                f"CREATE STREAM IF NOT EXISTS {name} (ROWTIME ts TIMESTAMP, k STRING, v INT)"
                f" LOCATION '{tmp_path / name}'"
            )
        session.sql(f"SET spark.windrow.checkpoint = {tmp_path / 'checkpoints'}")
        made.append(session)
        return session

    yield make
    for name in ("source", "target"):
        made[-1].sql(f"DROP STREAM {name}")


def read(session, name="target"):
    rows = session.sql(f"SELECT hour(ts) AS h, k, v FROM {name}").df.collect()
    return sorted(map(tuple, rows), key=repr)


def test_missing_and_default_columns_are_null(sessions):
    session = sessions()
    bodies = {
        f"BY NAME SELECT 1 AS v, {NINE} AS ts, 'a' AS k": (9, "a", 1),
        f"BY NAME SELECT 1 AS V, {NINE} AS TS": (9, None, 1),
        f"BY NAME VALUES (2, {NINE}) AS t(v, ts)": (9, None, 2),
        f"BY NAME (SELECT 'b' AS k, {NINE} AS ts)": (9, "b", None),
        f"VALUES ({NINE}, DEFAULT, 3)": (9, None, 3),
        f"VALUES ({NINE}, default, DEFAULT)": (9, None, None),
        f"(v, k, ts) VALUES (DEFAULT, 'c', {NINE})": (9, "c", None),
    }
    for body in bodies:
        session.sql(f"INSERT INTO target {body}")
    assert read(session) == sorted(bodies.values(), key=repr)


def test_by_name_a_recorded_stream_keeps_its_rowtimes(sessions):
    session = sessions()
    past = f"SELECT {NINE} AS ts, 'a' AS k, 1 AS v UNION ALL SELECT {TEN}, 'b', NULL"
    session.stream("past", session.spark.sql(past), rowtime="ts")
    session.sql("INSERT INTO target BY NAME ISTREAM(SELECT v, upper(k) AS k FROM past [NOW])")
    assert read(session) == [(10, "B", None), (9, "A", 1)]


REFUSED = [
    ("NULL_ROWTIME", "BY NAME SELECT 'a' AS k", "SELECT 'a' AS k"),
    ("NULL_ROWTIME", "(k) VALUES ('a')", "VALUES ('a')"),
    ("NULL_ROWTIME", "VALUES (DEFAULT, 'a', 1)", "VALUES (DEFAULT, 'a', 1)"),
    ("INVALID_VALUE", f"BY NAME SELECT {NINE} AS ts, 'x' AS v", f"SELECT {NINE} AS ts, 'x' AS v"),
    ("INVALID_VALUE", f"VALUES ({NINE}, DEFAULT, 3000000000)", f"VALUES ({NINE}, DEFAULT, 3000000000)"),
    ("UNKNOWN_COLUMN", f"BY NAME SELECT {NINE} AS ts, 'a' AS kk", f"SELECT {NINE} AS ts, 'a' AS kk"),
    ("UNKNOWN_COLUMN", f"BY NAME VALUES ({NINE}, 'a', 1)", f"VALUES ({NINE}, 'a', 1)"),
    ("DUPLICATE_COLUMN", f"BY NAME SELECT {NINE} AS ts, 1 AS v, 2 AS V", None),
    ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", f"VALUES ({NINE}, 'a', DEFAULT + 1)", "DEFAULT"),
    ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", f"VALUES ({NINE}, DEFAULT, x)", "x"),
    ("PARSE_SYNTAX_ERROR", "BY NAME (k) SELECT 'a' AS k", "k"),
    (
        "UNKNOWN_COLUMN",
        "BY NAME SELECT STREAM k AS kk, v FROM source",
        "SELECT STREAM k AS kk, v FROM source",
    ),
]


def test_what_does_not_fit_is_refused_at_its_place(sessions):
    session = sessions()
    for condition, body, fragment in REFUSED:
        text = f"INSERT INTO target {body}"
        with pytest.raises(WindrowError) as caught:
            session.sql(text)
        assert (caught.value.condition, caught.value.sql) == (condition, text)
        place = caught.value.span
        assert fragment in (None, text[place.start : place.stop])
        assert fragment != "DEFAULT" or caught.value.hint.startswith("write DEFAULT alone")
    assert read(session) == []


def test_live_rows_are_inserted_by_name_also_after_a_restart(sessions):
    producer = sessions()
    statement = "INSERT INTO target BY NAME SELECT STREAM v + 1 AS v, k FROM source"
    for row in (f"({NINE}, 'a', 1)", f"({TEN}, 'b', 2)"):
        producer.sql(f"INSERT INTO source VALUES {row}")
        query = sessions().sql(statement).query
        query.process_all_available()
        query.stop()
    assert read(producer) == [(10, "b", 3), (9, "a", 2)]


@pytest.fixture
def table(sessions, tmp_path):
    session = sessions()
    session.sql(
        f"CREATE TABLE by_name (v INT, x INT, k STRING) USING parquet LOCATION '{tmp_path / 'table'}'"
    )
    yield session
    session.sql("DROP TABLE by_name")


def test_live_rows_are_inserted_into_a_table_by_name(table):
    table.sql(f"INSERT INTO source VALUES ({NINE}, 'a', 1)")
    query = table.sql("INSERT INTO by_name BY NAME SELECT STREAM k, v FROM source").query
    query.process_all_available()
    query.stop()
    assert [tuple(row) for row in table.sql("SELECT * FROM by_name").df.collect()] == [(1, None, "a")]
    text = "INSERT INTO by_name BY NAME SELECT STREAM k AS kk FROM source"
    with pytest.raises(WindrowError) as caught:
        table.sql(text)
    assert caught.value.condition == "UNKNOWN_COLUMN"
    assert text[caught.value.span.start :] == "SELECT STREAM k AS kk FROM source"


def test_a_recorded_stream_is_inserted_into_a_table_by_name(table):
    past = table.spark.sql(f"SELECT {NINE} AS ts, 'a' AS k, 1 AS v")
    table.stream("past", past, rowtime="ts")
    table.sql("INSERT INTO by_name BY NAME ISTREAM(SELECT k, v FROM past [NOW])")
    assert [tuple(row) for row in table.sql("SELECT * FROM by_name").df.collect()] == [(1, None, "a")]

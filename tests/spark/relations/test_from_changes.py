"""A changelog that is read again is the table that it was made of, at every instant."""

from __future__ import annotations

from collections import Counter

import pytest

from windrow import Memory, Session
from windrow.errors import UsageError, WindrowError

LOG = [(1, "a", 5), (2, "b", 1), (3, "a", 7), (5, "b", 2), (5, "c", 2), (8, "a", 1)]
ENVELOPES = {
    "delta": "_commit_timestamp",
    "op": "_at",
    "diff": "_at",
    "one-sql": "ptime",
}
QUERY = "SELECT k, MAX(v) AS v, COUNT(*) % 2 AS odd FROM log GROUP BY k HAVING COUNT(*) < 3"


@pytest.fixture
def session(spark):
    session = Session(spark)
    rows = spark.createDataFrame(LOG, "at long, k string, v long")
    log = rows.selectExpr("timestamp_seconds(at) AS at", "k", "v")
    session.stream("log", log, rowtime="at", ptime="at")
    yield session
    for name in ("log", "changes", "again"):
        spark.catalog.dropTempView(name)


def changes(relation):
    """How many more of each row there are, by processing time."""
    return Counter(tuple(row.values()) for row in relation.changelog("diff").to_arrow().to_pylist())


@pytest.mark.parametrize(
    ("envelope", "key"), [("delta", ()), ("delta", ("K",)), ("op", ("k",)), ("diff", ()), ("one-sql", ("k",))]
)
@pytest.mark.usefixtures("interpreted")
def test_a_changelog_folded_is_the_table_at_every_instant(session, envelope, key):
    made = session.sql(f"{QUERY} EMIT STREAM")
    told = made.changelog(envelope).df
    if key:  # of one who tells keys alone when they leave
        sign = {
            "delta": "_change_type = 'delete'",
            "op": "_op = '-D'",
            "diff": "_diff < 0",
            "one-sql": "undo",
        }
        told = (
            told.selectExpr("*", f"IF({sign[envelope]}, NULL, v) AS w").drop("v").withColumnRenamed("w", "v")
        )
        told = told.select(*made.changelog(envelope).df.columns)
    session.stream("changes", told, rowtime=ENVELOPES[envelope], ptime=ENVELOPES[envelope])
    session.from_changes("again", "changes", envelope, key=key)
    again = session.sql("SELECT k, v, odd FROM again EMIT STREAM")
    assert changes(again) == changes(made)


def struct(row):
    return "NULL" if row is None else f"named_struct('id', {row[0]}, 'v', '{row[1]}')"


def change(ts, op, before, after):
    return f"({ts}L, '{op}', {struct(before)}, {struct(after)})"


@pytest.mark.usefixtures("interpreted")
def test_changes_as_debezium_tells_them_live(spark, tmp_path):
    session = Session(spark)
    session.sql(
        "CREATE STREAM happened (ROWTIME ts_ms BIGINT, op STRING, before STRUCT<id: INT, v: STRING>,"
        f" after STRUCT<id: INT, v: STRING>) LOCATION '{tmp_path / 'happened'}'"
    )
    session.from_changes("bag", "happened", "debezium")
    session.from_changes("kept", "happened", "debezium", key=["id"])
    given = {name: Memory() for name in ("bag", "kept")}
    queries = {
        name: session.sql(f"SELECT id, v FROM {name} EMIT STREAM AS diff").start(
            to, checkpoint=tmp_path / name
        )
        for name, to in given.items()
    }

    def there(name):
        queries[name].process_all_available()
        count = Counter()
        for row in (row for table in given[name].batches.values() for row in table.to_pylist()):
            count[row["id"], row["v"]] += row["_diff"]
        return dict(+count)

    def told(*changes):
        session.sql(f"INSERT INTO happened VALUES {', '.join(change(*each) for each in changes)}")

    try:
        told((1, "r", None, (1, "a")), (1, "c", None, (2, "b")))
        assert there("bag") == there("kept") == {(1, "a"): 1, (2, "b"): 1}
        told((2, "u", (1, "a"), (1, "c")), (3, "d", (2, "b"), None))
        assert there("bag") == there("kept") == {(1, "c"): 1}
        told((4, "c", None, (2, "d")), (4, "c", None, (2, "d")))
        assert there("kept") == {(1, "c"): 1, (2, "d"): 1}
        assert there("bag") == {(1, "c"): 1, (2, "d"): 2}
        told((5, "t", None, None))
        with pytest.raises(WindrowError, match="op is t, which is not an operation"):
            there("kept")
    finally:
        for query in queries.values():
            query.stop()


def test_mistakes(session):
    session.stream(
        "changes", session.sql(f"{QUERY} EMIT STREAM").changelog("op").df, rowtime="_at", ptime="_at"
    )
    for stream, more, condition, hint in [
        ("change", {}, "UNKNOWN_STREAM", "changes"),
        ("changes", {"envelope": "delt"}, "UNKNOWN_ENVELOPE", "delta"),
        ("changes", {"envelope": "delta"}, "UNRESOLVED_COLUMN", "use one of the columns"),
        ("changes", {"envelope": "op", "key": ["kk"]}, "UNRESOLVED_COLUMN", "k"),
        (
            "changes",
            {"envelope": "op", "key": ["k"], "order": ["lsn"]},
            "UNRESOLVED_COLUMN",
            "use one of the columns",
        ),
    ]:
        with pytest.raises(UsageError) as raised:
            session.from_changes("again", stream, **more)
        assert raised.value.condition == condition
        assert hint in (raised.value.hint or "")

"""Plans of SELECT STREAM over whole streams: what is refused, what bounds the state, and views."""

from __future__ import annotations

import pytest

from tests.live.auctions import bid, opened, recorded, rows
from windrow import Memory, WindrowError

pytestmark = pytest.mark.usefixtures("interpreted")

JOINED = """
    SELECT STREAM b.auction, COUNT(*) AS n FROM bids b JOIN sold s ON b.auction = s.auction GROUP BY b.auction
"""


@pytest.fixture
def session(spark, tmp_path):
    session = opened(spark, tmp_path)
    yield session
    for name in ("bids", "sold"):
        session.sql(f"DROP STREAM {name}")


def test_a_query_that_would_keep_more_and_more_is_told_of_or_refused(session):
    relation = session.sql(JOINED)
    with pytest.raises(WindrowError, match="UNBOUNDED_STATE"):
        relation.start(Memory(), on_unbounded="error")
    with pytest.raises(WindrowError, match="INVALID_ARGUMENT"):
        relation.start(Memory(), on_unbounded="never")
    told = "JOIN ON b.auction = s.auction retains the rows of the left side: punctuations of sold on auction"
    with pytest.warns(RuntimeWarning, match=f"{told} would bound it"):
        query = relation.start(Memory())
    query.stop()
    with session.stream("sold").producer("q") as q, session.stream("bids").producer("p") as p:
        p.punctuate(auction=7)
        q.punctuate(auction=7)
    session.sql("SELECT 1 FROM bids, sold")  # what has been promised once, may be expected again
    assert session.sql(JOINED)._live.unbounded() == []


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("SELECT STREAM who, (SELECT item FROM sold) AS item FROM bids", "(SELECT item"),
        (
            "SELECT STREAM who, (SELECT item FROM sold s WHERE s.auction = b.auction ORDER BY s.at LIMIT 1)"
            " AS i FROM bids b",
            "(SELECT item",
        ),
        ("SELECT STREAM MAX(price) FROM bids GROUP BY who ORDER BY auction + 1", None),
        ("SELECT STREAM DISTINCT who FROM bids LIMIT 3", "LIMIT 3"),
        ("SELECT STREAM DISTINCT who FROM (SELECT who FROM bids OFFSET 3)", "OFFSET 3"),
        (
            "SELECT STREAM who, LAG(at + 1) OVER (ORDER BY who) AS n FROM bids GROUP BY who, at + 1",
            "OVER (ORDER",
        ),
        (
            "SELECT STREAM price * 2 AS price, COUNT(*) OVER () AS n FROM bids QUALIFY price = 10",
            "price = 10",
        ),
        (
            "SELECT STREAM at + 1 AS at, COUNT(*) OVER () AS n FROM bids GROUP BY at HAVING at > 2",
            "at > 2",
        ),
    ],
)
def test_what_no_operator_does_is_refused_where_it_stands(session, query, at):
    with pytest.raises(WindrowError) as found:
        session.sql(query).start(Memory())
    error = found.value
    if at is not None:
        assert error.condition == "UNSUPPORTED_STREAM"
        assert error.sql == query
        assert query[error.span.start :].startswith(at)


def test_not_in_is_final_when_neither_the_value_nor_null_can_follow(session):
    sink = Memory()
    running = session.sql(
        "SELECT STREAM auction FROM bids WHERE auction NOT IN (SELECT auction FROM sold)"
    ).start(sink, on_unbounded="ignore")

    def found():
        running.process_all_available()
        return sorted(rows(sink.batches.values()))

    with session.stream("bids").producer("p") as p, session.stream("sold").producer("q") as q:
        p.insert([bid(1, 1, 10), bid(2, 2, 10), bid(3, 3, 10)])
        q.insert([{"at": 1, "auction": 2, "item": "ink"}])
        q.punctuate(auction=[1, 2])
        assert found() == []
        q.punctuate(auction=None)
        assert found() == [(1,)]
        q.punctuate(auction=3)
        assert found() == [(1,), (3,)]
    running.stop()


def test_views_that_put_rows_together_stand_for_their_queries(session):
    session.sql("CREATE TEMP VIEW tops AS SELECT STREAM auction, MAX(price) top FROM bids GROUP BY auction")
    session.sql("INSERT INTO bids VALUES (1, 7, 3, 'ann'), (2, 7, 5, 'bob')")
    assert recorded(session, "SELECT top FROM tops") == [(5,)]
    assert recorded(session, "WITH tops AS (SELECT 2 AS top) SELECT top FROM tops") == [(2,)]
    query = "SELECT STREAM who, nothing FROM tops t JOIN bids b ON b.auction = t.auction"
    with pytest.raises(WindrowError, match="UNRESOLVED_COLUMN") as found:
        session.sql(query)
    assert query[found.value.span.start :].startswith("nothing")
    for wrong in (
        "WITH bids AS (SELECT 1 AS auction) SELECT STREAM * FROM tops",
        "CREATE OR REPLACE TEMP VIEW bids AS SELECT STREAM DISTINCT auction FROM tops",
        "CREATE TEMP VIEW late AS SELECT STREAM at FROM bids ORDER BY at WITHIN INTERVAL 5 SECONDS",
    ):
        with pytest.raises(WindrowError, match="UNSUPPORTED_STREAM"):
            session.sql(wrong)
    with pytest.raises(WindrowError, match="TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"):
        session.sql("CREATE TEMP VIEW tops AS SELECT STREAM DISTINCT auction FROM bids")
    session.sql("CREATE OR REPLACE TEMP VIEW tops AS SELECT STREAM DISTINCT who FROM bids")
    assert len(recorded(session, "SELECT STREAM who, COUNT(*) FROM tops GROUP BY who")) == 2
    session.sql("DROP VIEW tops")
    with pytest.raises(WindrowError, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.sql("SELECT STREAM who FROM tops")


def test_explain_names_what_would_bound_the_state(session):
    shown = session.sql("EXPLAIN SELECT STREAM auction, MAX(price) FROM bids GROUP BY auction").collect()[0][
        0
    ]
    told = "GROUP BY auction retains each group: punctuations of bids on auction would bound it"
    assert f"unbounded  {told}" in shown
    shown = session.sql("EXPLAIN SELECT STREAM at, COUNT(*) FROM bids GROUP BY at").collect()[0][0]
    assert "unbounded" not in shown
    query = "SELECT STREAM COUNT(*) FROM bids GROUP BY auction + ?"
    (told,) = session.sql(query, 2)._live.unbounded()
    assert str(told).startswith("GROUP BY auction + ? retains each group")
    assert "auction + ?" in session.sql(f"EXPLAIN {query}", 2).collect()[0][0]

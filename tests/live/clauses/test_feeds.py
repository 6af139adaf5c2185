"""Closed keys end partitions behind views, other names, UNION ALL and other clauses, and change no answer."""

from __future__ import annotations

from collections import Counter
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.auctions import entries
from tests.live.clauses.test_endings import changes
from tests.live.stepping import law
from windrow import Memory, Session, WindrowError
from windrow.explain.explain_live import explain_live
from windrow.spark.live.hosts import micro_batches_of
from windrow.streams import NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")

COLUMNS = {
    "s": pa.schema([("at", pa.int64()), ("k", pa.string()), ("v", pa.int64())]),
    "t": pa.schema([("at", pa.int64()), ("name", pa.string()), ("w", pa.int64())]),
}
KEY = {"s": "k", "t": "name"}
VIEWS = [
    "CREATE TEMP VIEW renamed AS SELECT STREAM at, k AS key, v + 1 AS x FROM s WHERE v >= 0",
    "CREATE TEMP VIEW again (at, id, x) AS SELECT STREAM at, key, x FROM renamed",
    "CREATE TEMP VIEW pairs AS SELECT s.at, s.k, e.at AS until FROM s WINDOW BY w AS"
    " (TYPE SLIDING PARTITION BY k ORDER BY at START AS s END AS e WHEN e.v = 0)",
]
STEPS = "MATCH_RECOGNIZE (PARTITION BY {} ORDER BY {} MEASURES COUNT(*) AS n PATTERN (a b*) DEFINE b AS TRUE)"
BOTH = "(SELECT at, k AS key FROM s UNION ALL SELECT at, name FROM t)"
QUERIES = {
    "view": "SELECT id, n FROM again " + STEPS.format("id", "at"),
    "union": f"SELECT key, n FROM {BOTH} " + STEPS.format("key", "at"),
    "clauses": "SELECT k, n FROM pairs " + STEPS.format("k", "at"),
    "itself": "SELECT k, n FROM (SELECT at, k FROM s UNION ALL SELECT at, k FROM s WHERE v > 1) "
    + STEPS.format("k", "at"),
}
STREAMS = {"view": "s", "union": "st", "clauses": "s", "itself": "s"}


class Live:
    """A query that takes what has been logged when it is asked to, of processes that end there or go on."""

    def __init__(self, spark, session, query, folder, envelope="delta"):
        self.spark, self.session, self.folder, self.envelope = spark, session, folder, envelope
        self.plan, self.sink = session.sql(query)._live, Memory()
        self.read, self.numbers, self.steps = dict.fromkeys(COLUMNS, 0), count(), None

    def given(self, *, is_new=True):
        """All that has been given once the entries since the last time are taken."""
        if is_new or self.steps is None:
            self.close()
            self.steps = micro_batches_of(self.plan, self.sink, self.folder, self.envelope, "keep")
        frames = {}
        for name in sorted(self.plan.streams):
            first, self.read[name] = self.read[name], self.session._catalog.named[name].stream.log.last()
            frames[name] = entries(self.spark, self.session, name, first, self.read[name])
        self.steps.take(self.steps.input(frames), next(self.numbers))
        tables = self.sink.batches.values()
        return Counter(tuple(row.values()) for table in tables for row in table.to_pylist())

    def close(self):
        if self.steps is not None:
            self.steps.close()
        self.steps = None


@pytest.fixture
def session(spark, tmp_path):
    session = begun(spark, tmp_path)
    yield session
    ended(session)


def begun(spark, folder):
    session = Session(spark)
    for name, columns in COLUMNS.items():
        made = NamedStream.create(folder / name, columns, "at", ordering=Ordering.unordered())
        session.stream(name, made)
    for view in VIEWS:
        session.sql(view)
    return session


def ended(session):
    for name in ("pairs", "again", "renamed"):
        session.sql(f"DROP VIEW {name}")
    for name in COLUMNS:
        session.sql(f"DROP STREAM {name}")


def put(producer, name, *rows):
    producer.insert([dict(zip(COLUMNS[name].names, row, strict=True)) for row in rows])


@pytest.mark.sampled
@pytest.mark.parametrize("shape", QUERIES)
def test_a_closed_key_ends_its_partition(spark, session, tmp_path, shape):
    read = STREAMS[shape]
    with session.stream("s").producer("p") as p, session.stream("t").producer("q") as q:
        live = Live(spark, session, QUERIES[shape], tmp_path / "c")
        put(p, "s", (1, "a", 2), (2, "b", 1), (3, "a", 0))
        put(q, "t", (1, "a", 1), (3, "b", 1))
        p.bound(5)
        q.bound(5)
        assert not live.given()
        before = live.steps.progress["rows_in_windows"]
        p.punctuate(k="a")
        if read == "st":
            assert not live.given(), "the other stream may still have rows of it"
            q.punctuate(name="a")
        (key,) = live.given(is_new=False)
        assert key == ("a", 3 if shape in ("union", "itself") else 2)
        assert live.steps.progress["rows_in_windows"] < before
        p.punctuate(k={">": "a"})
        q.punctuate(name={">": "a"})
        assert {name for name, _ in live.given()} == {"a", "b"}
        assert (live.steps.progress["rows_in_windows"], live.steps.progress["rows_buffered"]) == (0, 0)
        live.close()


def test_partitions_of_a_view_end_under_windows_too(spark, session, tmp_path):
    query = "SELECT k, COUNT(*) AS n, MAX(until) AS until FROM pairs [RANGE 3 MILLISECONDS] GROUP BY k"
    live = Live(spark, session, query, tmp_path / "c", "diff")

    def kept():
        return next(row.rows for row in live.steps.state().rows if row.name == "pairs: WINDOW BY w")

    with session.stream("s").producer("p") as p:
        put(p, "s", (1, "a", 2), (2, "b", 1), (3, "a", 1), (7, "c", 1))
        p.bound(5)
        live.given()
        assert kept() == 3
        p.punctuate(k="a")
        p.bound(6)
        live.given(is_new=False)
        assert kept() == 1
        put(p, "s", (8, "b", 0))
        p.finish()
    live.given()
    live.close()
    wanted = changes([session.sql(query).changelog("diff").to_arrow()])
    assert changes(live.sink.batches.values()) == wanted


entry = st.one_of(
    st.tuples(st.just("row"), st.integers(0, 9), st.sampled_from("ab") | st.none(), st.integers(0, 2)),
    st.tuples(st.just("bound"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.sampled_from("ab") | st.none()),
)


@law(3)
@given(
    st.lists(st.tuples(st.sampled_from("st"), entry), min_size=5, max_size=14),
    st.lists(st.integers(0, 13), max_size=3),
    st.sampled_from(sorted(QUERIES)),
)
def test_promises_of_streams_behind_a_clause(spark, tmp_path_factory, log, cuts, shape):
    """Safe: nothing is given that the whole answer lacks. Complete: of keys that are closed in all streams
    behind the clause, and of which the clock has reached all rows, all is given. Minimal: where there are no
    others, nothing is kept.
    """
    folder = tmp_path_factory.mktemp("feeds")
    session = begun(spark, folder)
    live = Live(spark, session, QUERIES[shape], folder / "c")
    over = {name: set() for name in COLUMNS}
    seen, keys = [], set()
    with session.stream("s").producer("p") as p, session.stream("t").producer("q") as q:
        own = {"s": p, "t": q}
        for at, (name, (kind, *said)) in enumerate(log):
            if kind == "row":
                put(own[name], name, tuple(said))
                keys.add(said[1])
            elif kind == "bound":
                own[name].bound(said[0])
            else:
                own[name].punctuate(**{KEY[name]: said[0]})
                over[name].add(said[0])
            if at in cuts:
                given = live.given(is_new=at % 2 > 0)
                closed = set.intersection(*(over[one] for one in STREAMS[shape]))
                progress = live.steps.progress
                seen.append((given, closed if progress["rows_buffered"] == 0 else set()))
                if progress["rows_buffered"] == 0 and keys <= closed:
                    assert progress["rows_in_windows"] == 0
        p.finish()
        q.finish()
    whole = live.given()
    live.close()
    assert whole == Counter(map(tuple, session.sql(QUERIES[shape]).collect()))
    for given, closed in seen:
        assert given <= whole
        assert Counter({row: n for row, n in whole.items() if row[0] in closed}) <= given
    ended(session)


def test_what_ends_partitions_is_explained(session):
    def told(query):
        plan = explain_live(session.sql(query)._live)
        return [line.split(maxsplit=1)[1] for line in plan.splitlines() if line.startswith("  closed")]

    promised = "partitions whose keys punctuation closes, by"
    assert told(QUERIES["union"]) == [f"{promised} s on k, and t on name"]
    assert told(QUERIES["clauses"]) == [f"{promised} s on k"]
    grouped = "(SELECT at, k FROM s UNION ALL (WITH c AS (SELECT at, name AS n FROM t) SELECT at, n FROM c))"
    assert told(f"SELECT k, n FROM {grouped} " + STEPS.format("k", "at")) == told(QUERIES["union"])
    session.sql("CREATE TEMP VIEW mixed AS SELECT STREAM at, k FROM s UNION ALL SELECT w, name FROM t")
    with pytest.raises(WindrowError, match="ORDER_NOT_ROWTIME"):
        told("SELECT k, n FROM mixed " + STEPS.format("k", "at"))
    session.sql("DROP VIEW mixed")
    (computed,) = told("SELECT n FROM again " + STEPS.format("x", "at"))
    assert computed.startswith("only with the stream: a partition key is not an unchanged column")
    assert told(QUERIES["union"].replace("at, name FROM", "at, upper(name) FROM")) == [computed]
    until = "SELECT until, n FROM (SELECT until, at FROM pairs) " + STEPS.format("until", "at")
    assert told(until) == [computed], "an END that is missing is no promise's NULL"


def test_columns_of_tables_beside_a_stream_are_none_of_its_keys(spark, session):
    spark.sql("SELECT 'a' AS k, 'b' AS label, 1L AS at").createOrReplaceTempView("labels")

    def told(source, key):
        query = f"SELECT n FROM {source} " + STEPS.format(key, "at")
        plan = explain_live(session.sql(query)._live)
        return [line.split(maxsplit=1)[1] for line in plan.splitlines() if line.startswith("  closed")]

    beside = "(SELECT s.at, s.k AS own, l.k AS other, label FROM s JOIN labels l ON l.k <> s.k)"
    (own,), (other,) = told(beside, "own"), told(beside, "other")
    assert own.endswith("punctuation closes, by s on k")
    assert other.startswith("only with the stream")
    both = f"(SELECT q.*, label FROM {BOTH} q JOIN labels l ON l.k = q.key)"
    assert told(both, "key")[0].endswith("s on k, and t on name")
    for source in (
        "(SELECT s.* EXCEPT (v) FROM s)",
        "(SELECT * EXCEPT (label) FROM s JOIN (SELECT label FROM labels) l ON l.label <> s.k)",
        "(SELECT /*+ BROADCAST(l) */ s.*, label FROM s JOIN labels l ON l.k = s.k)",
        "(FROM s SELECT * WHERE v > 1)",
        "(SELECT *, posexplode(array(v)) FROM s)",
        "(s JOIN (SELECT label FROM labels) l ON l.label = s.k)",
    ):
        assert told(source, "k") == [own], source
    with pytest.raises(WindrowError, match="ORDER_NOT_ROWTIME"):
        told("(SELECT l.at, s.k FROM s JOIN labels l ON l.k = s.k)", "k")
    spark.catalog.dropTempView("labels")


def test_clauses_of_which_no_key_is_expected_to_be_over_grow(session):
    def told(query):
        return [str(one) for one in session.sql(query)._live.unbounded()]

    retains = "MATCH_RECOGNIZE retains the rows of open matches: WITHIN"
    assert told(QUERIES["union"]) == [f"{retains}, or punctuations of s on k and t on name, would bound it"]
    assert told(QUERIES["union"].replace("(a b*)", "(a b*) WITHIN 5")) == []
    assert told(QUERIES["view"].replace("BY id", "BY x").replace("id, n", "n")) == [
        f"{retains} would bound it"
    ]
    (pair,) = told(QUERIES["clauses"].replace("(a b*)", "(a b*) WITHIN 5"))
    assert pair == (
        "WINDOW BY w retains the rows of open windows: an END by the rowtime,"
        " or punctuations of s on k, would bound it"
    )
    last = "SELECT k, n FROM s " + STEPS.format("k", "at").replace("(a b*)", "(a b)")
    (kept,) = told(last)
    assert kept.startswith("MATCH_RECOGNIZE retains the last rows of every partition")
    assert told(last.replace("PARTITION BY k ", "").replace("k, n", "n")) == []
    with pytest.raises(WindrowError, match="UNBOUNDED_STATE"):
        session.sql(last).start(Memory(), on_unbounded="error")
    with session.stream("s").producer("p") as p:
        p.punctuate(k="a")
    session.sql("SELECT 1 FROM s")
    assert told(last) == []
    assert told(QUERIES["clauses"]) == []

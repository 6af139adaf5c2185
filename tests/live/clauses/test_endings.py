"""Closed keys end the partitions of WINDOW BY and MATCH_RECOGNIZE, and change no answer."""

from __future__ import annotations

import json
from collections import Counter
from contextlib import contextmanager
from itertools import count

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live import stepping
from tests.live.auctions import entries
from tests.live.stepping import law
from windrow import Memory, Session
from windrow.errors import InputError
from windrow.kernels.advance import affected
from windrow.spark.live.checkpoints.checkpoint import Checkpoint
from windrow.spark.live.hosts import micro_batches_of
from windrow.streams import NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")

COLUMNS = pa.schema([("at", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
UNTIL_ZERO = (
    "SELECT s.at AS begins, s.k, e.v, COUNT(w) AS n FROM s WINDOW BY w AS (TYPE SLIDING PARTITION BY k"
    " ORDER BY at START AS s END AS e WHEN e.v = 0)"
)
BY_PAIRS = UNTIL_ZERO.replace("e.v = 0", "e.v = 0 AND concat(s.k, e.k) IS NOT NULL")
PATTERN = (
    "SELECT * FROM s MATCH_RECOGNIZE (PARTITION BY k MEASURES FIRST(at) AS begins, COUNT(*) AS n"
    " PATTERN (a b*) DEFINE b AS b.v > 0)"
)
ONE_PARTITION = "SELECT s.at AS begins FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY at START AS s END)"


class Live:
    """A query that takes what has been logged when it is asked to."""

    def __init__(self, spark, session, query, folder, ways=(micro_batches_of,), envelope="delta"):
        self.spark, self.session, self.folder = spark, session, folder
        self.ways, self.envelope = ways, envelope
        self.plan, self.sink = session.sql(query)._live, Memory()
        self.read, self.numbers, self.steps = 0, count(), None

    def given(self, *, is_new=True):
        """What the entries since the last time give, of a process that is new or goes on."""
        number = next(self.numbers)
        if is_new or self.steps is None:
            self.close()
            way = self.ways[number % len(self.ways)]
            self.steps = way(self.plan, self.sink, self.folder, self.envelope, "keep")
        first, self.read = self.read, self.session._catalog.named["s"].stream.log.last()
        frames = {"s": entries(self.spark, self.session, "s", first, self.read)}
        self.steps.take(self.steps.input(frames), number)
        table = self.sink.batches.get(number)
        return [] if table is None else [tuple(row.values()) for row in table.to_pylist()]

    @property
    def kept(self):
        """The rows kept of open windows, and those that wait for the frontier."""
        return self.steps.progress["rows_in_windows"], self.steps.progress["rows_buffered"]

    def close(self):
        if self.steps is not None:
            self.steps.close()
        self.steps = None


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark)
    made = NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered())
    session.stream("s", made)
    yield session
    session.sql("DROP STREAM s")


def rows(*values):
    return [dict(zip(COLUMNS.names, one, strict=True)) for one in values]


def total(live):
    return Counter(tuple(row.values()) for table in live.sink.batches.values() for row in table.to_pylist())


def test_a_closed_key_ends_its_partition_at_once(spark, session, tmp_path):
    with session.stream("s").producer("p") as p:
        live = Live(spark, session, UNTIL_ZERO, tmp_path / "c")
        p.insert(rows((1, "a", 1), (2, "b", 1), (5, "a", 2), (6, None, 3)))
        assert live.given() == [], "before its first bound a stream has no clock"
        p.punctuate(k="a")
        assert sorted(live.given()) == [(1, "a", None, 2), (5, "a", None, 1)]
        assert live.kept == (0, 2)
        p.bound(4)
        assert live.given() == []
        assert live.kept == (1, 1)
        p.insert(rows((7, "a", 0), (7, "b", 3), (8, "c", 1)))
        p.punctuate(k=["b", None])
        assert sorted(live.given()) == [(2, "b", None, 2), (6, None, None, 1), (7, "b", None, 1)]
        assert live.kept == (0, 1)
        p.punctuate(k={">=": "c"}, at={"<": 20})
        assert live.given(is_new=False) == []
        p.punctuate(k={">=": "c"}, at={">=": 20})
        assert live.given(is_new=False) == [(8, "c", None, 1)]
        assert live.kept == (0, 0)
        live.close()
        assert total(live) == Counter(map(tuple, session.sql(UNTIL_ZERO).collect()))


def test_a_closed_key_among_many_costs_what_its_own_rows_do(spark, session, tmp_path, monkeypatch):
    """Of those that are kept, also where they wait, and where a process goes on that has read them again."""
    written, gone_through = [], []

    def write(self, name, chunk, table):
        written.append(table.num_rows)
        return WRITE(self, name, chunk, table)

    def changed(growing, kept, new_rows, *rest):
        gone_through.append(new_rows.num_rows + (0 if kept is None else kept.num_rows))
        return CHANGED(growing, kept, new_rows, *rest)

    monkeypatch.setattr(Checkpoint, "write_chunk", write)
    monkeypatch.setattr(affected, "changed", changed)
    count = 2000
    with session.stream("s").producer("p") as p:
        live = Live(spark, session, UNTIL_ZERO, tmp_path / "c", [micro_batches_of])
        p.insert(rows(*((at % 10, f"k{at}", 1) for at in range(count))))
        p.insert(rows((9, None, 1), *((20 + at % 10, f"w{at}", 2) for at in range(count))))
        p.bound(10)
        assert live.given() == []
        assert live.kept == (count + 1, count)
        p.punctuate(k="k7")
        p.punctuate(k=["w3", "w4"])
        written.clear(), gone_through.clear()
        found = live.given(is_new=False)
        assert sorted(found) == [(7, "k7", None, 1), (23, "w3", None, 1), (24, "w4", None, 1)]
        assert (live.kept, sum(gone_through) < 20, sum(written) < 20) == ((count, count - 2), True, True)
        p.punctuate(k=["k8", None])
        written.clear(), gone_through.clear()
        assert sorted(live.given(), key=str) == [(8, "k8", None, 1), (9, None, None, 1)]
        assert (live.kept, sum(gone_through) < 20, sum(written) < 20) == ((count - 2, count - 2), True, True)
        p.insert(rows((40, "k9", 0)))
        p.punctuate(k="k9")
        assert sorted(live.given()) == [(9, "k9", 0, 2), (40, "k9", 0, 1)]
        p.punctuate(k="k10")
        last = max((tmp_path / "c" / "windrow").glob("*/step.json"))
        live.close()
        last.write_text(json.dumps({**json.loads(last.read_text()), "version": 6}))
        with pytest.raises(InputError, match="CHECKPOINT_VERSION"):
            micro_batches_of(live.plan, live.sink, live.folder, "delta", "keep")
        last.write_text(last.read_text().replace('"version": 6', '"version": 7'))
        assert live.given() == [(0, "k10", None, 1)]
        p.finish()
        assert len(live.given()) == live.steps.progress["rows_emitted"] - 8 == 2 * count - 6
        live.close()
        assert total(live) == Counter(map(tuple, session.sql(UNTIL_ZERO).collect()))


CHANGED, WRITE = affected.changed, Checkpoint.write_chunk


def test_partitions_end_with_the_rows_that_wait(spark, session, tmp_path):
    with session.stream("s").producer("p") as p:
        by_pairs = Live(spark, session, BY_PAIRS, tmp_path / "pairs", [micro_batches_of])
        by_turns = Live(spark, session, PATTERN, tmp_path / "turns", [micro_batches_of])
        p.insert(rows((1, "a", 1), (2, "b", 1), (3, "a", 1), (9, "b", 1)))
        p.bound(4)
        assert (by_pairs.given(), by_turns.given()) == ([], [])
        assert (by_pairs.kept, by_turns.kept) == ((3, 1), (3, 1))
        p.punctuate(k=["a", "b"])
        of_b = [(2, "b", None, 2), (9, "b", None, 1)]
        assert sorted(by_pairs.given()) == [(1, "a", None, 2), *of_b[:1], (3, "a", None, 1), *of_b[1:]]
        assert by_pairs.kept == (0, 0)
        assert sorted(by_turns.given()) == [("a", 1, 2), ("b", 2, 2)]
        p.bound(10)
        p.insert(rows((12, "c", 1)))
        assert by_pairs.given() == []
        assert (by_turns.given(), by_turns.kept) == ([], (0, 1))
        assert by_pairs.kept == (0, 1)
        by_pairs.close()
        by_turns.close()


entry = st.one_of(
    st.tuples(st.just("row"), st.integers(0, 9), st.sampled_from("ab") | st.none(), st.integers(0, 2)),
    st.tuples(st.just("bound"), st.integers(0, 9)),
    st.tuples(st.just("end"), st.sampled_from("ab") | st.none(), st.none() | st.integers(0, 9)),
)


logs = st.lists(st.tuples(st.sampled_from("pq"), entry), min_size=4, max_size=14)
places = st.lists(st.integers(0, 14), max_size=3)


@law(3)
@given(logs, places, st.sampled_from([UNTIL_ZERO, PATTERN]))
def test_punctuations_change_no_answer(spark, tmp_path_factory, log, cuts, query):
    with played(spark, tmp_path_factory, log, cuts, query, "delta") as (live, session):
        assert total(live) == Counter(map(tuple, session.sql(query).collect()))


WINDOWS = [
    "SELECT k, v FROM s [PARTITION BY k ROWS 1]",
    "SELECT k, COUNT(*) AS n, MAX(v) AS m FROM s [PARTITION BY k ROWS 2] GROUP BY k",
    "SELECT k, v, SUM(at) AS n FROM s [RANGE UNBOUNDED] GROUP BY k, v",
    "SELECT a.k, a.v, b.at FROM s [PARTITION BY k ROWS 1] AS a, s [RANGE 3 MILLISECONDS] AS b"
    " WHERE a.k = b.k",
]


@law(3)
@given(logs, places, st.sampled_from(WINDOWS))
def test_punctuations_change_no_relation(spark, tmp_path_factory, log, cuts, query):
    with played(spark, tmp_path_factory, log, cuts, query, "diff") as (live, session):
        if any(kind == "row" for _, (kind, *_) in log):
            wanted = changes([session.sql(query).changelog("diff").to_arrow()])
            assert changes(live.sink.batches.values()) == wanted


def test_windows_of_keys_that_are_expected_to_be_over_are_bounded(session):
    def told(query):
        return [str(one).partition("bound it: ")[2] for one in session.sql(query)._live.unbounded()]

    last, per_key, per_value, pairs = WINDOWS
    bracket = "[PARTITION BY … ROWS … RANGE …]"
    assert told(last) == told(per_key) == told(pairs) == [f"{bracket}, or punctuations of s on k"]
    assert told(per_value) == ["[RANGE 1 HOUR], or punctuations of s on k, v"]
    assert told("SELECT COUNT(*) AS n FROM s [RANGE UNBOUNDED]") == ["[RANGE 1 HOUR]"]
    with session.stream("s").producer("p") as p:
        p.punctuate(k="a")
    session.sql("SELECT 1 FROM s")  # what has been promised once, may be expected again
    assert [told(query) for query in WINDOWS] == [[], [], [], []]
    assert told("SELECT COUNT(*) AS n FROM s [PARTITION BY k ROWS 1]") == [bracket]


def changes(tables):
    found = stepping.total(list(tables))
    return +found, -found


@pytest.mark.parametrize("query", WINDOWS)
def test_windows_hold_nothing_of_keys_that_are_over(spark, session, tmp_path, query):
    with session.stream("s").producer("p") as p:
        live = Live(spark, session, query, tmp_path / "c")
        p.insert(rows((1, "a", 1), (2, "b", 1), (3, "a", 1), (4, "b", 1)))
        p.bound(5)
        live.given()
        before = live.steps.progress["rows_in_windows"]
        p.punctuate(k="a")
        p.bound(9)
        live.given(is_new=False)
        assert before > live.steps.progress["rows_in_windows"]
        p.punctuate(k={"<": "x"})
        live.given()
        assert live.kept == (0, 0)
        live.close()


@pytest.mark.parametrize(
    "select",
    [
        "SELECT k, v FROM s [PARTITION BY k ROWS 1]",
        "SELECT k, v FROM s [RANGE UNBOUNDED]",
        "SELECT k, SUM(v) FROM s [RANGE UNBOUNDED] GROUP BY k",
    ],
)
def test_all_rows_at_each_instant_include_those_of_keys_that_are_over(spark, session, tmp_path, select):
    """Also after a restart, which has nothing but the stored rows."""
    query = f"RSTREAM({select})"
    with session.stream("s").producer("p") as p:
        live = Live(spark, session, query, tmp_path / "c")
        p.insert(rows((1, "a", 1)))
        p.bound(2)
        live.given()
        p.insert(rows((2, "b", 1)))
        p.bound(5)
        live.given()
        p.punctuate(k="a")
        p.bound(6)
        live.given()
        p.insert(rows((7, "c", 1)))
        p.bound(9)
        assert sorted(row[-2:] for row in live.given()) == [("a", 1), ("b", 1), ("c", 1)]
        live.close()


@contextmanager
def played(spark, tmp_path_factory, log, cuts, query, envelope):
    """A log and a query over it that takes it cut at some places, of processes that end there or go on."""
    folder, session = tmp_path_factory.mktemp("log"), Session(spark)
    made = NamedStream.create(folder / "s", COLUMNS, "at", ordering=Ordering.unordered())
    session.stream("s", made)
    live = Live(spark, session, query, folder / "c", envelope=envelope)
    with made.producer("p") as p, made.producer("q") as q:
        for at, (producer, (kind, *said)) in enumerate(log):
            own = p if producer == "p" else q
            if kind == "row":
                own.insert(rows((said[0], said[1], said[2])))
            elif kind == "bound":
                own.bound(said[0])
            else:
                own.punctuate(k=said[0], **({} if said[1] is None else {"at": {">=": said[1]}}))
            if at in cuts:
                live.given(is_new=at % 2 > 0)
        p.finish()
        q.finish()
    live.given()
    live.close()
    yield live, session
    session.sql("DROP STREAM s")


def test_what_is_not_a_column_of_one_stream_does_not_end(session):
    def ends(query):
        return [[*one.keys.values()] for found in session.sql(query)._live.ends.values() for one in found]

    assert ends(UNTIL_ZERO) == [["k"]]
    renamed = UNTIL_ZERO.replace("FROM s", "FROM (SELECT at, v, k, k AS l FROM s WHERE v > 0)")
    assert ends(renamed.replace("BY k", "BY l")) == [["k"]]
    assert ends(UNTIL_ZERO.replace("BY k", "BY upper(k)")) == []
    both = "(SELECT at, k, v FROM s UNION ALL SELECT at, 'a', v FROM s)"
    assert ends(UNTIL_ZERO.replace("FROM s", f"FROM {both}")) == []
    assert ends(ONE_PARTITION) == []

"""Groups are complete, and their rows go, when streams promise by patterns that they are over."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.clauses.test_endings import COLUMNS, Live, rows
from tests.live.emit_queries import counted, live_log, until
from tests.live.queries.test_named import ORDERINGS, call
from tests.live.queries.test_named import recorded as written
from tests.live.stepping import law
from windrow import Session
from windrow.errors import NotSupportedError
from windrow.kernels.operator_state import Carried
from windrow.streams import NamedStream, Ordering

pytestmark = pytest.mark.usefixtures("interpreted")

key = st.integers(0, 2)
told = st.one_of(
    st.fixed_dictionaries({"k": st.lists(st.none() | key, min_size=1, max_size=3, unique=True)}),
    st.fixed_dictionaries({"k": key, "v": st.sampled_from([{"<": 2}, {">=": 2}, [None]])}),
    st.fixed_dictionaries({"k": st.sampled_from([{"<": 2}, {">=": 1}])}),
)
promise = st.tuples(st.just("punctuate"), st.sampled_from("ab"), told)
logs = st.lists(call | promise, max_size=8)

QUERIES = {
    "groups": "SELECT k, COUNT(*) AS n, SUM(v) AS v FROM s GROUP BY k",
    "windows": "SELECT wend, k, MAX(v) AS v FROM TUMBLE(TABLE s, DESCRIPTOR(ts), 3) GROUP BY wend, k",
    "rows told apart": "SELECT DISTINCT k, v FROM s",
    "rows": "SELECT ts, k, v FROM s WHERE v > 0",
    "a join": "SELECT s.k, s.v, t.v AS w FROM s JOIN t ON s.k = t.k",
    "an outer join": "SELECT s.ts, s.k, t.v FROM s LEFT JOIN t ON s.k = t.k AND s.v <= t.v",
    "an anti join": "SELECT s.k, s.v FROM s LEFT ANTI JOIN t ON s.k = t.k",
    "groups of a join": "SELECT s.k, t.v, COUNT(*) AS n FROM s JOIN t ON t.k = s.k GROUP BY s.k, t.v",
    "a join of groups": "SELECT a.k, n, m FROM (SELECT k, COUNT(*) AS n FROM s GROUP BY k) AS a "
    "JOIN (SELECT k AS l, MAX(v) AS m FROM t GROUP BY k) AS b ON a.k = b.l",
    "rows beside groups": "SELECT s.k, s.v, n FROM s JOIN (SELECT k, COUNT(*) AS n FROM t GROUP BY k) AS b "
    "ON s.k = b.k",
    "groups of groups": "SELECT k, MAX(n) AS n FROM (SELECT k, v, COUNT(*) AS n FROM s GROUP BY k, v) "
    "GROUP BY k",
    "sessions": "SELECT k, wend, COUNT(*) AS n FROM SESSION(TABLE s PARTITION BY k, DESCRIPTOR(ts), 2) "
    "GROUP BY k, wend",
}
HOW = [
    "EMIT STREAM AFTER WATERMARK",
    "EMIT AFTER WATERMARK",
    "EMIT STREAM",
    "EMIT STREAM AFTER DELAY INTERVAL '0.01' SECOND AND AFTER WATERMARK",
    "EMIT STREAM AFTER WATERMARK ALLOWED LATENESS 2",
]
S = [
    ("insert", "a", [(1, 1, 1), (3, 2, 2)]), ("insert", "b", [(2, 1, 3), (4, None, 1)]),
    ("punctuate", "a", {"k": 1}), ("insert", "b", [(5, 1, 2), (2, 0, 1)]),
    ("punctuate", "b", {"k": [1, None]}), ("insert", "a", [(6, 1, 0), (6, 2, 3)]),
    ("punctuate", "a", {"k": None}), ("watermark", "a", 5), ("close", "b", None),
    ("insert", "b", [(7, 1, 1), (8, 2, 1)]), ("punctuate", "a", {"k": {">=": 2}, "v": {"<": 2}}),
]  # fmt: skip
T = [
    ("insert", "a", [(1, 1, 2), (2, 0, 1)]), ("punctuate", "a", {"k": [1, 0]}),
    ("insert", "a", [(3, 2, 2)]), ("insert", "a", [(3, 1, 2)]), ("punctuate", "a", {"k": None}),
]  # fmt: skip


def checked(spark, folder, s, t, ordering, cuts, kills, query):
    """The progress after the last step, where live is what the whole log gives; and that."""
    streams = {"s": written(folder / "s", ordering, s)}
    if "FROM t " in query or "JOIN t " in query:
        streams["t"] = written(folder / "t", ordering, t)
    for stream in streams.values():
        stream.tick()
    found, wanted, progress = live_log(spark, folder, streams, cuts, kills, query)
    end = min(stream.position().ptime for stream in streams.values())
    end = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(microseconds=end)
    assert until(found, end) == until([wanted], end)
    return streams, wanted, progress


def by_definition(spark, streams, query):
    defined = Session(spark, execution="reference")
    for name, stream in streams.items():
        defined.stream(name, stream)
    return defined.sql(query).changelog("one-sql" if "STREAM" in query else "delta").to_arrow()


@law(1)
@given(
    logs,
    logs,
    st.sampled_from(ORDERINGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.sets(st.integers(0, 3), max_size=1),
    st.sampled_from([*QUERIES.values()]),
    st.sampled_from(HOW),
)
@example(S, T, Ordering.unordered(), [0.3, 0.5, 0.8], {1}, QUERIES["rows beside groups"], HOW[0])
@example(S, T, Ordering.lagging(2), [0.4, 0.7], {0}, QUERIES["an outer join"], HOW[0])
@example(S, T, Ordering.unordered(), [0.4, 0.7], {1}, QUERIES["windows"], HOW[3])
def test_cuts_and_kills_change_nothing(spark, tmp_path_factory, s, t, ordering, cuts, kills, query, how):
    folder, query = tmp_path_factory.mktemp("promised"), f"{query} {how}"
    streams, wanted, _ = checked(spark, folder, s, t, ordering, cuts, kills, query)
    assert counted([by_definition(spark, streams, query)]) == counted([wanted])


@pytest.mark.long
@pytest.mark.parametrize("how", HOW[:3])
@pytest.mark.parametrize("name", QUERIES)
def test_promises_that_come_late_end_what_operators_hold(spark, tmp_path, monkeypatch, name, how):
    """Until the first of them what operators hold is kept in place of rows, here in every step."""
    monkeypatch.setattr(Carried, "is_due", staticmethod(lambda *_: True))
    query = f"{QUERIES[name]} {how}"
    streams, wanted, _ = checked(spark, tmp_path, S, T, Ordering.unordered(), [0.1, 0.2, 0.6], {2}, query)
    assert counted([by_definition(spark, streams, query)]) == counted([wanted])


KEPT = {
    "groups that wait": (
        "SELECT k, SUM(v) AS n FROM s GROUP BY k EMIT AFTER WATERMARK",
        [("a", 4)],
        [("b", 7)],
    ),
    "rows that wait": ("SELECT k, v FROM s EMIT AFTER WATERMARK", [("a", 1), ("a", 3)], [("b", 5)]),
    "groups": ("SELECT k, MAX(v) AS n FROM s GROUP BY k EMIT STREAM AS diff", None, None),
    "rows told apart": ("SELECT DISTINCT k FROM s EMIT STREAM AS diff", None, None),
    "pairs": ("SELECT a.k, b.v FROM s AS a JOIN s AS b ON a.k = b.k EMIT STREAM AS diff", None, None),
    "rows without a partner": (
        "SELECT a.k, a.v FROM s AS a LEFT JOIN s AS b ON a.k = b.k AND a.v < b.v WHERE b.v IS NULL "
        "EMIT AFTER WATERMARK",
        [("a", 3)],
        [("b", 5)],
    ),
    "by tasks": (
        "SELECT k, SUM(v) AS n FROM s GROUP BY k EMIT AFTER DELAY INTERVAL 1 HOUR AND AFTER WATERMARK",
        [("a", 4)],
        None,  # rows are needed for the delay longer
    ),
}
"""Queries, what they give when a is over, and b."""


@pytest.fixture
def session(spark, tmp_path):
    session = Session(spark)
    made = NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered())
    session.stream("s", made)
    yield session
    session.sql("DROP STREAM s")


def needed(live):
    """How many rows are kept, but for those of a file that is written anew when half of it has gone."""
    known = live.steps.steps._known_last
    return (
        live.kept[0] if known is None else sum(int(one.retained.alive.sum()) for one in known.rows.values())
    )


@pytest.mark.parametrize("name", KEPT)
def test_rows_go_when_no_more_is_to_come(spark, session, tmp_path, name):
    query, of_a, of_b = KEPT[name]
    with session.stream("s").producer("p") as p:
        live = Live(spark, session, query, tmp_path / "c", envelope="diff")
        p.insert(rows((1, "a", 1), (2, "b", 2), (3, "a", 3), (4, None, 1), (5, "b", 5)))
        began = live.given()
        assert bool(began) == (of_a is None)
        assert needed(live) == 5
        p.punctuate(k="a")
        given_ = live.given()
        if of_a is not None:
            assert sorted(row[:-2] for row in given_) == of_a
        p.insert(rows((6, "a", 9)))
        p.punctuate(k="b", v={"<": 4})
        part = [row[:-2] for row in live.given(is_new=False)]
        assert part == ([("b", 2)] if name == "rows that wait" else [])
        assert needed(live) == {"by tasks": 5, "rows that wait": 2}.get(name, 3)
        p.punctuate(k="b", v={">=": 4})
        p.punctuate(k="b", v=None)
        given_ = live.given()
        if of_b is not None:
            assert sorted(row[:-2] for row in given_) == of_b
            assert needed(live) == 1
        live.close()


GROWING = {
    "SELECT k, COUNT(*) AS n FROM s GROUP BY k EMIT STREAM AFTER WATERMARK": "punctuations of s (k)",
    "SELECT a.k, b.v FROM s AS a JOIN s AS b ON a.k = b.k EMIT STREAM": "punctuations of s (k)",
    "SELECT k, v FROM s ORDER BY v LIMIT 2 EMIT STREAM": "unbounded because of ORDER BY",
}


def test_what_keeps_more_and_more_is_told_at_the_start_unless_promises_are_known(session, tmp_path):
    def start(query):
        return session.sql(query).start(tmp_path / "out", on_unbounded="error")

    for query, told in GROWING.items():
        with pytest.raises(NotSupportedError) as error:
            start(query)
        assert error.value.condition == "UNBOUNDED_STATE"
        assert told in error.value.message
    with pytest.warns(RuntimeWarning, match=r"punctuations of s \(k\)"):
        session.sql(next(iter(GROWING))).start(tmp_path / "warned").stop()
    with session.stream("s").producer("p") as p:
        p.punctuate(k="a")
    start(next(iter(GROWING))).stop()
    with pytest.raises(NotSupportedError, match="ORDER BY"):
        start([*GROWING][-1])


def test_promises_of_another_type_tell_nothing(spark, tmp_path):
    """Also not of values that the type does not have: those of wider numbers."""
    streams = {}
    for name, kind in (("s", pa.int64()), ("t", pa.int32())):
        columns = pa.schema([("at", pa.int64()), ("k", kind)])
        streams[name] = NamedStream.create(tmp_path / name, columns, "at", ordering=Ordering.unordered())
        with streams[name].producer("p") as p:
            p.insert([{"at": 1, "k": 1}, {"at": 2, "k": 2 if name == "t" else 2**40}])
            p.punctuate(k=1)
            p.insert([{"at": 3, "k": 2}])
    for stream in streams.values():
        stream.tick()
    query = "SELECT s.k, t.at AS of FROM s JOIN t ON s.k = t.k EMIT STREAM AS diff"
    found, wanted, _ = live_log(spark, tmp_path, streams, [0.5, 0.9], {0}, query)
    assert counted(found) == counted([wanted])
    assert sorted(row["of"] for row in wanted.to_pylist()) == [1, 2, 3]

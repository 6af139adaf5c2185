"""WINDOW BY and MATCH_RECOGNIZE over windows of time: at each instant what they give over the rows of then.

Which rows are in a window when, and what the clause gives over them, the reference interpreter says, without
Spark and without a changelog.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from itertools import accumulate
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live.stepping import law
from windrow import Memory, Relation, Session
from windrow.kernels.patterns.tree import Label, Repeat, Sequence
from windrow.kernels.reference.match_recognize import Clause, MatchView, OutputRow, match_recognize
from windrow.kernels.reference.scalar_expressions import compile_expression
from windrow.kernels.reference.stream_window_definitions import WindowOfStream, validity
from windrow.kernels.reference.window_by import OrderKey, ReferenceBoundary, WindowBy, window_by
from windrow.relation_kinds import LiveRelation

WINDOWS = {
    "[NOW]": WindowOfStream(granularity=1),
    "[RANGE 3]": WindowOfStream(range_=3),
    "[RANGE UNBOUNDED]": WindowOfStream(),
    "[RANGE 4 SLIDE 3]": WindowOfStream(range_=4, slide=3),
    "[ROWS 2]": WindowOfStream(rows=2),
    "[PARTITION BY k ROWS 1]": WindowOfStream(rows=1),
    "[PARTITION BY k ROWS 2 RANGE 5]": WindowOfStream(range_=5, rows=2),
}


class Asked(NamedTuple):
    """A query over ``FROM {source}``, and what it gives over rows."""

    query: str
    answer: Callable[[list[dict[str, Any]]], list[tuple]]


def field(name: str) -> Callable[[Any], Any]:
    return lambda row: None if row is None else row[name]


def when(**names: str | bool | None) -> ReferenceBoundary:
    condition = names.pop("when", None)
    return ReferenceBoundary(when=None if condition is None else compile_expression(str(condition)), **names)  # type: ignore[arg-type]


def windows(text: str, clause: WindowBy) -> Asked:
    """Of each window the row it begins at, the one it ends at, how many rows it has, and their sum."""
    first = "f" if clause.label is None else "x"

    def answer(rows: list[dict[str, Any]]) -> list[tuple]:
        found = []
        for window in window_by(rows, clause):
            inside = [row for row in window["w"] if row is not None]
            values = [row["v"] for row in inside if row["v"] is not None]
            ends = field("i")(window[first]), field("i")(window["l"])
            found.append((*ends, len(inside), sum(values) if values else None))
        return found

    items = f"{first}.i AS a, l.i AS b, COUNT(w.i) AS n, SUM(w.v) AS total"
    return Asked(f"SELECT {items} FROM {{source}} WINDOW BY w AS ({text})", answer)


def matches(text: str, clause: Clause) -> Asked:
    """Of each match its first row, its last, and how many rows it has."""

    def measured(row: OutputRow) -> tuple:
        mapped = [row.rows[at]["i"] for at, _ in row.mapped]
        return mapped[0], mapped[-1], len(mapped)

    measures = "FIRST(i) AS a, LAST(i) AS b, COUNT(*) AS n"
    query = f"SELECT a, b, n FROM {{source}} MATCH_RECOGNIZE ({text.format(measures=measures)})"
    return Asked(query, lambda rows: [measured(row) for row in match_recognize(rows, clause)])


def rises(view: MatchView) -> bool | None:
    """Whether the row that is tried has a greater value than the one before it."""
    at = view.mapped[-1][0]
    before, now = (None if at == 0 else view.rows[at - 1]["v"]), view.rows[at]["v"]
    return None if before is None or now is None else now > before


BY_K, BY_I = (field("k"),), (OrderKey(field("i")),)
BY_V = (OrderKey(field("v"), descending=True, nulls_first=False), *BY_I)
A_RISES = Sequence((Label(0), Repeat(Label(1), 1, None)))
PAST = {"within": None, "targets": frozenset[int](), "shows_empty": True, "with_unmatched": False}
CLAUSES = [
    windows(
        "TYPE SLIDING PARTITION BY k ORDER BY i START AS f WHEN f.v > 0 END AS l WHEN l.v < f.v",
        WindowBy("w", False, BY_K, BY_I, when(as_="f", when="f.v > 0"), when(as_="l", when="l.v < f.v")),
    ),
    windows(
        "TYPE SLIDING ORDER BY v DESC NULLS LAST, i START AS f ONLY END AS l WHEN l.k = f.k AND l.i > f.i",
        WindowBy(
            "w", False, (), BY_V, when(as_="f"), when(as_="l", when="l.k = f.k AND l.i > f.i", only=True)
        ),
    ),
    windows(
        "TYPE TUMBLING PARTITION BY k ORDER BY i START AS f END AS l WHEN l.i - f.i >= 2",
        WindowBy("w", True, BY_K, BY_I, when(as_="f"), when(as_="l", when="l.i - f.i >= 2")),
    ),
    windows(
        "TYPE SLIDING PARTITION BY k ORDER BY i LABEL AS x WHEN x.v >= 1"
        " START AS f WHEN f.i >= x.i - 2 END AS l WHEN l.i > x.i",
        WindowBy(
            "w",
            False,
            BY_K,
            BY_I,
            when(as_="f", when="f.i >= x.i - 2"),
            when(as_="l", when="l.i > x.i"),
            when(as_="x", when="x.v >= 1"),
        ),
    ),
    matches(
        "PARTITION BY k ORDER BY i MEASURES {measures} PATTERN (a b+) DEFINE b AS v > PREV(v)",
        Clause(BY_K, BY_I, A_RISES, {1: rises}, skip="past last", all_rows=False, **PAST),
    ),
    matches(
        "ORDER BY i MEASURES {measures} AFTER MATCH SKIP TO NEXT ROW PATTERN (a b+) DEFINE b AS v > PREV(v)",
        Clause((), BY_I, A_RISES, {1: rises}, skip="next", all_rows=False, **PAST),
    ),
]
SOURCES = [
    "s {window}",
    "(SELECT * FROM s {window})",
    "(SELECT i, k, v FROM s {window} WHERE v IS NULL OR v < 3)",
]


def rows_at(source: str, window: str, rows: list[dict[str, Any]]) -> Callable[[int], list[dict[str, Any]]]:
    """The rows of a source at each instant."""
    keys = [row["k"] for row in rows] if "PARTITION" in window else None
    times = validity(WINDOWS[window], [row["ts"] for row in rows], keys)
    keeps = compile_expression("v IS NULL OR v < 3") if "WHERE" in source else lambda _: True

    def at(instant: int) -> list[dict[str, Any]]:
        there = []
        for row, interval in zip(rows, times, strict=True):
            enter, leave = interval if interval is not None else (0, 0)
            if (
                enter <= instant
                and (leave is None or instant < leave)
                and interval is not None
                and keeps(row)
            ):
                there.append(row)
        return there

    return at


def declare(session: Session, rows: list[dict[str, Any]]) -> None:
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in ("ts", "i", "k", "v")}
    session.stream("s", pa.table(columns), rowtime="ts", unit="seconds", ptime="i")


entries = st.lists(
    st.tuples(st.integers(1, 3), st.none() | st.integers(0, 1), st.none() | st.integers(0, 3)),
    min_size=1,
    max_size=7,
)


def numbered(drawn: list[tuple[int, int | None, int | None]]) -> list[dict[str, Any]]:
    """The rows of entries, of which each says how long after the one before it comes."""
    times = accumulate(gap for gap, _, _ in drawn)
    return [
        {"ts": ts, "i": number, "k": k, "v": v}
        for number, (ts, (_, k, v)) in enumerate(zip(times, drawn, strict=True))
    ]


def follow(relation: Relation, answer: Callable[[int], list[tuple]], end: int) -> None:
    """Compare what a relation returns at each instant."""
    changes: dict[int, Counter] = {}
    for *row, count, at in relation.changelog("diff").collect():
        assert count != 0
        changes.setdefault(at, Counter())[tuple(row)] += count
    found: Counter = Counter()
    for instant in range(end):
        found.update(changes.pop(instant, Counter()))
        assert +found == Counter(answer(instant)), f"at {instant}"
        assert min(found.values(), default=0) >= 0
    assert changes == {}


@law(12)
@given(entries, st.sampled_from(sorted(WINDOWS)), st.sampled_from(SOURCES), st.sampled_from(CLAUSES))
@pytest.mark.usefixtures("interpreted")
def test_a_clause_gives_at_each_instant_what_it_gives_over_the_rows_of_then(
    spark, drawn, window, source, asked
):
    session = Session(spark)
    rows = numbered(drawn)
    declare(session, rows)
    query = asked.query.format(source=source.format(window=window))
    there = rows_at(source, window, rows)
    follow(session.sql(query), lambda instant: asked.answer(there(instant)), rows[-1]["ts"] + 8)


class AskedBeside(NamedTuple):
    """A query over ``FROM s {window}`` and ``s {other}``, and what it gives over rows of both."""

    query: str
    answer: Callable[[list[dict[str, Any]], list[dict[str, Any]]], list[tuple]]


def with_subquery(start: str, end: str, clause: Callable[[list[dict[str, Any]]], WindowBy]) -> AskedBeside:
    text = f"TYPE SLIDING PARTITION BY k ORDER BY i START AS f {start} END AS l {end}"

    def answer(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[tuple]:
        found = window_by(rows, clause(others))
        return [(field("i")(one["f"]), field("i")(one["l"])) for one in found]

    return AskedBeside(f"SELECT f.i AS a, l.i AS b FROM s {{window}} WINDOW BY w AS ({text})", answer)


def below(rows: list[dict[str, Any]], value: int | None, k: int | None) -> bool:
    """Whether a row of this key has a lower value."""
    return any(None not in (row["v"], value, k) and row["k"] == k and row["v"] < value for row in rows)


def counted(others: list[dict[str, Any]]) -> Clause:
    """Of rows with a value of at least the number of rows of their key."""

    def enough(view: MatchView) -> bool | None:
        row = view.rows[view.mapped[-1][0]]
        count = sum(other["k"] == row["k"] is not None for other in others)
        return None if row["v"] is None else row["v"] >= count

    return Clause(
        BY_K, BY_I, Repeat(Label(0), 0, None), {0: enough}, skip="past last", all_rows=False, **PAST
    )


def matched(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[tuple]:
    most = max((other["v"] for other in others if other["v"] is not None), default=None)
    return [(len(row.mapped), most) for row in match_recognize(rows, counted(others))]


def greater(rows: list[dict[str, Any]], others: list[dict[str, Any]]) -> list[tuple]:
    """Of each window whose key others have: how many of them have a greater value than its first row."""
    found = []
    for one in window_by(
        rows, WindowBy("w", False, BY_K, BY_I, when(as_="f"), when(as_="l", when="l.i > f.i"))
    ):
        first = one["f"]
        same = [other for other in others if other["k"] == first["k"] is not None]
        more = [other for other in same if None not in (other["v"], first["v"]) and other["v"] > first["v"]]
        if same:
            found.append((first["i"], len(more)))
    return found


def least(rows: list[dict[str, Any]]) -> int | None:
    return min((row["v"] for row in rows if row["v"] is not None), default=None)


def when_row(
    subquery: str, holds: Callable[[dict[str, Any], list[dict[str, Any]]], bool | None]
) -> AskedBeside:
    """Windows that begin at rows for which a subquery over other rows is true."""
    return with_subquery(
        f"WHEN {subquery}",
        "WHEN l.i > f.i",
        lambda others: WindowBy(
            "w", False, BY_K, BY_I,
            ReferenceBoundary(as_="f", when=lambda env: holds(env["f"], others)),
            when(as_="l", when="l.i > f.i"),
        ),
    )  # fmt: skip


def of_key(rows: list[dict[str, Any]], k: int | None) -> list[dict[str, Any]]:
    return [row for row in rows if row["k"] == k is not None]


def is_in(value: int | None, rows: list[dict[str, Any]], name: str = "v") -> bool | None:
    """SQL's IN."""
    values = [row[name] for row in rows]
    if value is not None and value in values:
        return True
    return None if values and (value is None or None in values) else False


def most(rows: list[dict[str, Any]]) -> int | None:
    return max((row["v"] for row in rows if row["v"] is not None), default=None)


def is_below(value: int | None, rows: list[dict[str, Any]]) -> bool:
    """Whether a value is below a number of rows."""
    return value is not None and value < len(rows)


NESTED = [
    when_row(
        "EXISTS (SELECT q.k FROM s {other} AS q WHERE q.k = f.k GROUP BY q.k"
        " HAVING COUNT(*) IN (SELECT v FROM s {other}))",
        lambda row, others: (
            bool(of_key(others, row["k"])) and is_in(len(of_key(others, row["k"])), others) is True
        ),
    ),
    when_row(
        "EXISTS (SELECT q.k FROM s {other} AS q WHERE q.k = f.k GROUP BY q.k"
        " HAVING MAX(q.v) < (SELECT COUNT(*) FROM s {other} AS p WHERE p.v = q.k))",
        lambda row, others: is_below(
            most(of_key(others, row["k"])), [one for one in others if one["v"] == row["k"] is not None]
        ),
    ),
    when_row(
        "(SELECT COUNT(*) NOT IN (SELECT v FROM s {other}) FROM s {other} AS q WHERE q.k = f.k)",
        lambda row, others: is_in(len(of_key(others, row["k"])), others) is False,
    ),
    when_row(
        "EXISTS (SELECT MAX(q.v) AS m FROM s {other} AS q WHERE q.k = f.k HAVING EXISTS"
        " (SELECT 1 FROM s {other} AS p WHERE p.v > MIN(q.v)) AND m IN (SELECT i FROM s {other}))",
        lambda row, others: (
            None is not most(of_key(others, row["k"]))
            and (least(of_key(others, row["k"])) or 0) < (most(others) or 0)
            and is_in(most(of_key(others, row["k"])), others, "i") is True
        ),
    ),
    when_row(
        "(SELECT COUNT(*) FILTER (WHERE q.v IN (SELECT k FROM s {other})) FROM s {other} AS q"
        " WHERE q.k = f.k) > 0",
        lambda row, others: any(is_in(one["v"], others, "k") for one in of_key(others, row["k"])),
    ),
    when_row(
        "EXISTS (SELECT 1 FROM (SELECT k AS g, v AS u FROM s {other}) AS q WHERE q.g = f.k AND EXISTS"
        " (SELECT 1 FROM s {other} WHERE k = g AND v > u))",
        lambda row, others: len({one["v"] for one in of_key(others, row["k"])} - {None}) > 1,
    ),
    when_row(
        "f.v IN (SELECT COUNT(*) FROM s {other} AS q GROUP BY ROLLUP (q.k) HAVING MAX(q.v) IN"
        " (SELECT i FROM s {other}))",
        lambda row, others: any(
            row["v"] == len(group) and is_in(most(group), others, "i")
            for group in (others, *([one for one in others if one["k"] == k] for k in (None, 0, 1)))
            if group
        ),
    ),
]
"""Subqueries in subqueries: beside groups and aggregates, and with columns of the one around."""

BESIDE = [
    with_subquery(
        "WHEN f.v > (SELECT MIN(v) FROM s {other})",
        "WHEN l.v < f.v",
        lambda others: WindowBy(
            "w", False, BY_K, BY_I,
            when(as_="f", when=f"f.v > {'NULL' if least(others) is None else least(others)}"),
            when(as_="l", when="l.v < f.v"),
        ),
    ),
    with_subquery(
        "",
        "WHEN EXISTS (SELECT 1 FROM s {other} AS q WHERE q.k = f.k AND q.v < l.v)",
        lambda others: WindowBy(
            "w", False, BY_K, BY_I, when(as_="f"),
            ReferenceBoundary(as_="l", when=lambda env: below(others, env["l"]["v"], env["f"]["k"])),
        ),
    ),
    AskedBeside(
        "SELECT n, m FROM s {window} MATCH_RECOGNIZE (PARTITION BY k ORDER BY i MEASURES COUNT(a.*) AS n,"
        " (SELECT MAX(v) FROM s {other}) AS m PATTERN (a*)"
        " DEFINE a AS v >= (SELECT COUNT(*) FROM s {other} AS q WHERE q.k = a.k))",
        matched,
    ),
    AskedBeside(
        "SELECT f.i AS a, (SELECT COUNT(*) FROM s {other} AS q WHERE q.k = f.k AND q.v > f.v) AS n"
        " FROM s {window} WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY i START AS f"
        " END AS l WHEN l.i > f.i) HAVING EXISTS (SELECT 1 FROM s {other} AS q WHERE q.k = f.k)",
        greater,
    ),
]  # fmt: skip


@law(12)
@given(
    entries,
    st.sampled_from(sorted(WINDOWS)),
    st.sampled_from(sorted(WINDOWS)),
    st.sampled_from([*BESIDE, *NESTED]),
)
@pytest.mark.usefixtures("interpreted")
def test_subqueries_have_at_each_instant_the_values_of_then(spark, drawn, window, other, asked):
    session = Session(spark)
    rows = numbered(drawn)
    declare(session, rows)
    query = asked.query.format(window=window, other=other)
    there, beside = rows_at("s", window, rows), rows_at("s", other, rows)
    end = rows[-1]["ts"] + 8
    follow(session.sql(query), lambda instant: asked.answer(there(instant), beside(instant)), end)


# -- what is refused, and views --------------------------------------------------------------------

WINDOW = "WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS f END UNBOUNDED)"
MATCH = "MATCH_RECOGNIZE (ORDER BY ts MEASURES a.v AS first PATTERN (a) DEFINE a AS v > 1)"


@pytest.fixture
def session(spark):
    session = Session(spark)
    declare(session, [{"ts": 1, "i": 0, "k": 1, "v": 2}, {"ts": 3, "i": 1, "k": 1, "v": 3}])
    rate = spark.readStream.format("rate").load()
    session.stream("coming", rate.selectExpr("timestamp AS ts", "value AS v"), rowtime="ts")
    session.stream("numbers", rate.selectExpr("value AS ts", "value AS v"), rowtime="ts", unit="seconds")
    session.sql("CREATE OR REPLACE TEMPORARY VIEW recent AS SELECT * FROM coming [RANGE 1 HOUR]")
    return session


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT f.v FROM coming [RANGE 1 HOUR] {WINDOW}",
        f"SELECT f.v FROM (SELECT * FROM coming [NOW]) {WINDOW}",
        f"SELECT first FROM coming [RANGE 1 HOUR] {MATCH}",
        f"SELECT first FROM recent {MATCH}",
        f"ISTREAM(SELECT f.v FROM recent {WINDOW})",
        f"SELECT m.first, r.v FROM s [RANGE 3] {MATCH} AS m, numbers [NOW] AS r",
    ],
)
def test_over_live_streams_they_are_live_relations(session, query):
    relation = session.sql(query)
    assert isinstance(relation, LiveRelation)
    assert "evaluated  in memory" in relation.plan()
    assert "evaluated  in memory" in session.sql(f"EXPLAIN {query}").collect()[0][0]


def test_views_of_them_over_live_streams_are_live_relations(session):
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW x AS SELECT f.v FROM recent {WINDOW}")
    relation = session.sql("SELECT v, COUNT(*) AS n FROM x GROUP BY v")
    assert isinstance(relation, LiveRelation)
    assert "evaluated  in memory" in relation.plan()


def test_a_view_over_a_named_stream_grows_with_it_and_is_started(spark, tmp_path):
    session = Session(spark)
    session.sql(
        f"CREATE STREAM grown (ROWTIME ts BIGINT UNIT SECONDS, v BIGINT) LOCATION '{tmp_path / 'grown'}'"
    )
    session.sql("INSERT INTO grown VALUES (1, 5)")
    session.sql(f"CREATE TEMPORARY VIEW firsts AS SELECT f.ts, f.v FROM grown [RANGE 10] {WINDOW}")
    session.sql("CREATE TEMPORARY VIEW counted AS SELECT COUNT(*) AS n FROM firsts")
    before = session.sql("SELECT n FROM counted").collect()
    session.sql("INSERT INTO grown VALUES (2, 6)")
    session.sql("INSERT INTO grown VALUES (3, 7)")
    after = session.sql("SELECT n FROM counted").collect()
    assert [tuple(row) for row in (*before, *after)] == [(1,), (3,)]
    sink = Memory()
    query = session.sql("SELECT n FROM counted").start(sink, checkpoint=tmp_path / "check", envelope="diff")
    query.process_all_available()
    query.stop()
    rows = (tuple(row.values()) for batch in sink.batches.values() for row in batch.to_pylist())
    assert {row[0] for row in rows} == {1, 2}, "the row of the last instant waits for a bound"


def test_a_clause_is_forgotten_with_the_view_that_reads_it(session):
    session.sql(f"CREATE TEMPORARY VIEW first_rows AS SELECT f.ts, f.v FROM s [RANGE 10] {WINDOW}")
    session.sql(f"SELECT f.v FROM s [RANGE 10] {WINDOW}").collect()
    assert len(session._catalog.clauses) == 1
    assert session.sql("SELECT COUNT(*) FROM first_rows").collect()
    session.sql("DROP VIEW first_rows")
    assert not session._catalog.clauses


def test_explain_names_the_rows_the_clause_and_the_query_around(session):
    explained = session.sql(f"EXPLAIN SELECT f.v FROM s [RANGE 3] {WINDOW}").collect()[0][0]
    for line in (
        "relation  s [RANGE 3]",
        "WINDOW BY w",
        "each partition once for each piece of time in which it is the same",
        "query  SELECT f.v FROM input 1 AS `WINDOW BY w`",
    ):
        assert line in explained
    assert session.sql(f"SELECT f.v FROM s [RANGE 3] {WINDOW}").plan() == explained
    assert not re.findall(r"__(clause|p\d|o\d|row)", explained)
    beside = f"EXPLAIN SELECT * FROM s [NOW], (SELECT f.v AS other FROM VALUES (1, 2) AS t (ts, v) {WINDOW})"
    assert "once: its rows do not change" in session.sql(beside).collect()[0][0]


def test_a_table_is_made_of_the_windows_at_the_last_instant(session):
    session.sql(f"CREATE OR REPLACE TEMPORARY VIEW begun AS SELECT f.v FROM s [RANGE 2] {WINDOW}")
    found = session.sql("SELECT v FROM begun")
    assert [found.at(instant).collect() for instant in (0, 1, 5)] == [[], [(2,)], []]
    assert found.collect() == [(3,)]

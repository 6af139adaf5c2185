"""Operators over punctuated streams, held to the definitions after each step of any interleaving.

*Complete*: what has been given is what the definition passes. *Safe*: that is part of the finished answer.
*Proper*: no row is given that matches what was promised before; what is promised is what the definition
propagates. *Minimal*: as many rows are kept as the definition keeps.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.kernels.punctuated_streams import ORDERED, VALUES, Stream, check, streams
from windrow.kernels.aggregates import AggregateSpec
from windrow.kernels.punctuated import (
    Delta,
    FilterOperator,
    GroupOperator,
    OverOperator,
    ProjectOperator,
    SessionOperator,
    SetOperator,
    SortOperator,
    SymmetricJoin,
)
from windrow.kernels.punctuated.following import Follower, Following
from windrow.kernels.punctuated.operator_graph import OperatorGraph, OperatorNode
from windrow.kernels.punctuated.sets import OPERATORS
from windrow.kernels.reference import punctuation as definition
from windrow.kernels.reference.punctuation import Key, tupled
from windrow.kernels.sorting import SortKey
from windrow.kernels.stored import from_stored, stored
from windrow.punctuations import EVERYTHING, Cover, Pattern, lines_of
from windrow.punctuations.regions import NULL

KINDS = ("inner", "left", "right", "full", "semi", "anti", "mark")

ONE = {"a": "int", "b": "text"}
OTHER = {"c": "int", "d": "flag"}
THREE = {"a": "int", "b": "flag", "c": "int"}


PROPERTY = settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow])


@PROPERTY
@given(streams(ONE, 4))
def test_filter(stream):
    def qualifies(table):
        return np.array([row["a"] is not None and row["a"] > 0 for row in table.to_pylist()], bool)

    check(
        FilterOperator(qualifies),
        partial(definition.select, qualifies=lambda row: row["a"] is not None and row["a"] > 0),
        [stream],
        stream.schema,
    )


@PROPERTY
@given(streams(THREE, 4), st.sampled_from([["a"], ["b", "a"], ["c"], ["a", "b", "c"]]))
def test_project(stream, names):
    schema = pa.schema([stream.schema.field(name) for name in names])
    operator = ProjectOperator(tuple((name, name) for name in names))
    check(operator, partial(definition.project, names=names), [stream], schema)


#: How columns go with "a", by what is computed: of some values another knows nothing.
COMPUTED = {
    "more": (Follower("more", "a", rises=True, differs=True), pa.int64(), lambda value: value + 3),
    "less": (Follower("less", "a", rises=False, differs=True), pa.int32(), lambda value: -2 * value),
    "half": (Follower("half", "a", rises=True), pa.int64(), lambda value: value // 2),
    "third": (Follower("third", "a", rises=False), pa.int64(), lambda value: 1 - value // 3),
    "text": (Follower("text", "a", rises=None, differs=True), pa.string(), lambda value: f"n{value}"),
    "flagged": (Follower("flagged", "c", rises=True, differs=True), pa.int64(), lambda value: value * 7),
}


@settings(PROPERTY, max_examples=40)
@pytest.mark.parametrize(
    ("made", "names"),
    [
        (["more"], ["b"]),
        (["less"], []),
        (["half"], []),
        (["third"], []),
        (["more", "flagged"], []),
        (["less", "text"], ["a", "b"]),
        (["half", "flagged", "text"], ["b"]),
    ],
)
@given(streams(THREE, 6))
def test_columns_that_are_computed(made, names, stream):
    """Proper; as much as the definition, but for texts, and for what rises or falls beside other columns."""
    stream = replace(stream, values={**VALUES, "int": [None, -2, -1, 0, 1, 2, 3]})
    followers = {name: COMPUTED[name] for name in made}
    schema = pa.schema(
        [stream.schema.field(name) for name in names]
        + [(name, kind) for name, (_, kind, _) in followers.items()]
    )
    lines, output = lines_of(stream.schema), lines_of(schema)

    def computing(one, compute):
        return lambda row: None if row[one.column] is None else compute(row[one.column])

    computes = {name: computing(one, compute) for name, (one, _, compute) in followers.items()}

    def become(rows):
        made = [
            {name: row[name] for name in names} | {name: compute(row) for name, compute in computes.items()}
            for row in rows
        ]
        return pa.Table.from_pylist(made, schema)

    def values(one, places):
        line, compute = output[one.name], followers[one.name][2]
        return {place: line.place(compute(place)) for place in places}

    plain = tuple((name, name) for name in names)
    following = Following(lines, output, plain, [one for one, _, _ in followers.values()])
    project, carry, told = ProjectOperator(plain), None, Cover(output)
    possible = become([*definition.possible(stream.universe)])
    for number in range(len(stream.pieces)):
        following, carry = from_stored(stored((following, carry)))
        step = stream.step(number)
        assert not told.matches(become(step.rows.to_pylist())).any(), "proper"
        passed, carry = project.advance(carry, step)
        for pattern in passed.punctuations:
            told.add(pattern)
        for box in following.add(step.punctuations, values):
            told.add_region(box)
        meant = definition.computed(stream.so_far(number + 1), names, computes)
        wanted = [meant.is_excluded(row) for row in possible.to_pylist()]
        found = told.matches(possible).tolist()
        assert all(a for a, b in zip(wanted, found, strict=True) if b), "safe"
        is_decided = {*made} <= {"more", "less", "flagged"} or (made in (["half"], ["third"]) and not names)
        if is_decided:
            assert found == wanted, "complete"
    assert all(found)


def test_a_range_of_few_values_tells_of_each_text_that_is_made_of_one():
    schema, made = pa.schema([("a", pa.int64())]), pa.schema([("text", pa.string())])
    following = Following(lines_of(schema), lines_of(made), (), [COMPUTED["text"][0]])
    line = lines_of(made)["text"]

    def told(*pattern):
        boxes = following.add(
            [Pattern.where(schema, [pattern])],
            lambda _, places: {place: line.place(f"n{place}") for place in places},
        )
        return [line.value(box["text"][0]) for box in boxes]

    assert told("a", "in", (3, 4, 5)) == ["n3", "n4", "n5"]
    assert told("a", "between", (7, 8)) == ["n7", "n8"]
    assert told("a", "<", 0) == []


@PROPERTY
@given(streams(ONE, 5))
def test_distinct(stream):
    check(SetOperator("distinct"), definition.distinct, [stream], stream.schema)


def summed(rows):
    present = [row["c"] for row in rows if row["c"] is not None]
    return {
        "sum": sum(present) if present else None,
        "count": len(rows),
        "least": min(present, default=None),
        "last": rows[-1]["c"] if rows else None,
    }


SUMMED = (
    ("sum", AggregateSpec("sum", "c", pa.int64())),
    ("count", AggregateSpec("count_star", None, pa.int64())),
    ("least", AggregateSpec("min", "c", pa.int64())),
    ("last", AggregateSpec("last", "c", pa.int64())),
)


@PROPERTY
@given(streams(THREE, 5), st.sampled_from([["a"], ["b"], ["b", "a"], []]))
def test_group(stream, names):
    schema = pa.schema(
        [stream.schema.field(name) for name in names] + [(out, spec.result_type) for out, spec in SUMMED]
    )
    operator = GroupOperator(tuple((name, name) for name in names), SUMMED)
    check(operator, partial(definition.group, names=names, aggregated=summed), [stream], schema)


def spread(rows):
    present = sorted(row["c"] for row in rows if row["c"] is not None)
    middle = len(present) // 2
    median = None
    if present:
        median = float(present[middle]) if len(present) % 2 else (present[middle - 1] + present[middle]) / 2
    return {"median": median, "different": len(set(present)), "count": len(rows)}


@settings(PROPERTY, max_examples=30)
@given(streams(THREE, 4), st.sampled_from([["a"], []]))
def test_a_group_whose_aggregates_need_its_rows_keeps_them(stream, names):
    spreads = (
        ("median", AggregateSpec("median", "c", pa.float64())),
        ("different", AggregateSpec("count_distinct", "c", pa.int64())),
        ("count", AggregateSpec("count_star", None, pa.int64())),
    )
    schema = pa.schema(
        [stream.schema.field(name) for name in names] + [(out, spec.result_type) for out, spec in spreads]
    )

    def meaning(given_):
        meant = definition.group(given_, names, spread)
        closed = [definition.closed(given_, definition.only(row, names)) for row in given_.rows]
        members = closed.count(False)
        return definition.Meaning(meant.passed, (*meant.retained, members), meant.is_excluded)

    check(GroupOperator(tuple((name, name) for name in names), spreads), meaning, [stream], schema)


KEYS = [
    [Key("a")],
    [Key("a", nulls_first=False)],
    [Key("a", descending=True, nulls_first=False)],
    [Key("b", descending=True)],
    [Key("b"), Key("a", descending=True)],
    [Key("a"), Key("b", nulls_first=False)],
]


@settings(PROPERTY, max_examples=80)
@given(streams(ONE, 5), st.sampled_from(KEYS))
def test_sort(stream, keys):
    stream = replace(stream, values=ORDERED)
    operator = SortOperator(tuple(SortKey(key.name, key.descending, key.nulls_first) for key in keys))
    check(operator, partial(definition.sort, keys=keys), [stream], stream.schema, in_order=len(keys) == 2)


@settings(PROPERTY, max_examples=60)
@given(streams(ONE, 5), st.sampled_from(KEYS), st.integers(0, 3), st.integers(0, 4))
def test_the_first_rows_of_an_order(stream, keys, offset, limit):
    """They are those that all of it has there, at the same steps; no more are kept than may be among them."""
    stream = replace(stream, values=ORDERED)
    by = tuple(SortKey(key.name, key.descending, key.nulls_first) for key in keys)
    whole, part = SortOperator(by), SortOperator(by, (), offset, limit)
    carries, every, found, told = [None, None], [], [], Cover(lines_of(stream.schema))
    for number in range(len(stream.pieces)):
        all_of_it, carries[0] = whole.advance(carries[0], stream.step(number))
        step, carries[1] = part.advance(from_stored(stored(carries[1])), stream.step(number))
        every += all_of_it.rows.to_pylist()
        found += step.rows.to_pylist()
        assert found == every[offset : offset + limit]
        missing = max(offset + limit - len(every), 0)
        assert carries[1].retained == (min(carries[0].retained[0], missing),)
        for pattern in step.punctuations:
            told.add(pattern)
        assert missing or told.covers({})


def numbered(rows):
    """Back to the beginning: how many rows there are up to each; and the last value before it."""
    return [{**one, "number": at + 1} for at, one in enumerate(of_the_last(rows))]


def running(rows):
    """What goes on from totals: how many rows there are up to each, and the greatest value."""
    values = [[row["c"] for row in rows[: at + 1] if row["c"] is not None] for at in range(len(rows))]
    return [
        {"number": at + 1, "before": max(own, default=None), "whole": sum(own) if own else None}
        for at, own in enumerate(values)
    ]


def of_the_last(rows):
    values = [None, *(row["c"] for row in rows)]
    return [{"number": None, "before": value, "whole": None} for value in values[:-1]]


def of_all(rows):
    return [{"number": None, "before": None, "whole": len(rows)} for _ in rows]


@settings(PROPERTY, max_examples=60)
@pytest.mark.parametrize(
    ("computed", "looks_back", "reach"),
    [(numbered, True, None), (running, True, None), (of_the_last, True, 1), (of_all, False, None)],
)
@given(
    streams(THREE, 5),
    st.sampled_from([["b"], [], ["b", "c"]]),
    st.sampled_from([[Key("a")], [Key("a", descending=True, nulls_first=False)], [Key("c"), Key("a")]]),
)
def test_over(computed, looks_back, reach, stream, names, keys):
    stream = replace(stream, values=ORDERED)
    kinds = [("number", pa.int64()), ("before", pa.int64()), ("whole", pa.int64())]

    def compute(rows):
        found, part = [], []
        for row in rows.to_pylist():
            if part and tupled(part[-1], names) != tupled(row, names):
                found, part = found + computed(part), []
            part.append(row)
        return pa.Table.from_pylist(found + computed(part), pa.schema(kinds))

    by = tuple(SortKey(key.name, key.descending, key.nulls_first) for key in keys)
    totals = (("number", "sum"), ("before", "max"), ("whole", "sum")) if computed is running else None
    meaning = partial(
        definition.over, names=names, keys=keys, computed=computed, looks_back=looks_back, reach=reach,
        has_totals=totals is not None,
    )  # fmt: skip
    schema = pa.schema([*stream.schema, *kinds])
    check(
        OverOperator(tuple(names), by, looks_back, reach, compute, totals),
        meaning,
        [stream],
        schema,
        exact=False,
    )


def test_totals_take_the_place_of_rows_that_an_earlier_version_retained():
    schema = pa.schema([("k", pa.int64()), ("at", pa.int64()), ("v", pa.int64())])

    def compute(rows):
        found, part = [], []
        for row in rows.to_pylist():
            part = [*part, row] if part and part[-1]["k"] == row["k"] else [row]
            found.append({"s": sum(one["v"] for one in part)})
        return pa.Table.from_pylist(found, pa.schema([("s", pa.int64())]))

    def come(*rows, bound):
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        lines = lines_of(schema)
        before = (lines["at"].first, lines["at"].places(pa.chunked_array([[bound]])).tolist()[0])
        return Delta(table, tuple(Pattern.of_region({"at": span}, lines) for span in (NULL, before)))

    before = OverOperator(("k",), (SortKey("at"),), True, None, compute)
    now = replace(before, totals=(("s", "sum"),))
    _, carry = before.advance(None, come((1, 1, 5), (1, 2, 7), (2, 1, 1), bound=3))
    assert carry.retained == (0, 3)
    step, carry = now.advance(from_stored(stored(carry)), come((1, 3, 2), (2, 4, 4), bound=5))
    assert [row["s"] for row in step.rows.to_pylist()] == [14, 5]
    assert carry.retained == (0, 2)


@settings(PROPERTY, max_examples=160)
@given(
    streams({"a": "int", "b": "flag"}, 5, nulls=False),
    st.integers(0, 2),
    st.sampled_from([None, 1, 2, 3]),
    st.sampled_from([["b"], []]),
)
def test_session(stream, gap, longest, names):
    stream = replace(stream, values={**ORDERED, "int": [-2, -1, 0, 1, 2, 3]})
    made = pa.schema([("begin", pa.int64()), ("end", pa.int64())])

    def compute(rows):
        found, last = [], None
        for row in rows.to_pylist():
            at, is_first = row["a"], last is None or tupled(row, names) != tupled(last, names)
            is_cut = longest is not None and not is_first and at - found[-1]["begin"] >= longest
            if is_first or is_cut or at - last["a"] > gap:
                found.append({"begin": at})
            else:
                found.append(found[-1])
            last, found[-1]["end"] = row, at + gap
            if longest is not None:
                found[-1]["end"] = min(at + gap, found[-1]["begin"] + longest)
        return pa.Table.from_pylist(found, made)

    meaning = partial(definition.session, names=names, time="a", gap=gap, longest=longest)
    operator = SessionOperator(tuple(names), "a", gap, ("begin", "end"), compute, longest)
    schema = pa.schema([*stream.schema, *made])
    further = {"begin": "int", "end": "int"}
    check(operator, meaning, [stream], schema, exact=False, further=further)


WAITING = [([{"a": 1, "b": "a"}], [[("a", "=", 1), ("b", "=", "a")]]), ([], [[]])]
"""A row, and at once the promise that none as it comes again, by two columns."""


def is_pair(row):
    """A condition on both sides."""
    return (row["b"] == "a") == row["d"]


@settings(PROPERTY, max_examples=12)
@pytest.mark.parametrize("condition", [None, is_pair])
@pytest.mark.parametrize("kind", KINDS)
@given(streams(ONE, 4), streams(OTHER, 4))
@example(Stream(ONE, WAITING), Stream(OTHER, [([], []), ([], [[]])]))
def test_join(kind, condition, left, right):
    schema = left.schema if kind in ("semi", "anti") else pa.schema([*left.schema, *right.schema])
    schema = schema if kind != "mark" else left.schema.append(pa.field("m", pa.bool_()))
    meaning = partial(definition.join, on=[("a", "c")], kind=kind, condition=condition)
    # what is one pattern to the definition may be several to the kernel, of which some wait for no row
    holds = condition and (lambda pairs: np.array([condition(row) for row in pairs.to_pylist()], bool))
    check(SymmetricJoin((("a", "c"),), kind, holds, "m"), meaning, [left, right], schema, exact=False)


@settings(PROPERTY, max_examples=15)
@pytest.mark.parametrize("operator", ["union all", *sorted(set(OPERATORS) - {"distinct"})])
@given(streams(ONE, 4), streams(ONE, 4))
def test_set_operators(operator, left, right):
    meaning = partial(definition.set_operator, operator=operator)
    check(SetOperator(operator), meaning, [left, right], left.schema)


def test_prefixes_of_an_order_over_a_domain():
    """[2, 4] and then [0, 3] give what is up to 4 where hours are never negative, and nothing otherwise."""
    schema = pa.schema([("hour", pa.int32())])
    rows = pa.table({"hour": pa.array([4, 0, 5, 3, 2], pa.int32())})
    late, early = (Pattern.where(schema, [("hour", "between", ends)]) for ends in ((2, 4), (0, 3)))
    domain = tuple(Pattern.outside(schema, [("hour", ">=", 0)]))
    for known, wanted in ((domain, [0, 2, 3, 4]), ((), [])):
        operator = SortOperator((SortKey("hour"),), known)
        first, carry = operator.advance(None, Delta(rows, (late,)))
        assert first.rows.num_rows == 0
        second, carry = operator.advance(carry, Delta(rows.slice(0, 0), (early,)))
        assert second.rows.column("hour").to_pylist() == wanted
        assert carry.retained == (5 - len(wanted),)
    assert [str(pattern) for pattern in second.punctuations] == []


def test_a_plan_gives_its_groups_by_punctuation_alone():
    """join → group → except: several patterns close a group together, and nothing is kept in the end."""
    bids = pa.schema([("auction", pa.int64()), ("hour", pa.int64()), ("price", pa.int64())])
    auctions = pa.schema([("id", pa.int64()), ("item", pa.string())])
    join = SymmetricJoin((("auction", "id"),))
    group = GroupOperator((("auction", "auction"),), (("high", AggregateSpec("max", "price", pa.int64())),))
    except_ = SetOperator("except")
    carries = [None] * 3

    def step(schema, rows=(), patterns=()):
        table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
        return Delta(table, tuple(Pattern.where(schema, pattern) for pattern in patterns))

    def advance(bid_patterns=(), auction_patterns=(), bar_patterns=(), *, rows=((), (), ())):
        joined, carries[0] = join.advance(
            carries[0], step(bids, rows[0], bid_patterns), step(auctions, rows[1], auction_patterns)
        )
        grouped, carries[1] = group.advance(carries[1], joined)
        barred = step(grouped.rows.schema, rows[2], bar_patterns)
        given_, carries[2] = except_.advance(carries[2], grouped, barred)
        return [tuple(row.values()) for row in given_.rows.to_pylist()], given_.punctuations

    rows, _ = advance(
        rows=([(1, 10, 5), (1, 11, 7), (2, 10, 3)], [(1, "pen"), (2, "ink")], [(2, 3)]),
        bar_patterns=[[("auction", "<=", 2)]],
    )
    assert rows == []
    # each auction is listed once; bids on 1 end before noon, and later ones do not come either
    assert advance(auction_patterns=[[("id", "in", (1, 2))]])[0] == []
    assert advance(bid_patterns=[[("auction", "=", 1), ("hour", "<", 12)]])[0] == []
    assert advance(bid_patterns=[[("auction", "=", 1), ("hour", ">=", 12)]])[0] == []
    rows, told = advance(bid_patterns=[[("auction", "=", 1), ("hour", "is null")]])
    assert rows == [(1, 7)]
    assert [str(pattern) for pattern in told] == ["auction = 1"]
    rows, told = advance(bid_patterns=[[("auction", "=", 2)]])
    assert rows == [], "(2, 3) is barred"
    assert [str(pattern) for pattern in told] == ["auction = 2"]
    assert [carry.retained for carry in carries] == [(0, 0), (0,), (0,)]
    assert advance(bid_patterns=[[]], auction_patterns=[[]], bar_patterns=[[]])[1] == (EVERYTHING,)


@pytest.mark.parametrize("keys", [100, 20_000])
def test_a_punctuation_looks_at_one_key_however_many_are_kept(keys, monkeypatch):
    schema = pa.schema([("auction", pa.int64()), ("price", pa.int64())])
    operator = GroupOperator(
        (("auction", "auction"),), (("high", AggregateSpec("max", "price", pa.int64())),)
    )
    numbers = np.arange(keys)
    empty = schema.empty_table()
    _, carry = operator.advance(None, Delta(pa.table({"auction": numbers, "price": numbers})))
    first, carry = operator.advance(carry, Delta(empty, (Pattern.where(schema, [("auction", "=", 7)]),)))
    assert first.rows.to_pylist() == [{"auction": 7, "high": 7}]
    looked = []
    real = np.flatnonzero
    monkeypatch.setattr(np, "flatnonzero", lambda of: looked.append(len(of)) or real(of))
    second, carry = operator.advance(carry, Delta(empty, (Pattern.where(schema, [("auction", "=", 9)]),)))
    assert second.rows.to_pylist() == [{"auction": 9, "high": 9}]
    assert sum(looked) < 50
    assert carry.retained == (keys - 2,)


def test_the_right_side_of_a_set_operator_has_names_of_its_own():
    left, right = (pa.schema([(name, pa.int64())]) for name in ("a", "x"))
    step, carry = SetOperator("except").advance(
        None,
        Delta(pa.table({"a": [1, 2, 3]})),
        Delta(pa.table({"x": [2]}), (Pattern.where(right, [("x", "<", 3)]),)),
    )
    assert step.rows.to_pydict() == {"a": [1]}
    assert step.punctuations == ()
    step, carry = SetOperator("except").advance(
        carry, Delta(left.empty_table(), (Pattern.where(left, [("a", "<", 9)]),)), Delta(right.empty_table())
    )
    assert [str(pattern) for pattern in step.punctuations] == ["a < 3"]
    assert carry.retained == (1,), "3 is undecided"


@PROPERTY
@given(streams(ONE, 3), streams(OTHER, 3))
def test_a_flow_gives_the_finished_answer_and_keeps_nothing(left, right):
    """The keys of a join that are not among those of flagged rows, each once; a restart after each step."""
    count = AggregateSpec("count_star", None, pa.int64())

    def flagged(table):
        return np.array([row["d"] is True for row in table.to_pylist()], bool)

    graph = OperatorGraph(
        (
            OperatorNode("join", SymmetricJoin((("a", "c"),)), ("left", "right")),
            OperatorNode("group", GroupOperator((("a", "a"),), (("n", count),)), (0,)),
            OperatorNode("keys", ProjectOperator((("a", "a"),)), (1,)),
            OperatorNode("flagged", FilterOperator(flagged), ("right",)),
            OperatorNode("barred", ProjectOperator((("c", "c"),)), (3,)),
            OperatorNode("except", SetOperator("except"), (2, 4)),
        )
    )
    carry, found = None, []
    for number in range(len(left.pieces)):
        carry = from_stored(stored(carry))
        step, carry = graph.advance(carry, {"left": left.step(number), "right": right.step(number)})
        found += step.rows.column("a").to_pylist()
    whole = [stream.so_far(len(stream.pieces)) for stream in (left, right)]
    joined = {one["a"] for one in whole[0].rows} & {other["c"] for other in whole[1].rows} - {None}
    barred = {row["c"] for row in whole[1].rows if row["d"]}
    assert Counter(found) == Counter(joined - barred)
    assert sum(map(sum, carry.retained)) == 0

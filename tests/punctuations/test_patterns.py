"""Patterns, what several of them cover, and which rows match: held to comparing row by row."""

from __future__ import annotations

import datetime
import itertools
import pickle
from decimal import Decimal
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.punctuations.patterns import CONSTANTS, KINDS, UNIVERSE, conditions, rows
from windrow.errors import WindrowError
from windrow.kernels.hashing import hashes
from windrow.kernels.reference.punctuation import InputSoFar, closed, excluded, matches
from windrow.punctuations import Closing, Cover, Pattern, index, lines_of
from windrow.punctuations.index import NEVER, Columns, Index
from windrow.punctuations.pattern import put_together
from windrow.punctuations.regions import outside
from windrow.punctuations.spans import Spans

KIND = st.sampled_from(sorted(KINDS))


@st.composite
def cases(draw, most: int = 6, columns: int = 2):
    """A schema of few columns, its universe, and patterns over it."""
    kinds = draw(st.lists(KIND, min_size=1, max_size=columns))
    names = [f"c{place}" for place in range(len(kinds))]
    schema = pa.schema([(name, KINDS[kind]) for name, kind in zip(names, kinds, strict=True)])
    universe = {name: UNIVERSE[kind] for name, kind in zip(names, kinds, strict=True)}
    constants = {name: CONSTANTS[kind] for name, kind in zip(names, kinds, strict=True)}
    told = draw(st.lists(conditions(constants), min_size=1, max_size=most))
    return schema, universe, told


def holding(schema: pa.Schema, found: Pattern, universe: dict) -> list[bool]:
    """Of each row of the universe whether a pattern has it, as the pattern's own values tell."""

    def has(row) -> bool:
        return all(
            own.contains(None if row[name] is None else own.line.place(row[name]))
            for name, own in found.columns
        )

    return [has(row) for row in rows(schema, universe)]


@settings(deadline=None, max_examples=100)
@given(cases())
def test_a_pattern_has_the_rows_for_which_its_comparisons_hold(case):
    schema, universe, told = case
    for one in told:
        pattern = Pattern.where(schema, one)
        wanted = [matches(row, one) for row in rows(schema, universe)]
        assert holding(schema, pattern, universe) == wanted
        assert pattern.is_empty <= (not any(wanted))
        assert Pattern.from_json(pattern.to_json(), schema) == pattern
        assert pickle.loads(pickle.dumps(pattern)) == pattern
        for name, own in pattern.columns:
            opposite = Pattern.of({name: ~own})
            only = [condition for condition in one if condition[0] == name]
            assert holding(schema, opposite, universe) == [
                not matches(row, only) for row in rows(schema, universe)
            ]


@settings(deadline=None, max_examples=100)
@given(cases())
def test_patterns_put_together_have_the_same_rows_in_fewer_patterns(case):
    schema, universe, told = case
    patterns = [Pattern.where(schema, one) for one in told]
    found = put_together(patterns)

    def has(some: list[Pattern]) -> list[bool]:
        each = [holding(schema, one, universe) for one in some]
        return [any(of_row) for of_row in zip(*each, strict=True)]

    assert has(found) == has(patterns)
    assert len(found) <= len(patterns)
    alone = [pattern.names for pattern in found if len(pattern.names) == 1]
    assert len(alone) == len(set(alone))


@settings(deadline=None, max_examples=100)
@given(cases())
def test_meeting_and_implying_are_those_of_the_rows(case):
    schema, universe, told = case
    one, other = Pattern.where(schema, told[0]), Pattern.where(schema, told[-1])
    mine, theirs = holding(schema, one, universe), holding(schema, other, universe)
    assert holding(schema, one & other, universe) == [a and b for a, b in zip(mine, theirs, strict=True)]
    # the universe has no row where a pattern is empty without being seen to be
    assert (one <= other) == all(b for a, b in zip(mine, theirs, strict=True) if a)


@settings(deadline=None, max_examples=150)
@given(cases(), st.data())
def test_a_cover_has_the_rows_of_its_patterns_however_they_are_combined(case, data):
    schema, universe, told = case
    cover, lines = Cover(lines_of(schema)), lines_of(schema)
    all_rows = rows(schema, universe)
    table = pa.Table.from_pylist(all_rows, schema)
    for number, one in enumerate(told, 1):
        known = [excluded(row, told[: number - 1]) for row in all_rows]
        says = [matches(row, one) for row in all_rows]
        pattern = Pattern.where(schema, one)
        is_known = all(a for a, b in zip(known, says, strict=True) if b)
        assert all(map(cover.covers, pattern.regions())) == is_known
        assert bool(cover.add(pattern)) == (not is_known)
        if data.draw(st.booleans()):
            wanted = [excluded(row, told[:number]) for row in all_rows]
            assert cover.matches(table).tolist() == wanted
            assert Index(list(cover), lines).matches(Columns(table, lines)).tolist() == wanted
    assert not outside((box for one in told for box in Pattern.where(schema, one).regions()), cover, lines)


@settings(deadline=None, max_examples=100)
@given(cases(), st.data())
def test_the_earliest_pattern_of_each_row_is_found(case, data):
    schema, universe, told = case
    since = [data.draw(st.integers(0, 4)) for _ in told]
    boxes, of = [], []
    for one, instant in zip(told, since, strict=True):
        for box in Pattern.where(schema, one).regions():
            boxes.append(box)
            of.append(instant)
    all_rows = rows(schema, universe)
    table = pa.Table.from_pylist(all_rows, schema)
    few = data.draw(st.sampled_from([0, 1, 8]))  # ends with which texts are compared one by one
    with patch.object(index, "_MOST_COMPARED", few):
        found = Index(boxes, lines_of(schema), of).earliest(Columns(table, lines_of(schema)))
    wanted = [
        min((at for one, at in zip(told, since, strict=True) if matches(row, one)), default=NEVER)
        for row in all_rows
    ]
    assert found.tolist() == wanted


@settings(deadline=None, max_examples=150)
@given(cases(most=8, columns=3), st.data())
def test_values_are_closed_when_every_row_with_them_is_promised(case, data):
    schema, universe, told = case
    kept = data.draw(st.lists(st.sampled_from(schema.names), unique=True))
    closing = Closing(lines_of(schema), kept)
    chosen = pa.schema([schema.field(name) for name in kept])
    keys = rows(chosen, universe)
    table = pa.Table.from_pylist(keys, chosen) if kept else pa.table({"": [0]})
    before = [False] * len(keys)
    for number, one in enumerate(told, 1):
        news = closing.add([Pattern.where(schema, one)])
        given_ = InputSoFar([], told[:number], universe)
        wanted = [closed(given_, key) for key in keys]
        assert closing.closed.matches(table).tolist() == wanted
        told_now = Index(news, lines_of(schema)).matches(Columns(table, lines_of(schema)))
        assert [a or b for a, b in zip(before, told_now, strict=True)] == wanted
        before = wanted


VALUES = [
    (pa.int32(), 5),
    (pa.float32(), 1.5),
    (pa.decimal128(10, 2), Decimal("12.34")),
    (pa.decimal128(38, 0), Decimal(10**37)),
    (pa.decimal128(38, 4), Decimal("-123456789012345678901234567.8901")),
    (pa.date32(), datetime.date(1969, 12, 31)),
    (pa.timestamp("us"), datetime.datetime(2026, 1, 31, 10)),
    (pa.timestamp("us", "UTC"), datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)),
    (pa.time64("us"), datetime.time(10, 30)),
    (pa.duration("us"), datetime.timedelta(days=-1)),
    (pa.binary(), b"\xff\0"),
    (pa.large_string(), "größer"),
    (pa.dictionary(pa.int32(), pa.string()), "a"),
    (pa.uint8(), 255),
]


@pytest.mark.parametrize(("kind", "value"), VALUES, ids=str)
def test_values_of_every_type_match_themselves_alone(kind, value):
    schema = pa.schema([("c", kind)])
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    pattern = Pattern.where(pa.schema([("c", plain)]), [("c", "=", value)])
    (box,) = pattern.regions()
    lines = lines_of(schema)
    table = pa.table({"c": pa.array([value, None, value], plain).cast(kind)})
    assert Index([box], lines).matches(Columns(table, lines)).tolist() == [True, False, True]
    below = Pattern.where(pa.schema([("c", plain)]), [("c", "<", value)])
    assert Index([*below.regions()], lines).matches(Columns(table, lines)).tolist() == [False] * 3
    assert Pattern.from_json(pattern.to_json(), pa.schema([("c", plain)])) == pattern
    ((_, own),) = pattern.columns
    assert own.line.value(own.spans[0][0]) == value
    again = pa.table({"c": own.line.array([own.spans[0][0], None, own.spans[0][0]])})
    assert again.equals(table.cast(again.schema))
    assert hashes(again, ["c"]).tolist() == hashes(table, ["c"]).tolist()


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.int64(), 1.5),
        (pa.int8(), 128),
        (pa.int64(), True),
        (pa.bool_(), 1),
        (pa.date32(), datetime.datetime(2026, 1, 1, 10)),
        (pa.timestamp("us"), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)),
        (pa.decimal128(5, 2), Decimal("1.234")),
        (pa.string(), 5),
    ],
    ids=str,
)
def test_a_value_that_is_not_of_the_type_is_refused(kind, value):
    with pytest.raises(WindrowError) as caught:
        Pattern.where(pa.schema([("c", kind)]), [("c", "=", value)])
    assert caught.value.condition == "INVALID_VALUE"


def test_a_type_without_an_order_is_refused():
    with pytest.raises(WindrowError) as caught:
        Pattern.where(pa.schema([("c", pa.list_(pa.int64()))]), [("c", "is null")])
    assert caught.value.condition == "UNSUPPORTED_TYPE"


SCHEMA = pa.schema([("auction", pa.int64()), ("item", pa.string())])


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ([], "TRUE"),
        ([("auction", "=", 42)], "auction = 42"),
        (
            [("auction", "between", (2, 4)), ("item", "is null")],
            "auction >= 2 AND auction < 5 AND item IS NULL",
        ),
        ([("item", "in", ("b", "a"))], "item IN ('a', 'b')"),
        ([("item", ">=", "a")], "item >= 'a'"),
    ],
)
def test_patterns_are_shown_as_conditions(told, shown):
    assert str(Pattern.where(SCHEMA, told)) == shown


def test_keys_that_follow_each_other_are_one_range():
    cover = Cover(lines_of(SCHEMA))
    for auction in (3, 1, 2, 5, 4):
        assert cover.add(Pattern.where(SCHEMA, [("auction", "=", auction)]))
    assert list(cover) == [{"auction": (1, 6)}]
    assert not cover.add(Pattern.where(SCHEMA, [("auction", "between", (2, 4)), ("item", "=", "x")]))


def test_what_a_new_pattern_implies_is_forgotten():
    cover = Cover(lines_of(SCHEMA))
    for item in "abc":
        cover.add(Pattern.where(SCHEMA, [("auction", "=", 1), ("item", "=", item)]))
    cover.add(Pattern.where(SCHEMA, [("auction", "<", 1)]))
    assert len(cover) == 4
    cover.add(Pattern.where(SCHEMA, [("auction", "<", 10)]))
    assert list(cover) == [{"auction": (-(2**63), 10)}]


@pytest.mark.parametrize("keys", [100, 10_000])
def test_a_punctuation_of_a_key_touches_one_key(keys, monkeypatch):
    """However many there are: what a cover looks at is counted."""
    cover = Cover(lines_of(SCHEMA))
    for auction in range(0, 2 * keys, 2):
        cover.add_region({"auction": (auction, auction + 1)})
    seen = []
    real = Cover.overlapping

    def overlapping(self, box):
        for each in real(self, box):
            seen.append(each)
            yield each

    monkeypatch.setattr(Cover, "overlapping", overlapping)
    assert cover.add_region({"auction": (keys + 1, keys + 2)})
    assert cover.covers({"auction": (keys, keys + 3)})
    assert not cover.covers({"auction": (keys - 1, keys + 9)})
    assert len(seen) < 10


def test_many_rows_are_matched_against_many_patterns_at_once():
    random = np.random.default_rng(3)
    closed_ = random.choice(100_000, 20_000, replace=False)
    lines = lines_of(SCHEMA)
    boxes = [{"auction": (int(key), int(key) + 1)} for key in closed_]
    auctions = random.integers(0, 100_000, 200_000)
    table = pa.table({"auction": auctions, "item": pa.nulls(len(auctions), pa.string())})
    found = Index(boxes, lines).matches(Columns(table, lines))
    assert found.tolist() == np.isin(auctions, closed_).tolist()


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 60), st.integers(1, 8)), max_size=60))
def test_spans_are_the_places_that_were_added_and_not_forgotten_whole(changes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("windrow.punctuations.spans._CHUNK", 3)
        spans, places = Spans(), set()
        for is_added, first, length in changes:
            if is_added:
                spans.add(first, first + length)
                places |= {*range(first, first + length)}
            else:
                within = [span for span in spans if first <= span[0] and span[1] <= first + length]
                spans.forget(first, first + length)
                places -= {place for span in within for place in range(*span)}
            found = list(spans)
            assert {place for span in found for place in range(*span)} == places
            assert all(one[1] < other[0] for one, other in itertools.pairwise(found))
            for probe in (first - 1, first, first + length):
                wanted = [span for span in found if span[0] < probe + 2 and probe < span[1]]
                assert list(spans.overlapping(probe, probe + 2)) == wanted
        assert bool(spans) == bool(places)

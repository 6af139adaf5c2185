"""The clock of a stream: its rules one by one, and that the fast form gives what the definition gives."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.punctuations.patterns import conditions
from windrow.errors import InputError, UsageError
from windrow.punctuations import Cover, Pattern, lines_of
from windrow.streams.admission import batch_watermark
from windrow.streams.admission.batch_watermark import advance
from windrow.streams.admission.future import Future
from windrow.streams.admission.watermark import Ordering, RunningWatermark, WatermarkState, decide
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, Entries, EntryKind

ROW, BOUND, WATERMARK, OPEN, IDLE, CLOSE, PATTERN, TICK = EntryKind
ADMITTED, LATE, REJECTED = Decision.ADMITTED, Decision.LATE, Decision.REJECTED
ECLIPSED, QUARANTINED = Decision.ECLIPSED, Decision.QUARANTINED


class Log:
    """A stream to which entries are added one after the other; times are of hours and minutes."""

    def __init__(self, ordering: Ordering | None = None) -> None:
        self.running = RunningWatermark(WatermarkState(), ordering or Ordering.ordered())
        self.ptime = 0

    def add(self, kind: EntryKind, producer: str, at: int = 0) -> Decision:
        self.ptime += 1
        return self.running.process(kind, producer, at, self.ptime)[0]

    @property
    def watermark(self) -> int | None:
        return self.running.state.value


def test_the_worked_example_of_the_reference():
    log = Log()
    assert log.watermark is None
    assert log.add(BOUND, "P1", 1000) == ADMITTED
    assert log.watermark is None, "no actual row has been inserted yet"
    assert log.add(ROW, "P1", 1000) == ADMITTED
    assert log.watermark == 1000
    assert log.add(BOUND, "P2", 1005) == ADMITTED
    assert log.add(ROW, "P2", 1005) == ADMITTED
    assert log.watermark == 1000, "P2's row waits: P1 may still have earlier rows"
    assert log.add(ROW, "P2", 959) == REJECTED
    assert log.watermark == 1000
    log.add(CLOSE, "P1")
    assert log.watermark == 1005, "the departure of P1 lets the stream advance"
    log.add(CLOSE, "P2")
    assert log.watermark == 1005, "the stream remembers"
    assert log.add(ROW, "P3", 1004) == REJECTED
    assert log.add(ROW, "P3", 1005) == ADMITTED


def test_the_first_row_may_have_any_rowtime_and_the_next_is_not_before_it():
    log = Log()
    assert log.add(ROW, "P1", -5) == ADMITTED
    assert log.watermark == -5
    assert log.add(ROW, "P1", -6) == REJECTED
    assert log.add(ROW, "P2", -6) == REJECTED
    assert log.add(ROW, "P2", -5) == ADMITTED


def test_a_newcomer_may_enter_ahead_of_rows_that_wait():
    log = Log()
    for kind, producer, at in ((ROW, "P1", 1000), (ROW, "P2", 1000), (ROW, "P1", 1010)):
        log.add(kind, producer, at)
    assert log.watermark == 1000
    assert log.add(ROW, "P3", 1005) == ADMITTED, "P1's row at 10:10 waits for P2"
    assert log.add(ROW, "P4", 959) == REJECTED


def test_a_newcomer_holds_the_stream_back_at_the_clock():
    log = Log()
    log.add(ROW, "P1", 1000)
    log.add(OPEN, "P2")
    log.add(ROW, "P1", 1010)
    assert log.watermark == 1000
    log.add(BOUND, "P2", 1007)
    assert log.watermark == 1007


def test_a_producer_that_is_refused_does_not_enter():
    log = Log()
    log.add(ROW, "P1", 1000)
    assert log.add(ROW, "P2", 900) == REJECTED
    log.add(ROW, "P1", 1010)
    assert log.watermark == 1010
    assert "P2" not in log.running.state.producers


def test_bounds_are_withheld_before_the_first_row():
    log = Log()
    log.add(BOUND, "P1", 1200)
    log.add(CLOSE, "P1")
    assert log.watermark is None
    assert log.add(ROW, "P2", 900) == ADMITTED


def test_a_stream_is_over_without_a_row_when_all_have_promised_that_nothing_follows():
    log = Log()
    log.add(OPEN, "P2")
    log.add(BOUND, "P1", FOREVER)
    assert log.watermark is None, "P2 has promised nothing"
    log.add(BOUND, "P2", FOREVER)
    assert log.watermark == log.running.state.firm == FOREVER
    assert log.add(ROW, "P3", 900) == REJECTED
    log.add(CLOSE, "P1")
    assert log.watermark == FOREVER
    # an estimate of any size is no such promise
    log = Log()
    log.add(WATERMARK, "P1", FOREVER)
    assert log.watermark is None


def test_the_first_row_waits_for_producers_that_have_said_nothing():
    log = Log()
    log.add(OPEN, "P2")
    log.add(ROW, "P1", 1000)
    assert log.watermark is None
    assert log.add(ROW, "P2", 930) == ADMITTED
    assert log.watermark == 930


def test_a_later_bound_eclipses_the_earlier_and_none_goes_back():
    log = Log()
    log.add(ROW, "P1", 1000)
    assert log.add(BOUND, "P1", 1100) == ADMITTED
    assert log.add(BOUND, "P1", 1030) == ECLIPSED
    assert log.watermark == 1100
    assert log.add(ROW, "P1", 1030) == REJECTED
    assert log.running.process(ROW, "P1", 1059, 9) == (REJECTED, 1100)


def test_an_idle_producer_holds_nothing_back_and_returns_as_a_newcomer():
    log = Log()
    log.add(ROW, "P1", 1000)
    log.add(ROW, "P2", 1000)
    log.add(IDLE, "P1")
    log.add(ROW, "P2", 1010)
    assert log.watermark == 1010
    assert log.add(ROW, "P1", 1005) == REJECTED
    assert log.add(ROW, "P1", 1012) == ADMITTED
    log.add(ROW, "P2", 1020)
    assert log.watermark == 1012, "it is open again"


def test_an_idle_producer_is_held_to_its_promise_and_one_that_closed_is_forgotten():
    for kind, decision in ((IDLE, REJECTED), (CLOSE, ADMITTED)):
        log = Log()
        log.add(ROW, "P1", 1000)
        log.add(ROW, "P2", 1000)
        log.add(BOUND, "P1", 1200)
        log.add(kind, "P1")
        assert log.add(ROW, "P1", 1100) == decision


def test_when_all_have_left_the_rows_that_waited_are_let_go():
    for order in (("P1", "P2"), ("P2", "P1")):
        log = Log()
        log.add(ROW, "P1", 1000)
        log.add(ROW, "P2", 1005)
        for producer in order:
            log.add(CLOSE, producer)
        assert log.watermark == 1005


def test_a_promise_without_rows_is_not_remembered_when_all_have_left():
    log = Log()
    log.add(ROW, "P1", 1000)
    log.add(ROW, "P2", 1000)
    log.add(BOUND, "P2", 1200)
    log.add(CLOSE, "P2")
    log.add(CLOSE, "P1")
    assert log.watermark == 1000
    assert log.add(ROW, "P3", 1100) == ADMITTED


def test_rows_below_a_lag_are_late_and_rows_below_a_promise_are_rejected():
    log = Log(Ordering.lagging(5))
    log.add(ROW, "P1", 100)
    assert log.watermark == 95
    assert log.add(ROW, "P1", 95) == ADMITTED
    assert log.running.process(ROW, "P1", 94, 0) == (LATE, 95)
    log.add(BOUND, "P1", 90)
    assert log.running.process(ROW, "P1", 89, 0) == (REJECTED, 90)
    assert log.running.state.firm == 90
    assert log.add(WATERMARK, "P1", 110) == ADMITTED
    assert log.running.process(ROW, "P1", 109, 0) == (LATE, 110)
    assert log.watermark == 110


def test_a_newcomer_below_an_estimated_clock_is_late_and_below_a_promised_one_rejected():
    log = Log(Ordering.lagging(5))
    log.add(ROW, "P1", 100)
    log.add(BOUND, "P1", 90)
    assert log.running.process(ROW, "P2", 92, 0) == (LATE, 95)
    assert log.running.process(ROW, "P2", 89, 0) == (REJECTED, 90)


def test_a_lag_lets_idle_producers_go_on_where_they_were():
    log = Log(Ordering.lagging(5))
    log.add(ROW, "P1", 100)
    log.add(IDLE, "P1")
    assert log.watermark == 95
    assert log.add(ROW, "P1", 96) == ADMITTED


def test_unordered_rows_say_nothing():
    log = Log(Ordering.unordered())
    log.add(ROW, "P1", 100)
    assert log.add(ROW, "P1", 50) == ADMITTED
    assert log.watermark is None
    log.add(BOUND, "P1", 70)
    assert log.watermark == 70
    assert log.add(ROW, "P1", 69) == REJECTED


def test_open_producers_that_have_said_nothing_for_a_while_are_named():
    running = RunningWatermark(WatermarkState(), Ordering.ordered())
    running.process(ROW, "P1", 1, 1000)
    running.process(ROW, "P2", 1, 2000)
    running.process(OPEN, "P3", 0, 1500)
    running.process(IDLE, "P3", 0, 1500)
    assert running.state.silent(3000, 2000) == ["P1"]
    running.process(ROW, "P1", 0, 2900)
    assert running.state.silent(3000, 2000) == [], "a row that is rejected is a sign of life too"


def test_a_lag_is_not_negative():
    with pytest.raises(UsageError, match="INVALID_LAG"):
        Ordering.lagging(-1)


def test_a_state_of_another_version_is_refused():
    text = WatermarkState().to_json().replace('"version": 4', '"version": 5')
    with pytest.raises(InputError, match="CLOCK_VERSION"):
        WatermarkState.from_json(text)


def test_a_state_from_before_anything_was_quarantined_is_read():
    text = WatermarkState(admitted=3, at=7).to_json().replace('"version": 4', '"version": 3')
    for name in ("quarantined", "quarantined_bounds"):
        text = text.replace(f'"{name}": 0, ', "")
    assert "quarantined" not in text
    assert WatermarkState.from_json(text) == WatermarkState(admitted=3, at=7)


def test_what_is_too_far_ahead_of_its_processing_time_is_as_if_it_had_not_come():
    wary = replace(Ordering.lagging(5), future=Future(10, 1000))
    said = [
        (ROW, "P1", 1000, 1000, ADMITTED, NO_BOUND),
        (ROW, "P1", 1011, 1000, QUARANTINED, 1010),
        (BOUND, "P1", 1011, 1000, QUARANTINED, 1010),
        (WATERMARK, "P1", 9999, 1001, QUARANTINED, 1011),
        (PATTERN, "P1", 1012, 1001, QUARANTINED, 1011),
        (ROW, "P2", 1012, 1001, QUARANTINED, 1011),
        (ROW, "P1", 1011, 1001, ADMITTED, NO_BOUND),
        (ROW, "P1", 1005, 1001, LATE, 1006),
        (BOUND, "P1", FOREVER, 1001, ADMITTED, NO_BOUND),
    ]
    entries = Entries.of([one[:4] for one in said])
    entries = replace(
        entries,
        patterns=pa.array([None] * 4 + [Pattern.where(COLUMNS, [("at", "<", 1012)]).to_json()] + [None] * 4),
        rows=pa.Table.from_pylist([{"at": 0}] * len(said), COLUMNS),
    )
    for judge in (decide, advance):
        found = judge(WatermarkState(), wary, entries)
        assert found.decision.tolist() == [one[4] for one in said]
        assert found.violated.tolist() == [one[5] for one in said]
        state = found.state
        assert (state.quarantined, state.quarantined_bounds, state.refused) == (2, 3, 3)
        assert set(state.producers) == {"P1"}, "P2 has not entered"
        assert not state.patterns
        assert judge(WatermarkState(), wary, entries.part(0, 6)).state.producers["P1"].heard == 1000, (
            "no sign of life"
        )


@pytest.mark.parametrize(
    ("tick", "limit"),
    [
        (1, 1_000_000_001_999),
        (1000, 1_000_000_001),
        (1_000_000, 1_000_000),
        (10**9, 1000),
        (86_400 * 10**9, 0),
    ],
)
def test_how_far_ahead_is_in_ticks_of_the_rowtime(tick, limit):
    future = Future(1, tick)
    assert future.limits(np.array([10**9])).tolist() == [limit]
    extremes = future.limits(np.array([2**63 - 1, NO_BOUND]))
    assert extremes[0] >= limit > extremes[1], "no processing time overflows"
    assert (Future(2**63, tick).limits(np.array([2**62])) > 0).all()


def test_no_time_is_less_than_none():
    with pytest.raises(UsageError, match="INVALID_ARGUMENT"):
        Future(-1, 1000)


def test_rows_of_a_source_may_carry_bounds():
    entries = Entries.of_rows(
        np.array([5, 6, 7, 8]),
        np.array([1, 1, 2, 2]),
        pa.array(["a", "b", None, "a"]),
        pa.array([6, None, 9, 10], pa.int64()),
    )
    said = [
        (EntryKind(kind), entries.names[code], at, ptime)
        for kind, code, at, ptime in zip(entries.kind, entries.code, entries.at, entries.ptime, strict=True)
    ]
    assert said == [
        (ROW, "a", 5, 1),
        (BOUND, "a", 6, 1),
        (ROW, "b", 6, 1),
        (ROW, "", 7, 2),
        (BOUND, "", 9, 2),
        (ROW, "a", 8, 2),
        (BOUND, "a", 10, 2),
    ]
    alone = Entries.of_rows(np.array([5, 4]), np.array([1, 1]))
    assert advance(WatermarkState(), Ordering.ordered(), alone).decision.tolist() == [ADMITTED, REJECTED]


# -- any log -----------------------------------------------------------------------------------------

TICKS = st.one_of(st.integers(-3, 12), st.sampled_from([NO_BOUND, NO_BOUND + 1, 2**63 - 1, 2**63 - 2]))
TRUSTING = [Ordering.ordered(), Ordering.unordered(), Ordering.lagging(0), Ordering.lagging(3)]
WARY = [replace(one, future=Future(1, 1000)) for one in TRUSTING]
"""Entries more than a tick ahead of their processing time are quarantined."""
ORDERINGS = [*TRUSTING, *WARY]


@st.composite
def logs(draw: st.DrawFn) -> Entries:
    """Few structural entries among many rows, that rise, or mostly do, or anything at all."""
    producers = [f"p{number}" for number in range(draw(st.integers(1, 5)))]
    kinds = draw(
        st.sampled_from(
            [
                [ROW],
                [ROW] * 8 + [BOUND],
                [ROW] * 6 + [BOUND, WATERMARK, IDLE, CLOSE, OPEN],
                [kind for kind in EntryKind if kind != PATTERN],
            ]
        )
    )
    falls = draw(st.sampled_from([0, 3, None]))
    items = []
    for number in range(draw(st.integers(0, 40))):
        at = draw(TICKS) if falls is None else number // 2 + draw(st.integers(-falls, falls and 2))
        items.append((draw(st.sampled_from(kinds)), draw(st.sampled_from(producers)), at, number // 3))
    return Entries.of(items)


COLUMNS = pa.schema([("at", pa.int64()), ("key", pa.int8()), ("name", pa.string())])
CONSTANTS = {"at": [0, 3, 8], "key": [0, 1, 2], "name": ["a", "b"]}


def opening(entries: Entries) -> Entries:
    """The same, where no producer that is not open says anything but that it opens."""
    opened, items = set(), []
    for kind, code, at, ptime in zip(entries.kind, entries.code, entries.at, entries.ptime, strict=True):
        name = entries.names[code]
        if kind in (IDLE, CLOSE):
            opened.discard(name)
        elif name not in opened:
            opened.add(name)
            kind = OPEN
        items.append((EntryKind(kind), name, int(at), int(ptime)))
    return Entries.of(items)


@st.composite
def punctuated(draw: st.DrawFn) -> Entries:
    """A log in which some entries are patterns."""
    entries = draw(logs())
    if draw(st.booleans()):  # as named streams log them: a producer opens before it says anything
        entries = opening(entries)
    kind, told, rows = entries.kind.copy(), [], []
    for place in range(len(entries)):
        rows.append(
            {
                "at": int(entries.at[place]),
                "key": draw(st.sampled_from([None, 0, 1, 2])),
                "name": draw(st.sampled_from([None, "a", "b"])),
            }
        )
        told.append(None)
        if kind[place] != OPEN and draw(st.integers(0, 3)) == 0:
            kind[place] = PATTERN
            told[-1] = Pattern.where(COLUMNS, draw(conditions(CONSTANTS))).to_json()
    table = pa.Table.from_pylist(rows, COLUMNS)
    return replace(entries, kind=kind, patterns=pa.array(told, pa.string()), rows=table)


def test_a_row_that_matches_a_pattern_of_its_producer_is_rejected():
    one = Pattern.where(COLUMNS, [("key", "=", 1)]).to_json()
    said = [
        (OPEN, "P2", None, None, ADMITTED, ""),
        (ROW, "P1", 1, None, ADMITTED, "no pattern yet"),
        (PATTERN, "P1", None, one, ADMITTED, ""),
        (ROW, "P1", 1, None, REJECTED, ""),
        (ROW, "P1", 2, None, ADMITTED, "another key"),
        (ROW, "P2", 1, None, ADMITTED, "another's promise"),
        (IDLE, "P1", None, None, ADMITTED, ""),
        (ROW, "P1", 1, None, REJECTED, "promises of the idle stay"),
        (CLOSE, "P1", None, None, ADMITTED, ""),
        (ROW, "P1", 1, None, ADMITTED, "those who close are forgotten: P2 has not promised it"),
    ]
    entries = Entries.of([(kind, name, 5, 0) for kind, name, *_ in said])
    rows = pa.Table.from_pylist([{"at": 5, "key": key, "name": None} for _, _, key, *_ in said], COLUMNS)
    entries = replace(entries, patterns=pa.array([text for *_, text, _, _ in said], pa.string()), rows=rows)
    for judge in (decide, advance):
        found = judge(WatermarkState(), Ordering.ordered(), entries)
        assert found.decision.tolist() == [decision for *_, decision, _ in said]
        assert set(found.violated.tolist()) == {NO_BOUND}
        assert dict(found.state.patterns) == {}
        before = judge(WatermarkState(), Ordering.ordered(), entries.part(0, 8)).state
        assert WatermarkState.from_json(before.to_json()).patterns == {"P1": (one,)}


def test_what_all_open_producers_have_promised_holds_for_those_that_come():
    one, two, both = (
        Pattern.where(COLUMNS, [told]).to_json()
        for told in (("key", "=", 1), ("key", "=", 2), ("key", "<", 3))
    )
    said = [
        (OPEN, "P1", None, None, ADMITTED, ""),
        (OPEN, "P2", None, None, ADMITTED, ""),
        (PATTERN, "P1", None, one, ADMITTED, ""),
        (OPEN, "P3", None, None, ADMITTED, ""),
        (ROW, "P3", 1, None, ADMITTED, "P2 may still send such rows, and so may those that come"),
        (CLOSE, "P3", None, None, ADMITTED, ""),
        (PATTERN, "P2", None, both, ADMITTED, "the stream has promised 1"),
        (OPEN, "P3", None, None, ADMITTED, ""),
        (ROW, "P3", 1, None, REJECTED, ""),
        (ROW, "P3", 2, None, ADMITTED, "P1 has not promised it"),
        (CLOSE, "P1", None, None, ADMITTED, ""),
        (CLOSE, "P3", None, None, ADMITTED, "P2 is left, which has promised all below 3"),
        (CLOSE, "P2", None, None, ADMITTED, "the stream remembers"),
        (OPEN, "P1", None, None, ADMITTED, ""),
        (ROW, "P1", 2, None, REJECTED, ""),
        (ROW, "P1", 3, None, ADMITTED, ""),
        (PATTERN, "P1", None, two, ADMITTED, "known already"),
        (CLOSE, "P1", None, None, ADMITTED, ""),
    ]
    entries = Entries.of([(kind, name, 5, 0) for kind, name, *_ in said])
    rows = pa.Table.from_pylist([{"at": 5, "key": key, "name": None} for _, _, key, *_ in said], COLUMNS)
    entries = replace(entries, patterns=pa.array([text for *_, text, _, _ in said], pa.string()), rows=rows)
    for judge in (decide, advance):
        found = judge(WatermarkState(), Ordering.ordered(), entries)
        assert found.decision.tolist() == [decision for *_, decision, _ in said]
        assert dict(found.state.patterns) == {}
        again = WatermarkState.from_json(found.state.to_json())
        assert Cover(lines_of(COLUMNS), (Pattern.from_json(text, COLUMNS) for text in again.shared)).matches(
            pa.table(
                {"at": [0] * 4, "key": pa.array([None, 1, 2, 3], pa.int8()), "name": pa.nulls(4, pa.string())}
            )
        ).tolist() == [False, True, True, False]


def test_a_row_below_a_bound_and_promised_not_to_come_violates_the_bound():
    key = Pattern.where(COLUMNS, [("key", "=", 1)]).to_json()
    entries = Entries.of([(ROW, "P1", 5, 0), (PATTERN, "P1", 0, 0), (ROW, "P1", 4, 0), (ROW, "P1", 6, 0)])
    rows = pa.Table.from_pylist([{"key": value} for value in (0, None, 1, 1)], COLUMNS)
    entries = replace(entries, patterns=pa.array([None, key, None, None]), rows=rows)
    for judge in (decide, advance):
        found = judge(WatermarkState(), Ordering.ordered(), entries)
        assert found.decision.tolist() == [ADMITTED, ADMITTED, REJECTED, REJECTED]
        assert found.violated.tolist() == [NO_BOUND, NO_BOUND, 5, NO_BOUND]
        assert found.state.value == 5, "a row that is rejected says nothing"


def check_equal(found, wanted):
    assert found.decision.tolist() == wanted.decision.tolist()
    assert found.violated.tolist() == wanted.violated.tolist()
    assert found.before.tolist() == wanted.before.tolist()
    assert found.state == wanted.state


@settings(deadline=None, max_examples=300)
@given(entries=logs() | punctuated(), ordering=st.sampled_from(ORDERINGS), data=st.data())
def test_batches_are_judged_as_single_entries_are_wherever_the_log_is_cut(entries, ordering, data):
    whole = decide(WatermarkState(), ordering, entries)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(entries)), max_size=5)))
    state, decisions, violated, before = WatermarkState(), [], [], []
    with pytest.MonkeyPatch.context() as patch:
        short = data.draw(st.sampled_from([0, 3, 32]))
        patch.setattr(batch_watermark, "_SHORT", short)
        patch.setattr(batch_watermark, "_SINGLY", max(short, 1))
        patch.setattr(batch_watermark, "_STRETCH", data.draw(st.sampled_from([2, 5, 1024])))
        for start, stop in zip([0, *cuts], [*cuts, len(entries)], strict=True):
            found = advance(WatermarkState.from_json(state.to_json()), ordering, entries.part(start, stop))
            decisions += found.decision.tolist()
            violated += found.violated.tolist()
            before += found.before.tolist()
            state = found.state
    assert decisions == whole.decision.tolist()
    assert violated == whole.violated.tolist()
    assert before == whole.before.tolist()
    assert state == whole.state


@settings(deadline=None, max_examples=100)
@given(entries=logs(), ordering=st.sampled_from(ORDERINGS))
def test_the_clock_never_goes_back_and_no_admitted_row_is_below_it(entries, ordering):
    running, clock, firm = RunningWatermark(WatermarkState(), ordering), NO_BOUND, NO_BOUND
    for kind, code, at, ptime in zip(
        entries.kind.tolist(), entries.code.tolist(), entries.at.tolist(), entries.ptime.tolist(), strict=True
    ):
        decision, _ = running.process(kind, entries.names[code], at, ptime)
        if kind == ROW:
            assert decision != ADMITTED or at >= clock
            assert decision == REJECTED or at >= firm
        assert running.state.at >= clock
        assert running.state.at >= running.state.firm_at >= firm
        clock, firm = running.state.at, running.state.firm_at


@settings(deadline=None, max_examples=100)
@given(entries=logs(), ordering=st.sampled_from(ORDERINGS))
def test_rows_refused_change_nothing_and_every_row_is_counted(entries, ordering):
    found = decide(WatermarkState(), ordering, entries)
    is_row = entries.kind == ROW
    refused = is_row & np.isin(found.decision, (REJECTED, QUARANTINED))
    kept = np.flatnonzero(~refused)
    rest = Entries(
        entries.kind[kept], entries.code[kept], entries.at[kept], entries.ptime[kept], entries.names
    )
    again = decide(WatermarkState(), ordering, rest)
    assert again.decision.tolist() == found.decision[kept].tolist()
    assert (again.state.at, again.state.firm_at) == (found.state.at, found.state.firm_at)
    state = found.state
    assert state.admitted + state.refused == is_row.sum()


@settings(deadline=None, max_examples=300)
@given(entries=logs(), ordering=st.sampled_from(TRUSTING), data=st.data())
def test_bounds_that_later_rows_keep_change_no_row_and_let_the_clock_move_no_later(entries, ordering, data):
    found = decide(WatermarkState(), ordering, entries)
    place = data.draw(st.integers(0, len(entries)))
    known = decide(WatermarkState(), ordering, entries.part(0, place)).state.producers
    opened = sorted(name for name in known if known[name].is_open)
    if not opened:
        return
    rest = slice(place, None)
    kept = entries.at[rest][(entries.kind[rest] == ROW) & (found.decision[rest] != REJECTED)]
    bound = data.draw(
        st.integers(-5, min(kept.tolist(), default=30)) if kept.min(initial=0) > -5 else st.none()
    )
    if bound is None:
        return
    items = [
        (kind, entries.names[code], at, ptime)
        for kind, code, at, ptime in zip(
            *(values.tolist() for values in (entries.kind, entries.code, entries.at, entries.ptime)),
            strict=True,
        )
    ]
    items.insert(place, (BOUND, data.draw(st.sampled_from(opened)), bound, place))
    again = decide(WatermarkState(), ordering, Entries.of(items))
    is_row = entries.kind == ROW
    decisions = np.delete(again.decision, place)
    assert decisions[is_row].tolist() == found.decision[is_row].tolist()
    assert again.state.at >= found.state.at
    assert again.state.firm_at >= found.state.firm_at


@pytest.mark.slow
def test_many_entries_of_many_producers_are_judged_alike():
    random = np.random.default_rng(7)
    count, producers = 20_000, 40
    kind = random.choice([ROW, BOUND, WATERMARK, IDLE, CLOSE], count, p=[0.9686, 0.03, 0.001, 0.0002, 0.0002])
    code = random.integers(0, producers, count)
    at = np.arange(count) // 10 + random.integers(-40, 20, count)
    entries = Entries(
        kind.astype(np.int8),
        code.astype(np.int32),
        at,
        np.arange(count),
        tuple(f"p{number}" for number in range(producers)),
    )
    for ordering in ORDERINGS:
        check_equal(advance(WatermarkState(), ordering, entries), decide(WatermarkState(), ordering, entries))

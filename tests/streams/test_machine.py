"""Any sequence of what producers, readers and accidents do: the log says what a plain model says."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from windrow.errors import WindrowError
from windrow.streams import Decision, EntryKind, NamedStream, Ordering
from windrow.streams.admission.watermark import RunningWatermark, WatermarkState
from windrow.streams.pattern_arguments import pattern_of
from windrow.streams.producer import Producer
from windrow.streams.producer_punctuations import is_breach

COLUMNS = pa.schema([("at", pa.int64()), ("value", pa.int64())])
NAMES = ("p", "q", "r")
JUDGED = (Decision.ADMITTED, Decision.LATE, Decision.REJECTED)
TICKS = st.integers(0, 12)


class Streams(RuleBasedStateMachine):
    """The model is what was acknowledged, judged by the clock's definition, an entry at a time."""

    @initialize(
        ordering=st.sampled_from([Ordering.ordered(), Ordering.unordered(), Ordering.lagging(2)]),
        late=st.sampled_from(["keep", "error"]),
    )
    def create(self, ordering, late):
        self.folder = Path(tempfile.mkdtemp())
        self.stream = NamedStream.create(self.folder / "s", COLUMNS, "at", ordering=ordering)
        self.late = late
        self.model = RunningWatermark(WatermarkState(), ordering)
        self.attached: dict[str, Producer] = {}
        self.rows: dict[Decision, list[int]] = {decision: [] for decision in Decision}
        self.inserted: dict[str, list[list[dict]]] = {name: [] for name in NAMES}
        self.last = dict.fromkeys(NAMES, 0)
        self.dead: set[str] = set()
        self.value = 0

    def teardown(self):
        for producer in self.attached.values():
            producer._heart.stop()
        shutil.rmtree(self.folder)

    def say(self, kind: EntryKind, name: str, at: int = 0, row=None, pattern=None) -> Decision:
        is_broken = row is not None and is_breach(row, self.model.patterns_for(name), COLUMNS)
        decision, _ = self.model.process(kind, name, at, 0, is_broken=is_broken)
        self.model.note(kind, name, pattern, COLUMNS)
        return decision

    @property
    def alive(self) -> list[str]:
        return sorted(self.attached.keys() - self.dead) if hasattr(self, "stream") else []

    def is_open(self, name: str) -> bool:
        known = self.model.producers.get(name)
        return known is not None and known.is_open

    @rule(name=st.sampled_from(NAMES))
    def attach(self, name):
        if name in self.attached and name not in self.dead:
            return
        if name in self.dead:
            self.attached.pop(name)._heart.stop()
            self.dead.discard(name)
        self.attached[name] = self.stream.producer(name, late=self.late, lease=1000)
        self.say(EntryKind.OPEN, name)
        assert self.attached[name].next_sequence == self.last[name] + 1

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), ticks=st.lists(TICKS, max_size=4), bound=st.none() | TICKS)
    def insert(self, data, ticks, bound):
        name = data.draw(st.sampled_from(self.alive))
        rows = []
        for at in ticks:
            self.value += 1
            rows.append({"at": at, "value": self.value})
        opened = self.is_open(name)
        refused, receipt = None, None
        try:
            receipt = self.attached[name].insert(rows, bound=bound)
        except WindrowError as error:
            refused = error.condition
        if not opened:
            self.say(EntryKind.OPEN, name)
        if receipt is None:
            assert (self.late, refused) == ("error", "LATE_ROWS")
            before = self.model
            self.model = RunningWatermark(before.state, before.ordering)
            assert {self.say(EntryKind.ROW, name, row["at"], row) for row in rows} - {Decision.ADMITTED}
            self.model = before
            return
        decisions = [self.say(EntryKind.ROW, name, row["at"], row) for row in rows]
        for row, decision in zip(rows, decisions, strict=True):
            self.rows[decision].append(row["value"])
        if bound is not None:
            self.say(EntryKind.BOUND, name, bound)
        self.last[name] += len(rows)
        self.inserted[name].append(rows)
        counts = [decisions.count(decision) for decision in JUDGED]
        assert [receipt.admitted, receipt.late, receipt.rejected] == counts
        assert self.late == "keep" or counts[1:] == [0, 0]

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def insert_the_last_rows_again(self, data):
        name = data.draw(st.sampled_from(self.alive))
        if not self.inserted[name]:
            return
        rows = self.inserted[name][-1]
        opened = self.is_open(name)
        receipt = self.attached[name].insert(rows, sequence=max(self.last[name] - len(rows) + 1, 1))
        if not opened:
            self.say(EntryKind.OPEN, name)
        assert (receipt.admitted, receipt.duplicates) == (0, len(rows))

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), at=TICKS, strict=st.booleans(), is_promise=st.booleans())
    def bound(self, data, at, strict, is_promise):
        name = data.draw(st.sampled_from(self.alive))
        producer = self.attached[name]
        (producer.bound if is_promise else producer.watermark)(at, strict=strict)
        if not self.is_open(name):
            self.say(EntryKind.OPEN, name)
        self.say(EntryKind.BOUND if is_promise else EntryKind.WATERMARK, name, at + strict)

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), at=TICKS, ahead=st.integers(1, 3))
    def punctuate(self, data, at, ahead):
        """No row of this instant, and none of the next few values."""
        name = data.draw(st.sampled_from(self.alive))
        told = {"at": at} if data.draw(st.booleans()) else {"value": {"<=": self.value + ahead}}
        self.attached[name].punctuate(told)
        if not self.is_open(name):
            self.say(EntryKind.OPEN, name)
        self.say(EntryKind.PATTERN, name, pattern=pattern_of(told.items(), COLUMNS).to_json())

    @precondition(lambda self: self.alive)
    @rule(data=st.data(), is_closed=st.booleans())
    def leave(self, data, is_closed):
        name = data.draw(st.sampled_from(self.alive))
        if is_closed:
            self.attached.pop(name).close()
            self.say(EntryKind.CLOSE, name)
        elif self.is_open(name):
            self.attached[name].idle()
            self.say(EntryKind.IDLE, name)

    @precondition(lambda self: self.alive)
    @rule(data=st.data())
    def die(self, data):
        """The lease's time passes, and nobody renews it."""
        name = data.draw(st.sampled_from(self.alive))
        self.attached[name]._heart.stop()
        os.utime(self.attached[name]._lease.path, (1, 1))
        self.dead.add(name)

    @rule()
    def expire(self):
        assert sorted(self.stream.expire()) == sorted(self.dead)
        for name in sorted(self.dead):
            self.say(EntryKind.IDLE, name)
            del self.attached[name]
        self.dead.clear()

    @precondition(lambda self: hasattr(self, "stream"))
    @invariant()
    def the_log_says_what_the_model_says(self):
        whole, end = self.stream.read(self.stream.start)
        is_row = whole.entries.column("__kind").to_numpy() == EntryKind.ROW
        values = whole.entries.column("value").to_pylist()
        for decision in JUDGED:
            chosen = is_row & (whole.decision == decision)
            assert [values[place] for place in chosen.nonzero()[0]] == self.rows[decision]
        assert (end.watermark.value, end.watermark.firm) == (self.model.state.value, self.model.state.firm)
        assert (end.duplicates, end.fenced) == (0, 0)
        assert self.stream.position() == end


Streams.TestCase.settings = settings(deadline=None, max_examples=25, stateful_step_count=25)
TestStreams = Streams.TestCase

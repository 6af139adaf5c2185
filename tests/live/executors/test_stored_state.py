"""The state of a bucket's operators, in a store: long tables that never change are stored once."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa

from windrow.kernels import stored as stored_module
from windrow.kernels.trace import Trace
from windrow.spark.live.executors.bucket_state import StoredState


class InMemory:
    """A store of bytes, and what was written."""

    def __init__(self):
        self.data, self.written = {}, []

    def read(self, name, number):
        return self.data[name, number]

    def write(self, name, number, data):
        self.data[name, number] = data
        self.written.append(name)

    def drop(self, name, number):
        del self.data[name, number]


def test_state_goes_on_with_its_tables_after_a_restart(monkeypatch):
    monkeypatch.setattr(stored_module, "_ALONE", 0)
    store, state = InMemory(), StoredState()
    trace = Trace(pa.schema([("k", pa.int64())]), ("k",))
    for number in range(6):
        trace.add(pa.table({"k": np.arange(100 >> number)}))
        trace.remove(trace.everything()[:1])
        state.write(store, number, number, len(trace), {"sides": [trace]})
        assert state.size == sum(map(len, store.data.values()))
        assert [name for name, _ in store.data].count("carry") == 1
        if number % 2:
            known, state = json.loads(json.dumps(state.to_json())), StoredState()
            (read,) = state.read(store, known)["sides"]
            assert read.rows(read.everything()).equals(trace.rows(trace.everything()))
            trace = read
    store.written.clear()
    state.write(store, 6, 6, len(trace), {"sides": [trace]})
    assert store.written == ["carry"]  # what was read is not written again
    assert state.at == 6


def test_state_of_an_earlier_version_is_read():
    store, state = InMemory(), StoredState()
    state.write(store, 3, 7, 2, {"sides": [1, 2]})
    again = StoredState()
    assert again.read(store, {"number": 3, "at": 7, "rows": 2, "size": 9}) == {"sides": [1, 2]}
    assert (again.at, again.is_due(10_000), again.is_due(10_001)) == (7, False, True)

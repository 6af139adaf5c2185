"""Which streams and producers the others wait for, in the state of a live query."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tests.streams.recorded import NUMBERS
from windrow.spark.live.reports.state_table import RetainedRowsOf, state_of, timed_state_of
from windrow.spark.logs.storable import scale_of
from windrow.streams import NamedStream

BOUNDS = {
    "one producer": ({"s": {"p": 4}}, set()),
    "one that is at work beside one that has left": ({"s": {"p": 4, "q": None}}, set()),
    "two producers": ({"s": {"p": 4, "q": 7}}, {("s", "p")}),
    "two streams": ({"s": {"p": 4}, "t": {"q": 7}}, {("s", None), ("s", "p")}),
    "two streams that are as far": (
        {"s": {"p": 4}, "t": {"q": 4}},
        {("s", None), ("s", "p"), ("t", None), ("t", "q")},
    ),
    "two streams of several producers": (
        {"s": {"p": 4, "q": 5}, "t": {"r": 3, "q": 7}},
        {("t", None), ("t", "r")},
    ),
}
"""The bounds of producers of streams, and the streams and producers for which others wait."""


def recorded(folder, bounds):
    """A stream whose producers have reached these bounds; one without has left."""
    stream = NamedStream.create(folder, NUMBERS, "at", unit="seconds")
    for name, bound in bounds.items():
        producer = stream.producer(name)
        if bound is None:
            producer.close()
        else:
            producer.insert({"at": bound, "value": 0})
    return stream


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("with_emit", [False, True], ids=["CQL", "EMIT"])
def test_others_wait_for_what_has_the_least_bound(tmp_path, name, with_emit):
    bounds, expected = BOUNDS[name]
    streams = {each: recorded(tmp_path / each, producers) for each, producers in bounds.items()}
    scales = {each: SimpleNamespace(scale=scale_of(stream)) for each, stream in streams.items()}
    plan = SimpleNamespace(
        gateway=SimpleNamespace(spark=SimpleNamespace(conf={"spark.sql.session.timeZone": "UTC"})),
        catalog=SimpleNamespace(streams=scales),
        streams=list(streams),
        scale=scales["s"].scale,
        windows=dict,
        reasons=dict,
    )
    batch = SimpleNamespace(positions={each: stream.position() for each, stream in streams.items()})
    if with_emit:
        rows = timed_state_of(plan, batch, {}, "", RetainedRowsOf()).rows
    else:
        rows = state_of(plan, batch, {}, {}).rows
    assert {(row.name, row.producer) for row in rows if row.delays} == expected

"""Buckets without Spark's state store: what they give for logs that are cut anywhere."""

from __future__ import annotations

import copy
from itertools import pairwise

from hypothesis import strategies as st
from pyspark import cloudpickle
from pyspark.sql import functions as F

from tests.live.random_logs import LAGS, table
from windrow.spark.live.executors import bucket as buckets_of
from windrow.spark.live.executors import onward as onward_of
from windrow.spark.live.executors.bucket import advanced
from windrow.spark.live.executors.bucket_account import BucketAccount
from windrow.spark.live.executors.graphs.graph import graph_of
from windrow.spark.live.executors.input.packing import BUCKET, DATA, NOTE, pack
from windrow.spark.live.executors.onward import advanced_onward, bucket_of
from windrow.spark.logs.live_source import PTIME

__all__ = ["LAG_AND_CUTS", "Stored", "in_buckets", "tabled"]

LAG_AND_CUTS = (
    st.sampled_from(LAGS),
    st.lists(st.floats(0, 1), max_size=3),
    st.integers(1, 3),
    st.integers(1, 4),
    st.sets(st.integers(0, 3), max_size=2),
    st.sets(st.integers(0, 3), max_size=2),
)
"""A lag, and `cuts`, `parts`, `count`, `forget` and `again` of :func:`in_buckets`."""


class Stored:
    """A bucket's part of the state store, as it is after the last micro-batch that was committed."""

    def __init__(self):
        self.told, self.bytes = None, {}

    def text(self):
        return self.told

    def save(self, text):
        self.told = text

    def read(self, name, number):
        return self.bytes[name, number]

    def write(self, name, number, data):
        self.bytes[name, number] = data

    def drop(self, name, number):
        del self.bytes[name, number]


def tabled(entries, _):
    """Entries of random logs as a table."""
    return table(entries)


def in_buckets(
    spark, plan, logs, cuts, parts, count, forget, again, *, envelope="diff", times=None, as_table=tabled
):
    """What the buckets give, micro-batch by micro-batch: the rows, and the last account of each bucket.

    Parameters
    ----------
    cuts
        Where the logs are cut into micro-batches.
    parts
        Into how many parts a micro-batch is cut, each of which another task packs.
    forget, again
        The micro-batches before which workers are new, and those that are tried twice.
    times
        When entries come, by the number of the micro-batch; also when it is ticked, if it waits for that.
    as_table
        Makes a table of entries of a stream.
    """
    graph, stores, tables, accounts = graph_of(plan, count, envelope), {}, [], {}
    for number, (low, high) in enumerate(pairwise([0.0, *sorted(cuts), 1.0])):
        frames = {}
        for _, name, stream in graph.streams:
            part = logs[name][round(low * len(logs[name])) : round(high * len(logs[name]))]
            frames[name] = spark.createDataFrame(as_table(part, name)).select(*stream.live.columns)
            if times is not None:
                frames[name] = frames[name].withColumn(PTIME, F.lit(times(number)).cast("bigint"))
        ticks = None
        if graph.waits:
            assert times is not None
            ticks = spark.range(1).select(F.lit(times(number)).cast("bigint").alias("tick"))
        entries, task = graph.entries(frames, ticks)
        task = cloudpickle.loads(cloudpickle.dumps(task))  # as it travels
        whole = entries.toArrow()
        size = -(-whole.num_rows // parts) or 1
        read = [whole.slice(at, size) for at in range(0, whole.num_rows, size)]
        packed = [
            packet
            for at, part in enumerate(read)
            for batch in pack(task, part.to_batches(max_chunksize=2), at)
            for packet in batch.to_pylist()
        ]
        packed.reverse()  # an exchange keeps no order
        if number in forget:
            buckets_of.RECENT.clear()
        sent = [(packet[BUCKET], packet[NOTE], packet[DATA]) for packet in packed]
        given = _advanced(stores.setdefault("first", {}), sent, task, is_again=number in again)
        for own, note, _ in given:
            account = BucketAccount.read(note)
            if account is not None:
                accounts[own] = account
        if task.onward is not None:
            if number in forget:
                onward_of.RECENT.clear()
            sent = [(bucket_of(task.onward, note), note, data) for _, note, data in reversed(given)]
            given = _advanced(stores.setdefault("second", {}), sent, task, True, is_again=number in again)
        tables.append([(note, data) for _, note, data in given])
    return graph, tables, accounts


def _advanced(stores, packets, task, is_onward=False, *, is_again):
    """What the buckets of a part of the query give for packets, each with the number of its bucket."""
    given = []
    for own in sorted({bucket for bucket, _, _ in packets}):
        before = stores.get(own, Stored())
        mine = [(note, data) for bucket, note, data in packets if bucket == own]

        def output(store, mine=mine, own=own):
            if is_onward:
                return list(advanced_onward(task, store, mine))
            return list(advanced(task, store, mine, is_first=own == task.buckets[0]))

        if is_again:
            output(copy.deepcopy(before))
        stores[own] = copy.deepcopy(before)
        given += [(own, note, data) for note, data in output(stores[own])]
    return given

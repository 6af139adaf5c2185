"""Bids on auctions with punctuation, recorded and live."""

from __future__ import annotations

import pyarrow as pa

from tests.live.stepping import in_micro_batches
from windrow import Session
from windrow.spark.logs.live_source import NUMBER
from windrow.spark.logs.storable import in_spark
from windrow.streams import NamedStream, Ordering

BIDS = pa.schema([("at", pa.int64()), ("auction", pa.int64()), ("price", pa.int64()), ("who", pa.string())])
SOLD = pa.schema([("at", pa.int64()), ("auction", pa.int64()), ("item", pa.string())])


def opened(spark, folder):
    """A session with two streams that have no order of their own."""
    session = Session(spark)
    for name, columns in (("bids", BIDS), ("sold", SOLD)):
        session.stream(name, NamedStream.create(folder / name, columns, "at", ordering=Ordering.unordered()))
    return session


def bid(at, auction, price, who="ann"):
    return {"at": at, "auction": auction, "price": price, "who": who}


def entries(spark, session, name, first, last):
    """The entries of some files of a log, as a micro-batch has them."""
    stream = session._catalog.named[name].stream
    stored = stream.definition.stored.append(pa.field(NUMBER, pa.int64()))
    tables = [stored.empty_table()]
    for number in range(first + 1, last + 1):
        table = stream.log.read(number)
        tables.append(table.append_column(stored.field(NUMBER), pa.repeat(number, table.num_rows)))
    frame = spark.createDataFrame(pa.concat_tables(tables).combine_chunks(), in_spark(stream))
    return frame.select(*session._catalog.streams[name].live.columns)


def live(spark, session, folder, query, cuts, kills):
    """What a query gives, step by step, where the logs are cut there; and what it keeps in the end."""
    lengths = {name: named.stream.log.last() for name, named in session._catalog.named.items()}

    def frames(steps, low, high):
        return {
            name: entries(spark, session, name, int(low * lengths[name]), int(high * lengths[name]))
            for _, name, _ in steps.streams()
        }

    return in_micro_batches(session.sql(query)._live, folder, cuts, kills, frames)


def rows(tables):
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def recorded(session, query):
    return [tuple(row) for row in session.sql(query).collect()]

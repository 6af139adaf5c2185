"""Rows that a query gives into a named stream have the rowtime there that they have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow import InputError
from windrow.spark.live.into_stream import IntoStream
from windrow.spark.stored import clock_of
from windrow.spark.streams import ROWTIME, Stream
from windrow.streams import NamedStream, Ordering

COLUMNS = pa.schema([("at", pa.int64()), ("k", pa.int64())])


@pytest.mark.parametrize(
    ("given", "condition"), [([5, 7], None), ([5, None], "NULL_ROWTIME"), ([5, 6], "ROWTIME_DIFFERS")]
)
def test_a_rowtime_that_is_given_is_that_of_the_row(spark, tmp_path, given, condition):
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered())
    frame = spark.createDataFrame(pa.table({"at": pa.array(given, pa.int64()), "k": [1, 2], ROWTIME: [5, 7]}))
    rows = Stream(frame, ("at", "k"), clock_of(stream))
    if condition is None:
        assert IntoStream(stream)._stored(rows).column("at").to_pylist() == given
        return
    with pytest.raises(InputError) as error:
        IntoStream(stream)._stored(rows)
    assert error.value.condition == condition

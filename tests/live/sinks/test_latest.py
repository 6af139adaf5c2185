"""The rows that were given last, read back without Spark."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from windrow import Files, Memory
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.latest import latest_of
from windrow.spark.live.sinks.sink import Around
from windrow.streams import NamedStream


def written(folder, form, number, values):
    path = folder / f"part-{number:09}.{form}"
    table = pa.table({"v": values})
    if form == "parquet":
        pq.write_table(table, path)
    elif form == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        path.write_text("".join(f'{{"v":{value}}}\n' for value in values))


@pytest.mark.parametrize("form", ["parquet", "csv", "json"])
def test_of_a_folder_they_are_the_last_of_the_last_files(tmp_path, form):
    sink = Files(tmp_path / "given", form)
    assert latest_of(sink, 3) is None
    for number, values in enumerate(([1, 2], [3], [4, 5])):
        written(sink.folder, form, 9 + number, values)
    for count in (1, 3, 9):
        assert latest_of(Around(sink), count).column("v").to_pylist() == [1, 2, 3, 4, 5][-count:]


def test_of_a_named_stream_they_are_its_last_rows(tmp_path):
    stream = NamedStream.create(tmp_path / "s", pa.schema([("at", pa.int64()), ("v", pa.string())]), "at")
    assert latest_of(IntoStream(stream), 2) is None
    with stream.producer("p") as producer:
        for at in (1, 2, 3):
            producer.insert({"at": at, "v": str(at)})
            producer.bound(at)
    assert latest_of(IntoStream(stream), 2).to_pylist() == [{"at": 2, "v": "2"}, {"at": 3, "v": "3"}]


def test_of_others_they_are_not_known():
    assert latest_of(Memory(), 3) is None

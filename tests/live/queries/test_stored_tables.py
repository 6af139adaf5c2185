"""A table beside windows is what it was when the query was first started, and its loss is noticed."""

from __future__ import annotations

import shutil

import pytest

from tests.live.queries.test_query import declared, put
from windrow import Memory, WindrowError

NAMES = "CREATE OR REPLACE TEMPORARY VIEW names AS SELECT * FROM VALUES {} AS t(k, name)"
JOINED = "SELECT n.name, s.v FROM s [RANGE 3] AS s LEFT JOIN names AS n ON s.k = n.k"


@pytest.fixture
def run(spark, tmp_path):
    """Starts the query beside a table: of each row the counts that it has emitted once all has come."""
    folder = tmp_path / "incoming"
    folder.mkdir()
    sink = Memory()

    def running(rows, names):
        put(folder, len(list(folder.glob("*.parquet"))), rows)
        spark.sql(NAMES.format(names))
        query = declared(spark, folder).sql(JOINED)
        started = query.start(sink, checkpoint=tmp_path / "checkpoint", envelope="diff")
        try:
            started.process_all_available()
        finally:
            started.stop()
        changes: dict[tuple[str | None, int], list[int]] = {}
        for _, table in sorted(sink.batches.items()):
            for row in table.to_pylist():
                changes.setdefault((row["name"], row["v"]), []).append(row["_diff"])
        return {row: sorted(counts) for row, counts in changes.items()}

    return running


@pytest.mark.usefixtures("interpreted")
def test_rows_leave_as_what_they_entered_as_whatever_the_table_has_become(run):
    rows = [(0, "a", 1), (1, "b", 2), (2, "a", 3)]
    assert run(rows, "('a', 'x'), (NULL, 'y')") == {("x", 1): [1], (None, 2): [1]}
    assert run([(9, "b", 4), (10, "b", 5)], "('a', 'other'), ('b', 'late')") == {
        ("x", 1): [-1, 1],
        (None, 2): [-1, 1],
        ("x", 3): [-1, 1],
        (None, 4): [1],
    }


@pytest.mark.usefixtures("interpreted")
def test_a_table_that_is_gone_from_the_checkpoint_is_named_and_not_read_anew(run, tmp_path):
    run([(0, "a", 1), (5, "b", 2)], "('a', 'x')")
    shutil.rmtree(tmp_path / "checkpoint" / "windrow" / "tables")
    with pytest.raises(WindrowError) as caught:
        run([(9, "b", 4)], "('a', 'other')")
    assert caught.value.condition == "MISSING_FILE"
    assert "table0" in caught.value.message

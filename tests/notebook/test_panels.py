"""Which live queries a cell that is run again stops, without Spark."""

from __future__ import annotations

import pytest

pytest.importorskip("IPython")

from windrow.notebook.panels import Cells


class Query:
    stopped = False

    def stop(self):
        self.stopped = True


def test_a_cell_that_is_run_again_stops_what_it_showed_and_nothing_else():
    cells, first, second, other = Cells(), Query(), Query(), Query()
    cells.begin("a", 1)
    cells.add(first, "a", 1)
    cells.begin("a", 1)  # another query of the same run
    cells.add(second, "a", 1)
    cells.begin("b", 2)
    cells.add(other, "b", 2)
    assert [each.stopped for each in (first, second, other)] == [False] * 3
    assert cells.displays(first, 1)
    assert not cells.displays(first, 2)
    cells.begin("a", 3)
    assert [each.stopped for each in (first, second, other)] == [True, True, False]


def test_a_cell_without_a_name_stops_nothing():
    cells, query = Cells(), Query()
    cells.begin(None, 1)
    cells.add(query, None, 1)
    cells.begin(None, 2)
    assert not query.stopped

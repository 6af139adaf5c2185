"""Cells with ``%%windrow``, run by IPython on the shared session."""

from __future__ import annotations

import pytest

pytest.importorskip("IPython")

from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

import windrow


@pytest.fixture
def cell(spark):
    """Runs a cell as a notebook does: what it gives, what it displays, what it prints."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.user_ns["session"] = windrow.Session(spark)
    shell.run_cell("%load_ext windrow")

    def run(text):
        with capture_output() as captured:
            done = shell.run_cell(text)
        return done, captured

    run("%windrow session")
    yield run
    shell.extension_manager.unload_extension("windrow")
    InteractiveShell.clear_instance()


def test_a_cell_gives_a_relation_that_later_cells_can_use(cell):
    done, _ = cell("%%windrow --param low=2 >> few\nSELECT id FROM range(5) WHERE id >= :low")
    assert (done.success, done.result) == (True, None)
    assert [row[0] for row in cell("few.collect()")[0].result] == [2, 3, 4]

    done, _ = cell("%%windrow --limit 2\nSELECT '<b>' AS `a&b`, NULL AS n, id FROM range(9) ORDER BY id;")
    html = done.result._repr_html_()
    assert "a&amp;b" in html
    assert "&lt;b&gt;" in html
    assert html.count("<tr>") == 3

    done, captured = cell("%%windrow\nSELECT 1 AS one;\nSELECT 2 AS two;")
    assert done.result.df.columns == ["two"]
    assert [output.data["text/html"].count("one") for output in captured.outputs[:1]] == [1]

    windows = "WINDOW BY w AS (TYPE SLIDING ORDER BY id START AS s END)"
    done, _ = cell(f"%%windrow\nEXPLAIN SELECT s.id FROM range(3) {windows}")
    assert done.result._repr_html_().startswith("<pre")

    done, captured = cell("%%windrow --format csv\nSELECT 1 AS a, 'x,y' AS b")
    assert (done.result, captured.stdout) == (None, 'a,b\n1,"x,y"\n')


def test_a_query_that_fails_shows_where_and_stops_the_notebook_without_a_traceback(cell):
    done, captured = cell("%%windrow\nSELECT 1;\nSELEC 2")
    assert not done.success
    shown = [output.data["text/html"] for output in captured.outputs if "text/html" in output.data]
    assert any("PARSE_SYNTAX_ERROR" in html and "SELEC" in html for html in shown)
    assert "Traceback" not in captured.stdout + captured.stderr
    assert "magics.py" not in captured.stdout + captured.stderr

    # of the session itself too
    done, captured = cell("session.sql('SELECT nope FROM range(2)').show()")
    assert not done.success
    told = captured.stdout + captured.stderr
    assert "UNRESOLVED_COLUMN" in told
    assert "^^^^" in told
    assert "Traceback" not in told

    assert not cell("%windrow nothing")[0].success
    done, captured = cell("%%windrow --live\nSELECT 1 AS one")  # a shell in a terminal
    assert "NO_NOTEBOOK" in str(done.error_in_exec)
    assert not cell("%%windrow --nope\nSELECT 1")[0].success

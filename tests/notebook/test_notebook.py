"""Whole notebooks, executed as Jupyter does it: a kernel of its own, which starts Spark."""

from __future__ import annotations

import json
import re

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipywidgets")

CELLS = {
    "load": "%load_ext windrow",
    "make": "import windrow.datasets\nwindrow.datasets.write_weather('weather.parquet')",
    "query": (
        "%%windrow --table weather=weather.parquet --conf spark.sql.shuffle.partitions=2 >> spells\n"
        "SELECT s.station, s.date AS since, COUNT(w) AS days FROM weather WHERE dataType = 'TMIN'\n"
        "WINDOW BY w AS (TYPE TUMBLING PARTITION BY station ORDER BY date\n"
        "    START AS s WHEN s.val < 25 ONLY END NEXT AS n WHEN n.val >= 25)\n"
        "HAVING COUNT(w) >= 8 ORDER BY since"
    ),
    "once more": "%windrow --table weather=weather.parquet --conf spark.sql.shuffle.partitions=2",
    "otherwise": "%windrow --conf spark.sql.shuffle.partitions=3",
    "table": "spells",
    "picture": "spells.plot(partitions=1)",
    "error": "%%windrow\nSELECT nope FROM weather",
    # live: over a named stream, whose relation is a table and whose query can be watched by its changes
    "stream": (
        "%%windrow\n"
        "CREATE STREAM bids (ROWTIME at BIGINT UNIT SECOND, item STRING, price INT) LOCATION 'bids';\n"
        "INSERT INTO bids VALUES (1, 'A', 10), (2, '<b>', 14), (4, 'A', 12)"
    ),
    "watched": "%%windrow --live >> best\nSELECT item, MAX(price) AS best FROM bids [RANGE 4] GROUP BY item",
    "more": "%%windrow\nINSERT INTO bids VALUES (7, 'C', 20), (9, 'C', 21)",
    "stopped": (
        "import threading, ipywidgets\n"
        "best.process_all_available()\n"
        "widgets = ipywidgets.widgets.widget._instances.values()\n"
        "running = [each for each in widgets if getattr(each, 'description', '') == 'Stop']\n"
        "running[0].click()\n"
        "for each in threading.enumerate():\n"
        "    if each.name.startswith('windrow query-'):\n"
        "        each.join(60)\n"
        "print(len(running), running[0].description, best.is_active)"
    ),
    "again": "best",
    # and over a streaming DataFrame, which is live by itself
    "endless": (
        "session = %windrow\n"
        "rates = session.spark.readStream.format('rate-micro-batch').option('rowsPerBatch', 3).load()\n"
        "session.stream('ticks', rates, rowtime='timestamp', lag='0 seconds')\n"
        "session.sql('SELECT STREAM value * 0 AS nought FROM ticks')"
    ),
    "refused": "session.sql('SELECT value, value FROM ticks [RANGE 2 SECONDS]')",
    "ended": (
        "import time\n"
        "(query,) = session.queries.values()\n"
        "while not query.progress.get('rows_emitted'):\n"
        "    time.sleep(0.05)\n"
        "query.stop()\n"
        "for each in threading.enumerate():\n"
        "    if each.name.startswith('windrow query-'):\n"
        "        each.join(60)"
    ),
}


@pytest.mark.spark
@pytest.mark.long
def test_a_notebook_shows_tables_pictures_errors_and_live_queries(tmp_path):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.values()])
    client = nbclient.NotebookClient(
        made,
        timeout=240,
        kernel_name="python3",
        allow_errors=True,
        resources={"metadata": {"path": tmp_path}},
    )
    client.execute()
    outputs = dict(zip(CELLS, (cell.outputs for cell in made.cells), strict=True))
    assert outputs["query"] == []
    (table,) = outputs["table"]
    assert "2024-01-30" in table.data["text/html"]
    assert ">14</td>" in table.data["text/html"]
    assert [output.output_type for output in outputs["once more"]] == ["execute_result"]
    assert "SESSION_EXISTS" in outputs["otherwise"][0].data["text/html"]
    (picture,) = outputs["picture"]
    assert picture.data.keys() == {"image/svg+xml", "text/plain"}  # it is drawn without a network
    assert picture.data["image/svg+xml"].startswith("<svg")
    shown, error = outputs["error"]
    assert "UNRESOLVED_COLUMN" in shown.data["text/html"]
    assert error.output_type == "error"
    assert len(error.traceback) == 1
    assert "File" not in error.traceback[0]

    button, table = outputs["watched"]
    assert "application/vnd.jupyter.widget-view+json" in button.data
    html = table.data["text/html"]
    assert "has ended" in html
    assert rows_of(html) == [["C", "20"]], (
        "those of the last instant that is known, of a table that was others"
    )
    (told,) = outputs["stopped"]
    assert told.text == "1 Stopped False\n"
    (_, again) = outputs["again"]
    assert "has ended" in again.data["text/html"]
    assert "<table>" not in again.data["text/html"]

    _, latest = outputs["endless"]
    found = rows_of(latest.data["text/html"])
    assert 3 <= len(found) <= 20
    assert {row[1] for row in found} == {"0"}
    assert "DUPLICATE_COLUMN" in outputs["refused"][0].data["text/html"]
    # What VS Code and every other front end of notebooks shows as well, and no script of a page's.
    bundles = [output.data for cell in outputs.values() for output in cell if "data" in output]
    shows = {"text/plain", "text/html", "image/svg+xml", "application/vnd.jupyter.widget-view+json"}
    assert set().union(*bundles) == shows
    assert all("text/plain" in bundle for bundle in bundles)
    assert not any("<script" in bundle.get("text/html", "") for bundle in bundles)
    told = json.dumps(made)
    assert "Traceback" not in told


def rows_of(html):
    """The texts of the cells of a table, without its head."""
    body = html.partition("<tbody>")[2]
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(.*?)</tr>", body)]

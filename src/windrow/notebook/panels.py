"""Live queries in the output of a cell: their progress, refreshed while they run, and a stop button."""

from __future__ import annotations

import atexit
import importlib.util
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

from IPython.core.getipython import get_ipython
from IPython.display import HTML, display

from windrow.errors import UsageError
from windrow.spark.live import LiveQuery

__all__ = ["Cells", "before_start", "open_panel", "show_query"]

_BETWEEN = 0.3  # seconds
_exits = threading.Event()
atexit.register(_exits.set)


class Cells:
    """The queries that cells display, by cell and run: a cell that runs again stops its earlier queries."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[int, list[LiveQuery]]] = {}
        self._displayed: WeakKeyDictionary[LiveQuery, int] = WeakKeyDictionary()

    def begin(self, cell: str | None, run: int) -> None:
        """Stop the queries of a cell's earlier runs; for a cell without an id they are not known."""
        before, queries = self._runs.get(cell or "", (run, []))
        if cell is not None and before != run:
            self._runs.pop(cell)
            for query in queries:
                query.stop()

    def add(self, query: LiveQuery, cell: str | None, run: int) -> None:
        """Record that a run of a cell displays a query."""
        self._displayed[query] = run
        if cell is not None:
            self._runs.setdefault(cell, (run, []))[1].append(query)

    def displays(self, query: LiveQuery, run: int) -> bool:
        """Whether a run displays a query."""
        return self._displayed.get(query) == run


_cells = Cells()


def show_query(query: LiveQuery) -> None:
    """Display a started query, unless this run of the cell displays it already."""
    _, run = _running()
    if not _cells.displays(query, run):
        open_panel(query)


def before_start() -> None:
    """Stop the queries that earlier runs of this cell have started and displayed."""
    _cells.begin(*_running())


def open_panel(query: LiveQuery, body: Callable[[], str] = str) -> None:
    """Display a query in the output of the cell while it runs, and its end.

    Parameters
    ----------
    query
        The query.
    body
        Returns HTML to display below the progress of the query.
    """
    _cells.add(query, *_running())
    button = _stop_button(query)
    if button is not None:
        _display(button)
    handle: Any = display(_html(query, body), display_id=True)  # type: ignore[no-untyped-call] # IPython's

    def follow() -> None:
        displayed: HTML | None = None
        is_active = True
        while is_active:
            is_active = query.is_active  # read before the rows, so that the last ones are displayed
            current = _html(query, body)
            if displayed is None or current.data != displayed.data:
                handle.update(current)
                displayed = current
            if is_active and _exits.wait(_BETWEEN):
                return
        if button is not None:
            button.description, button.disabled = "Stopped", True

    threading.Thread(target=follow, name=f"windrow {query.name}", daemon=True).start()


def _html(query: LiveQuery, body: Callable[[], str]) -> HTML:
    return HTML(f"{query._repr_html_()}{body()}")  # type: ignore[no-untyped-call] # IPython's


def _stop_button(query: LiveQuery) -> Any:
    """A button that stops the query; None without ipywidgets."""
    if importlib.util.find_spec("ipywidgets") is None:
        return None
    import ipywidgets

    button = ipywidgets.Button(description="Stop", icon="stop", tooltip=f"stop {query.name}")

    def stop(_: object) -> None:
        button.description, button.disabled = "Stopping", True
        # stop() waits for the current micro-batch, and the notebook must not
        threading.Thread(target=query.stop, name=f"windrow stops {query.name}", daemon=True).start()

    button.on_click(stop)
    return button


def _running() -> tuple[str | None, int]:
    """The cell that runs, if the front end names it, and the number of the run.

    Raises
    ------
    UsageError
        ``NO_NOTEBOOK``.
    """
    shell: Any = get_ipython()
    if not hasattr(shell, "get_parent"):  # no shell, or one in a terminal
        raise UsageError(
            "a live query can only be displayed in a notebook",
            condition="NO_NOTEBOOK",
            hint="call relation.start('console'), or use .watch in windrow shell",
        )
    cell = shell.get_parent().get("metadata", {}).get("cellId")
    return (None if cell is None else str(cell)), int(shell.execution_count)


def _display(item: object) -> None:
    display(item)  # type: ignore[no-untyped-call] # IPython's

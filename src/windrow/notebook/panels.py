"""Live queries in the output of a cell: what they tell, refreshed as long as they run, and a button."""

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
    """Which queries were shown by which run of which cell: a cell that is run again stops its own."""

    def __init__(self) -> None:
        self._runs: dict[str, tuple[int, list[LiveQuery]]] = {}
        self._shown: WeakKeyDictionary[LiveQuery, int] = WeakKeyDictionary()

    def begin(self, cell: str | None, run: int) -> None:
        """Stop what a cell has shown in runs before this one; of a cell without a name that is not known."""
        before, queries = self._runs.get(cell or "", (run, []))
        if cell is not None and before != run:
            self._runs.pop(cell)
            for query in queries:
                query.stop()

    def shows(self, query: LiveQuery, cell: str | None, run: int) -> None:
        """Take in that a run of a cell shows a query."""
        self._shown[query] = run
        if cell is not None:
            self._runs.setdefault(cell, (run, []))[1].append(query)

    def is_shown(self, query: LiveQuery, run: int) -> bool:
        """Whether a run shows a query."""
        return self._shown.get(query) == run


_cells = Cells()


def show_query(query: LiveQuery) -> None:
    """Show a query that was started, unless this run of the cell shows it already."""
    _, run = _running()
    if not _cells.is_shown(query, run):
        open_panel(query)


def before_start() -> None:
    """Stop what this cell has started and shown when it was run before."""
    _cells.begin(*_running())


def open_panel(query: LiveQuery, body: Callable[[], str] = str) -> None:
    """Show a query in the output of the cell as long as it runs, and its end.

    Parameters
    ----------
    query
        The query.
    body
        Gives HTML to show below what the query tells of itself.
    """
    _cells.shows(query, *_running())
    button = _stop_button(query)
    if button is not None:
        _display(button)
    handle: Any = display(_html(query, body), display_id=True)  # type: ignore[no-untyped-call] # IPython's

    def follow() -> None:
        shown: HTML | None = None
        is_active = True
        while is_active:
            is_active = query.is_active  # before the rows, so that the last ones are seen
            told = _html(query, body)
            if shown is None or told.data != shown.data:
                handle.update(told)
                shown = told
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
        # a step that is at work is waited for, and the notebook need not wait
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
            "only notebooks show live queries as they run",
            condition="NO_NOTEBOOK",
            hint="relation.start('console') prints what they give, windrow shell has .watch",
        )
    cell = shell.get_parent().get("metadata", {}).get("cellId")
    return (None if cell is None else str(cell)), int(shell.execution_count)


def _display(shown: object) -> None:
    display(shown)  # type: ignore[no-untyped-call] # IPython's

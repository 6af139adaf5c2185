"""``%load_ext windrow``: SQL in cells of a notebook, with the options of the command line.

:mod:`~windrow.notebook.options` reads the line of the magic, :mod:`~windrow.notebook.magics` runs the cell.
:mod:`~windrow.notebook.watching` shows what live queries give, in :mod:`~windrow.notebook.panels`.
"""

from __future__ import annotations

from typing import Any

from windrow.notebook.magics import WindrowMagics
from windrow.notebook.panels import show_query
from windrow.notebook.watching import show_live, show_started, watch
from windrow.relation_kinds import LiveRelation, StartedRelation
from windrow.spark.live import LiveQuery

__all__ = ["load", "watch"]


def load(ipython: Any) -> None:
    """Give an IPython shell ``%windrow`` and ``%%windrow``; a notebook shows live queries as they run."""
    ipython.register_magics(WindrowMagics(ipython))
    if hasattr(ipython, "kernel"):  # a terminal shows them as the texts that they are
        shown = ipython.display_formatter.ipython_display_formatter
        shown.for_type(LiveRelation, show_live)
        shown.for_type(StartedRelation, show_started)
        shown.for_type(LiveQuery, show_query)

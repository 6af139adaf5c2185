"""``%load_ext windrow``: SQL in cells of a notebook, with the options of the command line.

:mod:`~windrow.notebook.magic_options` reads the line of the magic, :mod:`~windrow.notebook.magics` runs the
cell. :mod:`~windrow.notebook.watching` displays the output of live queries, in
:mod:`~windrow.notebook.panels`.
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
    """Register ``%windrow`` and ``%%windrow`` in an IPython shell, and the display of live queries."""
    ipython.register_magics(WindrowMagics(ipython))
    if hasattr(ipython, "kernel"):  # a terminal displays them as text
        formatter = ipython.display_formatter.ipython_display_formatter
        formatter.for_type(LiveRelation, show_live)
        formatter.for_type(StartedRelation, show_started)
        formatter.for_type(LiveQuery, show_query)

"""Charts that notebooks show without a network."""

from __future__ import annotations

import io
from functools import cache
from typing import Any

import altair as alt

from windrow.plot.theme import Picture

__all__ = ["offline"]


def offline(chart: Picture) -> Picture:
    """The chart, which a notebook shows as SVG; Altair's own way loads scripts from the network.

    Where another renderer of Altair's has been chosen, that is used.
    """
    kind: Any = type(chart)
    object.__setattr__(chart, "__class__", _offline(kind))  # to Altair attributes are what is drawn
    return chart


@cache
def _offline(kind: Any) -> type:
    def _repr_mimebundle_(self: Any, *include: Any, **options: Any) -> Any:
        if alt.renderers.active not in ("", "default", "html"):
            return kind._repr_mimebundle_(self, *include, **options)
        drawn = io.StringIO()
        self.save(drawn, format="svg")
        return {"image/svg+xml": drawn.getvalue(), "text/plain": kind.__repr__(self)}

    members = {"_repr_mimebundle_": _repr_mimebundle_, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), members)

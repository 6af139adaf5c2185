"""A picture of a stream in order of arrival: rows by processing time and rowtime, bounds, and late rows."""

from __future__ import annotations

from typing import Any

import altair as alt

from windrow.plot.scene import ArrivalScene
from windrow.plot.theme import (
    LATE,
    VARIABLES,
    WIDTH,
    WINDOW,
    Picture,
    axis_of,
    heading,
    legend_of,
    marks,
    place,
    styled,
)

__all__ = ["draw_arrivals"]

_HEIGHT = 300
_LATE = "late"


def draw_arrivals(scene: ArrivalScene, width: int | None = None) -> Picture:
    """The picture of a stream."""
    producers = list(dict.fromkeys(entry.producer for entry in scene.arrivals))
    named = {producer: producer or "rows" for producer in producers}
    palette = [colour for colour in VARIABLES if colour != LATE]
    colours = {named[producer]: palette[at % len(palette)] for at, producer in enumerate(producers)}
    if len(producers) == 1:
        colours = {named[producers[0]]: WINDOW}
    x_domain = _domain([entry.arrived for entry in scene.arrivals])
    rows: list[dict[str, Any]] = []
    late: list[dict[str, Any]] = []
    bounds: list[dict[str, Any]] = []
    reached: dict[str, float] = {}
    for entry in scene.arrivals:
        one = {"x": entry.arrived, "group": named[entry.producer]}
        if entry.rowtime is not None:
            if entry.is_late:
                bound = reached.get(entry.producer, entry.rowtime)
                late.append({**one, "y": entry.rowtime, "bound": bound, "group": _LATE})
            else:
                rows.append({**one, "y": entry.rowtime})
        if entry.bound is not None and entry.bound > reached.get(entry.producer, float("-inf")):
            reached[entry.producer] = entry.bound
            bounds.append({**one, "y": entry.bound})
    bounds += [
        {"x": x_domain[1], "group": named[producer], "y": bound} for producer, bound in reached.items()
    ]
    if late:
        colours[_LATE] = LATE
    y_domain = _domain([one["y"] for one in (*rows, *late, *bounds)])
    y_axis = axis_of(scene.y, tickCount=6, domain=False, ticks=False)
    kind = "T" if scene.y.is_time else "Q"
    y_scale = alt.Scale(
        type="utc" if scene.y.is_time else "linear", domain=list(y_domain), nice=False, zero=False
    )

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:{kind}", scale=y_scale, axis=y_axis)

    x = place("x", scene.x, x_domain, axis_of(scene.x, grid=False, tickCount=10))
    colour = legend_of("group", colours)
    layers: list[alt.Chart] = []
    if bounds:
        layers.append(
            marks(bounds)
            .mark_line(interpolate="step-after", strokeWidth=2, aria=False)
            .encode(x=x, y=y("y"), color=colour)
        )
    layers.append(
        marks(rows)
        .mark_point(filled=True, size=44, opacity=1, stroke="white", strokeWidth=0.8, aria=False)
        .encode(x=x, y=y("y"), color=colour)
    )
    if late:
        base = marks(late)
        layers.append(
            base.mark_rule(strokeDash=[2, 2], strokeWidth=1.2, aria=False).encode(
                x=x, y=y("y"), y2="bound:Q", color=colour
            )
        )
        layers.append(
            base.mark_point(shape="cross", angle=45, filled=True, size=90, opacity=1, aria=False).encode(
                x=x, y=y("y"), color=colour
            )
        )
    title = heading(scene.title, _subtitle(scene, len(rows), len(late), bool(bounds)))
    return styled(alt.layer(*layers).properties(width=width or WIDTH, height=_HEIGHT, title=title))


def _domain(places: list[float]) -> tuple[float, float]:
    if not places:
        return 0.0, 1.0
    first, last = min(places), max(places)
    air = (last - first) * 0.03 or 1.0
    return first - air, last + air


def _subtitle(scene: ArrivalScene, rows: int, late: int, has_bounds: bool) -> list[str]:
    parts = [f"{rows:,} row{'' if rows == 1 else 's'} on time", f"{late:,} late" if late else "none late"]
    if len(scene.arrivals) < scene.entry_count:
        parts.append(f"the first {len(scene.arrivals):,} of {scene.entry_count:,} entries")
    lines = [" · ".join(parts)]
    if has_bounds:
        lines.append("a line is a bound: later rows of this producer must not be below it")
    return lines

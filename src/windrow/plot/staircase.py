"""A changelog as a staircase: the value of each row while it is there, or how many rows there are."""

from __future__ import annotations

from itertools import pairwise

import altair as alt

from windrow.plot.scene import Axis, Interval, VaryingScene
from windrow.plot.theme import (
    FAINT,
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

__all__ = ["draw_staircase"]

_HEIGHT = 240
_BESIDE = 3
"""Pixels between the lines of two keys with the same value, so that both are visible; fewer for many keys."""
_ASIDE = 4.5
"""And from their value, at most."""
_ROWS = "rows in the relation"


def draw_staircase(scene: VaryingScene, width: int | None = None) -> Picture:
    """The picture of a changelog."""
    intervals = scene.intervals if scene.y is not None else _counted(scene)
    y_axis = scene.y or Axis(_ROWS, is_whole=True)
    keys = list(dict.fromkeys(interval.key for interval in intervals))
    drawn_keys = keys[: len(VARIABLES)]
    colours = dict(zip(drawn_keys, VARIABLES, strict=False)) if len(keys) > 1 else dict.fromkeys(keys, WINDOW)
    enters = [interval.enter for interval in intervals]
    leaves = [interval.leave for interval in intervals if interval.leave is not None]
    first, last = min([scene.first, *enters]), max([scene.last, *enters, *leaves])
    air = (last - first) * 0.02 or 1.0
    domain = (first - air / 2, last + air)
    treads, risers, dots = [], [], []
    beside = min(_BESIDE, 2 * _ASIDE / max(len(drawn_keys) - 1, 1))
    for number, key in enumerate(drawn_keys):
        own = [one for one in intervals if one.key == key and one.amount is not None]
        of_key = {"key": key, "shift": beside * (number - (len(drawn_keys) - 1) / 2)}
        for one in own:
            end = domain[1] if one.leave is None else one.leave
            treads.append({"from": one.enter, "to": end, "value": one.amount, "row": one.text, **of_key})
            dots.append({"x": one.enter, "value": one.amount, "row": one.text, **of_key})
        for one, later in pairwise(own):
            if one.leave == later.enter:
                risers.append({"x": later.enter, "from": one.amount, "to": later.amount, **of_key})
    shift = alt.ExprRef("datum.shift")
    scale = alt.Scale(zero=scene.y is None, padding=10)
    y_axis_shown = axis_of(y_axis, tickCount=6, domain=False, ticks=False)
    y = alt.Y("value:Q", axis=y_axis_shown, scale=scale)
    axis = axis_of(scene.x, grid=False, tickCount=10)
    x, at = (place(field, scene.x, domain, axis) for field in ("from", "x"))
    colour = legend_of("key", colours, is_drawn=len(keys) > 1)
    tread = (
        marks(treads)
        .mark_rule(strokeWidth=2.4, strokeCap="round", yOffset=shift, aria=False)
        .encode(x=x, x2="to:Q", y=y, color=colour, tooltip=["row:N", "value:Q"])
    )
    riser = (
        marks(risers)
        .mark_rule(strokeWidth=1.2, opacity=0.55, yOffset=shift, y2Offset=shift, aria=False)
        .encode(x=at, y=alt.Y("from:Q", scale=scale, axis=y_axis_shown), y2="to:Q", color=colour)
    )
    dot = (
        marks(dots)
        .mark_point(
            filled=True, size=36, opacity=1, stroke="white", strokeWidth=0.8, yOffset=shift, aria=False
        )
        .encode(x=at, y=y, color=colour, tooltip=["row:N"])
    )
    end = (
        marks([{"x": scene.last}])
        .mark_rule(strokeDash=[3, 3], color=FAINT, strokeWidth=1, aria=False)
        .encode(x=at)
    )
    title = heading(scene.title, _subtitle(scene, len(keys)))
    chart = alt.layer(end, tread, riser, dot).properties(width=width or WIDTH, height=_HEIGHT, title=title)
    return styled(chart)


def _counted(scene: VaryingScene) -> tuple[Interval, ...]:
    """How many rows there are, from one change to the next."""
    changes: dict[float, int] = {}
    for interval in scene.intervals:
        changes[interval.enter] = changes.get(interval.enter, 0) + 1
        if interval.leave is not None:
            changes[interval.leave] = changes.get(interval.leave, 0) - 1
    places = sorted(place for place, by in changes.items() if by)
    counted, rows = [], 0
    for at, later in zip(places, [*places[1:], None], strict=False):
        rows += changes[at]
        counted.append(Interval("", f"{rows:,} rows", "", at, later, float(rows)))
    return tuple(counted)


def _subtitle(scene: VaryingScene, keys: int) -> list[str]:
    parts = ["a dot where a row enters, a line while it stays; dashed: the end of what is recorded"]
    if len(scene.intervals) < scene.row_count:
        parts.append(f"the first {len(scene.intervals):,} of {scene.row_count:,} rows")
    if keys > len(VARIABLES):
        parts.append(f"the first {len(VARIABLES)} of {keys:,} keys; key=… names other columns")
    return parts

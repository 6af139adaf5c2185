"""A picture of the rows of a time-varying relation: bars of their validity, by key."""

from __future__ import annotations

import altair as alt

from windrow.plot.lanes import lanes
from windrow.plot.scene import Interval, VaryingScene
from windrow.plot.theme import (
    INK,
    LINE,
    VARIABLES,
    WIDTH,
    WINDOW,
    Picture,
    axis_of,
    heading,
    marks,
    place,
    styled,
)

__all__ = ["draw_validity"]

_LANE = 20
_LANES = 40
_LONGEST = 40
_LETTER = 6.4


def draw_validity(scene: VaryingScene, width: int | None = None) -> Picture:
    """The picture of a time-varying relation.

    Rows of one key share a line if they do not overlap; the bars have their other values.
    """
    width = width or WIDTH
    placed, labels, cuts = _placed(scene)
    colours = {label: VARIABLES[at % len(VARIABLES)] for at, (_, label) in enumerate(labels)}
    domain = _domain(scene)
    pixels = width / (domain[1] - domain[0])
    drawn, entered, stays, texts = [], [], [], []
    for interval, lane in placed:
        end = domain[1] if interval.leave is None else interval.leave
        colour = colours.get(_short(interval.key), WINDOW) if len(labels) > 1 else WINDOW
        one = {"row": interval.text, "colour": colour, "x": interval.enter, "lane": lane + 0.5}
        drawn.append({**one, "to": end, "upper": lane + 0.18, "lower": lane + 0.82})
        entered.append({**one, "upper": lane + 0.08, "lower": lane + 0.92})
        if interval.leave is None:
            stays.append({**one, "x": end})
        if interval.rest and len(interval.rest) * _LETTER + 10 < (end - interval.enter) * pixels:
            texts.append({**one, "text": interval.rest})
    count = max((lane for _, lane in placed), default=0) + 1
    scale = alt.Scale(domain=[count, 0], nice=False, zero=False)
    x = place("x", scene.x, domain, axis_of(scene.x, tickCount=10, grid=True))
    paint = alt.Color("colour:N", scale=None)

    def y(field: str) -> alt.Y:
        return alt.Y(f"{field}:Q", scale=scale, axis=None)

    layers = [
        marks([{"lane": at} for at in cuts])
        .mark_rule(color=LINE, strokeWidth=0.7, aria=False)
        .encode(y=y("lane")),
        marks(drawn)
        .mark_rect(cornerRadius=2, opacity=0.9, aria=False)
        .encode(x=x, x2="to:Q", y=y("upper"), y2="lower:Q", color=paint, tooltip=["row:N"]),
        marks(entered)
        .mark_rule(strokeWidth=2.5, aria=False)
        .encode(x=x, y=y("upper"), y2="lower:Q", color=paint),
        marks(texts)
        .mark_text(align="left", dx=6, color="white", fontSize=10.5, aria=False)
        .encode(x=x, y=y("lane"), text="text:N"),
        marks([{"lane": at + 0.5, "text": label} for at, label in labels])
        .mark_text(align="right", dx=-8, fontSize=11, color=INK, aria=False)
        .encode(x=alt.value(0), y=y("lane"), text="text:N"),
        marks(stays)
        .mark_point(shape="triangle-right", filled=True, size=90, opacity=1, xOffset=4, aria=False)
        .encode(x=x, y=y("lane"), color=paint),
    ]
    title = heading(scene.title, _subtitle(scene, len(placed)))
    return styled(
        alt.layer(*[layer for layer in layers if layer.data.values]).properties(
            width=width, height=count * _LANE, title=title
        )
    )


def _placed(scene: VaryingScene) -> tuple[list[tuple[Interval, int]], list[tuple[int, str]], list[int]]:
    """The lane of each drawn interval, the lanes with a key beside them, and those between keys."""
    placed: list[tuple[Interval, int]] = []
    labels: list[tuple[int, str]] = []
    cuts: list[int] = []
    base = 0
    for key in dict.fromkeys(interval.key for interval in scene.intervals):
        if base >= _LANES:
            break
        own = [interval for interval in scene.intervals if interval.key == key]
        # the instant of leaving is no longer in it
        found = lanes(
            [(one.enter, one.leave if one.leave is not None else float("inf")) for one in own], shared=False
        )
        placed += [(one, base + at) for one, at in zip(own, found, strict=True) if base + at < _LANES]
        labels.append((base, _short(key)))
        base += max(found) + 1
        cuts.append(base)
    return placed, labels, cuts[:-1] if base <= _LANES else []


def _domain(scene: VaryingScene) -> tuple[float, float]:
    """From the first insert to the last change, with some margin."""
    enters = [interval.enter for interval in scene.intervals]
    leaves = [interval.leave for interval in scene.intervals if interval.leave is not None]
    first = min([scene.first, *enters])
    last = max([scene.last, *enters, *leaves])
    air = (last - first) * 0.02 or 1.0
    return first - air / 2, last + air


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _subtitle(scene: VaryingScene, placed: int) -> list[str]:
    parts = [f"{scene.row_count:,} row{'' if scene.row_count == 1 else 's'}"]
    if placed < scene.row_count:
        parts.append(f"{placed:,} of them are drawn")
    if any(interval.leave is None for interval in scene.intervals):
        parts.append("an arrow: the row stays")
    return [" · ".join(parts)]

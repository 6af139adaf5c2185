"""Colours, type and spacing: the same in every picture, on white and on the grey of a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import altair as alt

from windrow.plot.scene import Axis

__all__ = [
    "FAINT",
    "INK",
    "LATE",
    "LINE",
    "MARK",
    "NOTHING",
    "OPEN",
    "VARIABLES",
    "WIDTH",
    "WINDOW",
    "Picture",
    "axis_of",
    "heading",
    "legend_of",
    "marks",
    "place",
    "styled",
]

WIDTH = 720
"""The width of the plot itself, in pixels."""

Picture = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart
"""The types of Altair charts that a picture may be."""

INK = "#22303c"
FAINT = "#8a97a3"
LINE = "#c3ccd4"
WINDOW = "#2f7fb8"
OPEN = "#9fcbe8"
MARK = "#e07b2c"
LATE = "#c9362b"
NOTHING = "#c3ccd4"

VARIABLES = (
    "#2f7fb8",
    "#e07b2c",
    "#3a9a6b",
    "#b0539c",
    "#c9a227",
    "#5b6fc0",
    "#c9362b",
    "#4aa3a2",
    "#7d6a58",
)
"""For the variables of a pattern, producers and keys: distinct also to most who see fewer colours."""

_TIMES = {
    "year": "%Y", "quarter": "%b %Y", "month": "%b %Y", "week": "%b %d", "date": "%b %d", "day": "%b %d",
    "hours": "%H:%M", "minutes": "%H:%M", "seconds": "%H:%M:%S", "milliseconds": "%S.%L",
}  # fmt: skip
"""How the ticks of an axis are written that begin a year, a month, …; hours are those of a day of 24."""

_FONT = "Inter, 'Helvetica Neue', Arial, 'Liberation Sans', sans-serif"


def marks(rows: Sequence[Mapping[str, Any]]) -> alt.Chart:
    """A chart with these rows as its data."""
    return alt.Chart(alt.InlineData(values=list(rows)))


def styled(chart: Picture) -> Picture:
    """The chart with the fonts, grid and spacing of all pictures."""
    config = alt.Config(
        font=_FONT,
        background="white",
        padding=16,
        view=alt.ViewConfig(stroke=None),
        axis=alt.AxisConfig(
            labelColor=INK,
            titleColor=FAINT,
            titleFontWeight="normal",
            titleFontSize=11,
            labelFontSize=11,
            gridColor="#eef1f4",
            domainColor=LINE,
            tickColor=LINE,
            labelFlush=False,
        ),
        title=alt.TitleConfig(
            anchor="start",
            color=INK,
            fontSize=15,
            fontWeight=600,
            subtitleColor=FAINT,
            subtitleFontSize=11.5,
            subtitlePadding=5,
            offset=12,
            frame="group",
        ),
        legend=alt.LegendConfig(
            labelColor=INK,
            titleColor=FAINT,
            titleFontWeight="normal",
            labelFontSize=11,
            titleFontSize=11,
            orient="top",
            direction="horizontal",
            offset=14,
            symbolSize=80,
        ),
        concat=alt.CompositionConfig(spacing=6),
    )
    configured: Picture = chart.configure(**config.to_dict())
    return configured


def heading(title: str, subtitle: list[str]) -> alt.TitleParams:
    """The title of a picture, with the omitted part and an explanation below."""
    return alt.TitleParams(title, subtitle=subtitle) if subtitle else alt.TitleParams(title)


def axis_of(axis: Axis, **options: object) -> alt.Axis:
    """An axis with its title; times are in the session's zone."""
    if axis.is_whole:
        options["tickMinStep"] = 1
    if axis.is_time:
        options |= {"format": _TIMES, "formatType": "time"}
    return alt.Axis(title=axis.title, labelOverlap=True, **options)  # type: ignore[arg-type] # of Altair's


def legend_of(field: str, colours: Mapping[str, str], *, is_drawn: bool = True) -> alt.Color:
    """The colour of a field whose values have these colours, and the legend of them."""
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    legend = alt.Legend(title=None, symbolType="circle", symbolOpacity=1) if is_drawn else None
    return alt.Color(f"{field}:N", scale=scale, legend=legend)


def place(field: str, axis: Axis, domain: tuple[float, float], drawn: alt.Axis | None) -> alt.X:
    """A place along the x axis, whose scale has this domain."""
    kind: Literal["utc", "linear"] = "utc" if axis.is_time else "linear"
    scale = alt.Scale(type=kind, domain=list(domain), nice=False, zero=False)
    return alt.X(f"{field}:{'T' if axis.is_time else 'Q'}", scale=scale, axis=drawn)

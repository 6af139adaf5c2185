"""Windows as spans over their sequence, with the values beneath."""

from __future__ import annotations

import altair as alt

from windrow.plot.chart_panels import (
    Panel,
    Shared,
    bars,
    edges,
    lane_axis,
    sequence_picture,
    values_panel,
)
from windrow.plot.lanes import lanes
from windrow.plot.scene import DrawnSequence, DrawnSpan, SequenceScene
from windrow.plot.theme import MARK, NOTHING, OPEN, WIDTH, WINDOW, Picture, legend_of, marks, place

__all__ = ["draw_windows"]

_LANE = 13
_LANES = 24
_CLOSED, _OPEN, _LABEL, _NONE = "in a window", "in an open window", "label row", "in no window"


def draw_windows(scene: SequenceScene, width: int | None = None) -> Picture:
    """The picture of a WINDOW BY."""
    spans = [span for sequence in scene.sequences for span in sequence.windows]
    colours = {_CLOSED: WINDOW}
    if any(_group(span) == _OPEN for span in spans):
        colours[_OPEN] = OPEN
    if any(span.label is not None for span in spans):
        colours[_LABEL] = MARK
    colours[_NONE] = NOTHING
    return sequence_picture(Shared(scene, colours, width or WIDTH), _panel, "window")


def _panel(shared: Shared, sequence: DrawnSequence) -> Panel:
    spans = sorted(sequence.windows, key=lambda span: (span.start, span.stop))
    found = lanes([(span.start, span.stop) for span in spans])
    fitting = [(span, lane) for span, lane in zip(spans, found, strict=True) if lane < _LANES]
    count = max((lane for _, lane in fitting), default=0) + 1
    half = shared.reach
    drawn, labels = [], []
    rows = sequence.rows
    for span, lane in fitting:
        first, last = edges(sequence, span.start, span.stop, half)
        ends = rows[span.stop].text if span.stop < len(rows) else "beyond what is drawn"
        drawn.append(
            {
                "from": first, "to": last, "lane": lane, "group": _group(span),
                "first row": rows[span.start].text, "last row": ends, "rows": span.stop - span.start + 1,
            }
        )  # fmt: skip
        if span.label is not None and span.label < len(rows):
            labels.append({"x": rows[span.label].x, "lane": lane + 0.5, "label row": rows[span.label].text})
    layers = [
        bars(drawn, shared, count, 0.62, cornerRadius=3).encode(
            color=legend_of("group", shared.colours),
            tooltip=["first row:N", "last row:N", "rows:Q", "group:N"],
        )
    ]
    if labels:
        diamond = marks(labels).mark_point(
            shape="diamond",
            filled=True,
            size=44,
            color=MARK,
            opacity=1,
            stroke="white",
            strokeWidth=1,
            aria=False,
        )
        layers.append(
            diamond.encode(
                x=place("x", shared.scene.x, shared.domain, None),
                y=lane_axis("lane", count),
                tooltip=["label row:N"],
            )
        )
    top = alt.layer(*layers).properties(width=shared.width, height=count * _LANE)
    groups = _groups(sequence)
    beneath = values_panel(shared, sequence, groups)
    hidden = len(spans) - len(fitting)
    return Panel(sequence, top, beneath, f"{hidden:,} more beneath these" if hidden else None)


def _groups(sequence: DrawnSequence) -> list[str]:
    """For each row, its role in the windows, the first of these that applies: label, closed, open."""
    groups = [_NONE] * len(sequence.rows)
    for kind in (_OPEN, _CLOSED):
        for span in sequence.windows:
            if _group(span) == kind:
                stop = min(span.stop + 1, len(groups))
                groups[span.start : stop] = [kind] * (stop - span.start)
    for span in sequence.windows:
        if span.label is not None and span.label < len(groups):
            groups[span.label] = _LABEL
    return groups


def _group(span: DrawnSpan) -> str:
    return _CLOSED if span.opens and span.closes else _OPEN

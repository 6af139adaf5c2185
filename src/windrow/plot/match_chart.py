"""Matches as spans over their sequence, each row with the variable that it matched."""

from __future__ import annotations

import altair as alt

from windrow.plot.chart_panels import Panel, Shared, bars, edges, sequence_picture, values_panel
from windrow.plot.lanes import lanes
from windrow.plot.scene import DrawnSequence, SequenceScene
from windrow.plot.theme import LINE, NOTHING, VARIABLES, WIDTH, Picture, legend_of

__all__ = ["draw_matches"]

_LANE = 17
_LANES = 20
_NONE = "in no match"


def draw_matches(scene: SequenceScene, width: int | None = None) -> Picture:
    """The picture of a MATCH_RECOGNIZE."""
    colours = {name: VARIABLES[at % len(VARIABLES)] for at, name in enumerate(scene.variables)}
    colours[_NONE] = NOTHING
    return sequence_picture(Shared(scene, colours, width or WIDTH), _panel, "match")


def _panel(shared: Shared, sequence: DrawnSequence) -> Panel:
    matches = sorted(sequence.matches, key=lambda match: (match.rows[0].position, match.number))
    found = lanes([(match.rows[0].position, match.rows[-1].position) for match in matches])
    drawn = [(match, lane) for match, lane in zip(matches, found, strict=True) if lane < _LANES]
    count = max((lane for _, lane in drawn), default=0) + 1
    half = shared.reach
    spans, cells = [], []
    groups = [_NONE] * len(sequence.rows)
    for match, lane in drawn:
        first, last = edges(sequence, match.rows[0].position, match.rows[-1].position, half * 1.15)
        if match.until is not None:
            last = max(last, match.until)
        spans.append({"from": first, "to": last, "lane": lane, "match": match.number})
        for row in match.rows:
            if row.position >= len(sequence.rows):
                break
            own = sequence.rows[row.position]
            cells.append(
                {
                    "from": own.x - half, "to": own.x + half, "lane": lane, "group": row.variable,
                    "row": own.text, "match": match.number,
                }
            )  # fmt: skip
            if groups[row.position] == _NONE:
                groups[row.position] = row.variable
    span = bars(
        spans, shared, count, 0.82, cornerRadius=4, color="#f4f6f8", stroke=LINE, strokeWidth=1
    ).encode(tooltip=["match:Q"])
    cell = bars(cells, shared, count, 0.46, cornerRadius=2).encode(
        color=legend_of("group", shared.colours), tooltip=["group:N", "row:N", "match:Q"]
    )
    top = alt.layer(span, cell).properties(width=shared.width, height=count * _LANE)
    beneath = values_panel(shared, sequence, groups)
    hidden = len(matches) - len(drawn)
    return Panel(sequence, top, beneath, f"{hidden:,} more beneath these" if hidden else None)

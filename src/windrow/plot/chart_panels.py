"""Shared by pictures of windows and of matches: one panel for each sequence, values below, and the title."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from statistics import median
from typing import Any, Literal

import altair as alt

from windrow.plot.scene import Axis, Row, SequenceScene
from windrow.plot.scene import DrawnSequence as Drawn
from windrow.plot.theme import FAINT, INK, LINE, Picture, axis_of, heading, legend_of, marks, place, styled

__all__ = ["Panel", "Shared", "bars", "edges", "lane_axis", "sequence_picture", "values_panel"]

_HEIGHT = 130
_BARE = 18
_LEVEL = 22
_LETTERS = 18
"""Longer texts are truncated in the names of levels."""
_SHARE = 0.36
"""How much of the distance between two rows each has on one side."""
_SEEN = 4
"""So many pixels to each side of a row can be seen."""
_POINTS = 300
"""More rows than that are a line without points."""


@dataclass(frozen=True)
class Panel:
    """The chart of one sequence: the results in it above, its values below, and a remark."""

    sequence: Drawn
    top: Picture
    beneath: Picture
    remark: str | None = None


@dataclass(frozen=True)
class Shared:
    """The common settings of all panels of a picture: the drawn sequences, the colours of groups, and the
    width.

    A sequence that is `alone` has its own axis.
    """

    scene: SequenceScene
    colours: Mapping[str, str]
    width: int
    alone: Drawn | None = None

    @property
    def sequences(self) -> tuple[Drawn, ...]:
        """The sequences with a common axis."""
        return self.scene.sequences if self.alone is None else (self.alone,)

    @cached_property
    def places(self) -> tuple[float, float] | None:
        """The places of the first and the last row, and of the ends of matches; None if there are none."""
        places = [row.x for sequence in self.sequences for row in sequence.rows]
        matches = [match for sequence in self.sequences for match in sequence.matches]
        places += [match.until for match in matches if match.until is not None]
        return (min(places), max(places)) if places else None

    @cached_property
    def domain(self) -> tuple[float, float]:
        """All places, with a little air."""
        if self.places is None:
            return 0.0, 1.0
        return self.places[0] - 2 * self.reach, self.places[1] + 2 * self.reach

    @cached_property
    def reach(self) -> float:
        """How far a row reaches to each side: less than half of the distance between rows of a sequence.

        That is the least distance, where it can be seen, so that no row seems to last; and never more than
        the usual one.
        """
        first, last = self.places or (0.0, 0.0)
        seen = (last - first) * _SEEN / self.width
        distances = [distance for sequence in self.sequences for distance in _distances(sequence)]
        if not distances:
            return seen or _SHARE
        return min(_SHARE * median(distances), max(_SHARE * min(distances), seen))


def _distances(sequence: Drawn) -> list[float]:
    """The distances between rows."""
    return [later.x - one.x for one, later in pairwise(sequence.rows) if later.x > one.x]


def edges(sequence: Drawn, start: int, stop: int, half: float) -> tuple[float, float]:
    """Where a range of rows begins and ends, including its first and last row."""
    last = min(stop, len(sequence.rows) - 1)
    return sequence.rows[start].x - half, sequence.rows[last].x + half


def lane_axis(field: str, count: int) -> alt.Y:
    """The place of a lane, of so many, from the top; the axis is invisible."""
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[count, 0], nice=False, zero=False), axis=None)


def bars(items: list[dict[str, Any]], shared: Shared, count: int, thickness: float, **mark: Any) -> alt.Chart:
    """Bars from `from` to `to` in their `lane`, of so many lanes; `thickness` is a share of the lane's."""
    margin = (1 - thickness) / 2
    placed = [{**one, "upper": one["lane"] + margin, "lower": one["lane"] + 1 - margin} for one in items]
    drawn: alt.Chart = (
        marks(placed)
        .mark_rect(aria=False, **mark)
        .encode(
            x=place("from", shared.scene.x, shared.domain, None),
            x2="to:Q",
            y=lane_axis("upper", count),
            y2="lower:Q",
        )
    )
    return drawn


def values_panel(shared: Shared, sequence: Drawn, groups: Sequence[str]) -> Picture:
    """The rows as points along a line, coloured by group, with NULLs below; gaps are dashed lines.

    Texts have a level each. Without values, all points are on one level.
    """
    scene = shared.scene
    points = [
        {
            "x": row.x, "value": row.value if scene.y else 0, "row": row.text, "group": group,
            "shown": _shown(row, scene.y),
        }
        for row, group in zip(sequence.rows, groups, strict=True)
    ]  # fmt: skip
    x_axis = axis_of(scene.x, grid=False, tickCount=10)
    if sequence is not scene.sequences[-1]:
        x_axis.title = None
    x, y = place("x", scene.x, shared.domain, x_axis), _values_axis(scene.y)
    height = _height(scene.y)
    is_dense = len(points) > _POINTS
    colour = FAINT if is_dense else LINE
    # a text is valid until the next row
    steps: Literal["step-after", "linear"] = "step-after" if scene.y and scene.y.levels else "linear"
    base = marks(points)
    layers = [base.mark_line(color=colour, strokeWidth=1.5, aria=False, interpolate=steps).encode(x=x, y=y)]
    nulls = [point for point in points if point["value"] is None]
    if nulls:
        cross = marks(nulls).mark_point(
            shape="cross", angle=45, size=30, filled=True, color=FAINT, aria=False
        )
        layers.append(cross.encode(x=x, y=alt.value(height - 5), tooltip=["row:N", "shown:N"]))
    if not is_dense:
        mark = base.mark_point(filled=True, size=38, opacity=1, stroke="white", strokeWidth=0.8, aria=False)
        tooltip = ["row:N", alt.Tooltip("shown:N", title="value"), "group:N"]
        layers.append(mark.encode(x=x, y=y, color=legend_of("group", shared.colours), tooltip=tooltip))
    layers += _gap_marks(sequence, x)
    return alt.layer(*layers).properties(width=shared.width, height=height)


def _shown(row: Row, axis: Axis | None) -> str | float | None:
    """A value as a reader sees it: the text of a level, or the number."""
    if axis is None:
        return None
    if row.value is None:
        return "NULL"
    return axis.levels[int(row.value)] if axis.levels else row.value


def _values_axis(axis: Axis | None) -> alt.Y:
    if axis is None:
        return alt.Y("value:Q", axis=None, scale=alt.Scale(domain=[-1, 1]))
    if axis.levels:
        names = [_short(text) for text in axis.levels]
        named = axis_of(
            axis,
            values=list(range(len(names))),
            labelExpr=f"{json.dumps(names, ensure_ascii=False)}[datum.value]",
            domain=False,
            ticks=False,
        )
        return alt.Y("value:Q", axis=named, scale=alt.Scale(domain=[-0.7, len(names) - 0.6], nice=False))
    drawn = axis_of(axis, tickCount=4, domain=False, ticks=False)
    return alt.Y("value:Q", axis=drawn, scale=alt.Scale(zero=False, padding=8))


def _short(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


def _height(axis: Axis | None) -> int:
    if axis is None:
        return _BARE
    return max(len(axis.levels), 2) * _LEVEL if axis.levels else _HEIGHT


def _gap_marks(sequence: Drawn, x: alt.X) -> list[alt.Chart]:
    """The dashed lines between distant neighbouring rows, labelled with the distance."""
    gaps = [
        {"x": (sequence.rows[gap.after].x + sequence.rows[gap.after + 1].x) / 2, "gap": gap.text}
        for gap in sequence.gaps
    ]
    if not gaps:
        return []
    line = marks(gaps).mark_rule(color=FAINT, strokeDash=[3, 3], aria=False).encode(x=x, tooltip=["gap:N"])
    text = marks(gaps).mark_text(color=FAINT, fontSize=10, dy=-6, baseline="bottom", aria=False)
    return [line, text.encode(x=x, y=alt.value(0), text="gap:N")]


def sequence_picture(shared: Shared, drawn: Callable[[Shared, Drawn], Panel], what: str) -> Picture:
    """A panel for each `drawn` sequence, with the title and the omitted part."""
    scene = shared.scene
    charts = []
    # stretches of several sequences may be far from each other
    is_cut = any(sequence.skipped for sequence in scene.sequences)
    panels = [
        drawn(replace(shared, alone=sequence) if is_cut else shared, sequence) for sequence in scene.sequences
    ]
    for panel in panels:
        title = alt.TitleParams(
            panel.sequence.title or "all rows",
            subtitle=_subtitle(scene, panel, what),
            fontSize=12,
            color=INK,
            offset=6,
            subtitleFontSize=11,
        )
        charts.append(alt.vconcat(panel.top.properties(title=title), panel.beneath, spacing=2))
    subtitle = [*scene.subtitle] if charts else [*scene.subtitle, "no rows"]
    if scene.more_sequences:
        subtitle.append("there are more partitions: partitions=N draws N of them, key=… one")
    whole = alt.vconcat(*charts, spacing=16, title=heading(scene.title, subtitle))
    return styled(whole.resolve_scale(color="shared", x="independent"))


def _subtitle(scene: SequenceScene, panel: Panel, what: str) -> str:
    sequence = panel.sequence
    found = sequence.found_count
    plural = {"window": "windows", "match": "matches"}[what]
    parts = [f"{found:,} {what if found == 1 else plural}" if found else f"no {plural}"]
    if len(sequence.rows) < sequence.row_count:
        last = sequence.skipped + len(sequence.rows)
        parts.append(f"rows {sequence.skipped + 1:,} to {last:,} of {sequence.row_count:,}")
    else:
        parts.append(f"{sequence.row_count:,} row{'' if sequence.row_count == 1 else 's'}")
    if sequence.rows and scene.order is not None:
        parts.append(f"{scene.order} {sequence.rows[0].text} to {sequence.rows[-1].text}")
    if scene.y is not None and any(row.value is None for row in sequence.rows):
        parts.append("× NULL")
    return " · ".join([*parts, panel.remark] if panel.remark else parts)

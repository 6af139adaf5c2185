"""From scenes to charts: what stands where, without Spark."""

from __future__ import annotations

import json
import re

import pytest

from windrow.errors import UsageError
from windrow.plot import save
from windrow.plot.arrival_chart import draw_arrivals
from windrow.plot.match_chart import draw_matches
from windrow.plot.scene import (
    Arrival,
    ArrivalScene,
    Axis,
    Classified,
    DrawnMatch,
    DrawnSequence,
    DrawnSpan,
    Gap,
    Interval,
    Row,
    SequenceScene,
    VaryingScene,
)
from windrow.plot.staircase import draw_staircase
from windrow.plot.theme import axis_of
from windrow.plot.validity import draw_validity
from windrow.plot.window_chart import draw_windows

pytest.importorskip("altair")

DAY = Axis("day", is_whole=True)
ROWS = tuple(Row(float(day), float(day % 4), str(day)) for day in range(1, 11))


def windows(*spans, rows=ROWS, count=None):

    sequence = DrawnSequence(
        "k = a", rows, windows=spans, row_count=count or len(rows), found_count=len(spans)
    )
    return draw_windows(SequenceScene("windows w", DAY, Axis("value"), (sequence,)))


def layers(chart):
    """The rows of each layer of a chart, in order, by the mark that shows them."""
    whole = chart.to_dict()
    datasets = whole.get("datasets", {})
    found = []

    def visit(part, data=None):
        if isinstance(part, dict):
            data = part.get("data", data)
            if "mark" in part:
                rows = data["values"] if "values" in data else datasets[data["name"]]
                found.append((part["mark"]["type"], rows))
            for inner in part.values():
                visit(inner, data)
        elif isinstance(part, list):
            for inner in part:
                visit(inner, data)

    visit({key: value for key, value in whole.items() if key != "datasets"})
    return found


def of(chart, mark):
    return [row for kind, rows in layers(chart) if kind == mark for row in rows]


def test_a_window_reaches_from_its_first_row_to_its_last():
    (bar,) = of(windows(DrawnSpan(1, 3)), "rect")
    assert bar["from"] < 2.0 < 4.0 < bar["to"]
    # no further than half the way to the rows outside of it
    assert bar["from"] > 1.5
    assert bar["to"] < 4.5
    assert (bar["first row"], bar["last row"], bar["rows"]) == ("2", "4", 3)


def placed(*places):
    return tuple(Row(float(place), 0.0, str(place)) for place in places)


def test_a_window_of_few_rows_far_apart_does_not_seem_to_last_longer_than_they_do():
    first, last = of(windows(DrawnSpan(0, 2), DrawnSpan(3, 3), rows=placed(0, 30, 31, 90)), "rect")
    # four pixels of the 720, and not a third of the half hour that rows are usually apart
    assert (first["from"], first["to"]) == (-0.5, 31.5)
    assert (last["from"], last["to"]) == (89.5, 90.5)


def test_a_sequence_of_one_row_has_a_mark_as_wide_as_those_of_the_others():
    one = DrawnSequence("k = a", placed(3), windows=(DrawnSpan(0, 0),), row_count=1, found_count=1)
    more = DrawnSequence("k = b", placed(1, 2, 3, 4), windows=(DrawnSpan(0, 0),), row_count=4, found_count=1)
    bars = of(draw_windows(SequenceScene("windows w", DAY, None, (one, more))), "rect")
    assert [round(bar["to"] - bar["from"], 6) for bar in bars] == [0.72, 0.72]


def test_texts_have_a_level_each_that_is_named_on_the_axis():
    rows = tuple(Row(float(at), level, str(at)) for at, level in enumerate([0.0, 1.0, None, 0.0]))
    sequence = DrawnSequence("k = a", rows, windows=(DrawnSpan(0, 1),), row_count=4, found_count=1)
    state = Axis("state", levels=("off", "a name of more than eighteen letters"))
    chart = draw_windows(SequenceScene("windows w", DAY, state, (sequence,)))
    points = [row for row in of(chart, "point") if "shown" in row]
    assert [(row["value"], row["shown"]) for row in points if row["value"] is not None] == [
        (0.0, "off"), (1.0, "a name of more than eighteen letters"), (0.0, "off"),
    ]  # fmt: skip
    said = json.dumps(chart.to_dict(), ensure_ascii=False)
    assert "a name of more th…" in said
    assert "× NULL" in said


def test_gaps_between_rows_side_by_side_are_marked_with_their_length(tmp_path):
    rows = tuple(Row(float(at), 1.0, str(at)) for at in range(1, 5))
    sequence = DrawnSequence("k = a", rows, row_count=4, gaps=(Gap(1, "2 days"),))
    chart = draw_windows(SequenceScene("windows w", Axis("row number"), Axis("value"), (sequence,)))
    assert of(chart, "rule") == [{"x": 2.5, "gap": "2 days"}]
    save(chart, tmp_path / "gap.svg")
    drawn = (tmp_path / "gap.svg").read_text(encoding="utf-8")
    assert "2 days" in drawn
    assert ">row number<" in drawn


def test_windows_that_overlap_are_in_different_lanes_and_others_share_one():
    bars = of(windows(DrawnSpan(0, 2), DrawnSpan(1, 3), DrawnSpan(3, 4)), "rect")
    assert [bar["lane"] for bar in bars] == [0, 1, 0]


def test_an_open_window_and_a_label_have_colours_of_their_own_and_a_legend():
    chart = windows(DrawnSpan(0, 2, label=1), DrawnSpan(4, 9, label=5, closes=False))
    assert [bar["group"] for bar in of(chart, "rect")] == ["in a window", "in an open window"]
    groups = [row["group"] for row in of(chart, "point") if "group" in row]
    assert groups == [
        "in a window", "label row", "in a window", "in no window", "in an open window", "label row",
        *["in an open window"] * 4,
    ]  # fmt: skip
    assert "in an open window" in json.dumps(chart.to_dict())
    assert "in an open window" not in json.dumps(windows(DrawnSpan(0, 2)).to_dict())


def test_a_window_that_goes_on_beyond_what_is_drawn_says_so():
    chart = windows(DrawnSpan(8, 30), count=40)
    (bar,) = of(chart, "rect")
    assert bar["last row"] == "beyond what is drawn"
    assert "rows 1 to 10 of 40" in json.dumps(chart.to_dict())


def test_more_windows_than_one_can_tell_apart_are_counted():
    rows = tuple(Row(float(at), 0.0, str(at)) for at in range(40))
    chart = windows(*(DrawnSpan(at, 39) for at in range(40)), rows=rows)
    assert len(of(chart, "rect")) == 24
    assert "16 more beneath these" in json.dumps(chart.to_dict())


def test_rows_of_one_place_and_no_rows_at_all_are_drawn(tmp_path):
    same = tuple(Row(5.0, 1.0, "5") for _ in range(3))
    save(windows(DrawnSpan(0, 2), rows=same), tmp_path / "same.svg")
    save(windows(rows=()), tmp_path / "none.svg")
    assert "no windows" in (tmp_path / "none.svg").read_text(encoding="utf-8")


def test_each_row_of_a_match_has_the_colour_of_its_variable():
    match = DrawnMatch(1, (Classified(2, "A"), Classified(3, "B")))
    sequence = DrawnSequence("", ROWS, matches=(match,), row_count=10, found_count=1)
    chart = draw_matches(SequenceScene("matches", DAY, Axis("value"), (sequence,), variables=("A", "B")))
    cells = [row for row in of(chart, "rect") if "group" in row]
    assert [(cell["row"], cell["group"]) for cell in cells] == [("3", "A"), ("4", "B")]
    assert [row["group"] for row in of(chart, "point")][1:5] == ["in no match", "A", "B", "in no match"]


def test_a_match_of_a_duration_reaches_to_where_its_time_is_over():
    match = DrawnMatch(1, (Classified(8, "A"),), until=14.0)
    sequence = DrawnSequence("", ROWS, matches=(match,), row_count=10, found_count=1)
    chart = draw_matches(SequenceScene("matches", DAY, Axis("value"), (sequence,), variables=("A",)))
    (span,) = (row for row in of(chart, "rect") if "group" not in row)
    assert span["from"] < 9.0
    assert span["to"] == 14.0
    (domain,) = {json.dumps(scale["domain"]) for scale in scales(chart)}
    assert json.loads(domain)[1] > 14.0


def scales(chart):
    """The scales of the x axes of a chart."""
    layered = [
        layer for panel in chart.to_dict()["vconcat"] for part in panel["vconcat"] for layer in part["layer"]
    ]
    return [layer["encoding"]["x"]["scale"] for layer in layered]


def test_a_picture_of_no_rows_says_so():
    shown = draw_windows(
        SequenceScene("windows w", DAY, Axis("value"), (), subtitle=("END WHEN e > 2",))
    ).to_dict()
    assert shown["title"]["subtitle"] == ["END WHEN e > 2", "no rows"]


def temporal(*intervals, y=None):
    return VaryingScene("relation", Axis("rowtime"), y, intervals, 0.0, 10.0, len(intervals))


def test_rows_of_one_key_share_a_line_where_they_are_not_there_at_once():
    scene = temporal(
        Interval("a", "a, 1", "1", 0.0, 4.0),
        Interval("a", "a, 2", "2", 4.0, 8.0),
        Interval("a", "a, 3", "3", 5.0, None),
        Interval("b", "b, 1", "1", 1.0, 2.0),
    )
    chart = draw_validity(scene)
    places = {row["row"]: row["lane"] for row in of(chart, "rect")}
    assert places == {"a, 1": 0.5, "a, 2": 0.5, "a, 3": 1.5, "b, 1": 2.5}
    assert [row["row"] for row in of(chart, "point")] == ["a, 3"]
    assert {row["text"] for row in of(chart, "text")} >= {"a", "b"}


def test_a_staircase_steps_from_value_to_value_of_a_key():
    scene = temporal(
        Interval("a", "a, 1", "1", 0.0, 4.0, 1.0),
        Interval("a", "a, 2", "2", 4.0, None, 2.0),
        Interval("b", "b, 5", "5", 6.0, 7.0, 5.0),
        y=Axis("n"),
    )
    rules = of(draw_staircase(scene), "rule")
    treads = [(row["key"], row["from"], row["value"]) for row in rules if "value" in row]
    assert treads == [("a", 0.0, 1.0), ("a", 4.0, 2.0), ("b", 6.0, 5.0)]
    assert [(row["x"], row["from"], row["to"]) for row in rules if "key" in row and "x" in row] == [
        (4.0, 1.0, 2.0)
    ]


def test_keys_of_one_value_have_lines_beside_each_other(tmp_path):
    both = [Interval(key, f"{key}, 2", "2", 0.0, 9.0, 2.0) for key in ("a", "b")]
    chart = draw_staircase(temporal(*both, y=Axis("n")))
    assert [(row["value"], row["shift"]) for row in of(chart, "point")] == [(2.0, -1.5), (2.0, 1.5)]
    save(chart, tmp_path / "steps.svg")
    drawn = (tmp_path / "steps.svg").read_text(encoding="utf-8")
    (dots,) = re.findall(r'<g class="mark-symbol role-mark.*?</g>', drawn)
    heights = [float(height) for height in re.findall(r"translate\([^,]+,([^)]+)\)", dots)]
    assert [height - heights[0] for height in heights] == [0, 3]
    (one,) = of(draw_staircase(temporal(both[0], y=Axis("n"))), "point")
    assert one["shift"] == 0
    many = [Interval(key, f"{key}, 2", "2", 0.0, 9.0, 2.0) for key in "abcdefg"]
    shifts = [row["shift"] for row in of(draw_staircase(temporal(*many, y=Axis("n"))), "point")]
    assert shifts == [-4.5, -3.0, -1.5, 0, 1.5, 3.0, 4.5]


def test_without_numbers_a_staircase_counts_the_rows():
    scene = temporal(Interval("a", "a", "", 0.0, 4.0), Interval("b", "b", "", 2.0, 6.0))
    rules = of(draw_staircase(scene), "rule")
    assert [(row["from"], row["value"]) for row in rules if "value" in row] == [
        (0.0, 1.0), (2.0, 2.0), (4.0, 1.0), (6.0, 0.0),
    ]  # fmt: skip


def test_a_late_row_hangs_from_the_bound_of_its_own_producer():
    arrivals = (
        Arrival(1.0, "web", 10.0, None),
        Arrival(2.0, "web", None, 20.0),
        Arrival(3.0, "app", 5.0, 4.0),
        Arrival(4.0, "web", 15.0, None, is_late=True),
    )
    chart = draw_arrivals(ArrivalScene("s", Axis("came"), Axis("rowtime"), arrivals, 4))
    (late,) = of(chart, "rule")
    assert (late["y"], late["bound"], late["group"]) == (15.0, 20.0, "late")
    assert "2 rows on time \\u00b7 1 late" in json.dumps(chart.to_dict())


@pytest.mark.parametrize("suffix", ["svg", "png", "html", "json"])
def test_a_picture_is_saved_in_the_form_that_the_name_says(tmp_path, suffix):
    path = tmp_path / f"picture.{suffix}"
    save(windows(DrawnSpan(1, 3)), path)
    begins = {"svg": b"<svg", "png": b"\x89PNG", "html": b"<!DOCTYPE html>", "json": b"{"}[suffix]
    content = path.read_bytes()
    assert content.lstrip().startswith(begins)
    if suffix == "html":
        # all that shows it is in the file
        assert b'src="http' not in content


def test_another_suffix_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(UsageError, match="UNKNOWN_FORMAT") as refused:
        save(windows(), tmp_path / "picture.gif")
    assert ".svg" in refused.value.hint


def test_many_rows_are_a_line_without_points():
    rows = tuple(Row(float(at), float(at % 7), str(at)) for at in range(301))
    assert of(windows(DrawnSpan(3, 9), rows=rows), "point") == []
    assert len(of(windows(DrawnSpan(3, 9), rows=rows), "line")) == 301
    assert len(of(windows(DrawnSpan(3, 9), rows=rows[:300]), "point")) == 300


def test_an_axis_of_time_has_a_day_of_24_hours():
    shown = axis_of(Axis("ts", is_time=True)).to_dict()
    assert shown["format"]["hours"] == shown["format"]["minutes"] == "%H:%M"
    assert "format" not in axis_of(Axis("day")).to_dict()

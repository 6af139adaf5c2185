"""The reference interpreter's WINDOW BY: the paper's worked example, each rule by itself, and laws."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windrow.errors import UsageError
from windrow.kernels.reference import (
    BoundRow,
    OrderKey,
    ReferenceBoundary,
    WindowBy,
    compile_expression,
    window_by,
)

STATIONS = [
    {"station": 2, "date": 2, "val": 31},
    {"station": 1, "date": 5, "val": 28},
    {"station": 1, "date": 1, "val": 20},
    {"station": 2, "date": 1, "val": 22},
    {"station": 1, "date": 4, "val": 23},
    {"station": 1, "date": 2, "val": 26},
]
"""The paper's section 3.4 after WHERE, which took out station 1's date 3; in no particular order."""


def on(
    when: str | None = None, only: bool = False, unbounded: bool = False, **names: str
) -> ReferenceBoundary:
    """A boundary from its SQL: `as_`, `at`, `prev`, `next` are the names."""
    predicate = compile_expression(when) if when is not None else None
    return ReferenceBoundary(when=predicate, only=only, unbounded=unbounded, **names)


def clause(
    kind: str,
    start: ReferenceBoundary,
    end: ReferenceBoundary | None = None,
    label: ReferenceBoundary | None = None,
    partition_by: Sequence[str] = (),
    order_by: Sequence[OrderKey] | None = None,
) -> WindowBy:
    return WindowBy(
        name="w",
        tumbling=kind == "tumbling",
        partition_by=tuple(compile_expression(key) for key in partition_by),
        order_by=tuple(order_by or [OrderKey(compile_expression("date"))]),
        start=start,
        end=end,
        label=label,
    )


def days(*values: Any) -> list[dict[str, Any]]:
    """Rows of dates 1, 2, … with these values."""
    return [{"date": date, "val": value} for date, value in enumerate(values, 1)]


def dates(window: dict[str, Any]) -> list[int | None]:
    """The window's rows by date, the markers as None."""
    return [row and row["date"] for row in window["w"]]


def extents(rows: Sequence[dict[str, Any]], window_clause: WindowBy) -> list[list[int | None]]:
    return [dates(window) for window in window_by(rows, window_clause)]


class TestTheWorkedExample:
    """Sections 3.4 and 4.4: three windows; one with ONLY; one with LABEL that has a start."""

    @staticmethod
    def three_tuples(only: bool = False) -> WindowBy:
        start = on("s.val < 25", as_="s", at="sp")
        return clause("sliding", start, on("ep - sp = 2", only, at="ep"), partition_by=["station"])

    def test_three_windows(self) -> None:
        windows = window_by(STATIONS, self.three_tuples())
        assert [(w["s"]["station"], w["s"]["date"], w["sp"], w["ep"], dates(w)) for w in windows] == [
            (2, 1, 1, None, [1, 2, None]),
            (1, 1, 1, 3, [1, 2, 4]),
            (1, 4, 3, None, [4, 5, None]),
        ]

    def test_the_variables_come_in_the_order_declared_and_w_last(self) -> None:
        assert list(window_by(STATIONS, self.three_tuples())[0]) == ["s", "sp", "ep", "w"]

    def test_only_end_leaves_the_one_closed_window(self) -> None:
        (window,) = window_by(STATIONS, self.three_tuples(only=True))
        assert (window["s"], dates(window)) == ({"station": 1, "date": 1, "val": 20}, [1, 2, 4])

    @staticmethod
    def around_the_label(only: bool = False) -> WindowBy:
        return clause(
            "sliding",
            on("lp - sp = 1", only, at="sp"),
            on("ep - lp = 1", at="ep"),
            label=on("l.val < 25", as_="l", at="lp"),
            partition_by=["station"],
        )

    def test_a_label_without_a_preceding_row_has_no_start(self) -> None:
        windows = window_by(STATIONS, self.around_the_label())
        assert [(w["l"]["station"], w["lp"], w["sp"], w["ep"], dates(w)) for w in windows] == [
            (2, 1, None, 2, [None, 1, 2]),
            (1, 1, None, 2, [None, 1, 2]),
            (1, 3, 2, 4, [2, 4, 5]),
        ]

    def test_only_start_leaves_the_label_at_station_1_date_4(self) -> None:
        (window,) = window_by(STATIONS, self.around_the_label(only=True))
        assert (window["l"]["station"], window["l"]["date"], dates(window)) == (1, 4, [2, 4, 5])

    def test_cumulative_windows_end_at_the_label_row(self) -> None:
        cumulative = clause(
            "sliding",
            on(unbounded=True),
            on("e = l", as_="e"),
            label=on(as_="l"),
            partition_by=["station"],
        )
        assert extents(STATIONS, cumulative) == [[1], [1, 2], [1], [1, 2], [1, 2, 4], [1, 2, 4, 5]]


class TestSliding:
    def test_each_row_with_a_true_start_opens_a_window(self) -> None:
        until_warm = clause("sliding", on("s.val < 25", as_="s"), on("n.val >= 25", next="n"))
        assert extents(days(20, 21, 26, 22), until_warm) == [[1, 2], [2], [4, None]]

    def test_a_window_may_end_at_its_first_row(self) -> None:
        assert extents(days(1, 2), clause("sliding", on(), on())) == [[1], [2]]

    def test_an_open_window_has_null_end_variables_and_a_trailing_marker(self) -> None:
        never = clause("sliding", on("sp = 1", at="sp"), on("FALSE", as_="e", at="ep", prev="p", next="n"))
        (window,) = window_by(days(1, 2), never)
        assert window == {"sp": 1, "e": None, "ep": None, "p": None, "n": None, "w": [*days(1, 2), None]}

    def test_only_end_drops_open_windows(self) -> None:
        pairs = clause("sliding", on(at="sp"), on("ep - sp = 1", only=True, at="ep"))
        assert extents(days(1, 2, 3), pairs) == [[1, 2], [2, 3]]

    def test_only_start_drops_nothing_without_a_label(self) -> None:
        assert extents(days(1, 2), clause("sliding", on(only=True), on())) == [[1], [2]]

    def test_end_unbounded_is_closed_at_the_partitions_end(self) -> None:
        to_the_end = clause("sliding", on(), on(unbounded=True, only=True, as_="e", at="ep"))
        windows = window_by(days(1, 2), to_the_end)
        assert [(dates(w), w["e"]["date"], w["ep"]) for w in windows] == [([1, 2], 2, 2), ([2], 2, 2)]

    def test_start_unbounded_is_one_window_from_the_first_row(self) -> None:
        warm = on("e.val > 25", as_="e")
        assert extents(days(20, 26, 27), clause("sliding", on(unbounded=True), warm)) == [[1, 2]]

    def test_both_unbounded_is_the_whole_partition(self) -> None:
        assert extents(days(1, 2, 3), clause("sliding", on(unbounded=True), on(unbounded=True))) == [
            [1, 2, 3]
        ]

    def test_a_null_predicate_is_not_true(self) -> None:
        assert extents(days(None, 1), clause("sliding", on("s.val > 0", as_="s"), on())) == [[2]]
        assert extents(days(1, None), clause("sliding", on(), on("e.val > 0", as_="e"))) == [[1], [2, None]]

    def test_no_rows_no_windows(self) -> None:
        assert window_by([], clause("sliding", on(unbounded=True), on(unbounded=True))) == []

    def test_end_is_required(self) -> None:
        with pytest.raises(UsageError, match="MISSING_END"):
            clause("sliding", on())


class TestTumbling:
    def test_a_window_closes_before_the_next_opens(self) -> None:
        pairs = clause("tumbling", on(at="sp"), on("ep - sp = 1", at="ep"))
        assert extents(days(1, 2, 3, 4, 5), pairs) == [[1, 2], [3, 4], [5, None]]

    def test_rows_between_windows_belong_to_none(self) -> None:
        cold = clause("tumbling", on("s.val < 25", as_="s"), on("n.val >= 25", next="n"))
        assert extents(days(20, 21, 26, 27, 22), cold) == [[1, 2], [5, None]]

    def test_only_end_filters_after_the_choice(self) -> None:
        # The open window of row 2 keeps row 3 from starting one, and is then dropped.
        rows = days(0, 5, 1)
        until_one_less = clause(
            "tumbling", on("sp > 1", at="sp", as_="s"), on("e.val > s.val", only=True, as_="e")
        )
        assert extents(rows, until_one_less) == []

    def test_without_end_a_window_runs_to_the_row_before_the_next_start(self) -> None:
        months = clause("tumbling", on("s.val = 1", as_="s"))
        assert extents(days(9, 1, 2, 3, 1, 1, 2), months) == [[2, 3, 4], [5], [6, 7]]

    def test_without_end_and_when_each_row_is_a_window(self) -> None:
        assert extents(days(1, 2), clause("tumbling", on())) == [[1], [2]]

    def test_start_unbounded_is_one_window(self) -> None:
        assert extents(days(1, 2, 3), clause("tumbling", on(unbounded=True), on("ep = 2", at="ep"))) == [
            [1, 2]
        ]
        assert extents(days(1, 2, 3), clause("tumbling", on(unbounded=True))) == [[1, 2, 3]]

    def test_predicates_are_not_evaluated_inside_an_open_window(self) -> None:
        # Row 2 would divide by zero.
        rows = days(1, 0, 1)
        guarded = clause("tumbling", on("1 / s.val = 1", as_="s", at="sp"), on("ep - sp = 1", at="ep"))
        assert extents(rows, guarded) == [[1, 2], [3, None]]

    def test_a_session_ends_where_the_gap_is_too_long(self) -> None:
        rows = [{"date": date} for date in (1, 2, 3, 10, 11, 20)]
        session = clause("tumbling", on(), on("n IS NULL OR n.date - e.date > 5", as_="e", next="n"))
        assert extents(rows, session) == [[1, 2, 3], [10, 11], [20]]


class TestLabel:
    def test_start_and_end_may_lie_wholly_before_the_label(self) -> None:
        before = clause(
            "sliding", on("lp - sp = 3", only=True, at="sp"), on("lp - ep = 2", at="ep"), on(at="lp")
        )
        assert extents(days(1, 2, 3, 4, 5), before) == [[1, 2], [2, 3]]

    def test_start_and_end_may_lie_wholly_after_the_label(self) -> None:
        after = clause("sliding", on("sp - lp = 1", at="sp"), on("ep - lp = 2", at="ep"), on(at="lp"))
        assert extents(days(1, 2, 3), after) == [[2, 3], [3, None], [None, 1, 2, 3, None]]

    def test_start_is_the_first_row_that_satisfies_it(self) -> None:
        same = clause("sliding", on("s.val = l.val", as_="s"), on("e = l", as_="e"), on(as_="l"))
        assert extents(days(7, 8, 7), same) == [[1], [2], [1, 2, 3]]

    def test_an_unsatisfied_start_runs_from_the_first_row_with_null_variables(self) -> None:
        never = clause(
            "sliding", on("FALSE", as_="s", at="sp", prev="p", next="n"), on("e = l", as_="e"), on(as_="l")
        )
        window = window_by(days(1, 2), never)[1]
        row = {"date": 2, "val": 2}
        assert window == {
            "l": row,
            "s": None,
            "sp": None,
            "p": None,
            "n": None,
            "e": row,
            "w": [None, *days(1, 2)],
        }

    def test_an_end_that_needs_the_missing_start_is_unsatisfied(self) -> None:
        never = clause("sliding", on("FALSE", at="sp"), on("ep > sp", at="ep"), on("lp = 1", at="lp"))
        assert extents(days(1, 2), never) == [[None, 1, 2, None]]

    def test_only_start_and_only_end_together(self) -> None:
        around = clause(
            "sliding",
            on("lp - sp = 1", only=True, at="sp"),
            on("ep - lp = 1", only=True, at="ep"),
            on(at="lp"),
        )
        assert extents(days(1, 2, 3), around) == [[1, 2, 3]]

    def test_start_unbounded_is_satisfied(self) -> None:
        from_the_first = clause("sliding", on(unbounded=True, only=True), on("e = l", as_="e"), on(as_="l"))
        assert extents(days(1, 2), from_the_first) == [[1], [1, 2]]

    def test_tumbling_keeps_by_start_then_label(self) -> None:
        # The windows are [1..2] of labels 1 and 2, [2..3] of label 3, [3..4] of label 4.
        rows = [{"date": date, "from": start} for date, start in enumerate([1, 1, 2, 3], 1)]
        two = clause("tumbling", on("sp = l.`from`", at="sp"), on("ep - sp = 1", at="ep"), on(as_="l"))
        windows = window_by(rows, two)
        assert [(w["l"]["date"], dates(w)) for w in windows] == [(1, [1, 2]), (4, [3, 4])]

    def test_tumbling_only_start_filters_after_the_choice(self) -> None:
        # Label 1 has no start: its window takes rows 1 and 2, so that label 2's [1..2] is not kept.
        previous = clause(
            "tumbling", on("lp - sp = 1", only=True, at="sp"), on("ep >= 2", at="ep"), on(at="lp")
        )
        assert extents(days(1, 2, 3, 4), previous) == [[3]]

    def test_tumbling_without_end_runs_to_the_next_labels_start(self) -> None:
        same = clause("tumbling", on("s.val = l.val", as_="s"), label=on(as_="l"))
        assert extents(days(7, 8, 7, 8), same) == [[1], [2, 3, 4]]

    def test_label_takes_no_only(self) -> None:
        with pytest.raises(UsageError, match="INVALID_LABEL"):
            clause("sliding", on(), on(), label=on(only=True))


class TestVariables:
    def test_neighbours_outside_the_partition_are_null(self) -> None:
        beside = clause("sliding", on(prev="p", next="n"), on())
        windows = window_by(days(1, 2), beside)
        assert [(w["p"], w["n"]) for w in windows] == [(None, days(1, 2)[1]), (days(1)[0], None)]

    def test_neighbours_are_of_the_partition_not_of_the_window(self) -> None:
        last = clause("sliding", on("sp = 2", at="sp"), on("ep = 2", at="ep", prev="p", next="n"))
        (window,) = window_by(days(1, 2, 3), last)
        assert (window["p"]["date"], window["n"]["date"]) == (1, 3)

    def test_a_missing_neighbour_is_a_row_of_nulls(self) -> None:
        last = clause("sliding", on("COALESCE(n.val, 100) = 100", next="n"), on())
        assert extents(days(1, 2), last) == [[2]]

    def test_positions_count_from_1_in_each_partition(self) -> None:
        first = clause("sliding", on("sp = 1", as_="s", at="sp"), on(), partition_by=["station"])
        assert [w["s"]["date"] for w in window_by(STATIONS, first)] == [1, 1]

    def test_row_variables_are_equal_when_they_are_the_same_row(self) -> None:
        twins = [{"date": 1, "val": 1}, {"date": 1, "val": 1}]
        same = clause("sliding", on(unbounded=True), on("e = l", as_="e"), on(as_="l"))
        assert [len(w["w"]) for w in window_by(twins, same)] == [1, 2]
        other = clause("sliding", on("s <> l", as_="s"), on(), on("lp = 1", as_="l", at="lp"))
        (window,) = window_by(twins, other)
        assert window["s"] is window["w"][0] is not window["l"]

    def test_a_row_inside_a_row_is_a_struct_and_compares_by_value(self) -> None:
        inner = BoundRow({"x": 1})
        rows = [{"date": 1, "r": inner}, {"date": 2, "r": BoundRow({"x": 1})}]
        same = clause("sliding", on("sp = 1", as_="s", at="sp"), on("ep = 2 AND e.r = s.r", as_="e", at="ep"))
        assert extents(rows, same) == [[1, 2]]

    def test_label_variables_are_visible_in_start_and_start_variables_in_end(self) -> None:
        through = clause(
            "sliding",
            on("s.val = l.val", as_="s"),
            on("e.val = s.val + l.val", as_="e"),
            on("lp = 2", as_="l", at="lp"),
        )
        assert extents(days(1, 3, 6), through) == [[2, 3]]


class TestPartitionsAndOrder:
    whole = (on(unbounded=True), on(unbounded=True))

    def test_nulls_nans_and_the_two_zeros_are_each_one_partition(self) -> None:
        keys = [None, 0.0, float("nan"), -0.0, None, float("nan")]
        rows = [{"date": date, "key": key} for date, key in enumerate(keys, 1)]
        assert extents(rows, clause("sliding", *self.whole, partition_by=["key"])) == [[1, 5], [2, 4], [3, 6]]

    def test_several_keys(self) -> None:
        rows = [{"date": d, "a": d % 2, "b": d // 3} for d in range(1, 5)]
        assert extents(rows, clause("sliding", *self.whole, partition_by=["a", "b"])) == [[1], [2], [3], [4]]

    @pytest.mark.parametrize(
        ("descending", "nulls_first", "expected"),
        [
            (False, True, [2, 4, 3, 1, 5]),
            (False, False, [4, 3, 1, 5, 2]),
            (True, False, [5, 1, 4, 3, 2]),
            (True, True, [2, 5, 1, 4, 3]),
        ],
    )
    def test_nulls_and_nan_in_order(self, descending: bool, nulls_first: bool, expected: list[int]) -> None:
        values = [1.0, None, 0.0, -0.0, float("nan")]
        rows = [{"date": date, "val": value} for date, value in enumerate(values, 1)]
        key = OrderKey(compile_expression("val"), descending, nulls_first)
        # -0.0 = 0.0, so that the second key decides between rows 3 and 4.
        by_date = OrderKey(compile_expression("date"), descending=True)
        assert extents(rows, clause("sliding", *self.whole, order_by=[key, by_date])) == [expected]

    def test_ties_keep_the_order_of_the_input(self) -> None:
        rows = [{"date": date, "val": 1} for date in (3, 1, 2)]
        key = OrderKey(compile_expression("val"))
        assert extents(rows, clause("sliding", *self.whole, order_by=[key])) == [[3, 1, 2]]


VALUES = st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=9)
STARTS = st.sampled_from([None, "s.val < 2", "p IS NULL OR p.val <> s.val", "sp % 2 = 1", "s.val > n.val"])
ENDS = st.sampled_from([None, "e.val > s.val", "ep - sp = 2", "m IS NULL", "m.val < e.val", "e.val IS NULL"])


def start_of(when: str | None) -> ReferenceBoundary:
    return on(when, as_="s", at="sp", prev="p", next="n")


def end_of(when: str | None, only: bool = False) -> ReferenceBoundary:
    return on(when, only, as_="e", at="ep", next="m")


def ranges(windows: Sequence[dict[str, Any]]) -> list[tuple[int, int]]:
    """First and last date, without markers."""
    return [(rows[0]["date"], rows[-1]["date"]) for rows in ([r for r in w["w"] if r] for w in windows)]


class TestLaws:
    @given(VALUES, STARTS, ENDS)
    def test_tumbling_windows_are_sliding_windows_that_do_not_overlap(
        self, values: list[Any], start: str | None, end: str | None
    ) -> None:
        sliding = window_by(days(*values), clause("sliding", start_of(start), end_of(end)))
        tumbling = window_by(days(*values), clause("tumbling", start_of(start), end_of(end)))
        assert all(window in sliding for window in tumbling)
        chosen = ranges(tumbling)
        assert all(last < first for (_, last), (first, _) in itertools.pairwise(chosen))
        # And none is left out that begins after the window before it has ended.
        for first, _ in ranges(sliding):
            assert any(low <= first <= high for low, high in chosen)

    @given(VALUES, STARTS, ENDS, st.sampled_from(["sliding", "tumbling"]))
    def test_only_end_keeps_exactly_the_windows_that_have_one(
        self, values: list[Any], start: str | None, end: str | None, kind: str
    ) -> None:
        every = window_by(days(*values), clause(kind, start_of(start), end_of(end)))
        only = window_by(days(*values), clause(kind, start_of(start), end_of(end, only=True)))
        assert only == [window for window in every if window["e"] is not None]

    @given(VALUES, STARTS, ENDS, st.booleans(), st.sampled_from(["sliding", "tumbling"]))
    def test_a_window_is_consecutive_rows_from_its_start_to_its_end(
        self, values: list[Any], start: str | None, end: str | None, labelled: bool, kind: str
    ) -> None:
        label = on("l.val IS NOT NULL", as_="l") if labelled else None
        for window in window_by(days(*values), clause(kind, start_of(start), end_of(end), label)):
            rows = window["w"]
            inner = [row for row in rows if row is not None]
            assert [row["date"] for row in inner] == list(range(inner[0]["date"], inner[-1]["date"] + 1))
            assert (rows[0] is None) == (window["s"] is None)
            assert (rows[-1] is None) == (window["e"] is None)
            assert window["s"] is None or window["s"] is inner[0]
            assert window["e"] is None or window["e"] is inner[-1]

    @given(VALUES, STARTS, ENDS)
    def test_a_label_at_the_start_row_is_no_label(
        self, values: list[Any], start: str | None, end: str | None
    ) -> None:
        plain = window_by(days(*values), clause("sliding", start_of(start), end_of(end)))
        label_is_start = on(start, as_="s", at="sp", prev="p", next="n")
        labelled = clause("sliding", on("first_ = s", as_="first_"), end_of(end), label_is_start)
        windows = window_by(days(*values), labelled)
        assert [window["w"] for window in windows] == [window["w"] for window in plain]

    @given(VALUES, STARTS)
    def test_tumbling_without_end_covers_all_from_the_first_start_on(
        self, values: list[Any], start: str | None
    ) -> None:
        windows = window_by(days(*values), clause("tumbling", start_of(start)))
        covered = [row["date"] for window in windows for row in window["w"]]
        assert covered == list(range(covered[0], len(values) + 1)) if covered else True

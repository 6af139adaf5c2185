"""What windows of time are: properties of their definitions."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from windrow.kernels.reference.time_windows import windows_of

times = st.lists(st.integers(-60, 60), max_size=12)
length, offset = st.integers(1, 20), st.integers(-30, 30)


@given(times, length, length, offset)
def test_a_row_is_in_all_windows_of_a_hop_that_contain_it(times, hop, length, offset):
    found = windows_of("HOP", times, [()] * len(times), {"hopsize": hop, "dur": length, "offset": offset})
    begins = [offset + hop * number for number in range(-200, 200)]
    for time, windows in zip(times, found, strict=True):
        expected = {(begin, begin + length) for begin in begins if begin <= time < begin + length}
        assert set(windows) == expected
        assert len(windows) == len(expected)


@given(times, length, offset)
def test_tumbling_is_hopping_by_the_length(times, length, offset):
    keys = [()] * len(times)
    hops = windows_of("HOP", times, keys, {"hopsize": length, "dur": length, "offset": offset})
    assert windows_of("TUMBLE", times, keys, {"dur": length, "offset": offset}) == hops


@given(times, st.integers(1, 5), st.integers(1, 5), offset)
def test_cumulating_windows_are_the_beginnings_of_tumbling_ones(times, step, steps, offset):
    keys, size = [()] * len(times), step * steps
    found = windows_of("CUMULATE", times, keys, {"step": step, "dur": size, "offset": offset})
    tumbling = windows_of("TUMBLE", times, keys, {"dur": size, "offset": offset})
    for time, windows, ((begin, end),) in zip(times, found, tumbling, strict=True):
        assert windows == [(begin, stop) for stop in range(begin + step, end + 1, step) if time < stop]


@given(times, st.integers(1, 10), st.integers(1, 30) | st.none())
def test_sessions_part_where_there_is_a_gap_or_one_is_too_long(times, gap, longest):
    lengths = {"gap": gap} | ({} if longest is None else {"maxdur": longest})
    found = [windows[0] for windows in windows_of("SESSION", times, [()] * len(times), lengths)]
    for time, (begin, end) in zip(times, found, strict=True):
        assert begin <= time
        assert begin in times
        assert time < end
        assert longest is None or end - begin <= longest
    members = sorted(set(zip(times, found, strict=True)))
    for (one, first), (other, second) in pairwise(members):
        too_long = longest is not None and other - first[0] >= longest
        assert (first == second) == (other - one <= gap and not too_long)


def test_keys_have_their_own_sessions_and_no_time_is_in_no_window():
    found = windows_of("SESSION", [1, 2, None], ["a", "b", "a"], {"gap": 5})
    assert found == [[(1, 6)], [(2, 7)], []]
    assert windows_of("TUMBLE", [None], [()], {"dur": 5}) == [[]]

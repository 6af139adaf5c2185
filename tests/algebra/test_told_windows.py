"""The name by which a query that adds windows of time is known again."""

from __future__ import annotations

import pytest

from windrow.algebra.rewriting.time_windows_as_sql import sessions_of_alias, windows_of_alias


@pytest.mark.parametrize(
    ("alias", "told"),
    [
        ("__windows_tumble_5_0", ("TUMBLE", {"dur": 5, "offset": 0})),
        ("__windows_hop_5_10_m3", ("HOP", {"hopsize": 5, "dur": 10, "offset": -3})),
        ("__windows_session_4", ("SESSION", {"gap": 4})),
        # names that a user may give
        ("__windows_", None),
        ("__windows_tumble_5", None),
        ("__windows_of_3", None),
        ("bids", None),
        (None, None),
    ],
)
def test_only_names_of_ours_tell_of_windows(alias, told):
    assert windows_of_alias(alias) == told


@pytest.mark.parametrize(
    ("alias", "told"),
    [
        ("__windows_session_4", (4, None)),
        ("__lasting_4_60", (4, 60)),
        ("__windows_tumble_5_0", None),
        ("__lasting_4", None),
        (None, None),
    ],
)
def test_names_tell_of_sessions_and_how_long_they_last(alias, told):
    assert sessions_of_alias(alias) == told

"""Which columns of a query are a key of its rows, as far as its text shows."""

from __future__ import annotations

import pytest

from windrow.spark.live.sinks.keys import derived_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("SELECT a.k, b.k, COUNT(*) FROM a JOIN b ON a.t = b.t GROUP BY b.k, a.k", (1, 0)),
        ("SELECT a.k, COUNT(*) FROM a JOIN b ON a.t = b.t GROUP BY b.k, a.k", None),
        ("SELECT a.k, COUNT(*) FROM a GROUP BY k", (0,)),
        ("SELECT k = 'A' AS x, COUNT(*) FROM a GROUP BY k = 'A', k = 'a'", None),
        ("SELECT k, COUNT(*) FROM a GROUP BY k, x.k", None),
        ("SELECT b.k, COUNT(*) FROM a LEFT JOIN b USING (k) GROUP BY k, b.k", None),
        ("SELECT DISTINCT s.* EXCEPT (v) FROM s", None),
        ("SELECT DISTINCT inline(a) FROM s", None),
        ("SELECT k, explode(collect_set(v)) FROM s GROUP BY k", None),
        ("SELECT stack(2, 1, 2), k FROM s GROUP BY k", None),
    ],
)
def test_a_key_is_seen_where_it_is_certain(text, key):
    assert derived_key(text) == key

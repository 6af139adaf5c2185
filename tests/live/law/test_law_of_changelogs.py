"""CHANGELOG OF, under groups, orders and joins and beside windows, is live what it is over the whole log."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.live.law.test_law import BRACKETS, LOGS
from tests.live.random_logs import admitted, declared_live, ended, live, recorded
from tests.live.stepping import law, rows_of, total
from windrow.relation_kinds import VaryingRelation

GROUPED = "SELECT k, COUNT(*) AS n FROM s {} GROUP BY k"
EACH = [
    f"SELECT _change_type AS c, _commit_version AS at, k + n AS v FROM CHANGELOG OF ({GROUPED}) KEY (k)"
    " WHERE n > 0",
    f"SELECT k, _commit_timestamp AS at FROM CHANGELOG OF ({GROUPED}) AS c"
    " UNION ALL SELECT v, ts FROM CHANGELOG OF (SELECT v, ts FROM t {}) KEY (v)",
    f"SELECT c.* FROM CHANGELOG OF ({GROUPED}) AS c JOIN VALUES (1), (2), (2) AS l(one) ON c.n = l.one",
]
"""Queries that process each change alone."""

SO_FAR = [
    f"SELECT k, _change_type AS c, COUNT(*) AS n, MAX(n) AS m FROM CHANGELOG OF ({GROUPED}) GROUP BY ALL",
    "SELECT _change_type AS c, COUNT(*) AS n FROM CHANGELOG OF (SELECT k, v FROM s {}) KEY (k) GROUP BY ALL",
    f"SELECT DISTINCT n, _change_type AS c FROM CHANGELOG OF ({GROUPED}) KEY (k)",
    f"SELECT *, _commit_version + n AS m FROM CHANGELOG OF ({GROUPED})"
    " ORDER BY _commit_version DESC, k, n, _change_type LIMIT 3",
    f"SELECT a.k, a.n, b.v, b._change_type AS c FROM CHANGELOG OF ({GROUPED}) AS a"
    " LEFT JOIN CHANGELOG OF (SELECT k, v FROM t {}) AS b"
    " ON a.k = b.k AND a._commit_version > b._commit_version",
    f"SELECT k, n FROM CHANGELOG OF ({GROUPED})"
    " EXCEPT SELECT k, v FROM CHANGELOG OF (SELECT k, v FROM t {})",
    f"SELECT k, LAG(n) OVER (PARTITION BY k ORDER BY _commit_version, n, _change_type) AS n"
    f" FROM CHANGELOG OF ({GROUPED})",
    f"SELECT k, n FROM CHANGELOG OF ({GROUPED})"
    " WHERE n = (SELECT MAX(v) FROM CHANGELOG OF (SELECT v FROM t {}))",
]
"""Queries whose rows depend on several changes."""

WINDOWED = [
    f"SELECT k, _change_type AS c, COUNT(*) AS n FROM CHANGELOG OF ({GROUPED}) KEY (k) [RANGE 3]"
    " GROUP BY ALL",
    f"SELECT c.*, t.v FROM CHANGELOG OF ({GROUPED}) [RANGE UNBOUNDED] AS c JOIN t {{}} ON c.k = t.k",
    f"SELECT * FROM CHANGELOG OF ({GROUPED}) KEY (k) [PARTITION BY k ROWS 1]",
    f"SELECT ISTREAM(k, n, _change_type) FROM CHANGELOG OF ({GROUPED}) [ROWS 2]",
    f"SELECT STREAM k, n, _change_type AS c FROM CHANGELOG OF ({GROUPED}) KEY (k) [NOW]",
    "SELECT m, _change_type AS c FROM CHANGELOG OF (SELECT MAX(n) AS m"
    f" FROM CHANGELOG OF ({GROUPED}) [RANGE 2]) [RANGE UNBOUNDED]",
]
"""Changes in windows, also beside windows of streams."""


def compared(queries, agrees, examples):
    """The law for these queries."""

    @law(examples)
    @given(*LOGS, st.sampled_from(queries), st.sampled_from(BRACKETS), st.sampled_from(BRACKETS))
    @example(
        [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("b", 1, 1, 3, None), ("a", 5, 2, None, 4)],
        [("a", 2, 0, 1, 3), ("a", 5, 1, None, None), ("b", 6, 1, 2, None)],
        None,
        [0.3, 0.6],
        {1},
        queries[0],
        "[RANGE 3]",
        "[RANGE 4 SLIDE 2]",
    )
    @pytest.mark.usefixtures("interpreted")
    def test(spark, tmp_path_factory, s, t, lag, cuts, kills, query, window, other):
        query = query.format(window, other)
        logs = {name: ended(one) for name, one in (("s", s), ("t", t)) if f" {name} [" in query}
        # before its first row a stream has no watermark
        if not all(admitted(entries, lag) for entries in logs.values()):
            return
        folder = tmp_path_factory.mktemp("live")
        plan = declared_live(spark, folder, logs, lag).sql(query)._live
        found = live(spark, folder, logs, lag, cuts, kills, query)
        agrees(plan, found, recorded(spark, logs, lag).sql(query))

    return test


def _same_rows(plan, found, relation):
    assert not plan.is_relation
    assert rows_of(found) == rows_of([relation.to_arrow()])


def _same_when_folded(plan, found, relation):
    assert plan.is_relation
    folded: Counter = Counter()
    for (_, row), count in total(found).items():
        folded[str(row)] += count
    assert not -folded
    rows = relation.to_arrow().to_pylist()
    assert +folded == Counter(str(tuple(row.values())) for row in rows)


def _same_at_each_instant(plan, found, relation):
    if not plan.is_relation:
        _same_rows(plan, found, relation)
        return
    changed, meant = total(found), total([relation.changelog("diff").to_arrow()])
    assert (+changed, -changed) == (+meant, -meant)


@pytest.mark.sampled
@pytest.mark.parametrize("query", [*EACH, *SO_FAR, *WINDOWED])
def test_changes_are_those_of_the_reference(spark, query):
    query = query.format("[RANGE 3]", "[RANGE 4 SLIDE 2]")
    s = [("a", 0, 1, 1, None), ("a", 3, 1, 2, 2), ("a", 3, 2, 3, None), ("a", 5, 2, None, 4)]
    t = [("a", 2, 0, 1, 3), ("a", 5, 1, None, None), ("a", 6, 1, 2, None)]
    logs = {name: ended(one) for name, one in (("s", s), ("t", t)) if f" {name} [" in query}
    found, wanted = (recorded(spark, logs, None, execution=one).sql(query) for one in ("batch", "reference"))
    if isinstance(found, VaryingRelation):
        found, wanted = found.changelog("diff"), wanted.changelog("diff")
    assert rows_of([found.to_arrow()]) == rows_of([wanted.to_arrow()])


test_each_change_is_emitted_as_a_row = compared(EACH, _same_rows, 6)
test_what_gathers_changes_is_the_relation_of_those_so_far = compared(SO_FAR, _same_when_folded, 8)
test_windows_of_changes_are_those_of_any_stream = compared(WINDOWED, _same_at_each_instant, 8)

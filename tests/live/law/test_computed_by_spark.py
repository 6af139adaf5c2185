"""Live queries of which Spark computes parts: by types that Arrow does not have, or as a whole."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.live.law.test_forms_in_memory import S
from tests.live.queries.test_query import declared, put
from tests.live.random_logs import ended, folded, live, recorded
from tests.live.stepping import total

ROWS = "(SELECT k, v, substring('aAbBA', v + 1, 1) COLLATE UTF8_LCASE AS c FROM s [RANGE 3])"
QUERIES = {
    "groups of texts with a collation": f"SELECT c, COUNT(*) AS n FROM {ROWS} GROUP BY c",
    "different texts with a collation": f"SELECT DISTINCT c FROM {ROWS}",
    "a join by texts with a collation": f"SELECT a.v, b.v AS w FROM {ROWS} AS a"
    f" JOIN {ROWS} AS b ON a.c = b.c",
    "a condition on texts with a collation": f"SELECT v, c FROM {ROWS} WHERE c = 'A'",
    "an outer join beside texts with a collation": f"SELECT a.c, b.v AS w FROM {ROWS} AS a"
    " LEFT JOIN s [NOW] AS b ON a.v = b.v",
    "months": "SELECT k, i + INTERVAL 1 MONTH > INTERVAL 3 MONTH AS b FROM"
    " (SELECT DISTINCT k, make_ym_interval(0, v) AS i FROM s [RANGE 3])",
    "the longest of months": "SELECT k, CAST(i AS STRING) AS i FROM"
    " (SELECT k, MAX(make_ym_interval(0, v)) AS i FROM s [RANGE 3] GROUP BY k)",
    "the average of months": "SELECT k, CAST(AVG(make_ym_interval(0, v)) AS STRING) AS i FROM s [RANGE 3]"
    " GROUP BY k",
    "a join by months": "SELECT a.k, CAST(a.i AS STRING) AS i FROM (SELECT k, make_ym_interval(0, v) AS i"
    " FROM s [RANGE 3]) AS a LEFT JOIN (SELECT make_ym_interval(0, v) AS i FROM s [NOW]) AS b ON a.i = b.i",
    "variants": """SELECT k, to_json(parse_json(concat('{"a":', v, '}'))) AS j FROM s [RANGE 3]""",
    "rows of VALUES": "SELECT k FROM s [RANGE 3] UNION ALL VALUES (1L)",
    "rows of VALUES beside a window": "SELECT a.v, q.k FROM s [NOW] AS a JOIN (SELECT k FROM s [RANGE 3]"
    " UNION ALL VALUES (1L)) AS q ON q.k = a.k",
    "an order by what is computed": "SELECT -v AS v FROM s [RANGE 5] ORDER BY v + 0 LIMIT 1",
    "columns of lists": "SELECT array_join(sort_array(a), '') AS a FROM (SELECT k, v FROM s [RANGE 3])"
    " PIVOT (collect_list(v) FOR k IN (1 AS a, 2 AS b))",
    "nothing": "SELECT k, NULL AS n FROM s [RANGE 3]",
}


@pytest.mark.sampled
@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.usefixtures("interpreted")
def test_cuts_and_kills_change_nothing(spark, tmp_path, name):
    query, logs = QUERIES[name], {"s": ended(S)}
    found = live(spark, tmp_path, logs, None, [0.3, 0.55, 0.8], {1}, query)
    relation = recorded(spark, logs, None).sql(query)
    changed, meant = _total(found), _total([relation.changelog("diff").to_arrow()])
    assert +changed
    assert (+changed, -changed) == (+meant, -meant)


STREAMS = {
    "what enters": f"SELECT ISTREAM(c) FROM {ROWS.replace('RANGE 3', 'ROWS 1')}",
    "what leaves": f"DSTREAM(SELECT c FROM {ROWS.replace('RANGE 3', 'ROWS 1')})",
    "what differs by it": f"ISTREAM(SELECT c, k FROM {ROWS.replace('RANGE 3', 'ROWS 1')})"
    " DIFFERENCE USING (c)",
    "the last rows of a stream of it": f"SELECT ISTREAM(v) FROM ISTREAM(SELECT c, v FROM"
    f" {ROWS.replace('RANGE 3', 'NOW')}) [ROWS 1]",
}
"""Streams of rows that differ, if at all, by texts with a collation."""


@pytest.mark.sampled(every=2)
@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.usefixtures("interpreted")
def test_streams_of_texts_are_compared_as_their_collation_says(spark, tmp_path, name):
    values = [0, 1, 2, 3, 4, 2, 0, 4, 3, 1]  # a A b B A b a A B A
    logs = {"s": ended([("a", at // 2 * 2, 1, value, None) for at, value in enumerate(values)])}
    found = live(spark, tmp_path, logs, None, [0.3, 0.6], {1}, STREAMS[name])
    wanted = folded([recorded(spark, logs, None).sql(STREAMS[name]).to_arrow()])
    assert len(wanted) > 1
    assert folded(found) == wanted


def _total(tables):
    """What changes in all; which of the texts that are equal under a collation is shown, nothing says."""
    found = Counter()
    for (at, row), count in total(tables).items():
        found[at, tuple(one.lower() if isinstance(one, str) else one for one in row)] += count
    return found


@pytest.mark.usefixtures("interpreted")
def test_intervals_of_months_and_of_days_go_into_a_sink(spark, tmp_path):
    """Of which Arrow has no columns, and no file of Spark's either."""
    (incoming := tmp_path / "in").mkdir()
    put(incoming, 0, [(1, "a", 2), (2, "b", 14)])
    session, given = declared(spark, incoming), []
    query = session.sql(
        "SELECT k, make_ym_interval(0, v) AS m, make_interval(0, v, 0, 3) AS i FROM s [RANGE 1]"
    )
    sink = {"envelope": "diff", "trigger": {"availableNow": True}}
    running = query.start(lambda rows, _: given.extend(texts(rows)), **sink)
    running.await_termination()
    assert given == [("a", "INTERVAL '0-2' YEAR TO MONTH", "2 months 3 days", 1)]


def texts(rows):
    columns = "k", "CAST(m AS STRING)", "CAST(i AS STRING)", "CAST(_diff AS INT)"
    return [tuple(row) for row in rows.selectExpr(*columns).collect()]

"""The key of FULL JOIN … USING is event time if it is that of both sides."""

from __future__ import annotations

import pytest

from windrow import AnalysisError, NotSupportedError, Session

LEFT = [(1, 3, 1, None), (2, 6, 2, 5), (5, 4, 3, None), (6, 9, 4, 20)]
RIGHT = [
    (1, 3, 10, None), (2, 4, 15, None), (3, 7, 20, 5), (4, None, None, 6), (5, 5, 30, None),
    (6, 8, 40, None), (7, None, None, 20),
]  # fmt: skip
GROUPS = "SELECT t, SUM(v) AS v, SUM(w) AS w FROM {} GROUP BY t EMIT {} AFTER WATERMARK"
USING = "l FULL JOIN r USING (t)"
COALESCED = "(SELECT coalesce(l.t, r.t) AS t, v, w FROM l FULL JOIN r ON l.t = r.t)"
ALL = [(3, 1, 10, 3), (4, None, 15, 3), (5, None, 30, 6), (6, 2, None, 7), (7, None, 20, 7), (8, None, 40, 7),
       (9, 4, None, 7)]  # fmt: skip
"""The groups with the times at which they are complete; row 4 of the left side is late."""


@pytest.fixture(scope="module", params=["batch", "reference"])
def session(request, spark):
    session = Session(spark.newSession(), execution=request.param)
    for name, rows, value in (("l", LEFT, "v"), ("r", RIGHT, "w")):
        frame = session.spark.createDataFrame(rows, f"at int, t bigint, {value} bigint, upto bigint")
        session.stream(name, frame, rowtime="t", ptime="at", watermark="upto", unit="seconds")
    return session


def rows(relation):
    return sorted(map(tuple, relation.collect()))


@pytest.mark.parametrize("source", [USING, f"(SELECT t, v, w FROM {USING} WHERE t > 0)", COALESCED])
def test_groups_by_the_merged_key_are_complete(session, source):
    found = rows(session.sql(GROUPS.format(source, "STREAM")))
    assert [(*row[:3], row[4]) for row in found] == ALL
    relation = session.sql(GROUPS.format(source, ""))
    assert rows(relation) == [row[:3] for row in ALL]
    assert [tuple(row)[2] for row in relation.late.df.select("stream", "row", "rowtime").collect()] == [4]


def test_rows_and_distinct_ones_are_complete(session):
    found = rows(session.sql(f"SELECT DISTINCT t FROM {USING} EMIT STREAM AFTER WATERMARK"))
    assert [(row[0], row[2]) for row in found] == [(row[0], row[3]) for row in ALL]
    found = rows(session.sql(f"SELECT t, v, w FROM {USING} EMIT STREAM AFTER WATERMARK"))
    assert {(row[0], row[4]) for row in found} >= {(row[0], row[3]) for row in ALL if row[0] != 4}


def test_state_of_groups_is_bounded(session):
    text = session.sql(f"EXPLAIN {GROUPS.format(USING, 'STREAM')}").plan()
    assert "event time t; state: groups until the watermark has passed t" in text


@pytest.mark.parametrize(
    ("query", "kind", "condition"),
    [
        ("SELECT t FROM l FULL JOIN r USING (t) FULL JOIN (SELECT t, v AS x FROM l) USING (t) GROUP BY t",
         AnalysisError, "GROUP_WITHOUT_EVENT_TIME"),
        ("SELECT a FROM (SELECT coalesce(l.t, r.w) AS a FROM l FULL JOIN r ON l.t = r.t) GROUP BY a",
         AnalysisError, "GROUP_WITHOUT_EVENT_TIME"),
        ("SELECT t FROM l FULL JOIN r USING (t) GROUP BY t, l.t", NotSupportedError, "UNSUPPORTED_QUERY"),
    ],
)  # fmt: skip
def test_other_keys_are_refused(session, query, kind, condition):
    with pytest.raises(kind, match=condition):
        session.sql(f"{query} EMIT STREAM AFTER WATERMARK")

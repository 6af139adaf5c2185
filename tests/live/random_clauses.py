"""Queries with WINDOW BY and MATCH_RECOGNIZE at random, over the streams of random logs."""

from __future__ import annotations

from hypothesis import strategies as st

ORDER = "ORDER BY ts, p, k, v"
"""An order in which rows that tie are the same row to every query."""

AGGREGATES = "COUNT(w.v) AS n, SUM(w.v) AS total, MEDIAN(w.v) AS middle"
STARTS = [
    "START AS s AT sa",
    "START AS s AT sa WHEN s.v > 1",
    "START AS s AT sa PREV AS sp WHEN sp IS NULL OR s.ts - sp.ts > 1",
    "ONLY START AS s AT sa NEXT AS sn WHEN sn.v < s.v",
]
ENDS = [
    "END AS e WHEN e.ts - s.ts >= 2",
    "END AS e AT ea WHEN ea = sa + 1",
    "END AS e NEXT AS en WHEN en.ts - s.ts > 2 OR en IS NULL",
    "ONLY END AS e PREV AS ep NEXT AS en WHEN en.v > e.v",
    "END UNBOUNDED",
]
LABELS = [
    "LABEL AS l START AS s WHEN l.ts - s.ts <= 2 END AS e WHEN e = l",
    "LABEL AS l NEXT AS ln WHEN l.v > 0 ONLY START AS s WHEN s.ts > l.ts END AS e WHEN e.ts - s.ts > 1",
    "LABEL AS l START UNBOUNDED END AS e AT ea WHEN ea = 3",
]
PATTERNS = [
    "PATTERN (a b+) DEFINE b AS b.v >= PREV(b.v)",
    "PATTERN (a b*? c) WITHIN 3 DEFINE c AS c.v < a.v",
    "PATTERN (a b+) WITHIN INCLUSIVE v DEFINE b AS b.v <> 2",
    "PATTERN (a b*) DURATION v DEFINE b AS b.v <> 2",
    "PATTERN (^ a | b c) DEFINE a AS NEXT(a.v) > a.v, c AS c.ts - b.ts > 1",
    "PATTERN ((a | b)* c $) DEFINE c AS COUNT(*) > 1, a AS a.v > 0",
]
MODES = ["ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH WITH UNMATCHED ROWS"]
SKIPS = ["AFTER MATCH SKIP PAST LAST ROW", "AFTER MATCH SKIP TO NEXT ROW", "ALL MATCHES"]
FRAMES = ["CURRENT ROW", "1 FOLLOWING", "3 FOLLOWING", "UNBOUNDED FOLLOWING"]
OF_FRAMES = [
    "{} PATTERN (a b+) DEFINE b AS b.v >= PREV(b.v)",
    "{} SEEK PATTERN (a b*? c) WITHIN 3 DEFINE c AS c.v < a.v",
    "AFTER MATCH SKIP TO NEXT ROW {} PATTERN (a b | c) WITHIN 2 DEFINE a AS NEXT(a.v) > a.v, c AS c.v = 1",
]


@st.composite
def sequences(draw):
    """A query with WINDOW BY or MATCH_RECOGNIZE over the stream s."""
    partition = draw(st.sampled_from(["", "PARTITION BY k "]))
    source = draw(st.sampled_from(["s", "(SELECT * FROM s WHERE v <> 2 OR v IS NULL) AS t"]))
    if draw(st.booleans()):
        kind = draw(st.sampled_from(["SLIDING", "TUMBLING"]))
        tail = draw(st.sampled_from([*(f"{start} {end}" for start in STARTS for end in ENDS), *LABELS]))
        row = "l" if tail in LABELS else "s"
        select = draw(st.sampled_from([f"SELECT *, {AGGREGATES}", f"SELECT {row}.k, {AGGREGATES}"]))
        return f"{select} FROM {source} WINDOW BY w AS (TYPE {kind} {partition}{ORDER} {tail})"
    pattern, mode, skip = (draw(st.sampled_from(options)) for options in (PATTERNS, MODES, SKIPS))
    measures = "MEASURES MATCH_NUMBER() AS n, CLASSIFIER() AS c, FIRST(ts) AS t, SUM(v) AS total"
    if draw(st.booleans()):
        frame = f"{measures[:8]} FIRST(ts) AS t, SUM(v) AS total ROWS BETWEEN CURRENT ROW AND {{}}"
        text = draw(st.sampled_from(OF_FRAMES))
        before, _, after = text.partition("{}")
        frame = frame.format(draw(st.sampled_from(FRAMES)))
        window = f"{partition}{ORDER} {frame} {before}{after}"
        source = source.replace(" AS t", "")
        return f"SELECT *, t OVER w, total OVER w, count(*) OVER w AS n FROM {source} WINDOW w AS ({window})"
    mode = "ONE ROW PER MATCH" if "UNMATCHED" in mode and skip == "ALL MATCHES" else mode
    clause = f"{partition}{ORDER} {measures} {mode} {skip} {pattern}"
    return f"SELECT * FROM {source} MATCH_RECOGNIZE ({clause})".replace(" AS t MATCH", " MATCH")

"""Texts that say the same have one spelling, and words that may be names keep theirs."""

from __future__ import annotations

import pytest

from windrow.syntax.canonical_text import canonical_text

SAME = [
    ("SELECT k, COUNT(*) n FROM s [RANGE 5] x", "SELECT k, COUNT(*) AS n FROM s [RANGE 5] AS x"),
    ("SELECT s.k FROM s [NOW] WHERE s.v > 1 GROUP BY s.k", "SELECT k FROM s [NOW] WHERE v > 1 GROUP BY k"),
    ("SELECT x.k FROM s [NOW] AS x", "SELECT k FROM s [NOW] x"),
    ("SELECT S.k.f, `s`.* FROM s [NOW]", "SELECT k.f, * FROM s [NOW]"),
    ("SELECT t.wend FROM HOP(s, ts, 5, 9) AS t", "SELECT wend FROM HOP(s, ts, 5, 9) t"),
    ("select k from s where k != 1 and v == 2", "SELECT k FROM s WHERE k <> 1 AND v = 2"),
    ("select stream * from s", "SELECT STREAM * FROM s"),
    ("select stream k, -v from s;", "SELECT STREAM k, -v FROM s"),
    ("select istream(*) from s [rows :n]", "SELECT ISTREAM(*) FROM s [ROWS :n]"),
    ("select * from s [now], r [range unbounded]", "SELECT * FROM s [NOW], r [RANGE UNBOUNDED]"),
    ("select k from s where not -v > 1 limit 2", "SELECT k FROM s WHERE NOT -v > 1 LIMIT 2"),
    (
        "select sum(v) over (order by k rows between unbounded preceding and current row) as n from s",
        "SELECT sum(v) OVER (ORDER BY k ROWS BETWEEN UNBOUNDED PRECEDING AND current ROW) AS n FROM s",
    ),
    ("select * from a left join b using (k)", "SELECT * FROM a LEFT JOIN b USING (k)"),
    (
        "select case when v > 1 then interval 5 hours end as n from s emit stream after watermark",
        "SELECT CASE WHEN v > 1 THEN INTERVAL 5 hours END AS n FROM s EMIT STREAM AFTER WATERMARK",
    ),
    (
        "select * from s window by w as (type sliding order by ts start as a end unbounded)",
        "SELECT * FROM s WINDOW BY w AS (TYPE SLIDING ORDER BY ts START AS a END UNBOUNDED)",
    ),
    (
        "select * from s match_recognize (order by ts measures a.v as n one row per match "
        "after match skip to next row pattern (a b) within 5 define a as true, b as not v > 1)",
        "SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES a.v AS n ONE ROW PER MATCH "
        "AFTER MATCH SKIP to next ROW PATTERN (a b) WITHIN 5 DEFINE a AS TRUE, b AS NOT v > 1)",
    ),
]

NAMES = [
    "SELECT {} FROM s",
    "SELECT k, {} FROM s",
    "SELECT {}, k FROM s",
    "SELECT `{}` FROM s",
    "SELECT {} + 1 FROM s",
    "SELECT abs({}) FROM s",
    "SELECT {} x FROM s",
    "SELECT s.{} FROM s",
    "SELECT {}.x FROM s",
    "SELECT named.{}.x FROM s",
    "SELECT k AS {} FROM s",
    "SELECT k {} FROM s",
    "SELECT k {}, v FROM s",
    "SELECT CASE WHEN k > 1 THEN {} ELSE 1 END FROM s",
    "SELECT k FROM {} [RANGE 5]",
    "SELECT k FROM s GROUP BY {}",
]


OTHER = [
    ("SELECT a.k FROM s [NOW] AS a, s [RANGE 5] AS b", "SELECT b.k FROM s [NOW] AS a, s [RANGE 5] AS b"),
    ("SELECT transform(l, s -> s.f) AS r FROM s [NOW]", "SELECT transform(l, s -> f) AS r FROM s [NOW]"),
    ("SELECT x.s.k FROM s [NOW] AS x", "SELECT x.k FROM s [NOW] AS x"),
    ("SELECT f AS (a) FROM s [NOW]", "SELECT f(a) FROM s [NOW]"),
    ("SELECT k AS n FROM s [NOW]", "SELECT k AS N FROM s [NOW]"),
    ("SELECT k AS n FROM s [NOW]", "SELECT k FROM s [NOW]"),
    (
        "SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES s.v AS n PATTERN (s a) DEFINE a AS s.v > 1)",
        "SELECT * FROM s MATCH_RECOGNIZE (ORDER BY ts MEASURES s.v AS n PATTERN (s a) DEFINE a AS v > 1)",
    ),
]


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_texts_that_differ_in_what_they_say_have_two_spellings(one: str, other: str) -> None:
    assert canonical_text(one) != canonical_text(other)


@pytest.mark.parametrize(("one", "other"), SAME)
def test_keywords_and_symbols_have_one_spelling(one: str, other: str) -> None:
    assert canonical_text(one) == canonical_text(other)


@pytest.mark.parametrize("text", NAMES)
@pytest.mark.parametrize("name", ["Value", "Type", "Range", "Start", "Label", "Order"])
def test_words_that_may_be_names_keep_their_spelling(text: str, name: str) -> None:
    assert canonical_text(text.format(name)) != canonical_text(text.format(name.lower()))

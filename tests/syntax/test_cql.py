"""The dialect of CQL in Spark SQL."""

from __future__ import annotations

import re

import pytest

from windrow.syntax.streams.cql_spellings import in_spark
from windrow.syntax.tokens import tokenize


def told(text: str) -> str:
    """The text in Spark SQL, each joined list of operands as ⟨a, b⟩."""
    found = in_spark(tokenize(text))
    if found is None:
        return text
    sql = found.render().replace("NULLIF(CONCAT(COALESCE(CAST(", "⟨").replace(" AS STRING), '')), '')", "⟩")
    return re.sub(r" ?AS STRING\), ''\), COALESCE\(CAST\( ?", ", ", sql.replace("  ", " ")).replace(" ,", ",")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("WHERE a || b", "WHERE ⟨a, b⟩"),
        ("WHERE a || b || c", "WHERE ⟨a, b, c⟩"),
        ("WHERE a + b || c", "WHERE ⟨a + b, c⟩"),
        ("WHERE a || b + c", "WHERE ⟨a, b⟩ + c"),
        ("WHERE a || b + c || d - e", "WHERE ⟨⟨a, b⟩ + c, d⟩ - e"),
        ("WHERE a * b || c DIV d % e", "WHERE ⟨a * b, c DIV d % e⟩"),
        ("WHERE -a || - b", "WHERE ⟨-a, - b⟩"),
        ("WHERE a || (b || c)", "WHERE ⟨a, (⟨b, c⟩)⟩"),
        ("WHERE (a || b) || c", "WHERE ⟨(⟨a, b⟩), c⟩"),
        ("WHERE (a) || b = c || d", "WHERE ⟨(a), b⟩ = ⟨c, d⟩"),
        ("WHERE a || b & c || d", "WHERE ⟨a, b⟩ & ⟨c, d⟩"),
        ("WHERE NOT a || b AND c BETWEEN d || e AND f", "WHERE NOT ⟨a, b⟩ AND c BETWEEN ⟨d, e⟩ AND f"),
        ("WHERE a LIKE 'x' || b OR a NOT LIKE 'x' || b", "WHERE a LIKE ⟨'x', b⟩ OR a NOT LIKE ⟨'x', b⟩"),
        ("WHERE a IN (b || c, d) ", "WHERE a IN (⟨b, c⟩, d) "),
        ("WHERE f(a || b, c)[d || e].g || h", "WHERE ⟨f(⟨a, b⟩, c)[⟨d, e⟩].g, h⟩"),
        ("WHERE CASE WHEN a || b THEN c || d ELSE e || f END || g",
         "WHERE ⟨CASE WHEN ⟨a, b⟩ THEN ⟨c, d⟩ ELSE ⟨e, f⟩ END, g⟩"),
        ("WHERE CAST(a || b AS INT) || c::INT || d", "WHERE ⟨CAST(⟨a, b⟩ AS INT), c::INT, d⟩"),
        ("WHERE a.b.c || `d e`.f", "WHERE ⟨a.b.c, `d e`.f⟩"),
        ("WHERE sum(a) FILTER (WHERE b || c = 'x') OVER (ORDER BY d || e) || f",
         "WHERE ⟨sum(a) FILTER (WHERE ⟨b, c⟩ = 'x') OVER (ORDER BY ⟨d, e⟩), f⟩"),
        ("WHERE ? || :p || 'a' 'b'", "WHERE ⟨?, :p, 'a' 'b'⟩"),
        ("WHERE DATE '2024-01-01' || d + INTERVAL 7 DAYS || INTERVAL '1 2' DAY TO HOUR",
         "WHERE ⟨⟨DATE '2024-01-01', d⟩ + INTERVAL 7 DAYS, INTERVAL '1 2' DAY TO HOUR⟩"),
        ("WHERE transform(xs, x -> x || y)[0] || z", "WHERE ⟨transform(xs, x -> ⟨x, y⟩)[0], z⟩"),
        ("WHERE a = (SELECT max(b || c) FROM t WHERE d || e = f)",
         "WHERE a = (SELECT max(⟨b, c⟩) AS `max(b || c)` FROM t WHERE ⟨d, e⟩ = f)"),
        ("START AS s WHEN s.a || 'x' = e.b END AS e WHEN e.a || s.a",
         "START AS s WHEN ⟨s.a, 'x'⟩ = e.b END AS e WHEN ⟨e.a, s.a⟩"),
        ("FROM s [PARTITION BY a || b ROWS 2] WHERE a[0] || b",
         "FROM s [PARTITION BY ⟨a, b⟩ ROWS 2] WHERE ⟨a[0], b⟩"),
        ("WHERE a --b\n || c", "WHERE ⟨a --b\n, c⟩"),
        ("WHERE a - -b", "WHERE a - -b"),
        ("WHERE x|y", "WHERE x|y"),
    ],
)  # fmt: skip
def test_operands_of_concatenation(text, meant):
    assert told(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("SELECT a || b FROM t", "SELECT ⟨a, b⟩ AS `a || b` FROM t"),
        ("SELECT DISTINCT a  ||\nb, c", "SELECT DISTINCT ⟨a, \nb⟩ AS `a || b`, c"),
        ("SELECT a || b x, a || b AS y, *", "SELECT ⟨a, b⟩ x, ⟨a, b⟩ AS y, *"),
        (
            "SELECT length(c2 || c2) + 1 from s",
            "SELECT length(⟨c2, c2⟩) + 1 AS `length(c2 || c2) + 1` from s",
        ),
        ("SELECT ISTREAM(a || b) FROM s", "SELECT ISTREAM(⟨a, b⟩ AS `a || b`) FROM s"),
        ("SELECT stack(2, a || b, c)", "SELECT stack(2, ⟨a, b⟩, c)"),
        ("SELECT sysdate", "SELECT current_timestamp() AS `sysdate`"),
        ("SELECT a AS sysdate, t.sysdate, sysdate(1)", "SELECT a AS sysdate, t.sysdate, sysdate(1)"),
        ('SELECT a || "xyz" FROM t', "SELECT ⟨a, 'xyz'⟩ AS `a || \"xyz\"` FROM t"),
    ],
)
def test_names_of_columns(text, meant):
    assert told(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('a = "x"', "a = 'x'"),
        ('''a = "it's"''', r"a = 'it\'s'"),
        ('''a = "say ""hi"""''', """a = 'say "hi"'"""),
        ("TIMESTAMP '08/07/2004 11:13:48'", "TIMESTAMP '2004-08-07 11:13:48'"),
        ('CAST("08/07/2004 11:13:48.5" AS TIMESTAMP)', "CAST('2004-08-07 11:13:48.5' AS TIMESTAMP)"),
        ('DATE "08/07/2004"', "DATE '2004-08-07'"),
        ("'08/07/2004'", "'08/07/2004'"),
        ("a -- || 'x\n", "a -- || 'x\n"),
    ],
)
def test_strings_and_times(text, meant):
    assert told(text) == meant


@pytest.mark.parametrize("text", ["SELECT a, 'b' FROM t [RANGE 5] -- c", "SELECT x - 1 FROM t"])
def test_what_is_the_same_in_spark_is_left_alone(text):
    assert in_spark(tokenize(text)) is None


def test_places_are_those_of_the_text():
    text = 'SELECT nosuch || "x" || other, "y" FROM t WHERE third'
    found = in_spark(tokenize(text))
    rendered = found.render()
    for word in ("nosuch", "other", "third"):
        start = rendered.index(word)
        source, span = found.written(start, start + len(word))
        assert (source, source[span.start : span.stop]) == (text, word)
    source, span = found.written(rendered.index("NULLIF"), rendered.index(" AS `"))
    assert source[span.start : span.stop] == 'nosuch || "x" || other'

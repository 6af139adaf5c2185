"""Functions of several rows, in DEFINE and WHEN, give what Spark gives over the same values in one row."""

from __future__ import annotations

import pytest

import windrow
from windrow.rules.hoister import NotTypedError
from windrow.rules.pair_conditions import PairConditions

COLUMNS = ("i", "l", "d", "f", "n", "m", "s", "b", "day", "at")
VALUES = """
    (1, 10L, 1.5D, float(0.1), 1.25BD, 3.5BD, 'a', true, DATE '2024-01-31',
        TIMESTAMP '2024-01-31 00:00:01.5'),
    (-7, 9000000000L, -0.0D, float(-2.5), -10.05BD, 0.5BD, 'ab', false, DATE '1969-12-31',
        TIMESTAMP '1960-03-01 12:30:00'),
    (0, -3L, 0.0D, float(0), 0.00BD, 1.0BD, '', true, DATE '2024-03-10', TIMESTAMP '2024-03-10 02:30:00'),
    (3, 0L, double('NaN'), float('NaN'), 99.99BD, 2.0BD, 'ßé😀a', NULL, DATE '2024-03-11',
        TIMESTAMP '2024-03-11 01:00:00'),
    (2147483, 5L, 2.675D, float('inf'), 33.33BD, -7.1BD, 'b%', false, NULL, NULL),
    (16777217, 16777217L, 0.1D, float(16777216), NULL, NULL, NULL, NULL, NULL, NULL),
    (NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, DATE '2024-02-29',
        TIMESTAMP '2024-02-29 23:59:59.999999')
"""
# a and b are the first and the second row
EXPRESSIONS = """
    abs(b.i - a.i); abs(a.d * b.d); abs(a.n - b.n); abs(b.day - a.day); abs(b.at - a.at);
    greatest(a.i, b.l, 2); least(a.d, b.d); greatest(a.d, b.f, a.i); greatest(a.n, b.m);
    least(a.s, b.s, 'b'); greatest(a.at, b.at); coalesce(a.i, b.i, -1); nvl(a.s, b.s);
    coalesce(a.n, b.i); ifnull(a.day, b.day); nvl2(a.i, b.i, b.l); nullif(a.i, b.l); nullif(a.s, b.s);
    if(a.i > b.i, a.s, b.s); if(a.b, b.n, a.n);
    CASE WHEN a.i > b.i THEN a.d WHEN a.i = b.i THEN b.i ELSE b.f END;
    CASE WHEN a.b AND b.b THEN 'both' WHEN a.b THEN a.s END;
    CASE a.s WHEN b.s THEN 1 WHEN 'a' THEN b.i ELSE a.l END;
    CASE WHEN b.l <> 0 THEN a.i / b.l ELSE -1 END; CASE WHEN a.i IS NULL THEN NULL ELSE b.day END;
    CAST(a.i + b.i AS BIGINT); CAST(a.i AS DOUBLE) + b.n; CAST(a.n + b.n AS INT);
    CAST(a.n - b.m AS DOUBLE); CAST(a.i - b.i AS STRING); CAST(a.n * b.m AS DECIMAL(12,1));
    (a.i + b.i)::bigint = 0; CAST(a.i + b.i AS BOOLEAN); a.n + b.m; a.n - b.i; a.n * b.m; a.n / b.m;
    a.m % b.m; -(a.n + b.n); a.n * b.d; a.n / CAST(b.m AS DOUBLE); a.n < b.m; a.n + b.n = b.i;
    a.n > b.d; a.i DIV if(b.l = 0, 1, b.l); mod(a.i, if(b.l = 0, 2, b.l));
    pmod(a.i, if(b.l = 0, 2, b.l)); pmod(a.d, b.m); sign(a.i - b.i); signum(a.n - b.n);
    floor(a.d + b.d); ceil(a.i - b.m * 1D); ceiling(a.i - b.i); round(a.d * b.d, 2); round(a.n * b.m);
    round(a.n * b.m, 1); round(a.i - b.l); round(a.f + b.f, 2); sqrt(a.i - b.i);
    sqrt(power(a.i - b.i, 2) + pow(a.d, 2) + b.d); concat(a.s, b.s); a.s || '-' || b.i || b.n;
    concat(a.s, b.day, a.b); length(a.s || b.s); substring(a.s || b.s, 2, 2); substr(a.s || b.s, -3);
    left(a.s || b.s, 2); right(a.s || b.s, 2); instr(a.s, b.s); locate(a.s, b.s); startswith(a.s, b.s);
    endswith(a.s || 'a', b.s); contains(a.s, b.s); levenshtein(a.s, b.s); a.s LIKE concat(b.s, '%');
    a.s NOT LIKE b.s || '_'; a.s || b.s IN ('aa', 'ab'); a.s || b.s BETWEEN 'a' AND 'b';
    (a.s || b.s) IS NULL; datediff(b.day, a.day); date_diff(b.at, a.day); date_add(a.day, b.i);
    date_sub(a.day, b.i); timestampdiff(SECOND, a.at, b.at); timestampdiff(HOUR, a.at, b.at);
    datediff(DAY, a.at, b.at); date_diff(WEEK, a.at, b.at)
"""

# those that may fail with ANSI
WITHOUT_ANSI = """
    (a.i + b.i)::smallint; CAST(a.d * b.l AS INT); CAST(a.f - b.f AS TINYINT); a.i DIV b.l;
    mod(a.i, b.l); pmod(a.i, b.l); a.n / b.n; a.n % b.n; CAST(a.n * b.n AS DECIMAL(4,2)); a.l * b.l;
    ceil(a.d * 1e20 * b.i); a.i = b.f; a.f >= b.l; a.i + b.f; if(a.l < b.f, a.i, b.l); a.d > b.f;
    a.f = b.n; nullif(a.i, b.f); greatest(a.i, b.f); CASE a.l WHEN b.f THEN 'same' END; a.i IN (b.f, b.l)
"""


TOGETHER = 8
"""Expressions of one condition: each costs Spark's analyser time."""


@pytest.mark.parametrize(("texts", "ansi"), [(EXPRESSIONS, True), (WITHOUT_ANSI, False)])
def test_functions_of_several_rows_are_sparks(spark, texts, ansi):
    expressions = [text.strip() for text in texts.split(";")]
    session = windrow.Session(spark)
    names = ", ".join(COLUMNS)
    of_pair = {side: ", ".join(f"{side}.{name}" for name in COLUMNS) for side in "ab"}
    wanted = ", ".join(f"({text}) AS x{number}" for number, text in enumerate(expressions))
    nothing = ", ".join(f"NULL AS x{number}" for number in range(len(expressions)))
    groups = {
        f"E{at}": range(at, min(at + TOGETHER, len(expressions)))
        for at in range(0, len(expressions), TOGETHER)
    }

    def condition(label, number):
        text = expressions[number].replace("a.", "A.").replace("b.", f"{label}.")
        return f"({text}) <=> {label}.x{number}"

    conditions = ", ".join(
        f"{label} AS {' AND '.join(condition(label, number) for number in group)}"
        for label, group in groups.items()
    )
    former = {key: spark.conf.get(key) for key in ("spark.sql.ansi.enabled", "spark.sql.session.timeZone")}
    spark.conf.set("spark.sql.ansi.enabled", str(ansi).lower())
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        spark.sql(f"SELECT * FROM VALUES {VALUES} AS t({names})").createOrReplaceTempView("one_row")
        spark.sql(
            f"""WITH numbered AS (SELECT *, row_number() OVER (ORDER BY l) AS k FROM one_row)
            SELECT a.k * 100 + b.k AS k, 1 AS t, {of_pair["a"]}, {nothing}
            FROM numbered a CROSS JOIN numbered b
            UNION ALL
            SELECT a.k * 100 + b.k, 2, {of_pair["b"]}, {wanted} FROM numbered a CROSS JOIN numbered b"""
        ).createOrReplaceTempView("pairs_of_rows")
        agreed = session.sql(
            f"""SELECT c, count(*) AS n FROM pairs_of_rows MATCH_RECOGNIZE (
                PARTITION BY k ORDER BY t MEASURES CLASSIFIER() AS c ALL MATCHES
                PATTERN (^ A ({" | ".join(groups)})) DEFINE {conditions}) GROUP BY c"""
        ).df.collect()
        # the rules are the same, so some of them will do
        some = " AND ".join(f"({text}) <=> b.x{at}" for at, text in enumerate(expressions) if at % 8 == 0)
        windows = session.sql(
            "SELECT b.k FROM pairs_of_rows WINDOW BY w AS (TYPE SLIDING PARTITION BY k ORDER BY t"
            f" START AS a WHEN a.t = 1 ONLY END AS b WHEN b.t = 2 AND {some})"
        )
        assert "joined with themselves" not in windows.plan()
        found = windows.df.collect()
    finally:
        for key, value in former.items():
            spark.conf.set(key, value)
    pairs = (VALUES.count("    (")) ** 2
    assert {row["c"]: row["n"] for row in agreed} == dict.fromkeys(groups, pairs)
    assert len(found) == pairs


def test_windows_are_those_that_spark_finds_by_trying_pairs_of_rows(spark, monkeypatch):
    session = windrow.Session(spark)
    spark.sql(f"SELECT * FROM VALUES {VALUES} AS t({', '.join(COLUMNS)})").createOrReplaceTempView(
        "some_rows"
    )
    query = """SELECT s.l, e.l AS e, n.l AS n FROM (SELECT *, string(b) AS yes FROM some_rows)
        WINDOW BY w AS (TYPE SLIDING ORDER BY l START AS s WHEN CASE WHEN s.b THEN s.i < 3 ELSE TRUE END
        ONLY END AS e NEXT AS n WHEN (s.yes AND e.l > s.l + 1) OR coalesce(n.s, e.s) || s.s LIKE '%a%'
            OR abs(e.n - s.n) > greatest(e.m, 9)
            OR if(s.b = e.b, date_add(e.day, s.i) > n.day, e.d + s.d = 2))"""
    relation = session.sql(query)
    assert "joined with themselves" not in relation.plan()
    by_kernel = relation.df.collect()

    def untyped(*_):
        raise NotTypedError("the kernel is not asked")

    monkeypatch.setattr(PairConditions, "typed", untyped)
    relation = session.sql(query)
    assert "joined with themselves" in relation.plan()
    by_pairs = relation.df.collect()
    assert sorted(by_kernel, key=repr) == sorted(by_pairs, key=repr)
    assert len({row["e"] for row in by_kernel} - {None}) > 1

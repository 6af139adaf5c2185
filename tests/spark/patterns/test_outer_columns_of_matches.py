"""MATCH_RECOGNIZE that reads the query around it finds what it finds with each row's values as literals."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import windrow

INPUTS = (
    "r", "(SELECT * FROM r WHERE r.v > {x})", "(SELECT * FROM r WHERE r.k = {k} AND v >= {x})",
    "(SELECT * FROM (SELECT *, ROW_NUMBER() OVER (ORDER BY i) AS n FROM r WHERE k <=> {k}) WHERE n > {x})",
    "(SELECT r.k, r.i, r.v FROM r LEFT JOIN r AS z ON z.i = r.i + {x} WHERE z.v IS NULL)",
    "(SELECT k, MIN(i) AS i, SUM(v) AS v FROM r WHERE v > {x} GROUP BY k, v)",
    "(SELECT * FROM r ORDER BY i LIMIT 3)",
    "(SELECT s.k, s.i, s.v FROM r WINDOW BY w AS (TYPE SLIDING ORDER BY i START AS s WHEN s.v >= {x} END))",
    "(SELECT k, i, v FROM r MATCH_RECOGNIZE (ORDER BY i MEASURES {x} AS y ALL ROWS PER MATCH"
    " PATTERN (Z+) DEFINE Z AS v <> {x} OR v IS NULL) AS z WHERE y < 3)",
)  # fmt: skip
KEYS = (
    "ORDER BY i", "PARTITION BY k ORDER BY i", "PARTITION BY k + {x} AS p ORDER BY i DESC",
    "PARTITION BY {k} ORDER BY i", "PARTITION BY k ORDER BY {x}, i",
)  # fmt: skip
MEASURES = (
    "{x} AS x, MATCH_NUMBER() AS n", "LAST(v) + {x} AS m, CLASSIFIER() AS c",
    "SUM(v * {x}) AS s, COUNT({k}) AS c",
    "FIRST({x} + A.v) AS f, COUNT(*) AS n", "v - {x} AS d, LAST({k}) AS l",
    "(SELECT MAX(z.v) FROM r AS z WHERE z.k = {k}) AS q, COALESCE({x}, 7) AS c",
    "MAX(i - {x}) AS m, COUNT(v) FILTER (WHERE v > {x}) AS n",
)  # fmt: skip
ROWS = (
    "ONE ROW PER MATCH", "ALL ROWS PER MATCH", "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS", "ALL ROWS PER MATCH AFTER MATCH SKIP TO NEXT ROW",
    "ONE ROW PER MATCH ALL MATCHES",
)  # fmt: skip
PATTERNS = (
    "PATTERN (A B*) DEFINE A AS v > {x}, B AS v <= {x} OR v < PREV(v)",
    "PATTERN (A? B) DEFINE A AS A.v = {k}, B AS B.v > A.v + {x} OR COUNT(*) > {x}",
    "PATTERN (A*) DEFINE A AS v <> {x}", "PATTERN (A B+?) DEFINE B AS SUM(B.v * {x}) > 2",
    "PATTERN (A (B | C)) WITHIN {x} DEFINE B AS B.v + {x} > A.v, C AS {k} IS NULL",
    "PATTERN (B* A) DEFINE B AS v IN (SELECT z.v FROM r AS z WHERE z.k = {k}), A AS PREV(v + {x}) > 1",
    "PATTERN (A B) DEFINE B AS concat(A.v, {x}) = concat(B.v, B.k)",
)  # fmt: skip
numbers = st.none() | st.integers(0, 3)


def view(spark, name, columns, rows):
    """A view of rows of integers."""
    frame = spark.createDataFrame(list(rows), ", ".join(f"{column} INT" for column in columns))
    frame.createOrReplaceTempView(name)


def literal(value):
    """SQL of an integer or NULL."""
    return "CAST(NULL AS INT)" if value is None else str(value)


@settings(max_examples=30)
@given(
    st.lists(st.tuples(numbers, numbers), max_size=3),
    st.lists(st.tuples(numbers, numbers), max_size=6),
    st.tuples(*map(st.sampled_from, (INPUTS, KEYS, MEASURES, ROWS, PATTERNS))),
    st.booleans(),
)
@pytest.mark.usefixtures("interpreted")
def test_each_row_around_has_the_matches_of_its_values(spark, around, rows, parts, qualified):
    session = windrow.Session(spark)
    view(spark, "o", ("g", "x"), around)
    view(spark, "r", ("k", "i", "v"), [(k, at, v) for at, (k, v) in enumerate(rows)])
    relation, keys, measures, output, pattern = parts
    block = f"FROM {relation} MATCH_RECOGNIZE ({keys} MEASURES {measures} {output} {pattern}) AS m"
    k, x = ("o.g", "o.x") if qualified else ("g", "x")
    inner = block.replace("{k}", k).replace("{x}", x)
    joined = session.sql(f"SELECT o.g, o.x, q.* FROM o, LATERAL (SELECT m.* {inner}) AS q").collect()
    counted = session.sql(f"SELECT o.g, o.x, (SELECT COUNT(*) {inner}) AS n FROM o").collect()
    wanted, counts = [], []
    for g, x in around:
        text = block.replace("{k}", literal(g)).replace("{x}", literal(x))
        found = [tuple(row) for row in session.sql(f"SELECT m.* {text}").collect()]
        wanted += [(g, x, *row) for row in found]
        counts.append((g, x, len(found)))
    assert sorted(map(tuple, joined), key=repr) == sorted(wanted, key=repr)
    assert sorted(map(tuple, counted), key=repr) == sorted(counts, key=repr)

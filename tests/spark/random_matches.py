"""Random queries with MATCH_RECOGNIZE, and with patterns in windows of OVER, as SQL.

What a condition or a measure reads is made of parts that stand in each other: an expression over one row,
with subqueries, CLASSIFIER and MATCH_NUMBER; a navigation or an aggregate around it, of the kernel or only
Spark's, with DISTINCT and FILTER; around that a comparison, or a subquery's predicate. Written ones, of forms
that failed once or that the parts do not make, stand beside them.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

__all__ = ["LIM", "ROWS_OF", "queries", "rows"]

ROWS_OF = "k string, i int, c string, v int"
LIM = [("a", 2, "x"), ("b", 4, "y"), ("c", 6, None)]
"""Rows of `lim`: k string, top int, c string."""

Draw = st.DrawFn

_PATTERNS = [
    "A B+",
    "(A | B)+ C?",
    "B* A C",
    "A {- B {- C* -} -} B?",
    "(B | A | C){2,3}?",
    "^ A* B",
    "PERMUTE(A, B?)",
    "(A | B)*? C",
    "(A?? | B)* C?",
    "(A* B??){1,2} (C | $)",
]
_CONDITIONS = [
    "v >= 3",
    "{0}.v > (SELECT avg(top) FROM lim)",
    "c IN (SELECT c FROM lim)",
    "c NOT IN (SELECT c FROM lim WHERE c IS NOT NULL)",
    "{0}.v >= (SELECT max(l.top) FROM lim AS l WHERE l.k = {0}.k)",
    "NOT EXISTS (SELECT 1 FROM lim AS l WHERE l.top = A.v)",
    "A.c IN (SELECT c FROM lim WHERE top < 5) OR {0}.v > A.v",
    "SUM({0}.v) FILTER (WHERE CLASSIFIER({0}) <> 'B') < 7",
    "MAX(CLASSIFIER()) <> 'C'",
    "LAST(CLASSIFIER() || c, 1) <> 'Ax'",
    "FIRST(CLASSIFIER() || c) = 'Ax'",
    "PREV(coalesce(CLASSIFIER(), 'B') || c) >= 'Ay'",
    "first_value(v) IGNORE NULLS <= v",
    "last_value(v) IGNORE NULLS FILTER (WHERE c = 'x') > 1",
    "upper(A.c || {0}.c) IN ('XX', 'XY')",
    "A.v + {0}.v NOT IN (SELECT top FROM lim)",
    "CAST(concat(A.v, {0}.v) AS INT) > 20 OR upper(concat(FIRST(c), c)) IS NULL",
    "upper(concat(NEXT(FIRST(c)), PREV(c))) = 'XY'",
    "PREV(CLASSIFIER(A)) = 'B'",
    "coalesce(PREV(LAST(CLASSIFIER({0}), 1), 2), 'none') <> 'A'",
    "NEXT(CLASSIFIER(A)) = 'B' OR PREV(FIRST(CLASSIFIER({0}))) IS NULL",
    "upper(concat(A.c, {0}.c, PREV(c))) LIKE 'X%'",
    "upper(concat(coalesce(A.c, CLASSIFIER()), COUNT(*))) <> 'X2'",
    "upper(concat(FIRST(c), MATCH_NUMBER())) <> 'X1'",
    "A.v + FIRST(v) + {0}.v NOT IN (SELECT top FROM lim)",
    "any_value(v) FILTER (WHERE c = 'x') < 5",
    "MAX_BY(c, v * MATCH_NUMBER() + i) = 'x'",
]
_MEASURES = [
    "array_agg(coalesce(CLASSIFIER() || i, 'none'))",
    "MAX_BY(CLASSIFIER(), i)",
    "COUNT(*) FILTER (WHERE CLASSIFIER() = 'B' AND i > MATCH_NUMBER())",
    "first_value(v) FILTER (WHERE c = 'y')",
    "last_value(v) IGNORE NULLS",
    "FINAL LAST(concat(CLASSIFIER(), i), 1)",
    "A.v IN (SELECT top FROM lim)",
    "(SELECT max(l.top) FROM lim AS l WHERE l.top <= A.v) + SUM(v * (SELECT min(top) FROM lim))",
    "COUNT(DISTINCT A.*)",
]
# over one row of {s}, "A." or nothing; CLASSIFIER({n}) says that its rows are those of the variable
_OF_A_ROW = [
    "{s}v",
    "{s}v",
    "coalesce({s}v, {s}i)",
    "{s}v + MATCH_NUMBER()",
    "CASE WHEN CLASSIFIER({n}) = 'A' THEN {s}v END",
    "length(CLASSIFIER({n}) || {s}c) + {s}i",
    "CASE WHEN {s}c = 'x' THEN 1 ELSE 2 END",
    "{s}v * (SELECT min(top) FROM lim)",
    "CASE WHEN {s}c IN (SELECT c FROM lim) THEN {s}i END",
]
_OF_A_VARIABLES_ROW = ["(SELECT max(l.top) FROM lim AS l WHERE l.k <= {s}k)"]
_FILTERS = ["", "", "", " FILTER (WHERE {s}c = 'x')", " FILTER (WHERE CLASSIFIER({n}) <> 'B')"]
_NAVIGATIONS = [
    "FIRST({x})",
    "LAST({x}, 1)",
    "PREV({x})",
    "NEXT({x})",
    "PREV(FIRST({x}), 1)",
    "NEXT(LAST({x}, 1), 2)",
]
_AGGREGATES = ["SUM({x})", "MIN({x})", "MAX({x})", "COUNT({x})", "SUM(DISTINCT {x})", "CAST(AVG({x}) AS INT)"]
_OF_SPARK = [
    "CAST(percentile({x}, 0.5) AS INT)",
    "approx_count_distinct({x})",
    "COUNT(DISTINCT {x}, {s}c)",
    "MAX_BY({x}, {s}i)",
    "bit_xor({x})",
]
_LISTS = ["size(collect_set({x}))", "size(array_agg({x}))"]
_NUMBERS = [
    "COUNT(*)",
    "COUNT(A.*)",
    "COUNT(U.*)",
    "MATCH_NUMBER()",
    "CASE WHEN CLASSIFIER(U) = 'A' THEN 1 ELSE 2 END",
    "{0}.v",
    "A.v",
]
_PREDICATES = [
    "{x} < {y}",
    "{x} <= {y}",
    "{x} = {y}",
    "{x} + {y} > 5",
    "coalesce({x}, 2) <= 3",
    "{x} IS NULL",
    "NOT {x} > 2",
    "{x} IS NOT NULL",
    "{x} IS DISTINCT FROM {y}",
    "{x} NOT IN ({y}, 3)",
    "{x} NOT BETWEEN 2 AND {y}",
    "{x} IN (SELECT top FROM lim)",
    "{x} NOT IN (SELECT top + 1 FROM lim)",
    "{x} < (SELECT max(top) FROM lim)",
]
_SHOWN = [
    "",
    "ALL ROWS PER MATCH",
    "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
    "ALL ROWS PER MATCH WITH UNMATCHED ROWS",
]
_LENGTHS = ["", "", "WITHIN 3", "WITHIN INCLUSIVE v", "WITHIN COALESCE(v, 1) + i % 2"]
_SKIPS = ["", "AFTER MATCH SKIP TO NEXT ROW", "AFTER MATCH SKIP TO LAST U", "ALL MATCHES"]
_FRAMES = ["UNBOUNDED FOLLOWING", "2 FOLLOWING", "CURRENT ROW"]
_SUBSET = "SUBSET U = (A, B)"

rows = st.lists(
    st.tuples(st.sampled_from(["x", "y", None]), st.one_of(st.none(), st.integers(0, 6))),
    min_size=1,
    max_size=6,
)


@st.composite
def _numbers(draw: Draw, prefixes: tuple[str, ...] = ("",)) -> str:
    """What is a number, over rows of the match; `{0}` stands for the variable that is defined."""
    if draw(st.integers(0, 3)) == 0:
        return draw(st.sampled_from(_NUMBERS))
    name = draw(st.sampled_from(["", "A", "{0}", "U"]))
    part = f"{name}." if name else ""
    known = [*_OF_A_ROW, *(_OF_A_VARIABLES_ROW if name else [])]
    filled = {
        "s": part,
        "n": name,
        "x": draw(st.sampled_from(known)).replace("{s}", part).replace("{n}", name),
    }
    prefix = draw(st.sampled_from(prefixes))
    if draw(st.booleans()):
        form = draw(st.sampled_from(_NAVIGATIONS))
        prefix = "" if form.startswith(("PREV", "NEXT")) else prefix
        return f"{prefix}{_filled(form, filled)}"
    form = draw(st.sampled_from([*_AGGREGATES, *_OF_SPARK, *_LISTS]))
    if "(" in form.split("(", 1)[1]:  # a word before it would stand before another function
        return _filled(form, filled)
    return f"{prefix}{_filled(form + draw(st.sampled_from(_FILTERS)), filled)}"


def _filled(form: str, filled: dict[str, str]) -> str:
    for name, text in filled.items():
        form = form.replace(f"{{{name}}}", text)
    return form


@st.composite
def _predicates(draw: Draw) -> str:
    form = draw(st.sampled_from(_PREDICATES))
    return _filled(form, {"x": draw(_numbers()), "y": draw(_numbers())})


_conditions = st.one_of(st.sampled_from(_CONDITIONS), _predicates())
_measured: SearchStrategy[str] = st.one_of(
    st.sampled_from(_MEASURES),
    _numbers(("", "", "RUNNING ", "FINAL ")).filter(lambda text: "{0}" not in text),
    _predicates().filter(lambda text: "{0}" not in text),
)


@st.composite
def queries(draw: Draw) -> str:
    """A query over `seq`, with the columns of `ROWS_OF`, and over `lim`."""
    pattern, length = draw(st.sampled_from(_PATTERNS)), draw(st.sampled_from(_LENGTHS))
    defines = draw(
        st.dictionaries(
            st.sampled_from("AB"), st.lists(_conditions, min_size=1, max_size=2, unique=True), min_size=1
        )
    )
    measures = draw(st.lists(_measured, min_size=1, max_size=4, unique=True))
    in_window = draw(st.integers(0, 4)) == 0
    skip = draw(st.sampled_from(_SKIPS[:3] if in_window else _SKIPS))
    # with ALL MATCHES numbers are those of matches that are complete, and windows have none
    numbered = skip != "ALL MATCHES" and not in_window
    conditions = []
    for name, parts in defines.items():
        known = [f"({part})" for part in parts if numbered or "MATCH_NUMBER" not in part]
        conditions.append(f"{name} AS {' AND '.join(known) or 'TRUE'}".replace("{0}", name))
    body = f"PATTERN ({pattern}) {length} {_SUBSET} DEFINE {', '.join(conditions)}"
    if in_window:
        measures = [text for text in measures if "MATCH_NUMBER" not in text] or ["LAST(v)"]
        named = ", ".join(f"{text} AS m{number}" for number, text in enumerate(measures))
        called = ", ".join(f"m{number} OVER w" for number in range(len(measures)))
        frame = draw(st.sampled_from(_FRAMES))
        search = draw(st.sampled_from(["", "INITIAL", "SEEK"]))
        body = body.replace("^ ", "").replace("(C | $)", "C")
        return (
            f"SELECT k, i, {called}, count(v) OVER w AS n FROM seq WINDOW w AS (PARTITION BY k ORDER BY i"
            f" MEASURES {named} ROWS BETWEEN CURRENT ROW AND {frame} {skip} {search} {body})"
        )
    named = ", ".join(f"{text} AS m{number}" for number, text in enumerate(measures))
    shown = draw(st.sampled_from(_SHOWN))
    if "{-" in pattern and "UNMATCHED" in shown:
        shown = "ALL ROWS PER MATCH"
    return (
        f"SELECT * FROM seq MATCH_RECOGNIZE (PARTITION BY k ORDER BY i"
        f" MEASURES {named} {shown} {skip} {body})"
    )

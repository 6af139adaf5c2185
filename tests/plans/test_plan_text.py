"""What is read from the text of Spark's plans: a choice of columns, or nothing where it leaves a doubt."""

from __future__ import annotations

import pytest

from windrow.spark.plan_text import chosen_fields, is_cut, optimized, plain_choice

COLUMNS = {"s": ["a", "c", "a.b"], "x": [], "-x": [], "NOT b": [], "s.c": [], "n": ["s", "s.c", "d e"]}


@pytest.mark.parametrize(
    ("operator", "names", "found"),
    [
        ("Project [x#1]", ["x"], (("x", None),)),
        ("Project [x#1L AS y#2L, s#3.c AS x#4]", ["y", "x"], (("x", None), ("s", "c"))),
        ("Project [n#1.d e AS f#2, n#1 AS g#3]", ["f", "g"], (("n", "d e"), ("n", None))),
        ("Project [s#1.a.b AS b#2]", ["b"], None),  # the field b of s.a, or the field `a.b`
        ("Project [n#1.s.c AS c#2]", ["c"], None),
        ("Project [-x#1 AS y#2]", ["y"], None),  # a column `-x`, or what is taken from 0
        ("Project [NOT b#1 AS y#2]", ["y"], None),
        ("Project [(x#1 + 1) AS x#2]", ["x"], None),
        ("Project [x#1, x#1 AS y#2]", ["x"], None),
        ("Filter (x#1 > 1)", ["x"], None),
    ],
)
def test_fields_that_a_plan_chooses(operator, names, found):
    assert chosen_fields(operator, names, COLUMNS) == found


@pytest.mark.parametrize(
    ("operator", "names", "columns", "found"),
    [
        ("Project [x#1L AS y#2L, z#3]", ["y", "z"], ["x", "z"], ("x", "z")),
        ("Project [x#1 AS y#2]", ["y"], ["z"], None),
        ("Project [x#1 AS y#2]", ["y"], [], None),
        ("Project [-x#1 AS y#2]", ["y"], ["x", "-x"], None),
        ("Project [NOT b#1 AS y#2]", ["y"], ["NOT b"], None),
        ("Project [-x#1]", ["-x"], ["-x"], ("-x",)),  # what is computed has an AS
    ],
)
def test_columns_that_a_plan_chooses(operator, names, columns, found):
    assert plain_choice(operator, names, columns) == found


PLAN = """== Optimized Logical Plan ==
Union false, false, Statistics(sizeInBytes=18.0 B)
:- Join LeftSemi, (c0#3L = k#9L), Statistics(sizeInBytes=16.0 B)
:  :- MapInArrow left(id#1L)#2, [c0#3L], false, Statistics(sizeInBytes=16.0 B)
:  +- Project [id#8L AS k#9L], Statistics(sizeInBytes=32.0 B)
+- Project [k#4L, one

two AS c1#5], Statistics(sizeInBytes=4.0 B)
   +- MapInArrow right(id#6L)#7, [k#4L], false, Statistics(sizeInBytes=16.0 B)

== Physical Plan ==
*(1) Project [k#4L]
"""


def test_all_operators_of_a_plan_are_seen():
    """Those on the left of others, and those after a text with an empty line."""
    assert [line.split()[0] for line in optimized(PLAN)] == [
        "Union", "Join", "MapInArrow", "Project", "Project", "two", "MapInArrow",
    ]  # fmt: skip


def test_what_spark_leaves_out_is_noticed():
    assert is_cut("Project [a#1, b#2, ... 3 more fields]")
    assert is_cut("Project [coalesce(a#1, b#2, ... 12 more fields) AS c#3]")
    assert not any(map(is_cut, optimized(PLAN)))

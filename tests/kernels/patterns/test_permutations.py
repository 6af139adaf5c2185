"""PERMUTE is the alternation of all its permutations, whatever its elements are."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.random_patterns import (
    CONDITIONS,
    NAMES,
    answers,
    clause_of,
    outcome,
    partitions,
    plan_of,
    table_of,
)
from windrow.algebra.match_node import compiled
from windrow.errors import AnalysisError
from windrow.kernels.patterns.at_once import is_simple
from windrow.kernels.patterns.execution import find_matches
from windrow.kernels.patterns.program import MATCH, compile_pattern, listing
from windrow.kernels.patterns.tree import Tree
from windrow.kernels.reference.match_recognize import match_recognize as by_reference
from windrow.syntax.patterns.row_patterns import parse_pattern
from windrow.syntax.tokens import tokenize

LABELS = {name: number for number, name in enumerate(NAMES)}
Element = str | tuple["Element", ...]
"""A pattern's text, or the elements of a PERMUTE."""

plain = st.sampled_from(
    ["A", "B", "C", "A+", "A+?", "B?", "B??", "C*", "B{2}", "A{1,2}", "(A | B)", "(B | B C)", "(A B)",
     "(A? B){2}", "(A+ B?)", "(A | B)+", "()", "^"]
)  # fmt: skip
elements = st.recursive(plain, lambda inner: st.lists(inner, min_size=1, max_size=3).map(tuple), max_leaves=4)


def permuted(element: Element) -> str:
    """The text with PERMUTE."""
    return element if isinstance(element, str) else f"PERMUTE({', '.join(map(permuted, element))})"


def written_out(element: Element) -> str:
    """The text with the alternation in its place."""
    if isinstance(element, str):
        return element
    orders = permutations([written_out(part) for part in element])
    return f"({' | '.join(' '.join(order) for order in orders)})"


def tree(text: str) -> Tree:
    tokens = tokenize(f"({text})")
    return compiled(parse_pattern(tokens, 0), LABELS, tokens, (0, len(tokens)))[0]


@settings(max_examples=120, deadline=None)
@given(
    st.lists(elements, min_size=2, max_size=3).map(tuple)
    | st.lists(st.sampled_from("ABC"), min_size=4, max_size=5).map(tuple),
    st.sampled_from(["", "C", "B?", "$"]),
    st.dictionaries(st.integers(0, 2), st.sampled_from(sorted(CONDITIONS)), max_size=3),
    partitions,
    st.sampled_from(["past last", "next"]),
    st.booleans(),
)
@example(("A", "B+?", "(A | B)"), "", {0: "low", 1: "not low"}, [[2, 2, 1, 2]], "past last", False)
@example(("A", "B+", "(A | B)"), "", {0: "low"}, [[3, 3, 0, 3]], "past last", False)
@example(("A", "B", "C", "A", "B"), "C", {0: "low", 1: "not low"}, [[0, 3, 3, 0, 1, 2]], "next", False)
@example(("A", "^", "B{2}", "C"), "$", {0: "low", 2: "not low"}, [[0, 3, 3, 0], [0, 3, 3, 0]], "next", True)
@example((("A", "B"), "A?", "C"), "", {0: "low"}, [[0, 0, 1]], "past last", True)
def test_permute_is_its_alternation_written_out(element, rest, conditions, rows, skip, every):
    short, long = (tree(f"{text} {rest}") for text in (permuted(element), written_out(element)))
    table, bounds = table_of(rows)
    plan = replace(plan_of(long, conditions, (skip, set())), every=every)
    expected = find_matches(plan, table, bounds)
    plans = [replace(plan, program=compile_pattern(short))]
    if is_simple(short) and not every:
        plans.append(replace(plan, tree=short))
    for tried in plans:
        found = find_matches(tried, table, bounds)
        for name in ("partition", "start", "length", "labels", "excluded"):
            np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    options = {"all_rows": True, "shows_empty": True, "with_unmatched": False}
    named = [{"p": number, "x": value} for number, part in enumerate(rows) for value in part]
    clauses = [clause_of(item, conditions, (skip, set()), **options) for item in (short, long)]
    judged = [outcome(lambda clause=clause: answers(by_reference(named, clause))) for clause in clauses]
    assert judged[0] == judged[1]


def test_the_elements_of_the_fault_are_matched_in_preference_order():
    """D, U, D or U: four rows by the fourth permutation, three by what shares the quantifier."""
    table, bounds = table_of([[2, 2, 1, 2]])
    for text, labels in [
        ("PERMUTE(A, B+?, (A | B))", [1, 1, 0, 1]),
        ("PERMUTE(A, B+, (A | B))", [1, 1, 0, 1]),
    ]:
        plan = plan_of(tree(text), {0: "low", 1: "not low"})
        below_two = find_matches(plan, table, bounds)
        assert list(below_two.labels) == labels


def test_what_follows_a_set_of_variables_is_there_once():
    assert listing(compile_pattern(tree("PERMUTE(A, B)")), NAMES) == [
        "0 split 1, 3",
        "1 match A",
        "2 jump 5",
        "3 match B",
        "4 jump 7",
        "5 match B",
        "6 jump 9",
        "7 match A",
        "8 jump 9",
        "9 done",
    ]


@pytest.mark.parametrize("parts", range(2, 9))
def test_a_permutation_of_variables_has_one_choice_for_each_set_of_them(parts):
    program = compile_pattern(tree(f"PERMUTE({', '.join('ABC'[at % 3] for at in range(parts))})"))
    assert np.count_nonzero(program.op == MATCH) == parts * 2 ** (parts - 1)


@pytest.mark.parametrize(
    "text",
    [
        "PERMUTE(A+, B+, C+, A+, B+, C+)",
        "PERMUTE(A+, B, C, A, B, C, A)",
        "PERMUTE(A, B, C, A, B, C, A, B, C)",
        f"PERMUTE({', '.join('A' * 60)})",
        "PERMUTE(PERMUTE(A?, B?, C?, A?, B?), PERMUTE(A?, B?, C?, A?, B?))",
        "PERMUTE(" * 30 + "A?" + ", B?, C?)" * 30,
    ],
)
def test_very_large_expansions_are_refused_where_they_stand(text):
    with pytest.raises(AnalysisError) as raised:
        tree(text)
    error = raised.value
    assert error.condition == "PATTERN_TOO_LONG"
    assert error.getQueryContext()[0].fragment().startswith("PERMUTE(")

"""Row patterns: the programs that they are compiled to."""

from __future__ import annotations

import pytest

from windrow.kernels.patterns.program import compile_pattern, listing
from windrow.kernels.patterns.tree import Choice, Edge, Label, Repeat, Sequence

A, B, C = Label(0), Label(1), Label(2)
NAMES = ("A", "B", "C")
LISTINGS = {
    "a sequence": (Sequence((A, B)), ["0 match A", "1 match B", "2 done"]),
    "one or more": (Repeat(A, 1, None), ["0 match A", "1 split 0, 2", "2 done"]),
    "reluctant one or more": (Repeat(A, 1, None, False), ["0 match A", "1 split 2, 0", "2 done"]),
    "any number": (Repeat(A, 0, None), ["0 split 1, 3", "1 match A", "2 jump 0", "3 done"]),
    "two to three": (
        Repeat(A, 2, 3),
        ["0 match A", "1 match A", "2 split 3, 4", "3 match A", "4 done"],
    ),
    "an alternation": (
        Choice((A, B, C)),
        [
            "0 split 1, 3",
            "1 match A",
            "2 jump 7",
            "3 split 4, 6",
            "4 match B",
            "5 jump 7",
            "6 match C",
            "7 done",
        ],
    ),
    "a loop over what may be empty": (
        Repeat(Repeat(A, 0, 1), 0, None),
        [
            "0 split 1, 6",
            "1 mark 0",
            "2 split 3, 4",
            "3 match A",
            "4 check 0, 6",
            "5 jump 0",
            "6 done",
        ],
    ),
    "anchors and exclusions": (
        Sequence((Edge(True), Label(0, excluded=True), Edge(False))),
        ["0 start", "1 match A excluded", "2 end", "3 done"],
    ),
}


@pytest.mark.parametrize("name", LISTINGS)
def test_a_pattern_is_compiled_to_this_program(name):
    tree, expected = LISTINGS[name]
    assert listing(compile_pattern(tree), NAMES) == expected

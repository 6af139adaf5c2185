"""Which of the ways to match is preferred, as the standard defines it (ISO/IEC 19075-5, 7.2).

There a pattern is a language: a list of strings of variables and anchors, in the order in which they are
preferred. Here that list is written out, and the first string of it that the rows fit is compared with what
the machine finds, and the reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.kernels.random_patterns import A, B, C, clause_of, patterns, plan_of, table_of
from windrow.kernels.patterns.execution import find_matches
from windrow.kernels.patterns.pattern_plan import PatternCondition
from windrow.kernels.patterns.tree import Choice, Edge, Label, Repeat, Sequence, Tree
from windrow.kernels.reference.match_recognize import match_recognize as by_reference
from windrow.kernels.window_plan import ColumnRef

Symbol = int | str
String = tuple[Symbol, ...]
"""Labels, and the anchors ^ and $."""

_MOST_ROWS = 3


def rows_of(string: String) -> int:
    return sum(isinstance(symbol, int) for symbol in string)


def language(tree: Tree, room: int) -> list[String]:
    """The strings of at most `room` rows, the preferred first."""
    match tree:
        case Label(number=number):
            return [(number,)] if room else []
        case Edge(is_start=is_start):
            return [("^" if is_start else "$",)]
        case Choice(parts=parts):
            return [string for part in parts for string in language(part, room)]
        case Sequence(parts=()):
            return [()]
        case Sequence(parts=(first, *rest)):
            return [
                (*head, *tail)
                for head in language(first, room)
                for tail in language(Sequence(tuple(rest)), room - rows_of(head))
            ]
        case Repeat():
            return list(repeated(tree, 1, room))


def repeated(tree: Repeat, position: int, room: int) -> Iterator[String]:
    """The iterations from this one on: in lexicographic order, a longer list before what it begins with,
    or after it if the quantifier is reluctant. One without a row is the last but among the least."""
    may_end = position > tree.low
    if may_end and not tree.greedy:
        yield ()
    if tree.high is None or position <= tree.high:
        for head in language(tree.part, room):
            if rows_of(head) == 0 and position >= tree.low:
                yield head
            else:
                for tail in repeated(tree, position + 1, room - rows_of(head)):
                    yield (*head, *tail)
    if may_end and tree.greedy:
        yield ()


def preferred(tree: Tree, fitting: list[set[int]], start: int) -> list[int] | None:
    """The labels of the first string that rows with these labels fit."""
    for string in language(tree, len(fitting) - start):
        at, labels = start, []
        for symbol in string:
            if isinstance(symbol, int):
                if at == len(fitting) or symbol not in fitting[at]:
                    break
                labels.append(symbol)
                at += 1
            elif at != (0 if symbol == "^" else len(fitting)):
                break
        else:
            return labels
    return None


@settings(max_examples=300, deadline=None)
@given(patterns, st.lists(st.sets(st.integers(0, 2)), min_size=1, max_size=_MOST_ROWS))
@example(Repeat(Repeat(A, 0, 1, False), 0, None), [{0}, {0}])
@example(Sequence((Repeat(Repeat(A, 0, 1, False), 0, None), B)), [{0, 1}, {1}])
@example(Repeat(Choice((Repeat(A, 0, 1), B)), 1, None), [{1}, {1}])
@example(Repeat(Choice((Sequence(()), A)), 2, 3), [{0}, {0}, {0}])
@example(Repeat(Choice((A, B)), 1, 2), [{0, 1}, {1}])
@example(Repeat(Choice((A, B)), 1, 2, False), [{0, 1}, {1}])
def test_the_preferred_match_is_the_first_string_of_the_language(tree, fitting):
    table, bounds = table_of([[0] * len(fitting)])
    for label in range(3):
        table = table.append_column(f"fits {label}", pa.array([label in labels for labels in fitting]))
    plan = replace(
        plan_of(tree, {}, ("next", set())),
        conditions=tuple(PatternCondition(label, ColumnRef(f"fits {label}", "row")) for label in range(3)),
    )
    expected = [preferred(tree, fitting, start) for start in range(len(fitting))]
    wanted = [(start, labels) for start, labels in enumerate(expected) if labels is not None]
    for each in (plan, replace(plan, tree=tree)):
        found = find_matches(each, table, bounds)
        mapped = iter(found.labels.tolist())
        assert [
            (int(start), [next(mapped) for _ in range(length)])
            for start, length in zip(found.start, found.length, strict=True)
        ] == wanted

    clause = replace(
        clause_of(tree, {}, ("next", set()), all_rows=False, shows_empty=True, with_unmatched=False),
        conditions={
            label: lambda view, label=label: label in view.rows[view.mapped[-1][0]]["fits"]
            for label in range(3)
        },
    )
    rows = [{"p": 0, "fits": labels} for labels in fitting]
    assert [[label for _, label in output.mapped] for output in by_reference(rows, clause)] == [
        labels for _, labels in wanted
    ]


@pytest.mark.parametrize(
    ("tree", "strings"),
    [
        (Choice((Repeat(A, 1, 2), Repeat(B, 2, 3))), ["AA", "A", "BBB", "BB"]),
        (Sequence((Choice((A, B)), Choice((C, A)))), ["AC", "AA", "BC", "BA"]),
        (Repeat(A, 1, 3), ["AAA", "AA", "A"]),
        (Repeat(A, 1, 3, False), ["A", "AA", "AAA"]),
        (Repeat(Choice((A, B)), 1, 2), ["AA", "AB", "A", "BA", "BB", "B"]),
        (Repeat(Choice((A, B)), 1, 2, False), ["A", "AA", "AB", "B", "BA", "BB"]),
        (Repeat(Repeat(A, 0, 1, False), 0, 2), ["", "A", "AA", "A", ""]),
        (Repeat(Repeat(A, 0, 1), 2, 3), ["AAA", "AA", "AA", "A", "AA", "A", "A", ""]),
        (Sequence((Edge(True), Repeat(A, 0, 1), Edge(False))), ["^A$", "^$"]),
    ],
)
def test_the_languages_of_the_standard_are_written_out_as_there(tree, strings):
    written = ["".join("ABC"[s] if isinstance(s, int) else s for s in string) for string in language(tree, 3)]
    assert written == strings

"""How many_patterns asks Spark, and what it leaves out; test_match_property tries its patterns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from tests.kernels.random_patterns import A, B
from tests.spark.many_patterns import MOST_ROWS, MOST_WAYS, asked_together, random_tree, ways
from windrow.errors import ExecutionError
from windrow.kernels.patterns.tree import Repeat, Tree
from windrow.kernels.patterns.tree import Sequence as InOrder
from windrow.kernels.reference import match_recognize as reference
from windrow.kernels.reference.match_recognize import Clause, MatchView
from windrow.spark.clauses.answers import KnownAnswers

ROWS = [{"i": at} for at in range(4)]


def clause(tree: Tree, answers: KnownAnswers) -> Clause:
    def holds(view: MatchView) -> bool:
        return answers.of([view.rows[row]["i"] for row, _ in view.mapped]) < 4

    return Clause((), (), tree, {0: holds}, None, "next", frozenset(), True, True, False, every=True)


def test_what_the_reference_asks_of_many_partitions_is_asked_in_few_rounds():
    rounds: list[int] = []

    def ask(questions: Sequence[Any]) -> list[int]:
        rounds.append(len(questions))
        return [sum(question) for question in questions]

    answers = KnownAnswers(ask)
    partitions = {
        number: (
            [{"i": number + row["i"]} for row in ROWS],
            clause(InOrder((Repeat(A, 1, None), B)), answers),
        )
        for number in range(50)
    }
    asked_together(partitions)
    assert len(rounds) < 10 < sum(rounds)
    asked = len(rounds)
    for rows, one in partitions.values():
        reference.match_recognize(rows, one)
    assert len(rounds) == asked


def test_where_spark_fails_to_answer_the_reference_asks_itself():
    def ask(questions: Sequence[Any]) -> list[int]:
        if len(questions) > 1:
            raise ExecutionError("one of them", condition="SOME")
        return [0]

    answers = KnownAnswers(ask)
    asked_together({number: ([{"i": number}], clause(A, answers)) for number in range(2)})
    assert not answers.known
    assert len(reference.match_recognize(ROWS, clause(A, answers))) == 4


def test_a_pattern_is_left_out_by_the_ways_that_the_reference_has():
    always = Clause((), (), A, {}, None, "next", frozenset(), False, True, False, every=True)
    rows = [{"i": at} for at in range(MOST_ROWS)]
    chance = random.Random(5)
    for _ in range(60):
        tree = random_tree(chance, chance.randint(1, 4))
        ends, steps = ways(tree)
        if steps > MOST_WAYS or "Edge" in repr(tree):
            continue
        mapped = [0] * (MOST_ROWS + 1)
        whole = reference._Sequence(rows, 0)
        for at, _, _ in reference._words(tree, 0, (), frozenset(), whole, always):
            mapped[at] += 1
        assert mapped == ends, tree
    star = Repeat(A, 0, None)
    for _ in range(5):
        star = Repeat(star, 0, None)
    assert ways(star)[1] > MOST_WAYS

"""Random patterns with subqueries, aggregates and CLASSIFIER in each other: the kernel = naive backtracking.

``python -m tests.spark.many_patterns --count 10000`` tries so many of them and says what it came to; it ends
with 1 where any differs. Spark would plan for a second for each. So a random query of
:mod:`tests.spark.random_matches` is planned once, over many partitions, and of each partition rows and
pattern are random: in place of Spark's tasks the kernel runs here, partition by partition, and so does the
reference, which tries all ways to match one after the other. All else is as always: Spark computes columns,
answers what conditions ask for, and evaluates the measures. What the reference would ask Spark list by list
is asked together, as long as anything new comes up: conditions whose answers are not known yet are taken to
hold, and not to hold, in turns. Patterns that the reference would be busy with for minutes are left out.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count as count_up
from itertools import cycle, islice, pairwise
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from tests.kernels.random_patterns import EXCLUDED, A, B, C
from tests.spark.random_matches import LIM, ROWS_OF, queries
from windrow import Session, WindrowError
from windrow.errors import ExecutionError
from windrow.kernels.patterns.match_recognize import match_recognize
from windrow.kernels.patterns.pattern_plan import MatchPlan, is_asking
from windrow.kernels.patterns.program import compile_pattern
from windrow.kernels.patterns.tree import Choice, Edge, Label, Repeat, Tree
from windrow.kernels.patterns.tree import Sequence as InOrder
from windrow.kernels.reference import match_recognize as reference
from windrow.kernels.sorting import sorted_partitions
from windrow.kernels.tasks.fragment import Fragment
from windrow.spark.clauses import match_reference, matching
from windrow.spark.clauses.answers import KnownAnswers
from windrow.spark.collected import frame_of_collected

PARTITIONS = 200
"""Of a query, each with a pattern of its own."""
MOST_ROWS, MOST_LEAVES, MOST_WAYS = 6, 6, 5_000
"""Of a pattern; the third is of :func:`ways` to match so many rows, which one in ten patterns exceeds."""
_ALL = "PATTERN (A | B | C)"
_KEY = "\0__p0"


@dataclass
class Tried:
    """A query, and by the number of a partition its pattern and what went wrong, there or here."""

    sql: str
    trees: Sequence[Tree]
    errors: dict[str, dict[int, str]] = field(default_factory=lambda: {"kernel": {}, "reference": {}})

    def by_kernel(self, rows: DataFrame, stage: Fragment, schema: StructType) -> DataFrame:
        """In place of Spark's tasks: the partitions one by one, each with its pattern."""
        made, plan = rows.toArrow(), stage.plan
        assert isinstance(plan, MatchPlan)
        order, bounds = sorted_partitions(made, stage.partition, stage.order)
        ordered = made if order is None else made.take(pa.array(order))
        numbers = ordered.column(stage.partition[0]).to_pylist()
        found = []
        for begin, end in pairwise(bounds):
            number = numbers[begin]
            tree = self.trees[number]
            own = replace(plan, program=compile_pattern(tree), tree=tree)
            table, edges = ordered.slice(begin, end - begin), np.array([0, end - begin])
            part = self.caught("kernel", number, lambda: list(match_recognize(own, table, edges)))  # noqa: B023
            found += part
        if is_asking(plan):  # that a search fails counts where it is for matches
            self.errors["kernel"].clear()
        return frame_of_collected(rows.sparkSession, pa.Table.from_batches(found, plan.result), schema)

    def by_reference(self, rows: Sequence[Any], clause: reference.Clause) -> list[reference.OutputRow]:
        """The same of the reference."""
        of: dict[int, list[Any]] = defaultdict(list)
        for row in rows:
            of[row[_KEY]].append(row)
        asked_together(
            {number: (part, replace(clause, tree=self.trees[number])) for number, part in of.items()}
        )
        found = []
        for number, part in of.items():
            own = replace(clause, tree=self.trees[number])
            found += self.caught("reference", number, lambda: reference.match_recognize(part, own))  # noqa: B023
        return found

    def caught(self, who: str, number: int, run: Callable[[], list[Any]]) -> list[Any]:
        """What comes of a partition, nothing where it fails."""
        try:
            return run()
        except ExecutionError as error:
            self.errors[who][number] = error.condition
            return []

    def outcome(self, session: Session, who: str) -> dict[int, list[str]] | str:
        """By partition the rows in any order, or the error; the error of the query."""
        answer: dict[int, list[str]] = defaultdict(list)
        try:
            for row in session.sql(self.sql).collect():
                answer[row["p"]].append(repr(row.asDict(recursive=True)))
        except WindrowError as error:
            return error.condition
        known = {number: sorted(rows) for number, rows in answer.items()}
        return known | {number: [condition] for number, condition in self.errors[who].items()}


class _Unknown(Exception):
    """A condition asks for what Spark has not answered yet."""


def asked_together(partitions: Mapping[int, tuple[Sequence[Any], reference.Clause]]) -> None:
    """Have Spark answer what the reference asks of any partition, many questions at a time.

    Where Spark fails to answer some, the reference asks the rest itself: it may need none of those.
    """
    asked: dict[KnownAnswers, dict[str, Any]] = defaultdict(dict)
    guesses = cycle([True, False])

    def known(answers: KnownAnswers, question: Any) -> Any:
        if repr(question) in answers.known:
            return answers.known[repr(question)]
        asked[answers][repr(question)] = question
        raise _Unknown

    def guessed(
        condition: Callable[[reference.MatchView], Any], guess: bool
    ) -> Callable[[reference.MatchView], Any]:
        def holds(view: reference.MatchView) -> Any:
            try:
                return condition(view)
            except _Unknown:
                return guess

        return holds

    left = dict(partitions)
    while left:
        guess = next(guesses)
        for number, (part, clause) in list(left.items()):
            before = sum(map(len, asked.values()))
            conditions = {label: guessed(one, guess) for label, one in clause.conditions.items()}
            with patch.object(KnownAnswers, "of", known), suppress(ExecutionError):
                reference.match_recognize(part, replace(clause, conditions=conditions))
            if sum(map(len, asked.values())) == before:
                del left[number]
        for answers, questions in asked.items():
            try:
                answers.add(list(questions.values()))
            except WindrowError:
                return
        asked.clear()


def tried(
    spark: SparkSession, sql: str, trees: Sequence[Tree], rows: Sequence[tuple[Any, ...]], told: Counter[str]
) -> Iterator[str]:
    """Run a query over rows with the number of a partition; where the two differ, in words."""
    spark.createDataFrame(list(rows), f"p int, {ROWS_OF}").createOrReplaceTempView("seq")
    one = Tried(sql, trees)
    with patch.object(matching, "run_fragment", one.by_kernel):
        found = one.outcome(Session(spark, execution="batch"), "kernel")
    with patch.object(match_reference, "match_recognize", one.by_reference):
        expected = one.outcome(Session(spark, execution="reference"), "reference")
    if isinstance(found, str) or isinstance(expected, str):
        if found != expected:
            yield f"{sql}\n  the kernel: {found}\n  the reference: {expected}"
        return
    told["rows"] += sum(map(len, expected.values()))
    for number, tree in enumerate(trees):
        if found.get(number) != expected.get(number):
            own = [row[1:] for row in rows if row[0] == number]
            yield (
                f"{sql}\n  where PATTERN is {tree}\n  over {own}\n  the kernel: {found.get(number)}"
                f"\n  the reference: {expected.get(number)}"
            )


def drawn(strategy: st.SearchStrategy[Any], count: int, start: int) -> list[Any]:
    """So many values of a strategy, each once."""
    found: dict[str, Any] = {}
    while len(found) < count:

        @seed(start)
        @settings(
            max_examples=max(count, 100),
            database=None,
            phases=[Phase.generate],
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def draw(value: Any) -> None:
            found.setdefault(repr(value), value)

        draw()
        start += 1
    return list(found.values())[:count]


def random_tree(chance: random.Random, leaves: int) -> Tree:
    """A pattern with so many variables, empty patterns and anchors."""
    if leaves == 1:
        tree = chance.choice([A, B, C, A, B, C, EXCLUDED, InOrder(()), Edge(True), Edge(False)])
    else:
        first = chance.randint(1, leaves - 1)
        parts = random_tree(chance, first), random_tree(chance, leaves - first)
        tree = chance.choice([InOrder, InOrder, Choice])(parts)
    if chance.random() < 0.4:
        low, high = chance.choice([(0, 1), (0, None), (1, None), (2, 2), (1, 3), (0, 2), (2, None)])
        tree = Repeat(tree, low, high, chance.random() < 0.6)
    return tree


def ways(tree: Tree, rows: int = MOST_ROWS, done: int = 0) -> tuple[list[int], int]:
    """By the number of rows taken in how many ways a pattern can match, and about how many steps that takes.

    Every row may be of every variable. Of a repetition `done` iterations are behind.
    """
    ends, steps = [0] * (rows + 1), 1

    def after(taken: int, times: int, found: tuple[list[int], int]) -> None:
        nonlocal steps
        steps += times * found[1]
        for more, count in enumerate(found[0]):
            ends[taken + more] += times * count

    match tree:
        case Label():
            ends[1:2] = [1] * min(rows, 1)
        case InOrder(parts=(first, *rest)):
            begun, steps = ways(first, rows)
            for taken, times in enumerate(begun):
                if times:
                    after(taken, times, ways(InOrder(tuple(rest)), rows - taken))
        case Choice(parts=parts):
            for part in parts:
                after(0, 1, ways(part, rows))
        case Repeat(low=low, high=high):
            if done >= low:
                ends[0] = 1
            if high is None or done < high:
                begun, own = ways(tree.part, rows)
                steps += own
                for taken, times in enumerate(begun):
                    if times and not taken and done + 1 >= low:
                        ends[0] += times
                    elif times:
                        after(taken, times, ways(tree, rows - taken, done + 1))
        case _:
            ends[0] = 1
    return ends, steps


def _parts(tree: Tree) -> Iterator[Tree]:
    yield tree
    for part in tree.parts if isinstance(tree, InOrder | Choice) else ():
        yield from _parts(part)
    if isinstance(tree, Repeat):
        yield from _parts(tree.part)


def _may_have(sql: str, tree: Tree) -> bool:
    """Whether a query may have a pattern, and the reference is done with it soon."""
    if ways(tree)[1] > MOST_WAYS:
        return False
    if "UNMATCHED" in sql and any(isinstance(part, Label) and part.excluded for part in _parts(tree)):
        return False
    return " OVER w" not in sql or not any(isinstance(part, Edge) for part in _parts(tree))


def main(arguments: Sequence[str] | None = None, spark: SparkSession | None = None) -> int:
    """Try so many patterns; 1 where any differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.spark.many_patterns")
    parser.add_argument("--count", type=int, default=10_000, help="how many patterns")
    parser.add_argument("--seed", type=int, default=1, help="others with another number")
    chosen = parser.parse_args(arguments)
    chance, begin = random.Random(chosen.seed), time.monotonic()
    count = -(-chosen.count // PARTITIONS)
    spark = Session(spark).spark
    for name, value in _INTERPRETED.items():
        spark.conf.set(name, value)
    spark.createDataFrame(LIM, "k string, top int, c string").createOrReplaceTempView("lim")
    asked = [with_partitions(sql) for sql in drawn(queries(), count, chosen.seed)]
    told: Counter[str] = Counter()
    texts = ["x", "y", None]
    for number, sql in enumerate(asked, 1):
        random_trees = (random_tree(chance, chance.randint(1, MOST_LEAVES)) for _ in count_up())
        trees = list(islice((tree for tree in random_trees if _may_have(sql, tree)), PARTITIONS))
        rows = [
            (
                at,
                chance.choice("ab"),
                place,
                chance.choice(texts),
                chance.choice([None, *range(7)]),
            )
            for at in range(len(trees))
            for place in range(chance.randint(1, MOST_ROWS))
        ]
        for difference in tried(spark, sql, trees, rows, told):
            told["differ"] += 1
            print(difference, flush=True)
        told["patterns"] += len(trees)
        if number % 10 == 0 or number == len(asked):
            done = (
                f"{number} queries, {told['patterns']} patterns, {told['rows']} rows, {told['differ']} differ"
            )
            print(f"{done}, {time.monotonic() - begin:.0f} s", flush=True)
    return int(told["differ"] > 0)


_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}
"""Spark reads plans instead of compiling them."""


def with_partitions(sql: str) -> str:
    """A query of `queries`, with partitions by number, and a pattern with all variables."""
    start = sql.index("PATTERN (")
    depth, stop = 0, start + len("PATTERN ")
    while True:
        depth += {"(": 1, ")": -1}.get(sql[stop], 0)
        stop += 1
        if not depth:
            break
    sql = f"{sql[:start]}{_ALL}{sql[stop:]}"
    return sql.replace("PARTITION BY k", "PARTITION BY p").replace("SELECT k, i, ", "SELECT p, k, i, ")


if __name__ == "__main__":
    sys.exit(main())

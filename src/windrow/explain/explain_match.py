"""EXPLAIN of MATCH_RECOGNIZE: the pattern's program, and how each condition is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from windrow.explain.explain_text import (
    constants,
    not_exchanged,
    one_line,
    order,
    section,
    text_of,
    without_keys,
)
from windrow.kernels.patterns.execution import is_row_only, parts_of, searches_at_once
from windrow.kernels.patterns.pattern_plan import CLASSIFIER, PatternCondition, Register, register_side
from windrow.kernels.patterns.program import listing
from windrow.kernels.window_plan import sides_of
from windrow.spark.clauses.matching import BoundMatch

__all__ = ["explain_match"]

Lines = Iterator[tuple[str, str]]


def explain_match(
    number: int, item: BoundMatch, names: dict[str, str], more: Iterable[tuple[str, str]] = ()
) -> str:
    """The section of one clause, with further lines."""
    title = "MATCH_RECOGNIZE" if item.match.clause.frame is None else "WINDOW WITH A PATTERN"
    return section(f"{number} {title}", [*_clause(item, names), *_plan(item, names), *more])


def _clause(item: BoundMatch, names: dict[str, str]) -> Lines:
    match, clause = item.match, item.match.clause
    yield "rows", one_line(without_keys(match.rows), names)
    keys = ", ".join(text_of(key, names) for key in match.partition_by)
    yield "partition by", keys or "nothing: one sequence"
    if match.is_ordered:
        keys = ", ".join(order(key, by.descending, by.nulls_first, names) for key, by in match.order_by)
        yield "order by", keys
        yield "", "ties are in an arbitrary order, the same throughout the query"
    else:
        yield "order by", "nothing: the rows are in an arbitrary order, the same throughout the query"
    kinds = {(True, False): "with empty matches", (False, False): "without empty matches"}
    also = kinds.get((clause.shows_empty, clause.with_unmatched), "with empty matches and unmatched rows")
    if clause.frame is None:
        yield "output", f"all rows of a match, {also}" if clause.all_rows else "one row a match"
    else:
        yield "output", "every row, with the match that is found for it"
        where = "at the row or after it" if clause.frame.seek else "at the row"
        following = clause.frame.following
        end = "the end of the partition" if following is None else f"{following} rows after it"
        yield "frame", f"a match begins {where}, and reaches and reads up to {end}"
    target = f" {clause.skip.target}" if clause.skip.target else ""
    if clause.every:
        yield "finds", "all matches, in order of their last rows"
    else:
        yield "after a match", f"on from the {_SKIPS[clause.skip.kind]}{target}"


_SKIPS = {"past last": "row after its last", "next": "row after its first", "first": "first", "last": "last"}


def _plan(item: BoundMatch, names: dict[str, str]) -> Lines:
    match, draft, clause = item.match, item.draft, item.match.clause
    start, stop = clause.pattern_at
    yield "pattern", match.tokens.text(start + 1, stop - 1)
    for line in listing(match.program, match.labels):
        yield "", line
    unlimited = clause.frame is None and clause.duration is None and not clause.every
    if unlimited and searches_at_once(match.tree, draft.conditions, clause.skip.kind):
        yield "", "strategy: at all rows at once, without the machine"
    else:
        yield "", "strategy: the machine"
    for define in match.defines:
        yield "define", f"{define.name} AS {match.tokens.text(*define.range)}"
        label = match.labels.index(define.name)
        conditions = [one for one in draft.conditions if one.label == label]
        yield "", f"strategy: {_strategy(conditions)}"
    undefined = [name for name in match.labels if name not in [define.name for define in match.defines]]
    if undefined:
        yield "define", f"{', '.join(undefined)}: any row"
    if match.clause.within is not None:
        words = "WITHIN INCLUSIVE" if match.clause.inclusive else "WITHIN"
        yield (
            "within",
            f"{words} {match.tokens.text(*match.clause.within.tokens)}: a condition of every variable",
        )
    if match.clause.duration is not None:
        length = match.tokens.text(*match.clause.duration.tokens)
        yield (
            "duration",
            f"a match has all rows from its first one on for {length}, and is final after that",
        )
    for number, register in enumerate(draft.registers):
        yield "register", f"{register_side(number)} = {_register(register, match.labels)}"
    if draft.neighbours:
        shifts = ", ".join(f"{shift:+d}" for shift in draft.neighbours)
        yield "beside", f"the rows {shifts} of each row, by Spark's lag, for columns that read them"
    for requested in draft.requested:
        yield "asked", f"{requested.number} = {one_line(requested.text, names)}"
        when = "when the query starts" if item.analyzer.whole else "in each micro-batch"
        yield "", f"by Spark, for all values that the search may need, {when}"
    for leaf in draft.running:
        yield "running", f"{leaf.name} = {leaf.function} of {leaf.column}, row by row in Python"
    for number, text in enumerate(draft.arguments):
        yield "column", f"a{number} = {one_line(text, names)}"
    for column in draft.hoisted:
        yield "column", f"{column.name} = {one_line(column.text, names)}"
    for name, columns in draft.of_names:
        yield "of names", f"{name} = {', '.join(columns)} for {', '.join(match.labels)}"
    yield from constants(draft, names)
    for name, text in draft.texts:
        yield "measure", f"{name} = {one_line(text, names)}"
    for leaf in draft.aggregates:
        over = leaf.leaf.variable or "all rows"
        yield (
            "aggregate",
            f"{leaf.name} = {leaf.function} of {_column(leaf.column)} of {over}, in the kernel",
        )
        if leaf.of_spark is not None:
            yield "aggregate", f"{leaf.name} = {one_line(leaf.of_spark.text, names)}, in Spark"
    for value in draft.values:
        over = (
            "all rows"
            if value.members is None
            else ", ".join(match.labels[at] for at in sorted(value.members))
        )
        place = f"{'FIRST' if value.from_first else 'LAST'} of {over}"
        moved = f", {value.shift:+d} rows" if value.shift else ""
        nth = f" but {value.offset}" if value.offset else ""
        final = ", FINAL" if value.final else ""
        yield "value", f"{value.name} = {_column(value.column)} of {place}{nth}{moved}{final}"
    yield from zip(("reads", ""), item.reads, strict=False)
    if not item.exchanges:
        yield "exchange", not_exchanged(in_slices=item.has_slices)
        return
    to = "by hash of the partition keys" if match.partition_by else "to one task"
    if item.halo is None and not item.is_followed:
        yield "exchange", f"in chunks {to}, then sorted; a partition is in one task"
        return
    yield "exchange", f"in chunks {to}, then sorted; long partitions in slices"
    if item.halo is None:
        yield "", "a slice continues the matches that the one before leaves open"
    else:
        yield "", f"a slice has {item.halo.before} rows before its own and {item.halo.after} after"


def _strategy(conditions: list[PatternCondition]) -> str:
    parts = [part for condition in conditions for part in parts_of(condition)]
    by_machine = [part for part in parts if not is_row_only(part.expression)]
    if not by_machine:
        return "a Boolean column"
    read = sorted({side for part in by_machine for side in sides_of(part.expression)} - {"row"})
    how = "evaluated" if len(by_machine) == len(parts) else "a Boolean column, and the rest evaluated"
    return f"{how} by the machine, over {', '.join(read) or 'the row'}"


def _register(register: Register, labels: tuple[str, ...]) -> str:
    over = (
        "all rows" if register.members is None else ", ".join(labels[at] for at in sorted(register.members))
    )
    lists = {"rows": "the rows", "labelled rows": "the rows and variables", "count": "how many rows"}
    if register.kind in lists:
        return f"{lists[register.kind]} of {over}"
    if register.kind == "number":
        return "the number of the match"
    what = "variable of the " if register.kind == "label" else ""
    nth = f" but {register.offset}" if register.offset else ""
    if register.shift:
        nth += f", {register.shift:+d} rows"
    return f"{what}{'first' if register.from_first else 'last'} row of {over}{nth}"


def _column(name: str | None) -> str:
    return "CLASSIFIER()" if name == CLASSIFIER else name or "rows"

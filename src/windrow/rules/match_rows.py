"""From a bound MATCH_RECOGNIZE to the plan of the kernel, and Spark's computations before and after it.

    DEFINE B AS B.price < LAST(A.price) AND upper(B.note) = PREV(B.note)
    →  h0 = price    h1 = upper(note)    h2 = note
       B: h0(row) < h0(r0) AND h1(row) = h2(row − 1)        r0 = the last row of A

A value at the current row, or at its neighbours, is a column, shifted up or down; other rows of the match are
in registers of the machine. Conditions over rows of a match that only Spark can evaluate are evaluated
before. The kernel computes the measures' values at rows and aggregates; Spark computes the expressions around
them, over the result.
"""

from __future__ import annotations

from windrow.algebra.match_node import Match
from windrow.rules.match_define import Definitions
from windrow.rules.match_draft import MatchAnalyzer, MatchDraft
from windrow.rules.match_measures import Measures
from windrow.rules.match_values import RowValues
from windrow.rules.share_keys import shared_keys

__all__ = ["draft_match"]


def draft_match(match: Match, analyzer: MatchAnalyzer) -> MatchDraft:
    """Bind a clause to the columns of its rows.

    Raises
    ------
    AnalysisError
        ``MIXED_VARIABLES``, ``PREDICATE_NOT_BOOLEAN``, and what Spark finds.
    NotSupportedError
        ``UNSUPPORTED_CONDITION`` where the machine cannot evaluate a condition.
    """
    rows = RowValues(match, analyzer)
    define, measures = Definitions(rows), Measures(rows)
    conditions = [*define.defined(), *define.within()]
    duration = define.duration()
    texts = tuple((item.name, measures.measure(item)) for item in measures.items)
    scope = measures.scope()
    before, after = measures.output_columns()
    scope += measures.outside(before)
    hoisted = tuple(rows.columns.hoisted.values())
    return MatchDraft(
        match, tuple(rows.arguments), tuple(define.sources.values()), hoisted,
        tuple(rows.columns.constants.items()), shared_keys(match, hoisted, analyzer.fields),
        tuple(conditions), tuple(define.registers), tuple(sorted(define.neighbours)),
        tuple(measures.values), tuple(measures.aggregates), tuple(measures.numbers), tuple(define.running),
        tuple(scope), before, after, texts, define.length(), duration,
        tuple(rows.by_label.items()), tuple(define.of_names.items()),
        define.requests_in(conditions),
    )  # fmt: skip

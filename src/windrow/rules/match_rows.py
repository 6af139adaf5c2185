"""From a bound MATCH_RECOGNIZE to the plan of the kernel, what Spark computes before it, and what after.

    DEFINE B AS B.price < LAST(A.price) AND upper(B.note) = PREV(B.note)
    →  h0 = price    h1 = upper(note)    h2 = note
       B: h0(row) < h0(r0) AND h1(row) = h2(row − 1)        r0 = the last row of A

A value at the row that is tried, or at its neighbours, is a column moved up or down; other rows of the
match are retained in registers of the machine. What only Spark can evaluate over rows of a match, it is asked
before. The measures' values at rows and aggregates are the kernel's;
the expressions around them are Spark's, over the result.
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

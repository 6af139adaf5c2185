"""Statements about WINDOW BY and MATCH_RECOGNIZE over streams: live queries, and views of them.

The output of such a clause over a stream is a stream again: each window is at the rowtime of its label row,
each match at that of one of its rows. A view of it, or a query in brackets before a time window, is a stream
too if a column has that rowtime.
"""

from __future__ import annotations

import hashlib

from windrow.algebra.rewriting.relations_so_far import relations_so_far
from windrow.errors import WindrowError
from windrow.explain.explain_live import explain_live
from windrow.relation import Relation, as_plan, no_rows
from windrow.relation_kinds import LiveRelation, StreamRelation
from windrow.spark.analysis.own_aggregates import own_aggregates
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import APART, ClausePlan, LivePlan, SequenceView, WhyRelation, plan_of_clauses
from windrow.statements.named_streams.insert import insert
from windrow.statements.naming import forget, is_free, refresh, remember_sequence
from windrow.statements.statement_context import StatementContext
from windrow.syntax.cql_clauses import begins_relation, window_at
from windrow.syntax.definitions.create_view import parse_view
from windrow.syntax.nodes import Range
from windrow.syntax.streams.apart import clauses_apart
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.tokens import TokenList

__all__ = ["declare_clauses", "has_windows_of_time", "names_sequence", "plan_to_start", "run_sequence"]


def names_sequence(text: str, catalog: Catalog) -> bool:
    """Whether a text may read a view of windows or matches."""
    lower = text.lower()
    return any(name in lower for name in catalog.sequences)


def run_sequence(context: StatementContext) -> Relation | None:
    """Run a statement whose query is live, or that inserts a live query; None for any other."""
    gateway, catalog, execution = context.gateway, context.catalog, context.execution
    tokens, statement, run_query = context.tokens, context.statement, context.run_query
    start, stop = statement
    if has_windows_of_time(tokens, statement, catalog):
        return None
    refresh(gateway, catalog, execution)
    if tokens.word(start) == "INSERT":
        return insert(gateway, catalog, tokens, statement, run_query)
    if tokens.word(start) == "CREATE":
        return _create_view(context)
    is_explained = tokens.word(start) == "EXPLAIN"
    written = spelled(tokens, start + is_explained, stop)
    query = start + is_explained, stop - len(tokens) + len(written.tokens)
    plan = plan_of_clauses(gateway, catalog, written.tokens, query, execution, recorded=True)
    has_clause = plan is not None and bool(plan.statement.windows)
    # SELECT STREAM of a view is a CQL query, and recorded rows are read as a table
    if plan is None or (bool(written.selects) and not has_clause):
        return None
    is_live = plan.is_endless or (gateway.prefers_live and bool(plan.streams))
    if not is_live and not written.selects:
        return None
    if not written.selects and plan.why_relation is not None:
        return _as_relation(context, plan.why_relation)
    try:
        if is_explained or gateway.plan_only:
            return as_plan(gateway, explain_live(plan))
        if is_live:
            return LiveRelation(plan, plan.outer, explain_live(plan))
        plan.refuse_no_stream()
        stream = plan.as_stream(plan.recorded(), tuple(plan.outer.columns))
        return StreamRelation(stream, explain_live(plan), gateway, live=plan if plan.streams else None)
    except WindrowError as error:
        if error.sql == written.tokens.sql:
            error.sql = tokens.sql
        raise


def has_windows_of_time(tokens: TokenList, statement: Range, catalog: Catalog) -> bool:
    """Whether a statement is a CQL query: it has windows in brackets, or reads time-varying relations."""
    return any(
        (tokens.is_symbol(at, "[") and window_at(tokens, at))
        or (
            tokens[at].is_name
            and tokens[at].name.lower() in catalog.relations
            and begins_relation(tokens, at)
        )
        for at in range(*statement)
    )


def plan_to_start(context: StatementContext, plan: ClausePlan) -> LivePlan:
    """The plan of a live query with clauses over named streams; if it combines their rows, as a time-varying
    relation.
    """
    if plan.why_relation is None:
        return plan
    live = _as_relation(context, plan.why_relation).live
    assert live is not None
    return live


def _as_relation(context: StatementContext, why: WhyRelation) -> Relation:
    """Run a statement that combines rows of clauses, or rows below them, as time-varying relations."""
    catalog, tokens = context.catalog, context.tokens
    own = own_aggregates(context.gateway, tokens)
    text = relations_so_far(tokens, catalog.streams.keys(), catalog.rowtimes, own, below=why.below)
    if text is None:
        raise why.refused
    with context.gateway.instead(text) as read:
        return context.run_query(read)


def _create_view(context: StatementContext) -> Relation | None:
    """Make a view of windows or matches a stream; None for other statements and other views."""
    gateway, catalog, execution = context.gateway, context.catalog, context.execution
    tokens, statement = context.tokens, context.statement
    view = parse_view(tokens, *statement)
    if view is None or not view.words.is_temporary:
        return None
    plan = plan_of_clauses(gateway, catalog, tokens, view.body, execution, recorded=True)
    if plan is None:
        return None
    if (plan.is_endless or gateway.prefers_live) and plan.why_relation is not None:
        return _as_relation(context, plan.why_relation)
    if gateway.plan_only:
        return as_plan(gateway, explain_live(plan))
    try:
        plan.refuse_no_stream()
    except WindrowError:
        if plan.is_endless:
            raise
        if view.words.replaces:
            forget(gateway, catalog, view.name)
        return None  # a table of the recorded rows
    names = view.columns or plan.outer.columns
    if is_free(gateway, catalog, tokens, view, names):
        remember_sequence(gateway, catalog, SequenceView(view.name, plan, tuple(names)))
    return no_rows(gateway)


def declare_clauses(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, statement: Range, execution: str
) -> dict[int, str]:
    """Make streams of the queries in brackets before time windows: their names, by position.

    Raises
    ------
    WindrowError
        Where such a query cannot be a stream.
    """
    found: dict[int, str] = {}
    for at, inside in clauses_apart(tokens, statement):
        plan = plan_of_clauses(gateway, catalog, tokens, inside, execution, recorded=True)
        if plan is None:
            continue
        span = tokens.span(*inside)
        text = " ".join(tokens.sql[span.start : span.stop].split())
        name = f"{APART}{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        plan.refuse_no_stream()
        remember_sequence(gateway, catalog, SequenceView(name, plan, tuple(plan.outer.columns)))
        found[tokens[at].start] = name
    return found

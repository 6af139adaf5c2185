"""The steps by which a statement is run: each runs it, or rewrites it and begins anew, or passes.

Most statements are SQL in which windows are replaced by relations. Some need more: EXPLAIN shows Windrow's
plan, and a view must have the windows' DataFrame, because Spark cannot read its text alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from windrow.algebra.bind import bind
from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.nested_streams import may_nest_streams
from windrow.errors import WindrowError
from windrow.explain.explain_live import explain_live
from windrow.explain.explained import explain
from windrow.relation import Relation, as_plan, no_rows
from windrow.relation_kinds import LiveRelation
from windrow.spark.analysis.own_aggregates import own_aggregates
from windrow.spark.catalog import Catalog
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.clauses.names_around import columns_by_spark, with_names_around
from windrow.spark.clauses.reference_mode import build_reference
from windrow.spark.gateway import Gateway
from windrow.spark.live import ClausePlan, plan_of_clauses
from windrow.spark.live.input.source import endless
from windrow.spark.relations.table_functions_in_from import TableFunctions, calls_table_functions
from windrow.spark.scan.files_in_text import with_files
from windrow.statements.clauses_over_streams import plan_to_start, run_sequence
from windrow.statements.clauses_over_windows import with_clauses_cut
from windrow.statements.composed import (
    as_of_now,
    emits_around,
    queries_inside,
    relation_inside,
    with_emitted,
)
from windrow.statements.definitions.session_functions import (
    create_or_drop_function,
    may_call_functions,
    with_functions,
)
from windrow.statements.definitions.shown_views import described, may_show_views, shown
from windrow.statements.definitions.temporary_views import create_view, query_of, view_query
from windrow.statements.definitions.view_expansion import may_read_expanded, with_expanded
from windrow.statements.emit_statements import (
    may_be_emitted,
    run_emission,
    without_watermark,
)
from windrow.statements.emitted_views import with_emitting_views
from windrow.statements.named_streams.insert import insert
from windrow.statements.naming import refresh
from windrow.statements.past_relations import past_relations, with_past
from windrow.statements.select_stream import (
    may_stand_below_clauses,
    with_streams_as_rows,
    with_streams_below_clauses,
)
from windrow.statements.statement_context import StatementContext
from windrow.statements.stream_statements import has_stream_words, is_continuous, run_continuous
from windrow.statements.temporal_joins import (
    may_join_versions,
    view_of_versions,
    with_versions,
    without_ours,
)
from windrow.statements.written_results import may_write_result, with_result
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.streams.commands import parse_command
from windrow.syntax.streams.emit_clause import clauses_in, has_clauses
from windrow.syntax.tokens import TokenList, tokenize

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

from windrow.statements.classification import (
    as_select,
    is_ours,
    matches_rows,
    may_be_ours,
    may_be_sequence,
    only_statement,
    rowtimes,
    stream_shown,
)

__all__ = ["run_steps"]

_QUERY = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_BUILDERS = {"batch": build_window, "reference": build_reference}


@dataclass(frozen=True)
class _Statement:
    """A statement, as far as steps have rewritten it.

    Attributes
    ----------
    positional
        The values of its `?`, until a step writes them as named parameters.
    streams
        The catalog if the session has one. Steps about streams do not apply without it.
    """

    gateway: Gateway
    text: str
    positional: list[Any]
    execution: str
    streams: Catalog | None

    @property
    def catalog(self) -> Catalog:
        """The catalog, which is empty if the session has none."""
        return self.streams or Catalog()

    def rewritten(self, text: str) -> Relation:
        """Run a text in its place, in which all parameters are named."""
        return run_steps(self.gateway, text, [], self.execution, self.streams)

    def through(self, rewriting: AbstractContextManager[str | None]) -> Relation | None:
        """Run the text that a rewriting returns, while its names exist; None if it returns none."""
        with rewriting as read:
            return None if read is None else self.rewritten(read)

    def with_named_parameters(self, tokens: TokenList) -> Relation:
        """Run it with names in place of its `?`."""
        with self.gateway.instead(SqlText.of(verbatim(tokens, 0, len(self.text)))) as named:
            return self.rewritten(named)

    def planned(self, text: str) -> Relation:
        """Plan a query, for its columns."""
        asked, self.gateway.plan_only = self.gateway.plan_only, True
        try:
            return self.rewritten(text)
        finally:
            self.gateway.plan_only = asked

    def query(self, text: str) -> Relation:
        """Run a query that is part of it."""
        return run_steps(self.gateway, text, self.positional, self.execution, self.streams)

    def context(self, tokens: TokenList) -> StatementContext:
        """The statement for those who run one of a kind."""
        statement = only_statement(tokens)
        return StatementContext(self.gateway, self.catalog, tokens, statement, self.execution, self.query)


def run_steps(
    gateway: Gateway, text: str, positional: list[Any], execution: str, catalog: Catalog | None
) -> Relation:
    """Run a statement by the first step that does not pass; `catalog` has the session's streams."""
    statement = _Statement(gateway, text, positional, execution, catalog)
    return next(done for step in _STEPS if (done := step(statement)) is not None)


def _name_files(one: _Statement) -> Relation | None:
    """Files in FROM become views."""
    read = with_files(one.gateway, one.text)
    return None if read is None else one.through(one.gateway.instead(read))


def _show_views(one: _Statement) -> Relation | None:
    """DESCRIBE of a view that Spark does not have, and SHOW VIEWS with such."""
    if one.streams is None or not may_show_views(one.text):
        return None
    tokens = tokenize(one.text)
    statement = only_statement(tokens)
    found = described(one.gateway, one.streams, tokens, statement, one.query)
    return found or shown(one.gateway, one.streams, tokens, statement)


def _define_function(one: _Statement) -> Relation | None:
    """CREATE or DROP of a function over windows."""
    catalog = one.streams
    if catalog is None:
        return None

    def needs_session(query: str) -> bool:
        try:
            return is_ours(one.gateway, catalog, query)
        except WindrowError:  # it has a clause, of which this is reported at its place when it is planned
            return True

    return create_or_drop_function(one.gateway, catalog, one.text, one.planned, needs_session)


def _inline_functions(one: _Statement) -> Relation | None:
    """Calls of functions over windows become subqueries."""
    if not may_call_functions(one.text, one.catalog):
        return None
    return one.through(with_functions(one.gateway, one.catalog, one.text, one.planned))


def _nest_queries(one: _Statement) -> Relation | None:
    """Pipes, and clauses over joins, groups and each other, become a SELECT over rows."""
    piped = as_select(one.text, one.streams)
    return None if piped is None else one.through(one.gateway.instead(piped))


def _expand_views(one: _Statement) -> Relation | None:
    """Views that only Windrow reads become subqueries."""
    if not may_read_expanded(one.text, one.catalog):
        return None
    return one.through(with_expanded(one.gateway, one.catalog, one.text))


def _name_streams_of_queries(one: _Statement) -> Relation | None:
    """SELECT STREAM in FROM and WITH becomes a stream with a name."""
    if one.streams is None or not may_nest_streams(one.text):
        return None
    return one.through(with_streams_as_rows(one.gateway, one.streams, one.text))


def _write_result(one: _Statement) -> Relation | None:
    """CREATE TABLE AS and INSERT INTO a table, of a query over streams."""
    if one.streams is None or not may_write_result(one.text, one.streams):
        return None
    tokens = tokenize(one.text)
    statement = only_statement(tokens)
    if one.positional and parse_command(tokens, *statement) is not None:
        return one.with_named_parameters(tokens)
    with with_result(one.gateway, one.streams, tokens, statement, one.query) as found:
        if not isinstance(found, tuple):
            return found
        read, query = found
        written = one.rewritten(read)
        written.written_from = query
        return written


def _compose(one: _Statement) -> Relation | None:
    """A statement around queries with EMIT, or relations of the past."""
    catalog, gateway = one.streams, one.gateway
    if catalog is None or not (has_clauses(one.text) or may_join_versions(one.text)):
        return None
    tokens = tokenize(one.text)
    statement = only_statement(tokens)
    query = query_of(tokens, statement)
    clauses = [*clauses_in(tokens, *statement), *past_relations(tokens, catalog)]
    places = queries_inside(tokens, query)
    if one.positional and clauses:  # a mark is counted from the beginning of the statement
        return one.with_named_parameters(tokens)
    if emits_around(tokens, query, places) and catalog.emitting:
        expanded = one.through(with_emitting_views(gateway, catalog, tokens, query))
        if expanded is not None:
            return expanded
    if gateway.checks:  # the outer query is planned after such queries have returned their columns
        return [relation_inside(tokens, place, one.query) for place in places][-1] if places else None
    if tokens.word(statement[0]) == "INSERT" and clauses:
        inserted = insert(gateway, catalog, tokens, statement, one.query)
        if inserted is not None:
            return inserted
    view = view_query(tokens, statement) if clauses else None
    if view is not None:  # Spark would retain its text, in which a table stands that is gone then
        relation = relation_inside(tokens, view, one.query)
        is_live = isinstance(relation, LiveRelation)
        frame = endless(gateway.spark, relation.schema) if is_live else relation.df
        frame = create_view(gateway, tokens, (statement[0], view[0]), frame)
        return Relation(frame, "a view of the result of a query with EMIT", gateway)
    with with_emitted(gateway, catalog, tokens, places, query, one.query) as read:
        if read is None:
            return None
        written = one.rewritten(read)
        is_nested = emits_around(tokens, query, places)
        return written if is_nested else as_of_now(gateway, tokens, places, written)


def _join_versions(one: _Statement) -> Relation | None:
    """Temporal joins, and FOR SYSTEM_TIME AS OF a value."""
    if one.streams is None or not may_join_versions(one.text):
        return None
    with with_past(one.gateway, one.streams, one.text) as past:
        if past is not None:
            return run_steps(one.gateway, past[0], [], one.execution, past[1])
    if view_of_versions(one.gateway, one.streams, one.text, one.query):
        return no_rows(one.gateway)
    with with_versions(one.gateway, one.streams, one.text) as read:
        return None if read is None else without_ours(one.rewritten(read))


def _emit(one: _Statement) -> Relation | None:
    """A query with EMIT, and queries over views of such."""
    if one.streams is None or not may_be_emitted(one.text, one.streams):
        return None
    refresh(one.gateway, one.streams, one.execution)
    tokens = tokenize(one.text)
    statement = only_statement(tokens)
    with without_watermark(one.gateway, one.streams, tokens, statement) as read:
        if read is not None:
            return one.query(read)
    emitted = run_emission(one.gateway, one.streams, tokens, statement, one.execution)
    if emitted is not None:
        emitted.made_of = stream_shown(one.text, one.streams)
    return emitted


def _name_table_functions(one: _Statement) -> Relation | None:
    """Table functions become views or queries."""
    if not calls_table_functions(one.text, one.catalog.functions):
        return None
    return one.through(_without_table_functions(one.gateway, one.text, one.execution, one.catalog))


def _name_streams_below_clauses(one: _Statement) -> Relation | None:
    """SELECT STREAM over windows in brackets, whose rows a clause reads, becomes a stream with a name."""
    if one.streams is None or not (may_stand_below_clauses(one.text) and may_be_ours(one.text)):
        return None

    def run_query(text: str, catalog: Catalog) -> Relation:
        return run_steps(one.gateway, text, [], one.execution, catalog)

    with with_streams_below_clauses(one.gateway, one.streams, one.text, run_query) as found:
        return None if found is None else run_query(*found)


def _cut_clauses(one: _Statement) -> Relation | None:
    """Clauses over windows in brackets become relations with names."""
    if one.streams is None or not (may_be_ours(one.text) and is_continuous(one.text, one.streams)):
        return None
    build = _BUILDERS[one.execution]
    with with_clauses_cut(one.gateway, one.streams, one.text, one.execution, build) as cut:
        return None if cut is None else cut.explained(one.gateway, one.rewritten(cut.text))


def _read_sequence(one: _Statement) -> Relation | None:
    """A clause over a stream."""
    if one.streams is None or not may_be_sequence(one.text, one.streams):
        return None
    return run_sequence(one.context(tokenize(one.text)))


def _read_streams(one: _Statement) -> Relation | None:
    """A statement about streams, or a query over them; row patterns read a recorded stream as a table."""
    if one.streams is None or not is_continuous(one.text, one.streams):
        return None
    if matches_rows(one.text):
        refresh(one.gateway, one.streams, one.execution)
        return None
    return run_continuous(one.context(tokenize(one.text)))


def _leave_to_spark(one: _Statement) -> Relation | None:
    """A statement without any clause of Windrow."""
    if may_be_ours(one.text):
        return None
    plain = _plain(one.gateway, one.text, one.positional)
    plain.made_of = stream_shown(one.text, one.streams)
    return plain


def _explain_clauses(one: _Statement) -> Relation | None:
    """EXPLAIN of a query with a clause."""
    tokens = tokenize(one.text)
    statement = only_statement(tokens)
    if tokens.word(statement[0]) != "EXPLAIN":
        return None
    return _explain(one.gateway, tokens, statement, one.streams)


def _run_clauses(one: _Statement) -> Relation:
    """A query with a clause over a table or a live stream, or a view of it."""
    gateway, tokens = one.gateway, tokenize(one.text)
    statement = only_statement(tokens)
    view = view_query(tokens, statement)
    bound_to = view if view is not None else query_of(tokens, statement) if gateway.checks else statement
    live = _live(gateway, tokens, bound_to, one.execution, one.streams)
    if live is not None and live.is_endless:
        if view is not None or query_of(tokens, statement) != statement:
            what = f"{tokens[statement[0]].text} over windows or matches of a live stream"
            raise unsupported_statement(
                tokens, statement[0], what, "start the query itself: session.sql(query).start(…)"
            )
        live.bound  # noqa: B018 - it is analysed here
        return LiveRelation(live, live.outer, explain_live(live))
    own = own_aggregates(gateway, tokens)
    made = with_names_around(
        lambda columns: bind(tokens, bound_to, rowtimes(one.streams), own=own, columns_of=columns),
        lambda algebra: run_statement(gateway, algebra, _BUILDERS[one.execution]),
        columns_by_spark(gateway, tokens),
    )
    if made is None:
        return _plain(gateway, one.text, one.positional)
    algebra, (frame, bound) = made
    if view is not None and not gateway.checks:
        frame = create_view(gateway, tokens, (statement[0], view[0]), frame)
    starts = partial(plan_to_start, one.context(tokens), live) if live is not None and view is None else None
    return Relation(frame, explain(algebra, bound), gateway, live=starts, made_of=bound)


_STEPS: tuple[Callable[[_Statement], Relation | None], ...] = (
    _name_files,
    _show_views,
    _define_function,
    _inline_functions,
    _nest_queries,
    _expand_views,
    _name_streams_of_queries,
    _write_result,
    _compose,
    _join_versions,
    _emit,
    _name_table_functions,
    _name_streams_below_clauses,
    _cut_clauses,
    _read_sequence,
    _read_streams,
    _leave_to_spark,
    _explain_clauses,
    _run_clauses,
)
"""What is tried with a statement, in this order."""


@contextmanager
def _without_table_functions(
    gateway: Gateway, text: str, execution: str, catalog: Catalog
) -> Iterator[str | None]:
    """The statement with queries and tables in place of table functions; None if there are none.

    If a query changes over time, the reference evaluates it instant by instant, over queries.
    """

    def schema_of(query: SqlText) -> StructType:
        inner = Gateway(gateway.spark, gateway.parameters, "spark")
        with inner.instead(query) as read:
            return run_steps(inner, read, [], "batch", catalog).schema

    tokens = tokenize(text)
    is_temporal = has_stream_words(text) or any(name in text.lower() for name in catalog.relations)
    kind = "batch" if is_temporal else execution
    reader = TableFunctions(gateway, tokens, kind, catalog.functions, schema_of, catalog.relations)
    read = reader.text(0, len(tokens))
    if not reader.found:
        yield None
        return
    with gateway.views(reader.frames) as names, gateway.instead(read, names) as rendered:
        yield rendered


def _live(
    gateway: Gateway, tokens: TokenList, query: Range, execution: str, catalog: Catalog | None
) -> ClausePlan | None:
    """The plan of a query with a clause of Windrow over a live stream."""
    return plan_of_clauses(gateway, catalog, tokens, query, execution) if catalog is not None else None


def _plain(gateway: Gateway, text: str, positional: list[Any]) -> Relation:
    """Spark's own SQL, unchanged."""
    if gateway.checks and _QUERY.match(text) is None:  # a command is planned by Spark
        text = f"EXPLAIN {text}"
    whole = SqlText.of(Piece(text, text))
    with gateway.translated(whole):
        if positional:
            frame = gateway.spark.sql(text, args=positional)
        else:
            frame = (
                gateway.spark.sql(text, args=gateway.parameters)
                if gateway.parameters
                else gateway.spark.sql(text)
            )
        frame.schema  # noqa: B018 - on Connect the text is analysed here; an error belongs to this call
    return Relation(frame, "Spark SQL, as written", gateway)


def _explain(gateway: Gateway, tokens: TokenList, statement: Range, catalog: Catalog | None) -> Relation:
    """EXPLAIN: Windrow's plan as one row of text, followed by Spark's for EXTENDED and FORMATTED."""
    start = statement[0] + 1
    with_spark = tokens.word(start) in ("EXTENDED", "FORMATTED", "CODEGEN", "COST")
    start += with_spark
    query = query_of(tokens, view_query(tokens, (start, statement[1])) or (start, statement[1]))
    own = own_aggregates(gateway, tokens)
    algebra = bind(tokens, query, rowtimes(catalog), own=own)
    if algebra is None:
        return _plain(gateway, tokens.sql, [])
    gateway.plan_only = True
    live = _live(gateway, tokens, query, "batch", catalog)
    if live is not None and live.is_endless:
        frame, text = live.outer, explain_live(live)
    else:
        made = with_names_around(
            lambda columns: bind(tokens, query, rowtimes(catalog), own=own, columns_of=columns),
            lambda one: run_statement(gateway, one, build_window),
            columns_by_spark(gateway, tokens),
        )
        assert made is not None
        algebra, (frame, bound) = made
        text = explain(algebra, bound)
    if with_spark:
        text = f"{text}\n\n{gateway.spark_plan(frame, 'formatted')}"
    return as_plan(gateway, text)

"""What kind of statement a text is, and what is done with it.

Most statements are SQL in which windows are looked up as relations. A few need more: EXPLAIN shows our
plan, and a view must have the windows' DataFrame, as its text alone would mean nothing to Spark.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from windrow.algebra.bind import bind
from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.clauses_over_variables import clauses_over_variables
from windrow.algebra.rewriting.nested_streams import may_nest_streams
from windrow.algebra.rewriting.patterns.patterns_before_windows import patterns_below
from windrow.algebra.rewriting.patterns.patterns_over_joins import patterns_over_join
from windrow.algebra.rewriting.patterns.patterns_over_results import patterns_around
from windrow.algebra.rewriting.pipes import as_nested_queries
from windrow.algebra.rewriting.pipes_over_streams import pipe_as_selects
from windrow.algebra.rewriting.varying_subqueries import reads_varying
from windrow.errors import ParseError
from windrow.explain.explain_live import explain_live
from windrow.explain.explained import explain
from windrow.relation import Relation, as_plan
from windrow.relation_kinds import LiveRelation
from windrow.spark.analysis.evaluated_lengths import with_lengths
from windrow.spark.analysis.own_aggregates import own_aggregates
from windrow.spark.catalog import Catalog
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.clauses.names_around import columns_by_spark, with_names_around
from windrow.spark.clauses.reference_mode import build_reference
from windrow.spark.gateway import Gateway
from windrow.spark.live import ClausePlan, plan_of_clauses
from windrow.spark.logs.session_streams import Stream
from windrow.spark.relations.table_functions_in_from import TableFunctions, calls_table_functions
from windrow.spark.scan.files_in_text import with_files
from windrow.statements.clauses_over_streams import names_sequence, plan_to_start, run_sequence
from windrow.statements.clauses_over_windows import with_clauses_cut
from windrow.statements.composed import RunQuery, as_of_now, queries_inside, relation_inside, with_emitted
from windrow.statements.compound_statements import run_compound
from windrow.statements.definitions.session_functions import (
    calls_functions,
    create_or_drop_function,
    may_call_functions,
    with_functions,
)
from windrow.statements.definitions.stored_views import create_stored_view, with_stored_views
from windrow.statements.definitions.temporary_views import create_view, query_of, view_query
from windrow.statements.definitions.view_expansion import may_read_expanded, with_expanded
from windrow.statements.emit_statements import (
    may_be_emitted,
    may_be_view,
    remember_view,
    run_emission,
    without_watermark,
)
from windrow.statements.named_streams.insert import insert
from windrow.statements.naming import refresh
from windrow.statements.past_relations import past_relations, with_past
from windrow.statements.select_stream import with_streams_as_rows
from windrow.statements.statement_context import StatementContext, names_of_script
from windrow.statements.stream_statements import has_stream_words, is_continuous, run_continuous
from windrow.statements.temporal_joins import may_join_versions, with_versions, without_ours
from windrow.statements.written_results import may_write_result, with_result
from windrow.syntax.compounds import parse_compound
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import find_pattern_windows
from windrow.syntax.query_parts import split_statements
from windrow.syntax.sqltext import Piece, SqlText
from windrow.syntax.streams.apart import clauses_apart
from windrow.syntax.streams.commands import parse_command
from windrow.syntax.streams.emit_clause import clauses_in, has_clauses
from windrow.syntax.tokens import TokenList, tokenize
from windrow.syntax.written_lengths import may_write_lengths, written_lengths

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["check", "run"]

# a comment may contain anything, so what follows one is read as tokens
_PATTERNS = re.compile(r"\bmatch_recognize\b|\bpattern\s*(?:\(|/\*|--)", re.IGNORECASE)
_OURS = re.compile(rf"\bwindow(?:\s+by\b|\s*(?:/\*|--))|{_PATTERNS.pattern}", re.IGNORECASE)
_VIEW = re.compile(r"\bview\b", re.IGNORECASE)
_WHOLE = re.compile(r"\s*(?:TABLE|SELECT\s+\*\s+FROM)\s+`?(\w+)`?\s*(?:;\s*)?", re.IGNORECASE)
_QUERY = re.compile(r"[\s(]*(SELECT|WITH|FROM|VALUES|TABLE)\b", re.IGNORECASE)
_COMPOUND = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*begin\b", re.IGNORECASE)
_BUILDERS = {"batch": build_window, "reference": build_reference}


def run(
    gateway: Gateway, text: str, positional: list[Any], execution: str, catalog: Catalog | None = None
) -> Relation:
    """Run one statement; `catalog` has the session's streams."""
    if _COMPOUND.match(text) and (_may_be_ours(text) or calls_functions(gateway, text, catalog or Catalog())):
        tokens = tokenize(text)
        if (parts := parse_compound(tokens)) is not None:
            return run_compound(
                gateway, tokens, parts, lambda read: run(gateway, read, [], execution, catalog)
            )
    with gateway.reading(text) as written, _evaluated(gateway, catalog, written) as evaluated:
        read = written if evaluated is None else evaluated
        left = positional if evaluated is None else []
        stored = _stored_view(gateway, catalog, read, left, execution)
        if stored is not None:
            return stored
        with with_stored_views(gateway, catalog, read) as expanded:
            relation = _run(gateway, expanded, left if expanded == read else [], execution, catalog)
        if catalog is not None and not gateway.checks and may_be_view(read, catalog):
            tokens = tokenize(read)
            remember_view(catalog, tokens, _only_statement(tokens))
        return relation


@contextmanager
def _evaluated(gateway: Gateway, catalog: Catalog | None, text: str) -> Iterator[str | None]:
    """The statement with the values of computed lengths, and no clause in a pipe; None if it has neither."""
    if may_write_lengths(text) and (piped := _as_nested_queries(text)) is not None:
        with gateway.instead(piped) as rewritten, _evaluated(gateway, catalog, rewritten) as evaluated:
            yield rewritten if evaluated is None else evaluated
        return
    tokens = tokenize(text) if may_write_lengths(text) else None
    statements = [] if tokens is None else split_statements(tokens)
    if tokens is None or len(statements) != 1:
        yield None
        return
    relations: Collection[str] = () if catalog is None else catalog.relations

    def varies(part: Range) -> bool:
        return reads_varying(tokens, part, relations)

    found = written_lengths(tokens, *statements[0], varies)
    lengths = [length for length in found if not length.is_evaluated]
    if not lengths:
        yield None
        return
    with with_lengths(gateway, tokens, lengths) as read:
        yield read


def _stored_view(
    gateway: Gateway, catalog: Catalog | None, text: str, positional: list[Any], execution: str
) -> Relation | None:
    """Run CREATE VIEW, if it is of what only a session of ours evaluates; None for any other statement."""
    if _VIEW.search(text) is None:
        return None
    known = catalog or Catalog()

    def planned(query: str) -> Relation:
        asked, gateway.plan_only = gateway.plan_only, True
        with with_stored_views(gateway, known, query) as read:
            relation = _run(gateway, read, positional, execution, catalog)
        gateway.plan_only = asked
        return relation

    tokens = tokenize(text)
    statement = _only_statement(tokens)
    return create_stored_view(
        gateway, known, tokens, statement, planned, lambda query: _is_ours(gateway, known, query)
    )


def _is_ours(gateway: Gateway, catalog: Catalog, query: str) -> bool:
    """Whether a query needs a session of ours, which alone evaluates what it has."""
    if _may_be_ours(query):
        found = tokenize(query)
        if _as_nested_queries(query) is not None:
            return True
        return bind(found, (0, len(found)), _rowtimes(catalog)) is not None
    if calls_functions(gateway, query, catalog):
        return True
    return has_clauses(query) or calls_table_functions(query, catalog.functions)


def _function(gateway: Gateway, catalog: Catalog, text: str, execution: str) -> Relation | None:
    """Run CREATE or DROP of a function over windows; None for any other statement."""

    def is_ours(query: str) -> bool:
        return _is_ours(gateway, catalog, query)

    return create_or_drop_function(gateway, catalog, text, _planned(gateway, catalog, execution), is_ours)


def _planned(gateway: Gateway, catalog: Catalog | None, execution: str) -> RunQuery:
    """What plans a query, for its columns."""

    def planned(query: str) -> Relation:
        asked, gateway.plan_only = gateway.plan_only, True
        try:
            return _run(gateway, query, [], execution, catalog)
        finally:
            gateway.plan_only = asked

    return planned


def _run(
    gateway: Gateway, text: str, positional: list[Any], execution: str, catalog: Catalog | None
) -> Relation:
    known = catalog or Catalog()
    if (read_of_files := with_files(gateway, text)) is not None:
        with gateway.instead(read_of_files) as named:
            return _run(gateway, named, [], execution, catalog)
    if catalog is not None and (about := _function(gateway, catalog, text, execution)) is not None:
        return about
    if may_call_functions(text, known):
        with with_functions(gateway, known, text, _planned(gateway, catalog, execution)) as read:
            if read is not None:
                return _run(gateway, read, [], execution, catalog)
    if (piped := _as_nested_queries(text, catalog)) is not None:
        with gateway.instead(piped) as rewritten:
            return _run(gateway, rewritten, [], execution, catalog)
    if may_read_expanded(text, known):
        with with_expanded(gateway, known, text) as read:
            if read is not None:
                return _run(gateway, read, [], execution, catalog)
    if catalog is not None and may_nest_streams(text):
        with with_streams_as_rows(gateway, catalog, text) as read:
            if read is not None:
                return _run(gateway, read, [], execution, catalog)
    if catalog is not None and may_write_result(text, catalog):
        written = _written(gateway, catalog, text, positional, execution)
        if written is not None:
            return written
    if catalog is not None and (has_clauses(text) or may_join_versions(text)):
        composed = _composed(gateway, catalog, text, positional, execution)
        if composed is not None:
            return composed
    if catalog is not None and may_join_versions(text):
        with with_past(gateway, catalog, text) as past:
            if past is not None:
                return _run(gateway, past[0], [], execution, past[1])
        with with_versions(gateway, catalog, text) as read:
            if read is not None:
                return without_ours(_run(gateway, read, [], execution, catalog))
    if catalog is not None and may_be_emitted(text, catalog):
        refresh(gateway, catalog, execution)
        tokens = tokenize(text)
        with without_watermark(gateway, catalog, tokens, _only_statement(tokens)) as read:
            if read is not None:
                return _run(gateway, read, positional, execution, catalog)
        emitted = run_emission(gateway, catalog, tokens, _only_statement(tokens), execution)
        if emitted is not None:
            emitted.made_of = _stream_shown(text, catalog)
            return emitted
    if calls_table_functions(text, known.functions):
        with _without_table_functions(gateway, text, execution, known) as read:
            if read is not None:
                return _run(gateway, read, [], execution, catalog)

    def run_query(query: str) -> Relation:
        return _run(gateway, query, positional, execution, catalog)

    if catalog is not None and _may_be_ours(text) and is_continuous(text, catalog):
        with with_clauses_cut(gateway, catalog, text, execution, _BUILDERS[execution]) as cut:
            if cut is not None:
                return cut.explained(gateway, _run(gateway, cut.text, [], execution, catalog))
    if catalog is not None and _may_be_sequence(text, catalog):
        tokens = tokenize(text)
        found = run_sequence(
            StatementContext(gateway, catalog, tokens, _only_statement(tokens), execution, run_query)
        )
        if found is not None:
            return found
    if catalog is not None and is_continuous(text, catalog) and _matches_rows(text):
        refresh(gateway, catalog, execution)
    elif catalog is not None and is_continuous(text, catalog):
        tokens = tokenize(text)
        found = run_continuous(
            StatementContext(gateway, catalog, tokens, _only_statement(tokens), execution, run_query)
        )
        if found is not None:
            return found
    if not _may_be_ours(text):
        plain = _plain(gateway, text, positional)
        plain.made_of = _stream_shown(text, catalog)
        return plain
    tokens = tokenize(text)
    statement = _only_statement(tokens)
    build = _BUILDERS[execution]
    if tokens.word(statement[0]) == "EXPLAIN":
        return _explain(gateway, tokens, statement, catalog)
    view = view_query(tokens, statement)
    bound_to = view if view is not None else query_of(tokens, statement) if gateway.checks else statement
    live = _live(gateway, tokens, bound_to, execution, catalog)
    if live is not None and live.is_endless:
        if view is not None or query_of(tokens, statement) != statement:
            what = f"{tokens[statement[0]].text} over windows or matches of a live stream"
            raise unsupported_statement(
                tokens, statement[0], what, "start the query itself: session.sql(query).start(…)"
            )
        live.bound  # noqa: B018 - it is analysed here
        return LiveRelation(live, live.outer, explain_live(live))
    own = own_aggregates(gateway, tokens)
    with names_of_script(tokens.word(statement[0]) == "BEGIN"):
        made = with_names_around(
            lambda columns: bind(tokens, bound_to, _rowtimes(catalog), own=own, columns_of=columns),
            lambda algebra: run_statement(gateway, algebra, build),
            columns_by_spark(gateway, tokens),
        )
    if made is None:
        return _plain(gateway, text, positional)
    algebra, (frame, bound) = made
    if view is not None and not gateway.checks:
        frame = create_view(gateway, tokens, (statement[0], view[0]), frame)
    starts = None
    if live is not None and view is None:
        context = StatementContext(gateway, known, tokens, statement, execution, run_query)
        starts = partial(plan_to_start, context, live)
    return Relation(frame, explain(algebra, bound), gateway, live=starts, made_of=bound)


def _composed(
    gateway: Gateway, catalog: Catalog, text: str, positional: list[Any], execution: str
) -> Relation | None:
    """Run a statement around queries that have EMIT, or relations of the past; None without any."""
    tokens = tokenize(text)
    statement = _only_statement(tokens)
    query = query_of(tokens, statement)
    clauses = [*clauses_in(tokens, *statement), *past_relations(tokens, catalog)]
    places = queries_inside(tokens, query)
    if positional and clauses:  # a mark is counted from the beginning of the statement
        with gateway.instead(SqlText.of(verbatim(tokens, 0, len(text)))) as named:
            return _composed(gateway, catalog, named, [], execution)

    def run_query(query: str) -> Relation:
        return _run(gateway, query, positional, execution, catalog)

    if gateway.checks:  # what is around such queries is known when they return their columns
        return [relation_inside(tokens, place, run_query) for place in places][-1] if places else None
    if tokens.word(statement[0]) == "INSERT" and clauses:
        inserted = insert(gateway, catalog, tokens, statement, run_query)
        if inserted is not None:
            return inserted
    view = view_query(tokens, statement) if clauses else None
    if view is not None:  # Spark would retain its text, in which a table stands that is gone then
        frame = relation_inside(tokens, view, run_query).df
        frame = create_view(gateway, tokens, (statement[0], view[0]), frame)
        return Relation(frame, "a view of the result of a query with EMIT", gateway)
    with with_emitted(gateway, catalog, tokens, places, query, run_query) as read:
        if read is None:
            return None
        return as_of_now(gateway, tokens, places, _run(gateway, read, [], execution, catalog))


def _written(
    gateway: Gateway, catalog: Catalog, text: str, positional: list[Any], execution: str
) -> Relation | None:
    """Run a statement that writes the result of a query over streams into a table; None for any other."""
    tokens = tokenize(text)
    if positional and parse_command(tokens, *_only_statement(tokens)) is not None:
        with gateway.instead(SqlText.of(verbatim(tokens, 0, len(text)))) as named:
            return _run(gateway, named, [], execution, catalog)

    def run_query(query: str) -> Relation:
        return _run(gateway, query, positional, execution, catalog)

    with with_result(gateway, catalog, tokens, _only_statement(tokens), run_query) as found:
        if not isinstance(found, tuple):
            return found
        read, query = found
        written = _run(gateway, read, [], execution, catalog)
        written.written_from = query
        return written


def _rowtimes(catalog: Catalog | None) -> dict[str, str]:
    return {} if catalog is None else catalog.rowtimes


def _live(
    gateway: Gateway, tokens: TokenList, query: Range, execution: str, catalog: Catalog | None
) -> ClausePlan | None:
    """The plan of a query with a clause of ours over a live stream."""
    return plan_of_clauses(gateway, catalog, tokens, query, execution) if catalog is not None else None


def check(gateway: Gateway, text: str, positional: list[Any], catalog: Catalog) -> None:
    """Parse and bind a statement without running anything; `catalog` has the session's streams.

    Raises
    ------
    WindrowError
        As :func:`run` would before it starts to compute.
    """
    gateway.plan_only = gateway.checks = True
    run(gateway, text, positional, "batch", catalog)


@contextmanager
def _without_table_functions(
    gateway: Gateway, text: str, execution: str, catalog: Catalog
) -> Iterator[str | None]:
    """The statement with queries and tables in the place of table functions; None if there are none.

    Where a query changes over time, the reference evaluates it instant by instant, over queries.
    """

    def schema_of(query: SqlText) -> StructType:
        inner = Gateway(gateway.spark, gateway.parameters, "spark")
        with inner.instead(query) as read:
            return _run(inner, read, [], "batch", catalog).schema

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


def _may_be_ours(text: str) -> bool:
    """Whether a text may have a clause of ours; whether it does is known by its tokens."""
    return _OURS.search(text) is not None


def _as_nested_queries(text: str, catalog: Catalog | None = None) -> SqlText | None:
    """The text with a clause of ours, or a pipe over streams, in a SELECT over rows; None where it is in one.

    Clauses may stand in a pipe, after FROM, over a join, groups or windows of the same SELECT, below its
    windows, and in subqueries that read these.
    """
    is_pipe = catalog is not None and "|>" in text and is_continuous(text, catalog)
    if not _may_be_ours(text):
        return pipe_as_selects(tokenize(text)) if is_pipe else None
    tokens = tokenize(text)
    return (
        as_nested_queries(tokens)
        or patterns_below(tokens)
        or patterns_around(tokens)
        or patterns_over_join(tokens)
        or clauses_over_variables(tokens)
        or (pipe_as_selects(tokens) if is_pipe else None)
    )


def _may_be_sequence(text: str, catalog: Catalog) -> bool:
    """Whether a text may be about windows or matches of streams, or views of them."""
    return is_continuous(text, catalog) and (_may_be_ours(text) or names_sequence(text, catalog))


def _matches_rows(text: str) -> bool:
    """Whether a text has row patterns, which read a recorded stream as the table of its rows."""
    if not _PATTERNS.search(text):
        return False
    tokens = tokenize(text)
    places = [item.range for item in find_matches(tokens)]
    places += [found.range for found in find_pattern_windows(tokens)]
    apart = [inside for _, inside in clauses_apart(tokens, (0, len(tokens)))]
    return any(not any(start <= at < stop for start, stop in apart) for at, _ in places)


def _plain(gateway: Gateway, text: str, positional: list[Any]) -> Relation:
    """Spark's own SQL, as it is."""
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


def _stream_shown(text: str, catalog: Catalog | None) -> Stream | None:
    """The stream whose rows a text shows as they are, if it does only that."""
    found = _WHOLE.fullmatch(text)
    return catalog.streams.get(found[1].lower()) if found is not None and catalog is not None else None


def _only_statement(tokens: TokenList) -> Range:
    statements = split_statements(tokens)
    if len(statements) > 1:
        start, stop = statements[1]
        raise ParseError(
            "more than one statement",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens.span(start, stop),
            hint="run them one by one, or as a script",
        )
    return statements[0]


def _explain(gateway: Gateway, tokens: TokenList, statement: Range, catalog: Catalog | None) -> Relation:
    """EXPLAIN: our plan as one row of text, and Spark's after it for EXTENDED and FORMATTED."""
    start = statement[0] + 1
    with_spark = tokens.word(start) in ("EXTENDED", "FORMATTED", "CODEGEN", "COST")
    start += with_spark
    query = query_of(tokens, view_query(tokens, (start, statement[1])) or (start, statement[1]))
    own = own_aggregates(gateway, tokens)
    algebra = bind(tokens, query, _rowtimes(catalog), own=own)
    if algebra is None:
        return _plain(gateway, tokens.sql, [])
    gateway.plan_only = True
    live = _live(gateway, tokens, query, "batch", catalog)
    if live is not None and live.is_endless:
        frame, text = live.outer, explain_live(live)
    else:
        made = with_names_around(
            lambda columns: bind(tokens, query, _rowtimes(catalog), own=own, columns_of=columns),
            lambda one: run_statement(gateway, one, build_window),
            columns_by_spark(gateway, tokens),
        )
        assert made is not None
        algebra, (frame, bound) = made
        text = explain(algebra, bound)
    if with_spark:
        text = f"{text}\n\n{gateway.spark_plan(frame, 'formatted')}"
    return as_plan(gateway, text)

"""WINDOW BY and MATCH_RECOGNIZE over windows in brackets, and beside them.

A statement is split in two. The rows of the clause are a separate query, whose relation changes over time.
The clause over its rows at each instant is a relation too, which the statement reads under a hidden name:

    SELECT f.ts FROM s [RANGE 5] WHERE v > 0 WINDOW BY w AS (PARTITION BY k ORDER BY ts START AS f …) HAVING …

    →  rows    SELECT struct(*) AS __row, (k) AS __p0, (ts) AS __o0 FROM s [RANGE 5] WHERE v > 0
       query   SELECT f.ts FROM __clause… WHERE …

A clause over tables, beside windows in brackets, runs at once and becomes a table.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame

from windrow.algebra.bind import ColumnsOf, bind
from windrow.algebra.bound_statement import BoundStatement
from windrow.algebra.continuous import Query, Reader
from windrow.algebra.match_node import Match
from windrow.algebra.names import verbatim
from windrow.algebra.rewriting.changing import refuse_changing
from windrow.algebra.rewriting.patterns.patterns_one_by_one import patterns_one_by_one
from windrow.algebra.rewriting.relations_so_far import relations_so_far
from windrow.algebra.window_node import Window
from windrow.errors import WindrowError
from windrow.explain.explained import explain_clause
from windrow.relation import Relation, as_plan
from windrow.spark.analysis.own_aggregates import own_aggregates
from windrow.spark.catalog import Catalog, ClauseDefinition
from windrow.spark.clauses.batch import Bound, Builder, bind_statement, explained
from windrow.spark.clauses.names_around import with_names_around
from windrow.spark.declared import declare, read_by
from windrow.spark.gateway import Gateway
from windrow.spark.live import live_streams
from windrow.spark.recorded.continuous_queries import Runner
from windrow.spark.relations.time_varying_relation import TimeVarying
from windrow.statements.clause_relations import is_endless, relation_of_clause
from windrow.statements.clauses_over_streams import has_windows_of_time
from windrow.statements.naming import forget_unread, refresh
from windrow.statements.select_stream import selects_inside
from windrow.statements.stream_reader import reader_of
from windrow.syntax.cql_clauses import TO_STREAM
from windrow.syntax.nodes import BlockText, Cte, Range, is_within
from windrow.syntax.patterns.match_nodes import MatchRelation
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import PatternBlock, find_pattern_windows
from windrow.syntax.query_parts import find_window_queries, with_items
from windrow.syntax.sqltext import RelationText, SqlText
from windrow.syntax.streams.apart import clauses_apart
from windrow.syntax.streams.other_dialects import selects_stream, spelled
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["Cut", "with_clauses_cut"]

Island = BlockText | MatchRelation | PatternBlock

_ROWS = "__changes"
_OF_TABLE = "__windrow_of_table_"
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Cut:
    """A statement in which a relation replaces one of its clauses.

    Attributes
    ----------
    text
        The statement, in which a relation replaces the clause.
    plan
        EXPLAIN's lines about the clause; empty if the clause is only rewritten.
    names
        The hidden names of relations in the statement, with their names in the plan.
    """

    text: str
    plan: str = ""
    names: Mapping[str, str] = field(default_factory=dict)

    def explained(self, gateway: Gateway, relation: Relation) -> Relation:
        """The result of the statement, with the clause in its plan."""
        plan = relation.plan()
        for name, known in self.names.items():
            plan = plan.replace(name, known)
        if self.plan:
            plan = f"{self.plan}\n\n{plan}"
        if relation._is_plan:
            return as_plan(gateway, plan)
        relation._explained = plan
        del relation._plan  # which :meth:`Relation.plan` has remembered
        return relation


@contextmanager
def with_clauses_cut(
    gateway: Gateway, catalog: Catalog, text: str, execution: str, build: Builder
) -> Iterator[Cut | None]:
    """The statement without the first clause over windows in brackets or beside them; None without such a
    clause.

    Parameters
    ----------
    execution, build
        The execution mode, and the function that runs a clause over tables.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM`` for time-varying subqueries in some places of the clause.
    """
    tokens = tokenize(text)
    island = _first_clause(tokens, catalog)
    if island is None:
        yield None
        return
    gateway.plan_only = gateway.plan_only or tokens.word(0) == "EXPLAIN"
    refresh(gateway, catalog, execution)
    if isinstance(island, BlockText) and (stream := _as_stream(tokens, island)) is not None:
        with gateway.instead(stream) as read:
            yield Cut(read)
        return
    if not has_windows_of_time(tokens, (0, len(tokens)), catalog):  # ISTREAM and its like of relations so far
        own = own_aggregates(gateway, tokens)
        so_far = relations_so_far(tokens, catalog.streams.keys(), catalog.rowtimes, own)
        if so_far is not None:
            with gateway.instead(so_far) as read:
                yield Cut(read)
            return
    if isinstance(island, PatternBlock) and len(island.windows) > 1:
        with gateway.instead(_around(tokens, island, patterns_one_by_one(tokens, island))) as read:
            yield Cut(read)
        return
    own = own_aggregates(gateway, tokens)

    def algebra(columns_of: ColumnsOf | None) -> BoundStatement | None:
        return bind(
            tokens,
            island.range,
            catalog.rowtimes,
            own=own,
            columns_of=columns_of,
            apart=_apart(tokens),
            varying=catalog.relations,
        )

    found = with_names_around(
        algebra,
        lambda bound: _evaluated(gateway, catalog, bound, execution, build),
        lambda relations, _: _columns_of(gateway, catalog, relations),
    )
    assert found is not None
    bound, made = found
    cut = _around(tokens, island, bound.text)
    if isinstance(made, _OverTables):
        tables = {key: made.frames[key] for key in bound.text.relations()}
        plan = "\n\n".join(explain_clause(one, "once: its rows do not change") for one in made.clauses)
        with (
            _shown(gateway, catalog, tokens, island, tables) as names,
            explained(made.clauses),
            gateway.instead(cut, names) as read,
        ):
            yield Cut(read, plan, dict.fromkeys(names.values(), _called(island)))
        return
    name = f"__clause_{next(_numbers)}"
    catalog.relations[name], catalog.clauses[name] = made.relation, made.definition
    try:
        with explained([made.clause]), gateway.instead(cut, {bound.windows[0].key: name}) as read:
            yield Cut(read, made.plan, {name: _called(island)})
    finally:
        forget_unread(catalog)  # a view reads it again when streams have grown


@contextmanager
def _shown(
    gateway: Gateway, catalog: Catalog, tokens: TokenList, island: Island, tables: Mapping[str, DataFrame]
) -> Iterator[dict[str, str]]:
    """The results of a clause over tables, under names for the statement.

    Beside live streams, the names stay in the session, because a started query reads the tables again, also
    after a restart: the same text gets the same names.
    """
    words = {token.name.lower() for token in tokens.tokens if token.is_name}
    if all(stream.live is None for name, stream in catalog.streams.items() if name in words):
        with gateway.views(tables) as names:
            yield names
        return
    text = " ".join(token.text for token in tokens.tokens[island.range[0] : island.range[1]])
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    names = {key: f"{_OF_TABLE}{digest}_{number}" for number, key in enumerate(tables)}
    for key, frame in tables.items():
        frame.createOrReplaceTempView(names[key])
    yield names


def _called(island: Island) -> str:
    return f"WINDOW BY {island.clause.name}" if isinstance(island, BlockText) else "MATCH_RECOGNIZE"


# -- where clauses stand ---------------------------------------------------------------------------


def _first_clause(tokens: TokenList, catalog: Catalog) -> Island | None:
    """The first innermost clause, among those that are not streams before a time window."""
    statement = (0, len(tokens))
    if not has_windows_of_time(tokens, statement, catalog) and not any(
        _makes_streams(tokens, at) for at in range(*statement)
    ):
        return None
    islands: list[Island] = [
        *find_window_queries(tokens),
        *find_matches(tokens),
        *find_pattern_windows(tokens),
    ]
    apart = _apart(tokens)
    here = [one for one in islands if not any(is_within(one.range, other) for other in apart)]
    inner = [one for one in here if not any(_is_inside(other.range, one.range) for other in here)]
    return min(inner, key=lambda one: one.range, default=None)


def _apart(tokens: TokenList) -> list[Range]:
    """The queries in brackets that are streams, before a time window."""
    return [inside for _, inside in clauses_apart(tokens, (0, len(tokens)))]


def _makes_streams(tokens: TokenList, at: int) -> bool:
    """Whether ISTREAM, DSTREAM, RSTREAM or CHANGELOG OF begins at a token."""
    if tokens.word(at) == "CHANGELOG":
        return tokens.word(at + 1) == "OF" and tokens.is_symbol(at + 2, "(")
    return tokens.word(at) in TO_STREAM and tokens.is_symbol(at + 1, "(")


def _is_inside(one: Range, other: Range) -> bool:
    return one != other and is_within(one, other)


def _around(tokens: TokenList, island: Island, instead: SqlText) -> SqlText:
    span = tokens.span(*island.range)
    end = len(tokens.sql)
    return SqlText.of(verbatim(tokens, 0, span.start), " ", instead, " ", verbatim(tokens, span.stop, end))


def _as_stream(tokens: TokenList, query: BlockText) -> SqlText | None:
    """The statement with ISTREAM around a SELECT that has it around its columns; None for other SELECTs."""
    start, stop = query.select
    whole, at = tokens.span(*query.range), query.range[0]
    if tokens.word(start) in TO_STREAM and tokens.is_symbol(start + 1, "("):
        if tokens.partner[start + 1] != stop - 1:
            return None
        kind, items = tokens.word(start), tokens.span(start + 2, stop - 1)
    elif selects_stream(tokens, at, query.range[1]):
        kind, items = "ISTREAM", tokens.span(start + 1, stop)
    else:
        return None
    rest = verbatim(tokens, tokens[stop].start, whole.stop)
    select = verbatim(tokens, whole.start, tokens[start].start)
    listed = verbatim(tokens, items.start, items.stop)
    return _around(tokens, query, SqlText.of(f"{kind}(", select, listed, " ", rest, ")"))


# -- the rows --------------------------------------------------------------------------------------


def _read(gateway: Gateway, catalog: Catalog, rows: str, execution: str) -> tuple[Reader, Query]:
    """The query of the rows, time-varying or not."""
    tokens = tokenize(rows)
    written = spelled(tokens, 0, len(tokens), selects_inside(catalog, tokens, (0, len(tokens))))
    statement = 0, len(written.tokens)
    reader = reader_of(gateway, catalog, written, statement, execution)
    query = reader.read(*statement)
    assert isinstance(query, Query)
    declare(gateway, catalog, written, read_by(reader.inputs.values()))
    reader.refuse_bare_streams(query)
    if query.is_temporal:
        refuse_changing(written.tokens, statement)
    return reader, query


def _over_table(
    gateway: Gateway, catalog: Catalog, bound: BoundStatement, reader: Reader, query: Query
) -> BoundStatement:
    """The statement whose first clause is over these rows, a table, such as those of CHANGELOG OF."""
    if not query.inputs:
        return bound
    rows = Runner(gateway, catalog, reader, "batch").run(query)
    assert isinstance(rows, DataFrame)
    gateway.frames[_ROWS] = rows
    first, *others = bound.windows
    text = SqlText.of("SELECT * FROM ", RelationText(_ROWS))
    read = replace(first, rows=text, prefix=_constant(first, reader))
    return replace(bound, windows=(read, *others))


@dataclass(frozen=True)
class _OverTables:
    """Clauses of a statement over static rows, and their results."""

    clauses: Sequence[Bound]
    frames: Mapping[str, DataFrame]


@dataclass(frozen=True)
class _OverTime:
    """A clause over time-varying rows, and its relation."""

    definition: ClauseDefinition
    relation: TimeVarying
    clause: Bound
    plan: str


def _evaluated(
    gateway: Gateway, catalog: Catalog, bound: BoundStatement, execution: str, build: Builder
) -> _OverTables | _OverTime:
    """The result of the first clause of a statement."""
    first = bound.windows[0]
    with gateway.instead(first.rows) as rows:
        reader, query = _read(gateway, catalog, rows, execution)
        if query.is_temporal:
            endless = is_endless(gateway, catalog, live_streams(catalog, query))
            definition = ClauseDefinition(reader, query, replace(first, prefix=_constant(first, reader)))
            asked = gateway.plan_only
            gateway.plan_only = asked or endless
            try:
                return _OverTime(definition, *relation_of_clause(gateway, catalog, definition, execution))
            finally:
                gateway.plan_only = asked
    return _OverTables(*bind_statement(gateway, _over_table(gateway, catalog, bound, reader, query), build))


def _columns_of(gateway: Gateway, catalog: Catalog, relations: SqlText) -> Sequence[str] | None:
    """The column names of a query; None if it is refused."""
    inner = Gateway(gateway.spark, gateway.parameters, "spark")
    inner.plan_only = True
    try:
        with inner.instead(relations) as text:
            reader, query = _read(inner, catalog, text, "batch")
            found = Runner(inner, catalog, reader, "batch").run(query)
    except WindrowError:
        return None
    return found.names if isinstance(found, TimeVarying) else found.columns


def _constant(clause: Window | Match, reader: Reader) -> SqlText:
    """The WITH list of a clause, without the queries that change over time."""
    listed = with_items(reader.tokens, 0) if reader.tokens.word(0) == "WITH" else []
    varying = _varying(reader, listed)
    retained = [cte for cte in listed if cte.name.lower() not in varying]
    places = [reader.tokens.span(*cte.item) for cte in retained]
    word = "WITH RECURSIVE " if any(cte.recursive for cte in retained) else "WITH "
    items = SqlText.join(", ", [clause.rows.slice(place.start, place.stop) for place in places])
    return SqlText.of(word, items, " ") if retained else SqlText()


def _varying(reader: Reader, listed: Sequence[Cte]) -> set[str]:
    """The named queries that change over time, or read one that does."""
    varying: set[str] = set()
    for cte in listed:
        body = range(*cte.body)
        reads = any(reader.tokens[at].is_name and reader.tokens[at].name.lower() in varying for at in body)
        if reads or reader.text(*cte.body).relations():
            varying.add(cte.name.lower())
    return varying

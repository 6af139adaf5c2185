"""Reads a query with EMIT over recorded logs into a plan, in which streams are tables of arrived rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType, StructField

from windrow.algebra.continuous import Input, NamedRelation, Query, Reader
from windrow.algebra.rewriting.edits import Edits
from windrow.errors import NotSupportedError, Span
from windrow.plan.arrow_types import is_orderable
from windrow.plan.columns import Column, Scope
from windrow.plan.event_time import EventTimes, EventTimeSource, Timed
from windrow.plan.event_time.refusals import unsupported
from windrow.plan.nodes import Aggregate, Node, Project, walk
from windrow.plan.reader import QueryReader
from windrow.plan.reasons import Reason
from windrow.plan.rules import TIMED, applied
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.gateway import Gateway
from windrow.spark.logs.session_streams import Stream
from windrow.spark.recorded.local_time import zoned_types
from windrow.spark.relations.table_functions_in_from import Functions, TableFunctions
from windrow.syntax.cql_clauses import alias_after
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.streams.table_functions import call_at
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["PlanReading", "read_plan"]

_Read = tuple[SqlText, Mapping[str, str]]
"""A text, and the names of its relations in Spark."""


@dataclass(frozen=True)
class PlanReading:
    """A plan, and the texts that it was read from.

    Attributes
    ----------
    texts
        The rewritten texts, each derived from the one before; places in the plan refer to the last.
    tokens
        The tokens of the last text.
    plan
        The plan.
    sources
        Its inputs that are streams, or derived from streams, by key.
    tables
        Its other inputs, and results of a user's table functions, by key.
    own
        The user's table functions over streams; None without.
    """

    texts: tuple[_Read, ...]
    tokens: TokenList
    plan: Node
    sources: Mapping[str, EventTimeSource]
    tables: Mapping[str, DataFrame] = field(default_factory=dict)
    own: _Own | None = None

    @contextmanager
    def as_written(self, gateway: Gateway) -> Iterator[None]:
        """Let errors in the texts have positions in the user's text."""
        with ExitStack() as stack:
            for text, names in self.texts:
                stack.enter_context(gateway.instead(text, names))
            yield

    def timed(
        self,
        gateway: Gateway,
        watermark: Span | None,
        place: tuple[str, Span | None],
        state_ttl: tuple[Callable[[str], int], tuple[str, Span]] | None = None,
    ) -> Timed:
        """The facts of the query, derived by :class:`EventTimes`.

        Raises
        ------
        WindrowError
            Those of :class:`EventTimes`.
        """
        analyser = SparkAnalyser(gateway)

        def typed(text: SqlText, scope: Scope, columns: Sequence[Column]) -> DataType:
            return analyser.schema(scope.select(SqlText.of("(", text, ") AS value")), columns)[0].dataType

        with self.as_written(gateway):
            times = EventTimes(self.tokens, self.sources, watermark, place, typed, state_ttl)
            return times.read(applied(self.plan, TIMED))

    def place_of_unordered_key(self, plan: Node) -> Span | None:
        """Where the first key of groups without an order stands in the last text; None if none is written."""
        written: dict[str, Range] = {}
        for node in walk(plan):
            if isinstance(node, Aggregate):
                for key, source in node.keys:
                    if source in written and not is_orderable(key.type):
                        return self.tokens.span(*written[source])
            elif isinstance(node, Project):
                written |= {column.id: one.at for column, one in node.outputs if one.at is not None}
        # of groups that Spark evaluates, the result has the keys
        for column in plan.columns:
            if column.id in written and not is_orderable(column.type):
                return self.tokens.span(*written[column.id])
        return None

    def unsupported(self, reason: Reason) -> NotSupportedError:
        """The error for a part of the query that has no operator."""
        return _unsupported(self.tokens, reason, None)

    def called(self, gateway: Gateway, frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        """The results of the user's table functions over the rows of streams, by their keys in the plan."""
        return {} if self.own is None else self.own.called(gateway, frames)


@dataclass(frozen=True)
class _Own:
    """The user's table functions over streams: the text that calls them over rows of streams.

    `keys` are those of the plan, in the order of the text; None for a call that is no input of the plan.
    """

    text: SqlText
    functions: Functions
    keys: tuple[str | None, ...]
    read: Mapping[str, str]

    def called(self, gateway: Gateway, frames: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
        views = {key: frames[name] for key, name in self.read.items()}
        with gateway.views(views) as names, gateway.instead(self.text, names) as read:
            tokens = tokenize(read)
            reader = TableFunctions(
                gateway, tokens, "batch", self.functions, lambda query: gateway.sql(query).schema
            )
            reader.text(0, len(tokens))
            return {
                key: frame
                for key, frame in zip(self.keys, reader.frames.values(), strict=True)
                if key is not None
            }


def read_plan(
    gateway: Gateway, text: SqlText, inner: TokenList, streams: Mapping[str, Stream], functions: Functions
) -> PlanReading:
    """The plan of a query.

    Parameters
    ----------
    text, inner
        The query, in which the texts of views and named queries over streams replace their names; and the
        query as it is read.
    streams
        The streams that it may read, by name in lower case.
    functions
        The user's table functions.

    Raises
    ------
    WindrowError
        Errors in the query; ``UNSUPPORTED_QUERY`` for one without a plan.
    """
    reader = TableFunctions(gateway, inner, "batch", functions, lambda query: gateway.sql(query).schema)
    spelled = reader.text(0, len(inner))
    calls, names = _calls(inner, functions, reader.frames, streams)
    with gateway.instead(spelled, names) as read:
        tokens = tokenize(read)
        made = {name.lower(): key for key, name in names.items()}
        query_reader = Reader(tokens, frozenset(), frozenset({*streams, *made}))
        query = query_reader.read(0, len(tokens))
        assert isinstance(query, Query)
        rows = {name: one.frame.select(*map(quoted, one.columns)) for name, one in streams.items()}
        rows |= {name: reader.frames[key] for name, key in made.items()}
        known = _Known(rows, frozenset({*streams, *(name for name, key in made.items() if calls[key])}))
        # first, so that errors have positions in the whole text
        gateway.sql(query.text, {item.key: known.frame(item).limit(0) for item in query.inputs})
        node = QueryReader(query_reader, SparkAnalyser(gateway), known).relation(query)
        if isinstance(node, Reason):
            raise _unsupported(tokens, node, query.span)
    zoned = zoned_types(gateway, streams)
    sources, tables = {}, {}
    keys: dict[str, str] = {}
    for item in query.inputs:
        assert isinstance(item, NamedRelation)
        name = item.name.lower()
        if name in streams:
            sources[item.key] = _source(name, streams[name], zoned)
            continue
        tables[item.key], keys[made[name]] = rows[name], item.key
        if calls[made[name]]:
            sources[item.key] = EventTimeSource(frozenset(calls[made[name]]), None)
    own = None
    if any(calls.values()):
        own = _own(inner, functions, reader.frames, calls, keys)
    texts: tuple[_Read, ...] = ((text, {}), (spelled, names))
    return PlanReading(texts, tokens, node, sources, tables, own)


def _unsupported(tokens: TokenList, reason: Reason, place: Span | None) -> NotSupportedError:
    span = place if reason.at is None else tokens.span(*reason.at)
    return unsupported(tokens, str(reason), span, *([] if reason.hint is None else [reason.hint]))


@dataclass(frozen=True)
class _Known:
    """The relations of names in the text."""

    rows: Mapping[str, DataFrame]
    temporal: frozenset[str]

    def frame(self, item: Input) -> DataFrame:
        """The rows of a relation."""
        assert isinstance(item, NamedRelation)
        return self.rows[item.name.lower()]

    def stream(self, name: str) -> None:
        """None, as streams are tables here."""

    def view(self, name: str) -> None:
        """None, as views are expanded already."""

    def fields_of(self, item: Input) -> tuple[Sequence[StructField], bool]:
        """The columns of a relation, and whether it is time-varying."""
        assert isinstance(item, NamedRelation)
        return self.frame(item).schema.fields, item.name.lower() in self.temporal


def _source(name: str, stream: Stream, zoned: Mapping[str, str]) -> EventTimeSource:
    has_punctuations = stream.timed is not None and stream.timed.may_punctuate
    return EventTimeSource(frozenset([name]), stream.rowtime or "", has_punctuations, zoned.get(name))


# -- table functions of the user --------------------------------------------------------------------------


def _calls(
    tokens: TokenList, functions: Functions, frames: Mapping[str, DataFrame], streams: Mapping[str, Stream]
) -> tuple[dict[str, dict[str, int]], dict[str, str]]:
    """For each table function of the user, by its key, the streams that it reads with their places, and a
    unique name in the text.
    """
    found: dict[str, dict[str, int]] = {key: {} for key in frames}
    names: dict[str, str] = {}
    used_names = {token.name.lower() for token in tokens.tokens if token.is_name} - {*functions}
    for at in range(len(tokens)) if frames else ():
        call = call_at(tokens, at, list(functions))
        if call is not None and f"__table{call.word}" in found:
            read = (place for place in range(*call.tokens) if _is_stream(tokens, place, streams))
            key = f"__table{call.word}"
            found[key] = {tokens[place].name.lower(): place for place in read}
            names[key] = call.name if call.name not in used_names else f"{call.name}{call.word}"
            used_names.add(names[key])
    return found, names


def _is_stream(tokens: TokenList, at: int, streams: Mapping[str, Stream]) -> bool:
    """Whether a token names a stream in the place of a relation."""
    if not tokens[at].is_name or tokens[at].name.lower() not in streams:
        return False
    if tokens.is_symbol(at - 1, ".") or tokens.is_symbol(at + 1, "."):
        return False
    before = at - 1
    while tokens.is_symbol(before, "("):
        before -= 1
    return tokens.word(before) in ("FROM", "JOIN", "TABLE") or tokens.is_symbol(before, ",")


def _own(
    tokens: TokenList,
    functions: Functions,
    frames: Mapping[str, DataFrame],
    calls: Mapping[str, Mapping[str, int]],
    keys: Mapping[str, str],
) -> _Own:
    """The text with relations in place of the streams that table functions read."""
    edits, read = Edits(tokens), dict[str, str]()
    for key, places in calls.items():
        for name, at in places.items():
            is_data = tokens.word(at - 1 - tokens.is_symbol(at - 1, "(")) == "TABLE"
            named = is_data or alias_after(tokens, at + 1, len(tokens)) is not None
            edits.instead[at] = SqlText.of(
                RelationText(f"__read{at}"), " " if named else f" AS {quoted(tokens[at].name)} "
            )
            if key in keys:
                read[f"__read{at}"] = f"{keys[key]}_{name}"
    return _Own(edits.text(0, len(tokens)), functions, tuple(keys.get(key) for key in frames), read)

"""A query over live streams, ready to be started."""

from __future__ import annotations

import copy
import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

from windrow.algebra.continuous import Continuous, Reader, StreamQuery
from windrow.algebra.names import POSITIONAL
from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError
from windrow.errors import Span as Place
from windrow.plan.nodes import Distinct, Project
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.punctuated.expected_punctuation import bounded
from windrow.spark.live.plans.planned_views import views_behind
from windrow.spark.live.plans.read_names import live_windows, reads, sequences_of, views_of
from windrow.spark.live.reading.beside import Beside
from windrow.spark.live.reading.closed_keys import bounding_ends, ends_of_windows
from windrow.spark.live.reading.moved_rowtime import MovedRowtime, UnknownRowtimeError, moved_rowtime
from windrow.spark.live.reading.origins import enters_at_rowtime, passes_on, read_live, shows_instant
from windrow.spark.live.reading.windowed_queries import planned_windows
from windrow.spark.live.reading.windowed_query import WindowedQuery
from windrow.spark.live.reading.windows_of_query import QueryWindow, windows_of
from windrow.spark.logs.clause_view import ClauseSource, Ends, Unbounded
from windrow.spark.logs.session_streams import ROWTIME
from windrow.spark.recorded.continuous_queries import Runner
from windrow.streams import FOREVER, NamedStream, Ordering
from windrow.syntax.canonical_text import canonical_text
from windrow.syntax.tokens import tokenize

__all__ = [
    "BUFFERED_ROWS",
    "ContinuousPlan",
    "LivePlan",
    "ReaderPlan",
    "RowtimePlan",
    "order_text",
    "texts_of",
]

BUFFERED_ROWS = "rows that the watermark has not passed"
"""The description of buffered rows."""


@dataclass(frozen=True)
class LivePlan(ABC):
    """A query over live streams, with everything that is needed to run it.

    Attributes
    ----------
    gateway, catalog
        The session, and the streams in it.
    streams
        The names of the live streams that it reads.
    """

    gateway: Gateway
    catalog: Catalog
    streams: frozenset[str]

    @property
    def is_endless(self) -> bool:
        """Whether there are no recorded rows to run it over: some streams are not named ones."""
        return any(name not in self.catalog.named for name in self.streams)

    @property
    @abstractmethod
    def scale(self) -> TimeScale:
        """The unit of instants."""

    @property
    @abstractmethod
    def text(self) -> str:
        """The query as written."""

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The columns of the output, without those of time."""

    def started(self) -> Self:
        """The query with the current streams and views, with which it continues after they are dropped."""
        same = copy.copy(self)
        object.__setattr__(same, "catalog", self.catalog.as_it_is())
        return same

    @property
    def is_relation(self) -> bool:
        """Whether its rows can be retracted, unlike those of a stream."""
        return False

    @property
    def has_ttl(self) -> bool:
        """Whether keys have a state TTL, so that a later row of a key does not retract an earlier one."""
        return False

    @property
    def asks_changes(self) -> bool:
        """Whether the text requests the changes of a relation, and not its rows."""
        return False

    @property
    def table_columns(self) -> list[str]:
        """The columns of the relation, without those that a changelog adds."""
        return self.columns

    @property
    def stream_columns(self) -> list[str]:
        """The columns that go into a stream."""
        return self.columns

    @property
    def rowtime_scale(self) -> TimeScale:
        """The unit of its rows' rowtimes, if they go into a stream."""
        return self.scale

    @property
    @abstractmethod
    def span(self) -> Place:
        """Where the query stands in the text."""

    @property
    def envelope(self) -> str:
        """The default envelope of a relation's changelog."""
        return "delta"

    def refuse_no_stream(self) -> None:
        """Refuse a query whose output is not a stream, such as this one.

        Raises
        ------
        AnalysisError
            ``RELATION_WHERE_STREAM_IS_NEEDED``, ``UNKNOWN_ROWTIME``, ``DUPLICATE_COLUMN``.
        """
        raise AnalysisError(
            "the query returns rows without rowtimes; a named stream needs them",
            condition="RELATION_WHERE_STREAM_IS_NEEDED",
            sql=self.text,
            span=self.span,
            hint="start it into a folder or a table: relation.start(sink)",
        )

    def refuse_into(self, stream: NamedStream, columns: tuple[str, ...]) -> None:  # noqa: B027 - most refuse none
        """Refuse a named stream whose columns, by position, do not fit the rows."""

    def refuse_twice(self, names: Sequence[str], what: str) -> None:
        """Refuse two columns with the same name, where that is not possible.

        Raises
        ------
        AnalysisError
            ``DUPLICATE_COLUMN``.
        """
        lower = [name.lower() for name in names]
        twice = next((name for name in names if lower.count(name.lower()) > 1), None)
        if twice is not None:
            raise AnalysisError(
                f"{what} cannot have two columns {twice}",
                condition="DUPLICATE_COLUMN",
                sqlstate="42711",
                sql=self.text,
                span=self.span,
                hint="name each differently with AS",
            )

    def moved(self, place: int) -> MovedRowtime | None:  # noqa: ARG002 - of some
        """How one of its columns is computed from the rowtime; None if it is the rowtime, or if only its rows
        show that.

        Raises
        ------
        AnalysisError
            ``ROWTIME_DIFFERS``.
        """
        return None

    def rowtime_differs(self, place: int, why: str, other: str = "") -> AnalysisError:
        """The error for a column that cannot be the rowtime of a stream, with an alternative."""
        return AnalysisError(
            f"the query returns {self.stream_columns[place]} as the rowtime of the stream, but {why}",
            condition="ROWTIME_DIFFERS",
            sql=self.text,
            span=self.span_of(place),
            hint=f"leave it out, so that each row keeps its own rowtime{other}",
        )

    def span_of(self, place: int) -> Place:  # noqa: ARG002 - of some
        """Where one of its columns is written; if unknown, the query."""
        return self.span

    def into(self, stream: NamedStream, columns: Sequence[str] | None) -> LivePlan:  # noqa: ARG002 - of some
        """The query as it runs if its rows go into these columns of a named stream."""
        return self

    @abstractmethod
    def views(self) -> dict[str, str]:
        """The texts of the views that it reads, by their names."""

    def windows(self) -> dict[str, str]:
        """The texts of the parts with state, by the names of their state."""
        return {}

    def reasons(self) -> dict[str, str]:
        """Which rows the state has, and until when they are retained, by the same names."""
        return {}

    @property
    def bound_in(self) -> str:
        """The time of the query's bound: changes before it have been emitted."""
        return "event time"

    @property
    def rowtimes(self) -> tuple[str, ...]:
        """The columns of retained rows that have rowtimes."""
        return (ROWTIME,)

    @property
    def passes_on(self) -> bool:
        """Whether each output row is derived from one row of a stream, and has its rowtime."""
        return False

    def upper_bound(self, frontier: int) -> int:
        """The first instant whose rows a micro-batch with this frontier leaves to later ones.

        Rows at the frontier itself may still arrive. Operators that need all rows of an instant wait for
        them; a merge by rowtime does not.
        """
        return frontier + 1 if self.passes_on and frontier != FOREVER else frontier

    def unbounded(self) -> Sequence[Unbounded]:
        """The operators with unbounded state."""
        return ()

    @property
    def ends(self) -> Mapping[str, Ends]:
        """The punctuation that ends the partitions of clauses, by their keys."""
        return {}

    def fingerprint(self) -> dict[str, Any]:
        """The properties by which a checkpoint recognizes the query."""
        streams = {
            name: [
                *self.catalog.streams[name].frame.schema.simpleString().split(","),
                *order_text(live.ordering),
                live.identity,
            ]
            for name in sorted(self.streams)
            if (live := self.catalog.streams[name].live) is not None
        }
        views = {name: _named_alike(text) for name, text in self.views().items()}
        found = {
            "text": _named_alike(_in_one_line(self.text)),
            "clock": str(self.scale),
            "streams": streams,
            "views": {name: _hash(text) for name, text in views.items()},
            "canonical_views": {name: _hash(canonical_text(text)) for name, text in views.items()},
        }
        values = self._parameters()
        return {**found, "parameters": values} if values else found

    def _parameters(self) -> dict[str, str]:
        """The values of the named parameters in its text, or of all positional ones."""
        tokens, parameters = tokenize(self.text), self.gateway.parameters
        read = {token.text for before, token in pairwise(tokens.tokens) if before.text == ":"}
        return {
            name: repr(parameters[name]) for name in parameters if name in read or name.startswith(POSITIONAL)
        }


def _named_alike(text: str) -> str:
    """A text in which hidden names of clauses over windows, which are numbered by process, are normalized."""
    return re.sub(r"__clause_\d+", "__clause", text)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def order_text(ordering: Ordering) -> list[str]:
    """A stream's order in the form of checkpoints: without FUTURE as in versions that did not know it."""
    text = f"Ordering(lag={ordering.lag}, is_promise={ordering.is_promise})"
    return [text] if ordering.future is None else [text, str(ordering.future)]


@dataclass(frozen=True)
class ReaderPlan(LivePlan):
    """A query of CQL.

    Attributes
    ----------
    reader, query
        The text, and the query in it.
    """

    reader: Reader
    query: Continuous

    @property
    def text(self) -> str:
        """The query as written."""
        return self.reader.tokens.sql

    @property
    def span(self) -> Place:
        """Where the query stands."""
        return self.query.span


@dataclass(frozen=True)
class RowtimePlan(LivePlan):
    """A query whose micro-batches advance from one instant of rowtime to the next."""

    def retained(self) -> dict[str, tuple[str, ...]]:
        """The rows of clauses, including those that it follows, by the names of their state."""
        return {}

    @property
    def windowed(self) -> WindowedQuery | None:
        """The query over windows in brackets that a micro-batch runs; None without such windows."""
        return None

    @property
    def forgets(self) -> bool:
        """Whether declared punctuation closes the keys of rows that never leave a window."""
        return False

    @property
    @abstractmethod
    def clause_inputs(self) -> frozenset[str]:
        """The streams of which it, or clauses before it, make windows and matches, and the results of
        these.
        """

    @property
    def views_of_rows(self) -> frozenset[str]:
        """The views of arriving rows that clauses read."""
        return views_behind(self.catalog, self.clause_inputs)

    def fingerprint(self) -> dict[str, Any]:
        """The properties by which a checkpoint recognizes the query, and the form of its state."""
        return {**super().fingerprint(), "state": "rows" if self.windowed is None else "chunks"}


@dataclass(frozen=True)
class ContinuousPlan(RowtimePlan, ReaderPlan):
    """A CQL query.

    Attributes
    ----------
    names
        The columns of its output.
    is_table
        Whether its rows are emitted without rowtimes, as those of a table.
    """

    names: tuple[str, ...] = ()
    is_table: bool = False

    @cached_property
    def scale(self) -> TimeScale:
        """The unit of instants."""
        return Runner(self.gateway, self.catalog, self.reader, "batch").scale_of(self.query)

    @property
    def columns(self) -> list[str]:
        """The columns of its output."""
        return list(self.names)

    @property
    def is_relation(self) -> bool:
        """Whether it changes over time."""
        return not isinstance(self.query, StreamQuery)

    def refuse_no_stream(self) -> None:
        """Refuse a relation."""
        if self.is_relation or self.is_table:
            raise AnalysisError(
                "a relation cannot be inserted into a named stream",
                condition="RELATION_WHERE_STREAM_IS_NEEDED",
                sql=self.text,
                span=self.span,
                hint="write SELECT STREAM … for rows as they arrive, or ISTREAM(query) for the rows that"
                " are inserted into the relation",
            )

    def fingerprint(self) -> dict[str, Any]:
        """As of any query, and the form of what its windows retain: the columns that its operators read."""
        return {**super().fingerprint(), "form": "operators over windows"}

    @cached_property
    def windowed(self) -> WindowedQuery:
        """The query that a micro-batch runs.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_STREAM`` if no operator supports it.
        """
        return planned_windows(self.gateway, self.catalog, self.reader, self.query, self.scale)

    @property
    def passes_on(self) -> bool:
        """Whether each output row is derived from one row of a stream, and has its rowtime."""
        return self.windowed.passes_on

    @cached_property
    def _read(self) -> Beside:
        """Its plan, in which views are leaves."""
        return read_live(self.gateway, self.catalog, self.query, self.reader)

    def moved(self, place: int) -> MovedRowtime | None:
        """How one of its columns follows the rowtime."""
        assert isinstance(self.query, StreamQuery)
        if len({self.catalog.streams[name].scale.kind for name in self.streams}) > 1:
            raise self.rowtime_differs(place, "the rowtimes of its streams have several types")
        query = self.gateway, self.catalog, self.query, self.reader
        is_at_rowtime = passes_on(*query) or enters_at_rowtime(*query)
        if not is_at_rowtime and shows_instant(self._read, self.query, place):
            return None
        if not is_at_rowtime or self._read.plan is None:
            raise self.rowtime_differs(place, "it may differ from the rowtime of a row")
        try:
            return moved_rowtime(self.gateway, self._read, place)
        except UnknownRowtimeError as found:
            other = "; or shift the rowtime by a length of time, or truncate it"
            raise self.rowtime_differs(place, str(found), other) from None

    def span_of(self, place: int) -> Place:
        """Where one of its columns is written."""
        node = self._read.plan
        while isinstance(node, Distinct):
            node = node.input
        at = node.outputs[place][1].at if isinstance(node, Project) else None
        return self.span if at is None else self.reader.tokens.span(*at)

    @cached_property
    def ends(self) -> Mapping[str, Ends]:
        """The punctuation that ends the keys of its windows, and of the clauses that it follows."""
        found = ends_of_windows(self.windowed, self.catalog)
        for name in sequences_of(self.catalog, self.query):
            found |= self.catalog.sequences[name].ends()
        return found

    @property
    def clause_inputs(self) -> frozenset[str]:
        """The windows and matches that it reads."""
        return sequences_of(self.catalog, self.query)

    @property
    def follows(self) -> bool:
        """Whether it reads the output of clauses."""
        return bool(self.clause_inputs)

    def unbounded(self) -> Sequence[Unbounded]:
        """The windows that rows, or keys, never leave, and whose keys are not expected to end."""
        found: list[Unbounded] = []
        for name in sorted(sequences_of(self.catalog, self.query)):
            found += self.catalog.sequences[name].unbounded()
        for one in live_windows(self.catalog, self.query, self.reader):
            window, source = one.item.window, one.item.source
            name = source if isinstance(source, str) else "a stream"
            view = self.catalog.sequences.get(name.lower())
            name = name if view is None else view.label
            if window.is_unbounded:
                if self.windowed.only_grows and self.windowed.flow.is_stateless:
                    continue
                needs = f"a length of time would bound it: [RANGE 1 HOUR]{self._or_punctuation(one)}"
                if self._is_bounded(one):
                    continue
                found.append(Unbounded(f"{name} [RANGE UNBOUNDED]", self.reason(one), needs))
            elif window.rows is not None and window.partition_by and window.range_ is None:
                needs = (
                    "a length of time would bound it: [PARTITION BY … ROWS … RANGE …]"
                    f"{self._or_punctuation(one)}"
                )
                if self._is_bounded(one):
                    continue
                found.append(Unbounded(f"{name} [PARTITION BY … ROWS]", "the last rows of every key", needs))
        return found

    def _bounding(self, window: QueryWindow) -> list[ClauseSource]:
        """The sources whose punctuation drops the rows of a window that time does not; empty if something
        else reads them.
        """
        return bounding_ends(self.windowed, self.ends, window.name)

    def _is_bounded(self, window: QueryWindow) -> bool:
        """Whether declared punctuation bounds all its rows."""
        ends = self._bounding(window)
        return bool(ends) and all(bounded(self.catalog, one.name).within(one.columns) for one in ends)

    @property
    def forgets(self) -> bool:
        """Whether declared punctuation closes the keys of rows that never leave a window."""
        windows = live_windows(self.catalog, self.query, self.reader)
        return any(self._is_bounded(one) for one in windows if one.item.window.is_unbounded)

    def _or_punctuation(self, window: QueryWindow) -> str:
        closing = dict.fromkeys(map(str, self._bounding(window)))
        return f", or punctuations of {' and '.join(closing)}" if closing else ""

    def retained(self) -> dict[str, tuple[str, ...]]:
        """The rows of the clauses that it follows."""
        found: dict[str, tuple[str, ...]] = {}
        for name in sequences_of(self.catalog, self.query):
            found |= self.catalog.sequences[name].retained()
        return found

    def views(self) -> dict[str, str]:
        """The texts of the views that it reads."""
        clauses = [name for name in reads(self.catalog, self.query) if name in self.catalog.clauses]
        texts = {f"clause{number}": self.catalog.clauses[name].clause.sql
                 for number, name in enumerate(dict.fromkeys(clauses))}  # fmt: skip
        return {**texts_of(self.catalog, views_of(self.catalog, self.query)), **texts}

    def windows(self) -> dict[str, str]:
        """The state of windows, and of clauses that it follows, by the names in a micro-batch."""
        found = {one.name: one.text for one in windows_of(self.catalog, self.query, self.reader)}
        for name in sequences_of(self.catalog, self.query):
            view = self.catalog.sequences[name]
            found |= {f"window.{name}.waiting": f"{view.label}, waiting", **view.windows()}
        return found

    def reasons(self) -> dict[str, str]:
        """Which rows the state has, and until when they are retained, by the same names."""
        found = {one.name: self.reason(one) for one in windows_of(self.catalog, self.query, self.reader)}
        for name in sequences_of(self.catalog, self.query):
            found |= {f"window.{name}.waiting": BUFFERED_ROWS, **self.catalog.sequences[name].reasons()}
        return found

    def reason(self, window: QueryWindow) -> str:
        """Which rows a window retains, and until when."""
        bracket = window.item.window
        if bracket.is_unbounded:
            if not self.windowed.only_grows:
                return "all rows"
            if self.windowed.flow.is_stateless:
                return "the last rows, as none leaves and no operator needs them"
            return "some numbers for each key" if self.windowed.flow.has_numbers else "all rows"
        if any(side.window_input.at_arrival for side in self.windowed.sides if side.name == window.name):
            return "some numbers for each key and window, and the last rows"
        if bracket.rows is not None:
            return f"the last {bracket.rows} rows{' of each key' if bracket.partition_by else ''}"
        return "rows of one instant" if bracket.is_now else "its rows until they leave it"


def _in_one_line(sql: str) -> str:
    r"""A text without comments, with single spaces, except in strings.

    >>> _in_one_line("SELECT k, -- a key\n   'a  b' FROM  t")
    "SELECT k, 'a  b' FROM t"
    """
    tokens = tokenize(sql).tokens
    parts = [tokens[0].text] if tokens else []
    for before, token in pairwise(tokens):
        parts.append(f" {token.text}" if token.span.start > before.span.stop else token.text)
    return "".join(parts)


def texts_of(catalog: Catalog, names: frozenset[str]) -> dict[str, str]:
    """The texts of these views."""
    return {
        name: catalog.sequences[name].text
        if name in catalog.sequences
        else catalog.definitions[name].reader.tokens.sql
        for name in sorted(names)
    }

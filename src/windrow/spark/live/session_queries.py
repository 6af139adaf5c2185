"""The live queries of a session: the running ones, the listeners to their progress, and the queries that
INSERT INTO starts.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from windrow.errors import NotSupportedError, UsageError
from windrow.spark.catalog import Catalog
from windrow.spark.live.plans.emit_flow import unbounded_by_tasks
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.query import LiveQuery
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.sink import Sink
from windrow.spark.live.sinks.targets import sink_of
from windrow.tracebacks import warn

__all__ = [
    "CHECKPOINT_SETTING",
    "Insert",
    "Listener",
    "Listeners",
    "LiveQueries",
    "SessionCatalog",
    "folder_of",
    "queries_of",
]

CHECKPOINT_SETTING = "spark.windrow.checkpoint"
"""The setting with the folder for checkpoints of queries that INSERT INTO starts."""

_numbers = itertools.count(1)  # of all sessions: Spark's queries have one list of names

Listener = Callable[[Mapping[str, Any]], object]


class Listeners:
    """Functions that are called with the progress of every micro-batch of every live query of a session.

    An exception of a listener becomes a warning, and does not end the query.
    """

    def __init__(self) -> None:
        self._functions: list[Listener] = []

    def add(self, listener: Listener) -> None:
        """Call a function with the progress of each micro-batch, from the thread of the query."""
        self._functions.append(listener)

    def remove(self, listener: Listener) -> None:
        """Call it no longer.

        Raises
        ------
        ValueError
            Where it was not added.
        """
        self._functions.remove(listener)

    def notify(self, progress: Mapping[str, Any]) -> None:
        """Call them all."""
        for listener in tuple(self._functions):
            try:
                listener(progress)
            except Exception as error:
                warnings.warn(f"a listener of live queries failed: {error!r}", RuntimeWarning, stacklevel=2)


@dataclass(frozen=True)
class Insert:
    """INSERT INTO of a live query: the plan, the sink for its rows, and the target's name."""

    plan: LivePlan
    sink: Sink | IntoStream
    target: str


@dataclass(eq=False, repr=False)
class LiveQueries(Mapping[str, LiveQuery]):
    """The live queries that a session has started, by name, while they run or until their failure is seen.

    Attributes
    ----------
    listeners
        Who listens to their progress.
    collected
        If it is a list, INSERT INTO starts nothing, and adds the query to the list.
    started
        Functions that are called with each query that starts.
    """

    listeners: Listeners = field(default_factory=Listeners)
    collected: list[Insert] | None = None
    started: list[Callable[[LiveQuery], object]] = field(default_factory=list)
    _running: dict[str, LiveQuery] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"LiveQueries[{', '.join(self)}]"

    def __getitem__(self, name: str) -> LiveQuery:
        return self._running[name]

    def __iter__(self) -> Iterator[str]:
        self._tidy()
        return iter(tuple(self._running))

    def __len__(self) -> int:
        self._tidy()
        return len(self._running)

    def start(
        self,
        plan: LivePlan,
        sink: Any,
        *,
        name: str | None = None,
        on_unbounded: str = "warn",
        **options: Any,
    ) -> LiveQuery:
        """Start a query, by default under an unused name.

        Raises
        ------
        UsageError
            ``QUERY_EXISTS``, and what :class:`LiveQuery` raises.
        NotSupportedError
            ``UNBOUNDED_STATE``, if that is an error.
        """
        taking = sink_of(sink)
        if isinstance(taking, IntoStream):
            plan = plan.into(taking.stream, taking.columns)
        _warn_unbounded(plan, on_unbounded)
        self._tidy()
        if name is None:
            name = next(name for number in _numbers if (name := f"query-{number}") not in self._running)
        if name in self._running:
            raise UsageError(
                f"a live query {name} is already running in this session",
                condition="QUERY_EXISTS",
                hint="stop it first, or choose another name",
            )
        query = LiveQuery(plan.started(), taking, name=name, notify=self.listeners.notify, **options)
        self._running[name] = query
        for function in self.started:
            function(query)
        return query

    def insert(self, insert: Insert) -> LiveQuery | None:
        """Start the query of INSERT INTO; collect it instead if queries are being collected.

        Raises
        ------
        UsageError
            ``NO_CHECKPOINT``, and those of :meth:`start`.
        """
        if self.collected is not None:
            self.collected.append(insert)
            return None
        folder = insert.plan.gateway.spark.conf.get(CHECKPOINT_SETTING, None)
        if not folder:
            raise UsageError(
                "the live query has no checkpoint",
                condition="NO_CHECKPOINT",
                sql=insert.plan.text,
                span=insert.plan.span,
                hint="run it as a pipeline: session.pipeline(…, checkpoint=…), windrow run --live;"
                f" or name the folder for the checkpoints of all queries: SET {CHECKPOINT_SETTING} = folder",
            )
        self._tidy()
        name = self.free_name(insert.target, self._running)
        return self.start(insert.plan, insert.sink, name=name, checkpoint=folder_of(Path(folder), name))

    @staticmethod
    def free_name(target: str, taken: Mapping[str, Any]) -> str:
        """The target's name; for several queries into one target, with a number from the second on.

        >>> LiveQueries.free_name("Highs", {"highs": 1, "highs-2": 1})
        'highs-3'
        """
        name = target.lower()
        numbered = (f"{name}-{number}" for number in itertools.count(2))
        return next(found for found in itertools.chain([name], numbered) if found not in taken)

    def _tidy(self) -> None:
        for name, query in list(self._running.items()):
            if not query.is_active:
                del self._running[name]


@dataclass
class SessionCatalog(Catalog):
    """The catalog of a session with live queries."""

    queries: LiveQueries = field(default_factory=LiveQueries)


def queries_of(catalog: Catalog) -> LiveQueries:
    """The live queries of the session of a catalog."""
    assert isinstance(catalog, SessionCatalog)
    return catalog.queries


def _warn_unbounded(plan: LivePlan, on_unbounded: str) -> None:
    """Warn of a query with unbounded state, or refuse it."""
    if on_unbounded not in ("warn", "error", "ignore"):
        raise UsageError(
            f"on_unbounded is {on_unbounded!r}",
            condition="INVALID_ARGUMENT",
            hint="use 'warn', 'error' or 'ignore'",
        )
    found = [] if on_unbounded == "ignore" else [*plan.unbounded(), *unbounded_by_tasks(plan)]
    if not found:
        return
    reasons = "; ".join(map(str, found))
    if on_unbounded == "error":
        raise NotSupportedError(
            f"the state of the query would be unbounded: {reasons}",
            condition="UNBOUNDED_STATE",
            sql=plan.text,
            span=plan.span,
            hint="run EXPLAIN to see what would bound it, or set on_unbounded='warn' to run it anyway",
        )
    warn(f"the state of the query is unbounded: {reasons}")


def folder_of(checkpoint: Path, name: str) -> Path:
    """The checkpoint of one of several queries.

    >>> folder_of(Path("c"), "sales/highs").name
    'sales%2Fhighs'
    """
    return checkpoint / quote(name, safe="")

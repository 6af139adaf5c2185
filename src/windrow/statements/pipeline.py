"""Pipelines: the statements of a script whose live queries start, report, fail and restart together."""

from __future__ import annotations

import itertools
import json
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from windrow.algebra.continuous import Reader
from windrow.errors import InputError, UsageError, WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.live import Insert, LiveQueries, LiveQuery
from windrow.spark.live.session_queries import SessionCatalog, folder_of
from windrow.statements.dispatch import run
from windrow.statements.inserts import gives_stream
from windrow.statements.written_results import may_write_result
from windrow.streams.durable_files import flush
from windrow.syntax.mistakes import unsupported_statement
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import parameter_marks
from windrow.syntax.query_parts import split_statements
from windrow.syntax.tokens import TokenList, tokenize
from windrow.tracebacks import briefly

if TYPE_CHECKING:
    from windrow.spark.live import IntoStream
    from windrow.spark.live.sinks.sink import Sink

__all__ = ["Pipeline", "start_pipeline"]

_VERSION = 1
_SCRIPT = "pipeline.json"
_BETWEEN_LOOKS = 0.25  # seconds
_WRITE = ("INSERT", "PUNCTUATE", "MERGE", "UPDATE", "DELETE", "TRUNCATE", "LOAD")
_QUERIES = ("SELECT", "WITH", "FROM", "TABLE", "VALUES", "ISTREAM", "DSTREAM", "RSTREAM")


@briefly
class Pipeline(Mapping[str, LiveQuery]):
    """The live queries of a script, by the names of their targets. Made by :meth:`Session.pipeline`.

    As soon as one fails, all are stopped. As a context, they are stopped at its end.
    """

    def __init__(self, queries: Mapping[str, LiveQuery]) -> None:
        self._queries = dict(queries)
        self._ended = threading.Event()
        self._failure: Exception | None = None
        self._watcher = threading.Thread(target=self._watch, name="windrow pipeline", daemon=True)
        self._watcher.start()

    def __getitem__(self, name: str) -> LiveQuery:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __enter__(self) -> Pipeline:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"Pipeline[{', '.join(self)}]"

    @property
    def is_active(self) -> bool:
        """Whether its queries run."""
        return not self._ended.is_set()

    @property
    def progress(self) -> dict[str, dict[str, Any]]:
        """Of each query what its last micro-batch did: see :attr:`LiveQuery.progress`."""
        return {name: query.progress for name, query in self._queries.items()}

    def process_all_available(self) -> None:
        """Wait until all that has arrived is processed, also what queries pass to others of them.

        Raises
        ------
        WindrowError
            What a query has failed with.
        """
        before = None
        while before != (now := [query.progress.get("batch") for query in self._queries.values()]):
            before = now
            for query in self._queries.values():
                if query.is_active:
                    query.process_all_available()
        self._raise()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until all have stopped, or for so many seconds; whether they have stopped.

        Raises
        ------
        WindrowError
            What the first that failed has failed with.
        """
        has_ended = self._ended.wait(timeout)
        if has_ended:
            self._raise()
        return has_ended

    def stop(self) -> None:
        """Stop all; started again with the same checkpoint they go on where they were."""
        self._stop()
        self._ended.set()
        if threading.current_thread() is not self._watcher:
            self._watcher.join()

    def _stop(self) -> None:
        for query in self._queries.values():
            query.stop()

    def _watch(self) -> None:
        """Stop all queries when one has failed; it is over when none runs."""
        while not self._ended.wait(_BETWEEN_LOOKS):
            self._failure = self._found_failure()
            running = [query for query in self._queries.values() if query.is_active]
            if self._failure is not None or not running:
                self._stop()
                self._ended.set()

    def _found_failure(self) -> Exception | None:
        found = (query.failure for query in self._queries.values())
        return self._failure or next((failure for failure in found if failure is not None), None)

    def _raise(self) -> None:
        failure = self._found_failure()
        if failure is not None:
            raise failure


def start_pipeline(
    catalog: SessionCatalog,
    gateway: Callable[[Sequence[Any], Mapping[str, Any]], Gateway],
    text: str,
    args: Mapping[str, Any] | Sequence[Any],
    execution: str,
    *,
    checkpoint: Path | None,
    trigger: Mapping[str, Any] | None,
    sink: Callable[[], Sink | IntoStream] | None,
    on_late: str,
    on_malformed: str,
) -> Pipeline:
    """Run the statements of a script, and start its live queries when all of it is understood.

    Parameters
    ----------
    catalog, gateway, execution
        Of the session; a gateway for each statement, with its parameters.
    text, args
        The script, and the values of its parameters.
    checkpoint, trigger, on_late, on_malformed
        As :meth:`windrow.Session.pipeline` has them.
    sink
        Makes the sink of a query that is not inserted into anything; without, such queries are refused.
    """
    queries = catalog.queries
    tokens = tokenize(text)
    statements = split_statements(tokens)
    given = [_Parameters.of(tokens, statement, args) for statement in statements]
    script = [
        " ".join(token.text for token in tokens.tokens[start:stop]) + values.shown
        for (start, stop), values in zip(statements, given, strict=True)
    ]
    if checkpoint is not None:
        _refuse_changed(checkpoint, script)
    queries.collected, without_target = [], 0
    try:
        for statement, values in zip(statements, given, strict=True):
            made = gateway(values.positional, values.named)
            insert = _run(catalog, made, tokens, statement, values.positional, execution, sink)
            if insert is not None:
                queries.collected.append(insert)
                without_target += 1
        inserts = queries.collected
    except WindrowError as error:
        if error.span is not None:
            error.sql = text
        raise
    finally:
        queries.collected = None
    if not inserts:
        raise UsageError(
            "the script has no live query",
            condition="NO_LIVE_QUERY",
            hint="write INSERT INTO target SELECT STREAM …, or run other scripts with session.script",
        )
    if checkpoint is None:
        if len(inserts) > without_target:
            raise UsageError(
                "a script that writes into tables or streams has no checkpoint",
                condition="NO_CHECKPOINT",
                hint="name a folder of its own: checkpoint=…, on the command line --checkpoint DIR",
            )
    else:
        _keep(checkpoint, script)
    return Pipeline(_started(queries, inserts, checkpoint, trigger, on_late, on_malformed))


@dataclass(frozen=True)
class _Parameters:
    """The values of a statement's ``?`` and of the parameters with names, and the text of those it reads."""

    positional: list[Any]
    named: Mapping[str, Any]
    shown: str

    @classmethod
    def of(cls, tokens: TokenList, statement: Range, args: Mapping[str, Any] | Sequence[Any]) -> _Parameters:
        """Those of one statement among the arguments of the whole script."""
        start, stop = statement
        if isinstance(args, Mapping):
            read = {tokens[at + 1].name for at in range(start, stop - 1) if tokens.is_symbol(at, ":")}
            shown = [f"{name} = {args[name]!r}" for name in sorted(read & args.keys())]
            return cls([], args, f" -- {', '.join(shown)}" if shown else "")
        before = sum(at < start for at in parameter_marks(tokens))
        until = before + sum(start <= at < stop for at in parameter_marks(tokens))
        values = list(args[before:until])
        return cls(values, {}, f" -- {', '.join(map(repr, values))}" if values else "")


def _run(
    catalog: SessionCatalog,
    gateway: Gateway,
    tokens: TokenList,
    statement: Range,
    positional: list[Any],
    execution: str,
    sink: Callable[[], Sink | IntoStream] | None,
) -> Insert | None:
    """Run a statement; a live query that is not inserted into anything is to be started."""
    queries = catalog.queries
    assert queries.collected is not None
    start, stop = statement
    span = tokens.span(start, stop)
    padded = re.sub(r"[^\n]", " ", tokens.sql[: span.start]) + tokens.sql[span.start : span.stop]
    at = _writing(tokens, start, stop)
    if at is not None and not _may_start(catalog, tokens, (start, stop), padded):
        hint = "run it once with session.sql; a pipeline would run it again at each start"
        raise unsupported_statement(tokens, at, f"{tokens.word(at)} of stored rows in a pipeline", hint)
    is_query = tokens.word(start) in _QUERIES or tokens.is_symbol(start, "(")
    gateway.reopens, gateway.prefers_live = True, is_query
    plan = run(gateway, padded, positional, execution, catalog)._live
    if not is_query:
        return None
    if plan is None:
        hint = "run it separately with session.sql"
        raise unsupported_statement(tokens, start, "a query over stored rows in a pipeline", hint)
    if sink is None:
        hint = "write INSERT INTO target before it"
        raise unsupported_statement(tokens, start, "a query without a target in a pipeline", hint)
    return Insert(plan, sink(), "rows")


def _writing(tokens: TokenList, start: int, stop: int) -> int | None:
    """The word of a statement that writes, also behind WITH and FROM; None if it writes nothing."""
    body = Reader(tokens, frozenset(), frozenset()).after_with(start, stop)
    if tokens.word(body) in _WRITE:
        return body
    into = (at for at in tokens.level(start, stop) if tokens.word(at + 1) in ("INTO", "OVERWRITE"))
    return next((at for at in into if tokens.word(at) == "INSERT"), None)


def _may_start(catalog: SessionCatalog, tokens: TokenList, statement: Range, text: str) -> bool:
    """Whether a statement that writes may start a live query; if not, it is not run at all."""
    start, stop = statement
    return tokens.word(start) == "INSERT" and (
        may_write_result(text, catalog)
        or any(
            gives_stream(tokens, at, stop)
            for at in tokens.level(start, stop)
            if tokens.word(at) in _QUERIES or tokens.is_symbol(at, "(")
        )
    )


def _started(
    queries: LiveQueries,
    inserts: list[Insert],
    checkpoint: Path | None,
    trigger: Mapping[str, Any] | None,
    on_late: str,
    on_malformed: str,
) -> dict[str, LiveQuery]:
    """Start all, or none."""
    started: dict[str, LiveQuery] = {}
    ends_by_itself = trigger is not None and not trigger.keys().isdisjoint(("availableNow", "once"))
    try:
        for insert in inserts:
            name = queries.free_name(insert.target, started)
            query = queries.start(
                insert.plan,
                insert.sink,
                name=name,
                checkpoint=None if checkpoint is None else folder_of(checkpoint, name),
                trigger=trigger,
                on_late=on_late,
                on_malformed=on_malformed,
            )
            started[name] = query
            if ends_by_itself:  # those that follow may read its output
                query.await_termination()
    except BaseException:
        for query in started.values():
            query.stop()
        raise
    return started


def _refuse_changed(checkpoint: Path, script: list[str]) -> None:
    """Refuse a script that is not the one that the checkpoint was made with.

    Raises
    ------
    InputError
        ``PIPELINE_DIFFERS``, ``CHECKPOINT_VERSION``.
    """
    try:
        stored = json.loads((checkpoint / _SCRIPT).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return
    if stored["version"] != _VERSION:
        raise InputError(
            f"the checkpoint has version {stored['version']}, but this version of Windrow reads version"
            f" {_VERSION}",
            condition="CHECKPOINT_VERSION",
            hint="use the version of Windrow that wrote it, or start with another checkpoint",
        )
    was = stored["statements"]
    for number, (old, new) in enumerate(itertools.zip_longest(was, script), 1):
        if old == new:
            continue
        difference = (
            f"statement {number} is new: {new!r}"
            if old is None
            else f"statement {number} was {old!r}, but is {'gone' if new is None else repr(new)}"
        )
        raise InputError(
            f"the checkpoint {checkpoint} is of another script: {difference}",
            condition="PIPELINE_DIFFERS",
            hint="start a changed script with a checkpoint of its own, and targets of its own",
        )


def _keep(checkpoint: Path, script: list[str]) -> None:
    """Store the script."""
    path = checkpoint / _SCRIPT
    if path.exists():
        return
    checkpoint.mkdir(parents=True, exist_ok=True)
    pending = checkpoint / f".{_SCRIPT}.pending"
    with pending.open("w", encoding="utf-8") as file:
        json.dump({"version": _VERSION, "statements": script}, file)
        file.flush()
        os.fsync(file.fileno())
    pending.rename(path)
    flush(checkpoint)

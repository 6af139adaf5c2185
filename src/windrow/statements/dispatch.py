"""Runs a statement: a script statement by statement, a view over windows, or the steps of `steps.py`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from windrow.algebra.rewriting.varying_subqueries import reads_varying
from windrow.relation import Relation
from windrow.spark.analysis.evaluated_lengths import with_lengths
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.scan.files_in_text import may_name_files
from windrow.statements.classification import as_select, is_of_spark, is_ours, only_statement
from windrow.statements.definitions.session_functions import (
    calls_functions,
)
from windrow.statements.definitions.stored_text import refuse_files
from windrow.statements.definitions.stored_views import (
    altered_as_created,
    create_stored_view,
    shown_as_created,
    with_stored_views,
)
from windrow.statements.definitions.view_expansion import may_read_expanded
from windrow.statements.emit_statements import (
    may_be_view,
    remember_view,
)
from windrow.statements.scripts.execute_immediate import executes_unseen, run_text
from windrow.statements.scripts.run_script import run_compound
from windrow.statements.steps import run_steps
from windrow.syntax.compounds import parse_compound
from windrow.syntax.nodes import Range
from windrow.syntax.query_parts import split_statements
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import tokenize
from windrow.syntax.written_lengths import may_write_lengths, written_lengths

__all__ = ["check", "run"]

_VIEW = re.compile(r"\bview\b", re.IGNORECASE)
_ALTERED = re.compile(r"\s*alter\s+view\b", re.IGNORECASE)
_SHOWN = re.compile(r"\s*show\s+create\s+table\b", re.IGNORECASE)
_COMPOUND = re.compile(r"(?:\s|--[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*begin\b", re.IGNORECASE)


def run(
    gateway: Gateway, text: str, positional: list[Any], execution: str, catalog: Catalog | None = None
) -> Relation:
    """Run one statement; `catalog` has the session's streams."""
    known = catalog or Catalog()

    def needs_session(part: str) -> bool:
        return _needs_session(gateway, known, part)

    executed = run_text(gateway, text, needs_session, lambda read: run(gateway, read, [], execution, catalog))
    if executed is not None:
        return executed
    if _COMPOUND.match(text) and (gateway.checks or needs_session(text) or executes_unseen(text)):
        tokens = tokenize(text)
        if (script := parse_compound(tokens)) is not None:
            return run_compound(
                gateway,
                tokens,
                script,
                lambda read: run(gateway, read, [], execution, catalog),
                lambda read: _run_alone(gateway, read, [], execution, catalog),
                lambda part: is_of_spark(gateway, known, part),
            )
    return _run_alone(gateway, text, positional, execution, catalog)


def _needs_session(gateway: Gateway, catalog: Catalog, text: str) -> bool:
    """Whether only a Windrow session can run a text."""
    if not is_of_spark(gateway, catalog, text) or calls_functions(gateway, text, catalog):
        return True
    with with_stored_views(gateway, catalog, text) as read:
        return read != text or may_read_expanded(text, catalog)


def _run_alone(
    gateway: Gateway, text: str, positional: list[Any], execution: str, catalog: Catalog | None
) -> Relation:
    """Run a statement, or a script without running its statements one by one."""
    with gateway.reading(text) as written, _evaluated(gateway, catalog, written) as evaluated:
        read = written if evaluated is None else evaluated
        left = positional if evaluated is None else []
        if may_name_files(read):
            refuse_files(tokenize(read))
        if (created := _as_created(gateway, catalog, read)) is not None:
            with gateway.instead(created) as replaced:
                return _run_alone(gateway, replaced, left, execution, catalog)
        shown = shown_as_created(gateway, read) if _SHOWN.match(read) else None
        if shown is not None:
            return Relation(shown, "the statement that makes a permanent view", gateway)
        stored = _stored_view(gateway, catalog, read, left, execution)
        if stored is not None:
            return stored
        with with_stored_views(gateway, catalog, read) as expanded:
            relation = run_steps(gateway, expanded, left if expanded == read else [], execution, catalog)
        if catalog is not None and not gateway.checks and may_be_view(read, catalog):
            tokens = tokenize(read)
            remember_view(catalog, tokens, only_statement(tokens))
        return relation


@contextmanager
def _evaluated(gateway: Gateway, catalog: Catalog | None, text: str) -> Iterator[str | None]:
    """The statement with computed lengths as values, and without clauses in pipes; None if it has neither."""
    if may_write_lengths(text) and (piped := as_select(text)) is not None:
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


def _as_created(gateway: Gateway, catalog: Catalog | None, text: str) -> SqlText | None:
    """ALTER VIEW of a temporary view that only a Windrow session evaluates, as CREATE OR REPLACE."""
    if catalog is None or _ALTERED.match(text) is None:
        return None
    return altered_as_created(gateway, catalog, text, lambda query: is_ours(gateway, catalog, query))


def _stored_view(
    gateway: Gateway, catalog: Catalog | None, text: str, positional: list[Any], execution: str
) -> Relation | None:
    """Run CREATE VIEW or ALTER VIEW over what only a Windrow session evaluates; None for others."""
    if _VIEW.search(text) is None:
        return None
    known = catalog or Catalog()

    def planned(query: str) -> Relation:
        asked, gateway.plan_only = gateway.plan_only, True
        with with_stored_views(gateway, known, query) as read:
            relation = run_steps(gateway, read, positional, execution, catalog)
        gateway.plan_only = asked
        return relation

    tokens = tokenize(text)
    statement = only_statement(tokens)
    return create_stored_view(
        gateway, known, tokens, statement, planned, lambda query: is_ours(gateway, known, query)
    )


def check(gateway: Gateway, text: str, positional: list[Any], catalog: Catalog) -> None:
    """Parse and bind a statement without running anything; `catalog` has the session's streams.

    Raises
    ------
    WindrowError
        As :func:`run` would before it starts to compute.
    """
    gateway.plan_only = gateway.checks = True
    run(gateway, text, positional, "batch", catalog)

"""``windrow explain`` and ``windrow check``: the plan of a script, without running it.

A script is read statement by statement, as it would be run. Statements run only if later ones depend on them
and their effect ends with the session: temporary views, SET, USE, DECLARE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from windrow.cli.connection import Connection, SessionFactory, open_session, values
from windrow.cli.progress import Progress
from windrow.cli.run import at_its_place
from windrow.cli.sql_script import ScriptStatement
from windrow.errors import AnalysisError
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import find_pattern_windows
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.tokens import tokenize

if TYPE_CHECKING:
    from windrow.relation import Relation
    from windrow.session import Session

__all__ = ["check_script", "explain_script"]

_UNPLANNED = "Error occurred during query planning"


def explain_script(
    statements: list[ScriptStatement],
    options: Connection,
    factory: SessionFactory | None,
    opened: Callable[[Session], None],
    *,
    spark: bool,
) -> Iterator[str]:
    """The plan of each statement; with `spark`, followed by Spark's own."""
    for session, statement in _each(statements, options, factory, opened):
        yield _plan(session, statement, options, spark)
        _prepare(session, statement, options)


def check_script(
    statements: list[ScriptStatement],
    options: Connection,
    factory: SessionFactory | None,
    opened: Callable[[Session], None],
) -> None:
    """Parse and bind every statement.

    Raises
    ------
    WindrowError
        The first one's that is wrong, located in the script.
    """
    for session, statement in _each(statements, options, factory, opened):
        tokens = tokenize(statement.padded)
        if find_window_queries(tokens) or find_matches(tokens) or find_pattern_windows(tokens):
            with at_its_place(statement, options):
                session.check(statement.padded, **values(session.spark, options.params))
        else:
            # Spark reports errors in its own statements when it plans them.
            _plan(session, statement, options, spark=False)
        _prepare(session, statement, options)


def _each(
    statements: list[ScriptStatement],
    options: Connection,
    factory: SessionFactory | None,
    opened: Callable[[Session], None],
) -> Iterator[tuple[Session, ScriptStatement]]:
    with Progress() as progress:
        progress.begin("starting Spark")
        session = open_session(options, factory)
        opened(session)
        progress.pause()
        for statement in statements:
            yield session, statement


def _plan(session: Session, statement: ScriptStatement, options: Connection, spark: bool) -> str:
    if statement.is_query:
        with at_its_place(statement, options):
            return _run(session, statement.padded, options).plan(spark)
    explain = "" if statement.is_explain else "EXPLAIN FORMATTED " if spark else "EXPLAIN "
    with at_its_place(statement, options, inserted=len(explain)):
        text = str(_run(session, explain + statement.padded, options).collect()[0][0]).strip()
    if text.startswith(_UNPLANNED):
        _raise_reason(session, statement, options)
    return text


def _raise_reason(session: Session, statement: ScriptStatement, options: Connection) -> None:
    """Raise the error of a statement for which Spark's EXPLAIN prints no more than that it is wrong."""
    with at_its_place(statement, options):
        if statement.padded_source is not None:
            _run(session, statement.padded_source, options)
        raise AnalysisError(
            "Spark cannot plan the statement",
            condition="NOT_PLANNED",
            sql=statement.script,
            span=statement.span,
            hint="check the names of tables and columns in the statement",
        )


def _prepare(session: Session, statement: ScriptStatement, options: Connection) -> None:
    if statement.is_session_local:
        with at_its_place(statement, options):
            _run(session, statement.padded, options)


def _run(session: Session, text: str, options: Connection) -> Relation:
    return session.sql(text, **values(session.spark, options.params))

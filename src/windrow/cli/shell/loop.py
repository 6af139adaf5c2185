"""Reads statements and commands, runs them, and shows their results."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rich.text import Text

from windrow.cli.output.terminal import errors_console
from windrow.cli.reporting import show_error, show_unexpected
from windrow.cli.shell.backend import Backend, StoppedError
from windrow.cli.shell.completion import Names
from windrow.cli.shell.dot_commands import run_command
from windrow.cli.shell.shell_live import follow, stop
from windrow.cli.shell.shell_settings import Settings
from windrow.cli.shell.text import as_command, is_complete
from windrow.errors import UsageError, WindrowError

if TYPE_CHECKING:
    from windrow.cli.sql_script import ScriptStatement
    from windrow.relation import Relation
    from windrow.session import Session
    from windrow.spark.live import LiveQuery

__all__ = ["Shell", "pieces"]


def pieces(text: str) -> Iterator[str]:
    r"""The statements and commands of a text: lines up to the one with which a statement is complete.

    >>> list(pieces(".mode csv\nSELECT\n 1;\n\nSELECT 2"))
    ['.mode csv', 'SELECT\n 1;', '', 'SELECT 2']
    """
    lines: list[str] = []
    for line in text.splitlines():
        lines.append(line)
        piece = "\n".join(lines)
        if is_complete(piece):
            yield piece
            lines = []
    if "".join(lines).strip():
        yield "\n".join(lines)


class Shell:
    """A session at a prompt.

    Attributes
    ----------
    backend, settings, names
        The session, the settings of the output, and the names for completion.
    last_text
        The last query.
    started
        The live queries that were started here, by their names.
    has_failed
        Whether a statement or a command has failed.
    """

    def __init__(self, backend: Backend, settings: Settings | None = None, *, debug: bool = False) -> None:
        self.backend = backend
        self.settings = settings or Settings()
        self.names = Names(dict.fromkeys((*backend.options.tables, *backend.options.streams), ()))
        self.last_text = ""
        self.has_failed = False
        self.started: dict[str, LiveQuery] = {}
        self._last: Relation | None = None
        self._parameters: dict[str, Any] | None = None
        self._debug = debug

    def run_lines(self, text: str) -> None:
        """Run the statements and commands of a text, one after the other; errors have its lines."""
        lines = 0
        for piece in pieces(text):
            self.run("\n" * lines + piece)
            lines += piece.count("\n") + 1

    def run(self, text: str) -> None:
        """Run the input, and show its result, including errors.

        Raises
        ------
        EOFError
            To leave.
        """
        if not text.strip():
            return
        began = time.monotonic()
        try:
            if (command := as_command(text)) is not None:
                run_command(self, command)
                return
            self.run_statements(text)
        except StoppedError as stopped:
            self.has_failed = True
            message = "interrupted" if stopped.is_over else "interrupted; Spark still works in the background"
            errors_console().print(message, style="yellow")
        except WindrowError as error:
            self.has_failed = True
            show_error(error, self._debug)
        except EOFError:
            raise
        except Exception as error:
            self.has_failed = True
            show_unexpected(error, self._debug)
        if self.settings.timer and sys.stderr.isatty():
            errors_console().print(Text(f"{time.monotonic() - began:.2f} s", style="dim"))

    def run_statements(self, text: str) -> None:
        """Run statements between semicolons, and show the rows of each."""
        from windrow.cli.sql_script import split_script

        statements = split_script(text)
        self.backend.call(lambda session: self._run_all(session, statements))
        if not all(statement.is_query for statement in statements):
            self.refresh()

    def last_relation(self) -> Relation:
        """The result of the last query.

        Raises
        ------
        UsageError
            ``NO_QUERY`` before the first query.
        """
        if self._last is None:
            raise UsageError(
                "there is no query before this", condition="NO_QUERY", hint="run a SELECT, then repeat it"
            )
        return self._last

    def parameters(self, session: Session) -> dict[str, Any]:
        """The values of `--param`."""
        if self._parameters is None:
            from windrow.cli.connection import values

            self._parameters = values(session.spark, self.backend.options.params)
        return self._parameters

    def began(self, query: LiveQuery) -> None:
        """Register a started live query, whose failure will be printed."""
        self.started[query.name] = query
        follow(query)

    def refresh(self) -> None:
        """Look up the tables and their columns for completion, when nothing else is to be done."""
        self.backend.later(self._look_up)

    def close(self) -> None:
        """Stop the live queries, if Spark is there."""
        if self.backend.has_begun and not self.backend.is_starting:
            with suppress(Exception):
                self.backend.call(lambda session: stop(session, ""))

    def _look_up(self, session: Session) -> None:
        tables = {}
        for name in session.names():
            columns: tuple[str, ...] = ()
            # A view that has lost its table has no columns to complete.
            with suppress(Exception):
                columns = tuple(session.spark.table(name).columns)
            tables[name] = columns
        self.names.tables = tables

    def _run_all(self, session: Session, statements: list[ScriptStatement]) -> None:
        """In the worker's thread."""
        from windrow.cli.progress import Progress
        from windrow.cli.run import at_its_place, late_for_groups, report_set_aside

        parameters = self.parameters(session)
        with Progress() as progress:
            for statement in statements:
                progress.begin("running", session.spark)
                with at_its_place(statement, self.backend.options):
                    relation = session.sql(statement.padded, **parameters)
                    self._show(relation, statement, progress)
                    for_groups = late_for_groups(relation)
                progress.pause()
                report_set_aside(for_groups)

    def _show(self, relation: Relation, statement: ScriptStatement, progress: Any) -> None:
        from windrow.cli.run import Output, print_rows
        from windrow.relation_kinds import LiveRelation, StartedRelation, VaryingRelation

        if statement.is_query:
            self.last_text = statement.script[statement.span.start : statement.span.stop]
            self._last = relation
        if isinstance(relation, StartedRelation) and relation.query is not None:
            self.began(relation.query)
        if isinstance(relation, LiveRelation):
            progress.pause()
            errors_console().print("the query is live: write .watch for its rows as they arrive", style="dim")
            return
        if relation.is_plan:
            progress.pause()
            sys.stdout.write(f"{relation.plan()}\n")
            sys.stdout.flush()
            return
        if self.settings.mode == "changelog" and isinstance(relation, VaryingRelation):
            relation = relation.changelog(self.settings.envelope)
            self._last = relation
        if relation.df.columns and not statement.is_silent:
            output = Output(self.settings.form, None, self.settings.limit, more=" (.limit N shows N)")
            print_rows(relation, statement, output, progress)

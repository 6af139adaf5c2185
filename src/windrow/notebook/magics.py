"""``%windrow`` and ``%%windrow``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from windrow.cli.connection import open_session, start_spark, values
from windrow.cli.output.formats import Format
from windrow.cli.progress import Progress
from windrow.cli.run import Output, PrintOptions, at_its_place, draw_picture, print_rows, write_rows
from windrow.cli.sql_script import ScriptStatement, read_script, split_script
from windrow.errors import UsageError, WindrowError
from windrow.notebook.magic_options import MagicLine, help_text, read_line
from windrow.notebook.watching import ROWS, watch
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation
from windrow.session import Session
from windrow.spark.live import LiveQuery

__all__ = ["ShownError", "WindrowMagics"]


class ShownError(Exception):
    """An error that the cell has displayed: it stops the notebook, and adds one line without a traceback."""

    def __init__(self, error: WindrowError) -> None:
        super().__init__(f"[{error.condition}] {error.message}")

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


@magics_class
class WindrowMagics(Magics):
    """The magics of one notebook, and the session that its cells share."""

    def __init__(self, shell: Any) -> None:
        super().__init__(shell)
        self._variables: dict[str, Any] = shell.user_ns
        self._session: Session | None = None
        self._made: tuple[str, dict[str, str]] | None = None  # master and settings of the session

    @line_cell_magic
    def windrow(self, line: str, cell: str | None = None) -> object:
        """Run SQL.

        ``%%windrow [OPTIONS] [>> name]`` runs the statements of the cell. The last one's relation is the
        result of the cell, or is assigned to `name`. ``%windrow [OPTIONS]`` attaches tables and returns the
        session, ``%windrow NAME`` lets the cells use the session in the variable NAME, ``%windrow --help``
        lists the options.
        """
        with self._displayed_errors():
            if line.strip() in ("--help", "-h"):
                print(help_text())  # noqa: T201 - its purpose
                return None
            if cell is None and line.strip().isidentifier():
                return self._adopt(line.strip())
            read = read_line(line)
            session = self._opened(read)
            texts = [read_script(read.file, None)] if read.file is not None else []
            if cell is not None and cell.strip():
                texts.append(cell)
            if not texts:
                return session
            relation: Relation | LiveQuery | None = None
            for text in texts:
                relation = self._run(session, split_script(text), read)
            if read.result is not None:
                self._variables[read.result] = relation
                return None
            return relation if read.format is Format.TABLE and read.output is None else None

    def _adopt(self, name: str) -> Session:
        session = self._variables.get(name)
        if not isinstance(session, Session):
            raise UsageError(
                f"{name} is not a Session",
                condition="UNKNOWN_SESSION",
                hint=f"make one: {name} = windrow.Session()",
            )
        self._session = session
        return session

    def _opened(self, line: MagicLine) -> Session:
        """The session of the notebook with the tables of the line; started if there is none."""
        if self._session is None:
            self._session = open_session(line.options, start_spark)
            self._made = line.options.master, line.options.conf
            return self._session
        if line.names_session and self._made != (line.options.master, line.options.conf):
            raise UsageError(
                "the notebook already has a session with other options",
                condition="SESSION_EXISTS",
                hint="write --master and --conf in the first cell, or restart the kernel",
            )
        options = line.options
        for name, paths in options.tables.items():
            self._session.register(name, paths, format=options.format(name))
        for name, path in options.streams.items():
            self._session.stream(name, path, **options.of_stream(name))
        return self._session

    def _run(
        self, session: Session, statements: list[ScriptStatement], line: MagicLine
    ) -> Relation | LiveQuery | None:
        """Run statements, display all results but the last, and return that; a live query itself."""
        parameters = values(session.spark, line.options.params)
        view = PrintOptions(line.at, line.envelope if line.live is None else None, line.key)
        last: Relation | LiveQuery | None = None
        with Progress(visible=False) as progress:
            for statement in statements:
                with at_its_place(statement, line.options):
                    relation = view.of(session.sql(statement.padded, **parameters), statement)
                    is_last = statement is statements[-1]
                    if is_last and line.live is not None:
                        return watch(
                            relation,
                            envelope=line.envelope,
                            limit=ROWS if line.limit is None else line.limit,
                            checkpoint=line.live.checkpoint,
                            trigger=line.live.as_spark,
                        )
                    if statement.is_silent or not _has_rows(relation):
                        continue
                    last = relation
                    output = Output(line.format, line.output, line.limit)
                    if is_last and line.output is not None:
                        write_rows(relation, statement, output, line.output, progress)
                    elif line.format is not Format.TABLE:
                        print_rows(relation, statement, output, progress)
                        sys.stdout.flush()
                    else:
                        last = relation if line.limit is None else relation.first(line.limit)
                        if not is_last:
                            _display(last)
                    if is_last and line.picture is not None:
                        draw_picture(relation, line.picture)
        return last

    @contextmanager
    def _displayed_errors(self) -> Iterator[None]:
        try:
            yield
        except WindrowError as error:
            _display(error)
            raise ShownError(error) from None


def _display(item: object) -> None:
    display(item)  # type: ignore[no-untyped-call] # IPython's


def _has_rows(relation: Relation) -> bool:
    return isinstance(relation, LiveRelation) or bool(relation.df.columns)

"""Compound statements with clauses of ours: their statements run one by one.

So windows read what the statements before them make. Spark reads the whole text before anything runs, and
decides conditions: ``IF c THEN … END IF`` is asked for as ``BEGIN IF c THEN SELECT 0; END IF; END``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar, assert_never

from pyspark.sql import DataFrame, Row

from windrow.algebra.names import piece_of
from windrow.errors import NotSupportedError, WindrowError
from windrow.relation import Relation
from windrow.spark.gateway import Gateway
from windrow.statements.definitions.stored_text import ddl
from windrow.statements.scripts.handled_conditions import CONDITIONS
from windrow.statements.scripts.script_variables import Variables, VariableScope
from windrow.syntax.compounds import (
    Block,
    Body,
    Branching,
    Declaration,
    ForLoop,
    Handler,
    Jump,
    Loop,
    Part,
    PlainStatement,
    stretches,
)
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import Piece, RelationText, SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["run_compound"]

RunText = Callable[[str], Relation]
_Answer = TypeVar("_Answer")

_NO_DROP = "UNSUPPORTED_FEATURE.SQL_SCRIPTING_DROP_TEMPORARY_VARIABLE"

_NAMED = re.compile(r"(?:label|variable|condition) `?(.+?)`? (?:is|can|not|does|already)", re.IGNORECASE)
"""How Spark's messages about a script as a whole name what is at fault."""


def run_compound(
    gateway: Gateway,
    tokens: TokenList,
    script: Block,
    run: RunText,
    decide: RunText,
    is_of_spark: Callable[[str], bool],
) -> Relation:
    """Run the statements, each to its end; the rows are those of the last query.

    Checked are the queries with which it begins: later statements may read what others make.

    Parameters
    ----------
    run, decide
        Run a statement, and a script that decides a condition.
    is_of_spark
        Whether Spark can read a part of the script as it is written.

    Raises
    ------
    WindrowError
        That of a statement that no handler is for; those before it have run.
    """
    _read_by_spark(gateway, tokens, script, is_of_spark)
    running = _Script(gateway, tokens, script, run, decide)
    if gateway.checks:
        queries = itertools.takewhile(
            lambda one: isinstance(one, PlainStatement) and one.is_query, script.body
        )
        running.body(tuple(queries))
    else:
        running.block(script)
    if running.answer is None:
        return Relation(gateway.spark.sql("SELECT 1 WHERE FALSE").select(), "a compound statement", gateway)
    return running.answer


def _read_by_spark(
    gateway: Gateway, tokens: TokenList, script: Block, is_of_spark: Callable[[str], bool]
) -> None:
    """Let Spark read the script, with other statements and conditions in place of those that it cannot read.

    Raises
    ------
    WindrowError
        What Spark says of labels, of the order of declarations, and of statements of its own.
    """
    found = sorted(stretches((script,)), key=lambda one: one[1])
    declared = {
        tokens[start + 1].name.upper()
        for part, (start, _) in found
        if isinstance(part, Declaration) and not part.names
    }
    ours = CONDITIONS.intersection(token.name.upper() for token in tokens.tokens if token.is_name) - declared
    conditions = [f"DECLARE {name} CONDITION; " for name in sorted(ours)]
    parts, done = [SqlText.of("BEGIN ", *conditions, "IF FALSE THEN ")], 0
    for part, (start, stop) in found:
        if is_of_spark(tokens.text(start, stop)):
            continue
        match part:
            case Declaration(names=names):
                instead = f"DECLARE {', '.join(map(quoted, names))} DEFAULT 1"
            case PlainStatement() | ForLoop():
                instead = "SELECT 1"
            case _:
                instead = "TRUE"
        span = tokens.span(start, stop)
        written = Piece(instead, tokens.sql, span.start, span.stop - span.start)
        parts += [piece_of(tokens, done, start, " "), SqlText.of(written, " ")]
        done = stop
    end = len(tokens) - tokens.is_symbol(len(tokens) - 1, ";")
    try:
        gateway.sql(SqlText.of(*parts, piece_of(tokens, done, end), "; END IF; END"))
    except WindrowError as error:
        named = _NAMED.search(error.message)
        name = "" if named is None else named[1].lower()
        at = next((at for at in reversed(range(end)) if tokens[at].name.lower() == name), None)
        if error.sql == tokens.sql and at is not None:  # else Spark names a line
            error.span = tokens[at].span
        raise


class _Jumped(Exception):  # noqa: N818 - it is no error
    """LEAVE or ITERATE, up to the block or loop with its label."""

    def __init__(self, jump: Jump) -> None:
        self.label, self.leaves = jump.label, jump.leaves


class _Exited(Exception):  # noqa: N818 - it has one
    """An error for which a block has a handler that ends it."""

    def __init__(self, scope: VariableScope, handler: Handler) -> None:
        self.scope, self.handler = scope, handler


@contextmanager
def _until_left(label: str) -> Iterator[None]:
    """A block with this label, which LEAVE ends."""
    try:
        yield
    except _Jumped as jump:
        if jump.label != label:
            raise


class _Script:
    """A compound statement that is being run; `answer` has the rows of the last query so far."""

    def __init__(
        self, gateway: Gateway, tokens: TokenList, script: Block, run: RunText, decide: RunText
    ) -> None:
        self.gateway, self.tokens, self.run, self.decide = gateway, tokens, run, decide
        self.variables = Variables(gateway, tokens)
        self.handlers: dict[VariableScope, list[Handler]] = {}
        self.answer: Relation | None = None
        is_handled = any(isinstance(part, Handler) for part in script.body)
        self.last = script.body[-1] if script.body and not is_handled else None

    def body(self, body: Body) -> None:
        for part in body:
            self.part(part)

    def part(self, part: Part) -> None:
        match part:
            case PlainStatement():
                with self.handled():
                    self.statement(part)
            case Declaration(names=()):
                pass  # handlers name conditions themselves
            case Declaration():
                (start, stop), after = part.range, part.after
                with self.handled(), self.variables.declaring(part.names):
                    names = piece_of(self.tokens, start, after, " ")
                    value = (after, stop)
                    self.run_text(lambda: SqlText.of(names, self.variables.written(value)), self.run)
            case Handler():
                pass  # its block has it from the beginning
            case Block():
                self.block(part)
            case Branching():
                self.choice(part)
            case Loop():
                self.loop(part)
            case ForLoop():
                self.for_loop(part)
            case Jump():
                raise _Jumped(part)
            case _:
                assert_never(part)

    # -- statements --------------------------------------------------------------------------------

    def run_text(self, write: Callable[[], SqlText], run: Callable[[str], _Answer]) -> _Answer:
        """Run what is written, again if a name with a label is no column of a relation but a variable."""
        self.variables.columns.clear()
        while True:
            try:
                with self.gateway.instead(write()) as read:
                    return run(read)
            except WindrowError as error:
                if not self.variables.is_no_column(error):
                    raise

    def statement(self, part: PlainStatement) -> None:
        """Run a statement; the answer is its rows, if it has some.

        Raises
        ------
        NotSupportedError
            ``UNSUPPORTED_FEATURE…`` for DROP TEMPORARY VARIABLE, as in Spark's own scripts.
        """
        start, stop = part.range
        first, second, third = (self.tokens.word(one) for one in range(start, start + 3))
        if first == "EXECUTE":  # its text reads no variables of the script
            with self.variables.outermost(1) as aside:
                self.answered(part, lambda: self.variables.written(part.range, aside))
        elif first == "DROP" and second in ("TEMP", "TEMPORARY") and third in ("VAR", "VARIABLE"):
            raise NotSupportedError(
                "DROP TEMPORARY VARIABLE is not supported in a script",
                condition=_NO_DROP,
                sql=self.tokens.sql,
                span=self.tokens.span(start, start + 3),
                hint="write EXECUTE IMMEDIATE 'DROP TEMPORARY VARIABLE …' for a variable of the session",
            )
        else:
            word = piece_of(self.tokens, start, start + 1, " VAR ") if part.sets else SqlText()
            rest = (start + part.sets, stop)
            self.answered(part, lambda: SqlText.of(word, self.variables.written(rest)))

    def answered(self, part: PlainStatement, write: Callable[[], SqlText]) -> None:
        """Run what is written for a statement."""
        found = self.run_text(write, self.run)
        if part.is_query and found.columns:
            # Connect reads the text again when rows are asked for, and then its variables are gone
            is_lazy = self.gateway.checks or (part is self.last and not self.gateway.is_connect)
            self.answer = found if is_lazy else self.computed(found)

    def computed(self, query: Relation) -> Relation:
        """The rows of a query as they are before the statements after it run."""
        with self.gateway.translated():
            rows = query.df.localCheckpoint()
        return Relation(rows, query.plan(), self.gateway)

    # -- control flow ------------------------------------------------------------------------------

    def block(self, part: Block) -> None:
        with self.variables.scope(part.label) as scope, _until_left(part.label):
            if own := [one for one in part.body if isinstance(one, Handler)]:
                self.handlers[scope] = own
            try:
                self.body(part.body)
            except _Exited as exited:
                if exited.scope is not scope:
                    raise
                del self.handlers[scope]
                self.part(exited.handler.body)

    def choice(self, part: Branching) -> None:
        def write() -> SqlText:
            texts, done = list[SqlText](), part.range[0]
            for number, ((start, stop), _) in enumerate(part.bodies):
                texts.append(SqlText.of(self.variables.written((done, start)), f" SELECT {number}; "))
                done = stop
            return SqlText.of(*texts, self.variables.written((done, part.range[1])))

        chosen = self.decided(write)
        if chosen is not None and chosen >= 0:
            self.body(part.bodies[chosen][1])

    def decided(self, write: Callable[[], SqlText]) -> int | None:
        """The number that an IF or CASE selects, -1 for none; None if a handler was for an error in it."""

        def rows(read: str) -> list[Row]:
            found = self.decide(read)
            with self.gateway.translated():
                return found.df.collect()

        chosen = None
        with self.handled():
            found = self.run_text(lambda: SqlText.of("BEGIN ", write(), "; END"), rows)
            chosen = int(found[0][0]) if found else -1
        return chosen

    def loop(self, part: Loop) -> None:
        while part.condition is None or part.ends or self.holds(part.condition):
            if self.leaves(part.label, part.body):
                return
            if part.condition is not None and part.ends and self.holds(part.condition) is not False:
                return

    def holds(self, condition: Range) -> bool | None:
        chosen = self.decided(
            lambda: SqlText.of("IF ", self.variables.written(condition), " THEN SELECT 0; END IF")
        )
        return None if chosen is None else chosen == 0

    def leaves(self, label: str, body: Body) -> bool:
        """Run the body of a loop once; whether LEAVE ends the loop."""
        try:
            self.body(body)
        except _Jumped as jump:
            if jump.label != label:
                raise
            return jump.leaves
        return False

    def for_loop(self, part: ForLoop) -> None:
        """Run the body for each row, of which the columns are variables."""
        rows, count = None, 0
        with self.handled(), self.gateway.translated():
            rows = self.run_text(lambda: self.variables.written(part.query), self.run).df.localCheckpoint()
            count = rows.count()
        for place in range(count):
            assert rows is not None
            with self.variables.scope(part.row):
                self.declare(rows.offset(place).limit(1))
                if self.leaves(part.label, part.body):
                    return

    def declare(self, row: DataFrame) -> None:
        """Variables with the names, types and values of the columns of a row."""
        names = [quoted(one.name) for one in row.schema.fields]
        for name, one in zip(names, row.schema.fields, strict=True):
            with self.variables.declaring([one.name]):
                self.gateway.sql(SqlText.of(f"DECLARE VARIABLE {name} {ddl(one.dataType)}"))
        text = SqlText.of(f"SET VAR ({', '.join(names)}) = (SELECT * FROM ", RelationText("row"), ")")
        self.gateway.sql(text, {"row": row})

    # -- errors ------------------------------------------------------------------------------------

    @contextmanager
    def handled(self) -> Iterator[None]:
        """What may fail: the handler of the innermost block that has one for the error.

        Raises
        ------
        WindrowError
            Without a handler.
        _Exited
            With one that ends its block.
        """
        try:
            yield
        except WindrowError as error:
            scopes = self.variables.scopes
            found = ((one, self.handler(one, error)) for one in reversed(scopes))
            scope, handler = next(((one, own) for one, own in found if own is not None), (None, None))
            if scope is None or handler is None:
                raise
            if not handler.goes_on:
                raise _Exited(scope, handler) from error
            inner = scopes[scopes.index(scope) :]
            asleep = {one: self.handlers.pop(one) for one in inner if one in self.handlers}
            with self.variables.outermost(scopes.index(scope) + 1):
                self.part(handler.body)
            self.handlers |= asleep

    def handler(self, scope: VariableScope, error: WindrowError) -> Handler | None:
        """The handler of a block for an error: of its condition, its SQLSTATE, or its class."""
        state, own = error.sqlstate, self.handlers.get(scope, [])
        kind = "NOT FOUND" if state.startswith("02") else "SQLEXCEPTION"
        names = (error.condition, error.condition.partition(".")[0])
        of_condition = [one for name in names for one in own if name in one.conditions]
        of_state = [one for one in own if state in one.states]
        of_class = [one for one in own if kind in one.conditions and not state.startswith("XX")]
        return next(iter([*of_condition, *of_state, *of_class]), None)

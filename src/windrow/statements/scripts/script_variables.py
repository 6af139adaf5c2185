"""The variables of a compound statement: variables of Spark's session, while their block runs.

    DECLARE x INT = 1;                  -- of the session
    BEGIN                               BEGIN
      DECLARE x INT = 2;          →       x gets another name; DECLARE x INT = 2
      SELECT x, outer.x                   SELECT x, session.__windrow_variable_1
    END                                   x is dropped, and the other one is x again

So Spark itself knows which names are columns and which are variables.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from windrow.algebra.names import piece_of
from windrow.errors import Span, WindrowError
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.variables import is_case_sensitive, rename_variable
from windrow.statements.definitions.stored_text import names_of_relations
from windrow.statements.scripts.variables_on_connect import VariablesOnConnect
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenKind, TokenList

__all__ = ["VariableScope", "Variables"]

_SESSION = "session"
_OF_FUNCTIONS = re.compile(r"(col\d*|pos|key|value|id)")
"""The names that columns of Spark's table functions have without aliases."""
_numbers = itertools.count(1)


@dataclass(eq=False)
class VariableScope:
    """A block, or a row of FOR.

    Attributes
    ----------
    label
        Its label, in small letters; empty without one.
    names
        The names of its variables in Spark's session, by their own.
    hidden
        The scopes of the variables of which its own hide the names.
    """

    label: str
    names: dict[str, str] = field(default_factory=dict)
    hidden: dict[str, VariableScope] = field(default_factory=dict)


class Variables:
    """The variables of the blocks that are being run, the innermost last.

    Attributes
    ----------
    columns
        Where in the text a name with a label may be a column of a relation, and whether it is read as one.
    """

    def __init__(self, gateway: Gateway, tokens: TokenList) -> None:
        self.gateway, self.tokens = gateway, tokens
        self.scopes = [VariableScope(_SESSION)]
        self.columns: dict[int, bool] = {}
        self.is_case_sensitive = is_case_sensitive(gateway.spark)
        self.on_connect = VariablesOnConnect(gateway)

    def folded(self, name: str) -> str:
        """A name as Spark compares it."""
        return name if self.is_case_sensitive else name.lower()

    @contextmanager
    def scope(self, label: str) -> Iterator[VariableScope]:
        """A scope, at the end of which its variables are dropped."""
        scope = VariableScope(label)
        self.scopes.append(scope)
        try:
            yield scope
        finally:
            for name in scope.names:
                self.gateway.sql(SqlText.of(f"DROP TEMPORARY VARIABLE IF EXISTS {quoted(name)}"))
            self.on_connect.forget(scope.names)
            self.scopes.pop()
            self._uncover(scope)

    @contextmanager
    def declaring(self, names: Sequence[str]) -> Iterator[None]:
        """The declaration of variables in the innermost scope, for which others leave their names."""
        own = [self.folded(name) for name in names]
        self._hide([name for name in own if name not in self.scopes[-1].names])
        yield
        self.scopes[-1].names |= {name: name for name in own}

    @contextmanager
    def outermost(self, count: int) -> Iterator[list[VariableScope]]:
        """Only so many scopes; the variables of the inner ones, which are returned, have other names."""
        inner, self.scopes = self.scopes[count:], self.scopes[:count]
        for scope in reversed(inner):
            scope.names |= self._aside(scope.names)
            self._uncover(scope)
        self.on_connect.forget(name for scope in inner for name in scope.hidden)
        try:
            yield inner
        finally:
            for scope in inner:
                self.scopes.append(scope)
                self._hide(scope.names)
                self._rename({aside: name for name, aside in scope.names.items()})
                scope.names = {name: name for name in scope.names}

    def _rename(self, names: Mapping[str, str]) -> dict[str, str]:
        """Give variables other names; the names of those that are there."""
        if self.gateway.is_connect:
            return self.on_connect.rename(names)
        spark = self.gateway.spark
        return {name: other for name, other in names.items() if rename_variable(spark, name, other)}

    def _aside(self, names: Iterable[str]) -> dict[str, str]:
        """Rename variables; the names that those have then which are there."""
        return self._rename({name: f"__windrow_variable_{next(_numbers)}" for name in names})

    def _hide(self, names: Iterable[str]) -> None:
        """The variables with these names leave them to those of the innermost scope."""
        for name, aside in self._aside(names).items():
            around = (one for one in reversed(self.scopes[:-1]) if name in one.names)
            owner = next(around, self.scopes[0])
            owner.names[name] = aside
            self.scopes[-1].hidden[name] = owner

    def _uncover(self, scope: VariableScope) -> None:
        """The variables that a scope hides have their names again."""
        self._rename({owner.names[name]: name for name, owner in scope.hidden.items()})
        for name, owner in scope.hidden.items():
            owner.names[name] = name
        scope.hidden = {}

    def written(self, part: Range, aside: Sequence[VariableScope] = ()) -> SqlText:
        """A stretch, in which variables with labels, and those that have left their names, have new ones.

        These are the variables that a declaration hides, and, in EXECUTE IMMEDIATE, those of scopes `aside`.
        """
        tokens, words = self.tokens, dict[Span, str]()
        using = self._using(part)
        arguments = self._arguments(using, part[1]) if aside else {}
        for at in range(*part):
            first = at
            if (
                tokens.is_symbol(at - 1, ".")
                and tokens.word(at) == "SESSION"
                and tokens.word(at - 2) == "SYSTEM"
            ):
                first = at - 2
            if not tokens.is_name(at) or tokens.is_symbol(first - 1, ".") or tokens.is_symbol(at + 1, "("):
                continue
            is_pair = tokens.is_symbol(at + 1, ".") and tokens.is_name(at + 2) and at + 2 < part[1]
            stop = at + 3 if is_pair else at + 1
            found = self._labelled(part, at, aside) if is_pair else self._hidden(at)
            if found is None and not self._is_part(at):
                found, stop = _named(aside, self.folded(tokens[at].name)), at + 1
            if found is not None:
                name = tokens[stop - 1].name
                alias = f" AS {quoted(name)}" if arguments.get(name) == (first, stop) else ""
                is_copied = aside and self.gateway.is_connect and at >= using
                variable = self.on_connect.argument(found) if is_copied else f"{_SESSION}.{quoted(found)}"
                words[tokens.span(first, stop)] = f"{variable}{alias}"
        return piece_of(tokens, *part).with_words(tokens.sql, words)

    def _is_part(self, at: int) -> bool:
        """Whether a name is an alias or a type after AS, or a part of ``DATE '…'`` or ``INTERVAL 1 DAY``."""
        is_unit = self.tokens.word(at - 2) == "INTERVAL"
        is_type = at + 1 < len(self.tokens) and self.tokens[at + 1].kind is TokenKind.STRING
        return is_unit or is_type or self.tokens.word(at - 1) == "AS"

    def _using(self, part: Range) -> int:
        """Where the arguments of EXECUTE IMMEDIATE begin."""
        return next((at + 1 for at in self.tokens.level(*part) if self.tokens.word(at) == "USING"), part[1])

    def _arguments(self, start: int, end: int) -> dict[str, Range]:
        """The arguments of EXECUTE IMMEDIATE by their last words, as its text may use names of variables."""
        in_brackets = self.tokens.is_symbol(start, "(") and self.tokens.partner[start] == end - 1
        found = self.tokens.split(start + in_brackets, end - in_brackets)
        return {self.tokens[stop - 1].name: (first, stop) for first, stop in found if first < stop}

    def _labelled(self, part: Range, at: int, aside: Sequence[VariableScope]) -> str | None:
        """The name of a variable with its label; it is first read as a column if relations may have one."""
        tokens = self.tokens
        label, name = tokens[at].name.lower(), self.folded(tokens[at + 2].name)
        found = _named([one for one in (*self.scopes, *aside) if one.label == label], name)
        may_be_column = found is not None and self._names_more(part, label)
        return None if may_be_column and self.columns.setdefault(tokens[at].start, True) else found

    def _names_more(self, part: Range, label: str) -> bool:
        """Whether a label is also a name for a relation or column in a stretch."""
        tokens = self.tokens
        is_written = any(
            tokens.is_name(one) and tokens[one].name.lower() == label and not tokens.is_symbol(one + 1, ".")
            for one in range(*part)
        )
        if is_written or _OF_FUNCTIONS.fullmatch(label):
            return True
        names = (".".join(map(quoted, one.parts)) for one in names_of_relations(tokens, part))
        return any(label in self._columns_of(name) for name in names)

    def _columns_of(self, relation: str) -> set[str]:
        """The columns of a table or view, in lower case; none of those that are not there."""
        try:
            with self.gateway.translated():
                return set(map(str.lower, self.gateway.spark.table(relation).columns))
        except WindrowError:
            return set()

    def is_no_column(self, error: WindrowError) -> bool:
        """Whether an error is of a column that is missing, in place of which a variable is read from now."""
        is_about_column = error.sqlstate in ("42703", "42883") and error.sql == self.tokens.sql
        at = error.span.start if is_about_column and error.span is not None else -1
        found = self.columns.get(at, False)
        self.columns[at] = False
        return found

    def _hidden(self, at: int) -> str | None:
        """The name of a variable of which another one, that is being declared, has the name."""
        name, scope = self.folded(self.tokens[at].name), self.scopes[-1]
        is_open = name in scope.hidden and name not in scope.names
        return scope.hidden[name].names[name] if is_open else None


def _named(scopes: Sequence[VariableScope], name: str) -> str | None:
    """The name in Spark's session of the variable of a name; the last scope is the innermost."""
    return next((one.names[name] for one in reversed(scopes) if name in one.names), None)

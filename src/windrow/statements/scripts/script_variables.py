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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from windrow.algebra.names import piece_of
from windrow.errors import Span
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.variables import is_case_sensitive, rename_variable
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList

__all__ = ["VariableScope", "Variables"]

_SESSION = "session"
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
    """The variables of the blocks that are being run, the innermost last."""

    def __init__(self, gateway: Gateway, tokens: TokenList) -> None:
        self.gateway, self.tokens = gateway, tokens
        self.scopes = [VariableScope(_SESSION)]
        self.is_case_sensitive = is_case_sensitive(gateway.spark)

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
            self.scopes.pop()
            for name, owner in scope.hidden.items():
                rename_variable(self.gateway.spark, owner.names[name], name)
                owner.names[name] = name

    @contextmanager
    def declaring(self, names: Sequence[str]) -> Iterator[None]:
        """The declaration of variables in the innermost scope, for which others leave their names."""
        scope = self.scopes[-1]
        own = [self.folded(name) for name in names]
        for name in own:
            around = (one for one in reversed(self.scopes[:-1]) if name in one.names)
            aside = f"__windrow_variable_{next(_numbers)}"
            if name not in scope.names and rename_variable(self.gateway.spark, name, aside):
                scope.hidden[name] = next(around, self.scopes[0])
                scope.hidden[name].names[name] = aside
        yield
        scope.names |= {name: name for name in own}

    @contextmanager
    def without(self, scopes: Sequence[VariableScope]) -> Iterator[None]:
        """Variables that the innermost scopes hide have their names again."""
        hidden = [(name, owner) for scope in scopes for name, owner in scope.hidden.items()]
        for name, owner in reversed(hidden):
            self._swap(name, owner)
        try:
            yield
        finally:
            for name, owner in hidden:
                self._swap(name, owner)

    def _swap(self, name: str, owner: VariableScope) -> None:
        """The variable of this name and the one that it hides change names."""
        spark, aside = self.gateway.spark, owner.names[name]
        for old, new in ((name, f"{aside}_"), (aside, name), (f"{aside}_", aside)):
            rename_variable(spark, old, new)

    def hidden_of_session(self) -> list[str]:
        """The names of variables of the session that variables of the script hide."""
        return [name for one in self.scopes for name, owner in one.hidden.items() if owner is self.scopes[0]]

    def written(self, part: Range) -> SqlText:
        """A stretch, in which variables with labels, and those that a declaration hides, have their names."""
        tokens, words = self.tokens, dict[Span, str]()
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
            found = self._labelled(part, at) if is_pair else self._hidden(at)
            if found is not None:
                words[tokens.span(first, at + 3 if is_pair else at + 1)] = f"{_SESSION}.{quoted(found)}"
        return piece_of(tokens, *part).with_words(tokens.sql, words)

    def _labelled(self, part: Range, at: int) -> str | None:
        """The name of a variable that stands with its label; columns of a relation of this name hide it."""
        tokens = self.tokens
        label, name = tokens[at].name.lower(), self.folded(tokens[at + 2].name)
        is_relation = any(
            tokens.is_name(one)
            and tokens[one].name.lower() == label
            and not tokens.is_symbol(one + 1, ".")
            and not self._is_later_alias(part, at, one)
            for one in range(*part)
        )
        scopes = (one for one in reversed(self.scopes) if one.label == label and name in one.names)
        return None if is_relation else next((one.names[name] for one in scopes), None)

    def _is_later_alias(self, part: Range, at: int, alias: int) -> bool:
        """Whether a name follows AS in the SELECT list in which another one stands before it."""
        tokens = self.tokens
        level = (
            one for one in range(alias - 1, part[0] - 1, -1) if tokens.parent[one] == tokens.parent[alias]
        )
        begin = next((one for one in level if tokens.word(one) in ("SELECT", "FROM")), -1)
        is_selected = tokens.word(begin) == "SELECT" and begin < at < alias
        return is_selected and tokens.word(alias - 1) == "AS"

    def _hidden(self, at: int) -> str | None:
        """The name of a variable of which another one, that is being declared, has the name."""
        name, scope = self.folded(self.tokens[at].name), self.scopes[-1]
        is_open = name in scope.hidden and name not in scope.names
        return scope.hidden[name].names[name] if is_open else None

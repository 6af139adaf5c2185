"""Types conditions over several rows that compute with them, by functions that the kernel supports."""

from __future__ import annotations

from functools import cached_property

from windrow.algebra.physical import DraftColumns
from windrow.kernels import window_plan
from windrow.rules.hoister import Guards, Hoister, NotTypedError
from windrow.rules.typed_pair_functions import Functions
from windrow.rules.types import is_decimal
from windrow.syntax.expression_nodes import Call, Expression, OperationNode
from windrow.syntax.nodes import Range

__all__ = ["Attempt", "PairConditions"]


class Attempt:
    """A context in which a part is typed, or the `reason` why it cannot be."""

    def __init__(self, columns: DraftColumns) -> None:
        self.columns, self.reason = columns, ""
        self.before = dict(columns.hoisted), dict(columns.constants)

    def __enter__(self) -> Attempt:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, NotTypedError):
            return False
        self.reason = str(error)
        self.columns.hoisted, self.columns.constants = self.before
        return True


class PairConditions(Hoister):
    """Types one expression over row variables; functions of several rows by :class:`Functions`."""

    @cached_property
    def functions(self) -> Functions:
        """The functions that the kernel supports."""
        return Functions(self)

    @cached_property
    def failed(self) -> dict[Range, str]:
        """Why parts could not be typed: they are tried in several ways, each time with all their parts."""
        return {}

    def convert(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """As usual, or else by a function that the kernel supports."""
        if expression.range in self.failed:
            raise NotTypedError(self.failed[expression.range])
        with self.attempt() as first:
            return super().convert(expression, guards)
        with self.attempt() as other:
            return self.otherwise(expression, guards, first.reason)
        self.failed[expression.range] = other.reason
        raise NotTypedError(other.reason)

    def otherwise(self, expression: Expression, guards: Guards, reason: str) -> window_plan.PairExpression:
        """The alternative for a part that could not be converted as usual, for this reason."""
        with self.attempt() as second:
            return self.functions.typed(expression, guards)
        raise NotTypedError(second.reason if _computes(expression) else reason)

    def negated(self, expression: Expression, guards: Guards) -> window_plan.PairExpression:
        """As usual, or else by a function that the kernel supports."""
        with self.attempt() as first:
            return super().negated(expression, guards)
        with self.attempt():
            return self.functions.typed(expression, guards)
        raise NotTypedError(first.reason)

    def attempt(self) -> Attempt:
        """Type a part; if that fails, remove the columns that it added."""
        return Attempt(self.columns)

    def is_for_kernel(self, *_parts: Expression) -> bool:
        """Whether the kernel should compute with values of these parts, whatever their types."""
        return True

    def comparison(
        self, operator: str, operands: tuple[Expression, ...], guards: Guards
    ) -> window_plan.PairExpression:
        """As usual; or else with values that are computed from several rows."""
        with self.attempt() as first:
            return super().comparison(operator, operands, guards)
        if not self.is_for_kernel(*operands):
            raise NotTypedError(first.reason)
        return self.functions.comparison(operator, operands, guards)

    def has_values(self, kind: str) -> bool:
        """As usual; texts and decimals are Python objects."""
        return super().has_values(kind) or kind == "string" or is_decimal(kind)

    def is_made(self, _expression: Expression) -> bool:
        """Whether the part is not a column of a row: all are."""
        return False


def _computes(expression: Expression) -> bool:
    return isinstance(expression, Call) or (
        isinstance(expression, OperationNode)
        and expression.operator in ("+", "-", "*", "/", "%", "DIV", "NEG", "||", "LIKE")
    )

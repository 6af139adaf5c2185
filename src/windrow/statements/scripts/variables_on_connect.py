"""Variables of a session of Spark Connect get other names by SQL: others are declared, and get their values.

    x becomes y   →   DECLARE VARIABLE y INT DEFAULT 5; SET VAR y = x; DROP TEMPORARY VARIABLE x

Only a default that is no constant has another text afterwards; Spark refuses to set variables to either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from windrow.errors import WindrowError
from windrow.spark.gateway import Gateway
from windrow.statements.definitions.stored_text import ddl, literal
from windrow.statements.scripts.values_on_connect import read_value, written_value
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["VariablesOnConnect"]

_CHANGING = "if(rand() < 0, NULL, NULL)"
"""A default that Spark refuses to evaluate again, as those that are no constants."""


class VariablesOnConnect:
    """Those of a session, by their names.

    Attributes
    ----------
    definitions
        The types and defaults of those that were renamed, by the names that they have now.
    """

    def __init__(self, gateway: Gateway) -> None:
        self.gateway = gateway
        self.definitions: dict[str, tuple[str, str]] = {}

    def rename(self, names: Mapping[str, str]) -> dict[str, str]:
        """Give variables, with their values and defaults, other names; the names of those that are there."""
        found = {name: other for name, other in names.items() if self._is_defined(name)}
        if not found:
            return {}
        statements = list[str]()
        for name, other in found.items():
            kind, default = self.definitions[other] = self.definitions.pop(name)
            declared = literal(f"DECLARE VARIABLE {quoted(other)} {kind} DEFAULT {default}")
            dropped = literal(f"DROP TEMPORARY VARIABLE {quoted(name)}")
            statements += [
                f"EXECUTE IMMEDIATE {declared}",
                f"SET {_variable(other)} = {_variable(name)}",
                f"EXECUTE IMMEDIATE {dropped}",
            ]
        self._script(statements)
        return found

    def argument(self, name: str) -> str:
        """A variable as an argument of EXECUTE IMMEDIATE; Spark fails for nested values that SET has made."""
        kind = self._type(name)
        if not isinstance(kind, ArrayType | MapType | StructType):
            return _variable(name)
        found = self.gateway.sql(SqlText.of(f"SELECT {read_value(_variable(name), kind)}"))
        with self.gateway.translated():
            return written_value(found.collect()[0][0], kind)

    def forget(self, names: Iterable[str]) -> None:
        """Others may declare variables with these names from now."""
        for name in names:
            self.definitions.pop(name, None)

    def _is_defined(self, name: str) -> bool:
        if name not in self.definitions:
            kind = self._type(name)
            if kind is None:
                return False
            self.definitions[name] = ddl(kind), self._default(name, kind)
        return True

    def _type(self, name: str) -> DataType | None:
        try:
            with self.gateway.translated():
                return self.gateway.spark.range(1).selectExpr(_variable(name)).schema[0].dataType
        except WindrowError as error:
            if error.sqlstate != "42703":
                raise
            return None

    def _default(self, name: str, kind: DataType) -> str:
        """The default, which Spark does not show, but to which it sets a variable."""
        variable = _variable(name)
        statements = [
            f"DECLARE kept = {variable}",
            f"SET {variable} = DEFAULT",
            f"SELECT {read_value(variable, kind)}",
            f"SET {variable} = kept",
        ]
        try:
            with self.gateway.translated():
                value = self._script(statements).collect()[0][0]
        except WindrowError as error:
            if not error.condition.startswith("INVALID_DEFAULT_VALUE"):
                raise
            return _CHANGING
        return written_value(value, kind)

    def _script(self, statements: list[str]) -> DataFrame:
        return self.gateway.sql(SqlText.of("BEGIN ", *(f"{one}; " for one in statements), "END"))


def _variable(name: str) -> str:
    return f"session.{quoted(name)}"

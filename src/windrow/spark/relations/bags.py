"""Time-varying bags of rows: results of kernels that count rows by value, and tables as such bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from windrow.algebra.time_scale import NEVER
from windrow.kernels.zset.relation import ENTER, LEAVE, PARTNER
from windrow.plan.arrow_types import contains, is_orderable
from windrow.spark.gateway import Gateway
from windrow.spark.relations.time_varying_relation import TimeVarying
from windrow.spark.tasks.keyed import run_keyed

__all__ = ["BagRows", "Bags", "compared", "inner"]


@dataclass(frozen=True)
class BagRows:
    """The rows of a node: its columns by their ids, then `ENTER` and `LEAVE` if they are time-varying."""

    frame: DataFrame
    is_temporal: bool

    @property
    def columns(self) -> list[str]:
        """All columns but the times."""
        return [name for name in self.frame.columns if name not in (ENTER, LEAVE)]


@dataclass(frozen=True)
class Bags:
    """The relations of one statement, by key.

    Attributes
    ----------
    gateway
        The session.
    inputs
        Its time-varying inputs.
    """

    gateway: Gateway
    inputs: Mapping[str, TimeVarying]

    def origin(self) -> int | None:
        """The logs' first instant, None if they are empty."""
        if self.gateway.plan_only:
            return 0
        firsts = [ends[0] for item in self.inputs.values() if (ends := item.ends) is not None]
        return min(firsts, default=None)

    def temporal(self, rows: BagRows) -> BagRows:
        """The rows of a table exist from the log's first instant on."""
        return rows if rows.is_temporal else BagRows(self.from_beginning(rows.frame), is_temporal=True)

    def from_beginning(self, table: DataFrame) -> DataFrame:
        """The rows of a table from the logs' first instant on; empty without a log."""
        if self.gateway.operators is not None:
            return table.crossJoin(self.gateway.operators.beginning())
        origin = self.origin()
        times = {ENTER: F.lit(origin or 0).cast("bigint"), LEAVE: F.lit(NEVER).cast("bigint")}
        whole = table.withColumns(times)
        return whole if origin is not None else whole.limit(0)

    def counted(self, operator: str, frames: Sequence[DataFrame]) -> BagRows:
        """Rows with the multiplicity that the operator computes from their counts on either side.

        The sides have the same columns.
        """
        schema = inner(frames[0])
        names, sides = schema.names, [frame.select(*schema.names, ENTER, LEAVE) for frame in frames]
        texts = {
            f"__text{number}": compared(field)
            for number, field in enumerate(schema)
            if not is_orderable(field.dataType)
        }
        sides = [side.withColumns(texts) for side in sides] if texts else sides
        keys = [name for name in names if is_orderable(schema[name].dataType)]
        found = run_keyed(self.gateway, operator, sides, [*keys, *texts], inner(sides[0]))
        return BagRows(found.select(*names, ENTER, LEAVE) if texts else found, is_temporal=True)

    def partnered(
        self, operator: str, rows: DataFrame, keys: Mapping[str, Column], partners: DataFrame
    ) -> DataFrame:
        """The rows while a partner has their keys (``semi``), while none has (``anti``), or with `PARTNER`.

        Parameters
        ----------
        keys
            Their keys, by the names that the partners have for these. NULL equals NULL.
        partners
            The keys of the other side, or any column if there are none, and the times.
        """
        if self.gateway.operators is not None:  # the state of the partners is then a count of each key
            partners = self.counted("distinct", [partners]).frame
        result = StructType([*inner(rows)])
        if operator == "mark":
            result.add(PARTNER, BooleanType())
        return run_keyed(self.gateway, operator, [rows.withColumns({**keys}), partners], [*keys], result)


def compared(field: StructField) -> Column:
    """A value that is equal for copies of a value: Spark cannot compare maps and variants."""
    value = F.col(field.name)
    if is_orderable(field.dataType):
        return value
    return F.to_json(F.struct(value)) if contains(field.dataType, "variant") else value.cast("string")


def inner(frame: DataFrame) -> StructType:
    """The columns of a frame but for the times."""
    return StructType([field for field in frame.schema if field.name not in (ENTER, LEAVE)])

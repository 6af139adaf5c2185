"""The result of a query, and everything one can ask of it."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame

from windrow.spark.gateway import Gateway

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa
    from pyspark.sql import Row

__all__ = ["Relation"]

_HTML_ROWS = 20


class Relation:
    """A query's result, computed when it is asked for.

    Attributes
    ----------
    df
        The result as a Spark DataFrame; everything that Spark can do with one is open.
    """

    def __init__(self, df: DataFrame, plan: str, gateway: Gateway, *, is_plan: bool = False) -> None:
        self.df = df
        self._is_plan = is_plan
        self._plan = plan
        self._gateway = gateway

    def show(self, n: int = 20, truncate: bool | int = True) -> None:
        """Print the first `n` rows as a table; long values are cut unless `truncate` is False."""
        if self._is_plan:
            print(self._plan)  # noqa: T201 - a table would break its lines
            return
        with self._gateway.translated():
            self.df.show(n, truncate)

    def collect(self) -> list[Row]:
        """All rows, on the driver."""
        with self._gateway.translated():
            return self.df.collect()

    def to_arrow(self) -> pa.Table:
        """All rows as an Arrow table, on the driver."""
        with self._gateway.translated():
            return self.df.toArrow()

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame, on the driver."""
        with self._gateway.translated():
            return self.df.toPandas()

    def explain(self, spark: bool = False) -> None:
        """Print how the query is run; with `spark`, Spark's own plan after it."""
        print(self.plan(spark))  # noqa: T201 - it is what one calls it for

    def plan(self, spark: bool = False) -> str:
        """The text that :meth:`explain` prints."""
        if not spark:
            return self._plan
        return f"{self._plan}\n\n{self._gateway.spark_plan(self.df, 'formatted')}"

    def _repr_html_(self) -> str:
        if self._is_plan:
            return f"<pre>{html.escape(self._plan)}</pre>"
        with self._gateway.translated():
            rows = self.df.limit(_HTML_ROWS + 1).collect()
        names = self.df.columns
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{''.join(_cell(value) for value in row)}</tr>" for row in rows[:_HTML_ROWS])
        more = f"<p>first {_HTML_ROWS} rows</p>" if len(rows) > _HTML_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        columns = ", ".join(
            f"{field.name}: {field.dataType.simpleString()}" for field in self.df.schema.fields
        )
        return f"Relation[{columns}]"


def _cell(value: Any) -> str:
    return f"<td>{'NULL' if value is None else html.escape(str(value))}</td>"

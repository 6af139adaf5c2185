"""Flink SQL on one case, by a Python that has PyFlink: ``PYTHON flink.py QUERY DECLARATION ...``.

It prints the seconds from the first declaration to the end of the query. The sink is Flink's black hole.
"""

from __future__ import annotations

import json
import sys
import time

from pyflink.table import (  # type: ignore[import-not-found]
    EnvironmentSettings,
    TableEnvironment,
)

_KINDS = {"VarCharType": "STRING", "CharType": "STRING", "DoubleType": "DOUBLE", "BigIntType": "BIGINT",
          "IntType": "INT"}  # fmt: skip


def main(query: str, declarations: list[str]) -> float:
    """The seconds that it takes to declare the tables and to run the query over them."""
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    tables.get_config().set("parallelism.default", "2")
    begun = time.perf_counter()
    for declaration in declarations:
        tables.execute_sql(declaration)
    tables.execute_sql(f"CREATE TEMPORARY VIEW answer AS {query}")
    kinds = tables.from_path("answer").get_schema().to_row_data_type()
    fields = ", ".join(f"`{field.name}` {_sql(field.data_type)}" for field in kinds.fields)
    tables.execute_sql(f"CREATE TABLE nowhere ({fields}) WITH ('connector' = 'blackhole')")
    tables.execute_sql("INSERT INTO nowhere SELECT * FROM answer").wait()
    return time.perf_counter() - begun


def _sql(kind: object) -> str:
    name = type(kind).__name__
    if name == "DecimalType":
        return f"DECIMAL({kind.precision}, {kind.scale})"  # type: ignore[attr-defined]
    return _KINDS.get(name, "TIMESTAMP(3)")


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2:])))  # noqa: T201

"""A column that only Spark computes, from rows and other relations in the same interval of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql.types import LongType

from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.columns import ROWS, Column
from windrow.plan.nodes import TIMES, Node, Pieces
from windrow.plan.reader.query_rows import BlockRows
from windrow.plan.reader.statement_text import StatementText
from windrow.plan.reasons import Reason
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import RelationText, SqlText

__all__ = ["extended_by_spark", "rows_at"]

_TIMES = Column(ENTER, ENTER, LongType()), Column(LEAVE, LEAVE, LongType())


def extended_by_spark(
    statement: StatementText, rows: BlockRows, stretch: Range, beside: Mapping[str, Node], why: Reason
) -> tuple[BlockRows, str]:
    """The rows with a column for an expression that contains other relations; and that column."""
    own = [SqlText.of(f"{ROWS}.{column.id}") for column in rows.node.columns]
    scope = rows.scope(statement.prefix(stretch[0]))
    value = SqlText.of("(", statement.text(stretch), ")")
    before, after = SqlText.of(scope.prefix, "SELECT ", SqlText.join(", ", [*own, value])), scope.source()
    others = {key: (*node.columns, *_TIMES) for key, node in beside.items()}
    whole = SqlText.of(before, f", {TIMES}", after)
    kind = statement.analyser.schema(whole, (*rows.node.columns, *_TIMES), others)[len(own)].dataType
    (made,) = statement.fresh(1)
    label = statement.written(stretch)
    columns = (*rows.node.columns, Column(made, label, kind))
    passes = tuple((one.id, one.id) for one in rows.node.columns)
    node = Pieces(
        rows.node, tuple(beside.items()), (), (before, after), None, columns, why, label, False, passes
    )
    return replace(rows, node=node), made


def rows_at(relation: str, columns: Sequence[str], same: Sequence[tuple[str, str]]) -> SqlText:
    """The subquery that returns these columns of another relation in the interval of a row. Its rows are
    those whose values equal the row's in `same`: pairs of a column of the row and one of the relation.
    """
    listed = ", ".join(f"__r.{column}" for column in columns)
    equal = "".join(f" AND __r.{theirs} <=> {ROWS}.{mine}" for mine, theirs in same)
    at = f"__r.{ENTER} = {ROWS}.{ENTER}"
    return SqlText.of(f"(SELECT {listed} FROM ", RelationText(relation), f" AS __r WHERE {at}{equal})")

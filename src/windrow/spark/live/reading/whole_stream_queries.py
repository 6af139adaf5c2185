"""SELECT STREAM over whole streams: their plans, as operators over punctuated streams.

A window bounds state by time. Without one, groups, joins, DISTINCT, set operators and ORDER BY wait for
punctuation: an :class:`~windrow.kernels.punctuated.operator_graph.OperatorGraph`. Spark computes the
expressions over single rows (:mod:`windrow.spark.live.operators.punctuated.row_maps`), and kernels the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pyspark.sql.types import StructType

from windrow.algebra.aggregate_calls import calls_aggregate
from windrow.algebra.continuous import Query, Reader, WindowedStream
from windrow.errors import NotSupportedError
from windrow.kernels.punctuated import ProjectOperator, SortOperator
from windrow.kernels.punctuated.operator_graph import OperatorGraph, OperatorNode
from windrow.kernels.sorting import SortKey
from windrow.plan.columns import schema_of
from windrow.plan.lineage import Lineage, lineage
from windrow.plan.nodes import Node, Sort
from windrow.plan.reader import QueryReader, Texts
from windrow.plan.reasons import Reason
from windrow.plan.rules import BY_KEYS, applied
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live.operators.known_streams import KnownStreams
from windrow.spark.live.operators.punctuated.flow_of_plan import graph_of
from windrow.spark.live.operators.punctuated.row_maps import RowMap
from windrow.syntax.expressions.window_calls import is_over
from windrow.syntax.order_by import order_at
from windrow.syntax.queries import Select, SetOperationText, Shape, UnknownShapeError, parse_query
from windrow.syntax.sqltext import SqlText

__all__ = ["Blocking", "blocking", "in_order_of", "is_bare", "is_blocking"]


@dataclass(frozen=True)
class Blocking:
    """A query over whole streams.

    Attributes
    ----------
    plan
        The query.
    graph
        Its operators; their inputs are streams by their names, and tables by keys.
    tables
        The queries of tables that are joined with the streams.
    lineage
        The lineage of the plan's columns.
    """

    plan: Node
    graph: OperatorGraph
    tables: Mapping[str, SqlText]
    lineage: Lineage

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns in the query."""
        return tuple(column.name for column in self.plan.columns)

    @property
    def result(self) -> StructType:
        """The columns of the program."""
        return schema_of(self.plan.columns)

    @property
    def sorted_by(self) -> str | None:
        """The first key of the query's own ORDER BY, if it is ascending."""
        (above,) = self.plan.inputs
        if not isinstance(above, Sort) or above.keys[0].descending:
            return None
        return above.keys[0].column

    @property
    def only_orders(self) -> bool:
        """Whether ORDER BY is the only operator that retains rows."""
        return all(
            isinstance(node.operator, ProjectOperator | RowMap | SortOperator) for node in self.graph.nodes
        )


def is_bare(item: object) -> bool:
    """Whether it is a named stream without a window."""
    return isinstance(item, WindowedStream) and isinstance(item.source, str) and item.is_bare


def is_blocking(reader: Reader, query: Query) -> bool:
    """Whether a query over streams without windows waits for punctuation, instead of processing each row
    alone.
    """
    tokens, (start, stop) = reader.tokens, query.tokens
    if not query.inputs or not all(
        isinstance(item, WindowedStream) and item.is_bare for item in query.inputs
    ):
        return False
    body = reader.after_with(start, stop)
    if order_at(tokens, body, stop) is not None:
        return True
    try:
        return _merged(Texts(reader), _shape(reader, start, stop)) != len(query.inputs)
    except UnknownShapeError:
        return len(query.inputs) > 1


def _shape(reader: Reader, start: int, stop: int) -> Shape:
    """The shape of a query, which may stand in brackets and have a WITH list."""
    while reader.tokens.is_symbol(start, "(") and reader.tokens.partner[start] == stop - 1:
        start, stop = start + 1, stop - 1
    return parse_query(reader.tokens, reader.after_with(start, stop), stop, wholly=True)


def _merged(texts: Texts, shape: Shape) -> int:
    """From how many streams a query takes its rows, if it processes each row alone; otherwise 0."""
    tokens = texts.tokens
    if isinstance(shape, SetOperationText):
        left, right = _merged(texts, shape.left), _merged(texts, shape.right)
        return left + right if shape.operator == "union" and shape.all and left and right else 0
    if not isinstance(shape, Select) or shape.distinct or shape.window or shape.qualify:
        return 0
    if any(is_over(tokens, at) for item in shape.items for at in range(*item)):
        return 0
    if shape.group_by or shape.having or any(calls_aggregate(tokens, item) for item in shape.items):
        return 0
    varying = [one.source for one in shape.source if texts.is_temporal(one.source)]
    if len(varying) != 1 or any(one.turned is not None for one in shape.source):
        return 0
    ((start, stop),) = varying
    if (start, stop) in texts.reader.inputs:
        return 1
    cte = texts.cte(start) if stop - start == 1 and tokens[start].is_name else None
    if cte is not None or tokens.is_symbol(start, "("):
        return _merged(texts, _shape(texts.reader, *(cte.body if cte is not None else (start, stop))))
    return 1


def blocking(
    gateway: Gateway, catalog: Catalog, reader: Reader, query: Query, names: Sequence[str]
) -> Blocking:
    """The operators of a query over streams without windows.

    Parameters
    ----------
    names
        The names of the query's columns.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``: no operator supports it.
    """
    queries = QueryReader(reader, SparkAnalyser(gateway), KnownStreams(catalog))
    read = queries.whole(*query.tokens, names)
    if isinstance(read, Reason):
        raise _unsupported(reader, query, read)
    plan = applied(read, BY_KEYS)
    made = graph_of(gateway, plan)
    if isinstance(made, Reason):
        raise _unsupported(reader, query, made)
    return Blocking(plan, *made, lineage(plan))


def _unsupported(reader: Reader, query: Query, why: Reason) -> NotSupportedError:
    return NotSupportedError(
        f"{why} over live streams without windows is not supported",
        condition="UNSUPPORTED_STREAM",
        sql=reader.tokens.sql,
        span=query.span if why.at is None else reader.tokens.span(*why.at),
        hint=why.hint or "write EMIT STREAM at its end in place of SELECT STREAM",
    )


def in_order_of(query: Blocking, column: int) -> Blocking:
    """The query with its rows in the order of a column, and NULLs last."""
    by = query.plan.columns[column]
    sort = SortOperator((SortKey(by.id, nulls_first=False),))
    node = OperatorNode(f"in order of {by.name}", sort, (len(query.graph.nodes) - 1,))
    return replace(query, graph=OperatorGraph((*query.graph.nodes, node)))

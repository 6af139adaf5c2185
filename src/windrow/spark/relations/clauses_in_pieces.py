"""WINDOW BY and MATCH_RECOGNIZE over a time-varying relation: the clause over its rows at each instant.

One run of the clause computes all instants. Between two instants at which rows of a partition enter or leave,
the partition does not change: this interval is a piece. Each row is copied to all pieces in which it exists,
and the piece is an additional key of the clause:

    rows      k  v  [enter, leave)        k  v  [from, until)
              a  5  [1, 4)         →      a  5  [1, 2)
              a  7  [2, 5)                a  5  [2, 4)      a  7  [2, 4)
                                                            a  7  [4, 5)
    keys      PARTITION BY k              PARTITION BY k, from

The clause's output for a piece exists from its beginning to its end; equal rows of adjacent pieces are
merged. A partition that does not change has one piece, regardless of others.

Rows with equal keys of ORDER BY are in an arbitrary order, which is the same at all instants.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from windrow.algebra import window_node
from windrow.algebra.match_node import Match
from windrow.algebra.names import OUTER, QUALIFIED, ROW, of_relation, order_key, partition_key
from windrow.algebra.rewriting.outer_values import boundary_row
from windrow.algebra.window_node import Uses, WindowBoundary, WindowFragment
from windrow.errors import NotSupportedError
from windrow.plan.arrow_types import is_carried, is_orderable
from windrow.spark.analysis.row_fields import with_distinct_names
from windrow.spark.clauses.batch import Bound, bind_clause, build_window
from windrow.spark.clauses.reference_mode import build_reference
from windrow.spark.gateway import Gateway
from windrow.spark.relations.bags import Bags, inner
from windrow.spark.relations.time_varying_relation import ENTER, LEAVE, TimeVarying, columns_of
from windrow.spark.tasks.keyed import can_be_keyed, run_keyed
from windrow.syntax.expression_nodes import Literal, Name
from windrow.syntax.nodes import OrderItem
from windrow.syntax.sqltext import SqlText, quoted

__all__ = ["clause_at_instant", "clause_in_pieces", "clause_over_time"]

Clause = window_node.Window | Match

_TIMES = {ENTER: of_relation(OUTER, "from"), LEAVE: of_relation(OUTER, "until")}
"""The times of a piece: their columns, and the fields of the rows that contain them."""

_NOWHERE = (0, 0)


def clause_over_time(gateway: Gateway, clause: Clause, rows: TimeVarying) -> tuple[TimeVarying, Bound]:
    """The relation of a clause, and the bound clause for EXPLAIN.

    Parameters
    ----------
    clause
        The clause, in which values of the rows replace subqueries that change over time.
    rows
        The result of `clause.rows`: a struct with the row, and the keys.
    """
    made, bound = clause_in_pieces(gateway, clause, rows.visible(ENTER, LEAVE))
    return TimeVarying.of(made, rows.scale, rows.streams, rows.instants), bound


def clause_in_pieces(gateway: Gateway, clause: Clause, rows: DataFrame) -> tuple[DataFrame, Bound]:
    """The same for rows with `ENTER` and `LEAVE`, which the result has too."""
    clause = _in_one_order(clause)
    frame = _numbered(clause, with_distinct_names(rows))
    _refuse_kinds(clause, frame)
    bound, made = _in_pieces(gateway, clause, frame)
    return _merged(gateway, made), bound


def clause_at_instant(gateway: Gateway, clause: Clause, rows: DataFrame) -> tuple[DataFrame, Bound]:
    """The result of a clause over the rows of an instant, by the reference interpreter, and the bound
    clause.
    """
    clause = _in_one_order(clause)
    bound = bind_clause(gateway, clause, _numbered(clause, rows))
    return _without_values(clause, build_reference(gateway, bound)), bound


def _in_pieces(gateway: Gateway, clause: Clause, frame: DataFrame) -> tuple[Bound, DataFrame]:
    """The bound clause, and its result for each piece, with `ENTER` and `LEAVE`."""
    keys = [partition_key(number) for number in range(len(clause.partition_by))]
    # keys that Spark compares make no shorter pieces
    by = [key for key in keys if is_carried(frame.schema[key].dataType)]
    pieces = run_keyed(gateway, "expand", [frame], by, inner(frame))
    row = F.col(ROW)
    for name, field in _TIMES.items():
        row = row.withField(quoted(field), F.col(name))
    own = [name for name in frame.columns if name not in (ROW, ENTER, LEAVE)]
    more = [F.col(name).alias(partition_key(len(keys) + at)) for at, name in enumerate(_TIMES)]
    whole = pieces.select(row.alias(ROW), *own, *more)
    if isinstance(clause, Match):
        bound = bind_clause(gateway, _match_by_pieces(clause), whole)
        made = build_window(gateway, bound)
        # several columns may have one name, so they are chosen by their places
        names = made.columns
        left_out = {*_TIMES.values(), *clause.varying}
        places = [at for at, name in enumerate(names) if name not in left_out]
        places += [names.index(field) for field in _TIMES.values()]
        apart = made.toDF(*columns_of(names))
        chosen = apart.select(*(quoted(apart.columns[at]) for at in places))
        return bound, chosen.toDF(*(names[at] for at in places[: -len(_TIMES)]), *_TIMES)
    hidden = QUALIFIED + boundary_row(clause.label or clause.start).name
    read = next((use.fields for use in clause.uses if use.name == hidden), None)
    bound = bind_clause(gateway, _window_by_pieces(clause, hidden, read), whole)
    made = build_window(gateway, bound)
    times = [F.col(hidden)[field].alias(name) for name, field in _TIMES.items()]
    if read is None:
        return bound, made.select(*_others(made, hidden), *times)
    left = F.col(hidden).dropFields(*map(quoted, _TIMES.values())).alias(hidden)
    return bound, made.select(*_others(made, hidden), left, *times)


def _without_values(clause: Clause, frame: DataFrame) -> DataFrame:
    """The result of a clause, without the values of subqueries."""
    hidden = clause.varying if isinstance(clause, Match) else ()
    return frame.select(*_others(frame, *hidden)) if hidden else frame


def _refuse_kinds(clause: Clause, frame: DataFrame) -> None:
    """Refuse rows that operators over time do not support.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_QUERY`` for collated strings and intervals of months and days.
    """
    row = frame.schema[ROW].dataType
    assert isinstance(row, StructType)
    for field in row.fields:
        if not is_carried(field.dataType):
            kind = field.dataType.simpleString().upper()
            raise NotSupportedError(
                f"column {field.name} of type {kind} of a clause over windows of time is not supported",
                condition="UNSUPPORTED_QUERY",
                sql=clause.sql,
                span=clause.span,
                hint="cast it in a subquery in FROM: COLLATE UTF8_BINARY, or to a number; or leave it out",
            )


def _window_by_pieces(
    clause: window_node.Window, hidden: str, read: frozenset[str] | None
) -> window_node.Window:
    """WINDOW BY with the bounds of the piece as keys, which are fields of a row that every window has."""
    row = boundary_row(clause.label or clause.start)
    others = (use for use in clause.uses if use.name != hidden)
    uses = (*others, Uses(hidden, frozenset(_TIMES.values()) | (read or frozenset())))

    def with_row(boundary: WindowBoundary) -> WindowBoundary:
        if boundary.side is not row.side or row in boundary.variables:
            return boundary
        return replace(boundary, variables=(*boundary.variables, row))

    label = clause.label and with_row(clause.label)
    keys = (*clause.partition_by, *_keys(clause))
    return replace(clause, partition_by=keys, uses=uses, label=label, start=with_row(clause.start))


def _match_by_pieces(clause: Match) -> Match:
    """MATCH_RECOGNIZE with the bounds of the piece as keys, which are columns of its result."""
    times, mentioned = tuple(_TIMES.values()), clause.mentioned
    return replace(
        clause,
        partition_by=(*clause.partition_by, *_keys(clause)),
        clause=replace(clause.clause, key_names=(*clause.clause.key_names, *times)),
        mentioned=None if mentioned is None else mentioned | {name.lower() for name in times},
    )


def _keys(clause: Clause) -> list[WindowFragment]:
    return [
        WindowFragment(SqlText.of(quoted(field)), Name((field,), _NOWHERE), clause.span)
        for field in _TIMES.values()
    ]


def _in_one_order(clause: Clause) -> Clause:
    """The clause with an additional key of ORDER BY, so that ties have the same order at all instants."""
    last = WindowFragment(SqlText.of("xxhash64(*)"), Literal(_NOWHERE), clause.span), OrderItem(_NOWHERE)
    return replace(clause, order_by=(*clause.order_by, last))


def _numbered(clause: Clause, frame: DataFrame) -> DataFrame:
    """The rows with the last key of ORDER BY: a number that is the same for equal rows."""
    row = F.col(ROW)
    comparable = is_orderable(frame.schema[ROW].dataType)
    number = F.xxhash64(row if comparable else F.to_json(row))
    # never NULL, but kernels treat all keys of ORDER BY as nullable
    may_be_null = F.when(row.isNotNull(), number)
    return frame.withColumn(order_key(len(clause.order_by) - 1), may_be_null)


def _others(frame: DataFrame, *names: str) -> list[str]:
    return [quoted(name) for name in frame.columns if name not in names]


def _merged(gateway: Gateway, frame: DataFrame) -> DataFrame:
    """Equal rows of adjacent pieces, merged; rows that cannot be compared are unchanged.

    EXCEPT ALL with nothing: each row with its multiplicity.
    """
    if not can_be_keyed(frame):
        return frame
    names = frame.columns[:-2]
    rows = Bags(gateway, {}).counted("except all", [frame.toDF(*columns_of(names), ENTER, LEAVE)])
    return rows.frame.toDF(*names, ENTER, LEAVE)

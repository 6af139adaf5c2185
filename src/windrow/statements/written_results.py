"""CREATE TABLE … AS and INSERT INTO a table, from queries over streams: the query's result is written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import DataFrame

from windrow.algebra.names import verbatim
from windrow.errors import NotSupportedError
from windrow.plan.columns import sql_of
from windrow.relation import Relation
from windrow.relation_kinds import LiveRelation, StreamRelation, TimeVaryingRelation, VaryingRelation
from windrow.spark.catalog import Catalog
from windrow.spark.gateway import Gateway
from windrow.spark.live import Table
from windrow.spark.logs.columns_taken import columns_named
from windrow.statements.composed import located
from windrow.statements.emit_statements import explaining
from windrow.statements.inserts import gives_stream, refuse_stored_rows, start_insert
from windrow.statements.stream_statements import has_stream_words, is_continuous
from windrow.syntax.nodes import Range
from windrow.syntax.sqltext import RelationText, SqlText, quoted
from windrow.syntax.streams.commands import Command, parse_command
from windrow.syntax.streams.emit_clause import clauses_in, has_clauses
from windrow.syntax.tokens import TokenList

__all__ = ["may_write_result", "with_result"]

_COMMAND = re.compile(r"\s*(explain\b.*?\b)?(create|insert|replace)\b", re.IGNORECASE | re.DOTALL)
_KEY = "__result"
_MAKE = ("CREATE", "REPLACE")


def may_write_result(text: str, catalog: Catalog) -> bool:
    """Whether a text may write the result of a query over streams."""
    return _COMMAND.match(text) is not None and (is_continuous(text, catalog) or has_clauses(text))


@contextmanager
def with_result(
    gateway: Gateway,
    catalog: Catalog,
    tokens: TokenList,
    statement: Range,
    run_query: Callable[[str], Relation],
) -> Iterator[tuple[str, Relation] | Relation | None]:
    """The statement over the result of its query, and the query.

    For a live query, a relation that says what was started; for EXPLAIN, the plan of the query. None for
    other statements: those into streams, and those that Spark runs alone.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STATEMENT`` of a live relation, and of recorded rows in a pipeline.
    """
    explained = explaining(tokens, statement[0])
    command = parse_command(tokens, statement[0] + explained, statement[1])
    if command is None or tokens.text(*command.table).strip("`").lower() in catalog.names:
        if command is None:
            refuse_stored_rows(catalog, tokens, statement[0])
        yield None
        return
    gateway.prefers_live = command.kind == "INTO" and gives_stream(tokens, *command.query)
    is_planned, gateway.plan_only = gateway.plan_only, gateway.plan_only or explained > 0
    with located(tokens, command.query) as query:
        relation = run_query(query)
    gateway.prefers_live, gateway.plan_only = False, is_planned
    if relation.is_plan or explained:
        yield relation if relation.is_plan else None
        return
    if isinstance(relation, LiveRelation):
        yield _started(gateway, tokens, command, relation)
        return
    refuse_stored_rows(catalog, tokens, statement[0])
    varies = isinstance(relation, VaryingRelation | StreamRelation | TimeVaryingRelation)
    if not varies and relation.made_of is None and not has_stream_words(tokens.text(*command.query)):
        yield None
        return
    span = tokens.span(*command.query)
    text = SqlText.of(
        verbatim(tokens, 0, span.start),
        "SELECT * FROM ",
        RelationText(_KEY),
        verbatim(tokens, span.stop, len(tokens.sql)),
    )
    frame = _in_table(gateway, tokens, command, relation)
    with gateway.views({_KEY: frame}) as names, gateway.instead(text, names) as read:
        yield read, relation


def _started(gateway: Gateway, tokens: TokenList, command: Command, relation: LiveRelation) -> Relation:
    """Start a live query into a table, which CREATE TABLE makes: a stream, or the changes of EMIT STREAM."""
    plan = relation.live
    target = tokens.text(*command.table)
    emits = any(tokens.word(at + 1) == "STREAM" for at in clauses_in(tokens, *command.query))
    if command.kind not in ("INTO", "CREATE") or plan is None or (plan.is_relation and not emits):
        verb = f"{command.kind} TABLE" if command.kind in _MAKE else f"INSERT {command.kind}"
        raise NotSupportedError(
            f"{verb} {target} of a live relation is not supported",
            condition="UNSUPPORTED_STATEMENT",
            sql=tokens.sql,
            span=tokens.span(*command.query),
            hint="write INSERT INTO … SELECT STREAM … or ISTREAM(…);"
            " or call relation.start(…), which writes the changes of a relation",
        )
    name = target.replace("`", "")
    if command.kind == "INTO":
        columns = command.columns
        if command.by_name:
            known = _columns(gateway, tokens, command)
            own = (
                relation.columns
                if plan.columns != relation.columns[1:]
                else _without_rowtime(relation, known)
            )
            place = tokens.span(*command.query)
            columns = columns_named(f"table {name}", known, ((one, place) for one in own), tokens.sql)
        return start_insert(gateway, tokens, relation, Table(target, columns), name)
    is_new = not gateway.spark.catalog.tableExists(target)
    gateway.sql(_of_columns(tokens, command, relation))
    try:
        return start_insert(gateway, tokens, relation, Table(target), name)
    except BaseException:
        if is_new:
            gateway.sql(SqlText.of("DROP TABLE ", target))
        raise


def _of_columns(tokens: TokenList, command: Command, relation: LiveRelation) -> SqlText:
    """CREATE TABLE with the columns of the query in place of the query.

    So after a restart it may find the rows at its LOCATION that the query has written.
    """
    columns = ", ".join(f"{quoted(one.name)} {sql_of(one.dataType)}" for one in relation.schema)
    table, query = tokens.span(*command.table), command.query[0]
    options = tokens.span(command.table[1], query - (tokens.word(query - 1) == "AS"))
    return SqlText.of(
        verbatim(tokens, 0, table.stop), f" ({columns}) ", verbatim(tokens, options.start, options.stop)
    )


def _in_table(gateway: Gateway, tokens: TokenList, command: Command, relation: Relation) -> DataFrame:
    """The rows; a stream's without their rowtime, if the table has one column less, or none of its name."""
    frame = relation.df
    if command.kind in _MAKE or not isinstance(relation, StreamRelation):
        return frame
    columns = command.columns or _columns(gateway, tokens, command)
    if command.by_name:
        return frame.select(*map(quoted, _without_rowtime(relation, columns)))
    return frame.drop(frame.columns[0]) if len(frame.columns) == len(columns) + 1 else frame


def _columns(gateway: Gateway, tokens: TokenList, command: Command) -> list[str]:
    """The columns of the table."""
    with gateway.translated():
        return gateway.spark.table(tokens.text(*command.table)).columns


def _without_rowtime(stream: Relation, known: list[str]) -> list[str]:
    """The columns of a stream, which shows its rowtime first; without it, if the table has no such column."""
    own = stream.columns
    return own if own[0].lower() in map(str.lower, known) else own[1:]

"""Queries over live streams, windows or matches that process each row alone, read into plans.

SQL around a clause is evaluated over the output of one micro-batch, so none of its rows may depend on later
rows. If so, columns that are passed on have the properties of the streams' columns: the rowtime, and the
punctuations of the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql.types import StructField, StructType

from windrow.algebra.continuous import Continuous, Reader, StreamQuery
from windrow.algebra.continuous import Input as QueryInput
from windrow.algebra.names import ROW
from windrow.errors import AnalysisError, NotSupportedError, Span, WindrowError
from windrow.plan import nodes as plan
from windrow.plan.nodes import Node, Project, walk
from windrow.plan.passing import Leaf, lowest_stateful, origins
from windrow.plan.reader import QueryReader
from windrow.plan.reasons import Reason
from windrow.spark.analysis.schemas import SparkAnalyser
from windrow.spark.gateway import Gateway
from windrow.spark.logs.clause_view import Feed
from windrow.syntax.sqltext import SqlText, quoted
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["Beside", "LiveRelationNode", "beside", "of_query", "relation_of"]


@dataclass(frozen=True)
class LiveRelationNode:
    """A stream, or the output of a clause, as an input of queries beside clauses.

    Attributes
    ----------
    schema
        Its columns.
    rowtimes
        The columns with the rowtime; fields of structs are named `row.field`.
    lineage
        The live streams behind it; none if they are unknown.
    """

    schema: StructType
    rowtimes: frozenset[str] = frozenset()
    lineage: tuple[Feed, ...] = ()


@dataclass(frozen=True)
class Beside:
    """A query that should process each row alone.

    Attributes
    ----------
    relations
        Its inputs, by name.
    plan
        Its plan; None if it has none, for the `reason`.
    """

    relations: Mapping[str, LiveRelationNode]
    plan: Node | None
    reason: str = ""

    @cached_property
    def gathers(self) -> bool:
        """Whether a row of it depends on others that come, as far as is known."""
        return self.plan is None or lowest_stateful(self.plan) is not None

    @property
    def is_relation(self) -> bool:
        """Whether one of its rows is known to depend on other arriving rows."""
        return self.plan is not None and self.gathers

    @cached_property
    def columns(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """Its columns that pass others on: the relation and column of each stream that they copy.

        Fields of structs are called `row.field`.
        """
        if self.plan is None or self.gathers:
            return {}
        found = {name: origins(*of) for name, of in _columns(self.plan)}
        return {
            name: tuple((relation_of(leaf), own) for leaf, own in several)
            for name, several in found.items()
            # those of joined tables do not matter
            if several and all(relation_of(leaf) in self.relations for leaf, _ in several)
        }

    @cached_property
    def rowtimes(self) -> frozenset[str]:
        """The columns with the rowtime of each row."""
        return frozenset(
            name
            for name, several in self.columns.items()
            if all(column in self.relations[relation].rowtimes for relation, column in several)
        )

    def is_rowtime(self, node: Node, column: str) -> bool:
        """Whether a column of a node of the plan is the rowtime of each row, at its source."""
        of = origins(node, column)
        return bool(of) and all(self._holds(relation_of(leaf), own) for leaf, own in of)

    @property
    def mixes_rowtimes(self) -> bool:
        """Whether a column of UNION ALL has the rowtime in some of its inputs only."""
        return self.plan is not None and any(self._mixed(one) for one in walk(self.plan))

    @property
    def lineage(self) -> tuple[Feed, ...]:
        """The live streams whose columns it passes on; none if they are unknown."""
        found: list[Feed] = []
        for branch in zip(*self.columns.values(), strict=True):
            lineage = self.relations[branch[0][0]].lineage
            if not lineage:
                return ()
            names = dict(zip(self.columns, (own for _, own in branch), strict=True))
            found += [feed.only(names) for feed in lineage]
        return tuple(found)

    def why_not_row_by_row(
        self,
        tokens: TokenList,
        query: Span,
        clause: Span | None,
        beside: str = "WINDOW BY or MATCH_RECOGNIZE",
    ) -> WindrowError | None:
        """The error for a query whose rows depend on other arriving rows; None for others.

        Parameters
        ----------
        tokens
            The tokens of its statement.
        query, clause
            The position of the query in them, and its clause of windows or patterns, if it has one.
        beside
            The kind of clause.

        Returns
        -------
        WindrowError
            ``UNSUPPORTED_STREAM``, at the word that causes it, or at the clause or the query;
            ``ORDER_NOT_ROWTIME`` if the inputs of UNION ALL have the rowtime in different columns.
        """

        def place(word: str) -> Span:
            spans = [token.span for token in tokens.tokens if token.word == word]
            outside = [one for one in spans if clause is None or not clause.start <= one.start < clause.stop]
            return outside[0] if outside else clause or query

        if self.gathers:
            found = None if self.plan is None else lowest_stateful(self.plan)
            what = self.reason if found is None else _word(found)
            return NotSupportedError(
                f"{what} over a live stream together with {beside} is not supported",
                condition="UNSUPPORTED_STREAM",
                sql=tokens.sql,
                span=place(what.split()[0]),
                hint="keep only operators that process each row by itself; or add a window of time over"
                " the clause: FROM (SELECT …) [RANGE 1 HOUR]",
            )
        if self.mixes_rowtimes:
            return AnalysisError(
                "the queries of UNION ALL have their rowtimes in different columns",
                condition="ORDER_NOT_ROWTIME",
                sql=tokens.sql,
                span=place("UNION"),
                hint="select the rowtime in the same place in each query",
            )
        return None

    def _holds(self, relation: str, column: str) -> bool:
        return relation in self.relations and column in self.relations[relation].rowtimes

    def _mixed(self, node: Node) -> bool:
        """Whether a column of a UNION has the rowtime on the left side, and not on the right."""
        if not isinstance(node, plan.SetOperation):
            return False
        sides = [
            [self.is_rowtime(side, column.id) for column in side.columns] for side in (node.left, node.right)
        ]
        return any(left and not right for left, right in zip(*sides, strict=True))


def _word(node: Node) -> str:
    """The user's word for a node that reads several rows."""
    match node:
        case plan.Aggregate():
            return "GROUP"
        case plan.Over():
            return "OVER"
        case plan.Distinct():
            return "DISTINCT"
        case plan.Sort():
            return "ORDER" if node.keys else "LIMIT"
        case plan.SetOperation():
            return node.operator.upper()
        case plan.Join(is_of_subquery=False):
            return "JOIN"
        case plan.Pieces():
            return str(node.why)
        case plan.ClauseRelation():
            return node.label
    return "a subquery"


def relation_of(leaf: Leaf) -> str:
    """The name of a live relation."""
    match leaf:
        case plan.Scan():
            return leaf.name
        case plan.StreamWindow():
            return leaf.input.name
    return leaf.key


def _columns(node: Node) -> Iterator[tuple[str, tuple[Node, str, str]]]:
    """The columns of a query, and fields of its structs, each with its node, column and path.

    The fields of the column `ROW` are the columns of the relations in FROM.
    """
    for column in node.columns:
        yield column.name, (node, column.id, "")
        if isinstance(column.type, StructType):
            for inner in column.type.fieldNames():
                yield f"{column.name}.{inner}", (node, column.id, inner)
    while isinstance(node, Project) and not node.scope.parts:
        node = node.input
    if isinstance(node, Project) and any(column.name == ROW for column in node.columns):
        for part in node.scope.parts:
            for name, own in zip(part.names, part.columns, strict=True):
                yield f"{ROW}.{name}", (node.input, own, "")


def beside(gateway: Gateway, text: SqlText, relations: Mapping[str, LiveRelationNode]) -> Beside:
    """A query over live relations, which are in its text by their keys.

    It may also read other relations of the session.
    """
    tokens = tokenize(text.render({name: quoted(name) for name in relations}))
    names = frozenset(relations)
    body = Reader(tokens, names, frozenset()).after_with(0, len(tokens))
    reader = Reader(tokens, names, frozenset(), selects=frozenset([tokens[body].start]))
    found = reader.read(0, len(tokens))
    return of_query(gateway, reader, found.query if isinstance(found, StreamQuery) else found, relations)


def of_query(
    gateway: Gateway,
    reader: Reader,
    query: Continuous,
    relations: Mapping[str, LiveRelationNode],
    others: Mapping[str, StructType] | None = None,
) -> Beside:
    """A query of a statement over live relations, and over other time-varying relations, by their keys."""
    inner = query.query if isinstance(query, StreamQuery) else query
    readers = QueryReader(reader, SparkAnalyser(gateway), _Known(relations, others or {}))
    try:
        is_whole = inner.items is None and not isinstance(query, StreamQuery)
        read = readers.whole(*inner.tokens) if is_whole else readers.relation(inner)
    except WindrowError as error:
        return Beside(relations, None, f"what Spark does not know alone ({error.condition})")
    return Beside(relations, None, str(read)) if isinstance(read, Reason) else Beside(relations, read)


@dataclass(frozen=True)
class _Known:
    """Live relations by their names in lower case, and other time-varying relations by their keys."""

    relations: Mapping[str, LiveRelationNode]
    others: Mapping[str, StructType]

    def stream(self, name: str) -> StructType | None:
        """The columns of a live relation."""
        found = self.relations.get(name)
        return None if found is None else found.schema

    def view(self, name: str) -> None:
        """None: views are relations."""

    def fields_of(self, item: QueryInput) -> tuple[Sequence[StructField], bool] | None:
        """The columns of a time-varying relation that is not a stream."""
        found = self.others.get(item.key)
        return None if found is None else (found.fields, True)

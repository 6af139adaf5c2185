"""The computation of a query on each row, as an operator over punctuated streams: Spark evaluates the
text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from windrow.errors import ExecutionError
from windrow.kernels.punctuated import Delta, ProjectOperator
from windrow.kernels.punctuated.delta import Announced
from windrow.kernels.punctuated.filters import ProjectCarry
from windrow.kernels.punctuated.following import Follower, Following
from windrow.plan.arrow_types import arrow_type
from windrow.punctuations import Closing, lines_of
from windrow.punctuations.lines import Place, Span
from windrow.punctuations.regions import NULL, Lines, Region
from windrow.spark.collected import frame_of_collected
from windrow.spark.gateway import Gateway
from windrow.syntax.sqltext import SqlText

__all__ = ["Followed", "Moved", "RowMap", "arrow_schema"]


@dataclass(frozen=True)
class Moved:
    """A column computed from one other, which never decreases as that increases.

    Attributes
    ----------
    name, column
        The column, and the input column with which it increases.
    text
        The query that computes it alone, as `RowMap.text`.
    """

    name: str
    column: str
    text: SqlText


@dataclass(frozen=True)
class Followed:
    """A column that follows one other.

    Attributes
    ----------
    follower
        How it does.
    text
        The query that computes it alone, as `RowMap.text`, with the other after it.
    """

    follower: Follower
    text: SqlText


@dataclass
class RowMapCarry:
    """The closed values of the columns that are passed on, and of the inputs of computed columns."""

    project: ProjectCarry | None
    closing: dict[str, Closing]
    announced: Announced
    following: Following | None = None

    @property
    def retained(self) -> tuple[int, ...]:
        """How many rows are retained."""
        return (0,)


@dataclass(frozen=True)
class RowMap:
    """SELECT and WHERE over rows, one Spark job for all of them.

    Output: the text's result for the new rows. Punctuations: those of columns that are passed on; for columns
    that rise with another, the values before all that may still arrive; for columns that follow another, its
    closed values.

    Attributes
    ----------
    gateway
        The session, and the parameters of the query.
    text, key
        The query, and the key that stands for the rows in it.
    read, result
        The columns that the query reads, and those that it makes.
    plain
        The columns that are passed on: their names in the output, and in the input.
    moved
        The columns that increase with another.
    followed
        The columns that follow another.
    widened
        Columns that copy others as wider integers: pairs of names in the output.
    are_null
        The columns of the input that WHERE compares with NULL, and whether they are to be NULL: no row has
        another value in them.
    """

    gateway: Gateway
    text: SqlText
    key: str
    read: StructType
    result: StructType
    plain: tuple[tuple[str, str], ...]
    moved: tuple[Moved, ...] = ()
    followed: tuple[Followed, ...] = ()
    widened: tuple[tuple[str, str], ...] = ()
    are_null: tuple[tuple[str, bool], ...] = ()

    def advance(self, carry: RowMapCarry | None, change: Delta) -> tuple[Delta, RowMapCarry]:
        """Process a micro-batch; consumes the carry."""
        lines = lines_of(change.rows.schema)
        regions: list[Region] = []
        if carry is None:
            closing = {one.column: Closing(lines, [one.column]) for one in self.moved if one.column in lines}
            output = lines_of(arrow_schema(self.result))
            following = Following(lines, output, self.plain, [one.follower for one in self.followed])
            carry = RowMapCarry(None, closing, Announced(output), following if self.followed else None)
            regions += self._excluded(output)
        nothing = Delta(change.rows.slice(0, 0), change.punctuations)
        delta, carry.project = ProjectOperator(self.plain).advance(carry.project, nothing)
        regions += [region for pattern in delta.punctuations for region in pattern.regions()]
        for name, column in self.widened:
            regions += [
                _widened(region, name, column, carry.announced.lines)
                for region in regions
                if column in region
            ]
        if change.punctuations:
            regions += self._risen(carry, change)
        if change.punctuations and carry.following is not None:
            schema, texts = change.rows.schema, {one.follower: one.text for one in self.followed}

            def values(one: Follower, places: Sequence[Place]) -> dict[Place, Place]:
                column = lines[one.column].array(places)
                return self._values(
                    texts[one], self._of_column(one.column, column, schema), carry.announced, one
                )

            regions += carry.following.add(change.punctuations, values)
        return Delta(self._made(change.rows), carry.announced.news(regions)), carry

    def _excluded(self, lines: Lines) -> Iterator[Region]:
        """The regions of which WHERE returns no row."""
        for column, is_null in self.are_null:
            for name, source in self.plain:
                if source == column and name in lines:
                    yield {name: (lines[name].first, lines[name].end) if is_null else NULL}

    def _risen(self, carry: RowMapCarry, delta: Delta) -> list[Region]:
        """The regions that columns rising with others have passed."""
        found: list[Region] = []
        out = carry.announced.lines
        for column, closing in carry.closing.items():
            before = _reached(closing)
            had_null = closing.closed.covers({column: NULL})
            closing.add(delta.punctuations)
            reached = _reached(closing)
            own = [one for one in self.moved if one.column == column and one.name in out]
            if closing.closed.covers({column: NULL}) and not had_null:
                found += [{one.name: NULL} for one in own]
            if reached == before:
                continue
            if reached == closing.lines[column].end:  # no later value of a column that increases with it
                found += [{one.name: (out[one.name].first, out[one.name].end)} for one in own]
                continue
            row = self._one_row(column, closing.lines[column].value(reached), delta.rows.schema)
            for one in own:
                value = self._run(one.text, row).column(0)
                line = out[one.name]
                if len(value) and value.null_count == 0:  # a row may be in several windows
                    place = min(line.places(value.cast(line.kind)).tolist())
                    found.append({one.name: (line.first, place)})
        return [
            region for region in found if all(span is NULL or span[0] < span[1] for span in region.values())
        ]

    def _values(
        self, text: SqlText, rows: pa.Table, punctuations: Announced, one: Follower
    ) -> dict[Place, Place]:
        """The computed values for values of a column; values for which the expression fails are left out."""
        try:
            made = self._run(text, rows)
        except ExecutionError:  # no row with this value goes through without this error
            halves = (rows.slice(0, rows.num_rows // 2), rows.slice(rows.num_rows // 2))
            each = (
                [self._values(text, half, punctuations, one) for half in halves] if rows.num_rows > 1 else []
            )
            return {place: value for part in each for place, value in part.items()}
        line = punctuations.lines[one.name]
        made = made.filter(made.column(0).is_valid())
        of = lines_of(rows.schema)[one.column]
        places = of.places(made.column(1).cast(of.kind)).tolist()
        return dict(zip(places, line.places(made.column(0).cast(line.kind)).tolist(), strict=True))

    def _of_column(self, column: str, values: pa.Array, schema: pa.Schema) -> pa.Table:
        """Rows with values of one column."""
        fields = [field for field in schema if field.name in self.read.names]
        arrays = [values if field.name == column else pa.nulls(len(values), field.type) for field in fields]
        return pa.table(arrays, schema=pa.schema(fields))

    def _one_row(self, column: str, value: object, schema: pa.Schema) -> pa.Table:
        return self._of_column(column, pa.array([value], schema.field(column).type), schema)

    def _made(self, rows: pa.Table) -> pa.Table:
        schema = arrow_schema(self.result)
        if not rows.num_rows:
            return schema.empty_table()
        return self._run(self.text, rows).rename_columns(self.result.names).cast(schema)

    def _run(self, text: SqlText, rows: pa.Table) -> pa.Table:
        gateway = Gateway(self.gateway.spark, self.gateway.parameters)
        frame = frame_of_collected(gateway.spark, rows.select(self.read.names), self.read)
        made = gateway.sql(text, {self.key: frame})
        made = made.toDF(*(f"c{at}" for at in range(len(made.columns))))
        with gateway.translated():
            return made.toArrow()


def _widened(region: Region, name: str, column: str, lines: Lines) -> Region:
    """A region over an integer column, for a column of a wider type: open ends become those of the wider
    type.
    """
    own, wide, span = lines[column], lines[name], region[column]
    if span is not NULL:
        first = wide.first if span[0] == own.first else span[0]
        span = first, wide.end if span[1] == own.end else span[1]
    return {**{other: values for other, values in region.items() if other != column}, name: span}


def _reached(closing: Closing) -> Place:
    """The least value of the column that may still arrive."""
    (column,) = closing.columns
    line = closing.lines[column]
    reached = line.first
    for region in sorted(_spans(closing, column)):
        if region[0] <= reached < region[1]:
            reached = region[1]
    return reached


def _spans(closing: Closing, column: str) -> list[Span]:
    line = closing.lines[column]
    whole = (line.first, line.end)
    spans = (region.get(column, whole) for region in closing.closed)
    return [span for span in spans if span is not NULL]


def arrow_schema(kinds: StructType) -> pa.Schema:
    """The columns as an Arrow schema."""
    return pa.schema([pa.field(field.name, arrow_type(field.dataType)) for field in kinds])

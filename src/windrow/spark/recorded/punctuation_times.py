"""Punctuations of streams over time: since when values of columns are closed, so that no such row follows.

One mechanism decides both which groups of a query are complete, and which rows are not needed any more.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructType

from windrow.kernels.zset.relation import NEVER
from windrow.plan.arrow_types import contains, pattern_schema, travelling_type
from windrow.plan.event_time import Closed, Lineage, Timed
from windrow.punctuations import Cover, Pattern, Values, lines_of
from windrow.punctuations.regions import Lines
from windrow.punctuations.since import Since
from windrow.spark.logs.session_streams import Stream
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import in_worker

__all__ = [
    "ColumnPairs",
    "LoggedPunctuation",
    "PunctuationTimes",
    "closing_columns_of",
    "folded",
    "stream_kinds",
    "with_since",
]

Ints = npt.NDArray[np.int64]

ColumnPairs = Mapping[str, str]
"""Columns of a stream, each with the column of the rows in question that has its values."""


LoggedPunctuation = list[tuple[int, str]]
"""(processing time, pattern), in order of time."""

_SPARE = 100


@dataclass
class _Punctuations:
    """The punctuations of a stream, and since when they close values."""

    kinds: StructType
    schema: pa.Schema
    lines: Lines
    punctuations: list[tuple[int, Pattern]]
    since: dict[tuple[str, ...], Since] = field(default_factory=dict)

    def of(self, columns: Iterable[str]) -> Since:
        """The times since when values of these columns are closed."""
        key = tuple(sorted(columns))
        if key not in self.since:
            self.since[key] = Since(self.lines, key)
            for at, pattern in self.punctuations:
                self.since[key].add(at, [pattern])
        return self.since[key]


class PunctuationTimes:
    """The punctuations of streams so far; further ones can be added.

    Parameters
    ----------
    streams
        The streams, by name.
    """

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = {name: _punctuations_of(stream) for name, stream in streams.items()}

    @property
    def is_empty(self) -> bool:
        """Whether there are no punctuations other than those of the streams' domains."""
        return not any(at for known in self._streams.values() for at, _ in known.punctuations)

    def take(self, name: str, punctuations: Iterable[tuple[int, str]]) -> None:
        """Add punctuations of a stream with their times, in order."""
        known = self._streams[name]
        for at, text in punctuations:
            if not json.loads(text).keys() <= known.lines.keys():
                continue  # over a column that is not compared by its values
            pattern = Pattern.from_json(text, known.schema)
            known.punctuations.append((at, pattern))
            for since in known.since.values():
                since.add(at, [pattern])

    def punctuations(self, name: str) -> list[tuple[int, Pattern]]:
        """The punctuations of a stream, with their times."""
        return self._streams[name].punctuations

    def lines(self, name: str) -> Lines:
        """The lines of the columns that punctuations of a stream may name."""
        return self._streams[name].lines

    def of(self, name: str, pairs: ColumnPairs) -> Since | None:
        """The times since when values of these columns of a stream are closed; None if they never are."""
        known = self._streams[name]
        if not pairs or not pairs.keys() <= known.lines.keys():
            return None
        since = known.of(pairs)
        return None if since.is_empty else since

    def since(self, name: str, pairs: ColumnPairs, rows: pa.Table) -> Ints:
        """The times since when a stream is closed for each of these rows; `NEVER` if it is not."""
        since = self.of(name, pairs)
        return np.full(rows.num_rows, NEVER) if since is None else _since(since, pairs, rows)

    def over(self, closed: Closed, streams: Mapping[int, str], rows: pa.Table) -> Ints:
        """The times since when the groups of a stream's rows are closed.

        Parameters
        ----------
        closed
            The closing condition.
        streams
            The streams by their places.
        """
        parts = [self.since(name, pairs, rows) for name, pairs in self.closing_columns(closed, streams)]
        found: Ints = np.maximum.reduce(parts)
        return found

    def closing_columns(self, closed: Closed, streams: Mapping[int, str]) -> list[tuple[str, ColumnPairs]]:
        """The columns of streams that must be closed, as (stream, columns).

        A punctuation names values of one type, so equal columns of different types are left out.
        """
        own = self._streams[streams[closed.origin]].kinds
        return [
            (
                streams[place],
                {
                    column: mine
                    for column, mine in pairs
                    if self._streams[streams[place]].kinds[column].dataType == own[mine].dataType
                },
            )
            for place, pairs in closed.by
        ]

    def may_close(self, closed: Closed, streams: Mapping[int, str]) -> bool:
        """Whether the condition can be true: whether all streams have punctuations of these columns."""
        return all(self.of(*part) is not None for part in self.closing_columns(closed, streams))


def _punctuations_of(stream: Stream) -> _Punctuations:
    kinds = stream_kinds(stream)
    schema = pattern_schema(kinds)
    is_plain = {
        each.name: travelling_type(each.dataType) == each.dataType and not contains(each.dataType, "collated")
        for each in kinds
    }
    lines = {name: line for name, line in lines_of(schema).items() if is_plain[name]}
    initial = []
    if stream.rowtime in lines:  # an entry without a rowtime is no row
        initial.append((0, Pattern.of({stream.rowtime: Values(lines[stream.rowtime], null=True, spans=())})))
    return _Punctuations(kinds, schema, lines, initial)


def stream_kinds(stream: Stream) -> StructType:
    """The columns of a stream that punctuations may name."""
    return StructType([stream.frame.schema[name] for name in stream.columns])


def folded(punctuations: LoggedPunctuation, since: int, columns: pa.Schema) -> LoggedPunctuation:
    """Equivalent punctuations: now and then, those before an instant are merged, without their times."""
    old = [text for at, text in punctuations if at < since]
    if len(old) <= 2 * sum(at == 0 for at, _ in punctuations) + _SPARE:
        return punctuations
    lines = lines_of(columns)
    cover = Cover(lines, (Pattern.from_json(text, columns) for text in old))
    fewer = [(0, Pattern.of_region(region, lines).to_json()) for region in cover]
    return [*fewer, *((at, text) for at, text in punctuations if at >= since)]


def closing_columns_of(
    timed: Timed, streams: Mapping[str, Stream], visible: StructType, columns: Mapping[str, str]
) -> list[tuple[int, str, ColumnPairs]]:
    """The columns of a query's streams that close its rows, as (place, stream, columns).

    Parameters
    ----------
    visible
        The columns of the rows.
    columns
        The names of the query's columns there, by name in lower case.
    """
    of_place = {each.place: each.stream for each in timed.occurrences}
    return [
        (at, of_place[at], _closing_columns(timed.lineage, at, streams[of_place[at]], visible, columns))
        for at in timed.places
    ]


def _closing_columns(
    lineage: Iterable[tuple[str, Lineage]],
    place: int,
    stream: Stream,
    visible: StructType,
    columns: Mapping[str, str],
) -> ColumnPairs:
    found = {}
    for name, own in lineage:
        for at, column in own:
            inner = columns[name.lower()]
            if at == place and stream.frame.schema[column].dataType == visible[inner].dataType:
                found[column] = inner
    return found


def with_since(frame: DataFrame, pairs: Sequence[tuple[str, Since | None, ColumnPairs]]) -> DataFrame:
    """The rows with columns of times since when they are closed: (column, punctuations, columns)."""
    never: Column = F.lit(NEVER).cast("bigint")
    frame = frame.withColumns({name: never for name, since, _ in pairs if since is None})
    closing = [(name, since, dict(columns)) for name, since, columns in pairs if since is not None]
    if not closing:
        return frame

    def with_times(batches: Iterable[pa.RecordBatch], _: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for name, since, columns in closing:
                rows = rows.append_column(name, pa.array(_since(since, columns, rows)))
            yield from rows.combine_chunks().to_batches()

    schema = frame.select("*").schema
    for name, _, _ in closing:
        schema = schema.add(name, LongType())
    return map_in_arrow(frame, in_worker(with_times, None), schema)


def _since(since: Since, pairs: ColumnPairs, rows: pa.Table) -> Ints:
    columns = [rows.column(pairs[name]).cast(since.lines[name].kind) for name in since.columns]
    return since.of(pa.Table.from_arrays(columns, names=list(since.columns)))

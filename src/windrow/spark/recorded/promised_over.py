"""What streams promise of the values in some of their columns, in time: of which rows none like them follows.

One mechanism for all that asks: a query's groups that are complete, rows that are not needed any more.
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
from windrow.plan.event_time import Closed, Plain, Timed
from windrow.punctuations import Cover, Pattern, Values, lines_of
from windrow.punctuations.regions import Lines
from windrow.punctuations.since import Since
from windrow.spark.arrow import contains, told_of, travelling_type
from windrow.spark.logs.session_streams import Stream
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.tasks.exchange import in_worker

__all__ = ["Asked", "Promised", "Promises", "asked_of", "folded", "stream_kinds", "with_since"]

Ints = npt.NDArray[np.int64]

Asked = Mapping[str, str]
"""Columns of a stream, and of those that are asked about the ones that have their values."""


Promises = list[tuple[int, str]]
"""(processing time, pattern), in time."""

_SPARE = 100


@dataclass
class _Told:
    """What a stream has promised, and what is asked of it."""

    kinds: StructType
    schema: pa.Schema
    lines: Lines
    told: list[tuple[int, Pattern]]
    since: dict[tuple[str, ...], Since] = field(default_factory=dict)

    def of(self, columns: Iterable[str]) -> Since:
        """Since when values of these columns are closed."""
        key = tuple(sorted(columns))
        if key not in self.since:
            self.since[key] = Since(self.lines, key)
            for at, pattern in self.told:
                self.since[key].add(at, [pattern])
        return self.since[key]


class Promised:
    """What streams have promised so far. It changes as they promise more.

    Parameters
    ----------
    streams
        By name.
    """

    def __init__(self, streams: Mapping[str, Stream]) -> None:
        self._streams = {name: _told_by(stream) for name, stream in streams.items()}

    @property
    def is_empty(self) -> bool:
        """Whether nothing has been promised but what is so from the outset."""
        return not any(at for known in self._streams.values() for at, _ in known.told)

    def take(self, name: str, told: Iterable[tuple[int, str]]) -> None:
        """Take in what a stream promises, and when, in order."""
        known = self._streams[name]
        for at, text in told:
            if not json.loads(text).keys() <= known.lines.keys():
                continue  # of what is compared in another way than by its values
            pattern = Pattern.from_json(text, known.schema)
            known.told.append((at, pattern))
            for since in known.since.values():
                since.add(at, [pattern])

    def told(self, name: str) -> list[tuple[int, Pattern]]:
        """What a stream has promised, and when."""
        return self._streams[name].told

    def lines(self, name: str) -> Lines:
        """The columns of a stream of which patterns tell."""
        return self._streams[name].lines

    def of(self, name: str, asked: Asked) -> Since | None:
        """Since when values of these columns of a stream are closed; None if they never are."""
        known = self._streams[name]
        if not asked or not asked.keys() <= known.lines.keys():
            return None
        since = known.of(asked)
        return None if since.is_empty else since

    def since(self, name: str, asked: Asked, rows: pa.Table) -> Ints:
        """Since when none like some rows follows in a stream; `NEVER` where one may."""
        since = self.of(name, asked)
        return np.full(rows.num_rows, NEVER) if since is None else _since(since, asked, rows)

    def over(self, closed: Closed, streams: Mapping[int, str], rows: pa.Table) -> Ints:
        """Since when what rows of a stream are in is over.

        Parameters
        ----------
        closed
            What says so.
        streams
            The streams where they stand.
        """
        parts = [self.since(name, asked, rows) for name, asked in self.asked(closed, streams)]
        found: Ints = np.maximum.reduce(parts)
        return found

    def asked(self, closed: Closed, streams: Mapping[int, str]) -> list[tuple[str, Asked]]:
        """What is asked of streams to know whether what rows are in is over: (stream, columns).

        Promises are of values of a type: of columns that are equal, but of different types, nothing is asked.
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

    def may_tell(self, closed: Closed, streams: Mapping[int, str]) -> bool:
        """Whether rows may be over by it: whether all streams have promised something of these columns."""
        return all(self.of(*part) is not None for part in self.asked(closed, streams))


def _told_by(stream: Stream) -> _Told:
    kinds = stream_kinds(stream)
    schema = told_of(kinds)
    is_plain = {
        each.name: travelling_type(each.dataType) == each.dataType and not contains(each.dataType, "collated")
        for each in kinds
    }
    lines = {name: line for name, line in lines_of(schema).items() if is_plain[name]}
    told = []
    if stream.rowtime in lines:  # a row without a rowtime is none
        told.append((0, Pattern.of({stream.rowtime: Values(lines[stream.rowtime], null=True, spans=())})))
    return _Told(kinds, schema, lines, told)


def stream_kinds(stream: Stream) -> StructType:
    """The columns of a stream of which patterns tell."""
    return StructType([stream.frame.schema[name] for name in stream.columns])


def folded(told: Promises, since: int, columns: pa.Schema) -> Promises:
    """The same in fewer patterns: when they came is left out of those before an instant, now and then."""
    old = [text for at, text in told if at < since]
    if len(old) <= 2 * sum(at == 0 for at, _ in told) + _SPARE:
        return told
    lines = lines_of(columns)
    cover = Cover(lines, (Pattern.from_json(text, columns) for text in old))
    fewer = [(0, Pattern.of_region(box, lines).to_json()) for box in cover]
    return [*fewer, *((at, text) for at, text in told if at >= since)]


def asked_of(
    timed: Timed, streams: Mapping[str, Stream], shown: StructType, columns: Mapping[str, str]
) -> list[tuple[int, str, Asked]]:
    """What is asked of the streams of a query about its rows: (place, stream, columns).

    Parameters
    ----------
    shown
        The columns of the rows.
    columns
        Which of them the query's own are, by name in lower case.
    """
    of_place = {each.place: each.stream for each in timed.occurrences}
    return [
        (at, of_place[at], _asked(timed.plain, at, streams[of_place[at]], shown, columns))
        for at in timed.places
    ]


def _asked(
    plain: Iterable[tuple[str, Plain]],
    place: int,
    stream: Stream,
    shown: StructType,
    columns: Mapping[str, str],
) -> Asked:
    found = {}
    for name, own in plain:
        for at, column in own:
            inner = columns[name.lower()]
            if at == place and stream.frame.schema[column].dataType == shown[inner].dataType:
                found[column] = inner
    return found


def with_since(frame: DataFrame, asked: Sequence[tuple[str, Since | None, Asked]]) -> DataFrame:
    """With columns that say since when none like a row follows: (column, what says so, columns)."""
    never: Column = F.lit(NEVER).cast("bigint")
    frame = frame.withColumns({name: never for name, since, _ in asked if since is None})
    telling = [(name, since, dict(columns)) for name, since, columns in asked if since is not None]
    if not telling:
        return frame

    def told(batches: Iterable[pa.RecordBatch], _: int) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = pa.Table.from_batches([batch])
            for name, since, columns in telling:
                rows = rows.append_column(name, pa.array(_since(since, columns, rows)))
            yield from rows.combine_chunks().to_batches()

    schema = frame.select("*").schema
    for name, _, _ in telling:
        schema = schema.add(name, LongType())
    return map_in_arrow(frame, in_worker(told, None), schema)


def _since(since: Since, asked: Asked, rows: pa.Table) -> Ints:
    columns = [rows.column(asked[name]).cast(since.lines[name].kind) for name in since.columns]
    return since.of(pa.Table.from_arrays(columns, names=list(since.columns)))

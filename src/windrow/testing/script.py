"""A script: rows and bounds that arrive at live streams, in their order."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkTypeError, PySparkValueError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StructType

from windrow.errors import UsageError, WindrowError, did_you_mean, no_column
from windrow.relation import Relation
from windrow.session import Session
from windrow.spark.gateway import Gateway
from windrow.spark.live import LivePlan
from windrow.spark.live.micro_batches.host import MicroBatches
from windrow.spark.logs.live_source import BOUND, PTIME, LiveSource
from windrow.spark.logs.session_streams import ROWTIME
from windrow.streams import FOREVER
from windrow.syntax.sqltext import Piece, SqlText, quoted
from windrow.testing.differences import Row, assert_same_rows
from windrow.testing.playing import Frames, Played, in_micro_batches

__all__ = ["Script"]

_KIND, _PLACE = "__kind", "__number"
_ROW, _BOUND, _END = 0, 1, 2
_FIRST = 1_767_225_600_000_000  # 2026-01-01, in microseconds
_OPTIONS = ("unit", "lag", "producer", "on_late")


@dataclass(frozen=True)
class _Stream:
    schema: StructType
    rowtime: str
    producer: str | None
    declared: LiveSource


@dataclass(frozen=True)
class _Entry:
    stream: str
    kind: int
    values: tuple[Any, ...]
    producer: Any = None


class Script:
    """Rows and bounds that arrive at live streams, in the order of the calls.

    Parameters
    ----------
    session
        The session in which the streams are declared and queries run, with its tables and views.

    Examples
    --------
    ::

        script = Script(session)
        script.stream("bids", "second BIGINT, item STRING, price INT", rowtime="second", unit="seconds")
        script.rows("bids", (1, "A", 10), (2, "A", 14))
        script.expect("SELECT ISTREAM(price) FROM bids [NOW]", [(1, 10), (2, 14)])
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._streams: dict[str, _Stream] = {}
        self._entries: list[_Entry] = []

    def stream(self, name: str, schema: str | StructType, *, rowtime: str, **options: Any) -> Script:
        """Declare a live stream.

        Parameters
        ----------
        name
            The name of the stream in queries.
        schema
            Its columns with their types, in Spark's syntax.
        rowtime, options
            As for :meth:`windrow.Session.stream`: `unit`, `lag`, `producer`, `on_late`. Bounds arrive by
            :meth:`bound`, and need no column.

        Raises
        ------
        UsageError
            ``UNKNOWN_OPTION``; ``STREAM_ALREADY_EXISTS`` for a second stream of the same name in a script;
            ``INVALID_ARGUMENT`` if `schema` is no schema.
        WindrowError
            Spark's error for a schema that it cannot read, and those of :meth:`windrow.Session.stream`.
        """
        unknown = next((option for option in options if option not in _OPTIONS), None)
        if unknown is not None:
            known = f"use one of {', '.join(_OPTIONS)}"
            hint = "call script.bound for each bound" if unknown == "bound" else known
            raise UsageError(
                f"a script's stream has no option {unknown}", condition="UNKNOWN_OPTION", hint=hint
            )
        if name.lower() in self._streams:
            raise UsageError(
                f"the script already has a stream {name}",
                condition="STREAM_ALREADY_EXISTS",
                sqlstate="42723",
                hint="make another script for another test",
            )
        columns = self._columns(schema)
        with tempfile.TemporaryDirectory() as nothing:
            arriving = self.session.spark.readStream.schema(columns).parquet(nothing)
            self.session.stream(name, arriving, rowtime=rowtime, **options)
        streams = self.session._catalog.streams
        declared = streams[name.lower()]
        assert declared.live is not None
        live = replace(declared.live, declared=declared.live.declared | {BOUND})
        streams[name.lower()] = replace(declared, live=live)
        found = {column.lower(): column for column in columns.names}
        producer = options.get("producer")
        self._streams[name.lower()] = _Stream(
            columns, found[rowtime.lower()], None if producer is None else found[producer.lower()], live
        )
        return self

    def _columns(self, schema: str | StructType) -> StructType:
        hint = "write columns with their types, as Spark does: 'ts TIMESTAMP, item STRING'"
        columns: object = schema
        if isinstance(schema, str):
            try:
                with Gateway(self.session.spark).translated(SqlText.of(Piece(schema, schema))):
                    columns = StructType.fromDDL(schema)
            except WindrowError as error:
                error.hint = hint
                raise
        if not isinstance(columns, StructType):
            raise UsageError(f"{schema!r} is not a schema", condition="INVALID_ARGUMENT", hint=hint)
        return columns

    def rows(self, stream: str, *rows: Row) -> Script:
        """Add arriving rows: mappings of columns to values, or values in the order of the columns."""
        known = self._known(stream)
        for row in rows:
            self._entries.append(_Entry(stream.lower(), _ROW, _values(known, row)))
        return self

    def bound(self, stream: str, instant: Any, *, producer: Any = None) -> Script:
        """Add an arriving bound: no later row has a rowtime before an instant.

        Parameters
        ----------
        instant
            A value of the rowtime's column.
        producer
            The producer of the bound: a value of the producer's column, if the stream has one.
        """
        known = self._known(stream)
        if instant is None:
            raise UsageError(
                "NULL is not a bound",
                condition="INVALID_ARGUMENT",
                hint="leave the call out: the end of a script closes all producers",
            )
        bound = {known.rowtime: instant}
        if known.producer is not None:
            bound[known.producer] = producer
        self._entries.append(_Entry(stream.lower(), _BOUND, _values(known, bound), producer))
        return self

    def play(
        self,
        query: str | Relation,
        *,
        cuts: Collection[int] = (),
        kills: Collection[int] = (),
        envelope: str | None = None,
        ends: bool = True,
    ) -> Played:
        """The output of a query.

        Parameters
        ----------
        query
            SQL, or a relation of this session.
        cuts
            The numbers of entries after which a micro-batch ends and the next begins.
        kills
            The micro-batches, from 0 on, after whose output the process is killed and the query restarted.
        envelope
            The form of a relation's changes, as for :meth:`windrow.Relation.start`.
        ends
            Whether all producers close their streams at the end.
        """
        relation = self.session.sql(query) if isinstance(query, str) else query
        plan = relation._live
        if plan is None:
            names = ", ".join(sorted(self._streams)) or "none yet"
            raise UsageError(
                "the query reads no stream of the script",
                condition="NOT_LIVE",
                hint="write SELECT STREAM … FROM s, or a window over the stream: FROM s [RANGE 10 MINUTES];"
                f" streams are {names}",
            )
        self._refuse_others(plan)
        entries = [*self._entries, *(self._ends() if ends else ())]
        places = sorted({0, len(entries), *(cut for cut in cuts if 0 < cut < len(entries))})
        batches = [self._frames(entries[low:high], low) for low, high in pairwise(places)]
        with tempfile.TemporaryDirectory() as folder:
            return in_micro_batches(
                plan, Path(folder) / "checkpoint", batches, kills, envelope or plan.envelope
            )

    def expect(
        self,
        query: str | Relation,
        rows: Iterable[Row],
        *,
        late: int | None = 0,
        envelope: str | None = None,
        tries: int = 2,
    ) -> Played:
        """Fail unless a query emits these rows and no others, whatever the micro-batches are.

        The script runs in one micro-batch; with a micro-batch for each entry, killed after its output; and
        `tries` times with random cuts and kills, which are the same in every call.

        Parameters
        ----------
        query, envelope
            As for :meth:`play`.
        rows
            As for :func:`assert_same_rows`, in any order.
        late
            The expected number of late rows; None for any number.
        tries
            The number of random runs.

        Returns
        -------
        Played
            The run with a micro-batch for each entry, and one for the end: it shows when rows are emitted.
        """
        wanted, count = list(rows), len(self._entries)
        relation = self.session.sql(query) if isinstance(query, str) else query
        each = range(1, count + 1)
        ways: list[tuple[Collection[int], Collection[int]]] = [((), ()), (each, each)]
        chance = random.Random(count)
        for _ in range(tries if count > 1 else 0):
            places = sorted(chance.sample(range(1, count + 1), chance.randint(1, min(count, 3))))
            ways.append((places, [chance.randint(0, len(places))]))
        found = []
        for cuts, kills in ways:
            played = self.play(relation, cuts=cuts, kills=kills, envelope=envelope)
            when = f"with cuts after the entries {_listed(cuts)}" if cuts else "in one micro-batch"
            when += f", killed after the micro-batches {_listed(kills)}" if kills else ""
            assert_same_rows(wanted, played.rows, f"emitted {when}")
            if late is not None and len(played.late) != late:
                lines = [f"  {row['stream']} {row['row']}, below {row['bound']}" for row in played.late]
                counted = f"{len(lines)} rows are late, expected {late}, {when}:"
                raise AssertionError("\n".join([counted, *lines]))
            found.append(played)
        return found[1]

    def _refuse_others(self, plan: LivePlan) -> None:
        """Refuse streams that the script has not declared, or that another script has replaced."""
        for name in sorted(plan.streams):
            known = self._known(name)
            if plan.catalog.streams[name].live is not known.declared:
                raise UsageError(
                    f"another script has replaced stream {name} of the session",
                    condition="STREAM_DIFFERS",
                    hint="play a script before another script declares a stream of the same name",
                )

    # -- what arrives --------------------------------------------------------------------------------

    def _known(self, stream: str) -> _Stream:
        known = self._streams.get(stream.lower())
        if known is None:
            raise UsageError(
                f"the script has no stream {stream}",
                condition="UNKNOWN_STREAM",
                sqlstate="42P01",
                hint=did_you_mean(stream, self._streams) or "declare it with script.stream",
            )
        return known

    def _ends(self) -> Iterable[_Entry]:
        """The closing entries of all producers that occur in the script."""
        producers: dict[tuple[str, Any], None] = {}
        for entry in self._entries:
            known = self._streams[entry.stream]
            place = None if known.producer is None else known.schema.names.index(known.producer)
            producers[entry.stream, None if place is None else entry.values[place]] = None
        for stream in self._streams:
            if all(name != stream for name, _ in producers):
                producers[stream, None] = None
        for stream, producer in producers:
            known = self._streams[stream]
            values = {} if known.producer is None else {known.producer: producer}
            yield _Entry(stream, _END, _values(known, values), producer)

    def _frames(self, entries: Sequence[_Entry], first: int) -> Frames:
        def frames(batches: MicroBatches) -> Mapping[str, DataFrame]:
            found = {}
            for _, name, stream in batches.streams():
                assert stream.live is not None
                known = self._known(name)
                own = [
                    (*entry.values, entry.kind, first + number)
                    for number, entry in enumerate(entries)
                    if entry.stream == name
                ]
                schema = StructType([*known.schema.fields]).add(_KIND, IntegerType()).add(_PLACE, LongType())
                try:
                    arriving = self.session.spark.createDataFrame(own, schema).coalesce(1)
                except (PySparkTypeError, PySparkValueError) as error:
                    raise UsageError(
                        f"a value in the rows of {name} does not have the type of its column:"
                        f" {error.getMessage()}",
                        condition="INVALID_VALUE",
                        hint="write values of Python's types: 1.0 for a DOUBLE, a datetime for a TIMESTAMP",
                    ) from None
                kind, ticks = F.col(_KIND), F.col(ROWTIME)
                bound = F.when(kind == _BOUND, ticks).when(kind == _END, F.lit(FOREVER))
                read = arriving.select(*stream.live.columns, _KIND, _PLACE)
                read = read.withColumns({PTIME: F.lit(_FIRST) + F.col(_PLACE), BOUND: bound})
                read = read.withColumn(ROWTIME, F.when(kind == _ROW, ticks))
                found[name] = read.select(*map(quoted, stream.live.frame.columns))
            return found

        return frames


def _listed(numbers: Collection[int]) -> str:
    return ", ".join(map(str, numbers))


def _values(known: _Stream, row: Row) -> tuple[Any, ...]:
    names = known.schema.names
    if not isinstance(row, Mapping):
        if isinstance(row, str | bytes) or len(row) != len(names):
            raise UsageError(
                f"{row!r} does not have the columns {', '.join(names)}",
                condition="INVALID_ARGUMENT",
                hint="write a tuple of their values, or a mapping",
            )
        return tuple(row)
    wrong = next((name for name in row if name not in names), None)
    if wrong is not None:
        raise no_column("the stream has", wrong, names, UsageError, condition="UNKNOWN_COLUMN")
    return tuple(row.get(name) for name in names)

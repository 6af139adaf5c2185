"""The common part of the micro-batches of all live queries: judge, advance, write, commit, account."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from windrow.errors import WindrowError
from windrow.spark.collected import collected, frame_of_collected
from windrow.spark.live.checkpoints.checkpoint import CommittedBatch
from windrow.spark.live.checkpoints.side_outputs import Listing
from windrow.spark.live.input.entry_columns import STREAM, inside
from windrow.spark.live.input.file_order import placed
from windrow.spark.live.input.late_rows import LATE_SCHEMA
from windrow.spark.live.input.malformed import (
    MALFORMED_SCHEMA,
    malformed_rows,
    marked,
    numbered,
    sound_rows,
    uncomputable_rows,
)
from windrow.spark.live.micro_batches.live_context import LiveContext
from windrow.spark.live.micro_batches.output import write_output
from windrow.spark.live.micro_batches.query_steps import Steps
from windrow.spark.live.micro_batches.uncomputable import Uncomputable, is_of_a_value
from windrow.spark.live.reports.account import Account
from windrow.spark.live.reports.failures import failure
from windrow.spark.live.reports.rows_set_aside import SetAside, counted
from windrow.spark.live.reports.state_table import QueryState
from windrow.spark.live.reports.wrong_clocks import WrongClocks
from windrow.spark.live.sinks.latest import latest_of
from windrow.spark.live.sinks.sink import uri
from windrow.spark.logs.live_source import PLACE
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.streams import Position
from windrow.syntax.sqltext import quoted

__all__ = ["ASIDE", "MicroBatches"]

ASIDE = {"late": LATE_SCHEMA, "malformed": MALFORMED_SCHEMA}
"""The columns of the side outputs."""

_KEEP = (
    "restart the query with its checkpoint and on_malformed='keep', which puts such rows into a side output;"
    " or write functions such as try_divide and try_cast in the query"
)
_OF_SEVERAL = (
    "write functions such as try_sum, try_divide and try_cast in the query, which return NULL instead"
)
"""Of what no row has alone, or is not read as computed of each row."""


class MicroBatches:
    """Runs micro-batches one after the other.

    A micro-batch that was processed completely is not processed again. An interrupted one is: it starts from
    the state after the last micro-batch, so it returns the same rows, and the sink replaces those emitted
    before.

    Parameters
    ----------
    context
        The query.
    steps
        What its micro-batches do.

    Attributes
    ----------
    context, steps
        The query, and what its micro-batches do.
    """

    def __init__(self, context: LiveContext, steps: Steps[Any]) -> None:
        self.context, self.steps = context, steps
        self._checkpoint = context.checkpoint
        self._progress: dict[str, Any] | None = None
        self._wrong_clocks = WrongClocks(context.spark, context.plan.catalog)

    @property
    def progress(self) -> dict[str, Any]:
        """The progress of the last micro-batch, also of one before a restart; empty before the first."""
        if self._progress is not None:
            return self._progress
        last = self._checkpoint.last()
        with suppress(WindrowError, OSError):  # of state that cannot be read, which a micro-batch reports
            return {} if last.number < 0 else self._reported(last)
        return {}

    @property
    def settings(self) -> Mapping[str, str]:
        """Settings of Spark for the query, set when it starts."""
        return self.steps.settings

    @property
    def wants(self) -> int | None:
        """When the query needs a tick, in microseconds; None for never."""
        return self.steps.wants

    def tick(self, instant: int) -> None:
        """Put a tick for an instant into the query's input."""
        self.steps.tick(instant)

    @property
    def last(self) -> int:
        """The number of the last micro-batch, -1 before the first."""
        return self._checkpoint.last().number

    @property
    def identity(self) -> str:
        """The identity of the checkpoint."""
        return self._checkpoint.identity

    @property
    def positions(self) -> Mapping[str, Position]:
        """How far each stream has been read by the last micro-batch."""
        return self._checkpoint.last().positions

    def close(self) -> None:
        """Release the checkpoint."""
        self.context.close()

    def state(self) -> QueryState:
        """The state after the last micro-batch."""
        return self.steps.state(self._checkpoint.last())

    def aside_table(self, name: str) -> pa.Table:
        """The rows of a side output up to the last micro-batch, in memory."""
        tables = [pq.read_table(path) for path in self.side_files(name)]
        wanted = to_arrow_schema(ASIDE[name])
        whole = pa.concat_tables([wanted.empty_table(), *tables], promote_options="default")
        return whole.select(wanted.names).cast(wanted)

    def aside(self, name: str) -> DataFrame:
        """The rows of a side output up to the last micro-batch."""
        columns = ASIDE[name]
        paths = self.side_files(name)
        if not paths:
            return self.context.spark.createDataFrame([], columns)
        return self.context.spark.read.schema(columns).parquet(*map(uri, paths))

    def side_files(self, name: str) -> list[Path]:
        """The files with the rows of a side output up to the last micro-batch, each once."""
        return self._checkpoint.sides[name].paths(self._listed(name))

    def set_aside(self, name: str, most: int) -> tuple[SetAside, ...]:
        """The counts of a side output, with a sample of rows of each stream and reason."""
        side = self._checkpoint.sides[name]
        return counted(name, side.batches(self._listed(name)), most, side.folder)

    def _listed(self, name: str) -> Listing:
        return self._checkpoint.last().sides.get(name, Listing())

    def latest(self, count: int) -> pa.Table | None:
        """The last emitted rows, if they can be read back."""
        return latest_of(self.context.sink, count)

    def streams(self) -> list[tuple[int, str, Stream]]:
        """The live streams, by number and name."""
        return self.context.streams()

    def input(self, frames: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """All arriving entries; of `frames`, in place of the streams' own."""
        return self.steps.input(self.context, frames)

    def take(self, batch: DataFrame, number: int) -> None:
        """Process a micro-batch, unless it has been processed completely."""
        retains = self.context.retains_malformed
        with self.steps.cached(batch) as sound:
            found = self.steps.malformed(sound) if retains else None
            if found is not None or not retains:
                self._take_sound(sound, None if found is None else numbered(found, number), number)
                return
        with self._checkpoint.stored(placed(batch), number) as whole:
            entries = marked(whole, self.streams())
            sound, malformed = sound_rows(entries), malformed_rows(entries, number)
            found = self._uncomputable.among(self._rows_of_streams(sound))
            if found is not None:
                reasons = F.broadcast(self.context.spark.createDataFrame(found))
                wrong = sound.join(reasons, PLACE)
                malformed = malformed.unionAll(uncomputable_rows(wrong, self.streams(), number))
                sound = sound.join(reasons, PLACE, "left_anti")
            self._take_sound(sound, malformed, number)

    def _take_sound(self, sound: DataFrame, malformed: DataFrame | None, number: int) -> None:
        """Process the sound entries, and write the malformed ones to the side output."""
        before = self._checkpoint.before(number, lambda: self.steps.count(sound))
        if before is None:
            return
        if malformed is not None:
            self._set_malformed_aside(malformed, number)
        try:
            self._advance(sound, number, before)
        except Exception as error:
            raised = failure(error)
            if raised is None or not is_of_a_value(raised):
                raise
            raise self._with_hint(raised, sound) from error.__cause__
        self._wrong_clocks.look(self.streams(), self._checkpoint.last())

    @cached_property
    def _uncomputable(self) -> Uncomputable:
        return Uncomputable(self.context.plan)

    def _rows_of_streams(self, batch: DataFrame) -> dict[str, DataFrame]:
        """The rows of each stream among entries, with `PLACE`."""
        found = {}
        for at, name, stream in self.streams():
            is_row = (F.col(STREAM) == at) & F.col(quoted(inside(at, ROWTIME))).isNotNull()
            columns = [F.col(quoted(inside(at, own))).alias(own) for own in stream.columns]
            found[name] = batch.where(is_row).select(*columns, PLACE)
        return found

    def _with_hint(self, error: WindrowError, batch: DataFrame) -> WindrowError:
        """The error that a value cannot be computed, with a hint."""
        hint = _OF_SEVERAL if error.sqlstate.startswith("22") else None
        try:
            if not self.context.retains_malformed and self._uncomputable.fails(
                self._rows_of_streams(placed(batch))
            ):
                hint = _KEEP
        except (WindrowError, PySparkException):  # the query has failed, and says why in any case
            return error
        error.hint = "; ".join(filter(None, (error.hint, hint))) or None
        return error

    def _set_malformed_aside(self, rows: DataFrame, number: int) -> None:
        table = collected(rows)
        if table is None or table.num_rows:
            malformed = (
                rows if table is None else frame_of_collected(self.context.spark, table, MALFORMED_SCHEMA)
            )
            self._checkpoint.sides["malformed"].write(malformed, number)

    def _advance(self, batch: DataFrame, number: int, before: CommittedBatch) -> None:
        """Process the sound entries after a commit: judge, advance, write the output, commit, account."""
        emitted, emitted_before = 0, before.counts.get("rows_emitted", 0)
        try:
            entries = self.steps.judge(batch, before)
            self.context.late.set_aside(entries.late, number)
            advanced = self.steps.advance(entries, number, before)
            if advanced.output is not None:
                emitted = write_output(self.context, advanced.output, number, emitted_before)
            manifest = advanced.store()
            own = {"batch_rows_in": entries.count, "batch_rows_emitted": emitted}
            counts = {**manifest.counts, **own, "rows_emitted": emitted_before + emitted}
            counts |= self.steps.retained(manifest).counts
            committed = self._checkpoint.commit(replace(manifest, counts=counts))
        finally:
            self.steps.release()
        self._progress = self._reported(committed)

    def _reported(self, committed: CommittedBatch) -> dict[str, Any]:
        """The progress of a committed micro-batch, with its account."""
        retained, counts = self.steps.retained(committed), committed.counts
        malformed = sum(pq.read_metadata(path).num_rows for path in self.side_files("malformed"))
        rows_in, used, late = (counts[f"rows_{name}"] for name in ("in", "used", "late"))
        account = Account(rows_in + malformed, used, retained.waiting, late, malformed)
        return {
            "batch": committed.number,
            "batch_rows_in": counts.get("batch_rows_in", 0),
            "batch_rows_emitted": counts.get("batch_rows_emitted", 0),
            "frontier": committed.frontier,
            **{name: count for name, count in counts.items() if name.startswith("rows_")},
            **account.counts,
            **retained.counts,
            "state_bytes": self._checkpoint.size(committed),
            **retained.besides,
        }

"""Targets of live queries: the sink that a user names, and the form in which it receives rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from pyspark.sql import DataFrame

from windrow.errors import AnalysisError, NotSupportedError, UsageError, refuse_unknown
from windrow.spark.live.plans.live_plan import LivePlan
from windrow.spark.live.sinks.full_refresh import FullTable, Replaced
from windrow.spark.live.sinks.into_stream import IntoStream, refuse_other
from windrow.spark.live.sinks.kafka import Kafka
from windrow.spark.live.sinks.keys import key_places
from windrow.spark.live.sinks.sink import Files, InFolder, Memory, Sink, called, console
from windrow.spark.live.sinks.tables import Table
from windrow.spark.live.sinks.upsert_changes import Upserts
from windrow.streams import NamedStream

__all__ = ["MODES", "Mode", "Target", "in_mode", "refuse_places", "sink_of"]

Mode = Literal["changelog", "upsert", "table"]
MODES: tuple[Mode, ...] = ("changelog", "upsert", "table")
"""The forms in which a sink receives a relation."""

Target = str | Path | Files | Memory | Table | Kafka | NamedStream | Callable[[DataFrame, int], object]


def sink_of(target: Target | Sink | IntoStream) -> Sink | IntoStream:
    """The sink that a user names.

    Raises
    ------
    UsageError
        ``UNKNOWN_SINK``; ``INVALID_ARGUMENT`` for a path that is not a folder.
    """
    if target == "console":
        return console()
    if isinstance(target, NamedStream):
        return IntoStream(target)
    if isinstance(target, str | Path):
        is_stream = (Path(target) / "stream.json").is_file()
        return IntoStream(NamedStream.open(target)) if is_stream else Files(target)
    if isinstance(target, Sink | IntoStream):
        return target
    if callable(target):
        return called(target)
    raise UsageError(
        f"{type(target).__name__} is not a sink",
        condition="UNKNOWN_SINK",
        hint="pass a folder, a named stream, 'console', windrow.Files, Table, Kafka or Memory, or a function"
        " of a DataFrame and a number",
    )


def refuse_places(name: object, checkpoint: object, key: object, sink: Sink | IntoStream) -> None:
    """Refuse what is no name, no folder or no key, and one folder for the rows and the checkpoint.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    """
    if not (isinstance(name, str) and name):
        raise _invalid(f"name={name!r} is not a name for a query", "pass a text, or leave it out")
    if not (key is None or isinstance(key, str) or _are_names(key)):
        raise _invalid(f"key={key!r} is not a list of columns", "pass a column's name, or a list of names")
    if checkpoint is None:
        return
    if not isinstance(checkpoint, str | Path) or checkpoint == "" or Path(checkpoint).is_file():
        raise _invalid(f"checkpoint={str(checkpoint)!r} is not a folder", "name a folder of its own")
    if isinstance(sink, InFolder) and sink.folder.resolve() == Path(checkpoint).resolve():
        raise _invalid(f"rows and checkpoint are both in {checkpoint}", "name a folder of its own for each")


def _are_names(key: object) -> bool:
    return isinstance(key, Sequence) and all(isinstance(name, str) for name in key)


def _invalid(message: str, hint: str) -> UsageError:
    return UsageError(message, condition="INVALID_ARGUMENT", hint=hint)


def in_mode(
    sink: Sink | IntoStream,
    plan: LivePlan,
    mode: str,
    key: str | Sequence[str] | None,
    envelope: str | None,
    folder: Path,
) -> tuple[Sink | IntoStream, str]:
    """The sink to which a query writes, and the envelope of the changes that it receives.

    Parameters
    ----------
    mode, key, envelope
        As for :meth:`windrow.relation.Relation.start`.
    folder
        The folder of the query's checkpoint.

    Raises
    ------
    UsageError
        ``INVALID_ARGUMENT``.
    AnalysisError
        ``STREAM_WHERE_RELATION_IS_NEEDED``, ``DUPLICATE_COLUMN``, and those of
        :func:`windrow.spark.live.sinks.keys.key_places`.
    NotSupportedError
        ``UNSUPPORTED_SINK`` for a target that cannot be replaced atomically.
    """
    _refuse_arguments(mode, key, envelope)
    if mode == "changelog" and isinstance(sink, IntoStream):
        return sink, "delta"  # in which each row is one
    if mode == "changelog":
        if isinstance(sink, Files | Table):
            plan.refuse_twice(plan.columns, "a file")
        return sink, envelope or plan.envelope
    if isinstance(sink, IntoStream):
        refuse_other(sink, plan)
        raise _no_rows_leave(plan)
    if not plan.is_relation:
        raise _no_rows_leave(plan)
    names = plan.table_columns
    plan.refuse_twice(names, "a table")
    if mode == "upsert":
        columns = [key] if isinstance(key, str) else key
        return Upserts(sink, names, key_places(plan, columns)), "diff"
    if isinstance(sink, Files) and sink.format == "parquet":
        sink = Replaced(sink.folder)
    elif isinstance(sink, Files | Table | Kafka):
        raise NotSupportedError(
            f"{type(sink).__name__} cannot be replaced atomically by the full table of a query",
            condition="UNSUPPORTED_SINK",
            sql=plan.text,
            span=plan.span,
            hint="name a folder, for Parquet files; or pass a function of a DataFrame and a number",
        )
    return FullTable(sink, names, folder / "table"), "diff"


def _refuse_arguments(mode: str, key: str | Sequence[str] | None, envelope: str | None) -> None:
    refuse_unknown(f"mode {mode!r}", mode, MODES, "INVALID_ARGUMENT")
    if key is not None and mode != "upsert":
        raise UsageError(
            f"mode {mode!r} takes no key",
            condition="INVALID_ARGUMENT",
            hint="leave the key out, or use mode='upsert'",
        )
    if envelope is not None and mode != "changelog":
        raise UsageError(
            f"mode {mode!r} takes no envelope",
            condition="INVALID_ARGUMENT",
            hint="leave the envelope out, or use mode='changelog'",
        )


def _no_rows_leave(plan: LivePlan) -> AnalysisError:
    return AnalysisError(
        "the query is a stream, which is append-only",
        condition="STREAM_WHERE_RELATION_IS_NEEDED",
        sql=plan.text,
        span=plan.span,
        hint="start it without a mode, or start the relation inside ISTREAM or DSTREAM",
    )

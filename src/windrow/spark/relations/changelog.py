"""Changelogs of time-varying relations, in all envelopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from windrow.algebra.time_scale import TimeScale
from windrow.errors import AnalysisError, Span, UsageError, no_column, refuse_unknown
from windrow.plan.arrow_types import is_orderable
from windrow.plan.event_time import HIDDEN
from windrow.spark.logs.session_streams import ROWTIME, Stream
from windrow.spark.relations.time_varying_relation import AT, DIFF, TimeVarying

__all__ = ["ENVELOPES", "as_cql", "as_delta", "changelog", "changes_as_stream", "key_columns", "one_sql"]

ENVELOPES = ("delta", "op", "diff", "cql")
"""The envelopes of a changelog."""

_WITH_UPDATES = ("delta", "op")
_OF_DELTA = ("_change_type", "_commit_version", "_commit_timestamp")
_KIND = "__kind"
_NUMBER = "__number"
_DELETE, _UPDATE, _INSERT = 0, 1, 2


def changelog(
    relation: TimeVarying,
    envelope: str = "delta",
    *,
    key: Sequence[tuple[str, Span | None]] = (),
    ordered: bool = False,
) -> DataFrame:
    """The inserts and deletes of a relation; if `ordered`, by time, deletes before inserts.

    Parameters
    ----------
    relation
        The relation.
    envelope
        ``"delta"``: the columns, ``_change_type`` (insert or delete), ``_commit_version`` and
        ``_commit_timestamp``. ``"op"``: ``_op`` (+I or -D), ``_at`` and the columns. ``"diff"``: the
        columns, ``_diff``, the change of the number of copies of the row, and ``_at``. ``"cql"``:
        ``timestamp``, ``kind`` (+ or -) and ``tuple``, the values as text.
    key
        Columns, with their places in the text. A delete and an insert with equal values in them at one
        instant are an update: ``update_preimage`` and ``update_postimage`` in ``"delta"``, -U and +U in
        ``"op"``. If a key has several rows, they are paired in the order of their values.

    Raises
    ------
    UsageError
        ``UNKNOWN_ENVELOPE``, ``INVALID_ARGUMENT`` for a key of another envelope.
    AnalysisError
        ``UNRESOLVED_COLUMN``, ``AMBIGUOUS_REFERENCE``, ``UNORDERABLE_TYPE`` of the key.
    """
    refuse_unknown(f"envelope {envelope!r}", envelope, ENVELOPES, "UNKNOWN_ENVELOPE")
    if key and envelope not in _WITH_UPDATES:
        raise UsageError(
            f"envelope {envelope} has no updates, and so takes no key",
            condition="INVALID_ARGUMENT",
            hint=f"leave the key out, or use one of {', '.join(_WITH_UPDATES)}",
        )
    changes = relation.changes()
    keys = key_columns(changes, relation.columns, relation.names, key)
    rows = [F.col(column) for column in relation.columns]
    if envelope == "diff":
        visible = changes.orderBy(AT, DIFF) if ordered else changes
        return visible.select(*rows, DIFF, relation.instant_column()).toDF(*relation.names, "_diff", "_at")
    copies = changes if relation.net_by is not None else _copies(changes)
    if key:
        copies = _with_updates(copies, keys, relation.columns)
    if ordered:
        together = [_KIND, *keys, _NUMBER] if key else []
        copies = copies.orderBy(AT, *together, DIFF)
    if envelope == "delta":
        return _as_delta(copies, relation.columns, relation.names, relation.scale, updates=bool(key))
    if envelope == "op":
        kind = _word(["-D", "-U", "+U", "+I"], updates=bool(key))
        return copies.select(kind, relation.instant_column(), *rows).toDF("_op", "_at", *relation.names)
    return _as_cql(copies, relation.columns, relation.scale)


def changes_as_stream(
    relation: TimeVarying, scale: TimeScale, key: Sequence[tuple[str, Span | None]] = ()
) -> Stream:
    """The changes of a relation as the rows of a stream, at their instants; those of one are ordered by their
    values.

    Parameters
    ----------
    scale
        The unit of their versions and times.
    """
    factor = scale.nanoseconds // relation.scale.nanoseconds
    columns, changes = relation.columns, relation.changes()
    copies = changes if relation.net_by is not None else _copies(changes)
    if key:
        copies = _with_updates(copies, key_columns(changes, columns, relation.names, key), columns)
    version = F.expr(f"{AT} DIV {factor}L")
    at = F.expr(scale.to_column("__version"))
    kind = _delta_word(updates=bool(key)).alias("__change")
    rows = copies.withColumn("__version", version).select(*columns, kind, "__version", at.alias("__time"), AT)
    kinds = {field.name: field.dataType for field in rows.schema}
    ordered = [name for name in (*columns, "__change") if is_orderable(kinds[name])]
    ties = {f"__tie{number}": F.col(name) for number, name in enumerate(ordered)}
    names = (*relation.names, *_OF_DELTA)
    relation.refuse_twice(names)
    frame = rows.withColumns(ties).toDF(*names, ROWTIME, *ties)
    return Stream(frame, names, relation.scale, tuple(ties), sources=relation.streams)


def as_delta(
    changes: DataFrame,
    columns: Sequence[str],
    names: Sequence[str],
    scale: TimeScale,
    key: Sequence[tuple[str, Span | None]] = (),
) -> DataFrame:
    """Changes with `AT` and `DIFF` in the envelope ``"delta"``, as :func:`changelog` has it."""
    keys = key_columns(changes, columns, names, key)
    copies = _copies(changes)
    if key:
        copies = _with_updates(copies, keys, list(columns))
    return _as_delta(copies, columns, names, scale, updates=bool(key))


def _as_delta(
    copies: DataFrame, columns: Sequence[str], names: Sequence[str], scale: TimeScale, *, updates: bool
) -> DataFrame:
    at = F.expr(scale.to_column(AT))
    return copies.select(*map(F.col, columns), _delta_word(updates=updates), AT, at).toDF(*names, *_OF_DELTA)


def _delta_word(*, updates: bool) -> Column:
    return _word(["delete", "update_preimage", "update_postimage", "insert"], updates=updates)


def _copies(changes: DataFrame) -> DataFrame:
    """A row for each copy of a change."""
    return changes.withColumn("__copy", F.explode(F.array_repeat(F.lit(0), F.abs(DIFF).cast("int"))))


def as_cql(changes: DataFrame, columns: Sequence[str], scale: TimeScale) -> DataFrame:
    """Changes with `AT` and `DIFF` in the envelope ``"cql"``."""
    return _as_cql(_copies(changes), columns, scale)


def _as_cql(copies: DataFrame, columns: Sequence[str], scale: TimeScale) -> DataFrame:
    kind = F.when(F.col(DIFF) > 0, "+").otherwise("-")
    values = [F.coalesce(F.col(column).cast("string"), F.lit("")) for column in columns]
    visible = F.expr(scale.to_column(AT))
    return copies.select(visible, kind, F.concat_ws(",", *values)).toDF("timestamp", "kind", "tuple")


def _word(words: list[str], *, updates: bool) -> Column:
    """The word for a change, among those for delete, update before, update after, and insert."""
    delete, before, after, insert = words
    enters = F.col(DIFF) > 0
    plain = F.when(enters, insert).otherwise(delete)
    if not updates:
        return plain
    return F.when(F.col(_KIND) != _UPDATE, plain).when(enters, after).otherwise(before)


def _with_updates(copies: DataFrame, keys: list[str], columns: list[str]) -> DataFrame:
    """The changes, a row for each copy, with the kind of each and its number within its key."""
    kinds = {field.name: field.dataType for field in copies.schema}
    order = [name for name in columns if is_orderable(kinds[name])]
    enters = F.col(DIFF) > 0
    numbered = copies.withColumn(
        _NUMBER, F.row_number().over(Window.partitionBy(AT, *keys, enters).orderBy(*order))
    )
    alike = Window.partitionBy(AT, *keys)
    entering = F.sum(enters.cast("int")).over(alike)
    updated = F.col(_NUMBER) <= F.least(entering, F.count(F.lit(1)).over(alike) - entering)
    kind = F.when(updated, _UPDATE).when(enters, _INSERT).otherwise(_DELETE)
    return numbered.withColumn(_KIND, kind)


def key_columns(
    changes: DataFrame, columns: Sequence[str], names: Sequence[str], key: Sequence[tuple[str, Span | None]]
) -> list[str]:
    """The internal columns of a key."""
    return [_column(changes, dict(zip(columns, names, strict=True)), name, span) for name, span in key]


def _column(changes: DataFrame, names: Mapping[str, str], name: str, span: Span | None) -> str:
    found = [column for column, known in names.items() if known.lower() == name.lower()]
    if not found:
        raise no_column("the relation has", name, tuple(names.values()), span=span)
    if len(found) > 1:
        raise AnalysisError(
            f"the relation has {len(found)} columns {name}",
            condition="AMBIGUOUS_REFERENCE",
            sqlstate="42704",
            span=span,
            hint="rename one of them with AS",
        )
    kind = changes.schema[found[0]].dataType
    if not is_orderable(kind):
        raise AnalysisError(
            f"column {name} of type {kind.simpleString().upper()} cannot be a key",
            condition="UNORDERABLE_TYPE",
            sqlstate="42822",
            span=span,
            hint="use a field of it, or cast it in the query",
        )
    return found[0]


def one_sql(
    relation: TimeVarying, groups: Sequence[str] | None, *, ordered: bool, since: int | None = None
) -> DataFrame:
    """The changes of a relation as rows with ``undo``, ``ptime`` and ``ver``, without hidden columns.

    Parameters
    ----------
    relation
        A relation over processing time.
    groups
        The internal columns of groups, which number their changes; None without numbers.
    ordered
        Whether they are ordered by time, with those of one group together and deletes first.
    since
        The first instant whose changes are returned; earlier ones are numbered too.
    """
    changes = relation.changes()
    copies = changes if relation.net_by is not None else _copies(changes)
    kinds = {field.name: field.dataType for field in copies.schema}
    values = [name for name in relation.columns if is_orderable(kinds[name])]
    if groups is None:
        version = F.lit(0).cast("bigint")
    else:
        of_group = Window.partitionBy(*groups) if groups else Window.partitionBy(F.lit(0))
        place = of_group.orderBy(AT, DIFF, *values)
        version = F.row_number().over(place).cast("bigint") - 1
    numbered = copies.withColumn("__version", version)
    if since is not None:
        numbered = numbered.where(F.col(AT) >= since)
    if ordered:
        numbered = numbered.orderBy(AT, *(groups or []), "__version", DIFF, *values)
    visible = [
        (name, column)
        for name, column in zip(relation.names, relation.columns, strict=True)
        if not name.startswith(HIDDEN)
    ]
    own = [F.col(column) for _, column in visible]
    names = [name for name, _ in visible]
    undo, ptime = F.col(DIFF) < 0, relation.instant_column()
    return numbered.select(*own, undo, ptime, "__version").toDF(*names, "undo", "ptime", "ver")

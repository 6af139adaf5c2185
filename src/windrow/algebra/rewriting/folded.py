"""Changelogs as tables: the query that applies the changes of a changelog stream.

The table of a changelog stream is a query over it. With a key, the table has the last row of each key.
Without one, it has a row as often as its inserts exceed its deletes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from windrow.errors import UsageError, did_you_mean, refuse_unknown
from windrow.syntax.sqltext import quoted

__all__ = ["FOLDED", "folded"]

_SIGN, _ROW, _PLACE, _COUNT = "__sign", "__row", "__place", "__count"


@dataclass(frozen=True)
class _Envelope:
    """An envelope of changes.

    Attributes
    ----------
    ours
        The columns that do not belong to the row.
    sign
        SQL for the change of a row's count; NULL for an entry that is no change.
    order
        The columns that order the changes of a key.
    """

    ours: tuple[str, ...]
    sign: str
    order: tuple[str, ...]


def _signs(column: str, enters: Sequence[str], leaves: Sequence[str]) -> str:
    listed = [", ".join(f"'{word}'" for word in words) for words in (enters, leaves)]
    wrong = (
        f"raise_error(concat('{column} is ', coalesce({column}, 'NULL'), ', which is not an operation"
        " of a changelog'))"
    )
    return (
        f"CASE WHEN {column} IN ({listed[0]}) THEN 1 WHEN {column} IN ({listed[1]}) THEN -1 ELSE {wrong} END"
    )


FOLDED: Mapping[str, _Envelope] = MappingProxyType(
    {
        "delta": _Envelope(
            ("_change_type", "_commit_version", "_commit_timestamp"),
            _signs("_change_type", ("insert", "update_postimage"), ("delete", "update_preimage")),
            ("_commit_version",),
        ),
        "op": _Envelope(("_op", "_at"), _signs("_op", ("+I", "+U"), ("-D", "-U")), ("_at",)),
        "diff": _Envelope(("_diff", "_at"), "_diff", ("_at",)),
        "one-sql": _Envelope(("undo", "ptime", "ver"), "IF(undo, -1, 1)", ("ptime", "ver")),
        "debezium": _Envelope(("before", "after", "op"), _signs("op", ("c", "r", "u"), ("d",)), ("ts_ms",)),
    }
)
"""The envelopes of changelogs."""


def folded(
    stream: str,
    columns: Sequence[str],
    envelope: str,
    key: Sequence[str] = (),
    order: Sequence[str] = (),
    inside: Sequence[str] = (),
) -> str:
    """The query of the table that a changelog stream describes.

    Parameters
    ----------
    stream
        The name of the stream.
    columns
        The columns of the stream.
    envelope
        One of `FOLDED`.
    key
        The key columns of the row; by default all.
    order
        Columns of the stream that order the changes of a key.
    inside
        The fields of ``after``, for ``"debezium"``.

    Raises
    ------
    UsageError
        ``UNKNOWN_ENVELOPE``, ``UNRESOLVED_COLUMN``.
    """
    refuse_unknown(f"envelope {envelope!r}", envelope, FOLDED, "UNKNOWN_ENVELOPE")
    known = FOLDED[envelope]
    is_nested = envelope == "debezium"
    needed = known.ours if is_nested else known.ours[:1]
    _resolve(needed, columns, f"a changelog in the envelope {envelope}")
    ours = {name.lower() for name in known.ours}
    own = list(inside) if is_nested else [name for name in columns if name.lower() not in ours]
    by = _resolve(key, own, "the row")
    listed = ", ".join(map(quoted, own))
    if by:
        later = _resolve(order or known.order, columns, "the stream")
        return _last_of_each(stream, known, listed, own, by, later, is_nested=is_nested)
    if is_nested:
        entered, left = (", ".join(f"{side}.{quoted(name)}" for name in own) for side in ("after", "before"))
        changes = (
            f"SELECT {entered}, 1 AS {_SIGN} FROM {quoted(stream)} WHERE {known.sign} = 1"
            f" UNION ALL SELECT {left}, -1 AS {_SIGN} FROM {quoted(stream)} WHERE op IN ('u', 'd')"
        )
    else:
        changes = f"SELECT {listed}, {known.sign} AS {_SIGN} FROM {quoted(stream)}"
    groups = f"FROM ({changes}) AS c GROUP BY {listed} HAVING SUM({_SIGN}) > 0"
    counted = f"SELECT {listed}, SUM({_SIGN}) AS {_COUNT} {groups}"
    copies = f"explode(sequence(1, CAST({_COUNT} AS INT)))"
    return f"SELECT {listed} FROM (SELECT {listed}, {copies} AS {_PLACE} FROM ({counted}) AS n) AS r"


def _last_of_each(
    stream: str,
    known: _Envelope,
    listed: str,
    own: Sequence[str],
    key: Sequence[str],
    order: Sequence[str],
    *,
    is_nested: bool,
) -> str:
    """The last row of each key, if it has not been deleted."""
    side = f"IF({_SIGN} = 1, after, before)."
    values = ", ".join(f"{side}{quoted(name)} AS {quoted(name)}" for name in own) if is_nested else listed
    later = [f"__order{at}" for at in range(len(order))]
    named = ", ".join(f"{quoted(name)} AS {alias}" for name, alias in zip(order, later, strict=True))
    signed = f"SELECT *, {known.sign} AS {_SIGN} FROM {quoted(stream)}"
    rows = f"SELECT {values}, {named}, {_SIGN} FROM ({signed}) AS s"
    last = ", ".join(f"{name} DESC" for name in (*later, _SIGN))  # inserts come after deletes
    keys = ", ".join(map(quoted, key))
    placed = (
        f"SELECT *, ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {last}) AS {_PLACE} FROM ({rows}) AS c"
    )
    return f"SELECT {listed} FROM ({placed}) AS p WHERE {_PLACE} = 1 AND {_SIGN} > 0"


def _resolve(names: Sequence[str], known: Sequence[str], where: str) -> list[str]:
    """The columns of these names."""
    by_name = {name.lower(): name for name in known}
    for name in names:
        if name.lower() not in by_name:
            raise UsageError(
                f"{where} has no column {name}",
                condition="UNRESOLVED_COLUMN",
                hint=did_you_mean(name, list(known)) or f"use one of the columns {', '.join(known)}",
            )
    return [by_name[name.lower()] for name in names]

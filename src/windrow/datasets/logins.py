"""A small table of login attempts, for sessions and for patterns such as three failures and then a login."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pyarrow as pa

__all__ = ["SCHEMA", "logins"]

SCHEMA = pa.schema([("user", pa.string()), ("ts", pa.timestamp("us", tz="UTC")), ("ok", pa.bool_())])

# User, start of a visit, and its attempts 20 seconds apart: `+` a login, `x` a failure. A digit is a
# pause of that many minutes. A session that ends after 30 idle minutes therefore spans a visit, and joins
# those of one user that are closer.
_VISITS = (
    ("ann", "2024-03-04 08:02", "+5+9+"),
    ("bob", "2024-03-04 08:05", "xxx+"),  # three failures, then a login
    ("cid", "2024-03-04 08:10", "x+"),
    ("ann", "2024-03-04 08:31", "+"),  # 15 minutes later: still the first session
    ("dee", "2024-03-04 08:55", "xxxxx"),  # failures only
    ("bob", "2024-03-04 09:40", "+"),
    ("cid", "2024-03-04 10:00", "xx+8x"),
    ("ann", "2024-03-04 12:15", "x9x9x9+"),  # the same pattern, over half an hour
    ("dee", "2024-03-04 13:30", "+"),  # a login long after the failures
    ("bob", "2024-03-04 16:20", "xx3+xx+"),
    ("ann", "2024-03-05 08:00", "+"),
    ("cid", "2024-03-05 08:20", "xxxx+4+"),  # four failures, then a login
    ("dee", "2024-03-05 09:05", "+6+6+6+6+"),  # a long session of few gaps
)
_APART = timedelta(seconds=20)


def logins() -> pa.Table:
    """Make the table.

    Returns
    -------
    pyarrow.Table
        A row for each attempt: `user`, `ts` (an instant, with microseconds, UTC) and `ok`, whether the
        attempt was a login. Ordered by `ts`; no user has two attempts at one instant.
    """
    rows = []
    for user, start, attempts in _VISITS:
        at = datetime.fromisoformat(start).replace(tzinfo=UTC)
        for mark in attempts:
            if mark.isdigit():
                at += timedelta(minutes=int(mark))
            else:
                rows.append({"user": user, "ts": at, "ok": mark == "+"})
                at += _APART
    rows.sort(key=lambda row: (row["ts"], row["user"]))
    return pa.Table.from_pylist(rows, SCHEMA)

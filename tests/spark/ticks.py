"""A stream with a row each second, and what queries over it answer."""

from __future__ import annotations

import pytest

from windrow.errors import WindrowError


def ticks_of(session):
    """The session, with a stream `ticks`: a row each second, of two keys."""
    session.spark.sql("SELECT id AS ts, id % 2 AS k, id AS v FROM range(6)").createOrReplaceTempView(
        "tick_rows"
    )
    session.sql(
        "CREATE OR REPLACE STREAM ticks (ROWTIME ts BIGINT UNIT SECONDS, k INT, v INT) FROM tick_rows"
    )
    return session


def rows(relation):
    return sorted(tuple(row) for row in relation.collect())


def refused(session, query, **options):
    with pytest.raises(WindrowError) as caught:
        session.sql(query, **options).collect()
    error = caught.value
    return error.condition, None if error.span is None else query[error.span.start : error.span.stop]

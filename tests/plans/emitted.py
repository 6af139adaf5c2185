"""What is known of queries over recorded streams, and a table ``names``."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from windrow import Session
from windrow.algebra.rewriting.expand import Expander
from windrow.errors import Span
from windrow.plan.event_time import Timed
from windrow.spark.recorded.emission_plan import read_plan
from windrow.syntax.tokens import tokenize

__all__ = ["recorded", "timed"]


def recorded(spark, **columns: str) -> Session:
    """A session with streams of these columns: `t` or `u` is the rowtime, `at` says when rows came."""
    session = Session(spark.newSession())
    for name, schema in columns.items():
        frame = session.spark.createDataFrame([], schema)
        rowtime = next(column for column in frame.columns if column in ("t", "u"))
        session.stream(name, frame, rowtime=rowtime, ptime="at")
    session.spark.sql("SELECT 'a' AS k, 1L AS n").createOrReplaceTempView("names")
    return session


def timed(
    session: Session,
    text: str,
    *,
    watermark: bool = True,
    promising: Collection[str] = (),
    state_ttl: int | None = None,
) -> Timed:
    """What is known of a query, AFTER WATERMARK or not; `promising` are the streams that promise patterns."""
    gateway = session._gateway((), {})
    tokens = tokenize(text)
    streams = {name: stream for name, stream in session._catalog.streams.items() if stream.timed is not None}
    expanded = Expander(tokens, streams, {}).text(0, len(tokens))
    with gateway.instead(expanded) as read:
        found = read_plan(gateway, expanded, tokenize(read), streams, session._catalog.functions)
        sources = {
            key: replace(source, has_punctuations=not source.streams.isdisjoint(promising))
            for key, source in found.sources.items()
        }

        place = Span(0, 1) if watermark else None
        living = None if state_ttl is None else (lambda _: state_ttl, (text, Span(0, 1)))
        return replace(found, sources=sources).timed(gateway, place, (text, place), living)

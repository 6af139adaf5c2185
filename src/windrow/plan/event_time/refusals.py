"""The errors of queries that are told by processing time."""

from __future__ import annotations

from windrow.errors import AnalysisError, NotSupportedError, Span
from windrow.syntax.tokens import TokenList

__all__ = ["may_go", "never_complete", "unsupported"]


def never_complete(
    tokens: TokenList, place: tuple[str, Span | None], told: str, span: Span | None, *, may_live: bool = False
) -> AnalysisError:
    """The error for AFTER WATERMARK of what is never complete; `place` is that of the clause."""
    instead = "say how long a key lives: STATE LIFETIME INTERVAL 1 HOUR"
    return AnalysisError(
        told,
        condition="GROUP_WITHOUT_EVENT_TIME",
        sql=tokens.sql if span is not None else place[0],
        span=span or place[1],
        hint="group by the end of a window too: FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 1 HOUR) … "
        f"GROUP BY wend; or {instead if may_live else 'leave AFTER WATERMARK out'}",
    )


def may_go(place: tuple[str, Span | None], why: str) -> AnalysisError:
    """The error for AFTER WATERMARK of rows that may go at any time; `place` is that of the clause."""
    return AnalysisError(
        f"no column of event time tells when rows of {why} stay: later rows may take them back at any time",
        condition="NEVER_COMPLETE",
        sql=place[0],
        span=place[1],
        hint="join by equal columns of event time, such as the ends of windows, and have one in PARTITION BY;"
        " or leave AFTER WATERMARK out",
    )


def unsupported(
    tokens: TokenList, what: str, span: Span | None, hint: str = "docs/sql/emit.md says what there is"
) -> NotSupportedError:
    """The error for a part of a query that streams cannot be read by."""
    return NotSupportedError(
        f"{what} in a query over streams that is told by processing time is not supported",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=span,
        hint=hint,
    )

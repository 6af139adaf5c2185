"""Errors of queries with EMIT whose event time cannot be derived."""

from __future__ import annotations

import re

from windrow.errors import AnalysisError, NotSupportedError, Span
from windrow.syntax.tokens import TokenList

__all__ = ["may_go", "never_complete", "unsupported"]


def never_complete(
    tokens: TokenList,
    place: tuple[str, Span | None],
    message: str,
    span: Span | None,
    *,
    allows_ttl: bool = False,
) -> AnalysisError:
    """The error for AFTER WATERMARK over rows that are never complete; `place` is that of the clause."""
    instead = "limit the state of a key: STATE LIFETIME INTERVAL 1 HOUR"
    return AnalysisError(
        message,
        condition="GROUP_WITHOUT_EVENT_TIME",
        sql=tokens.sql if span is not None else place[0],
        span=span or place[1],
        hint="also group by the end of a window: FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 1 HOUR) … "
        f"GROUP BY wend; or {instead if allows_ttl else 'leave AFTER WATERMARK out'}",
    )


def may_go(place: tuple[str, Span | None], why: str) -> AnalysisError:
    """The error for AFTER WATERMARK over rows that are never final; `place` is that of the clause."""
    hint = "join by equal event-time columns, such as the ends of windows, and add one to PARTITION BY"
    if re.search(r"\bwindow\s*\(", place[0], re.IGNORECASE):
        hint = (
            "in place of window(…), write FROM TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 5 MINUTES), and group"
        )
        hint += " by wend"
    return AnalysisError(
        f"rows of {why} are never final: no event-time column limits when later rows can retract them",
        condition="NEVER_COMPLETE",
        sql=place[0],
        span=place[1],
        hint=f"{hint}; or leave AFTER WATERMARK out",
    )


def unsupported(
    tokens: TokenList, what: str, span: Span | None, hint: str = "see docs/sql/emit.md for what is supported"
) -> NotSupportedError:
    """The error for a part of a query with EMIT that has no operator over streams."""
    return NotSupportedError(
        f"{what} in a query over streams with EMIT is not supported",
        condition="UNSUPPORTED_QUERY",
        sql=tokens.sql,
        span=span,
        hint=hint,
    )

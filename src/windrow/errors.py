"""Errors as data first and text last.

Every error that Windrow raises is a :class:`WindrowError`: a condition and SQLSTATE that a program
can test, a position in the text that the user wrote, a message, and one hint that names an action.
Only :func:`render` and :func:`render_html` turn an error into text.

The message style: the message starts in lower case, in the present tense, and names the kind of thing that
is wrong. The hint says what to do.
"""

from __future__ import annotations

import difflib
import html
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

__all__ = [
    "MARK",
    "AnalysisError",
    "ExecutionError",
    "InputError",
    "NoAttributeError",
    "NoItemError",
    "NotSupportedError",
    "ParseError",
    "QueryContext",
    "Span",
    "UsageError",
    "WindrowError",
    "did_you_mean",
    "no_column",
    "refuse_unknown",
    "render",
    "render_html",
]


@dataclass(frozen=True, slots=True)
class Span:
    """A part of the user's text: offsets of the first character and of the one after the last."""

    start: int
    stop: int

    def shifted(self, by: int) -> Span:
        """The same part in a text that has `by` more characters before it."""
        return Span(self.start + by, self.stop + by)


@dataclass(frozen=True, slots=True)
class QueryContext:
    """Where in the query an error is, with the accessors that PySpark's own contexts have."""

    sql: str
    span: Span

    def objectType(self) -> str:  # noqa: N802 - PySpark's name
        """Always empty: the error is in a query text, not in a stored object."""
        return ""

    def objectName(self) -> str:  # noqa: N802 - PySpark's name
        """Always empty, as :meth:`objectType`."""
        return ""

    def startIndex(self) -> int:  # noqa: N802 - PySpark's name
        """Offset of the first character, from 0."""
        return self.span.start

    def stopIndex(self) -> int:  # noqa: N802 - PySpark's name
        """Offset of the last character, from 0."""
        return max(self.span.start, self.span.stop - 1)

    def fragment(self) -> str:
        """The text at fault."""
        return self.sql[self.span.start : self.span.stop]

    def summary(self) -> str:
        """The line with a caret below the fragment."""
        return caret(self.sql, self.span)


MARK = "WINDROW-ERROR "
"""The start of the line of a worker's traceback that contains one of Windrow's errors as JSON."""


class WindrowError(Exception):
    """The root of Windrow's exceptions.

    Parameters
    ----------
    message
        What is wrong, starting in lower case.
    condition
        A stable name in capitals with underscores, e.g. ``UNKNOWN_VARIABLE``.
    span, sql
        The stretch at fault and the text that it is a stretch of; either may be absent.
    hint
        One action that would help.
    sqlstate
        Five characters; each subclass has its default.
    """

    default_sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        condition: str,
        span: Span | None = None,
        sql: str | None = None,
        hint: str | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.condition = condition
        self.span = span
        self.sql = sql
        self.hint = hint
        self.sqlstate = sqlstate or self.default_sqlstate

    def getCondition(self) -> str:  # noqa: N802 - as PySpark's exceptions
        """The condition's name."""
        return self.condition

    def getSqlState(self) -> str:  # noqa: N802 - as PySpark's exceptions
        """The five-character SQLSTATE."""
        return self.sqlstate

    def getQueryContext(self) -> list[QueryContext]:  # noqa: N802 - as PySpark's exceptions
        """One context where the position is known, else none."""
        if self.sql is None or self.span is None:
            return []
        return [QueryContext(self.sql, self.span)]

    def located(self, sql: str) -> WindrowError:
        """The error itself, with the text that its span refers to. A text that it has already stays."""
        if self.sql is None:
            self.sql = sql
        return self

    def __str__(self) -> str:
        return render(self)

    def _render_traceback_(self) -> list[str]:
        """The text that IPython shows in place of a traceback: the query is at fault, not the Python code."""
        return [render(self)]

    def _repr_html_(self) -> str:
        """The HTML that a notebook shows for the error."""
        return render_html(self)


class ParseError(WindrowError):
    """The text is not a query of the dialect."""

    default_sqlstate = "42601"


class AnalysisError(WindrowError):
    """The query is well-formed but means nothing: unknown names, wrong types, wrong places."""

    default_sqlstate = "42000"


class NotSupportedError(WindrowError):
    """The query has a meaning, but this version cannot run it (see ``docs/limits.md``)."""

    default_sqlstate = "0A000"


class InputError(WindrowError):
    """Data from outside does not have the declared form."""

    default_sqlstate = "22000"


class ExecutionError(WindrowError):
    """The query failed while it ran."""

    default_sqlstate = "58000"


class UsageError(WindrowError):
    """A call of the Python API or the command line is wrong in itself."""

    default_sqlstate = "22023"


class NoAttributeError(UsageError, AttributeError):
    """An object has no attribute of that name."""


class NoItemError(UsageError, TypeError):
    """An object has no length, or no items."""


def did_you_mean(name: str, candidates: Iterable[str], *, is_word: bool = False) -> str | None:
    """The hint for an unknown name: the known name that is nearest, or None when none is near.

    Two letters in the wrong order are the nearest. A keyword (`is_word`) may be a correct name of something
    else, so nearly all its letters must match.

    >>> did_you_mean("stat", ["station", "date"])
    'did you mean station?'
    >>> did_you_mean("zzz", ["station", "date"]) is None
    True
    >>> did_you_mean("mxa", ["mean", "max"], is_word=True)
    'did you mean max?'
    >>> did_you_mean("d", ["WHERE", "DESC"], is_word=True) is None
    True
    """
    lowered = {candidate.lower(): candidate for candidate in sorted(set(candidates))}
    if is_word and (name.lower() in lowered or len(name) < 3):
        return None
    near = [key for key in lowered if _has_swapped(name.lower(), key)]
    near = near or difflib.get_close_matches(
        name.lower(), list(lowered), n=1, cutoff=0.74 if is_word else 0.6
    )
    if not near and not is_word:
        near = [key for key in lowered if key.startswith(name.lower()) or _nearly(name.lower(), key)][:1]
    return f"did you mean {lowered[near[0]]}?" if near else None


def no_column(
    what: str,
    name: str,
    columns: Iterable[str],
    kind: type[WindrowError] = AnalysisError,
    *,
    condition: str = "UNRESOLVED_COLUMN",
    sql: str | None = None,
    span: Span | None = None,
) -> WindrowError:
    """The error that something has no column of a name: `what` is as in "the relation has"."""
    known = list(columns)
    hint = did_you_mean(name, known) or f"use one of the columns {', '.join(known)}"
    message = f"{what} no column {name}"
    return kind(message, condition=condition, sqlstate="42703", sql=sql, span=span, hint=hint)


def refuse_unknown(written: str, value: str, known: Iterable[str], condition: str) -> None:
    """Refuse the value of an option that is none of those known; `written` is both in the message.

    Raises
    ------
    UsageError
        With this condition.
    """
    if value not in known:
        hint = did_you_mean(str(value), known) or f"use one of {', '.join(map(repr, known))}"
        raise UsageError(f"{written} is unknown", condition=condition, hint=hint)


def _has_swapped(name: str, known: str) -> bool:
    """Whether the name is a known one with two neighbouring letters in the wrong order."""
    differing = [at for at, (one, other) in enumerate(zip(name, known, strict=False)) if one != other]
    if len(name) != len(known) or len(differing) != 2 or differing[1] != differing[0] + 1:
        return False
    return name[differing[0]] == known[differing[1]] and name[differing[1]] == known[differing[0]]


def _nearly(name: str, known: str) -> bool:
    """Whether the name is a known one of three or more letters with a suffix."""
    return len(known) > 2 and name.startswith(known)


def caret(sql: str, span: Span, width: int | None = None) -> str:
    r"""The line of `sql` in which the span starts, numbered, with carets below the span.

    Parameters
    ----------
    sql, span
        The text, and where in it something is wrong.
    width
        How many characters fit into a line. A longer line is cut to the part around the span.

    >>> print(caret("SELECT 1\nFROM tt", Span(14, 16)))
    line 2, column 6
      FROM tt
           ^^
    >>> print(caret("SELECT a, b, c, d, e, f, g, h FROM tt WHERE x > 1", Span(35, 37), 30))
    line 1, column 36
      …, e, f, g, h FROM tt WHERE…
                         ^^
    """
    start = min(max(span.start, 0), len(sql))
    first = sql.rfind("\n", 0, start) + 1
    last = sql.find("\n", start)
    last = len(sql) if last < 0 else last
    number = sql.count("\n", 0, first) + 1
    line = sql[first:last].replace("\t", " ")
    at, stop = start - first, max(start + 1, min(span.stop, last)) - first
    begin, end = _around(line, at, stop, width - 2) if width is not None else (0, len(line))
    head, tail = "…" if begin else "", "…" if end < len(line) else ""
    indent = " " * _columns(head + line[begin:at])
    carets = "^" * max(1, _columns(line[at : min(stop, end)]))
    return f"line {number}, column {at + 1}\n  {head}{line[begin:end]}{tail}\n  {indent}{carets}"


def _around(line: str, start: int, stop: int, room: int) -> tuple[int, int]:
    """The part of a line to print: the text at fault, and as much around it as fits."""
    widths = [_columns(one) for one in line]
    if sum(widths) <= room:
        return 0, len(line)
    room -= 2  # for the ellipses
    first, used = start, 0
    before = room - min(sum(widths[start:stop]) + room // 4, room * 3 // 4)
    while first > 0 and used + widths[first - 1] <= before:
        first, used = first - 1, used + widths[first - 1]
    last = start
    while last < len(line) and used + widths[last] <= room:
        last, used = last + 1, used + widths[last]
    while first > 0 and used + widths[first - 1] <= room:
        first, used = first - 1, used + widths[first - 1]
    return first, last


def _columns(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(
        0 if unicodedata.combining(one) else 2 if unicodedata.east_asian_width(one) in "WF" else 1
        for one in text
    )


def render_html(error: WindrowError) -> str:
    """The error as HTML: its message, the line with the text at fault marked, and the hint."""
    parts = [
        '<div style="border-left:3px solid #c9362b;padding:4px 12px;text-align:left">',
        f'<b style="color:#c9362b">{html.escape(error.condition)}</b> {html.escape(error.message)}',
    ]
    for context in error.getQueryContext():
        text, span = context.sql, context.span
        first = text.rfind("\n", 0, span.start) + 1
        last = text.find("\n", span.start)
        last = len(text) if last < 0 else last
        stop = max(span.start, min(span.stop, last))
        before, at, after = (
            html.escape(part) for part in (text[first : span.start], text[span.start : stop], text[stop:last])
        )
        number = text.count("\n", 0, first) + 1
        parts.append(
            f'<pre style="margin:4px 0"><span style="opacity:.5">{number:>4}  </span>{before}'
            f'<span style="background:#f8d7d4;color:#7d1a12">{at or " "}</span>{after}</pre>'
        )
    if error.hint:
        parts.append(f'<div style="opacity:.75">hint: {html.escape(error.hint)}</div>')
    return "".join([*parts, "</div>"])


def render(error: WindrowError, width: int | None = None) -> str:
    """The error as text: condition and message, then line and caret, then the hint.

    With a `width`, long lines of the query are cut to it.
    """
    parts = [f"[{error.condition}] {error.message}"]
    parts += [caret(context.sql, context.span, width) for context in error.getQueryContext()]
    if error.hint:
        parts.append(f"hint: {error.hint}")
    return "\n".join(parts)

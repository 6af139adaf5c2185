"""Finds the SELECTs that have windows of OVER with row patterns, and the calls over these."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from windrow.errors import AnalysisError, ParseError
from windrow.syntax.nodes import Cte, Range
from windrow.syntax.patterns.match_clause import parse_pattern_window
from windrow.syntax.patterns.match_nodes import MatchClause
from windrow.syntax.query_parts import (
    TAIL,
    begins_named_windows,
    begins_window_by,
    clause_words,
    is_set_operator,
    level_around,
    visible_ctes,
)
from windrow.syntax.subqueries import opens_query
from windrow.syntax.tokens import TokenList

__all__ = [
    "PatternBlock",
    "PatternWindow",
    "PatternWindowCall",
    "find_pattern_windows",
    "opened_windows",
    "select_around",
]


@dataclass(frozen=True, slots=True)
class PatternWindow:
    """A window with a pattern; `name` is empty if it is in OVER itself."""

    name: str
    range: Range
    clause: MatchClause


@dataclass(frozen=True, slots=True)
class PatternWindowCall:
    """A call or measure before OVER, and the window; `range` has both.

    `measure` is the name of a measure; it is None for a function, which is in `function`.
    """

    range: Range
    function: Range
    measure: str | None
    window: PatternWindow


@dataclass(frozen=True, slots=True)
class PatternBlock:
    """A SELECT over windows with patterns.

    `source` is FROM and WHERE, `relations` the relations in FROM, `alias` the name of its only relation;
    several are `joined`. `other_windows` are the definitions of windows without patterns, `qualify` is
    QUALIFY with its condition, before or after them, and `tail` is the part after both. `made_by` is the
    position of the clause that makes the windows' rows: GROUP BY, HAVING or WINDOW BY; None for those of
    FROM.
    """

    range: Range
    select: Range
    source: Range
    relations: Range
    alias: Range | None
    other_windows: tuple[Range, ...]
    tail: Range
    windows: tuple[PatternWindow, ...]
    calls: tuple[PatternWindowCall, ...]
    ctes: tuple[Cte, ...]
    joined: bool = False
    made_by: int | None = None
    qualify: Range | None = None


def find_pattern_windows(tokens: TokenList) -> list[PatternBlock]:
    """Every SELECT with such windows, in the order of the text.

    Raises
    ------
    ParseError
        As `find_matches`.
    AnalysisError
        As `find_matches`; ``INVALID_PATTERN_FRAME``, ``ANCHOR_IN_WINDOW``.
    """
    selects: dict[int, list[int]] = {}
    for opened in opened_windows(tokens):
        selects.setdefault(select_around(tokens, opened), []).append(opened)
    return [_query_of(tokens, select, opened) for select, opened in sorted(selects.items())]


def opened_windows(tokens: TokenList) -> Iterator[int]:
    """The parentheses around a window with PATTERN, each by its first token."""
    seen = set()
    for at in range(len(tokens)):
        opened = tokens.parent[at]
        if tokens.word(at) != "PATTERN" or not tokens.is_symbol(at + 1, "(") or opened < 0 or opened in seen:
            continue
        inside = tokens.word(opened - 1) == "OVER" and not tokens.is_symbol(opened - 2, ".")
        if inside or _is_definition(tokens, opened):
            seen.add(opened)
            yield opened


def _is_definition(tokens: TokenList, opened: int) -> bool:
    """Whether the parentheses are those of ``WINDOW … name AS (…)``."""
    while tokens.word(opened - 1) == "AS" and opened >= 3 and tokens[opened - 2].is_name:
        if tokens.word(opened - 3) == "WINDOW":
            return not tokens.is_symbol(opened - 4, ".")
        if not (tokens.is_symbol(opened - 3, ",") and tokens.is_symbol(opened - 4, ")")):
            return False
        opened = tokens.partner[opened - 4]
    return False


def select_around(tokens: TokenList, opened: int) -> int:
    """The SELECT that contains a window."""
    inside = opened
    while True:
        start, _ = level_around(tokens, inside)
        level = [at for at in tokens.level(start, inside) if tokens.parent[at] == tokens.parent[inside]]
        selects = [at for at in level if tokens.word(at) == "SELECT" and not tokens.is_symbol(at - 1, ".")]
        if selects:
            return selects[-1]
        if tokens.parent[inside] < 0:
            raise ParseError(
                "window with a pattern is outside a SELECT",
                condition="PARSE_SYNTAX_ERROR",
                sql=tokens.sql,
                span=tokens.span(opened, tokens.partner[opened] + 1),
                hint="write SELECT measure OVER w FROM … WINDOW w AS (…)",
            )
        inside = tokens.parent[inside]


def _query_of(tokens: TokenList, select: int, opened: list[int]) -> PatternBlock:
    start, stop = level_around(tokens, select)
    level = [at for at in tokens.level(start, stop) if tokens.parent[at] == tokens.parent[select]]
    sets = [at for at in level if is_set_operator(tokens, at)]
    in_set = bool(sets)
    stop = next((at for at in level if at > select and (at in sets or tokens.is_symbol(at, ";"))), stop)
    own = [at for at in level if select < at < stop]
    marks = clause_words(tokens, own)
    if "FROM" not in marks:
        raise ParseError(
            "query block has a window with a pattern but no FROM",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[select].span,
            hint="add FROM with the rows to find patterns in",
        )
    made_by, first, listed = _rows_of(tokens, own, marks)
    after = [at for at in own if at > (listed or first) and _begins_tail(tokens, at)]
    tail = after[0] if after else stop
    end = list_stop = tail
    qualify = None
    if listed is not None:
        end = next((at for at in own if first < at < listed and _begins_qualify(tokens, at)), listed)
        qualify = (end, listed) if end < listed else None
    if qualify is None and _begins_qualify(tokens, tail):
        tail = after[1] if len(after) > 1 else stop
        qualify = (list_stop, tail)
    source = (marks["FROM"], end)
    items = [] if listed is None else tokens.split(listed + 1, list_stop)
    defined = {
        tokens[start].name.lower(): start + 2 for start, _ in items if tokens.is_symbol(start + 2, "(")
    }
    windows, others = _windows(tokens, items, defined)
    named = {window.name.lower(): window for window in windows}
    for defined_at, _ in others:
        _refuse_copy(tokens, defined_at + 2, named)
    inline = {
        at: PatternWindow("", (at, tokens.partner[at] + 1), parse_pattern_window(tokens, at, defined))
        for at in opened
        if tokens.word(at - 1) == "OVER"
    }
    if not windows and not inline:
        raise ParseError(
            "window with a pattern is not in the WINDOW clause of its query",
            condition="PARSE_SYNTAX_ERROR",
            sql=tokens.sql,
            span=tokens[opened[0]].span,
            hint="write SELECT measure OVER w FROM … WINDOW w AS (…)",
        )
    read = [(select + 1, marks["FROM"]), (tail, stop)]
    read += [] if qualify is None else [qualify]
    calls = tuple(call for part in read for call in _calls(tokens, part, named, inline))
    joined = _is_joined(tokens, source)
    return PatternBlock(
        range=(select, tail if in_set else stop),
        select=(select + 1, marks["FROM"]),
        source=source,
        relations=(source[0] + 1, _stop_of_from(tokens, source)),
        alias=None if joined else _alias(tokens, source),
        other_windows=tuple(others),
        tail=(stop, stop) if in_set else (tail, stop),
        windows=(*windows, *inline.values()),
        calls=calls,
        ctes=visible_ctes(tokens, select),
        joined=joined,
        made_by=made_by,
        qualify=qualify,
    )


def _rows_of(tokens: TokenList, own: list[int], marks: dict[str, int]) -> tuple[int | None, int, int | None]:
    """The clause that makes the rows, the token from which the windows follow, and their list."""
    window_by = next((at for at in own if begins_window_by(tokens, at)), None)
    if window_by is None:
        made_by = min((marks[word] for word in ("GROUP", "HAVING") if word in marks), default=None)
        return made_by, marks["FROM"], marks.get("WINDOW")
    first = tokens.partner[window_by + 4]
    lists = (at for at in own if at > first and begins_named_windows(tokens, at))
    return window_by, first, next(lists, None)


def _begins_qualify(tokens: TokenList, at: int) -> bool:
    return tokens.word(at) == "QUALIFY" and not tokens.is_symbol(at - 1, ".")


def _begins_tail(tokens: TokenList, at: int) -> bool:
    word = tokens.word(at)
    begins = tokens.word(at + 1) == "BY" or word in ("LIMIT", "OFFSET", "QUALIFY")
    return word in TAIL and begins and not tokens.is_symbol(at - 1, ".")


def _windows(
    tokens: TokenList, items: list[Range], defined: dict[str, int]
) -> tuple[list[PatternWindow], list[Range]]:
    """The windows with patterns of a WINDOW list, and the ranges of the others."""
    windows: list[PatternWindow] = []
    others = []
    for start, stop in items:
        inside = tokens.level(start + 3, stop - 1) if tokens.is_symbol(start + 2, "(") else []
        if any(tokens.word(at) == "PATTERN" and tokens.is_symbol(at + 1, "(") for at in inside):
            clause = parse_pattern_window(tokens, start + 2, defined)
            windows.append(PatternWindow(tokens[start].name, (start, stop), clause))
        else:
            others.append((start, stop))
    return windows, others


def _calls(
    tokens: TokenList, part: Range, named: dict[str, PatternWindow], inline: dict[int, PatternWindow]
) -> Iterator[PatternWindowCall]:
    """The calls over the windows in a range; subqueries have their own windows."""
    at = part[0]
    while at < part[1]:
        if opens_query(tokens, at):
            at = tokens.partner[at]
        window = None
        if tokens.word(at) == "OVER" and at > part[0]:
            follows = at + 1
            if follows in inline:
                window, stop = inline[follows], tokens.partner[follows] + 1
            elif follows < len(tokens) and tokens[follows].is_name:
                window, stop = named.get(tokens[follows].name.lower()), follows + 1
            elif tokens.is_symbol(follows, "("):
                _refuse_copy(tokens, follows, named)
        if window is not None:
            start = _start_of_call(tokens, at)
            is_measure = start == at - 1 and tokens[start].is_name
            yield PatternWindowCall(
                (start, stop), (start, at), tokens[start].name if is_measure else None, window
            )
            at = stop - 1
        at += 1


def _refuse_copy(tokens: TokenList, at: int, named: dict[str, PatternWindow]) -> None:
    """Refuse a window that begins with one with a pattern, by its name: ``OVER (w)``, ``v AS (w)``."""
    at += tokens.is_symbol(at, "(")
    if at < len(tokens) and tokens[at].is_name and tokens[at].name.lower() in named:
        raise AnalysisError(
            f"window {tokens[at].text} has a pattern, so no other window can refine it",
            condition="INVALID_PATTERN_FRAME",
            sqlstate="42601",
            sql=tokens.sql,
            span=tokens[at].span,
            hint=f"write OVER {tokens[at].text}, without parentheses and without another name",
        )


def _start_of_call(tokens: TokenList, over: int) -> int:
    """The first token of the call before OVER: a name, or a function, with WITHIN GROUP and FILTER."""
    start = over - 1
    if tokens.word(start) == "NULLS" and tokens.word(start - 1) in ("IGNORE", "RESPECT"):
        start -= 2
    while tokens.is_symbol(start, ")"):
        start = tokens.partner[start] - 1
        if tokens.word(start) == "FILTER":
            start -= 1
        elif tokens.word(start) == "GROUP" and tokens.word(start - 1) == "WITHIN":
            start -= 2
        else:
            break
    return start


def _is_joined(tokens: TokenList, source: Range) -> bool:
    """Whether FROM has several relations."""
    start, stop = source[0] + 1, _stop_of_from(tokens, source)
    return any(
        (tokens.word(at) in ("JOIN", "LATERAL", "PIVOT", "UNPIVOT") or tokens.is_symbol(at, ","))
        and not tokens.is_symbol(at - 1, ".")
        and tokens.parent[at] == tokens.parent[source[0]]
        for at in tokens.level(start, stop)
    )


def _stop_of_from(tokens: TokenList, source: Range) -> int:
    start, stop = source[0] + 1, source[1]
    return next((at for at in tokens.level(start, stop) if tokens.word(at) == "WHERE"), stop)


def _alias(tokens: TokenList, source: Range) -> Range | None:
    """The name of the only relation of FROM."""
    start = source[0] + 1
    last = _stop_of_from(tokens, source) - 1
    if (
        tokens.is_symbol(last, ")")
        and tokens[tokens.partner[last] - 1].is_name
        and tokens.partner[last] - 1 > start
    ):
        last = tokens.partner[last] - 1  # an alias with columns: t(a, b)
        if tokens.is_symbol(last - 1, "."):
            return None
        return None if tokens.word(last) == "MATCH_RECOGNIZE" else (last, last + 1)
    return (last, last + 1) if tokens[last].is_name else None

"""Finds the lengths that a statement writes: of windows, EMIT, streams and patterns that are no columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from windrow.syntax.cql_clauses import parse_stream_window, window_at
from windrow.syntax.lengths import Length
from windrow.syntax.nodes import Range
from windrow.syntax.patterns.match_relations import find_matches, match_lengths
from windrow.syntax.patterns.pattern_windows import find_pattern_windows
from windrow.syntax.streams.create_stream import parse_create_stream
from windrow.syntax.streams.emit_clause import clauses_in, parse_emission
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.streams.table_functions import WINDOWS, call_at, window_call
from windrow.syntax.tokens import TokenList

__all__ = ["may_write_lengths", "written_lengths"]

_BRACKETS = re.compile(r"\[(?:\s|/\*|--)*(?:range|rows|partition)\b", re.IGNORECASE)
_FUNCTIONS = re.compile(r"\b(?:tumble|hop|cumulate|session)\b", re.IGNORECASE)
_EMIT = re.compile(r"\bemit\b|\blateness\b|\blifetime\b", re.IGNORECASE)
_STREAM = re.compile(r"\bstream\b", re.IGNORECASE)
_PATTERN = re.compile(r"\bpattern\b", re.IGNORECASE)
_WORDS = (_BRACKETS, _FUNCTIONS, _EMIT, _STREAM, _PATTERN)
_NAMES = frozenset(name.lower() for name in WINDOWS)


def may_write_lengths(text: str) -> bool:
    """Whether a text may have lengths, by its words."""
    return any(words.search(text) for words in _WORDS)


def written_lengths(
    tokens: TokenList, start: int, stop: int, varies: Callable[[Range], bool]
) -> Iterator[Length]:
    """The lengths of the statement between two tokens, but for those of patterns that change over time.

    Raises
    ------
    ParseError, AnalysisError, NotSupportedError
        Those of the parsers of the clauses that they stand in.
    """
    if tokens.word(start) == "EXPLAIN":
        start += 1 + (tokens.word(start + 1) in ("EXTENDED", "FORMATTED", "CODEGEN", "COST"))
    sql = tokens.sql
    create = parse_create_stream(tokens, start, stop) if _STREAM.search(sql) else None
    if create is not None:
        yield from (length for length in (create.lag, create.idle, create.future) if length is not None)
        return
    for index in range(start, stop):
        if tokens.word(index + 1) in ("RANGE", "ROWS", "PARTITION") and window_at(tokens, index):
            yield from parse_stream_window(tokens, index).lengths
        call = call_at(tokens, index, _NAMES) if tokens[index].is_name else None
        if call is not None and tokens.word(index) != "TABLE":  # which wraps a call that begins later
            yield from window_call(tokens, call).lengths.values()
    if _EMIT.search(sql):
        brackets = {tokens.parent[at] for at in clauses_in(tokens, start, stop)}
        for bracket in sorted(brackets):
            query = (start, stop) if bracket < start else (bracket + 1, tokens.partner[bracket])
            emission = parse_emission(tokens, *query)
            found = (emission.delay, emission.lateness, emission.state_ttl)
            yield from (length for length in found if length is not None)
    if _STREAM.search(sql):
        written = spelled(tokens, start, stop)
        of_sources = [length for one in written.sources.values() for length in (one.delay, one.future)]
        yield from (length for length in (*of_sources, written.within) if length is not None)
    if _PATTERN.search(sql):
        clauses = [item.clause for item in find_matches(tokens)]
        clauses += [window.clause for found in find_pattern_windows(tokens) for window in found.windows]
        for clause in clauses:
            yield from match_lengths(tokens, clause)
        times = [length for clause in clauses for length in (clause.within, clause.duration)]
        fixed = (length for length in times if length is not None and not length.reads_row)
        yield from (length for length in fixed if not varies(length.tokens))

"""Mutated statements: what reads a text without Spark understands it, or refuses it with an error of ours.

    python -m tests.syntax.mutations --count 250000

Seeds are the queries of all conformance cases, the examples of the pages, and sentences of the grammar. A
statement is wrong where it leads to an exception that is not ours, to an error that has no place in the
text, or takes longer than ten seconds of the processor for each started ten thousand characters. Every
statement that is wrong is printed.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests import test_docs
from tests.conformance.casefile import case_files, load
from tests.grammar.notation import read_grammar
from tests.grammar.sentences import sentences
from windrow.algebra.aggregate_calls import aggregate_over_windows
from windrow.algebra.bind import bind
from windrow.algebra.continuous import Reader
from windrow.algebra.rewriting.expand import Expander
from windrow.algebra.rewriting.varying_subqueries import reads_varying
from windrow.algebra.window_node import Window
from windrow.errors import Span, WindrowError, render_html
from windrow.spark.relations.table_functions_in_from import calls_table_functions
from windrow.statements.definitions.temporary_views import query_of, view_query
from windrow.statements.dispatch import _may_be_ours
from windrow.statements.stream_statements import has_stream_words
from windrow.syntax import mistakes
from windrow.syntax.cql_clauses import parse_stream_window, refuse_alias_before, window_at
from windrow.syntax.definitions.create_view import parse_view
from windrow.syntax.expression_nodes import names_in, parts_of
from windrow.syntax.expressions import parse_expression
from windrow.syntax.expressions.monotone_parts import going
from windrow.syntax.expressions.rising import rising
from windrow.syntax.nodes import Range
from windrow.syntax.queries import Select, UnknownShapeError, parse_query
from windrow.syntax.query_parts import split_statements
from windrow.syntax.streams.apart import clauses_apart
from windrow.syntax.streams.as_of import as_of_joins, pasts
from windrow.syntax.streams.commands import parse_command
from windrow.syntax.streams.cql_spellings import in_spark
from windrow.syntax.streams.create_stream import parse_create_stream
from windrow.syntax.streams.emit_clause import parse_emission
from windrow.syntax.streams.other_dialects import spelled
from windrow.syntax.streams.punctuate import parse_punctuate
from windrow.syntax.streams.table_functions import WINDOWS, call_at, window_call
from windrow.syntax.tokens import TokenList, tokenize
from windrow.syntax.written_lengths import written_lengths

__all__ = ["Findings", "mutants", "seeds", "tried"]

_STREAMS = frozenset({"s", "t", "orders", "bid", "trades", "q", "prices", "events"})
_FUNCTIONS = {name.lower() for name in WINDOWS}
_PIECES = re.compile(r"\s+|\w+|'[^']*'|[^\w\s]")
_WORDS = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP BY",
    "ORDER BY",
    "HAVING",
    "WINDOW BY w AS (",
    "WINDOW v AS (",
    "PATTERN (",
    "DEFINE",
    "MEASURES",
    "PERMUTE(",
    "MATCH_RECOGNIZE (",
    "AFTER MATCH SKIP TO",
    "WITHIN",
    "DURATION",
    "SUBSET",
    "AS",
    "AT",
    "PREV",
    "NEXT AS",
    "START",
    "ONLY",
    "END",
    "LABEL",
    "WHEN",
    "TYPE SLIDING",
    "TUMBLING",
    "PARTITION BY",
    "[RANGE 1]",
    "[RANGE :n MINUTES SLIDE 2 * INTERVAL '5' MINUTE]",
    "[ROWS ? SLIDE (1 + 2)]",
    "[ROWS 2",
    "[NOW]",
    "[PARTITION BY",
    "SLIDE",
    "ON",
    "ISTREAM(",
    "DIFFERENCE USING (",
    "STREAM",
    "EMIT",
    "AFTER WATERMARK",
    "AFTER DELAY",
    "AS OF SYSTEM TIME",
    "ALLOWED LATENESS",
    "FOR SYSTEM_TIME AS OF",
    "TUMBLE(",
    "TABLE",
    "DESCRIPTOR(ts)",
    "INTERVAL",
    "'1'",
    "MINUTE",
    "CREATE STREAM",
    "ROWTIME",
    "WATERMARK",
    "PUNCTUATE",
    "CHECK",
    "INSERT INTO",
    "CREATE VIEW v AS",
    "EXPLAIN",
    "WITH",
    "UNION ALL",
    "JOIN",
    "LATERAL",
    "OVER (",
    "MIN(",
    "COUNT(*)",
    "ARRAY_AVG(",
    "FIRST(",
    "CLASSIFIER()",
    "DISTINCT",
    "CASE",
    "THEN",
    "ELSE",
    "NOT",
    "BETWEEN",
    "IN (",
    "LIKE",
    "IS NULL",
    "CAST(",
    "::",
    ".",
    ",",
    ";",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "{-",
    "-}",
    "*",
    "+",
    "?",
    "??",
    "|",
    "||",
    "^",
    "$",
    "-",
    "=",
    "<=>",
    ":n",
    "?",
    "0",
    "1",
    "-1",
    "9" * 25,
    "1.5",
    "1e400",
    ".5",
    "`",
    "'",
    '"',
    "--",
    "/*",
    "*/",
    "\n",
    "\\",
    "`w`",
    "w",
    "w.*",
    "s.v",
    "é",
    "\u2028",
    "\x00",
    "😀",
    "NULL",
    "TRUE",
]
_DEEP = [
    "(",
    "NOT ",
    "- ",
    "[",
    "((",
    "CASE WHEN ",
    "abs(",
    "(SELECT ",
    "PERMUTE(",
    "{-",
    "x + ",
    "x AND ",
    "a | ",
]


@functools.cache
def seeds() -> tuple[str, ...]:
    """Statements to begin with: those of cases and pages, and sentences of the grammar."""
    found = [case.query for path in case_files() for case in load(path).cases]
    found += [text for path in case_files() for case in load(path).cases for text in case.setup]
    found += [
        block.text
        for path in test_docs.PAGES
        for block in test_docs.read(path).blocks
        if block.language == "sql"
    ]
    rules = read_grammar()
    around = {
        "window-by": "SELECT 1 FROM t {}",
        "match-recognize": "SELECT * FROM {}",
        "pattern-window": "SELECT m OVER n1 FROM t {}",
        "window-function": "SELECT * FROM {}",
        "stream-window": "SELECT * FROM {}",
    }
    for rule in rules:
        found += [around.get(rule, "{}").format(text) for text in sentences(rules, rule, 12)]
    return tuple(dict.fromkeys(found))


def mutants(count: int, seed: int) -> Iterator[str]:
    """So many statements, each a seed that is changed in one to four places."""
    chosen = random.Random(seed)
    for _ in range(count):
        text = chosen.choice(seeds())
        for _ in range(chosen.choice([1, 1, 2, 2, 3, 4])):
            text = chosen.choice(_CHANGES)(text, chosen)
        yield text


def _pieces(text: str) -> list[str]:
    return _PIECES.findall(text) or [""]


def _without(text: str, chosen: random.Random) -> str:
    pieces = _pieces(text)
    at = chosen.randrange(len(pieces))
    return "".join(pieces[:at] + pieces[at + chosen.choice([1, 1, 2, 3, 8]) :])


def _cut(text: str, chosen: random.Random) -> str:
    pieces = _pieces(text)
    at = chosen.randrange(len(pieces))
    return "".join(pieces[:at] if chosen.random() < 0.7 else pieces[at:])


def _with(text: str, chosen: random.Random) -> str:
    pieces = _pieces(text)
    pieces.insert(chosen.randrange(len(pieces) + 1), f" {chosen.choice(_WORDS)} ")
    return "".join(pieces)


def _instead(text: str, chosen: random.Random) -> str:
    pieces = _pieces(text)
    pieces[chosen.randrange(len(pieces))] = chosen.choice(_WORDS)
    return "".join(pieces)


def _twice(text: str, chosen: random.Random) -> str:
    pieces = _pieces(text)
    at = chosen.randrange(len(pieces))
    stop = at + chosen.choice([1, 1, 3, 10])
    return "".join(pieces[:stop] + pieces[at:])


def _swapped(text: str, chosen: random.Random) -> str:
    pieces = _pieces(text)
    one, other = chosen.randrange(len(pieces)), chosen.randrange(len(pieces))
    pieces[one], pieces[other] = pieces[other], pieces[one]
    return "".join(pieces)


def _joined(text: str, chosen: random.Random) -> str:
    pieces, others = _pieces(text), _pieces(chosen.choice(seeds()))
    return "".join(pieces[: chosen.randrange(len(pieces) + 1)] + others[chosen.randrange(len(others)) :])


def _put_in(text: str, chosen: random.Random) -> str:
    pieces, others = _pieces(text), _pieces(chosen.choice(seeds()))
    at, start = chosen.randrange(len(pieces) + 1), chosen.randrange(len(others))
    return "".join(pieces[:at] + others[start : start + chosen.randrange(1, 12)] + pieces[at:])


def _letter(text: str, chosen: random.Random) -> str:
    at = chosen.randrange(len(text) + 1)
    return text[:at] + chosen.choice("()[]{}'\"`;,.:?*+-|^$ \n\\aZ0_é") + text[at + chosen.choice([0, 1]) :]


def _deep(text: str, chosen: random.Random) -> str:
    """Something many times; rarely very many, as reading that takes long."""
    pieces, what = _pieces(text), chosen.choice(_DEEP)
    many = chosen.choice([3, 30, 60, 120]) if chosen.random() < 0.97 else chosen.choice([300, 1000, 3000])
    at = chosen.randrange(len(pieces) + 1)
    stop = chosen.randrange(at, len(pieces) + 1) if chosen.random() < 0.5 else min(at + 1, len(pieces))
    closing = {
        "(": ")",
        "[": "]",
        "((": "))",
        "abs(": ")",
        "(SELECT ": ")",
        "PERMUTE(": ")",
        "{-": "-}",
        "CASE WHEN ": " END",
    }
    inside = "".join(pieces[at:stop])
    return "".join(pieces[:at]) + what * many + inside + closing.get(what, "") * many + "".join(pieces[stop:])


_CHANGES: list[Callable[[str, random.Random], str]] = [
    _without,
    _without,
    _cut,
    _with,
    _with,
    _with,
    _instead,
    _instead,
    _twice,
    _swapped,
    _joined,
    _put_in,
    _put_in,
    _letter,
    _letter,
]
_CHANGES = [*_CHANGES, *_CHANGES, _deep]


# -- reading -------------------------------------------------------------------------------------


def read(sql: str) -> Iterator[WindrowError]:
    """Read a statement in all the ways in which a session may, and give the errors that refuse it."""
    has_stream_words(sql)
    calls_table_functions(sql, {})
    _may_be_ours(sql)
    mistakes.meant_clause(sql)
    try:
        tokens = tokenize(sql)
    except WindrowError as error:
        yield error
        return
    for statement in split_statements(tokens):
        for reader in _READERS:
            try:
                reader(tokens, statement)
            except WindrowError as error:
                yield error


def _clauses(tokens: TokenList, statement: Range) -> None:
    query = query_of(tokens, view_query(tokens, statement) or statement)
    algebra = bind(tokens, query, {"s": "ts", "orders": "ts"})
    if algebra is None:
        return
    algebra.text.render()
    for window in algebra.windows:
        window.rows.render()
        if isinstance(window, Window):
            aggregate_over_windows(window)


def _stream(tokens: TokenList, statement: Range) -> None:
    list(clauses_apart(tokens, statement))
    written = spelled(tokens, *statement)
    start, stop = statement[0], statement[1] - len(tokens) + len(written.tokens)
    reader = Reader(written.tokens, _STREAMS, frozenset({"r"}), selects=written.selects)
    reader.read(start, stop).span  # noqa: B018 - a query has one


def _shape(tokens: TokenList, statement: Range) -> None:
    try:
        shape = parse_query(tokens, *statement)
    except UnknownShapeError:
        return
    if isinstance(shape, Select):
        for item in shape.items:
            parsed = parse_expression(tokens, *item, deeply=True)
            list(names_in(parsed))
            parts_of(parsed)
            going(tokens, *item)
            rising(tokens, *item)


def _brackets(tokens: TokenList, statement: Range) -> None:
    for index in range(*statement):
        refuse_alias_before(tokens, index)
        if window_at(tokens, index):
            parse_stream_window(tokens, index)
        call = call_at(tokens, index, _FUNCTIONS)
        if call is not None:
            window_call(tokens, call)


def _hints(tokens: TokenList, statement: Range) -> None:
    """What stands beside an error of Spark's, wherever that may be."""
    index = statement[0] + len(tokens.sql) % (statement[1] - statement[0])
    mistakes.meant_keyword(tokens.sql, tokens[index].span)
    mistakes.variable_before_clause(tokens.sql, tokens[index].span)
    mistakes.meant_function(tokens.sql, tokens[index].span)
    mistakes.meant_modifier(tokens.sql, tokens[index].span)


_READERS: list[Callable[[TokenList, Range], object]] = [
    _clauses,
    _stream,
    _shape,
    _brackets,
    _hints,
    lambda tokens, statement: parse_create_stream(tokens, *statement),
    lambda tokens, statement: parse_punctuate(tokens, *statement),
    lambda tokens, statement: parse_emission(tokens, *statement),
    lambda tokens, statement: list(
        written_lengths(tokens, *statement, lambda part: reads_varying(tokens, part, _STREAMS))
    ),
    lambda tokens, statement: bind(tokens, statement, varying=_STREAMS),
    lambda tokens, _: pasts(tokens, _STREAMS),
    lambda tokens, statement: parse_command(tokens, *statement),
    lambda tokens, statement: parse_view(tokens, *statement),
    lambda tokens, _: as_of_joins(tokens, _STREAMS),
    lambda tokens, _: in_spark(tokens),
    lambda tokens, statement: Expander(tokens, _STREAMS, {"v": "SELECT * FROM s"}).text(*statement),
]


# -- trying --------------------------------------------------------------------------------------


class _TookTooLongError(BaseException):
    """So that nothing takes it for an error of its own."""


@contextmanager
def _in_time(seconds: float) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _TookTooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@dataclass
class Findings:
    """How many were tried and refused, the processor's longest time for one, and what was wrong."""

    count: int = 0
    refused: int = 0
    slowest: float = 0.0
    wrong: list[tuple[str, str]] = field(default_factory=list)
    conditions: Counter[str] = field(default_factory=Counter)


def tried(statements: Iterator[str], patience: float = 10.0) -> Findings:
    """Read each statement; `patience` is the processor's seconds for each started ten thousand characters."""
    found = Findings()
    for sql in statements:
        begun, is_refused = time.process_time(), False
        try:
            with _in_time(patience * (1 + len(sql) // 10_000)):
                for error in read(sql):
                    is_refused = True
                    found.conditions[error.condition] += 1
                    _check(error)
        except _TookTooLongError:
            found.wrong.append((sql, "takes too long\n" + _where()))
        except Exception:
            found.wrong.append((sql, _where()))
        found.count += 1
        found.refused += is_refused
        found.slowest = max(found.slowest, time.process_time() - begun)
    return found


def _where() -> str:
    return "".join(traceback.format_exc().splitlines(keepends=True)[-9:])


def _check(error: WindrowError) -> None:
    """An error can be shown, and has a place in its text."""
    str(error)
    render_html(error)
    assert isinstance(error.span, Span), error.condition
    assert error.sql is not None, error.condition
    assert 0 <= error.span.start <= error.span.stop <= len(error.sql), error.span


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.syntax.mutations", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    asked = parser.parse_args()
    each = 2_000
    parts = [(min(each, asked.count - at), asked.seed * 1_000_003 + at) for at in range(0, asked.count, each)]
    total, begun = Findings(), time.perf_counter()
    with multiprocessing.get_context("fork").Pool(asked.jobs) as pool:
        for found in pool.imap_unordered(_part, parts):
            total.count += found.count
            total.refused += found.refused
            total.slowest = max(total.slowest, found.slowest)
            total.conditions += found.conditions
            for sql, why in found.wrong:
                total.wrong.append((sql, why))
                print(f"-- {why}{sql[:2000]!r}\n", flush=True)
    print(
        f"{total.count} statements from {len(seeds())} seeds in {time.perf_counter() - begun:.0f} s: "
        f"{total.refused} refused by {len(total.conditions)} conditions, {len(total.wrong)} wrong; "
        f"the slowest took {total.slowest:.2f} s of the processor"
    )
    sys.exit(bool(total.wrong))


def _part(part: tuple[int, int]) -> Findings:
    return tried(mutants(*part))


if __name__ == "__main__":
    main()

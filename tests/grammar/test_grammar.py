"""The diagrams are those of the grammar, pages show them, and the parser reads what the grammar allows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.grammar.drawing import FOLDER, drawn
from tests.grammar.notation import read_grammar
from tests.grammar.sentences import sentences
from windrow.errors import WindrowError
from windrow.syntax.cql_clauses import parse_stream_window, parse_to_stream
from windrow.syntax.patterns.match_relations import find_matches
from windrow.syntax.patterns.pattern_windows import find_pattern_windows
from windrow.syntax.query_parts import find_window_queries
from windrow.syntax.streams.create_stream import parse_create_stream
from windrow.syntax.streams.emit_clause import parse_emission
from windrow.syntax.streams.optimize import parse_optimize
from windrow.syntax.streams.punctuate import parse_punctuate
from windrow.syntax.streams.table_functions import WINDOWS, call_at, window_call
from windrow.syntax.tokens import tokenize

DOCS = Path(__file__).parents[2] / "docs"
RULES = read_grammar()
COUNT = 150
MEANING = (
    "MISSING_END|MISSING_WINDOW_SPECIFICATION|EXCLUSION_WITH_UNMATCHED_ROWS|PATTERN_TOO_LONG|ANCHOR_IN_WINDOW"
    "|the stream has no ROWTIME column|a stream has only one|appears twice|only named streams have a log"
)
"""What is refused because of what it says, and not of how it is written."""


def test_the_diagrams_are_those_of_the_grammar():
    kept = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.svg")}
    assert kept == drawn(RULES), "python -m tests.grammar draws them anew"


def test_every_diagram_is_on_a_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("**/*.md"))
    assert set(re.findall(r"images/grammar/([a-z-]+)\.svg", pages)) == set(RULES)


def read(rule, text):
    """What the parser makes of a sentence; nothing where it does not take it for one of the rule."""
    match rule:
        case "window-by":
            return find_window_queries(tokenize(f"SELECT 1 FROM t {text}"))
        case "match-recognize":
            return find_matches(tokenize(f"SELECT * FROM {text}"))
        case "pattern-window":
            return find_pattern_windows(tokenize(f"SELECT m OVER n1 FROM t {text}"))
        case "window-function":
            tokens = tokenize(f"SELECT * FROM {text}")
            call = call_at(tokens, 3, {name.lower() for name in WINDOWS})
            return call is not None and window_call(tokens, call)
        case "stream-window":
            tokens = tokenize(text)
            return parse_stream_window(tokens, 1)
    tokens = tokenize(text)
    parse = {
        "timed-query": parse_emission, "create-stream": parse_create_stream, "to-stream": parse_to_stream,
        "punctuate": parse_punctuate, "optimize": parse_optimize,
    }[rule]  # fmt: skip
    return parse(tokens, 0, len(tokens))


STATEMENTS = (
    "window-by", "match-recognize", "pattern-window", "window-function", "stream-window", "timed-query",
    "create-stream", "to-stream", "punctuate", "optimize",
)  # fmt: skip


@pytest.mark.parametrize("rule", STATEMENTS)
def test_the_parser_reads_what_the_grammar_allows(rule):
    texts = set(sentences(RULES, rule, COUNT))
    refused = {}
    for text in texts:
        try:
            if not read(rule, text):
                refused[text] = "is not taken for one"
        except WindrowError as error:
            if not re.search(MEANING, str(error)):
                refused[text] = str(error).splitlines()[0]
    assert refused == {}

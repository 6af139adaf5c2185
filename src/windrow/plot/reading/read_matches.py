"""The matches of MATCH_RECOGNIZE over the sequences that are drawn, with the variables of their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.bind import bind
from windrow.algebra.match_node import Match as Node
from windrow.algebra.names import ROW, as_written, order_key, partition_key, piece_of
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.places import as_place
from windrow.plot.reading.sequences import ID, POSITION, Sequences, in_a_line, read_sequences
from windrow.plot.scene import Classified, DrawnMatch, SequenceScene
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.clauses.matching import BoundMatch
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import tokenize

__all__ = ["read_matches"]

_SOURCE = "source"
_NUMBER, _VARIABLE, _UNTIL = "__drawn_number", "__drawn_variable", "__drawn_until"
_NOWHERE = "CAST(NULL AS DOUBLE)"
_SKIPS = {"past last": "PAST LAST ROW", "next": "TO NEXT ROW", "first": "TO FIRST", "last": "TO LAST"}


def read_matches(bound: BoundMatch, options: Options) -> SequenceScene:
    """The matches, each row with its variable, and the values beneath.

    Raises
    ------
    WindrowError
        As the query does, and ``UNRESOLVED_COLUMN`` or ``INVALID_ARGUMENT`` of the options.
    """
    match, analyzer = bound.match, bound.analyzer
    gateway = Gateway(analyzer.gateway.spark, analyzer.gateway.parameters)
    conditions = [_text(match, item.range) for item in (*match.defines, *match.measures)]

    def firsts(frame: DataFrame) -> DataFrame:
        return _matches(gateway, match, frame).select(ID, POSITION)

    sequences = read_sequences(gateway, match, analyzer.rows, conditions, options, firsts)
    until = _NOWHERE if sequences.by_position else _until(bound)
    found = _found(gateway, match, sequences, until)
    drawn = []
    for name, sequence in sequences.drawn.items():
        own = found.get(name, {}).values()
        matches = tuple(one for one in own if 0 <= one.rows[0].position < len(sequence.rows))
        drawn.append(replace(sequence, matches=matches, found_count=len(own)))
    return SequenceScene(
        "matches",
        sequences.x,
        sequences.y,
        tuple(drawn),
        variables=match.labels,
        more_sequences=sequences.more,
        order=sequences.order,
        subtitle=(*(in_a_line(as_written(words)) for words in _conditions(match, str)), *sequences.notes),
    )


def _until(bound: BoundMatch) -> str:
    """SQL of the key at which the time of DURATION is over; keys increase."""
    length = bound.draft.length
    if bound.match.clause.duration is None or length is None:
        return _NOWHERE
    return f"FIRST({_key_name(order_key(0))} + ({length.render()}))"


def _found(
    gateway: Gateway, match: Node, sequences: Sequences, until: str
) -> dict[str, dict[int, DrawnMatch]]:
    """The matches, by their sequence and number."""
    matched = _matches(gateway, match, sequences.frame, until)
    place = as_place(_UNTIL, matched.schema[_UNTIL].dataType)
    assert place is not None
    with gateway.translated():
        rows = matched.withColumn(_UNTIL, place).orderBy(ID, _NUMBER, POSITION).collect()
    found: dict[str, dict[int, DrawnMatch]] = {}
    for row in rows:
        own = found.setdefault(row[ID], {})
        one = Classified(row[POSITION] - 1 - sequences.drawn[row[ID]].skipped, row[_VARIABLE])
        before = own.get(row[_NUMBER], DrawnMatch(row[_NUMBER], (), row[_UNTIL]))
        own[row[_NUMBER]] = replace(before, rows=(*before.rows, one))
    return found


def _matches(gateway: Gateway, match: Node, frame: DataFrame, until: str = _NOWHERE) -> DataFrame:
    """The rows of matches over numbered rows, each with its number and variable; `until` is SQL."""
    keys = [key for key in frame.columns if key not in (ROW, ID, POSITION)]
    renamed = [F.col(key).alias(_key_name(key)) for key in keys]
    source = frame.select(f"{ROW}.*", *renamed, ID, POSITION)
    with gateway.views({_SOURCE: source}) as names:
        text = _query(match, names[_SOURCE], until)
        tokens = tokenize(text)
        statement = bind(tokens, (0, len(tokens)))
        assert statement is not None
        matched, _ = run_statement(gateway, statement, build_window)
    return matched.where(F.col(_NUMBER).isNotNull())


def _query(match: Node, source: str, until: str) -> str:
    """The same pattern over numbered rows, with all rows of every match and their variables."""
    clause = match.clause
    keys = [_key_name(partition_key(number)) for number in range(len(match.partition_by))]
    order = [_key(_key_name(order_key(number)), item) for number, (_, item) in enumerate(match.order_by)]
    parts = [f"PARTITION BY {', '.join(keys)}"] if keys else []
    parts += [
        f"ORDER BY {', '.join([*order, POSITION])}",
        f"MEASURES MATCH_NUMBER() AS {_NUMBER}, CLASSIFIER() AS {_VARIABLE}, {until} AS {_UNTIL}",
        "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
        "ALL MATCHES" if clause.every else f"AFTER MATCH SKIP {_SKIPS[clause.skip.kind]}",
    ]
    if clause.skip.target is not None:
        parts[-1] += f" {quoted(clause.skip.target)}"
    parts += _conditions(match, quoted)
    return (
        f"SELECT {ID}, {POSITION}, {_NUMBER}, {_VARIABLE}, {_UNTIL} FROM {source} MATCH_RECOGNIZE (\n"
        + "\n".join(parts)
        + ")"
    )


def _conditions(match: Node, named: Callable[[str], str]) -> list[str]:
    """The text of a match: the pattern, with its time limit; and its variables, as they are `named`.

    Columns of its rows replace outer columns.
    """
    clause = match.clause
    pattern = f"PATTERN {_text(match, clause.pattern_at)}"
    if clause.within is not None:
        pattern += f" WITHIN {'INCLUSIVE ' if clause.inclusive else ''}{_text(match, clause.within.tokens)}"
    if clause.duration is not None:
        pattern += f" DURATION {_text(match, clause.duration.tokens)}"
    subsets = [f"{named(one.name)} = ({', '.join(map(named, one.members))})" for one in clause.subsets]
    defined = [f"{named(item.name)} AS {_text(match, item.range)}" for item in match.defines]
    return [
        pattern,
        *([f"SUBSET {', '.join(subsets)}"] if subsets else []),
        f"DEFINE {', '.join(defined)}",
    ]


def _key_name(key: str) -> str:
    """The column of a key; under its own name it would be beside the key of the numbered rows."""
    return f"__drawn{key}"


def _key(name: str, item: OrderItem) -> str:
    nulls = "FIRST" if item.nulls_first else "LAST"
    return f"{name} {'DESC' if item.descending else 'ASC'} NULLS {nulls}"


def _text(match: Node, tokens: Range) -> str:
    """The user's text, with names in place of positional parameters, and columns of the rows of others."""
    columns = {match.tokens.span(*at): quoted(name.parts[0]) for at, name in match.outside.items()}
    return piece_of(match.tokens, *tokens).with_words(match.sql, columns).render()

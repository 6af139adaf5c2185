"""The matches of MATCH_RECOGNIZE over the sequences that are drawn, with the variables of their rows."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.algebra.bind import bind
from windrow.algebra.match_node import Match as Node
from windrow.algebra.names import ROW, order_key, partition_key, verbatim
from windrow.plot.reading.chart_options import Options
from windrow.plot.reading.sequences import ID, POSITION, Sequences, read_sequences
from windrow.plot.scene import Classified, DrawnMatch, SequenceScene
from windrow.spark.clauses.batch import build_window, run_statement
from windrow.spark.clauses.matching import BoundMatch
from windrow.spark.gateway import Gateway
from windrow.syntax.nodes import OrderItem, Range
from windrow.syntax.sqltext import quoted
from windrow.syntax.tokens import tokenize

__all__ = ["read_matches"]

_SOURCE = "source"
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
    found = _found(gateway, match, sequences)
    drawn = []
    for name, sequence in sequences.drawn.items():
        own = found.get(name, {})
        matches = tuple(
            DrawnMatch(number, rows)
            for number, rows in own.items()
            if 0 <= rows[0].position < len(sequence.rows)
        )
        drawn.append(replace(sequence, matches=matches, found_count=len(own)))
    return SequenceScene(
        f"matches of {_text(match, match.clause.pattern_at)}",
        sequences.x,
        sequences.y,
        tuple(drawn),
        variables=match.labels,
        more_sequences=sequences.more,
        by_position=sequences.by_position,
    )


def _found(
    gateway: Gateway, match: Node, sequences: Sequences
) -> dict[str, dict[int, tuple[Classified, ...]]]:
    """The classified rows of each match, by its sequence and number."""
    with gateway.translated():
        rows = _matches(gateway, match, sequences.frame).orderBy(ID, "number", POSITION).collect()
    found: dict[str, dict[int, tuple[Classified, ...]]] = {}
    for row in rows:
        own = found.setdefault(row[ID], {})
        one = Classified(row[POSITION] - 1 - sequences.drawn[row[ID]].skipped, row["variable"])
        own[row["number"]] = (*own.get(row["number"], ()), one)
    return found


def _matches(gateway: Gateway, match: Node, frame: DataFrame) -> DataFrame:
    """The rows of matches over numbered rows, each with its number and variable."""
    keys = [key for key in frame.columns if key not in (ROW, ID, POSITION)]
    renamed = [F.col(key).alias(_key_name(key)) for key in keys]
    source = frame.select(f"{ROW}.*", *renamed, ID, POSITION)
    with gateway.views({_SOURCE: source}) as names:
        text = _query(match, names[_SOURCE])
        tokens = tokenize(text)
        statement = bind(tokens, (0, len(tokens)))
        assert statement is not None
        matched, _ = run_statement(gateway, statement, build_window)
    return matched.where(F.col("number").isNotNull())


def _query(match: Node, source: str) -> str:
    """The same pattern over numbered rows, with all rows of every match and their variables."""
    clause = match.clause
    keys = [_key_name(partition_key(number)) for number in range(len(match.partition_by))]
    order = [_key(_key_name(order_key(number)), item) for number, (_, item) in enumerate(match.order_by)]
    parts = [f"PARTITION BY {', '.join(keys)}"] if keys else []
    parts += [
        f"ORDER BY {', '.join([*order, POSITION])}",
        "MEASURES MATCH_NUMBER() AS number, CLASSIFIER() AS variable",
        "ALL ROWS PER MATCH OMIT EMPTY MATCHES",
        f"AFTER MATCH SKIP {_SKIPS[clause.skip.kind]}",
    ]
    if clause.skip.target is not None:
        parts[-1] += f" {quoted(clause.skip.target)}"
    parts.append(f"PATTERN {_text(match, clause.pattern_at)}")
    if clause.within is not None:
        parts.append(f"WITHIN {'INCLUSIVE ' if clause.inclusive else ''}{_text(match, clause.within.tokens)}")
    if clause.subsets:
        named = [f"{quoted(one.name)} = ({', '.join(map(quoted, one.members))})" for one in clause.subsets]
        parts.append(f"SUBSET {', '.join(named)}")
    defined = [f"{quoted(item.name)} AS {_text(match, item.range)}" for item in match.defines]
    parts.append(f"DEFINE {', '.join(defined)}")
    return (
        f"SELECT {ID}, {POSITION}, number, variable FROM {source} MATCH_RECOGNIZE (\n"
        + "\n".join(parts)
        + ")"
    )


def _key_name(key: str) -> str:
    """The column of a key; under its own name it would stand beside the key of the numbered rows."""
    return f"__drawn{key}"


def _key(name: str, item: OrderItem) -> str:
    nulls = "FIRST" if item.nulls_first else "LAST"
    return f"{name} {'DESC' if item.descending else 'ASC'} NULLS {nulls}"


def _text(match: Node, tokens: Range) -> str:
    """The user's text, with names in place of positional parameters."""
    span = match.tokens.span(*tokens)
    return verbatim(match.tokens, span.start, span.stop).render()

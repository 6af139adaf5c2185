"""MATCH_RECOGNIZE without SQL: the same operator over a DataFrame or a relation."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal, get_args

from windrow.errors import refuse_unknown
from windrow.tracebacks import brief
from windrow.without_sql.clause_arguments import (
    ClauseArguments,
    Expression,
    Items,
    Rows,
    as_name,
    as_sql,
    check_rows,
    name_in_from,
    named_item,
    numbered,
    order_item,
    refuse_direction,
    run,
)

__all__ = ["RowsPerMatch", "match_recognize"]

RowsPerMatch = Literal[
    "one row",
    "one row show empty matches",
    "all rows",
    "all rows show empty matches",
    "all rows omit empty matches",
    "all rows with unmatched rows",
]
"""The output rows of each match: ``ONE ROW PER MATCH`` and so on, without ``PER MATCH``."""

Length = Expression | float | Decimal | datetime.timedelta
"""How long a match may last."""

_ROWS_PER_MATCH: tuple[str, ...] = get_args(RowsPerMatch)
_SKIP = re.compile(r"\s*AFTER\s+MATCH\s+SKIP\s+", re.IGNORECASE)
_LATER = "leave it out here, and select it from the result"


@brief
def match_recognize(
    df: Rows,
    *,
    pattern: str,
    define: str | Mapping[str, Expression],
    partition_by: Items = (),
    order_by: Items = (),
    measures: Items | Mapping[str, Expression] = (),
    rows_per_match: RowsPerMatch = "one row",
    after_match: str = "past last row",
    subset: Mapping[str, Sequence[str]] | None = None,
    within: Length | None = None,
    inclusive: bool = False,
    duration: Length | None = None,
    timer_events: bool = False,
    select: Items = "*",
) -> Rows:
    """Patterns among the rows of a sequence.

    Parameters
    ----------
    df
        The rows: a DataFrame, classic or of Spark Connect; or a relation, such as ``session.table("t")`` or a
        stream of ``session.stream``. For a live stream, ``start`` of the result starts the query.
    pattern
        The pattern, as in PATTERN: ``"a b+ c?"``.
    define
        The condition of each variable, as SQL or as a Column that reads variables:
        ``{"b": F.col("b.v") > F.col("a.v")}``; or the words of the clause. A variable without a condition
        matches any row.
    partition_by
        Keys of the sequences: SQL expressions or Columns; none for one sequence.
    order_by
        The order of each sequence: SQL (``"date DESC NULLS LAST"``) or Columns, which are ascending unless
        they have a direction, as ``F.col("date").desc()`` has. The default for a stream is its rowtime.
    measures
        The measures of each match, by name: ``{"top": "LAST(b.v)", "n": F.count("*")}``; or SQL with AS and
        Columns with an alias.
    rows_per_match
        ``"one row"`` or ``"all rows"``, and the clause's words for empty matches and unmatched rows; or all
        words of the clause, ``"ALL ROWS PER MATCH"``.
    after_match
        Where the search continues: ``"past last row"``, ``"to next row"``, ``"to first b"``, ``"to last b"``;
        or ``"all matches"``, which includes overlapping ones.
    subset
        Names for several variables: ``{"ab": ["a", "b"]}``.
    within, inclusive
        The longest duration of a match: a timedelta; a number, in the unit of the first key; SQL such as
        ``"INTERVAL 10 MINUTES"``, or a Column of the first row. If `inclusive`, a match may last exactly that
        long.
    duration, timer_events
        The least duration of a match without further rows; see DURATION and INCLUDE TIMER EVENTS.
    select
        The result, over the columns of the matches: SQL expressions or Columns.

    Returns
    -------
    DataFrame or Relation
        The rows of the matches, in the class of `df`.

    Raises
    ------
    WindrowError
        As MATCH_RECOGNIZE in SQL does, with a position in the clause that is composed of the arguments, and
        the name of the argument. ``NOT_A_DATAFRAME``, ``INVALID_ARGUMENT``.

    Examples
    --------
    ::

        match_recognize(
            prices,
            partition_by="symbol",
            order_by="day",
            pattern="a b+ c+",
            define={"b": "b.price < PREV(b.price)", "c": "c.price > PREV(c.price)"},
            measures={"bottom": F.min("b.price"), "days": F.count("*")},
        )
    """
    check_rows(df, "match_recognize")
    written = f"rows_per_match {rows_per_match!r}"
    output = " ".join(rows_per_match.lower().split()).replace(" per match", "")
    refuse_unknown(written, output, _ROWS_PER_MATCH, "INVALID_ARGUMENT")
    refuse_direction(partition_by)
    clause = ClauseArguments()
    chosen = [(named_item(item, argument, _LATER), argument) for item, argument in numbered(select, "select")]
    clause.listed("SELECT", chosen)
    clause.add(f" FROM {name_in_from(df)} MATCH_RECOGNIZE (")
    keys = [
        (named_item(item, argument), argument) for item, argument in numbered(partition_by, "partition_by")
    ]
    clause.listed("PARTITION BY", keys)
    clause.listed("ORDER BY", [(order_item(*item), item[1]) for item in numbered(order_by, "order_by")])
    clause.listed("MEASURES", list(_measures(measures)))
    clause.add(_per_match(output))
    skip = _SKIP.sub("", after_match)
    if skip.strip().lower() == "all matches":
        clause.add(" ALL MATCHES")
    else:
        clause.add(" AFTER MATCH SKIP ")
        clause.add(skip, "after_match")
    clause.add(f"{' INCLUDE TIMER EVENTS' if timer_events else ''} PATTERN (")
    clause.add(pattern, "pattern")
    clause.add(")")
    for word, length in (("WITHIN INCLUSIVE" if inclusive else "WITHIN", within), ("DURATION", duration)):
        if length is not None:
            clause.add(f" {word} ")
            argument = word.partition(" ")[0].lower()
            clause.add(_length(length, argument), argument)
    subsets = [
        (f"{as_name(name)} = ({', '.join(members)})", f"subset[{name!r}]")
        for name, members in (subset or {}).items()
    ]
    clause.listed("SUBSET", subsets)
    clause.listed("DEFINE", list(_defines(define)))
    clause.add(")")
    return run(df, clause, {}, lambda statement: statement)


def _measures(measures: Items | Mapping[str, Expression]) -> Iterator[tuple[str, str]]:
    if isinstance(measures, Mapping):
        for name, item in measures.items():
            argument = f"measures[{name!r}]"
            yield f"{as_sql(item, argument)} AS {as_name(name)}", argument
    else:
        yield from (
            (named_item(item, argument), argument) for item, argument in numbered(measures, "measures")
        )


def _defines(define: str | Mapping[str, Expression]) -> Iterator[tuple[str, str]]:
    if isinstance(define, str):
        yield define, "define"
    else:
        for name, item in define.items():
            argument = f"define[{name!r}]"
            yield f"{as_name(name)} AS {as_sql(item, argument)}", argument


def _per_match(rows_per_match: str) -> str:
    one_or_all, rows, *others = rows_per_match.upper().split()
    return " ".join([f" {one_or_all} {rows} PER MATCH", *others])


def _length(length: Length, argument: str) -> str:
    if isinstance(length, datetime.timedelta):
        return f"INTERVAL {length // datetime.timedelta(microseconds=1)} MICROSECONDS"
    return str(length) if isinstance(length, int | float | Decimal) else as_sql(length, argument)

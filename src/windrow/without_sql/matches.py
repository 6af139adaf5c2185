"""MATCH_RECOGNIZE without SQL: the same operator over a DataFrame or a relation."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from windrow.errors import UsageError, did_you_mean
from windrow.tracebacks import brief
from windrow.without_sql.clause_arguments import (
    ClauseArguments,
    Given,
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
"""What is given of each match: ``ONE ROW PER MATCH`` and so on, without ``PER MATCH``."""

_ROWS_PER_MATCH: tuple[str, ...] = get_args(RowsPerMatch)
_LATER = "leave it out here, and select it from what is given"


@brief
def match_recognize(
    df: Rows,
    *,
    pattern: str,
    define: str | Mapping[str, Given],
    partition_by: Items = (),
    order_by: Items = (),
    measures: Items | Mapping[str, Given] = (),
    rows_per_match: RowsPerMatch = "one row",
    after_match: str = "past last row",
    subset: Mapping[str, Sequence[str]] | None = None,
    within: str | datetime.timedelta | None = None,
    inclusive: bool = False,
    duration: str | datetime.timedelta | None = None,
    timer_events: bool = False,
    select: Items = "*",
) -> Rows:
    """Patterns among the rows of a sequence.

    Parameters
    ----------
    df
        The rows: a DataFrame, classic or of Spark Connect; or a relation, such as ``session.table("t")`` and
        the streams of ``session.stream``, of which live ones are started by ``start`` of what is given.
    pattern
        The pattern, as it stands in PATTERN: ``"a b+ c?"``.
    define
        The condition of each variable, as SQL or as a Column that reads variables:
        ``{"b": F.col("b.v") > F.col("a.v")}``; or the words of the clause. A variable without one matches any
        row.
    partition_by
        Keys of the sequences: SQL expressions or Columns; none for one sequence.
    order_by
        What orders each sequence: SQL (``"date DESC NULLS LAST"``) or Columns, which are ascending but for
        ``F.col("date").desc()`` and its like. A stream is in the order of its rowtime without.
    measures
        What is computed of each match, by name: ``{"top": "LAST(b.v)", "n": F.count("*")}``; or SQL with AS
        and Columns with an alias.
    rows_per_match
        ``"one row"`` or ``"all rows"``, and the clause's words for empty matches and unmatched rows.
    after_match
        Where the search goes on: ``"past last row"``, ``"to next row"``, ``"to first b"``, ``"to last b"``;
        or ``"all matches"``, for also those that overlap.
    subset
        Names for several variables: ``{"ab": ["a", "b"]}``.
    within, inclusive
        How long a match may last: a timedelta, or SQL such as ``"INTERVAL 10 MINUTES"``, exactly that long
        included if `inclusive`.
    duration, timer_events
        How long a match must have lasted, if nothing follows; see DURATION and INCLUDE TIMER EVENTS.
    select
        The result, over the columns of the matches: SQL expressions or Columns.

    Returns
    -------
    DataFrame or Relation
        The rows of the matches, as `df` is given.

    Raises
    ------
    WindrowError
        As MATCH_RECOGNIZE in SQL does; positions are those of the clause made from the arguments, which the
        error names. ``NOT_A_DATAFRAME``, ``INVALID_ARGUMENT``.

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
    if rows_per_match not in _ROWS_PER_MATCH:
        known = ", ".join(map(repr, _ROWS_PER_MATCH))
        raise UsageError(
            f"rows_per_match {rows_per_match!r} is unknown",
            condition="INVALID_ARGUMENT",
            hint=did_you_mean(str(rows_per_match), _ROWS_PER_MATCH) or f"there are {known}",
        )
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
    clause.add(_per_match(rows_per_match))
    every = after_match.strip().lower() == "all matches"
    if every:
        clause.add(" ALL MATCHES")
    else:
        clause.add(" AFTER MATCH SKIP ")
        clause.add(after_match, "after_match")
    clause.add(f"{' INCLUDE TIMER EVENTS' if timer_events else ''} PATTERN (")
    clause.add(pattern, "pattern")
    clause.add(")")
    for word, length in (("WITHIN INCLUSIVE" if inclusive else "WITHIN", within), ("DURATION", duration)):
        if length is not None:
            clause.add(f" {word} ")
            clause.add(_length(length), word.partition(" ")[0].lower())
    subsets = [
        (f"{as_name(name)} = ({', '.join(members)})", f"subset[{name!r}]")
        for name, members in (subset or {}).items()
    ]
    clause.listed("SUBSET", subsets)
    clause.listed("DEFINE", list(_defines(define)))
    clause.add(")")
    return run(df, clause, {}, lambda statement: statement)


def _measures(given: Items | Mapping[str, Given]) -> Iterator[tuple[str, str]]:
    if isinstance(given, Mapping):
        for name, item in given.items():
            argument = f"measures[{name!r}]"
            yield f"{as_sql(item, argument)} AS {as_name(name)}", argument
    else:
        yield from ((named_item(item, argument), argument) for item, argument in numbered(given, "measures"))


def _defines(given: str | Mapping[str, Given]) -> Iterator[tuple[str, str]]:
    if isinstance(given, str):
        yield given, "define"
    else:
        for name, item in given.items():
            argument = f"define[{name!r}]"
            yield f"{as_name(name)} AS {as_sql(item, argument)}", argument


def _per_match(given: str) -> str:
    one_or_all, rows, *others = given.upper().split()
    return " ".join([f" {one_or_all} {rows} PER MATCH", *others])


def _length(given: str | datetime.timedelta) -> str:
    if isinstance(given, str):
        return given
    return f"INTERVAL {given // datetime.timedelta(microseconds=1)} MICROSECONDS"

"""MATCH_RECOGNIZE without SQL: the same operator over a DataFrame or a relation."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal, get_args

from pyspark.sql import Column

from windrow.errors import UsageError, refuse_unknown
from windrow.spark.analysis.column_text import as_name
from windrow.syntax.sqltext import quoted
from windrow.tracebacks import brief
from windrow.without_sql.clause_arguments import (
    ClauseArguments,
    Expression,
    Items,
    Rows,
    as_sql,
    check_rows,
    invalid,
    name_in_from,
    named_item,
    numbered,
    order_item,
    refuse_columns_of_others,
    refuse_direction,
    refuse_no_items,
    refuse_other_than,
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
_VARIABLE = re.compile(r"[A-Za-z_]\w*|`[^`]+`", re.ASCII)
_SKIP = re.compile(r"\s*(?:AFTER\s+MATCH\s+)?SKIP\s+", re.IGNORECASE)
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
    refuse_columns_of_others(
        df,
        {"partition_by": partition_by, "order_by": order_by, "measures": measures, "define": define}
        | {"within": within, "duration": duration, "select": select},
    )
    refuse_no_items(select, "select", "leave it out for all columns")
    refuse_other_than(str, pattern, "pattern", "write what stands in PATTERN (…), such as pattern='a b+ c?'")
    rows_are = f"write one of {', '.join(map(repr, _ROWS_PER_MATCH))}"
    refuse_other_than(str, rows_per_match, "rows_per_match", rows_are)
    refuse_other_than(str, after_match, "after_match", "write after_match='to next row', or leave it out")
    for argument, flag in (("inclusive", inclusive), ("timer_events", timer_events)):
        refuse_other_than(bool, flag, argument, f"write {argument}=True, or leave it out")
    if inclusive and within is None:
        raise UsageError(
            "inclusive needs a length: within is not given",
            condition="INVALID_ARGUMENT",
            hint="pass within, or leave inclusive out",
        )
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
    clause.listed("SUBSET", list(_subsets(subset, pattern)))
    clause.listed("DEFINE", list(_defines(define, pattern)))
    clause.add(")")
    return run(df, clause, {}, lambda statement: statement)


def _measures(measures: Items | Mapping[str, Expression]) -> Iterator[tuple[str, str]]:
    if isinstance(measures, Mapping):
        for name, item in measures.items():
            argument = f"measures[{name!r}]"
            refuse_other_than(str, name, "measures", "write a name for each: measures={'top': 'MAX(b.val)'}")
            yield f"{as_sql(item, argument)} AS {as_name(name)}", argument
    else:
        yield from (
            (named_item(item, argument), argument) for item, argument in numbered(measures, "measures")
        )


def _subsets(subset: Mapping[str, Sequence[str]] | None, pattern: str) -> Iterator[tuple[str, str]]:
    hint = "write the variables of each name: subset={'ab': ['a', 'b']}"
    if not isinstance(subset, Mapping | None):
        raise invalid("subset", subset, "no dict", hint)
    for name, members in (subset or {}).items():
        argument = f"subset[{name!r}]"
        refuse_other_than(str, name, "subset", hint)
        is_list = isinstance(members, Iterable) and not isinstance(members, str | bytes | Mapping)
        listed = list(members) if is_list else []
        if not listed or not all(isinstance(one, str) for one in listed):
            raise invalid(argument, members, "no list of variables", hint)
        variables = ", ".join(_variable(one, pattern) for one in listed)
        yield f"{_variable(name, pattern)} = ({variables})", argument


def _defines(define: str | Mapping[str, Expression], pattern: str) -> Iterator[tuple[str, str]]:
    hint = "write the condition of each variable: define={'b': 'b.val > 3'}"
    if isinstance(define, str):
        yield define, "define"
    elif isinstance(define, Mapping):
        for name, item in define.items():
            argument = f"define[{name!r}]"
            refuse_other_than(str, name, "define", hint)
            yield f"{_variable(name, pattern)} AS {as_sql(item, argument)}", argument
    else:
        raise invalid("define", define, "neither a dict nor SQL", hint)


def _variable(name: str, pattern: str) -> str:
    """A variable as SQL, between backquotes if it is in the pattern: case matters there."""
    return name if _VARIABLE.fullmatch(name) and quoted(name) not in pattern else quoted(name)


def _per_match(rows_per_match: str) -> str:
    one_or_all, rows, *others = rows_per_match.upper().split()
    return " ".join([f" {one_or_all} {rows} PER MATCH", *others])


def _length(length: Length, argument: str) -> str:
    hint = f"write a number, a timedelta, or {argument}='INTERVAL 10 MINUTES'"
    if isinstance(length, datetime.timedelta):
        written = f"{length // datetime.timedelta(microseconds=1)} MICROSECONDS"
    elif isinstance(length, int | float | Decimal) and not isinstance(length, bool):
        written = str(length)
    elif isinstance(length, str | Column):
        return as_sql(length, argument)
    else:
        raise invalid(argument, length, "no length of time", hint)
    if not written[0].isdigit():
        raise invalid(argument, length, "no length of time", hint)
    return f"INTERVAL {written}" if isinstance(length, datetime.timedelta) else written

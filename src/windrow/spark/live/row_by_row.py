"""SQL over a live stream that is evaluated a micro-batch at a time: it looks at each row by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame

from windrow.errors import AnalysisError, NotSupportedError, Span
from windrow.spark.gateway import Gateway
from windrow.spark.live.rowtimes import MARK, is_marked
from windrow.syntax.blocks import is_set_operator, level_around
from windrow.syntax.sqltext import SqlText
from windrow.syntax.tokens import TokenList, tokenize

__all__ = ["looks_at_each", "refuse_gathering"]

_BY_ROW = {
    "Project", "Filter", "SubqueryAlias", "View", "Generate", "ResolvedHint", "UnresolvedHint", "WithCTE",
    "CTERelationDef", "CTERelationRef", "Union",
}  # fmt: skip
_WORDS = {
    "Aggregate": "GROUP", "Sort": "ORDER", "GlobalLimit": "LIMIT", "LocalLimit": "LIMIT", "Offset": "OFFSET",
    "Window": "OVER", "Distinct": "DISTINCT", "Deduplicate": "DISTINCT", "Join": "JOIN", "Union": "UNION",
}  # fmt: skip
_SIDES = {
    "Inner": (0, 1),
    "Cross": (0, 1),
    "LeftOuter": (0,),
    "RightOuter": (1,),
    "LeftSemi": (0,),
    "LeftAnti": (0,),
}
_OF_SEVERAL = ("Join", "Union", "WithCTE")
_LINE = re.compile(r"^([ :]*(?:[+:]- )?)([~'!]?)([A-Za-z]\w*)(.*)$")


def refuse_gathering(
    gateway: Gateway,
    frame: DataFrame,
    text: SqlText,
    tokens: TokenList,
    query: Span,
    clause: Span | None,
    beside: str = "WINDOW BY or MATCH_RECOGNIZE",
) -> None:
    """Refuse a query over a streaming DataFrame of which a row depends on other rows of that.

    Parameters
    ----------
    gateway
        The session.
    frame, text
        The query, and what it was made of.
    tokens
        Of the statement that it is of.
    query
        Where the query stands in it.
    clause
        Where its clause of windows or patterns stands, if it has one.
    beside
        What that is.

    Raises
    ------
    NotSupportedError
        ``UNSUPPORTED_STREAM``, at the word that says so, or at the clause or the query.
    AnalysisError
        ``ORDER_NOT_ROWTIME`` where what UNION ALL puts together has the rowtime in different columns.
    """
    plan = _plan(gateway, frame, text)
    is_unknown = frame.isStreaming and not plan.is_streaming

    def place(word: str) -> Span:
        spans = [token.span for token in tokens.tokens if token.word == word]
        outside = [span for span in spans if clause is None or not clause.start <= span.start < clause.stop]
        return outside[0] if outside else clause or query

    for name in ["what Spark does here"] if is_unknown else _gathering(plan):
        what = _WORDS.get(name, name)
        raise NotSupportedError(
            f"{what} over a live stream beside {beside} is not supported",
            condition="UNSUPPORTED_STREAM",
            sql=tokens.sql,
            span=place(what),
            hint="beside the clause each row is looked at by itself; what gathers rows needs a window of time"
            " over the clause: FROM (SELECT …) [RANGE 1 HOUR]",
        )
    if _mixes_rowtimes(plan):
        raise AnalysisError(
            "what UNION ALL puts together has its rowtime in different columns",
            condition="ORDER_NOT_ROWTIME",
            sql=tokens.sql,
            span=place("UNION"),
            hint="select the rowtime in the same place in each query",
        )


def looks_at_each(gateway: Gateway, frame: DataFrame, text: SqlText, *, shows_rowtime: bool = True) -> bool:
    """Whether no row of a query over a streaming DataFrame depends on other rows of that, and what UNION ALL
    puts together has its rowtime in the same columns, unless the rowtime is not among them (`shows_rowtime`).
    """
    plan = _plan(gateway, frame, text)
    if not plan.is_streaming or next(_gathering(plan), None) is not None:
        return False
    return not (shows_rowtime and _mixes_rowtimes(plan))


def _plan(gateway: Gateway, frame: DataFrame, text: SqlText) -> _Operator:
    if not gateway.is_connect:
        return _analyzed(frame._jdf.queryExecution().analyzed())
    plan = _told(gateway.spark_plan(frame, "extended"))
    _mark(plan, gateway, text)
    return plan


@dataclass
class _Operator:
    """An operator of a plan of Spark's.

    `rowtimes` are the places of its output that are marked as rowtimes, None where that is not known.
    """

    name: str
    sides: str = ""
    is_streaming: bool = False
    inputs: list[_Operator] = field(default_factory=list)
    subqueries: list[_Operator] = field(default_factory=list)
    rowtimes: frozenset[int] | None = None


def _analyzed(plan: Any) -> _Operator:
    """The analysed plan of a classic session."""
    sides = str(plan.joinType().toString()) if str(plan.nodeName()) == "Join" else ""
    output = _all(plan.output())
    return _Operator(
        str(plan.nodeName()),
        sides,
        bool(plan.isStreaming()),
        [_analyzed(child) for child in _all(plan.children())],
        [_analyzed(query) for query in _all(plan.subqueries())],
        frozenset(at for at, column in enumerate(output) if column.metadata().contains(MARK)),
    )


def _all(plans: Any) -> list[Any]:
    return [plans.apply(at) for at in range(plans.size())]


def _told(text: str) -> _Operator:
    """The same as Spark Connect tells it: a line an operator, marked where it streams, under its reader."""
    lines = text.partition("== Analyzed Logical Plan ==\n")[2].partition("\n== ")[0].splitlines()
    root = _Operator("")
    above: list[tuple[int, _Operator]] = [(-1, root)]
    for line in lines[1:]:  # the first has the columns
        found = _LINE.match(line)
        if found is None:
            continue
        depth, name = len(found[1]), found[3]
        sides = found[4].split(",")[0].strip() if name == "Join" else ""
        made = _Operator(name, sides, "~" in found[2])
        while above[-1][0] >= depth:
            above.pop()
        above[-1][1].inputs.append(made)
        above.append((depth, made))
    return _settled(root.inputs[0])


def _settled(plan: _Operator) -> _Operator:
    """What streams below streams here; what stands before the input of an operator are its subqueries."""
    for child in plan.inputs:
        _settled(child)
    plan.is_streaming = plan.is_streaming or any(child.is_streaming for child in plan.inputs)
    if plan.name not in _OF_SEVERAL:
        plan.subqueries, plan.inputs = plan.inputs[:-1], plan.inputs[-1:]
    return plan


def _mark(plan: _Operator, gateway: Gateway, text: SqlText) -> None:
    """Find out where what UNION ALL puts together has its rowtimes, which the text of a plan does not tell.

    Of one UNION ALL in a query; of several, as of other set operators, it stays unknown.
    """
    top = next((one for one in _all_of(plan) if one.name == "Union"), None)
    if top is None:
        return
    united, leaves = _united(top)
    branches = _branches(text)
    count = sum(one.name == "Union" for one in _all_of(plan))
    if len(branches) != len(leaves) or count != len(united):
        return
    for leaf, branch in zip(leaves, branches, strict=True):
        schema = gateway.sql(branch).schema
        leaf.rowtimes = frozenset(at for at, column in enumerate(schema) if is_marked(column))
    for union in reversed(united):  # the columns of a union are those of its first part
        union.rowtimes = union.inputs[0].rowtimes


def _all_of(plan: _Operator) -> Iterator[_Operator]:
    yield plan
    for child in (*plan.subqueries, *plan.inputs):
        yield from _all_of(child)


def _united(union: _Operator) -> tuple[list[_Operator], list[_Operator]]:
    """The unions that one UNION ALL after the other becomes, and what they put together."""
    unions, leaves = [union], list[_Operator]()
    for child in union.inputs:
        if child.name == "Union":
            inner, found = _united(child)
            unions += inner
            leaves += found
        else:
            leaves.append(child)
    return unions, leaves


def _branches(text: SqlText) -> list[SqlText]:
    """What the one UNION ALL of a query, or one after the other, puts together; nothing of any other text."""
    tokens = tokenize(text.render())
    found = [at for at in range(len(tokens)) if is_set_operator(tokens, at)]
    if not found or len({tokens.parent[at] for at in found}) > 1:
        return []
    start, stop = level_around(tokens, found[0])
    is_all = all(tokens.word(at) == "UNION" and tokens.word(at + 1) == "ALL" for at in found)
    if not is_all or tokens.word(start) == "WITH":
        return []
    edges = [start, *(at + 2 for at in found)], [*found, stop]
    spans = [tokens.span(first, last) for first, last in zip(*edges, strict=True)]
    return [text.slice(span.start, span.stop) for span in spans]


def _gathering(plan: _Operator) -> Iterator[str]:
    """The names of the operators of Spark's that look at several rows of what is streaming."""
    if not plan.is_streaming:
        return
    streaming = [at for at, child in enumerate(plan.inputs) if child.is_streaming]
    is_join = plan.name == "Join" and streaming == [
        at for at in _SIDES.get(plan.sides, ()) if at in streaming
    ]
    is_known = plan.name in _BY_ROW
    if plan.name == "Union":  # of what is there, the rows would come in every step
        is_known = plan.rowtimes is not None and len(streaming) == len(plan.inputs)
    if plan.inputs and not is_known and not (is_join and len(streaming) == 1):
        yield plan.name
    for query in plan.subqueries:
        if query.is_streaming:
            yield "a subquery"
    for child in plan.inputs:
        yield from _gathering(child)


def _mixes_rowtimes(plan: _Operator) -> bool:
    """Whether a union of streams takes a column for the rowtime that is not that of all of them."""
    if plan.name == "Union" and plan.is_streaming and plan.rowtimes:
        for child in plan.inputs:
            if not child.is_streaming or child.rowtimes is None or not plan.rowtimes <= child.rowtimes:
                return True
    return any(map(_mixes_rowtimes, plan.inputs))

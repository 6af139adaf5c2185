"""Which operators of a query have unbounded state, and which punctuation would bound it.

A stream is bounded on some columns if, for each of its rows, a punctuation over these columns alone will
match it: on its rowtime by bounds, on others if it declares such punctuation or has had it before. Operators
pass this property on as they pass on punctuations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from windrow.algebra.names import as_written
from windrow.kernels.punctuated import (
    FilterOperator,
    GroupOperator,
    OverOperator,
    ProjectOperator,
    SessionOperator,
    SetOperator,
    SortOperator,
    SymmetricJoin,
)
from windrow.kernels.punctuated.following import Follower
from windrow.kernels.punctuated.operator_graph import OperatorNode, Place
from windrow.plan.nodes import Project, walk
from windrow.spark.live.operators.punctuated.expected_punctuation import Bounded
from windrow.spark.live.operators.punctuated.row_maps import RowMap
from windrow.spark.live.reading.whole_stream_queries import Blocking
from windrow.spark.logs.clause_view import Unbounded

__all__ = ["unbounded"]


def unbounded(query: Blocking, streams: Mapping[str, Bounded]) -> list[Unbounded]:
    """The operators of a query that retain rows forever.

    Parameters
    ----------
    streams
        How each stream is bounded, by its columns.
    """
    known: dict[Place, Bounded] = {
        name: bounded.only({column: f"{name}.{column}" for one in bounded.by for column in one})
        for name, bounded in streams.items()
    }
    constant = _constant(query)
    known |= {key: Bounded(frozenset([frozenset()])) for key in query.tables}  # all of it is there
    found: list[Unbounded] = []
    for number, node in enumerate(query.graph.nodes):
        known[number] = _after(query, node, [known[place] for place in node.inputs], constant, found)
    return found


def _constant(query: Blocking) -> set[str]:
    """The columns that have one value in all rows."""
    made = [pair for node in walk(query.plan) if isinstance(node, Project) for pair in node.outputs]
    return {column.id for column, one in made if one.column is None and one.reads == frozenset()}


def _after(
    query: Blocking,
    node: OperatorNode,
    inputs: list[Bounded],
    constant: set[str],
    found: list[Unbounded],
) -> Bounded:
    """How the output of an operator is bounded; records the rows that it retains forever."""

    def grows(state: str, *columns: Collection[str]) -> None:
        needed = [{*own} - constant for own in columns]
        found.append(Unbounded(as_written(node.name), state, _needs(query, needed)))

    operator = node.operator
    match operator:
        case FilterOperator():
            return inputs[0]
        case ProjectOperator(columns=pairs):
            return inputs[0].only({column: name for name, column in reversed(pairs)})
        case RowMap(plain=pairs, moved=moved, followed=followed, widened=widened, are_null=are_null):
            nulls = {column for column, is_null in are_null if is_null}  # their other values are excluded
            below = Bounded(frozenset(one - nulls for one in inputs[0].by), inputs[0].rising)
            after = _followed(below, pairs, [one.follower for one in followed])
            for name, column in widened:
                wider = {frozenset({name, *one} - {column}) for one in after.by if column in one}
                rises = {name} if column in after.rising else set()
                after = Bounded(after.by | wider, after.rising | rises)
            risen = frozenset(one.name for one in moved if one.column in inputs[0].rising)
            return Bounded(after.by | {frozenset([name]) for name in risen}, after.rising | risen)
        case GroupOperator(keys=keys):
            own = {column: name for name, column in keys}
            if not inputs[0].within(own):
                grows("each group", own)
            return inputs[0].only(own)
        case SymmetricJoin():
            return _joined(inputs, operator, constant, grows)
        case SetOperator(operator=name):
            return _combined(name, inputs, grows)
        case OverOperator(partition=partition):
            return _looked(inputs[0], operator, partition, grows)
        case SessionOperator(keys=by, time=time, bounds=bounds):
            is_passed = time in inputs[0].rising
            if not is_passed and not inputs[0].within(by):
                grows("the rows of open sessions", by)
                return Bounded(frozenset())
            ends = frozenset(bounds if is_passed else ())
            return Bounded(inputs[0].by | {frozenset([name]) for name in ends}, inputs[0].rising | ends)
        case SortOperator(keys=sorted_by, limit=limit):
            first = sorted_by[0].column
            if limit is None and first not in inputs[0].rising and not inputs[0].within([]):
                grows("all rows", [first])
            return inputs[0]
    raise AssertionError(operator)


def _followed(below: Bounded, plain: Sequence[tuple[str, str]], followers: Sequence[Follower]) -> Bounded:
    """How rows are bounded on columns that are passed on, and on columns that follow some of these."""
    passed = {column: name for name, column in reversed(plain)}
    after = below.only(passed)
    differing = {one.column: one.name for one in followers if one.differs}
    each = [{column: name} for column, name in differing.items()]
    by = {found for own in (*each, differing) for found in below.only({**passed, **own}).by}
    rising = {one.name for one in followers if one.rises and one.column in below.rising}
    return Bounded(after.by | by, after.rising | rising)


def _looked(below: Bounded, over: OverOperator, partition: tuple[str, ...], grows: object) -> Bounded:
    assert callable(grows)
    if below.within(partition):
        return below
    order = [key.column for key in over.order if key.column not in partition]
    is_passed = over.looks_back and bool(order) and order[0] in below.rising
    if not is_passed or over.reach is None:
        grows("the rows of each partition" if over.totals is None else "a total of each partition", partition)
    return below if is_passed else Bounded(frozenset())


def _joined(inputs: list[Bounded], join: SymmetricJoin, constant: set[str], grows: object) -> Bounded:
    left, right = inputs
    mine, theirs = [one for one, _ in join.on], [other for _, other in join.on]
    is_half = join.kind in ("semi", "anti", "mark")
    only_keys = is_half and join.condition is None
    is_one_row = only_keys and constant.issuperset(theirs)
    retains_left, retains_right = not right.within(theirs), not left.within(mine)
    assert callable(grows)
    if retains_left and not left.within([]):
        grows("the rows of the left side", theirs)
    if retains_right and not is_one_row and not right.within([]):
        grows("the keys of the right side" if only_keys else "the rows of the right side", mine)
    by = set() if retains_left else {*left.by}
    rising = frozenset() if retains_left else left.rising
    if not is_half and not retains_right:
        by |= right.by - {frozenset()}
        rising |= right.rising
    return Bounded(frozenset(by), rising)


def _combined(name: str, inputs: list[Bounded], grows: object) -> Bounded:
    assert callable(grows)
    if name == "distinct":
        if not inputs[0].by:
            grows("each different row", [])
        return inputs[0]
    left, right = inputs
    if name.startswith("union"):
        if name == "union" and not (left.by and right.by):
            grows("each different row", [])
    elif not (left.by and right.by):
        grows("the rows of both sides", [])
    by = {one | other for one in left.by for other in right.by}
    return Bounded(frozenset(by), left.rising & right.rising)


def _needs(query: Blocking, columns: Sequence[Collection[str]]) -> str:
    """The punctuation that would bound it, in words."""
    needs = []
    for own in columns:
        origins = [query.lineage.of(column) for column in own]
        known = [origin for origin in origins if origin is not None]
        if not own:
            needs.append("punctuations of its streams would bound it")
        elif len(known) < len(origins) or len({stream for stream, _ in known}) > 1:
            needs.append(
                "nothing can bound it, as its keys are computed; windows of time are in FROM here:"
                " TUMBLE(TABLE s, DESCRIPTOR(ts), INTERVAL 5 MINUTES), grouped by wend"
            )
        else:
            names = ", ".join(column for _, column in known)
            needs.append(f"punctuations of {known[0][0]} on {names} would bound it")
    return "; ".join(needs)

"""Which operators of a query have unbounded state, and which punctuation would bound it.

A stream is bounded on some columns if, for each of its rows, a punctuation over these columns alone will
match it: on its rowtime by bounds, on others by what it declares or has been promised before. Operators pass
that on as they pass on punctuations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from windrow.kernels.punctuated import Filter, Group, Join, Over, Project, Session, SetOperator, Sort
from windrow.kernels.punctuated.flow import Node, Place
from windrow.kernels.punctuated.following import Follower
from windrow.spark.live.operators.expected_punctuation import Bounded
from windrow.spark.live.operators.row_maps import RowMap
from windrow.spark.live.reading.whole_stream_queries import Blocking
from windrow.spark.logs.clause_view import Unbounded

__all__ = ["unbounded"]


def unbounded(query: Blocking, streams: Mapping[str, Bounded]) -> list[Unbounded]:
    """The operators of a query that keep rows for ever.

    Parameters
    ----------
    streams
        How each stream is bounded, by its columns.
    """
    known: dict[Place, Bounded] = {
        name: bounded.only({column: f"{name}.{column}" for one in bounded.by for column in one})
        for name, bounded in streams.items()
    }
    known |= {key: Bounded(frozenset([frozenset()])) for key in query.tables}  # all of it is there
    found: list[Unbounded] = []
    for number, node in enumerate(query.flow.nodes):
        known[number] = _after(query, node, [known[place] for place in node.inputs], found)
    return found


def _after(query: Blocking, node: Node, given: list[Bounded], found: list[Unbounded]) -> Bounded:
    """How what an operator gives is bounded; notes what it keeps for ever."""

    def grows(keeps: str, *columns: Collection[str]) -> None:
        found.append(Unbounded(node.name, keeps, _needs(query, columns)))

    operator = node.operator
    match operator:
        case Filter():
            return given[0]
        case Project(columns=pairs):
            return given[0].only({column: name for name, column in reversed(pairs)})
        case RowMap(plain=pairs, moved=moved, followed=followed, widened=widened):
            after = _followed(given[0], pairs, [one.follower for one in followed])
            for name, column in widened:
                wider = {frozenset({name, *one} - {column}) for one in after.by if column in one}
                rises = {name} if column in after.rising else set()
                after = Bounded(after.by | wider, after.rising | rises)
            risen = frozenset(one.name for one in moved if one.column in given[0].rising)
            return Bounded(after.by | {frozenset([name]) for name in risen}, after.rising | risen)
        case Group(keys=keys):
            own = {column: name for name, column in keys}
            if not given[0].within(own):
                grows("each group", own)
            return given[0].only(own)
        case Join(on=on, kind=kind):
            return _joined(given, on, kind, grows)
        case SetOperator(operator=name):
            return _combined(name, given, grows)
        case Over(partition=partition):
            return _looked(given[0], operator, partition, grows)
        case Session(keys=by, time=time, bounds=bounds):
            is_passed = time in given[0].rising
            if not is_passed and not given[0].within(by):
                grows("the rows of open sessions", by)
                return Bounded(frozenset())
            ends = frozenset(bounds if is_passed else ())
            return Bounded(given[0].by | {frozenset([name]) for name in ends}, given[0].rising | ends)
        case Sort(keys=sorted_by, limit=limit):
            first = sorted_by[0].column
            if limit is None and first not in given[0].rising and not given[0].within([]):
                grows("all rows", [first])
            return given[0]
    raise AssertionError(operator)


def _followed(given: Bounded, plain: Sequence[tuple[str, str]], followers: Sequence[Follower]) -> Bounded:
    """How rows are bounded on columns that are passed on, and on those that go with some."""
    passed = {column: name for name, column in reversed(plain)}
    after = given.only(passed)
    differing = {one.column: one.name for one in followers if one.differs}
    each = [{column: name} for column, name in differing.items()]
    by = {found for own in (*each, differing) for found in given.only({**passed, **own}).by}
    rising = {one.name for one in followers if one.rises and one.column in given.rising}
    return Bounded(after.by | by, after.rising | rising)


def _looked(given: Bounded, over: Over, partition: tuple[str, ...], grows: object) -> Bounded:
    assert callable(grows)
    if given.within(partition):
        return given
    order = [key.column for key in over.order if key.column not in partition]
    is_passed = over.looks_back and bool(order) and order[0] in given.rising
    if not is_passed or over.reach is None:
        grows("the rows of each partition", partition)
    return given if is_passed else Bounded(frozenset())


def _joined(given: list[Bounded], on: tuple[tuple[str, str], ...], kind: str, grows: object) -> Bounded:
    left, right = given
    mine, theirs = [one for one, _ in on], [other for _, other in on]
    keeps_left, keeps_right = not right.within(theirs), not left.within(mine)
    assert callable(grows)
    if keeps_left and not left.within([]):
        grows("the rows of the left side", theirs)
    if keeps_right and not right.within([]):
        grows(
            "the keys of the right side" if kind in ("semi", "anti") else "the rows of the right side", mine
        )
    by = set() if keeps_left else {*left.by}
    rising = frozenset() if keeps_left else left.rising
    if kind not in ("semi", "anti") and not keeps_right:
        by |= right.by - {frozenset()}
        rising |= right.rising
    return Bounded(frozenset(by), rising)


def _combined(name: str, given: list[Bounded], grows: object) -> Bounded:
    assert callable(grows)
    if name == "distinct":
        if not given[0].by:
            grows("each different row", [])
        return given[0]
    left, right = given
    if name.startswith("union"):
        if name == "union" and not (left.by and right.by):
            grows("each different row", [])
    elif not (left.by and right.by):
        grows("the rows of both sides", [])
    by = {one | other for one in left.by for other in right.by}
    return Bounded(frozenset(by), left.rising & right.rising)


def _needs(query: Blocking, columns: tuple[Collection[str], ...]) -> str:
    """What would bound it, in words."""
    told = []
    for own in columns:
        origins = [query.lineage.of(column) for column in own]
        known = [origin for origin in origins if origin is not None]
        if not own:
            told.append("it is bounded by punctuations of its streams")
        elif len(known) < len(origins) or len({stream for stream, _ in known}) > 1:
            told.append("it is bounded by nothing, as it goes by what is computed")
        else:
            names = ", ".join(column for _, column in known)
            told.append(f"it is bounded by punctuations of {known[0][0]} on {names}")
    return "; ".join(told)

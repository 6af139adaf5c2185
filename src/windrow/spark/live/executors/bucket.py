"""One bucket of a query: what it holds, and what it gives for a micro-batch.

It is written to a store as chunks, as the driver writes what it holds to files; a bucket that is in memory
still is not read again, if what is stored is what it was.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windrow.errors import InputError
from windrow.kernels.stages import PER_STEP, Holding, Operated, Times
from windrow.kernels.stored import from_stored, stored
from windrow.kernels.zset.relation import ENTER, LEAVE, NEVER
from windrow.spark.live.arrivals import VIOLATED
from windrow.spark.live.executors.packing import PROMISED, SEEN, from_bytes, to_bytes
from windrow.spark.live.executors.task import Task
from windrow.spark.streams import REASON
from windrow.streams.entries import FOREVER, NO_BOUND, Decision, reasons
from windrow.streams.parts import Part, Said, judged

__all__ = ["EARLIER", "LATE_AT", "Account", "Store", "advanced"]

EARLIER = -NEVER
"""When rows enter that a micro-batch before has told of."""

LATE_AT = "__late_at"
"""The rowtime of a late row."""

_ROWS_AT_ONCE = 1 << 18
_FEWEST = 10_000
"""So many rows are taken again after a restart rather than writing anew what groups hold."""
_CARRY = "carry"

Packet = tuple[str, bytes | None]
"""A note and rows, as :mod:`.packing` makes them, and as a bucket gives them."""


class Store(Protocol):
    """Where a bucket is kept between micro-batches: one text, and bytes by name and number."""

    def text(self) -> str | None:
        """The text; None before there is one."""

    def keep(self, text: str) -> None:
        """Replace the text."""

    def read(self, name: str, number: int) -> bytes:
        """The bytes of a name and number."""

    def write(self, name: str, number: int, data: bytes) -> None:
        """Keep bytes."""

    def drop(self, name: str, number: int) -> None:
        """Keep bytes no longer."""


@dataclass
class Account:
    """What a bucket tells of itself after a micro-batch.

    Attributes
    ----------
    came, used, late, rejected
        How many rows came in it, how many a window took, and of the rows so far how many are below an
        estimate, and below a promise, by the number of their stream.
    waiting, oldest_waiting
        Of each stream the rows that wait, and the first rowtime among them.
    held, oldest, size
        Of each window the rows that it holds, the first rowtime among them, and the bytes that are stored.
    groups
        How many groups are held in place of rows.
    said
        What each stream has said, as of :class:`windrow.streams.parts.Said`.
    """

    came: dict[int, int] = field(default_factory=dict)
    used: int = 0
    late: dict[int, int] = field(default_factory=dict)
    rejected: dict[int, int] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    oldest_waiting: dict[int, int | None] = field(default_factory=dict)
    held: dict[int, int] = field(default_factory=dict)
    oldest: dict[int, int | None] = field(default_factory=dict)
    size: dict[int, int] = field(default_factory=dict)
    groups: int = 0
    said: dict[int, tuple[int, int, bool]] = field(default_factory=dict)

    @staticmethod
    def read(note: str) -> Account | None:
        """The account in a note; None of one that has another."""
        told = json.loads(note)
        if told.pop("kind") != "account":
            return None
        return Account(**{name: _by_number(values) for name, values in told.items()})


@dataclass
class _Bucket:
    """What is known after a micro-batch.

    Attributes
    ----------
    token
        What tells it from what was known after any other.
    number
        Of the micro-batches that it has seen.
    said
        What the entries of each stream have said.
    frontier
        Changes before it have been given.
    holdings
        What each window holds.
    sizes
        The bytes of each chunk of each window.
    late, rejected
        As of :class:`Account`.
    groups, carried
        What goes on with groups in place of rows; and of what is stored of it the number, the instant up to
        which it holds rows, and how many groups it is.
    """

    token: str
    number: int
    said: dict[int, Said]
    frontier: int | None
    holdings: list[Holding]
    sizes: list[dict[int, int]]
    late: dict[int, int]
    rejected: dict[int, int]
    groups: Operated | None
    carried: tuple[int, int, int] | None = None

    @property
    def size(self) -> int:
        """The bytes of what is stored of windows."""
        return sum(sum(sizes.values()) for sizes in self.sizes)


_KNOWN: dict[str, _Bucket] = {}
"""The buckets that this process has seen last, by a name that each gets when it is made."""
_MOST = 1 << 28
"""So many bytes of them: another process may have them by now."""


def _remember(life: str, bucket: _Bucket) -> None:
    """Keep a bucket at hand, and of those before the last ones."""
    _KNOWN[life] = bucket
    size = sum(one.size for one in _KNOWN.values())
    for other in list(_KNOWN):
        if size <= _MOST or other == life:
            break
        size -= _KNOWN.pop(other).size


def advanced(task: Task, store: Store, packets: Iterable[Packet]) -> Iterator[Packet]:
    """What a bucket gives for the packets of a micro-batch.

    First an account, then rows that are late, then what changes: rows with `ENTER` and `LEAVE`, of which
    those enter at `EARLIER` that were there before.

    Raises
    ------
    InputError
        ``CHECKPOINT_OF_ANOTHER_QUERY``.
    """
    life, bucket = _read(task, store)
    _KNOWN.pop(life, None)  # what it holds changes now: if this fails, it is read again
    notes, rows = list[dict[str, Any]](), list[tuple[dict[str, Any], bytes]]()
    for note, data in packets:
        told = json.loads(note)
        if data is None:
            notes.append(told)
        else:
            rows.append((told, data))
    number, account = bucket.number + 1, Account()
    before = _said_before(task, bucket, notes)
    came: list[list[pa.Table]] = [[] for _ in task.sides]
    late: list[Packet] = []
    for told, data in sorted(rows, key=lambda one: (one[0]["side"], one[0]["order"], one[0]["place"])):
        side = told["side"]
        stream = task.sides[side].stream
        admitted, below = _judged(task, side, from_bytes(data), before[stream, json.dumps(told["order"])])
        came[side].append(admitted)
        if task.sides[side].is_first:
            _count(bucket, account, stream, admitted, below)
            if below is not None:
                late.append((json.dumps({"kind": "late", "stream": stream}), to_bytes(below)))
    changed = _stepped(task, bucket, account, came, number)
    chunks = _kept(task, store, bucket, number)
    after = replace(bucket, token=uuid.uuid4().hex, number=number)
    store.keep(_text(task, life, after, chunks))
    _remember(life, after)
    _told_of(task, after, account)
    yield json.dumps({"kind": "account", **asdict(account)}), None
    yield from late
    for start in range(0, 0 if changed is None else changed.num_rows, _ROWS_AT_ONCE):
        assert changed is not None
        yield json.dumps({"kind": "rows"}), to_bytes(changed.slice(start, _ROWS_AT_ONCE))


# -- a micro-batch -----------------------------------------------------------------------------------------


def _said_before(task: Task, bucket: _Bucket, notes: list[dict[str, Any]]) -> dict[tuple[int, str], Said]:
    """What was said before each part; the bucket takes in what all of them say."""
    before = {}
    for place in range(len(task.streams)):
        said = bucket.said.get(place, Said())
        for told in sorted((one for one in notes if one["stream"] == place), key=lambda one: one["order"]):
            before[place, json.dumps(told["order"])] = said
            said = said.then(Part(told["seen"], told["promised"], told["highest"]))
        bucket.said[place] = said
    return before


def _judged(task: Task, side: int, rows: pa.Table, before: Said) -> tuple[pa.Table, pa.Table | None]:
    """The rows of a window that are admitted, as it keeps them; and those that are late, if any are."""
    told, block = task.sides[side], task.block.inputs[side]
    stream = task.streams[told.stream]
    at = rows.column(stream.rowtime).to_numpy()
    seen = rows.column(SEEN).to_numpy()
    has_bounds = PROMISED in rows.column_names
    promised = rows.column(PROMISED).to_numpy() if has_bounds else np.full(len(seen), NO_BOUND)
    decision, violated = judged(stream.ordering, before, at, seen, promised)
    is_late = decision != Decision.ADMITTED
    late = None
    if is_late.any() and told.is_first:
        chosen = rows.filter(pa.array(is_late))
        late = chosen.select(list(stream.columns.values()))
        late = late.append_column(LATE_AT, chosen.column(stream.rowtime))
        late = late.append_column(VIOLATED, pa.array(violated[is_late]))
        late = late.append_column(REASON, reasons(decision[is_late], violated[is_late]))
    admitted = rows.filter(pa.array(~is_late)) if is_late.any() else rows
    ticks = admitted.column(stream.rowtime)
    if stream.ticks > 1:
        if (np.abs(ticks.to_numpy()) > 2**62 // stream.ticks).any():
            raise InputError(
                "a rowtime is too large for the clock of the query", condition="ROWTIME_OVERFLOW"
            )
        ticks = pc.multiply_checked(ticks, stream.ticks)
    columns = [admitted.column(told.columns[name]) for name in block.schema.names[:-1]]
    return pa.table([*columns, ticks], names=block.schema.names).cast(block.schema), late


def _count(bucket: _Bucket, account: Account, stream: int, admitted: pa.Table, late: pa.Table | None) -> None:
    refused = 0 if late is None else late.num_rows
    account.came[stream] = account.came.get(stream, 0) + admitted.num_rows + refused
    if late is None:
        return
    rejected = int(pc.sum(pc.equal(late.column(REASON), "bound")).as_py())
    bucket.rejected[stream] = bucket.rejected.get(stream, 0) + rejected
    bucket.late[stream] = bucket.late.get(stream, 0) + refused - rejected


def _stepped(
    task: Task, bucket: _Bucket, account: Account, came: list[list[pa.Table]], number: int
) -> pa.Table | None:
    """What changes in a step; the bucket holds what it holds after it."""
    inputs, until = task.block.inputs, _frontier(task, bucket.said)
    if task.passes_on:
        return _passed(task, bucket, account, came[0], number, until)
    for at, tables in enumerate(came):
        for table in tables:
            bucket.holdings[at] = bucket.holdings[at].with_arrivals(table, number * PER_STEP)
    if until is None or (bucket.frontier is not None and until <= bucket.frontier):
        return None
    waited = _waiting(task, bucket)
    times = Times(bucket.frontier, until)
    taken = [one.taken(side, times) for one, side in zip(bucket.holdings, inputs, strict=True)]
    rows = task.block.rows([one.held for one in taken], times, bucket.groups)
    bucket.holdings = [one.after(side, times) for one, side in zip(taken, inputs, strict=True)]
    bucket.frontier = until
    account.used = waited - _waiting(task, bucket)
    if times.since is None or not rows.num_rows:
        return rows
    place, enter = rows.column_names.index(ENTER), rows.column(ENTER).to_numpy()
    return rows.set_column(place, ENTER, pa.array(np.where(enter < times.since, EARLIER, enter)))


def _passed(
    task: Task,
    bucket: _Bucket,
    account: Account,
    came: list[pa.Table],
    number: int,
    until: int | None,
) -> pa.Table | None:
    """The rows that are given as they are: also those at the frontier, at which more may come."""
    (side,) = task.block.inputs
    (holding,) = bucket.holdings
    rows = pa.concat_tables([side.schema.empty_table(), *came])
    if until is None:
        bucket.holdings = [holding.with_arrivals(rows, number * PER_STEP)]
        return None
    waited, chunk = holding.waiting.num_rows + rows.num_rows, number * PER_STEP
    left, given = holding.passing(side, rows, chunk, until if until == FOREVER else until + 1)
    bucket.holdings, bucket.frontier = [left], until
    account.used = waited - left.waiting.num_rows
    if side.passes is not None:
        given = given.filter(given.column(side.passes))
    at = given.column(side.window.rowtime)
    leave = pa.array(np.full(given.num_rows, NEVER))
    return given.append_column(ENTER, at).append_column(LEAVE, leave)


def _frontier(task: Task, said: Mapping[int, Said]) -> int | None:
    """The instant before which nothing more will come, in ticks of the query's clock."""
    reached = []
    for place, stream in enumerate(task.streams):
        clock = said[place].clock(stream.ordering)
        if clock is None:
            return None
        reached.append(FOREVER if clock == FOREVER else clock * stream.ticks)
    return min(reached)


def _waiting(task: Task, bucket: _Bucket) -> int:
    """How many rows wait, each once."""
    pairs = zip(task.sides, bucket.holdings, strict=True)
    return sum(holding.waiting.num_rows for side, holding in pairs if side.is_first)


def _told_of(task: Task, bucket: _Bucket, account: Account) -> None:
    account.late, account.rejected, account.said = bucket.late, bucket.rejected, _shown(bucket.said)
    account.groups = 0 if bucket.groups is None else bucket.groups.held
    sides = zip(task.sides, task.block.inputs, bucket.holdings, strict=True)
    for at, (side, block, holding) in enumerate(sides):
        rowtime = block.window.rowtime
        held = holding.held
        account.held[at] = int(held.alive.sum())
        account.oldest[at] = pc.min(held.rows.column(rowtime).filter(pa.array(held.alive))).as_py()
        account.size[at] = sum(bucket.sizes[at].values())
        if side.is_first:
            account.waiting[side.stream] = holding.waiting.num_rows
            account.oldest_waiting[side.stream] = pc.min(holding.waiting.column(rowtime)).as_py()


# -- what is stored ----------------------------------------------------------------------------------------


def _read(task: Task, store: Store) -> tuple[str, _Bucket]:
    """What is stored, or a bucket that holds nothing; with its name."""
    text = store.text()
    if text is None:
        holdings = [Holding.nothing(side) for side in task.block.inputs]
        said = {place: Said() for place in range(len(task.streams))}
        sizes: list[dict[int, int]] = [{} for _ in task.sides]
        return uuid.uuid4().hex, _Bucket("", 0, said, None, holdings, sizes, {}, {}, task.block.going_on())
    told = json.loads(text)
    _refuse_another(task, told)
    known = _KNOWN.get(told["life"])
    if known is not None and known.token == told["token"]:
        return told["life"], known
    sizes, holdings, frontier = [], [], told["frontier"]
    # of rows that are given as they are, those at the frontier have been, too
    reached = frontier + 1 if task.passes_on and frontier not in (None, FOREVER) else frontier
    for side, chunks in zip(task.block.inputs, told["chunks"], strict=True):
        data = {int(chunk): store.read(side.name, int(chunk)) for chunk in chunks}
        sizes.append({chunk: len(one) for chunk, one in data.items()})
        rows = {int(chunk): count for chunk, count in chunks.items()}
        holdings.append(Holding.read(side, rows, map(from_bytes, data.values()), reached))
    counts = [{int(at): count for at, count in told[name].items()} for name in ("late", "rejected")]
    said = {int(place): Said(*one) for place, one in told["said"].items()}
    groups, carried = task.block.going_on(), None
    if groups is not None and frontier is not None:
        since = None
        if told["carried"] is not None:
            number, since, count = told["carried"]
            carried = number, since, count
            groups.restore(from_stored(from_bytes(store.read(_CARRY, number))))
        if since is None or since < frontier:
            task.block.rows([one.held for one in holdings], Times(since, frontier), groups)
    late, rejected = counts
    bucket = _Bucket(
        told["token"], told["number"], said, frontier, holdings, sizes, late, rejected, groups, carried
    )
    return told["life"], bucket


def _refuse_another(task: Task, told: Mapping[str, Any]) -> None:
    if told["query"] != task.query:
        raise InputError(
            "the checkpoint is of another query",
            condition="CHECKPOINT_OF_ANOTHER_QUERY",
            hint="start a changed query with a checkpoint of its own",
        )
    if told["buckets"] != len(task.buckets):
        raise InputError(
            f"the checkpoint is of {told['buckets']} buckets, and the query has {len(task.buckets)}",
            condition="CHECKPOINT_OF_OTHER_BUCKETS",
            hint=f"SET spark.windrow.live.buckets = {told['buckets']}, or begin anew with another checkpoint",
        )


def _kept(task: Task, store: Store, bucket: _Bucket, number: int) -> list[dict[str, int]]:
    """Store what is new after a step, and drop what has gone; the chunks of each window."""
    if bucket.groups is not None and bucket.frontier is not None:
        _carry(store, bucket, number)
    listed = []
    for at, side in enumerate(task.block.inputs):
        holding, new = bucket.holdings[at].merged(number)
        bucket.holdings[at], sizes = holding, bucket.sizes[at]
        for chunk, rows in new.items():
            data = to_bytes(rows)
            store.write(side.name, chunk, data)
            sizes[chunk] = len(data)
        for chunk in sizes.keys() - holding.chunks.keys():
            store.drop(side.name, chunk)
            del sizes[chunk]
        listed.append({str(chunk): rows for chunk, rows in holding.chunks.items()})
    return listed


def _carry(store: Store, bucket: _Bucket, number: int) -> None:
    """Store what groups hold in place of the rows that they are made of, where these are more."""
    assert bucket.groups is not None
    assert bucket.frontier is not None
    (holding,) = bucket.holdings
    if len(holding.held) <= max(_FEWEST, 0 if bucket.carried is None else bucket.carried[2]):
        return
    store.write(_CARRY, number, to_bytes(stored(bucket.groups.state)))
    if bucket.carried is not None:
        store.drop(_CARRY, bucket.carried[0])
    bucket.carried = number, bucket.frontier, bucket.groups.held
    bucket.holdings = [replace(holding, held=holding.held.where(np.zeros(len(holding.held), bool)))]


def _text(task: Task, life: str, bucket: _Bucket, chunks: list[dict[str, int]]) -> str:
    return json.dumps(
        {
            "query": task.query,
            "buckets": len(task.buckets),
            "life": life,
            "token": bucket.token,
            "number": bucket.number,
            "said": _shown(bucket.said),
            "frontier": bucket.frontier,
            "chunks": chunks,
            "late": bucket.late,
            "rejected": bucket.rejected,
            "carried": bucket.carried,
        }
    )


def _by_number(values: Any) -> Any:
    """Without JSON's texts for numbers."""
    return {int(at): value for at, value in values.items()} if isinstance(values, dict) else values


def _shown(said: Mapping[int, Said]) -> dict[int, tuple[int, int, bool]]:
    return {place: (one.seen, one.promised, one.started) for place, one in said.items()}

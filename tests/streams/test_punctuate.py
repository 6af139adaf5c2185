"""Producers that promise patterns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from windrow.errors import InputError, WindrowError
from windrow.punctuations import Pattern
from windrow.punctuations.schemes import EndOfEntity, GrowingKey, UniqueKey
from windrow.streams import Decision, EntryKind, NamedStream, Ordering, punctuation_json

COLUMNS = pa.schema(
    [("at", pa.int64()), ("auction", pa.int32()), ("item", pa.string()), ("tags", pa.list_(pa.string()))]
)


@pytest.fixture
def stream(tmp_path):
    return NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered())


def refused(condition):
    return pytest.raises(WindrowError, match=rf"\[{condition}\]")


def row(auction, item=None, at=5):
    return {"at": at, "auction": auction, "item": item}


@pytest.mark.parametrize(
    ("told", "rejected", "admitted"),
    [
        ({"auction": 42}, [row(42)], [row(41), row(None)]),
        ({"AUCTION": [42, None]}, [row(42), row(None)], [row(0)]),
        ({"item": None}, [row(1)], [row(1, "x")]),
        ({"auction": {">=": 10, "<": 20}}, [row(10), row(19)], [row(9), row(20), row(None)]),
        ({"auction": 1, "item": "pen"}, [row(1, "pen")], [row(1, "ink"), row(2, "pen"), row(1)]),
        ({"item": {">": "a"}}, [row(1, "a\0"), row(1, "ä")], [row(1, "a"), row(1, ""), row(1)]),
        ({"at": 5}, [row(1)], [row(1, at=4)]),
    ],
)
def test_rows_that_match_are_rejected_by_the_producer_and_by_readers(stream, told, rejected, admitted):
    with stream.producer("p") as p, stream.producer("q") as q:
        p.insert(rejected)
        number = p.punctuate(told)
        receipt = p.insert([*rejected, *admitted])
        assert (receipt.rejected, receipt.admitted) == (len(rejected), len(admitted))
        assert q.insert(rejected).admitted == len(rejected)
    assert stream.log.read(number).column("__kind").to_pylist() == [EntryKind.PATTERN]
    batch, position = stream.read(stream.start)
    late = [(one["auction"], one["item"], one["__producer"]) for one in batch.late.to_pylist()]
    assert late == [(one["auction"], one["item"], "p") for one in rejected]
    assert position.watermark.rejected == len(rejected)
    assert dict(position.watermark.patterns) == {}, "both have closed"


def test_a_producer_that_comes_back_is_held_to_what_it_promised(stream):
    p = stream.producer("p")
    p.punctuate(auction=1)
    p.idle()
    assert p.insert(row(1)).rejected == 1
    p._leave(EntryKind.IDLE)
    again = stream.producer("p", late="error")
    with refused("LATE_ROWS"):
        again.insert(row(1))
    assert again.insert(row(2)).admitted == 1
    again.close()
    with stream.producer("p") as anew:
        assert anew.insert(row(1)).rejected == 1, "while it was the only one, the stream promised it too"


def test_the_stream_promises_what_all_open_producers_have(stream):
    p, q = stream.producer("p"), stream.producer("q")
    p.punctuate(auction=1)
    assert stream.position().watermark.shared == ()
    q.punctuate(auction={"<": 3})
    assert stream.position().watermark.shared == ('{"auction": [1]}',)
    with stream.producer("r") as r:
        assert (r.insert(row(1)).rejected, r.insert(row(2)).admitted) == (1, 1)
        q.close()
        assert stream.position().watermark.shared == ('{"auction": [1]}',), "r has not promised more"
        r.finish()
        assert stream.position().watermark.shared == ('{"auction": [1]}',), "p has not"
    p.close()


def test_all_rowtimes_before_an_instant_are_a_bound(stream):
    with stream.producer("p") as p:
        p.insert(row(1))
        number = p.punctuate(at={"<=": 9})
        entry = stream.log.read(number)
        assert (entry.column("__kind")[0].as_py(), entry.column("__at")[0].as_py()) == (EntryKind.BOUND, 10)
        assert stream.position().watermark.value == 10
        p.punctuate(at={"<": 20}, auction=1)
        assert stream.position().watermark.value == 10, "of one auction alone"


def test_rows_outside_of_the_domain_are_never_in(tmp_path):
    domain = Pattern.outside(COLUMNS, [("auction", ">=", 0)])
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at", domain=domain)
    assert NamedStream.open(tmp_path / "s").definition == stream.definition
    with stream.producer("p") as p, stream.producer("q") as q:
        assert p.insert([row(0), row(-1), row(None)]).rejected == 2
        assert q.insert([row(-1), row(3)]).rejected == 1
    batch, position = stream.read(stream.start)
    assert sorted(batch.rows.column("auction").to_pylist()) == [0, 3]
    assert stream.position() == position


def test_what_is_declared_makes_promises_of_the_rows_that_are_in(tmp_path):
    schemes = [
        UniqueKey(("item",)),
        GrowingKey("at"),
        EndOfEntity(Pattern.where(COLUMNS, [("item", "=", "end")]), ("auction",)),
    ]
    stream = NamedStream.create(tmp_path / "s", COLUMNS, "at", ordering=Ordering.unordered(), schemes=schemes)
    assert NamedStream.open(tmp_path / "s").definition == stream.definition
    with stream.producer("p") as p, stream.producer("q") as q:
        assert p.insert([row(1, "pen"), row(2)]).admitted == 2
        assert p.insert([row(1, "pen"), row(1, "ink"), row(2, at=4)]).rejected == 2, "pen again; before 5"
        assert p.insert(row(1, "end", 6)).admitted == 1
        receipt = p.insert([row(1, "cup", 7), row(2, "end", 7), row(None, "hat", 7)])
        assert (receipt.rejected, receipt.admitted) == (2, 1), "1 has ended; end comes once"
        assert q.insert(row(1, "pen")).admitted == 1, "each for itself"
    batch, position = stream.read(stream.start)
    assert position.watermark.rejected == batch.late.num_rows == 4


def test_rows_and_patterns_of_one_reading_are_judged_in_their_order(stream):
    with stream.producer("p") as p:
        for auction in (1, 2, 1):
            p.insert([row(auction), row(3)])
            p.punctuate(auction=auction)
    batch, position = stream.read(stream.start)
    is_row = batch.entries.column("__kind").to_numpy() == EntryKind.ROW
    assert batch.decision[is_row].tolist() == [0, 0, 0, 0, Decision.REJECTED, 0]
    assert stream.position() == position


def test_keys_that_follow_each_other_are_kept_as_one_range(stream):
    p = stream.producer("p")
    for auction in (3, 1, 2):
        p.punctuate(auction=auction)
    assert stream.position().watermark.patterns == {"p": ('{"auction": [{"in": {">=": 1, "<": 4}}]}',)}
    p.close()


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("UNKNOWN_COLUMN", {"auctoin": 1}),
        ("DUPLICATE_COLUMN", {"auction": 1, "Auction": 2}),
        ("INVALID_VALUE", {"auction": 1.5}),
        ("INVALID_VALUE", {"auction": [1, "x"]}),
        ("INVALID_VALUE", {"auction": {"<": 2**40}}),
        ("INVALID_ARGUMENT", {"auction": {"!=": 1}}),
        ("INVALID_ARGUMENT", {"auction": {}}),
        ("INVALID_ARGUMENT", {}),
        ("UNSUPPORTED_TYPE", {"tags": None}),
    ],
)
def test_what_is_no_pattern_is_refused(stream, condition, told):
    with stream.producer("p") as p:
        before = stream.log.last()
        with refused(condition):
            p.punctuate(told)
        assert stream.log.last() == before


def test_a_punctuation_in_a_column_that_names_no_column_says_which():
    with pytest.raises(InputError, match="no column jbo") as caught:
        punctuation_json.pattern_of('{"jbo": ["j1"]}', pa.schema([("job", pa.string())]))
    assert caught.value.hint == "did you mean job?"

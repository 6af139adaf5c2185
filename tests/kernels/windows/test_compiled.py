"""The compiled search = the predicate tried pair by pair with numpy; and the cache of what was compiled."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.kernels.in_memory import Table
from tests.kernels.windows.test_window_by_property import clauses, tables, windows_agree
from windrow.errors import ExecutionError, Span
from windrow.kernels import strategies
from windrow.kernels.compiling import compiled
from windrow.kernels.pairs import Array, PairRows, Sides, satisfied
from windrow.kernels.window_plan import (
    ColumnRef,
    ConstantRef,
    Number,
    Operation,
    PairExpression,
    PositionRef,
    SameRow,
    Search,
)

TARGET = "end"
SIDES = ("label", "start", "end")
INTEGERS = ("int8", "int16", "int32", "int64")
FLOATS = ("float32", "float64")
COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")

ARROW = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "date": pa.date32(),
    "time": pa.timestamp("us"),
    "interval": pa.duration("us"),
    "string": pa.string(),
    "void": pa.null(),
}
TEXTS = ["", "a", "b", "ä", "aa"]


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WINDROW_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


# -- random rows ---------------------------------------------------------------------------------


def values(random: np.random.Generator, kind: str, count: int) -> list[Any]:
    if kind == "void":
        return [None] * count
    if kind == "string":
        return random.choice(TEXTS, count).tolist()
    if kind == "bool":
        return (random.random(count) < 0.5).tolist()
    if kind in FLOATS:
        special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, 1e30, -1e30, 2.0**53]
        return np.where(
            random.random(count) < 0.4, random.choice(special, count), random.integers(-3, 4, count)
        ).tolist()
    limits = np.iinfo(kind if kind in INTEGERS else "int32")
    special = [limits.min, limits.min + 1, -1, limits.max, limits.max // 2, 1 << limits.bits // 2]
    rare = random.random(count) < random.choice([0, 0.05, 0.5])
    return np.where(rare, random.choice(special, count), random.integers(-3, 4, count)).tolist()


def column(random: np.random.Generator, kind: str, count: int, nullable: bool) -> pa.Array:
    drawn = values(random, kind, count)
    if nullable:
        drawn = [None, *(None if random.random() < 0.3 else value for value in drawn[1:])]
    kept = pa.array(drawn, pa.int32() if kind == "date" else None if kind == "void" else storage(kind))
    return kept.view(ARROW[kind]) if kind in ("date", "time", "interval") else kept


def storage(kind: str) -> pa.DataType:
    return pa.int64() if kind in ("time", "interval") else ARROW[kind]


def data(
    seed: int, expression: PairExpression, ansi: bool
) -> tuple[PairRows, dict[str, Array], Array, Array]:
    """Rows of a few partitions, sides of which some are missing, and stretches to search."""
    random = np.random.default_rng(seed)
    count = int(random.integers(1, 30))
    bounds = np.unique(np.concatenate([[0, count], random.integers(0, count + 1, 2)]))
    table = {kind: column(random, kind, count, False) for kind in ARROW}
    table |= {f"{kind}_null": column(random, kind, count, True) for kind in ARROW}
    constants = {kind: column(random, kind, 1, False) for kind in ARROW}
    constants |= {f"{kind}_null": pa.array([None], ARROW[kind]) for kind in ARROW}
    rows = PairRows(pa.table(table), bounds, pa.table(constants), (expression,), ansi)
    windows = int(random.integers(1, 12))
    label = random.integers(0, count, windows)
    low = random.integers(rows.first[label], rows.stop[label] + 1)
    stop = random.integers(low, rows.stop[label] + 1)
    start = np.where(random.random(windows) < 0.3, -1, random.integers(rows.first[label], rows.stop[label]))
    return rows, {"label": label, "start": start}, low, stop


# -- random predicates ---------------------------------------------------------------------------


def leaves(kind: str, rank: int | None = None) -> st.SearchStrategy[PairExpression]:
    names = st.sampled_from([kind, f"{kind}_null"])
    missing = st.none() | names
    return st.builds(
        ColumnRef,
        names,
        st.sampled_from(SIDES),
        st.sampled_from([0, 0, 0, -1, 1]),
        missing,
        st.just(rank),
    ) | st.builds(ConstantRef, names, st.just(rank))


def numbers(depth: int, kinds: tuple[str, ...]) -> st.SearchStrategy[PairExpression]:
    """Of any of these dtypes."""
    integers: st.SearchStrategy[PairExpression] = st.builds(
        Number, st.integers(-2, 3) | st.sampled_from([2**31, -(2**63), 2**63 - 1])
    ) | st.builds(PositionRef, st.sampled_from(SIDES))
    simple = st.one_of(*map(leaves, kinds), integers, leaves("void"))
    if not depth:
        return simple
    return simple | st.sampled_from(kinds).flatmap(lambda kind: computed(depth - 1, kind))


def computed(depth: int, kind: str) -> st.SearchStrategy[PairExpression]:
    operand = numbers(depth, INTEGERS if kind in INTEGERS else INTEGERS + FLOATS)
    binary = st.sampled_from(["+", "-", "*", "%"] + ["/"] * (kind in FLOATS))
    return st.one_of(
        st.builds(lambda sign, a, b: Operation(sign, (a, b), kind), binary, operand, operand),
        st.builds(lambda sign, a: Operation(sign, (a,), kind), st.sampled_from(["NEG", "ABS"]), operand),
        st.builds(
            lambda function, o: Operation(function, tuple(o), kind),
            st.sampled_from(["COALESCE", "GREATEST", "LEAST"]),
            st.lists(operand, min_size=1, max_size=3),
        ),
        st.builds(
            lambda tests, o: Operation(
                "CASE", (*(x for pair in zip(tests, o, strict=True) for x in pair), o[0]), kind
            ),
            st.lists(conditions(0), min_size=2, max_size=2),
            st.lists(operand | st.just(Operation("NULL", (), kind)), min_size=2, max_size=2),
        ),
        st.builds(lambda a: Operation("CAST", (a,), kind), operand),
    )


def comparable(depth: int) -> st.SearchStrategy[list[PairExpression]]:
    """Three values that can be compared."""
    one = st.one_of(numbers(depth, INTEGERS + FLOATS), leaves("bool"))
    texts = st.one_of(leaves("string", 0), leaves("void", 0))
    times = st.sampled_from(["date", "time", "interval"]).flatmap(leaves)
    return st.one_of(
        st.lists(one, min_size=3, max_size=3),
        st.lists(one, min_size=3, max_size=3),
        st.lists(texts, min_size=3, max_size=3),
        st.lists(times, min_size=3, max_size=3),
    )


def conditions(depth: int) -> st.SearchStrategy[PairExpression]:
    places = st.tuples(st.sampled_from(SIDES), st.integers(-1, 1))
    three = comparable(min(depth, 2))
    simple = st.one_of(
        st.builds(lambda sign, o: Operation(sign, tuple(o[:2])), st.sampled_from(COMPARISONS), three),
        st.builds(lambda sign, o: Operation(sign, tuple(o[:2])), st.sampled_from(COMPARISONS), three),
        st.builds(lambda o: Operation("BETWEEN", tuple(o)), three),
        st.builds(lambda o, n: Operation("IN", tuple(o[:n])), three, st.integers(1, 3)),
        st.builds(lambda o: Operation("ISNULL", (o[0],)), three),
        st.builds(SameRow, places, places, st.booleans()),
        leaves("bool"),
        # a number counts as TRUE where it is not zero
        numbers(0, INTEGERS + FLOATS),
    )
    if not depth:
        return simple
    inner = conditions(depth - 1)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        simple,
        st.builds(lambda o: Operation("AND", o), some),
        st.builds(lambda o: Operation("OR", o), some),
        st.builds(lambda o: Operation("NOT", (o,)), inner),
        st.builds(lambda o: Operation("COALESCE", o), some),
        st.builds(lambda sign, a, b: Operation(sign, (a, b)), st.sampled_from(COMPARISONS), inner, inner),
    )


# -- compiled = numpy ----------------------------------------------------------------------------


def outcome(predicate: PairExpression, rows: PairRows, sides: Sides, low: Array, stop: Array) -> Any:
    """What a search pair by pair gives: the rows found, or the error of the first window that fails."""
    counts = stop - low
    owner = np.repeat(np.arange(len(low)), counts)
    row = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts - low, counts)
    pairs = {side: index[owner] for side, index in sides.items()} | {TARGET: row}
    try:
        true = satisfied(predicate, rows, pairs)
    except ExecutionError:
        true = None  # the pair that fails may be one that is not reached
    found = [-1] * len(low)
    for pair, (k, j) in enumerate(zip(owner.tolist(), row.tolist(), strict=True)):
        if found[k] >= 0:
            continue
        try:
            one = {side: index[pair : pair + 1] for side, index in pairs.items()}
            if satisfied(predicate, rows, one)[0] if true is None else true[pair]:
                found[k] = j
        except ExecutionError as error:
            return said(error)
    return found


def by_compiled(predicate: PairExpression, rows: PairRows, sides: Sides, low: Array, stop: Array) -> Any:
    try:
        found = compiled.search(predicate, rows, sides, TARGET, low, stop)
    except ExecutionError as error:
        return said(error)
    return None if found is None else found.tolist()


def said(error: ExecutionError) -> tuple[Any, ...]:
    return error.condition, error.sqlstate, error.message, error.hint


def agrees(predicate: PairExpression, seed: int, ansi: bool) -> Any:
    rows, sides, low, stop = data(seed, predicate, ansi)
    with np.errstate(all="ignore"):
        expected = outcome(predicate, rows, sides, low, stop)
        assert by_compiled(predicate, rows, sides, low, stop) == expected
    return expected


def field(name: str, side: str = "end", shift: int = 0, missing: str | None = None) -> ColumnRef:
    return ColumnRef(name, side, shift, missing)


def op(operator: str, *operands: PairExpression, dtype: str = "bool") -> Operation:
    return Operation(operator, operands, dtype)


LOGIC = op(
    "OR",
    op(
        "AND",
        op("NOT", field("bool_null")),
        op("<", field("float64_null", "start"), field("float64", shift=1)),
        op("IN", field("int8_null"), field("float32"), ConstantRef("void"), Number(1)),
        op("COALESCE", field("bool_null", "label", -1, "bool"), field("bool_null"), field("bool")),
    ),
    op("AND", SameRow(("end", -1), ("start", 0)), op("ISNULL", field("date_null", "end", 1))),
    op(
        "BETWEEN", field("int16_null", "end", -1, "int16"), ConstantRef("int64_null"), field("int32", "label")
    ),
    op(
        "AND",
        op("<=>", field("float32_null"), field("float64_null", "start")),
        op(">=", PositionRef("end"), PositionRef("start")),
        op("<>", ColumnRef("string", "end", rank=0), ColumnRef("string_null", "label", rank=0)),
        SameRow(("start", 1), ("end", 1), null_safe=True),
    ),
)
SUMS = op(
    "OR",
    op(
        ">",
        op(
            "*",
            op("-", field("int64"), field("int64_null", "start"), dtype="int64"),
            Number(2),
            dtype="int64",
        ),
        op("+", field("int8"), op("ABS", field("int8_null", "label"), dtype="int8"), dtype="int8"),
    ),
    op(
        "=", op("NEG", field("int32_null", "end", 1), dtype="int32"), op("NEG", field("int64"), dtype="int64")
    ),
)
QUOTIENTS = op(
    "OR",
    op(
        ">",
        op("/", field("float64_null"), field("int16_null", "label"), dtype="float64"),
        op("%", field("int64"), field("int64_null", "end", -1), dtype="int64"),
    ),
    op(
        "<=",
        op("%", field("float32"), field("float32_null"), dtype="float32"),
        op("*", field("float32_null"), field("int64"), dtype="float32"),
    ),
)


@pytest.mark.parametrize(
    ("predicate", "ansi", "errors"),
    [
        (LOGIC, True, set()),
        (SUMS, True, {"ARITHMETIC_OVERFLOW"}),
        (SUMS, False, set()),
        (QUOTIENTS, True, {"DIVIDE_BY_ZERO", "REMAINDER_BY_ZERO"}),
        (QUOTIENTS, False, set()),
    ],
    ids=["logic", "sums", "sums without ANSI", "quotients", "quotients without ANSI"],
)
def test_compiled_equals_numpy(predicate, ansi, errors):
    seen = [agrees(predicate, seed, ansi) for seed in range(25)]
    assert {rows[0] for rows in seen if isinstance(rows, tuple)} == errors
    found = {row for rows in seen if isinstance(rows, list) for row in rows}
    assert len(found) > 1


WIDE = settings(
    deadline=None,
    suppress_health_check=list(HealthCheck),
    print_blob=True,
)


@pytest.mark.slow
@settings(WIDE, max_examples=60)
@given(predicate=conditions(2), seed=st.integers(0, 1 << 32), ansi=st.booleans())
def test_compiled_equals_numpy_at_random(predicate: PairExpression, seed: int, ansi: bool) -> None:
    for number in range(12):  # compiling takes longest
        agrees(predicate, seed + number, ansi)


@pytest.mark.slow
@settings(WIDE, max_examples=60)
@given(clause=clauses(), table=tables())
def test_the_compiled_kernel_equals_the_reference(clause: str, table: Table) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 0)
        patch.setattr(compiled, "_ITERATIONS_BEFORE_CALLING", 0)
        windows_agree(clause, table)


@pytest.mark.parametrize(
    "predicate",
    [
        op("=", Number(1 << 63), Number(1)),
        op("/", Number(4), Number(2), dtype="int64"),
        op("=", op("+", field("float64"), Number(1), dtype="int32"), Number(1)),
        op("=", field("string"), field("string")),
        op("AND", *[op("<", field("int32"), Number(number)) for number in range(300)]),
    ],
    ids=["beyond 64 bits", "integer quotient", "float as integer", "object", "long"],
)
def test_what_has_no_compiled_form_is_left_to_numpy(predicate):
    rows, sides, low, stop = data(0, predicate, True)
    assert compiled.search(predicate, rows, sides, TARGET, low, stop) is None


# -- the cache -----------------------------------------------------------------------------------

CLIMB = op(">", field("v"), field("v", "start"))
PROCESS = """
import sys
import numpy as np, pyarrow as pa
from windrow.kernels import strategies
from windrow.kernels.compiling import compiled
from windrow.kernels.pairs import PairRows
from windrow.kernels.window_plan import ColumnRef, Operation, Search
assert "numba" not in sys.modules
compiled._ITERATIONS_BEFORE_COMPILING = 0
climb = Operation(">", (ColumnRef("v", "end"), ColumnRef("v", "start")))
rows = PairRows(pa.table({"v": [3, 1, 2, 4, 0]}), np.array([0, 5]), pa.table({}), (climb,))
every = np.arange(5)
print(strategies.find(Search("scan", climb), rows, {"start": every}, "end", every, np.full(5, 5)).tolist())
assert "numba" in sys.modules
"""
RIGHT = [3, 2, 3, -1, -1]


def climbing() -> tuple[PairRows, Sides, str, Array, Array]:
    rows = PairRows(pa.table({"v": [3, 1, 2, 4, 0]}), np.array([0, 5]), pa.table({}), (CLIMB,))
    every = np.arange(5)
    return rows, {"start": every}, TARGET, every, np.full(5, 5)


def answer() -> list[int]:
    """What a process that has compiled nothing yet finds."""
    compiled._loaded.cache_clear()
    found = compiled.search(CLIMB, *climbing())
    assert found is not None
    return found.tolist()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("WINDROW_CACHE_DIR", str(tmp_path))
    return tmp_path


def contents(cache: Path) -> dict[str, tuple[int, bytes]]:
    files = [path for path in cache.rglob("*") if path.is_file()]
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def kept(cache: Path, ending: str) -> Path:
    (found,) = cache.rglob(f"*{ending}")
    return found


@pytest.mark.slow
def test_processes_that_race_find_the_same_and_the_next_one_compiles_nothing(cache):
    command = [sys.executable, "-c", PROCESS]
    racing = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate()[0] for process in racing] == [f"{RIGHT}\n"] * 2
    before = contents(cache)
    assert {Path(name).suffix for name in before} == {".py", ".nbi", ".nbc"}
    assert answer() == RIGHT
    assert contents(cache) == before


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        directory = tmp_path_factory.mktemp("filled")
        patch.setenv("WINDROW_CACHE_DIR", str(directory))
        assert answer() == RIGHT
    return directory


@pytest.mark.parametrize(
    ("ending", "damage"),
    [(".py", b""), (".py", b"def search(*_): return -1, -1\n"), (".nbi", b""), (".nbc", b"")],
    ids=["torn source", "foreign source", "torn index", "torn code"],
)
def test_a_damaged_cache_is_mended(cache, filled, ending, damage):
    shutil.copytree(filled, cache, dirs_exist_ok=True)
    whole = kept(cache, ".py").read_bytes()
    kept(cache, ending).write_bytes(damage)
    assert [answer(), answer()] == [RIGHT, RIGHT]
    assert kept(cache, ".py").read_bytes() == whole
    before = contents(cache)
    assert len(before) == 3
    assert answer() == RIGHT
    assert contents(cache) == before


@pytest.mark.parametrize("variable", ["WINDROW_CACHE_DIR", "XDG_CACHE_HOME"])
def test_a_cache_that_cannot_be_written_does_no_harm(tmp_path, monkeypatch, variable):
    (tmp_path / "file").touch()
    monkeypatch.delenv("WINDROW_CACHE_DIR")
    monkeypatch.setenv(variable, str(tmp_path / "file"))
    assert answer() == RIGHT


def test_the_cache_is_among_the_users_caches(tmp_path, monkeypatch):
    monkeypatch.delenv("WINDROW_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert answer() == RIGHT
    assert kept(tmp_path, ".py").is_relative_to(tmp_path / "windrow" / "kernels")


def test_without_numba_there_is_numpy(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", None)
    assert compiled.search(CLIMB, *climbing()) is None


def test_what_numba_would_interpret_is_left_to_numpy(monkeypatch):
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert compiled.search(CLIMB, *climbing()) is None


# -- handing over --------------------------------------------------------------------------------


class Calls:
    """Stands in for the compiled search."""

    def __init__(self, found: int | None) -> None:
        self.found = found
        self.low: list[Array] = []

    def __call__(self, *arguments: Any) -> Array | None:
        low = arguments[4]
        self.low.append(low)
        return None if self.found is None else np.full(len(low), self.found)


def scan(values: list[int]) -> list[int]:
    """For each row the next that is greater."""
    count = len(values)
    rows = PairRows(pa.table({"v": values}), np.array([0, count]), pa.table({}), (CLIMB,))
    every = np.arange(count)
    found = strategies.find(
        Search("scan", CLIMB), rows, {"start": every}, TARGET, every, np.full(count, count)
    )
    return found.tolist()


@pytest.fixture
def calls(monkeypatch):
    counted = Calls(None)
    monkeypatch.setattr(compiled, "search", counted)
    monkeypatch.setattr(compiled, "_ready", set())
    monkeypatch.setattr(compiled, "_counted", {})
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 1000)
    return counted


FALLING = list(range(100, 0, -1))  # 5050 pairs


def test_small_work_is_not_handed_over(calls):
    assert scan(FALLING[:30]) == [-1] * 30
    assert calls.low == []


def test_nor_is_work_of_which_little_is_left(calls, monkeypatch):
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 500)
    assert scan(FALLING[:40]) == [-1] * 40
    assert calls.low == []


def test_small_work_adds_up(calls, monkeypatch):
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_CALLING", 100)
    handed_over = []
    for _ in range(4):
        scan(FALLING[:30])
        handed_over.append(len(calls.low))
    assert handed_over[0] == 0
    assert handed_over[-1] > 0


def test_big_work_is_handed_over_from_where_it_stands(calls):
    calls.found = 99
    found = scan([0, 1, *FALLING])
    assert len(calls.low) == 1
    assert calls.low[0][0] > 2
    assert found[:2] == [1, 2]
    assert set(found[2:40]) == {99}


def test_what_is_not_compiled_stays_with_numpy(calls):
    assert scan(FALLING) == [-1] * 100
    assert len(calls.low) == 1


def test_what_was_compiled_once_is_handed_over_sooner(calls, monkeypatch):
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_CALLING", 100)
    monkeypatch.setattr(compiled, "_ready", {CLIMB})
    assert scan(FALLING[:40]) == [-1] * 40
    assert len(calls.low) == 1


def test_handing_over_changes_no_answer(monkeypatch):
    values = np.random.default_rng(1).integers(0, 1000, 500).tolist()
    monkeypatch.setattr(compiled, "_ready", set())
    monkeypatch.setattr(compiled, "_counted", {})
    by_numpy = scan(values)
    assert CLIMB not in compiled._ready
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 600)
    assert scan(values) == by_numpy
    assert CLIMB in compiled._ready


def test_an_error_bears_its_place(monkeypatch):
    predicate = op(">", op("/", Number(1), field("v"), dtype="float64"), Number(1))
    rows = PairRows(pa.table({"v": [2, 3, 0, 1]}), np.array([0, 4]), pa.table({}), (predicate,))
    every, stop = np.arange(1), np.full(1, 4)
    monkeypatch.setattr(compiled, "_ITERATIONS_BEFORE_COMPILING", 0)
    with pytest.raises(ExecutionError) as raised:
        strategies.find(Search("scan", predicate, place=(7, 9)), rows, {"start": every}, TARGET, every, stop)
    assert raised.value.condition == "DIVIDE_BY_ZERO"
    assert raised.value.span == Span(7, 9)

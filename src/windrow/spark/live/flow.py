"""Plans whose operators are run in memory, a step at a time: of a plan a program is made.

A plan is made once, over *leaves*: DataFrames of which the rows are those of a file, which steps write where
Spark is to read them. The operators of relations that vary (:func:`windrow.spark.keyed.run_keyed`) do not
exchange rows among tasks then: each keeps its own (:class:`windrow.kernels.stages.Operated`), and what it
gives is a leaf again. What is between leaf and operator is read from Spark's plans, and computed in memory
(:class:`windrow.kernels.stages.Program`); Spark computes the rest, on the driver.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructType

from windrow.errors import ExecutionError, WindrowError
from windrow.kernels.computed.steps import Computed
from windrow.kernels.stages import Ending, Fragment, Node, Program, Run, Times, UnmatchedError
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.kernels.zset.stage import Keyed
from windrow.plan.columns import Completeness
from windrow.spark.exchange import in_worker
from windrow.spark.gateway import Gateway
from windrow.spark.interpreter import map_in_arrow
from windrow.spark.keyed_rows import explain_cost
from windrow.spark.live.computed import computed, is_leaf
from windrow.spark.live.incremental import in_memory, not_in_memory
from windrow.spark.live.lookups import SmallTable, small_table
from windrow.spark.plan_text import is_cut, optimized, plain_choice
from windrow.spark.plan_tree import Node as PlanNode
from windrow.spark.plan_tree import optimized_tree

__all__ = ["Flow", "unstable"]

_LEAF = "rows_of_leaf"
_ROWS_PER_BATCH = 1 << 15


@dataclass
class Flow:
    """The plan of a query, and what its operators hold.

    Parameters
    ----------
    gateway
        What makes the plan. It is told to leave its operators to the flow.
    folder
        For the files of leaves, which the tasks read.

    Attributes
    ----------
    why_not
        What of the plan cannot be run so, once that is known; None while all can. Then the flow has no steps.
    """

    gateway: Gateway
    folder: Path
    why_not: str | None = None
    _beginning: tuple[int, DataFrame] | None = None
    _schemas: list[StructType] = field(default_factory=list)
    _frames: list[DataFrame] = field(default_factory=list)
    _nodes: list[Node] = field(default_factory=list)
    _outputs: list[Fragment] = field(default_factory=list)
    _appending: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.gateway.operators = self

    # -- making the plan -------------------------------------------------------------------------------

    def leaf(self, schema: StructType, *, appends: bool = False) -> tuple[int, DataFrame]:
        """A leaf with these columns, and its number; `appends` says that no row ever leaves it."""
        number = len(self._schemas)
        self._schemas.append(schema)
        if appends:
            self._appending.add(number)
        tasks = self.gateway.spark.sparkContext.defaultParallelism
        read = _reader(str(self._file(number)), tasks)
        read.__name__ = _name_of(number)
        return number, map_in_arrow(self.gateway.spark.range(0, tasks, 1, tasks), read, schema)

    def keyed(
        self,
        stage: Keyed,
        sides: list[DataFrame],
        result: StructType,
        until: Sequence[Completeness] = (),
    ) -> DataFrame:
        """The rows of an operator, as a leaf."""
        fragments = tuple(map(self._fragment, sides))
        appends = all(self._appending.issuperset(side.leaves) for side in fragments)
        is_fixed = stage.windows is not None and stage.windows.kind != "SESSION"
        number, frame = self.leaf(result, appends=appends and (is_fixed or stage.operator == "join"))
        self._not_so(not_in_memory(result))
        if self.why_not is not None:
            return frame
        kinds = {one.column: sides[0].schema[one.column].dataType.simpleString() for one in until}
        ends = tuple(Ending(one.column, one.origin, one.mapped, kinds[one.column]) for one in until)
        self._nodes.append(Node(stage, fragments, in_memory(result), number, ends, appends))
        return frame

    def beginning(self) -> DataFrame:
        """A leaf of one row, which comes in the first step."""
        if self._beginning is None:
            times = StructType().add(ENTER, LongType()).add(LEAVE, LongType())
            self._beginning = self.leaf(times, appends=True)
        return self._beginning[1]

    def output(self, frame: DataFrame) -> Fragment:
        """A result of the flow."""
        fragment = self._fragment(frame)
        self._outputs.append(fragment)
        return fragment

    def _not_so(self, why: str | None) -> None:
        """Remember why the plan cannot be run so, where it is the first reason."""
        self.why_not = self.why_not or why

    def _fragment(self, frame: DataFrame) -> Fragment:
        self._not_so(not_in_memory(frame.schema))
        schema, number = in_memory(frame.schema), len(self._frames)
        self._frames.append(frame)
        if self.why_not is not None:
            return Fragment(number, (), schema, {})
        plan = optimized(explain_cost(self.gateway, frame))
        reads = self._reads(plan)
        leaves = tuple(sorted(reads))
        if not leaves:
            self._not_so("a part of the query that reads no stream")
        chosen = None
        if len(leaves) == 1 and sum(_LEAF in line for line in plan) == 1:
            names = self._schemas[leaves[0]].names
            if plan[0].startswith("MapInArrow ") and frame.columns == names:
                chosen = tuple(names)
            elif len(plan) > 1 and plan[1].startswith("MapInArrow "):
                chosen = plain_choice(plan[0], frame.columns, names)
            kinds = None if chosen is None else [self._schemas[leaves[0]][name].dataType for name in chosen]
            if kinds != [column.dataType for column in frame.schema]:
                chosen = None
        own = None if chosen is not None or len(leaves) > 1 else self._computed(frame, leaves[0], schema)
        found = Fragment(number, leaves, schema, reads, chosen, own)
        is_union = plan[0].startswith("Union") and not self.gateway.is_connect
        return replace(found, parts=self._parts(found)) if is_union else found

    def _computed(self, frame: DataFrame, leaf: int, schema: pa.Schema) -> Computed | None:
        """What is computed of the rows of a leaf, if that can be done in memory."""
        return (
            None if self.gateway.is_connect else self._of_plan(optimized_tree(frame), (), frame, leaf, schema)
        )

    def _of_plan(
        self, plan: PlanNode, path: tuple[int, ...], frame: DataFrame, leaf: int, schema: pa.Schema
    ) -> Computed | None:
        """The same of a part of the optimized plan of a DataFrame, to which the path leads."""

        def table(below: Sequence[int]) -> SmallTable | None:
            return small_table(self.gateway, frame, [*path, *below])

        return computed(plan, _name_of(leaf), in_memory(self._schemas[leaf]), schema, table)

    def _parts(self, whole: Fragment) -> tuple[Fragment, ...]:
        """Of a union what is computed of one leaf each; nothing where not all of it can be done in memory."""
        frame, parts = self._frames[whole.number], []
        for at, plan in enumerate(optimized_tree(frame).children):
            read = [leaf for leaf in whole.leaves for node in plan.walk() if is_leaf(node, _name_of(leaf))]
            if len(read) != 1:
                return ()
            (leaf,) = read
            schema, chosen, own = in_memory(self._schemas[leaf]), None, None
            if plan.name == "MapInArrow" and schema.types == whole.schema.types:
                chosen = tuple(schema.names)
            elif plan.name != "Project" or _has_all(plan, whole.schema):
                own = self._of_plan(plan, (at,), frame, leaf, whole.schema)
            if chosen is None and own is None:
                return ()
            reads = {leaf: whole.reads[leaf]}
            parts.append(Fragment(whole.number, (leaf,), whole.schema, reads, chosen, own))
        return tuple(parts)

    def _reads(self, plan: list[str]) -> dict[int, frozenset[str]]:
        """The leaves that an optimized plan reads, and which of their columns."""
        found: dict[int, frozenset[str]] = {}
        for at, line in enumerate(plan):
            if _LEAF not in line:
                continue
            leaf = re.match(rf"MapInArrow {_LEAF}_(\d+)_\(.*?\)#\d+, \[(.*)\], ", line)
            if leaf is None:
                self._not_so("a plan that does not show what it reads")
                return {}
            number = int(leaf[1])
            names = self._schemas[number].names
            numbers = re.findall(r"#(\d+)L?(?=, |$)", leaf[2])
            above = next((other for other in plan[:at][::-1] if not other.startswith("Filter ")), "")
            if above.startswith("Project [") and len(numbers) == len(names) and not any(map(is_cut, plan)):
                others = "\n".join([*plan[:at], *plan[at + 1 :]])
                used = [name for name, own in zip(names, numbers, strict=True)
                        if re.search(rf"#{own}(?!\d)", others)]  # fmt: skip
            else:  # whoever reads it does not name what it reads
                used = names
            found[number] = found.get(number, frozenset()) | frozenset(used)
        return found

    def read(self, leaf: int) -> frozenset[str]:
        """The columns of a leaf that are read."""
        return self.program.read(leaf)

    @cached_property
    def program(self) -> Program:
        """The operators that the outputs are made of, with no more columns than are read."""
        reads: dict[int, set[str]] = {}

        def read_by(fragment: Fragment) -> None:
            for leaf, names in fragment.reads.items():
                reads.setdefault(leaf, set()).update(names)

        for output in self._outputs:
            read_by(output)
        needed = []
        for node in reversed(self._nodes):
            if node.leaf not in reads:
                continue
            narrow = self._narrowed(node, reads[node.leaf])
            needed.append(narrow)
            for side in narrow.sides:
                read_by(side)
        begins = self._beginning is not None and self._beginning[0] in reads
        beginning = self._beginning[0] if self._beginning is not None and begins else None
        return Program(tuple(needed[::-1]), tuple(self._outputs), beginning)

    def _narrowed(self, node: Node, read: set[str]) -> Node:
        """The operator without columns that it would only carry along."""
        stage = node.stage
        if stage.operator not in ("join", "expand", "windows"):
            return node
        kept = {*read, *stage.keys, ENTER, LEAVE}
        if stage.windows is not None:
            kept |= {stage.windows.time, *stage.windows.names}
        sides = tuple(self._fragment(_only(self._frames[side.number], kept)) for side in node.sides)
        given = [column for column in node.result if column.name in kept]
        return replace(node, sides=sides, result=pa.schema(given))

    # -- steps -----------------------------------------------------------------------------------------

    @cached_property
    def run(self) -> Run:
        """The program with what its operators hold; Spark computes what is not computed in memory."""
        return Run(self.program, self._by_spark)

    def step(self, given: Mapping[int, pa.Table], times: Times, origin: int | None = None) -> list[pa.Table]:
        """What changes in each output, as :meth:`windrow.kernels.stages.Run.step` has it."""
        return self.run.step(given, times, origin)

    def _by_spark(self, fragment: Fragment, read: Mapping[int, pa.Table]) -> pa.Table:
        """What Spark makes of the rows of leaves, or says is wrong with them."""
        self.folder.mkdir(exist_ok=True)
        try:
            for number in fragment.leaves:
                self._write(number, read.get(number, in_memory(self._schemas[number]).empty_table()))
            with self.gateway.translated():
                # planned anew: a plan that has been run keeps what it has exchanged
                return self._frames[fragment.number].select("*").toArrow()
        finally:
            for number in fragment.leaves:
                self._file(number).unlink(missing_ok=True)

    def _write(self, number: int, table: pa.Table) -> None:
        whole = in_memory(self._schemas[number])
        missing = [column for column in whole if column.name not in table.column_names]
        for column in missing:  # nothing reads it
            table = table.append_column(column, pa.nulls(table.num_rows, column.type))
        table = table.select(whole.names)
        path = self._file(number)
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as file:
            for batch in table.combine_chunks().to_batches(max_chunksize=_ROWS_PER_BATCH):
                file.write_batch(batch)

    def _file(self, number: int) -> Path:
        return self.folder / f"leaf-{number}.arrow"


def unstable(error: UnmatchedError) -> WindrowError:
    """What a user is told where rows leave that never came."""
    return error.reason or ExecutionError(
        "the query gives other values for rows that leave than it gave when they came",
        condition="UNSTABLE_VALUES",
        hint="store what differs from run to run in a column, and query that",
    )


def _name_of(leaf: int) -> str:
    """By which plans tell the function that reads a leaf."""
    return f"{_LEAF}_{leaf}_"


def _reader(path: str, tasks: int):  # type: ignore[no-untyped-def]
    def rows(batches: Iterable[pa.RecordBatch], _: int) -> Iterator[pa.RecordBatch]:
        parts = [part for batch in batches for part in batch.column(0).to_pylist()]
        if not Path(path).exists():
            raise ExecutionError(
                f"a task does not find {path}, which the driver has written",
                condition="NOT_SHARED",
                hint="give a checkpoint on a file system that the driver and the workers share",
            )
        with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
            for part in parts:  # the number of the task counts those of other leaves
                for number in range(part, file.num_record_batches, tasks):
                    yield file.get_batch(number)

    return in_worker(rows, None)


def _has_all(plan: PlanNode, schema: pa.Schema) -> bool:
    """Whether a projection gives each of the columns under a number of its own."""
    return len({column.number for column in plan.trees("projectList")}) == len(schema)


def _only(frame: DataFrame, kept: set[str]) -> DataFrame:
    """These columns of a frame, and one at least: rows of none cannot be counted."""
    own = [name for name in frame.columns if name not in (ENTER, LEAVE)]
    names = [name for name in own if name in kept] or own[:1]
    return frame.select(*names, ENTER, LEAVE)

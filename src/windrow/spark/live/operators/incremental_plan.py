"""Converts a plan to a program, whose operators run in memory, by micro-batch.

A plan is converted once, over *leaves*: DataFrames over one file each, which a micro-batch writes if Spark
must read it. The operators of time-varying relations (:func:`windrow.spark.tasks.keyed.run_keyed`) then
exchange no rows between tasks: each has its own state (:class:`windrow.kernels.incremental.Operated`), and
its output is another leaf. Computations between leaves and operators are read from Spark's plans, and run in
memory (:class:`windrow.kernels.incremental.Program`); Spark runs the rest, on the driver.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from windrow.errors import ExecutionError, WindrowError
from windrow.kernels.computed.computed_operations import Computed
from windrow.kernels.computed.lookups import LookUp, LookUpTable
from windrow.kernels.incremental import (
    Ending,
    Program,
    ProgramFragment,
    ProgramNode,
    Run,
    Times,
    UnmatchedError,
    over_panes,
    over_tumbling,
)
from windrow.kernels.zset.keyed_operator import OF_PARTNERS, Keyed
from windrow.kernels.zset.relation import ENTER, LEAVE
from windrow.plan.arrow_types import contains, travelling_type
from windrow.plan.columns import Completeness
from windrow.spark.analysis.arrow_columns import in_memory, not_in_memory, travelling
from windrow.spark.analysis.computed_columns import PASS, wanted
from windrow.spark.analysis.plan_tree import SparkNode as Planned
from windrow.spark.analysis.plan_tree import choice_of, optimized_tree, with_above
from windrow.spark.analysis.small_tables import small_table
from windrow.spark.arrow import decode
from windrow.spark.gateway import Gateway
from windrow.spark.jvm.connect import relations_of_connect
from windrow.spark.jvm.plans import function_number, optimized_json
from windrow.spark.live.operators.computed_flow import computed
from windrow.spark.runtime.interpreter import map_in_arrow
from windrow.spark.runtime.settings import setting
from windrow.spark.tasks.exchange import in_worker

__all__ = ["BY_SPARK", "IncrementalPlan", "computed_elsewhere", "unstable"]

BY_SPARK = "expressions that Spark alone computes"
"""The reason why a program is not computed in memory, if it has such expressions."""

_ROWS_PER_BATCH = 1 << 15
_SHUFFLED = "spark.sql.shuffle.partitions"


@dataclass
class IncrementalPlan:
    """The plan of a query, and the state of its operators.

    Parameters
    ----------
    gateway
        The gateway that makes the plan, whose operators are this plan's.
    folder
        For the files of leaves, which the tasks read.

    Attributes
    ----------
    why_not
        The part of the plan that cannot run in this way; None if all can. With such a part, it cannot be
        advanced.
    """

    gateway: Gateway
    folder: Path
    why_not: str | None = None
    _beginning: tuple[int, DataFrame] | None = None
    _schemas: list[StructType] = field(default_factory=list)
    _functions: dict[int, int] = field(default_factory=dict)
    _frames: list[DataFrame] = field(default_factory=list)
    _nodes: list[ProgramNode] = field(default_factory=list)
    _outputs: list[ProgramFragment] = field(default_factory=list)
    _appending: set[int] = field(default_factory=set)
    _tumbling: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # Connect does not say how many tasks run at a time
        spark = self.gateway.spark
        self.tasks = 1 if self.gateway.is_connect else spark.sparkContext.defaultParallelism
        self.gateway.operators = self

    # -- making the plan -------------------------------------------------------------------------------

    def leaf(
        self, schema: StructType, *, appends: bool = False, tumbling: int | None = None
    ) -> tuple[int, DataFrame]:
        """A leaf with these columns, and its number.

        `appends` says that no row ever leaves it; `tumbling` is the length of a tumbling window that it is.
        """
        number = len(self._schemas)
        kinds = StructType([StructField(one.name, travelling_type(one.dataType)) for one in schema])
        self._schemas.append(kinds)
        if appends:
            self._appending.add(number)
        if tumbling is not None:
            self._tumbling[number] = tumbling
        read = _reader(str(self._file(number)), self.tasks)
        rows = map_in_arrow(self.gateway.spark.range(0, self.tasks, 1, self.tasks), read, kinds)
        self._functions[function_number(rows)] = number
        if kinds.simpleString() != schema.simpleString():
            rows = rows.select(*(decode(F.col(one.name), one.dataType).alias(one.name) for one in schema))
        return number, rows

    def keyed(
        self,
        operator: Keyed,
        sides: list[DataFrame],
        result: StructType,
        until: Sequence[Completeness] = (),
    ) -> DataFrame:
        """The rows of an operator, as a leaf."""
        fragments = tuple(map(self._fragment, sides))
        appends = all(map(self.appends, fragments))
        is_fixed = operator.windows is not None and operator.windows.kind != "SESSION"
        number, frame = self.leaf(result, appends=appends and (is_fixed or operator.name == "join"))
        self._not_so(not_in_memory(result))
        if self.why_not is not None:
            return frame
        kinds = {one.column: sides[0].schema[one.column].dataType.simpleString() for one in until}
        ends = tuple(Ending(one.column, one.origin, one.mapped, kinds[one.column]) for one in until)
        self._nodes.append(ProgramNode(operator, fragments, in_memory(result), number, ends, appends))
        return frame

    def beginning(self) -> DataFrame:
        """A leaf of one row, which arrives in the first micro-batch."""
        if self._beginning is None:
            times = StructType().add(ENTER, LongType()).add(LEAVE, LongType())
            self._beginning = self.leaf(times, appends=True)
        return self._beginning[1]

    def output(self, frame: DataFrame) -> ProgramFragment:
        """A result of the program."""
        fragment = self._fragment(frame)
        self._outputs.append(fragment)
        return fragment

    def appends(self, fragment: ProgramFragment) -> bool:
        """Whether no row of it ever leaves."""
        return self._appending.issuperset(fragment.leaves)

    def _not_so(self, why: str | None) -> None:
        """Record the first reason why the plan cannot run in memory."""
        self.why_not = self.why_not or why

    def _fragment(self, frame: DataFrame) -> ProgramFragment:
        self._not_so(not_in_memory(frame.schema))
        frame = travelling(frame)
        schema, number = in_memory(frame.schema), len(self._frames)
        self._frames.append(frame)
        if self.why_not is not None:
            return ProgramFragment(number, (), schema, {})
        if self.gateway.is_connect:  # it has no plan trees, so Spark computes all columns of its inputs
            read = [self._functions[one] for one in relations_of_connect(frame) if one in self._functions]
            return ProgramFragment(
                number, tuple(sorted(set(read))), schema, {one: self._all(one) for one in read}
            )
        plan = optimized_tree(self.gateway, frame)
        if plan is None:
            with self.gateway.translated():
                optimized_json(frame)  # Spark's error, as of 1 / 0
            self._not_so("a part of the query of which Spark has no plan")
            return ProgramFragment(number, (), schema, {})
        leaves = [*self._leaves(plan)]
        if not leaves:
            self._not_so("a part of the query that reads no stream")
        reads: dict[int, frozenset[str]] = {}
        for leaf, operator, above in leaves:
            reads[leaf] = reads.get(leaf, frozenset()) | self._read_of(leaf, operator, above)
        chosen = self._choice(plan, frame.schema) if len(leaves) == 1 else None
        own: Computed | str = ""
        if chosen is None and len(reads) == 1:
            own = self._computed(plan, (), frame, *leaves[0][:2], schema)
        why, made = (own, None) if isinstance(own, str) else ("", own)
        found = ProgramFragment(number, tuple(sorted(reads)), schema, reads, chosen, made, only_spark=why)
        return replace(found, parts=self._parts(plan, found)) if plan.name == "Union" else found

    def _all(self, leaf: int) -> frozenset[str]:
        """All columns of a leaf."""
        return frozenset(self._schemas[leaf].names)

    def _leaves(self, plan: Planned) -> Iterator[tuple[int, Planned, tuple[Planned, ...]]]:
        """The leaves that a plan reads: number, operator, and the operators above from the nearest on."""
        for node, above in with_above(plan):
            if node.function in self._functions:
                yield self._functions[node.function], node, above

    def _read_of(self, number: int, leaf: Planned, above: Sequence[Planned]) -> frozenset[str]:
        """The columns of a leaf that the operators above read."""
        names, output = self._schemas[number].names, leaf.output
        assert output is not None
        over = [*itertools.takewhile(lambda node: node.name in PASS, above)]
        if len(over) < len(above) and above[len(over)].name == "Project":
            over.append(above[len(over)])
        elif len(over) < len(above):  # its reader does not name the columns that it reads
            over = []
        found = set(wanted(over, output))
        return frozenset(name for name, own in zip(names, output, strict=True) if own in found)

    def _choice(self, plan: Planned, schema: StructType) -> tuple[str, ...] | None:
        """The columns of its only leaf that a plan returns; None if it does more."""
        choice = choice_of(plan)
        if choice is None or choice.below.function not in self._functions:
            return None
        emitted = self._schemas[self._functions[choice.below.function]]
        if any(field is not None for _, field in choice.columns):
            return None
        chosen = tuple(emitted.names[place] for place, _ in choice.columns)
        same = [emitted[name].dataType for name in chosen] == [column.dataType for column in schema]
        return chosen if same else None

    def _computed(
        self,
        plan: Planned,
        path: tuple[int, ...],
        frame: DataFrame,
        number: int,
        leaf: Planned,
        schema: pa.Schema,
    ) -> Computed | str:
        """The computation in memory on the rows of a leaf, for the part of a plan at a path, as
        :func:`.computed_flow.computed` finds it.
        """
        if any(contains(one.dataType, "collated") for one in (*self._schemas[number], *frame.schema)):
            return "a text with a collation"

        def table(below: Sequence[int]) -> LookUpTable | None:
            return small_table(self.gateway, frame, [*path, *below])

        return computed(plan, leaf, in_memory(self._schemas[number]), schema, table)

    def _parts(self, union: Planned, whole: ProgramFragment) -> tuple[ProgramFragment, ...]:
        """For a union, the computation on each leaf; empty if a part cannot run in memory."""
        frame, parts = self._frames[whole.number], []
        for at, plan in enumerate(union.children):
            read = [*self._leaves(plan)]
            if len(read) != 1:
                return ()
            ((number, leaf, _),) = read
            schema, chosen, own = in_memory(self._schemas[number]), None, None
            if plan is leaf and schema.types == whole.schema.types:
                chosen = tuple(schema.names)
            elif plan.name != "Project" or _has_all(plan, whole.schema):
                made = self._computed(plan, (at,), frame, number, leaf, whole.schema)
                own = None if isinstance(made, str) else made
            if chosen is None and own is None:
                return ()
            reads = {number: whole.reads[number]}
            parts.append(ProgramFragment(whole.number, (number,), whole.schema, reads, chosen, own))
        return tuple(parts)

    def read(self, leaf: int) -> frozenset[str]:
        """The columns of a leaf that are read."""
        return self.program.read(leaf)

    @cached_property
    def program(self) -> Program:
        """The operators of the outputs, with only the columns that are read."""
        reads: dict[int, set[str]] = {}

        def read_by(fragment: ProgramFragment) -> None:
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
        program = Program(tuple(needed[::-1]), tuple(self._outputs), beginning)
        return over_tumbling(program, self._tumbling)

    def _narrowed(self, node: ProgramNode, read: set[str]) -> ProgramNode:
        """The operator without columns that it would only pass on."""
        operator = node.operator
        if operator.name not in ("join", "expand", "windows", *OF_PARTNERS):
            return node
        retained = {*read, *operator.keys, ENTER, LEAVE}
        if operator.windows is not None:
            retained |= {operator.windows.time, *operator.windows.names}
        sides = tuple(self._fragment(_only(self._frames[side.number], retained)) for side in node.sides)
        emitted = [column for column in node.result if column.name in retained]
        return replace(node, sides=sides, result=pa.schema(emitted))

    # -- micro-batches -----------------------------------------------------------------------------

    @cached_property
    def run(self) -> Run:
        """The program with the state of its operators; Spark computes the rest."""
        return Run(over_panes(self.program), self.by_spark)

    def advance(
        self, entries: Mapping[int, pa.Table], times: Times, origin: int | None = None
    ) -> list[pa.Table]:
        """The changes of each output, as in :meth:`windrow.kernels.incremental.Run.advance`."""
        return self.run.advance(entries, times, origin)

    def by_spark(self, fragment: ProgramFragment, read: Mapping[int, pa.Table]) -> pa.Table:
        """Spark's result for the rows of leaves, or its error."""
        self.folder.mkdir(exist_ok=True)
        try:
            for number in fragment.leaves:
                self._write(number, read.get(number, in_memory(self._schemas[number]).empty_table()))
            spark = self.gateway.spark
            shuffled = min(self.tasks, int(spark.conf.get(_SHUFFLED) or 1))
            with self.gateway.translated(), setting(spark, _SHUFFLED, str(shuffled)):
                # planned again: a plan that has run retains its exchanged rows
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


def computed_elsewhere(program: Program, *, takes_tables: bool) -> str | None:
    """The part of a program that is not computed in memory; None if there is none.

    With `takes_tables`, tables below Spark's threshold for broadcasts are part of it.
    """
    for fragment in program.fragments:
        for one in fragment.parts or (fragment,):
            operations = [] if one.computed is None else one.computed.operations
            if not takes_tables and any(isinstance(operation, LookUp) for operation in operations):
                return "a join with a table"
        if not fragment.is_in_memory:
            if fragment.only_spark:
                return f"{BY_SPARK}: {fragment.only_spark}"
            larger = ", or a table above spark.sql.autoBroadcastJoinThreshold" if takes_tables else ""
            return f"{BY_SPARK}{larger}"
    return None


def unstable(error: UnmatchedError) -> WindrowError:
    """The error if rows leave that never entered."""
    return error.reason or ExecutionError(
        "the query computed different values for a row when it left than when it entered",
        condition="UNSTABLE_VALUES",
        hint="store the values that differ from run to run in a column, and query that column",
    )


def _reader(path: str, tasks: int):  # type: ignore[no-untyped-def]
    def rows(batches: Iterable[pa.RecordBatch], _: int) -> Iterator[pa.RecordBatch]:
        parts = [part for batch in batches for part in batch.column(0).to_pylist()]
        if not Path(path).exists():
            raise ExecutionError(
                f"a task cannot find {path}, which the driver wrote",
                condition="NOT_SHARED",
                hint="put the checkpoint on a file system that the driver and the workers share",
            )
        with pa.memory_map(path) as source, pa.ipc.open_file(source) as file:
            for part in parts:  # the number of the task counts those of other leaves
                for number in range(part, file.num_record_batches, tasks):
                    yield file.get_batch(number)

    return in_worker(rows, None)


def _has_all(plan: Planned, schema: pa.Schema) -> bool:
    """Whether a projection returns each column with a distinct id."""
    return len({column.number for column in plan.trees("projectList")}) == len(schema)


def _only(frame: DataFrame, retained: set[str]) -> DataFrame:
    """These columns of a frame, and at least one: rows without columns cannot be counted."""
    own = [name for name in frame.columns if name not in (ENTER, LEAVE)]
    names = [name for name in own if name in retained] or own[:1]
    return frame.select(*names, ENTER, LEAVE)

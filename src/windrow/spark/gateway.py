"""The only access to a SparkSession: runs generated SQL over DataFrames and translates Spark's errors.

It also supports a Spark Connect session.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from windrow.algebra.names import as_written
from windrow.errors import WindrowError, did_you_mean, refuse_unknown
from windrow.spark.errors import of_java, translate
from windrow.spark.jvm.bridge import JavaError
from windrow.spark.jvm.connect import of_connect
from windrow.spark.jvm.plans import explained
from windrow.spark.runtime.quiet import quiet
from windrow.syntax.sqltext import Piece, RelationText, SqlText
from windrow.syntax.streams.cql_spellings import DIALECTS, in_spark
from windrow.syntax.tokens import tokenize

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from windrow.kernels.zset.keyed_operator import Keyed
    from windrow.plan.columns import Completeness

__all__ = ["DIALECT_SETTING", "Gateway", "Operators", "check_dialect", "is_ansi", "unregistered"]

DIALECT_SETTING = "spark.windrow.dialect"

_numbers = itertools.count(1)
# as long as the names that PySpark assigns to relations, which all have one length: for positions of errors
_CONNECT_NAME = "_pyspark_connect_temp_view_" + "0" * 32


class Operators(Protocol):
    """Runs operators over time-varying relations, other than by tasks that exchange rows.

    Attributes
    ----------
    tasks
        How many Spark tasks run the computations between them: a micro-batch is small.
    """

    tasks: int

    def keyed(
        self,
        operator: Keyed,
        sides: list[DataFrame],
        result: StructType,
        until: Sequence[Completeness] = (),
    ) -> DataFrame:
        """The rows of an operator over these sides, with the columns of `result`.

        `until` has the conditions under which keys receive no more rows.
        """

    def beginning(self) -> DataFrame:
        """A relation of one row with `ENTER` and `LEAVE`, which exists from the logs' first instant on."""


class Gateway:
    """A SparkSession, and the state of the running statement: parameters, windows, generated SQL, and the
    bodies of permanent functions.

    With `plan_only` no job runs for the statement, which is planned without knowing its data; with `checks`
    it also leaves nothing behind. With `prefers_live`, a statement that could run in batch and live is
    planned live. With `reopens`, streams that exist are opened instead of created. `operators` run the
    operators over time-varying relations. Without a `dialect`, the setting names that of the expressions. If
    it `is_steady`, Spark can use row numbers after LATERAL.
    """

    def __init__(
        self, spark: SparkSession, parameters: Mapping[str, Any] | None = None, dialect: str | None = None
    ) -> None:
        self.spark = spark
        self._dialect = dialect
        self._reading: list[SqlText] = []
        self._read: list[SqlText] = []
        self.parameters = dict(parameters or {})
        self.sent: list[tuple[SqlText, dict[str, str]]] = []
        self.frames: dict[str, DataFrame] = {}
        self.stored_bodies: dict[tuple[str, ...], str | None] = {}
        self.plan_only = False
        self.checks = False
        self.prefers_live = False
        self.is_steady = False
        self.reopens = False
        self.operators: Operators | None = None
        self.is_connect = of_connect(spark)

    @property
    def dialect(self) -> str:
        """The dialect of expressions."""
        return self._dialect or check_dialect(self.spark.conf.get(DIALECT_SETTING, None) or "spark")

    @contextmanager
    def reading(self, text: str) -> Iterator[str]:
        """The statement in Spark's dialect; errors about it, then and later, show it as written."""
        translated = in_spark(tokenize(text)) if self.dialect == "cql" else None
        if translated is None:
            yield text
            return
        with self.instead(translated) as read:
            yield read

    @contextmanager
    def instead(self, text: SqlText, names: Mapping[str, str] | None = None) -> Iterator[str]:
        """A text to run in place of the one that its pieces come from; errors show the original."""
        rendered = SqlText.of(*(_named(part, names or {}) for part in text.parts))
        self._reading.append(rendered)
        try:
            yield rendered.render()
        except WindrowError as error:
            raise _as_written(error, rendered) from error.__cause__
        finally:
            self._read.append(self._reading.pop())

    def as_written(self, error: WindrowError) -> WindrowError:
        """The error, with the user's text if it is about a replacement.

        Texts that still are replacements are mapped by themselves.
        """
        for read in self._read:
            error = _as_written(error, read)
        return error

    def plan_as_written(self, plan: str) -> str:
        """A plan with the parameters and paths that the user wrote, in place of names of ours."""
        plan = as_written(plan)
        for part in (part for read in (*self._read, *self._reading) for part in read.parts):
            if isinstance(part, Piece) and part.source is not None and part.width is not None:
                path = part.source[part.offset : part.offset + part.width]
                if part.text.startswith("`") and path[:1] in ("'", '"'):
                    plan = plan.replace(part.text, path)
        return plan

    def sql(self, text: SqlText, relations: Mapping[str, DataFrame] | None = None) -> DataFrame:
        """Run SQL in which the keys of `relations` stand for DataFrames.

        Raises
        ------
        WindrowError
            Spark's error, located in the user's text.
        """
        frames: dict[str, Any] = {key: {**self.frames, **(relations or {})}[key] for key in text.relations()}
        arguments: dict[str, Any] = {"args": self.parameters} if self.parameters else {}
        if self.is_connect:
            # Connect analyses late, so views would have to outlive the DataFrame; it carries relations along
            names = dict.fromkeys(frames, _CONNECT_NAME)
            with self.translated(text, names):
                frame = self.spark.sql(text.template(), **arguments, **frames)
                frame.schema  # noqa: B018 - an error of the text belongs here
            return frame
        with self.views(frames) as names, self.translated(text, names):
            return self.spark.sql(text.render(names), **arguments)

    @contextmanager
    def views(self, relations: Mapping[str, DataFrame]) -> Iterator[dict[str, str]]:
        """Temporary views of DataFrames under generated names, for one call.

        Spark Connect analyses late, so there the views outlive the call.
        """
        names = {key: f"__windrow_{next(_numbers)}" for key in relations}
        for key, frame in relations.items():
            frame.createOrReplaceTempView(names[key])
        try:
            yield names
        finally:
            # the DataFrame has its plan by now
            for name in () if self.is_connect else names.values():
                self.spark.catalog.dropTempView(name)

    @contextmanager
    def translated(
        self, text: SqlText | None = None, names: Mapping[str, str] | None = None
    ) -> Iterator[None]:
        """Raise Spark's errors as Windrow's."""
        if text is not None:
            self.sent.append((text, dict(names or {})))
        with quiet():
            try:
                yield
            except PySparkException as error:
                translated = self._with_near_table(translate(error, text, names, self.sent))
                raise self.as_written(translated) from None
            except JavaError as error:
                raise self.as_written(of_java(error, text)) from None

    def spark_plan(self, frame: DataFrame, mode: str) -> str:
        """Spark's own plan of a DataFrame, as EXPLAIN prints it in this mode."""
        with self.translated():
            return explained(frame, mode).strip()

    def _with_near_table(self, error: WindrowError) -> WindrowError:
        """The error; for a missing table, with the most similar name as a hint."""
        context = error.getQueryContext()
        if error.condition == "TABLE_OR_VIEW_NOT_FOUND" and context:
            with suppress(PySparkException, JavaError):
                known = [row["tableName"] for row in self.spark.sql("SHOW TABLES").collect()]
                name = context[0].fragment().strip("`")
                error.hint = _side_output(name, known) or did_you_mean(name, known) or error.hint
                if _READING.match(error.sql or ""):
                    error.hint = error.hint or unregistered(name)
        return error


_READING = re.compile(r"\s*(SELECT|WITH|FROM|TABLE|EXPLAIN|\()", re.IGNORECASE)
"""The beginning of statements that read tables and write none."""


def unregistered(name: str) -> str | None:
    """The hint for a name without a table or a similar one; None for a qualified name."""
    if not name.isidentifier():
        return None
    return f"write session.register('{name}', df) for a DataFrame or files, or FROM 'path.csv' for a file"


def _side_output(name: str, known: Collection[str]) -> str | None:
    """The hint for ``s_late`` if there is a stream ``s`` without such a view."""
    stream, _, kind = name.lower().rpartition("_")
    if kind not in ("late", "malformed") or stream not in {one.lower() for one in known}:
        return None
    recorded = ", or relation.late of recorded streams," if kind == "late" else ""
    return f"read query.{kind}{recorded} for the {kind} rows, where query = relation.start(…)"


def _as_written(error: WindrowError, read: SqlText) -> WindrowError:
    """The error, with the original text if it is about a generated one."""
    if error.sql == read.render():
        place = None
        if error.span is not None:
            place = read.written(error.span.start, error.span.stop)
            if place is None and (place := read.locate_before(error.span.start)) is not None:
                # words of ours follow, which the user has not written
                error.message = re.sub(r" at or near .*", " after this", error.message)
        error.sql, error.span = place if place is not None else (None, None)
    return error


def _named(part: Piece | RelationText, names: Mapping[str, str]) -> Piece:
    """A part of a text with the names of its relations."""
    return Piece(names.get(part.key, part.key)) if isinstance(part, RelationText) else part


def check_dialect(name: str) -> str:
    """The dialect of this name.

    Raises
    ------
    UsageError
        ``UNKNOWN_DIALECT``.
    """
    refuse_unknown(f"dialect {name!r}", name.lower(), DIALECTS, "UNKNOWN_DIALECT")
    return name.lower()


def is_ansi(gateway: Gateway) -> bool:
    """Whether the session raises errors where other modes return NULL."""
    return str(gateway.spark.conf.get("spark.sql.ansi.enabled", "true")).lower() == "true"

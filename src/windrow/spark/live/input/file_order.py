"""The order of files in a micro-batch: order of arrival, and not that in which Spark reads them.

Spark reads the largest files first, so that its tasks end together. Which rows are late must not depend on
that. So rows are ordered by the modification time of their file, then by its path, then by their position in
it. That is the order of files that arrive one at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windrow.spark.jvm.bridge import BridgeError
from windrow.spark.jvm.plans import hidden_columns
from windrow.spark.jvm.streams import running_batch
from windrow.spark.logs.live_source import PLACE
from windrow.syntax.sqltext import quoted

__all__ = ["ORIGIN", "in_order", "is_of_one_file", "origin", "placed"]

ORIGIN = ("__file_time", "__file", "__file_start")
"""The columns with the part of a file in which a row is: modification time, path, first byte."""

_FILE = "_metadata"
_METADATA = ("file_modification_time", "file_path", "file_block_start")
_RANK = "__rank"
_PLACES = 33  # bits that Spark leaves for the number of a row in its task


def origin(frame: DataFrame) -> tuple[Column, ...]:
    """`ORIGIN` of the rows of a streaming DataFrame; empty if Spark does not know it.

    Spark names the file of rows that operators with state compute too, but then cannot find it.
    """
    if _METADATA[0] not in hidden_columns(frame).get(_FILE, ""):
        return ()
    file = frame.metadataColumn(_FILE)
    try:
        frame.select(file)
    except AnalysisException as error:
        if not (error.getCondition() or "").startswith("MISSING_ATTRIBUTES"):
            raise
        return ()
    return tuple(file[field].alias(name) for field, name in zip(_METADATA, ORIGIN, strict=True))


def is_of_one_file(spark: SparkSession) -> bool:
    """Whether the micro-batch that Spark runs in this thread is known to have at most one file."""
    try:
        batch = running_batch(spark)
        if batch is None:
            return False
        files = [scan.number_of_files for scan in batch.scans]
    except BridgeError:  # not there in all versions of Spark
        return False
    return max(files, default=0) <= 1


def in_order(entries: pa.Table) -> pa.Table:
    """Entries in order of arrival, without the columns of `ORIGIN`; unchanged without these columns."""
    if ORIGIN[0] not in entries.column_names:
        return entries
    ranks, rest = _ranks(entries), entries.drop_columns([*ORIGIN])
    return rest if (np.diff(ranks) >= 0).all() else rest.take(pa.array(np.argsort(ranks, kind="stable")))


def placed(batch: DataFrame) -> DataFrame:
    """The rows of a micro-batch with `PLACE`, which orders those of a stream by arrival, without `ORIGIN`."""
    known = PLACE in batch.columns
    numbered = batch if known else batch.withColumn(PLACE, F.monotonically_increasing_id())
    if ORIGIN[0] not in batch.columns:
        return numbered
    parts = batch.select(*ORIGIN).distinct().toArrow()
    if parts.num_rows <= 1:
        return numbered.drop(*ORIGIN)
    ranked = parts.append_column(_RANK, pa.array(_ranks(parts)))
    ranks = F.broadcast(batch.sparkSession.createDataFrame(ranked)).alias("ranks")
    same = [numbered[name].eqNullSafe(F.col(f"ranks.{name}")) for name in ORIGIN]
    # one task reads a part of a file, in order; rows without a file are last, and come from several tasks
    task = F.when(F.col(f"ranks.{ORIGIN[0]}").isNull(), F.shiftright(F.col(PLACE), _PLACES)).otherwise(0)
    in_part = F.col(PLACE).bitwiseAND(F.lit((1 << _PLACES) - 1))
    place = F.shiftleft(F.col(_RANK) + task, _PLACES).bitwiseOR(in_part)
    own = [F.col(quoted(name)) for name in batch.columns if name not in (PLACE, *ORIGIN)]
    return numbered.join(ranks, same).select(*own, place.alias(PLACE))


def _ranks(entries: pa.Table) -> npt.NDArray[np.int64]:
    """The rank of each row's part of a file, among all parts."""
    found = np.zeros(entries.num_rows, np.int64)
    for name in ORIGIN:
        codes = entries.column(name).combine_chunks().dictionary_encode("encode")
        ranks = np.empty(len(codes.dictionary), np.int64)
        ranks[pc.sort_indices(codes.dictionary).to_numpy()] = np.arange(len(ranks))
        found = found * len(ranks) + ranks[codes.indices.to_numpy()]
    return found

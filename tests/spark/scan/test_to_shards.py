"""Ints that go to chosen partitions, held to Spark's own hash."""

from __future__ import annotations

import pytest
from pyspark.sql import functions as F

from windrow.spark.tasks.to_shards import CELL, _that_goes_to, first_of_each


@pytest.mark.parametrize("count", [1, 7, 200])
def test_an_int_is_the_first_that_spark_puts_into_its_partition(spark, count):
    firsts = first_of_each(count)
    tried = spark.range(int(firsts.max()) + 1).select(
        F.col("id").cast("int").alias("tried"), F.expr(f"pmod(hash(CAST(id AS INT)), {count})").alias("place")
    )
    found = dict(tried.groupBy("place").agg(F.min("tried")).collect())
    assert [found[place] for place in range(count)] == firsts.tolist()


def test_rows_are_in_the_partition_of_their_cell(spark):
    rows = spark.range(40).select((F.col("id") % 5).cast("int").alias(CELL))
    parted = rows.repartition(5, _that_goes_to(F.col(CELL), 5))
    assert parted.where(F.col(CELL) != F.spark_partition_id()).count() == 0

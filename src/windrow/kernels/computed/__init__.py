"""Computation on rows without Spark: values of each row, and filters.

Values are data: functions of Arrow, numpy and this package, over columns and constants. They are read from
Spark's plans (:mod:`windrow.spark.analysis.expressions`), and sent to tasks unchanged.
"""

"""What is made of rows without Spark: of each row values, and the rows that stay.

Values are data: functions of Arrow's, of numpy's and of this package, over columns and constants. They are
read from Spark's plans (:mod:`windrow.spark.analysis.expressions`), and go to tasks as they are.
"""

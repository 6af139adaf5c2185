"""Files as tables, and Parquet files that tasks read without Spark."""

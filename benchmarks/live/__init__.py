"""Live queries against Spark's own streaming aggregation and join, and Flink SQL, on the same files."""

"""What runs queries on Spark: the only part that imports pyspark, with what lies above it."""

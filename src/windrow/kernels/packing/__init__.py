"""The exchange of rows between tasks: shards, chunks, messages, and Parquet files."""

"""Rows on their way between tasks: cells, chunks, messages, and Parquet files."""

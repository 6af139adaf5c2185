"""Rows on their way to tasks: cells, exchanges, and slices of long partitions."""

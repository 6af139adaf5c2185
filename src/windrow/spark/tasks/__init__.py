"""Exchanges between tasks: shards, and slices of long partitions."""

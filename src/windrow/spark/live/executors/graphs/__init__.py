"""Graphs of live queries on executors: which buckets there are, and what each runs."""

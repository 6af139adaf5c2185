"""EXPLAIN: how Windrow runs a statement, and why."""

"""EXPLAIN: what Windrow will do with a statement, and why."""

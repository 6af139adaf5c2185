"""Continuous queries and queries with EMIT over recorded logs."""

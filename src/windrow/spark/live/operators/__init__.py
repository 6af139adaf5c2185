"""Operators of live queries, and what is computed between them."""

"""Operators of live queries, and the computations between them."""

"""Searches for predicates, compiled by numba."""

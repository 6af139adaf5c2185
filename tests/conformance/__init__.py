"""Conformance: one text format for cases, run over every way of executing a query (see README.md)."""

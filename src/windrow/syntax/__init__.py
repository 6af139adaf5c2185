"""The text side of Windrow: tokens, SELECTs, the WINDOW BY clause, the skeleton of expressions.

Windrow parses only the clauses that Spark lacks, and leaves the rest of the text as the user wrote it;
Spark's own parser and analyser check that. See ``docs/architecture.md``.
"""

"""The text side of Windrow: tokens, SELECTs, the WINDOW BY clause, the skeleton of expressions.

Windrow owns the few clauses that Spark lacks and leaves every other stretch of text as the user
wrote it; Spark's own parser and analyser judge those. See ``docs/architecture.md``.
"""

"""The skeleton of expressions, and what it says of them without Spark's analyser."""

from windrow.syntax.expressions.skeleton import Atoms, parse_expression

__all__ = ["Atoms", "parse_expression"]

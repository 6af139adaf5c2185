"""The skeleton of expressions, and its analysis without Spark."""

from windrow.syntax.expressions.skeleton import Atoms, parse_expression

__all__ = ["Atoms", "parse_expression"]

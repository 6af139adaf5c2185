"""From a text to a plan.

A query is read once: its SELECTs become nodes (:mod:`windrow.plan.nodes`), from FROM upwards. Expressions
remain the user's text with its positions. Where a column replaces a part of a text, such as an aggregate
above its group, it is substituted at that position.
"""

from windrow.plan.reader.read_queries import QueryReader
from windrow.plan.reader.statement_text import Analyser, Texts

__all__ = ["Analyser", "QueryReader", "Texts"]

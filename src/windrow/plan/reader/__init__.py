"""From a text to a plan.

A query is read once: its SELECTs become nodes (:mod:`windrow.plan.nodes`), from FROM upwards. Expressions
stay the user's text with its places; stretches for which columns stand, as they do for aggregates above a
group, are replaced where they stand.
"""

from windrow.plan.reader.read_queries import QueryReader
from windrow.plan.reader.statement_text import Analyser, Texts

__all__ = ["Analyser", "QueryReader", "Texts"]

"""Punctuations: a punctuation is a pattern that no later row matches.

* ``lines``, ``values``: a column's values in order, and sets of them; ``regions``: a range for each column;
* ``pattern``: a single punctuation; ``cover``: a growing set of them;
* ``index``: which of many rows match; ``closing``: which keys are closed.

It imports numpy, pyarrow and ``windrow.errors`` only.
"""

from windrow.punctuations.closing import Closing
from windrow.punctuations.column_values import Values
from windrow.punctuations.cover import Cover
from windrow.punctuations.pattern import EVERYTHING, Pattern, lines_of

__all__ = ["EVERYTHING", "Closing", "Cover", "Pattern", "Values", "lines_of"]

"""Punctuations: promises that no later row matches a pattern, and what many of them come to.

* ``lines``, ``values``: a column's values in order, and sets of them; ``boxes``: what is exact about several;
* ``pattern``: what a punctuation says; ``cover``: what a growing set of them says;
* ``index``: which of many rows match; ``closing``: which values of some columns are closed.

It imports numpy, pyarrow and ``windrow.errors`` only.
"""

from windrow.punctuations.closing import Closing
from windrow.punctuations.cover import Cover
from windrow.punctuations.pattern import EVERYTHING, Pattern, lines_of
from windrow.punctuations.values import Values

__all__ = ["EVERYTHING", "Closing", "Cover", "Pattern", "Values", "lines_of"]

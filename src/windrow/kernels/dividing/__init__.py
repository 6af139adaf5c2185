"""The columns by which the rows of a program are divided into buckets, each of which runs the program
alone.
"""

from windrow.kernels.dividing.derived_keys import DerivedKey
from windrow.kernels.dividing.divisions import Division, divisions, undivided

__all__ = ["DerivedKey", "Division", "divisions", "undivided"]

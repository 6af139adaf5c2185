"""The columns by which the rows of a program are divided into buckets, each of which runs the program
alone.
"""

from windrow.kernels.dividing.derived_keys import DerivedKey
from windrow.kernels.dividing.divisions import Division, divisions, undivided
from windrow.kernels.dividing.two_parts import TwoParts, in_two_parts

__all__ = ["DerivedKey", "Division", "TwoParts", "divisions", "in_two_parts", "undivided"]

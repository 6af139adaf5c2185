"""Tests of live queries: a script of arriving entries, and the expected output for any micro-batches."""

from windrow.testing.differences import assert_same_rows, differences
from windrow.testing.playing import Played
from windrow.testing.script import Script

__all__ = ["Played", "Script", "assert_same_rows", "differences"]

"""Tests of one's own live queries: what arrives, and what a query gives of it, wherever that is cut."""

from windrow.testing.differences import assert_same_rows, differences
from windrow.testing.playing import Played
from windrow.testing.script import Script

__all__ = ["Played", "Script", "assert_same_rows", "differences"]

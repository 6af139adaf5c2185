"""The page about running live queries: served on this machine alone, to who has its address.

`server.py` answers requests, `watching.py` has what is told, `page.html` shows it.
"""

from windrow.cli.page.server import Page
from windrow.cli.page.watching import Watching

__all__ = ["Page", "Watching"]

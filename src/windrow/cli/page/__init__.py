"""The page about running live queries: served on this machine alone, to who has its address.

`server.py` answers requests, `watching.py` has what is told, `page.html` shows it.
"""

from windrow.cli.page.page_watching import Watching
from windrow.cli.page.server import Page

__all__ = ["Page", "Watching"]

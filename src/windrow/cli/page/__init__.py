"""The web page about running live queries, served to this machine alone and only with a token.

`server.py` answers requests, `page_watching.py` has the data, and `page.html` displays it.
"""

from windrow.cli.page.page_watching import Watching
from windrow.cli.page.server import Page

__all__ = ["Page", "Watching"]

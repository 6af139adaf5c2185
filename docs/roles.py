"""For `make docs`: references in docstrings are shown as the names that they are."""

from __future__ import annotations

import re

_ROLE = re.compile(r":(?:attr|class|data|func|meth|mod):(?=<code>)")


def on_page_content(html: str, **_: object) -> str:
    """What mkdocs makes of a page, without the words of Sphinx before names."""
    return _ROLE.sub("", html)

"""The map and the READMEs of the rooms name files that exist, and are short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "windrow"
MAP = ROOT / "docs" / "architecture.md"
NAMED = re.compile(r"`([\w./-]+\.(?:py|txt|md))`")
MODULES = {module.name for module in SRC.rglob("*.py")}


@pytest.mark.parametrize(
    "page", [MAP, *sorted(SRC.rglob("README.md"))], ids=lambda page: str(page.relative_to(ROOT))
)
def test_every_file_that_it_names_is_there(page):
    assert missing(page) == []


def test_the_map_is_two_pages_long():
    assert len(MAP.read_text(encoding="utf-8").split()) <= 1200


def test_a_file_that_is_not_there_is_found(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(
        "`session.py`, `spark/clauses/batch.py`, `nowhere.py`, `spark/nowhere.py`", encoding="utf-8"
    )
    assert missing(page) == ["nowhere.py", "spark/nowhere.py"]


def missing(page: Path) -> list[str]:
    """The files that a page names and that are neither beside it nor in the package or the repository."""
    named = NAMED.findall(page.read_text(encoding="utf-8"))
    return [name for name in named if not is_there(name, page.parent)]


def is_there(name: str, room: Path) -> bool:
    if "/" in name:
        return any((around / name).exists() for around in (room, SRC, ROOT))
    return name in MODULES or (ROOT / name).exists() or (room / name).exists()

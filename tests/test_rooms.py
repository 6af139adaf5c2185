"""The map, CONTRIBUTING and the rooms' READMEs name files and functions that exist; the map is short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "windrow"
MAP = ROOT / "docs" / "architecture.md"
NAMED = re.compile(r"`([\w./-]+\.(?:py|txt|md))(?:::([\w.]+))?`")
MODULES = sorted(SRC.rglob("*.py"))


@pytest.mark.parametrize(
    "page",
    [MAP, ROOT / "CONTRIBUTING.md", *sorted(SRC.rglob("README.md"))],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_file_and_function_that_it_names_is_there(page):
    assert missing(page) == []


def test_the_map_is_two_pages_long():
    assert len(MAP.read_text(encoding="utf-8").split()) <= 1200


def test_a_file_that_is_not_there_is_found(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(
        "`session.py`, `spark/clauses/batch.py`, `nowhere.py`, `spark/nowhere.py`, `session.py::Session.sql`,"
        " `session.py::Session.nothing`, `spark/live/query.py::LiveQuery`",
        encoding="utf-8",
    )
    assert missing(page) == ["nowhere.py", "spark/nowhere.py", "session.py::Session.nothing"]


def missing(page: Path) -> list[str]:
    """What a page names, as ``file`` or ``file::function``, and what is neither beside it nor in the package
    or the repository.
    """
    found = []
    for name, inside in NAMED.findall(page.read_text(encoding="utf-8")):
        paths = paths_of(name, page.parent)
        if name.startswith("build/"):  # a run makes it
            continue
        if not paths:
            found.append(name)
        elif inside and not any(defines(path, inside) for path in paths):
            found.append(f"{name}::{inside}")
    return found


def paths_of(name: str, room: Path) -> list[Path]:
    paths = [around / name for around in (room, SRC, ROOT)]
    if "/" not in name:
        paths += [module for module in MODULES if module.name == name]
    return [path for path in paths if path.exists()]


def defines(path: Path, name: str) -> bool:
    """Whether a module defines each part of a dotted name: a class, a function, a method, a constant."""
    text = path.read_text(encoding="utf-8")
    return all(
        re.search(rf"^ *(?:def|class) {part}\b|^ *{part}\b.* = ", text, re.M) for part in name.split(".")
    )

"""What is public: names, with the signatures of functions, classes and methods.

``python -m tests.test_public_api --update`` writes them into ``public_api.txt``. Each change of that file is
a change of the API, and in the changelog.
"""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import windrow

ROOT = Path(__file__).parents[1]
WRITTEN = Path(__file__).with_name("public_api.txt")
MODULES = (
    "windrow",
    "windrow.streams",
    "windrow.testing",
    "windrow.plot",
    "windrow.notebook",
    "windrow.datasets",
)
MADE_BY_WINDROW = {
    "Batch",
    "LiveQuery",
    "NamedStream",
    "Pipeline",
    "Played",
    "Position",
    "Producer",
    "Receipt",
    "Relation",
    "WatermarkState",
}
"""Classes whose constructors are not public."""
REFERENCE = ROOT / "docs" / "python.md"


def public_api() -> str:
    return "".join(f"{line}\n" for module in MODULES for line in _of_module(module))


def _of_module(name: str) -> Iterator[str]:
    module = importlib.import_module(name)
    for public in sorted(module.__all__):
        item = getattr(module, public)
        if inspect.isclass(item):
            yield from _of_class(f"{name}.{public}", item)
        elif inspect.isroutine(item):
            yield f"{name}.{public}{inspect.signature(item)}"
        else:
            yield f"{name}.{public}: {type(item).__name__}"


def _of_class(name: str, item: type) -> Iterator[str]:
    bases = ", ".join(base.__name__ for base in item.__bases__ if base is not object)
    yield f"class {name}{f'({bases})' if bases else ''}"
    if item.__name__ not in MADE_BY_WINDROW and not issubclass(item, Enum):
        yield f"{name}{inspect.signature(item)}"
    fields = getattr(item, "__dataclass_fields__", {})
    for member, value in sorted(vars(item).items()):
        if member.startswith("_") or (member in fields and item.__name__ not in MADE_BY_WINDROW):
            continue
        if isinstance(value, staticmethod | classmethod) or inspect.isroutine(value):
            yield f"{name}.{member}{inspect.signature(getattr(item, member))}"
        else:
            yield f"{name}.{member}"


def test_what_is_public_changes_on_purpose():
    assert public_api() == WRITTEN.read_text(encoding="utf-8"), (
        "if this is meant: python -m tests.test_public_api --update, and a line in CHANGELOG.md"
    )


def test_the_page_of_versions_and_the_page_of_python_name_these_modules():
    versions = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    assert all(f"`{module}`" in versions for module in MODULES)
    line = next(line for line in REFERENCE.read_text(encoding="utf-8").splitlines() if "public names" in line)
    assert all(f"`{module}`" in line or f"`{module.removeprefix('windrow')}`" in line for module in MODULES)


def test_the_tables_of_the_python_reference_have_all_arguments():
    """A list of arguments that ends in … is one of some."""
    shown: dict[str, set[str]] = {}
    known = {name: _arguments(name) for name in (*_methods("session"), *_methods("relation"))}
    for line in REFERENCE.read_text(encoding="utf-8").splitlines():
        for name, text in re.findall(r"`((?:session|relation)\.\w+)\(([^`]*)\)`", line.partition(" | ")[0]):
            if line.startswith("|") and name in known:
                names = re.findall(r"(?:^|, )\*{0,2}(\w+|…)", text)
                shown.setdefault(name, set()).update(names)
    assert len(shown) > 15
    for name, names in shown.items():
        assert names - known[name] <= {"…"}, name
        assert "…" in names or names == known[name], name


def _methods(word: str) -> list[str]:
    own: Any = {"session": windrow.Session, "relation": windrow.Relation}[word]
    return [
        f"{word}.{name}" for name, value in vars(own).items() if inspect.isfunction(value) and name[0] != "_"
    ]


def _arguments(name: str) -> set[str]:
    word, _, method = name.partition(".")
    own: Any = {"session": windrow.Session, "relation": windrow.Relation}[word]
    return set(inspect.signature(getattr(own, method)).parameters) - {"self"}


def test_public_modules_need_no_import_of_their_own():
    names = [module.removeprefix("windrow.") for module in MODULES if module != "windrow"]
    code = f"import windrow; print([getattr(windrow, name).__name__ for name in {names}])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split("'")[1::2] == list(MODULES[1:])


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        raise SystemExit("usage: python -m tests.test_public_api --update")
    WRITTEN.write_text(public_api(), encoding="utf-8")

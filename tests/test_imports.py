"""Imports go one way, and only the layers that talk to Spark know PySpark."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "windrow"

# A part may import itself and the parts of a lower number. Parts of one number that are not the same know
# nothing of each other, except for the outermost: `FACE` is everything that is not listed here.
LAYERS = {
    "errors": 0,
    "caches": 0,
    "tracebacks": 1,
    "punctuations": 1,
    "syntax": 2,
    "kernels": 2,
    "streams": 2,
    "algebra": 3,
    "rules": 4,
    "spark": 5,
    "plot": 7,
    "cli": 8,
    "notebook": 9,
    "__main__": 9,
}
FACE = 6

MAY_IMPORT_PYSPARK = {
    "spark",
    "session",
    "relation",
    "relation_kinds",
    "rendering",
    "statements",
    "testing",
    "blocking",
    "continuous",
    "api",
    "plot",
    "cli",
    "notebook",
}
MAY_NOT_IMPORT_SQLGLOT = {"kernels"}

MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.fixture(scope="module")
def imported() -> dict[Path, list[tuple[int, str]]]:
    """What each module imports."""
    return {module: list(imports(module)) for module in MODULES}


def identify(module: Path) -> str:
    return str(module.relative_to(PACKAGE))


def test_a_module_imports_only_what_lies_below_it(imported):
    wrong = [
        f"{identify(module)}, line {line}: {name}"
        for module, names in imported.items()
        for line, name in names
        if name.split(".")[0] == "windrow" and not allowed(part_of(module), imported_part(name))
    ]
    assert wrong == []


def test_pyspark_is_known_only_where_queries_meet_spark(imported):
    knowing = [module for module, names in imported.items() if roots(names) & {"pyspark", "py4j"}]
    assert [identify(module) for module in knowing if part_of(module) not in MAY_IMPORT_PYSPARK] == []


def test_kernels_read_no_sql_except_in_the_reference(imported):
    reading = [
        module
        for module, names in imported.items()
        if "sqlglot" in roots(names) and not module.is_relative_to(PACKAGE / "kernels" / "reference")
    ]
    assert [identify(module) for module in reading if part_of(module) in MAY_NOT_IMPORT_SQLGLOT] == []


def test_the_checks_see_every_form_of_import(tmp_path):
    source = (
        "import windrow.spark.pack as p\n"
        "from windrow import session\n"
        "from windrow.algebra import nodes\n"
        "def late():\n"
        "    import pyspark.sql\n"
    )
    (tmp_path / "module.py").write_text(source, encoding="utf-8")
    names = [name for _, name in imports(tmp_path / "module.py")]
    assert names == ["windrow.spark.pack", "windrow.session", "windrow.algebra.nodes", "pyspark.sql"]


def imports(module: Path) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"), module)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                package = ("windrow", *module.relative_to(PACKAGE).parts[:-1])
                base = ".".join(package[: len(package) - node.level + 1])
                origin = f"{base}.{origin}".rstrip(".")
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def roots(names: list[tuple[int, str]]) -> set[str]:
    return {name.split(".")[0] for _, name in names}


def part_of(module: Path) -> str:
    return module.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_part(name: str) -> str:
    """The part that `name` belongs to; a name of the package itself belongs to its `__init__`."""
    _, _, rest = name.partition(".")
    first = rest.split(".")[0]
    is_part = (PACKAGE / first).is_dir() or (PACKAGE / f"{first}.py").is_file()
    return first if first and is_part else "__init__"


def allowed(own: str, other: str) -> bool:
    mine, theirs = LAYERS.get(own, FACE), LAYERS.get(other, FACE)
    return own == other or theirs < mine or mine == theirs == FACE

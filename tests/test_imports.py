"""Imports go one way and never in a circle, and only the layers that talk to Spark know PySpark."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from windrow import _PUBLIC_MODULES

PACKAGE = Path(__file__).parents[1] / "src" / "windrow"
SPARK = "windrow.spark."

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
    "plan": 4,
    "spark": 5,
    "plot": 7,
    "cli": 8,
    "notebook": 9,
    "__main__": 9,
}
FACE = 6

# The same inside of `spark`, from below: a module imports those of its own room and of the rooms before it.
SPARK_ROOMS = [
    *("jvm", "runtime", "errors", "gateway", "arrow", "collected"),
    *("analysis", "scan", "tasks", "clauses"),
    *("logs", "relations", "catalog", "recorded"),
    *("live.operators", "live.reading", "live.plans", "live.sinks", "live.checkpoints", "live.input"),
    *(
        "live.reports",
        "live.micro_batches",
        "live.executors",
        "live.hosts",
        "live.query",
        "live.session_queries",
    ),
    *("live", "declared"),
]

MAY_IMPORT_PYSPARK = {
    "plan",  # types alone: `test_plans_know_types_of_spark_and_no_session`
    "spark",
    "session",
    "session_arguments",
    "relation",
    "relation_kinds",
    "rendering",
    "statements",
    "testing",
    "without_sql",
    "plot",
    "cli",
    "notebook",
}
MAY_NOT_IMPORT_SQLGLOT = {"kernels"}

INSIDE = re.compile(
    r"py4j|_jvm|_jdf|_jgd|_jc|_jsc|_jsq|_judf|_create_judf|_jsparkSession|_gateway_server|_expr|_explain_string"
    r"|queryExecution|getClass"
)
"""Names of PySpark's own: the bridge to Java, what is behind it, and what Connect has in its place."""

DECLARED = {f"windrow.{name}" for name in _PUBLIC_MODULES}
"""The modules that the package loads on first use."""

MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.fixture(scope="module")
def imported() -> dict[Path, list[tuple[int, str]]]:
    """What each module imports; the package does not import what it declares for type checkers alone."""
    found = {module: list(imports(module)) for module in MODULES}
    own = PACKAGE / "__init__.py"
    found[own] = [(line, name) for line, name in found[own] if name not in DECLARED]
    return found


@pytest.fixture(scope="module")
def graph(imported) -> dict[str, set[str]]:
    """Which modules each module of the package needs."""
    return needed({name_of(module): [name for _, name in names] for module, names in imported.items()})


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


def test_the_package_declares_for_type_checkers_alone_what_it_loads_on_first_use():
    (declared,) = (
        node
        for node in ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8")).body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    )
    names = {
        f"{one.module}.{alias.asname}"
        for one in declared.body
        if isinstance(one, ast.ImportFrom)
        for alias in one.names
        if alias.asname is not None
    }
    assert names == DECLARED


def test_no_modules_import_each_other_in_a_circle(graph):
    assert [" imports ".join(shortest(graph, circle)) for circle in circles(graph)] == []


def test_every_room_of_spark_has_its_place(graph):
    there = {room_of(name.removeprefix(SPARK)) for name in graph if name.startswith(SPARK)}
    assert sorted(there ^ set(SPARK_ROOMS)) == []
    assert len(SPARK_ROOMS) == len(set(SPARK_ROOMS))


def test_a_module_of_spark_imports_only_its_room_and_those_below(graph):
    assert upwards(graph, SPARK_ROOMS) == []


def test_pyspark_is_known_only_where_queries_meet_spark(imported):
    knowing = [module for module, names in imported.items() if roots(names) & {"pyspark", "py4j"}]
    assert [identify(module) for module in knowing if part_of(module) not in MAY_IMPORT_PYSPARK] == []


def test_one_package_knows_what_java_and_connect_have_inside():
    knowing = {
        f"{identify(module)}, line {line}: {name}"
        for module in MODULES
        for line, name in names_in(module.read_text(encoding="utf-8"))
        if INSIDE.fullmatch(name) and not module.is_relative_to(PACKAGE / "spark" / "jvm")
    }
    assert {one for one in knowing if not one.startswith("tracebacks.py")} == set()
    assert [one.rpartition(": ")[2] for one in knowing] == ["py4j"]  # of which no frames are shown


def test_what_java_has_inside_is_found_in_every_form():
    source = (
        "import py4j.protocol\n"
        "frame._jdf.queryExecution()\n"
        "getattr(spark, '_jvm', None)\n"
        "column._expr\n"
        "from py4j.java_gateway import JavaObject\n"
        "_judge(frame)\n"
    )
    found = [(line, name) for line, name in names_in(source) if INSIDE.fullmatch(name)]
    assert found == [(1, "py4j"), (2, "_jdf"), (2, "queryExecution"), (3, "_jvm"), (4, "_expr"), (5, "py4j")]


def test_plans_know_types_of_spark_and_no_session(imported):
    known = {
        name
        for module, names in imported.items()
        for _, name in names
        if part_of(module) == "plan" and name.split(".")[0] in ("pyspark", "py4j")
    }
    assert {name.rpartition(".")[0] for name in known} == {"pyspark.sql.types", "pyspark.sql.pandas.types"}


def test_no_error_chooses_how_a_query_is_run(imported):
    """Ways to run a query say why they do not apply by a value: `Node | Reason`.

    What the reader of queries raises where a text has no nodes stays in its room, and one function there
    makes a value of it: no other module of plans handles any error.
    """
    knowing = {module.parent for module, names in imported.items() if reader_error(names)}
    assert {identify(folder) for folder in knowing} == {"plan/reader"}
    handling = {
        identify(module)
        for module in MODULES
        if part_of(module) == "plan" and handlers(module.read_text(encoding="utf-8"))
    }
    assert handling == {"plan/reader/statement_text.py"}
    statement_text = PACKAGE / "plan" / "reader" / "statement_text.py"
    assert handlers(statement_text.read_text(encoding="utf-8")) == ["attempt"]


def reader_error(names: Sequence[tuple[int, str]]) -> bool:
    return any(name.endswith(".UnreadError") for _, name in names)


def handlers(source: str) -> list[str]:
    """The functions of a module with `try … except` or `suppress`, each as often as it has one."""
    found = []
    for function in ast.walk(ast.parse(source)):
        if isinstance(function, ast.FunctionDef):
            for inner in ast.walk(function):
                is_try = isinstance(inner, ast.Try) and bool(inner.handlers)
                if is_try or (isinstance(inner, ast.Name) and inner.id == "suppress"):
                    found.append(function.name)
    return found


def test_handlers_of_errors_are_found():
    source = (
        "def one():\n    try:\n        pass\n    except ValueError:\n        pass\n"
        "def two():\n    with suppress(ValueError):\n        pass\n"
        "def three():\n    try:\n        pass\n    finally:\n        pass\n"
    )
    assert handlers(source) == ["one", "two"]


def test_kernels_read_no_sql_except_in_the_reference(imported):
    reading = [
        module
        for module, names in imported.items()
        if "sqlglot" in roots(names) and not module.is_relative_to(PACKAGE / "kernels" / "reference")
    ]
    assert [identify(module) for module in reading if part_of(module) in MAY_NOT_IMPORT_SQLGLOT] == []


def test_pickles_are_of_tasks_of_one_query_alone(imported):
    """They can run code when they are read: none is in a file, or from a user."""
    pickling = {
        identify(module)
        for module, names in imported.items()
        if {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
        & {part for _, name in names for part in name.split(".")}
    }
    tasks = ("inbox", "match_phases", "window_phases")
    assert pickling == {f"kernels/tasks/{name}.py" for name in tasks}


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


def test_circles_are_found_in_every_form_of_import(tmp_path):
    sources = {
        "a": "if TYPE_CHECKING:\n    from windrow.b import B\n",
        "b": "def late():\n    import windrow.c\n",
        "c": "from windrow import a\n",
        "above": "from windrow.a import A\n",
        "p": "from windrow.q.leaf import Leaf\n",  # which runs q/__init__.py
        "p.leaf": "from windrow.p.other import Other\n",  # which does not run that of its own package
        "p.other": "",
        "q": "from windrow.p import Leaf\n",
        "q.leaf": "",
    }
    modules = {}
    for name, source in sources.items():
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        modules[f"windrow.{name}"] = [found for _, found in imports(tmp_path / f"{name}.py")]
    graph = needed(modules)
    found = sorted(circles(graph), key=sorted)
    assert found == [{"windrow.a", "windrow.b", "windrow.c"}, {"windrow.p", "windrow.q"}]
    assert shortest(graph, found[0]) == ["windrow.a", "windrow.b", "windrow.c", "windrow.a"]


def test_an_import_of_a_higher_room_is_found():
    graph = {
        "windrow.spark.low": {"windrow.errors", "windrow.spark.low.also", "windrow.spark.live.high.one"},
        "windrow.spark.live.high.one": {"windrow.spark.low", "windrow.spark.live.high.other"},
    }
    assert upwards(graph, ["low", "live.high"]) == ["low imports live.high.one"]


def imports(module: Path, package: Path = PACKAGE) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that a module imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"), module)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module or ""
            if node.level:
                parts = ("windrow", *module.relative_to(package).parts[:-1])
                base = ".".join(parts[: len(parts) - node.level + 1])
                origin = f"{base}.{origin}".rstrip(".")
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def names_in(source: str) -> Iterator[tuple[int, str]]:
    """The lines and names of all attributes and modules, also of those that are asked for as texts."""
    found = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                found.append((node.lineno, name))
            case ast.Import(names=names):
                found += [(node.lineno, part) for each in names for part in each.name.split(".")]
            case ast.ImportFrom(module=str(name)):
                found += [(node.lineno, part) for part in name.split(".")]
    yield from sorted(found)


def name_of(module: Path, package: Path = PACKAGE) -> str:
    """The name under which a module is imported; of an `__init__.py` that of its package."""
    parts = ("windrow", *module.relative_to(package).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def needed(imported: Mapping[str, Iterable[str]]) -> dict[str, set[str]]:
    """Of each module those that it imports, by the names of what it imports.

    Before a module of another package that package's `__init__.py` runs; so it is imported too.
    """
    found: dict[str, set[str]] = {}
    for module, names in imported.items():
        found[module] = set()
        for name in names:
            origin = next((part for part in around(name) if part in imported), module)
            packages = {part for part in around(origin) if part in imported} - set(around(module))
            found[module] |= ({origin} | packages) - {module}
    return found


def around(name: str) -> list[str]:
    """A dotted name, and those of the packages that it is in, from the inside out."""
    parts = name.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def circles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """The sets of modules of which each needs each other: strongly connected components (Tarjan 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        path.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in path:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            at = path.index(node)
            if len(path) - at > 1:
                found.append(set(path[at:]))
            del path[at:]

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


def shortest(graph: Mapping[str, set[str]], circle: set[str]) -> list[str]:
    """A way through the fewest modules of a circle that ends where it begins."""
    ways = {(module, module): [module] for module in sorted(circle)}
    while True:
        longer = [[*way, other] for way in ways.values() for other in sorted(graph[way[-1]] & circle)]
        closed = next((way for way in longer if way[0] == way[-1]), None)
        if closed is not None:
            return closed
        ways = {(way[0], way[-1]): way for way in longer}


def upwards(graph: Mapping[str, set[str]], rooms: Sequence[str]) -> list[str]:
    """The imports inside of `spark` of something in a higher room."""
    order = {room: place for place, room in enumerate(rooms)}
    edges = [
        (module.removeprefix(SPARK), other.removeprefix(SPARK))
        for module, others in graph.items()
        for other in sorted(others)
        if module.startswith(SPARK) and other.startswith(SPARK)
    ]
    return [f"{own} imports {other}" for own, other in edges if order[room_of(other)] > order[room_of(own)]]


def room_of(name: str) -> str:
    """The room of a module of `spark`: a folder or a file in it, of live queries one below."""
    parts = name.split(".")
    return ".".join(parts[:2] if parts[0] == "live" else parts[:1])


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

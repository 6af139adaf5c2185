"""The one Spark session that all tests share, and the mark on those that use it."""

from __future__ import annotations

import math
import os
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from _pytest.unittest import TestCaseFunction
from hypothesis import is_hypothesis_test, settings

from tests.costs import Costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes is the machine's affair, on which other things run. Random examples are the same
# in every run, so that a change fails by itself and not by luck; `WINDROW_EXAMPLES` asks for others.
settings.register_profile("windrow", deadline=None, derandomize="WINDROW_EXAMPLES" not in os.environ)
settings.load_profile("windrow")

# Programs that tests start keep what Python compiles, whatever the shell says: it is half of their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# And compiling a query's Java code takes longer than running small data through the same code interpreted
# would save: the first tier of the compiler is enough, and one thread to collect garbage. With the first tier
# alone Java has room for the code of a hundred tests, and would compile Spark again and again after that;
# room for classes that it grows by little and little has it collect all garbage each time.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS",
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m -XX:MetaspaceSize=256m",
)

FEW = 32
"""`--few` tries one of so many random examples,"""
SAMPLE = 12
"""one of so many written ones where a test is marked as `sampled`, or as many as the mark says,"""
MANY, EIGHTH = 4, 8
"""and on Spark one of eight of any other test that has four or more of them."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--few",
        action="store_true",
        help=f"one of {FEW} random examples of each property, and a part of those written of a test on Spark",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("few"):  # the plans of examples that are left out are of use all the same
        config.option.warn_unused_snapshots = True
    if not hasattr(config, "workerinput"):  # of which the process that started it hears
        config.pluginmanager.register(Costs(config.rootpath / "build" / "test-costs.txt"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = {}
    for item in items:
        # Tests that start a JVM in another way carry the mark in their source.
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.obj):
            item.add_marker(pytest.mark.property)
            # Where Hypothesis keeps the settings of a state machine, and of a function.
            machine = isinstance(item, TestCaseFunction)
            at = (item.cls, "settings") if machine else (item.function, "_hypothesis_internal_use_settings")
            chosen[at] = getattr(*at) or settings.default
    asked = int(os.environ.get("WINDROW_EXAMPLES", 0))
    for at, full in chosen.items():
        count = max(full.max_examples, asked)
        # Few are the first of those that are tried otherwise.
        few = max(count // FEW, 2) if config.getoption("few") else count
        setattr(*at, settings(full, max_examples=min(few, count)))
    if config.getoption("few"):
        _sample_written({id(item.obj): item.obj for item in items if item.get_closest_marker("spark")})
        _sample(config, items)
    _long_ones_first(items)


def _sample_written(tests: dict[int, Any]) -> None:
    """Of the examples that are written for a property on Spark, as of what failed once, try one of twelve."""
    for test in tests.values():
        written = getattr(test, "hypothesis_explicit_examples", None)
        if written is not None:
            written[:] = written[::SAMPLE]


def _sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out most of the written examples where a test on Spark, or one that is marked, has many."""
    tests: dict[tuple[Path, str, int], list[pytest.Item]] = {}
    for item in items:
        mark = item.get_closest_marker("sampled")
        every = EIGHTH if mark is None else mark.kwargs.get("every", SAMPLE)
        if mark is not None or (item.get_closest_marker("spark") and hasattr(item, "callspec")):
            tests.setdefault((item.path, getattr(item, "originalname", item.name), every), []).append(item)
    left: list[pytest.Item] = []
    for (*_, every), examples in tests.items():
        is_marked = examples[0].get_closest_marker("sampled") is not None
        if is_marked or len(examples) >= MANY:
            step = _step(examples, every)
            left += [item for at, item in enumerate(examples) if at % step]
    config.hook.pytest_deselected(items=left)
    out = set(map(id, left))
    items[:] = [item for item in items if id(item) not in out]


def _step(examples: list[pytest.Item], every: int) -> int:
    """A step of at least this length that meets all values of each parameter: with a step of twelve, one of
    two modes would never be met.
    """
    indices = [item.callspec.indices for item in examples if hasattr(item, "callspec")]
    sequences = {tuple(one[name] for one in indices) for name in indices[0]} if indices else set()
    sizes = sorted(len(set(one)) for one in sequences)[:-1]  # the longest parameter has more than are tried
    while any(math.gcd(every, size) > 1 for size in sizes):
        every += 1
    return every


def _long_ones_first(items: list[pytest.Item]) -> None:
    """Begin with files that have slow tests, then with those of many: none is left for one process alone."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)

    def is_quick(tests: list[pytest.Item]) -> bool:
        return not any(item.get_closest_marker("slow") for item in tests)

    ordered = sorted(files.values(), key=lambda tests: (is_quick(tests), -len(tests)))
    items[:] = [item for tests in ordered for item in tests]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Drop the temporary views that a file's tests leave in the shared session."""
    yield
    spark = getattr(item, "funcargs", {}).get("spark")
    if spark is not None and nextitem is not None and nextitem.path != item.path:
        for view in spark.sql("SHOW VIEWS").collect():
            if view.isTemporary:
                spark.catalog.dropTempView(view.viewName)


def names_are_kept() -> None:
    """Have Python ask Java once what a name of a class, package or static method stands for.

    PySpark asks at each call, and for each part of a name of which there is no class Java goes through all of
    Spark's archives: a fourteenth of all that Java does in tests.
    """
    from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView

    def kept(found: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
        def attribute(self: Any, name: str) -> Any:
            value = found(self, name)
            if isinstance(value, (JavaClass, JavaMember, JavaPackage)):
                vars(self)[name] = value  # where it is found the next time
            return value

        return attribute

    for kind in (JavaClass, JavaPackage, JVMView):
        kind.__getattr__ = kept(kind.__getattr__)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    # Imported here, so that the tests without Spark do not wait for PySpark.
    from windrow.spark.runtime.local import local_session

    names_are_kept()
    session = local_session(
        # Two cores: the least at which tasks run beside each other, and no more on any machine, so that
        # partitions and plans are the same everywhere.
        master="local[2]",
        app_name="windrow tests",
        conf={
            # Small data: every further partition is only a task to start. Two, so that rows still move, which
            # Spark does not merge.
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1b",
            "spark.default.parallelism": "2",
            "spark.windrow.task.rows": "1",
            # Small data again, and several suites may run on one machine.
            "spark.driver.memory": "1g",
            # Timestamps print the same wherever the tests run; tests about zones set their own.
            "spark.sql.session.timeZone": "UTC",
            # A session of some thousand queries otherwise keeps plans and metrics of the last thousand.
            "spark.sql.ui.retainedExecutions": "1",
            "spark.ui.retainedJobs": "20",
            "spark.ui.retainedStages": "1",
            # Python processes serve all sessions instead of those of one: each takes seconds to start.
            "spark.sql.artifact.isolation.enabled": "false",
            # Of each query Spark also writes its plan down, for a page that nobody looks at.
            "spark.sql.ui.explainMode": "simple",
        },
    )
    yield session
    session.stop()


class _Settings:
    """The settings with which the shared session has begun; each test is to leave it so."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark, self._begun = spark, spark.conf.getAll
        # Each name that is looked up, and each entry of a map, is a round trip to Java.
        self._sessions = spark._jvm.org.apache.spark.sql.classic.SparkSession
        self._conf = spark._jsparkSession.sessionState().conf()
        self._rules = spark._jvm.org.apache.spark.sql.catalyst.rules.RuleExecutor
        self._shown = self._show()

    def _show(self) -> str:
        return self._conf.getAllConfs().toString()

    def activate(self) -> None:
        # Spark adds up the times of all rules that it has ever applied, eight times for each batch of them.
        self._rules.resetMetrics()
        self._sessions.setActiveSession(self._spark._jsparkSession)
        type(self._spark)._activeSession = self._spark

    def restore(self) -> None:
        if self._show() == self._shown:
            return
        conf, found = self._spark.conf, self._spark.conf.getAll
        for name in found.keys() - self._begun.keys():
            conf.unset(name)
        for name, value in self._begun.items():
            if found.get(name) != value and conf.isModifiable(name):
                conf.set(name, value)
        self._begun, self._shown = conf.getAll, self._show()


@pytest.fixture(scope="session")
def _settings(spark: SparkSession) -> _Settings:
    return _Settings(spark)


@pytest.fixture(autouse=True)
def _settings_stay(request: pytest.FixtureRequest) -> Iterator[None]:
    """Leave the shared session as each test found it: its settings, and that it is the active one.

    Which tests share a process differs from run to run, so what one leaves would fail another by chance.
    """
    if "spark" not in request.fixturenames:
        yield
        return
    settings = request.getfixturevalue("_settings")
    settings.activate()
    yield
    settings.restore()


@pytest.fixture
def conf(spark) -> Iterator[Callable[[str, str], None]]:
    """Sets options of the session for one test."""
    before: dict[str, str | None] = {}

    def change(name: str, value: str) -> None:
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.fixture
def interpreted(conf: Callable[[str, str], None]) -> None:
    """Has Spark read plans instead of compiling them: sooner done for many plans over a few rows each."""
    conf("spark.sql.codegen.wholeStage", "false")
    conf("spark.sql.codegen.factoryMode", "NO_CODEGEN")
    conf("spark.sql.adaptive.enabled", "false")


@pytest.fixture(scope="session")
def path_without_java(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A value of PATH with every program of the machine's except Java."""
    directory = tmp_path_factory.mktemp("bin")
    for entry in os.environ["PATH"].split(os.pathsep):
        for program in Path(entry).glob("*") if entry else ():
            link = directory / program.name
            if not program.name.startswith("java") and not link.is_symlink():
                link.symlink_to(program.resolve())
    return str(directory)


@pytest.fixture(scope="session")
def python_without_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python that has Windrow's source and nothing that Windrow depends on."""
    environment = tmp_path_factory.mktemp("bare")
    venv.create(environment, symlinks=True)
    (site_packages,) = environment.glob("lib/python*/site-packages")
    source = Path(__file__).parents[1] / "src"
    (site_packages / "source.pth").write_text(f"{source}\n", encoding="utf-8")
    return environment / "bin" / "python"

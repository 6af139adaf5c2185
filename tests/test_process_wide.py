"""What is the process's is the user's: its streams, signals, loggers, warnings, environment, search path."""

from __future__ import annotations

import ast
import logging
import os
import sys
import threading
import warnings
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException

from tests.test_imports import imports, name_of, needed
from windrow import Memory, Session, WindrowError
from windrow.spark.runtime.quiet import quiet

PACKAGE = Path(__file__).parents[1] / "src" / "windrow"
MODULES = {name_of(module): module for module in sorted(PACKAGE.rglob("*.py"))}
PROGRAM = "windrow.cli.main"
"""The command line, a process of its own; notebooks read the options of its commands and run none of them."""


def library() -> list[Path]:
    """The modules that run in a user's process: all but the command line, and what notebooks need of that."""
    graph = needed({name: [one for _, one in imports(module)] for name, module in MODULES.items()})
    found = {name for name in MODULES if not name.startswith("windrow.cli")}
    waiting = [name for name in found if name.startswith("windrow.notebook")]
    while waiting:
        new = {name for name in graph[waiting.pop()] if name != PROGRAM} - found
        found |= new
        waiting += new
    return [MODULES[name] for name in sorted(found)]


LIBRARY = library()

CHANGING = (
    *("contextlib.redirect_stdout", "contextlib.redirect_stderr", "contextlib.chdir"),
    *("signal.signal", "signal.pthread_sigmask", "signal.alarm", "signal.setitimer", "signal.set_wakeup_fd"),
    *("logging.disable", "logging.basicConfig", "logging.config", "logging.captureWarnings"),
    *("logging.setLoggerClass", "logging.setLogRecordFactory", "logging.addLevelName", "logging.root"),
    # `catch_warnings` puts back the filters that other threads have set meanwhile
    *(
        "warnings.simplefilter",
        "warnings.filterwarnings",
        "warnings.resetwarnings",
        "warnings.catch_warnings",
    ),
    *("os.dup2", "os.putenv", "os.unsetenv", "os.chdir", "os.fchdir", "os.umask", "os.nice", "os.environ"),
    *("os.register_at_fork", "os.setpgid", "os.setsid", "resource.setrlimit", "time.tzset"),
    *("sys.path", "sys.modules", "sys.meta_path", "sys.path_hooks", "sys.setrecursionlimit"),
    *(
        "sys.setswitchinterval",
        "sys.setprofile",
        "sys.settrace",
        "sys.addaudithook",
        "sys.set_asyncgen_hooks",
    ),
    *("threading.setprofile", "threading.settrace", "threading.stack_size", "faulthandler.enable"),
    *("gc.disable", "gc.set_threshold", "gc.freeze", "locale.setlocale", "socket.setdefaulttimeout"),
    *("random.seed", "numpy.random.seed", "numpy.seterr", "numpy.set_printoptions", "decimal.setcontext"),
    *("pandas.set_option", "pandas.options", "pyarrow.set_cpu_count", "pyarrow.set_io_thread_count"),
    *("pyarrow.set_memory_pool", "multiprocessing.set_start_method", "atexit.register"),
)
"""What changes the process, or may; some of it may also only be read, which the list below says."""
_CHANGING = set(CHANGING)

ALLOWED = {
    ("caches.py", "os.environ"): "read: where the user wants caches to be",
    ("doctor.py", "os.environ"): "read: SPARK_HOME, and for a process of its own",
    ("cli/keep_java_classes.py", "atexit.register"): "Java's classes are stored when the process has ended",
    ("cli/keep_java_classes.py", "os.environ"): "read, and for a process of its own",
    ("cli/keep_java_classes.py", "os.nice"): "in a process of its own, which stores Java's classes",
    ("cli/output/terminal.py", "os.environ"): "read: what the terminal can show",
    ("notebook/panels.py", "atexit.register"): "panels that wait wake up, so that the process can end",
    ("kernels/stored.py", "sys.modules"): "read: which classes of ours there are",
    ("spark/runtime/java.py", "os.environ"): "read: JAVA_HOME",
    (
        "spark/runtime/java.py",
        "atexit.register",
    ): "the launcher of Java is deleted, where no cache can hold it",
    ("spark/runtime/java_classes.py", "os.environ"): "read, and for processes of its own",
    ("tracebacks.py", "os.environ"): "read: whether the user wants all frames",
    ("streams/row_arguments.py", "sys.modules"): "read: whether pandas was imported",
    (
        "spark/runtime/local.py",
        "atexit.register",
    ): "the folders of the session that Windrow makes are deleted",
    ("spark/runtime/local.py", "os.environ"): "while Java is started, for Java; then it is put back",
    ("spark/live/query.py", "atexit.register"): "queries that run are stopped",
    ("spark/logs/named_in_session.py", "atexit.register"): "the session's producers leave their streams",
    (
        "spark/runtime/temporary.py",
        "atexit.register",
    ): "the folders of queries without a checkpoint are deleted",
    (
        "spark/logs/log_source.py",
        "sys.modules",
    ): "whether it is PySpark's daemon, for no trace",
    (
        "spark/runtime/worker_daemon.py",
        "pyspark.daemon.worker",
    ): "in a process of its own, from which workers come",
}
"""What is there all the same, and why."""


def test_nothing_that_is_the_processs_is_changed():
    found = {
        (str(module.relative_to(PACKAGE)), what) for module in LIBRARY for what in changes(module.read_text())
    }
    assert found - ALLOWED.keys() == set()
    assert ALLOWED.keys() - found == set()  # what has gone leaves the list


def test_the_check_sees_what_notebooks_need_of_the_command_line():
    seen = {str(module.relative_to(PACKAGE)) for module in LIBRARY}
    assert {"notebook/magics.py", "cli/connection.py", "cli/output/terminal.py"} <= seen
    assert not {"cli/java_process.py", "cli/reporting.py"} & seen  # they change signal handlers


def test_the_check_sees_every_form_of_change():
    source = (
        "import sys, os.path\n"
        "import warnings as w\n"
        "from contextlib import redirect_stdout as r\n"
        "from signal import signal\n"
        "import windrow.session\n"
        "sys.stdout = None\n"
        "def f():\n"
        "    import logging\n"
        "    logging.disable()\n"
        "    w.showwarning, x = None, 1\n"
        "    del os.environ['X']\n"
        "    windrow.session.x = x.y = 2\n"
        "    sys.stderr.write(sys.argv[0])\n"
        "    with r(None): signal(1, 2)\n"
    )
    assert sorted(changes(source)) == [
        *("contextlib.redirect_stdout", "logging.disable", "os.environ", "signal.signal"),
        *("sys.stdout", "warnings.showwarning"),
    ]


def test_what_a_program_prints_beside_live_queries_is_all_there(spark, tmp_path, capsys):
    folder = tmp_path / "arriving"
    folder.mkdir()
    pq.write_table(pa.table({"t": [3, 7], "k": ["a", "b"]}), folder / "0.parquet")
    session = Session(spark)
    session.stream(
        "printed",
        spark.readStream.schema("t bigint, k string").parquet(str(folder)),
        rowtime="t",
        unit="seconds",
    )
    query = session.sql("SELECT k, COUNT(*) AS n FROM printed GROUP BY k EMIT STREAM").start(Memory())
    plans: list[str] = []

    def ask() -> None:
        for _ in range(5):
            plans.append(session.sql("SELECT 1 AS one").plan(spark=True))

    def process() -> None:
        query.process_all_available()

    at_work = [threading.Thread(target=ask), threading.Thread(target=process)]
    for thread in at_work:
        thread.start()
    printed = 0
    while alive := [thread for thread in at_work if thread.is_alive()]:
        print("line", printed)
        printed += 1
        alive[0].join(0.001)
    query.stop()
    spark.catalog.dropTempView("printed")
    assert capsys.readouterr().out.splitlines() == [f"line {number}" for number in range(printed)]
    assert len(plans) == 5
    assert all("== Physical Plan ==" in plan for plan in plans)


def test_errors_of_spark_are_kept_from_the_log_in_the_thread_that_makes_them_ours_alone(spark):
    logger = logging.getLogger("SQLQueryContextLogger")
    logged: list[str] = []

    class Kept(logging.Handler):
        def emit(self, _: logging.LogRecord) -> None:
            logged.append(threading.current_thread().name)

    def fail() -> None:
        with pytest.raises(AnalysisException):
            spark.sql("SELECT nothing")

    with quiet():
        fail()
    handler, others = Kept(), logger.handlers[:]
    logger.handlers[:] = [handler]  # and nothing of this test on stderr
    try:
        with quiet():
            fail()
            thread = threading.Thread(target=fail, name="the user's")
            thread.start()
            thread.join()
        assert logged == ["the user's"]
        fail()
        assert logged == ["the user's", threading.current_thread().name]
        assert not logger.disabled
    finally:
        logger.handlers[:] = others


def test_a_session_leaves_the_process_and_the_users_spark_as_they_were(spark):
    def seen() -> tuple[object, ...]:
        streams = sys.stdout, sys.stderr, sys.excepthook, threading.excepthook, warnings.showwarning
        views = {row.viewName for row in spark.sql("SHOW VIEWS").collect()}
        threads = {thread for thread in threading.enumerate() if not thread.daemon}
        loggers = logging.root.level, logging.root.handlers[:], logging.root.manager.disable
        environment, path, filters = dict(os.environ), sys.path[:], warnings.filters[:]
        return streams, environment, path, filters, loggers, threads, views, spark.conf.getAll

    before = seen()
    session = Session(spark)
    rows = "FROM VALUES (1, 1), (2, 2) AS r (t, v)"
    session.sql(
        f"WITH r AS (SELECT * {rows}) SELECT s.t FROM r WINDOW BY w AS"
        " (TYPE SLIDING ORDER BY t START AS s END AS e WHEN e.v > s.v)"
    ).show()
    with pytest.raises(WindrowError, match="UNRESOLVED_COLUMN"):
        session.sql(f"SELECT nothing {rows}")
    assert seen() == before


def changes(source: str) -> set[str]:
    """What of the process's a module names that changes it, and what of other modules it assigns to."""
    tree = ast.parse(source)
    modules, found = {}, set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.split(".")[0]
                modules[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and not node.level:
            modules |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    for node in ast.walk(tree):
        if not isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            continue
        # an item that is assigned is a change of what has it
        name = full_name(node.value if isinstance(node, ast.Subscript) else node, modules)
        parts = name.split(".")
        changed = {".".join(parts[:length]) for length in range(1, len(parts) + 1)} & _CHANGING
        found |= changed
        # of ours, that is no change of what is the process's
        if isinstance(node.ctx, (ast.Store, ast.Del)) and name and not changed and parts[0] != "windrow":
            found.add(name)
    return found


def full_name(node: ast.AST, modules: dict[str, str]) -> str:
    """The name of what is an attribute of a module, or from one; empty for anything else."""
    parts: list[str] = []
    is_local = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name) or node.id not in modules or is_local:
        return ""
    return ".".join([modules[node.id], *reversed(parts)])

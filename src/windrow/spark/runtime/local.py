"""The Spark session that Windrow makes if the user has none."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession

from windrow.errors import UsageError
from windrow.spark.jvm.process import delete_at_end
from windrow.spark.runtime import java_classes
from windrow.spark.runtime.java import ensure_java, quiet_home
from windrow.spark.runtime.settings import STATE_STORE

__all__ = ["JAVA_OPTIONS", "local_cores", "local_session"]


def local_session(
    *,
    master: str = "local[*]",
    conf: Mapping[str, str] | None = None,
    app_name: str = "windrow",
) -> SparkSession:
    """A Spark session that runs on this machine, is silent, and leaves no files behind.

    If this process already has a session, that one is returned, as by ``SparkSession.builder.getOrCreate``.
    Its `master` and `app_name` do not change; `conf` is set on it, but none of Windrow's own settings.

    Parameters
    ----------
    master
        As in Spark. With a master on another machine, only the settings that suit any cluster are made.
    conf
        Spark settings; each takes precedence over the one that Windrow would make, except that
        ``spark.driver.extraJavaOptions`` is appended to Windrow's.
    app_name
        The application's name in Spark.

    Raises
    ------
    UsageError
        ``NO_JAVA``, see :func:`windrow.spark.runtime.java.ensure_java`; ``SPARK_CONNECT_REQUESTED`` where the
        environment selects a Spark Connect server.
    """
    user_conf = dict(conf or {})
    existing = _existing_session()
    if existing is not None:
        for key, value in user_conf.items():
            # Spark refuses to set what only the start of a session can, even to the same value.
            if existing.conf.get(key, None) != value:
                existing.conf.set(key, value)
        return existing
    if remote := os.environ.get("SPARK_REMOTE"):
        raise UsageError(
            f"the environment variable SPARK_REMOTE asks for a Spark Connect session ({remote})",
            condition="SPARK_CONNECT_REQUESTED",
            hint="unset it, or make that session with SparkSession.builder and pass it to windrow.Session",
        )
    java = ensure_java()
    settings = _settings(master)
    if archive_options := java_classes.options(java):
        settings[JAVA_OPTIONS] += f" {archive_options}"
    if options := user_conf.pop(JAVA_OPTIONS, ""):
        settings[JAVA_OPTIONS] += f" {options}"
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in (settings | user_conf).items():
        builder = builder.config(key, value)
    started_with = {"JAVA_HOME": str(quiet_home(java.home, java.version))}
    # Spark would start Python workers with ``python3`` from PATH, which has another version, or lacks the
    # packages, more often than not. Empty where Python is embedded in another program.
    if sys.executable:
        started_with |= dict.fromkeys(("PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"), sys.executable)
    with _environment(started_with):
        try:
            session = builder.getOrCreate()
        except PySparkRuntimeError as error:
            ended = error.getCondition() == "JAVA_GATEWAY_EXITED"
            if not (archive_options and ended and java_classes.forget_damaged(java)):
                raise
            session = builder.config(
                JAVA_OPTIONS, settings[JAVA_OPTIONS].replace(archive_options, "")
            ).getOrCreate()
    for directory in _temporary:  # which stay where a signal ends this process
        delete_at_end(session, directory)
    return session


JAVA_OPTIONS = "spark.driver.extraJavaOptions"


def _existing_session() -> SparkSession | None:
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        # NO_ACTIVE_OR_DEFAULT_SESSION
        return None


def _settings(master: str) -> dict[str, str]:
    settings = {
        # The same as in the environment, for the processes that read the setting.
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        # Workers whose remaining output is not read, as after a LIMIT, end without a trace.
        "spark.python.daemon.module": "windrow.spark.runtime.worker_daemon",
        # The log is Windrow's: errors only, and no announcement of where its configuration comes from.
        # A URI has no spaces, whatever the path, and so is one argument.
        JAVA_OPTIONS: f"-Dlog4j2.configurationFile={_LOG_CONFIGURATION.as_uri()}",
        # The bar is drawn over whatever else the terminal shows; the command line has its own.
        "spark.ui.showConsoleProgress": "false",
        # A web server on a port is nothing that a library should open unasked; it also costs start-up time.
        "spark.ui.enabled": "false",
        # State larger than memory, and the state of live queries on executors.
        **STATE_STORE,
        # Rows reach pandas as Arrow columns: many times faster, and decimals and times as they are.
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    cores = local_cores(master)
    if cores is not None:
        settings |= {
            # Everything runs on this machine: what Spark opens for itself is not to be reached from others,
            # and works without a network and whatever the host's name resolves to.
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            # Spark's 200 shuffle partitions suit a cluster. Two a core leave little to wait for when one
            # task is longer than the others.
            "spark.sql.shuffle.partitions": str(2 * cores),
            # In local mode the driver does the executors' work too, for which Spark's 1 GB is little.
            # A quarter, as the Java machine's own default: Python workers need room beside it.
            "spark.driver.memory": f"{_heap_megabytes()}m",
            # Tables without a path live as long as the session: no metastore_db, derby.log or
            # spark-warehouse in whatever directory the user is in.
            "spark.sql.catalogImplementation": "in-memory",
            "spark.sql.warehouse.dir": _temporary_directory("warehouse").as_uri(),
        }
        sockets = _temporary_directory("sockets")
        if hasattr(socket, "AF_UNIX") and len(str(sockets)) <= _LONGEST_DIRECTORY:
            # Rows cross between Java and Python faster than through the loopback interface.
            settings |= {
                "spark.python.unix.domain.socket.enabled": "true",
                "spark.python.unix.domain.socket.dir": str(sockets),
            }
    return settings


_LONGEST_DIRECTORY = 60  # characters: a socket's path has 104 on some systems, of which Spark takes 42
_LOG_CONFIGURATION = Path(__file__).with_name("log4j2.properties")


def local_cores(master: str) -> int | None:
    """How many tasks run at the same time if `master` is this machine, else None.

    >>> local_cores("local"), local_cores("local[3]"), local_cores("local[4,2]")
    (1, 3, 4)
    >>> local_cores("local-cluster[2,3,1024]"), local_cores("spark://host:7077")
    (6, None)
    """
    if master == "local":
        return 1
    if threads := re.fullmatch(r"local\[\s*(\*|\d+)\s*(?:,\s*\d+\s*)?\]", master):
        return (os.cpu_count() or 1) if threads[1] == "*" else int(threads[1])
    if cluster := re.fullmatch(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]", master):
        return int(cluster[1]) * int(cluster[2])
    return None


def _heap_megabytes() -> int:
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2**20
    except (AttributeError, ValueError, OSError):
        # Windows has no such call.
        physical = 4096
    return min(max(physical // 4, 1024), 8192)


def _temporary_directory(what: str) -> Path:
    directory = Path(tempfile.mkdtemp(prefix=f"windrow-{what}-")).resolve()
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    _temporary.append(directory)
    return directory


_temporary: list[Path] = []


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for processes that the block starts, and restore them at its end."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

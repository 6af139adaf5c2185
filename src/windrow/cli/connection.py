"""The session that a command runs in: which Spark, with which settings and tables."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from windrow.errors import ExecutionError, UsageError, WindrowError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.session import Session

__all__ = [
    "Connection",
    "SessionFactory",
    "cancel",
    "connection",
    "open_session",
    "start_spark",
    "with_table_hint",
]

_CONNECT_PORT = 15002
_CONNECT_PATIENCE = 5.0
_CANCEL_PATIENCE = 3.0


@dataclass(frozen=True)
class Connection:
    """What the command line says about the session.

    Attributes
    ----------
    master
        As Spark takes it, or ``sc://…`` for a Spark Connect server.
    conf
        Spark's settings.
    tables
        The paths of each table by its name.
    formats
        The formats of tables by name; under the empty name, that of the tables without one.
    """

    master: str
    conf: dict[str, str] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)


SessionFactory = Callable[[Connection], "SparkSession"]
"""Makes the SparkSession of a command; tests put theirs in the place of the one that starts Spark."""


def connection(
    master: str,
    conf: Sequence[str] | None,
    tables: Sequence[str] | None,
    table_formats: Sequence[str] | None,
) -> Connection:
    """Read the values of ``--master``, ``--conf``, ``--table`` and ``--table-format``.

    Raises
    ------
    UsageError
        ``MALFORMED_OPTION`` for what is not ``NAME=VALUE``; ``UNKNOWN_TABLE`` for the format of a table
        that is not attached.
    """
    paths: dict[str, list[str]] = {}
    for given in tables or ():
        name, path = _pair("--table", given, "readings=data/*.parquet")
        # Named twice, it is one table of several files.
        paths.setdefault(name, []).append(path)
    formats: dict[str, str] = {}
    for given in table_formats or ():
        name, form = ("", given) if "=" not in given else _pair("--table-format", given, "readings=csv")
        if name and name not in paths:
            raise UsageError(
                f"--table-format {given} is for a table that is not attached",
                condition="UNKNOWN_TABLE",
                hint=did_you_mean(name, paths) or f"attach it with --table {name}=PATH",
            )
        formats[name] = form
    settings = dict(_pair("--conf", given, "spark.sql.session.timeZone=UTC") for given in conf or ())
    return Connection(master, settings, paths, formats)


def open_session(asked: Connection, factory: SessionFactory | None = None) -> Session:
    """Start or reach Spark, and attach the tables.

    Raises
    ------
    WindrowError
        What starting Spark or reading a table raises.
    """
    from windrow.session import Session

    session = Session((factory or start_spark)(asked))
    for name, paths in asked.tables.items():
        session.register(name, paths, format=asked.formats.get(name) or asked.formats.get(""))
    return session


def with_table_hint(error: WindrowError, tables: Sequence[str]) -> WindrowError:
    """The error; where it is about a table that does not exist, with a hint that names those attached."""
    if error.condition != "TABLE_OR_VIEW_NOT_FOUND" or error.hint:
        return error
    context = error.getQueryContext()
    name = context[0].fragment().strip("`") if context else ""
    if not tables:
        error.hint = f"attach its files with --table {name or 'NAME'}=PATH"
    else:
        error.hint = did_you_mean(name, tables) or f"tables attached are {', '.join(tables)}"
    return error


def cancel(session: Session | None) -> None:
    """Stop what the session is computing, as far as Spark answers within seconds.

    Another thread tells Spark: Ctrl-C may have come while this one was in the middle of telling it something.
    """
    if session is None:
        return
    told = threading.Thread(target=_cancel, args=(session,), name="windrow cancel", daemon=True)
    told.start()
    told.join(_CANCEL_PATIENCE)


def _cancel(session: Session) -> None:
    # A Spark that is gone needs no cancelling, and the user no trace.
    with suppress(Exception):
        _tell_to_cancel(session.spark)


def _tell_to_cancel(spark: SparkSession) -> None:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.interruptAll()
    else:
        # Tasks end some time after their job; what Spark then logs about results nobody takes is no news.
        spark.sparkContext.setLogLevel("OFF")
        spark.sparkContext.cancelAllJobs()


def _pair(option: str, given: str, example: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise UsageError(
            f"{option} {given} is not NAME=VALUE",
            condition="MALFORMED_OPTION",
            hint=f"write {option} {example}",
        )
    return name.strip(), value.strip()


def start_spark(asked: Connection) -> SparkSession:
    """The SparkSession that the command line asks for: one of this machine, a cluster's, or a server's."""
    from windrow.spark.local import local_session

    if not asked.master.startswith("sc://"):
        return local_session(master=asked.master, conf=asked.conf)
    from pyspark.sql import SparkSession

    _reachable(asked.master)
    builder = SparkSession.builder.remote(asked.master)
    for key, value in asked.conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _reachable(url: str) -> None:
    """Find out in seconds that nobody answers, which Spark's client takes many minutes to give up on."""
    try:
        place = urlsplit(url)
        host, port = place.hostname or "localhost", place.port or _CONNECT_PORT
    except ValueError:
        raise UsageError(
            f"--master {url} is not a URL", condition="MALFORMED_OPTION", hint="write sc://host:15002"
        ) from None
    try:
        socket.create_connection((host, port), timeout=_CONNECT_PATIENCE).close()
    except OSError as error:
        raise ExecutionError(
            f"no Spark Connect server answers at {host}:{port}: {(error.strerror or str(error)).lower()}",
            condition="SERVER_NOT_REACHED",
            sqlstate="08001",
            hint="start one with sbin/start-connect-server.sh, or leave --master out to run on this machine",
        ) from None

"""The session of a command: which Spark, with which settings, tables and streams."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from windrow.errors import ExecutionError, UsageError, WindrowError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.session import Session

__all__ = [
    "OF_STREAMS",
    "Connection",
    "SessionFactory",
    "cancel",
    "connection",
    "open_session",
    "start_spark",
    "values",
    "with_tables",
]

_CONNECT_PORT = 15002
_CONNECT_PATIENCE = 5.0
_CANCEL_PATIENCE = 3.0
_PARAM = "low=25"
_EXAMPLES = {
    "rowtime": "bids=bidtime",
    "rowtime_unit": "bids=seconds",
    "ptime": "bids=arrived",
    "producer": "bids=site",
    "bound": "bids=bound",
    "on_late": "bids=fail",
}
OF_STREAMS = tuple(_EXAMPLES)
"""The options about a stream, as the commands' parameters are named."""
_ARGUMENTS = {option: option for option in OF_STREAMS} | {"rowtime_unit": "unit"}
_NUMBER = re.compile(r"-?\d+")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LITERAL = re.compile(
    r"""-? (\d+\.?\d*|\.\d+) (e[+-]?\d+)? (bd|[lsyfd])?
      | true | false | null
      | ((date|timestamp(_ntz|_ltz)?) \s*)? ('([^'\\]|\\.|'')*' | "([^"\\]|\\.|"")*")""",
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class Connection:
    """The options of the command line about the session.

    Attributes
    ----------
    master
        As Spark takes it, or ``sc://…`` for a Spark Connect server.
    conf
        Spark's settings.
    tables
        The paths of each table by its name.
    formats
        The formats of tables by name; under the empty name, that of all other tables.
    params
        The values of the query's parameters, as the user wrote them.
    streams
        The path of each stream by its name.
    of_streams
        The options of `OF_STREAMS`, each by the names of streams like `formats`.
    attach
        The option or command that attaches a table, for hints.
    """

    master: str
    conf: dict[str, str] = field(default_factory=dict)
    tables: dict[str, list[str]] = field(default_factory=dict)
    formats: dict[str, str] = field(default_factory=dict)
    params: dict[str, str] = field(default_factory=dict)
    streams: dict[str, str] = field(default_factory=dict)
    of_streams: dict[str, dict[str, str]] = field(default_factory=dict)

    def format(self, table: str) -> str | None:
        """The format that the user named for a table, if any."""
        return self.formats.get(table) or self.formats.get("")

    def of_stream(self, name: str) -> dict[str, Any]:
        """The arguments of :meth:`windrow.Session.stream` for a stream."""
        chosen = {
            _ARGUMENTS[option]: given.get(name) or given.get("") for option, given in self.of_streams.items()
        }
        found: dict[str, Any] = {argument: value for argument, value in chosen.items() if value is not None}
        bound = found.get("bound", "")
        return found | ({"bound": int(bound)} if _NUMBER.fullmatch(bound) else {})

    attach: str = "--table"


SessionFactory = Callable[[Connection], "SparkSession"]
"""Makes the SparkSession of a command; tests pass one that starts no Spark."""


def connection(
    master: str,
    conf: Sequence[str] | None,
    tables: Sequence[str] | None = None,
    table_formats: Sequence[str] | None = None,
    params: Sequence[str] | None = None,
    streams: Sequence[str] | None = None,
    of_streams: Sequence[Sequence[str] | None] = (),
) -> Connection:
    """Read the values of the options: ``--master``, ``--conf``, ``--table``, ``--param`` and so on.

    Those of each stream are in the order of `OF_STREAMS`.

    Raises
    ------
    UsageError
        ``MALFORMED_OPTION`` for a value that is not ``NAME=VALUE``; ``UNKNOWN_TABLE`` for the format of a
        table that is not attached.
    """
    paths: dict[str, list[str]] = {}
    for text in tables or ():
        name, path = _pair("--table", text, "readings=data/*.parquet")
        # a name that occurs twice is one table of several files
        paths.setdefault(name, []).append(path)
    logs = dict(_pair("--stream", text, "s=stream.cql") for text in streams or ())
    formats = _of_each("--table-format", table_formats, "readings=csv", paths)
    declared = {
        option: _of_each(f"--{option.replace('_', '-')}", texts, example, logs)
        for (option, example), texts in zip(_EXAMPLES.items(), of_streams, strict=False)
    }
    settings = dict(_pair("--conf", text, "spark.sql.session.timeZone=UTC") for text in conf or ())
    named = dict(_pair("--param", text, _PARAM) for text in params or ())
    for name in named:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--param {name} does not name a parameter",
                condition="MALFORMED_OPTION",
                hint=f"write --param {_PARAM} for the :low of the query",
            )
    return Connection(master, settings, paths, formats, named, logs, declared)


def _of_each(
    option: str, texts: Sequence[str] | None, example: str, names: Mapping[str, Any]
) -> dict[str, str]:
    """The values of an option by the names of tables or streams; under the empty name, for all others."""
    what = "table" if option == "--table-format" else "stream"
    found: dict[str, str] = {}
    for text in texts or ():
        name, value = ("", text) if "=" not in text else _pair(option, text, example)
        if name and name not in names:
            raise UsageError(
                f"{option} {text} names a {what} that is not attached",
                condition="UNKNOWN_TABLE",
                hint=did_you_mean(name, names) or f"attach it with --{what} {name}=PATH",
            )
        found[name] = value
    return found


def open_session(options: Connection, factory: SessionFactory | None = None) -> Session:
    """Start or reach Spark, and attach the tables.

    Raises
    ------
    WindrowError
        What starting Spark or reading a table raises.
    """
    from windrow.spark.scan.file_sources import look, of_table

    # missing files are errors before Spark starts, which takes seconds
    for name, paths in options.tables.items():
        with of_table(name):
            look(paths, format=options.format(name), master=options.master)
    from windrow.session import Session

    session = Session((factory or start_spark)(options))
    for name, paths in options.tables.items():
        session.register(name, paths, format=options.format(name))
    for name, path in options.streams.items():
        session.stream(name, path, **options.of_stream(name))
    return session


def values(spark: SparkSession, params: Mapping[str, str]) -> dict[str, Any]:
    """The values of the parameters: literals of Spark's SQL, and strings for all other texts.

    Raises
    ------
    UsageError
        ``MALFORMED_OPTION`` for a literal that has no value, such as ``DATE '2024-02-30'``.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    from windrow.spark.runtime.quiet import quiet

    bound: dict[str, Any] = dict(params)
    for name, text in params.items():
        if not _LITERAL.fullmatch(text):
            continue
        try:
            with quiet():
                spark.sql(f"SELECT {text}").schema  # noqa: B018 - a Column is read only where it is used
            bound[name] = F.expr(text)
        except PySparkException:
            raise UsageError(
                f"--param {name}={text} is not a value",
                condition="MALFORMED_OPTION",
                hint="write a number, TRUE, FALSE, NULL, a string, DATE '2024-01-31' or TIMESTAMP '…'",
            ) from None
    return bound


def with_tables(error: WindrowError, options: Connection) -> WindrowError:
    """The error, with a hint that names the attached tables, or with the table of a malformed file."""
    from windrow.spark.gateway import unregistered

    context = error.getQueryContext() if error.condition == "TABLE_OR_VIEW_NOT_FOUND" else []
    name = context[0].fragment().strip("`") if context else ""
    if error.condition == "TABLE_OR_VIEW_NOT_FOUND" and (not error.hint or error.hint == unregistered(name)):
        if not options.tables:
            error.hint = f"attach its files with {options.attach} {name or 'NAME'}=PATH"
        else:
            attached = f"tables attached are {', '.join(options.tables)}"
            error.hint = did_you_mean(name, options.tables) or attached
    elif error.condition == "MALFORMED_RECORD":
        from windrow.spark.scan.file_sources import look

        for name, paths in options.tables.items():
            files = look(paths, format=options.format(name), master=options.master).files
            if any(f"file {file.path} " in error.message for file in files):
                error.message = f"table {name}: {error.message}"
                break
    return error


def cancel(session: Session | None) -> None:
    """Cancel the session's jobs, if Spark answers within seconds.

    It does so in another thread, as Ctrl-C may have interrupted this one within a call of Spark.
    """
    if session is None:
        return
    thread = threading.Thread(target=_cancel, args=(session,), name="windrow cancel", daemon=True)
    thread.start()
    thread.join(_CANCEL_PATIENCE)


def _cancel(session: Session) -> None:
    # a Spark that has ended needs no cancelling, and its error is none for the user
    with suppress(Exception):
        _cancel_jobs(session.spark)


def _cancel_jobs(spark: SparkSession) -> None:
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        spark.interruptAll()
    else:
        # tasks end some time after their job, and Spark would log a warning for each result
        spark.sparkContext.setLogLevel("OFF")
        spark.sparkContext.cancelAllJobs()


def _pair(option: str, text: str, example: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name.strip() and equals and value.strip()):
        raise UsageError(
            f"{option} {text} is not NAME=VALUE",
            condition="MALFORMED_OPTION",
            hint=f"write {option} {example}",
        )
    return name.strip(), value.strip()


def start_spark(options: Connection) -> SparkSession:
    """The SparkSession of ``--master``: on this machine, on a cluster, or of a Spark Connect server."""
    from windrow.cli.keep_java_classes import keep_after
    from windrow.spark.runtime.local import JAVA_OPTIONS, local_cores, local_session

    if options.master.startswith("local") and not local_cores(options.master):
        raise UsageError(
            f"--master {options.master} is not a local Spark",
            condition="MALFORMED_OPTION",
            hint="write local, local[4] for four threads, or local[*] for one per core",
        )
    if not options.master.startswith("sc://"):
        session = local_session(master=options.master, conf=options.conf)
        # a user's own options for Java may concern its classes too
        if JAVA_OPTIONS not in options.conf:
            keep_after(session)
        return session
    from pyspark.sql import SparkSession

    _reachable(options.master)
    builder = SparkSession.builder.remote(options.master)
    for key, value in options.conf.items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


def _reachable(url: str) -> None:
    """Fail within seconds if no server answers; Spark's client would wait for many minutes."""
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

"""Shared by all commands: how a call begins and ends, and which options exclude each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from windrow.cli.connection import Connection, SessionFactory, cancel, start_spark
from windrow.cli.java_process import Java, bridge_silent, interrupts_ignored, no_more_counts
from windrow.cli.reporting import reporting, terminable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from windrow.session import Session

__all__ = ["CommandCall", "called", "refuse_together", "retains_malformed", "with_traces"]


class CommandCall:
    """One call of a command that needs a session: the factory of the SparkSession, and later the session."""

    def __init__(self, factory: SessionFactory | None) -> None:
        self._java = Java()
        self.is_own = factory is None
        self.factory = factory or self._started
        self.session: Session | None = None

    def opened(self, session: Session) -> None:
        """Remember the session, so that it can be stopped."""
        self.session = session

    def end(self) -> None:
        """Cancel Spark's jobs, and stop the JVM if this call has started it."""
        if self.is_own:
            interrupts_ignored()
        cancel(self.session)
        if self.is_own:
            no_more_counts(self.session)
        self._java.end()

    def close(self) -> None:
        """Stop the JVM if this call has started it, even while it starts."""
        if self.is_own:
            self.end()

    def _started(self, options: Connection) -> SparkSession:
        with self._java.starting():
            return start_spark(options)


@contextmanager
def called(context: typer.Context, debug: bool) -> Iterator[CommandCall]:
    """Run one call of a command: report its errors, and at the end stop what it has started."""
    call = CommandCall(context.obj)
    with bridge_silent(), reporting(debug, call.end), terminable():
        from windrow.spark.runtime.version import check_version

        check_version()
        yield call


def refuse_together(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that have no meaning with, or without, another."""
    from windrow.errors import UsageError

    for name, value in others.items():
        if value is not None:
            needed = option.removeprefix("no ")
            raise UsageError(
                f"{name} needs {needed}" if needed != option else f"{name} cannot be combined with {option}",
                condition="UNKNOWN_OPTION",
                hint="write into a target: INSERT INTO target SELECT STREAM …"
                if option == "--live"
                else f"add {needed}, or leave {name} out",
            )


def retains_malformed(on_malformed: str | None) -> bool:
    """Whether malformed records go to a side output."""
    from windrow.errors import UsageError

    if on_malformed not in (None, "fail", "keep"):
        raise UsageError(
            f"--on-malformed {on_malformed} is neither fail nor keep",
            condition="MALFORMED_OPTION",
            hint="write fail to fail the query, or keep to put the records into a side output",
        )
    return on_malformed == "keep"


def with_traces(conf: list[str] | None, debug: bool) -> list[str]:
    """The settings of a session, with those that `--debug` adds."""
    traces = ["spark.sql.pyspark.jvmStacktrace.enabled=true"] if debug else []
    return traces + list(conf or ())

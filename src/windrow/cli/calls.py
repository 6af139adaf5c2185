"""What all commands have in common: how a call begins and ends, and which options exclude each other."""

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

__all__ = ["CommandCall", "called", "is_kept", "refuse_together", "with_traces"]


class CommandCall:
    """One call of a command that needs a session: how it is made, and which it is once it exists."""

    def __init__(self, factory: SessionFactory | None) -> None:
        self._java = Java()
        self.is_own = factory is None
        self.factory = factory or self._started
        self.session: Session | None = None

    def opened(self, session: Session) -> None:
        """Remember the session, so that it can be stopped."""
        self.session = session

    def end(self) -> None:
        """Stop what runs elsewhere, and the Java machine if it is of this call."""
        if self.is_own:
            interrupts_ignored()
        cancel(self.session)
        if self.is_own:
            no_more_counts(self.session)
        self._java.end()

    def close(self) -> None:
        """End the Java machine, if it is of this call, however far it has come."""
        if self.is_own:
            self.end()

    def _started(self, asked: Connection) -> SparkSession:
        with self._java.starting():
            return start_spark(asked)


@contextmanager
def called(context: typer.Context, debug: bool) -> Iterator[CommandCall]:
    """One call of a command: its errors are reported, and what runs is stopped."""
    call = CommandCall(context.obj)
    with bridge_silent(), reporting(debug, call.end), terminable():
        from windrow.spark.runtime.version import check_version

        check_version()
        yield call


def refuse_together(option: str, others: Mapping[str, object]) -> None:
    """Refuse options that mean nothing with, or without, another."""
    from windrow.errors import UsageError

    for name, value in others.items():
        if value is not None:
            raise UsageError(
                f"{name} is given with {option}",
                condition="UNKNOWN_OPTION",
                hint="live queries write into a target: INSERT INTO target SELECT STREAM …"
                if option == "--live"
                else f"it is an option of {option.removeprefix('no ')}",
            )


def is_kept(on_malformed: str | None) -> bool:
    """Whether malformed records are kept apart."""
    from windrow.errors import UsageError

    if on_malformed not in (None, "fail", "keep"):
        raise UsageError(
            f"--on-malformed {on_malformed} says nothing of malformed records",
            condition="MALFORMED_OPTION",
            hint="write fail to end the query, or keep to keep them apart",
        )
    return on_malformed == "keep"


def with_traces(conf: list[str] | None, debug: bool) -> list[str]:
    """The settings of a session, with those that `--debug` adds."""
    traces = ["spark.sql.pyspark.jvmStacktrace.enabled=true"] if debug else []
    return traces + list(conf or ())

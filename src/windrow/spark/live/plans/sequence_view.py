"""Views of windows and matches over live streams, which are streams again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from windrow.algebra.names import without_since
from windrow.spark.live.plans.clause_plan import ClausePlan
from windrow.spark.logs.clause_view import Ends, Feed, Unbounded
from windrow.spark.logs.micro_batch import MicroBatch, StreamOutput
from windrow.spark.logs.session_streams import Stream

__all__ = ["APART", "SequenceView"]

APART = "__windrow_clause_"
"""The prefix of names for queries in brackets before a window."""


@dataclass(frozen=True)
class SequenceView:
    """A view of windows or matches, as a stream.

    Attributes
    ----------
    name
        Its name in the session.
    plan, names
        Its query, and the names of its columns.
    """

    name: str
    plan: ClausePlan
    names: tuple[str, ...]

    @property
    def streams(self) -> frozenset[str]:
        """The live streams behind it; for recorded ones, none."""
        return self.plan.streams

    @property
    def read(self) -> frozenset[str]:
        """The streams that its query reads."""
        return self.plan.read

    @property
    def views(self) -> Iterable[str]:
        """The views that it reads."""
        return self.plan.views()

    @property
    def text(self) -> str:
        """The statement that made it."""
        return self.plan.text

    @property
    def label(self) -> str:
        """Its name for users: that of the view, or the query in brackets."""
        span = self.plan.span
        is_apart = self.name.startswith(APART)
        written = " ".join(without_since(self.text[span.start : span.stop]).split())
        return f"({written})" if is_apart else self.name

    @property
    def is_endless(self) -> bool:
        """Whether it has no recorded rows."""
        return self.plan.is_endless

    @property
    def lineage(self) -> tuple[Feed, ...]:
        """The live streams whose columns it passes on."""
        names = dict(zip(self.names, self.plan.columns, strict=True))
        return tuple(feed.only(names) for feed in self.plan.bound.lineage)

    def windows(self) -> dict[str, str]:
        """The state of its clauses, and of those of the views that it reads."""
        return self.plan.windows(f".{self.name.lower()}", f"{self.label}: ")

    def reasons(self) -> dict[str, str]:
        """Which rows the state has, and until when they are retained, by the same names."""
        return self.plan.reasons(f".{self.name.lower()}")

    def retained(self) -> dict[str, tuple[str, ...]]:
        """The rows of its clauses, and of those that it follows, which may be in the driver's memory."""
        return self.plan.retained(f".{self.name.lower()}")

    def ends(self) -> dict[str, Ends]:
        """The punctuation that ends the partitions of its clauses, and of those that it follows, by their
        keys.
        """
        return self.plan.ends_under(f".{self.name.lower()}")

    def unbounded(self) -> Sequence[Unbounded]:
        """The clauses, including those of views that it reads, with unbounded state."""
        return self.plan.unbounded()

    def output(self, batch: MicroBatch) -> StreamOutput:
        """Its new rows in a micro-batch."""
        output = self.plan.evaluated(batch, f".{self.name.lower()}")
        stream = self.plan.as_stream(output.rows, self.names)
        return StreamOutput(stream, replace(output, rows=stream.frame))

    def recorded(self) -> Stream:
        """The stream of its output over recorded rows."""
        made = self.plan.as_stream(self.plan.recorded(), self.names)
        known = self.plan.catalog.streams
        return replace(made, name=self.name, sources=tuple(known[name] for name in sorted(self.read)))

"""A Kafka topic as the sink of a live query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windrow.spark.live.sinks.sink import Sink
from windrow.syntax.sqltext import quoted

__all__ = ["Kafka"]


@dataclass(frozen=True)
class Kafka(Sink):
    """Sends each row to a topic as a JSON object, at least once.

    Spark's connector writes without transactions, so an interrupted micro-batch sends its rows again. Readers
    of the topic must remove duplicates by the contents of the rows.

    Attributes
    ----------
    servers
        As ``kafka.bootstrap.servers``.
    topic
        The topic.
    key
        The column with the keys of messages; by default messages have none.
    options
        Further options of Spark's connector, such as ``{"kafka.security.protocol": "SSL"}``.
    """

    servers: str
    topic: str
    key: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """The topic."""
        return f"topic {self.topic}"

    def may_repeat(self, number: int) -> bool:  # noqa: ARG002 - of other sinks
        """Always: rows are sent at least once."""
        return True

    def write(self, rows: DataFrame, number: int) -> int | None:  # noqa: ARG002 - Kafka knows no micro-batches
        """Send the rows of a micro-batch."""
        value = F.to_json(F.struct("*"), {"ignoreNullFields": "false"}).alias("value")
        key = [] if self.key is None else [F.col(quoted(self.key)).cast("string").alias("key")]
        there = {"kafka.bootstrap.servers": self.servers, "topic": self.topic}
        rows.select(*key, value).write.format("kafka").options(**there, **self.options).save()
        return None

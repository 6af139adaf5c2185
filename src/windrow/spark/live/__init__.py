"""Live queries on Structured Streaming: a micro-batch advances the query over its retained rows.

A micro-batch processes the rows up to the frontier, the instant before which no more rows arrive. It computes
the changes from the last frontier to the new one, from the rows that windows still need: by operators in
memory, or by those for whole logs if a part of the query has no operator. So every query that runs over a
recorded log runs live, and returns the same changes.
"""

from windrow.spark.live.executors.frames import streaming, streaming_late
from windrow.spark.live.executors.graphs.graph import graph_of, why_not
from windrow.spark.live.hosts import why_on_driver
from windrow.spark.live.input.source import live_stream
from windrow.spark.live.plans.clause_plan import ClausePlan, WhyRelation, plan_of_clauses
from windrow.spark.live.plans.emit_flow import unbounded_by_tasks, why_by_tasks
from windrow.spark.live.plans.emit_queries import EmittedPlan
from windrow.spark.live.plans.live_plan import BUFFERED_ROWS, ContinuousPlan, LivePlan
from windrow.spark.live.plans.read_names import live_streams
from windrow.spark.live.plans.sequence_view import APART, SequenceView
from windrow.spark.live.plans.whole_streams_plan import NOT_CLOSED, WholeStreamsPlan
from windrow.spark.live.query import LiveQuery
from windrow.spark.live.reading.changelog_of import over_streams_of_changes
from windrow.spark.live.reading.whole_stream_queries import is_blocking
from windrow.spark.live.session_queries import Insert, Listeners, LiveQueries
from windrow.spark.live.sinks.into_stream import IntoStream
from windrow.spark.live.sinks.kafka import Kafka
from windrow.spark.live.sinks.sink import Files, Memory
from windrow.spark.live.sinks.tables import Table
from windrow.spark.live.sinks.targets import Mode, Target
from windrow.spark.logs.live_source import LiveSource

__all__ = [
    "APART",
    "BUFFERED_ROWS",
    "NOT_CLOSED",
    "ClausePlan",
    "ContinuousPlan",
    "EmittedPlan",
    "Files",
    "Insert",
    "IntoStream",
    "Kafka",
    "Listeners",
    "LivePlan",
    "LiveQueries",
    "LiveQuery",
    "LiveSource",
    "Memory",
    "Mode",
    "SequenceView",
    "Table",
    "Target",
    "WholeStreamsPlan",
    "WhyRelation",
    "graph_of",
    "is_blocking",
    "live_stream",
    "live_streams",
    "over_streams_of_changes",
    "plan_of_clauses",
    "streaming",
    "streaming_late",
    "unbounded_by_tasks",
    "why_by_tasks",
    "why_not",
    "why_on_driver",
]

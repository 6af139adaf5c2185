"""Live queries on Structured Streaming: each micro-batch is a step of the query over what it keeps.

A step takes the rows up to the frontier, the instant before which nothing more will come, and evaluates the
query by the operators for whole logs from the last frontier to the new one, over the rows that windows still
need. So every query that runs over a recorded log runs live, and gives the same changes.
"""

from windrow.spark.live.plan import LivePlan
from windrow.spark.live.query import LiveQuery
from windrow.spark.live.runner import live_streams
from windrow.spark.live.sinks import Memory
from windrow.spark.live.source import LiveSource, live_stream

__all__ = ["LivePlan", "LiveQuery", "LiveSource", "Memory", "live_stream", "live_streams"]

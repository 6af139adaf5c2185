"""Event time in a query over streams: which columns watermarks are known of, and what is told by them.

The query is taken apart as far as that needs, and gets columns of ours: the keys of its nearest groups, by
which changes are gathered and counted, and the watermark at which each row came, by which a row is late for
its group. What is not understood is refused; nothing is guessed.

| relation | its columns of event time |
|---|---|
| a stream | its rowtime |
| a windowing function | those of its table; begin and end of its windows, by the least yet to come |
| SELECT | those that are selected, also moved by an interval, truncated, or cast to a coarser type |
| groups | keys that are event time |
| a join | those of its sides; it has the least watermark of their streams |
| UNION, DISTINCT | those that are so in all of its sides, alike |
"""

from windrow.spark.event_time.clocks import clocks_of
from windrow.spark.event_time.facts import (
    HIDDEN,
    UNTIL,
    Closed,
    Closing,
    Completeness,
    Ending,
    Judging,
    Occurrence,
    Plain,
    Sessions,
    Timed,
)
from windrow.spark.event_time.lifetimes import with_lifetimes
from windrow.spark.event_time.reading import EventTimes

__all__ = [
    "HIDDEN",
    "UNTIL",
    "Closed",
    "Closing",
    "Completeness",
    "Ending",
    "EventTimes",
    "Judging",
    "Occurrence",
    "Plain",
    "Sessions",
    "Timed",
    "clocks_of",
    "with_lifetimes",
]

"""Event time in a plan: which columns watermarks are known of, when rows are final, and what is late.

:class:`EventTimes` derives it node by node, and gives the plan the columns and conditions by which it is
run: the keys of its nearest groups, by which changes are gathered and counted, and the watermark before each
row, by which a row is late for its group. What is not understood is refused; nothing is guessed.

| relation | its columns of event time |
|---|---|
| a stream | its rowtime |
| a windowing function | those of its table; begin and end of its windows, by the least yet to come |
| SELECT | those that are selected, also moved by an interval, truncated, or cast to a coarser type |
| groups | keys that are event time |
| a join | those of its sides; it has the least watermark of their streams |
| UNION, DISTINCT | those that are so in all of its sides, alike |
"""

from windrow.plan.event_time.derivation import EventTimes, EventTimeSource
from windrow.plan.event_time.facts import (
    HIDDEN,
    UNTIL,
    Closed,
    ClosedKeys,
    Completeness,
    Ending,
    Judging,
    Occurrence,
    Plain,
    SessionFacts,
    Timed,
)

__all__ = [
    "HIDDEN",
    "UNTIL",
    "Closed",
    "ClosedKeys",
    "Completeness",
    "Ending",
    "EventTimeSource",
    "EventTimes",
    "Judging",
    "Occurrence",
    "Plain",
    "SessionFacts",
    "Timed",
]

"""Event time in a plan: which columns have watermarks, when rows are final, and which rows are late.

:class:`EventTimes` derives it node by node, from the streams up. It adds to the plan the columns and
conditions that a run needs: the keys of the nearest groups, by which changes are counted, and the watermark
before each row, which decides whether the row is late for its group. A query that it does not understand
raises an error.

| relation | its columns of event time |
|---|---|
| a stream | its rowtime |
| a windowing function | those of its table; begin and end of its windows |
| SELECT | the selected ones, also moved by an interval, truncated, or cast to a coarser type |
| groups | keys that are event time |
| a join | those of its sides; its watermark is the least one of their streams |
| UNION, DISTINCT | those that all of its sides have, with the same expression |
"""

from windrow.plan.event_time.derivation import EventTimes, EventTimeSource
from windrow.plan.event_time.facts import (
    HIDDEN,
    UNTIL,
    Closed,
    ClosedBy,
    ClosedKeys,
    Completeness,
    Judging,
    Lineage,
    Occurrence,
    SessionFacts,
    Timed,
)

__all__ = [
    "HIDDEN",
    "UNTIL",
    "Closed",
    "ClosedBy",
    "ClosedKeys",
    "Completeness",
    "EventTimeSource",
    "EventTimes",
    "Judging",
    "Lineage",
    "Occurrence",
    "SessionFacts",
    "Timed",
]

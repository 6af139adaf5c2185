"""Answers of tasks that read files beside those over rows that Spark reads."""

from __future__ import annotations

from collections.abc import Callable

from windrow import Session
from windrow.spark.scan.file_scan import READ_SETTING
from windrow.spark.tasks.layout import ROWS_SETTING

__all__ = ["plan_where_answers_agree"]


def plan_where_answers_agree(
    session: Session, conf: Callable[[str, str], None], query: str, said: str
) -> str:
    """What EXPLAIN says where tasks may read the files. Otherwise it does not say `said`, and the answers are
    the same with no partition in slices.
    """
    conf(READ_SETTING, "true")
    plan = str(session.sql(query).plan())
    found = sorted(map(str, session.sql(query).df.collect()))
    conf(READ_SETTING, "false")
    conf(ROWS_SETTING, "1000000")
    assert said not in session.sql(query).plan()
    assert found == sorted(map(str, session.sql(query).df.collect()))
    assert found
    return plan

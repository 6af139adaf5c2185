"""Tasks read slices of one partition where row groups have ranges of the order key; the windows are those of
rows that Spark reads.
"""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.spark.scan.comparisons import plan_where_answers_agree
from windrow import Session
from windrow.spark.tasks.layout import ROWS_SETTING, TASK_SETTING

UNEXCHANGED = "none: each task reads whole partitions, or a slice of one"
ROWS = 1200
WINDOWS = {
    "rows": "TYPE SLIDING ORDER BY {o} START AS s AT sp END AT ep WHEN ep - sp = 20",
    "rows before": "TYPE SLIDING ORDER BY {o} LABEL AS s AT lp START AS f AT sp WHEN lp - sp = 3"
    " END AT ep WHEN ep - lp = 3",
    "values": "TYPE SLIDING ORDER BY {o} START AS s END AS e NEXT AS n WHEN n.o - s.o > 30",
    "session": "TYPE TUMBLING ORDER BY {o} START AS s END AS e NEXT AS n WHEN n.o - e.o > 3",
    "threshold": "TYPE TUMBLING ORDER BY {o} START AS s WHEN s.x < 3 END AS e WHEN e.x > 14",
}
QUERY = "SELECT s.o, s.x, SUM(w.x) AS total, COUNT(w) AS n FROM {rows} WINDOW BY w AS (" + "{clause})"
MATCHES = """SELECT * FROM {rows} MATCH_RECOGNIZE (ORDER BY o MEASURES FIRST(o) AS begins, COUNT(*) AS n
    AFTER MATCH SKIP {skip} PATTERN (a b{times}) DEFINE b AS x > PREV(x))"""


def table(keys, of=None):
    """Rows with these order keys, of these partitions."""
    return pa.table(
        {
            "p": pa.array(of or ["one"] * len(keys)),
            "o": pa.array(keys),
            "x": pa.array([(at * 31) % 17 for at in range(len(keys))]),
            "k": pa.array([f"kind {at % 3}" for at in range(len(keys))]),
        }
    )


KINDS = {
    "integers": lambda at: at * 3 - 9,
    "days": lambda at: dt.date(1969, 12, 20) + dt.timedelta(at),
    "times": lambda at: dt.datetime(2001, 1, 1, tzinfo=dt.UTC) + dt.timedelta(hours=at),
}


@pytest.fixture
def asked(spark, conf, tmp_path):
    """The line of EXPLAIN about exchanges, after comparing the answers with those of Spark's rows."""
    session = Session(spark)
    conf("spark.sql.shuffle.partitions", "4")
    conf(TASK_SETTING, "100")

    def ask(rows, query, of_group=100):
        if rows is not None:
            pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=of_group)
        session.register("rows", tmp_path / "rows.parquet")
        conf(ROWS_SETTING, "400")
        plan = plan_where_answers_agree(session, conf, query, UNEXCHANGED)
        return next(line for line in plan.splitlines() if line.strip().startswith("exchange"))

    return ask


def windows(clause, rows="rows", order="o"):
    return QUERY.format(rows=rows, clause=WINDOWS[clause].format(o=order))


@pytest.mark.parametrize("kind", KINDS)
def test_slices_with_rows_around_them_are_not_exchanged(asked, kind):
    rows = table([KINDS[kind](at) for at in range(ROWS)])
    assert UNEXCHANGED in asked(rows, windows("rows"))
    assert UNEXCHANGED in asked(None, windows("rows before", order="o DESC"))
    assert UNEXCHANGED in asked(None, windows("rows", rows="(SELECT o, x FROM rows WHERE k = 'kind 2')"))
    assert UNEXCHANGED in asked(None, MATCHES.format(rows="rows", skip="TO NEXT ROW", times="{1,3}"))


def test_slices_with_values_in_reach_are_not_exchanged(asked):
    rows = table([KINDS["integers"](at) for at in range(ROWS)])
    assert UNEXCHANGED in asked(rows, windows("values"))
    before = windows("values").replace("NEXT AS n WHEN n.o - s.o > 30", "PREV AS p WHEN p.o - s.o > -10")
    assert UNEXCHANGED in asked(None, before.replace("s.x,", "s.x, e.x AS last,"))
    around = windows("values").replace("NEXT AS n WHEN n.o", "PREV AS p NEXT AS n WHEN p.o")
    assert UNEXCHANGED in asked(None, around.replace("s.x,", "s.x, n.o AS after, p.o AS before,"))
    rows_of_a_range = "(SELECT o, x * 2 AS x FROM rows WHERE o BETWEEN 900 AND 2700)"
    assert UNEXCHANGED in asked(None, windows("values", rows=rows_of_a_range))


@pytest.mark.parametrize("clause", ["session", "threshold"])
def test_what_slices_tell_each_other_is_exchanged(asked, clause):
    assert "none" not in asked(table([at + at // 50 * 7 for at in range(ROWS)]), windows(clause))


def test_matches_that_may_be_long_are_exchanged(asked):
    rows = table([KINDS["integers"](at) for at in range(ROWS)])
    assert "none" not in asked(rows, MATCHES.format(rows="rows", skip="PAST LAST ROW", times="+"))


def test_rows_are_exchanged_where_ranges_are_wide_or_unknown(asked):
    keys = [KINDS["integers"](at) for at in range(ROWS)]
    assert "none" not in asked(table([keys[(at * 7919) % ROWS] for at in range(ROWS)]), windows("rows"))
    assert "none" not in asked(table([*keys[:-1], None]), windows("rows"))
    assert "none" not in asked(table([float(key) for key in keys]), windows("rows"))
    assert "none" not in asked(table(keys), windows("rows", order="o + 1"))


def test_a_row_group_may_be_in_several_slices(asked):
    keys = [KINDS["integers"](at) for at in range(ROWS)]
    assert UNEXCHANGED in asked(table(keys), windows("rows"), of_group=500)
    assert "none" not in asked(table(keys), windows("rows"), of_group=ROWS)  # too many would read it


SKEWED = [*["a"] * 120, *["b"] * 30, *["long"] * 830, *["m"] * 90, *["z"] * 130]


@pytest.mark.parametrize(
    "of",
    [
        SKEWED,
        [{"a": -3, "b": 0, "long": 1, "m": 2, "z": 2**40}[key] for key in SKEWED],
        [dt.date(2024, 1, 1 + at) for at, count in enumerate((120, 830, 250)) for _ in range(count)],
        [*["a"] * 600, *["b"] * 600],
        [*[-(2**63)] * 150, *[7] * 220, *[2**63 - 1] * 830],
        [*[b"\xfe"] * 150, *[b"\xff"] * 1050],
    ],
)
def test_a_long_partition_among_others_is_cut(asked, of):
    rows = table([at * 3 - 9 for at in range(ROWS)], of)
    for clause in ("rows", "values"):
        query = windows(clause).replace("ORDER BY", "PARTITION BY p ORDER BY").replace("s.o,", "s.p, s.o,")
        assert UNEXCHANGED in asked(rows, query)
    chosen = query.replace("FROM rows", "FROM (SELECT p, o, x FROM rows WHERE k <> 'kind 1')")
    assert UNEXCHANGED in asked(None, chosen)
    assert "none" not in asked(None, query.replace("PARTITION BY p", "PARTITION BY p, x % 2"))
    session = windows("session").replace("ORDER BY", "PARTITION BY p ORDER BY")
    assert "none" not in asked(None, session)


def test_a_long_partition_of_a_join_is_cut(asked):
    query = windows("rows").replace("ORDER BY o", "PARTITION BY p ORDER BY o, y").replace("s.x,", "s.x, s.y,")
    small = "(VALUES ('kind 0', 1), ('kind 0', 2), ('kind 1', 3)) AS t(kind, y)"
    joined = query.replace("FROM rows", f"FROM (SELECT p, o, x, y FROM rows JOIN {small} ON k = kind)")
    assert UNEXCHANGED in asked(table([at * 3 - 9 for at in range(ROWS)], SKEWED), joined)


def test_empty_files_beside_others_do_not_matter(spark, conf, tmp_path):
    conf(TASK_SETTING, "100")
    conf(ROWS_SETTING, "400")
    rows = table([at * 3 - 9 for at in range(ROWS)])
    for number, part in enumerate((rows.slice(0, 0), rows.slice(0, 700), rows.slice(700))):
        pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=100)
    session = Session(spark)
    session.register("rows", tmp_path)
    found = session.sql(windows("rows"))
    assert UNEXCHANGED in found.plan()
    counts = sorted(row.n for row in found.df.collect())
    assert counts == [*range(1, 21), *[21] * (ROWS - 20)]  # windows at the end are shorter
